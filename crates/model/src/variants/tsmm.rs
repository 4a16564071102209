//! The entries of TSMM: tall A of few columns; and what their kernels and launches must agree on.

use super::{Kernel, Layout, Variant, elem};
use crate::Dtype;

/// TSM2X's entries for a tall A: `entry: element, variant, T1, T2, T3, blocks an SM`.
///
/// T1 = 128 with T3 = 32 in f32, and 16 and 12 in f64, are the paper's (Table 4). `interleaved` with 16 columns has smaller
/// ones: with the paper's, 251 to 254 registers on its V100, today's assembler spills.
#[macro_export]
macro_rules! tsm2l_variants {
    ($emit:ident) => {
        $emit! {
            // entry                            elem variant      T1   T2  T3  blocks
            stsm2l_tiled_1x2_u32_t128:          f32, tiled,       128, 2,  32, 0;
            stsm2l_tiled_1x4_u32_t128:          f32, tiled,       128, 4,  32, 0;
            stsm2l_tiled_1x8_u32_t128:          f32, tiled,       128, 8,  32, 0;
            stsm2l_tiled_1x16_u32_t128:         f32, tiled,       128, 16, 32, 0;
            stsm2l_interleaved_1x4_u32_t128:    f32, interleaved, 128, 4,  32, 0;
            stsm2l_interleaved_1x8_u32_t128:    f32, interleaved, 128, 8,  32, 0;
            stsm2l_interleaved_1x16_u16_t128:   f32, interleaved, 128, 16, 16, 0;

            dtsm2l_tiled_1x2_u16_t128:          f64, tiled,       128, 2,  16, 0;
            dtsm2l_tiled_1x4_u16_t128:          f64, tiled,       128, 4,  16, 0;
            dtsm2l_tiled_1x8_u16_t128:          f64, tiled,       128, 8,  16, 0;
            dtsm2l_tiled_1x16_u12_t128:         f64, tiled,       128, 16, 12, 0;
            dtsm2l_interleaved_1x4_u16_t128:    f64, interleaved, 128, 4,  16, 0;
            dtsm2l_interleaved_1x8_u16_t128:    f64, interleaved, 128, 8,  16, 0;
            dtsm2l_interleaved_1x16_u8_t128:    f64, interleaved, 128, 16, 8,  0;

            ctsm2l_tiled_1x4_u16_t128:          c64, tiled,       128, 4,  16, 0;
            ctsm2l_tiled_1x8_u8_t128:           c64, tiled,       128, 8,  8,  0;
            ctsm2l_interleaved_1x4_u8_t128:     c64, interleaved, 128, 4,  8,  0;

            ztsm2l_tiled_1x4_u8_t128:           c128, tiled,       128, 4, 8,  0;
            ztsm2l_tiled_1x8_u4_t128:           c128, tiled,       128, 8, 4,  0;
            ztsm2l_interleaved_1x4_u4_t128:     c128, interleaved, 128, 4, 4,  0;
        }
    };
}

