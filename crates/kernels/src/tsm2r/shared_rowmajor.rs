//! `tsm2r_shared_rowmajor`: Algorithm 3 of TSM2X with the other tile of its Fig. 1.
//!
//! # Idea
//! The tile of B is stored by rows: a thread's T2 elements lie side by side, so one 16-byte load serves several columns;
//! but the threads that fill it are T2 elements apart, and T2 of them meet in a bank. [`super::shared`] fills it without
//! conflicts: here is the difference to measure.

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
    const { assert!(T2 % T::WIDTH == 0, "T2 must be whole 16-byte loads") };
    let bk = const { tsm2r_bk(T1 as u32, T3 as u32) };
    let t = thread::thread_idx_x();
    let (row, col) = (own_row::<T1>(), own_col::<T2>());
    let (start, end) = x.part(bk);
    let sb = Shared::<T>::at(0); // (bk, T2) by rows
    let mut rc = [T::ZERO; T2]; // (1, T2)

    for tile in (start..end).step_by(bk as usize) {
        if t < bk {
            // SAFETY: `end` <= k.
            let rb = unsafe { load_b::<T, T2>(&x, tile + t, col, end) };
            for j in 0..T2 {
                // SAFETY: t < bk and j < T2: inside the tile, and thread t owns its row t.
                unsafe { sb.store(t * T2 as u32 + j as u32, rb[j]) };
            }
        }
        thread::sync_threads();
        for step in (0..bk).step_by(T3) {
            // SAFETY: `end` <= k.
            let ra = unsafe { load_a::<T, T3>(&x, row, tile + step, end) }; // (1, T3)
            for i in 0..T3 {
                for j in 0..T2 / T::WIDTH {
                    let at = (step + i as u32) * T2 as u32 + (j * T::WIDTH) as u32;
                    // SAFETY: inside the tile, 16-byte aligned; the barrier lies behind its filling.
                    let b = unsafe { sb.load_wide(at) };
                    for v in 0..T::WIDTH {
                        rc[j * T::WIDTH + v] = ra[i].fma(b[v], rc[j * T::WIDTH + v]);
                    }
                }
            }
        }
        thread::sync_threads(); // the tile may be overwritten
    }

    // SAFETY: each thread owns its row and columns.
    unsafe { write_row(&x, row, col, rc) };
}
