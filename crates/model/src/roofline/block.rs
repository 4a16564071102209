//! What one block of an entry moves, multiplies and issues, and what a wave of such blocks takes.

use super::ends::Ends;
use super::gemv;
use super::issue::issue_s;
use super::reduced::Owned;
use super::rings::{by_elements_in_parts, fetched_again, ragged, short, turned};
use super::terms::Alone;
use super::{Constants, SPLIT_PRODUCTS, WARP, fma_rate};
use super::{reduced, tsmm};
use crate::launch::reduced::{folds, has_all_rows, k_step, square_side};
use crate::launch::{Tiling, copies_b, dealt, eights};
use crate::occupancy::{bytes_needed_in_flight, fmas_needed_in_flight};
use crate::{Dtype, Kernel, Machine, Problem, Variant};

/// Sums a thread from which on instructions limit a kernel that has one warp a scheduler.
const MANY_SUMS: u32 = 64;
/// How much longer instructions take for each warp of a scheduler less than three, where a warp waits for what it loads and has 32 sums, 128
/// multiply-adds a step. On an H200 on 2026-11-27, c64, 10240 x 32 x 10240 by 240 blocks of 4 warps on 132 SMs took 1.14 times what was expected
/// without it.
const LOADS: f64 = 0.15;
/// What of the matrix units' rate f32 in parts gets. On an H200 on 2026-11-30 m = k = 20480 of 32, 48 and 64 columns took 26.6 to 27.9 multiply-adds of whole elements a picosecond, 10240
/// 23 to 28 (benches/results/h200/split-variants.csv), at 700 W, which is all that the GPU may take: its clocks were at 1.7 to 1.8 GHz.
const SPLIT_SHARE: f64 = 0.33;

/// A block, k whole, and the times that follow from it.
pub(super) struct Block {
    /// Bytes of A that it has in flight.
    pub(super) in_flight_bytes: f64,
    /// Of its bytes at the machine's whole bandwidth, s.
    bandwidth_s: f64,
    /// Of its bytes at the rate of Little's law, s: however many blocks there are, each has its own in flight.
    latency_s: f64,
    /// To hand its lanes their elements, s.
    delivery_s: f64,
    /// Of its multiply-adds on its SM, s.
    arithmetic_s: f64,
    /// Of its instructions on its SM, s.
    issue_s: f64,
    /// Warps that it gives each scheduler of its SM.
    warps: f64,
    /// [`Constants::lone_warp`] of threads with many sums, and what was fitted of two tall matrices.
    lone_warp: f64,
    /// Warps of a scheduler beside which more do not hide anything.
    wanted_warps: f64,
    /// Whether its multiply-adds are the matrix units', of which each scheduler has its own.
    has_units: bool,
    /// Times of the multiply-adds as the units would take them, and as many more however many blocks there are.
    units: (f64, f64),
    /// Share of the multiply-adds that must be in flight on an SM that it has.
    busy: f64,
    /// 1 / busy.
    per_busy: f64,
    /// Of its begin and end, s.
    pub(super) ends: Ends,
}

