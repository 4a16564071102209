//! The entries of TSMTTSM and of Gram matrices: products of two tall matrices over their long side.

use super::{Kernel, Layout, Variant, elem};
use crate::launch::reduced::square_side;

impl Variant {
    /// Whether what a block multiplies is dealt to its warps product by product: as a share each has so many columns of one row of squares.
    pub const fn is_dealt(&self) -> bool {
        match self.kernel {
            Kernel::Gram => self.mma && self.stages == 1,
            Kernel::Tsmttsm => self.mma && self.cols > self.t2,
            _ => false,
        }
    }

    /// Whether it is one of those that has its rows come through a ring of stages.
    pub const fn is_staged(&self) -> bool {
        let rings = matches!(self.name.as_bytes(), b"tsmttsm_staged" | b"gram_staged" | b"tsmttsm_ring" | b"gram_ring");
        rings || self.is_packed_ring() || self.is_by_eights() || self.is_by_lines() || self.is_fitted()
    }

    /// Whether that ring's stages keep lines along k, as tall matrices by columns have them.
    pub const fn is_by_lines(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmttsm_lines" | b"gram_lines")
    }

    /// Whether its rows come through that ring by bulk copies, where they are packed.
    pub const fn is_packed_ring(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmttsm_packed" | b"gram_packed")
    }
}

