//! Batches by the fragments of the matrix units: a warp a problem, nothing in shared memory.

use super::{BatchedChoice, BatchedEstimate, BatchedProblem, codes, scarce};
use crate::launch::batched::{Laid, MOST_PROBLEMS, laid};
use crate::occupancy::resident_blocks;
use crate::roofline::{Bound, peak_fma_rate, root_of_fourths};
use crate::variants::batched::{Batched, Design};
use crate::{Dtype, Machine};

/// Bytes that an SM of an H200 must have in flight by loads into registers, whose warps wait for nobody: at 4.65 TB/s what a latency of
/// 1.1 µs asks for, three times that of an idle memory.
const NEEDED_IN_FLIGHT: f64 = 40e3;

/// How many times as long memory takes as by a read kernel, since loads of B are of eight lines each. Fitted, as [`LOADED`] is, to 2 GB of
/// problems on an H200.
const READS: f64 = 1.15;

/// How many times as long memory takes where columns do not begin at multiples of 32 bytes, since stores then write parts of sectors: of
/// entries of up to 16 rows, and of others. Fitted to f64 of 13 to 15, and of 17 to 31, on an H200 on 2026-11-25.
const BY_ELEMENTS: [f64; 2] = [1.12, 1.4];

/// Instructions of a load, with its address and its condition, and of an element of C a lane.
const LOAD: f64 = 4.0;
const STORE: f64 = 10.0;
/// Cycles from an instruction of a warp to its next, on average.
pub(super) const ISSUE_CYCLES: f64 = 4.0;
/// How many times that of an idle memory its latency is for warps that wait for it while others load.
const LOADED: f64 = 2.0;
/// Cycles of an `mma.m16n8k8` on its quarter of an SM, and its multiply-adds.
const MMA_CYCLES: f64 = 32.0;
const MMA_FMAS: f64 = 16.0 * 8.0 * 8.0;

/// Blocks that there are for each place in the GPU, so that those that end soon make room for more: of 14 warps a quarter of an SM has 3 or 4,
/// and with a share of the problems for each the fuller quarters end last. Measured on an H200 on 2026-11-25, 2 GB of n x n, n >= 12, in
/// `batched_flat`: 1.09 times as fast in f32, 1.06 in f64, 1.05 in c64, 1.01 in c128, by 8 blocks a place 1.08, 1.04, 1.05, 1.01; in
/// `batched_fragments` of f64 at 12 to 15 1.02 to 1.05, of 16 and of c128 0.99 to 1.00.
pub(super) const WAVES: u64 = 16;
/// Fewest turns of such a block, whose first one waits for memory.
const SHORTEST: u64 = 4;
/// With no more warps, or in c128 no more blocks, an SM waits too long for each new one's: up to 5% slower by 16.
const FEW_WARPS: u32 = 8;
const FEW_BLOCKS: u32 = 3;

/// The same product with a C that does not lie by rows, and whether that is the transposed one.
pub(super) fn upright(p: &BatchedProblem) -> (BatchedProblem, bool) {
    let (m, n) = (p.m as u32, p.n as u32);
    if laid(p.c, (m, n), p.count, 2, 1).code.by_columns {
        return (*p, false);
    }
    let (m, n, a, b, c) = (p.n, p.m, p.b.t(), p.a.t(), p.c.t());
    (BatchedProblem { m, n, a, b, c, conj_a: p.conj_b, conj_b: p.conj_a, ..*p }, true)
}

/// Whether C's columns start at multiples of 32 bytes.
pub(super) fn stores_whole_sectors(dtype: Dtype, c: &Laid) -> bool {
    let sector = 32 / dtype.bytes();
    c.code.wide && c.strides.col % sector == 0 && (c.code.listed || c.stride % sector == 0)
}

/// What warps that have problems of their own, or parts of them, need for a batch.
pub(super) struct Needs {
    /// Bytes that an SM has in flight, at most.
    pub(super) in_flight: f64,
    /// The memory's time, s.
    pub(super) memory_s: f64,
    /// That of shared memory, s.
    pub(super) shared_s: f64,
    /// That of multiply-adds and other instructions, s.
    pub(super) arithmetic_s: f64,
    /// What a warp does in a turn, one thing after the other, cycles.
    pub(super) cycles: f64,
}