impl Block {
    #[inline(always)]
    pub(super) fn new(
        variant: &Variant,
        tiling: &Tiling,
        problem: &Problem,
        machine: &Machine,
        constants: &Constants,
        wave: f64,
    ) -> Block {
        let e = problem.dtype.bytes() as f64;
        let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
        let blocks = tiling.x.saturating_mul(tiling.z) as f64;
        let sms = f64::from(machine.sms);
        let Work { fmas, delivered, chains, loads } = Work::of(variant, problem);
        let again = (tiling.a_reads as f64 - 1.0) * constants.read_again;
        let detour = detour(variant, problem, constants);
        let a_bytes = m * k * (1.0 + again) * e * detour;
        let b_bytes = if variant.kernel == Kernel::Gram { 0.0 } else { k * n * e };
        let drawn_s = (a_bytes + b_bytes) / blocks / machine.read_bytes_per_s;
        // Blocks that share rows or columns draw most of them from the second-level cache, all of them through it.
        let pulled_bytes = f64::from(variant.rows + variant.t2) * k * e;
        let fit = variant.is_two_tall().then(|| reduced::costs(variant));
        let sooner = if tsmm::loads_apart(variant, problem) { unqueued(detour, blocks / wave) } else { 1.0 };
        let latencies_s = drawn_s / sooner * sms * bytes_needed_in_flight(machine);
        let (bandwidth_s, latencies_s) = if variant.kernel == Kernel::GemmRing {
            (
                drawn_s.max(constants.gemm_pulls * pulled_bytes / cache_rate(machine)),
                pulled_bytes * machine.memory_latency_s,
            )
        } else if let Some(fit) = fit {
            (reduced::bandwidth_s(variant, tiling, problem, machine, detour) / blocks, latencies_s * fit.latency)
        } else {
            (drawn_s, latencies_s)
        };
        let streamed_s = tsmm::streamed_s(variant, problem, machine) / blocks;
        // Of a tile that has less rows less is on its way.
        let has_all_rows = has_all_rows(variant, tiling);
        let there = if has_all_rows { (m / f64::from(variant.rows)).min(1.0) } else { 1.0 };
        let in_flight_bytes = e * loads * there;
        let latencies = if variant.kernel == Kernel::Ring { constants.ring_latencies } else { 1.0 };
        // Where there are no such units their instructions are the vector units' work.
        let units = if variant.splits_f32() { machine.mma_tf32_per_s } else { machine.mma_f64_per_s };
        let has_units = variant.mma && units > 0.0;
        let rate = match has_units {
            true if variant.splits_f32() => {
                units / SPLIT_PRODUCTS * SPLIT_SHARE / by_elements_in_parts(variant, problem)
            }
            true => units,
            false => fma_rate(machine, problem.dtype),
        };
        let share = match variant.mma && !variant.splits_f32() {
            true => constants.mma_share / turned(variant, problem) / short(variant, problem),
            false => 1.0,
        };
        // A vector is loaded by 16 bytes too, from the first-level cache.
        let wide = variant.wide_shared || variant.kernel == Kernel::Gemv;
        let handed = match (variant.kernel, wide) {
            (Kernel::Tsmttsm | Kernel::Gram, _) => reduced::BYTES_PER_CYCLE,
            (Kernel::Ring | Kernel::GemmRing, _) => constants.ring_bytes_per_cycle,
            (_, true) => constants.wide_bytes_per_cycle,
            (_, false) => constants.narrow_bytes_per_cycle,
        };
        let warps = f64::from(variant.threads) / WARP / f64::from(machine.register_partitions);
        let needed_fmas = fmas_needed_in_flight(machine, rate);
        let large_tile = variant.kernel == Kernel::Ring && variant.own_rows() * variant.cols >= MANY_SUMS;
        let waits = match variant.kernel {
            Kernel::Ring => copies_b(variant) && variant.cols == 4,
            Kernel::GemmRing => variant.dtype == Dtype::C64,
            _ => false,
        };
        Block {
            in_flight_bytes,
            bandwidth_s: bandwidth_s + streamed_s,
            latency_s: latencies * latencies_s / in_flight_bytes,
            delivery_s: fmas / f64::from(problem.dtype.fmas()) * delivered * e / (handed * machine.clock_hz),
            arithmetic_s: sms * fmas / (rate * share),
            issue_s: issue_s(variant, problem, machine, constants),
            units: fit.map_or((1.0, 0.0), |fit| (fit.units.0, fit.units.1 / warps)),
            warps,
            lone_warp: match fit {
                _ if waits => LOADS,
                _ if large_tile => constants.lone_warp,
                fit => fit.map_or(0.0, |fit| fit.lone_warp),
            },
            wanted_warps: match waits {
                true => 3.0,
                false if variant.is_fitted() => 4.0,
                false => 2.0,
            },
            has_units,
            busy: chains / needed_fmas,
            per_busy: needed_fmas / chains,
            ends: Ends::of(variant, problem, machine, rate, constants),
        }
    }