/// The mappings of Ernst et al.: `entry: element, variant, threads, G, columns a thread, unroll, B from`; G threads a row
/// of C, 0: as many as C has columns.
#[macro_export]
macro_rules! group_variants {
    ($emit:ident) => {
        $emit! {
            // entry                             elem variant    threads G   TN  U  from
            stsmm_row_1x4_u2_t256_shared:        f32, row,       256,    1,  4,  2, SHARED;
            stsmm_row_1x16_u2_t256_shared:       f32, row,       256,    1,  16, 2, SHARED;
            stsmm_element_0x1_u2_t256_cache:     f32, element,   256,    0,  1,  2, CACHE;
            stsmm_element_0x1_u4_t256_shared:    f32, element,   256,    0,  1,  4, SHARED;
            stsmm_group_4x4_u2_t256_shared:      f32, group,     256,    4,  4,  2, SHARED;
            stsmm_group_8x8_u2_t256_cache:       f32, group,     256,    8,  8,  2, CACHE;
            stsmm_group_8x8_u2_t256_shared:      f32, group,     256,    8,  8,  2, SHARED;
            stsmm_group_16x4_u4_t256_shared:     f32, group,     256,    16, 4,  4, SHARED;
            stsmm_registers_1x4_u4_t256:         f32, registers, 256,    1,  4,  4, REGISTERS;
            stsmm_registers_8x1_u8_t256:         f32, registers, 256,    8,  1,  8, REGISTERS;

            dtsmm_row_1x4_u2_t256_shared:        f64, row,       256,    1,  4,  2, SHARED;
            dtsmm_row_1x16_u2_t256_shared:       f64, row,       256,    1,  16, 2, SHARED;
            dtsmm_element_0x1_u2_t256_cache:     f64, element,   256,    0,  1,  2, CACHE;
            dtsmm_element_0x1_u4_t256_shared:    f64, element,   256,    0,  1,  4, SHARED;
            dtsmm_group_4x4_u1_t256_shared:      f64, group,     256,    4,  4,  1, SHARED;
            dtsmm_group_4x4_u2_t256_shared:      f64, group,     256,    4,  4,  2, SHARED;
            dtsmm_group_8x2_u3_t256_shared:      f64, group,     256,    8,  2,  3, SHARED;
            dtsmm_group_8x8_u2_t256_cache:       f64, group,     256,    8,  8,  2, CACHE;
            dtsmm_group_8x8_u2_t256_shared:      f64, group,     256,    8,  8,  2, SHARED;
            dtsmm_group_16x4_u4_t256_shared:     f64, group,     256,    16, 4,  4, SHARED;
            dtsmm_registers_1x4_u4_t256:         f64, registers, 256,    1,  4,  4, REGISTERS;
            dtsmm_registers_8x1_u8_t256:         f64, registers, 256,    8,  1,  8, REGISTERS;

            ctsmm_row_1x4_u2_t256_shared:        c64, row,       256,    1,  4,  2, SHARED;
            ctsmm_element_0x1_u2_t256_cache:     c64, element,   256,    0,  1,  2, CACHE;
            ctsmm_element_0x1_u4_t256_shared:    c64, element,   256,    0,  1,  4, SHARED;
            ctsmm_group_4x4_u2_t256_shared:      c64, group,     256,    4,  4,  2, SHARED;
            ctsmm_group_8x8_u2_t256_shared:      c64, group,     256,    8,  8,  2, SHARED;
            ctsmm_registers_1x4_u4_t256:         c64, registers, 256,    1,  4,  4, REGISTERS;

            ztsmm_row_1x4_u2_t256_shared:        c128, row,       256,   1,  4,  2, SHARED;
            ztsmm_element_0x1_u2_t256_cache:     c128, element,   256,   0,  1,  2, CACHE;
            ztsmm_group_4x4_u2_t256_shared:      c128, group,     256,   4,  4,  2, SHARED;
            ztsmm_group_8x2_u2_t256_shared:      c128, group,     256,   8,  2,  2, SHARED;
            ztsmm_registers_1x2_u2_t256:         c128, registers, 256,   1,  2,  2, REGISTERS;
        }
    };
}

/// The entries with whole rows in a thread's 16 bytes: `entry: element, threads, R, W`; a thread has R rows of up to W columns.
#[macro_export]
macro_rules! packed_variants {
    ($emit:ident) => {
        $emit! {
            // entry                       elem threads R W
            stsmm_packed_4x1_u1_t256:      f32,  256,   4, 1;
            stsmm_packed_2x2_u2_t256:      f32,  256,   2, 2;
            stsmm_packed_1x4_u4_t256:      f32,  256,   1, 4;
            dtsmm_packed_2x1_u1_t256:      f64,  256,   2, 1;
            dtsmm_packed_1x2_u2_t256:      f64,  256,   1, 2;
            ctsmm_packed_2x1_u1_t256:      c64,  256,   2, 1;
            ctsmm_packed_1x2_u2_t256:      c64,  256,   1, 2;
            ztsmm_packed_1x1_u1_t256:      c128, 256,   1, 1;
        }
    };
}

