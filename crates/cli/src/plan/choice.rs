//! The model's choice: in words, and as JSON.

use std::fmt::Write;

use model::occupancy::{Residency, registers, residency};
use model::{Choice, Machine, Problem, Refusal};
use serde::Serialize;

use crate::error::Fault;
use crate::say;

/// Candidates that the text lists.
const LISTED: usize = 6;

/// The choice for a product and what it was chosen from, the fastest first.
struct Plan {
    choice: Choice,
    candidates: Vec<Choice>,
}

impl Plan {
    fn of(problem: &Problem, machine: &Machine, force: Option<&str>) -> Result<Self, Fault> {
        let refused = |refusal: Refusal| Fault::Input(refusal.to_string());
        let choice = model::choose(problem, machine, force).map_err(refused)?;
        let mut candidates: Vec<Choice> = model::candidates(problem, machine, force).map_err(refused)?.collect();
        candidates.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
        Ok(Self { choice, candidates })
    }
}

/// What an SM holds of the chosen launch.
fn resident(choice: &Choice, machine: &Machine) -> Residency {
    residency(machine, choice.threads, registers(choice.variant, machine), choice.shared_bytes)
}

/// Operations a byte of a product.
fn intensity(choice: &Choice) -> f64 {
    let bytes = choice.bound.read_bytes.saturating_add(choice.bound.write_bytes);
    choice.bound.flops / bytes as f64
}

/// Operations a byte from which a machine's multipliers bind.
fn knee(problem: &Problem, machine: &Machine) -> f64 {
    2.0 * model::roofline::peak_fma_rate(machine, problem.dtype) / machine.read_bytes_per_s
}

/// The plan in words.
pub fn text(problem: &Problem, machine: &Machine, force: Option<&str>) -> Result<String, Fault> {
    let Plan { choice, candidates } = Plan::of(problem, machine, force)?;
    let held = resident(&choice, machine);
    let mut text = choice.to_string();
    let mut line = |name: &str, words: String| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {name:<9} {words}");
    };
    line(
        "intensity",
        format!(
            "{:.2} operations a byte; the multipliers would bind from {:.2} on",
            intensity(&choice),
            knee(problem, machine)
        ),
    );
    line(
        "resident",
        format!(
            "{:.0}% of an SM's threads, limited by {} ({} registers a thread)",
            held.occupancy(machine) * 100.0,
            held.limit(),
            registers(choice.variant, machine)
        ),
    );
    line("on", words(machine));
    if machine.compute_capability < (8, 0) {
        let (major, minor) = machine.compute_capability;
        line(
            "but",
            format!("it is a prediction only: the kernels need compute capability 8.0, this GPU has {major}.{minor}"),
        );
    }
    line("out of", format!("{} entries:", candidates.len()));
    for candidate in candidates.iter().take(LISTED) {
        let time = say::time(candidate.estimate.seconds);
        let _ = write!(text, "\n    {time:>10}  {} in {}", candidate.variant.entry, parts(candidate.splits));
    }
    if let Some(more) = candidates.get(LISTED..).filter(|more| !more.is_empty()) {
        let _ = write!(text, "\n    and {} slower ones", more.len());
    }
    Ok(text)
}

fn parts(splits: u32) -> String {
    if splits == 1 { "one part of k".into() } else { format!("{splits} parts of k") }
}

fn words(machine: &Machine) -> String {
    format!(
        "{}: {} SMs, {} read, {} written, {:.1} TFLOP/s in f64",
        machine.name,
        machine.sms,
        say::rate(machine.read_bytes_per_s / 1e9),
        say::rate(machine.write_bytes_per_s / 1e9),
        2.0 * machine.fma_f64_per_s / 1e12
    )
}

/// The object of `plan --json`.
#[derive(Serialize)]
pub struct Object {
    operation: &'static str,
    dtype: &'static str,
    m: u64,
    n: u64,
    k: u64,
    /// What the GPU calls itself.
    gpu: String,
    /// Whether Cᵀ = Bᵀ Aᵀ is computed.
    swapped: bool,
    /// `memory` or `compute`.
    bound: &'static str,
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
    utilisation_memory: f64,
    predicted_seconds: f64,
    /// `model` or `caller`.
    chooser: &'static str,
    /// All that were weighed, the fastest first.
    candidates: Vec<Candidate>,
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
    pub fn of(problem: &Problem, machine: &Machine, force: Option<&str>) -> Result<Self, Fault> {
        let Plan { choice, candidates } = Plan::of(problem, machine, force)?;
        let held = resident(&choice, machine);
        let variant = choice.variant;
        Ok(Self {
            operation: choice.operation.name(),
            dtype: problem.dtype.name(),
            m: problem.m,
            n: problem.n,
            k: problem.k,
            gpu: machine.name.to_string(),
            swapped: choice.swapped,
            bound: if choice.bound.memory_s >= choice.bound.arithmetic_s { "memory" } else { "compute" },
            bound_seconds: choice.bound.seconds(),
            intensity: intensity(&choice),
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
            utilisation_memory: choice.estimate.memory_utilisation,
            predicted_seconds: choice.estimate.seconds,
            chooser: match choice.chooser {
                model::Chooser::Model => "model",
                model::Chooser::Caller => "caller",
            },
            candidates: candidates.iter().map(Candidate::of).collect(),
        })
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
