//! The ring of stages in shared memory through which [`super::staged`], [`super::lines`], [`super::ring`] and, where
//! it cannot copy in bulk, [`super::packed`] have tall matrices come.
//!
//! # Idea
//! `cp.async` has STAGES − 1 stages of so many steps of k in flight, which no register holds. A stage keeps rows, or
//! lines along k, whichever lie together in memory, so that 16 bytes are copied together.
//! # Tails
//! Lines that are not there are zeroed once, before the first copy, and then left alone, but where fill.rs copies zeros; rows behind the last are
//! zeroed by each copy. What is not whole pieces of 16 bytes, or lies the other way, is copied by elements,
//! neighbours by neighbours.
//! # Cost
//! A thread has the same lines of each of its rows, or the same step of each of its lines, and goes on by adding: places
//! that were divided anew for each copy took a fifth to a third of a loop's instructions, and 80 registers.
//! # Source
//! Ours, after the ring of `tsm2r`.

use cuda_std::prelude::*;
use model::launch::reduced::STAGES;

/// A matrix's place in a stage: `steps` steps of k of `side` lines; from row to row, or from line to line, `pitch`
/// elements.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) steps: u32,
    pub(super) side: u32,
    pub(super) pitch: u32,
}

/// One matrix on its way into the stages.
#[derive(Clone, Copy)]
pub(super) struct Source<T> {
    pub(super) of: Global<T>,
    /// From line to line of the tall matrix, and along one, from row to row.
    pub(super) across: u64,
    pub(super) down: u64,
    /// Lines there are from the block's first on.
    pub(super) lines: u32,
    /// Whether 16 bytes of a row, or of a line, are neighbours, and aligned; of rows, inside or outside too.
    pub(super) wide: bool,
}

impl<T: Scalar> Source<T> {
    /// From line `first` on, for stages of rows.
    #[inline(always)]
    pub(super) fn by_rows(of: Global<T>, across: u64, down: u64, lines: u32, first: u32) -> Self {
        let wide = across == 1 && (lines as u64 | down) % T::WIDTH as u64 == 0 && of.is_aligned(16);
        Self::from_line(of, across, down, lines, first, wide)
    }

    /// From line `first` on, for stages of lines.
    #[inline(always)]
    pub(super) fn by_lines(of: Global<T>, across: u64, down: u64, lines: u32, first: u32) -> Self {
        let wide = down == 1 && (across % T::WIDTH as u64 == 0 || lines == 1) && of.is_aligned(16);
        Self::from_line(of, across, down, lines, first, wide)
    }

    #[inline(always)]
    fn from_line(of: Global<T>, across: u64, down: u64, lines: u32, first: u32, wide: bool) -> Self {
        let of = of.starting_at(first as u64 * across);
        Source { of, across, down, lines: lines.saturating_sub(first), wide }
    }

