//! What entries of two tall matrices, and of Gram matrices, draw, and how far they are from what their units could do.

use super::block::SECTOR_BYTES;
use super::block::cache_rate;
use crate::launch::Tiling;
use crate::launch::eights;
use crate::launch::fit;
use crate::launch::reduced::{STAGES, folds, spacing, spacing_c128};
use crate::{Dtype, Kernel, Machine, Problem, Variant};

/// Bytes that a cache, or shared memory, hands the lanes of an SM a cycle.
pub(super) const BYTES_PER_CYCLE: f64 = 128.0;
/// Bytes that the first-level cache looks up at a time: with rows as long as that each lane's load is one to itself.
const LINE_BYTES: u64 = 128;

/// Bytes of rows that the first-level cache looks up at a time, for lanes that have rows of their own.
const LOOKED_UP_BYTES: f64 = 48.0;

/// Most bytes that a lane loads at a time.
const WIDEST_LOAD: u64 = 16;

/// How many times as long the caches take for such rows of which a tile has less than [`SECTOR_BYTES`].
const NARROW: f64 = 4.0;

/// How long they take where lanes read along k, neighbours, of lines that several tiles read; and of such a tile.
/// From columns.csv.
const ALONG: f64 = 0.7;
const ALONG_NARROW: f64 = 0.9;

/// How many times as long as a row's elements those of lines along k take that are copied into rows: lanes meet in a bank.
const TURNED_COPY: f64 = 2.3;

/// What counts of how much more than the mean the first tile draws: while its blocks run on, those of narrower tiles are done.
const UNEVEN: f64 = 0.25;

/// What was fitted to the times of an H200, of one kind of entries.
///
/// From 796 times of 2026-11-23, driver 580.159, packed rows, those within 1.5 times of the fastest entry of their case: three quarters are within 10% of
/// the estimate, of rings 95%, of f32 half. c64 was not measured: as f32.
pub(super) struct Costs {
    /// Latencies of the memory between loads, where the loop waits for more than them.
    pub(super) latency: f64,
    /// Times of the multiply-adds as their units would take them alone, and as many more as this over the warps of a scheduler: a warp
    /// that copies, waits at a barrier or loads a fragment leaves them idle if there is no other.
    pub(super) units: (f64, f64),
    /// Bytes handed to lanes, against those that [`BYTES_PER_CYCLE`] would be enough for.
    pub(super) handed: f64,
    /// Instructions, or as long as those take, of 32 elements that are loaded or copied one by one.
    by_element: f64,
    /// What blocks take to begin and to end, and each group of a block to add its sums: latencies of the memory.
    ends: (f64, f64),
    /// Instructions against those that are counted.
    pub(super) issue: f64,
    /// How much longer they take with one warp a scheduler than with two, of as many tiles as C has for each warp less than four: less than 1, or a block on its own would
    /// take longer than two.
    pub(super) lone_warp: f64,
    /// Bytes drawn of those that a read kernel draws.
    reads: f64,
}

const MATRIX: Costs = Costs {
    latency: 1.0,
    units: (1.0, 0.7),
    handed: 0.0,
    by_element: 0.0,
    ends: (0.0, 0.0),
    issue: 1.0,
    lone_warp: 0.0,
    reads: 1.01,
};
const VECTOR: Costs = Costs { latency: 0.5, reads: 1.03, ..MATRIX };

const MMA_F64: Costs = Costs { latency: 1.28, units: (2.0, 0.0), by_element: 8.57, ends: (2.27, 0.89), ..MATRIX };
const MMA_F64_GRAM: Costs = Costs { latency: 1.79, units: (0.1, 2.35), by_element: 3.98, ends: (4.07, 1.61), ..MATRIX };
const MMA_C128: Costs = Costs { latency: 1.09, units: (0.95, 0.58), handed: 1.38, ends: (5.3, 1.33), ..MATRIX };
const MMA_C128_GRAM: Costs = Costs { latency: 1.57, units: (0.62, 1.32), ends: (6.9, 0.32), ..MATRIX };
/// What goes through rings to the matrix units, from benches/results/h200/rings.csv and rings-variants.csv, entries within 1.9 times of the fastest, f64 of
/// 4096 to 16384 rows from tsmttsm.csv, and packed rows of multiples of 8, which are not chosen, from gram-variants.csv and tsmttsm-variants.csv: the mean of
/// |ln(estimate / measured)| is 0.03 to 0.06. Where lines along k are copied into rows c128 takes 1.1 to 1.3 times the estimate, f64's Gram matrices
/// 0.7. With one block an SM they were not measured: what it leaves idle is 0.6 of the units over the warps of a scheduler at the least.
const RING_F64: Costs = Costs {
    latency: 0.7,
    units: (0.1, 1.2),
    handed: 1.8,
    by_element: 39.0,
    ends: (0.0, 1.5),
    lone_warp: 0.95,
    ..MATRIX
};
const RING_F64_GRAM: Costs =
    Costs { latency: 0.5, units: (0.55, 1.25), handed: 0.2, by_element: 26.9, ends: (4.5, 0.0), ..MATRIX };
