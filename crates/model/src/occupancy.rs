//! How many blocks an SM holds, and how much of the machine they can keep busy.

use crate::generated::registers::REGISTERS;
use crate::{Kernel, Machine, VARIANTS, Variant};
use core::fmt;

/// Threads a warp.
const WARP: u32 = 32;

/// 32-bit registers a thread of an entry uses, as the assembler allotted them for the nearest architecture.
///
/// [`registers_estimate`] predicts them before there is anything to assemble.
pub fn registers(variant: &Variant, machine: &Machine) -> u32 {
    match REGISTERS.binary_search_by(|(entry, ..)| (*entry).cmp(variant.entry)) {
        Ok(at) => of_architecture(REGISTERS[at], machine),
        Err(_) => registers_estimate(variant),
    }
}

/// The same of any entry by its name; `None` where it has not been assembled yet.
pub(crate) fn registers_of(entry: &str, machine: &Machine) -> Option<u32> {
    let at = REGISTERS.binary_search_by(|(name, ..)| (*name).cmp(entry)).ok()?;
    Some(of_architecture(REGISTERS[at], machine))
}

/// The same for the entry at a place of [`VARIANTS`]: a search by name takes longer than all else about an entry.
pub(crate) fn registers_at(place: usize, machine: &Machine) -> u32 {
    match ROWS[place] {
        usize::MAX => registers_estimate(&VARIANTS[place]),
        at => of_architecture(REGISTERS[at], machine),
    }
}

fn of_architecture((_, sm_80, sm_90): (&str, u32, u32), machine: &Machine) -> u32 {
    if machine.compute_capability < (9, 0) { sm_80 } else { sm_90 }
}

/// The row of [`REGISTERS`] of each entry of [`VARIANTS`]; the largest number where there is none.
const ROWS: [usize; VARIANTS.len()] = {
    let mut rows = [usize::MAX; VARIANTS.len()];
    let mut place = 0;
    while place < rows.len() {
        let name = VARIANTS[place].entry.as_bytes();
        // They are in the order of their names.
        let (mut first, mut end) = (0, REGISTERS.len());
        while first < end {
            let row = (first + end) / 2;
            if is_before(REGISTERS[row].0.as_bytes(), name) {
                first = row + 1;
            } else {
                end = row;
            }
        }
        if first < REGISTERS.len() && !is_before(name, REGISTERS[first].0.as_bytes()) {
            rows[place] = first;
        }
        place += 1;
    }
    rows
};

const fn is_before(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at < b.len() && (at == a.len() || a[at] < b[at])
}

/// Registers that a kernel holds beside its tiles: addresses, counters, constants.
///
/// TSM2X's C0, "profiled": its Table 3 leaves 6 to 32; our entries, which carry strides and predicates, leave more.
const FIXED_REGISTERS: u32 = 40;

/// 32-bit registers a thread of a TSM2R entry needs at most: C0 + (e/4)(3·t2 + 2·t3).
///
/// # Source
/// TSM2X, Eq. (1), reconstructed from its prose: two sets of t2 for B, t2 sums, two sets of t3 for A. A compiler that
/// reloads each register right after its use needs fewer.
pub fn registers_estimate(variant: &Variant) -> u32 {
    let words = u32::try_from(variant.dtype.bytes() / 4).unwrap_or(4);
    let estimate = match variant.kernel {
        Kernel::Tsm2r => FIXED_REGISTERS + words * (3 * variant.t2 + 2 * variant.t3),
        // B's columns, sums of two rows, and what A has of them.
        Kernel::Tsmm if variant.is_outer() => FIXED_REGISTERS + words * variant.cols * (variant.t3 + 4),
        // Of the matrix units the sums of a warp are dealt to its lanes.
        Kernel::Tsmm => FIXED_REGISTERS + words * (variant.rows * variant.t2 / variant.threads + 16),
        // V rows of 16 bytes, two sets of t3 loads.
        Kernel::Tall if variant.name == "tsm2l_columns" => {
            let rows = variant.rows / variant.threads;
            FIXED_REGISTERS + words * (rows * variant.cols + 2 * rows * variant.t3)
        }
        Kernel::Tall => FIXED_REGISTERS + words * (3 * variant.cols + 2 * variant.t3),
        Kernel::Ring | Kernel::GemmRing => FIXED_REGISTERS + words * (variant.rows * variant.t2 / variant.threads + 16),
        Kernel::Ladder => FIXED_REGISTERS / 2 + words * 4 * variant.cols,
        Kernel::Gemm => FIXED_REGISTERS + words * (variant.t2 * variant.t3 + variant.t2 + variant.t3),
        Kernel::Tsmttsm | Kernel::Gram => FIXED_REGISTERS + reduced_registers(variant),
        // Sums, what is loaded of A and of x.
        Kernel::Gemv => {
            FIXED_REGISTERS + words * ((variant.own_rows() + variant.t2) * variant.t3 + variant.own_rows() * variant.t2)
        }
    };
    estimate.min(255)
}

