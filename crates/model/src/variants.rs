//! Which kernels exist: one table, from which `kernels` stamps the entries and the host picks.

pub mod batched;
pub mod bulk;
mod dealt;
mod eights;
mod fitted;
mod gemm;
mod gemv;
pub mod lines;
mod split;
pub mod tsmm;
mod tsmttsm;

use crate::Dtype;
pub use split::splits_f32;

/// A family of kernels; all entries of both are called alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// A large matrix times a skinny one: one thread a row of A, [`Variant::t2`] columns of C.
    Tsm2r,
    /// The same through a ring of stages in shared memory: [`Variant::rows`] rows of A and T2 columns of C a block.
    Ring,
    /// The plain register-tiled product.
    Gemm,
    /// The teaching rungs of such a product: [`Variant::stages`] tiles of [`Variant::rows`] and T2 by T3 steps in shared memory.
    Ladder,
    /// A product of any shape through a ring of stages in shared memory: [`Variant::rows`] rows and T2 columns of C a block.
    GemmRing,
    /// Two tall matrices over their long side: a block has [`Variant::rows`] x T2 of C, [`Variant::stages`] groups of its
    /// threads have all of that, each for rows of its own.
    Tsmttsm,
    /// The same of a matrix and itself.
    Gram,
    /// A matrix times a vector: a block has [`Variant::rows`] of y, [`Variant::stages`] threads or groups of them share those.
    Gemv,
    /// A tall matrix of few columns, by tiles of rows through a ring of stages: [`Variant::t3`] is the most that k may be.
    Tsmm,
    /// The same straight from memory: [`Variant::t3`] steps of k together.
    Tall,
}

/// Where an entry wants A's unit stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Anywhere or nowhere; down the columns is fastest.
    Any,
    /// Down its columns.
    Columns,
    /// Along its rows.
    Rows,
}

/// One entry of one variant: a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The idea: `tsm2r_prefetch`.
    pub name: &'static str,
    /// The symbol in the PTX: `dtsm2r_prefetch_1x8_u16_t128`.
    pub entry: &'static str,
    /// Element type.
    pub dtype: Dtype,
    /// How it is launched.
    pub kernel: Kernel,
    /// Threads a block (T1 in TSM2X).
    pub threads: u32,
    /// Columns of C a thread (T2 in TSM2X; TN of [`Kernel::Gemm`]; a block's of [`Kernel::Ring`] and [`Kernel::GemmRing`]).
    pub t2: u32,
    /// Elements of A a thread loads together (T3 in TSM2X; TM of [`Kernel::Gemm`]; steps of k a stage of
    /// [`Kernel::Ring`] and [`Kernel::GemmRing`]).
    pub t3: u32,
    /// Rows of C a block.
    pub rows: u32,
    /// Columns of C a thread, or a warp of the matrix units.
    pub cols: u32,
    /// Stages of [`Kernel::Ring`] and [`Kernel::GemmRing`], tiles of [`Kernel::Ladder`]; groups of threads along k of [`Kernel::Tsmttsm`], [`Kernel::Gram`]
    /// and [`Kernel::Gemv`]; 0 of the others.
    pub stages: u32,
    /// The layout of A that it takes.
    pub layout: Layout,
    /// Whether it multiplies on the matrix units.
    pub mma: bool,
    /// Blocks an SM for which registers are allotted; 0 leaves it to the assembler, which spills where it must keep a promise.
    pub min_blocks: u32,
    /// Whether the PTX must read shared memory 128 bits at a time.
    pub wide_shared: bool,
}

/// Launch bounds of an entry, written into its PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Most threads a block: `.maxntid`.
    pub threads: u32,
    /// Blocks an SM that must fit: `.minnctapersm`; 0 asks for none.
    pub min_blocks: u32,
}

