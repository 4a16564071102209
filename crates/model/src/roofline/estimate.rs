//! What an entry is expected to take.

use super::Constants;
use super::block::Block;
use super::norm::root_of_cubes;
use super::slots::Slots;
use super::terms::{Alone, Terms};
use crate::launch::Tiling;
use crate::launch::reduced::{has_all_rows, has_tickets};
use crate::occupancy::{bytes_needed_in_flight, registers, resident_blocks};
use crate::shape::SKINNY;
use crate::{Kernel, Machine, Problem, Variant};

/// Most parts that k is cut into, where one block has all of C, or nearly.
pub(crate) const MOST_SPLITS: u32 = 2048;
/// Most parts that k is cut into of other products.
const MOST_SPLITS_OF_TILES: u32 = 256;
/// Most waves that k is cut for.
const MOST_WAVES: u64 = 8;
/// Parts of k up to which their latency is bounded apart from that of more.
const FEW_SPLITS: u32 = 16;
/// More than sums in another order round otherwise, and than roots are wrong.
const ROUNDING: f64 = 1e-9;

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

/// The expected time of an entry that cuts k into `splits` parts, s; many numbers of splits are cheaper by an [`Estimator`],
/// which has the equation.
pub fn estimate(variant: &Variant, tiling: &Tiling, splits: u32, problem: &Problem, machine: &Machine) -> Estimate {
    Estimator::new(variant, tiling, problem, machine).estimate(splits)
}

/// The expected times of an entry: its waves of blocks, the slots, C and the launches.
///
/// Blocks run in waves of as many as the machine holds. With b of them at a time, f on the fullest SM, a wave takes
///
/// ((bandwidth³ + latency³)^⁴⁄₃ + delivery⁴ + max(arithmetic, issue)⁴)^¼, where each alone would take
///
/// | term | s | symbols |
/// |---|---|---|
/// | bandwidth | b · bytes / BW | bytes: A's and B's of a block, A's as often as it is read; BW: [`Machine::read_bytes_per_s`] |
/// | latency | bytes · L / in flight | Little's law: a block draws no more than what it has in flight every L, [`Machine::memory_latency_s`] |
/// | delivery | f · handed / (h · clock) | handed: bytes that its lanes get of B, and of A through shared memory; h: [`Constants::wide_bytes_per_cycle`] |
/// | arithmetic | f · FMAs · SMs / rate | the vector or matrix units' rate, less where a wave has too few independent sums, and of the matrix units where some schedulers have more warps than others |
/// | issue | f · warps · instructions / (schedulers · clock) | what a warp issues: multiply-adds, loads, copies and [`Constants::stage_slots`]; longer where schedulers have one warp: [`Constants::lone_warp`] |
///
/// Of two tall matrices each term is as much longer as was fitted to their kinds of entries, arithmetic most where schedulers have few warps, and their
/// bandwidth counts what tiles read again as the second-level cache gives it: `reduced.rs`.
///
/// A first wave is dealt evenly, f = ⌈b / SMs⌉; a last one after full ones takes what places become free, and is nearer to
/// SMs that are full by [`Constants::crowded`]; while the blocks before it end, as many places as it leaves empty draw
/// nothing for [`Constants::drained`] of a full wave's time. So few blocks that their bytes in flight suffice draw the whole bandwidth,
/// and a last wave of few draws what it has in flight. A block of one of s parts of k moves and multiplies 1/s of what one of
/// the whole k does, and a wave of them takes 1/s of its time.
///
/// Parts of so many steps of k that their blocks lose step take longer by [`Constants::strayed`]. Blocks of a wave do not end at once: entries
/// of [`Kernel::Gemv`] lose [`Constants::uneven`] of one, whatever their number.
///
/// Kernels that walk over tiles write C, and read it, while they read A: their bandwidth has C's bytes too.
///
/// On top come the slots of the parts, 2 · s · C's bytes, or whole tiles' where blocks join them, and a launch to add them, or what the last block takes for it, of a tile or of all; C, written, and read where β is not
/// 0; the launch; and for each wave what a block of a ring takes to begin and to end, as far as its SM holds no others
/// that fill the time; of entries for vectors for each wave but the first, which a launch's time has.
///
/// # Source
/// TSM2X, Eqs. (3) to (12), takes the largest of memory and multipliers; waves, delivery, issue, slots and ends are ours.
/// The exponents are those that fitted best, of 2 to 6.
pub struct Estimator<'a> {
    machine: &'a Machine,
    /// [`Constants::crowded`] and [`Constants::drained`]; none of products without a skinny side, whose blocks share an SM's multipliers, not the memory.
    ending: (f64, f64),
    resident: u32,
    /// 1 / resident.
    per_resident: f64,
    /// Blocks that run at once.
    wave: u64,
    /// Blocks, k whole; and of them an SM.
    blocks: u64,
    all: f64,
    an_sm: f64,
    block: Block,
    /// Most parts that k is cut into.
    most_splits: u32,
    /// A full wave, k whole, what it takes at least, and where that is known what it takes, s.
    full: Alone,
    full_least_s: f64,
    full_s: Option<f64>,
    /// The same of the blocks' share of full waves, k whole, s.
    shares_s: f64,
    /// The same of a block on its own; 0 before [`Estimator::sharpen`].
    alone_s: f64,
    slots: Slots,
    /// Whether no block of an SM fills the time in which others of it begin and end: the ring of two tall matrices, whose blocks have few stages and begin together.
    begins_at_once: bool,
    /// How much longer waves take, k whole: [`Constants::strayed`].
    strayed: f64,
    /// What share of a wave is lost at the end of all: [`Constants::uneven`].
    uneven: f64,
    /// Time that no number of splits changes, s.
    fixed_s: f64,
}