    /// What a wave of `blocks` takes, of which the fullest SM has `fullest_sm`.
    pub(super) fn wave(&self, blocks: f64, fullest_sm: f64) -> Alone {
        let (multiplied_s, busy) =
            (self.multiplied_s(fullest_sm) * self.idle_units(fullest_sm), fullest_sm * self.busy);
        Alone {
            bandwidth_s: blocks * self.bandwidth_s,
            latency_s: self.latency_s,
            delivery_s: fullest_sm * self.delivery_s,
            arithmetic_s: if busy < 1.0 { multiplied_s / busy } else { multiplied_s },
            issue_s: fullest_sm * self.issue_s * self.unfilled(fullest_sm),
        }
    }

    /// What an SM takes for the multiply-adds of so many blocks.
    fn multiplied_s(&self, blocks: f64) -> f64 {
        self.arithmetic_s * (self.units.0 * blocks + self.units.1)
    }

    /// How many times as long the matrix units take because some schedulers of an SM have more warps than others.
    pub(super) fn idle_units(&self, blocks: f64) -> f64 {
        if !self.has_units {
            return 1.0;
        }
        let warps = ceil(blocks) * self.warps;
        ceil(warps) / warps
    }

    /// How many times as long instructions take because the schedulers of an SM with so many blocks have too few warps.
    fn unfilled(&self, blocks: f64) -> f64 {
        1.0 + self.lone_warp * (self.wanted_warps - blocks * self.warps).clamp(0.0, self.wanted_warps - 1.0)
    }

    /// A wave that takes no longer than all waves of `blocks` do, `an_sm` on average, whatever k is cut into as long as `part` is the
    /// least part of it.
    ///
    /// The times of several waves add up to no less than a wave of the sums of their terms would take; there is at
    /// least one wave, of at least one block on the fullest SM.
    pub(super) fn least_waves(&self, blocks: f64, an_sm: f64, part: f64) -> Alone {
        let fullest_sm = an_sm.max(part);
        Alone {
            bandwidth_s: blocks * self.bandwidth_s,
            latency_s: self.latency_s * part,
            delivery_s: fullest_sm * self.delivery_s,
            arithmetic_s: self.arithmetic_s * self.units.0 * fullest_sm.max(part * self.per_busy),
            issue_s: fullest_sm * self.issue_s,
        }
    }
}

/// How many times as long loads are thought to take that are longer for what the memory moves beside what they ask for, where `full` is a wave's share that there is:
/// nobody waits behind the bytes of blocks that are not there.
///
/// # Source
/// An H200 on 2026-11-29 in graphs (benches/results/trials/few-rows.csv): f32 by rows, 100 to 3333 x 8 of 32 steps by `tsmm_element`, took 3.5 to 4.9 us where 11 to 13 were expected.
fn unqueued(detour: f64, full: f64) -> f64 {
    detour / (1.0 + (detour - 1.0) * full.min(1.0))
}

/// The least whole number that is no less than a positive one.
fn ceil(x: f64) -> f64 {
    let whole = x as u64 as f64;
    if whole < x { whole + 1.0 } else { whole }
}

/// Bytes a second from the second-level cache; where nobody has measured it, as from the memory twice.
pub(super) fn cache_rate(machine: &Machine) -> f64 {
    let measured = machine.l2_read_bytes_per_s;
    if measured > 0.0 { measured } else { 2.0 * machine.read_bytes_per_s }
}

/// What is counted of a block, k whole.
pub(super) struct Work {
    /// Of real numbers.
    pub(super) fmas: f64,
    /// Elements that shared memory or cache hands the lanes, a product of two.
    pub(super) delivered: f64,
    /// Independent sums: of a complex one both parts.
    pub(super) chains: f64,
    /// Elements of A in flight.
    pub(super) loads: f64,
}

impl Work {
    fn of(variant: &Variant, problem: &Problem) -> Work {
        let parts = if variant.dtype.is_complex() { 2.0 } else { 1.0 };
        let work = Work::of_elements(variant, problem);
        Work { fmas: work.fmas * f64::from(variant.dtype.fmas()), chains: work.chains * parts, ..work }
    }