/// The entries of TSM2R: `entry: element, variant, T1, T2, T3, blocks an SM, wide shared loads`.
///
/// T1 = 128 with T3 = 4, 12, 16, 32 and T1 = 256 with T3 = 4 are TSM2X's own (Table 3).
#[macro_export]
macro_rules! tsm2r_variants {
    ($emit:ident) => {
        $emit! {
            // entry                          elem  variant           T1   T2  T3  blocks  wide
            stsm2r_inner_1x1_u1_t128:             f32, inner,            128, 1,  1, 0, false;
            stsm2r_outer_1x2_u1_t128:             f32, outer,            128, 2,  1, 0, false;
            stsm2r_outer_1x4_u1_t128:             f32, outer,            128, 4,  1, 0, false;
            stsm2r_outer_1x8_u1_t128:             f32, outer,            128, 8,  1, 0, false;
            stsm2r_outer_1x16_u1_t128:            f32, outer,            128, 16, 1, 0, false;
            stsm2r_shared_1x2_u4_t128:            f32, shared,           128, 2,  4, 0, true;
            stsm2r_shared_1x4_u4_t128:            f32, shared,           128, 4,  4, 0, true;
            stsm2r_shared_1x8_u4_t128:            f32, shared,           128, 8,  4, 5, true;
            stsm2r_shared_1x16_u4_t128:           f32, shared,           128, 16, 4, 0, true;
            stsm2r_shared_rowmajor_1x4_u4_t128:   f32, shared_rowmajor,  128, 4,  4, 0, true;
            stsm2r_shared_rowmajor_1x8_u4_t128:   f32, shared_rowmajor,  128, 8,  4, 0, true;
            stsm2r_shared_rowmajor_1x16_u4_t128:  f32, shared_rowmajor,  128, 16, 4, 0, true;
            stsm2r_prefetch_1x1_u32_t128:         f32, prefetch,         128, 1,  32, 0, true;
            stsm2r_prefetch_1x2_u32_t128:         f32, prefetch,         128, 2,  32, 0, true;
            stsm2r_prefetch_1x4_u4_t128:          f32, prefetch,         128, 4,  4, 0, true;
            stsm2r_prefetch_1x4_u32_t128:         f32, prefetch,         128, 4,  32, 0, true;
            stsm2r_prefetch_1x8_u4_t128:          f32, prefetch,         128, 8,  4, 0, true;
            stsm2r_prefetch_1x8_u4_t256:          f32, prefetch,         256, 8,  4, 0, true;
            stsm2r_prefetch_1x8_u16_t128:         f32, prefetch,         128, 8,  16, 4, true;
            stsm2r_prefetch_1x8_u32_t128:         f32, prefetch,         128, 8,  32, 0, true;
            stsm2r_prefetch_1x16_u4_t128:         f32, prefetch,         128, 16, 4, 0, true;
            stsm2r_prefetch_1x16_u16_t128:        f32, prefetch,         128, 16, 16, 0, true;
            stsm2r_prefetch_1x16_u32_t128:        f32, prefetch,         128, 16, 32, 0, true;

            dtsm2r_inner_1x1_u1_t128:             f64, inner,            128, 1,  1, 0, false;
            dtsm2r_outer_1x2_u1_t128:             f64, outer,            128, 2,  1, 0, false;
            dtsm2r_outer_1x4_u1_t128:             f64, outer,            128, 4,  1, 0, false;
            dtsm2r_outer_1x8_u1_t128:             f64, outer,            128, 8,  1, 0, false;
            dtsm2r_outer_1x16_u1_t128:            f64, outer,            128, 16, 1, 0, false;
            dtsm2r_shared_1x2_u4_t128:            f64, shared,           128, 2,  4, 0, true;
            dtsm2r_shared_1x4_u4_t128:            f64, shared,           128, 4,  4, 0, true;
            dtsm2r_shared_1x8_u4_t128:            f64, shared,           128, 8,  4, 0, true;
            dtsm2r_shared_1x16_u4_t128:           f64, shared,           128, 16, 4, 0, true;
            dtsm2r_shared_rowmajor_1x2_u4_t128:   f64, shared_rowmajor,  128, 2,  4, 0, true;
            dtsm2r_shared_rowmajor_1x4_u4_t128:   f64, shared_rowmajor,  128, 4,  4, 0, true;
            dtsm2r_shared_rowmajor_1x8_u4_t128:   f64, shared_rowmajor,  128, 8,  4, 0, true;
            dtsm2r_shared_rowmajor_1x16_u4_t128:  f64, shared_rowmajor,  128, 16, 4, 0, true;
            dtsm2r_prefetch_1x1_u16_t128:         f64, prefetch,         128, 1,  16, 0, true;
            dtsm2r_prefetch_1x2_u16_t128:         f64, prefetch,         128, 2,  16, 0, true;
            dtsm2r_prefetch_1x4_u4_t128:          f64, prefetch,         128, 4,  4, 0, true;
            dtsm2r_prefetch_1x4_u16_t128:         f64, prefetch,         128, 4,  16, 0, true;
            dtsm2r_prefetch_1x8_u4_t128:          f64, prefetch,         128, 8,  4, 0, true;
            dtsm2r_prefetch_1x8_u4_t256:          f64, prefetch,         256, 8,  4, 0, true;
            dtsm2r_prefetch_1x8_u12_t128:         f64, prefetch,         128, 8,  12, 0, true;
            dtsm2r_prefetch_1x16_u4_t128:         f64, prefetch,         128, 16, 4, 0, true;
            dtsm2r_prefetch_1x16_u8_t128:        f64, prefetch,         128, 16, 8,  0, true;
        }
    };
}