    /// Starts copying the place's rows from step l on, as far as there are some before `end`, by the first of
    /// `threads` threads, element by element; zeros behind the last row. Lines that are not there are left as they are.
    ///
    /// # Safety
    /// The matrix spans its elements, `end` <= k; nobody reads the stage.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, stage: Shared<T>, place: Place, threads: u32, (l, end): (u32, u32)) {
        let Place { steps, side, pitch } = place;
        let side = side.max(1); // where the compiler cannot know, so that no division can panic
        for element in (thread::thread_idx_x() % threads..ptx::opaque(steps * side)).step_by(threads as usize) {
            // Neighbouring threads copy neighbours.
            let (row, line) =
                if self.is_along() { (element % steps, element / steps) } else { (element / side, element % side) };
            if line < self.lines {
                let (down, across) =
                    (((l + row) as u64).wrapping_mul(self.down), (line as u64).wrapping_mul(self.across));
                let from = self.of.address(down.wrapping_add(across)); // of rows that are not there it is no place
                // SAFETY: inside the matrix, or nothing is read; the place is in the stage.
                unsafe { copy::<T>(stage.address(row * pitch + line), from, l + row < end) };
            }
        }
    }

    /// Whether neighbours lie along k alone.
    #[inline(always)]
    pub(super) fn is_along(&self) -> bool {
        self.down == 1 && self.across != 1
    }

    /// Starts copying the place's rows from step l on, as far as there are some before `end`, by the first of
    /// `threads` threads: each the same lines of every so many-th row, or as [`Source::fill`]. Zeros behind the last
    /// row; lines that are not there are left as they are.
    ///
    /// # Safety
    /// As for [`Source::fill`]; l <= `end`, and all lanes of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn fill_rows(&self, stage: Shared<T>, place: Place, threads: u32, steps: (u32, u32)) {
        // SAFETY: what the caller promised; an element of 16 bytes is a piece of that.
        unsafe {
            if self.wide || T::WIDTH == 1 && !self.is_along() {
                self.copy_rows::<true>(stage, place, threads, steps);
            } else if self.is_along() {
                self.fill(stage, place, threads, steps);
            } else {
                self.copy_rows::<false>(stage, place, threads, steps);
            }
        }
    }

    /// By pieces of 16 bytes, or by elements.
    ///
    /// # Safety
    /// As for [`Source::fill_rows`]; pieces are neighbours, aligned, and inside or outside as a whole.
    #[inline(always)]
    pub(super) unsafe fn copy_rows<const PIECES: bool>(
        &self,
        stage: Shared<T>,
        Place { steps, side, pitch }: Place,
        threads: u32,
        (l, end): (u32, u32),
    ) {
        // SAFETY: all lanes are here, or on their way: it waits for those that copy another matrix still. Where a thread's
        // pieces are is worked out for each stage: to keep it takes registers.
        let t = unsafe { ptx::pinned(thread::thread_idx_x()) } % threads;
        let width = if PIECES { T::WIDTH as u32 } else { 1 };
        let pieces = side / width;
        let (first, line, apart) = (t / pieces, t % pieces * width, threads / pieces);
        // Where threads do not share a row out evenly, the last ones have none.
        if line >= self.lines || threads % pieces != 0 && first >= apart {
            return;
        }
        let rows = (end - l).min(steps);
        let along = ((l + first) as u64).wrapping_mul(self.down);
        let mut from = along.wrapping_add((line as u64).wrapping_mul(self.across));
        for turn in 0..steps.div_ceil(apart) {
            let row = first + turn * apart;
            if steps % apart == 0 || row < steps {
                let (into, from) = (stage.address(row * pitch + line), self.of.address(from));
                // SAFETY: inside the matrix, or nothing is read; the place is in the stage, and both are aligned.
                unsafe {
                    if PIECES { ptx::cp_async_16(into, from, row < rows) } else { copy::<T>(into, from, row < rows) }
                }
            }
            from = from.wrapping_add((apart as u64).wrapping_mul(self.down)); // of rows that are not there it is no place
        }
    }

    /// Zeros lines of the place's rows that are not there, which no copy fills, in stages `apart` elements from each
    /// other.
    ///
    /// # Safety
    /// The stages are the block's, and nobody else touches those lines before a barrier.
    #[inline(always)]
    pub(super) unsafe fn clear_rows(&self, first: Shared<T>, place: Place, threads: u32, apart: u32) {
        let there = self.lines.min(place.side);
        let gap = place.side - there;
        if gap == 0 {
            return;
        }
        for at in (thread::thread_idx_x()..place.steps * gap).step_by(threads as usize) {
            for stage in 0..STAGES {
                let at = stage * apart + at / gap * place.pitch + there + at % gap;
                // SAFETY: in a line of the stage that is not there, once.
                unsafe { first.store(at, T::ZERO) };
            }
        }
    }

    /// Starts copying the place's lines from step l on, as far as there are some before `end`, by the first of
    /// `threads` threads: each the same step of every so many-th line. Zeros where lines end; those that are not
    /// there are left as they are.
    ///
    /// # Safety
    /// As for [`Source::fill`]; l <= `end`, and l is `end` or a multiple of the place's steps, of which `threads` is one; all
    /// lanes of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn fill_lines(&self, stage: Shared<T>, place: Place, threads: u32, steps: (u32, u32)) {
        // SAFETY: what the caller promised; an element of 16 bytes is a piece of that.
        unsafe {
            if self.wide || T::WIDTH == 1 {
                self.copy_lines::<true>(stage, place, threads, steps);
            } else {
                self.copy_lines::<false>(stage, place, threads, steps);
            }
        }
    }

    /// By pieces of 16 bytes, or by elements.
    ///
    /// # Safety
    /// As for [`Source::fill_lines`]; pieces are neighbours, and aligned.
    #[inline(always)]
    unsafe fn copy_lines<const PIECES: bool>(
        &self,
        stage: Shared<T>,
        Place { steps, side, pitch }: Place,
        threads: u32,
        (l, end): (u32, u32),
    ) {
        // SAFETY: all lanes are here. Where a thread's pieces are is worked out for each stage: to keep it takes
        // registers.
        let t = unsafe { ptx::pinned(thread::thread_idx_x()) } % threads;
        let width = if PIECES { T::WIDTH as u32 } else { 1 };
        let pieces = steps / width;
        let (step, first, apart) = (t % pieces * width, t / pieces, threads / pieces);
        let there = (end - l).saturating_sub(step).min(width);
        // Nothing is read where nothing is there.
        let to_line = |line: u32| (line as u64).wrapping_mul(self.across);
        let along = ((l + step) as u64).wrapping_mul(self.down);
        let (mut from, next) = if there > 0 { (to_line(first).wrapping_add(along), to_line(apart)) } else { (0, 0) };
        for turn in 0..side.div_ceil(apart) {
            let line = first + turn * apart;
            // Where threads do not share the lines out evenly, the last turn goes past them.
            if line < self.lines && (side % apart == 0 || line < side) {
                let (into, from) = (stage.address(line * pitch + step), self.of.address(from));
                // SAFETY: `there` elements of the matrix; the place is in the stage, and both are aligned.
                unsafe {
                    if PIECES {
                        ptx::cp_async_16_first(into, from, there * size_of::<T>() as u32);
                    } else {
                        copy::<T>(into, from, there > 0);
                    }
                }
            }
            from = from.wrapping_add(next); // of lines that are not there it is no place
        }
    }

    /// Zeros lines of the place that are not there, which no copy fills, in stages `apart` elements from each other.
    ///
    /// # Safety
    /// The stages are the block's, and nobody else touches those lines before a barrier.
    #[inline(always)]
    pub(super) unsafe fn clear_lines(&self, first: Shared<T>, place: Place, threads: u32, apart: u32) {
        let there = self.lines.min(place.side) * place.pitch;
        for at in (there + thread::thread_idx_x()..place.side * place.pitch).step_by(threads as usize) {
            for stage in 0..STAGES {
                // SAFETY: in a line of the stage that is not there, once.
                unsafe { first.store(stage * apart + at, T::ZERO) };
            }
        }
    }
}

/// Starts copying one element, or zeros.
///
/// # Safety
/// As for [`ptx::cp_async_16`], with an element's bytes.
#[inline(always)]
pub(super) unsafe fn copy<T: Scalar>(into: ptx::SharedAddress, from: ptx::GlobalAddress, inside: bool) {
    // SAFETY: what the caller promised.
    unsafe {
        match size_of::<T>() {
            16 => ptx::cp_async_16(into, from, inside),
            8 => ptx::cp_async_8(into, from, inside),
            _ => ptx::cp_async_4(into, from, inside),
        }
    }
}