/// The entries between columns and registers: `entry: element, threads, V, NB, most k, KU, blocks an SM`; a thread owns V
/// rows, 16 bytes, and NB columns, with KU steps of A in flight.
#[macro_export]
macro_rules! columns_variants {
    ($emit:ident) => {
        $emit! {
            // entry                        elem threads V  NB  k   KU blocks
            stsm2l_columns_4x2_u4_t128:     f32, 128,    4, 2,  64, 4, 8;
            stsm2l_columns_4x4_u4_t128:     f32, 128,    4, 4,  64, 4, 6;
            stsm2l_columns_4x8_u4_t128:     f32, 128,    4, 8,  64, 4, 4;
            stsm2l_columns_4x16_u4_t128:    f32, 128,    4, 16, 64, 4, 3;

            dtsm2l_columns_2x2_u4_t128:     f64, 128,    2, 2,  64, 4, 6;
            dtsm2l_columns_2x4_u4_t128:     f64, 128,    2, 4,  64, 4, 6;
            dtsm2l_columns_2x8_u8_t128:     f64, 128,    2, 8,  64, 8, 3;
            dtsm2l_columns_2x16_u8_t128:    f64, 128,    2, 16, 64, 8, 2;
            dtsm2l_columns_2x32_u4_t128:    f64, 128,    2, 32, 64, 4, 2;

            ctsm2l_columns_2x2_u4_t128:     c64, 128,    2, 2,  64, 4, 6;
            ctsm2l_columns_2x4_u4_t128:     c64, 128,    2, 4,  64, 4, 6;
            ctsm2l_columns_2x8_u8_t128:     c64, 128,    2, 8,  64, 8, 3;
            ctsm2l_columns_2x16_u8_t128:    c64, 128,    2, 16, 64, 8, 2;

            ztsm2l_columns_1x2_u4_t128:     c128, 128,   1, 2,  64, 4, 6;
            ztsm2l_columns_1x4_u4_t128:     c128, 128,   1, 4,  64, 4, 6;
            ztsm2l_columns_1x8_u8_t128:     c128, 128,   1, 8,  64, 8, 3;
            ztsm2l_columns_1x16_u8_t128:    c128, 128,   1, 16, 64, 8, 2;
        }
    };
}

/// The entries for few steps, that write rows of C as they compute them: `entry: element, threads, TM, TN, most n, most k, blocks an SM`; of the most
/// columns a thread owns TM rows of a tile, and TN columns, 16 bytes.
#[macro_export]
macro_rules! tsmm_outer_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem  threads TM  TN n   k  blocks
            stsmm_outer_16x4_n64_k4_s1_t256:       f32,  256,    16, 4, 64, 4, 4;
            stsmm_outer_16x4_n64_k8_s1_t256:       f32,  256,    16, 4, 64, 8, 3;
            dtsmm_outer_32x2_n64_k4_s1_t256:       f64,  256,    32, 2, 64, 4, 4;
            dtsmm_outer_32x2_n64_k8_s1_t256:       f64,  256,    32, 2, 64, 8, 3;
            ctsmm_outer_32x2_n64_k4_s1_t256:       c64,  256,    32, 2, 64, 4, 4;
            ztsmm_outer_8x1_n64_k1_s1_t256:        c128, 256,    8,  1, 64, 1, 4;
            ztsmm_outer_32x1_n64_k4_s1_t256:       c128, 256,    32, 1, 64, 4, 4;
        }
    };
}

