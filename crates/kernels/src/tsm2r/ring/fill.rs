//! Filling a stage of a ring: which thread copies what, and into which place.
//!
//! # Three ways
//! | A's part of the stage                       | copies              | their addresses                                |
//! |---------------------------------------------|---------------------|------------------------------------------------|
//! | inside of A, lines aligned to 16 bytes      | 16 bytes            | an addition each                               |
//! | inside of A, up to 16 columns of B          | an element          | an addition each                               |
//! | else                                        | an element, or zero | each with a look at the edges, in a loop that stays one |
//!
//! B's part is copied element by element, neighbouring threads along its unit stride. The branch is the same for all threads; the stage is the same, and so are the
//! sums. `cp.async` writes zeros without touching memory. Where there are more columns the second way would cost the
//! first 5% (f32, n = 32, H200, 2026-11-21): it takes registers that multiplying needs.

use super::{Ring, Stage, Tile};
use crate::product::Product;
use cuda_std::prelude::*;

/// Where this thread copies its first elements of the next stage from, and what all threads of the block know of it.
pub(super) struct Source<T> {
    a: Global<T>,
    b: Global<T>,
    /// The row and the column of B's part of a stage where this thread's copies of it start.
    of_b: (u32, u32),
    /// A's lines are aligned to 16 bytes.
    aligned: bool,
    /// All of the block's rows exist.
    rows: bool,
}

impl<T: Scalar> Source<T> {
    /// Of the stage of steps `start ..`.
    #[inline(always)]
    pub(super) fn new<S: Tile, const MMA: bool>(x: &Product<T>, start: u32) -> Self {
        let ld = ld::<T, S>(x);
        let aligned = x.a.is_aligned(16) && ld * size_of::<T>() as u64 % 16 == 0;
        let (line, along) = Ring::<T, S, MMA>::own(if aligned || !Ring::<T, S, MMA>::BY_ELEMENTS {
            Ring::<T, S, MMA>::WIDTH
        } else {
            1
        });
        let (row, col) = Ring::<T, S, MMA>::own_of_b(x);
        let origin = (thread::block_idx_x() * S::BM) as u64 * x.a_row + start as u64 * x.a_col;
        Source {
            a: x.a.starting_at(origin + line as u64 * ld + along as u64),
            b: x.b.starting_at((start + row) as u64 * x.b_row + (first_col::<S>() + col) as u64 * x.b_col),
            of_b: (row, col),
            aligned,
            rows: (thread::block_idx_x() + 1) as u64 * S::BM as u64 <= x.m as u64,
        }
    }

    /// Goes on to the next stage.
    #[inline(always)]
    pub(super) fn advance<S: Tile>(&mut self, x: &Product<T>) {
        self.a = self.a.starting_at(S::KT as u64 * x.a_col);
        self.b = self.b.starting_at(S::KT as u64 * x.b_row);
    }
}

impl<T: Scalar, S: Tile, const MMA: bool> Ring<T, S, MMA> {
    const FILLS: () = {
        assert!(S::THREADS % S::KT == 0, "a thread fills one row of B's part of a stage, and all fill whole columns");
        let (wide, narrow) = (Self::LINE / Self::WIDTH, Self::LINE);
        assert!(wide % S::THREADS == 0 || S::THREADS % wide == 0, "whole turns or lines at once");
        assert!(narrow % S::THREADS == 0 || S::THREADS % narrow == 0, "the same by elements");
        assert!(Self::LINES % at_once(wide, S::THREADS).0 == 0, "the threads fill whole stages");
        assert!(Self::LINES % at_once(narrow, S::THREADS).0 == 0, "the same by elements");
    };
    /// Elements of A's part of a stage along its unit stride, and across.
    const LINE: u32 = if S::A_BY_ROWS { S::KT } else { S::BM };
    const LINES: u32 = if S::A_BY_ROWS { S::BM } else { S::KT };
    /// Whether there is a way of its own for lines that are not aligned.
    const BY_ELEMENTS: bool = S::BN <= 16;
    /// Columns of B's part that all threads fill at once.
    const COLS: u32 = S::THREADS / S::KT;

    /// Starts the copies of steps `l ..` into a stage.
    ///
    /// # Safety
    /// As for [`Ring::run`]; `end` <= k, `source` is this stage's, and nobody reads it.
    #[inline(always)]
    pub(super) unsafe fn fill(x: &Product<T>, source: &Source<T>, stage: Stage<T>, l: u32, end: u32) {
        const { Self::FILLS };
        // SAFETY: the caller's promise: `end` <= k; what is not guarded lies inside.
        unsafe {
            if source.rows && source.aligned && l + S::KT <= end {
                Self::fill_a(x, stage.a, source.a, Self::WIDTH);
                Self::fill_b(x, stage.b, source);
            } else if Self::BY_ELEMENTS && source.rows && l + S::KT <= end {
                Self::fill_a(x, stage.a, source.a, 1);
                Self::fill_b(x, stage.b, source);
            } else {
                Self::fill_a_guarded(x, stage.a, l, end);
                Self::fill_b_guarded(x, stage.b, l, end);
            }
        }
    }

    /// The line of A, and the element along it, where this thread's copies of `by` elements start: neighbouring threads
    /// take neighbouring copies of a line.
    #[inline(always)]
    fn own(by: u32) -> (u32, u32) {
        (own::<S>() / (Self::LINE / by), own::<S>() % (Self::LINE / by) * by)
    }

