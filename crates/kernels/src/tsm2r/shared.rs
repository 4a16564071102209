//! `tsm2r_shared`, Algorithm 3 of TSM2X: B through shared memory.
//!
//! # Idea
//! The block loads a tile of B once, coalesced, and all its threads read it from shared memory: B's traffic falls from
//! m to m/T1 reads of each element. The tile is stored by columns, so that neighbouring threads fill neighbouring banks
//! (Fig. 1 of the paper; [`super::shared_rowmajor`] is the other way), and read 16 bytes down a column at a time.

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

    for tile in (start..end).step_by(bk as usize) {
        if t < bk {
            // SAFETY: `end` <= k; the tile holds bk x T2 elements, and thread t owns its row t.
            unsafe { fill(sb, bk, t, load_b::<T, T2>(&x, tile + t, col, end)) };
        }
        thread::sync_threads();
        for step in (0..bk).step_by(T3) {
            // SAFETY: `end` <= k; step + T3 <= bk; the barrier lies between the tile's filling and its use.
            unsafe {
                let ra = load_a::<T, T3>(&x, row, tile + step, end); // (1, T3)
                multiply::<T, T2, T3>(&mut rc, ra, sb, bk, step);
            }
        }
        thread::sync_threads(); // the tile may be overwritten
    }

    // SAFETY: each thread owns its row and columns.
    unsafe { write_row(&x, row, col, rc) };
}

/// Stores row `l` of the tile: one element in each column.
///
/// # Safety
/// l < bk, and only this thread fills row l.
#[inline(always)]
pub(crate) unsafe fn fill<T: Scalar, const T2: usize>(sb: Shared<T>, bk: u32, l: u32, rb: [T; T2]) {
    for j in 0..T2 {
        // SAFETY: l < bk and j < T2: inside the tile.
        unsafe { sb.store(j as u32 * bk + l, rb[j]) };
    }
}

/// rc(j) += Σ ra(i) · tile(step + i, j), i ascending: one 16-byte load down a column serves `WIDTH` elements of A.
///
/// # Safety
/// step + T3 <= bk, both multiples of T3; a barrier lies behind the tile's filling.
#[inline(always)]
pub(crate) unsafe fn multiply<T: Scalar, const T2: usize, const T3: usize>(
    rc: &mut [T; T2],
    ra: [T; T3],
    sb: Shared<T>,
    bk: u32,
    step: u32,
) {
    const { assert!(T3 % T::WIDTH == 0, "T3 must be whole 16-byte loads") };
    for i in 0..T3 / T::WIDTH {
        for j in 0..T2 {
            // SAFETY: inside the tile; bk, step and i · WIDTH are multiples of 16 bytes.
            let b = unsafe { sb.load_wide(j as u32 * bk + step + (i * T::WIDTH) as u32) };
            for v in 0..T::WIDTH {
                rc[j] = ra[i * T::WIDTH + v].fma(b[v], rc[j]);
            }
        }
    }
}
