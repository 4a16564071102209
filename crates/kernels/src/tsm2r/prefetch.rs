//! `tsm2r_prefetch`, Algorithm 4 of TSM2X: the next step's loads go out before this step's arithmetic.
//!
//! # Idea
//! Memory never waits for the multipliers: while T3 elements of A are multiplied with the tile of B, the next T3 are on
//! their way, and while a tile is used, the next is on its way into registers. 1.3x to 3.5x over [`super::shared`] in
//! the paper.

use super::shared::{fill, multiply};
use super::{Check, load_a, load_b, own_col, own_row, write_row};
use crate::product::Product;
use cuda_std::prelude::*;
use model::launch::tsm2r_bk;

/// # Safety
/// Launched with T1 threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const T1: usize, const T2: usize, const T3: usize>(x: Product<T>) {
    const { Check::<T1, T2, T3>::THREADS };
    const { Check::<T1, T2, T3>::TILES };
    let bk = const { tsm2r_bk(T1 as u32, T3 as u32) };
    let t = thread::thread_idx_x();
    let (row, col) = (own_row::<T1>(), own_col::<T2>());
    let (start, end) = x.part(bk);
    let sb = Shared::<T>::at(0); // (bk, T2) by columns
    let mut rc = [T::ZERO; T2]; // (1, T2)
    // SAFETY: `end` <= k.
    let next_b = |l: u32| unsafe { load_b::<T, T2>(&x, l + t, col, end) }; // (1, T2)
    // SAFETY: `end` <= k.
    let next_a = |l: u32| unsafe { load_a::<T, T3>(&x, row, l, end) }; // (1, T3)
    let mut rb = next_b(start);
    let mut ra = next_a(start);

    for tile in (start..end).step_by(bk as usize) {
        if t < bk {
            // SAFETY: thread t owns row t of the tile.
            unsafe { fill(sb, bk, t, rb) };
        }
        thread::sync_threads();
        rb = next_b(tile + bk);
        for step in (0..bk).step_by(T3) {
            let now = ra;
            ra = next_a(tile + step + T3 as u32);
            // SAFETY: step + T3 <= bk; the barrier lies between the tile's filling and its use.
            unsafe { multiply::<T, T2, T3>(&mut rc, now, sb, bk, step) };
        }
        thread::sync_threads(); // the tile may be overwritten
    }

    // SAFETY: each thread owns its row and columns.
    unsafe { write_row(&x, row, col, rc) };
}
