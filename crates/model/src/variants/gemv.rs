//! The entries of GEMV: a matrix times a vector, or two.

use super::{Kernel, Layout, Variant, elem};
use crate::Problem;

/// The entries of GEMV: `entry: element, variant, threads, BM, TM, NB, steps, blocks an SM`; a block has BM rows of y, of NB vectors, a thread
/// TM of them and THREADS·TM / BM threads share them, each with steps of k of its own, `steps` at a time.
///
/// | variant | Sørensen | idea |
/// |---|---|---|
/// | columns | | A's unit stride down its columns: 16 bytes of rows a thread, several columns in flight |
/// | tall | | the same where columns are long, k whole: each load multiplied before the next |
/// | lines | | the same by bulk copies, wherever columns begin: [`gemv_lines_variants!`](crate::gemv_lines_variants) |
/// | dots | | A's unit stride along its rows: 16 bytes of each of several rows a thread, lanes along k |
/// | one_thread | (a) | a thread a row, x by chunks in shared memory; k whole |
/// | several_threads | (b) | the same, k in parts |
/// | several_rows | (c) | a thread has several rows; k whole |
/// | versatile | (d) | the same, k in parts |
/// | wide | (e) | threads of a block run along the columns of a low matrix |
///
/// (a) to (d) are for whoever names them: the model chooses among the others. Their grids are
/// [`crate::paper::gemv::grid`]'s.
#[macro_export]
macro_rules! gemv_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                     elem  variant      threads BM TM NB steps blocks
            sgemv_tall_4x1_m128n1_u8_t256:               f32,  tall,            256, 128,  4, 1, 8, 4;
            sgemv_tall_4x1_m1024n1_u8_t256:              f32,  tall,            256, 1024, 4, 1, 8, 4;
            sgemv_columns_4x1_m128n1_u8_t256:            f32,  columns,         256, 128,  4, 1, 8, 2;
            sgemv_columns_4x1_m1024n1_u8_t256:           f32,  columns,         256, 1024, 4, 1, 8, 2;
            sgemv_columns_4x2_m128n2_u8_t256:            f32,  columns,         256, 128,  4, 2, 8, 2;
            sgemv_dots_8x1_m8n1_u4_t256:                 f32,  dots,            256, 8,    8, 1, 4, 0;
            sgemv_dots_8x1_m64n1_u4_t256:                f32,  dots,            256, 64,   8, 1, 4, 0;
            sgemv_dots_8x2_m8n2_u4_t256:                 f32,  dots,            256, 8,    8, 2, 4, 2;
            sgemv_dots_8x2_m64n2_u4_t256:                f32,  dots,            256, 64,   8, 2, 4, 2;
            sgemv_one_thread_1x1_m128n1_u8_t128:         f32,  one_thread,      128, 128,  1, 1, 8, 0;
            sgemv_several_threads_1x1_m128n1_u8_t128:    f32,  several_threads, 128, 128,  1, 1, 8, 0;
            sgemv_several_rows_4x1_m512n1_u4_t128:       f32,  several_rows,    128, 512,  4, 1, 4, 0;
            sgemv_versatile_4x1_m512n1_u4_t128:          f32,  versatile,       128, 512,  4, 1, 4, 0;
            sgemv_wide_4x1_m128n1_u4_t256:               f32,  wide,            256, 128,  4, 1, 4, 2;

            dgemv_tall_2x1_m64n1_u8_t256:                f64,  tall,            256, 64,   2, 1, 8, 4;
            dgemv_columns_2x1_m64n1_u8_t256:             f64,  columns,         256, 64,   2, 1, 8, 2;
            dgemv_columns_2x1_m512n1_u8_t256:            f64,  columns,         256, 512,  2, 1, 8, 2;
            dgemv_columns_2x2_m64n2_u8_t256:             f64,  columns,         256, 64,   2, 2, 8, 2;
            dgemv_dots_8x1_m8n1_u2_t256:                 f64,  dots,            256, 8,    8, 1, 2, 3;
            dgemv_dots_8x1_m64n1_u2_t256:                f64,  dots,            256, 64,   8, 1, 2, 0;
            dgemv_dots_8x2_m8n2_u2_t256:                 f64,  dots,            256, 8,    8, 2, 2, 2;
            dgemv_one_thread_1x1_m128n1_u8_t128:         f64,  one_thread,      128, 128,  1, 1, 8, 0;
            dgemv_several_threads_1x1_m128n1_u8_t128:    f64,  several_threads, 128, 128,  1, 1, 8, 0;
            dgemv_several_rows_4x1_m512n1_u4_t128:       f64,  several_rows,    128, 512,  4, 1, 4, 0;
            dgemv_versatile_4x1_m512n1_u4_t128:          f64,  versatile,       128, 512,  4, 1, 4, 0;
            dgemv_wide_2x1_m128n1_u4_t256:               f64,  wide,            256, 128,  2, 1, 4, 2;

            cgemv_columns_2x1_m64n1_u8_t256:             c64,  columns,         256, 64,   2, 1, 8, 2;
            cgemv_columns_2x1_m512n1_u8_t256:            c64,  columns,         256, 512,  2, 1, 8, 2;
            cgemv_dots_8x1_m8n1_u2_t256:                 c64,  dots,            256, 8,    8, 1, 2, 0;
            cgemv_dots_8x1_m64n1_u2_t256:                c64,  dots,            256, 64,   8, 1, 2, 0;
            cgemv_dots_8x1_m256n1_u2_t256:               c64,  dots,            256, 256,  8, 1, 2, 0;
            cgemv_wide_2x1_m128n1_u4_t256:               c64,  wide,            256, 128,  2, 1, 4, 2;

            zgemv_columns_1x1_m32n1_u8_t256:             c128, columns,         256, 32,   1, 1, 8, 3;
            zgemv_columns_1x1_m256n1_u8_t256:            c128, columns,         256, 256,  1, 1, 8, 3;
            zgemv_dots_8x1_m8n1_u1_t256:                 c128, dots,            256, 8,    8, 1, 1, 0;
            zgemv_dots_8x1_m64n1_u1_t256:                c128, dots,            256, 64,   8, 1, 1, 0;
            zgemv_dots_8x1_m256n1_u1_t256:               c128, dots,            256, 256,  8, 1, 1, 0;
            zgemv_wide_1x1_m128n1_u4_t256:               c128, wide,            256, 128,  1, 1, 4, 2;
        }
    };
}

