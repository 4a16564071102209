//! `batched_packed` and `batched_any`: tiles of several whole problems through a ring of stages.
//!
//! # Idea
//! A batch is a stream: however small its matrices are, memory must have enough in flight, in both directions, and every
//! line must be moved once. A block walks over tiles of several problems; those of the next `stages` - 1 turns are on
//! their way into shared memory while one is multiplied (`side.rs`). C's tile comes the same way where β is not 0, is
//! written in shared memory, and leaves as it lies in device memory. Sizes are known at run time only; what is constant
//! is the part of C that a thread has in registers.
//!
//! # Thread mapping
//! Blocks take tiles in turn, as many blocks as the GPU holds. A product has ⌈m / TM⌉ x ⌈n / TN⌉ threads, those along the
//! rows first; thread (i, j) owns rows i, i + ⌈m / TM⌉, ... and columns j, j + ⌈n / TN⌉, ...: neighbours read neighbouring rows.
//! Of rows and columns past the last it computes the last again, and stores nothing.
//! # Tile parameters
//! TM x TN sums a thread in THREADS threads a block, which are enough for one product; where a tile has more problems than
//! they compute at a time, they take the next ones then.
//! # Zero β, tails
//! β = 0 never reads C; the last tile has fewer problems.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k: the same bits wherever the product lies, and in whatever tile.
//! # Cost
//! Each matrix is read once and each C written once, whole pieces of 16 bytes where a tile is a run.

use super::{Batched, side::Side};
use cuda_std::prelude::*;
use model::launch::batched::Tile;

/// Entries for batches whose operands are packed.
#[allow(non_upper_case_globals)]
pub(super) const packed: bool = true;
/// Those for all others.
#[allow(non_upper_case_globals)]
pub(super) const any: bool = false;

/// Steps of k whose loads go out together: of 16-byte elements half as many, for the registers.
const fn unroll<T: Scalar>() -> u32 {
    if T::WIDTH == 1 { 2 } else { 4 }
}

/// This thread's part of a tile.
struct Unit<const TM: usize, const TN: usize> {
    /// Its first problem; the largest number where it has none.
    problem: u32,
    /// Problems that the block's threads compute at a time.
    turn: u32,
    row: u32,
    col: u32,
    rows_on: u32,
    cols_on: u32,
}

