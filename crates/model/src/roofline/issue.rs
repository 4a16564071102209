//! Instructions, against the slots in which an SM issues them.

use super::{Constants, WARP, reduced};
use crate::launch::{copies_b, eights, fit, reduced::folds, ring_takes_turns};
use crate::variants::MMA_FMAS;
use crate::{Dtype, Kernel, Layout, Machine, Problem, Variant};

/// Bytes of the widest load or copy.
const PIECE_BYTES: f64 = 16.0;
/// Registers of 16 bytes.
const REGISTERS: f64 = 4.0;
/// Instructions of a copy into a stage: an address and the copy.
const COPY: f64 = 2.0;
/// Instructions in whose time copies of an element each of a warp's lanes are taken, where one other warp of the scheduler has some to issue. In f32,
/// on an H200 on 2026-11-25, squares of 1439 to 2049 took 1.05 to 1.25 times as long as those of 1440 to 2048 by 8 x 16 sums; of
/// the other types it is taken to be the same.
const ELEMENT: f64 = 14.0;
/// Slots of a multiply-add of [`Variant::is_along_k`] in f32: more of them find two operands in registers of one kind than of the
/// others (two in five beside one in five, by the listing). On an H200 on 2026-11-27, f32, 46 times of A and B along k above 150 us
/// were 1.22 times what was expected without it in the middle, where `gemm_staged`'s were 1.09 times; then 2048 and 4096 cubed, A along k, took
/// 439 and 3269 us, by `gemm_staged`'s 8 x 16 sums 389 and 3056, and 20480 x 64 x 5120 less than by its 8 x 8.
const MEETINGS: f64 = 1.195;
/// The same in c64 of products of any shape, with what copies of B's elements (`Scalar::add_outer`) take. Of an H200's times of 2026-11-27
/// (no file is kept), as the next two.
const MEETINGS_C64: f64 = 1.2;
/// Of 16 sums of c64 a thread or more of TSM2R's ring.
const MEETINGS_RING: f64 = 1.3;
/// Of those, A by rows, that load ahead.
const MEETINGS_ROWS: f64 = 1.15;
/// Schedulers of an SM, for which those entries are made.
const SCHEDULERS: f64 = 4.0;

/// Time in which an SM issues the instructions of a block, k whole, s:
///
/// t_issue = warps · I / (schedulers · clock),
///
/// I being what a warp issues. Each of an SM's partitions has a scheduler, which issues an instruction of one warp a cycle
/// at most: a multiply-add takes a slot, and so does a load, a copy, an address. In f32 the slots are as many as the
/// multipliers take, and what is not a multiply-add is lost to them.
///
/// # Source
/// NVIDIA's white papers on V100 to H100: a scheduler a partition, one instruction a cycle. The counts are those of the
/// kernels' loops; what cannot be counted is in [`Constants`]. By a profiler at n = 32 in f32 on an H200, instructions go
/// out in 81% of the cycles.
pub(super) fn issue_s(variant: &Variant, problem: &Problem, machine: &Machine, constants: &Constants) -> f64 {
    let warps = f64::from(variant.threads) / WARP;
    let slots = f64::from(machine.register_partitions) * machine.clock_hz;
    warps * instructions(variant, problem, constants) / slots
}

/// What a warp issues, k whole.
fn instructions(variant: &Variant, problem: &Problem, constants: &Constants) -> f64 {
    let k = problem.k as f64;
    // Elements in a load of 16 bytes.
    let width = PIECE_BYTES / problem.dtype.bytes() as f64;
    let (t2, t3) = (f64::from(variant.t2), f64::from(variant.t3));
    // Of a product of two elements, and of a load of B's: of complex ones too an instruction.
    let fmas = f64::from(variant.dtype.fmas());
    match variant.kernel {
        // A's element and, for each column, B's and a multiply-add, or 16 bytes of B a load.
        Kernel::Tsm2r if variant.name == "tsm2r_inner" => k * problem.n as f64 * (2.0 + fmas + constants.step_slots),
        Kernel::Tsm2r if variant.wide_shared => k * (1.0 + fmas * t2 + t2 / width + constants.step_slots),
        Kernel::Tsm2r => k * (1.0 + (1.0 + fmas) * t2 + constants.step_slots),
        // A thread's elements of A and of B, one a load, and their products.
        Kernel::Ladder => {
            let own = f64::from(variant.cols);
            k * (own * own + 2.0 * own + constants.step_slots)
        }
        Kernel::GemmRing => k / t3 * (gemm_stage(variant, problem, width) + constants.gemm_stage_slots),
        Kernel::Ring => k / t3 * (stage(variant, width) + constants.stage_slots),
        Kernel::Tsmm | Kernel::Tall => super::tsmm::instructions(variant, problem, constants),
        Kernel::Gemm => k * (fmas * t3 * t2 + (t3 + t2) / width + constants.gemm_step_slots),
        Kernel::Tsmttsm | Kernel::Gram => k * reduced_row(variant, problem, width, constants),
        Kernel::Gemv => super::gemv::instructions(variant, problem, constants),
    }
}