    /// The row and the column of B's part where this thread's copies start; the next are COLS columns further on.
    #[inline(always)]
    fn own_of_b(x: &Product<T>) -> (u32, u32) {
        if x.b_col == 1 {
            (own::<S>() / Self::COLS, own::<S>() % Self::COLS)
        } else {
            (own::<S>() % S::KT, own::<S>() / S::KT)
        }
    }

    /// Where A's part of a stage keeps the element at `along` of a line.
    #[inline(always)]
    fn of_line(line: u32, along: u32) -> u32 {
        let first = along / Self::WIDTH * Self::WIDTH;
        (if S::A_BY_ROWS { Self::at(line, first) } else { Self::at(first, line) }) + along % Self::WIDTH
    }

    /// Starts copying A's part of a stage, `by` elements at once.
    ///
    /// # Safety
    /// The stage lies inside of A, and what is copied at once is aligned to its size.
    #[inline(always)]
    unsafe fn fill_a(x: &Product<T>, sa: Shared<T>, mut from: Global<T>, by: u32) {
        let (line, along) = Self::own(by);
        let (lines, turns) = at_once(Self::LINE / by, S::THREADS);
        for i in (0..Self::LINES).step_by(lines as usize) {
            for turn in 0..turns {
                let on = turn * S::THREADS * by;
                let into = sa.address(Self::of_line(i + line, along + on));
                // SAFETY: promised by the caller.
                unsafe { copy(into, from.address(on as u64), by * Self::BYTES, true) };
            }
            from = from.starting_at(lines as u64 * ld::<T, S>(x));
        }
    }

    /// The same element by element, with zeros for what lies outside of A.
    ///
    /// # Safety
    /// `end` <= k.
    #[inline(always)]
    unsafe fn fill_a_guarded(x: &Product<T>, sa: Shared<T>, l: u32, end: u32) {
        let (line, along) = Self::own(1);
        let start = thread::block_idx_x() * S::BM;
        // The loop stays one: unrolled, its addresses would take the registers that multiplying needs.
        let (lines, _) = const { at_once(Self::LINE, S::THREADS) };
        for line in (line..ptx::opaque(Self::LINES)).step_by(lines as usize) {
            for along in (along..Self::LINE).step_by(S::THREADS as usize) {
                let (row, step) = if S::A_BY_ROWS { (start + line, l + along) } else { (start + along, l + line) };
                let from = x.a.address(row as u64 * x.a_row + step as u64 * x.a_col);
                let into = sa.address(Self::of_line(line, along));
                // SAFETY: the element lies within A where it is copied.
                unsafe { copy(into, from, Self::BYTES, row < x.m && step < end) };
            }
        }
    }

    /// Starts copying B's part of a stage, a row of it a thread, with zeros for the columns that B does not have.
    ///
    /// # Safety
    /// The stage's steps are B's.
    #[inline(always)]
    unsafe fn fill_b(x: &Product<T>, sb: Shared<T>, &Source { b: mut from, of_b: (row, col), .. }: &Source<T>) {
        for j in (0..S::BN).step_by(const { Self::COLS as usize }) {
            if S::BN % Self::COLS == 0 || j + col < S::BN {
                let inside = first_col::<S>() + j + col < x.n;
                // SAFETY: promised by the caller.
                unsafe { copy(sb.address(Self::b_at(row, j + col)), from.address(0), Self::BYTES, inside) };
            }
            from = from.starting_at(Self::COLS as u64 * x.b_col);
        }
    }

    /// The same with zeros for what lies outside of B.
    ///
    /// # Safety
    /// `end` <= k.
    #[inline(always)]
    unsafe fn fill_b_guarded(x: &Product<T>, sb: Shared<T>, l: u32, end: u32) {
        let (row, col) = Self::own_of_b(x);
        for j in (col..ptx::opaque(S::BN)).step_by(const { Self::COLS as usize }) {
            let inside = l + row < end && first_col::<S>() + j < x.n;
            let from = x.b.address((l + row) as u64 * x.b_row + (first_col::<S>() + j) as u64 * x.b_col);
            // SAFETY: the element lies within B where it is copied.
            unsafe { copy(sb.address(Self::b_at(row, j)), from, Self::BYTES, inside) };
        }
    }
}

/// A's stride from line to line.
#[inline(always)]
fn ld<T: Scalar, S: Tile>(x: &Product<T>) -> u64 {
    if S::A_BY_ROWS { x.a_row } else { x.a_col }
}

/// The block's first column of C.
#[inline(always)]
fn first_col<S: Tile>() -> u32 {
    thread::block_idx_z() * S::BN
}

/// How many lines of `line` copies all threads do at once, and how many turns a line takes.
const fn at_once(line: u32, threads: u32) -> (u32, u32) {
    if threads > line { (threads / line, 1) } else { (1, line / threads) }
}

/// This thread, with what the compiler cannot know: there are no more than THREADS.
#[inline(always)]
fn own<S: Tile>() -> u32 {
    thread::thread_idx_x() % S::THREADS
}

/// Starts copying 4, 8 or 16 bytes, or zeros.
///
/// # Safety
/// Where `inside`, the source lies within its operand; both addresses are aligned to the bytes; nobody reads the copy
/// before it was waited for.
#[inline(always)]
unsafe fn copy(into: ptx::SharedAddress, from: ptx::GlobalAddress, bytes: u32, inside: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            16 => ptx::cp_async_16(into, from, inside),
            8 => ptx::cp_async_8(into, from, inside),
            _ => ptx::cp_async_4(into, from, inside),
        }
    }
}
