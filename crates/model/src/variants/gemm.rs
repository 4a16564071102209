//! The entries for products of any shape: the rungs that teach, and those that go through a ring of stages.

use super::elem;
use crate::{Dtype, Kernel, Layout, Problem, Variant};

impl Variant {
    /// Whether it is the ring of the smallest tiles on f64's matrix units, for an A by columns: for two tall matrices of few rows, too.
    pub(crate) const fn is_small_ring(&self) -> bool {
        let is_small = self.mma && self.t2 <= 8 && matches!(self.layout, Layout::Columns);
        matches!(self.kernel, Kernel::Ring) && is_small && matches!(self.dtype, Dtype::F64)
    }

    /// Whether it computes Gram matrices, a `triangle` alone or all. The ring of the smallest tiles computes all of a real one as any product,
    /// exactly symmetric: each sum is one chain, in the order of k, of products that commute.
    pub const fn computes_gram(&self, triangle: bool) -> bool {
        matches!(self.kernel, Kernel::Gram) || !triangle && self.is_small_ring()
    }

    /// Whether it computes what is asked for: a Gram matrix, or another product.
    pub const fn computes(&self, problem: &Problem) -> bool {
        if problem.gram { self.computes_gram(problem.triangle) } else { !matches!(self.kernel, Kernel::Gram) }
    }

    /// Whether the last of a tile's blocks can add the parts of k itself: [`crate::launch::reduced::is_joined`].
    pub const fn joins(&self) -> bool {
        matches!(self.kernel, Kernel::Ring | Kernel::GemmRing)
    }

    /// Whether it is for products for any shape whose lines are not aligned to 16 bytes.
    pub const fn copies_elements(&self) -> bool {
        matches!(self.name.as_bytes(), b"gemm_mma_elements")
    }

    /// Whether it is for an A and a B that both lie along k, and keeps them so in its stages, on the vector units.
    pub const fn is_along_k(&self) -> bool {
        matches!(self.name.as_bytes(), b"gemm_along")
    }

    /// Whether it is for products of any shape, and its tiles are four times as long as wide: for a C of one column of them.
    pub const fn is_long(&self) -> bool {
        matches!(self.kernel, Kernel::GemmRing) && self.rows >= 4 * self.t2
    }
}

/// The rungs of a course's report: `entry: element, module, variant, S, elements a side of a thread, steps of k, tiles at a
/// time, whether it serves whole tiles alone`; a block is S x S threads.
///
/// Of both types each rung with the report's 32 x 32 threads; the smaller tiles, and tiles that are always whole, where the
/// report compares them: the plain tile and the best version, the latter in the precision that the report's memory tells.
#[macro_export]
macro_rules! gemm_ladder_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                elem module       variant          S  own k   tiles fixed
            sgemm_naive_1x1_k32_t1024:              f32, naive,       naive,           32, 1, 32, 0,    false;
            sgemm_uncoalesced_1x1_k32_t1024:        f32, uncoalesced, uncoalesced,     32, 1, 32, 1,    false;
            sgemm_coalesced_1x1_k8_t64:             f32, coalesced,   coalesced,       8,  1, 8,  1,    false;
            sgemm_coalesced_1x1_k16_t256:           f32, coalesced,   coalesced,       16, 1, 16, 1,    false;
            sgemm_coalesced_1x1_k32_t1024:          f32, coalesced,   coalesced,       32, 1, 32, 1,    false;
            sgemm_coalesced_fixed_1x1_k32_t1024:    f32, coalesced,   coalesced_fixed, 32, 1, 32, 1,    true;
            sgemm_unrolled_1x1_k64_t1024:           f32, unrolled,    unrolled,        32, 1, 64, 1,    false;
            sgemm_interleaved_1x1_k32_t1024:        f32, interleaved, interleaved,     32, 1, 32, 2,    false;
            sgemm_four_2x2_k32_t1024:               f32, four,        four,            32, 2, 32, 1,    false;

            dgemm_naive_1x1_k32_t1024:              f64, naive,       naive,           32, 1, 32, 0,    false;
            dgemm_uncoalesced_1x1_k32_t1024:        f64, uncoalesced, uncoalesced,     32, 1, 32, 1,    false;
            dgemm_coalesced_1x1_k32_t1024:          f64, coalesced,   coalesced,       32, 1, 32, 1,    false;
            dgemm_unrolled_1x1_k64_t1024:           f64, unrolled,    unrolled,        32, 1, 64, 1,    false;
            dgemm_interleaved_1x1_k32_t1024:        f64, interleaved, interleaved,     32, 1, 32, 2,    false;
            dgemm_four_2x2_k8_t64:                  f64, four,        four,            8,  2, 8,  1,    false;
            dgemm_four_2x2_k16_t256:                f64, four,        four,            16, 2, 16, 1,    false;
            dgemm_four_2x2_k32_t1024:               f64, four,        four,            32, 2, 32, 1,    false;
            dgemm_four_fixed_2x2_k32_t1024:         f64, four,        four_fixed,      32, 2, 32, 1,    true;
        }
    };
}

