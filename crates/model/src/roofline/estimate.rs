//! What an entry is expected to take.

use super::cubes::root_of_cubes;
use super::ends::Ends;
use super::fma_rate;
use super::terms::{Terms, Wave};
use crate::launch::Tiling;
use crate::occupancy::{bytes_needed_in_flight, fmas_needed_in_flight, registers, resident_blocks};
use crate::{Dtype, Kernel, Machine, Problem, Variant};

/// Share of the vector units' rate that loops with loads in them reach.
const ARITHMETIC_SHARE: f64 = 0.85;
/// Share of the matrix units' rate that loops with loads from shared memory in them reach.
const MMA_SHARE: f64 = 0.8;
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

/// Most parts that k is cut into.
pub(crate) const MOST_SPLITS: u32 = 256;
/// Most waves that k is cut for.
const MOST_WAVES: u64 = 8;

/// More than sums in another order round otherwise.
const ROUNDING: f64 = 1e-12;

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

/// The expected time of an entry that cuts k into `splits` parts; many numbers of splits are cheaper by an [`Estimator`].
pub fn estimate(variant: &Variant, tiling: &Tiling, splits: u32, problem: &Problem, machine: &Machine) -> Estimate {
    Estimator::new(variant, tiling, problem, machine).estimate(splits)
}

/// The expected times of an entry: its waves of blocks, the slots, C and the launches.
///
/// A wave of `b` blocks takes (bandwidth³ + latency³ + delivery³ + arithmetic³)^⅓: the largest of what each alone would
/// cost, rounded off where two are alike. Bandwidth: the blocks' bytes at the machine's rate. Latency: the same bytes at
/// the rate of Little's law, in flight / latency. Delivery: B from shared memory or cache to every lane. A block of one
/// of `splits` parts moves and computes 1/splits of what a block of the whole k does, and a wave of them takes 1/splits
/// of its time. On top come the slots, C, the launches, and what a block of a ring takes to begin and to end, as far as its
/// SM holds no others that fill the time.
///
/// # Source
/// TSM2X, Eqs. (3) to (12), takes the largest; waves, delivery, slots and ends are ours.
pub struct Estimator<'a> {
    machine: &'a Machine,
    resident: u32,
    /// Blocks that run at once.
    wave: u64,
    /// Blocks, k whole.
    blocks: u64,
    block: Block,
    /// Most parts that k is cut into.
    most_splits: u32,
    /// Time of a full wave, k whole, s.
    full_wave_s: f64,
    /// What the waves take at least, s.
    least_waves_s: f64,
    /// Time of a slot of each element of C, s.
    slot_s: f64,
    /// Time that no number of splits changes, s.
    fixed_s: f64,
}

impl<'a> Estimator<'a> {
    /// Of an entry for a problem on a machine.
    pub fn new(variant: &Variant, tiling: &Tiling, problem: &Problem, machine: &'a Machine) -> Self {
        Self::with_registers(registers(variant, machine), variant, tiling, problem, machine)
    }

    /// The same where the registers of its threads are known.
    pub(crate) fn with_registers(
        registers: u32,
        variant: &Variant,
        tiling: &Tiling,
        problem: &Problem,
        machine: &'a Machine,
    ) -> Self {
        let c_bytes = problem.m as f64 * problem.n as f64 * problem.dtype.bytes() as f64;
        let resident = resident_blocks(machine, variant.threads, registers, tiling.shared_bytes).max(1);
        let wave = (u64::from(resident) * u64::from(machine.sms)).max(1);
        let blocks = tiling.x.saturating_mul(tiling.z);
        let block = Block::new(variant, tiling, blocks, problem, machine);
        let steps = problem.k.div_ceil(u64::from(tiling.k_step));
        // Past a few waves, unevenness of the last one is lost among them, and each part costs a slot.
        let filling = (MOST_WAVES * wave).div_ceil(blocks.max(1));
        let most_splits = u32::try_from(steps.min(filling)).unwrap_or(MOST_SPLITS).clamp(1, MOST_SPLITS);
        let full_wave_s = block.wave(wave, machine).seconds();
        // No block takes less than its share of a full wave, and a wave of few blocks takes its latency.
        let shares_s = blocks as f64 / wave as f64 * full_wave_s;
        let each_way_s = 1.0 / machine.write_bytes_per_s + 1.0 / machine.read_bytes_per_s;
        Estimator {
            machine,
            resident,
            wave,
            blocks,
            most_splits,
            full_wave_s,
            least_waves_s: shares_s.max(block.least_waves_s(blocks, most_splits, machine)),
            block,
            slot_s: SLOT_COST * c_bytes * each_way_s,
            fixed_s: c_bytes / machine.write_bytes_per_s + machine.launch_s,
        }
    }