/// The entries whose blocks bring A by bulk copies, from sm_90 on: `entry: element, threads, BM, TM, steps, blocks an SM`; columns as of
/// [`gemv_variants!`](crate::gemv_variants), but the last warp multiplies nothing. Tiles have as many rows each, BM at most.
#[macro_export]
macro_rules! gemv_lines_variants {
    ($emit:ident) => {
        $emit! {
            sgemv_lines_2x1_m512n1_u4_t288: f32, 288, 512, 2, 4, 2;
            dgemv_lines_2x1_m512n1_u4_t288: f64, 288, 512, 2, 4, 2;
            cgemv_lines_2x1_m512n1_u4_t288: c64, 288, 512, 2, 4, 2;
        }
    };
}

/// The layout of A that a variant takes.
const fn layout(variant: &str) -> Layout {
    match variant.as_bytes() {
        b"columns" | b"tall" | b"wide" => Layout::Columns,
        b"dots" => Layout::Rows,
        _ => Layout::Any,
    }
}

macro_rules! rows {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $bm:literal, $tm:literal, $nb:literal, $steps:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: concat!("gemv_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gemv,
            threads: $threads, t2: $nb, t3: $steps, rows: $bm, cols: $nb, stages: $threads * $tm / $bm, layout: layout(stringify!($variant)),
            mma: false, min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

/// All of them.
pub(super) const ROWS: &[Variant] = gemv_variants!(rows);

macro_rules! lines_rows {
    ($($entry:ident: $elem:ident, $threads:literal, $bm:literal, $tm:literal, $steps:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: "gemv_lines", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gemv,
            threads: $threads, t2: 1, t3: $steps, rows: $bm, cols: 1, stages: ($threads - 32) * $tm / $bm, layout: Layout::Columns,
            mma: false, min_blocks: $blocks, wide_shared: false,
        }),*]
    };
}

/// Those of [`gemv_lines_variants!`](crate::gemv_lines_variants).
pub(super) const LINES: &[Variant] = gemv_lines_variants!(lines_rows);

