//! The entries that multiply f32 in two parts on the matrix units.

use super::{Kernel, Variant, elem, layout};

/// The entries that go through a ring of stages and split f32: `entry: element, warps, RB, NT, BN, KT, stages, blocks an SM, whether A's
/// unit stride runs along its rows`; a warp owns 16·RB rows of C and all BN = 8·NT columns of the block.
#[macro_export]
macro_rules! split_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                     elem warps RB NT  BN  KT  stages blocks by rows
            stsm2r_split_32x24_n24_k32_s3_t128:          f32, 4,    2,  3,  24, 32, 3,     3,     false;
            stsm2r_split_32x32_n32_k32_s3_t128:          f32, 4,    2,  4,  32, 32, 3,     3,     false;
            stsm2r_split_32x48_n48_k32_s3_t128:          f32, 4,    2,  6,  48, 32, 3,     2,     false;
            stsm2r_split_32x64_n64_k32_s3_t256:          f32, 8,    2,  8,  64, 32, 3,     1,     false;
            stsm2r_split_32x24_n24_k32_s3_t128_rows:     f32, 4,    2,  3,  24, 32, 3,     3,     true;
            stsm2r_split_32x32_n32_k32_s3_t128_rows:     f32, 4,    2,  4,  32, 32, 3,     3,     true;
            stsm2r_split_32x48_n48_k32_s3_t128_rows:     f32, 4,    2,  6,  48, 32, 3,     2,     true;
            stsm2r_split_32x64_n64_k32_s3_t256_rows:     f32, 8,    2,  8,  64, 32, 3,     1,     true;
        }
    };
}

macro_rules! split_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        pub(super) const SPLIT: &[Variant] = &[$(Variant {
            name: "tsm2r_split", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Ring,
            threads: 32 * $warps, t2: $bn, t3: $kt, rows: 16 * $rb * $warps, cols: 8 * $nt,
            stages: $stages, layout: layout($by_rows), mma: true, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
split_variants!(split_rows);

/// [`Variant::splits_f32`] of an entry by its name.
pub fn splits_f32(entry: &str) -> bool {
    SPLIT.iter().any(|variant| variant.entry == entry)
}

impl Variant {
    /// Whether it multiplies f32 in two parts on the matrix units: for who allows it.
    pub const fn splits_f32(&self) -> bool {
        self.mma && matches!(self.dtype, crate::Dtype::F32)
    }
}