    /// The expected time with k in `splits` parts, s.
    pub fn seconds(&self, splits: u32) -> f64 {
        self.seconds_within(splits, f64::INFINITY)
    }

    /// As [`Estimator::seconds`]; infinity where the largest terms, which are sooner added up, exceed `limit` already.
    pub fn seconds_within(&self, splits: u32, limit: f64) -> f64 {
        let blocks = self.blocks.saturating_mul(u64::from(splits));
        let part = 1.0 / f64::from(splits);
        let full_s = (blocks / self.wave) as f64 * self.full_wave_s;
        let last = self.block.wave(blocks % self.wave, self.machine);
        let rest_s = self.fixed_s + self.slots_s(splits) + self.turns_s(blocks, splits);
        if ((full_s + last.least_s()) * part + rest_s) * (1.0 - ROUNDING) > limit {
            return f64::INFINITY;
        }
        (full_s + last.seconds()) * part + rest_s
    }

    /// Why it takes as long as it does.
    pub fn terms(&self, splits: u32) -> Terms {
        let blocks = self.blocks.saturating_mul(u64::from(splits));
        let (full, last) =
            (self.block.wave(self.wave, self.machine), self.block.wave(blocks % self.wave, self.machine));
        let waves = (blocks / self.wave) as f64;
        let of = |at: usize| (waves * full.terms_s[at] + last.terms_s[at]) / f64::from(splits);
        Terms {
            bandwidth_s: of(0),
            latency_s: of(1),
            delivery_s: of(2),
            arithmetic_s: of(3),
            overhead_s: self.fixed_s + self.slots_s(splits) + self.turns_s(blocks, splits),
        }
    }

    /// What of the time in which blocks begin and end is not filled by other blocks of their SM, in all waves, s.
    fn turns_s(&self, blocks: u64, splits: u32) -> f64 {
        let last_an_sm = (blocks % self.wave).div_ceil(u64::from(self.machine.sms)) as f64;
        let last = if last_an_sm > 0.0 { 1.0 / last_an_sm } else { 0.0 };
        self.block.ends.seconds(splits) * ((blocks / self.wave) as f64 / f64::from(self.resident) + last)
    }

