//! A and B on their way through shared memory: a ring of stages that `cp.async` fills while others are multiplied.
//!
//! # Idea
//! Memory is kept busy by what is in flight, and what is in flight needs a place to land. Registers are the scarce one:
//! here STAGES - 1 stages of KT columns of A are on their way into shared memory while the threads multiply one more,
//! and no register waits for memory. One barrier a stage.
//!
//! # A stage
//! | operand | stored                                                    | why                                       |
//! |---------|-----------------------------------------------------------|-------------------------------------------|
//! | A       | by columns: (BM, KT), its 16-byte pieces in swizzled order | neither filling nor use has bank conflicts |
//! |         | by rows: (KT, BM), KT + 16 bytes from row to row           | the same                                  |
//! | B       | by columns: (KT, BN), KT + 16 bytes from column to column  | `mma` takes four steps of a column a lane |
//! |         | by rows: (BN, KT)                                          | multiply-adds take all columns of a step  |
//!
//! # Tails
//! What lies outside of A and B arrives as zeros: `cp.async` writes them without touching memory.
//!
//! # Two ways to fill
//! A stage that lies wholly inside of A, whose base and leading dimension are multiples of 16 bytes, is copied by pieces:
//! an addition and a copy each, so that the threads' time goes into multiplying. All others are copied element by
//! element, each with a look at the edges. The branch is the same for all threads; the stage is the same, and so are the
//! sums.

use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::{ring_a_len, ring_b_len, ring_pitch};

/// The shape of a ring and of the block that fills it.
pub trait Tile {
    /// Threads a block.
    const THREADS: u32;
    /// Rows of A a stage.
    const BM: u32;
    /// Columns of B a stage.
    const BN: u32;
    /// Steps of k a stage.
    const KT: u32;
    /// Stages.
    const STAGES: u32;
    /// Whether A's unit stride runs along its rows.
    const A_BY_ROWS: bool;
}

/// A block of THREADS threads for BM rows and BN columns of C, with STAGES stages of KT steps of k; BY_ROWS: A's unit
/// stride runs along its rows.
pub struct Block<
    const THREADS: usize,
    const BM: usize,
    const BN: usize,
    const KT: usize,
    const STAGES: usize,
    const BY_ROWS: bool,
>;

impl<const THREADS: usize, const BM: usize, const BN: usize, const KT: usize, const STAGES: usize, const BY_ROWS: bool>
    Tile for Block<THREADS, BM, BN, KT, STAGES, BY_ROWS>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = BM as u32;
    const BN: u32 = BN as u32;
    const KT: u32 = KT as u32;
    const STAGES: u32 = STAGES as u32;
    const A_BY_ROWS: bool = BY_ROWS;
}

/// A ring of stages of elements of T, laid out for the matrix units or for the vector units.
pub struct Ring<T, S, const MMA: bool>(PhantomData<(T, S)>);

impl<T: Scalar, S: Tile, const MMA: bool> Ring<T, S, MMA> {
    const OK: () = {
        assert!(S::STAGES >= 2 && S::STAGES <= 4, "a ring has 2 to 4 stages");
        assert!(S::THREADS % S::KT == 0, "a thread fills one row of B's part of a stage");
        let pieces = Self::LINE / Self::WIDTH;
        assert!(pieces % S::THREADS == 0 || S::THREADS % pieces == 0, "whole turns or lines at once");
        assert!(Self::LINE % S::THREADS == 0 || S::THREADS % Self::LINE == 0, "the same by elements");
        assert!(Self::LINES % at_once(pieces, S::THREADS).0 == 0, "the threads fill whole stages");
        assert!(Self::LINES % at_once(Self::LINE, S::THREADS).0 == 0, "the same by elements");
    };
    /// Elements in 16 bytes.
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;
    const PITCH: u32 = ring_pitch(S::KT, Self::BYTES);
    const A_LEN: u32 = ring_a_len(S::BM, S::KT, S::A_BY_ROWS, Self::BYTES);
    const B_LEN: u32 = ring_b_len(S::BN, S::KT, !MMA, Self::BYTES);
    /// Elements of A's part of a stage along its unit stride, and across.
    const LINE: u32 = if S::A_BY_ROWS { S::KT } else { S::BM };
    const LINES: u32 = if S::A_BY_ROWS { S::BM } else { S::KT };

