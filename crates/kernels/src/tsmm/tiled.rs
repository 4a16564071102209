//! `tsm2l_tiled`, Algorithm 6 of TSM2X: one tile of rows after another by fewer threads.
//!
//! # Idea
//! With k as small as n the loop over k is over before it hides a latency. So m / tcf threads are launched, each of which
//! computes tcf rows, a tile of T1 a block, exactly as [`crate::tsm2r::prefetch`] does one: B's tile is filled again for each.
//!
//! # Thread mapping
//! Blocks take tiles of T1 rows in turn; the grid is m / (T1 · tcf) blocks, so that each has tcf of them. Thread t owns
//! row t of a tile and all T2 columns.
//!
//! # Source
//! TSM2X, Algorithm 6. Tiles of a block lie a grid apart here, which keeps their reads together.

use crate::product::Product;
use crate::tsm2r::shared::{fill, multiply};
use cuda_std::prelude::*;
use model::launch::tsm2r_bk;

/// # Safety
/// Launched with T1 threads a block, `model::launch::tiling`'s shared memory; n <= T2, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const T1: usize, const T2: usize, const T3: usize>(x: Product<T>) {
    let bk = const { tsm2r_bk(T1 as u32, T3 as u32) };
    let (t, turn) = (thread::thread_idx_x(), thread::grid_dim_x());
    let sb = Shared::<T>::at(0); // (bk, T2) by columns
    let mut tile = thread::block_idx_x();
    while tile < x.m.div_ceil(T1 as u32) {
        let row = tile * T1 as u32 + t;
        // SAFETY: `x.a` and `x.b` load nothing outside: their end is k.
        let (next_b, next_a) = unsafe {
            (
                |l: u32| -> [T; T2] { core::array::from_fn(|j| x.b(l + t, j as u32, x.k)) },
                |l: u32| -> [T; T3] { core::array::from_fn(|i| x.a(row, l + i as u32, x.k)) },
            )
        };
        let (mut rb, mut ra, mut rc) = (next_b(0), next_a(0), [T::ZERO; T2]);
        for start in (0..x.k).step_by(bk as usize) {
            if t < bk {
                // SAFETY: thread t owns row t of B's tile.
                unsafe { fill(sb, bk, t, rb) };
            }
            thread::sync_threads();
            rb = next_b(start + bk);
            for step in (0..bk.min((x.k - start).next_multiple_of(T3 as u32))).step_by(T3) {
                let now = ra;
                ra = next_a(start + step + T3 as u32);
                // SAFETY: step + T3 <= bk; the barrier lies between the tile's filling and its use.
                unsafe { multiply::<T, T2, T3>(&mut rc, now, sb, bk, step) };
            }
            thread::sync_threads(); // B's tile may be overwritten
        }
        for j in 0..T2 {
            // SAFETY: each thread owns its row.
            unsafe { x.write(row, j as u32, rc[j]) };
        }
        tile += turn;
    }
}