impl<const TM: usize, const TN: usize> Unit<TM, TN> {
    #[inline(always)]
    fn new(m: u32, n: u32, threads: u32) -> Self {
        let (down, along) = (m.div_ceil(TM as u32).max(1), n.div_ceil(TN as u32).max(1));
        let own = thread::thread_idx_x();
        let (problem, unit, turn) = (own / (down * along), own % (down * along), threads / (down * along));
        let problem = if problem < turn { problem } else { u32::MAX };
        Unit { problem, turn, row: unit % down, col: unit / down, rows_on: down, cols_on: along }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> u32 {
        self.row + i as u32 * self.rows_on
    }

    #[inline(always)]
    fn col(&self, j: usize) -> u32 {
        self.col + j as u32 * self.cols_on
    }

    /// The sums of one problem of a stage.
    ///
    /// # Safety
    /// The stage is whole and has the problem.
    #[inline(always)]
    unsafe fn multiply<T: Scalar>(
        &self,
        x: &Batched<T>,
        problem: u32,
        (a, sa): (&Side<T>, Shared<T>),
        (b, sb): (&Side<T>, Shared<T>),
    ) -> [[T; TN]; TM] {
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        let conj_b = x.conj_b();
        let mut pa: [Shared<T>; TM] =
            core::array::from_fn(|i| sa.starting_at(problem * a.shared.each + self.row(i).min(x.m - 1) * a.down));
        let mut pb: [Shared<T>; TN] =
            core::array::from_fn(|j| sb.starting_at(problem * b.shared.each + self.col(j).min(x.n - 1) * b.across));
        // SAFETY: rows below m, columns below n and steps below k.
        let mut step = |on: u32| unsafe {
            let ra: [T; TM] = core::array::from_fn(|i| pa[i].load(on * a.across));
            let rb: [T; TN] = core::array::from_fn(|j| pb[j].load(on * b.down).conj_if(conj_b));
            for i in 0..TM {
                for j in 0..TN {
                    rc[i][j] = ra[i].fma(rb[j], rc[i][j]);
                }
            }
            if on == unroll::<T>() - 1 {
                pa = pa.map(|p| p.starting_at(unroll::<T>() * a.across));
                pb = pb.map(|p| p.starting_at(unroll::<T>() * b.down));
            }
        };
        let mut l = 0;
        while l + unroll::<T>() <= x.k {
            for on in 0..unroll::<T>() {
                step(on);
            }
            l += unroll::<T>();
        }
        for on in 0..x.k - l {
            step(on);
        }
        rc
    }

    /// Writes them into C's part of shared memory, which holds C where β is not 0.
    ///
    /// # Safety
    /// It has the problem, and nobody else accesses it.
    #[inline(always)]
    unsafe fn write<T: Scalar>(&self, x: &Batched<T>, problem: u32, (c, sc): (&Side<T>, Shared<T>), rc: [[T; TN]; TM]) {
        let reads = !x.beta.is_zero();
        for i in 0..TM {
            for j in 0..TN {
                if self.row(i) < x.m && self.col(j) < x.n {
                    let at = problem * c.shared.each + self.row(i) * c.down + self.col(j) * c.across;
                    // SAFETY: inside of C's part.
                    unsafe {
                        let old = if reads { sc.load(at) } else { T::ZERO };
                        sc.store(at, x.scaled(rc[i][j], old));
                    }
                }
            }
        }
    }
}

/// # Safety
/// Launched with THREADS threads a block, [`Tile::shared_len`] elements of shared memory, `problems` and `stages` of a tile
/// that fits, and at most as many blocks as there are tiles; m, n >= 1, operands that span their elements and lie as their
/// codes say.
#[inline(always)]
pub unsafe fn body<T: Scalar, const TM: usize, const TN: usize, const THREADS: usize, const PACKED: bool>(
    x: Batched<T>,
) {
    const { assert!(TM > 0 && TN > 0 && THREADS % 32 == 0, "whole warps, and something for each thread") };
    let threads = THREADS as u32;
    let unit = Unit::<TM, TN>::new(x.m, x.n, threads);
    let owners = unit.rows_on * unit.cols_on;
    let a = Side::new::<PACKED>(x.a, (x.m, x.k), x.codes & 255, owners, threads);
    let b = Side::new::<PACKED>(x.b, (x.k, x.n), x.codes >> 8 & 255, owners, threads);
    let c = Side::new::<PACKED>(x.c, (x.m, x.n), x.codes >> 16 & 255, owners, threads);
    let reads_c = !x.beta.is_zero();
    let tile = Tile::new([a.shared, b.shared, c.shared], x.problems, reads_c, T::WIDTH as u32);
    let (problems, turn) = (x.problems.max(1), thread::grid_dim_x());
    let tiles = x.count.div_ceil(problems);
    let here = |tile: u32| (tile * problems, (x.count - tile * problems).min(problems));
    let stage = |index: u32| {
        let sa = Shared::<T>::at(index * tile.stage_len);
        let sc = if reads_c { sa.starting_at(tile.c_at) } else { Shared::at(x.stages * tile.stage_len) };
        (sa, sa.starting_at(tile.b_at), sc)
    };
    // Of the next tile to be copied, and of the next to be multiplied, its number and its stage.
    let (mut next, mut next_stage, mut at, mut now) = (thread::block_idx_x(), 0, thread::block_idx_x(), 0);
    let (mut primed, mut again) = (1, false);
    // SAFETY: stages and C's tile are those of `Tile`, so inside the launch's shared memory; `here` counts problems
    // below `count`; barriers lie between filling, multiplying and storing.
    unsafe {
        while at < tiles {
            if primed >= x.stages {
                match x.stages {
                    2 => ptx::cp_async_wait_group::<0>(),
                    3 => ptx::cp_async_wait_group::<1>(),
                    _ => ptx::cp_async_wait_group::<2>(),
                }
                thread::sync_threads(); // this stage is whole, and the last tile of C is stored
            }
            if next < tiles {
                let ((sa, sb, sc), (first, problems)) = (stage(next_stage), here(next));
                if !(again && a.is_single()) {
                    a.fill(sa, first, problems);
                }
                if !(again && b.is_single()) {
                    b.fill(sb, first, problems);
                }
                if reads_c {
                    c.fill(sc, first, problems);
                }
            }
            ptx::cp_async_commit_group();
            next += turn;
            next_stage += 1;
            if next_stage == x.stages {
                (next_stage, again) = (0, true); // what all problems share is in every stage
            }
            if primed < x.stages {
                primed += 1;
                continue;
            }
            let ((sa, sb, sc), (first, problems)) = (stage(now), here(at));
            let (sa, sb) = (sa.starting_at(a.skew(first)), sb.starting_at(b.skew(first)));
            let mut problem = unit.problem;
            while problem < problems {
                let sums = unit.multiply(&x, problem, (&a, sa), (&b, sb));
                unit.write(&x, problem, (&c, sc.starting_at(c.skew(first))), sums);
                problem += unit.turn;
            }
            thread::sync_threads(); // C's tile is whole
            c.drain(sc, first, problems);
            at += turn;
            now = if now + 1 == x.stages { 0 } else { now + 1 };
        }
    }
}
