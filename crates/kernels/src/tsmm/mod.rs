//! TSMM: C ← α A B + β C for a tall A of few columns.
//!
//! | operand | shape | strides | role |
//! |---------|-------|---------|------|
//! | A | m x k, k <= 64 | any; packed by rows, or by columns, is fastest | streams in once |
//! | B | k x n, n <= 64 | any | small: each block holds all of it |
//! | C | m x n | any; packed by rows, or by columns, is fastest | streams out once, and in where β is not 0 |
//!
//! # Variants
//! | variant | from | idea |
//! |---|---|---|
//! | [`tiled`] | TSM2X, Algorithm 6 | tcf tiles of rows a thread, one after the other |
//! | [`interleaved`] | TSM2X, Algorithm 7 | the same for one tile of B, with the next C on its way |
//! | [`group`] | Ernst et al. | one thread, a group of threads or a thread an element for each row |
//! | [`packed`] | | whole rows in 16 bytes of a thread |
//! | [`columns`] | | columns straight between registers and memory, a chunk always in flight |
//! | [`outer`] | | few steps and many columns: rows of C written where they are computed |
//! | [`staged`] | | tiles as they lie in memory through shared memory, in and out, in whole sectors |
//! | [`mma`] | | the same, multiplied by the matrix units: f64, from sm_90 on |
//! | [`bulk`] | | rows by bulk copies through slots of each warp, from sm_90 on; by the matrix units: f64 and c128; by the vector units: f32 and c64, `tsmm_bulk_registers` and `tsmm_bulk_shared`, and all types, few steps, `tsmm_bulk_rows` |
//! | [`lines`] | | columns by bulk copies through a ring of stages of each block, wherever they begin, from sm_90 on; by the vector units, and by the matrix units: f64, `tsmm_lines_mma` |
//! | [`fragments`] | | these units' fragments straight between registers and memory: f64 and c128, from sm_90 on |
//!
//! # Zero β, tails
//! β = 0 never reads C. Nothing outside of the operands is touched; stores are guarded.
//!
//! # Determinism
//! Each element of C is a sum of one thread or one warp, in an order that the entry alone decides: same entry, same bits,
//! whatever the grid. k is never cut into parts.
//!
//! # Cost
//! 2mnk flops; reads m·k elements, and m·n where β is not 0; writes m·n: `model::roofline`.
//!
//! # Source
//! Rivera et al., TSM2X, JPDC 151 (2021), Algorithms 6 and 7; Ernst, Hager, Thies, Wellein, Performance engineering for real and
//! complex tall & skinny matrix multiplication kernels on GPUs (2020).

mod bring;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod bulk;
pub mod columns;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod fragments;
pub mod group;
pub mod interleaved;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod lines;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod mma;
pub mod outer;
pub mod packed;
pub mod staged;
mod tile;
pub mod tiled;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod unrolled;

use crate::product::{c64, c128, product_entry};
use cuda_std::prelude::*;

macro_rules! tall_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $t1:literal, $t2:literal, $t3:literal, $blocks:literal;)*) => {
        $(product_entry!($entry, $elem, $variant::body::<$elem, $t1, $t2, $t3>);)*
    };
}
model::tsm2l_variants!(tall_entries);

macro_rules! group_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $g:literal, $tn:literal, $u:literal, $from:ident;)*) => {
        $(product_entry!($entry, $elem, group::body::<$elem, $threads, $g, $tn, $u, { group::$from }>);)*
    };
}
model::group_variants!(group_entries);

macro_rules! packed_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $r:literal, $w:literal;)*) => {
        $(product_entry!($entry, $elem, packed::body::<$elem, $threads, $r, $w>);)*
    };
}
model::packed_variants!(packed_entries);

macro_rules! column_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $v:literal, $nb:literal, $bk:literal, $ku:literal, $blocks:literal;)*) => {
        $(product_entry!($entry, $elem, columns::body::<$elem, $threads, $v, $nb, $bk, $ku>);)*
    };
}
model::columns_variants!(column_entries);

