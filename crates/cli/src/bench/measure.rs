//! A run: ceilings first, then case by case: pools, checks, turns, rows.

use std::time::{Duration, Instant};

use lanky::{Ceilings, Stream};
use model::Dtype;
use model::roofline::Bound;

use super::args::BenchArgs;
use super::case::Case;
use super::check::Oracle;
use super::contest::{self, Lane, Times};
use super::data::{self, Data, Parts, Pool};
use super::entrants::{Contestant, Served};
use super::job::Job;
use super::journal::Journal;
use super::opponents::{self, Opponent};
use super::origin::Origin;
use super::outcome::Outcome;
use super::random::Random;
use super::record::summary;
use super::result::GRAPH;
use super::suite::Cases;
use super::{fault, pending, table};
use crate::error::Fault;
use crate::made_up::MadeUp;
use crate::real::Real;
use crate::say;

/// `--quick` begins no case after this, and none with more data than a GPU or a CPU makes and goes through in a moment.
const QUICK_SECONDS: f64 = 40.0;
const QUICK_BYTES: [u64; 2] = [8 << 30, 256 << 20];
/// A figure above the ceiling by more than this is an error of measurement.
pub const TOO_FAST_BY: f64 = 1.02;

/// Whether figures are held against the ceilings: those of an unoptimised build are its own, and not the machine's.
const HELD: bool = !cfg!(debug_assertions);
const LATE: &str = "the time was up";
const TOO_LARGE: &str = "it is larger than any memory";

/// All cases, f64 first, each row written as soon as it is there. The device's context is current.
///
/// # Errors
/// What leaves nothing to measure with or to write to; what befalls one case is put on record.
pub fn all(args: &BenchArgs, stream: &Stream, cases: Cases, journal: Journal) -> Result<Outcome, Fault> {
    let device = stream.device();
    let began = Instant::now();
    let measured = device.measured_ceilings(stream)?;
    let found = opponents::find(stream, &args.against);
    let outcome = Outcome::new(Origin::new(device), &measured, args.seed);
    found.notes.iter().for_each(|note| say::note(note));
    if !args.json {
        let names: Vec<&str> = found.opponents.iter().map(|opponent| opponent.name()).collect();
        say::print(&table::header(device, &outcome.ceilings, &names))?;
    }
    let deadline = began.checked_add(limit(args.time_limit, args.quick));
    let (ceilings, opponents) = (measured.0, found.opponents.as_slice());
    let mut bench = Bench { args, stream, ceilings, opponents, deadline, outcome, journal };
    bench.journal.ceilings(&bench.outcome.ceiling_rows)?;
    let (mut double, mut single) = (Vec::new(), Vec::new());
    (0..cases.repeated).for_each(|_| bench.outcome.not_run("it is there twice".into()));
    for case in cases.distinct {
        match (case.job(), case.not_yet()) {
            // Nobody is there to measure.
            (_, Some(why)) if bench.opponents.is_empty() => bench.outcome.not_run(why),
            (None, _) => bench.outcome.not_run(TOO_LARGE.into()),
            (Some(job), _) if job.problem.dtype == Dtype::F64 => double.push((case, job)),
            (Some(job), _) => single.push((case, job.split(args.split_f32))),
        }
    }
    pending::expect(double.iter().chain(&single).map(|(case, _)| case.name()));
    bench.run_all::<f64>(double)?;
    bench.run_all::<f32>(single)?;
    bench.journal.finish()?;
    Ok(bench.outcome)
}

/// After so long no case begins.
fn limit(seconds: Option<f64>, quick: bool) -> Duration {
    let usual = if quick { QUICK_SECONDS } else { f64::INFINITY };
    Duration::try_from_secs_f64(seconds.unwrap_or(usual)).unwrap_or(Duration::MAX)
}

/// What a run consists of.
pub struct Bench<'b> {
    pub args: &'b BenchArgs,
    pub stream: &'b Stream,
    ceilings: Ceilings,
    pub opponents: &'b [Box<dyn Opponent>],
    deadline: Option<Instant>,
    pub outcome: Outcome,
    pub journal: Journal,
}

