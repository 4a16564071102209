//! Bounds: what no kernel can beat, and what an entry is expected to reach.

use crate::launch::Tiling;
use crate::occupancy::{bytes_needed_in_flight, fmas_needed_in_flight, registers, resident_blocks};
use crate::{Dtype, Kernel, Machine, Problem, Variant};

/// The least that a product can cost: every element of A and B read once, every element of C written once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Bytes of A and B.
    pub read_bytes: u64,
    /// Bytes of C.
    pub write_bytes: u64,
    /// 2mnk.
    pub flops: f64,
    /// Time to move the bytes, s.
    pub memory_s: f64,
    /// Time to do the arithmetic, s.
    pub arithmetic_s: f64,
}

impl Bound {
    /// The larger of both times, s.
    pub fn seconds(&self) -> f64 {
        self.memory_s.max(self.arithmetic_s)
    }
}

/// T_bound = max(R/read + W/write, 2mnk/(2·FMA rate)), with β = 0.
///
/// # Source
/// The roofline of Williams et al. with separate rates for reading and writing.
pub fn bound(problem: &Problem, machine: &Machine) -> Bound {
    let e = problem.dtype.bytes();
    let (m, n, k) = (problem.m, problem.n, problem.k);
    let read_bytes = e.saturating_mul(m.saturating_mul(k).saturating_add(k.saturating_mul(n)));
    let write_bytes = e.saturating_mul(m.saturating_mul(n));
    let flops = problem.flops();
    Bound {
        read_bytes,
        write_bytes,
        flops,
        memory_s: read_bytes as f64 / machine.read_bytes_per_s + write_bytes as f64 / machine.write_bytes_per_s,
        arithmetic_s: flops / (2.0 * fma_rate(machine, problem.dtype)),
    }
}

/// Fused multiply-adds a second of the vector units.
pub fn fma_rate(machine: &Machine, dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => machine.fma_f32_per_s,
        Dtype::F64 => machine.fma_f64_per_s,
    }
}

/// Bytes a cycle that shared memory and the first-level cache deliver to an SM's registers, broadcasts counted a lane.
const DELIVERED_BYTES_PER_CYCLE: f64 = 128.0;
/// Share of the vector units' rate that loops with loads in them reach.
const ARITHMETIC_SHARE: f64 = 0.85;

/// What an entry does to the machine: the terms of its time, for one number of splits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Blocks an SM holds.
    pub resident: u32,
    /// Share of the bandwidth that the bytes in flight can draw (TSM2X, Eq. (6)).
    pub memory_utilisation: f64,
    /// Expected time, s.
    pub seconds: f64,
}

/// The expected time of an entry that cuts k into `splits` parts.
///
/// max(memory / utilisation, arithmetic, delivery of B to the registers) / filling of the last wave, plus the slots.
///
/// # Source
/// TSM2X, Eqs. (3) to (12); waves, delivery and slots are ours.
pub fn estimate(variant: &Variant, tiling: &Tiling, splits: u32, problem: &Problem, machine: &Machine) -> Estimate {
    let e = problem.dtype.bytes() as f64;
    let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
    let sms = f64::from(machine.sms);
    let per_block = f64::from(variant.threads);
    let allotted = machine.registers_per_sm / (variant.threads * variant.min_blocks).max(1);
    let used = registers(variant).min(allotted);
    let resident = resident_blocks(machine, variant.threads, used, tiling.shared_bytes).max(1);

    let blocks = tiling.x as f64 * tiling.z as f64 * f64::from(splits);
    let wave = f64::from(resident) * sms;
    let active = (blocks / sms).min(f64::from(resident));
    let in_flight = active * per_block * loads_in_flight(variant) * e;
    let memory_utilisation = (in_flight / bytes_needed_in_flight(machine)).min(1.0);
    let bytes = (m * k * tiling.a_reads as f64 + k * n) * e;
    let memory_s = bytes / machine.read_bytes_per_s / memory_utilisation;

    let rows = tiling.x as f64 * per_block;
    let (fmas, delivered) = match variant.kernel {
        // Every lane is handed every element of B that it multiplies with.
        Kernel::Tsm2r => (rows * k * tiling.z as f64 * f64::from(variant.t2), 1.0),
        // A TM x TN tile is handed TM + TN elements a step.
        Kernel::Gemm => {
            let (tm, tn) = (f64::from(variant.t3), f64::from(variant.t2));
            (rows * tm * tn * k, (tm + tn) / (tm * tn))
        }
    };
    let rate = fma_rate(machine, problem.dtype)
        * (active * per_block * f64::from(variant.t2)
            / fmas_needed_in_flight(machine, fma_rate(machine, problem.dtype)))
        .min(1.0);
    let arithmetic_s = fmas / rate / ARITHMETIC_SHARE;
    let delivery_s = fmas * delivered * e / (DELIVERED_BYTES_PER_CYCLE * machine.clock_hz * active.min(1.0) * sms);

    let slot_bytes = if splits > 1 { m * n * f64::from(splits) * e } else { 0.0 };
    let slots_s = slot_bytes / machine.write_bytes_per_s
        + slot_bytes / machine.read_bytes_per_s
        + if splits > 1 { machine.launch_s } else { 0.0 };
    let seconds = memory_s.max(arithmetic_s).max(delivery_s) / wave_filling(blocks, wave)
        + slots_s
        + m * n * e / machine.write_bytes_per_s
        + machine.launch_s;
    Estimate { resident, memory_utilisation, seconds }
}

/// Elements of A that a thread has in flight: t3, halved where a thread waits for them before it asks for more.
fn loads_in_flight(variant: &Variant) -> f64 {
    match variant.name {
        "tsm2r_prefetch" => f64::from(variant.t3),
        "gemm_tiled" => f64::from(variant.t3) / 4.0,
        _ => (f64::from(variant.t3) / 2.0).max(1.0),
    }
}

/// Share of the machine that whole waves of blocks keep busy; 1 for a single wave, whose blocks share the memory evenly.
fn wave_filling(blocks: f64, wave: f64) -> f64 {
    if blocks <= wave {
        return 1.0;
    }
    let waves = blocks / wave;
    let whole = waves as u64 as f64;
    waves / if waves > whole { whole + 1.0 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_the_main_problem_is_723_microseconds() {
        let b = bound(&Problem::column_major(Dtype::F64, 20480, 16, 20480), &Machine::H200);
        assert!((b.seconds() - 723e-6).abs() <= 1.5e-6, "{}", b.seconds());
        assert!(b.memory_s > b.arithmetic_s);
    }

    #[test]
    fn f64_is_compute_bound_from_30_columns_on() {
        let at = |n| bound(&Problem::column_major(Dtype::F64, 20480, n, 20480), &Machine::H200);
        assert!(at(28).memory_s > at(28).arithmetic_s);
        assert!(at(30).memory_s < at(30).arithmetic_s);
    }

    #[test]
    fn only_the_last_wave_can_be_half_full() {
        assert_eq!(wave_filling(100.0, 528.0), 1.0);
        assert_eq!(wave_filling(528.0, 528.0), 1.0);
        assert_eq!(wave_filling(1056.0, 528.0), 1.0);
        assert_eq!(wave_filling(792.0, 528.0), 0.75);
    }
}