/// Of an entry of two tall matrices the registers of sums and of what is loaded: Ernst et al., Section 5.2
/// ([`crate::paper::tsmttsm::registers`]), a warp of the matrix units having 32 threads' tile.
fn reduced_registers(variant: &Variant) -> u32 {
    let words = u32::try_from(variant.dtype.bytes() / 4).unwrap_or(2);
    let folds = crate::launch::reduced::folds(variant);
    let (m, n, steps) = (variant.own_rows() * folds, variant.cols * folds, variant.t3);
    // A step's elements of that many lines are a lane's.
    let lanes = if variant.mma { 32 / crate::launch::reduced::square_side(variant.dtype) } else { 1 };
    let sums = if variant.mma { m * n / 32 } else { m * n };
    let lines = if variant.is_dealt() { crate::launch::dealt::lines(variant) } else { m + n };
    words * (sums + steps * lines / lanes)
}

/// What ends the number of blocks that an SM holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The registers.
    Registers,
    /// The shared memory.
    SharedMemory,
    /// The resident threads.
    Threads,
    /// The resident blocks.
    Blocks,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Limit::Registers => "registers",
            Limit::SharedMemory => "shared memory",
            Limit::Threads => "threads",
            Limit::Blocks => "blocks",
        })
    }
}

/// Blocks of one launch that an SM holds, by each of its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Threads a block, whole warps.
    pub threads: u32,
    /// Blocks for which the registers last.
    pub by_registers: u32,
    /// Blocks for which the shared memory lasts.
    pub by_shared: u32,
    /// Blocks for which the resident threads last.
    pub by_threads: u32,
    /// Blocks at most, whatever they are.
    pub by_blocks: u32,
}

impl Residency {
    /// Blocks that an SM holds at a time; 0 where one is too large.
    pub fn blocks(&self) -> u32 {
        self.by_registers.min(self.by_shared).min(self.by_threads).min(self.by_blocks)
    }

    /// The resource that would have to grow for more blocks; where several would, the first of threads, registers, shared
    /// memory and blocks: full of threads, an SM is as full as it can be.
    pub fn limit(&self) -> Limit {
        match self.blocks() {
            blocks if blocks == self.by_threads => Limit::Threads,
            blocks if blocks == self.by_registers => Limit::Registers,
            blocks if blocks == self.by_shared => Limit::SharedMemory,
            _ => Limit::Blocks,
        }
    }

    /// Resident threads against the most there can be, blocks · threads / threads an SM: 0 to 1.
    pub fn occupancy(&self, machine: &Machine) -> f64 {
        f64::from(self.blocks() * self.threads) / f64::from(machine.threads_per_sm)
    }
}

/// The residency of blocks of `threads` threads, `registers` a thread and `shared_bytes` a block.
///
/// # Source
/// CUDA's occupancy rules, as its header `cuda_occupancy.h` has them: registers are allotted a warp at a time in
/// granules, from the partition that the warp lives in; shared memory a block at a time in granules, with what the
/// system keeps; a block must fit on its own, its warps dealt to all partitions alike. TSM2X's Eq. (3) is the same
/// without granules ([`crate::paper::tsm2x`]).
pub fn residency(machine: &Machine, threads: u32, registers: u32, shared_bytes: u32) -> Residency {
    let warps = threads.div_ceil(WARP).max(1);
    let warp_registers = (registers.max(1) * WARP).next_multiple_of(machine.register_granule);
    let dealt = warps.next_multiple_of(machine.register_partitions);
    let registers_fit = registers <= machine.registers_per_thread
        && u64::from(warp_registers) * u64::from(dealt) <= u64::from(machine.registers_per_block);
    let partition = machine.registers_per_sm / machine.register_partitions;
    let by_registers = partition / warp_registers * machine.register_partitions / warps;
    Residency {
        threads: warps * WARP,
        by_registers: if registers_fit { by_registers } else { 0 },
        by_shared: by_shared(machine, shared_bytes),
        by_threads: if threads <= machine.threads_per_block { machine.threads_per_sm / (warps * WARP) } else { 0 },
        by_blocks: machine.blocks_per_sm,
    }
}