macro_rules! staged_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $bn:literal, $bk:literal, $stages:literal, $blocks:literal;)*) => {
        $(product_entry!(
            $entry,
            $elem,
            staged::body::<
                $elem,
                staged::Block<$threads, { $threads / ($bn / $tn) * $tm }, $bn, $bk, $stages>,
                staged::Vector<staged::Block<$threads, { $threads / ($bn / $tn) * $tm }, $bn, $bk, $stages>, $tm, $tn>,
            >
        );)*
    };
}
model::tsmm_staged_variants!(staged_entries);

macro_rules! outer_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $bn:literal, $bk:literal, $blocks:literal;)*) => {
        $(product_entry!($entry, $elem, outer::body::<$elem, $threads, { $threads / ($bn / $tn) * $tm }, $tn, $bk>);)*
    };
}
model::tsmm_outer_variants!(outer_entries);

macro_rules! mma_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $nt:literal, $bn:literal, $bk:literal, $stages:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                staged::body::<
                    $elem,
                    staged::Block<{ 32 * $warps }, { $warps / ($bn / (8 * $nt)) * 16 }, $bn, $bk, $stages>,
                    mma::Mma<staged::Block<{ 32 * $warps }, { $warps / ($bn / (8 * $nt)) * 16 }, $bn, $bk, $stages>, $nt>,
                >
            );
        )*
    };
}
model::tsmm_mma_variants!(mma_entries);

macro_rules! fragment_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $nt:literal, $ks:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!($entry, $elem, fragments::body::<$elem, $warps, $nt, $ks>);
        )*
    };
}
model::tsmm_fragments_variants!(fragment_entries);

macro_rules! bulk_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $r:literal, $nt:literal, $ks:literal, $slots:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!($entry, $elem, bulk::body::<$elem, bulk::matrix::Matrix<$elem, $nt, $ks>, $warps, $r, $slots>);
        )*
    };
}
model::tsmm_bulk_variants!(bulk_entries);

macro_rules! bulk_registers_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $r:literal, $lc:literal, $ct:literal, $k:literal, $slots:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!($entry, $elem, bulk::body::<$elem, bulk::registers::Registers<$elem, $lc, $ct, $k>, $warps, $r, $slots>);
        )*
    };
}
model::tsmm_bulk_registers_variants!(bulk_registers_entries);

macro_rules! bulk_shared_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $across:literal, $k:literal, $slots:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                bulk::body::<$elem, bulk::shared::SharedB<$elem, $tm, $tn, $across, $k>, $warps, { $tm * 32 / $across }, $slots>
            );
        )*
    };
}
model::tsmm_bulk_shared_variants!(bulk_shared_entries);

macro_rules! bulk_rows_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $n:literal, $k:literal, $slots:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!($entry, $elem, bulk::body::<$elem, bulk::rows::Rows<$elem, $tm, $tn, $n, $k>, $warps, { 32 * $tm }, $slots>);
        )*
    };
}
model::tsmm_bulk_rows_variants!(bulk_rows_entries);

/// B's most rows, as the kernels count.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
const WIDEST: usize = model::variants::tsmm::WIDEST as usize;

macro_rules! lines_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $lx:literal, $bn:literal, $stages:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                lines::body::<$elem, lines::vector::Vector<$elem, $lx, $bn, WIDEST>, $warps, $tm, $tn, $bn, WIDEST, $stages>
            );
        )*
    };
}
model::tsmm_lines_variants!(lines_entries);

macro_rules! lines_mma_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $bn:literal, $stages:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                lines::body::<$elem, lines::matrix::Matrix<$bn, WIDEST>, $warps, $tm, $tn, $bn, WIDEST, $stages>
            );
        )*
    };
}
model::tsmm_lines_mma_variants!(lines_mma_entries);