/// The entries that multiply on the vector units: `entry: element, variant, how A and B are copied, threads, TM, TN, BM, BN, KT, stages, blocks an
/// SM`; a thread owns TM x TN of C, a block BM x BN.
///
/// f32 has a large tile, one with which a square of 1024 fills a GPU of 132 SMs, and two for what is smaller; for A and B along k, a tile that
/// stands and one that lies, for 49 to 64 columns or rows. c64 has one, also for A and B along k, and a
/// smaller for squares up to 400 or so. f64 is for GPUs without the matrix
/// units' f64 of sm_90.
#[macro_export]
macro_rules! gemm_staged_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                    elem  variant way     threads TM TN  BM   BN   KT  stages blocks
            sgemm_staged_8x16_m128_n128_k8_s3_t128:     f32,  staged, Either, 128,    8, 16, 128, 128, 8,  3,     2;
            sgemm_staged_8x8_m128_n64_k16_s3_t128:      f32,  staged, Either, 128,    8, 8,  128, 64,  16, 3,     3;
            sgemm_staged_4x8_m64_n64_k8_s3_t128:        f32,  staged, Either, 128,    4, 8,  64,  64,  8,  3,     4;
            sgemm_staged_4x4_m64_n32_k16_s3_t128:       f32,  staged, Either, 128,    4, 4,  64,  32,  16, 3,     4;
            sgemm_along_8x8_m128_n64_k16_s3_t128:       f32,  along,  Along,  128,    8, 8,  128, 64,  16, 3,     3;
            sgemm_along_8x8_m64_n128_k16_s3_t128:       f32,  along,  Along,  128,    8, 8,  64,  128, 16, 3,     3;
            dgemm_staged_4x8_m64_n64_k8_s3_t128:        f64,  staged, Either, 128,    4, 8,  64,  64,  8,  3,     3;
            cgemm_staged_8x4_m64_n64_k16_s3_t128:       c64,  staged, Either, 128,    8, 4,  64,  64,  16, 3,     4;
            cgemm_staged_4x2_m32_n32_k16_s3_t128:       c64,  staged, Either, 128,    4, 2,  32,  32,  16, 3,     4;
            cgemm_along_8x4_m64_n64_k16_s3_t128:        c64,  along,  Along,  128,    8, 4,  64,  64,  16, 3,     4;
            zgemm_staged_4x4_m64_n32_k8_s3_t128:        c128, staged, Either, 128,    4, 4,  64,  32,  8,  3,     2;
        }
    };
}