impl Needs {
    /// Of so many turns, by so many blocks an SM.
    fn estimate(self, machine: &Machine, turns: u64, resident: u32) -> BatchedEstimate {
        let Needs { in_flight, memory_s, shared_s, arithmetic_s, cycles } = self;
        let turns_s = turns as f64 * cycles / machine.clock_hz;
        let terms = [memory_s, shared_s.max(arithmetic_s), turns_s];
        let seconds = root_of_fourths(terms) + machine.launch_s + machine.memory_latency_s;
        BatchedEstimate { resident, in_flight, memory_s, shared_s, arithmetic_s, turns_s, seconds }
    }
}

/// Problems that the warps of a block take at a time, its stages, and its bytes of shared memory.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) problems: u32,
    pub(super) stages: u32,
    pub(super) shared_bytes: u32,
}

/// An entry whose warps have a problem each, or a part of one: what all of its launches for a batch have in common.
pub(super) struct ByWarps<'a> {
    pub(super) variant: &'static Batched,
    p: &'a BatchedProblem,
    pub(super) machine: &'a Machine,
    /// The batch as the entry sees it.
    pub(super) of: BatchedProblem,
    swapped: bool,
    pub(super) sides: [Laid; 3],
    pub(super) bound: Bound,
    registers: u32,
}

impl<'a> ByWarps<'a> {
    /// The batch as the entry sees it, and whether that is transposed, are [`upright`]'s, or the batch itself.
    pub(super) fn new(
        variant: &'static Batched,
        p: &'a BatchedProblem,
        machine: &'a Machine,
        (of, swapped): (BatchedProblem, bool),
    ) -> Self {
        let (sides, bound, registers) = (of.sides(1), p.bound(machine), variant.registers(machine));
        ByWarps { variant, p, machine, of, swapped, sides, bound, registers }
    }

    /// Blocks an SM, and parts of problems.
    fn dealt(&self, block: Block) -> (u32, u64) {
        let Block { problems, shared_bytes, .. } = block;
        let resident = resident_blocks(self.machine, self.variant.threads, self.registers, shared_bytes);
        let tasks = self.p.count.div_ceil(u64::from(problems)).saturating_mul(u64::from(self.variant.parts));
        (resident, tasks)
    }

    /// What it is expected to take, which needs so much with so many blocks an SM.
    pub(super) fn estimate(&self, block: Block, needs: impl FnOnce(&Self, u32) -> Needs) -> BatchedEstimate {
        let (resident, tasks) = self.dealt(block);
        let turns = tasks.div_ceil(u64::from(resident * self.variant.threads / 32 * self.machine.sms));
        needs(self, resident).estimate(self.machine, turns, resident)
    }

    /// The launch: as many blocks as the GPU holds, or as there is work for, or [`WAVES`] times as many.
    pub(super) fn choice(&self, block: Block, estimate: BatchedEstimate) -> BatchedChoice {
        let ((resident, tasks), threads) = (self.dealt(block), self.variant.threads);
        let (work, places) =
            (tasks.div_ceil(u64::from(threads / 32)), u64::from(resident) * u64::from(self.machine.sms));
        let is_filled = resident * threads / 32 > FEW_WARPS && (resident > FEW_BLOCKS || self.p.dtype != Dtype::C128);
        let most = if is_filled && self.variant.design() != Design::Warps { WAVES } else { 1 };
        let blocks = work.min(places * (work / places / SHORTEST).clamp(1, most));
        BatchedChoice {
            problem: *self.p,
            variant: self.variant,
            problems: block.problems,
            stages: block.stages,
            blocks: blocks.min(MOST_PROBLEMS) as u32,
            threads,
            shared_bytes: block.shared_bytes,
            swapped: self.swapped,
            sides: self.sides,
            codes: codes(&self.of, &self.sides),
            bound: self.bound,
            estimate,
        }
    }

    /// The launch of an entry that has no choice of blocks.
    pub(super) fn only(&self, block: Block, needs: impl FnOnce(&Self, u32) -> Needs) -> BatchedChoice {
        self.choice(block, self.estimate(block, needs))
    }
}

