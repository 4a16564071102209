//! Packed rows of two tall matrices into a ring of stages, by bulk copies: for [`super::packed`] and [`super::eights`].
//!
//! # Idea
//! So many packed rows are one run of memory whatever their width, and a multiple of 16 bytes where their number is even: one bulk copy for each
//! matrix and stage, which takes no registers, and of odd widths what [`super::ring`] copies element by element.
//! # Tails
//! What is no run at a multiple of 16 bytes, and the last rows of k where they are no whole stage, come element by element.

use super::Reduced;
use super::stages::{Place, Source};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::reduced::STAGES;

/// A block that has rows come so.
pub(super) trait Staged {
    /// What rows consist of.
    type Elem: Scalar;
    /// Rows of a stage, of which two of any width are whole pieces of 16 bytes.
    const ROWS: u32;
    /// Rows and columns of the block's tile of C: no row of A, or of B, is wider.
    const SIDES: (u32, u32);
    /// Threads of the block.
    const THREADS: u32;
    /// Whether B is A.
    const GRAM: bool;
    /// Elements of a stage that are A's, and B's: whole pieces of 16 bytes.
    const LENS: (u32, u32);
    /// Where mbarriers lie, an element each.
    const MBARRIERS: u32;
}

/// Both matrices on their way, of a block's part of k.
pub(super) struct Runs<S: Staged> {
    a: Rows<S::Elem>,
    b: Rows<S::Elem>,
    /// If rows of both are.
    runs: bool,
    part: (u32, u32),
    block: PhantomData<S>,
}

/// One of the matrices: how it comes.
struct Rows<T> {
    of: Global<T>,
    source: Source<T>,
    width: u32,
}

impl<S: Staged> Runs<S> {
    /// A and B, or A twice.
    #[inline(always)]
    pub(super) fn new(x: &Reduced<S::Elem>) -> Self {
        let p = &x.p;
        let (b, b_strides, n) = if S::GRAM { (p.a, (p.a_row, p.a_col), p.m) } else { (p.b, (p.b_col, p.b_row), p.n) };
        Runs {
            a: Rows::new(p.a, (p.a_row, p.a_col), p.m),
            b: Rows::new(b, b_strides, n),
            runs: is_run(p.a, (p.a_row, p.a_col), p.m) && is_run(b, b_strides, n),
            part: p.part(S::ROWS),
            block: PhantomData,
        }
    }

    /// Elements of a row of A, and of B.
    #[inline(always)]
    pub(super) fn widths(&self) -> (u32, u32) {
        (self.a.width, self.b.width)
    }

    /// Stages of the part.
    #[inline(always)]
    pub(super) fn stages(&self) -> u32 {
        (self.part.1 - self.part.0).div_ceil(S::ROWS)
    }

    #[inline(always)]
    fn mbarrier(stage: u32) -> ptx::SharedAddress {
        Shared::<S::Elem>::at(S::MBARRIERS).address(stage % STAGES)
    }

    /// A's and B's rows of a stage.
    #[inline(always)]
    pub(super) fn stage(index: u32) -> (Shared<S::Elem>, Shared<S::Elem>) {
        let sa = Shared::at(index % STAGES * (S::LENS.0 + S::LENS.1));
        (sa, if S::GRAM { sa } else { sa.starting_at(S::LENS.0) })
    }

    /// Makes the mbarriers, and what is read behind the last row of a stage, columns that are not there.
    ///
    /// # Safety
    /// All threads are here, and nobody uses the stages.
    #[inline(always)]
    pub(super) unsafe fn begin(&self) {
        let t = thread::thread_idx_x();
        for index in 0..STAGES {
            let (sa, sb) = Self::stage(index);
            // SAFETY: rows that are narrower than the tile leave as much at the end of the stage.
            unsafe {
                self.a.end(sa, S::ROWS, S::SIDES.0, S::THREADS);
                if !S::GRAM {
                    self.b.end(sb, S::ROWS, S::SIDES.1, S::THREADS);
                }
                if t == 0 {
                    ptx::mbarrier_init(Self::mbarrier(index), 1);
                }
            }
        }
        if t == 0 {
            ptx::fence_proxy_async();
        }
    }

    /// The rows of a stage, of the part's; `end` <= k, which the stages ahead do not take past 32 bits (`model::choose::LARGEST_DIMENSION`): the sum never saturates.
    #[inline(always)]
    fn rows(&self, index: u32) -> (u32, u32) {
        let (start, end) = self.part;
        (start.saturating_add(index * S::ROWS), end)
    }