const PACKED_F64: Costs =
    Costs { latency: 0.51, units: (0.68, 1.0), handed: 0.7, ends: (7.0, 0.51), reads: 0.99, ..MATRIX };
const PACKED_F64_GRAM: Costs =
    Costs { latency: 0.98, units: (0.61, 0.63), handed: 0.89, ends: (12.3, 2.6), reads: 0.97, ..MATRIX };
/// Of eights of columns, from runs of 2026-11-30 on H200s (benches/results/trials/eights.csv): 3 to 48 columns of 10⁴ to 10⁸ packed rows in 13 to 792 parts, by every entry; the mean of
/// |ln(estimate / measured)| is 0.02 to 0.06.
const EIGHTS_F64: Costs =
    Costs { latency: 1.05, units: (0.44, 1.05), by_element: 8.0, ends: (5.0, 0.26), reads: 1.0, ..MATRIX };
const EIGHTS_F64_GRAM: Costs = Costs {
    latency: 1.2,
    units: (1.03, 0.04),
    handed: 1.29,
    by_element: 8.0,
    ends: (2.8, 0.21),
    reads: 0.986,
    ..MATRIX
};
const EIGHTS_C128: Costs =
    Costs { latency: 0.89, units: (0.69, 0.98), handed: 0.61, ends: (6.2, 0.12), reads: 1.008, ..MATRIX };
const EIGHTS_C128_GRAM: Costs =
    Costs { latency: 1.06, units: (0.84, 0.43), handed: 0.97, ends: (8.2, 0.27), reads: 0.955, ..MATRIX };
const LINES_F64: Costs = Costs { by_element: 45.0, ..RING_F64 };
const LINES_F64_GRAM: Costs = Costs { units: (0.85, 0.14), handed: 0.95, by_element: 26.0, reads: 1.09, ..MATRIX };
const RING_C128: Costs = Costs { latency: 1.2, units: (0.65, 0.6), handed: 1.5, ends: (1.4, 0.0), ..MATRIX };
const RING_C128_GRAM: Costs = Costs { latency: 1.24, units: (0.74, 0.6), handed: 0.1, ends: (7.7, 0.0), ..MATRIX };
/// Of c64's full tiles, whose multiply-adds meet in banks of registers: 64 x 64 and 60 x 60 within 4% of widths-variants.csv.
const STAGED_C64: Costs =
    Costs { latency: 2.0, units: (0.66, 1.52), by_element: 6.0, ends: (13.3, 0.0), issue: 1.42, ..VECTOR };
/// Held to a run on an H200 of 2026-11-27 (columns.csv is of a later one), all cases of f32 by columns and the entries near
/// the fastest: where a tile of C is full three quarters are within 19%, all within 28%; where it is not within 28%, and one takes 1.5
/// times the estimate. More would be nearer, but by the issue of instructions a block an SM would do, and two are faster.
const LINES: Costs =
    Costs { latency: 2.0, units: (1.5, 0.7), by_element: 22.0, ends: (8.0, 0.0), issue: 1.42, reads: 1.15, ..VECTOR };
/// Of c64 by columns from columns.csv and its variants; by rows, whose elements it copies one by one, it is 1.2 to 2.3 times as long as was found.
const LINES_C64: Costs =
    Costs { units: (1.35, 0.4), by_element: 12.0, ends: (5.7, 0.0), issue: 1.42, reads: 1.0, ..LINES };