/// The entries of TSMTTSM on the vector units: `entry: element, variant, threads, BM, BN, TM, TN, steps, blocks an SM`; a
/// thread owns TM x TN of C, a group of a block's threads BM x BN; each group has rows of its own, `steps` at a time.
///
/// | variant | Ernst et al. | idea |
/// |---|---|---|
/// | whole | parallel over K | a thread has all of C |
/// | columns | over K and N | a thread has a column of C |
/// | tiled | 2-D tiles | a thread has a tile of C |
/// | interleaved | transposed, with leap-frogging | the rows and columns of a tile are not neighbours |
/// | leapfrog | with leap-frogging | the next rows are loaded before this one is multiplied |
/// | atomic | global atomics | float atomics in place of slots: other bits each time; never chosen |
/// | along | | unit stride along k: neighbouring lanes and wide loads run along k |
#[macro_export]
macro_rules! tsmttsm_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem variant     threads BM BN TM TN steps blocks
            stsmttsm_whole_1x1_m1n1_u16_t256:              f32, whole, 256, 1, 1, 1, 1, 16, 0;
            stsmttsm_whole_2x2_m2n2_u8_t256:               f32, whole, 256, 2, 2, 2, 2, 8, 0;
            stsmttsm_whole_4x4_m4n4_u4_t256:               f32, whole, 256, 4, 4, 4, 4, 4, 0;
            stsmttsm_columns_8x1_m8n8_u4_t256:             f32, columns, 256, 8, 8, 8, 1, 4, 0;
            stsmttsm_columns_16x1_m16n16_u2_t256:          f32, columns, 256, 16, 16, 16, 1, 2, 0;
            stsmttsm_tiled_4x4_m8n8_u2_t256:               f32, tiled, 256, 8, 8, 4, 4, 2, 0;
            stsmttsm_tiled_8x8_m32n32_u1_t256:             f32, tiled, 256, 32, 32, 8, 8, 1, 1;
            stsmttsm_interleaved_4x4_m16n16_u2_t256:       f32, interleaved, 256, 16, 16, 4, 4, 2, 0;
            stsmttsm_leapfrog_4x4_m4n4_u2_t256:            f32, leapfrog, 256, 4, 4, 4, 4, 2, 0;
            stsmttsm_leapfrog_4x4_m8n8_u2_t256:            f32, leapfrog, 256, 8, 8, 4, 4, 2, 0;
            stsmttsm_leapfrog_4x4_m16n16_u2_t256:          f32, leapfrog, 256, 16, 16, 4, 4, 2, 0;
            stsmttsm_leapfrog_8x8_m16n16_u1_t256:          f32, leapfrog, 256, 16, 16, 8, 8, 1, 0;
            stsmttsm_atomic_4x4_m16n16_u2_t256:            f32, atomic, 256, 16, 16, 4, 4, 2, 0;
            stsmttsm_along_1x1_m1n1_u8_t256:               f32, along, 256, 1, 1, 1, 1, 8, 0;
            stsmttsm_along_2x2_m2n2_u4_t256:               f32, along, 256, 2, 2, 2, 2, 4, 0;
            stsmttsm_along_4x4_m4n4_u4_t256:               f32, along, 256, 4, 4, 4, 4, 4, 0;
            stsmttsm_along_4x4_m16n16_u4_t256:             f32, along, 256, 16, 16, 4, 4, 4, 0;

            dtsmttsm_whole_1x1_m1n1_u8_t256:               f64, whole, 256, 1, 1, 1, 1, 8, 0;
            dtsmttsm_whole_2x2_m2n2_u4_t256:               f64, whole, 256, 2, 2, 2, 2, 4, 0;
            dtsmttsm_whole_4x4_m4n4_u2_t256:               f64, whole, 256, 4, 4, 4, 4, 2, 0;
            dtsmttsm_columns_8x1_m8n8_u2_t256:             f64, columns, 256, 8, 8, 8, 1, 2, 0;
            dtsmttsm_tiled_4x4_m8n8_u2_t256:               f64, tiled, 256, 8, 8, 4, 4, 2, 0;
            dtsmttsm_interleaved_4x4_m16n16_u1_t256:       f64, interleaved, 256, 16, 16, 4, 4, 1, 0;
            dtsmttsm_leapfrog_4x4_m4n4_u2_t256:            f64, leapfrog, 256, 4, 4, 4, 4, 2, 0;
            dtsmttsm_leapfrog_4x4_m8n8_u2_t256:            f64, leapfrog, 256, 8, 8, 4, 4, 2, 0;
            dtsmttsm_leapfrog_4x4_m16n16_u1_t256:          f64, leapfrog, 256, 16, 16, 4, 4, 1, 0;
            dtsmttsm_leapfrog_8x8_m32n32_u1_t128:          f64, leapfrog, 128, 32, 32, 8, 8, 1, 0;
            dtsmttsm_atomic_4x4_m16n16_u1_t256:            f64, atomic, 256, 16, 16, 4, 4, 1, 0;
            dtsmttsm_along_1x1_m1n1_u8_t256:               f64, along, 256, 1, 1, 1, 1, 8, 0;
            dtsmttsm_along_2x2_m2n2_u4_t256:               f64, along, 256, 2, 2, 2, 2, 4, 0;
            dtsmttsm_along_4x4_m4n4_u2_t256:               f64, along, 256, 4, 4, 4, 4, 2, 0;

            ctsmttsm_whole_1x1_m1n1_u8_t256:               c64, whole, 256, 1, 1, 1, 1, 8, 0;
            ctsmttsm_whole_2x2_m2n2_u4_t256:               c64, whole, 256, 2, 2, 2, 2, 4, 0;
            ctsmttsm_whole_4x4_m4n4_u2_t256:               c64, whole, 256, 4, 4, 4, 4, 2, 0;
            ctsmttsm_columns_8x1_m8n8_u2_t256:             c64, columns, 256, 8, 8, 8, 1, 2, 0;
            ctsmttsm_tiled_4x4_m8n8_u2_t256:               c64, tiled, 256, 8, 8, 4, 4, 2, 0;
            ctsmttsm_interleaved_4x4_m16n16_u1_t256:       c64, interleaved, 256, 16, 16, 4, 4, 1, 0;
            ctsmttsm_leapfrog_4x4_m4n4_u2_t256:            c64, leapfrog, 256, 4, 4, 4, 4, 2, 0;
            ctsmttsm_leapfrog_4x4_m8n8_u2_t256:            c64, leapfrog, 256, 8, 8, 4, 4, 2, 0;
            ctsmttsm_leapfrog_4x4_m16n16_u1_t256:          c64, leapfrog, 256, 16, 16, 4, 4, 1, 0;
            ctsmttsm_leapfrog_4x4_m32n32_u1_t256:          c64, leapfrog, 256, 32, 32, 4, 4, 1, 0;
            ctsmttsm_leapfrog_4x4_m64n16_u1_t256:          c64, leapfrog, 256, 64, 16, 4, 4, 1, 0;
            ctsmttsm_along_1x1_m1n1_u8_t256:               c64, along, 256, 1, 1, 1, 1, 8, 0;
            ctsmttsm_along_2x2_m2n2_u4_t256:               c64, along, 256, 2, 2, 2, 2, 4, 0;
            ctsmttsm_along_4x4_m4n4_u2_t256:               c64, along, 256, 4, 4, 4, 4, 2, 0;
            ctsmttsm_along_4x4_m16n16_u2_t256:             c64, along, 256, 16, 16, 4, 4, 2, 0;

            ztsmttsm_whole_1x1_m1n1_u4_t256:               c128, whole, 256, 1, 1, 1, 1, 4, 0;
            ztsmttsm_whole_2x2_m2n2_u2_t256:               c128, whole, 256, 2, 2, 2, 2, 2, 0;
            ztsmttsm_whole_4x2_m4n2_u1_t256:               c128, whole, 256, 4, 2, 4, 2, 1, 3;
            ztsmttsm_columns_4x1_m4n4_u2_t256:             c128, columns, 256, 4, 4, 4, 1, 2, 0;
            ztsmttsm_tiled_2x2_m8n8_u2_t256:               c128, tiled, 256, 8, 8, 2, 2, 2, 0;
            ztsmttsm_interleaved_4x2_m16n16_u1_t256:       c128, interleaved, 256, 16, 16, 4, 2, 1, 0;
            ztsmttsm_leapfrog_2x2_m4n4_u2_t256:            c128, leapfrog, 256, 4, 4, 2, 2, 2, 0;
            ztsmttsm_leapfrog_4x2_m8n8_u1_t256:            c128, leapfrog, 256, 8, 8, 4, 2, 1, 0;
            ztsmttsm_leapfrog_4x2_m16n16_u1_t256:          c128, leapfrog, 256, 16, 16, 4, 2, 1, 0;
            ztsmttsm_leapfrog_4x4_m32n32_u1_t256:          c128, leapfrog, 256, 32, 32, 4, 4, 1, 0;
            ztsmttsm_leapfrog_4x2_m64n16_u1_t256:          c128, leapfrog, 256, 64, 16, 4, 2, 1, 0;
            ztsmttsm_along_1x1_m1n1_u4_t256:               c128, along, 256, 1, 1, 1, 1, 4, 0;
            ztsmttsm_along_2x2_m2n2_u2_t256:               c128, along, 256, 2, 2, 2, 2, 2, 0;
            ztsmttsm_along_4x2_m4n4_u1_t256:               c128, along, 256, 4, 4, 4, 2, 1, 0;
        }
    };
}

