//! `gemm_interleaved`, the report's fifth version: the next tile is loaded while this one is multiplied.
//!
//! # Idea
//! In [`super::coalesced`] nothing is multiplied while a tile is on its way. Here the next tile's elements are asked for ahead of
//! this tile's arithmetic and stored behind it, into a second place: who still reads the first is not disturbed, and one
//! barrier a tile is enough.
//! # Thread mapping
//! Block x owns S x S of C, tiles down the rows first; y is its part of k. Thread (i, j) has element (i, j) of that.
//! # Zero β, tails
//! As of [`super::coalesced`].
//! # Cost
//! 2mnk flops; reads A ⌈n/S⌉ and B ⌈m/S⌉ times; a barrier a tile, and twice the shared memory.
//! # Source
//! UCSD course report, Algorithm 2, "1IL": the best of those with one element a thread.

use super::square::{load_a, load_b, multiply, origin, own, steps};
use crate::product::Product;
use cuda_std::prelude::*;

/// # Safety
/// As for [`super::coalesced::body`].
#[inline(always)]
pub unsafe fn body<T: Scalar, const S: usize, const FIXED: bool>(x: Product<T>) {
    let side = S as u32;
    let ((row0, col0), (i, j)) = (origin(&x, side, side), own(side));
    let (start, end) = x.part(side);
    let place = |odd: bool| Shared::<T>::at(if odd { 2 * side * side } else { 0 }); // two (S, S), A's and B's, by columns
    // SAFETY: where it is called `end` <= k, and the tile is one of this part.
    let load = |tile: u32| unsafe {
        (load_a::<T, FIXED>(&x, row0 + i, tile + j, end), load_b::<T, FIXED>(&x, tile + i, col0 + j, end))
    };
    let mut sum = T::ZERO;

    let mut odd = false;
    let mut next = if start < end { load(start) } else { (T::ZERO, T::ZERO) };
    for tile in (start..end).step_by(S) {
        let (sa, sb) = (place(odd), place(odd).starting_at(side * side));
        // SAFETY: each element of a tile is one thread's; who read this place was done with it before the last barrier.
        unsafe {
            sa.store(j * side + i, next.0);
            sb.store(j * side + i, next.1);
        }
        thread::sync_threads();
        if tile + side < end {
            next = load(tile + side);
        }
        // SAFETY: behind the barrier.
        sum = unsafe { multiply(sum, (sa, side, i), (sb, side, j), steps::<FIXED>(side, end - tile)) };
        odd = !odd;
    }

    // SAFETY: each thread owns its element.
    unsafe { x.write(row0 + i, col0 + j, sum) };
}