    fn of_elements(variant: &Variant, problem: &Problem) -> Work {
        let (n, k) = (problem.n as f64, problem.k as f64);
        let (threads, rows) = (f64::from(variant.threads), f64::from(variant.rows));
        let (t2, t3) = (f64::from(variant.t2), f64::from(variant.t3));
        match variant.kernel {
            // Every lane is handed every element of B that it multiplies with.
            Kernel::Tsm2r => {
                let columns = if variant.name == "tsm2r_inner" { n } else { t2 };
                // T3, and four steps of a plain loop, which the compiler unrolls.
                let loads = threads * if variant.t3 == 1 { 4.0 } else { t3 };
                Work { fmas: threads * columns * k, delivered: 1.0, chains: threads * t2, loads }
            }
            // A TM x TN tile is handed TM + TN elements a step.
            Kernel::Ring => {
                let (a, b) = (f64::from(variant.own_rows()), f64::from(variant.cols));
                let loads = f64::from(variant.stages - 1) * rows * t3;
                Work { fmas: rows * t2 * k, delivered: (a + b) / (a * b), chains: rows * t2, loads }
            }
            // A thread's own elements of both tiles a step; two tiles on their way, or the loads of an unrolled loop.
            Kernel::Ladder => {
                let own = f64::from(variant.cols);
                let loads = if variant.stages == 0 { threads * 4.0 } else { rows * t3 };
                Work { fmas: rows * t2 * k, delivered: 2.0 / own, chains: rows * t2, loads }
            }
            // The same, with both operands on their way.
            Kernel::GemmRing => {
                let (a, b) = (f64::from(variant.own_rows()), f64::from(variant.cols));
                let loads = f64::from(variant.stages - 1) * (rows + t2) * t3;
                Work { fmas: rows * t2 * k, delivered: (a + b) / (a * b), chains: rows * t2, loads }
            }
            Kernel::Tsmm | Kernel::Tall => {
                let (fmas, delivered, chains, loads) = tsmm::work(variant, problem);
                Work { fmas, delivered, chains, loads }
            }
            Kernel::Gemm => {
                let (sums, loads) = (threads * t2 * t3, threads * t3 / 4.0);
                Work { fmas: sums * k, delivered: (t3 + t2) / (t3 * t2), chains: sums, loads }
            }
            Kernel::Tsmttsm | Kernel::Gram => Work::of_reduced(variant, problem),
            Kernel::Gemv => gemv::work(variant, problem),
        }
    }
}

impl Work {
    /// Of two tall matrices: both stream, and each group of threads has its own rows of them in flight.
    fn of_reduced(variant: &Variant, problem: &Problem) -> Work {
        let Owned { rows, cols, groups, sums, steps_ahead } = Owned::of(variant, problem);
        let a = f64::from(variant.own_rows());
        let lines = if problem.gram { 1.0 } else { 2.0 };
        let wide = (rows.min(problem.m as f64) + cols.min(problem.n as f64)) * lines / 2.0;
        // Below the diagonal, and what lies on it: squares, or a warp's where there are several.
        let diagonal = if a < rows { a } else { f64::from(square_side(variant.dtype)) };
        // Of a folded square two quarters are C's. What is dealt takes as long as if all warps had as much as one.
        let by_eights = variant.is_by_eights();
        let share = match (variant.is_dealt(), problem.gram && variant.mma, folds(variant)) {
            _ if by_eights => f64::from(eights::sums_a_row(variant)) / (rows * cols),
            (true, ..) => f64::from(dealt::WARPS as u32 * variant.cols) * a / (rows * cols),
            (false, true, 1) => (rows + diagonal) / (2.0 * rows),
            (.., pieces) => f64::from(pieces),
        };
        Work {
            fmas: sums * share * problem.k as f64,
            delivered: reduced::delivered(variant, problem),
            chains: groups * if by_eights { f64::from(eights::sums_a_row(variant) * folds(variant)) } else { sums },
            loads: steps_ahead * wide,
        }
    }
}

