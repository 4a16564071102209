//! `batched_over`: problems that lie one behind the other, some at a time in a block's only stage, where C lies over A and B: from sm_90 on.
//!
//! # Idea
//! [`bulk`](super::bulk)'s ring needs two stages or more of A, B and C. Of large problems an SM has room for few of these, and so for few lanes with
//! few sums each, whose loads are as many as their multiply-adds. Here a block has A and B of one group, and when all of it is multiplied, C in
//! their place; while it waits, the SM's other blocks multiply. Registers decide how many these are, and lanes have larger tiles: 20 x 20 in c64
//! by 5 x 5 sums took 0.95 of the bound on an H200 on 2026-11-30, the ring 0.67. Where that is near the bound, too, it is within 2% in most sizes, and
//! far behind where tiles with an odd side meet in banks or reach far past a matrix: of multiples of four.
//!
//! # Thread mapping
//! The units of a stage's problems, TM x TN sums each, are the block's lanes': `runs.rs`. Blocks take groups in turn.
//! # Preconditions
//! As of [`bulk`](super::bulk).
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. The last group, which may be no whole pieces, is copied by the lanes, element by element.
//! # Determinism
//! As of [`bulk`](super::bulk).
//! # Cost
//! Each matrix is read once and each C written once. Of m = n = k = 20 in c64, β = 0, an H200's memory takes 574 cycles an SM for a problem, and its
//! schedulers 250 for the multiply-adds alone.
//! Measured: `benches/results/h200/batched.csv`; tiles and blocks that were tried, `benches/results/trials/by-runs.csv`.

use super::Batched;
use super::runs::{Runs, load_piece, store_piece};
use cuda_std::prelude::*;
use model::launch::batched::BulkTile;

/// # Safety
/// As of [`bulk::body`](super::bulk::body), for `BulkTile::over` and one stage.
#[inline(always)]
pub unsafe fn body<T: Scalar, const TM: usize, const TN: usize, const STEPS: u32>(x: Batched<T>) {
    let runs = Runs::<T, TM, TN, STEPS>::new(&x, BulkTile::over([x.m, x.n, x.k], x.problems, T::WIDTH as u32));
    let (stage, ready) = (runs.stage(0), runs.ready(1).address(0));
    let mut parity = 0;
    // SAFETY: shared memory is as the launch promised, and nothing else is in it. Threads meet before C comes, when they have multiplied, and before it
    // leaves, when they have written. Before A and B come again it has left: the one thread that asks for them has waited for that, and where
    // all threads copy they meet.
    unsafe {
        if runs.lane == 0 {
            ptx::mbarrier_init(ready, 1);
            ptx::fence_proxy_async();
        }
        thread::sync_threads(); // nobody waits at what is not there
        let mut wait = |is_whole: bool| {
            ptx::mbarrier_wait(ready, parity);
            parity ^= 1;
            if !is_whole {
                thread::sync_threads(); // what lanes copied is there too
            }
        };
        let (mut group, groups) = (thread::block_idx_x(), runs.groups());
        while group < groups {
            let problems = runs.problems(group);
            let (is_whole, has_unit) = (runs.is_whole(problems), runs.has_unit(problems));
            if !is_whole {
                thread::sync_threads(); // the group before has left, from where lanes copy to
            }
            runs.fetch([true, true, false], stage, ready, group);
            wait(is_whole);
            let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
            if has_unit {
                let unit = Unit::new(&runs, runs.lane);
                rc = runs.sums(stage.starting_at(unit.a), stage.starting_at(unit.b));
            }
            // Behind what threads wrote where C comes (elements at the edge) a bulk copy comes by a fence alone; behind what they read, by the barrier.
            ptx::fence_proxy_async();
            thread::sync_threads(); // A and B are done with
            if !x.beta.is_zero() {
                runs.fetch([false, false, true], stage, ready, group);
                wait(is_whole);
            }
            if has_unit {
                // Worked out anew: meanwhile sums have its registers.
                Unit::new(&runs, ptx::opaque(runs.lane)).write(&runs, stage, rc);
            }
            ptx::fence_proxy_async();
            thread::sync_threads(); // and C is whole
            runs.drain(stage, group);
            ptx::bulk_wait_group_read::<0>();
            group += thread::grid_dim_x();
        }
        ptx::bulk_wait_group::<0>();
    }
}

/// A lane's unit, and where its A, B and C begin in the stage.
struct Unit<const TM: usize, const TN: usize> {
    /// Its first rows and columns that another unit has too: it begins so early if there are not as many of its own.
    others_rows: u32,
    others_cols: u32,
    a: u32,
    b: u32,
    c: u32,
}

impl<const TM: usize, const TN: usize> Unit<TM, TN> {
    #[inline(always)]
    fn new<T: Scalar, const STEPS: u32>(runs: &Runs<T, TM, TN, STEPS>, lane: u32) -> Self {
        let (x, [a, b, c]) = (runs.x, runs.lens());
        let (problem, down, across) = runs.unit_of(lane);
        let (row, col) = (down * TM as u32, across * TN as u32);
        let (from_row, from_col) = (row.min(x.m - TM as u32), col.min(x.n - TN as u32));
        Unit {
            others_rows: row - from_row,
            others_cols: col - from_col,
            a: problem * a + from_row,
            b: runs.tile.b_at + problem * b + from_col * x.k,
            c: problem * c + from_col * x.m + from_row,
        }
    }

    /// C ← α · sums + β C, a column after the other, which takes fewer registers than all of C.
    ///
    /// # Safety
    /// The unit is this thread's, and where β is not 0 its C is there.
    #[inline(always)]
    unsafe fn write<T: Scalar, const STEPS: u32>(
        &self,
        runs: &Runs<T, TM, TN, STEPS>,
        stage: Shared<T>,
        sums: [[T; TN]; TM],
    ) {
        let (x, piece, sc) = (runs.x, Runs::<T, TM, TN, STEPS>::PIECE, stage.starting_at(self.c));
        let at = |i: usize, j: usize| sc.starting_at(j as u32 * x.m + i as u32);
        let is_own = |i: usize, j: usize| i as u32 >= self.others_rows && j as u32 >= self.others_cols;
        x.scaling(|scaled| {
            for j in 0..TN {
                let mut old = [T::ZERO; TM]; // (TM)
                // SAFETY: elements of the problem's C, of which this thread alone has the unit's own.
                unsafe {
                    for i in (0..TM).step_by(piece) {
                        // What is another unit's is being written.
                        if !x.beta.is_zero() && is_own(i, j) {
                            let values = load_piece(at(i, j), piece);
                            for e in 0..piece {
                                old[i + e] = values[e];
                            }
                        }
                    }
                    for i in (0..TM).step_by(piece) {
                        if is_own(i, j) {
                            let of = |e: usize| scaled(sums[(i + e).min(TM - 1)][j], old[(i + e).min(TM - 1)]);
                            store_piece(at(i, j), core::array::from_fn(of), piece);
                        }
                    }
                }
            }
        });
    }
}