/// The entries of TSMTTSM on the matrix units of sm_90: `entry: element, X, Y, warps along BM, along BN, along k, steps in
/// flight, blocks an SM`; a warp owns X x Y squares of C, whose side is
/// [`square_side`](crate::launch::reduced::square_side).
#[macro_export]
macro_rules! tsmttsm_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem X  Y  WX WY KG depth blocks
            dtsmttsm_mma_16x16_m16n16_d2_t128:             f64, 1, 1, 1, 1, 4, 2, 3;
            dtsmttsm_mma_16x16_m16n16_d2_t256:             f64, 1, 1, 1, 1, 8, 2, 1;
            dtsmttsm_mma_32x16_m32n16_d2_t256:             f64, 2, 1, 1, 1, 8, 2, 1;
            dtsmttsm_mma_32x32_m32n32_d1_t256:             f64, 2, 2, 1, 1, 8, 1, 1;
            dtsmttsm_mma_48x16_m48n16_d1_t256:             f64, 3, 1, 1, 1, 8, 1, 1;
            dtsmttsm_mma_48x16_m48n48_d1_t192:             f64, 3, 1, 1, 3, 2, 1, 1;
            dtsmttsm_mma_64x16_m64n16_d1_t256:             f64, 4, 1, 1, 1, 8, 1, 1;
            dtsmttsm_mma_32x32_m64n64_d1_t256:             f64, 2, 2, 2, 2, 2, 1, 1;

            ztsmttsm_mma_8x8_m8n8_d4_t256:                 c128, 1, 1, 1, 1, 8, 4, 2;
            ztsmttsm_mma_16x16_m16n16_d2_t128:             c128, 2, 2, 1, 1, 4, 2, 3;
            ztsmttsm_mma_24x24_m24n24_d1_t128:             c128, 3, 3, 1, 1, 4, 1, 3;
            ztsmttsm_mma_32x16_m32n16_d2_t256:             c128, 4, 2, 1, 1, 8, 2, 1;
            ztsmttsm_mma_32x32_m32n32_d1_t256:             c128, 4, 4, 1, 1, 8, 1, 1;
        }
    };
}