/// The entries whose tiles go through shared memory as they lie: `entry: element, threads, TM, TN, most n, most k, stages,
/// blocks an SM`; a thread owns TM x TN of a tile.
#[macro_export]
macro_rules! tsmm_staged_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem threads TM TN n   k   stages blocks
            stsmm_staged_4x2_n2_k2_s4_t128:        f32, 128,    4, 2, 2,  2,  4,     5;
            stsmm_staged_4x4_n4_k4_s3_t128:        f32, 128,    4, 4, 4,  4,  3,     4;
            stsmm_staged_1x4_n4_k64_s2_t128:       f32, 128,    1, 4, 4,  64, 2,     2;
            stsmm_staged_4x4_n8_k8_s3_t128:        f32, 128,    4, 4, 8,  8,  3,     4;
            stsmm_staged_4x4_n16_k16_s3_t256:      f32, 256,    4, 4, 16, 16, 3,     2;
            stsmm_staged_4x4_n16_k64_s2_t128:      f32, 128,    4, 4, 16, 64, 2,     2;
            stsmm_staged_2x4_n4_k32_s3_t64:        f32, 64,     2, 4, 4,  32, 3,     3;
            stsmm_staged_4x4_n32_k32_s3_t128:      f32, 128,    4, 4, 32, 32, 3,     3;
            stsmm_staged_4x8_n32_k32_s2_t128:      f32, 128,    4, 8, 32, 32, 2,     2;
            stsmm_staged_4x8_n64_k4_s2_t256:       f32, 256,    4, 8, 64, 4,  2,     2;
            stsmm_staged_4x8_n64_k16_s2_t256:      f32, 256,    4, 8, 64, 16, 2,     2;
            stsmm_staged_4x8_n64_k64_s2_t256:      f32, 256,    4, 8, 64, 64, 2,     1;

            dtsmm_staged_4x2_n2_k2_s3_t128:        f64, 128,    4, 2, 2,  2,  3,     4;
            dtsmm_staged_2x4_n4_k4_s3_t128:        f64, 128,    2, 4, 4,  4,  3,     4;
            dtsmm_staged_1x4_n4_k64_s2_t64:        f64, 64,     1, 4, 4,  64, 2,     2;
            dtsmm_staged_2x4_n8_k8_s3_t128:        f64, 128,    2, 4, 8,  8,  3,     4;
            dtsmm_staged_2x4_n16_k16_s3_t128:      f64, 128,    2, 4, 16, 16, 3,     3;
            dtsmm_staged_2x8_n32_k32_s3_t128:      f64, 128,    2, 8, 32, 32, 3,     2;
            dtsmm_staged_4x4_n64_k4_s2_t256:       f64, 256,    4, 4, 64, 4,  2,     2;
            dtsmm_staged_2x8_n64_k64_s2_t128:      f64, 128,    2, 8, 64, 64, 2,     2;

            ctsmm_staged_4x2_n2_k2_s3_t128:        c64, 128,    4, 2, 2,  2,  3,     4;
            ctsmm_staged_2x4_n4_k4_s3_t128:        c64, 128,    2, 4, 4,  4,  3,     4;
            ctsmm_staged_1x4_n4_k64_s2_t64:        c64, 64,     1, 4, 4,  64, 2,     2;
            ctsmm_staged_2x4_n8_k8_s3_t128:        c64, 128,    2, 4, 8,  8,  3,     4;
            ctsmm_staged_2x4_n16_k16_s3_t128:      c64, 128,    2, 4, 16, 16, 3,     3;
            ctsmm_staged_4x4_n32_k32_s3_t128:      c64, 128,    4, 4, 32, 32, 3,     2;
            ctsmm_staged_4x4_n64_k4_s2_t256:       c64, 256,    4, 4, 64, 4,  2,     2;
            ctsmm_staged_4x4_n64_k64_s2_t128:      c64, 128,    4, 4, 64, 64, 2,     2;

            ztsmm_staged_2x2_n2_k2_s3_t128:        c128, 128,   2, 2, 2,  2,  3,     4;
            ztsmm_staged_1x4_n4_k4_s3_t128:        c128, 128,   1, 4, 4,  4,  3,     4;
            ztsmm_staged_1x4_n4_k64_s2_t64:        c128, 64,    1, 4, 4,  64, 2,     1;
            ztsmm_staged_1x4_n8_k8_s3_t128:        c128, 128,   1, 4, 8,  8,  3,     4;
            ztsmm_staged_2x4_n16_k16_s2_t128:      c128, 128,   2, 4, 16, 16, 2,     3;
            ztsmm_staged_2x4_n32_k32_s2_t128:      c128, 128,   2, 4, 32, 32, 2,     2;
            ztsmm_staged_2x4_n64_k4_s2_t256:       c128, 256,   2, 4, 64, 4,  2,     2;
            ztsmm_staged_2x4_n64_k64_s2_t128:      c128, 128,   2, 4, 64, 64, 2,     1;
        }
    };
}

