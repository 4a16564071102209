//! Which kernels exist: one table, from which `kernels` stamps the entries and the host picks.

use crate::Dtype;

/// A family of kernels; all entries of both are called alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// A large matrix times a skinny one: one thread a row of A, [`Variant::t2`] columns of C.
    Tsm2r,
    /// The plain register-tiled product.
    Gemm,
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
    /// Columns of C a thread (T2 in TSM2X).
    pub t2: u32,
    /// Elements of A a thread loads together (T3 in TSM2X).
    pub t3: u32,
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
}

macro_rules! tsm2r_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $t1:literal, $t2:literal, $t3:literal, $blocks:literal, $wide:literal;)*) => {
        const TSM2R: &[Variant] = &[$(Variant {
            name: concat!("tsm2r_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem,
            kernel: Kernel::Tsm2r, threads: $t1, t2: $t2, t3: $t3, min_blocks: $blocks, wide_shared: $wide,
        }),*];
    };
}
tsm2r_variants!(tsm2r_rows);

macro_rules! gemm_rows {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        const GEMM: &[Variant] = &[$(Variant {
            name: "gemm_tiled", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gemm,
            threads: $threads, t2: $tn, t3: $tm, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
gemm_variants!(gemm_rows);

const ROWS: usize = TSM2R.len() + GEMM.len();

/// Every row of both tables.
pub const VARIANTS: &[Variant] = &{
    let mut all = [TSM2R[0]; ROWS];
    let mut row = 0;
    while row < ROWS {
        all[row] = if row < TSM2R.len() { TSM2R[row] } else { GEMM[row - TSM2R.len()] };
        row += 1;
    }
    all
};

/// The entry that adds the slots of a split product and applies α and β.
pub const fn sum_slots(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "ssum_slots_t256",
        Dtype::F64 => "dsum_slots_t256",
    }
}

/// Every entry that the PTX must hold.
pub fn entries() -> impl Iterator<Item = &'static str> {
    VARIANTS.iter().map(|v| v.entry).chain([sum_slots(Dtype::F32), sum_slots(Dtype::F64)]).chain(CEILINGS)
}

/// Launch bounds of an entry; `None` for a name that is not in the table.
pub fn launch_bounds(entry: &str) -> Option<LaunchBounds> {
    if let Some(v) = VARIANTS.iter().find(|v| v.entry == entry) {
        return Some(LaunchBounds { threads: v.threads, min_blocks: v.min_blocks });
    }
    if CEILINGS.contains(&entry) {
        return Some(LaunchBounds { threads: CEILING_THREADS, min_blocks: 0 });
    }
    let adds_slots = [Dtype::F32, Dtype::F64].into_iter().any(|dtype| sum_slots(dtype) == entry);
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
                Kernel::Gemm => {
                    assert_eq!([next(), next(), next()], [Some(v.t3), Some(v.t2), Some(v.threads)], "{}", v.entry)
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
        for dtype in [Dtype::F32, Dtype::F64] {
            assert!(VARIANTS.iter().filter(|v| v.dtype == dtype && v.kernel == Kernel::Tsm2r).count() <= 60);
        }
    }
}
