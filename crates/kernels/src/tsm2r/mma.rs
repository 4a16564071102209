//! `tsm2r_mma`: A and B through a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! `mma.m16n8k16` multiplies twice as fast as the vector units and takes a fragment of B once for 16 rows. The order of
//! k within 16 is free as long as A and B agree: lane q of a group takes steps 4q .. 4q + 3 of both, so that its
//! fragment of B is two loads of 16 bytes down a column, and its fragment of A four, of two rows or of two steps each.
//!
//! Measured on an H200 on 2026-11-21 at m = k = 20480: 96% of the bound at n = 16, 91% at 32, 76% at 48
//! (benches/results/h200/tsm2r.csv).
//!
//! # Thread mapping
//! A warp owns 16·RB rows and 8·NT columns; warps that share rows are neighbours. Lane (g, q) = (lane / 4, lane % 4)
//! holds of each 16 x 8 tile of C two columns of two rows: by columns of A rows 2g and 2g + 1, since they come in one
//! load, by rows g and g + 8.

use super::ring::{Ring, Tile};
use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Warps of RB x NT tiles of 16 x 8 of a block of shape S.
pub struct Mma<S, const RB: usize, const NT: usize>(PhantomData<S>);

impl<S: Tile, const RB: usize, const NT: usize> Mma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 16 == 0, "whole fragments");
        assert!(S::BN % (8 * NT as u32) == 0, "whole warps along the columns");
        assert!(S::THREADS / 32 / Self::COLS * 16 * RB as u32 == S::BM, "the warps' sums are the block's");
    };
    /// Warps along the columns of C.
    const COLS: u32 = S::BN / (8 * NT as u32);

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f64>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let row = |i: usize| (warp / Self::COLS * RB as u32 + i as u32) * 16;
        let col = |j: usize| (warp % Self::COLS * NT as u32 + j as u32) * 8;
        let mut rc = [[[0.0; 4]; NT]; RB]; // (RB, NT) tiles

        let load_a = |sa: Shared<f64>, l: u32| -> [[f64; 8]; RB] {
            // SAFETY: 16 steps from l on are inside the stage at hand.
            core::array::from_fn(|i| unsafe { Self::fragment(sa, row(i), g, l + 4 * q) })
        };
        let load_b = |sb: Shared<f64>, l: u32, j: usize| -> [f64; 4] {
            let at = Ring::<f64, S, true>::b_at(l + 4 * q, col(j) + g);
            // SAFETY: the same.
            let (low, high) = unsafe { (sb.load_wide(at), sb.load_wide(at + 2)) };
            [low[0], low[1], high[0], high[1]]
        };

        // SAFETY: the caller's promise; all lanes of the warp are here.
        unsafe {
            Ring::<f64, S, true>::run(&x, |sa, sb| {
                for l in (0..S::KT).step_by(16) {
                    let ra = load_a(sa, l);
                    for j in 0..NT {
                        let rb = load_b(sb, l, j);
                        for i in 0..RB {
                            rc[i][j] = ptx::mma_m16n8k16_f64(ra[i], rb, rc[i][j]);
                        }
                    }
                }
            });
            for i in 0..RB {
                let start = thread::block_idx_x() * S::BM + row(i);
                let rows = if S::A_BY_ROWS { [start + g, start + g + 8] } else { [start + 2 * g, start + 2 * g + 1] };
                for j in 0..NT {
                    let start = thread::block_idx_z() * S::BN + col(j) + 2 * q;
                    let [c00, c01, c10, c11] = rc[i][j];
                    x.write_tile(|r| rows[r], |s| start + s as u32, [[c00, c01], [c10, c11]]);
                }
            }
        }
    }

    /// This lane's part of 16 rows and 16 steps of A, its own from l on: rows by twos, steps by fours.
    ///
    /// # Safety
    /// The stage is whole, and has 16 rows from `row` and 4 steps from `l` on.
    #[inline(always)]
    unsafe fn fragment(sa: Shared<f64>, row: u32, g: u32, l: u32) -> [f64; 8] {
        // SAFETY: promised by the caller.
        let load = |r: u32, s: u32| unsafe { sa.load_wide(Ring::<f64, S, true>::at(row + r, l + s)) };
        if S::A_BY_ROWS {
            let [a, b, c, d] = [load(g, 0), load(g + 8, 0), load(g, 2), load(g + 8, 2)];
            [a[0], b[0], a[1], b[1], c[0], d[0], c[1], d[1]]
        } else {
            let [a, b, c, d] = [load(2 * g, 0), load(2 * g, 1), load(2 * g, 2), load(2 * g, 3)];
            [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]
        }
    }
}