/// The entries that multiply on the matrix units of sm_90: `entry: element, variant, the kernel's function, warps, RB, NT, BM, BN, KT, stages,
/// blocks an SM`; a warp owns 16·RB x 8·NT of C, a block BM x BN.
///
/// A large tile; a long one, for 49 to 64 columns; one for squares of which there would be few, and for 49 to 64 columns by rows; and one for squares up to 600 or so, whose every block counts; for
/// operands of which no 16 bytes can be copied, also of 33 columns on, whose copies take more of a step, a tile with shorter stages and more blocks, and
/// the small one.
#[macro_export]
macro_rules! gemm_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                       elem variant       body      warps RB NT BM   BN   KT  stages blocks
            dgemm_mma_32x64_m128_n128_k32_s3_t256:         f64, mma,          body,     8,    2, 8, 128, 128, 32, 3,     1;
            dgemm_mma_64x32_m256_n64_k16_s3_t256:          f64, mma,          body,     8,    4, 4, 256, 64,  16, 3,     1;
            dgemm_mma_32x32_m64_n64_k32_s3_t128:           f64, mma,          body,     4,    2, 4, 64,  64,  32, 3,     2;
            dgemm_mma_16x16_m32_n32_k32_s3_t128:           f64, mma,          body,     4,    1, 2, 32,  32,  32, 3,     4;
            dgemm_mma_elements_32x32_m64_n64_k16_s3_t128:  f64, mma_elements, elements, 4,    2, 4, 64,  64,  16, 3,     3;
            dgemm_mma_elements_16x16_m32_n32_k32_s3_t128:  f64, mma_elements, elements, 4,    1, 2, 32,  32,  32, 3,     4;
        }
    };
}

/// The entries of complex elements on the matrix units of sm_90: `entry: element, warps, RB, NT, BM, BN, KT, stages, blocks an SM`; as
/// [`gemm_mma_variants!`](crate::gemm_mma_variants). The smaller tiles are for squares of up to 900 and 300 or so; the smallest has stages of 16 steps,
/// since one of 8 is over before the next has come.
#[macro_export]
macro_rules! gemm_mma_complex_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                elem  warps RB NT BM   BN  KT  stages blocks
            zgemm_mma_32x32_m128_n64_k8_s3_t256:    c128, 8,    2, 4, 128, 64, 8,  3,     1;
            zgemm_mma_32x32_m64_n64_k8_s3_t128:     c128, 4,    2, 4, 64,  64, 8,  3,     2;
            zgemm_mma_16x32_m64_n32_k8_s3_t128:     c128, 4,    1, 4, 64,  32, 8,  3,     3;
            zgemm_mma_16x16_m32_n32_k16_s3_t128:    c128, 4,    1, 2, 32,  32, 16, 3,     3;
        }
    };
}

macro_rules! ladder_rows {
    ($($entry:ident: $elem:ident, $module:ident, $variant:ident, $side:literal, $own:literal, $k:literal, $stages:literal, $fixed:literal;)*) => {
        pub(super) const LADDER: &[Variant] = &[$(Variant {
            name: concat!("gemm_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Ladder,
            threads: $side * $side, t2: $own * $side, t3: $k, rows: $own * $side, cols: $own, stages: $stages,
            layout: Layout::Any, mma: false, min_blocks: 1, wide_shared: false,
        }),*];
    };
}
gemm_ladder_variants!(ladder_rows);

macro_rules! staged_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $way:ident, $threads:literal, $tm:literal, $tn:literal, $bm:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const STAGED: &[Variant] = &[$(Variant {
            name: concat!("gemm_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::GemmRing,
            threads: $threads, t2: $bn, t3: $kt, rows: $bm, cols: $tn, stages: $stages, layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: !matches!(stringify!($variant).as_bytes(), b"along"),
        }),*];
    };
}
gemm_staged_variants!(staged_rows);

macro_rules! mma_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $body:ident, $warps:literal, $rb:literal, $nt:literal, $bm:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const MMA: &[Variant] = &[$(Variant {
            name: concat!("gemm_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::GemmRing,
            threads: 32 * $warps, t2: $bn, t3: $kt, rows: $bm, cols: 8 * $nt, stages: $stages, layout: Layout::Any, mma: true,
            min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
gemm_mma_variants!(mma_rows);

macro_rules! complex_mma_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bm:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const COMPLEX_MMA: &[Variant] = &[$(Variant {
            name: "gemm_mma", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::GemmRing,
            threads: 32 * $warps, t2: $bn, t3: $kt, rows: $bm, cols: 8 * $nt, stages: $stages, layout: Layout::Any, mma: true,
            min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
gemm_mma_complex_variants!(complex_mma_rows);
