//! `batched_bulk`: problems that lie one behind the other, several at a time, by bulk copies: from sm_90 on.
//!
//! # Idea
//! The matrices of a batch without gaps are three runs of bytes, whatever their sizes. A stage has so many problems that their parts of the runs are
//! whole pieces of 16 bytes: A, B and a C that is read come by one bulk copy each, C leaves from its place by another. These take no
//! registers of the lanes and no instructions, for odd sizes as for even ones, so that all that lanes do is multiply.
//!
//! # Thread mapping
//! The units of a stage's problems, TM x TN sums each, are the block's lanes': `runs.rs`.
//! # Preconditions
//! All matrices are by columns, without gaps and one behind the other, from a multiple of 16 bytes on; m >= TM, n >= TN; where TM is whole pieces
//! of 16 bytes, m and k are. So many problems a stage that each matrix's part of it is whole pieces.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. The last stage, which may be no whole pieces, is copied by the lanes, element by element.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k, as of the other entries; by rows, where the transposed product is computed, of complex
//! elements with B's parts first.
//! # Cost
//! Each matrix is read once and each C written once. Of m = n = k = 9 in f64, β = 1, an H200's memory takes 140 cycles an SM for a problem; by 3 x
//! 3 sums its schedulers are predicted to take 14, and its shared memory 50.
//! Measured: `benches/results/h200/batched.csv`.

use super::Batched;
use super::runs::{Runs, load_piece, store_piece};
use cuda_std::prelude::*;
use model::launch::batched::BulkTile;

/// Steps of k between which places of B are moved on.
const STEPS: u32 = 4;

/// # Safety
/// Launched with whole warps, a thread at least for each unit of a stage, and `BulkTile::shared_bytes` of shared memory; what [the file](self)
/// asks for, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const TM: usize, const TN: usize>(x: Batched<T>) {
    let tile = BulkTile::new([x.m, x.n, x.k], x.problems, T::WIDTH as u32);
    let runs = Runs::new(&x, tile);
    let own_groups = runs.groups().div_ceil(thread::grid_dim_x());
    let first = thread::block_idx_x() * own_groups;
    let end = (first + own_groups).min(runs.groups());
    let ring = Ring::<T, TM, TN> { ready: runs.ready(x.stages), runs };
    // SAFETY: shared memory is as the launch promised; the groups from `first` on are this block's, all of whose threads are here.
    unsafe {
        ring.run(first, end);
    }
}

/// A block's stages.
struct Ring<'a, T, const TM: usize, const TN: usize> {
    runs: Runs<'a, T, TM, TN, STEPS>,
    ready: Shared<f64>,
}

impl<T: Scalar, const TM: usize, const TN: usize> Ring<'_, T, TM, TN> {
    /// Multiplies the groups of problems from `group` to `end`.
    ///
    /// # Safety
    /// Nothing else is in shared memory; the groups are this block's, all of whose threads are here.
    #[inline(always)]
    unsafe fn run(&self, mut group: u32, end: u32) {
        let Ring { runs, ready } = self;
        let stages = runs.x.stages;
        let after = |stage: u32| if stage + 1 == stages { 0 } else { stage + 1 };
        // The stage that is multiplied, and the group and the stage that are filled; those to be filled before the first is multiplied.
        let (mut now, mut parity) = (0, 0);
        let (mut next, mut next_stage, mut missing) = (group, 0, stages - 1);
        // SAFETY: nothing else is in the mbarriers' place, as the caller promised; a stage is filled when it was read and stored from, and
        // threads meet between all uses of it.
        unsafe {
            if runs.lane == 0 {
                for stage in 0..stages {
                    ptx::mbarrier_init(ready.address(stage), 1);
                }
                ptx::fence_proxy_async();
            }
            thread::sync_threads(); // nobody waits at what is not there
            while group < end {
                if missing > 0 {
                    missing -= 1;
                } else {
                    ptx::mbarrier_wait(ready.address(now), parity);
                    let (stage, problems) = (runs.stage(now), runs.problems(group));
                    if !runs.is_whole(problems) {
                        thread::sync_threads(); // what lanes copied is there too
                    }
                    if runs.has_unit(problems) {
                        self.multiply(stage);
                    }
                    // Of the turn before C has left its stage, which is the next one to be filled.
                    ptx::bulk_wait_group_read::<0>();
                    ptx::fence_proxy_async();
                    thread::sync_threads(); // and this turn's C is whole
                    runs.drain(stage, group);
                    group += 1;
                    now = after(now);
                    parity ^= u32::from(now == 0);
                }
                if next < end {
                    let which = [true, true, !runs.x.beta.is_zero()];
                    runs.fetch(which, runs.stage(next_stage), ready.address(next_stage), next);
                    next += 1;
                    next_stage = after(next_stage);
                }
            }
            ptx::bulk_wait_group::<0>();
        }
    }

    /// C ← α · op(A) op(B) + β C of this lane's unit. All of it here: with a function of their own for places, or for C, the assembler runs out of
    /// registers.
    ///
    /// # Safety
    /// The stage is filled, and has the unit.
    #[inline(always)]
    unsafe fn multiply(&self, stage: Shared<T>) {
        let runs = &self.runs;
        let (x, [a, b, c]) = (runs.x, runs.lens());
        let (problem, down, across) = runs.unit_of(runs.lane);
        let (row, col) = (down * TM as u32, across * TN as u32);
        // Where the unit begins, which is before its first own row or column if there are not as many.
        let (from_row, from_col) = (row.min(x.m - TM as u32), col.min(x.n - TN as u32));
        let sa = stage.starting_at(problem * a + from_row);
        let sb = stage.starting_at(runs.tile.b_at + problem * b + from_col * x.k);
        let sc = stage.starting_at(runs.tile.c_at + problem * c + from_col * x.m + from_row);
        let is_own = |i: usize, j: usize| from_row + i as u32 >= row && from_col + j as u32 >= col;
        let piece = Runs::<T, TM, TN, STEPS>::PIECE;
        // SAFETY: elements of the problem's A, B and C, of which this thread alone has the unit's own.
        unsafe {
            let rc = runs.sums(sa, sb);
            let at = |i: usize, j: usize| sc.starting_at(j as u32 * x.m + i as u32);
            let mut out = [[T::ZERO; TN]; TM]; // (TM, TN)
            for j in 0..TN {
                for i in (0..TM).step_by(piece) {
                    // What is another unit's is being written.
                    if !x.beta.is_zero() && is_own(i, j) {
                        let old = load_piece(at(i, j), piece);
                        for e in 0..piece {
                            out[i + e][j] = old[e];
                        }
                    }
                }
            }
            x.scale(rc, &mut out);
            for j in 0..TN {
                for i in (0..TM).step_by(piece) {
                    if is_own(i, j) {
                        store_piece(at(i, j), core::array::from_fn(|e| out[(i + e).min(TM - 1)][j]), piece);
                    }
                }
            }
        }
    }
}
