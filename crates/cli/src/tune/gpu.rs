//! A GPU that measures: as `lanky bench` does, entries in turns on the same data, short launches in graphs.

use std::time::Instant;

use lanky::{Ceilings, Scalar, Stream};
use model::roofline::bound_at;
use model::{Dtype, Problem, Variant};

use super::mesh::Place;
use super::session::{Timer, median};
use crate::bench::check::{Oracle, Verdict};
use crate::bench::contest::{self, Lane, Role, Times};
use crate::bench::data::{self, Data, Parts, Pool, source};
use crate::bench::fault;
use crate::bench::job::Job;
use crate::bench::ours::Ours;
use crate::bench::random::Random;
use crate::error::Fault;
use crate::interrupt;
use crate::real::Real;

/// A GPU with the data of all shapes.
pub struct Gpu<'s> {
    how: How<'s>,
    ceilings: Ceilings,
    began: Instant,
    single: Pools<f32>,
    double: Pools<f64>,
}

/// What all races have in common.
#[derive(Clone, Copy)]
struct How<'s> {
    stream: &'s Stream,
    samples: usize,
    seed: u64,
    cache_bytes: u64,
}

/// Random reals of one type, made once.
struct Pools<T> {
    /// Of A, B and C.
    longest: [u64; 3],
    made: Option<[Pool<T>; 2]>,
}

impl<T> Default for Pools<T> {
    fn default() -> Self {
        Self { longest: [1; 3], made: None }
    }
}

impl<'s> Gpu<'s> {
    /// For shapes that the memory holds; those that it does not are taken out. The time counts from `began`.
    ///
    /// # Errors
    /// The driver does not say how much memory there is.
    pub fn new(
        stream: &'s Stream,
        ceilings: Ceilings,
        (samples, seed): (usize, u64),
        began: Instant,
        places: &mut Vec<Place>,
    ) -> Result<Self, Fault> {
        let (free, _) = stream.device().memory()?;
        let how = How { stream, samples, seed, cache_bytes: data::cache_bytes(stream.device()) };
        let (mut single, mut double) = (Pools::<f32>::default(), Pools::<f64>::default());
        places.retain(|place| {
            let mut problems = place.points.iter().filter_map(|point| place.class.problem(*point));
            problems.all(|p| {
                let longest = if is_double(&p) { &mut double.longest } else { &mut single.longest };
                let lengths = Parts::new(&job(&p), how.cache_bytes, false).and_then(|parts| parts.lengths());
                // Both types' pools have half of the memory.
                lengths.is_some_and(|lengths| grow(longest, lengths, &p, free / 2))
            })
        });
        let mut gpu = Self { how, ceilings, began, single, double };
        // Before the first shape, whose time they are not.
        for place in places.iter() {
            match place.class.dtype {
                "f32" | "c64" => drop(gpu.single.made(how)?),
                _ => drop(gpu.double.made(how)?),
            }
        }
        Ok(gpu)
    }
}

/// Makes room for these lengths, if there is.
fn grow(longest: &mut [u64; 3], lengths: [u64; 3], p: &Problem, free: u64) -> bool {
    let with: [u64; 3] = std::array::from_fn(|operand| lengths[operand].max(longest[operand]));
    let fits = data::fits(with, if is_double(p) { 8 } else { 4 }, free);
    if fits {
        *longest = with;
    }
    fits
}

fn is_double(p: &Problem) -> bool {
    matches!(p.dtype, Dtype::F64 | Dtype::C128)
}

/// A product as it lies in memory.
fn job(p: &Problem) -> Job {
    let (dtype, reals) = match p.dtype {
        Dtype::F32 => (Dtype::F32, 1),
        Dtype::F64 => (Dtype::F64, 1),
        Dtype::C64 => (Dtype::F32, 2),
        Dtype::C128 => (Dtype::F64, 2),
    };
    Job { problem: Problem { dtype, ..*p }, reals, batch: 1, steps: [0; 3], shares_a: p.gram }
}