/// The entries that go through a ring of stages and multiply on the vector units: `entry: element, threads, TM, TN, BN,
/// KT, stages, blocks an SM, whether A's unit stride runs along its rows`; a thread owns TM x TN, a block BN columns.
#[macro_export]
macro_rules! staged_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                     elem threads TM TN  BN  KT  stages blocks by rows
            stsm2r_staged_4x4_n4_k16_s4_t128:            f32, 128, 4,     4,  4,  16, 4,     1,     false;
            stsm2r_staged_4x4_n8_k16_s3_t128:            f32, 128, 4,     4,  8,  16, 3,     4,     false;
            stsm2r_staged_4x4_n8_k16_s4_t256:            f32, 256, 4,     4,  8,  16, 4,     1,     false;
            stsm2r_staged_4x8_n16_k16_s3_t128:           f32, 128, 4,     8,  16, 16, 3,     4,     false;
            stsm2r_staged_4x8_n16_k16_s4_t256:           f32, 256, 4,     8,  16, 16, 4,     1,     false;
            stsm2r_staged_8x8_n16_k16_s2_t256:           f32, 256, 8,     8,  16, 16, 2,     1,     false;
            stsm2r_staged_4x12_n24_k16_s3_t128:          f32, 128, 4,     12, 24, 16, 3,     3,     false;
            stsm2r_staged_8x12_n24_k16_s2_t128:          f32, 128, 8,     12, 24, 16, 2,     2,     false;
            stsm2r_staged_8x8_n32_k16_s3_t128:           f32, 128, 8,     8,  32, 16, 3,     3,     false;
            stsm2r_staged_8x8_n32_k16_s2_t256:           f32, 256, 8,     8,  32, 16, 2,     2,     false;
            stsm2r_staged_8x12_n48_k16_s3_t128:          f32, 128, 8,     12, 48, 16, 3,     2,     false;
            stsm2r_staged_8x8_n64_k16_s3_t128:           f32, 128, 8,     8,  64, 16, 3,     4,     false;
            stsm2r_staged_16x8_n32_k16_s2_t128:          f32, 128, 16,    8,  32, 16, 2,     2,     false;
            stsm2r_staged_2x4_n8_k64_s2_t128_rows:       f32, 128, 2,     4,  8,  64, 2,     2,     true;
            stsm2r_staged_4x4_n16_k32_s2_t128_rows:      f32, 128, 4,     4,  16, 32, 2,     4,     true;
            stsm2r_staged_4x8_n16_k32_s3_t128_rows:      f32, 128, 4,     8,  16, 32, 3,     2,     true;
            stsm2r_staged_4x12_n24_k32_s2_t128_rows:     f32, 128, 4,     12, 24, 32, 2,     2,     true;
            stsm2r_staged_4x8_n32_k32_s2_t128_rows:      f32, 128, 4,     8,  32, 32, 2,     3,     true;
            stsm2r_staged_8x8_n32_k32_s3_t128_rows:      f32, 128, 8,     8,  32, 32, 3,     2,     true;
            stsm2r_staged_8x12_n48_k16_s3_t128_rows:     f32, 128, 8,     12, 48, 16, 3,     2,     true;
            stsm2r_staged_8x8_n64_k16_s3_t128_rows:      f32, 128, 8,     8,  64, 16, 3,     2,     true;

            dtsm2r_staged_2x4_n4_k16_s3_t128:            f64, 128, 2,     4,  4,  16, 3,     2,     false;
            dtsm2r_staged_2x4_n8_k16_s3_t128:            f64, 128, 2,     4,  8,  16, 3,     3,     false;
            dtsm2r_staged_2x4_n4_k32_s2_t128_rows:       f64, 128, 2,     4,  4,  32, 2,     1,     true;
            dtsm2r_staged_2x4_n8_k32_s2_t128_rows:       f64, 128, 2,     4,  8,  32, 2,     2,     true;
        }
    };
}