/// The launch of an entry.
pub(super) fn choose(variant: &'static Batched, p: &BatchedProblem, machine: &Machine) -> BatchedChoice {
    ByWarps::new(variant, p, machine, upright(p)).only(Block { problems: 1, stages: 1, shared_bytes: 0 }, needs)
}

fn needs(by: &ByWarps<'_>, resident: u32) -> Needs {
    let ByWarps { variant, machine, of, sides: [a, b, c], bound, .. } = by;
    let (bytes, count) = (of.dtype.bytes() as f64, of.count as f64);
    let (tm, tn, parts) = (f64::from(variant.tm), f64::from(variant.tn), f64::from(variant.parts));
    let warps = f64::from(resident * variant.threads / 32);
    let len = |side: &Laid| f64::from(side.shared.len * side.shared.lines);
    let reads_c = f64::from(u8::from(of.reads_c));
    let is_complex = of.dtype.is_complex();
    // Blocks of rows that a warp takes one after the other: of complex ones A is there for one of them, B at the last.
    let (turns, rows_of_mma) = if is_complex { ((of.m as f64 / 8.0).max(1.0), 8.0) } else { (1.0, 16.0) };
    // Of C some of the fragments.
    let in_flight = warps * bytes * (len(a) / turns + len(b) / turns / parts + reads_c * len(c) / 4.0 / turns);
    let by_elements = if stores_whole_sectors(of.dtype, c) { 1.0 } else { BY_ELEMENTS[usize::from(variant.tm > 16)] };
    let memory_s = bound.memory_s * READS * scarce(NEEDED_IN_FLIGHT, in_flight) * by_elements;
    let fmas = f64::from(of.dtype.fmas());
    let blocks = (f64::from(variant.tm.next_multiple_of(rows_of_mma as u32))) / rows_of_mma;
    let padded = blocks * rows_of_mma * tm * tn * fmas;
    let arithmetic_s = padded * count / peak_fma_rate(machine, of.dtype);
    // Per warp: loads of an element a lane of A for each of its tasks, and of B, and the same of C.
    let loads = (blocks * rows_of_mma * tn + tm / parts * tn) / 32.0;
    let elements = blocks * rows_of_mma * tm / parts / 32.0;
    let mma_cycles = padded / parts / MMA_FMAS * MMA_CYCLES;
    let instructions = loads * LOAD + elements * (STORE + reads_c * LOAD) + mma_cycles / MMA_CYCLES;
    let latency = LOADED * machine.memory_latency_s * machine.clock_hz;
    let cycles = mma_cycles + instructions * ISSUE_CYCLES + latency * (turns + reads_c);
    Needs { in_flight, memory_s, shared_s: 0.0, arithmetic_s, cycles }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::batched::Lie;
    use crate::{Refusal, Strides, choose_batched};

    /// Of large batches many for each place, but where an SM holds few, or each has little to do.
    #[test]
    fn there_are_more_blocks_than_places_where_it_helps() {
        let places = |dtype, n, count, reads_c, name| {
            let p = BatchedProblem { reads_c, ..BatchedProblem::column_major(dtype, (n, n, n), count) };
            let Ok(choice) = choose_batched(&p, &Machine::H200, Some(name)) else { panic!("{dtype} {n} {name}") };
            let places = u64::from(choice.estimate.resident) * u64::from(Machine::H200.sms);
            (u64::from(choice.blocks), places, count.div_ceil(u64::from(choice.problems)))
        };
        for (dtype, n) in [(Dtype::F32, 24), (Dtype::F64, 31), (Dtype::C64, 24), (Dtype::C128, 20)] {
            let (blocks, one_each, _) = places(dtype, n, 10_000_000, true, "batched_flat");
            assert_eq!(blocks, WAVES * one_each, "{dtype} {n}");
            // Few problems: a block for each, or for each place.
            let (blocks, one_each, work) = places(dtype, n, 2000, true, "batched_flat");
            assert_eq!(blocks, work.min(one_each), "{dtype} {n}");
            let (blocks, one_each, work) = places(dtype, n, 20_000, true, "batched_flat");
            // No turns are so few that a block's first one costs more than the places gain, and no places are left empty.
            assert!(blocks % one_each == 0 && work / blocks >= SHORTEST, "{dtype} {n}: {blocks}, {one_each}");
        }
        for (dtype, n, name) in
            [(Dtype::C128, 32, "batched_flat"), (Dtype::C64, 32, "batched_flat"), (Dtype::F32, 32, "batched_warps")]
        {
            let (blocks, one_each, _) = places(dtype, n, 10_000_000, true, name);
            assert_eq!(blocks, one_each, "{dtype} {n}");
        }
        let (blocks, one_each, _) = places(Dtype::F64, 16, 10_000_000, true, "batched_fragments");
        assert!(blocks > one_each);
    }

    fn square(dtype: Dtype, n: u64, reads_c: bool) -> BatchedProblem {
        let p = BatchedProblem::column_major(dtype, (n, n, n), 2_000_000_000 / (4 * dtype.bytes() * n * n));
        BatchedProblem { reads_c, ..p }
    }

    fn forced(p: &BatchedProblem, machine: &Machine) -> Result<BatchedChoice, Refusal> {
        choose_batched(p, machine, Some("batched_fragments"))
    }

    /// Large ones with columns of whole sectors, where tiles wait for shared memory; small ones fill no warp.
    #[test]
    fn they_are_fast_where_tiles_wait_for_shared_memory() {
        let name = |p: &BatchedProblem, machine| choose_batched(p, machine, None).map(|choice| choice.variant.name);
        for (dtype, reads_c) in [(Dtype::F64, false), (Dtype::F64, true), (Dtype::C128, false), (Dtype::C128, true)] {
            for n in [16, 20, 24, 28, 32] {
                let p = square(dtype, n, reads_c);
                assert_eq!(name(&p, &Machine::A100), Ok("batched_packed"), "{n}");
                let Ok(choice) = forced(&p, &Machine::H200) else { panic!("{n}") };
                assert!(choice.estimate.seconds < 1.6 * choice.bound.seconds(), "{n}: {:?}", choice.estimate);
                assert!(choice.estimate.in_flight > NEEDED_IN_FLIGHT && choice.shared_bytes == 0, "{n}");
            }
            for n in 1..=8 {
                let found = name(&square(dtype, n, reads_c), &Machine::H200);
                let expected: &[&str] = if n == 1 { &["batched_packed"] } else { &["batched_bulk", "batched_over"] };
                assert!(found.is_ok_and(|name| expected.contains(&name)), "{n}: {found:?}");
            }
        }
    }

    #[test]
    fn refusals_say_why() {
        let p = square(Dtype::F64, 32, false);
        assert_eq!(forced(&p, &Machine::A100).map(|_| ()), Err(Refusal::TooOld { needs: (9, 0) }));
        let small = choose_batched(&p, &Machine::H200, Some("dbatched_fragments_16x16_k16_t128"));
        assert_eq!(small.map(|_| ()), Err(Refusal::LargerThanFragments { name: "m", value: 32, most: 16 }));
        let complex = BatchedProblem { dtype: Dtype::C64, ..p };
        assert_eq!(forced(&complex, &Machine::H200).map(|_| ()), Err(Refusal::NoSuchDtype { dtype: Dtype::C64 }));
    }

    /// Of a C by rows the transposed product, so that lanes always store down columns.
    #[test]
    fn a_result_by_rows_is_computed_transposed() {
        let by_rows = |rows, cols| Lie { strides: Strides::row_major(cols), ..Lie::packed(rows, cols) };
        let p = BatchedProblem::column_major(Dtype::F64, (5, 7, 3), 1000);
        let of = |p: &BatchedProblem| forced(p, &Machine::H200).map(|choice| (choice.swapped, choice.sides));
        let Ok((false, [a, _, c])) = of(&p) else { panic!("it lies by columns") };
        assert_eq!((a.strides.col, c.strides.col), (5, 5));
        let Ok((true, [a, b, c])) = of(&BatchedProblem { c: by_rows(5, 7), ..p }) else { panic!("it lies by rows") };
        // B is 3 x 7 by columns, so that its transpose has its rows 3 apart.
        assert_eq!((a.strides.row, b.strides.row, c.strides), (3, 5, Strides::column_major(7)));
    }
}
