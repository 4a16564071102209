//! TSM2X's own reasoning, step by step: in words, and as JSON.

use model::paper::tsm2x::{Algorithm, Bound, Optimum, Origin, Reasoning, Row, Tsm2l, is_tsm2l, reason, tsm2l};
use model::{Machine, Operation, Problem, classify};
use serde::Serialize;

use super::head::Head;
use crate::say;

/// The paper's reasoning about a product, its skinny side being B's.
fn reasoning(problem: &Problem, machine: &Machine) -> (Problem, Reasoning) {
    let laid = if problem.n > problem.m { problem.transposed() } else { *problem };
    (laid, reason(machine, laid.dtype, [laid.m, laid.n, laid.k]))
}

/// What TSM2L adds to it where k is small too.
fn of_tall(laid: &Problem, r: &Reasoning) -> Option<Tsm2l> {
    let Problem { dtype, m, n, k, .. } = *laid;
    is_tsm2l(m, n, k).then(|| tsm2l(r, dtype, [m, n, k]))
}

/// The steps in words, one a line.
pub fn text(problem: &Problem, machine: &Machine) -> String {
    let (laid, r) = reasoning(problem, machine);
    let mut lines = vec![headline(&laid, machine, laid != *problem)];
    let mut line = |name: &str, words: String| lines.push(format!("  {name:<13} {words}"));
    line("bound", bound(&laid, &r));
    line("parameters", parameters(&laid, &r, machine));
    line("registers", registers(&r));
    line("shared", shared(&r));
    line("occupancy", occupancy(&r));
    line("loads", loads(&r));
    line("multiply-adds", multiply_adds(&r));
    line("a step", step(&r));
    line("traffic", traffic(&laid, &r));
    line("algorithm 5", algorithm5(&r));
    if let Some(tall) = of_tall(&laid, &r) {
        line("latency", latency(&laid, &r, &tall));
        line("tcf", rows_a_thread(&laid, &tall));
        line("algorithm 6", tiled(&tall));
        line("algorithm 7", interleaved(&tall));
        line("launched", launched(&laid, &tall));
    }
    let chosen = r.parameters;
    line("chosen", format!("t1 = {}, t2 = {}, t3 = {}: {}", chosen.t1, chosen.t2, chosen.t3, origin(&r)));
    lines.join("\n")
}

fn headline(laid: &Problem, machine: &Machine, transposed: bool) -> String {
    let how = if transposed { ", computed transposed" } else { "" };
    let Problem { dtype, m, n, k, .. } = laid;
    let operation = classify(*m, *n, *k);
    let name = match operation {
        Operation::Tsmm => "TSM2L",
        Operation::Tsm2r => "TSM2R",
        other => other.name(),
    };
    let of = match operation {
        Operation::Tsmm | Operation::Tsm2r => "the reasoning of TSM2X",
        _ => "the reasoning of TSM2X, which is for tall and skinny products, as if this were TSM2R",
    };
    format!("{name}, m = {m}, n = {n}, k = {k}, {dtype}{how}, on {}: {of}", machine.name)
}

fn latency(laid: &Problem, r: &Reasoning, tall: &Tsm2l) -> String {
    format!(
        "k = {} leaves a thread {} of up to t3 = {} elements of A a row: too few to hide the wait of {:.0} ns for the first, so \
         that the occupancy above is not reached",
        laid.k,
        if tall.fetches == 1 { "one fetch".into() } else { format!("{} fetches", tall.fetches) },
        r.parameters.t3,
        r.constants.memory_latency_s * 1e9
    )
}

fn rows_a_thread(laid: &Problem, tall: &Tsm2l) -> String {
    let Tsm2l { tcf, threads, blocks, .. } = tall;
    format!("{tcf}: {threads} threads in {blocks} blocks for {} rows (Section 4.3, timed on a V100)", laid.m)
}

fn tiled(tall: &Tsm2l) -> String {
    format!(
        "a thread's rows one after the other: {} elements of B read, {} registers",
        tall.tiled_b_traffic, tall.tiled_registers
    )
}

fn interleaved(tall: &Tsm2l) -> String {
    format!(
        "all of a thread's rows for each tile of B, the next C on its way: {} elements of B read, C loaded and stored {}, {} \
         registers",
        tall.interleaved_b_traffic,
        count(tall.interleaved_c_passes),
        tall.interleaved_registers
    )
}

fn launched(laid: &Problem, tall: &Tsm2l) -> String {
    format!("algorithm {} in {}, by the authors' code", tall.algorithm.number(), laid.dtype)
}