/// The same on the matrix units of sm_90: `entry: element, warps, NT, most n, most k, stages, blocks an SM`; a warp owns 16
/// rows and 8·NT columns of a tile.
#[macro_export]
macro_rules! tsmm_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem warps NT n   k   stages blocks
            dtsmm_mma_16x8_n8_k16_s4_t128:         f64, 4,    1, 8,  16, 4,     4;
            dtsmm_mma_16x8_n8_k32_s3_t128:         f64, 4,    1, 8,  32, 3,     3;
            dtsmm_mma_16x8_n8_k64_s2_t128:         f64, 4,    1, 8,  64, 2,     2;
            dtsmm_mma_16x16_n16_k16_s3_t128:       f64, 4,    2, 16, 16, 3,     3;
            dtsmm_mma_16x16_n16_k64_s2_t128:       f64, 4,    2, 16, 64, 2,     2;
            dtsmm_mma_16x16_n32_k32_s3_t128:       f64, 4,    2, 32, 32, 3,     3;
            dtsmm_mma_16x24_n48_k48_s3_t128:       f64, 4,    3, 48, 48, 3,     2;
            dtsmm_mma_16x32_n64_k16_s3_t128:       f64, 4,    4, 64, 16, 3,     2;
            dtsmm_mma_16x32_n64_k64_s2_t128:       f64, 4,    4, 64, 64, 2,     2;
        }
    };
}

/// The entries whose warps load and store the fragments of the matrix units themselves: `entry: element, warps, NT, KS,
/// blocks an SM`; a warp owns 16 rows, up to 8·NT columns and 16·KS steps, of complex numbers 8 and 8·KS.
#[macro_export]
macro_rules! tsmm_fragments_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem warps NT KS blocks
            dtsmm_fragments_16x8_n8_k16_s2_t128:   f64, 4,    1, 1, 8;
            dtsmm_fragments_16x64_n64_k16_s2_t128: f64, 4,    8, 1, 3;
            dtsmm_fragments_16x64_n64_k64_s2_t64:  f64, 2,    8, 4, 4;

            ztsmm_fragments_8x8_n8_k8_s2_t128:     c128, 4,   1, 1, 8;
            ztsmm_fragments_8x8_n8_k64_s2_t128:    c128, 4,   1, 8, 2;
            ztsmm_fragments_8x16_n16_k16_s2_t128:  c128, 4,   2, 2, 4;
            ztsmm_fragments_8x32_n32_k32_s2_t128:  c128, 4,   4, 4, 3;
            ztsmm_fragments_8x32_n32_k64_s2_t128:  c128, 4,   4, 8, 2;
            ztsmm_fragments_8x40_n40_k40_s2_t128:  c128, 4,   5, 5, 2;
            ztsmm_fragments_8x40_n40_k64_s2_t128:  c128, 4,   5, 8, 2;
            ztsmm_fragments_8x48_n48_k48_s2_t128:  c128, 4,   6, 6, 2;
            ztsmm_fragments_8x56_n56_k56_s2_t128:  c128, 4,   7, 7, 2;
            ztsmm_fragments_8x64_n64_k8_s2_t128:   c128, 4,   8, 1, 3;
            ztsmm_fragments_8x64_n64_k64_s2_t128:  c128, 4,   8, 8, 2;
        }
    };
}

/// Most rows that B has, and columns, for the kernels that keep all of it.
pub const WIDEST: u32 = 64;

/// Where in shared memory the 16 bytes of a tile lie that are the `piece`-th: one place is left out after every 8, and one after every
/// 64. Eight neighbouring rows of 2 to 32 pieces then start in different banks.
pub const fn place_of_piece(piece: u32) -> u32 {
    piece + piece / 8 + piece / 64
}

/// Elements that a tile of `len` takes up.
pub const fn tile_len(len: u32, elem_bytes: u32) -> u32 {
    let width = 16 / elem_bytes;
    let pieces = len.div_ceil(width);
    (pieces + pieces / 8 + pieces / 64) * width
}