/// The entries that go through a ring of stages and multiply on the matrix units of sm_90: `entry: element, warps, RB,
/// NT, BN, KT, stages, blocks an SM, whether A's unit stride runs along its rows`; a warp owns 16·RB rows of C and all BN = 8·NT
/// columns of the block.
#[macro_export]
macro_rules! mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                     elem warps RB NT  BN  KT  stages blocks by rows
            dtsm2r_mma_16x8_n8_k32_s3_t128:              f64, 4,    1,  1,  8,  32, 3,     4,     false;
            dtsm2r_mma_16x16_n16_k32_s3_t128:            f64, 4,    1,  2,  16, 32, 3,     3,     false;
            dtsm2r_mma_32x16_n16_k32_s2_t128:            f64, 4,    2,  2,  16, 32, 2,     2,     false;
            dtsm2r_mma_16x24_n24_k32_s3_t256:            f64, 8,    1,  3,  24, 32, 3,     1,     false;
            dtsm2r_mma_16x32_n32_k16_s3_t256:            f64, 8,    1,  4,  32, 16, 3,     2,     false;
            dtsm2r_mma_32x32_n32_k16_s3_t256:            f64, 8,    2,  4,  32, 16, 3,     1,     false;
            dtsm2r_mma_16x48_n48_k16_s3_t256:            f64, 8,    1,  6,  48, 16, 3,     2,     false;
            dtsm2r_mma_16x8_n8_k64_s2_t128_rows:         f64, 4,    1,  1,  8,  64, 2,     3,     true;
            dtsm2r_mma_16x8_n8_k32_s2_t128_rows:         f64, 4,    1,  1,  8,  32, 2,     6,     true;
            dtsm2r_mma_16x16_n16_k32_s3_t128_rows:       f64, 4,    1,  2,  16, 32, 3,     3,     true;
            dtsm2r_mma_16x16_n16_k32_s4_t256_rows:       f64, 8,    1,  2,  16, 32, 4,     1,     true;
            dtsm2r_mma_16x24_n24_k32_s4_t256_rows:       f64, 8,    1,  3,  24, 32, 4,     1,     true;
            dtsm2r_mma_16x32_n32_k32_s2_t256_rows:       f64, 8,    1,  4,  32, 32, 2,     2,     true;
            dtsm2r_mma_16x48_n48_k16_s3_t256_rows:       f64, 8,    1,  6,  48, 16, 3,     2,     true;
        }
    };
}

/// The entries of the plain product: `entry: element, TM, TN, threads, blocks an SM`; a block owns 16·TM x 16·TN of C.
#[macro_export]
macro_rules! gemm_variants {
    ($emit:ident) => {
        $emit! {
            // entry            elem  TM TN threads blocks
            sgemm_tiled_8x8_t256:  f32,  8, 8, 256, 2;
            dgemm_tiled_4x4_t256:  f64,  4, 4, 256, 3;
        }
    };
}

