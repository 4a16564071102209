//! `gemm_uncoalesced`, the report's second version: tiles in shared memory, filled against the grain.
//!
//! # Idea
//! A block's S x S threads use each element of a tile S times, so memory is read 1/S as often as by [`super::naive`]. But
//! neighbouring threads fill across the columns: of operands that lie by columns a warp touches 32 sectors for 32 elements, and
//! one bank of shared memory 32 times. It was slower than no tiles at all.
//! # Thread mapping
//! Block x owns S x S of C, tiles down the rows first; y is its part of k. Thread (i, j) has element (i, j) of that.
//! # Zero β, tails
//! β = 0 never reads C; loads outside are zero, and the steps beyond k are not multiplied; stores are guarded. A fixed entry
//! does none of this: m, n and k are multiples of S.
//! # Cost
//! 2mnk flops; reads A ⌈n/S⌉ and B ⌈m/S⌉ times, and 2mnk elements of shared memory; two barriers a tile.
//! # Source
//! UCSD course report, "CUDA-1u": 32 x 32 threads.

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
        // Against the grain: neighbouring threads, of neighbouring i, are a column apart.
        // SAFETY: `end` <= k; each element of a tile is one thread's.
        unsafe {
            sa.store(i * side + j, load_a::<T, FIXED>(&x, row0 + j, tile + i, end));
            sb.store(i * side + j, load_b::<T, FIXED>(&x, tile + j, col0 + i, end));
        }
        thread::sync_threads();
        // SAFETY: behind the barrier.
        sum = unsafe { multiply(sum, (sa, side, i), (sb, side, j), steps::<FIXED>(side, end - tile)) };
        thread::sync_threads(); // the tiles may be overwritten
    }

    // SAFETY: each thread owns its element.
    unsafe { x.write(row0 + i, col0 + j, sum) };
}
