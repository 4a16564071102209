//! Batches of small products: C_i ← α A_i B_i + β C_i, m, n, k up to 32.
//!
//! | operand | shape | stored as                                                       |
//! |---------|-------|-----------------------------------------------------------------|
//! | A_i     | m x k | any strides; `stride` elements apart, or where a list says       |
//! | B_i     | k x n | the same                                                        |
//! | C_i     | m x n | the same; no two elements of all of them share an address       |
//!
//! [`tile`]'s entries take everything; those of `fragments` and `complex_fragments` multiply on the matrix units, which needs f64 or c128, and sm_90;
//! [`warps`]' are for larger matrices of the other types; [`flat`]'s for matrices without gaps, [`bulk`]'s and [`over`]'s for those that lie one behind
//! the other, too;
//! [`paper`]'s are the variants of MAGMA's paper.

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod bulk;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod complex_fragments;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod flat;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod fragments;
mod matrices;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod over;
pub mod paper;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod runs;
mod side;
pub mod tile;
pub mod warps;

use crate::product::{c64, c128};
use cuda_std::prelude::*;
pub use side::Operand;

/// What every entry of a batch is called with.
#[derive(Clone, Copy)]
pub struct Batched<T> {
    /// Rows of C.
    pub m: u32,
    /// Columns of C.
    pub n: u32,
    /// Columns of A.
    pub k: u32,
    /// Problems, at most `model::launch::batched::MOST_PROBLEMS`.
    pub count: u32,
    /// Problems a tile.
    pub problems: u32,
    /// Stages of the ring.
    pub stages: u32,
    /// A.
    pub a: Operand<T>,
    /// B.
    pub b: Operand<T>,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
    /// C.
    pub c: Operand<T>,
    /// How they lie: [`model::launch::batched::Code`] of A, B and C, and from bit 24 on whose conjugates are taken.
    pub codes: u32,
}

impl<T: Scalar> Batched<T> {
    /// Bit 0: A's conjugates; bit 1: B's.
    #[inline(always)]
    fn conj(&self) -> u32 {
        self.codes >> model::launch::batched::CONJ_BIT & 3
    }

    /// Whether sums multiply with the conjugates of B's elements: [`crate::product::Product::conj_b`].
    #[inline(always)]
    pub(super) fn conj_b(&self) -> bool {
        self.conj() == 1 || self.conj() == 2
    }

    /// The signs with which sums multiply. A bit of `codes` is 0 that no compiler knows to be.
    #[inline(always)]
    pub fn signs(&self) -> Signs {
        let bit = |bit: u32| self.codes >> bit << 31;
        let first = model::launch::batched::CONJ_BIT;
        Signs { conj_b: bit(first) ^ bit(first + 1), never: bit(first + 2) }
    }

    /// Whether a whole sum is conjugated: [`crate::product::Product::conj_sum`].
    #[inline(always)]
    pub(super) fn conj_sum(&self) -> bool {
        self.conj() & 1 == 1
    }

    /// α · sum + β · old; where k = 0 β · old alone, or +0, whatever α and the sign of the sum's zeros are. `old` is looked at where β
    /// is not 0.
    #[inline(always)]
    pub(super) fn scaled(&self, sum: T, old: T) -> T {
        let sum = sum.conj_if(self.conj_sum());
        match (self.beta.is_zero(), self.k) {
            (true, 0) => T::ZERO,
            (true, _) => self.alpha.scale(sum),
            (false, 0) => self.beta.scale(old),
            (false, _) => self.alpha.scale_onto(sum, self.beta.scale(old)),
        }
    }

    /// What `scaled` is of many sums, each where its old value was: what they have in common is asked once.
    #[inline(always)]
    pub fn scale<const R: usize, const V: usize>(&self, sums: [[T; V]; R], old: &mut [[T; V]; R]) {
        self.scaling(|scaled| {
            for r in 0..R {
                for v in 0..V {
                    old[r][v] = scaled(sums[r][v], old[r][v]);
                }
            }
        });
    }

    /// Calls `each` with what `scaled` is, where what many sums have in common was asked already.
    #[inline(always)]
    pub fn scaling(&self, mut each: impl FnMut(&dyn Fn(T, T) -> T)) {
        let conj = self.conj_sum();
        match (self.beta.is_zero(), self.k) {
            (true, 0) => each(&|_, _| T::ZERO),
            (true, _) => match self.alpha.as_real() {
                Some(alpha) => each(&|sum, _| alpha.scale(sum.conj_if(conj))),
                None => each(&|sum, _| self.alpha.scale(sum.conj_if(conj))),
            },
            (false, 0) => each(&|_, old| self.beta.scale(old)),
            (false, _) => match (self.alpha.as_real(), self.beta.as_real()) {
                (Some(alpha), Some(beta)) => each(&|sum, old| alpha.scale_onto(sum.conj_if(conj), beta.scale(old))),
                _ => each(&|sum, old| self.alpha.scale_onto(sum.conj_if(conj), self.beta.scale(old))),
            },
        }
    }
}