    /// The numbers of parts that k may be cut into, ascending: all up to 32, and of more those after which another part
    /// gives some SM one block more; no more than its steps, than 256, and than fill the machine eight times.
    pub fn splits(&self) -> impl Iterator<Item = u32> + '_ {
        let (sms, blocks) = (u64::from(self.machine.sms), self.blocks.max(1));
        let next = move |splits: &u32| match *splits {
            splits if splits >= self.most_splits => None,
            splits if splits < 32 => Some(splits + 1),
            splits => {
                let fullest_sm = blocks.saturating_mul(u64::from(splits) + 1).div_ceil(sms);
                let filled = fullest_sm.saturating_mul(sms) / blocks;
                Some(u32::try_from(filled).unwrap_or(u32::MAX).clamp(splits + 1, self.most_splits))
            }
        };
        core::iter::successors(Some(1), next)
    }

    /// The most of [`Estimator::splits`].
    pub fn most_splits(&self) -> u32 {
        self.most_splits
    }

    /// What no time with k in `splits` parts or more is below, s.
    pub fn least_s(&self, splits: u32) -> f64 {
        // Slots are only ever added.
        (self.least_waves_s + self.fixed_s + self.slots_s(splits)) * (1.0 - ROUNDING)
    }

    /// Time of the slots and of the launch that adds them, s.
    fn slots_s(&self, splits: u32) -> f64 {
        if splits > 1 { self.slot_s * f64::from(splits) + self.machine.launch_s } else { 0.0 }
    }

    /// The estimate with k in `splits` parts.
    pub fn estimate(&self, splits: u32) -> Estimate {
        let busy = self.blocks.saturating_mul(u64::from(splits)).min(self.wave);
        let in_flight = self.block.in_flight_bytes * (busy as f64 / f64::from(self.machine.sms));
        let need = bytes_needed_in_flight(self.machine);
        Estimate {
            resident: self.resident,
            memory_utilisation: in_flight / root_of_cubes(&[in_flight, need]),
            seconds: self.seconds(splits),
        }
    }
}

/// What one block of an entry moves and computes, k whole, and the times that follow from it.
struct Block {
    /// Whether it is of [`Kernel::Ring`]: so much in flight that its SM, and not the block, sets its rate.
    in_rings: bool,
    in_flight_bytes: f64,
    /// Time of a block's bytes at the machine's whole bandwidth, s.
    bandwidth_s: f64,
    /// Time of a wave's bytes at the rate of Little's law, s: more blocks have as much more in flight.
    latency_s: f64,
    /// Time to hand a block's lanes their elements of B, s.
    delivery_s: f64,
    /// Time of a block's multiply-adds on its SM, s.
    arithmetic_s: f64,
    /// Share of the multiply-adds that must be in flight on an SM that a block has.
    busy: f64,
    ends: Ends,
}

impl Block {
    fn new(variant: &Variant, tiling: &Tiling, blocks: u64, problem: &Problem, machine: &Machine) -> Block {
        let e = problem.dtype.bytes() as f64;
        let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
        let threads = f64::from(variant.threads);
        let (t2, t3, rows) = (f64::from(variant.t2), f64::from(variant.t3), f64::from(variant.rows));
        let (fmas, delivered) = match variant.kernel {
            // Every lane is handed every element of B that it multiplies with.
            Kernel::Tsm2r if variant.name == "tsm2r_inner" => (threads * n * k, 1.0),
            Kernel::Tsm2r => (threads * t2 * k, 1.0),
            Kernel::Ring => (rows * t2 * k, ring_delivered(variant)),
            // A TM x TN tile is handed TM + TN elements a step.
            Kernel::Gemm => (threads * t3 * t2 * k, (t3 + t2) / (t3 * t2)),
        };
        let chains = match variant.kernel {
            Kernel::Gemm => threads * t2 * t3,
            Kernel::Ring => rows * t2,
            Kernel::Tsm2r => threads * t2,
        };
        let a_bytes = m * k * (1.0 + (tiling.a_reads as f64 - 1.0) * READ_AGAIN) * e * detour(variant, problem);
        let bandwidth_s = (a_bytes + k * n * e) / blocks as f64 / machine.read_bytes_per_s;
        let in_flight_bytes = e * match variant.kernel {
            Kernel::Ring => f64::from(variant.stages - 1) * rows * t3,
            _ => threads * loads_in_flight(variant),
        };
        let sms = f64::from(machine.sms);
        let rate = if variant.mma { machine.mma_f64_per_s } else { fma_rate(machine, problem.dtype) };
        let share = if variant.mma { MMA_SHARE } else { ARITHMETIC_SHARE };
        Block {
            in_rings: variant.kernel == Kernel::Ring,
            in_flight_bytes,
            bandwidth_s,
            latency_s: bandwidth_s * sms * bytes_needed_in_flight(machine) / in_flight_bytes,
            delivery_s: fmas * delivered * e / (delivered_bytes_per_cycle(variant) * machine.clock_hz),
            arithmetic_s: sms * fmas / (rate * share),
            busy: chains / fmas_needed_in_flight(machine, rate),
            ends: Ends::of(variant, problem, machine, rate * share),
        }
    }