/// What ends a case: itself, or the whole run, which cannot write its results.
enum Stop {
    Case(Fault),
    Run(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Case(fault)
    }
}

impl From<lanky::Error> for Stop {
    fn from(error: lanky::Error) -> Self {
        Self::Case(error.into())
    }
}

impl<'b> Bench<'b> {
    fn source(&self, operand: u64) -> MadeUp {
        data::source(self.args.seed, operand)
    }

    /// Cases of one type of reals: the pools are made once, as large as the largest of them asks.
    fn run_all<T: Real>(&mut self, cases: Vec<(Case, Job)>) -> Result<(), Fault> {
        let (fitting, longest) = self.fitting::<T>(cases)?;
        if fitting.is_empty() || self.is_late() {
            fitting.iter().for_each(|(case, ..)| self.leave_out(case, LATE));
            return Ok(());
        }
        let pool = |operand: u64, len: u64| Pool::<T>::new(self.stream, self.source(operand), len.max(1));
        let (a, b) = match (pool(1, longest[0]), pool(2, longest[1])) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(fault), _) | (_, Err(fault)) => {
                fitting.iter().for_each(|(case, ..)| self.fail(case, &fault));
                return Ok(());
            }
        };
        for (case, job, parts) in fitting {
            if self.is_late() {
                self.leave_out(&case, LATE);
                continue;
            }
            match self.run_case(&case, job, parts, [&a, &b]) {
                Ok(()) => pending::done(&case.name()),
                Err(Stop::Case(fault)) => self.fail(&case, &fault),
                Err(Stop::Run(fault)) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Counts a case that is not begun.
    fn leave_out(&mut self, case: &Case, why: &str) {
        self.outcome.not_run(why.into());
        pending::done(&case.name());
    }

    /// Puts a case on record that could not be measured to its end.
    fn fail(&mut self, case: &Case, fault: &Fault) {
        self.outcome.failed(&case.name(), fault);
        pending::done(&case.name());
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The cases whose data the device holds, and what the longest of each operand is; the others are counted.
    #[expect(clippy::type_complexity, reason = "it has a name where it is used")]
    fn fitting<T: Real>(&mut self, cases: Vec<(Case, Job)>) -> Result<(Vec<(Case, Job, Parts)>, [u64; 3]), Fault> {
        let device = self.stream.device();
        let (free, _) = device.memory()?;
        let quick = if self.args.quick { QUICK_BYTES[usize::from(!device.is_cuda())] } else { u64::MAX };
        let cache = data::cache_bytes(device);
        let (mut fitting, mut longest) = (Vec::new(), [0_u64; 3]);
        for (case, job) in cases {
            let parts = Parts::new(&job, cache, self.args.cached);
            let Some((parts, lengths)) = parts.and_then(|parts| Some((parts, parts.lengths()?))) else {
                self.leave_out(&case, TOO_LARGE);
                continue;
            };
            if data::bytes(lengths, T::DTYPE.bytes()) > data::f(quick) {
                self.leave_out(&case, "it is larger than --quick takes");
                continue;
            }
            let with: [u64; 3] = std::array::from_fn(|operand| lengths[operand].max(longest[operand]));
            if data::fits(with, T::DTYPE.bytes(), free) {
                longest = with;
                fitting.push((case, job, parts));
            } else {
                self.leave_out(&case, "it is larger than the device's memory");
            }
        }
        Ok((fitting, longest))
    }

    /// Checks everyone, times those that are right, and adds the rows.
    fn run_case<T: Real>(&mut self, case: &Case, job: Job, parts: Parts, pools: [&Pool<T>; 2]) -> Result<(), Stop> {
        let data = &mut Data::new(self.stream, job, case.beta, parts, pools, self.source(3))?;
        let oracle = Oracle::new(data);
        let served = case.not_yet().map_or_else(|| self.ours(case, data, &oracle), |why| Ok(Served::Not(why)))?;
        let (mut contestants, not_yet) = match served {
            // All of ours are wrong or failed, which is on record.
            Served::By(ours) if ours.is_empty() => return Ok(()),
            Served::By(ours) => (ours, None),
            Served::Not(why) => (Vec::new(), Some(why)),
        };
        contestants.extend(self.others(case, data, &oracle)?);
        match not_yet {
            Some(why) if contestants.is_empty() => {
                self.outcome.not_run(why);
                return Ok(());
            }
            Some(why) => self.outcome.without_ours(why),
            None => {}
        }
        let bound = data.job.bound(&self.ceilings.rates(T::DTYPE), case.beta != 0.0);
        let mut times = self.race(case, data, &mut contestants, 0)?;
        let best = |times: &Times| times.iter().flatten().flatten().copied().fold(f64::INFINITY, f64::min);
        if self.is_held(data.parts.cached) && bound.seconds() > best(&times) * TOO_FAST_BY {
            // Once more, before it is called an error.
            times = self.race(case, data, &mut contestants, 1)?;
        }
        self.add_all(case, data, &bound, &contestants, &times, "").map_err(Stop::Run)?;
        // Ours decides, or the first of the others where there is none.
        if let Some(first) = times.iter().flatten().find_map(|times| summary(times, self.args.seed)) {
            self.time_in_graphs(case, data, &bound, &mut contestants, &times, first.median)?;
        }
        Ok(())
    }

    /// Times those that went through the race in graphs too, if a run takes so few seconds: the others failed, or are far behind.
    fn time_in_graphs<T: Real>(
        &mut self,
        case: &Case,
        data: &mut Data<'_, T>,
        bound: &Bound,
        contestants: &mut [Contestant<'b>],
        raced: &Times,
        seconds: f64,
    ) -> Result<(), Stop> {
        let is_gpu = self.stream.device().is_cuda();
        let ran = |which: &usize| {
            contest::has_graphs(is_gpu, contestants[*which].role, seconds)
                && raced[*which].as_ref().is_ok_and(|times| times.len() == self.args.samples)
        };
        let running: Vec<usize> = (0..contestants.len()).filter(ran).collect();
        if running.is_empty() {
            return Ok(());
        }
        let runs = contest::runs_a_graph(&data.parts, seconds);
        let count = (runs, contest::graphs(runs, seconds, self.args.samples));
        let times =
            contest::in_graphs(self.stream, data, &mut lanes(contestants), running, count, self.order(case, 2))?;
        self.add_all(case, data, bound, contestants, &times, GRAPH).map_err(Stop::Run)
    }

    /// Whether figures of data that is, or is not, in a cache may not be above the ceiling.
    pub fn is_held(&self, cached: bool) -> bool {
        !cached && (HELD || fault::planted(fault::TOO_FAST))
    }

    fn race<T: Real>(
        &self,
        case: &Case,
        data: &mut Data<'_, T>,
        contestants: &mut [Contestant<'b>],
        attempt: u64,
    ) -> Result<Times, Fault> {
        contest::race(self.stream, data, &mut lanes(contestants), self.args.samples, self.order(case, attempt))
    }

    /// What the orders of a race are drawn from: the seed, and what is raced.
    fn order(&self, case: &Case, attempt: u64) -> Random {
        Random::of(self.args.seed.wrapping_add(attempt << 32), &case.name())
    }
}

fn lanes<'l>(contestants: &'l mut [Contestant<'_>]) -> Vec<Lane<'l>> {
    let mut lanes: Vec<Lane<'l>> = Vec::with_capacity(contestants.len());
    for contestant in contestants {
        lanes.push(Lane { run: contestant.run.as_mut(), role: contestant.role });
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_begins_nothing_after_forty_seconds() {
        assert_eq!(limit(None, true), Duration::from_secs(40));
        assert_eq!(limit(Some(2.5), true), Duration::from_millis(2500));
        assert_eq!((limit(None, false), limit(Some(1e300), false)), (Duration::MAX, Duration::MAX));
        assert!(Instant::now().checked_add(Duration::MAX).is_none(), "which no moment is after");
    }
}