    /// Starts filling a stage with its rows, as far as the part has some, and zeros.
    ///
    /// # Safety
    /// Nobody uses the stage, and whoever used it has met all others; all threads have met behind [`Runs::begin`].
    #[inline(always)]
    pub(super) unsafe fn fill(&self, index: u32) {
        let (&Runs { ref a, ref b, runs, .. }, (l, end)) = (self, self.rows(index));
        let ((sa, sb), rows) = (Self::stage(index), S::ROWS);
        // SAFETY: nobody uses the stage, as the caller promised; of a run as many rows are there, and aligned; `copy` ends
        // at `end` <= k.
        unsafe {
            if l < end && runs && rows <= end - l {
                if thread::thread_idx_x() == 0 {
                    let ready = Self::mbarrier(index);
                    ptx::mbarrier_expect(ready, a.bytes(rows) + if S::GRAM { 0 } else { b.bytes(rows) });
                    a.load(sa, l, rows, ready);
                    if !S::GRAM {
                        b.load(sb, l, rows, ready);
                    }
                }
            } else if l < end {
                a.copy(sa, (l, end), rows, S::THREADS);
                if !S::GRAM {
                    b.copy(sb, (l, end), rows, S::THREADS);
                }
            }
        }
        ptx::cp_async_commit_group();
    }

    /// Waits for a stage's copies, and for all threads.
    ///
    /// # Safety
    /// They were started.
    #[inline(always)]
    pub(super) unsafe fn wait<const PENDING: u32>(&self, index: u32) {
        let (l, end) = self.rows(index);
        // SAFETY: what the caller promised.
        unsafe {
            ptx::cp_async_wait_group::<PENDING>();
            if self.runs && l < end && S::ROWS <= end - l {
                ptx::mbarrier_wait(Self::mbarrier(index), index / STAGES % 2);
            }
        }
        thread::sync_threads();
    }
}

impl<T: Scalar> Rows<T> {
    /// Of a matrix of `width` columns.
    #[inline(always)]
    fn new(of: Global<T>, (across, down): (u64, u64), width: u32) -> Self {
        let mut source = Source::by_rows(of, across, down, width, 0);
        source.wide = false; // rows in a stage are not aligned
        Rows { of, source, width }
    }

    /// Bytes of so many rows.
    #[inline(always)]
    fn bytes(&self, rows: u32) -> u32 {
        rows * self.width * size_of::<T>() as u32
    }

    /// Zeros behind the last of so many rows, where columns that are not there are read: the tile's `side` less its own.
    ///
    /// # Safety
    /// All of `threads` threads are here, and nobody uses the stage.
    #[inline(always)]
    unsafe fn end(&self, stage: Shared<T>, rows: u32, side: u32, threads: u32) {
        for at in (thread::thread_idx_x()..side - self.width).step_by(threads as usize) {
            // SAFETY: behind `rows` rows the stage has the tile's side less `width` elements; nobody uses it, as the
            // caller promised.
            unsafe { stage.store(rows * self.width + at, T::ZERO) };
        }
    }

    /// Starts a bulk copy of rows from l on.
    ///
    /// # Safety
    /// They are there, and a run; nobody uses the stage, and the mbarrier expects the bytes.
    #[inline(always)]
    unsafe fn load(&self, stage: Shared<T>, l: u32, rows: u32, ready: ptx::SharedAddress) {
        let from = self.of.address(l as u64 * self.width as u64);
        // SAFETY: the rows are a run and there, nobody uses the stage, and the mbarrier expects the bytes, as the
        // caller promised.
        unsafe { ptx::bulk_load(stage.address(0), from, self.bytes(rows), ready) };
    }

    /// Starts copying elements of rows l .. `end`, at most `rows`, and zeros.
    ///
    /// # Safety
    /// As for [`Source::fill`].
    #[inline(always)]
    unsafe fn copy(&self, stage: Shared<T>, part: (u32, u32), rows: u32, threads: u32) {
        let place = Place { steps: rows, side: self.width, pitch: self.width };
        // SAFETY: what this is promised is what `Source::fill` asks for; rows of `width` elements are packed in the
        // stage.
        unsafe { self.source.fill(stage, place, threads, part) };
    }
}

/// Whether rows of so many columns lie behind each other, from a multiple of 16 bytes on.
#[inline(always)]
fn is_run<T: Scalar>(of: Global<T>, (across, down): (u64, u64), width: u32) -> bool {
    of.is_aligned(16) && (across == 1 || width == 1) && down == width as u64
}