/// What [`detour`] says of f32 by columns that a thread has a step ahead of: of 2 to 4 columns, m = k from 10240 to 40960, `_1x2_u32_` took 1.00 to 1.09 times what was
/// expected without it and `_1x4_u32_` 1.01 to 1.08, in the middle 1.025 and 1.047, on an H200 on 2026-11-28 (tsm2r-variants.csv).
const PREFETCH_F32: f64 = 1.03;

/// How many times as long as a read kernel's reads of A take: through a ring, and with a row a thread where rows are
/// contiguous.
fn detour(variant: &Variant, problem: &Problem, constants: &Constants) -> f64 {
    let by_rows = problem.a.row != 1 && problem.m > 1;
    match (variant.kernel, by_rows, variant.dtype) {
        (Kernel::Tsm2r, true, Dtype::F32) => constants.by_rows_f32,
        // Of complex elements nothing was measured: as of f64, which are as long or shorter.
        (Kernel::Tsm2r, true, Dtype::F64 | Dtype::C64 | Dtype::C128) => constants.by_rows_f64,
        (Kernel::Tsm2r, false, Dtype::F32) if variant.name == "tsm2r_prefetch" => PREFETCH_F32,
        (Kernel::Ring, ..) => constants.ring_reads * ragged(variant, problem) * fetched_again(variant),
        (Kernel::Tsmttsm | Kernel::Gram, ..) => reduced_detour(variant, problem),
        (Kernel::Gemv, true, _) if variant.is_sorensens() => UNFIT,
        (Kernel::Gemv, ..) => gemv::detour(variant, problem),
        (Kernel::Tsmm | Kernel::Tall, ..) => tsmm::detour(variant, problem, constants),
        _ => 1.0,
    }
}

/// Bytes of the sectors that the loads of two tall matrices ask for, against those that they use: an entry's neighbouring
/// lanes run along k or across it, and the matrix may have its unit stride the other way.
fn reduced_detour(variant: &Variant, problem: &Problem) -> f64 {
    let along = variant.name.ends_with("_along") || variant.is_by_lines();
    let suits = |across: u64, down: u64, lines: u64| lines == 1 || if along { down == 1 } else { across == 1 };
    let both = [(problem.a.row, problem.a.col, problem.m), (problem.b.col, problem.b.row, problem.n)];
    if variant.is_packed_ring() || variant.is_by_eights() {
        return if reduced::are_runs(problem) { 1.0 } else { UNFIT };
    }
    let is_fit = both.into_iter().all(|(across, down, lines)| suits(across, down, lines));
    if variant.is_staged() && !along {
        let turned = if variant.is_fitted() { TURNED_RUNS } else { TURNED };
        return if is_fit { 1.0 } else { turned };
    }
    if variant.is_by_lines() {
        let bytes = problem.dtype.bytes();
        return match is_fit {
            true if problem.k.wrapping_mul(bytes) % SECTOR_BYTES == 0 => 1.0,
            // A stage's piece of a line begins, and ends, within a sector. It counts for A alone: half of that was
            // fitted for both.
            true => 1.0 + SECTOR_BYTES as f64 / (u64::from(k_step(variant)) * bytes) as f64,
            false => UNFIT * SECTOR_BYTES as f64 / bytes as f64,
        };
    }
    // The matrix units' fragments are loaded either way, but along k by 16 bytes.
    let is_either =
        variant.mma && both.into_iter().all(|(across, down, lines)| suits(across, down, lines) || down == 1);
    match (is_fit, is_either) {
        (true, _) => {}
        (_, true) if variant.dtype == Dtype::C128 && !problem.gram => {
            let whole_sectors = problem.k % 2 == 0;
            return if variant.rows > 16 {
                WIDE_C128
            } else if whole_sectors {
                FINE_C128
            } else {
                SPLIT_C128
            };
        }
        (_, true) if is_whole_pieces(problem) => {}
        (_, true) => return if problem.gram { SPLIT_GRAM } else { SPLIT },
        _ => return UNFIT,
    }
    if variant.name == "tsmttsm_columns" && variant.dtype == Dtype::C128 {
        return COLUMNS_C128;
    }
    // Of a vector's product alone: blocks side by side that have less than a sector of a row each, which all of them load.
    let tile_bytes = u64::from(variant.rows) * problem.dtype.bytes();
    let shares = problem.n == 1 && !along && problem.m > u64::from(variant.rows) && tile_bytes < SECTOR_BYTES;
    if shares { SECTOR_BYTES as f64 / tile_bytes as f64 } else { 1.0 }
}