/// Of as many tiles as C has, from three runs on H200s of 2026-11-28, of all of widths.csv's cases by every entry (widths-variants.csv) and, twice, of
/// what the model took for the fastest then, those within twice the fastest: the mean of |ln(estimate / measured)| is 0.05 to 0.07. What a block
/// takes to end is for each 16 sums of a thread, which it stores and adds up.
const FITTED: Costs = Costs {
    latency: 1.86,
    units: (0.3, 1.1),
    by_element: 6.0,
    ends: (4.8, 1.43),
    issue: 1.14,
    reads: 1.12,
    lone_warp: 0.12,
    ..MATRIX
};
/// Of tiles of 7 and 9 lines, whose loads take the lanes' path to shared memory nearly as long as their products take the units, and of the largest.
const FITTED_7_9: Costs = Costs { issue: 1.22, ..FITTED };
const FITTED_16: Costs = Costs { issue: 1.06, ..FITTED };
const FITTED_GRAM: Costs =
    Costs { latency: 1.71, units: (0.61, 1.91), ends: (3.6, 2.7), issue: 1.24, reads: 1.1, lone_warp: 0.06, ..FITTED };
const FITTED_C64: Costs =
    Costs { latency: 3.04, units: (0.54, 2.17), ends: (7.4, 2.2), issue: 1.32, reads: 1.03, lone_warp: 0.05, ..FITTED };
const FITTED_C64_GRAM: Costs =
    Costs { latency: 2.17, units: (0.3, 0.43), ends: (7.1, 2.78), issue: 1.57, reads: 1.04, lone_warp: 0.04, ..FITTED };
const STAGED_C128: Costs = Costs { latency: 3.0, units: (1.24, 2.07), handed: 0.64, ends: (6.9, 0.26), ..VECTOR };
/// Blocks end sooner since sums are handed in by two loops: 64 x 4 of 21544 rows 12.7 -> 11.0 us.
const TILES_F32: Costs = Costs {
    latency: 0.87,
    units: (0.92, 0.03),
    handed: 2.44,
    by_element: 5.35,
    ends: (4.5, 0.0),
    issue: 2.58,
    ..VECTOR
};
/// Of lines along k, from columns.csv: c64's fastest tiles within 16%, of the others and of f32's what is not several
/// tiles is within 25%, and what is takes as little as 0.6 of the estimate.
const ALONG_F32: Costs = Costs { issue: 1.8, ..TILES_F32 };
const TILES_F64: Costs =
    Costs { latency: 1.0, units: (2.1, 6.0), handed: 1.61, by_element: 4.41, ends: (3.67, 0.0), issue: 3.41, ..VECTOR };

/// From results/trials/rectangles.csv, an H200 on 2026-11-29: 3 x 17, 4 x 12 and 5 x 13 of 10⁶ and 10⁷ rows took 0.84 to 0.89 of what the tiles' constants give,
/// 2 x 32 0.96 and 1.02.
const LEAPFROG_C128: Costs = Costs { units: (1.75, 5.0), issue: 2.85, ..TILES_F64 };

/// What a block has of C, and how its threads share it.
pub(super) struct Owned {
    /// Rows and columns of C.
    pub(super) rows: f64,
    pub(super) cols: f64,
    /// Groups of threads, or warps, along k.
    pub(super) groups: f64,
    /// Sums that a group's threads multiply, or could while others do.
    pub(super) sums: f64,
    /// Rows of the tall matrices in flight, of a ring.
    pub(super) steps_ahead: f64,
}

impl Owned {
    pub(super) fn of(variant: &Variant, problem: &Problem) -> Owned {
        if variant.is_fitted() {
            let fit = fit::of(variant, problem.m, problem.n);
            let (rows, cols, groups) =
                (f64::from(fit.down * variant.rows), f64::from(fit.along * variant.t2), f64::from(fit.groups));
            let sums = f64::from(variant.threads * variant.rows * variant.t2) / groups;
            return Owned { rows, cols, groups, sums, steps_ahead: f64::from(fit.steps * (fit::STAGES - 1)) };
        }
        let (rows, cols) = (f64::from(variant.rows), f64::from(variant.t2));
        let ahead = if variant.is_staged() { STAGES - 1 } else { 1 };
        let steps_ahead = f64::from(crate::launch::reduced::k_step(variant) * ahead);
        Owned { rows, cols, groups: f64::from(variant.stages), sums: rows * cols, steps_ahead }
    }
}