/// Steps of k that a block of [`Kernel::Gemm`] stages in shared memory.
pub const GEMM_BK: u32 = 8;
/// Threads along each side of a block of [`Kernel::Gemm`].
pub const GEMM_SIDE: u32 = 16;
/// Threads a block of the entries that add slots.
pub const SUM_SLOTS_THREADS: u32 = 256;
/// Threads a block of the entries that measure ceilings.
pub const CEILING_THREADS: u32 = 256;
/// Accesses that a thread of those entries has in flight: what they move is a multiple of this, times the threads.
pub const CEILING_UNROLL: u32 = 8;
/// Fused multiply-adds a thread and round of `sfma_ceiling` and `dfma_ceiling`.
pub const CEILING_FMAS: u32 = 64;
/// `mma.m16n8k16` a warp and round of `dmma_ceiling`.
pub const CEILING_MMAS: u32 = 4;
/// Fused multiply-adds of one `mma.m16n8k16`.
pub const MMA_FMAS: u32 = 16 * 8 * 16;
/// The entries that measure what the memory and the multipliers do at most.
pub const CEILINGS: [&str; 7] = [
    READ_CEILING,
    "copy_ceiling_t256",
    "write_ceiling_t256",
    "update_ceiling_t256",
    "sfma_ceiling_t256",
    "dfma_ceiling_t256",
    "dmma_ceiling_t256",
];
/// The entry that measures the read ceiling.
pub const READ_CEILING: &str = "read_ceiling_t256";

/// The spelling of an element type in a table row.
mod elem {
    use crate::Dtype;
    #[allow(non_upper_case_globals)]
    pub const f32: Dtype = Dtype::F32;
    #[allow(non_upper_case_globals)]
    pub const f64: Dtype = Dtype::F64;
    #[allow(non_upper_case_globals)]
    pub const c64: Dtype = Dtype::C64;
    #[allow(non_upper_case_globals)]
    pub const c128: Dtype = Dtype::C128;
}

macro_rules! tsm2r_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $t1:literal, $t2:literal, $t3:literal, $blocks:literal, $wide:literal;)*) => {
        pub(super) const TSM2R: &[Variant] = &[$(Variant {
            name: concat!("tsm2r_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem,
            kernel: Kernel::Tsm2r, threads: $t1, t2: $t2, t3: $t3, rows: $t1, cols: $t2, stages: 0, layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: $wide,
        }),*];
    };
}
tsm2r_variants!(tsm2r_rows);