/// On an H200 on 2026-11-23, 3 and 4 columns of 4 GB: 93 and 95% of the ceiling, where `tsmttsm_folded` had 95 and 98% of 1 GB.
const COLUMNS_C128: f64 = 1.05;

/// Bytes that the memory gives at least.
pub(super) const SECTOR_BYTES: u64 = 32;

/// Copies of elements that lie along k into rows across it: eight lanes meet in a bank.
///
/// On an H200 on 2026-11-26, 1 GB of columns along k: rings of f64 took as long as this says, of c128, on 2026-11-27, 1.1 to 1.3 times as long, on the vector units 0.7 to
/// 1.3 times.
const TURNED: f64 = 2.0;
/// The same into rows that lie as close as they are wide, of which up to 32 lanes meet in a bank. Not measured: it is not what they are for.
const TURNED_RUNS: f64 = 8.0;

/// Fragments of lines along k that are no whole pieces of 16 bytes: loads of elements in place of pieces. In f64 on an H200 on 2026-11-26, 8 to 64
/// columns of 1 GB: 1.3 to 1.9 times as long as one step less, of Gram matrices 1.1 to 1.35 times.
const SPLIT: f64 = 2.0;
const SPLIT_GRAM: f64 = 1.2;

/// Fragments of lines along k in c128, 8 of 64 bytes a load: of tiles of more than 16 rows, of others, and of others
/// where lines begin within sectors. On an H200 on 2026-11-26 they took 1.37 to 1.4, 1.06 to 1.13 and 1.25 to 1.28
/// times what was expected without these, which count for A alone.
const WIDE_C128: f64 = 1.8;
const FINE_C128: f64 = 1.2;
const SPLIT_C128: f64 = 1.5;

/// Whether a line along k is whole pieces of 16 bytes. What the leading dimension is does not matter: parts of k follow from the shape.
fn is_whole_pieces(problem: &Problem) -> bool {
    problem.k.wrapping_mul(problem.dtype.bytes()) % 16 == 0
}

