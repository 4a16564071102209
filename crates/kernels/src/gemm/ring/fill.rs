//! Filling a stage: which thread copies what of an operand, and into which place.
//!
//! A line is a row of A or a column of B.
//!
//! | the operand's unit stride runs             | copies     | a warp's                          |
//! |--------------------------------------------|------------|-----------------------------------|
//! | across the lines, aligned to 16 bytes      | 16 bytes   | neighbours of a step              |
//! | across the lines, or nowhere               | an element | neighbours of a step              |
//! | along k                                    | an element | 8 steps of 4 lines: whole sectors |
//! | the same, into a part by lines             | 16 bytes   | a line's steps of a stage         |
//!
//! Copies of elements are unrolled where all of the stage is there, which leaves an addition and the copy; else they go in
//! a loop that looks at the edges, and that stays one: its addresses would take the registers that multiplying needs.
//!
//! The last but one is where a stage is transposed: into different banks, of f32 into half of them. The branch is the same for
//! all threads; the stage is the same, and so are the sums. `cp.async` writes zeros without touching memory where there are
//! no such elements.

use super::Tile;
use cuda_std::prelude::*;
use model::launch::{gemm_ring_line, gemm_ring_pitch};

/// Steps of k that a warp copies of a line where the operand's unit stride runs along k, and lines.
const STEPS: u32 = 8;
const LINES: u32 = 4;

/// Whether 16 bytes along k of an operand are inside or outside, aligned, and all of a line.
#[inline(always)]
pub fn lies_by_lines<T: Scalar>(operand: Global<T>, (across, along): (u64, u64), k: u32) -> bool {
    along == 1 && across != 1 && (across | k as u64) % T::WIDTH as u64 == 0 && operand.is_aligned(16)
}

/// Where this thread's copies of an operand come from and go to, whose part of a stage lies BY_LINES or not.
pub(super) struct Copies<T, const BY_LINES: bool> {
    /// The first element of the next stage that it copies.
    from: Global<T>,
    /// Elements from one copy to the next, and from a stage to the next.
    further: u64,
    next: u64,
    /// Its place in the operand's part of a stage, and how much further on that of the next copy is.
    into: u32,
    onward: u32,
    /// Where a next copy's place is no longer its own.
    stop: u32,
    /// The step of the first copy, and how many more that of the next one is.
    step: u32,
    steps: u32,
    /// Lines from that of the first copy to the operand's end, and how many fewer of the next one.
    left: u32,
    lines: u32,
    /// Copies are of 16 bytes.
    wide: bool,
    /// Copies are of elements along k.
    along: bool,
    /// All lines of the block are there.
    whole: bool,
}

impl<T: Scalar, const BY_LINES: bool> Copies<T, BY_LINES> {
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;

    /// Of stages of `len` lines from `first` of `all` on, from step `start` on; strides across the lines and along k.
    #[inline(always)]
    pub(super) fn new<S: Tile>(
        operand: Global<T>,
        (across, along): (u64, u64),
        (first, all): (u32, u32),
        len: u32,
        start: u32,
    ) -> Self {
        let t = thread::thread_idx_x() % S::THREADS; // there are no more, which the compiler cannot know
        let (warp, lane) = (t / warp::WARP_LANES, t % warp::WARP_LANES);
        let aligned = operand.is_aligned(16) && along * Self::BYTES as u64 % 16 == 0;
        // A block that hangs over the last line has 16 bytes of lines only where they end together.
        let wide = across == 1 && aligned && (first + len <= all || all % Self::WIDTH == 0);
        let along_k = !wide && along == 1 && across != 1;
        let ((line, step), (lines, steps)) = if BY_LINES {
            let pieces = S::KT / Self::WIDTH;
            ((t / pieces, t % pieces * Self::WIDTH), (S::THREADS / pieces, 0))
        } else if wide {
            let row = len / Self::WIDTH;
            ((t % row * Self::WIDTH, t / row), (0, S::THREADS / row))
        } else if along_k {
            let parts = S::KT / STEPS;
            let (line, step) = (lane / LINES % LINES, lane % LINES + lane / 16 * LINES);
            ((warp / parts * LINES + line, warp % parts * STEPS + step), (Self::lines::<S>(), 0))
        } else {
            ((t % len, t / len), (0, S::THREADS / len))
        };
        let (line_pitch, step_pitch) =
            if BY_LINES { (gemm_ring_line(S::KT, Self::BYTES), 1) } else { (1, gemm_ring_pitch(len, Self::BYTES)) };
        let (into, onward) = (step * step_pitch + line * line_pitch, steps * step_pitch + lines * line_pitch);
        Copies {
            from: operand.starting_at((first + line) as u64 * across + (start + step) as u64 * along),
            further: lines as u64 * across + steps as u64 * along,
            next: S::KT as u64 * along,
            into,
            onward,
            stop: into + S::KT * len / S::THREADS * onward,
            step,
            steps,
            left: all.saturating_sub(first + line),
            lines,
            wide,
            along: along_k,
            whole: first + len <= all,
        }
    }