macro_rules! gemm_rows {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        pub(super) const GEMM: &[Variant] = &[$(Variant {
            name: "gemm_tiled", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gemm,
            threads: $threads, t2: $tn, t3: $tm, rows: GEMM_SIDE * $tm, cols: $tn, stages: 0, layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
gemm_variants!(gemm_rows);

/// The layout of A that a row of a ring's table asks for.
const fn layout(by_rows: bool) -> Layout {
    if by_rows { Layout::Rows } else { Layout::Columns }
}

macro_rules! staged_rows {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        pub(super) const STAGED: &[Variant] = &[$(Variant {
            name: "tsm2r_staged", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Ring,
            threads: $threads, t2: $bn, t3: $kt, rows: $threads / ($bn / $tn) * $tm, cols: $tn,
            stages: $stages, layout: layout($by_rows), mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
staged_variants!(staged_rows);

macro_rules! mma_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        pub(super) const MMA: &[Variant] = &[$(Variant {
            name: "tsm2r_mma", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Ring,
            threads: 32 * $warps, t2: $bn, t3: $kt, rows: $warps / ($bn / (8 * $nt)) * 16 * $rb, cols: 8 * $nt,
            stages: $stages, layout: layout($by_rows), mma: true, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
mma_variants!(mma_rows);

mod complex;

const TABLES: [&[Variant]; 51] = [
    TSM2R,
    STAGED,
    MMA,
    split::SPLIT,
    GEMM,
    gemm::LADDER,
    gemm::STAGED,
    gemm::MMA,
    gemm::COMPLEX_MMA,
    complex::TSM2R,
    complex::STAGED,
    complex::MMA,
    complex::GEMM,
    tsmm::TSM2L,
    tsmm::GROUP,
    tsmm::PACKED,
    tsmm::COLUMNS,
    tsmm::OUTER,
    tsmm::STAGED,
    tsmm::MMA,
    tsmm::FRAGMENTS,
    bulk::BULK,
    bulk::BULK_REGISTERS,
    bulk::BULK_SHARED,
    bulk::BULK_ROWS,
    lines::LINES,
    lines::LINES_MMA,
    tsmttsm::TILES,
    tsmttsm::MMA,
    tsmttsm::GRAM,
    tsmttsm::GRAM_MMA,
    tsmttsm::FOLDED,
    tsmttsm::GRAM_FOLDED,
    tsmttsm::STAGED,
    tsmttsm::GRAM_STAGED,
    tsmttsm::LINES,
    tsmttsm::GRAM_LINES,
    fitted::FITTED,
    fitted::GRAM_FITTED,
    tsmttsm::RING,
    dealt::DEALT,
    dealt::GRAM_RING,
    tsmttsm::LINES_MMA,
    tsmttsm::GRAM_LINES_MMA,
    dealt::GRAM_DEALT_LINES,
    tsmttsm::PACKED,
    tsmttsm::GRAM_PACKED,
    eights::EIGHTS,
    eights::GRAM_EIGHTS,
    gemv::ROWS,
    gemv::LINES,
];

/// Rows of all tables.
const ROWS: usize = {
    let (mut rows, mut table) = (0, 0);
    while table < TABLES.len() {
        (rows, table) = (rows + TABLES[table].len(), table + 1);
    }
    rows
};

/// Every row of all tables.
pub const VARIANTS: &[Variant] = &{
    let (mut table, mut row, mut at) = (0, 0, 0);
    let mut all = [TSM2R[0]; ROWS];
    while table < TABLES.len() {
        while row < TABLES[table].len() {
            all[at] = TABLES[table][row];
            (row, at) = (row + 1, at + 1);
        }
        (table, row) = (table + 1, 0);
    }
    all
};

impl Variant {
    /// Rows of C a thread, or a warp of the matrix units, but for `tsmm_lines_mma`.
    pub const fn own_rows(&self) -> u32 {
        if self.is_bulk() && !self.mma {
            return self.bulk_lane_rows();
        }
        if self.is_dealt() {
            return crate::launch::reduced::square_side(self.dtype);
        }
        let threads = if self.is_gemv_lines() { self.threads - 32 } else { self.threads };
        let owners = if self.mma && !self.is_lines() { threads / 32 } else { threads };
        match self.kernel {
            // A Gram matrix's warps own squares.
            Kernel::Gram if self.mma => self.cols,
            Kernel::Gram | Kernel::Tsmttsm | Kernel::Gemv => self.rows * self.t2 * self.stages / self.cols / owners,
            _ => self.rows * self.t2 / self.cols / owners,
        }
    }

    /// Whether its blocks finish C themselves, with a workspace of slots and a ticket: those of two tall matrices, and of a
    /// matrix and a vector.
    pub const fn is_reduced(&self) -> bool {
        matches!(self.kernel, Kernel::Tsmttsm | Kernel::Gram | Kernel::Gemv)
    }

    /// Whether it multiplies two tall matrices, or one by itself.
    pub(crate) const fn is_two_tall(&self) -> bool {
        matches!(self.kernel, Kernel::Tsmttsm | Kernel::Gram)
    }

    /// The most rows and columns of C, of an entry that has one tile of it, or a thread for each of its tiles: of a Gram matrix, whose blocks take B to be what they have of
    /// A, or of folded fragments.
    pub const fn most_columns(&self) -> Option<u32> {
        if self.is_fitted() {
            return Some(crate::launch::fit::most_columns(self));
        }
        let is_whole = self.own_rows() == self.rows && self.cols == self.t2;
        let is_gram = matches!(self.kernel, Kernel::Gram) && (self.mma || self.is_staged() || is_whole);
        let is_one = matches!(self.name.as_bytes(), b"tsmttsm_folded" | b"tsmttsm_packed" | b"tsmttsm_eights");
        if is_gram || is_one { Some(self.rows) } else { None }
    }

    /// What m, n and k must be multiples of, of an entry that serves whole tiles alone.
    pub const fn multiples(&self) -> Option<[u32; 3]> {
        if matches!(self.name.as_bytes(), b"gemm_coalesced_fixed" | b"gemm_four_fixed") {
            Some([self.rows, self.t2, self.t3])
        } else {
            None
        }
    }

    /// Whether it computes C transposed where that has more rows: a thread or a block has few columns and many rows.
    pub const fn wants_rows(&self) -> bool {
        !matches!(self.kernel, Kernel::Gemm | Kernel::GemmRing | Kernel::Ladder)
    }

    /// Whether its blocks add to C by float atomics: their order, and so the last bits, differ from run to run.
    pub const fn adds_atomically(&self) -> bool {
        self.is_reduced() && matches!(self.name.as_bytes(), b"tsmttsm_atomic")
    }

    /// The oldest compute capability that has its instructions.
    pub const fn since(&self) -> (u32, u32) {
        match (self.kernel, self.mma) {
            (_, true) => (9, 0),
            _ if self.is_bulk() || self.is_lines() || self.is_gemv_lines() => (9, 0),
            (Kernel::Ring | Kernel::GemmRing | Kernel::Tsmm, _) => (8, 0),
            _ if self.is_staged() => (8, 0),
            // They need nothing that any GPU of the machines' table lacks.
            _ => (0, 0),
        }
    }
}

/// The entry that adds the slots of a split product, where its blocks do not, and applies α and β.
pub const fn sum_slots(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "ssum_slots_t256",
        Dtype::F64 => "dsum_slots_t256",
        Dtype::C64 => "csum_slots_t256",
        Dtype::C128 => "zsum_slots_t256",
    }
}

/// The entry that adds the slots of tall matrices' products: several threads an element.
pub const fn reduce_slots(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "sreduce_slots_t256",
        Dtype::F64 => "dreduce_slots_t256",
        Dtype::C64 => "creduce_slots_t256",
        Dtype::C128 => "zreduce_slots_t256",
    }
}

/// Every entry that the PTX must hold.
pub fn entries() -> impl Iterator<Item = &'static str> {
    let adding = Dtype::ALL.into_iter().flat_map(|dtype| [sum_slots(dtype), reduce_slots(dtype)]);
    VARIANTS.iter().map(|v| v.entry).chain(adding).chain(CEILINGS).chain(batched::BATCHED.iter().map(|v| v.entry))
}

/// The oldest compute capability that has an entry's instructions: any for those that are not in the tables.
pub fn since(entry: &str) -> (u32, u32) {
    match batched::BATCHED.iter().find(|v| v.entry == entry) {
        Some(v) => v.since(),
        None => VARIANTS.iter().find(|v| v.entry == entry).map_or((0, 0), Variant::since),
    }
}

/// Launch bounds of an entry; `None` for a name that is not in the table.
pub fn launch_bounds(entry: &str) -> Option<LaunchBounds> {
    if let Some(v) = VARIANTS.iter().find(|v| v.entry == entry) {
        return Some(LaunchBounds { threads: v.threads, min_blocks: v.min_blocks });
    }
    if let Some(v) = batched::BATCHED.iter().find(|v| v.entry == entry) {
        return Some(LaunchBounds { threads: v.threads, min_blocks: v.min_blocks });
    }
    if CEILINGS.contains(&entry) {
        return Some(LaunchBounds { threads: CEILING_THREADS, min_blocks: 0 });
    }
    let adds_slots = Dtype::ALL.into_iter().any(|dtype| sum_slots(dtype) == entry || reduce_slots(dtype) == entry);
    adds_slots.then_some(LaunchBounds { threads: SUM_SLOTS_THREADS, min_blocks: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_names_say_what_the_row_says() {
        for v in VARIANTS {
            let Some(rest) = v.entry.strip_prefix(v.dtype.letter()).and_then(|e| e.strip_prefix(v.name)) else {
                panic!("{} does not start with {}{}", v.entry, v.dtype.letter(), v.name)
            };
            let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty());
            let mut next = || numbers.next().and_then(|s| s.parse::<u32>().ok());
            match v.kernel {
                Kernel::Tsm2r => {
                    assert_eq!(
                        [next(), next(), next(), next()],
                        [Some(1), Some(v.t2), Some(v.t3), Some(v.threads)],
                        "{}",
                        v.entry
                    )
                }
                Kernel::Ring | Kernel::Tsmm => {
                    let found = [next(), next(), next(), next(), next(), next()];
                    assert_eq!(found, [v.own_rows(), v.cols, v.t2, v.t3, v.stages, v.threads].map(Some), "{}", v.entry);
                    assert_eq!(v.entry.ends_with("_rows"), v.layout == Layout::Rows, "{}", v.entry);
                }
                Kernel::Gemm => {
                    assert_eq!([next(), next(), next()], [Some(v.t3), Some(v.t2), Some(v.threads)], "{}", v.entry)
                }
                Kernel::Ladder => {
                    let found = [next(), next(), next(), next()];
                    assert_eq!(found, [v.own_rows(), v.cols, v.t3, v.threads].map(Some), "{}", v.entry);
                    assert_eq!(v.multiples().is_some(), v.name.ends_with("_fixed"), "{}", v.entry);
                }
                Kernel::GemmRing => {
                    let found = [next(), next(), next(), next(), next(), next(), next()];
                    let wanted = [v.own_rows(), v.cols, v.rows, v.t2, v.t3, v.stages, v.threads];
                    assert_eq!(found, wanted.map(Some), "{}", v.entry);
                }
                Kernel::Tsmttsm | Kernel::Gram if v.is_fitted() => {
                    let wanted = [v.own_rows(), v.cols, v.t3, v.threads];
                    assert_eq!([next(), next(), next(), next()], wanted.map(Some), "{}", v.entry);
                }
                Kernel::Tsmttsm | Kernel::Gram | Kernel::Gemv => {
                    let found = [next(), next(), next(), next(), next(), next()];
                    assert_eq!(found, [v.own_rows(), v.cols, v.rows, v.t2, v.t3, v.threads].map(Some), "{}", v.entry);
                }
                // Rows, or threads a row, and columns of a thread; steps together; threads.
                Kernel::Tall => {
                    let rows = match v.name {
                        "tsm2l_tiled" | "tsm2l_interleaved" | "tsm2l_columns" | "tsmm_packed" => v.rows / v.threads,
                        "tsmm_element" => 0,
                        _ => v.threads / v.rows,
                    };
                    let found = [next(), next(), next(), next()];
                    assert_eq!(found, [rows, v.cols, v.t3, v.threads].map(Some), "{}", v.entry);
                }
            }
        }
    }

    #[test]
    fn entries_are_unique_and_bounded() {
        for (at, entry) in entries().enumerate() {
            assert_eq!(entries().position(|e| e == entry), Some(at), "{entry} twice");
            let Some(bounds) = launch_bounds(entry) else { panic!("{entry} has no launch bounds") };
            assert!(bounds.threads % 32 == 0 && bounds.threads * bounds.min_blocks <= 2048, "{entry}");
        }
        assert_eq!(launch_bounds("tsm2r"), None);
        for dtype in Dtype::ALL {
            let all = || VARIANTS.iter().filter(|v| v.dtype == dtype);
            let of = |kernels: &[Kernel]| all().filter(|v| kernels.contains(&v.kernel)).count();
            assert!(of(&[Kernel::Tsm2r, Kernel::Ring]) <= 60 && of(&[Kernel::Tsmm, Kernel::Tall]) <= 68);
        }
    }
}
