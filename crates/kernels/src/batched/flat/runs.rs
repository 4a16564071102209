//! How `batched_flat` moves matrices: line by line where these are whole pieces of 16 bytes, else as one run of pieces, and by elements what
//! lies before the first whole piece and behind the last.

use super::Matrix;
use crate::batched::{Batched, matrices::Matrices, side::copy};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_LANES;
use model::launch::batched::{FlatSide, FlatTile};

/// The pieces of 16 bytes of matrices that begin `skew` elements past one.
pub(super) struct Run {
    skew: u32,
    /// Whole ones, counted from the one in which it begins.
    first: u32,
    end: u32,
    /// Elements before them, and the first one behind.
    head: u32,
    tail_at: u32,
    len: u32,
}

impl Run {
    #[inline(always)]
    pub(super) fn new<T: Scalar>(skew: u32, len: u32) -> Run {
        let width = T::WIDTH as u32;
        let (first, end) = (skew.min(1), (skew + len) / width);
        let head = if skew == 0 { 0 } else { (width - skew).min(len) };
        let tail_at = if end > first { end * width - skew } else { head };
        Run { skew, first, end, head, tail_at, len }
    }

    /// The element outside of whole pieces that a lane moves, if there is one.
    #[inline(always)]
    fn single(&self, lane: u32) -> Option<u32> {
        let at = if lane < self.head { lane } else { self.tail_at + (lane - self.head) };
        (at < self.len).then_some(at)
    }
}

/// Pieces of C that a lane loads at a time: shared memory takes a while.
const DRAINED: usize = 4;

/// What a lane knows of its block.
#[derive(Clone)]
pub(super) struct Block<'a, T> {
    x: &'a Batched<T>,
    of: [Matrices<T>; 3],
    /// How they lie in shared memory.
    sides: [FlatSide; 3],
    /// Which of the block's lanes it is, and how many these are.
    lane: u32,
    lanes: u32,
}

impl<'a, T: Scalar> Block<'a, T> {
    const WIDTH: u32 = T::WIDTH as u32;
    /// Most pieces of a line, and so many lanes take each line.
    const PIECES: u32 = WARP_LANES / Self::WIDTH;

    #[inline(always)]
    pub(super) fn new(x: &'a Batched<T>, tile: &FlatTile, lane: u32, lanes: u32) -> Self {
        let of_a = Matrices::new(x.a, x.codes & 255);
        let of_b = Matrices::new(x.b, x.codes >> 8 & 255);
        let of_c = Matrices::new(x.c, x.codes >> 16 & 255);
        Block { x, of: [of_a, of_b, of_c], sides: tile.sides, lane, lanes }
    }

    /// Where the matrices of problems begin, if there is the problem.
    ///
    /// # Safety
    /// As for [`Matrices::start`].
    #[inline(always)]
    pub(super) unsafe fn starts(&self, problem: u32) -> [Global<T>; 3] {
        // SAFETY: the list has `count` problems, as the caller promised; past them `start` loads nothing.
        self.of.map(|of| of.of.base.starting_at(unsafe { of.start(problem, self.x.count) }))
    }

    /// Elements by which matrices begin past a piece: two bits each.
    #[inline(always)]
    pub(super) fn skews(&self, starts: [Global<T>; 3]) -> u32 {
        let [a, b, c] = starts.map(|start| start.past(16) / size_of::<T>() as u32);
        a | b << 2 | c << 4
    }

    /// Problems of a stage from this one on.
    #[inline(always)]
    pub(super) fn problems(&self, first: u32) -> u32 {
        (self.x.count - first).min(self.x.problems)
    }

    /// A, B and C of a problem of a stage in shared memory.
    #[inline(always)]
    pub(super) fn matrices(&self, shared: [Shared<T>; 3], skews: u32, problem: u32) -> [Matrix<T>; 3] {
        let matrix = |i: usize| {
            let (of, side) = (&self.of[i], &self.sides[i]);
            let first = shared[i].starting_at((skews >> (2 * i) & 3) + problem * side.each());
            // Of a matrix without gaps the lines are a pitch apart, spaced or not.
            let (row, col) = (of.of.row as u32, of.of.col as u32);
            let (row, col) = match (side.by_lines, of.by_columns()) {
                (false, _) => (row, col),
                (true, true) => (row, side.pitch),
                (true, false) => (side.pitch, col),
            };
            Matrix { first, row, col }
        };
        [matrix(0), matrix(1), matrix(2)]
    }