/// The entries of Gram matrices on the vector units, as [`tsmttsm_variants`] has them.
#[macro_export]
macro_rules! gram_variants {
    ($emit:ident) => {
        $emit! {
            // entry                         elem variant  threads BM BN TM TN steps blocks
            sgram_whole_1x1_m1n1_u16_t256:                 f32, whole, 256, 1, 1, 1, 1, 16, 0;
            sgram_whole_2x2_m2n2_u8_t256:                  f32, whole, 256, 2, 2, 2, 2, 8, 0;
            sgram_whole_4x4_m4n4_u4_t256:                  f32, whole, 256, 4, 4, 4, 4, 4, 0;
            sgram_leapfrog_4x4_m8n8_u2_t256:               f32, leapfrog, 256, 8, 8, 4, 4, 2, 0;
            sgram_leapfrog_4x4_m16n16_u2_t256:             f32, leapfrog, 256, 16, 16, 4, 4, 2, 0;
            sgram_leapfrog_8x8_m64n64_u1_t256:             f32, leapfrog, 256, 64, 64, 8, 8, 1, 0;
            sgram_along_4x4_m4n4_u4_t256:                  f32, along, 256, 4, 4, 4, 4, 4, 0;
            sgram_along_4x4_m16n16_u4_t256:                f32, along, 256, 16, 16, 4, 4, 4, 0;

            dgram_whole_1x1_m1n1_u8_t256:                  f64, whole, 256, 1, 1, 1, 1, 8, 0;
            dgram_whole_2x2_m2n2_u4_t256:                  f64, whole, 256, 2, 2, 2, 2, 4, 0;
            dgram_whole_4x4_m4n4_u4_t256:                  f64, whole, 256, 4, 4, 4, 4, 4, 0;
            dgram_leapfrog_4x4_m8n8_u2_t256:               f64, leapfrog, 256, 8, 8, 4, 4, 2, 0;
            dgram_leapfrog_4x4_m16n16_u1_t256:             f64, leapfrog, 256, 16, 16, 4, 4, 1, 0;
            dgram_leapfrog_8x8_m64n64_u1_t256:             f64, leapfrog, 256, 64, 64, 8, 8, 1, 0;
            dgram_along_4x4_m4n4_u2_t256:                  f64, along, 256, 4, 4, 4, 4, 2, 0;

            cgram_whole_1x1_m1n1_u8_t256:                  c64, whole, 256, 1, 1, 1, 1, 8, 0;
            cgram_whole_2x2_m2n2_u4_t256:                  c64, whole, 256, 2, 2, 2, 2, 4, 0;
            cgram_whole_4x4_m4n4_u2_t256:                  c64, whole, 256, 4, 4, 4, 4, 2, 0;
            cgram_leapfrog_4x4_m8n8_u2_t256:               c64, leapfrog, 256, 8, 8, 4, 4, 2, 0;
            cgram_leapfrog_4x4_m16n16_u1_t256:             c64, leapfrog, 256, 16, 16, 4, 4, 1, 0;
            cgram_leapfrog_4x4_m32n32_u1_t256:             c64, leapfrog, 256, 32, 32, 4, 4, 1, 0;
            cgram_leapfrog_4x4_m64n64_u1_t256:             c64, leapfrog, 256, 64, 64, 4, 4, 1, 0;
            cgram_along_4x4_m4n4_u2_t256:                  c64, along, 256, 4, 4, 4, 4, 2, 0;
            cgram_along_4x4_m16n16_u2_t256:                c64, along, 256, 16, 16, 4, 4, 2, 0;

            zgram_whole_1x1_m1n1_u4_t256:                  c128, whole, 256, 1, 1, 1, 1, 4, 0;
            zgram_whole_2x2_m2n2_u2_t256:                  c128, whole, 256, 2, 2, 2, 2, 2, 0;
            zgram_leapfrog_2x2_m8n8_u2_t256:               c128, leapfrog, 256, 8, 8, 2, 2, 2, 0;
            zgram_leapfrog_4x4_m16n16_u1_t256:             c128, leapfrog, 256, 16, 16, 4, 4, 1, 0;
            zgram_leapfrog_4x4_m32n32_u1_t256:             c128, leapfrog, 256, 32, 32, 4, 4, 1, 0;
            zgram_along_2x2_m2n2_u2_t256:                  c128, along, 256, 2, 2, 2, 2, 2, 0;
            zgram_along_4x2_m4n4_u1_t256:                  c128, along, 256, 4, 4, 4, 2, 1, 0;
        }
    };
}

