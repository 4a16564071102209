//! GEMM: C ← α A B + β C for any shape and any strides, transposes included.
//!
//! # The ladder
//! | variant | idea |
//! |---|---|
//! | [`naive`] | a thread an element of C, straight from memory |
//! | [`uncoalesced`] | tiles of A and B in shared memory, filled against the grain |
//! | [`coalesced`] | the same, filled along the columns |
//! | [`unrolled`] | two tiles of k between two barriers |
//! | [`interleaved`] | the next tile is loaded while this one is multiplied: one barrier a tile |
//! | [`four`] | 2 x 2 elements of C a thread |
//! | [`tiled`] | a block stages tiles of A and B in shared memory, a thread keeps TM x TN sums in registers and loads 16 bytes |
//! | [`staged`] | `cp.async` fills a ring of stages meanwhile ([`ring`]); up to 8 x 16 sums; `gemm_along` for an A and a B along k |
//! | [`mma`], [`complex_mma`] | the same, multiplied by the matrix units: f64 and c128, from sm_90 on |
//!
//! The first six are a course's report on a K80, for who wants to see where the time goes; they are chosen by name alone.
//! Those called `_fixed` serve whole tiles alone, and do without a look at the edges.
//!
//! The last two serve every product that no kernel of its own takes; [`tiled`] is there for GPUs without `cp.async`, and for who
//! reads how one gets to them.

pub mod coalesced;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod complex_mma;
pub(crate) mod epilogue;
pub mod four;
pub mod interleaved;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod mma;
pub mod naive;
pub mod ring;
mod square;
pub mod staged;
pub mod tiled;
pub mod uncoalesced;
pub mod unrolled;

use crate::product::{c64, c128, product_entry};
use cuda_std::prelude::*;

macro_rules! entries {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        $(product_entry!($entry, $elem, tiled::body::<$elem, $tm, $tn, $threads>);)*
    };
}
model::gemm_variants!(entries);
model::gemm_complex_variants!(entries);

macro_rules! ladder_entries {
    ($($entry:ident: $elem:ident, $module:ident, $variant:ident, $side:literal, $own:literal, $k:literal, $stages:literal, $fixed:literal;)*) => {
        $(product_entry!($entry, $elem, $module::body::<$elem, $side, $fixed>);)*
    };
}
model::gemm_ladder_variants!(ladder_entries);

macro_rules! staged_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $way:ident, $threads:literal, $tm:literal, $tn:literal, $bm:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal;)*) => {
        $(product_entry!(
            $entry,
            $elem,
            staged::Staged::<$elem, ring::Block<$threads, $bm, $bn, $kt, $stages, false>, $tm, $tn, ring::$way>::body
        );)*
    };
}
model::gemm_staged_variants!(staged_entries);

macro_rules! mma_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $body:ident, $warps:literal, $rb:literal, $nt:literal, $bm:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!($entry, $elem, mma::Mma::<ring::Block<{ 32 * $warps }, $bm, $bn, $kt, $stages, true>, $rb, $nt>::$body);
        )*
    };
}
model::gemm_mma_variants!(mma_entries);

macro_rules! complex_mma_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bm:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                complex_mma::ComplexMma::<ring::Block<{ 32 * $warps }, $bm, $bn, $kt, $stages, false>, $rb, $nt>::body
            );
        )*
    };
}
model::gemm_mma_complex_variants!(complex_mma_entries);