/// Of an entry of two tall matrices.
pub(super) fn costs(variant: &Variant) -> &'static Costs {
    let (is_gram, is_f32) = (variant.kernel == Kernel::Gram, matches!(variant.dtype, Dtype::F32 | Dtype::C64));
    if variant.is_by_lines() && !variant.mma {
        return if variant.dtype.is_complex() { &LINES_C64 } else { &LINES };
    }
    if variant.is_fitted() {
        return match (variant.dtype.is_complex(), is_gram) {
            (false, false) if matches!(variant.rows, 7 | 9) => &FITTED_7_9,
            (false, false) if variant.rows == 16 => &FITTED_16,
            (false, false) => &FITTED,
            (false, true) => &FITTED_GRAM,
            (true, false) => &FITTED_C64,
            (true, true) => &FITTED_C64_GRAM,
        };
    }
    if variant.is_by_eights() {
        return match (variant.dtype.is_complex(), is_gram) {
            (false, false) => &EIGHTS_F64,
            (false, true) => &EIGHTS_F64_GRAM,
            (true, false) => &EIGHTS_C128,
            (true, true) => &EIGHTS_C128_GRAM,
        };
    }
    if variant.is_packed_ring() {
        return if is_gram { &PACKED_F64_GRAM } else { &PACKED_F64 };
    }
    if variant.is_by_lines() && variant.dtype == Dtype::F64 {
        return if is_gram { &LINES_F64_GRAM } else { &LINES_F64 };
    }
    if variant.dtype == Dtype::C128 && variant.name == "tsmttsm_leapfrog" {
        return &LEAPFROG_C128;
    }
    match (variant.mma, variant.is_staged(), variant.dtype.is_complex(), is_gram) {
        (true, true, false, false) => &RING_F64,
        (true, true, false, true) => &RING_F64_GRAM,
        (true, true, true, false) => &RING_C128,
        (true, true, true, true) => &RING_C128_GRAM,
        (true, false, false, false) => &MMA_F64,
        (true, false, false, true) => &MMA_F64_GRAM,
        (true, false, true, false) => &MMA_C128,
        (true, false, true, true) => &MMA_C128_GRAM,
        (false, true, ..) if is_f32 => &STAGED_C64,
        (false, true, ..) => &STAGED_C128,
        (false, false, ..) if is_f32 && variant.name.ends_with("_along") => &ALONG_F32,
        (false, false, ..) if is_f32 => &TILES_F32,
        (false, false, ..) => &TILES_F64,
    }
}

/// Time in which the memory gives A and B, or the second-level cache what all tiles ask of it, whichever is longer, s.
///
/// Blocks of a part of k run side by side, and what one of them has loaded the others find in that cache.
pub(super) fn bandwidth_s(
    variant: &Variant,
    Tiling { x, z, .. }: &Tiling,
    problem: &Problem,
    machine: &Machine,
    detour: f64,
) -> f64 {
    let Problem { m, n, k, gram, .. } = *problem;
    let e = problem.dtype.bytes();
    let line_bytes = k as f64 * e as f64;
    let (b_lines, b_again) = if gram { (0, 0) } else { (n, n.saturating_mul(*x)) };
    let is_narrow = |lines: u64, tile: u32| lines * e >= LINE_BYTES && u64::from(tile) * e < SECTOR_BYTES;
    // A stage's rows come whole, whatever its tiles.
    let narrow = !variant.is_fitted() && (is_narrow(m, variant.rows) || (!gram && is_narrow(n, variant.t2)));
    let slower = match (is_along(variant, problem), variant.is_by_lines(), narrow) {
        (true, true, _) | (false, _, false) => 1.0,
        (true, false, true) => ALONG_NARROW,
        (true, false, false) => ALONG,
        (false, _, true) => NARROW,
    };
    let torn = torn(variant, problem);
    let drawn_s =
        torn * costs(variant).reads * (m as f64 * detour + b_lines as f64) * line_bytes / machine.read_bytes_per_s;
    let again = m.saturating_mul(*z) as f64 + b_again as f64;
    let owned = Owned::of(variant, problem);
    let lines = (m as f64).min(owned.rows) + if gram { 0.0 } else { (n as f64).min(owned.cols) };
    let uneven = 1.0 + UNEVEN * (lines * (*x as f64 * *z as f64) / again - 1.0);
    uneven * drawn_s.max(again * line_bytes * slower / cache_rate(machine))
}

/// How many times as long the memory takes where narrow tiles share sectors: of rows of an odd number of c128 those at a tile's edge are fetched for both.
///
/// # Source
/// 3 x 17 on an H200 on 2026-11-29 (results/trials/rectangles.csv), 10⁷ rows, by `mma_8x8` and `mma_16x16`.
fn torn(variant: &Variant, problem: &Problem) -> f64 {
    let shares = |lines: u64, tile: u32| lines > u64::from(tile) && lines % 2 == 1;
    let shared = shares(problem.m, variant.rows) || !problem.gram && shares(problem.n, variant.t2);
    match variant.t2 {
        _ if variant.dtype != Dtype::C128 || !variant.mma || variant.is_staged() || problem.a.row != 1 || !shared => {
            1.0
        }
        ..=8 => 1.35,
        9..=16 => 1.15,
        _ => 1.0,
    }
}