    /// The run of so many matrices `i` that begin so far past a piece.
    #[inline(always)]
    fn run(&self, i: usize, problems: u32, skews: u32) -> Run {
        Run::new::<T>(skews >> (2 * i) & 3, problems * self.sides[i].each())
    }

    /// The same, of whose lane the compiler knows nothing any more: [`super::Own::again`].
    ///
    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    unsafe fn again(&self) -> Self {
        // SAFETY: all lanes of the warp are here, as the caller promised.
        Block { lane: unsafe { ptx::pinned(self.lane) }, ..self.clone() }
    }

    /// Starts copying matrices `i` of problems, of which the first is given.
    ///
    /// # Safety
    /// All lanes of the warp are here and there are the problems; the operands span their elements; nobody accesses the place before the
    /// copies were waited for.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, i: usize, from: Global<T>, problems: u32, skews: u32, into: Shared<T>) {
        // SAFETY: each of the matrices is right behind the one before, and their place nobody's, as the caller promised.
        unsafe {
            let again = self.again();
            if self.sides[i].by_lines {
                again.each_piece(i, problems, |at, there| {
                    ptx::cp_async_16(into.address(at), from.address(there), true);
                });
            } else {
                again.copy_run(from, self.run(i, problems, skews), into);
            }
        }
    }

    /// This lane's pieces of matrices `i` that move line by line, by where they are in shared memory and in device memory.
    #[inline(always)]
    fn each_piece(&self, i: usize, problems: u32, mut of: impl FnMut(u32, u64)) {
        let FlatSide { lines, len, pitch, .. } = self.sides[i];
        let along = self.lane % Self::PIECES * Self::WIDTH;
        if along < len {
            for line in (self.lane / Self::PIECES..problems * lines).step_by((self.lanes / Self::PIECES) as usize) {
                of(line * pitch + along, (line * len + along) as u64);
            }
        }
    }

    /// Starts copying matrices that are one run.
    ///
    /// # Safety
    /// As for [`Block::fill`].
    #[inline(always)]
    unsafe fn copy_run(&self, from: Global<T>, run: Run, into: Shared<T>) {
        for piece in (run.first + self.lane..run.end).step_by(self.lanes as usize) {
            let at = piece * Self::WIDTH;
            // SAFETY: a whole piece of the matrix, aligned on both sides.
            unsafe { ptx::cp_async_16(into.address(at), from.address((at - run.skew) as u64), true) };
        }
        if Self::WIDTH > 1
            && let Some(at) = run.single(self.lane)
        {
            // SAFETY: an element of the matrix.
            unsafe { copy::<T>(into.address(run.skew + at), from.address(at as u64)) };
        }
    }

    /// Stores the problems' C as it is in shared memory.
    ///
    /// # Safety
    /// C is whole and the block's; it spans its elements; all lanes of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn drain(&self, from: Shared<T>, problems: u32, skews: u32, into: Global<T>) {
        // SAFETY: whole pieces of the matrix, aligned on both sides, and elements of it.
        unsafe {
            let again = self.again();
            if self.sides[2].by_lines {
                again.each_piece(2, problems, |at, there| {
                    let wide = from.load_wide(at);
                    into.store_wide(there, |i| wide[i]);
                });
                return;
            }
            let run = self.run(2, problems, skews);
            let mut piece = run.first + again.lane;
            let load = |piece: u32| from.load_wide(piece * Self::WIDTH);
            let store =
                |piece: u32, wide: T::Wide| into.store_wide((piece * Self::WIDTH - run.skew) as u64, |i| wide[i]);
            while piece + (DRAINED as u32 - 1) * self.lanes < run.end {
                let wide: [T::Wide; DRAINED] = core::array::from_fn(|i| load(piece + i as u32 * self.lanes));
                for i in 0..DRAINED {
                    store(piece + i as u32 * self.lanes, wide[i]);
                }
                piece += DRAINED as u32 * self.lanes;
            }
            while piece < run.end {
                store(piece, load(piece));
                piece += self.lanes;
            }
            if Self::WIDTH > 1
                && let Some(at) = run.single(again.lane)
            {
                into.store(at as u64, from.load(run.skew + at));
            }
        }
    }
}
