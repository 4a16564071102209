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

/// Share of the vector units' rate that loops with loads in them reach.
const ARITHMETIC_SHARE: f64 = 0.85;
/// Share of A that comes from memory again when another group of columns reads it; the rest is still in a cache.
const READ_AGAIN: f64 = 0.78;
/// Cost of a slot's bytes against those of C and A: short accesses, and the second kernel starts with nothing in flight.
const SLOT_COST: f64 = 1.7;
/// How much of the wait for the SMs with one block more than the others shows: most of it is used by the others.
const UNEVEN: f64 = 0.15;

/// Bytes a cycle that an SM's lanes are handed of B, a broadcast counted a lane.
///
/// # Source
/// Fitted, with the constants above, to 4083 timings of all TSM2R entries on an H200: five shapes, n of 1 to 24, 1 to
/// 64 splits. The entry with the least estimate was 0.98 as fast as the fastest on average, 0.84 at worst.
fn delivered_bytes_per_cycle(variant: &Variant) -> f64 {
    match (variant.wide_shared, variant.dtype) {
        (true, Dtype::F32) => 172.0,
        (true, Dtype::F64) => 193.0,
        (false, _) => 70.0,
    }
}

/// What an entry does to the machine: the terms of its time, for one number of splits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Blocks an SM holds.
    pub resident: u32,
    /// Share of the bandwidth that the bytes in flight draw while the machine is full (TSM2X, Eq. (6), without its edge).
    pub memory_utilisation: f64,
    /// Expected time, s.
    pub seconds: f64,
}

/// The expected time of an entry that cuts k into `splits` parts: its waves of blocks, the slots, C and the launches.
///
/// A wave of `b` blocks takes (bandwidth³ + latency³ + delivery³ + arithmetic³)^⅓: the largest of what each alone would
/// cost, rounded off where two are alike. Bandwidth: the blocks' bytes at the machine's rate. Latency: the same bytes at
/// the rate of Little's law, in flight / latency. Delivery: B from shared memory or cache to every lane.
///
/// # Source
/// TSM2X, Eqs. (3) to (12), takes the largest; waves, delivery and slots are ours.
pub fn estimate(variant: &Variant, tiling: &Tiling, splits: u32, problem: &Problem, machine: &Machine) -> Estimate {
    let e = problem.dtype.bytes() as f64;
    let c_len = problem.m as f64 * problem.n as f64;
    let resident = resident_blocks(machine, variant.threads, registers(variant, machine), tiling.shared_bytes).max(1);
    let blocks = tiling.x.saturating_mul(tiling.z).saturating_mul(u64::from(splits));
    let wave = u64::from(resident) * u64::from(machine.sms);
    let block = Block::new(variant, tiling, blocks, splits, problem);
    let waves_s = (blocks / wave) as f64 * block.wave_s(wave, machine) + block.wave_s(blocks % wave, machine);

    let (mut slots_s, mut launches) = (0.0, 1.0);
    if splits > 1 {
        let each_way_s = 1.0 / machine.write_bytes_per_s + 1.0 / machine.read_bytes_per_s;
        slots_s = SLOT_COST * c_len * f64::from(splits) * e * each_way_s;
        launches = 2.0;
    }
    let seconds = waves_s + slots_s + c_len * e / machine.write_bytes_per_s + launches * machine.launch_s;
    let in_flight = block.in_flight_bytes * (blocks.min(wave) as f64 / f64::from(machine.sms));
    let need = bytes_needed_in_flight(machine);
    Estimate { resident, memory_utilisation: in_flight / root_of_cubes(&[in_flight, need]), seconds }
}

/// What one block of an entry moves and computes.
struct Block {
    bytes: f64,
    in_flight_bytes: f64,
    delivered_bytes: f64,
    delivered_bytes_per_cycle: f64,
    fmas: f64,
    /// Chains of multiply-adds that are independent of each other.
    chains: f64,
    dtype: Dtype,
}

impl Block {
    fn new(variant: &Variant, tiling: &Tiling, blocks: u64, splits: u32, problem: &Problem) -> Block {
        let e = problem.dtype.bytes() as f64;
        let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
        let threads = f64::from(variant.threads);
        let (t2, t3) = (f64::from(variant.t2), f64::from(variant.t3));
        let part = k / f64::from(splits);
        let (fmas, delivered) = match variant.kernel {
            // Every lane is handed every element of B that it multiplies with.
            Kernel::Tsm2r if variant.name == "tsm2r_inner" => (threads * n * part, 1.0),
            Kernel::Tsm2r => (threads * t2 * part, 1.0),
            // A TM x TN tile is handed TM + TN elements a step.
            Kernel::Gemm => (threads * t3 * t2 * part, (t3 + t2) / (t3 * t2)),
        };
        let a_bytes = m * k * (1.0 + (tiling.a_reads as f64 - 1.0) * READ_AGAIN) * e;
        Block {
            bytes: (a_bytes + k * n * e) / blocks as f64,
            in_flight_bytes: threads * loads_in_flight(variant) * e,
            delivered_bytes: fmas * delivered * e,
            delivered_bytes_per_cycle: delivered_bytes_per_cycle(variant),
            fmas,
            chains: threads * if variant.kernel == Kernel::Gemm { t2 * t3 } else { t2 },
            dtype: problem.dtype,
        }
    }

