//! The entries of two tall matrices, and of Gram matrices, whose packed rows come by bulk copies and are multiplied by eights of columns.

use super::{Kernel, Layout, Variant, elem};

impl Variant {
    /// Whether its rows come as those of [`Variant::is_packed_ring`], and are multiplied by eights of columns.
    pub const fn is_by_eights(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmttsm_eights" | b"gram_eights")
    }

    /// The most that the shorter side of C may be: less than [`Variant::most_columns`] where a tile has more rows than columns.
    pub const fn most_across(&self) -> Option<u32> {
        match self.most_columns() {
            Some(_) if self.is_by_eights() => Some(self.t2),
            most => most,
        }
    }
}

/// The entries of two tall matrices: `entry: element, BM, BN, warps along k, steps
/// of a stage a warp, blocks an SM`; each warp has all of C.
#[macro_export]
macro_rules! tsmttsm_eights_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem BM  BN  KG steps blocks
            dtsmttsm_eights_16x16_m16n16_d1_t128: f64,  16, 16, 4, 1, 3;
            dtsmttsm_eights_24x24_m24n24_d1_t128: f64,  24, 24, 4, 1, 2;
            dtsmttsm_eights_32x8_m32n8_d1_t128:   f64,  32, 8,  4, 1, 2;

            ztsmttsm_eights_16x8_m16n8_d1_t128:   c128, 16, 8,  4, 1, 4;
            ztsmttsm_eights_32x8_m32n8_d1_t128:   c128, 32, 8,  4, 1, 2;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_eights_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem BM  BN  KG steps blocks
            dgram_eights_4x4_m4n4_d2_t128:        f64,  4,  4,  4, 2, 5;
            dgram_eights_16x16_m16n16_d2_t128:    f64,  16, 16, 4, 2, 3;
            dgram_eights_24x24_m24n24_d1_t128:    f64,  24, 24, 4, 1, 4;
            dgram_eights_32x32_m32n32_d1_t128:    f64,  32, 32, 4, 1, 3;

            zgram_eights_16x16_m16n16_d2_t128:    c128, 16, 16, 4, 2, 3;
            zgram_eights_24x24_m24n24_d1_t128:    c128, 24, 24, 4, 1, 4;
            zgram_eights_32x32_m32n32_d1_t128:    c128, 32, 32, 4, 1, 3;
        }
    };
}

macro_rules! eights_rows {
    ($kernel:ident, $name:literal; $($entry:ident: $elem:ident, $bm:literal, $bn:literal, $kg:literal, $steps:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::$kernel,
            threads: 32 * $kg, t2: $bn, t3: $steps, rows: $bm, cols: $bn, stages: $kg,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

macro_rules! tsmttsm_eights_rows {
    ($($rows:tt)*) => { eights_rows!(Tsmttsm, "tsmttsm_eights"; $($rows)*) };
}

macro_rules! gram_eights_rows {
    ($($rows:tt)*) => { eights_rows!(Gram, "gram_eights"; $($rows)*) };
}

/// Two tall matrices.
pub(super) const EIGHTS: &[Variant] = tsmttsm_eights_variants!(tsmttsm_eights_rows);
/// Gram matrices.
pub(super) const GRAM_EIGHTS: &[Variant] = gram_eights_variants!(gram_eights_rows);