/// What a warp of a kernel of two tall matrices issues, a row of all that the block takes: of multiply-adds, loads of 16
/// bytes (or of elements where lines are not multiples of that) and, a load, an address.
fn reduced_row(variant: &Variant, problem: &Problem, width: f64, constants: &Constants) -> f64 {
    let (rows, cols) = (f64::from(variant.own_rows()), f64::from(variant.cols));
    let groups = reduced::Owned::of(variant, problem).groups;
    let multiple = |length: u64| length.wrapping_mul(problem.dtype.bytes()) % PIECE_BYTES as u64 == 0;
    // Of a ring of rows on the vector units lines along k are copied by elements; of one of lines they are loaded by 16 bytes, however they are copied.
    let turned = reduced::is_turned(variant, problem);
    let wide = multiple(problem.m) && multiple(problem.n) && multiple(problem.a.row.max(problem.a.col)) && !turned;
    let along = variant.name.ends_with("_along") || variant.is_by_lines();
    let width = if wide || along { width } else { 1.0 };
    let lines = if problem.gram && variant.mma { rows } else { rows + cols };
    let counted = if variant.is_by_eights() {
        // Products of half as many steps, and loads of what is not copied by it.
        let products = f64::from(eights::sums_a_row(variant) * variant.dtype.fmas()) / (f64::from(MMA_FMAS) / 2.0);
        products + lines / f64::from(folds(variant)) / WARP
    } else if variant.mma {
        // Of real numbers 16 x 8 x 16 together, of complex ones half of that, and of lines an element in 32 a lane.
        let together = f64::from(MMA_FMAS) / if variant.dtype.is_complex() { 2.0 } else { 1.0 };
        rows * cols * f64::from(folds(variant) * variant.dtype.fmas()) / together + COPY * lines / WARP / width
    } else {
        // Loads, predicates and addresses of elements.
        let (loads, rows_a_turn) = match variant.is_fitted() {
            true => (fit::loads(variant, problem.m, problem.n), 1.0),
            false => (lines / width * COPY, f64::from(variant.t3)),
        };
        f64::from(variant.dtype.fmas()) * rows * cols + loads + constants.step_slots / rows_a_turn
    };
    // Whatever its leading dimension: parts of k follow from the shape.
    let along_k = (problem.a.col == 1 || problem.m == 1) && (problem.b.row == 1 || problem.n == 1);
    let copied_wide = match (variant.is_by_lines(), variant.is_fitted()) {
        (true, _) => along_k && multiple(problem.k),
        (_, true) => wide || reduced::are_runs(problem),
        _ if variant.is_by_eights() => reduced::are_runs(problem),
        _ => wide,
    };
    let single = if copied_wide { 0.0 } else { reduced::by_element(variant, problem) };
    counted * reduced::costs(variant).issue / groups + single
}