    /// Time of `blocks` that run at once, s.
    fn wave_s(&self, blocks: u64, machine: &Machine) -> f64 {
        if blocks == 0 {
            return 0.0;
        }
        let sms = f64::from(machine.sms);
        let an_sm = blocks as f64 / sms;
        let fullest_sm = blocks.div_ceil(u64::from(machine.sms)) as f64;
        let bandwidth_s = blocks as f64 * self.bytes / machine.read_bytes_per_s;
        let latency_s = bandwidth_s * bytes_needed_in_flight(machine) / (an_sm * self.in_flight_bytes);
        let delivery_s = fullest_sm * self.delivered_bytes / (self.delivered_bytes_per_cycle * machine.clock_hz);
        let rate = fma_rate(machine, self.dtype);
        let busy = (fullest_sm * self.chains / fmas_needed_in_flight(machine, rate)).min(1.0);
        let arithmetic_s = fullest_sm * sms * self.fmas / (rate * busy * ARITHMETIC_SHARE);
        let uneven = if an_sm > 1.0 { UNEVEN * (fullest_sm / an_sm - 1.0) } else { 0.0 };
        root_of_cubes(&[bandwidth_s, latency_s, delivery_s, arithmetic_s]) * (1.0 + uneven)
    }
}

/// Elements of A that a thread has in flight: T3, and four steps of a plain loop, which the compiler unrolls.
fn loads_in_flight(variant: &Variant) -> f64 {
    match (variant.kernel, variant.t3) {
        (Kernel::Tsm2r, 1) => 4.0,
        (Kernel::Tsm2r, t3) => f64::from(t3),
        (Kernel::Gemm, tm) => f64::from(tm) / 4.0,
    }
}

/// (Σ terms³)^⅓, a maximum without edges; 0 if all terms are.
fn root_of_cubes(terms: &[f64]) -> f64 {
    let largest = terms.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest <= 0.0 {
        return 0.0;
    }
    let sum: f64 = terms.iter().map(|t| (t / largest) * (t / largest) * (t / largest)).sum();
    // Newton's iteration for the cube root of 1 ..= terms.len(), from its tangent at 1: there is none in core. It comes
    // from above, and has settled after eight steps for any sum below 30.
    let root = (0..8).fold((sum + 2.0) / 3.0, |r, _| (2.0 * r + sum / (r * r)) / 3.0);
    largest * root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tiling;

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
    fn the_largest_term_counts() {
        assert_eq!(root_of_cubes(&[0.0, 0.0]), 0.0);
        for (terms, root) in [(&[3.0, 4.0, 5.0][..], 6.0), (&[7.0][..], 7.0), (&[1e-9; 8][..], 2e-9), (&[1.0; 27], 3.0)]
        {
            assert!((root_of_cubes(terms) / root - 1.0).abs() <= 1e-9, "{terms:?}: {}", root_of_cubes(terms));
        }
    }

    /// Entry, (m, n, k) with column-major operands, splits, seconds: an H200, driver 580.159, medians of five by events.
    /// Launches that fill the machine; those that starve it take up to 1.3 times the estimate.
    const MEASURED: &[(&str, [u64; 3], u32, f64)] = &[
        ("dtsm2r_prefetch_1x2_u16_t128", [20480, 2, 20480], 1, 1113e-6),
        ("dtsm2r_prefetch_1x2_u16_t128", [20480, 2, 20480], 2, 782e-6),
        ("dtsm2r_prefetch_1x2_u16_t128", [20480, 2, 20480], 4, 745e-6),
        ("dtsm2r_prefetch_1x2_u16_t128", [20480, 2, 20480], 6, 831e-6),
        ("dtsm2r_prefetch_1x2_u16_t128", [1024, 2, 1_000_000], 64, 1778e-6),
        ("dtsm2r_prefetch_1x4_u16_t128", [1_000_000, 4, 512], 1, 967e-6),
        ("dtsm2r_prefetch_1x4_u16_t128", [10240, 4, 10240], 8, 200e-6),
        ("dtsm2r_prefetch_1x8_u12_t128", [20480, 8, 20480], 4, 779e-6),
        ("dtsm2r_prefetch_1x16_u8_t128", [20480, 16, 20480], 16, 1305e-6),
        ("dtsm2r_shared_rowmajor_1x8_u4_t128", [20480, 8, 20480], 8, 767e-6),
        ("dtsm2r_outer_1x8_u1_t128", [20480, 8, 20480], 8, 1461e-6),
        ("dtsm2r_inner_1x1_u1_t128", [20480, 2, 20480], 8, 1609e-6),
        ("stsm2r_prefetch_1x4_u32_t128", [20480, 4, 20480], 4, 394e-6),
        ("stsm2r_prefetch_1x8_u32_t128", [1_000_000, 8, 512], 1, 534e-6),
        ("stsm2r_prefetch_1x16_u32_t128", [20480, 16, 20480], 8, 665e-6),
    ];

    #[test]
    fn estimates_are_what_an_h200_took() {
        for (entry, [m, n, k], splits, measured) in MEASURED {
            let Some(v) = crate::VARIANTS.iter().find(|v| v.entry == *entry) else { panic!("{entry}") };
            let e =
                estimate(v, &tiling(v, *m, *n), *splits, &Problem::column_major(v.dtype, *m, *n, *k), &Machine::H200);
            let ratio = e.seconds / measured;
            assert!((0.8..=1.2).contains(&ratio), "{entry} {m} {n} {k} in {splits}: {} for {measured}", e.seconds);
        }
    }
}