/// The entries of Gram matrices on the matrix units of sm_90: `entry: element, X, WX, groups along k, steps in flight,
/// blocks an SM`; a warp owns X x X squares, a group of WX·(WX + 1)/2 warps what of WX x WX of those lies on and below the
/// diagonal.
#[macro_export]
macro_rules! gram_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                       elem X WX KG depth blocks
            dgram_mma_16x16_m16n16_d8_t256:                f64, 1, 1, 8, 8, 1;
            dgram_mma_32x32_m32n32_d3_t256:                f64, 2, 1, 8, 3, 1;
            dgram_mma_48x48_m48n48_d1_t256:                f64, 3, 1, 8, 1, 1;
            dgram_mma_32x32_m64n64_d1_t192:                f64, 2, 2, 2, 1, 1;

            zgram_mma_8x8_m8n8_d8_t256:                    c128, 1, 1, 8, 8, 1;
            zgram_mma_16x16_m16n16_d4_t256:                c128, 2, 1, 8, 4, 1;
            zgram_mma_24x24_m24n24_d2_t128:                c128, 3, 1, 4, 2, 3;
            zgram_mma_32x32_m32n32_d2_t256:                c128, 4, 1, 8, 2, 1;
        }
    };
}

/// Those whose fragments hold two pieces of k: `entry: element, groups along k, steps in flight, blocks an SM`; half a square's side at
/// most.
#[macro_export]
macro_rules! tsmttsm_folded_variants {
    ($emit:ident) => {
        $emit! {
            // entry                          elem KG depth blocks
            dtsmttsm_folded_8x8_m8n8_d2_t256: f64,  8, 2, 2;
            ztsmttsm_folded_4x4_m4n4_d4_t256: c128, 8, 4, 1;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_folded_variants {
    ($emit:ident) => {
        $emit! {
            // entry                       elem KG depth blocks
            dgram_folded_8x8_m8n8_d4_t256: f64,  8, 4, 2;
            zgram_folded_4x4_m4n4_d4_t256: c128, 8, 4, 2;
        }
    };
}

/// The entries of TSMTTSM on the matrix units through a ring: `entry: element, X, Y, warps along BM, along BN, along k, KT, blocks
/// an SM`; a warp owns X x Y squares of C, a stage has KT rows.
#[macro_export]
macro_rules! tsmttsm_ring_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem X  Y  WX WY KG KT blocks
            dtsmttsm_ring_48x16_m48n48_d1_t192:           f64, 3, 1, 1, 3, 2, 32, 2;
            dtsmttsm_ring_32x32_m64n64_d1_t128:           f64, 2, 2, 2, 2, 1, 16, 2;

            ztsmttsm_ring_16x16_m32n32_d1_t128:           c128, 2, 2, 2, 2, 1, 8, 4;
            ztsmttsm_ring_16x16_m64n16_d1_t128:           c128, 2, 2, 4, 1, 1, 8, 4;
            ztsmttsm_ring_24x24_m48n48_d1_t128:           c128, 3, 3, 2, 2, 1, 8, 2;
            ztsmttsm_ring_32x32_m64n64_d1_t128:           c128, 4, 4, 2, 2, 1, 8, 2;
        }
    };
}

/// The entries of TSMTTSM there whose stages keep lines along k, as the ring's.
#[macro_export]
macro_rules! tsmttsm_lines_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem X  Y  WX WY KG KT blocks
            dtsmttsm_lines_16x16_m16n16_d1_t128:          f64, 1, 1, 1, 1, 4, 64, 3;
            dtsmttsm_lines_32x16_m32n32_d1_t128:          f64, 2, 1, 1, 2, 2, 32, 2;
            dtsmttsm_lines_32x16_m64n16_d1_t128:          f64, 2, 1, 2, 1, 2, 32, 2;
            dtsmttsm_lines_32x32_m64n64_d1_t128:          f64, 2, 2, 2, 2, 1, 16, 2;

            ztsmttsm_lines_16x16_m16n16_d1_t128:          c128, 2, 2, 1, 1, 4, 32, 3;
            ztsmttsm_lines_16x32_m32n32_d1_t128:          c128, 2, 4, 2, 1, 2, 16, 2;
            ztsmttsm_lines_32x16_m64n16_d1_t128:          c128, 4, 2, 2, 1, 2, 16, 2;
            ztsmttsm_lines_24x24_m48n48_d1_t128:          c128, 3, 3, 2, 2, 1, 8, 3;
            ztsmttsm_lines_32x32_m64n64_d1_t128:          c128, 4, 4, 2, 2, 1, 8, 2;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_lines_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem X  WX KG KT blocks
            dgram_lines_16x16_m16n16_d1_t128:             f64, 1, 1, 4, 64, 5;
            dgram_lines_32x32_m32n32_d1_t128:             f64, 2, 1, 4, 64, 3;
            dgram_lines_48x48_m48n48_d1_t128:             f64, 3, 1, 4, 64, 2;
        }
    };
}

