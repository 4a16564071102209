//! `gemv_one_thread`, `gemv_several_threads`, `gemv_several_rows`, `gemv_versatile`: Sørensen's kernels (a) to (d).
//!
//! # Idea
//! A block's threads bring a chunk of x into shared memory, an element each, and multiply it with their rows. (a) has a row a
//! thread, (c) several, so that an element of x that is read from shared memory serves them all; (b) and (d) are the same with
//! k in parts, for matrices of fewer rows than the GPU has threads.
//!
//! # Edges
//! The paper has four device kernels: for full tiles, at the right edge, at the bottom, and in the corner, so that only edges
//! have conditions. Here they are `chunk`'s four forms; all but the last part's last chunk are full along k.
//!
//! # Source
//! Sørensen, Sections 3.1 to 3.5. Ours: slots in place of atomics, any strides, STEPS loads of a row at a time.

use crate::tsmttsm::{Duty, Reduced};
use cuda_std::prelude::*;

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Scalar,
    const THREADS: usize,
    const BM: usize,
    const TM: usize,
    const NB: usize,
    const STEPS: usize,
>(
    x: Reduced<T>,
) {
    const { assert!(BM == THREADS * TM && THREADS % STEPS == 0, "TM rows a thread, whole steps of a chunk") };
    const { assert!(NB == 1, "one vector") };
    let (t, threads) = (thread::thread_idx_x(), THREADS as u32);
    let tile = thread::block_idx_x() * BM as u32;
    let (start, end) = x.p.part(threads);
    let sx = Shared::<T>::at(0); // (THREADS)
    let mut sums = [T::ZERO; TM];

    for l in (start..end).step_by(THREADS) {
        // SAFETY: `end` <= k; an element a thread, which all have read behind the barrier at the chunk's end.
        unsafe { sx.store(t, x.p.b(l + t, 0, end)) };
        thread::sync_threads();
        let (at, rows_are_full) = ((tile + t, l), tile + BM as u32 <= x.p.m);
        // SAFETY: the chunk is in shared memory, with zeros from `end` on.
        unsafe {
            match (rows_are_full, l + threads <= end) {
                (true, true) => chunk::<T, THREADS, TM, STEPS, true, true>(&x, sx, &mut sums, at, end),
                (true, false) => chunk::<T, THREADS, TM, STEPS, true, false>(&x, sx, &mut sums, at, end),
                (false, true) => chunk::<T, THREADS, TM, STEPS, false, true>(&x, sx, &mut sums, at, end),
                (false, false) => chunk::<T, THREADS, TM, STEPS, false, false>(&x, sx, &mut sums, at, end),
            }
        }
        thread::sync_threads(); // the chunk may be overwritten
    }

    let sc = Shared::<T>::at(0); // (BM)
    for i in 0..TM {
        // SAFETY: an element of each thread's own; nobody reads the chunk any more.
        unsafe { sc.store(i as u32 * threads + t, sums[i]) };
    }
    // SAFETY: shared memory and operands are as the launch promised; all sums are stored, and all threads here.
    unsafe { super::hand_in(&x, Duty::tiles_first(), (BM as u32, 1), threads, (BM as u32, 1)) };
}

/// Multiplies a chunk with rows `row`, `row` + THREADS ..; without conditions where it is FULL along rows and along k.
///
/// # Safety
/// The chunk from column l on is in `sx`; where FULL, rows and columns are inside A; `end` <= k.
#[inline(always)]
unsafe fn chunk<
    T: Scalar,
    const THREADS: usize,
    const TM: usize,
    const STEPS: usize,
    const FULL_ROWS: bool,
    const FULL_COLS: bool,
>(
    x: &Reduced<T>,
    sx: Shared<T>,
    sums: &mut [T; TM],
    (row, l): (u32, u32),
    end: u32,
) {
    let p = &x.p;
    let len = if FULL_COLS { THREADS as u32 } else { end - l };
    let load = |i: usize, l: u32| {
        let r = row + i as u32 * THREADS as u32;
        let inside = (FULL_ROWS || r < p.m) && (FULL_COLS || l < end);
        // SAFETY: inside A wherever the load happens; A is read-only.
        unsafe { p.a.load_if(inside, r as u64 * p.a_row + l as u64 * p.a_col) }
    };
    for step in (0..len).step_by(STEPS) {
        let ra: [[T; TM]; STEPS] = core::array::from_fn(|s| core::array::from_fn(|i| load(i, l + step + s as u32))); // (STEPS, TM)
        for s in 0..STEPS {
            // SAFETY: a step of the chunk; STEPS divides THREADS.
            let rx = unsafe { sx.load(step + s as u32) };
            for i in 0..TM {
                sums[i] = ra[s][i].fma(rx, sums[i]);
            }
        }
    }
}