fn bound(laid: &Problem, r: &Reasoning) -> String {
    let (relation, binds) = match r.bound {
        Bound::Memory => ("<=", "memory bound"),
        Bound::Compute => (">", "compute bound"),
    };
    let gpu = &r.constants;
    // Constants::of has this.
    let fewer = if laid.dtype.is_complex() {
        format!(
            "; P is a quarter of the {:.0} GFLOP/s in {}, a complex product being four multiply-adds",
            gpu.flops_per_s / 1e9 * f64::from(laid.dtype.fmas()),
            laid.dtype.real()
        )
    } else {
        String::new()
    };
    format!(
        "{} columns {relation} threshold t2* = e P / (2 BW) = {} x {:.0} / (2 x {:.0}) = {:.1}: {binds} (Eqs. 13, 14){fewer}",
        laid.n,
        gpu.elem_bytes,
        gpu.flops_per_s / 1e9,
        gpu.bytes_per_s / 1e9,
        r.threshold
    )
}

fn parameters(laid: &Problem, r: &Reasoning, machine: &Machine) -> String {
    let known = match r.origin {
        Origin::Algorithm5 if laid.dtype.is_complex() => {
            let real = laid.dtype.real();
            let of = if Row::of(machine, real, laid.m, laid.n).is_some() { "" } else { " of a V100" };
            format!("Table 3 has no complex types: C0 = {}, that in {real}{of}", r.constants.fixed_registers)
        }
        Origin::Table3 | Origin::BeyondTable3 => format!("Table 3 has this GPU: C0 = {}", r.constants.fixed_registers),
        Origin::Algorithm5 => {
            format!("Table 3 does not have {}: C0 = {}, a V100's", machine.name, r.constants.fixed_registers)
        }
    };
    format!("{known}, the registers that are there whatever t2 and t3, in {}", laid.dtype)
}

fn registers(r: &Reasoning) -> String {
    let (t2, t3) = (r.parameters.t2, r.parameters.t3);
    let words = r.constants.elem_bytes / 4.0;
    let too_many = if r.registers > 255 { ", more than the 255 that a thread can have" } else { "" };
    format!(
        "{} + {words} (3 x {t2} + 2 x {t3}) = {} a thread{too_many} (Eq. 1)",
        r.constants.fixed_registers, r.registers
    )
}

fn shared(r: &Reasoning) -> String {
    let (t1, t2) = (r.parameters.t1, r.parameters.t2);
    format!("{t1} x {t2} x {} = {} bytes a block (Eq. 2)", r.constants.elem_bytes, r.shared_bytes)
}

fn occupancy(r: &Reasoning) -> String {
    let gpu = &r.constants;
    let shared = f64::from(r.parameters.t2) * gpu.elem_bytes;
    format!(
        "min({}, {} / {}, {} / {shared}) = {} threads an SM (Eq. 3)",
        gpu.threads_per_sm, gpu.registers_per_sm, r.registers, gpu.shared_per_sm, r.occupancy
    )
}

fn loads(r: &Reasoning) -> String {
    format!(
        "{:.0} elements of A in flight an SM, of {:.0} that Little's law wants in {:.0} ns: {:.0}% of the bandwidth (Eqs. 4 to 6)",
        r.memory_concurrency,
        r.memory_need,
        r.constants.memory_latency_s * 1e9,
        r.memory_utilisation * 100.0
    )
}

fn multiply_adds(r: &Reasoning) -> String {
    format!(
        "{:.0} in flight an SM, of {:.0} wanted: {:.0}% of the multipliers (Eqs. 7 to 9)",
        r.compute_concurrency,
        r.compute_need,
        r.compute_utilisation * 100.0
    )
}

fn step(r: &Reasoning) -> String {
    format!(
        "{} of arithmetic, {} of loads: a ratio of {:.2} (Eqs. 10 to 12)",
        say::time(r.compute_step_s),
        say::time(r.memory_step_s),
        r.compute_step_s / r.memory_step_s
    )
}

fn traffic(laid: &Problem, r: &Reasoning) -> String {
    let times = |elements: u64, len: u64| elements / len.max(1);
    let (a, b) = (times(r.a_traffic, laid.m.saturating_mul(laid.k)), times(r.b_traffic, laid.n.saturating_mul(laid.k)));
    format!("A is read {}, B {} (Eq. 15)", count(a), count(b))
}

fn count(times: u64) -> String {
    if times == 1 { "once".into() } else { format!("{times} times") }
}

fn algorithm5(r: &Reasoning) -> String {
    let words = |found: &Optimum| format!("t2 = {}, t3 = {}, {}", found.t2, found.t3, say::time(found.seconds));
    format!("scan: {}; gradient descent: {}", words(&r.scan), words(&r.descent))
}