/// The entries of TSMTTSM there whose rows come by bulk copies, as the ring's.
#[macro_export]
macro_rules! tsmttsm_packed_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem X  Y  WX WY KG KT blocks
            dtsmttsm_packed_32x16_m32n32_d1_t128:         f64, 2, 1, 1, 2, 2, 32, 3;
            dtsmttsm_packed_48x16_m48n48_d1_t192:         f64, 3, 1, 1, 3, 2, 32, 2;
            dtsmttsm_packed_32x32_m64n64_d1_t128:         f64, 2, 2, 2, 2, 1, 16, 2;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_packed_variants {
    ($emit:ident) => {
        $emit! {
            // entry                           elem X  WX KG KT blocks
            dgram_packed_48x48_m48n48_d1_t128:            f64, 3, 1, 4, 64, 2;
        }
    };
}

/// The entries of TSMTTSM through a ring of stages in shared memory: `entry: element, threads, BM, BN, TM, TN, KT, blocks an
/// SM`, KT rows a stage.
#[macro_export]
macro_rules! tsmttsm_staged_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                  elem threads BM BN TM TN KT blocks
            ctsmttsm_staged_12x6_m48n48_u4_t128:   c64, 128, 48, 48, 12, 6, 16, 2;
            ctsmttsm_staged_16x4_m64n64_u8_t128:   c64, 128, 64, 64, 16, 4, 16, 2;

            ztsmttsm_staged_2x2_m8n8_u2_t256:      c128, 256, 8, 8, 2, 2, 32, 0;
            ztsmttsm_staged_4x2_m16n16_u4_t256:    c128, 256, 16, 16, 4, 2, 32, 2;
            ztsmttsm_staged_4x4_m32n32_u4_t256:    c128, 256, 32, 32, 4, 4, 16, 0;
            ztsmttsm_staged_4x4_m64n16_u4_t256:    c128, 256, 64, 16, 4, 4, 16, 0;
            ztsmttsm_staged_4x4_m64n64_u8_t256:    c128, 256, 64, 64, 4, 4, 8, 0;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_staged_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem threads BM BN TM TN KT blocks
            zgram_staged_2x2_m8n8_u4_t256:         c128, 256, 8, 8, 2, 2, 64, 0;
            zgram_staged_4x4_m16n16_u4_t256:       c128, 256, 16, 16, 4, 4, 64, 0;
            zgram_staged_4x4_m32n32_u8_t256:       c128, 256, 32, 32, 4, 4, 32, 0;
            zgram_staged_4x4_m64n64_u16_t256:      c128, 256, 64, 64, 4, 4, 16, 0;
        }
    };
}

/// The entries of TSMTTSM of tall matrices by columns, through a ring of stages of lines along k: as [`tsmttsm_staged_variants`].
#[macro_export]
macro_rules! tsmttsm_lines_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                  elem threads BM BN TM TN KT blocks
            stsmttsm_lines_4x4_m16n16_u8_t256:     f32, 256, 16, 16, 4, 4, 128, 0;
            stsmttsm_lines_8x8_m32n32_u4_t256:     f32, 256, 32, 32, 8, 8, 64, 2;
            stsmttsm_lines_12x12_m48n48_u8_t128:   f32, 128, 48, 48, 12, 12, 64, 2;
            stsmttsm_lines_8x8_m64n16_u4_t256:     f32, 256, 64, 16, 8, 8, 64, 2;
            stsmttsm_lines_8x8_m64n64_u8_t256:     f32, 256, 64, 64, 8, 8, 32, 2;

            ctsmttsm_lines_8x4_m64n16_u4_t256:     c64, 256, 64, 16, 8, 4, 32, 2;
            ctsmttsm_lines_12x6_m48n48_u8_t128:    c64, 128, 48, 48, 12, 6, 32, 2;
            ctsmttsm_lines_8x4_m64n64_u8_t256:     c64, 256, 64, 64, 8, 4, 16, 2;
            ctsmttsm_lines_8x8_m32n32_u4_t128:     c64, 128, 32, 32, 8, 8, 32, 2;
        }
    };
}