/// What a warp of a ring issues a stage: multiply-adds, loads from shared memory, copies of A by 16 bytes and of B by
/// elements, and moves of what was loaded where even and odd steps have no registers of their own.
fn stage(variant: &Variant, width: f64) -> f64 {
    let (rows, cols) = (f64::from(variant.own_rows()), f64::from(variant.cols));
    let (steps, threads) = (f64::from(variant.t3), f64::from(variant.threads));
    let copies = (f64::from(variant.rows) * steps / width + f64::from(variant.t2) * steps) / threads;
    let by_rows = variant.layout == Layout::Rows;
    let is_copied = copies_b(variant);
    let (multiplied, held) = if variant.mma && variant.dtype.is_complex() {
        // Two products of 16 x 8 x 8 for 8 x 8 x 8 of complex numbers; two loads for its A, turned by four instructions, two for its B.
        let (row_tiles, col_tiles) = (rows / 8.0, cols / 8.0);
        let loads = 2.0 * (row_tiles + col_tiles);
        (steps / 8.0 * (2.0 * row_tiles * col_tiles + loads + 4.0 * row_tiles), steps / 8.0 * loads)
    } else if variant.splits_f32() {
        // Of 16 steps six products of 16 x 8 x 8, whose four sums are set to 0 by twos and added; of each element of a lane, eight of A's tile and four of B's,
        // its parts, by three instructions; loads of four.
        let (row_tiles, col_tiles) = (rows / 16.0, cols / 8.0);
        let (a, b) = (8.0 * row_tiles, 4.0 * col_tiles);
        (steps / 16.0 * (12.0 * row_tiles * col_tiles + (3.0 + 0.25) * (a + b)), 0.0)
    } else if variant.mma {
        // A product of 16 x 8 x 16; four loads of two elements for its A, two for its B.
        let (row_tiles, col_tiles) = (rows / 16.0, cols / 8.0);
        let loads = 4.0 * row_tiles + 2.0 * col_tiles;
        (steps / 16.0 * (row_tiles * col_tiles + loads), steps / 16.0 * 2.0 * loads)
    } else {
        let meetings = match by_rows && !is_copied {
            _ if variant.dtype != Dtype::C64 || variant.own_rows() * variant.cols < 16 => 1.0,
            true => MEETINGS_ROWS,
            false => MEETINGS_RING,
        };
        let products = meetings * f64::from(variant.dtype.fmas()) * rows * cols;
        (steps * (products + (rows + cols) / width), steps * (rows + cols))
    };
    let real_cols = variant.cols * if variant.mma && variant.dtype.is_complex() { 2 } else { 1 };
    let stays = is_copied || ring_takes_turns(by_rows, variant.mma, real_cols);
    let moves = if stays { 0.0 } else { held * REGISTERS / width };
    multiplied + moves + COPY * copies
}