/// Blocks in waves.
struct Waves {
    /// Waves that fill the machine.
    full: f64,
    /// Blocks of the last one, which does not.
    left: u64,
    /// Of them on the fullest SM, dealt evenly.
    dealt: f64,
}

impl<'a> Estimator<'a> {
    /// Of an entry for a problem on a machine.
    pub fn new(variant: &Variant, tiling: &Tiling, problem: &Problem, machine: &'a Machine) -> Self {
        Self::with(&Constants::FITTED, variant, tiling, problem, machine)
    }

    /// The same with other constants: to fit them.
    pub fn with(
        constants: &'a Constants,
        variant: &Variant,
        tiling: &Tiling,
        problem: &Problem,
        machine: &'a Machine,
    ) -> Self {
        let registers = registers(variant, machine);
        Self::of(
            constants,
            resident_blocks(machine, variant.threads, registers, tiling.shared_bytes),
            variant,
            tiling,
            problem,
            machine,
        )
    }

    /// The same where the blocks that an SM holds are known.
    #[inline(always)]
    pub(crate) fn of(
        constants: &'a Constants,
        resident: u32,
        variant: &Variant,
        tiling: &Tiling,
        problem: &Problem,
        machine: &'a Machine,
    ) -> Self {
        #[cfg(test)]
        super::work::count_estimator();
        let c_bytes = problem.m as f64 * problem.n as f64 * problem.dtype.bytes() as f64;
        let resident = resident.max(1);
        let wave = (u64::from(resident) * u64::from(machine.sms)).max(1);
        let blocks = tiling.x.saturating_mul(tiling.z);
        let all = blocks as f64;
        let an_sm = all / f64::from(machine.sms);
        let block = Block::new(variant, tiling, problem, machine, constants, wave as f64);
        let steps = problem.k.div_ceil(u64::from(tiling.k_step));
        // Past a few waves, unevenness of the last one is lost among them, and each part costs a slot.
        // Blocks of two tall matrices are alike and run all at once: more of them than places are slots for nothing.
        let (waves, most) = match variant.kernel {
            _ if variant.has_all_of_k() || !has_tickets(variant, tiling) => (0, 1),
            Kernel::Gemv => (MOST_WAVES, MOST_SPLITS),
            _ if variant.is_reduced() => (1, MOST_SPLITS),
            _ => (MOST_WAVES, MOST_SPLITS_OF_TILES),
        };
        let filling = (waves * wave).div_ceil(blocks.max(1));
        let most_splits = u32::try_from(steps.min(filling)).unwrap_or(most).clamp(1, most);
        let full = block.wave(wave as f64, f64::from(resident));
        // Roots cost much of a choice: what they are not below decides for most entries and splits.
        let full_least_s = full.least_s();
        // No block takes less than its share of a full wave in which no unit is idle, and a wave of few blocks takes its latency.
        let shares_s = all / wave as f64 * full_least_s / block.idle_units(f64::from(resident));
        let (written_s, read_s) = (c_bytes / machine.write_bytes_per_s, c_bytes / machine.read_bytes_per_s);
        Estimator {
            machine,
            ending: if variant.kernel == Kernel::GemmRing && problem.m.min(problem.n) > SKINNY {
                (0.0, 0.0)
            } else {
                (constants.crowded, constants.drained)
            },
            resident,
            per_resident: 1.0 / f64::from(resident),
            wave,
            blocks,
            all,
            an_sm,
            most_splits,
            full,
            full_least_s,
            full_s: None,
            shares_s,
            alone_s: 0.0,
            block,
            slots: Slots::new(variant, tiling, (c_bytes, written_s, read_s), machine, constants),
            begins_at_once: has_all_rows(variant, tiling),
            strayed: if variant.kernel == Kernel::Ring && variant.stages == 2 && resident == 1 {
                constants.strayed * problem.k as f64 / 1000.0
            } else {
                0.0
            },
            uneven: if variant.kernel == Kernel::Gemv { constants.uneven } else { 0.0 },
            fixed_s: machine.launch_s
                + if variant.is_two_tall() { super::reduced::ends_s(variant, problem, an_sm, machine) } else { 0.0 }
                + super::begin::begin_s(variant, problem, an_sm, machine)
                + if super::tsmm::streams(variant) {
                    0.0
                } else {
                    (written_s + if problem.reads_c { read_s } else { 0.0 }) * super::tsmm::scattered(variant, problem)
                },
        }
    }