/// The same of Gram matrices.
#[macro_export]
macro_rules! gram_lines_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem threads BM BN TM TN KT blocks
            sgram_lines_4x4_m8n8_u4_t256:       f32, 256, 8,  8,  4, 4, 256, 0;
            sgram_lines_4x4_m16n16_u8_t256:     f32, 256, 16, 16, 4, 4, 128, 0;
            sgram_lines_8x8_m32n32_u8_t256:     f32, 256, 32, 32, 8, 8, 128, 2;
            sgram_lines_12x12_m48n48_u16_t128:  f32, 128, 48, 48, 12, 12, 128, 2;
            sgram_lines_8x8_m64n64_u16_t256:    f32, 256, 64, 64, 8, 8, 64, 2;

            cgram_lines_4x4_m16n16_u4_t256:     c64, 256, 16, 16, 4, 4, 64, 3;
            cgram_lines_12x6_m48n48_u16_t128:   c64, 128, 48, 48, 12, 6, 64, 2;
            cgram_lines_8x4_m64n64_u16_t256:    c64, 256, 64, 64, 8, 4, 32, 2;
            cgram_lines_8x8_m32n32_u8_t128:     c64, 128, 32, 32, 8, 8, 64, 2;
        }
    };
}

macro_rules! staged_rows {
    ($kernel:ident, $name:literal; $($entry:ident: $elem:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $kt:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::$kernel,
            threads: $threads, t2: $bn, t3: $kt * $bm * $bn / ($threads * $tm * $tn), rows: $bm, cols: $tn,
            stages: $threads * $tm * $tn / ($bm * $bn), layout: Layout::Any, mma: false, min_blocks: $blocks, wide_shared: true,
        }),*]
    };
}

macro_rules! tsmttsm_staged_rows {
    ($($rows:tt)*) => { staged_rows!(Tsmttsm, "tsmttsm_staged"; $($rows)*) };
}

macro_rules! gram_staged_rows {
    ($($rows:tt)*) => { staged_rows!(Gram, "gram_staged"; $($rows)*) };
}

macro_rules! tsmttsm_lines_rows {
    ($($rows:tt)*) => { staged_rows!(Tsmttsm, "tsmttsm_lines"; $($rows)*) };
}

macro_rules! gram_lines_rows {
    ($($rows:tt)*) => { staged_rows!(Gram, "gram_lines"; $($rows)*) };
}

