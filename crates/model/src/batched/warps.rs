//! Batches by a warp a problem, through shared memory of its own.

use super::fragments::{Block, ByWarps, Needs, stores_whole_sectors, upright};
use super::{BatchedChoice, BatchedProblem, NEEDED_IN_FLIGHT, narrow, scarce};
use crate::Machine;
use crate::launch::batched::{Laid, WarpTile};
use crate::variants::batched::Batched;

/// How many times as long memory takes as by a read kernel, of real and of complex elements; that again where columns are whole
/// pieces of 16 bytes but not whole sectors of 32; and where they are not whole pieces, since C and what is copied then move by elements, if C is not read and if it is. Fitted to
/// 2 GB of problems on an H200 on 2026-11-25, with m = n = k of 20 to 32 in f32, of 16 to 28 in c64.
const READS: [f64; 2] = [1.15, 1.25];
const BY_ELEMENTS: f64 = 1.3;
const BY_SINGLE_ELEMENTS: [f64; 2] = [2.4, 1.8];
/// Cycles from an instruction of a warp to its next, of real and of complex sums, fitted in the same way.
const CYCLES: [f64; 2] = [2.4, 4.0];
/// Cycles in which shared memory hands a warp 16 bytes a lane, though lanes share what they read.
const WIDE_CYCLES: f64 = 4.0;
/// Instructions of a copy, and of 16 bytes of C.
const COPY: f64 = 8.0;
const STORE: f64 = 24.0;
/// Warp instructions that an SM issues a cycle.
const ISSUED: f64 = 4.0;

/// Threads of a block, and its bytes of shared memory, of an upright batch.
pub(super) fn block(variant: &Batched, of: &BatchedProblem) -> (u32, u32) {
    let bytes = narrow(of.dtype.bytes());
    let tile = WarpTile::new(narrow(of.n), narrow(of.k), variant.tn / 8, 16 / bytes);
    (variant.threads, variant.threads / 32 * tile.shared_len() * bytes)
}

/// The launch of an entry: each warp has two stages.
pub(super) fn choose(variant: &'static Batched, p: &BatchedProblem, machine: &Machine) -> BatchedChoice {
    let (of, swapped) = upright(p);
    let (_, shared_bytes) = block(variant, &of);
    ByWarps::new(variant, p, machine, (of, swapped)).only(Block { problems: 1, stages: 2, shared_bytes }, needs)
}

fn needs(by: &ByWarps<'_>, resident: u32) -> Needs {
    let ByWarps { variant, machine, of, sides: [a, b, c], bound, .. } = by;
    let (bytes, count, k) = (of.dtype.bytes() as f64, of.count as f64, of.k as f64);
    let (width, reads_c) = (16.0 / bytes, f64::from(u8::from(of.reads_c)));
    let (tm, tn) = (f64::from(variant.tn) / 8.0, f64::from(variant.tm) / 4.0);
    let warps = f64::from(resident * variant.threads / 32);
    let len = |side: &Laid| f64::from(side.shared.len * side.shared.lines);
    let in_flight = warps * bytes * (len(a) + len(b));
    let by_elements = match (stores_whole_sectors(of.dtype, c), c.code.wide) {
        (true, _) => 1.0,
        (false, true) => BY_ELEMENTS,
        (false, false) => BY_SINGLE_ELEMENTS[usize::from(of.reads_c)],
    };
    let memory_s =
        READS[usize::from(of.dtype.is_complex())] * bound.memory_s * scarce(NEEDED_IN_FLIGHT, in_flight) * by_elements;
    let sms_s = |cycles: f64| cycles * count / (f64::from(machine.sms) * machine.clock_hz);
    let reads = k * (tm + tn) / width;
    let shared_s = sms_s(reads * WIDE_CYCLES + (len(a) + len(b)) * bytes / 128.0);
    let copies = |side: &Laid| if side.code.wide { len(side) / width / 32.0 } else { len(side) / 32.0 };
    let instructions = k * tm * tn * f64::from(of.dtype.fmas())
        + reads
        + (copies(a) + copies(b)) * COPY
        + tm * tn / width * STORE * (1.0 + reads_c) / 2.0;
    let arithmetic_s = sms_s(instructions / ISSUED);
    let latency = machine.memory_latency_s * machine.clock_hz;
    let cycles = instructions * CYCLES[usize::from(of.dtype.is_complex())] + latency * (1.0 + reads_c);
    Needs { in_flight, memory_s, shared_s, arithmetic_s, cycles }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::batched::Lie;
    use crate::{Dtype, Refusal, Strides, choose_batched};

    /// From 24 rows on tiles wait for shared memory and instructions; without gaps others are faster.
    #[test]
    fn they_are_chosen_for_large_problems() {
        for (dtype, reads_c) in [(Dtype::F32, false), (Dtype::F32, true), (Dtype::C64, false), (Dtype::C64, true)] {
            for n in [4, 8, 24, 28, 32_u64] {
                let count = 2_000_000_000 / (4 * dtype.bytes() * n * n);
                let p = BatchedProblem { reads_c, ..BatchedProblem::column_major(dtype, (n, n, n), count) };
                let apart = Lie { strides: Strides::column_major(n + 4), stride: n * (n + 4), ..p.a };
                let chosen = |p| choose_batched(&p, &Machine::H200, None).map(|choice| choice.variant.name);
                if n >= 24 && dtype == Dtype::F32 {
                    assert_eq!(chosen(BatchedProblem { a: apart, ..p }), Ok("batched_warps"), "{dtype} {n}");
                }
                let without_gaps = chosen(p);
                let is_one_of = |names: &[&str]| without_gaps.is_ok_and(|name| names.contains(&name));
                assert!(is_one_of(&["batched_bulk", "batched_over"]), "{dtype} {n} {reads_c}: {without_gaps:?}");
            }
        }
    }

    #[test]
    fn refusals_say_why() {
        let p = BatchedProblem::column_major(Dtype::F32, (32, 32, 32), 1000);
        let small = choose_batched(&p, &Machine::H200, Some("sbatched_warps_4x6_t64"));
        assert_eq!(small.map(|_| ()), Err(Refusal::LargerThanFragments { name: "m", value: 32, most: 24 }));
        let real = BatchedProblem { dtype: Dtype::F64, ..p };
        let refused = choose_batched(&real, &Machine::H200, Some("batched_warps"));
        assert_eq!(refused.map(|_| ()), Err(Refusal::NoSuchDtype { dtype: Dtype::F64 }));
    }
}