    /// Lines from a copy to the next along k.
    #[inline(always)]
    fn lines<S: Tile>() -> u32 {
        S::THREADS / 32 / (S::KT / STEPS) * LINES
    }

    /// Starts this thread's copies of a stage, of which `count` steps are there, and goes on to the next.
    ///
    /// # Safety
    /// The operand has the steps and spans its elements; nobody reads the stage.
    #[inline(always)]
    pub(super) unsafe fn fill<S: Tile>(&mut self, stage: Shared<T>, len: u32, count: u32) {
        let mut from = self.from;
        if BY_LINES {
            let lines = S::THREADS / (S::KT / Self::WIDTH);
            for i in 0..len / lines {
                let into = stage.address(self.into + i * lines * gemm_ring_line(S::KT, Self::BYTES));
                // SAFETY: the elements lie within the operand where they are copied: k and steps are whole pieces.
                unsafe { ptx::cp_async_16(into, from.address(0), self.step < count && i * lines < self.left) };
                from = from.starting_at(self.further);
            }
        } else if self.wide {
            let steps = S::THREADS / (len / Self::WIDTH);
            for i in 0..S::KT / steps {
                let into = stage.address(self.into + i * steps * gemm_ring_pitch(len, Self::BYTES));
                // SAFETY: the elements lie within the operand where they are copied.
                unsafe { ptx::cp_async_16(into, from.address(0), self.left > 0 && self.step + i * steps < count) };
                from = from.starting_at(self.further);
            }
        } else if self.whole && count >= S::KT {
            let copies = S::KT * len / S::THREADS;
            // SAFETY: the block's lines and the stage's steps are all there.
            unsafe {
                if self.along {
                    self.copy_all(stage, copies, Self::lines::<S>());
                } else {
                    self.copy_all(stage, copies, S::THREADS / len * gemm_ring_pitch(len, Self::BYTES));
                }
            }
        } else {
            let (mut into, mut step, mut lines) = (self.into, self.step, 0);
            while into < self.stop {
                // SAFETY: the element lies within the operand where it is copied.
                unsafe { copy(stage.address(into), from.address(0), Self::BYTES, step < count && lines < self.left) };
                from = from.starting_at(self.further);
                (into, step, lines) = (into + self.onward, step + self.steps, lines + self.lines);
            }
        }
        self.from = self.from.starting_at(self.next);
    }

    /// Starts copying elements that are all there, each `onward` further on in the stage.
    ///
    /// # Safety
    /// As for [`Copies::fill`].
    #[inline(always)]
    unsafe fn copy_all(&self, stage: Shared<T>, copies: u32, onward: u32) {
        let mut from = self.from;
        for i in 0..copies {
            // SAFETY: the elements are there and their places in the stage nobody's, as the caller promised.
            unsafe { copy(stage.address(self.into + i * onward), from.address(0), Self::BYTES, true) };
            from = from.starting_at(self.further);
        }
    }
}

/// Starts copying 4, 8 or 16 bytes, or zeros.
///
/// # Safety
/// Where `inside`, the source lies within its operand; both addresses are aligned to the bytes; nobody reads the copy
/// before it was waited for.
#[inline(always)]
unsafe fn copy(into: ptx::SharedAddress, from: ptx::GlobalAddress, bytes: u32, inside: bool) {
    // SAFETY: where `inside` the source is there, both are aligned to the bytes, and nobody reads the copy yet: as the
    // caller promised.
    unsafe {
        match bytes {
            16 => ptx::cp_async_16(into, from, inside),
            8 => ptx::cp_async_8(into, from, inside),
            _ => ptx::cp_async_4(into, from, inside),
        }
    }
}