impl Timer for Gpu<'_> {
    fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn is_stopped(&self) -> bool {
        interrupt::signalled().is_some()
    }

    fn bound_s(&self, p: &Problem) -> f64 {
        bound_at(p, &self.ceilings.rates(p.dtype), p.reads_c).seconds()
    }

    fn race(&mut self, p: &Problem, entries: &[(&'static Variant, u32)]) -> Result<Vec<Vec<f64>>, Fault> {
        match p.dtype {
            Dtype::F32 => self.single.race::<f32>(self.how, p, entries),
            Dtype::F64 => self.double.race::<f64>(self.how, p, entries),
            Dtype::C64 => self.single.race::<lanky::Complex<f32>>(self.how, p, entries),
            Dtype::C128 => self.double.race::<lanky::Complex<f64>>(self.how, p, entries),
        }
    }

    fn check(&mut self, p: &Problem, entry: (&'static Variant, u32)) -> Result<Option<String>, Fault> {
        match p.dtype {
            _ if fault::planted(fault::UNCHECKED) => Ok(None),
            Dtype::F32 => self.single.check::<f32>(self.how, p, entry),
            Dtype::F64 => self.double.check::<f64>(self.how, p, entry),
            Dtype::C64 => self.single.check::<lanky::Complex<f32>>(self.how, p, entry),
            Dtype::C128 => self.double.check::<lanky::Complex<f64>>(self.how, p, entry),
        }
    }
}

impl<T: Real> Pools<T> {
    /// Those of A and B.
    fn made(&mut self, how: How<'_>) -> Result<&[Pool<T>; 2], Fault> {
        let [a, b, _] = self.longest;
        let pool = |operand, len| Pool::new(how.stream, source(how.seed, operand), len);
        Ok(match &mut self.made {
            Some(pools) => pools,
            made => made.insert([pool(1, a)?, pool(2, b)?]),
        })
    }

    /// The data of a product.
    fn data(&mut self, how: How<'_>, p: &Problem) -> Result<Data<'_, T>, Fault> {
        let none = || Fault::Input("the shape is larger than any memory".into());
        let parts = Parts::new(&job(p), how.cache_bytes, false).ok_or_else(none)?;
        let [a, b] = self.made(how)?;
        Data::new(how.stream, job(p), beta(p), parts, [a, b], source(how.seed, 3))
    }

    fn race<E: Scalar<Real = T>>(
        &mut self,
        how: How<'_>,
        p: &Problem,
        entries: &[(&'static Variant, u32)],
    ) -> Result<Vec<Vec<f64>>, Fault> {
        let mut data = self.data(how, p)?;
        let mut plans = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            match ours::<E, T>(how, p, *entry) {
                // The first is the model's choice, without which there is nothing to compare with.
                Err(error) if at == 0 => return Err(error.into()),
                plan => plans.push(plan.ok()),
            }
        }
        let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(plans.len());
        for (at, plan) in plans.iter_mut().enumerate() {
            let role = if at == 0 { Role::Ours } else { Role::Entry };
            lanes.extend(plan.as_mut().map(|run| Lane { run, role }));
        }
        let random = |what| Random::of(how.seed, &format!("{p:?}{what}"));
        let mut raced = contest::race(how.stream, &mut data, &mut lanes, how.samples, random(""))?;
        in_graphs_if_short(how, &mut data, &mut lanes, &mut raced, random("@graph"))?;
        let mut raced = raced.into_iter();
        drop(lanes);
        let mut times = Vec::with_capacity(plans.len());
        for (at, plan) in plans.iter().enumerate() {
            match plan.as_ref().and_then(|_| raced.next()) {
                Some(Err(error)) if at == 0 => return Err(error.into()),
                of_plan => times.push(of_plan.and_then(Result::ok).unwrap_or_default()),
            }
        }
        Ok(times)
    }

    fn check<E: Scalar<Real = T>>(
        &mut self,
        how: How<'_>,
        p: &Problem,
        entry: (&'static Variant, u32),
    ) -> Result<Option<String>, Fault> {
        let mut data = self.data(how, p)?;
        let mut ours = ours::<E, T>(how, p, entry)?;
        let oracle = Oracle::new(&data);
        Ok(match oracle.check(how.stream, &mut data, &mut ours)? {
            Verdict::Right => None,
            Verdict::Wrong(why) => Some(why),
            Verdict::Failed(error) => return Err(error.into()),
        })
    }
}

/// Where launches are short, the times of those that are near the fastest become those in graphs: alone, between two events, a launch takes some
/// microseconds more or less by turns.
fn in_graphs_if_short<T: Real>(
    how: How<'_>,
    data: &mut Data<'_, T>,
    lanes: &mut [Lane<'_>],
    raced: &mut Times,
    random: Random,
) -> Result<(), Fault> {
    let seconds = raced.iter().flatten().map(|times| median(times)).fold(f64::INFINITY, f64::min);
    if !contest::has_graphs(how.stream.device().is_cuda(), Role::Entry, seconds) {
        return Ok(());
    }
    let is_near = |which: &usize| raced[*which].as_ref().is_ok_and(|times| times.len() == how.samples);
    let near: Vec<usize> = (0..lanes.len()).filter(is_near).collect();
    let runs = contest::runs_a_graph(&data.parts, seconds);
    let count = (runs, contest::graphs(runs, seconds, how.samples));
    let times = contest::in_graphs(how.stream, data, lanes, near.clone(), count, random)?;
    // Times in graphs and alone are not to be compared: where one has none, all keep those that they have.
    if near.iter().all(|which| times[*which].is_ok()) {
        for (which, times) in times.into_iter().enumerate().filter(|(which, _)| near.contains(which)) {
            raced[which] = times;
        }
    }
    Ok(())
}

fn beta(p: &Problem) -> f64 {
    if p.reads_c { 1.0 } else { 0.0 }
}

fn ours<'s, E: Scalar<Real = T>, T: Real>(
    how: How<'s>,
    p: &Problem,
    (variant, parts): (&Variant, u32),
) -> lanky::Result<Ours<'s, E>> {
    Ours::new(how.stream, p, beta(p), Some(variant.entry), Some(parts))
}