/// What a warp of a ring for products of any shape issues a stage: multiply-adds, loads from shared memory, and copies of A and
/// B, by 16 bytes or by elements: the vector units' entries copy 16 bytes of an operand whose unit stride runs across its lines, or
/// `gemm_along` along k, where those are whole 16 bytes together. Its loads of elements of neighbouring steps the assembler joins.
/// What the leading dimension is does not matter: parts of k, and so bits, follow from the shape.
fn gemm_stage(variant: &Variant, problem: &Problem, width: f64) -> f64 {
    let (rows, cols) = (f64::from(variant.own_rows()), f64::from(variant.cols));
    let (steps, threads) = (f64::from(variant.t3), f64::from(variant.threads));
    let whole = |all: u64| all % width as u64 == 0;
    // Of an operand with these strides across its lines and along k, and so many lines.
    let by_16_bytes = |across: u64, along: u64, all: u64| match (variant.mma, variant.is_along_k()) {
        (true, _) => !variant.copies_elements(),
        (_, true) => along == 1 && whole(problem.k),
        _ => width == 1.0 || across == 1 && whole(all),
    };
    // The other warps of a scheduler issue while one waits until its elements are taken.
    let others = (f64::from(variant.min_blocks * variant.threads) / WARP / SCHEDULERS - 1.0).max(1.0);
    let copies = |lines: u32, (across, along): (u64, u64), all: u64| {
        let elements = f64::from(lines) * steps / threads;
        match (by_16_bytes(across, along, all), variant.mma) {
            (true, _) => COPY * elements / width,
            (false, true) => COPY * elements,
            (false, false) => elements * (COPY + ELEMENT / others),
        }
    };
    let Problem { a, b, m, n, .. } = *problem;
    let copies = copies(variant.rows, (a.row, a.col), m) + copies(variant.t2, (b.col, b.row), n);
    let multiplied = if variant.mma {
        // A product of 16 x 8 x 4; a load for each 16 rows of A and each 16 columns of B.
        steps / 4.0 * (rows * cols / 128.0 + (rows + cols) / 16.0)
    } else {
        let meetings = match variant.dtype {
            Dtype::C64 => MEETINGS_C64,
            _ if variant.is_along_k() => MEETINGS,
            _ => 1.0,
        };
        steps * (meetings * f64::from(variant.dtype.fmas()) * rows * cols + (rows + cols) / width)
    };
    multiplied + copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, VARIANTS};

    fn variant(entry: &str) -> &'static Variant {
        VARIANTS.iter().find(|v| v.entry == entry).expect("an entry")
    }

    /// 8 x 8 sums of 16 steps: 1024 multiply-adds and 64 loads; of A 512 x 16, of B 16 x 32 elements by 256 threads: 8
    /// pieces of four and 2 elements, 20 instructions. In a mean of 20480 / 16 stages, by 8 warps of 4 schedulers.
    #[test]
    fn a_stages_instructions_are_counted() {
        let none = Constants {
            stage_slots: 0.0,
            step_slots: 0.0,
            gemm_step_slots: 0.0,
            gemm_stage_slots: 0.0,
            ..Constants::FITTED
        };
        let (v, h200) = (variant("stsm2r_staged_8x8_n32_k16_s2_t256"), Machine::H200);
        let problem = Problem::column_major(Dtype::F32, 20_480, 32, 20_480);
        let wanted = 1280.0 * (1024.0 + 64.0 + 20.0) * 8.0 / (4.0 * 1.98e9);
        assert!((issue_s(v, &problem, &h200, &none) / wanted - 1.0).abs() <= 1e-12);
        let more = issue_s(v, &problem, &h200, &Constants { stage_slots: 100.0, ..none });
        assert!((more / wanted - (1108.0 + 100.0) / 1108.0).abs() <= 1e-12);
        // Half the schedulers take twice the time.
        let half = Machine { register_partitions: 2, ..h200 };
        assert!((issue_s(v, &problem, &half, &none) / wanted - 2.0).abs() <= 1e-12);
    }

    /// Lines along k: a ring of rows copies them by elements, whatever m and n are, and a ring of lines those of a k that is no whole pieces.
    #[test]
    fn lines_along_k_are_copied_by_elements_or_pieces() {
        let by_columns = |k: u64| Problem {
            a: crate::Strides::column_major(k).transposed(),
            ..Problem::column_major(Dtype::F32, 64, 64, k)
        };
        let by_rows = Problem {
            a: crate::Strides::row_major(64).transposed(),
            b: crate::Strides::row_major(64),
            ..by_columns(1000)
        };
        let a_row = |entry, p: &Problem| reduced_row(variant(entry), p, 4.0, &Constants::FITTED);
        let (rows, lines) = ("stsmttsm_fitted_8x8_u2_t128", "stsmttsm_lines_8x8_m64n64_u8_t256");
        let more = a_row(lines, &by_columns(1001)) - a_row(lines, &by_columns(1000));
        assert!((more / reduced::by_element(variant(lines), &by_columns(1001)) - 1.0).abs() <= 1e-12);
        assert_eq!(a_row(lines, &by_rows), a_row(lines, &by_columns(1001)));
        assert!(a_row(rows, &by_columns(1000)) > a_row(rows, &by_rows) + reduced::by_element(variant(rows), &by_rows));
        assert_eq!(a_row(rows, &by_columns(1000)), a_row(rows, &by_columns(1001)));
    }

    /// A step of k: f64 in one row and 4 columns: 4 multiply-adds, 2 loads of B, one of A; by elements of the cache 4 of B.
    #[test]
    fn a_steps_instructions_are_counted() {
        let none = Constants {
            stage_slots: 0.0,
            step_slots: 0.0,
            gemm_step_slots: 0.0,
            gemm_stage_slots: 0.0,
            ..Constants::FITTED
        };
        for (entry, a_step) in [
            ("dtsm2r_prefetch_1x4_u16_t128", 7.0),
            ("dtsm2r_outer_1x4_u1_t128", 9.0),
            ("dtsm2r_inner_1x1_u1_t128", 9.0),
            ("dgemm_tiled_4x4_t256", 20.0),
            // Complex: four multiply-adds a product; 16 bytes are two elements, or one.
            ("ctsm2r_prefetch_1x4_u8_t128", 1.0 + 16.0 + 2.0),
            ("ztsm2r_prefetch_1x4_u4_t128", 1.0 + 16.0 + 4.0),
            ("ztsm2r_outer_1x4_u1_t128", 1.0 + 20.0),
            // Of 16 steps one product of 16 x 16: two tiles, 4 + 4 loads; copies of A 64 x 32 in twos, of B 32 x 16, 24.
            ("dtsm2r_mma_16x16_n16_k32_s3_t128", (2.0 * 10.0 + 24.0) / 32.0),
            // 8 x 16 sums and 6 loads a step; of 8 steps 2 copies of A's 128 x 8, and of B's, by columns, 8 of elements, for which one other
            // warp issues.
            ("sgemm_staged_8x16_m128_n128_k8_s3_t128", 134.0 + (4.0 + 8.0 * 16.0) / 8.0),
            // 8 x 8 sums and 4 loads; of 16 steps 4 copies of A's, and 8 of elements of B's 64 x 16, for which two do; along k 16 of
            // elements of A, which lies across it, and 2 of B's.
            ("sgemm_staged_8x8_m128_n64_k16_s3_t128", 68.0 + (8.0 + 8.0 * 9.0) / 16.0),
            // c64: 8 x 4 sums and 6 loads; of 16 steps 4 copies of A's 64 x 16, and 8 of elements of B's, for which three warps do; along k the other
            // way round.
            ("cgemm_staged_8x4_m64_n64_k16_s3_t128", 1.2 * 128.0 + 6.0 + (4.0 * 2.0 + 8.0 * (2.0 + 14.0 / 3.0)) / 16.0),
            ("cgemm_along_8x4_m64_n64_k16_s3_t128", 1.2 * 128.0 + 6.0 + (8.0 * (2.0 + 14.0 / 3.0) + 4.0 * 2.0) / 16.0),
            // TSM2R's ring: of 16 steps copies of A's rows in twos and of B's columns by elements; moves where a ring by rows loads ahead.
            ("ctsm2r_staged_2x4_n8_k16_s3_t128", 32.0 + 3.0 + 2.0 * (8.0 + 1.0) / 16.0),
            ("ctsm2r_staged_4x4_n16_k16_s3_t128", 1.3 * 64.0 + 4.0 + 2.0 * (8.0 + 2.0) / 16.0),
            ("ctsm2r_staged_8x4_n64_k16_s3_t128", 1.3 * 128.0 + 6.0 + 2.0 * (4.0 + 8.0) / 16.0),
            ("ctsm2r_staged_8x4_n64_k16_s3_t128_rows", 1.3 * 128.0 + 6.0 + 2.0 * (4.0 + 8.0) / 16.0),
            ("ctsm2r_staged_4x4_n16_k16_s3_t128_rows", 1.15 * 64.0 + 4.0 + 16.0 + 2.0 * (8.0 + 2.0) / 16.0),
            ("sgemm_along_8x8_m128_n64_k16_s3_t128", 1.195 * 64.0 + 4.0 + (16.0 * 9.0 + 2.0 * 2.0) / 16.0),
            // Of 4 steps 8 products of 16 x 8 and 4 loads; of 32 steps 16 copies of both operands' 64 x 32, of 16 steps 16 of elements.
            ("dgemm_mma_32x32_m64_n64_k32_s3_t128", 12.0 / 4.0 + 32.0 / 32.0),
            ("dgemm_mma_elements_32x32_m64_n64_k16_s3_t128", 12.0 / 4.0 + 32.0 / 16.0),
            // Two tall matrices, four groups: of 16 steps two products and, n being odd, 16 loads by elements, and what those of a row
            // take beside that, shared by four warps.
            ("dtsmttsm_mma_16x16_m16n16_d2_t128", (2.0 + 2.0 * 16.0) / 16.0 / 4.0 + 8.57 * 32.0 / 128.0),
            // Complex, eight groups: of 8 steps 32 products, and 16 loads of an element.
            ("ztsmttsm_mma_32x32_m32n32_d1_t256", (32.0 + 2.0 * 16.0) / 8.0 / 8.0),
            // Of 16 steps of 16 x 16 16 products, 16 loads, and 16 instructions that turn A; of those steps 8 copies of 64 x 16 and 2 of 16 x 16.
            ("ztsm2r_mma_16x16_n16_k16_s3_t128", 48.0 / 16.0 + 2.0 * 10.0 / 16.0),
            // 4 x 4 sums, 2 loads and 8 moves a step; of 32 steps 8 copies of A's 128 x 32 and 4 of B's 32 x 16 elements.
            ("stsm2r_staged_4x4_n16_k32_s2_t128_rows", (32.0 * 26.0 + 24.0) / 32.0),
        ] {
            let problem = Problem::column_major(variant(entry).dtype, 1000, 3, 100);
            let found = instructions(variant(entry), &problem, &none);
            assert!((found / (100.0 * a_step) - 1.0).abs() <= 1e-12, "{entry}: {found}");
        }
    }
}
