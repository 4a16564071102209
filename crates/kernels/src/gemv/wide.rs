//! `gemv_wide`: Sørensen's kernel (e), for matrices of fewer rows than a block has threads.
//!
//! # Idea
//! Of a low matrix by columns neighbouring elements are those of a column and then of the next: threads run along them, a
//! thread an element, so that a warp's loads are contiguous however few rows there are. Each thread stays in its row, and has
//! STEPS elements in flight while it multiplies those before them.
//!
//! # Thread mapping
//! ROWS = min(BM, what is left of m) rows, COLS = ⌊THREADS / ROWS⌋ columns at a time: thread t has row t mod ROWS of column
//! t div ROWS; threads past ROWS·COLS have none.
//!
//! # Source
//! Sørensen, Section 3.4; its block adds by atomics in shared memory, here a thread adds a row's sums in order.

use crate::tsmttsm::Reduced;
use cuda_std::prelude::*;

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const THREADS: usize, const BM: usize, const TM: usize, const STEPS: usize>(
    x: Reduced<T>,
) {
    const { assert!(TM == 1 && BM <= THREADS, "a row a thread") };
    let (t, threads) = (thread::thread_idx_x(), THREADS as u32);
    let (p, tile) = (&x.p, thread::block_idx_x() * BM as u32);
    // At least 1, which the compiler cannot know: no division can panic.
    let left = p.m.saturating_sub(tile).max(1);
    let rows = if left < BM as u32 { left } else { BM as u32 };
    let cols = threads / rows;
    let (row, col) = (t % rows, t / rows);
    let (start, end) = p.part(const { (THREADS / BM * STEPS) as u32 });
    // What threads without a column load is outside.
    let stop = if col < cols { end } else { 0 };
    let (across, along, conj_b) = (cols as u64 * p.a_col, cols as u64 * p.b_row, p.conj_b());
    let mut sum = T::ZERO;

    let next = |first: u32| {
        let mut ra = [T::ZERO; STEPS]; // (STEPS)
        let mut at = p.a.starting_at((tile + row) as u64 + (first + col) as u64 * p.a_col);
        for s in 0..STEPS {
            // SAFETY: a column before `stop` <= k, and a row inside.
            ra[s] = unsafe { at.stream_if(first + s as u32 * cols + col < stop, 0) };
            at = at.starting_at(across);
        }
        ra
    };
    let mut now = next(start);
    let step = STEPS as u32 * cols;
    for first in (start..end).step_by(step as usize) {
        let ra = now;
        // Past the end nothing is loaded.
        now = next(first + step);
        let mut at = p.b.starting_at((first + col) as u64 * p.b_row);
        for s in 0..STEPS {
            // SAFETY: an element of x before `stop` <= k.
            let rx = unsafe { at.load_if(first + s as u32 * cols + col < stop, 0) }.conj_if(conj_b);
            at = at.starting_at(along);
            sum = ra[s].fma(rx, sum);
        }
    }

    let sc = Shared::<T>::at(0); // (rows, cols) by columns
    // SAFETY: an element of each thread's own.
    unsafe { sc.store(t, sum) };
    // SAFETY: the caller's promise; all sums are stored.
    unsafe { super::hand_in(&x, BM as u32, threads, (rows, cols)) };
}