impl Variant {
    /// Whether the model considers it for a product of so many vectors: of many rows none by elements; and (a) to (d) of the paper are
    /// asked for.
    pub(crate) const fn suits(&self, problem: &Problem) -> bool {
        let (rows, cols) = if problem.m > problem.n { (problem.m, problem.n) } else { (problem.n, problem.m) };
        let low = !matches!(self.name.as_bytes(), b"gemv_wide") || rows <= self.rows as u64;
        let suits = match self.name.as_bytes() {
            b"gemv_lines" => self.suits_lines(problem),
            b"gemv_tall" => self.suits_tall(problem),
            _ => true,
        };
        cols == self.t2 as u64 && low && !self.is_sorensens() && suits
    }

    /// Whether the model considers `gemv_tall`, of a problem one way round or the other.
    ///
    /// On H200s on 2026-11-29, of the model's choice before (results/h200/gemv-graphs.csv and trials/behind.csv): 77 cases of f32 of 38633 rows and more, up to 1.15 GB, and f64 of 20000 and
    /// 100000 took 0.67 to 1.07 of the time, 0.92 in the mean; f32 of 22275 rows 0.95 to 1.03, more bytes up to 1.05, c128, whose k is cut, up to 1.08. Of f64 more was not timed.
    const fn suits_tall(&self, problem: &Problem) -> bool {
        let (rows, steps) = if problem.m > problem.n { (problem.m, problem.k) } else { (problem.n, problem.k) };
        let column = rows.saturating_mul(self.dtype.bytes());
        column >= 128 << 10 && column.saturating_mul(steps) <= 1_200_000_000
    }

    /// Whether the model considers `gemv_lines`, of a problem one way round or the other: where columns are many, of a large matrix.
    ///
    /// On H200s on 2026-11-29, f32 (results/trials/lines.csv): of 52 to 157 rows without gaps that are no whole sectors, from 73 MB on it was 0.96 to 1.22 times
    /// as fast as the others, of up to 30 rows slower, f64 and c64 of 63 rows and 67 MB 1.02 and 1.03 times as fast; 64 rows were not timed. From 1.9 GB on it was so of more rows, up to 16 a
    /// column, 1.00 to 1.10 times, if columns start anywhere or are whole in a stage; of longer elements too little was measured.
    const fn suits_lines(&self, problem: &Problem) -> bool {
        let upright = if problem.m > problem.n { *problem } else { problem.transposed() };
        let (rows, steps) = (upright.m, upright.k);
        let is_run = self.takes_a_run(&upright);
        let (starts_anywhere, shares_sectors) =
            (rows * self.dtype.bytes() % 16 != 0, rows * self.dtype.bytes() % 32 != 0);
        let least = match self.dtype.bytes() {
            _ if is_run && rows <= 160 && shares_sectors => 64 << 20,
            4 if rows > 160 => 3 << 29,
            _ => u64::MAX,
        };
        let bytes = rows.saturating_mul(steps).saturating_mul(self.dtype.bytes());
        rows > 32 && rows / 16 <= steps && (is_run || starts_anywhere) && bytes >= least
    }

    /// Whether a stage of `gemv_lines` has whole columns of A, one behind the other.
    pub(crate) const fn takes_a_run(&self, problem: &Problem) -> bool {
        problem.m <= self.rows as u64 && problem.a.col == problem.m
    }

    /// Whether bulk copies bring A's columns to a block with a vector's sums.
    pub const fn is_gemv_lines(&self) -> bool {
        matches!(self.name.as_bytes(), b"gemv_lines")
    }

    /// Whether it is one of (a) to (d) of Sørensen's paper, whose blocks share x by chunks of as many elements as they have
    /// threads.
    pub const fn is_sorensens(&self) -> bool {
        matches!(self.kernel, Kernel::Gemv) && matches!(self.layout, Layout::Any)
    }

    /// Whether a block has all of k: the paper's (a) and (c), and ours for tall matrices.
    pub const fn has_all_of_k(&self) -> bool {
        matches!(self.name.as_bytes(), b"gemv_one_thread" | b"gemv_several_rows" | b"gemv_tall")
    }
}
