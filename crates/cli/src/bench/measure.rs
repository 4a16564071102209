//! A run: ceilings first, then case by case: pools, checks, turns, rows.

use std::time::{Duration, Instant};

use lanky::{Ceilings, Scalar, Stream};
use model::Dtype;

use super::args::BenchArgs;
use super::case::Case;
use super::check::Oracle;
use super::contest::{self, Run};
use super::data::{self, Data, Parts, Pool};
use super::entrants::Contestant;
use super::job::Job;
use super::opponents::{self, Opponent};
use super::origin::Origin;
use super::outcome::Outcome;
use super::record::summary;
use super::result::GRAPH;
use super::suite::Cases;
use super::table;
use crate::error::Fault;
use crate::made_up::MadeUp;
use crate::say;

/// `--quick` begins no case after this, and none with more data than a GPU or a CPU makes and goes through in a moment.
const QUICK_SECONDS: f64 = 40.0;
const QUICK_BYTES: [u64; 2] = [8 << 30, 256 << 20];
/// A figure above the ceiling by more than this is an error of measurement.
pub const ABOVE: f64 = 1.02;

/// Whether the others' figures are held against the ceilings: those of an unoptimised build are its own.
pub const OTHERS_ARE_HELD: bool = !cfg!(debug_assertions);
const LATE: &str = "the time was up";
const TOO_LARGE: &str = "it is larger than any memory";

/// Times of every contestant.
pub type Times = Vec<lanky::Result<Vec<f64>>>;

/// All cases, f64 first. The device's context is current.
pub fn all(args: &BenchArgs, stream: &Stream, cases: Cases) -> Result<Outcome, Fault> {
    let device = stream.device();
    let began = Instant::now();
    let ceilings = device.ceilings(stream)?;
    let found = opponents::find(stream, &args.against);
    let outcome = Outcome::new(Origin::new(device), &ceilings, args.seed);
    found.notes.iter().for_each(|note| say::note(note));
    if !args.json {
        let names: Vec<&str> = found.opponents.iter().map(|opponent| opponent.name()).collect();
        say::print(&table::header(device, &outcome.ceilings, &names))?;
    }
    let limit = args.time_limit.unwrap_or(if args.quick { QUICK_SECONDS } else { f64::INFINITY });
    let deadline = Duration::try_from_secs_f64(limit).ok().and_then(|limit| began.checked_add(limit));
    let mut bench = Bench { args, stream, ceilings, opponents: &found.opponents, deadline, outcome };
    let (mut double, mut single) = (Vec::new(), Vec::new());
    (0..cases.repeated).for_each(|_| bench.outcome.not_run("it is there twice".into()));
    for case in cases.distinct {
        match (case.job(), case.not_yet()) {
            // Nobody is there to measure; or its factors are one matrix, which is not what is raced here, nor so bounded.
            (_, Some(why)) if bench.opponents.is_empty() || case.family == "gram" => bench.outcome.not_run(why),
            (None, _) => bench.outcome.not_run(TOO_LARGE.into()),
            (Some(job), _) if job.problem.dtype == Dtype::F64 => double.push((case, job)),
            (Some(job), _) => single.push((case, job)),
        }
    }
    bench.run_all::<f64>(double)?;
    bench.run_all::<f32>(single)?;
    Ok(bench.outcome)
}

/// What a run consists of.
pub struct Bench<'b> {
    pub args: &'b BenchArgs,
    pub stream: &'b Stream,
    ceilings: Ceilings,
    pub opponents: &'b [Box<dyn Opponent>],
    deadline: Option<Instant>,
    pub outcome: Outcome,
}

impl<'b> Bench<'b> {
    /// The source of an operand's elements: of another seed they have little to do with each other.
    fn source(&self, operand: u64) -> MadeUp {
        let mixed = (self.args.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4) & !0xffff_ffff;
        MadeUp { seed: (operand << 60) ^ mixed }
    }

