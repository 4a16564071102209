//! `gemm_coalesced`, the report's third version: tiles in shared memory, filled along the columns.
//!
//! # Idea
//! The same as [`super::uncoalesced`], but neighbouring threads load neighbours of a column and store them into
//! neighbouring banks: 4 sectors a warp of f32 in place of 32, and no conflicts. Nothing else has changed. A smaller tile reads
//! memory more often and has more blocks for a small C.
//! # Thread mapping
//! Block x owns S x S of C, tiles down the rows first; y is its part of k. Thread (i, j) has element (i, j) of that.
//! # Zero β, tails
//! β = 0 never reads C; loads outside are zero, and the steps beyond k are not multiplied; stores are guarded. A fixed entry
//! does none of this: m, n and k are multiples of S.
//! # Cost
//! 2mnk flops; reads A ⌈n/S⌉ and B ⌈m/S⌉ times, and 2mnk elements of shared memory; two barriers a tile.
//! # Source
//! UCSD course report, Algorithm 1, "CUDA-1", tiles of 8, 16 and 32; the fixed and the robust tile are its comparison.

use super::square::{load_a, load_b, multiply, origin, own, steps};
use crate::product::Product;
use cuda_std::prelude::*;

/// # Safety
/// Launched with S · S threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements; a fixed
/// entry with whole tiles alone (`model::choose` refuses others).
#[inline(always)]
pub unsafe fn body<T: Scalar, const S: usize, const FIXED: bool>(x: Product<T>) {
    let side = S as u32;
    let ((row0, col0), (i, j)) = (origin(&x, side, side), own(side));
    let (start, end) = x.part(side);
    let (sa, sb) = (Shared::<T>::at(0), Shared::<T>::at(side * side)); // (S, S) each, by columns
    let mut sum = T::ZERO;

    for tile in (start..end).step_by(S) {
        // SAFETY: `end` <= k; each element of a tile is one thread's.
        unsafe {
            sa.store(j * side + i, load_a::<T, FIXED>(&x, row0 + i, tile + j, end));
            sb.store(j * side + i, load_b::<T, FIXED>(&x, tile + i, col0 + j, end));
        }
        thread::sync_threads();
        // SAFETY: behind the barrier.
        sum = unsafe { multiply(sum, (sa, side, i), (sb, side, j), steps::<FIXED>(side, end - tile)) };
        thread::sync_threads(); // the tiles may be overwritten
    }

    // SAFETY: each thread owns its element.
    unsafe { x.write(row0 + i, col0 + j, sum) };
}
