//! Filling a stage of a ring: which thread copies what, and into which place.
//!
//! # Ways
//! | A's part of the stage                        | up to 16 columns of B                   | more                  |
//! |----------------------------------------------|-----------------------------------------|-----------------------|
//! | whole, lines aligned to 16 bytes             | 16 bytes; by rows, if they are there    | 16 bytes              |
//! | at an edge, and no line ends within 16 bytes | 16 bytes, if they are there             | 16 bytes, in a loop   |
//! | at another edge                              | what there is of 16 bytes, in a loop    | the same              |
//! | lines not aligned                            | an element, if it is there              | an element, in a loop |
//!
//! B's part is copied element by element, neighbouring threads along its unit stride. What lies outside of A or B is zeros, which `cp.async` writes
//! without touching memory. The branch is the same for all threads; the stage is the same, and so are the sums.
//!
//! Loops stay loops where unrolled their addresses and predicates would take registers that multiplying needs: f32 by columns loses 9% of a whole
//! stage's time at 64 columns, 5% at 32. But all parts of C wait for the slowest block: with A's lower edge copied by elements one block of 20 took
//! twice as long, and so did the product (m = 10000, n = 4, k = 21544, f32: 383 us). Whole stages by columns have copies of their own, for asking
//! costs f32 7% at 2 to 4 columns where blocks are fewer than SMs, c64 5 to 7% at 5 to 16 columns (all on H200s on 2026-11-26).

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
    /// How many of the block's rows exist.
    rows: u32,
}

impl<T: Scalar> Source<T> {
    /// Of the stage of steps `start ..`.
    #[inline(always)]
    pub(super) fn new<S: Tile, const MMA: bool>(x: &Product<T>, start: u32) -> Self {
        let ld = ld::<T, S>(x);
        let aligned = x.a.is_aligned(16) && ld * size_of::<T>() as u64 % 16 == 0;
        let (line, along) = Ring::<T, S, MMA>::own(if aligned { Ring::<T, S, MMA>::WIDTH } else { 1 });
        let (row, col) = Ring::<T, S, MMA>::own_of_b(x);
        let first_row = thread::block_idx_x() * S::BM;
        let origin = first_row as u64 * x.a_row + start as u64 * x.a_col;
        Source {
            a: x.a.starting_at(origin + line as u64 * ld + along as u64),
            b: x.b.starting_at((start + row) as u64 * x.b_row + (first_col::<S>() + col) as u64 * x.b_col),
            of_b: (row, col),
            aligned,
            rows: x.m - first_row,
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
    /// Whether there are registers for copies that may not be there, one by one.
    const UNROLLED: bool = S::BN <= 16;
    /// Whether whole stages have copies of their own, which ask nothing.
    const WHOLE_APART: bool = !S::A_BY_ROWS;
    /// Columns of B's part that all threads fill at once.
    const COLS: u32 = S::THREADS / S::KT;

    /// Starts the copies of a stage, of which `steps` or all exist.
    ///
    /// # Safety
    /// As for [`Ring::run`]; the steps are A's and B's, `source` is this stage's, and nobody reads it.
    #[inline(always)]
    pub(super) unsafe fn fill(x: &Product<T>, source: &Source<T>, stage: Stage<T>, steps: u32) {
        const { Self::FILLS };
        let there @ [lines, len] = if S::A_BY_ROWS { [source.rows, steps] } else { [steps, source.rows] };
        let whole = lines >= Self::LINES && len >= Self::LINE;
        let by_16_bytes = whole || Self::UNROLLED && (len >= Self::LINE || len % Self::WIDTH == 0);
        // SAFETY: the caller's promise. What asks nothing is of a whole stage: beyond 16 columns no other is copied by 16 bytes.
        unsafe {
            match source.aligned {
                true if by_16_bytes && (!Self::UNROLLED || Self::WHOLE_APART && whole) => {
                    Self::fill_a(x, stage.a, source.a, there, Self::WIDTH, true)
                }
                true if by_16_bytes => Self::fill_a(x, stage.a, source.a, there, Self::WIDTH, false),
                true => Self::fill_a_in_a_loop(x, stage.a, source.a, there, Self::WIDTH),
                false if Self::UNROLLED => Self::fill_a(x, stage.a, source.a, there, 1, false),
                false => Self::fill_a_in_a_loop(x, stage.a, source.a, there, 1),
            }
            Self::fill_b(x, stage.b, source, steps);
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

    /// Starts copying A's part of a stage, `by` elements at once, with zeros for what is not there: of so many lines so many elements are.
    ///
    /// # Safety
    /// They are A's; what is copied at once is aligned to its size, and there or not: there, if it is `unasked`.
    #[inline(always)]
    unsafe fn fill_a(
        x: &Product<T>,
        sa: Shared<T>,
        mut from: Global<T>,
        [lines, len]: [u32; 2],
        by: u32,
        unasked: bool,
    ) {
        let (line, along) = Self::own(by);
        let (at_once, turns) = at_once(Self::LINE / by, S::THREADS);
        for i in (0..Self::LINES).step_by(at_once as usize) {
            for turn in 0..turns {
                let on = turn * S::THREADS * by;
                let left = if along + on < len { lines.saturating_sub(line) } else { 0 };
                let into = sa.address(Self::of_line(i + line, along + on));
                // SAFETY: promised by the caller.
                unsafe { copy(into, from.address(on as u64), by * Self::BYTES, unasked || i < left) };
            }
            from = from.starting_at(at_once as u64 * ld::<T, S>(x));
        }
    }

    /// The same in a loop that stays one; of what is copied at once a part may be there.
    ///
    /// # Safety
    /// The lines and elements are A's; what is copied at once is aligned to its size.
    #[inline(always)]
    unsafe fn fill_a_in_a_loop(x: &Product<T>, sa: Shared<T>, mut from: Global<T>, [lines, len]: [u32; 2], by: u32) {
        let (line, along) = Self::own(by);
        let (at_once, turns) = at_once(Self::LINE / by, S::THREADS);
        for i in (line..ptx::opaque(Self::LINES)).step_by(at_once as usize) {
            for turn in 0..turns {
                let on = turn * S::THREADS * by;
                let rest = if i < lines { len.saturating_sub(along + on).min(by) } else { 0 };
                let (into, from) = (sa.address(Self::of_line(i, along + on)), from.address(on as u64));
                // SAFETY: what is there of them is A's.
                unsafe {
                    match by {
                        1 => copy(into, from, Self::BYTES, rest == 1),
                        _ => ptx::cp_async_16_first(into, from, rest * Self::BYTES),
                    }
                }
            }
            from = from.starting_at(at_once as u64 * ld::<T, S>(x));
        }
    }

    /// Starts copying B's part of a stage, a row of it a thread, with zeros for the steps and columns that B does not have.
    ///
    /// # Safety
    /// The steps are B's.
    #[inline(always)]
    unsafe fn fill_b(x: &Product<T>, sb: Shared<T>, source: &Source<T>, steps: u32) {
        let &Source { b: mut from, of_b: (row, col), .. } = source;
        let left = if row < steps { x.n.saturating_sub(first_col::<S>() + col) } else { 0 };
        for j in (0..S::BN).step_by(const { Self::COLS as usize }) {
            if S::BN % Self::COLS == 0 || j + col < S::BN {
                // SAFETY: promised by the caller.
                unsafe { copy(sb.address(Self::b_at(row, j + col)), from.address(0), Self::BYTES, j < left) };
            }
            from = from.starting_at(Self::COLS as u64 * x.b_col);
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
