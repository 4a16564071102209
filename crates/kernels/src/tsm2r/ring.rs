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
//! # Alignment
//! Where A's base and leading dimension are multiples of 16 bytes its pieces are copied whole, else element by element.
//! The branch is the same for all threads; the stage is the same, and so are the sums.

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
    /// Whether a stage keeps B by rows.
    const B_BY_ROWS: bool;
}

/// A ring of stages of elements of T.
pub struct Ring<T, S>(PhantomData<(T, S)>);

impl<T: Scalar, S: Tile> Ring<T, S> {
    const OK: () = {
        assert!(S::STAGES >= 2 && S::STAGES <= 5, "a ring has 2 to 5 stages");
        assert!(S::THREADS % S::KT == 0, "a thread fills one row of B's part of a stage");
        assert!(S::KT % (16 / size_of::<T>() as u32) == 0, "16 bytes of a row are a piece");
        assert!((S::BM * S::KT) % (S::THREADS * T::WIDTH as u32) == 0, "all threads copy as many pieces");
    };
    /// Elements in 16 bytes.
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;
    const PITCH: u32 = ring_pitch(S::KT, Self::BYTES);
    const A_LEN: u32 = ring_a_len(S::BM, S::KT, S::A_BY_ROWS, Self::BYTES);
    const B_LEN: u32 = ring_b_len(S::BN, S::KT, S::B_BY_ROWS, Self::BYTES);

    /// Where the 16 bytes of A from element (row, l) of the stage on lie: along the unit stride, and aligned to it.
    #[inline(always)]
    pub fn at(row: u32, l: u32) -> u32 {
        if S::A_BY_ROWS {
            row * Self::PITCH + l
        } else {
            // Fragments of `mma` take four columns a lane: these pieces of them lie in different banks.
            let piece = (row / Self::WIDTH) ^ (l / 4 % 4 * 2);
            l * S::BM + piece * Self::WIDTH
        }
    }