    /// Where the 16 bytes of A from element (row, l) of the stage on lie: along the unit stride, and aligned to it.
    #[inline(always)]
    pub fn at(row: u32, l: u32) -> u32 {
        if S::A_BY_ROWS {
            row * Self::PITCH + l
        } else {
            // Fragments of `mma` take four columns a lane: these pieces of them lie in different banks.
            let swizzle = if MMA { l / 4 % 4 * 2 } else { 0 };
            l * S::BM + ((row / Self::WIDTH) ^ swizzle) * Self::WIDTH
        }
    }

    /// Where element (l, j) of B's part of the stage lies.
    #[inline(always)]
    pub fn b_at(l: u32, j: u32) -> u32 {
        if MMA { j * Self::PITCH + l } else { l * S::BN + j }
    }

    /// Where a stage keeps A and B.
    #[inline(always)]
    fn stage(index: u32) -> (Shared<T>, Shared<T>) {
        let start = index * (Self::A_LEN + Self::B_LEN);
        (Shared::at(start), Shared::at(start + Self::A_LEN))
    }

    /// Calls `multiply` with each stage of this block's part of k, in ascending order.
    ///
    /// # Safety
    /// Launched with THREADS threads and `model::launch::tiling`'s shared memory; A and B span their elements, and A's unit
    /// stride is the one of the shape (`model::choose` refuses others).
    #[inline(always)]
    pub unsafe fn run(x: &Product<T>, mut multiply: impl FnMut(Shared<T>, Shared<T>)) {
        const { Self::OK };
        let (start, end) = x.part(S::KT);
        let inside = Inside {
            aligned: x.a.is_aligned(16) && Self::ld(x) * size_of::<T>() as u64 % 16 == 0,
            rows: (thread::block_idx_x() + 1) as u64 * S::BM as u64 <= x.m as u64,
            cols: (thread::block_idx_z() + 1) * S::BN <= x.n,
        };
        let ahead = (S::STAGES - 1) * S::KT;
        let (mut now, mut last) = (0, 0);
        // Steps l .. are copied while those `ahead` of them are multiplied; the first turns only copy, the last only
        // multiply.
        for l in (start..end + ahead).step_by(S::KT as usize) {
            Self::wait();
            thread::sync_threads(); // everyone's copies are there, and everyone is done with the stage before
            if l < end {
                // SAFETY: `end` <= k.
                unsafe { Self::fill(x, last, l, end, inside) };
            }
            ptx::cp_async_commit_group();
            last = if last + 1 == S::STAGES { 0 } else { last + 1 };
            if l >= start + ahead {
                let (sa, sb) = Self::stage(now);
                multiply(sa, sb);
                now = if now + 1 == S::STAGES { 0 } else { now + 1 };
            }
        }
    }

    /// Starts the copies of steps `l ..` into a stage.
    ///
    /// # Safety
    /// As for [`Ring::run`]; `end` <= k, and `inside` is true of this block.
    #[inline(always)]
    unsafe fn fill(x: &Product<T>, index: u32, l: u32, end: u32, inside: Inside) {
        let (sa, sb) = Self::stage(index);
        let steps_inside = l + S::KT <= end;
        // SAFETY: the caller's promise: `end` <= k; what is not guarded lies inside.
        unsafe {
            if steps_inside && inside.rows && inside.aligned {
                Self::fill_a_by_pieces(x, sa, l);
            } else {
                Self::fill_a_by_elements(x, sa, l, end);
            }
            if steps_inside && inside.cols {
                Self::fill_b::<false>(x, sb, l, end);
            } else {
                Self::fill_b::<true>(x, sb, l, end);
            }
        }
    }

    /// A's stride from line to line.
    #[inline(always)]
    fn ld(x: &Product<T>) -> u64 {
        if S::A_BY_ROWS { x.a_row } else { x.a_col }
    }

    /// Waits for the oldest stage in flight.
    #[inline(always)]
    fn wait() {
        match S::STAGES {
            2 => ptx::cp_async_wait_group::<0>(),
            3 => ptx::cp_async_wait_group::<1>(),
            _ => ptx::cp_async_wait_group::<2>(),
        }
    }

    /// The element of A at the start of this block's part of step l.
    #[inline(always)]
    fn origin(x: &Product<T>, l: u32) -> u64 {
        (thread::block_idx_x() * S::BM) as u64 * x.a_row + l as u64 * x.a_col
    }

    /// Where A's part of a stage keeps the element at `along` of a line.
    #[inline(always)]
    fn of_line(line: u32, along: u32) -> u32 {
        let first = along / Self::WIDTH * Self::WIDTH;
        (if S::A_BY_ROWS { Self::at(line, first) } else { Self::at(first, line) }) + along % Self::WIDTH
    }

