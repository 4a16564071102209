//! `tsm2l_interleaved`, Algorithm 7 of TSM2X: all tiles of rows for one tile of B, with the next row's C on its way.
//!
//! # Idea
//! As [`super::tiled`], but B's tile is filled once for all of a block's tiles of rows; C is loaded, added to, and stored
//! for each tile of B, and the next row's elements of A and of C are loaded before this row's arithmetic. A tile of B has T1
//! rows, and k is no more here: C is loaded and stored once.
//!
//! # Thread mapping
//! As [`super::tiled`].
//!
//! # Source
//! TSM2X, Algorithm 7. C is loaded where β is not 0, which in the paper it always is.

use crate::product::Product;
use crate::tsm2r::shared::{fill, multiply};
use cuda_std::prelude::*;
use model::launch::tsm2r_bk;

/// # Safety
/// Launched with T1 threads a block, `model::launch::tiling`'s shared memory; n <= T2, k <= ⌊T1 / T3⌋ · T3, and operands
/// that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const T1: usize, const T2: usize, const T3: usize>(x: Product<T>) {
    let bk = const { tsm2r_bk(T1 as u32, T3 as u32) };
    let (t, turn, reads_c) = (thread::thread_idx_x(), thread::grid_dim_x(), !x.beta.is_zero());
    let sb = Shared::<T>::at(0); // (bk, T2) by columns
    if t < bk {
        // SAFETY: `x.b` loads nothing outside B; thread t < bk owns row t of B's tile.
        unsafe { fill(sb, bk, t, core::array::from_fn::<T, T2, _>(|j| x.b(t, j as u32, x.k))) };
    }
    thread::sync_threads();
    let tiles = x.m.div_ceil(T1 as u32);
    let row = |tile: u32| tile * T1 as u32 + t;
    // Whatever lies outside is not loaded; neither are tiles that do not exist.
    let next_a = |tile: u32, l: u32| -> [T; T3] {
        let end = if tile < tiles { x.k } else { 0 };
        // SAFETY: `x.a` loads nothing outside A: `end` <= k.
        unsafe { core::array::from_fn(|i| x.a(row(tile), l + i as u32, end)) }
    };
    let next_c = |tile: u32| -> [T; T2] {
        let inside = reads_c && tile < tiles && row(tile) < x.m;
        core::array::from_fn(|j| {
            if inside && (j as u32) < x.n {
                // SAFETY: an element of C in this thread's row, which nobody else accesses.
                unsafe { x.c.load(row(tile) as u64 * x.c_row + j as u64 * x.c_col) }
            } else {
                T::ZERO
            }
        })
    };
    let mut tile = thread::block_idx_x();
    let (mut ra, mut old) = (next_a(tile, 0), next_c(tile));
    while tile < tiles {
        let now_c = old;
        old = next_c(tile + turn);
        let mut rc = [T::ZERO; T2]; // (1, T2)
        let steps = bk.min(x.k.next_multiple_of(T3 as u32));
        for step in (0..steps).step_by(T3) {
            let now = ra;
            let l = step + T3 as u32;
            ra = if l < steps { next_a(tile, l) } else { next_a(tile + turn, 0) };
            // SAFETY: step + T3 <= bk; a barrier lies behind the tile's filling.
            unsafe { multiply::<T, T2, T3>(&mut rc, now, sb, bk, step) };
        }
        if row(tile) < x.m {
            for j in 0..T2 {
                if (j as u32) < x.n {
                    let sum = rc[j].conj_if(x.conj_sum());
                    let value =
                        if reads_c { x.alpha.scale_onto(sum, x.beta.scale(now_c[j])) } else { x.alpha.scale(sum) };
                    // SAFETY: an element of C in this thread's row.
                    unsafe { x.c.store(row(tile) as u64 * x.c_row + j as u64 * x.c_col, value) };
                }
            }
        }
        tile += turn;
    }
}