/// Of loads along the wrong stride a sector holds one element that is asked for at a time; most of the others are asked for
/// while it is in the first-level cache. Not fitted.
const UNFIT: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tiling;
    use crate::{Dtype, Strides, VARIANTS};

    /// Tall matrices by columns: rings of rows copy them turned, rings of lines as they are, where of rows a sector has one element; the matrix units' loads need
    /// whole pieces.
    #[test]
    fn what_lines_along_k_cost() {
        let variant = |entry: &str| VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
        let by_columns = |dtype, k: u64| Problem {
            a: Strides::column_major(k).transposed(),
            ..Problem::column_major(dtype, 64, 64, k)
        };
        let by_rows = |dtype, k: u64| Problem {
            a: Strides::row_major(64).transposed(),
            b: Strides::row_major(64),
            ..by_columns(dtype, k)
        };
        for (entry, columns, odd, rows) in [
            ("stsmttsm_lines_8x8_m64n64_u8_t256", 1.0, 1.25, 8.0 * UNFIT),
            ("dtsmttsm_lines_32x16_m32n32_d1_t128", 1.0, 1.125, 4.0 * UNFIT),
            ("stsmttsm_along_4x4_m16n16_u4_t256", 1.0, 1.0, UNFIT),
            ("stsmttsm_fitted_8x8_u2_t128", TURNED_RUNS, TURNED_RUNS, 1.0),
            ("ctsmttsm_staged_16x4_m64n64_u8_t128", TURNED, TURNED, 1.0),
            ("ztsmttsm_ring_32x32_m64n64_d1_t128", TURNED, TURNED, 1.0),
            ("dtsmttsm_mma_32x32_m64n64_d1_t256", 1.0, SPLIT, 1.0),
            ("ztsmttsm_mma_32x32_m32n32_d1_t256", WIDE_C128, WIDE_C128, 1.0),
            ("ztsmttsm_mma_16x16_m16n16_d2_t128", FINE_C128, SPLIT_C128, 1.0),
        ] {
            let v = variant(entry);
            let found = [by_columns(v.dtype, 1000), by_columns(v.dtype, 1001), by_rows(v.dtype, 1001)]
                .map(|p| detour(v, &p, &Constants::FITTED));
            assert_eq!(found, [columns, odd, rows], "{entry}");
        }
        let gram = Problem { gram: true, ..by_columns(Dtype::F64, 1001) };
        let gram = Problem { b: gram.a.transposed(), ..gram };
        assert_eq!(detour(variant("dgram_mma_32x32_m32n32_d3_t256"), &gram, &Constants::FITTED), SPLIT_GRAM);
    }

    /// In f32 by columns, where it was measured, and nowhere else: f64 takes what a read kernel does, rows have constants of their own.
    #[test]
    fn a_step_ahead_of_f32_takes_longer_by_columns() {
        let variant = |entry: &str| VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
        let found = |entry, by_rows: bool| {
            let (v, p) = (variant(entry), Problem::column_major(variant(entry).dtype, 1000, 4, 500));
            detour(v, &if by_rows { Problem { a: Strides::row_major(500), ..p } } else { p }, &Constants::FITTED)
        };
        let f32s = ["stsm2r_prefetch_1x4_u32_t128", "stsm2r_shared_1x4_u4_t128"];
        assert_eq!(f32s.map(|entry| found(entry, false)), [PREFETCH_F32, 1.0]);
        assert_eq!(f32s.map(|entry| found(entry, true)), [Constants::FITTED.by_rows_f32; 2]);
        assert_eq!(found("dtsm2r_prefetch_1x4_u16_t128", false), 1.0);
    }

    /// Of 4 x 4 squares below the diagonal and on it 10, of warps' squares too; a complex product is four of real numbers.
    #[test]
    fn what_lies_above_the_diagonal_is_not_multiplied() {
        for (entry, side, fmas) in [
            ("dgram_mma_32x32_m32n32_d3_t256", 32, 3.0 / 4.0),
            ("zgram_mma_32x32_m32n32_d2_t256", 32, 4.0 * 10.0 / 16.0),
            ("zgram_ring_8x72_m64n64_d1_t128", 64, 4.0 * 36.0 / 64.0),
            ("zgram_ring_8x32_m40n40_d1_t128", 40, 4.0 * 16.0 / 25.0),
            ("zgram_staged_4x4_m32n32_u8_t256", 32, 4.0),
        ] {
            let Some(variant) = VARIANTS.iter().find(|v| v.entry == entry) else { panic!("{entry}") };
            let problem = Problem::gram(variant.dtype, side, 1000, Strides::row_major(side));
            let wanted = (side * side * 1000) as f64 * fmas;
            assert_eq!(Work::of(variant, &problem).fmas, wanted, "{entry}");
        }
    }

    /// Blocks of four warps: who waits for loads wants three on an SM, who has many sums and loads ahead two, of 32 sums nobody.
    #[test]
    fn who_waits_for_what_it_loads_wants_more_warps() {
        let (h200, fitted) = (Machine::H200, Constants::FITTED);
        for (entry, wanted) in [
            ("ctsm2r_staged_8x4_n64_k16_s3_t128", [2.0 * LOADS, LOADS, 0.0, 0.0]),
            ("ctsm2r_staged_8x4_n64_k16_s3_t128_rows", [2.0 * LOADS, LOADS, 0.0, 0.0]),
            ("cgemm_along_8x4_m64_n64_k16_s3_t128", [2.0 * LOADS, LOADS, 0.0, 0.0]),
            ("ctsm2r_staged_8x6_n48_k16_s3_t128_rows", [0.0; 4]),
            ("stsm2r_staged_8x8_n64_k16_s3_t128", [fitted.lone_warp, 0.0, 0.0, 0.0]),
            ("ctsm2r_staged_4x4_n16_k16_s3_t128", [0.0; 4]),
            ("sgemm_staged_8x8_m128_n64_k16_s3_t128", [0.0; 4]),
        ] {
            let variant = VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
            let problem = Problem::column_major(variant.dtype, 4096, 64, 4096);
            let block = Block::new(variant, &tiling(variant, 4096, 64), &problem, &h200, &fitted, 132.0);
            for (blocks, more) in (1..=4).zip(wanted) {
                let found = block.unfilled(f64::from(blocks)) - 1.0;
                assert!((found - more).abs() <= 1e-12, "{entry}, {blocks}: {found}");
            }
        }
    }

    /// Lanes' own loads: of few blocks as long as what they ask for takes, of a wave of them as long as all that the memory moves; of vectors and many rows, and of tiles, always that.
    #[test]
    fn nobody_waits_behind_blocks_that_are_not_there() {
        assert_eq!([0.0, 0.5, 1.0, 3.0].map(|full| unqueued(8.0, full)), [8.0, 8.0 / 4.5, 1.0, 1.0]);
        let latency_s = |entry: &str, n: u64, m: u64, wave: f64| {
            let variant = VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
            let rows = Strides::row_major;
            let p = Problem { a: rows(8), b: rows(n), c: rows(n), ..Problem::column_major(variant.dtype, m, n, 8) };
            Block::new(variant, &tiling(variant, m, n), &p, &Machine::H200, &Constants::FITTED, wave).latency_s
        };
        for (entry, n, m, waits) in [
            ("stsmm_element_0x1_u2_t256_cache", 8, 1000, false),
            ("stsmm_element_0x1_u2_t256_cache", 1, 1000, true),
            ("stsmm_element_0x1_u2_t256_cache", 8, 100_000, true),
            ("dtsmm_staged_2x4_n8_k8_s3_t128", 8, 1000, true),
        ] {
            let times = [1e9, 1.0].map(|wave| latency_s(entry, n, m, wave));
            assert!((times[0] == times[1]) == waits && times[0] <= times[1], "{entry}, {m} x {n}: {times:?}");
        }
    }

    /// Six warps leave the units of two of four schedulers idle half of the time, twelve none, and four neither.
    #[test]
    fn units_whose_schedulers_have_fewer_warps_wait() {
        let h200 = Machine::H200;
        let gram = Problem::gram(Dtype::F64, 64, 1_000_000, Strides::row_major(64));
        let tall = Problem::column_major(Dtype::F64, 48, 48, 1_000_000);
        for (entry, problem, blocks, wanted) in [
            ("dtsmttsm_ring_48x16_m48n48_d1_t192", tall, 1.0, 4.0 / 3.0),
            ("dtsmttsm_ring_48x16_m48n48_d1_t192", tall, 2.0, 1.0),
            // Twelve warps are three of each scheduler.
            ("dgram_mma_32x32_m64n64_d1_t192", gram, 1.0, 4.0 / 3.0),
            ("dgram_mma_32x32_m64n64_d1_t192", gram, 2.0, 1.0),
            ("zgram_ring_8x72_m64n64_d1_t128", gram, 1.0, 1.0),
            ("dtsmttsm_tiled_4x4_m8n8_u2_t256", tall, 1.0, 1.0),
        ] {
            let Some(variant) = VARIANTS.iter().find(|v| v.entry == entry) else { panic!("{entry}") };
            let problem = Problem { dtype: variant.dtype, ..problem };
            let tiles = tiling(variant, problem.m, problem.n);
            let block = Block::new(variant, &tiles, &problem, &h200, &Constants::FITTED, 132.0);
            assert!((block.idle_units(blocks) - wanted).abs() <= 1e-12, "{entry}: {}", block.idle_units(blocks));
            let wave = block.wave(blocks, blocks).arithmetic_s;
            assert!(wave >= wanted * block.multiplied_s(blocks), "{entry}");
        }
    }
}
