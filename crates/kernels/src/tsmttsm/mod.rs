//! TSMTTSM: C ← α AᵀB + β C, or α AᴴB + β C, over the long side of two tall matrices; Gram matrices, where both are one.
//!
//! | operand | shape | strides | role |
//! |---------|-------|---------|------|
//! | A | m x k, the transposed tall matrix | any; fast where one of them is 1 | streamed, read once |
//! | B | k x n, tall | any; fast where the one along n is 1 with A's along m, or along k with A's along k | streamed, read once |
//! | C | m x n, a tile or few | any | written at the end |
//!
//! | variant | Ernst et al. | idea |
//! |---|---|---|
//! | [`tiles`] | K only; K and N; 2-D tiles; transposed; leap-frogging; unrolling | sums on the vector units |
//! | [`staged`] | | the same, rows coming through a ring of stages in shared memory: c128, and c64 of full tiles |
//! | [`fitted`] | | the same in f32 and c64, as many tiles as C has |
//! | [`lines`] | | the same, of tall matrices that lie by columns: stages keep lines along k; f64 and c128 in [`ring`] |
//! | [`mma`] | | fragments straight from device memory to the matrix units: f64 ([`fragments`]) and c128 ([`complex`]), from sm_90 |
//! | [`ring`] | | the same from a ring of stages, where several warps share C: squares of squares, or as [`dealt`] |
//! | [`packed`] | | the same of f64 rows that lie behind each other, by bulk copies, whatever their width |
//! | [`eights`] | | the same of f64 and c128, each warp with all of C, of which no more is multiplied than eights of columns |
//!
//! # Thread mapping
//! Block (x, y, z) owns rows x·BM .. and columns z·BN .. of C, and part y of k. Its threads form groups along k; a group
//! has all of the block's tile of C, each thread or warp a part of it, for rows of A and B that are dealt to the groups in
//! turn.
//! # Tile parameters
//! BM x BN: C a block. TM x TN, or X x Y squares: C a thread, or a warp. Steps: rows that a group takes at a time.
//! # Zero β, tails
//! β = 0 never reads C. Rows past the block's part of k are zero; rows and columns past C are loaded from C's first, from the next row of
//! k ([`fitted`], [`packed`], [`eights`]), or as zero, and not stored.
//! # Conjugates
//! As of `Product::conj_sum`: at most B's elements are conjugated as they are multiplied, and sums once they are whole. A
//! matrix by itself of which one factor is conjugated is Hermitian: what is above the diagonal is the conjugate of what is
//! below, and the diagonal is real ([`finish`]).
//! # Determinism
//! A sum runs over a group's rows in ascending order; lanes, groups and slots are added in orders that follow from the shape
//! and the plan ([`finish`]). `tsmttsm_atomic` alone adds blocks in any order.
//! # Cost
//! 2mnk flops, 8mnk of complex elements; reads (m + n)·k elements, a Gram matrix m·k: `model::roofline`.
//! # Source
//! Ernst, Hager, Thies, Wellein, Int. J. High Perform. Comput. Appl. 35 (2021), Sect. 3 and 4; T_M and T_N there are TM and TN
//! here, K, M and N are k, m and n. Ours: 16-byte loads, slots in place of atomics, any strides, the matrix units.

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod complex;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod dealt;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod eights;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod fill;
pub mod finish;
pub mod fitted;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod fragments;
pub mod lines;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod mma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod packed;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod ring;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod runs;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod share;
pub mod staged;
mod stages;
pub mod tiles;

use crate::product::{Product, c64, c128};
use cuda_std::prelude::*;

/// What a kernel of two tall matrices is called with: a product, and what finishes it.
#[derive(Clone, Copy)]
pub struct Reduced<T> {
    /// The product; its C is the caller's, its `slot_len` is not used, and its `work` has tickets, and `WORK_HEAD_BYTES` from there the slots, one
    /// for each part of k: column-major, m x n. It is not used where k is in one part.
    pub p: Product<T>,
    /// `model::launch::reduced::codes`.
    pub finish: u32,
}

/// What a block has of C and of k.
#[derive(Clone, Copy)]
pub struct Duty {
    /// Its tile, of those down C.
    pub down: u32,
    /// Its part of k.
    pub part: u32,
    /// Its tile, of those along C.
    pub along: u32,
}

impl Duty {
    /// In the order in which blocks begin all tiles of a part follow each other.
    #[inline(always)]
    pub fn tiles_first() -> Duty {
        Duty { down: thread::block_idx_x(), part: thread::block_idx_y(), along: thread::block_idx_z() }
    }

    /// All parts of a tile do: blocks that begin together read what lies together, where a tile's rows are lines of memory. Nobody promises that blocks begin
    /// along x first, as they were seen to; nothing but time depends on it.
    #[inline(always)]
    pub fn parts_first() -> Duty {
        let (here, tiles, parts) = (Duty::tiles_first(), thread::grid_dim_x(), thread::grid_dim_y());
        // A division of 64 bits would be seen in launches of a few microseconds.
        if parts <= 1 || tiles.checked_mul(parts).is_none() {
            return here;
        }
        let at = here.part * tiles + here.down;
        Duty { down: at / parts, part: at % parts, ..here }
    }
}