    /// Works out what many numbers of splits have in common: bounds are nearer to the times then.
    pub(crate) fn sharpen(&mut self) {
        let full_s = self.full.seconds();
        (self.full_least_s, self.full_s) = (full_s, Some(full_s));
        self.shares_s = self.all / self.wave as f64 * full_s / self.block.idle_units(f64::from(self.resident));
        self.alone_s = self.block.wave(1.0, 1.0).least_s();
    }

    /// The expected time with k in `splits` parts, s.
    pub fn seconds(&self, splits: u32) -> f64 {
        self.seconds_within(splits, f64::INFINITY)
    }

    /// As [`Estimator::seconds`]; infinity where the largest terms, which are sooner added up, exceed `limit` already.
    pub fn seconds_within(&self, splits: u32, limit: f64) -> f64 {
        #[cfg(test)]
        super::work::count_time();
        let part = 1.0 / f64::from(splits);
        // Some wave has a block, which takes as long as on its own, and begins and ends.
        let (slots_s, ends_s) = (self.slots.seconds(splits), self.block.ends.least_s(splits, self.per_resident));
        let soonest_s = self.fixed_s + slots_s + ends_s + self.shares_s.max(self.alone_s * part);
        if soonest_s * (1.0 - ROUNDING) > limit {
            return f64::INFINITY;
        }
        let waves = self.waves(splits);
        let (fulls, last) = (self.fulls(&waves), self.last_wave(&waves));
        let rest_s = self.fixed_s + slots_s + self.turns_s(&waves, splits);
        let left_s = (limit * (1.0 + ROUNDING) - rest_s) * f64::from(splits);
        if last.is_above(left_s * (1.0 + ROUNDING) - fulls * self.full_least_s) {
            return f64::INFINITY;
        }
        let fulls_s = if fulls > 0.0 { fulls * self.full_s.unwrap_or_else(|| self.full.seconds()) } else { 0.0 };
        let last_s = last.seconds();
        let lost_s = self.uneven * if waves.full > 0.0 { fulls_s / fulls } else { last_s };
        (fulls_s + last_s + lost_s) * part * (1.0 + self.strayed * part) + rest_s
    }

    /// How the blocks of all parts are cut into waves.
    fn waves(&self, splits: u32) -> Waves {
        let blocks = self.blocks.saturating_mul(u64::from(splits));
        let (full, left) = (blocks / self.wave, blocks % self.wave);
        Waves { full: full as f64, left, dealt: left.div_ceil(u64::from(self.machine.sms)) as f64 }
    }

    /// Why it takes as long as it does.
    pub fn terms(&self, splits: u32) -> Terms {
        let waves = self.waves(splits);
        let last = self.last_wave(&waves);
        let of = |term: fn(&Alone) -> f64| (waves.full * term(&self.full) + term(&last)) / f64::from(splits);
        Terms {
            bandwidth_s: of(|alone| alone.bandwidth_s),
            latency_s: of(|alone| alone.latency_s),
            delivery_s: of(|alone| alone.delivery_s),
            arithmetic_s: of(|alone| alone.arithmetic_s),
            issue_s: of(|alone| alone.issue_s),
            overhead_s: self.fixed_s
                + self.slots.seconds(splits)
                + self.turns_s(&waves, splits)
                + (self.fulls(&waves) - waves.full) * self.full.seconds() / f64::from(splits)
                + self.uneven * if waves.full > 0.0 { self.full.seconds() } else { last.seconds() } / f64::from(splits),
        }
    }

