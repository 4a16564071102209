//! The model's choice: in words, as JSON, and for a drawing.

use std::fmt::Write;

use model::launch::tiling;
use model::occupancy::{Residency, registers, residency};
use model::roofline::{Estimator, Terms, bound, peak_rate};
use model::{Choice, Machine, Problem, Refusal, Refusals};
use serde::Serialize;

use super::head::Head;
use super::tuned::{Tuned, TunedObject};

use crate::error::Fault;
use crate::say;

/// Candidates that the text lists beside the other entries of the chosen variant.
const LISTED: usize = 6;

/// The choice for a product and what it was chosen from, the fastest first.
pub struct Plan {
    /// The GPU as the product sees it.
    pub machine: Machine,
    /// Whether that is with its operands in the second-level cache.
    pub cached: bool,
    pub choice: Choice,
    pub candidates: Vec<Choice>,
    /// Why the choice is not the model's, where it is not.
    pub tuned: Option<Tuned>,
}

impl Plan {
    /// # Errors
    /// [`Fault::Input`] with the model's reasons.
    pub fn of(problem: &Problem, machine: &Machine, force: Option<&str>) -> Result<Self, Fault> {
        let refused = |refusal: Refusal| {
            let reasons = Refusals { refusal, problem, machine, force };
            let of = force.map_or(String::new(), |name| format!("variant {name}: "));
            Fault::Input(format!("{of}{reasons}"))
        };
        let choice = model::choose(problem, machine, force).map_err(refused)?;
        let mut candidates: Vec<Choice> = model::candidates(problem, machine, force).map_err(refused)?.collect();
        candidates.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
        Ok(Self { machine: *machine, cached: false, choice, candidates, tuned: None })
    }

    /// The plan for operands that are in the second-level cache; slots are taken to fit beside them.
    ///
    /// # Errors
    /// As [`Plan::of`], and where they are not, or the cache's rate is not known.
    pub fn cached(problem: &Problem, machine: &Machine, force: Option<&str>) -> Result<Self, Fault> {
        let warm = machine.warm(bound(problem, machine).bytes());
        let warm = warm.map_err(|cold| Fault::Input(format!("--cached, {}: {cold}", machine.name)))?;
        Ok(Self { cached: true, ..Self::of(problem, &warm, force)? })
    }
}

/// What an SM holds of the chosen launch.
fn resident(choice: &Choice, machine: &Machine) -> Residency {
    residency(machine, choice.threads, registers(choice.variant, machine), choice.shared_bytes)
}

/// What the chosen entry's time consists of.
pub fn terms(choice: &Choice, machine: &Machine) -> Terms {
    let Choice { variant, problem, splits, .. } = choice;
    Estimator::new(variant, &tiling(variant, problem.m, problem.n), problem, machine).terms(*splits)
}

/// Operations a byte of a product.
pub fn intensity(choice: &Choice) -> f64 {
    choice.bound.flops / choice.bound.bytes() as f64
}

/// Operations a byte from which a machine's multipliers bind.
fn knee(problem: &Problem, machine: &Machine) -> f64 {
    2.0 * peak_rate(machine, problem) / machine.read_bytes_per_s
}

/// The plan in words.
pub fn text(plan: &Plan, problem: &Problem, unusual: &str) -> String {
    let Plan { machine, cached, choice, candidates, tuned } = plan;
    let held = resident(choice, machine);
    let mut text = choice.to_string();
    let mut line = |name: &str, words: String| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {name:<9} {words}");
    };
    if !unusual.is_empty() {
        line("lies", unusual.into());
    }
    if let Some(tuned) = tuned {
        line("tuned", tuned.by());
        line("model", tuned.alone());
    }
    line(
        "intensity",
        format!(
            "{:.2} operations a byte; the multipliers would bind from {:.2} on",
            intensity(choice),
            knee(problem, machine)
        ),
    );
    let terms = terms(choice, machine);
    let (limit, alone_s) = terms.largest();
    line("limit", format!("{limit}, which alone would take {}", say::time(alone_s)));
    line("terms", alone(&terms));
    line(
        "resident",
        format!(
            "{:.0}% of an SM's threads, limited by {} ({} registers a thread)",
            held.occupancy(machine) * 100.0,
            held.limit(),
            registers(choice.variant, machine)
        ),
    );
    line("on", words(problem, machine));
    if !machine.assumed.is_empty() {
        line("assumed", format!("of a GPU that is like it: {}", machine.assumed));
    }
    if *cached {
        line("cached", stays(choice, machine));
    }
    let (oldest, (major, minor)) = (Machine::COMMON.compute_capability, machine.compute_capability);
    if (major, minor) < oldest {
        let needs = format!("the kernels need compute capability {}.{}", oldest.0, oldest.1);
        line("but", format!("it is a prediction only: {needs}, this GPU has {major}.{minor}"));
    }
    line("out of", format!("{} entries:", candidates.len()));
    text + &listed(choice, candidates)
}

/// The fastest candidates, and all of the chosen variant: its siblings differ in their tiles alone.
fn listed(choice: &Choice, candidates: &[Choice]) -> String {
    let is_listed = |(at, candidate): &(usize, &Choice)| *at < LISTED || candidate.variant.name == choice.variant.name;
    let (mut lines, mut count) = (String::new(), 0);
    for (_, candidate) in candidates.iter().enumerate().filter(is_listed) {
        let time = say::time(candidate.estimate.seconds);
        // Writing to a string does not fail.
        let _ = write!(lines, "\n    {time:>10}  {} in {}", candidate.variant.entry, parts(candidate.splits));
        count += 1;
    }
    if count < candidates.len() {
        let _ = write!(lines, "\n    and {} others", candidates.len() - count);
    }
    lines
}

