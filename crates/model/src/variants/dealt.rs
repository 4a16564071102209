//! The entries of two tall matrices, and of Gram matrices, through a ring to the matrix units whose squares are dealt to four warps.

use super::{Kernel, Layout, Variant, elem};
use crate::launch::dealt::{WARPS, columns};
use crate::launch::reduced::square_side;

/// Those of two matrices: `entry: element, squares a side, KT, blocks an SM`.
#[macro_export]
macro_rules! tsmttsm_dealt_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem sides KT blocks
            ztsmttsm_ring_8x56_m40n40_d1_t128:            c128, 5, 8, 3;
            ztsmttsm_ring_8x104_m56n56_d1_t128:           c128, 7, 8, 2;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_ring_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem sides KT blocks
            dgram_ring_16x40_m64n64_d1_t128:              f64, 4, 16, 3;

            zgram_ring_8x24_m32n32_d1_t128:               c128, 4, 8, 4;
            zgram_ring_8x32_m40n40_d1_t128:               c128, 5, 8, 4;
            zgram_ring_8x48_m48n48_d1_t128:               c128, 6, 8, 3;
            zgram_ring_8x56_m56n56_d1_t128:               c128, 7, 8, 3;
            zgram_ring_8x72_m64n64_d1_t128:               c128, 8, 8, 2;
        }
    };
}

/// The same whose stages keep lines along k.
#[macro_export]
macro_rules! gram_dealt_lines_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem sides KT blocks
            dgram_lines_16x40_m64n64_d1_t128:             f64, 4, 16, 3;

            zgram_lines_8x32_m40n40_d1_t128:              c128, 5, 8, 4;
            zgram_lines_8x48_m48n48_d1_t128:              c128, 6, 8, 4;
            zgram_lines_8x56_m56n56_d1_t128:              c128, 7, 8, 3;
            zgram_lines_8x72_m64n64_d1_t128:              c128, 8, 8, 2;
        }
    };
}

/// A warp's share is as many rows as a square has, and the columns of all that it multiplies.
macro_rules! dealt_rows {
    ($kernel:ident, $name:literal; $($entry:ident: $elem:ident, $sides:literal, $kt:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::$kernel,
            threads: 32 * WARPS as u32, t2: square_side(elem::$elem) * $sides, t3: $kt / square_side(elem::$elem), rows: square_side(elem::$elem) * $sides, cols: columns(elem::$elem, $sides, matches!(Kernel::$kernel, Kernel::Gram)), stages: 1,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: true,
        }),*]
    };
}

macro_rules! tsmttsm_dealt_rows {
    ($($rows:tt)*) => { dealt_rows!(Tsmttsm, "tsmttsm_ring"; $($rows)*) };
}

macro_rules! gram_ring_rows {
    ($($rows:tt)*) => { dealt_rows!(Gram, "gram_ring"; $($rows)*) };
}

macro_rules! gram_dealt_lines_rows {
    ($($rows:tt)*) => { dealt_rows!(Gram, "gram_lines"; $($rows)*) };
}

/// Two tall matrices, by rows.
pub(super) const DEALT: &[Variant] = tsmttsm_dealt_variants!(tsmttsm_dealt_rows);
/// Gram matrices, by rows.
pub(super) const GRAM_RING: &[Variant] = gram_ring_variants!(gram_ring_rows);
/// Gram matrices by lines along k.
pub(super) const GRAM_DEALT_LINES: &[Variant] = gram_dealt_lines_variants!(gram_dealt_lines_rows);
