//! `gemm_unrolled`, the report's fourth version: two tiles of k at once.
//!
//! # Idea
//! Between two barriers of [`super::coalesced`] a thread has two loads in flight and S multiply-adds. With two consecutive tiles
//! it has four and 2·S: half the barriers, and twice as much to wait for at once.
//! # Thread mapping
//! Block x owns S x S of C, tiles down the rows first; y is its part of k. Thread (i, j) has element (i, j) of that.
//! # Zero β, tails
//! As of [`super::coalesced`].
//! # Cost
//! 2mnk flops; reads A ⌈n/S⌉ and B ⌈m/S⌉ times; a barrier a tile, and twice the shared memory.
//! # Source
//! UCSD course report, "C_Unroll".

use super::square::{load_a, load_b, multiply, origin, own, steps};
use crate::product::Product;
use cuda_std::prelude::*;

/// # Safety
/// As for [`super::coalesced::body`]; of a fixed entry k is a multiple of 2·S.
#[inline(always)]
pub unsafe fn body<T: Scalar, const S: usize, const FIXED: bool>(x: Product<T>) {
    let (side, both) = (S as u32, 2 * S as u32);
    let ((row0, col0), (i, j)) = (origin(&x, side, side), own(side));
    let (start, end) = x.part(both);
    let (sa, sb) = (Shared::<T>::at(0), Shared::<T>::at(side * both)); // (S, 2S) and (2S, S), by columns
    let mut sum = T::ZERO;

    for tile in (start..end).step_by(2 * S) {
        // SAFETY: `end` <= k; each element of a tile is one thread's.
        unsafe {
            let ra = [j, side + j].map(|l| load_a::<T, FIXED>(&x, row0 + i, tile + l, end));
            let rb = [i, side + i].map(|l| load_b::<T, FIXED>(&x, tile + l, col0 + j, end));
            sa.store(j * side + i, ra[0]);
            sa.store((side + j) * side + i, ra[1]);
            sb.store(j * both + i, rb[0]);
            sb.store(j * both + side + i, rb[1]);
        }
        thread::sync_threads();
        // SAFETY: behind the barrier.
        sum = unsafe { multiply(sum, (sa, side, i), (sb, both, j), steps::<FIXED>(both, end - tile)) };
        thread::sync_threads(); // the tiles may be overwritten
    }

    // SAFETY: each thread owns its element.
    unsafe { x.write(row0 + i, col0 + j, sum) };
}