/// Whether an entry's lanes read along k, and the matrices lie so.
fn is_along(variant: &Variant, problem: &Problem) -> bool {
    let lies = (problem.a.col == 1 || problem.m == 1) && (problem.b.row == 1 || problem.n == 1);
    lies && (variant.name.ends_with("_along") || variant.is_by_lines())
}

/// Whether lines along k are copied into a stage of rows, element by element, by an entry of the vector units.
pub(super) fn is_turned(variant: &Variant, problem: &Problem) -> bool {
    variant.is_staged() && !variant.mma && !variant.is_by_lines() && problem.a.col == 1 && problem.m > 1
}

/// Whether the rows of both matrices lie behind each other.
pub(super) fn are_runs(problem: &Problem) -> bool {
    let is_run = |across: u64, down: u64, lines: u64| (across == 1 || lines == 1) && down == lines;
    let Problem { a, b, m, n, gram, .. } = *problem;
    is_run(a.row, a.col, m) && (gram || is_run(b.col, b.row, n))
}

/// What a warp issues for a row of the tall matrices beside what is counted, where 16 bytes are not whole elements of it.
pub(super) fn by_element(variant: &Variant, problem: &Problem) -> f64 {
    let Owned { mut rows, mut cols, .. } = Owned::of(variant, problem);
    if variant.is_by_lines() || variant.is_fitted() {
        // Those that are not there are not copied.
        (rows, cols) = (rows.min(problem.m as f64), cols.min(problem.n as f64));
    }
    let (own_rows, own_cols) = (f64::from(variant.own_rows()), f64::from(variant.cols));
    let shares_lines = variant.is_staged() && variant.mma || variant.is_by_lines() || variant.is_fitted();
    let lines = match (shares_lines, variant.kernel) {
        (true, Kernel::Gram) => rows,
        (true, _) => rows + cols,
        _ => rows * cols * (own_rows + own_cols) / (own_rows * own_cols),
    };
    let turned = if is_turned(variant, problem) { TURNED_COPY } else { 1.0 };
    costs(variant).by_element * turned * lines / f64::from(variant.threads)
}

/// Most rows of the tall matrices for which blocks are taken to end as those of up to 10⁴ were timed to.
const FEW_ROWS: u64 = 16_384;

/// Whether each thread of a block has the whole of its tile, and rows of its own: `tsmttsm_whole` and others of few sums.
fn is_of_threads(variant: &Variant) -> bool {
    let (rows, cols) = (variant.own_rows(), variant.cols);
    variant.kernel == Kernel::Tsmttsm
        && !variant.mma
        && !variant.is_fitted()
        && (variant.rows, variant.t2) == (rows, cols)
}

/// What the blocks of an entry take to begin and to end, which others do not fill: they are all alike, and run all at once. Of as many tiles as C has it is the
/// sums of a thread that tell, of others the groups. Where tiles are a thread's and rows few, all threads add each of its sums,
/// block after block, of which an SM has `an_sm`: from times of 4 x 4 to 64 x 64 and 100 to 3333 rows on an H200 on 2026-11-29 (results/trials/few-rows.csv). s.
pub(super) fn ends_s(variant: &Variant, problem: &Problem, an_sm: f64, machine: &Machine) -> f64 {
    let sums = f64::from(variant.own_rows() * variant.cols);
    let (once, a_group) = costs(variant).ends;
    let sooner = sooner(variant, problem);
    let latencies = match (is_of_threads(variant) && problem.k <= FEW_ROWS, variant.is_fitted()) {
        (true, _) => 0.7 + 0.17 * sums + (0.5 + 0.07 * sums) * an_sm,
        (_, true) => once + a_group * sums / 16.0,
        _ => once + a_group * f64::from(variant.stages),
    };
    (latencies - sooner) * machine.memory_latency_s
}

