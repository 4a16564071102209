//! `gemm_four`, the report's best version: four elements of C a thread, in adjacent tiles.
//!
//! # Idea
//! A thread of the versions before loads two elements from shared memory for one multiply-add. With 2 x 2 elements it loads four
//! for four: half the loads, and half the traffic, since a block has 2S x 2S of C. From here on it is the tile of a thread that
//! grows: [`super::tiled`].
//! # Thread mapping
//! Block x owns 2S x 2S of C, tiles down the rows first; y is its part of k. Thread (i, j) has elements (i, j), (i + S, j),
//! (i, j + S) and (i + S, j + S) of that.
//! # Zero β, tails
//! As of [`super::coalesced`]; of a fixed entry m and n are multiples of 2·S.
//! # Cost
//! 2mnk flops; reads A ⌈n/2S⌉ and B ⌈m/2S⌉ times, and mnk elements of shared memory; two barriers a tile.
//! # Source
//! UCSD course report, Algorithm 3, tiles of 8, 16 and 32: more than the other versions at every tile. Together with
//! [`super::interleaved`] its tiles of f64 would exceed 48 KiB.

use super::square::{load_a, load_b, origin, own, steps};
use crate::product::Product;
use cuda_std::prelude::*;

/// # Safety
/// As for [`super::coalesced::body`].
#[inline(always)]
pub unsafe fn body<T: Scalar, const S: usize, const FIXED: bool>(x: Product<T>) {
    let (side, both) = (S as u32, 2 * S as u32);
    let ((row0, col0), (i, j)) = (origin(&x, both, both), own(side));
    let (start, end) = x.part(side);
    let (sa, sb) = (Shared::<T>::at(0), Shared::<T>::at(side * both)); // (2S, S) and (S, 2S), by columns
    let mut rc = [[T::ZERO; 2]; 2];

    for tile in (start..end).step_by(S) {
        // SAFETY: `end` <= k; each element of a tile is one thread's.
        unsafe {
            let ra = [i, side + i].map(|r| load_a::<T, FIXED>(&x, row0 + r, tile + j, end));
            let rb = [j, side + j].map(|c| load_b::<T, FIXED>(&x, tile + i, col0 + c, end));
            sa.store(j * both + i, ra[0]);
            sa.store(j * both + side + i, ra[1]);
            sb.store(j * side + i, rb[0]);
            sb.store((side + j) * side + i, rb[1]);
        }
        thread::sync_threads();
        for l in 0..steps::<FIXED>(side, end - tile) {
            // SAFETY: inside the tiles, behind the barrier.
            unsafe {
                let ra = [sa.load(l * both + i), sa.load(l * both + side + i)];
                let rb = [sb.load(j * side + l), sb.load((side + j) * side + l)];
                rc = [0, 1].map(|r| [0, 1].map(|c| ra[r].fma(rb[c], rc[r][c])));
            }
        }
        thread::sync_threads(); // the tiles may be overwritten
    }

    // SAFETY: each thread owns its elements.
    unsafe { x.write_tile(|r| row0 + i + r as u32 * side, |c| col0 + j + c as u32 * side, rc) };
}
