//! How many blocks an SM holds, and how much of the machine they can keep busy.

use crate::{Kernel, Machine, Variant};

/// 32-bit registers a thread of an entry uses, as the assembler allotted them for the nearest architecture.
///
/// [`registers_estimate`] predicts them before there is anything to assemble.
pub fn registers(variant: &Variant, machine: &Machine) -> u32 {
    let found = crate::generated::registers::REGISTERS.iter().find(|(entry, ..)| *entry == variant.entry);
    match found {
        Some(&(_, low, _)) if machine.compute_capability < (9, 0) => low,
        Some(&(_, _, high)) => high,
        None => registers_estimate(variant),
    }
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
    let words = u32::try_from(variant.dtype.bytes() / 4).unwrap_or(2);
    let estimate = match variant.kernel {
        Kernel::Tsm2r => FIXED_REGISTERS + words * (3 * variant.t2 + 2 * variant.t3),
        Kernel::Gemm => FIXED_REGISTERS + words * (variant.t2 * variant.t3 + variant.t2 + variant.t3),
    };
    estimate.min(255)
}

/// Blocks of `threads` threads, `registers` a thread and `shared_bytes` a block that one SM holds at a time.
///
/// # Source
/// CUDA's occupancy rules: registers are allotted a warp at a time in granules, shared memory a block at a time with
/// what the system keeps. TSM2X's Eq. (3) is the same without granules.
pub fn resident_blocks(machine: &Machine, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
    let warps = threads.div_ceil(32).max(1);
    let warp_registers = (registers.max(1) * 32).next_multiple_of(machine.register_granule);
    let by_registers = machine.registers_per_sm / warp_registers / warps;
    let by_shared = machine.shared_per_sm / (shared_bytes + machine.shared_reserved).max(1);
    let by_threads = machine.threads_per_sm / (warps * 32);
    by_registers.min(by_shared).min(by_threads).min(machine.blocks_per_sm)
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

    #[test]
    fn every_entry_has_its_registers() {
        for v in crate::VARIANTS {
            let rows = crate::generated::registers::REGISTERS.iter().filter(|(entry, ..)| *entry == v.entry);
            assert_eq!(rows.count(), 1, "{}: .ci/run ptx ptxas --update", v.entry);
        }
    }

    #[test]
    fn an_h200_needs_20_kilobytes_in_flight_an_sm() {
        let need = bytes_needed_in_flight(&Machine::H200);
        assert!((20e3..21e3).contains(&need), "{need}");
        assert_eq!(fmas_needed_in_flight(&Machine::H200, Machine::H200.fma_f64_per_s).round(), 256.0);
    }
}
