//! The ring of stages in shared memory through which [`super::staged`], [`super::lines`], [`super::ring`] and, where
//! it cannot copy in bulk, [`super::packed`] have tall matrices come.
//!
//! # Idea
//! `cp.async` has STAGES − 1 stages of so many steps of k in flight, which no register holds. A stage keeps rows, or
//! lines along k, whichever lie together in memory, so that 16 bytes are copied together.
//! # Tails
//! What is not there is zero: of a stage of rows by each copy, of lines once, before the first. What is not whole
//! pieces of 16 bytes, or lies the other way, is copied by elements, neighbours by neighbours.
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
    of: Global<T>,
    /// From line to line of the tall matrix, and along one, from row to row.
    across: u64,
    down: u64,
    /// Lines there are from the block's first on.
    lines: u32,
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
    /// `threads` threads; zeros where there is nothing.
    ///
    /// # Safety
    /// The matrix spans its elements, `end` <= k; nobody reads the stage.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, stage: Shared<T>, place: Place, threads: u32, (l, end): (u32, u32)) {
        let Place { steps: kt, side, pitch } = place;
        let t = thread::thread_idx_x() % threads;
        let width = T::WIDTH as u32;
        if self.wide {
            let pieces = side / width;
            for piece in (t..kt * pieces).step_by(threads as usize) {
                let (row, line) = (piece / pieces, piece % pieces * width);
                let inside = l + row < end && line < self.lines;
                let from = if inside { (l + row) as u64 * self.down + line as u64 } else { 0 };
                // SAFETY: inside the matrix, or nothing is read; the place is in the stage, and both are aligned.
                unsafe { ptx::cp_async_16(stage.address(row * pitch + line), self.of.address(from), inside) };
            }
        } else {
            for element in (t..kt * side).step_by(threads as usize) {
                // Neighbouring threads copy neighbours.
                let along_k = self.down == 1 && self.across != 1;
                let (row, line) = if along_k { (element % kt, element / kt) } else { (element / side, element % side) };
                let inside = l + row < end && line < self.lines;
                let from = if inside { (l + row) as u64 * self.down + line as u64 * self.across } else { 0 };
                let (into, from) = (stage.address(row * pitch + line), self.of.address(from));
                // SAFETY: inside the matrix, or nothing is read; the place is in the stage.
                unsafe {
                    match size_of::<T>() {
                        16 => ptx::cp_async_16(into, from, inside),
                        8 => ptx::cp_async_8(into, from, inside),
                        _ => ptx::cp_async_4(into, from, inside),
                    }
                }
            }
        }
    }

    /// Starts copying the place's lines from step l on, as far as there are some before `end`, by the first of
    /// `threads` threads: each the same step of every so many-th line. Zeros where lines end; those that are not
    /// there are left as they are.
    ///
    /// # Safety
    /// As for [`Source::fill`]; l < `end`, and l is a multiple of the place's steps, of which `threads` is one; all
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
                    match (PIECES, size_of::<T>()) {
                        (true, size) => ptx::cp_async_16_first(into, from, there * size as u32),
                        (false, 8) => ptx::cp_async_8(into, from, there > 0),
                        (false, _) => ptx::cp_async_4(into, from, there > 0),
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