    /// Where element (l, j) of B's part of the stage lies.
    #[inline(always)]
    pub fn b_at(l: u32, j: u32) -> u32 {
        if S::B_BY_ROWS { l * S::BN + j } else { j * Self::PITCH + l }
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
    /// Launched with THREADS threads and `model::launch::tiling`'s shared memory; A and B span their elements.
    #[inline(always)]
    pub unsafe fn run(x: &Product<T>, mut multiply: impl FnMut(Shared<T>, Shared<T>)) {
        const { Self::OK };
        let (start, end) = x.part(S::KT);
        let ld = if S::A_BY_ROWS { x.a_row } else { x.a_col };
        let whole = x.a.is_aligned(16) && (ld * size_of::<T>() as u64) % 16 == 0;
        let ahead = (S::STAGES - 1) * S::KT;
        let (mut now, mut last) = (0, 0);
        // Steps l .. are copied while those `ahead` of them are multiplied; the first turns only copy.
        for l in (start..end + ahead).step_by(S::KT as usize) {
            Self::wait();
            thread::sync_threads(); // everyone's copies are there, and everyone is done with the stage before
            // SAFETY: `end` <= k.
            unsafe { Self::fill(x, last, l, end, whole) };
            last = if last + 1 == S::STAGES { 0 } else { last + 1 };
            if l >= start + ahead {
                let (sa, sb) = Self::stage(now);
                multiply(sa, sb);
                now = if now + 1 == S::STAGES { 0 } else { now + 1 };
            }
        }
    }

    /// Starts the copies of steps `l ..` into a stage.
    #[inline(always)]
    unsafe fn fill(x: &Product<T>, index: u32, l: u32, end: u32, whole: bool) {
        let (sa, sb) = Self::stage(index);
        // SAFETY: the caller's promise: `end` <= k.
        unsafe {
            if S::A_BY_ROWS {
                Self::fill_a_by_rows(x, sa, l, end, whole);
            } else {
                Self::fill_a_by_cols(x, sa, l, end, whole);
            }
            Self::fill_b(x, sb, l, end);
        }
        ptx::cp_async_commit_group();
    }

    /// Waits for the oldest stage in flight.
    #[inline(always)]
    fn wait() {
        match S::STAGES {
            2 => ptx::cp_async_wait_group::<0>(),
            3 => ptx::cp_async_wait_group::<1>(),
            4 => ptx::cp_async_wait_group::<2>(),
            _ => ptx::cp_async_wait_group::<3>(),
        }
    }

    /// Pieces of a column each, neighbouring threads neighbouring ones.
    #[inline(always)]
    unsafe fn fill_a_by_cols(x: &Product<T>, sa: Shared<T>, l: u32, end: u32, whole: bool) {
        let pieces = S::BM / Self::WIDTH;
        for i in 0..S::KT * pieces / S::THREADS {
            let piece = i * S::THREADS + own::<S>();
            let (row, step) = (piece % pieces * Self::WIDTH, piece / pieces);
            let of_a = thread::block_idx_x() * S::BM + row;
            let len = if l + step < end { inside(of_a, x.m, Self::WIDTH) } else { 0 };
            let from = of_a as u64 + (l + step) as u64 * x.a_col;
            // SAFETY: the first `len` elements lie within A.
            unsafe { copy(sa, Self::at(row, step), x.a, from, len, whole) };
        }
    }

    /// Pieces of a row each.
    #[inline(always)]
    unsafe fn fill_a_by_rows(x: &Product<T>, sa: Shared<T>, l: u32, end: u32, whole: bool) {
        let pieces = S::KT / Self::WIDTH;
        for i in 0..S::BM * pieces / S::THREADS {
            let piece = i * S::THREADS + own::<S>();
            let (row, step) = (piece / pieces, piece % pieces * Self::WIDTH);
            let of_a = thread::block_idx_x() * S::BM + row;
            let len = if of_a < x.m { inside(l + step, end, Self::WIDTH) } else { 0 };
            let from = of_a as u64 * x.a_row + (l + step) as u64;
            // SAFETY: the first `len` elements lie within A.
            unsafe { copy(sa, Self::at(row, step), x.a, from, len, whole) };
        }
    }

    /// One row of the stage a thread.
    #[inline(always)]
    unsafe fn fill_b(x: &Product<T>, sb: Shared<T>, l: u32, end: u32) {
        let (row, start, stride) = (own::<S>() % S::KT, own::<S>() / S::KT, S::THREADS / S::KT);
        for i in 0..S::BN.div_ceil(stride) {
            let j = i * stride + start;
            if j < S::BN {
                let col = thread::block_idx_z() * S::BN + j;
                let from = x.b.address((l + row) as u64 * x.b_row + col as u64 * x.b_col);
                // SAFETY: the element lies within B where it is copied.
                unsafe { copy_element::<T>(sb.address(Self::b_at(row, j)), from, l + row < end && col < x.n) };
            }
        }
    }
}

/// This thread, with what the compiler cannot know: there are no more than THREADS.
#[inline(always)]
fn own<S: Tile>() -> u32 {
    thread::thread_idx_x() % S::THREADS
}

/// How many of `width` elements from `start` on lie before `end`.
#[inline(always)]
fn inside(start: u32, end: u32, width: u32) -> u32 {
    let left = end.saturating_sub(start);
    if left < width { left } else { width }
}

/// Starts copying 16 bytes of A, `len` elements and zeros for the rest: whole, or element by element.
#[inline(always)]
unsafe fn copy<T: Scalar>(into: Shared<T>, at: u32, a: Global<T>, from: u64, len: u32, whole: bool) {
    if whole {
        // SAFETY: both are aligned to 16 bytes, and so many elements lie within A.
        unsafe { ptx::cp_async_16_first(into.address(at), a.address(from), len * size_of::<T>() as u32) };
    } else {
        for e in 0..T::WIDTH as u32 {
            // SAFETY: the element lies within A where it is copied.
            unsafe { copy_element::<T>(into.address(at + e), a.address(from + e as u64), e < len) };
        }
    }
}

/// Starts copying one element, or zero.
#[inline(always)]
unsafe fn copy_element<T: Scalar>(into: ptx::SharedAddress, from: ptx::GlobalAddress, inside: bool) {
    // SAFETY: the caller's promise; an element is aligned to its size.
    unsafe {
        if size_of::<T>() == 8 { ptx::cp_async_8(into, from, inside) } else { ptx::cp_async_4(into, from, inside) }
    };
}
