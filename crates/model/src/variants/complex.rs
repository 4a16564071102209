//! The entries of complex elements: the same variants as of real ones, with fewer rows and columns a thread, since a sum
//! takes twice the registers.

use super::{GEMM_SIDE, elem, layout};
use crate::{Kernel, Layout, Variant};

/// The entries of TSM2R for complex elements; columns as of [`tsm2r_variants!`](crate::tsm2r_variants).
#[macro_export]
macro_rules! tsm2r_complex_variants {
    ($emit:ident) => {
        $emit! {
            // entry                          elem  variant           T1   T2  T3  blocks  wide
            ctsm2r_inner_1x1_u1_t128:             c64, inner,            128, 1,  1, 0, false;
            ctsm2r_outer_1x4_u1_t128:             c64, outer,            128, 4,  1, 0, false;
            ctsm2r_outer_1x8_u1_t128:             c64, outer,            128, 8,  1, 0, false;
            ctsm2r_shared_1x4_u4_t128:            c64, shared,           128, 4,  4, 0, true;
            ctsm2r_shared_1x8_u4_t128:            c64, shared,           128, 8,  4, 0, true;
            ctsm2r_shared_rowmajor_1x4_u4_t128:   c64, shared_rowmajor,  128, 4,  4, 0, true;
            ctsm2r_shared_rowmajor_1x8_u4_t128:   c64, shared_rowmajor,  128, 8,  4, 0, true;
            ctsm2r_prefetch_1x1_u16_t128:         c64, prefetch,         128, 1,  16, 0, true;
            ctsm2r_prefetch_1x2_u16_t128:         c64, prefetch,         128, 2,  16, 0, true;
            ctsm2r_prefetch_1x4_u8_t128:          c64, prefetch,         128, 4,  8, 0, true;
            ctsm2r_prefetch_1x8_u8_t128:          c64, prefetch,         128, 8,  8, 0, true;

            ztsm2r_inner_1x1_u1_t128:             c128, inner,           128, 1,  1, 0, false;
            ztsm2r_outer_1x4_u1_t128:             c128, outer,           128, 4,  1, 0, false;
            ztsm2r_outer_1x8_u1_t128:             c128, outer,           128, 8,  1, 0, false;
            ztsm2r_shared_1x4_u4_t128:            c128, shared,          128, 4,  4, 0, true;
            ztsm2r_shared_1x8_u4_t128:            c128, shared,          128, 8,  4, 0, true;
            ztsm2r_shared_rowmajor_1x4_u4_t128:   c128, shared_rowmajor, 128, 4,  4, 0, true;
            ztsm2r_shared_rowmajor_1x8_u4_t128:   c128, shared_rowmajor, 128, 8,  4, 0, true;
            ztsm2r_prefetch_1x1_u8_t128:          c128, prefetch,        128, 1,  8, 0, true;
            ztsm2r_prefetch_1x2_u8_t128:          c128, prefetch,        128, 2,  8, 0, true;
            ztsm2r_prefetch_1x4_u4_t128:          c128, prefetch,        128, 4,  4, 0, true;
            ztsm2r_prefetch_1x8_u4_t128:          c128, prefetch,        128, 8,  4, 0, true;
        }
    };
}