/// Stamps an entry: flat parameters in, one [`Batched`] to the body.
macro_rules! batched_entry {
    ($entry:ident, $elem:ty, $body:expr) => {
        #[cuda_std::kernel]
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]
        pub unsafe fn $entry(
            m: u32,
            n: u32,
            k: u32,
            count: u32,
            problems: u32,
            stages: u32,
            a: Global<$elem>,
            a_list: Global<f64>,
            a_stride: u64,
            a_row: u64,
            a_col: u64,
            b: Global<$elem>,
            b_list: Global<f64>,
            b_stride: u64,
            b_row: u64,
            b_col: u64,
            alpha: $elem,
            beta: $elem,
            c: Global<$elem>,
            c_list: Global<f64>,
            c_stride: u64,
            c_row: u64,
            c_col: u64,
            codes: u32,
        ) {
            let a = Operand { base: a, list: a_list, stride: a_stride, row: a_row, col: a_col };
            let b = Operand { base: b, list: b_list, stride: b_stride, row: b_row, col: b_col };
            let c = Operand { base: c, list: c_list, stride: c_stride, row: c_row, col: c_col };
            let x = Batched { m, n, k, count, problems, stages, a, b, alpha, beta, c, codes };
            // SAFETY: the launch has the geometry of the entry's row in the table, and the operands span their elements.
            unsafe { $body(x) }
        }
    };
}

macro_rules! tile_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        $(batched_entry!($entry, $elem, tile::body::<$elem, $tm, $tn, $threads, { tile::$variant }>);)*
    };
}
model::batched_tile_variants!(tile_entries);

macro_rules! fragment_entries {
    ($($entry:ident: $elem:ident, $mb:literal, $nb:literal, $ks:literal, $ahead:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, fragments::body::<$mb, $nb, $ks, $ahead>);
        )*
    };
}
model::batched_fragments_variants!(fragment_entries);

macro_rules! warp_entries {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        $(batched_entry!($entry, $elem, warps::body::<$elem, $tm, $tn>);)*
    };
}
model::batched_warps_variants!(warp_entries);

macro_rules! complex_fragment_entries {
    ($($entry:ident: $elem:ident, $nb:literal, $ks:literal, $ahead:literal, $parts:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, complex_fragments::body::<$nb, $ks, $ahead, $parts>);
        )*
    };
}
model::batched_complex_fragments_variants!(complex_fragment_entries);

macro_rules! flat_real_entries {
    ($($entry:ident: $elem:ident, $mb:literal, $octets:literal, $nb:literal, $down:literal, $across:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, flat::body::<$elem, flat::real::Fragments<$mb, $octets, $nb, $down, $across>, $threads>);
        )*
    };
}
model::batched_flat_real_variants!(flat_real_entries);

macro_rules! flat_complex_entries {
    ($($entry:ident: $elem:ident, $octets:literal, $nb:literal, $down:literal, $across:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, flat::body::<$elem, flat::complex::Fragments<$octets, $nb, $down, $across>, $threads>);
        )*
    };
}
model::batched_flat_complex_variants!(flat_complex_entries);

macro_rules! flat_lanes_entries {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $across:literal, $steps:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, flat::body::<$elem, flat::lanes::Lanes<$tm, $tn, $across, $steps>, $threads>);
        )*
    };
}
model::batched_flat_lanes_variants!(flat_lanes_entries);

macro_rules! bulk_entries {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, bulk::body::<$elem, $tm, $tn>);
        )*
    };
}
model::batched_bulk_variants!(bulk_entries);

macro_rules! over_entries {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $steps:literal, $threads:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            batched_entry!($entry, $elem, over::body::<$elem, $tm, $tn, $steps>);
        )*
    };
}
model::batched_over_variants!(over_entries);

/// The bodies of the paper's kernels, by their variants' names.
mod bodies {
    use super::{Batched, paper};
    use cuda_std::prelude::*;

    pub use paper::blocked;

    /// # Safety
    /// As for [`paper::element`].
    #[inline(always)]
    pub unsafe fn single<T: Scalar>(x: Batched<T>) {
        // SAFETY: the launch's promise is that of `paper::element`.
        unsafe { paper::element::<T, false>(x) }
    }

    pub use single as aggregated;

    /// # Safety
    /// As for [`paper::element`].
    #[inline(always)]
    pub unsafe fn prefetch<T: Scalar>(x: Batched<T>) {
        // SAFETY: the launch's promise is that of `paper::element`.
        unsafe { paper::element::<T, true>(x) }
    }
}

macro_rules! paper_entries {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal;)*) => {
        $(batched_entry!($entry, $elem, bodies::$variant::<$elem>);)*
    };
}
model::batched_paper_variants!(paper_entries);