/// How many latencies of the memory sooner than that they end, or later where it is less than 0: of few rows, and of f64's tiles of any.
///
/// # Source
/// H200s on 2026-11-29, in graphs (benches/results/trials): where there are more than [`FEW_ROWS`] begin.csv, 4 x 4 of up to 3·10⁶ rows; else few-rows.csv and two-tall.csv, 4 x 4 to 64 x 64 of 64 to 10⁴ rows, the
/// mean of each kind of entry within 1.4 times of the fastest beside that of `tsmttsm_whole`, where it fits those that are not, too.
fn sooner(variant: &Variant, problem: &Problem) -> f64 {
    use Dtype::{C64, C128, F32, F64};
    let widest = problem.m.max(problem.n);
    let is_large = variant.rows >= 16 && widest > 8;
    match (variant.name, variant.dtype) {
        ("tsmttsm_leapfrog", F64) if widest <= 4 && problem.k < 4_000_000 => 0.4,
        ("tsmttsm_tiled" | "tsmttsm_columns", F64) if problem.k > FEW_ROWS => 1.3,
        _ if problem.k > FEW_ROWS => 0.0,
        ("gram_leapfrog", F32) if is_large => 3.2,
        ("gram_leapfrog", F32) => 1.8,
        ("gram_leapfrog", C64) if is_large => 4.0,
        ("gram_leapfrog", C64) => 0.7,
        ("gram_leapfrog", F64) if is_large => 3.0,
        ("gram_leapfrog", F64) => 0.3,
        ("gram_leapfrog", C128) => 2.0,
        ("gram_whole", F32) => 3.4,
        // Of 10⁴ rows, where the first stage counts: results/trials/eights.csv.
        ("gram_eights" | "tsmttsm_eights", F64) => -1.5,
        ("gram_ring", F64) => 2.3,
        ("gram_ring", C128) => 4.0,
        ("tsmttsm_tiled" | "tsmttsm_columns", F64) => 0.6,
        ("tsmttsm_tiled" | "tsmttsm_columns", F32) => 1.5,
        ("tsmttsm_columns", C64) | ("tsmttsm_interleaved", _) => 2.2,
        ("tsmttsm_leapfrog", F64 | C64) if is_large => 2.5,
        // 8 x 8 sums a thread: 64 x 64 of 2000 to 10⁴ rows take 1 to 3 us longer than by 4 x 4.
        ("tsmttsm_leapfrog", F32) if is_large && variant.own_rows() >= 8 => -2.0,
        ("tsmttsm_leapfrog", F32) if is_large => 1.2,
        ("tsmttsm_leapfrog", C128) if !is_of_threads(variant) => 1.0,
        // One stage on its way at a time.
        ("tsmttsm_lines", C128) => -5.0,
        ("tsmttsm_ring", C128) if problem.k > 500 && widest > 8 => 2.4,
        ("tsmttsm_ring", C128) => 0.7,
        ("tsmttsm_ring", _) => 1.4,
        _ => 0.0,
    }
}

/// Elements that lanes are handed for a multiply-add, each as long as it takes at [`BYTES_PER_CYCLE`].
pub(super) fn delivered(variant: &Variant, problem: &Problem) -> f64 {
    let (a, b) = (f64::from(variant.own_rows()), f64::from(variant.cols));
    if is_of_threads(variant) && !is_along(variant, problem) {
        let e = problem.dtype.bytes();
        let looked_up = |own: u32, lines: u64| {
            let loads = (u64::from(own) * e).div_ceil(WIDEST_LOAD) as f64;
            loads * ((lines * e) as f64 / LOOKED_UP_BYTES).min(1.0)
        };
        let looked_up = looked_up(variant.own_rows(), problem.m) + looked_up(variant.cols, problem.n);
        return ((a + b) * costs(variant).handed).max(looked_up * BYTES_PER_CYCLE / e as f64) / (a * b);
    }
    let (a_meets, b_meets) = meets(variant, problem);
    if variant.is_by_eights() {
        let lines = |side: u32| f64::from(eights::EIGHT) * eights::eights(side) as f64;
        let loaded = lines(variant.rows) * a_meets + if problem.gram { 0.0 } else { lines(variant.t2) * b_meets };
        return loaded / f64::from(folds(variant) * eights::sums_a_row(variant)) * costs(variant).handed;
    }
    let handed = match variant.is_dealt() {
        true => f64::from(crate::launch::dealt::lines(variant)) * a_meets,
        false => a * a_meets + b * b_meets,
    };
    handed / (a * b) * costs(variant).handed
}

