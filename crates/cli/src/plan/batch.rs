//! The plan of a batch: what would compute it, in which tiles, and what the paper would do.

use std::fmt::Write;

use model::launch::batched::MOST_PROBLEMS;
use model::occupancy::residency;
use model::paper::batched as paper;
use model::variants::batched::{BATCHED, Design};
use model::{BatchedChoice, BatchedProblem, BatchedRefusals, Dtype, Machine, choose_batched};
use serde::Serialize;

use crate::args::PlanArgs;
use crate::error::Fault;
use crate::say;

/// The object of `plan --batch --json`.
#[derive(Serialize)]
struct Object {
    operation: &'static str,
    dtype: &'static str,
    batch: u64,
    m: u64,
    n: u64,
    k: u64,
    gpu: String,
    variant: &'static str,
    entry: &'static str,
    /// Problems a tile, and stages.
    problems: u32,
    stages: u32,
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
    registers: u32,
    bound_seconds: f64,
    seconds: f64,
}

/// The plan for `count` packed column-major products, in words or as JSON.
///
/// # Errors
/// [`Fault::Input`] with the model's reason.
pub fn text(
    args: &PlanArgs,
    dtype: Dtype,
    [m, n, k]: [u64; 3],
    count: u64,
    machine: &Machine,
) -> Result<String, Fault> {
    let p = BatchedProblem { reads_c: args.beta != 0.0, ..BatchedProblem::column_major(dtype, (m, n, k), count) };
    let force = args.variant.as_deref();
    let choice = choose_batched(&p, machine, force).map_err(|refusal| {
        let of = force.map_or(String::new(), |name| format!("variant {name}: "));
        Fault::Input(format!("{of}{}", BatchedRefusals { refusal, problem: &p, machine, force }))
    })?;
    if args.json {
        return say::json(&Object {
            operation: "gemm_batched",
            dtype: dtype.name(),
            batch: count,
            m,
            n,
            k,
            gpu: machine.name.to_string(),
            variant: choice.variant.name,
            entry: choice.variant.entry,
            problems: choice.problems,
            stages: choice.stages,
            blocks: choice.blocks,
            threads: choice.threads,
            shared_bytes: choice.shared_bytes,
            registers: choice.variant.registers(machine),
            bound_seconds: choice.bound.seconds(),
            seconds: choice.estimate.seconds,
        });
    }
    Ok(words(&choice, machine))
}

fn words(choice: &BatchedChoice, machine: &Machine) -> String {
    let BatchedChoice { problem: ref p, variant, threads, shared_bytes, bound, ref estimate, .. } = *choice;
    let registers = variant.registers(machine);
    let held = residency(machine, threads, registers, shared_bytes);
    let (m, n, k, dtype) = (p.m, p.n, p.k, p.dtype);
    let mut text = format!("{} products   {dtype}   A {m} x {k}   B {k} x {n}   C {m} x {n}", p.count);
    let mut line = |name: &str, words: String| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {name:<9} {words}");
    };
    line("kernel", format!("{} ({})", variant.entry, variant.name));
    let (tile, launch) = tile_and_launch(choice);
    line("tile", tile);
    line("launch", launch);
    let (limit, registers_text) = (held.limit(), format!("{registers} registers a thread"));
    line("resident", format!("{} blocks an SM, limited by {limit} ({registers_text})", held.blocks()));
    line("in flight", format!("{} an SM at most", say::bytes(estimate.in_flight)));
    let by = if bound.memory_s >= bound.arithmetic_s { "memory" } else { "compute" };
    let moved = say::bytes(bound.bytes() as f64);
    line("bound", format!("{}, by {by}: {moved}, each matrix once", say::time(bound.seconds())));
    line("expected", format!("{}, of which", say::time(estimate.seconds)));
    for (name, seconds) in [
        ("memory", estimate.memory_s),
        ("shared memory", estimate.shared_s),
        ("multiply-adds", estimate.arithmetic_s),
        ("what a block does one thing after the other", estimate.turns_s),
    ] {
        if seconds == 0.0 {
            continue;
        }
        line("", format!("{name} alone would take {}", say::time(seconds)));
    }
    if p.count > MOST_PROBLEMS {
        line("but", format!("a launch takes {MOST_PROBLEMS} problems: it is several"));
    }
    line("MAGMA", in_the_paper(m.max(n).max(k)));
    let others = others(p, machine);
    line("out of", format!("{} entries:", others.len()));
    for other in others {
        let (time, entry) = (say::time(other.estimate.seconds), other.variant.entry);
        let _ = write!(text, "\n    {time:>10}  {entry}, {} problems a tile", other.problems);
    }
    let cpu = "a contiguous part of the batch a thread, by AVX-512 or AVX2 where there is that";
    let _ = write!(text, "\n  {:<9} {cpu}", "on a CPU");
    text
}

/// What a block or a warp holds at a time, and what is launched.
fn tile_and_launch(choice: &BatchedChoice) -> (String, String) {
    let BatchedChoice { variant, problems, stages, blocks, threads, shared_bytes, .. } = *choice;
    if !variant.design().is_by_warps() {
        let in_stages = match variant.design() {
            Design::Over => "C over A and B".to_owned(),
            _ => format!("{stages} stages"),
        };
        let of = format!("{problems} problems, {in_stages}");
        let tile = format!("{of}: {shared_bytes} bytes of shared memory a block of {threads} threads");
        let how = match variant.design() {
            Design::Bulk => "each with tiles that follow one another",
            _ => "which take tiles in turn",
        };
        return (tile, format!("{blocks} blocks, {how}"));
    }
    let transposed = if choice.swapped { ", of the transposed product" } else { "" };
    let of = if problems == 1 { "a problem".to_owned() } else { format!("{problems} problems") };
    let warps = if variant.parts == 1 { "a warp".to_owned() } else { format!("{} warps", variant.parts) };
    let place = match shared_bytes {
        0 => "registers".to_owned(),
        _ => format!("{shared_bytes} bytes of shared memory a block"),
    };
    let next = if stages <= 2 { "one".to_owned() } else { format!("{}", stages - 1) };
    let tile = format!("{of} {warps}, in {place}, and the next {next} on the way{transposed}");
    (tile, format!("{blocks} blocks of {threads} threads, whose warps take problems in turn"))
}

/// What every entry that takes the batch is expected to do, the fastest first.
fn others(p: &BatchedProblem, machine: &Machine) -> Vec<BatchedChoice> {
    let entries = BATCHED.iter().filter(|v| v.dtype == p.dtype).map(|v| v.entry);
    let mut others: Vec<BatchedChoice> =
        entries.filter_map(|entry| choose_batched(p, machine, Some(entry)).ok()).collect();
    others.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    others
}

/// What MAGMA dispatches to for the longest side.
fn in_the_paper(side: u64) -> String {
    let side = u32::try_from(side).unwrap_or(u32::MAX);
    match paper::design(side) {
        Some(paper::Design::Aggregated) => {
            format!("{side} x {side} threads a product, {} products a block", paper::products_per_block(side))
        }
        Some(paper::Design::Single) => format!("{side} x {side} threads a product, one product a block"),
        Some(paper::Design::Blocked) => {
            let (least, most) = paper::blocking(side);
            format!("one product a block in four parts: N^ x N^ threads, N^ from {least} to {most}")
        }
        None => "it has no kernel for this size".to_owned(),
    }
}