/// Stamps an entry: flat parameters in, one [`Reduced`] to the body.
macro_rules! reduced_entry {
    ($entry:ident, $elem:ty, $body:expr) => {
        #[cuda_std::kernel]
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]
        pub unsafe fn $entry(
            m: u32,
            n: u32,
            k: u32,
            a: Global<$elem>,
            a_row: u64,
            a_col: u64,
            b: Global<$elem>,
            b_row: u64,
            b_col: u64,
            alpha: $elem,
            beta: $elem,
            c: Global<$elem>,
            c_row: u64,
            c_col: u64,
            work: Global<$elem>,
            finish: u32,
            conj: u32,
        ) {
            let slot_len = 0;
            let p = Product {
                m,
                n,
                k,
                a,
                a_row,
                a_col,
                b,
                b_row,
                b_col,
                alpha,
                beta,
                c,
                c_row,
                c_col,
                slot_len,
                conj,
                work,
            };
            // SAFETY: the launch has the geometry of the entry's row in the table, and the operands span their elements.
            unsafe { $body(Reduced { p, finish }) }
        }
    };
}
pub(crate) use reduced_entry;

/// How the `tiles` of a variant load and finish: `HOW` of [`tiles::Block`], and whether atomically.
mod how {
    pub use super::tiles::{ALONG as along, LEAPFROG as leapfrog, LEAPFROG as atomic};
    pub use super::tiles::{INTERLEAVED as interleaved, PLAIN as columns, PLAIN as tiled, PLAIN as whole};
}

/// Whether a variant adds to C by float atomics.
const fn is_atomic(variant: &str) -> bool {
    matches!(variant.as_bytes(), b"atomic")
}

macro_rules! entries {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $steps:literal, $blocks:literal;)*) => {
        $(reduced_entry!(
            $entry,
            $elem,
            tiles::Tiles::<$elem, tiles::Block<$threads, $bm, $bn, { how::$variant }, false, { is_atomic(stringify!($variant)) }>, $tm, $tn, $steps>::body
        );)*
    };
}
model::tsmttsm_variants!(entries);

macro_rules! gram_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $steps:literal, $blocks:literal;)*) => {
        $(reduced_entry!(
            $entry,
            $elem,
            tiles::Tiles::<$elem, tiles::Block<$threads, $bm, $bn, { how::$variant }, true, false>, $tm, $tn, $steps>::body
        );)*
    };
}
model::gram_variants!(gram_entries);

macro_rules! staged_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $kt:literal, $blocks:literal;)*) => {
        $(reduced_entry!(
            $entry,
            $elem,
            staged::Staged::<$elem, tiles::Block<$threads, $bm, $bn, { tiles::INTERLEAVED }, false, false>, $tm, $tn, $kt>::body
        );)*
    };
}
model::tsmttsm_staged_variants!(staged_entries);

macro_rules! gram_staged_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $kt:literal, $blocks:literal;)*) => {
        $(reduced_entry!(
            $entry,
            $elem,
            staged::Staged::<$elem, tiles::Block<$threads, $bm, $bn, { tiles::INTERLEAVED }, true, false>, $tm, $tn, $kt>::body
        );)*
    };
}
model::gram_staged_variants!(gram_staged_entries);

macro_rules! fitted_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $steps:literal, $blocks:literal;)*) => {
        $(reduced_entry!($entry, $elem, fitted::Fitted::<$elem, $threads, $tm, $tn, $steps, false>::body);)*
    };
}
model::tsmttsm_fitted_variants!(fitted_entries);

macro_rules! gram_fitted_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $steps:literal, $blocks:literal;)*) => {
        $(reduced_entry!($entry, $elem, fitted::Fitted::<$elem, $threads, $tm, $tn, $steps, true>::body);)*
    };
}
model::gram_fitted_variants!(gram_fitted_entries);

macro_rules! lines_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $kt:literal, $blocks:literal;)*) => {
        $(reduced_entry!(
            $entry,
            $elem,
            lines::Lines::<$elem, tiles::Block<$threads, $bm, $bn, { tiles::DEALT }, false, false>, $tm, $tn, $kt, { <$elem as Scalar>::WIDTH }>::body
        );)*
    };
}
model::tsmttsm_lines_variants!(lines_entries);

macro_rules! gram_lines_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $bm:literal, $bn:literal, $tm:literal, $tn:literal, $kt:literal, $blocks:literal;)*) => {
        $(reduced_entry!(
            $entry,
            $elem,
            lines::Lines::<$elem, tiles::Block<$threads, $bm, $bn, { tiles::DEALT }, true, false>, $tm, $tn, $kt, { <$elem as Scalar>::WIDTH }>::body
        );)*
    };
}
model::gram_lines_variants!(gram_lines_entries);

