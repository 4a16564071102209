//! A run: shape by shape, as long as the budget lasts, whoever measures.

use std::collections::{BTreeSet, VecDeque};

use lanky::tuned::{Cell, Class, Timed};
use model::{Machine, Problem, Variant};
use num_traits::cast;

use super::entrants::{Entrant, entrants};
use super::mesh::Place;
use crate::bench::stats::Summary;
use crate::error::Fault;
use crate::say::float;

/// Runs of each before it is timed, about.
const WARM_UP: usize = 3;
/// What a shape takes beside its runs is expected to be the least of so many before it: the first had
/// kernels to load.
const LEARNED: usize = 5;
/// Of more sampled multiply-adds a check is left out where the entry was right at a shape of this kind before.
const CHECKED: u64 = 1 << 26;

/// Whoever measures: a GPU, or a test.
pub trait Timer {
    /// Since the run began, s.
    fn elapsed_s(&self) -> f64;

    /// Whether somebody asked to stop.
    fn is_stopped(&self) -> bool;

    /// What no kernel can beat, s.
    fn bound_s(&self, problem: &Problem) -> f64;

    /// Times of entries with their parts of k, in turns on the same data; none of one that fails.
    ///
    /// # Errors
    /// What leaves nothing to measure this product with.
    fn race(&mut self, problem: &Problem, entries: &[(&'static Variant, u32)]) -> Result<Vec<Vec<f64>>, Fault>;

    /// What is wrong with an entry's product, if something is.
    ///
    /// # Errors
    /// As of a race.
    fn check(&mut self, problem: &Problem, entry: (&'static Variant, u32)) -> Result<Option<String>, Fault>;
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All shapes are done.
    Whole,
    /// The budget: so many are left.
    Budget { left: usize },
    /// Somebody asked to stop: so many are left.
    Stopped { left: usize },
}

/// What a run found.
#[derive(Debug, PartialEq)]
pub struct Found {
    pub cells: Vec<Cell>,
    pub end: End,
    /// Shapes that could not be measured, with the reason.
    pub failed: Vec<String>,
    /// How many of them had too little memory.
    pub without_memory: usize,
    /// Products that were wrong; they are of no cell.
    pub wrong: Vec<String>,
}

/// How far a run is.
pub struct Standing<'s> {
    /// Shapes done, or left out.
    pub done: usize,
    /// Until the budget or the mesh ends, s, about.
    pub left_s: f64,
    pub cells: &'s [Cell],
}

/// A run of shapes.
pub struct Session<'t, T> {
    pub timer: &'t mut T,
    pub machine: Machine,
    pub budget_s: f64,
    pub samples: usize,
    pub paper: bool,
    /// What the last shapes took beside their runs, s.
    beside_s: VecDeque<f64>,
    /// Entries that were right, by the kind of product.
    right: BTreeSet<(Class, &'static str)>,
    found: Found,
}

impl<'t, T: Timer> Session<'t, T> {
    pub fn new(timer: &'t mut T, machine: Machine, budget_s: f64, samples: usize, paper: bool) -> Self {
        let found =
            Found { cells: Vec::new(), end: End::Whole, failed: Vec::new(), without_memory: 0, wrong: Vec::new() };
        Self { timer, machine, budget_s, samples, paper, beside_s: VecDeque::new(), right: BTreeSet::new(), found }
    }

    /// All shapes in order. After each, `standing` is told.
    ///
    /// # Errors
    /// Those of `standing`; what befalls one shape is put on record.
    pub fn run(
        mut self,
        places: &[Place],
        standing: &mut dyn FnMut(&Standing<'_>) -> Result<(), Fault>,
    ) -> Result<Found, Fault> {
        let mut left = 0;
        for (done, place) in places.iter().enumerate() {
            if self.timer.is_stopped() {
                self.found.end = End::Stopped { left: left + places.len() - done };
                return Ok(self.found);
            }
            if self.timer.elapsed_s() >= self.budget_s {
                left += places.len() - done;
                break;
            }
            match self.expected(place) {
                Err(why) => self.found.failed.push(why),
                Ok((entrants, runs_s)) => {
                    let began_s = self.timer.elapsed_s();
                    if began_s + runs_s + self.expected_beside_s() > self.budget_s {
                        left += 1;
                        continue;
                    }
                    self.place(place, &entrants);
                    self.beside_s.push_back((self.timer.elapsed_s() - began_s - runs_s).max(0.0));
                    if self.beside_s.len() > LEARNED {
                        self.beside_s.pop_front();
                    }
                }
            }
            let elapsed_s = self.timer.elapsed_s();
            let rest_s = elapsed_s / float(done + 1) * float(places.len() - done - 1);
            let left_s = rest_s.min((self.budget_s - elapsed_s).max(0.0));
            standing(&Standing { done: done + 1, left_s, cells: &self.found.cells })?;
        }
        if left > 0 {
            self.found.end = End::Budget { left };
        }
        Ok(self.found)
    }

    /// What a shape is expected to take beside its runs, s: until enough have been, nothing.
    fn expected_beside_s(&self) -> f64 {
        let least = self.beside_s.iter().copied().fold(f64::INFINITY, f64::min);
        if self.beside_s.len() < LEARNED { 0.0 } else { least }
    }

    /// Who is timed at a shape, and what all their runs are expected to take, s.
    fn expected(&self, place: &Place) -> Result<(Vec<Entrant>, f64), String> {
        let problem = place.class.problem(place.lengths).ok_or_else(|| format!("{}: no such product", name(place)))?;
        let entrants = entrants(&problem, &self.machine, self.paper);
        let entrants = entrants.map_err(|refusal| format!("{}: {refusal}", name(place)))?;
        let once_s: f64 = entrants.iter().map(|entrant| entrant.expected_s).sum();
        let runs = float((self.samples + WARM_UP) * place.points.len());
        Ok((entrants, once_s * runs))
    }

    /// Times a shape, and adds its cell.
    fn place(&mut self, place: &Place, entrants: &[Entrant]) {
        match self.cell(place, entrants) {
            Ok(Ok(cell)) => self.found.cells.push(cell),
            Ok(Err(wrong)) => self.found.wrong.push(format!("{}: {wrong}", name(place))),
            Err(fault) => {
                self.found.failed.push(format!("{}: {fault}", name(place)));
                self.found.without_memory += usize::from(matches!(fault, Fault::Memory(_)));
            }
        }
    }

    /// The inner error is of a wrong product.
    fn cell(&mut self, place: &Place, entrants: &[Entrant]) -> Result<Result<Cell, String>, Fault> {
        let own = place.class.problem(place.lengths).ok_or_else(|| Fault::Input("no such product".into()))?;
        let bound_s = self.timer.bound_s(&own);
        let mut slownesses = vec![0.0; entrants.len()];
        let mut own_times = vec![Vec::new(); entrants.len()];
        for point in &place.points {
            let Some(problem) = place.class.problem(*point) else { continue };
            let times = self.point(&problem, entrants)?;
            let bound_s = self.timer.bound_s(&problem);
            for (slowness, times) in slownesses.iter_mut().zip(&times) {
                *slowness += median(times) / bound_s / float(place.points.len());
            }
            if *point == place.lengths {
                own_times = times;
            }
        }
        // The first of equals; what failed took infinitely long.
        let least =
            (0..entrants.len()).fold(0, |least, at| if slownesses[at] < slownesses[least] { at } else { least });
        let (best, model) = (entrants[least], entrants[0]);
        if !slownesses[least].is_finite() || !slownesses[0].is_finite() {
            return Err(Fault::Device("the model's choice, or all, failed".into()));
        }
        if let Some(wrong) = self.check(place.class, &own, &best)? {
            return Ok(Err(format!("{} in {} parts: {wrong}", best.variant.entry, best.parts)));
        }
        let timed = |entrant: &Entrant, slowness: f64| {
            let Entrant { variant, parts, expected_parts, .. } = *entrant;
            Timed { variant, parts, expected_parts, ns: rounded(slowness * bound_s * 1e9, 10.0) }
        };
        let noise = Summary::of(&own_times[least], 1).map_or(0.0, |s| (s.high - s.low) / 2.0 / s.median);
        Ok(Ok(Cell {
            class: place.class,
            lengths: place.lengths,
            best: timed(&best, slownesses[least]),
            model: timed(&model, slownesses[0]),
            noise: rounded(noise, 1e4),
            // Of a shape that is all launch there is little.
            fraction: rounded(1.0 / slownesses[least], 1e4).max(1e-4),
        }))
    }

    /// The times of all at one shape; none of those that cannot run there.
    fn point(&mut self, problem: &Problem, entrants: &[Entrant]) -> Result<Vec<Vec<f64>>, Fault> {
        let parts: Vec<Option<u32>> = entrants.iter().map(|entrant| entrant.parts_at(problem, &self.machine)).collect();
        let running: Vec<(&'static Variant, u32)> =
            entrants.iter().zip(&parts).filter_map(|(entrant, parts)| Some((entrant.variant, (*parts)?))).collect();
        let mut times = self.timer.race(problem, &running)?.into_iter();
        Ok(parts.iter().map(|parts| parts.and_then(|_| times.next()).unwrap_or_default()).collect())
    }

    /// What is wrong with the best one's product, if something is: looked at where it costs little, and once for each kind.
    fn check(&mut self, class: Class, problem: &Problem, best: &Entrant) -> Result<Option<String>, Fault> {
        let is_cheap = problem.m.min(32).saturating_mul(problem.n.min(32)).saturating_mul(problem.k) <= CHECKED;
        if !is_cheap && self.right.contains(&(class, best.variant.entry)) {
            return Ok(None);
        }
        let wrong = self.timer.check(problem, (best.variant, best.parts))?;
        if wrong.is_none() {
            self.right.insert((class, best.variant.entry));
        }
        Ok(wrong)
    }
}

/// `gemv f64 ccc 0, 1000 x 1 x 3000`
pub fn name(place: &Place) -> String {
    let [m, n, k] = place.lengths;
    format!("{}, {m} x {n} x {k}", place.class)
}

/// Infinite of no times.
pub fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::INFINITY,
        len => f64::midpoint(sorted[(len - 1) / 2], sorted[len / 2]),
    }
}

/// As far as it is written.
fn rounded(number: f64, digits: f64) -> f64 {
    let whole: Option<u64> = cast((number * digits).round());
    // No time, and no share of the bound, is nothing.
    whole.map_or(number, |whole| cast::<u64, f64>(whole).unwrap_or(number) / digits)
}