fn origin(r: &Reasoning) -> &'static str {
    match r.origin {
        Origin::Table3 => "what the paper used (Table 3)",
        Origin::BeyondTable3 if r.parameters.t2 > 16 => {
            "Table 3's t1 and t3, and t2 of the authors' widest kernel; the paper has n up to 16"
        }
        Origin::BeyondTable3 => "Table 3's t1, t2 and t3; the paper has n up to 16",
        Origin::Algorithm5 => {
            "Algorithm 5 by scan; t1 is not modelled but timed, and 128 was best on most GPUs of the paper"
        }
    }
}

/// The object of `plan --paper --json`.
#[derive(Serialize)]
pub struct Object {
    /// Bound by Eq. (14).
    #[serde(flatten)]
    head: Head,
    /// Eq. (13) with both utilisations 1, columns.
    t2_threshold: f64,
    t1: u32,
    t2: u32,
    t3: u32,
    /// `table3`, `beyond_table3` (of a GPU of the paper, but more than its 16 columns) or `algorithm5`: who says t1, t2, t3.
    origin: &'static str,
    /// C0.
    fixed_registers: f64,
    /// A thread, Eq. (1).
    registers: u32,
    /// A block, Eq. (2).
    shared_bytes: u64,
    /// Threads an SM, Eq. (3).
    occupancy: u32,
    concurrency_memory: f64,
    need_memory: f64,
    utilisation_memory: f64,
    concurrency_compute: f64,
    need_compute: f64,
    utilisation_compute: f64,
    step_compute_seconds: f64,
    step_memory_seconds: f64,
    algorithm5_t2: u32,
    algorithm5_t3: u32,
    algorithm5_seconds: f64,
    descent_t2: u32,
    descent_t3: u32,
    descent_seconds: f64,
    /// Where k is small too.
    #[serde(flatten)]
    tall: Option<Tall>,
}

/// What TSM2L adds.
#[derive(Serialize)]
struct Tall {
    /// Rows a thread.
    tcf: u32,
    threads: u64,
    /// Fetches of A a row.
    fetches: u64,
    algorithm6_b_elements: u64,
    algorithm6_registers: u32,
    algorithm7_b_elements: u64,
    algorithm7_c_passes: u64,
    algorithm7_registers: u32,
    /// `algorithm6` or `algorithm7`: what the authors' code launches.
    launched: &'static str,
}

impl Tall {
    fn of(tall: &Tsm2l) -> Self {
        Self {
            tcf: tall.tcf,
            threads: tall.threads,
            fetches: tall.fetches,
            algorithm6_b_elements: tall.tiled_b_traffic,
            algorithm6_registers: tall.tiled_registers,
            algorithm7_b_elements: tall.interleaved_b_traffic,
            algorithm7_c_passes: tall.interleaved_c_passes,
            algorithm7_registers: tall.interleaved_registers,
            launched: match tall.algorithm {
                Algorithm::Tiled => "algorithm6",
                Algorithm::Interleaved => "algorithm7",
            },
        }
    }
}

impl Object {
    /// The steps as an object.
    pub fn of(problem: &Problem, machine: &Machine) -> Self {
        let (laid, r) = reasoning(problem, machine);
        Self {
            head: Head::of(
                problem,
                machine,
                classify(problem.m, problem.n, problem.k),
                laid != *problem,
                r.bound.name(),
            ),
            tall: of_tall(&laid, &r).as_ref().map(Tall::of),
            t2_threshold: r.threshold,
            t1: r.parameters.t1,
            t2: r.parameters.t2,
            t3: r.parameters.t3,
            origin: match r.origin {
                Origin::Table3 => "table3",
                Origin::BeyondTable3 => "beyond_table3",
                Origin::Algorithm5 => "algorithm5",
            },
            fixed_registers: r.constants.fixed_registers,
            registers: r.registers,
            shared_bytes: r.shared_bytes,
            occupancy: r.occupancy,
            concurrency_memory: r.memory_concurrency,
            need_memory: r.memory_need,
            utilisation_memory: r.memory_utilisation,
            concurrency_compute: r.compute_concurrency,
            need_compute: r.compute_need,
            utilisation_compute: r.compute_utilisation,
            step_compute_seconds: r.compute_step_s,
            step_memory_seconds: r.memory_step_s,
            algorithm5_t2: r.scan.t2,
            algorithm5_t3: r.scan.t3,
            algorithm5_seconds: r.scan.seconds,
            descent_t2: r.descent.t2,
            descent_t3: r.descent.t3,
            descent_seconds: r.descent.seconds,
        }
    }
}