macro_rules! mma_entries {
    ($($entry:ident: $elem:ident, $x:literal, $y:literal, $wx:literal, $wy:literal, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, mma::Mma::<$elem, mma::Warps<$wx, $wy, $kg, false>, $x, $y, $depth>::body);
        )*
    };
}
model::tsmttsm_mma_variants!(mma_entries);

macro_rules! gram_mma_entries {
    ($($entry:ident: $elem:ident, $x:literal, $wx:literal, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, mma::Mma::<$elem, mma::Warps<$wx, $wx, $kg, true>, $x, $x, $depth>::body);
        )*
    };
}
model::gram_mma_variants!(gram_mma_entries);

macro_rules! folded_entries {
    ($($entry:ident: $elem:ident, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, mma::Mma::<$elem, mma::Folded<$kg, false>, 1, 1, $depth>::body);
        )*
    };
}
model::tsmttsm_folded_variants!(folded_entries);

macro_rules! gram_folded_entries {
    ($($entry:ident: $elem:ident, $kg:literal, $depth:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, mma::Mma::<$elem, mma::Folded<$kg, true>, 1, 1, $depth>::body);
        )*
    };
}
model::gram_folded_variants!(gram_folded_entries);

macro_rules! ring_entries {
    ($($entry:ident: $elem:ident, $x:literal, $y:literal, $wx:literal, $wy:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, ring::Ring::<$elem, mma::Mma<$elem, mma::Warps<$wx, $wy, $kg, false>, $x, $y, 1>, $kt, false>::body);
        )*
    };
}
model::tsmttsm_ring_variants!(ring_entries);

/// So many squares a side, of a GRAM matrix or not, dealt.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
macro_rules! dealt {
    ($elem:ident, $sides:literal, $gram:literal) => {
        dealt::Dealt<$elem, $sides, { model::launch::dealt::most($sides, <$elem as fragments::Squares>::PARTS, $gram) }, $gram>
    };
}

macro_rules! dealt_entries {
    ($($entry:ident: $elem:ident, $sides:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, ring::Ring::<$elem, dealt!($elem, $sides, false), $kt, false>::body);
        )*
    };
}
model::tsmttsm_dealt_variants!(dealt_entries);

macro_rules! gram_ring_entries {
    ($($entry:ident: $elem:ident, $sides:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, ring::Ring::<$elem, dealt!($elem, $sides, true), $kt, false>::body);
        )*
    };
}
model::gram_ring_variants!(gram_ring_entries);

macro_rules! gram_dealt_lines_entries {
    ($($entry:ident: $elem:ident, $sides:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, ring::Ring::<$elem, dealt!($elem, $sides, true), $kt, true>::body);
        )*
    };
}
model::gram_dealt_lines_variants!(gram_dealt_lines_entries);

macro_rules! lines_mma_entries {
    ($($entry:ident: $elem:ident, $x:literal, $y:literal, $wx:literal, $wy:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, ring::Ring::<$elem, mma::Mma<$elem, mma::Warps<$wx, $wy, $kg, false>, $x, $y, 1>, $kt, true>::body);
        )*
    };
}
model::tsmttsm_lines_mma_variants!(lines_mma_entries);

macro_rules! gram_lines_mma_entries {
    ($($entry:ident: $elem:ident, $x:literal, $wx:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, ring::Ring::<$elem, mma::Mma<$elem, mma::Warps<1, 1, $kg, true>, $x, $x, 1>, $kt, true>::body);
        )*
    };
}
model::gram_lines_mma_variants!(gram_lines_mma_entries);

macro_rules! packed_entries {
    ($($entry:ident: $elem:ident, $x:literal, $y:literal, $wx:literal, $wy:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, packed::Packed::<mma::Mma<$elem, mma::Warps<$wx, $wy, $kg, false>, $x, $y, 1>, $kt>::body);
        )*
    };
}
model::tsmttsm_packed_variants!(packed_entries);

macro_rules! gram_packed_entries {
    ($($entry:ident: $elem:ident, $x:literal, $wx:literal, $kg:literal, $kt:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, packed::Packed::<mma::Mma<$elem, mma::Warps<1, 1, $kg, true>, $x, $x, 1>, $kt>::body);
        )*
    };
}
model::gram_packed_variants!(gram_packed_entries);

macro_rules! eights_entries {
    ($($entry:ident: $elem:ident, $bm:literal, $bn:literal, $kg:literal, $steps:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, eights::ByEights::<$elem, $bm, $bn, $kg, $steps, false>::body);
        )*
    };
}
model::tsmttsm_eights_variants!(eights_entries);

macro_rules! gram_eights_entries {
    ($($entry:ident: $elem:ident, $bm:literal, $bn:literal, $kg:literal, $steps:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, eights::ByEights::<$elem, $bm, $bn, $kg, $steps, true>::body);
        )*
    };
}
model::gram_eights_variants!(gram_eights_entries);