    /// What the waves of `blocks` take at least, whatever k is cut into up to `most_splits` parts, s.
    ///
    /// The times of several waves add up to no less than a wave of the sums of their terms would take; there is at
    /// least one wave, of at least one block on the fullest SM.
    fn least_waves_s(&self, blocks: u64, most_splits: u32, machine: &Machine) -> f64 {
        let part = 1.0 / f64::from(most_splits);
        let fullest_sm = (blocks as f64 / f64::from(machine.sms)).max(part);
        let arithmetic_s = (fullest_sm * self.arithmetic_s).max(self.arithmetic_s / self.busy * part);
        let bandwidth_s = blocks as f64 * self.bandwidth_s;
        root_of_cubes(&[bandwidth_s, self.latency_s * part, fullest_sm * self.delivery_s, arithmetic_s])
    }

    /// What `blocks` that run at once take.
    fn wave(&self, blocks: u64, machine: &Machine) -> Wave {
        if blocks == 0 {
            return Wave { terms_s: [0.0; 4], uneven: 0.0 };
        }
        let an_sm = blocks as f64 / f64::from(machine.sms);
        let fullest_sm = blocks.div_ceil(u64::from(machine.sms)) as f64;
        // An SM draws no more than its share of the bandwidth, however much it has in flight.
        let drawing = if self.in_rings { fullest_sm * f64::from(machine.sms) } else { blocks as f64 };
        let bandwidth_s = drawing * self.bandwidth_s;
        let delivery_s = fullest_sm * self.delivery_s;
        let arithmetic_s = fullest_sm * self.arithmetic_s / (fullest_sm * self.busy).min(1.0);
        let uneven = if an_sm > 1.0 { UNEVEN * (fullest_sm / an_sm - 1.0) } else { 0.0 };
        Wave { terms_s: [bandwidth_s, self.latency_s, delivery_s, arithmetic_s], uneven }
    }
}

/// Elements of A that a thread has in flight: T3, and four steps of a plain loop, which the compiler unrolls.
fn loads_in_flight(variant: &Variant) -> f64 {
    match (variant.kernel, variant.t3) {
        (Kernel::Tsm2r, 1) => 4.0,
        (Kernel::Tsm2r, t3) => f64::from(t3),
        (Kernel::Gemm, tm) => f64::from(tm) / 4.0,
        (Kernel::Ring, _) => 0.0,
    }
}

/// Elements that shared memory hands the lanes of a [`Kernel::Ring`] entry, a multiply-add.
fn ring_delivered(variant: &Variant) -> f64 {
    let (a, b) = (f64::from(variant.own_rows()), f64::from(variant.cols));
    (a + b) / (a * b)
}

