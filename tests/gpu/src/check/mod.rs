//! The checks, each named and alone in a file or part of one.

mod across;
mod alignment;
pub mod batched;
mod capture;
mod columns;
pub mod company;
pub mod complex;
mod cycles;
mod edges;
pub mod gemv;
mod grids;
mod guards;
mod layouts;
mod local;
pub mod mapped;
mod memory;
mod null;
pub mod poison;
mod quick;
mod refusals;
mod repeat;
mod rounding;
mod special;
pub mod splits;
mod streams;
mod task;
pub mod tsmm;
pub mod tsmttsm;

use crate::lab::{Lab, Outcome};
use std::time::Instant;

/// Name, what it checks, and the check.
type Check = (&'static str, &'static str, fn(&Lab) -> Outcome);

/// All of them, in the order in which they are run.
pub const CHECKS: &[Check] = &[
    ("guards", "comparators and guards can fail", guards::run),
    ("local", "no kernel has local memory, as the driver compiles it", local::run),
    ("edges", "integers at every tile edge, guards intact, beta = 0 over NaN", edges::run),
    ("mapped", "every entry with operands that end, or begin, where mapped memory of the GPU does", mapped::run),
    ("layouts", "every layout, gap, alpha and beta; transposed views; calls without a plan", layouts::run),
    ("splits", "k in parts, whose sums are added", splits::run),
    ("quick", "m, n, k of 0; alpha and beta of 0, -0, 1, NaN; operands that nothing reads", quick::run),
    ("special", "NaN and infinities travel exactly", special::run_specials),
    ("subnormal", "subnormal numbers are kept", special::run_subnormals),
    ("rounding", "random data within gamma(L+2) |A||B|", rounding::run),
    ("alignment", "any base and leading dimension, the same bits", alignment::run),
    ("columns", "a column depends on its column alone; permutations; powers of two", columns::run),
    ("repeat", "100 runs, the same bits", repeat::run),
    (
        "streams",
        "one plan on several streams at once, its workspaces reused; lists of batches on two streams",
        streams::run,
    ),
    (
        "threads",
        "plans with slots or tickets, eight threads with 200 runs each over eight streams, the same bits; 64 that make all and drop it",
        streams::run_many,
    ),
    (
        "across",
        "plans for all GPUs, of every operation and type: one entry, one number of parts, the same bits",
        across::run,
    ),
    ("null", "a busy null stream holds nothing up", null::run),
    ("load", "the same bits while another process keeps the GPU busy", company::run_beside_a_load),
    ("two", "two processes check every entry at once", company::run_two),
    ("tsmm", "entries of a tall A: widths and tiles, several turns, 100 runs, graphs, in place", tsmm::run),
    (
        "tsmttsm",
        "every entry of two tall matrices and of Gram matrices: integers, layouts, parts, triangles, the same bits",
        tsmttsm::run,
    ),
    (
        "gram-special",
        "Gram matrices: random data within their bound, NaN and infinities, alpha = 0 over NaN",
        tsmttsm::run_special,
    ),
    ("gemv", "every entry of vectors: integers, layouts, parts, strides, the same bits", gemv::run),
    ("batched", "every entry of batches: integers, strided, shared and listed, gaps, conjugates, guards", batched::run),
    (
        "batched-turns",
        "batches by runs whose blocks have several groups: integers of every problem",
        batched::run_turned,
    ),
    ("batched-repeat", "batches: 100 runs, and every place in the batch, the same bits", batched::run_repeat),
    (
        "batched-special",
        "batches: random data within their bound, NaN and infinities in their row, alpha = 0 over NaN, any address",
        batched::run_special,
    ),
    (
        "batched-huge",
        "ten million problems, more than a launch takes; matrices of A, B or C past 2^32 elements",
        batched::run_huge,
    ),
    ("grids", "more than 65535 blocks; grids that do not exist are refused", grids::run),
    ("refusals", "wrong arguments are named, nothing is written", refusals::run),
    ("complex", "integers of complex numbers at tile edges, conjugates of A and B, alpha and beta", complex::run_edges),
    ("complex-splits", "complex products with k in parts; 100 runs, the same bits", complex::run_splits),
    (
        "complex-special",
        "complex products: NaN and infinities, alpha and beta of 0, nothing to multiply",
        complex::run_special,
    ),
    ("complex-parts", "real and imaginary numbers: the other part of the product is 0 exactly", complex::run_parts),
    ("complex-rounding", "complex random data within sqrt(2) gamma(2L+4) |A||B|", complex::run_rounding),
    (
        "complex-alignment",
        "complex operands: any element, the same bits; half an element is refused",
        complex::run_alignment,
    ),
    (
        "complex-tsmttsm",
        "two tall complex matrices and Gram matrices: integers, conjugates, triangles, Hermitian to the bit",
        complex::run_reduced,
    ),
    (
        "complex-tsmm",
        "entries of a tall complex A: widths, tiles, conjugates, turns, 100 runs, in place",
        complex::run_tsmm,
    ),
    ("complex-gemv", "a complex matrix and a vector: integers, conjugates, strides", complex::run_gemv),
    ("poison", "every entry, and zeros, in memory that was full of NaN", poison::run),
    ("cycles", "1000 rounds of opening, running, failing and dropping leave nothing behind", cycles::run),
    ("memory", "out of memory says how much, and passes", memory::run),
    (
        "capture",
        "graphs of warm plans, Gram matrices and batches, the bits of those outside; cold ones and lists are refused",
        capture::run,
    ),
];

/// Runs the checks whose names are in `only`, or all.
pub fn run(lab: &Lab, only: &[String]) -> Outcome {
    if let Some(unknown) = only.iter().find(|name| CHECKS.iter().all(|check| check.0 != name.as_str())) {
        let known: Vec<&str> = CHECKS.iter().map(|check| check.0).collect();
        return Err(format!("no check is called {unknown}; there are {}", known.join(", ")).into());
    }
    for (name, what, check) in CHECKS.iter().filter(|check| only.is_empty() || only.iter().any(|o| o == check.0)) {
        let start = Instant::now();
        let result = check(lab);
        eprintln!("{name}: {what}: {:.1} s", start.elapsed().as_secs_f64());
        // What stops a whole check is a failure of it; what would come after a lost device tells nothing.
        if result.is_err() && lab.record(|| (*name).to_owned(), result).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::GUARD;
    use host::Device;

    /// On the CPU, where there is one entry: the checks' own check.
    #[test]
    fn checks_pass_on_the_cpu() -> Outcome {
        // What is placed over an operand's end must not reach the next one.
        let lab = Lab::new(Device::cpu(), GUARD)?;
        let named = ["guards", "quick", "subnormal", "columns", "refusals"];
        run(&lab, &named.map(str::to_owned))?;
        assert!(lab.finish());
        Ok(())
    }
}