/// How many lanes of half a warp meet in a bank when they load a packed row's elements of A, and of B.
fn meets(variant: &Variant, problem: &Problem) -> (f64, f64) {
    let (m, n) = (problem.m as u32, problem.n as u32);
    if variant.is_by_eights() {
        let meet = |width: u32| match problem.dtype {
            // Pieces of 16 bytes, of which the banks have eight.
            Dtype::C128 => (spacing_c128(m, n) * width % 8, 4),
            _ => (spacing(m, n) * width % 16, 8),
        };
        let of = |width: u32| match meet(width) {
            (0, _) => 4.0,
            (at, half) if at == half => 2.0,
            _ => 1.0,
        };
        return (of(m), of(n));
    }
    let of = |width: u32| match (variant.is_packed_ring(), spacing(m, n).wrapping_mul(width) % 16) {
        // Four do; where warps share C they take as long as if seven did.
        (true, 0) if variant.own_rows() == variant.rows && problem.gram => 4.0,
        (true, 0) => 7.0,
        (true, 8) => 2.0,
        _ => 1.0,
    };
    (of(m), of(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tiling;
    use crate::{Strides, VARIANTS};

    fn variant(entry: &str) -> &'static Variant {
        VARIANTS.iter().find(|v| v.entry == entry).expect("an entry")
    }

    /// By columns the fastest entries of benches/results/h200/columns.csv and its variants: along k the cache gives a line
    /// to several tiles in less time, and lines that are not there are not copied. By rows, where neither is so, those
    /// of tsmttsm.csv, which has no others there.
    #[test]
    fn what_is_taken_by_columns_and_by_rows() {
        let (f32, f64, c64, c128) = (Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128);
        for (dtype, (m, n), k, entry) in [
            (f32, (8, 8), 8_000_000, "stsmttsm_along_4x4_m4n4_u4_t256"),
            (f32, (64, 2), 4_064_000, "stsmttsm_along_4x4_m4n4_u4_t256"),
            (f32, (32, 32), 4_192_001, "stsmttsm_lines_8x8_m32n32_u4_t256"),
            (f32, (48, 48), 2_792_001, "stsmttsm_lines_12x12_m48n48_u8_t128"),
            (f32, (48, 48), 2_792_000, "stsmttsm_lines_12x12_m48n48_u8_t128"),
            (c64, (48, 48), 1_392_000, "ctsmttsm_lines_12x6_m48n48_u8_t128"),
            (c64, (48, 48), 1_392_001, "ctsmttsm_lines_12x6_m48n48_u8_t128"),
            (f64, (32, 32), 2_096_001, "dtsmttsm_lines_32x16_m32n32_d1_t128"),
            (f64, (24, 24), 2_792_001, "dtsmttsm_lines_32x16_m32n32_d1_t128"),
            (f64, (64, 2), 2_032_001, "dtsmttsm_along_4x4_m4n4_u2_t256"),
            (c128, (24, 24), 1_392_000, "ztsmttsm_lines_16x32_m32n32_d1_t128"),
        ] {
            let p = Problem { a: Strides::row_major(k), ..Problem::column_major(dtype, m, n, k) };
            let found = crate::choose(&p, &Machine::H200, None).map(|choice| choice.variant.entry);
            assert_eq!(found, Ok(entry), "{dtype:?} {m} x {n} x {k}");
        }
        for (k, entry) in [
            (512, "dtsmttsm_tiled_4x4_m8n8_u2_t256"),
            (2048, "dtsm2r_mma_16x8_n8_k32_s3_t128"),
            (16_384, "dtsmttsm_ring_32x32_m64n64_d1_t128"),
        ] {
            let by_rows = Strides::row_major(64);
            let p = Problem { a: by_rows.transposed(), b: by_rows, ..Problem::column_major(f64, 64, 64, k) };
            let found = crate::choose(&p, &Machine::H200, None).map(|choice| choice.variant.entry);
            assert_eq!(found, Ok(entry), "by rows, {k}");
        }
        for k in [1_000_000, 10_000_000] {
            let (a, b) = (Strides::row_major(3).transposed(), Strides::row_major(17));
            let p = Problem { a, b, ..Problem::column_major(c128, 3, 17, k) };
            let found = crate::choose(&p, &Machine::H200, None).map(|choice| choice.variant.entry);
            assert_eq!(found, Ok("ztsmttsm_eights_32x8_m32n8_d1_t128"), "3 x 17 x {k}");
        }
    }

    /// Tiles of eight columns, and of as many as there are; whole sectors; rows that one tile has.
    #[test]
    fn sectors_are_shared_by_narrow_tiles_of_odd_rows() {
        let factor = |entry: &str, m: u64, n: u64, k: u64| {
            let (a, b) = (Strides::row_major(m).transposed(), Strides::row_major(n));
            torn(variant(entry), &Problem { a, b, ..Problem::column_major(variant(entry).dtype, m, n, k) })
        };
        let (narrow, wider) = ("ztsmttsm_mma_8x8_m8n8_d4_t256", "ztsmttsm_mma_32x16_m32n16_d2_t256");
        let found = [(3, 17), (17, 3), (2, 7), (3, 18)].map(|(m, n)| factor(narrow, m, n, 1000));
        assert_eq!(found, [1.35, 1.35, 1.0, 1.0]);
        assert_eq!([(31, 16), (33, 16), (3, 17)].map(|(m, n)| factor(wider, m, n, 1000)), [1.0, 1.15, 1.15]);
        assert_eq!(factor("dtsmttsm_mma_16x16_m16n16_d2_t128", 3, 17, 1000), 1.0);
    }

    #[test]
    fn gram_matrices_of_48_columns_and_of_8_have_tiles_of_their_own() {
        for (dtype, n, k, entry) in [
            (Dtype::F32, 48, 2_792_000, "sgram_lines_12x12_m48n48_u16_t128"),
            (Dtype::C64, 48, 1_392_000, "cgram_lines_12x6_m48n48_u16_t128"),
            (Dtype::C64, 48, 1_392_001, "cgram_lines_12x6_m48n48_u16_t128"),
            (Dtype::C64, 8, 8_000_000, "cgram_leapfrog_4x4_m8n8_u2_t256"),
        ] {
            let p = Problem::gram(dtype, n, k, Strides::row_major(k));
            let found = crate::choose(&p, &Machine::H200, None).map(|choice| choice.variant.entry);
            assert_eq!(found, Ok(entry), "{dtype:?}, {n}, {k}");
        }
    }

    /// As many tiles as C has, of either shape of it, those that were the fastest at up to twice the rows (results/trials/fitted.csv, the last two runs); few rows
    /// of few columns by entries that share no stage.
    #[test]
    fn tiles_fit_widths_by_rows() {
        for ((m, n), k, entry) in [
            ((33, 31), 1_000_000, "stsmttsm_fitted_11x11_u2_t128"),
            ((31, 33), 1_000_000, "stsmttsm_fitted_11x11_u2_t128"),
            ((48, 48), 1_302_083, "stsmttsm_fitted_16x8_u3_t128"),
            ((60, 60), 1_041_666, "stsmttsm_fitted_12x12_u3_t128"),
            ((64, 64), 976_562, "stsmttsm_fitted_16x8_u3_t128"),
            ((17, 17), 3_676_470, "stsmttsm_fitted_9x9_u2_t128"),
            ((5, 13), 6_944_444, "stsmttsm_fitted_7x7_u2_t128"),
            ((4, 4), 100_000, "stsmttsm_whole_4x4_m4n4_u4_t256"),
        ] {
            let (a, b) = (Strides::row_major(m).transposed(), Strides::row_major(n));
            let p = Problem { a, b, ..Problem::column_major(Dtype::F32, m, n, k) };
            let found = crate::choose(&p, &Machine::H200, None).map(|choice| choice.variant.entry);
            assert_eq!(found, Ok(entry), "{m} x {n}");
        }
    }

    /// Of 32 lines 20 are there, of rows all are copied.
    #[test]
    fn lines_that_are_not_there_are_not_copied() {
        let copies = |entry: &str, m| by_element(variant(entry), &Problem::column_major(Dtype::F64, m, m, 1001));
        let lines = "dtsmttsm_lines_32x16_m32n32_d1_t128";
        assert!((copies(lines, 20) / copies(lines, 32) - 20.0 / 32.0).abs() <= 1e-12);
        let rows = "dtsmttsm_ring_48x16_m48n48_d1_t192";
        assert_eq!(copies(rows, 20), copies(rows, 48));
    }

    /// 64 x 64 of 10⁶ rows are 1.024 GB; by tiles of 16 x 16 each matrix is read four times, from the cache.
    #[test]
    fn tiles_read_again_from_the_cache() {
        let h200 = Machine::H200;
        let p = Problem {
            a: Strides::row_major(64).transposed(),
            b: Strides::row_major(64),
            ..Problem::column_major(Dtype::F64, 64, 64, 1_000_000)
        };
        let at = |entry| bandwidth_s(variant(entry), &tiling(variant(entry), 64, 64), &p, &h200, 1.0);
        let (once, again) = (at("dtsmttsm_ring_32x32_m64n64_d1_t128"), at("dtsmttsm_mma_16x16_m16n16_d2_t256"));
        assert!((once / (1.01 * 1.024e9 / h200.read_bytes_per_s) - 1.0).abs() <= 1e-12);
        assert!((again / (4.0 * 1.024e9 / h200.l2_read_bytes_per_s) - 1.0).abs() <= 1e-12);
    }
}