    /// Starts copying steps `l ..` of A: neighbouring threads take neighbouring pieces of 16 bytes of a line.
    ///
    /// # Safety
    /// The stage lies inside of A, and all its pieces are aligned.
    #[inline(always)]
    unsafe fn fill_a_by_pieces(x: &Product<T>, sa: Shared<T>, l: u32) {
        let pieces = const { Self::LINE / Self::WIDTH };
        let (line, along) = (own::<S>() / pieces, own::<S>() % pieces);
        let (lines, turns) = const { at_once(Self::LINE / Self::WIDTH, S::THREADS) };
        let mut from = Self::origin(x, l) + line as u64 * Self::ld(x) + (along * Self::WIDTH) as u64;
        for i in (0..Self::LINES).step_by(lines as usize) {
            for turn in 0..turns {
                let on = turn * S::THREADS * Self::WIDTH;
                let into = sa.address(Self::of_line(i + line, along * Self::WIDTH + on));
                // SAFETY: promised by the caller.
                unsafe { ptx::cp_async_16(into, x.a.address(from + on as u64), true) };
            }
            from += lines as u64 * Self::ld(x);
        }
    }

    /// Starts copying steps `l ..` of A: neighbouring threads take neighbouring elements of a line.
    ///
    /// # Safety
    /// `end` <= k.
    #[inline(always)]
    unsafe fn fill_a_by_elements(x: &Product<T>, sa: Shared<T>, l: u32, end: u32) {
        let (line, along) = (own::<S>() / Self::LINE, own::<S>() % Self::LINE);
        let start = thread::block_idx_x() * S::BM;
        // The loop stays one: unrolled, its addresses would take the registers that multiplying needs.
        let (lines, _) = const { at_once(Self::LINE, S::THREADS) };
        for line in (line..ptx::opaque(Self::LINES)).step_by(lines as usize) {
            for along in (along..Self::LINE).step_by(S::THREADS as usize) {
                let (row, step) = if S::A_BY_ROWS { (start + line, l + along) } else { (start + along, l + line) };
                let from = x.a.address(row as u64 * x.a_row + step as u64 * x.a_col);
                let into = sa.address(Self::of_line(line, along));
                // SAFETY: the element lies within A where it is copied.
                unsafe { copy::<T>(into, from, row < x.m && step < end) };
            }
        }
    }

    /// Starts copying steps `l ..` of B, a row of the stage a thread; GUARDED: not all of it lies inside of B.
    ///
    /// # Safety
    /// `end` <= k; where it is not guarded, the stage lies inside of B.
    #[inline(always)]
    unsafe fn fill_b<const GUARDED: bool>(x: &Product<T>, sb: Shared<T>, l: u32, end: u32) {
        let (row, start) = (own::<S>() % S::KT, own::<S>() / S::KT);
        let cols = const { S::THREADS / S::KT };
        let first = thread::block_idx_z() * S::BN;
        let at = |j: u32| (l + row) as u64 * x.b_row + (first + j) as u64 * x.b_col;
        if GUARDED {
            for j in (start..ptx::opaque(S::BN)).step_by(cols as usize) {
                let inside = l + row < end && first + j < x.n;
                // SAFETY: the element lies within B where it is copied.
                unsafe { copy::<T>(sb.address(Self::b_at(row, j)), x.b.address(at(j)), inside) };
            }
        } else {
            let mut from = at(start);
            for j in (0..S::BN).step_by(cols as usize) {
                if S::BN % cols == 0 || j + start < S::BN {
                    // SAFETY: promised by the caller.
                    unsafe { copy::<T>(sb.address(Self::b_at(row, j + start)), x.b.address(from), true) };
                }
                from += cols as u64 * x.b_col;
            }
        }
    }
}

/// What all threads of a block know of its rows of A and columns of B.
#[derive(Clone, Copy)]
struct Inside {
    /// A's pieces of 16 bytes are aligned.
    aligned: bool,
    /// All of the rows exist.
    rows: bool,
    /// All of the columns exist.
    cols: bool,
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

/// Starts copying one element, or zero.
///
/// # Safety
/// Where `inside`, both addresses are of elements of T, the source's lies within its operand; nobody reads the copy before
/// it was waited for.
#[inline(always)]
unsafe fn copy<T: Scalar>(into: ptx::SharedAddress, from: ptx::GlobalAddress, inside: bool) {
    // SAFETY: the caller's promise; an element is aligned to its size.
    unsafe {
        if size_of::<T>() == 8 { ptx::cp_async_8(into, from, inside) } else { ptx::cp_async_4(into, from, inside) }
    };
}