/// Blocks of so many bytes each for which an SM's shared memory lasts.
pub(crate) fn by_shared(machine: &Machine, shared_bytes: u32) -> u32 {
    if shared_bytes > machine.shared_per_block {
        return 0;
    }
    let block_bytes = shared_bytes.saturating_add(machine.shared_reserved).max(1);
    machine.shared_per_sm / block_bytes.next_multiple_of(machine.shared_granule)
}

/// Blocks that an SM holds at a time: [`residency`] without its reason.
pub fn resident_blocks(machine: &Machine, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
    residency(machine, threads, registers, shared_bytes).blocks()
}

/// Bytes an SM must have in flight to draw its share of the bandwidth: latency x bandwidth / SMs (Little's law).
///
/// # Source
/// TSM2X, Eq. (5), in bytes instead of elements.
pub fn bytes_needed_in_flight(machine: &Machine) -> f64 {
    machine.memory_latency_s * machine.read_bytes_per_s / f64::from(machine.sms)
}

/// Independent multiply-adds an SM must have in flight to use its f32 or f64 rate: latency x rate / SMs.
///
/// # Source
/// TSM2X, Eq. (8).
pub fn fmas_needed_in_flight(machine: &Machine, fma_per_s: f64) -> f64 {
    machine.fma_latency_cycles / machine.clock_hz * fma_per_s / f64::from(machine.sms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residency_is_cudas() {
        let h200 = &Machine::H200;
        // (threads, registers, shared) -> blocks: what CUDA's occupancy calculator gives for compute capability 9.0.
        for ((threads, registers, shared), blocks) in [
            ((128, 32, 0), 16),
            ((128, 104, 16 << 10), 4),
            ((128, 128, 0), 4),
            ((128, 129, 0), 3),
            ((256, 255, 0), 1),
            ((1024, 64, 0), 1),
            ((32, 16, 0), 32),
            ((128, 32, 100 << 10), 2),
            ((128, 32, 227 << 10), 1),
        ] {
            assert_eq!(resident_blocks(h200, threads, registers, shared), blocks, "{threads} {registers} {shared}");
        }
        assert_eq!(resident_blocks(&Machine::V100, 128, 180, 16 << 10), 2);
    }

    /// (threads, registers, shared) -> blocks and what ends them, worked out by hand from CUDA's rules.
    #[test]
    fn each_resource_ends_the_blocks_in_its_turn() {
        use Limit::*;
        for (name, machine, (threads, registers, shared), blocks, limit) in [
            // 2 warps of 255 registers: 8160 each, 2 of them in a partition of 16384, 8 in an SM.
            ("H200", Machine::H200, (64, 255, 0), 4, Registers),
            // 12 warps take 3 warps of each partition: 168 registers leave room for just 3, 176 for 2.
            ("H200", Machine::H200, (384, 168, 0), 1, Registers),
            ("H200", Machine::H200, (384, 176, 0), 0, Registers),
            // 33 warps are more than a block has.
            ("H200", Machine::H200, (1056, 16, 0), 0, Threads),
            ("H200", Machine::H200, (128, 32, 232_449), 0, SharedMemory),
            // 16 KiB and 1 KiB of the system's: 13 in 228 KiB.
            ("H200", Machine::H200, (64, 16, 16 << 10), 13, SharedMemory),
            // A byte more takes another granule: 8 blocks of 29184 bytes fill 228 KiB, 8 of 29312 do not fit.
            ("H200", Machine::H200, (32, 16, 28_161), 7, SharedMemory),
            ("H200", Machine::H200, (32, 16, 28_160), 8, SharedMemory),
            ("H200", Machine::H200, (32, 16, 0), 32, Blocks),
            ("RTX4090", Machine::RTX4090, (32, 16, 0), 24, Blocks),
            ("RTX4090", Machine::RTX4090, (1024, 16, 0), 1, Threads),
            // Of warps of 3328 registers, 2 partitions of 32768 hold 9 each, 4 partitions of 16384 hold 4 each.
            ("P100", Machine::P100, (32, 104, 0), 18, Registers),
            ("V100", Machine::V100, (32, 104, 0), 16, Registers),
            // The course report: 55 registers, 32 bytes a thread, 32 x 32 threads: the GK210's 2048 threads are full.
            ("GK210", Machine::GK210, (1024, 55, 32 << 10), 2, Threads),
            // A K40c has half of its registers.
            ("K40c", Machine::K40C, (1024, 55, 32 << 10), 1, Registers),
            // Soerensen: 192 threads and more fill a C2050's 1536 with 8 blocks.
            ("C2050", Machine::C2050, (192, 20, 768), 8, Threads),
            ("C2050", Machine::C2050, (128, 20, 512), 8, Blocks),
            ("C2050", Machine::C2050, (128, 64, 512), 0, Registers),
        ] {
            let found = residency(&machine, threads, registers, shared);
            assert_eq!((found.blocks(), found.limit()), (blocks, limit), "{name} {threads} {registers} {shared}");
        }
    }

    proptest::proptest! {
        /// What an SM is said to hold fits, and one block more does not.
        #[test]
        fn an_sm_is_filled_and_not_overfilled(
            at in 0..11_usize,
            threads in 1..=1024_u32,
            registers in 1..=255_u32,
            shared in 0..=233_472_u32,
        ) {
            let (name, machine) = crate::machine::TABLE[at];
            let found = residency(&machine, threads, registers, shared);
            let warps_each = threads.div_ceil(WARP);
            let warp_registers = (registers * WARP).next_multiple_of(machine.register_granule);
            let block_bytes = (shared + machine.shared_reserved).next_multiple_of(machine.shared_granule);
            let fits = |blocks: u32| {
                let warps = (blocks * warps_each).div_ceil(machine.register_partitions);
                blocks <= machine.blocks_per_sm
                    && blocks * warps_each * WARP <= machine.threads_per_sm
                    && warps * warp_registers <= machine.registers_per_sm / machine.register_partitions
                    && blocks * block_bytes <= machine.shared_per_sm
            };
            assert!(fits(found.blocks()), "{name}: {found:?}");
            let alone = registers <= machine.registers_per_thread
                && shared <= machine.shared_per_block
                && warps_each.next_multiple_of(machine.register_partitions) * warp_registers <= machine.registers_per_block;
            assert_eq!(found.blocks() > 0, alone && fits(1), "{name}: {found:?}");
            assert!(found.blocks() == 0 || !fits(found.blocks() + 1), "{name}: {found:?}");
        }
    }

    #[test]
    fn occupancy_is_the_share_of_resident_threads() {
        assert_eq!(residency(&Machine::GK210, 1024, 55, 32 << 10).occupancy(&Machine::GK210), 1.0);
        assert_eq!(residency(&Machine::V100, 128, 180, 16 << 10).occupancy(&Machine::V100), 0.125);
    }

    #[test]
    fn every_entry_has_its_registers() {
        assert!(REGISTERS.is_sorted_by(|(a, ..), (b, ..)| a < b), "sorted by bytes: .ci/run ptxas --update");
        for v in crate::VARIANTS {
            let rows = REGISTERS.iter().filter(|(entry, ..)| *entry == v.entry);
            assert_eq!(rows.count(), 1, "{}: .ci/run ptx ptxas --update", v.entry);
        }
    }

    #[test]
    fn registers_are_the_same_by_name_and_by_place() {
        for machine in [Machine::A100, Machine::H200] {
            for (place, v) in VARIANTS.iter().enumerate() {
                assert_eq!(registers_at(place, &machine), registers(v, &machine), "{}", v.entry);
            }
        }
        assert!(is_before(b"ab", b"abc") && is_before(b"ab", b"ac") && is_before(b"abc", b"ac"));
        assert!(!is_before(b"ab", b"ab") && !is_before(b"abc", b"ab") && !is_before(b"ac", b"ab"));
    }

    #[test]
    fn an_h200_needs_20_kilobytes_in_flight_an_sm() {
        let need = bytes_needed_in_flight(&Machine::H200);
        assert!((20e3..21e3).contains(&need), "{need}");
        assert_eq!(fmas_needed_in_flight(&Machine::H200, Machine::H200.fma_f64_per_s).round(), 256.0);
    }
}