/// Elements of B's part of the shared memory of [`Kernel::Tsmm`]: k · n by rows, or by columns 16 bytes apart, whichever
/// is more; whole pieces.
pub const fn staged_b_len(k: u32, n: u32, elem_bytes: u32) -> u32 {
    let width = 16 / elem_bytes;
    (n * (k + width)).next_multiple_of(width)
}

macro_rules! tsm2l_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $t1:literal, $t2:literal, $t3:literal, $blocks:literal;)*) => {
        pub(super) const TSM2L: &[Variant] = &[$(Variant {
            name: concat!("tsm2l_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem,
            kernel: Kernel::Tall, threads: $t1, t2: $t2, t3: $t3, rows: $t1, cols: $t2, stages: 1,
            layout: Layout::Any, mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsm2l_variants!(tsm2l_rows);

/// Stages of a row whose B is in shared memory, or not.
mod from {
    pub const SHARED: u32 = 1;
    pub const CACHE: u32 = 0;
    pub const REGISTERS: u32 = 0;
}

/// Columns that groups of `group` threads of `cols` columns each serve.
const fn served(group: u32, cols: u32) -> u32 {
    if group == 0 || group * cols > WIDEST { WIDEST } else { group * cols }
}

/// Rows that a block of so many threads has at a time, at least.
const fn grouped(threads: u32, group: u32) -> u32 {
    threads / if group == 0 { WIDEST } else { group }
}

macro_rules! group_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $g:literal, $tn:literal, $u:literal, $from:ident;)*) => {
        pub(super) const GROUP: &[Variant] = &[$(Variant {
            name: concat!("tsmm_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem,
            kernel: Kernel::Tall, threads: $threads, t2: served($g, $tn), t3: $u, rows: grouped($threads, $g), cols: $tn,
            stages: from::$from, layout: Layout::Any, mma: false, min_blocks: 0,
            wide_shared: from::$from > 0 && elem::$elem.bytes() == 16,
        }),*];
    };
}
group_variants!(group_rows);

macro_rules! packed_rows {
    ($($entry:ident: $elem:ident, $threads:literal, $r:literal, $w:literal;)*) => {
        pub(super) const PACKED: &[Variant] = &[$(Variant {
            name: "tsmm_packed", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tall, threads: $threads,
            t2: $w, t3: $w, rows: $threads * $r, cols: $w, stages: from::REGISTERS, layout: Layout::Any, mma: false,
            min_blocks: 0, wide_shared: false,
        }),*];
    };
}
packed_variants!(packed_rows);

macro_rules! columns_rows {
    ($($entry:ident: $elem:ident, $threads:literal, $v:literal, $nb:literal, $bk:literal, $ku:literal, $blocks:literal;)*) => {
        pub(super) const COLUMNS: &[Variant] = &[$(Variant {
            name: "tsm2l_columns", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tall, threads: $threads,
            t2: $nb, t3: $ku, rows: $threads * $v, cols: $nb, stages: 1, layout: Layout::Any, mma: false,
            min_blocks: $blocks, wide_shared: $nb * elem::$elem.bytes() >= 16,
        }),*];
    };
}
columns_variants!(columns_rows);

macro_rules! outer_rows {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $bn:literal, $bk:literal, $blocks:literal;)*) => {
        pub(super) const OUTER: &[Variant] = &[$(Variant {
            name: "tsmm_outer", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: $threads,
            t2: $bn, t3: $bk, rows: $threads / ($bn / $tn) * $tm, cols: $tn, stages: 1, layout: Layout::Any,
            mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_outer_variants!(outer_rows);

macro_rules! staged_rows {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $bn:literal, $bk:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const STAGED: &[Variant] = &[$(Variant {
            name: "tsmm_staged", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: $threads,
            t2: $bn, t3: $bk, rows: $threads / ($bn / $tn) * $tm, cols: $tn, stages: $stages, layout: Layout::Any,
            mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_staged_variants!(staged_rows);

macro_rules! mma_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $nt:literal, $bn:literal, $bk:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const MMA: &[Variant] = &[$(Variant {
            name: "tsmm_mma", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: $bn, t3: $bk, rows: $warps / ($bn / (8 * $nt)) * 16, cols: 8 * $nt, stages: $stages,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_mma_variants!(mma_rows);

/// Rows of A and steps of k of a fragment of the matrix units: those of complex numbers are real ones of twice as many.
pub(crate) const fn fragment(dtype: Dtype) -> u32 {
    if dtype.is_complex() { 8 } else { 16 }
}

macro_rules! fragment_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $nt:literal, $ks:literal, $blocks:literal;)*) => {
        pub(super) const FRAGMENTS: &[Variant] = &[$(Variant {
            name: "tsmm_fragments", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: 8 * $nt, t3: fragment(elem::$elem) * $ks, rows: fragment(elem::$elem) * $warps, cols: 8 * $nt, stages: 2, layout: Layout::Any, mma: true,
            min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_fragments_variants!(fragment_rows);

impl Variant {
    /// Whether its warps load and store fragments themselves, and shared memory has B alone.
    pub(crate) const fn is_fragments(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmm_fragments")
    }

    /// Whether its blocks take a tile each, with A's alone in shared memory, and write C's rows themselves.
    pub(crate) const fn is_outer(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmm_outer")
    }

    /// Whether C may lie where A does: a tile's rows are read, by loads that know of writes, before any of them is written. `tsmm_lines`
    /// reads other tiles' beside its own; `tsmm_outer` is for a C that is wider than A.
    pub const fn may_be_in_place(&self) -> bool {
        matches!(self.kernel, Kernel::Tsmm) && !self.is_fragments() && !self.is_lines() && !self.is_outer()
    }
}

/// Most columns of C and of A that an entry serves; `None` where it serves any.
pub fn widest(variant: &Variant) -> Option<(u32, u32)> {
    match (variant.kernel, variant.name) {
        (Kernel::Tsmm, _) | (Kernel::Tall, "tsmm_registers" | "tsmm_packed") => Some((variant.t2, variant.t3)),
        (Kernel::Tall, _) => Some((variant.t2, WIDEST)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VARIANTS;
    use std::vec::Vec;

    /// Neighbouring rows of a power of two of pieces: eight of them are in eight different sixteenths of the banks.
    #[test]
    fn neighbouring_rows_are_in_different_banks() {
        for pieces in [1, 2, 4, 8, 16, 32] {
            for first in [0, 8, 120] {
                let mut banks: Vec<u32> = (first..first + 8).map(|row| place_of_piece(row * pieces) % 8).collect();
                banks.sort_unstable();
                banks.dedup();
                assert_eq!(banks.len(), 8, "rows of {pieces} pieces from {first} on");
            }
        }
    }

    #[test]
    fn tiles_hold_their_pieces_apart() {
        for bytes in [4, 8, 16] {
            for len in [1, 2, 63, 64, 65, 512, 4096] {
                let width = 16 / bytes;
                let last = place_of_piece((len - 1) / width);
                assert!((last + 1) * width <= tile_len(len, bytes) && tile_len(len, bytes) % width == 0, "{len}");
            }
        }
        for piece in 0..1000 {
            assert!(place_of_piece(piece + 1) > place_of_piece(piece));
            for threads in [64, 128, 256] {
                assert_eq!(place_of_piece(piece + threads), place_of_piece(piece) + place_of_piece(threads));
            }
        }
    }

    #[test]
    fn what_an_entry_serves_is_in_its_name() {
        for v in VARIANTS {
            let Some((columns, steps)) = widest(v) else { continue };
            assert!((1..=WIDEST).contains(&columns) && (1..=WIDEST).contains(&steps), "{}", v.entry);
            assert!(
                v.kernel != Kernel::Tsmm || v.entry.contains(&std::format!("_n{columns}_k{steps}_")),
                "{}",
                v.entry
            );
        }
        assert_eq!(VARIANTS.iter().filter(|v| v.name == "tsmm_row").map(|v| v.t2).max(), Some(16));
        assert_eq!(VARIANTS.iter().filter(|v| v.name == "tsmm_element").map(|v| v.t2).min(), Some(64));
    }
}