/// How many times as long reads of A take that the entry, or A's layout, makes in pieces.
///
/// # Source
/// Measured on an H200 at m = k = 20480: a thread a row with A by rows reaches 42% (f64) and 21% (f32) of what it does
/// with A by columns; a ring by rows 92% of one by columns.
fn detour(variant: &Variant, problem: &Problem) -> f64 {
    let by_rows = problem.a.row != 1 && problem.m > 1;
    match (variant.kernel, by_rows, variant.dtype) {
        (Kernel::Tsm2r, true, Dtype::F64) => 2.4,
        (Kernel::Tsm2r, true, Dtype::F32) => 4.6,
        (Kernel::Ring, true, _) => 1.12,
        (Kernel::Ring, false, _) => 1.03,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tiling;

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

    /// Blocks of one row tile each, on 132 SMs that hold 8.
    #[test]
    fn splits_are_all_few_and_then_those_that_fill() {
        let Some(v) = crate::VARIANTS.iter().find(|v| v.entry == "dtsm2r_prefetch_1x1_u16_t128") else { panic!() };
        let splits = |m, k| {
            let problem = Problem::column_major(v.dtype, m, 1, k);
            let estimator = Estimator::new(v, &tiling(v, m, 1), &problem, &Machine::H200);
            assert_eq!((estimator.splits().last(), estimator.resident), (Some(estimator.most_splits()), 8));
            estimator.splits().collect::<std::vec::Vec<u32>>()
        };
        let all = |most| (1..=most).collect::<std::vec::Vec<u32>>();
        assert_eq!(splits(128, 1_000_000), [&all(32)[..], &[132, 256]].concat());
        assert_eq!(splits(3 * 128, 1_000_000), [&all(32)[..], &[44, 88, 132, 176, 220, 256]].concat());
        assert_eq!(splits(128, 40 * 128), [&all(32)[..], &[40]].concat());
        assert_eq!(splits(1, 1), [1]);
        // 160 blocks: more than an SM's worth each, and 8 waves of 1056.
        assert_eq!(splits(20_480, 1_000_000), all(53));
    }

    /// Each term grows in the machine that lacks what it is of, and a time is between its largest and their sum.
    #[test]
    fn terms_say_what_a_time_consists_of() {
        let h200 = Machine::H200;
        let machines = [
            ("the bandwidth", Machine { read_bytes_per_s: 2e11, memory_latency_s: 1e-8, ..h200 }),
            ("what is in flight against the latency", Machine { memory_latency_s: 2e-5, ..h200 }),
            ("the multiply-adds", Machine { fma_f64_per_s: 2e11, ..h200 }),
            ("handing B to the lanes", Machine { clock_hz: 1e8, ..h200 }),
        ];
        for (resource, machine) in machines {
            let Some(v) = crate::VARIANTS.iter().find(|v| v.entry == "dtsm2r_prefetch_1x4_u16_t128") else { panic!() };
            let problem = Problem::column_major(v.dtype, 20_480, 4, 20_480);
            let estimator = Estimator::new(v, &tiling(v, 20_480, 4), &problem, &machine);
            for splits in [1, 7] {
                let (terms, seconds) = (estimator.terms(splits), estimator.seconds(splits));
                let (largest, least) = terms.largest();
                assert_eq!(largest, resource, "{terms:?}");
                let Terms { bandwidth_s, latency_s, delivery_s, arithmetic_s, overhead_s } = terms;
                let most = (bandwidth_s + latency_s + delivery_s + arithmetic_s) * (1.0 + UNEVEN) + overhead_s;
                assert!(seconds >= least + overhead_s * 0.999 && seconds <= most, "{terms:?} {seconds}");
            }
        }
    }

    #[test]
    fn no_time_is_below_the_least() {
        for (m, n, k) in [(20480, 16, 20480), (128, 4, 1_000_000), (1000, 7, 300), (100_000, 40, 65)] {
            for v in crate::VARIANTS {
                let problem = Problem::column_major(v.dtype, m, n, k);
                let estimator = Estimator::new(v, &tiling(v, m, n), &problem, &Machine::H200);
                for splits in estimator.splits() {
                    let (seconds, least) = (estimator.seconds(splits), estimator.least_s(splits));
                    assert!(least <= seconds, "{} {m} {n} {k} in {splits}: {seconds} below {least}", v.entry);
                    assert_eq!(estimator.seconds_within(splits, seconds), seconds);
                    let below = estimator.seconds_within(splits, seconds * 0.5);
                    assert!(below == seconds || below == f64::INFINITY, "{} {m} {n} {k} in {splits}: {below}", v.entry);
                }
            }
        }
    }
}
