//! How a tall matrix comes into the stages of [`super::ring`]: stage after stage, in one of three ways.
//!
//! # Idea
//! Between two products of the matrix units of sm_90 a warp has 32 cycles. Copies that are a few instructions each, without a question, fit in
//! there; of those that are worked out anew for each stage, with ways for whatever a matrix may look like, a stage of 64 columns of c128 had 108
//! instructions in front of its 32 products, and with eight warps an SM the units stood still meanwhile (benches/NOTES.md).

use super::stages::{Place, Source};
use cuda_std::prelude::*;

/// How one matrix comes into the stages.
pub(super) trait Fill<T> {
    /// Starts copying the place's rows from step l on, as far as there are some before `end`, by the first of `threads` threads, and zeros for the
    /// others; stage after stage, from the part's first on.
    ///
    /// # Safety
    /// The matrix spans its elements, l <= `end` <= k, and l is a multiple of the place's steps, or `end`; nobody uses the stage; all lanes of the warp
    /// are here.
    unsafe fn fill(&mut self, stage: Shared<T>, place: Place, threads: u32, steps: (u32, u32));
}

/// Rows element by element: both matrices', where one's are not whole pieces.
pub(super) struct ByElement<T>(pub(super) Source<T>);

impl<T: Scalar> Fill<T> for ByElement<T> {
    #[inline(always)]
    unsafe fn fill(&mut self, stage: Shared<T>, place: Place, threads: u32, steps: (u32, u32)) {
        // SAFETY: what the caller promised.
        unsafe {
            if self.0.is_along() {
                self.0.fill(stage, place, threads, steps);
            } else {
                self.0.copy_rows::<false>(stage, place, threads, steps);
            }
        }
    }
}

/// By [`Source::fill_lines`].
pub(super) struct Along<T>(pub(super) Source<T>);

impl<T: Scalar> Fill<T> for Along<T> {
    #[inline(always)]
    unsafe fn fill(&mut self, stage: Shared<T>, place: Place, threads: u32, steps: (u32, u32)) {
        // SAFETY: what the caller promised.
        unsafe { self.0.fill_lines(stage, place, threads, steps) }
    }
}

/// Rows by pieces of 16 bytes, of which a thread has the same of every so many-th row: it goes on by adding, and asks nothing.
pub(super) struct Pieces<T> {
    /// This thread's first piece of the next stage, in the matrix and in the stage.
    from: Global<T>,
    into: u32,
    /// Its row, or past all of them: if that line is not there, or threads do not share a row out evenly and this is one of the last.
    first: u32,
    down: u64,
}

impl<T: Scalar> Pieces<T> {
    /// How this thread copies rows from step l on by pieces of 16 bytes, if they are whole ones.
    #[inline(always)]
    pub(super) fn new(of: &Source<T>, place: Place, threads: u32, l: u32) -> Option<Self> {
        if !(of.wide || T::WIDTH == 1 && of.of.is_aligned(16) && !of.is_along()) {
            return None;
        }
        let pieces = place.side / T::WIDTH as u32;
        let t = thread::thread_idx_x() % threads;
        let (first, line, apart) = (t / pieces, t % pieces * T::WIDTH as u32, threads / pieces);
        let from = ((l + first) as u64).wrapping_mul(of.down).wrapping_add((line as u64).wrapping_mul(of.across));
        let first = if line < of.lines && first < apart { first } else { u32::MAX };
        Some(Pieces { from: of.of.starting_at(from), into: t / pieces * place.pitch + line, first, down: of.down })
    }

    /// Whether threads share rows out evenly, and a stage: lines that are not there are copied as zeros then, and need not be cleared. Else nobody
    /// copies them.
    pub(super) const fn is_even(steps: u32, side: u32, threads: u32) -> bool {
        let pieces = side / T::WIDTH as u32;
        threads % pieces == 0 && steps % (threads / pieces) == 0
    }
}

impl<T: Scalar> Fill<T> for Pieces<T> {
    #[inline(always)]
    unsafe fn fill(
        &mut self,
        stage: Shared<T>,
        Place { steps, side, pitch }: Place,
        threads: u32,
        (l, end): (u32, u32),
    ) {
        let pieces = side / T::WIDTH as u32;
        let apart = threads / pieces;
        let left = (end - l).saturating_sub(self.first);
        let mut from = self.from; // of rows that are not there it is no place
        for turn in 0..steps.div_ceil(apart) {
            let row = turn * apart;
            if Self::is_even(steps, side, threads) || self.first < steps - row {
                let into = stage.starting_at(self.into).address(row * pitch);
                // SAFETY: inside the matrix, or nothing is read; the place is in the stage, and both are aligned.
                unsafe { ptx::cp_async_16(into, from.address(0), row < left) };
            }
            from = from.starting_at((apart as u64).wrapping_mul(self.down));
        }
        self.from = self.from.starting_at((steps as u64).wrapping_mul(self.down));
    }
}