/// The entries of complex elements that go through a ring of stages; columns as of
/// [`staged_variants!`](crate::staged_variants).
#[macro_export]
macro_rules! staged_complex_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                     elem  threads TM TN  BN  KT  stages blocks by rows
            ctsm2r_staged_2x4_n4_k16_s3_t128:            c64,  128, 2,     4,  4,  16, 3,     2,     false;
            ctsm2r_staged_2x4_n8_k16_s3_t128:            c64,  128, 2,     4,  8,  16, 3,     4,     false;
            ctsm2r_staged_4x4_n16_k16_s3_t128:           c64,  128, 4,     4,  16, 16, 3,     3,     false;
            ctsm2r_staged_8x6_n24_k16_s3_t128:           c64,  128, 8,     6,  24, 16, 3,     2,     false;
            ctsm2r_staged_8x4_n32_k16_s3_t128:           c64,  128, 8,     4,  32, 16, 3,     4,     false;
            ctsm2r_staged_8x6_n48_k8_s3_t128:            c64,  128, 8,     6,  48, 8,  3,     2,     false;
            ctsm2r_staged_8x4_n64_k16_s3_t128:           c64,  128, 8,     4,  64, 16, 3,     4,     false;
            ctsm2r_staged_2x4_n4_k16_s3_t128_rows:       c64,  128, 2,     4,  4,  16, 3,     2,     true;
            ctsm2r_staged_2x4_n8_k16_s3_t128_rows:       c64,  128, 2,     4,  8,  16, 3,     3,     true;
            ctsm2r_staged_4x4_n16_k16_s3_t128_rows:      c64,  128, 4,     4,  16, 16, 3,     3,     true;
            ctsm2r_staged_4x6_n24_k16_s3_t128_rows:      c64,  128, 4,     6,  24, 16, 3,     2,     true;
            ctsm2r_staged_8x4_n32_k16_s3_t128_rows:      c64,  128, 8,     4,  32, 16, 3,     4,     true;
            ctsm2r_staged_8x6_n48_k16_s3_t128_rows:      c64,  128, 8,     6,  48, 16, 3,     2,     true;
            ctsm2r_staged_8x4_n64_k16_s3_t128_rows:      c64,  128, 8,     4,  64, 16, 3,     4,     true;

            ztsm2r_staged_2x4_n4_k8_s3_t128:             c128, 128, 2,     4,  4,  8,  3,     2,     false;
            ztsm2r_staged_2x4_n8_k8_s3_t128:             c128, 128, 2,     4,  8,  8,  3,     3,     false;
            ztsm2r_staged_2x4_n16_k8_s3_t128:            c128, 128, 2,     4,  16, 8,  3,     3,     false;
            ztsm2r_staged_4x4_n16_k8_s3_t128:            c128, 128, 4,     4,  16, 8,  3,     2,     false;
            ztsm2r_staged_4x6_n24_k8_s3_t128:            c128, 128, 4,     6,  24, 8,  3,     2,     false;
            ztsm2r_staged_4x4_n32_k8_s3_t128:            c128, 128, 4,     4,  32, 8,  3,     2,     false;
            ztsm2r_staged_4x6_n48_k8_s3_t128:            c128, 128, 4,     6,  48, 8,  3,     2,     false;
            ztsm2r_staged_4x4_n64_k8_s3_t256:            c128, 256, 4,     4,  64, 8,  3,     1,     false;
            ztsm2r_staged_2x4_n4_k8_s3_t128_rows:        c128, 128, 2,     4,  4,  8,  3,     2,     true;
            ztsm2r_staged_2x4_n8_k8_s3_t128_rows:        c128, 128, 2,     4,  8,  8,  3,     3,     true;
            ztsm2r_staged_2x4_n16_k8_s3_t128_rows:       c128, 128, 2,     4,  16, 8,  3,     3,     true;
            ztsm2r_staged_4x6_n24_k8_s3_t128_rows:       c128, 128, 4,     6,  24, 8,  3,     2,     true;
            ztsm2r_staged_4x4_n32_k8_s3_t128_rows:       c128, 128, 4,     4,  32, 8,  3,     2,     true;
            ztsm2r_staged_4x6_n48_k8_s3_t128_rows:       c128, 128, 4,     6,  48, 8,  3,     2,     true;
            ztsm2r_staged_4x4_n64_k8_s3_t256_rows:       c128, 256, 4,     4,  64, 8,  3,     1,     true;
        }
    };
}

/// The entries of complex elements on the matrix units of sm_90; columns as of [`mma_variants!`](crate::mma_variants).
#[macro_export]
macro_rules! mma_complex_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                     elem  warps RB NT  BN  KT  stages blocks by rows
            ztsm2r_mma_16x8_n8_k16_s3_t128:              c128, 4,    1,  1,  8,  16, 3,     4,     false;
            ztsm2r_mma_16x16_n16_k16_s3_t128:            c128, 4,    1,  2,  16, 16, 3,     3,     false;
            ztsm2r_mma_16x24_n24_k16_s3_t128:            c128, 4,    1,  3,  24, 16, 3,     3,     false;
            ztsm2r_mma_16x32_n32_k16_s3_t128:            c128, 4,    1,  4,  32, 16, 3,     2,     false;
            ztsm2r_mma_16x8_n8_k16_s3_t128_rows:         c128, 4,    1,  1,  8,  16, 3,     4,     true;
            ztsm2r_mma_16x16_n16_k16_s3_t128_rows:       c128, 4,    1,  2,  16, 16, 3,     3,     true;
            ztsm2r_mma_16x24_n24_k16_s3_t128_rows:       c128, 4,    1,  3,  24, 16, 3,     3,     true;
            ztsm2r_mma_16x32_n32_k16_s3_t128_rows:       c128, 4,    1,  4,  32, 16, 3,     2,     true;
        }
    };
}

/// The entries of the plain product for complex elements; columns as of [`gemm_variants!`](crate::gemm_variants).
#[macro_export]
macro_rules! gemm_complex_variants {
    ($emit:ident) => {
        $emit! {
            // entry            elem  TM TN threads blocks
            cgemm_tiled_4x4_t256:  c64,  4, 4, 256, 2;
            zgemm_tiled_4x4_t256:  c128, 4, 4, 256, 1;
        }
    };
}

tsm2r_complex_variants!(tsm2r_rows);
staged_complex_variants!(staged_rows);
mma_complex_variants!(mma_rows);
gemm_complex_variants!(gemm_rows);