    /// Full waves, and what part of another is lost before a last wave that leaves places empty.
    fn fulls(&self, waves: &Waves) -> f64 {
        if waves.full == 0.0 || waves.left == 0 {
            return waves.full;
        }
        waves.full + self.ending.1 * (1.0 - waves.left as f64 / self.wave as f64)
    }

    /// What the blocks take that are left after full waves.
    fn last_wave(&self, waves: &Waves) -> Alone {
        if waves.left == 0 {
            return Alone::NOTHING;
        }
        // No SM has more than there are.
        let most = u64::from(self.resident).min(waves.left) as f64;
        let crowd = if waves.full > 0.0 { self.ending.0 * (most - waves.dealt) } else { 0.0 };
        self.block.wave(waves.left as f64, waves.dealt + crowd)
    }

    /// What of the time in which blocks begin and end is not filled by other blocks of their SM, in all waves, s.
    fn turns_s(&self, waves: &Waves, splits: u32) -> f64 {
        let last = match waves.left {
            0 => 0.0,
            _ if self.begins_at_once => 1.0,
            _ => 1.0 / waves.dealt,
        };
        self.block.ends.in_waves_s(splits, waves.full, self.per_resident, last)
    }

    /// The numbers of parts that k may be cut into, ascending: all up to 32, and of more those after which another part
    /// gives some SM one block more; no more than its steps, than the kernel may have, and than fill the machine eight times.
    pub fn splits(&self) -> impl Iterator<Item = u32> + '_ {
        self.splits_of(1, self.most_splits)
    }

    /// Of [`Estimator::splits`] those from `first` to `last`, both at least 1.
    pub(crate) fn splits_of(&self, first: u32, last: u32) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.split_after(first - 1), |splits| self.split_after(*splits))
            .take_while(move |splits| *splits <= last)
    }

    /// The least of [`Estimator::splits`] that is more than `splits`.
    fn split_after(&self, splits: u32) -> Option<u32> {
        let (sms, blocks) = (u64::from(self.machine.sms), self.blocks.max(1));
        if splits >= self.most_splits {
            None
        } else if splits < 32 {
            Some(splits + 1)
        } else {
            let fullest_sm = blocks.saturating_mul(u64::from(splits) + 1).div_ceil(sms);
            let filled = fullest_sm.saturating_mul(sms) / blocks;
            Some(u32::try_from(filled).unwrap_or(u32::MAX).clamp(splits + 1, self.most_splits))
        }
    }

    /// What no number of splits takes less than, s.
    #[inline(always)]
    pub(crate) fn least_s(&self) -> f64 {
        // Where few parts take least, their latency counts, and where many do, their slots.
        let most = self.most_splits;
        let few = most.min(FEW_SPLITS);
        let mut least_s = self.least_between_s(1, 1);
        for (first, last) in [(2, few), (few + 1, most)] {
            if first <= last {
                least_s = least_s.min(self.least_between_s(first, last));
            }
        }
        least_s
    }

    /// The machine that it is of.
    pub(crate) fn machine(&self) -> &'a Machine {
        self.machine
    }

    /// Blocks that run at once on the whole machine.
    pub(crate) fn places(&self) -> u64 {
        self.wave
    }

    /// The most of [`Estimator::splits`].
    pub fn most_splits(&self) -> u32 {
        self.most_splits
    }

    /// What no time with k in `first` to `last` parts is below, s.
    pub(crate) fn least_between_s(&self, first: u32, last: u32) -> f64 {
        let waves_s = self.block.least_waves(self.all, self.an_sm, 1.0 / f64::from(last)).least_s().max(self.shares_s);
        let ends_s = self.block.ends.least_s(first, self.per_resident);
        (waves_s + ends_s + self.fixed_s + self.slots.least_from_s(first)) * (1.0 - ROUNDING)
    }

    /// What no time with k in `first` parts or more is below, sooner found: each part costs a slot.
    pub(crate) fn slots_from_s(&self, first: u32) -> f64 {
        (self.shares_s + self.fixed_s + self.slots.least_from_s(first)) * (1.0 - ROUNDING)
    }

    /// The estimate with k in `splits` parts.
    pub fn estimate(&self, splits: u32) -> Estimate {
        let busy = self.blocks.saturating_mul(u64::from(splits)).min(self.wave);
        let in_flight = self.block.in_flight_bytes * (busy as f64 / f64::from(self.machine.sms));
        let need = bytes_needed_in_flight(self.machine);
        Estimate {
            resident: self.resident,
            memory_utilisation: in_flight / root_of_cubes(in_flight, need),
            seconds: self.seconds(splits),
        }
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

    /// Entry, (m, n, k), splits, seconds, blocks that run at once: an H200, driver 580.159, benches/results/h200, with the parts
    /// that were chosen then. Fewer blocks than SMs have places draw what they have in flight; a last wave counts.
    const WAVES: &[(&str, [u64; 3], u32, f64)] = &[
        // 240 of 396 and 256 of 528, one wave, of which some SMs have one block and some two.
        ("dtsm2r_mma_16x16_n16_k32_s3_t128", [15360, 16, 3840], 1, 112.64e-6),
        ("dtsm2r_mma_16x8_n8_k32_s3_t128", [15360, 8, 1920], 1, 59.50e-6),
        // 120 of 132, one an SM, some SMs with none; the same of six parts.
        ("stsm2r_staged_8x8_n16_k16_s2_t256", [30720, 16, 3840], 4, 123.95e-6),
        ("stsm2r_staged_8x8_n16_k16_s2_t256", [20480, 16, 20480], 6, 383.07e-6),
        // 640 of 396 and 1920 of 396; 520 of 132; 520 of 528.
        ("dtsm2r_mma_16x16_n16_k32_s3_t128", [40960, 16, 40960], 1, 3070.1e-6),
        ("dtsm2r_mma_16x16_n16_k32_s3_t128", [40960, 16, 40960], 3, 2955.1e-6),
        ("stsm2r_staged_8x8_n16_k16_s2_t256", [40960, 12, 40960], 13, 1492.0e-6),
        ("stsm2r_staged_4x8_n16_k16_s3_t128", [10240, 16, 10240], 13, 113.54e-6),
    ];

    fn of_h200(entry: &str, [m, n, k]: [u64; 3], reads_c: bool) -> (&'static Variant, Problem) {
        let Some(v) = crate::VARIANTS.iter().find(|v| v.entry == entry) else { panic!("{entry}") };
        (v, Problem { reads_c, ..Problem::column_major(v.dtype, m, n, k) })
    }

    #[test]
    fn waves_are_what_an_h200_took() {
        for (entry, size, splits, measured) in WAVES {
            let (v, problem) = of_h200(entry, *size, false);
            let found = estimate(v, &tiling(v, problem.m, problem.n), *splits, &problem, &Machine::H200).seconds;
            assert!(
                (0.89..=1.11).contains(&(found / measured)),
                "{entry} {size:?} in {splits}: {found} for {measured}"
            );
        }
        // 640 blocks in 396 places take more than 1920, whose last wave is nearly full. An H200 took 4% more.
        let (v, problem) = of_h200("dtsm2r_mma_16x16_n16_k32_s3_t128", [40960, 16, 40960], false);
        let estimator = Estimator::new(v, &tiling(v, 40960, 16), &problem, &Machine::H200);
        let ratio = estimator.seconds(1) / estimator.seconds(3);
        assert!(ratio >= 1.015, "{ratio}");
        // And one wave of rings is taken where it fits: 240 or 480 of 528.
        let (_, problem) = of_h200("dtsm2r_mma_16x8_n8_k32_s3_t128", [15360, 8, 15360], false);
        let Ok(choice) = crate::choose(&problem, &Machine::H200, None) else { panic!("nothing is chosen") };
        assert!(choice.variant.name == "tsm2r_mma" && 240 * choice.splits <= 4 * 132, "{choice}");
    }

    /// An H200 on 2026-11-26: of 6 GB four waves of blocks take 1.9% less than one, of 0.4 GB one takes 4% less than three.
    #[test]
    fn a_vector_gains_by_waves_where_it_is_long() {
        let entry = "sgemv_columns_4x1_m1024n1_u8_t256";
        for (m, k, [one, more], measured) in
            [(67_002, 22_275, [4, 16], 1397.0 / 1370.7), (1000, 100_000, [264, 792], 99.9 / 103.7)]
        {
            let (v, problem) = of_h200(entry, [m, 1, k], false);
            let estimator = Estimator::new(v, &tiling(v, m, 1), &problem, &Machine::H200);
            let found = estimator.seconds(one) / estimator.seconds(more);
            assert!((found > 1.0) == (measured > 1.0) && (0.96..=1.04).contains(&(found / measured)), "{m}: {found}");
        }
    }

    /// 20480 x 4 elements of 8 bytes at 4.65 TB/s.
    #[test]
    fn reading_c_takes_its_bytes() {
        for splits in [1, 4] {
            let seconds = |reads_c| {
                let (v, problem) = of_h200("dtsm2r_prefetch_1x4_u16_t128", [20480, 4, 20480], reads_c);
                estimate(v, &tiling(v, 20480, 4), splits, &problem, &Machine::H200).seconds
            };
            let more = 20_480.0 * 4.0 * 8.0 / 4.65e12;
            assert!(((seconds(true) - seconds(false)) / more - 1.0).abs() <= 1e-6, "{splits}");
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
            ("issuing instructions", Machine { clock_hz: 1e8, register_partitions: 1, ..h200 }),
        ];
        for (resource, machine) in machines {
            let Some(v) = crate::VARIANTS.iter().find(|v| v.entry == "dtsm2r_prefetch_1x4_u16_t128") else { panic!() };
            let problem = Problem::column_major(v.dtype, 20_480, 4, 20_480);
            let estimator = Estimator::new(v, &tiling(v, 20_480, 4), &problem, &machine);
            for splits in [1, 7] {
                let (terms, seconds) = (estimator.terms(splits), estimator.seconds(splits));
                let (largest, least) = terms.largest();
                assert_eq!(largest, resource, "{terms:?}");
                let Terms { bandwidth_s, latency_s, delivery_s, arithmetic_s, issue_s, overhead_s } = terms;
                let most = bandwidth_s + latency_s + delivery_s + arithmetic_s + issue_s + overhead_s;
                assert!(seconds >= least + overhead_s * 0.999 && seconds <= most, "{terms:?} {seconds}");
            }
            // Of a vector what is lost at the end is overhead.
            let (v, problem) = of_h200("dgemv_columns_2x1_m512n1_u8_t256", [20_480, 1, 20_480], false);
            let estimator = Estimator::new(v, &tiling(v, 20_480, 1), &problem, &machine);
            for splits in [3, 7, 14] {
                let (terms, seconds) = (estimator.terms(splits), estimator.seconds(splits));
                let Terms { bandwidth_s, latency_s, delivery_s, arithmetic_s, issue_s, overhead_s } = terms;
                let most = bandwidth_s + latency_s + delivery_s + arithmetic_s + issue_s + overhead_s;
                let least = terms.largest().1 + overhead_s * 0.999;
                assert!(seconds >= least && seconds <= most, "{splits}: {terms:?} {seconds}");
            }
        }
    }

    #[test]
    fn no_time_is_below_the_least() {
        let sizes = [
            (20480, 16, 20480),
            (128, 4, 1_000_000),
            (1000, 7, 300),
            (100_000, 40, 65),
            (67_001, 1, 22_275),
            (30, 1, 1_000_000),
        ];
        for ((m, n, k), is_sharp) in sizes.into_iter().flat_map(|size| [(size, false), (size, true)]) {
            for v in crate::VARIANTS {
                let problem = Problem::column_major(v.dtype, m, n, k);
                let mut estimator = Estimator::new(v, &tiling(v, m, n), &problem, &Machine::H200);
                if is_sharp {
                    estimator.sharpen();
                }
                for splits in estimator.splits() {
                    let seconds = estimator.seconds(splits);
                    for (first, last) in
                        [(1, MOST_SPLITS), (splits, splits), (splits.div_ceil(2), splits), (splits, 2 * splits)]
                    {
                        let least = estimator.least_between_s(first, last);
                        assert!(least <= seconds, "{} {m} {n} {k} in {splits}: {seconds} below {least}", v.entry);
                    }
                    assert_eq!(
                        estimator.seconds_within(splits, seconds),
                        seconds,
                        "{} {m} {n} {k} in {splits}",
                        v.entry
                    );
                    let below = estimator.seconds_within(splits, seconds * 0.5);
                    assert!(below == seconds || below == f64::INFINITY, "{} {m} {n} {k} in {splits}: {below}", v.entry);
                }
            }
        }
    }
}