    /// Cases of one type of reals: the pools are made once, as large as the largest of them asks.
    fn run_all<T: Scalar>(&mut self, cases: Vec<(Case, Job)>) -> Result<(), Fault> {
        let (fitting, longest) = self.fitting::<T>(cases)?;
        if fitting.is_empty() || self.is_late() {
            fitting.iter().for_each(|_| self.outcome.not_run(LATE.into()));
            return Ok(());
        }
        let a = Pool::<T>::new(self.stream, self.source(1), longest[0])?;
        let b = Pool::<T>::new(self.stream, self.source(2), longest[1])?;
        for (case, job, parts) in fitting {
            if self.is_late() {
                self.outcome.not_run(LATE.into());
                continue;
            }
            let mut data = Data::new(self.stream, job, case.beta, parts, [&a, &b], self.source(3))?;
            self.run_case(&case, &mut data)?;
        }
        Ok(())
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The cases whose data the device holds, and what the longest of each operand is; the others are counted.
    #[expect(clippy::type_complexity, reason = "it has a name where it is used")]
    fn fitting<T: Scalar>(&mut self, cases: Vec<(Case, Job)>) -> Result<(Vec<(Case, Job, Parts)>, [u64; 3]), Fault> {
        let device = self.stream.device();
        let (free, _) = device.memory()?;
        let quick = if self.args.quick { QUICK_BYTES[usize::from(!device.is_cuda())] } else { u64::MAX };
        let cache = data::cache_bytes(device);
        let (mut fitting, mut longest) = (Vec::new(), [0_u64; 3]);
        for (case, job) in cases {
            let parts = Parts::new(&job, cache, self.args.cached);
            let Some((parts, lengths)) = parts.and_then(|parts| Some((parts, parts.lengths()?))) else {
                self.outcome.not_run(TOO_LARGE.into());
                continue;
            };
            if data::bytes(lengths, T::DTYPE.bytes()) > data::f(quick) {
                self.outcome.not_run("it is larger than --quick takes".into());
                continue;
            }
            let with: [u64; 3] = std::array::from_fn(|operand| lengths[operand].max(longest[operand]));
            if data::fits(with, T::DTYPE.bytes(), free) {
                longest = with;
                fitting.push((case, job, parts));
            } else {
                self.outcome.not_run("it is larger than the device's memory".into());
            }
        }
        Ok((fitting, longest))
    }

    /// Checks everyone, times those that are right, and adds the rows.
    fn run_case<T: Scalar>(&mut self, case: &Case, data: &mut Data<'_, T>) -> Result<(), Fault> {
        let oracle = Oracle::new(data);
        let not_yet = case.not_yet();
        let mut contestants = if not_yet.is_none() { self.ours(case, data, &oracle)? } else { Vec::new() };
        let own = contestants.len();
        if own == 0 && not_yet.is_none() {
            return Ok(());
        }
        contestants.extend(self.others(case, data, &oracle)?);
        if let Some(why) = not_yet {
            if contestants.is_empty() {
                self.outcome.not_run(why);
                return Ok(());
            }
            self.outcome.without_ours(why);
        }
        let bound = data.job.bound(&self.ceilings.rates(T::DTYPE), case.beta != 0.0);
        let mut times = race(self.stream, data, &mut contestants, own, self.args.samples)?;
        let held = if OTHERS_ARE_HELD { contestants.len() } else { own };
        let best = |times: &Times| times.iter().take(held).flatten().flatten().copied().fold(f64::INFINITY, f64::min);
        if !data.parts.cached && bound.seconds() > best(&times) * ABOVE {
            // Once more, before it is called an error.
            times = race(self.stream, data, &mut contestants, own, self.args.samples)?;
        }
        self.add_all(case, data, &bound, &contestants, &times, "")?;
        // Ours decides, or the first of the others where there is none.
        let first = times.iter().flatten().find_map(|times| summary(times, self.args.seed));
        if first.is_some_and(|first| contest::is_launch_bound(self.stream.device(), first.median)) {
            let samples = self.args.samples;
            let in_graph = |contestant: &mut Contestant<'b>| {
                contest::in_graph(self.stream, data, contestant.run.as_mut(), samples)
            };
            let times: Times = contestants.iter_mut().map(in_graph).collect();
            self.add_all(case, data, &bound, &contestants, &times, GRAPH)?;
        }
        Ok(())
    }
}

fn race<T: Scalar>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    contestants: &mut [Contestant<'_>],
    own: usize,
    samples: usize,
) -> Result<Times, Fault> {
    let mut runs: Vec<&mut dyn Run> = Vec::with_capacity(contestants.len());
    for contestant in contestants {
        runs.push(contestant.run.as_mut());
    }
    contest::race(stream, data, &mut runs, own, samples)
}
