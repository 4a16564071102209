//! `gemv_wide`: Sørensen's kernel (e), for matrices of fewer rows than a block has threads.
//!
//! # Idea
//! Of a low matrix by columns neighbouring elements are those of a column and then of the next: threads run along them, so
//! that a warp's loads are contiguous however few rows there are. A pass takes as many whole columns as the threads have
//! places for; an element of the next pass lies in the same row, so that a sum belongs to a place. STEPS passes are in flight, with
//! their elements of x, while those before them are multiplied.
//!
//! # Thread mapping
//! ROWS = min(BM, what is left of m) rows, COLS columns a pass, the most multiple of WIDTH with ROWS·COLS places for THREADS·WIDTH:
//! place e is row e mod ROWS of column e div ROWS. Of a packed matrix thread t has places t·WIDTH .. by 16 bytes, else
//! places t, t + THREADS ..; the sums are the same.
//!
//! # Source
//! Sørensen, Section 3.4; its block adds by atomics in shared memory, here a few threads a row add its sums in order. 16 bytes and passes
//! in flight are ours.

use crate::tsmttsm::{Duty, Reduced};
use cuda_std::prelude::*;

/// Sums of a row that one thread adds one by one, of as many as a pass has columns, 102 of 10 rows: as many threads take the others in before. 8, since 100 are then 13 and
/// 7 additions.
const KEPT: u32 = 8;

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
    const { assert!(TM == T::WIDTH && BM <= THREADS, "16 bytes a thread, WIDTH columns a pass at least") };
    const { assert!(NB == 1, "one vector") };
    let (t, threads, width) = (thread::thread_idx_x(), THREADS as u32, TM as u32);
    let (p, tile) = (&x.p, thread::block_idx_x() * BM as u32);
    // At least 1, which the compiler cannot know: no division can panic.
    let rows = p.m.saturating_sub(tile).min(BM as u32).max(1);
    let cols = threads * width / rows / width * width;
    let (start, end) = p.part(const { (THREADS * TM / BM * STEPS) as u32 });
    // Passes and parts are whole 16 bytes up to here.
    let whole = end / width * width;
    let by_16_bytes = p.a.is_aligned(16) && p.a_col == p.m as u64 && rows == p.m;
    let (first, apart) = if by_16_bytes { (t * width, 1) } else { (t, threads) };
    let place: [u32; TM] = core::array::from_fn(|v| first + v as u32 * apart);
    let run = Low { x: &x, cols, col: core::array::from_fn(|v| place[v] / rows) };
    let at: [u64; TM] = core::array::from_fn(|v| (tile + place[v] % rows) as u64 + run.col[v] as u64 * p.a_col);
    let element = |l: u32, left: u32| {
        let from = p.a.starting_at(l as u64 * p.a_col);
        // SAFETY: rows inside, columns before l + left <= k.
        core::array::from_fn(|v| unsafe { from.stream_if(run.col[v] < left, at[v]) })
    };
    let mut sums = [T::ZERO; TM];
    // SAFETY: l and `left` are multiples of 16 bytes' columns: so is what is inside, aligned.
    let wide = |l: u32, left: u32| unsafe { p.a.stream_wide_if(run.col[0] < left, l as u64 * p.a_col + at[0]) };
    // SAFETY: `whole` <= `end` <= k.
    unsafe {
        if by_16_bytes {
            run.add::<T::Wide, STEPS>(&mut sums, (start, whole), wide, T::ZEROS);
        } else {
            run.add::<[T; TM], STEPS>(&mut sums, (start, whole), element, [T::ZERO; TM]);
        }
        run.add::<[T; TM], 1>(&mut sums, (whole, end), element, [T::ZERO; TM]);
    }

    let sc = Shared::<T>::at(0); // (rows, cols) by columns
    for v in 0..TM {
        // SAFETY: an element of each thread's own.
        unsafe { sc.store(place[v], sums[v]) };
    }
    thread::sync_threads();
    // Of a row's sums the first few take the others in, each every so many: the last of them would be added one by one for long.
    let kept = cols.min(KEPT);
    for e in (t..rows * kept).step_by(THREADS) {
        // SAFETY: behind the barrier; the elements from this one on that are as many apart are this thread's.
        unsafe {
            let mut sum = sc.load(e);
            for other in (e + rows * kept..rows * cols).step_by((rows * kept) as usize) {
                sum = sum.add(sc.load(other));
            }
            sc.store(e, sum);
        }
    }
    // SAFETY: shared memory and operands are as the launch promised; all sums are stored, and all threads here.
    unsafe { super::hand_in(&x, Duty::tiles_first(), (BM as u32, 1), threads, (rows, kept)) };
}

/// A thread's places in the passes over a low matrix.
struct Low<'a, T, const TM: usize> {
    x: &'a Reduced<T>,
    /// Columns a pass.
    cols: u32,
    /// Columns of its places; those past `cols` are none.
    col: [u32; TM],
}

impl<T: Scalar, const TM: usize> Low<'_, T, TM> {
    /// Adds columns `start` to `end` times x: what `load` has from a column on, of which so many are left. STEPS passes are on their
    /// way while those before them are multiplied.
    ///
    /// # Safety
    /// `end` <= k, and x spans its elements.
    #[inline(always)]
    unsafe fn add<L: Copy + core::ops::Index<usize, Output = T>, const STEPS: usize>(
        &self,
        sums: &mut [T; TM],
        (start, end): (u32, u32),
        load: impl Fn(u32, u32) -> L,
        zeros: L,
    ) {
        let p = &self.x.p;
        let next = |first: u32| {
            let (mut ra, mut rx) = ([zeros; STEPS], [[T::ZERO; TM]; STEPS]); // (STEPS, TM)
            for s in 0..STEPS {
                let l = first + s as u32 * self.cols;
                let left = end.saturating_sub(l).min(self.cols);
                ra[s] = load(l, left);
                let from = p.b.starting_at(l as u64 * p.b_row);
                // SAFETY: an element of x before `end` <= k.
                let element = |v: usize| unsafe { from.load_if(self.col[v] < left, self.col[v] as u64 * p.b_row) };
                rx[s] = core::array::from_fn(element);
            }
            (ra, rx)
        };
        let (conj_b, step) = (p.conj_b(), STEPS as u32 * self.cols);
        let mut now = next(start);
        for first in (start..end).step_by(step as usize) {
            let (ra, rx) = now;
            // Past the end nothing is loaded.
            now = next(first + step);
            for s in 0..STEPS {
                for v in 0..TM {
                    sums[v] = ra[s][v].fma(rx[s][v].conj_if(conj_b), sums[v]);
                }
            }
        }
    }
}
