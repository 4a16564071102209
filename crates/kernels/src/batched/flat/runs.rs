//! How `batched_flat` moves matrices: as runs of pieces of 16 bytes, and by elements what lies before the first whole piece and behind the
//! last.

use super::Matrix;
use crate::batched::{Batched, matrices::Matrices, side::copy};
use cuda_std::prelude::*;
use model::launch::batched::FlatTile;

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

/// What a lane knows of its block.
pub(super) struct Block<'a, T> {
    x: &'a Batched<T>,
    of: [Matrices<T>; 3],
    /// Elements of each matrix.
    pub(super) len: [u32; 3],
    /// Where they are in a stage.
    places: [u32; 3],
    pub(super) reads_c: bool,
    /// Which of the block's lanes it is, and how many these are.
    lane: u32,
    lanes: u32,
}

impl<'a, T: Scalar> Block<'a, T> {
    const WIDTH: u32 = T::WIDTH as u32;

    #[inline(always)]
    pub(super) fn new(x: &'a Batched<T>, tile: &FlatTile, lane: u32, lanes: u32) -> Self {
        let of_a = Matrices::new(x.a, x.codes & 255);
        let of_b = Matrices::new(x.b, x.codes >> 8 & 255);
        let of_c = Matrices::new(x.c, x.codes >> 16 & 255);
        let (len, places) = ([x.m * x.k, x.k * x.n, x.m * x.n], [0, tile.b_at, tile.c_at]);
        Block { x, of: [of_a, of_b, of_c], len, places, reads_c: !x.beta.is_zero(), lane, lanes }
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
            let of = self.of[i].of;
            let skew = (skews >> (2 * i) & 3) + problem * self.len[i];
            Matrix { shared: shared[i], skew, row: of.row as u32, col: of.col as u32 }
        };
        [matrix(0), matrix(1), matrix(2)]
    }

    /// Starts copying what is read of problems into a stage.
    ///
    /// # Safety
    /// There are the problems; the operands span their elements; nobody accesses the stage before the copies were waited for.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, starts: [Global<T>; 3], problems: u32, skews: u32, stage: Shared<T>) {
        for i in 0..3 {
            if i < 2 || self.reads_c {
                let run = Run::new::<T>(skews >> (2 * i) & 3, problems * self.len[i]);
                // SAFETY: matrix i of each of `problems` is `len[i]` elements behind the one before, and its place in
                // the stage nobody's, as the caller promised.
                unsafe { self.copy(starts[i], run, stage.starting_at(self.places[i])) };
            }
        }
    }

    /// Starts copying matrices.
    ///
    /// # Safety
    /// As for [`Block::fill`].
    #[inline(always)]
    unsafe fn copy(&self, from: Global<T>, run: Run, into: Shared<T>) {
        for piece in (run.first + self.lane..run.end).step_by(self.lanes as usize) {
            let at = piece * Self::WIDTH;
            let into = into.address(FlatTile::place(at, Self::WIDTH));
            // SAFETY: a whole piece of the matrix, aligned on both sides.
            unsafe { ptx::cp_async_16(into, from.address((at - run.skew) as u64), true) };
        }
        if Self::WIDTH > 1
            && let Some(at) = run.single(self.lane)
        {
            // SAFETY: an element of the matrix.
            unsafe { copy::<T>(into.address(FlatTile::place(run.skew + at, Self::WIDTH)), from.address(at as u64)) };
        }
    }

    /// Stores C as it is in shared memory.
    ///
    /// # Safety
    /// C is whole and the block's; it spans its elements.
    #[inline(always)]
    pub(super) unsafe fn drain(&self, from: Shared<T>, run: Run, into: Global<T>) {
        let mut piece = run.first + self.lane;
        // SAFETY: whole pieces of the matrix, aligned on both sides, and elements of it.
        unsafe {
            let load = |piece: u32| from.load_wide(FlatTile::place(piece * Self::WIDTH, Self::WIDTH));
            let store =
                |piece: u32, wide: T::Wide| into.store_wide((piece * Self::WIDTH - run.skew) as u64, |i| wide[i]);
            // Several are loaded before the first is stored: shared memory takes a while.
            while piece + (DRAINED - 1) * self.lanes < run.end {
                let wide: [T::Wide; DRAINED as usize] = core::array::from_fn(|i| load(piece + i as u32 * self.lanes));
                for i in 0..DRAINED {
                    store(piece + i * self.lanes, wide[i as usize]);
                }
                piece += DRAINED * self.lanes;
            }
            while piece < run.end {
                store(piece, load(piece));
                piece += self.lanes;
            }
            if Self::WIDTH > 1
                && let Some(at) = run.single(self.lane)
            {
                into.store(at as u64, from.load(FlatTile::place(run.skew + at, Self::WIDTH)));
            }
        }
    }
}

/// Pieces of C that a lane loads at a time.
const DRAINED: u32 = 4;