macro_rules! rows {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $unroll:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: concat!("tsmttsm_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmttsm,
            threads: $threads, t2: $bn, t3: $unroll, rows: $bm, cols: $tn, stages: $threads * $tm * $tn / ($bm * $bn), layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

macro_rules! gram_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $unroll:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: concat!("gram_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gram,
            threads: $threads, t2: $bn, t3: $unroll, rows: $bm, cols: $tn, stages: $threads * $tm * $tn / ($bm * $bn), layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

macro_rules! mma_rows {
    ($($entry:ident: $elem:ident, $x:literal, $y:literal, $wx:literal, $wy:literal, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: "tsmttsm_mma", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmttsm,
            threads: 32 * $wx * $wy * $kg, t2: square_side(elem::$elem) * $y * $wy, t3: $depth, rows: square_side(elem::$elem) * $x * $wx, cols: square_side(elem::$elem) * $y, stages: $kg,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

macro_rules! gram_mma_rows {
    ($($entry:ident: $elem:ident, $x:literal, $wx:literal, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: "gram_mma", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gram,
            threads: 16 * $wx * ($wx + 1) * $kg, t2: square_side(elem::$elem) * $x * $wx, t3: $depth, rows: square_side(elem::$elem) * $x * $wx, cols: square_side(elem::$elem) * $x, stages: $kg,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

macro_rules! folded_rows {
    ($kernel:ident, $name:literal; $($entry:ident: $elem:ident, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::$kernel,
            threads: 32 * $kg, t2: square_side(elem::$elem) / 2, t3: $depth, rows: square_side(elem::$elem) / 2, cols: square_side(elem::$elem) / 2,
            stages: $kg, layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: elem::$elem.bytes() == 16,
        }),*]
    };
}

macro_rules! tsmttsm_folded_rows {
    ($($rows:tt)*) => { folded_rows!(Tsmttsm, "tsmttsm_folded"; $($rows)*) };
}

macro_rules! gram_folded_rows {
    ($($rows:tt)*) => { folded_rows!(Gram, "gram_folded"; $($rows)*) };
}

macro_rules! ring_rows {
    ($name:literal, $wide:literal; $($entry:ident: $elem:ident, $x:literal, $y:literal, $wx:literal, $wy:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmttsm,
            threads: 32 * $wx * $wy * $kg, t2: square_side(elem::$elem) * $y * $wy, t3: $kt / square_side(elem::$elem) / $kg, rows: square_side(elem::$elem) * $x * $wx, cols: square_side(elem::$elem) * $y, stages: $kg,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: $wide,
        }),*]
    };
}

macro_rules! gram_squares_rows {
    ($name:literal, $wide:literal; $($entry:ident: $elem:ident, $x:literal, $wx:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        &[$(Variant {
            name: $name, entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Gram,
            threads: 16 * $wx * ($wx + 1) * $kg, t2: square_side(elem::$elem) * $x * $wx, t3: $kt / square_side(elem::$elem) / $kg, rows: square_side(elem::$elem) * $x * $wx, cols: square_side(elem::$elem) * $x, stages: $kg,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: $wide,
        }),*]
    };
}

macro_rules! tsmttsm_ring_rows {
    ($($rows:tt)*) => { ring_rows!("tsmttsm_ring", true; $($rows)*) };
}

macro_rules! tsmttsm_packed_rows {
    ($($rows:tt)*) => { ring_rows!("tsmttsm_packed", false; $($rows)*) };
}

macro_rules! tsmttsm_lines_mma_rows {
    ($($rows:tt)*) => { ring_rows!("tsmttsm_lines", true; $($rows)*) };
}

macro_rules! gram_lines_mma_rows {
    ($($rows:tt)*) => { gram_squares_rows!("gram_lines", true; $($rows)*) };
}

macro_rules! gram_packed_rows {
    ($($rows:tt)*) => { gram_squares_rows!("gram_packed", false; $($rows)*) };
}

/// TSMTTSM on the matrix units, through a ring.
pub(super) const RING: &[Variant] = tsmttsm_ring_variants!(tsmttsm_ring_rows);
/// TSMTTSM there, of lines.
pub(super) const LINES_MMA: &[Variant] = tsmttsm_lines_mma_variants!(tsmttsm_lines_mma_rows);
/// Gram matrices of lines.
pub(super) const GRAM_LINES_MMA: &[Variant] = gram_lines_mma_variants!(gram_lines_mma_rows);
/// TSMTTSM there, of packed rows.
pub(super) const PACKED: &[Variant] = tsmttsm_packed_variants!(tsmttsm_packed_rows);
/// Gram matrices of packed rows.
pub(super) const GRAM_PACKED: &[Variant] = gram_packed_variants!(gram_packed_rows);
/// TSMTTSM on the vector units.
pub(super) const TILES: &[Variant] = tsmttsm_variants!(rows);
/// TSMTTSM on the matrix units.
pub(super) const MMA: &[Variant] = tsmttsm_mma_variants!(mma_rows);
/// Gram matrices on the vector units.
pub(super) const GRAM: &[Variant] = gram_variants!(gram_rows);
/// Gram matrices on the matrix units.
pub(super) const GRAM_MMA: &[Variant] = gram_mma_variants!(gram_mma_rows);
/// TSMTTSM of few columns there.
pub(super) const FOLDED: &[Variant] = tsmttsm_folded_variants!(tsmttsm_folded_rows);
/// Gram matrices of few columns there.
pub(super) const GRAM_FOLDED: &[Variant] = gram_folded_variants!(gram_folded_rows);
/// TSMTTSM through a ring.
pub(super) const STAGED: &[Variant] = tsmttsm_staged_variants!(tsmttsm_staged_rows);
/// Gram matrices through a ring.
pub(super) const GRAM_STAGED: &[Variant] = gram_staged_variants!(gram_staged_rows);
/// Those through a ring of lines along k.
pub(super) const LINES: &[Variant] = tsmttsm_lines_variants!(tsmttsm_lines_rows);
/// Gram matrices through such a ring.
pub(super) const GRAM_LINES: &[Variant] = gram_lines_variants!(gram_lines_rows);
