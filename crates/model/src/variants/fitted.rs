//! The entries of two tall matrices, and of Gram matrices, that have as many tiles as C: `tsmttsm_fitted` and `gram_fitted`.

use super::{Kernel, Layout, Variant, elem};

impl Variant {
    /// Whether its tiles, a thread each, are as many as C has. Its row describes the block of a C of one tile, whose groups are its threads.
    pub const fn is_fitted(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmttsm_fitted" | b"gram_fitted")
    }
}

/// The entries of TSMTTSM whose tiles are as many as C has: `entry: element, threads, TM, TN, steps, blocks an SM`; a thread owns TM x TN of C,
/// and where C is that, `steps` rows of a stage ([`crate::launch::fit`]).
#[macro_export]
macro_rules! tsmttsm_fitted_variants {
    ($emit:ident) => {
        $emit! {
            // entry                       elem threads TM TN steps blocks
            stsmttsm_fitted_4x4_u4_t128: f32, 128, 4, 4, 4, 4;
            stsmttsm_fitted_7x7_u2_t128: f32, 128, 7, 7, 2, 5;
            stsmttsm_fitted_8x8_u2_t128: f32, 128, 8, 8, 2, 3;
            stsmttsm_fitted_9x9_u2_t128: f32, 128, 9, 9, 2, 4;
            stsmttsm_fitted_11x11_u2_t128: f32, 128, 11, 11, 2, 3;
            stsmttsm_fitted_12x12_u3_t128: f32, 128, 12, 12, 3, 2;
            stsmttsm_fitted_16x8_u3_t128: f32, 128, 16, 8, 3, 2;

            ctsmttsm_fitted_4x4_u3_t128: c64, 128, 4, 4, 3, 3;
            ctsmttsm_fitted_5x5_u2_t128: c64, 128, 5, 5, 2, 3;
            ctsmttsm_fitted_8x4_u2_t128: c64, 128, 8, 4, 2, 3;
            ctsmttsm_fitted_8x8_u2_t128: c64, 128, 8, 8, 2, 2;
            ctsmttsm_fitted_12x6_u2_t128: c64, 128, 12, 6, 2, 2;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_fitted_variants {
    ($emit:ident) => {
        $emit! {
            // entry                    elem threads TM TN steps blocks
            sgram_fitted_4x4_u4_t256: f32, 256, 4, 4, 4, 3;
            sgram_fitted_7x7_u4_t128: f32, 128, 7, 7, 4, 5;
            sgram_fitted_8x8_u4_t128: f32, 128, 8, 8, 4, 4;
            sgram_fitted_8x8_u4_t256: f32, 256, 8, 8, 4, 2;
            sgram_fitted_9x9_u4_t128: f32, 128, 9, 9, 4, 4;
            sgram_fitted_12x12_u5_t128: f32, 128, 12, 12, 5, 2;

            cgram_fitted_4x4_u6_t128: c64, 128, 4, 4, 6, 3;
            cgram_fitted_4x4_u3_t256: c64, 256, 4, 4, 3, 2;
            cgram_fitted_5x5_u4_t128: c64, 128, 5, 5, 4, 3;
            cgram_fitted_6x6_u6_t128: c64, 128, 6, 6, 6, 2;
            cgram_fitted_8x8_u4_t128: c64, 128, 8, 8, 4, 2;
        }
    };
}

macro_rules! fitted_rows {
    ($kernel:ident, $name:literal; $($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $steps:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::$kernel,
            threads: $threads, t2: $tn, t3: $steps, rows: $tm, cols: $tn, stages: $threads, layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: $tm % 2 == 0,
        }),*]
    };
}

macro_rules! tsmttsm_fitted_rows {
    ($($rows:tt)*) => { fitted_rows!(Tsmttsm, "tsmttsm_fitted"; $($rows)*) };
}

macro_rules! gram_fitted_rows {
    ($($rows:tt)*) => { fitted_rows!(Gram, "gram_fitted"; $($rows)*) };
}

/// TSMTTSM with as many tiles as C has.
pub(super) const FITTED: &[Variant] = tsmttsm_fitted_variants!(tsmttsm_fitted_rows);
/// Gram matrices with as many tiles as C has.
pub(super) const GRAM_FITTED: &[Variant] = gram_fitted_variants!(gram_fitted_rows);