/// What the words above mean where the operands are in the cache.
fn stays(choice: &Choice, machine: &Machine) -> String {
    format!(
        "A, B and C, {}, stay in the second-level cache, which keeps {}: memory and bandwidth are its, writes \
         taken to be as fast as reads; the library plans for operands in memory",
        say::bytes(choice.bound.bytes() as f64),
        say::bytes(machine.l2_stays_bytes() as f64)
    )
}

fn alone(terms: &Terms) -> String {
    let Terms { bandwidth_s, latency_s, delivery_s, arithmetic_s, issue_s, overhead_s } = *terms;
    format!(
        "bandwidth {}, latency {}, B to the lanes {}, multiply-adds {}, instructions {}; C, slots, launches and ends of \
         blocks {} more",
        say::time(bandwidth_s),
        say::time(latency_s),
        say::time(delivery_s),
        say::time(arithmetic_s),
        say::time(issue_s),
        say::time(overhead_s)
    )
}

fn parts(splits: u32) -> String {
    if splits == 1 { "one part of k".into() } else { format!("{splits} parts of k") }
}

fn words(problem: &Problem, machine: &Machine) -> String {
    format!(
        "{}: {} SMs, {} read, {} written, {:.1} TFLOP/s in {}",
        machine.name,
        machine.sms,
        say::rate(machine.read_bytes_per_s / 1e9),
        say::rate(machine.write_bytes_per_s / 1e9),
        2.0 * peak_rate(machine, problem) / 1e12,
        problem.dtype
    )
}

/// The object of `plan --json`.
#[derive(Serialize)]
pub struct Object {
    #[serde(flatten)]
    head: Head,
    /// What is another GPU's, since nobody has measured this one's or its driver does not say.
    assumed: Vec<&'static str>,
    /// Whether A, B and C are taken to be in the second-level cache.
    cached: bool,
    /// How the operands lie, where not by columns, packed, as they are: `rrr tn lda 64`.
    lies: String,
    /// What no kernel can beat.
    bound_seconds: f64,
    /// Operations a byte.
    intensity: f64,
    variant: &'static str,
    entry: &'static str,
    t1: u32,
    t2: u32,
    t3: u32,
    grid: [u32; 3],
    shared_bytes: u32,
    splits: u32,
    scratch_elements: u64,
    registers: u32,
    resident_blocks: u32,
    /// Share of an SM's threads.
    occupancy: f64,
    /// What there would have to be more of for more blocks.
    limited_by: String,
    /// What each resource alone would take.
    terms: TermsObject,
    utilisation_memory: f64,
    predicted_seconds: f64,
    /// `model`, `caller` or `tuned`.
    chooser: &'static str,
    /// The measurements that the choice follows.
    tuned: Option<TunedObject>,
    /// All that were weighed, the fastest first.
    candidates: Vec<Candidate>,
}

#[derive(Serialize)]
struct TermsObject {
    /// The one that would take longest.
    limit: &'static str,
    bandwidth_seconds: f64,
    latency_seconds: f64,
    delivery_seconds: f64,
    arithmetic_seconds: f64,
    issue_seconds: f64,
    overhead_seconds: f64,
}

impl TermsObject {
    fn of(terms: &Terms) -> Self {
        Self {
            limit: terms.largest().0,
            bandwidth_seconds: terms.bandwidth_s,
            latency_seconds: terms.latency_s,
            delivery_seconds: terms.delivery_s,
            arithmetic_seconds: terms.arithmetic_s,
            issue_seconds: terms.issue_s,
            overhead_seconds: terms.overhead_s,
        }
    }
}

#[derive(Serialize)]
struct Candidate {
    variant: &'static str,
    entry: &'static str,
    splits: u32,
    predicted_seconds: f64,
}

impl Object {
    /// The plan as an object.
    pub fn of(plan: &Plan, problem: &Problem, unusual: &str) -> Self {
        let Plan { machine, cached, choice, candidates, tuned } = plan;
        let held = resident(choice, machine);
        let variant = choice.variant;
        let bound = if choice.bound.memory_s >= choice.bound.arithmetic_s { "memory" } else { "compute" };
        Self {
            head: Head::of(problem, machine, choice.operation, choice.swapped, bound),
            assumed: machine.assumed.names().collect(),
            cached: *cached,
            lies: unusual.into(),
            bound_seconds: choice.bound.seconds(),
            intensity: intensity(choice),
            variant: variant.name,
            entry: variant.entry,
            t1: variant.threads,
            t2: variant.t2,
            t3: variant.t3,
            grid: choice.grid,
            shared_bytes: choice.shared_bytes,
            splits: choice.splits,
            scratch_elements: choice.slots_len,
            registers: registers(variant, machine),
            resident_blocks: held.blocks(),
            occupancy: held.occupancy(machine),
            limited_by: held.limit().to_string(),
            terms: TermsObject::of(&terms(choice, machine)),
            utilisation_memory: choice.estimate.memory_utilisation,
            predicted_seconds: choice.estimate.seconds,
            tuned: tuned.as_ref().map(Tuned::object),
            chooser: match choice.chooser {
                model::Chooser::Model => "model",
                model::Chooser::Caller => "caller",
                model::Chooser::Common => "common",
                model::Chooser::Tuned { .. } => "tuned",
            },
            candidates: candidates.iter().map(Candidate::of).collect(),
        }
    }
}

impl Candidate {
    fn of(choice: &Choice) -> Self {
        Self {
            variant: choice.variant.name,
            entry: choice.variant.entry,
            splits: choice.splits,
            predicted_seconds: choice.estimate.seconds,
        }
    }
}
