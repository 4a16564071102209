//! `tsm2r_mma`: A and B through a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! `mma.m16n8k16` multiplies twice as fast as the vector units and takes a fragment of B once for 16 rows. The order of
//! k within 16 is free as long as A and B agree: lane q of a group takes steps 4q .. 4q + 3 of both, so that its
//! fragment of B is two loads of 16 bytes down a column, and its fragment of A four, of two rows or of two steps each.
//!
//! # Thread mapping
//! A warp owns 16·RB rows and all 8·NT columns. Lane (g, q) = (lane / 4, lane % 4) holds of each 16 x 8 tile of C two
//! columns of two rows: by columns of A rows 2g and 2g + 1, since they come in one load, by rows g and g + 8.

use super::ring::{Ring, Tile};
use crate::product::Product;
use cuda_std::prelude::*;

/// WARPS warps of RB x NT tiles of 16 x 8, KT steps of k a stage; BY_ROWS: A's unit stride runs along its rows.
pub struct Mma<
    const WARPS: usize,
    const RB: usize,
    const NT: usize,
    const KT: usize,
    const STAGES: usize,
    const BY_ROWS: bool,
>;

impl<const WARPS: usize, const RB: usize, const NT: usize, const KT: usize, const STAGES: usize, const BY_ROWS: bool>
    Tile for Mma<WARPS, RB, NT, KT, STAGES, BY_ROWS>
{
    const THREADS: u32 = WARPS as u32 * warp::WARP_LANES;
    const BM: u32 = (WARPS * RB * 16) as u32;
    const BN: u32 = (NT * 8) as u32;
    const KT: u32 = KT as u32;
    const STAGES: u32 = STAGES as u32;
    const A_BY_ROWS: bool = BY_ROWS;
    const B_BY_ROWS: bool = false;
}

impl<const WARPS: usize, const RB: usize, const NT: usize, const KT: usize, const STAGES: usize, const BY_ROWS: bool>
    Mma<WARPS, RB, NT, KT, STAGES, BY_ROWS>
{
    /// # Safety
    /// Launched with WARPS warps a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f64>) {
        const { assert!(KT % 16 == 0, "whole fragments") };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let row = |i: usize| (warp * RB as u32 + i as u32) * 16;
        let mut rc = [[[0.0; 4]; NT]; RB]; // (RB, NT) tiles

        // SAFETY: the caller's promise; all lanes of the warp are here.
        unsafe {
            Ring::<f64, Self>::run(&x, |sa, sb| {
                for l in (4 * q..KT as u32 + 4 * q).step_by(16) {
                    let ra: [[f64; 8]; RB] = core::array::from_fn(|i| Self::fragment(sa, row(i), g, l));
                    for j in 0..NT {
                        let at = Ring::<f64, Self>::b_at(l, j as u32 * 8 + g);
                        let (low, high) = (sb.load_wide(at), sb.load_wide(at + 2));
                        let rb = [low[0], low[1], high[0], high[1]];
                        for i in 0..RB {
                            rc[i][j] = ptx::mma_m16n8k16_f64(ra[i], rb, rc[i][j]);
                        }
                    }
                }
            });
        }
        for i in 0..RB {
            let start = thread::block_idx_x() * Self::BM + row(i);
            let rows = if BY_ROWS { [start + g, start + g + 8] } else { [start + 2 * g, start + 2 * g + 1] };
            for j in 0..NT {
                for v in 0..4 {
                    let col = thread::block_idx_z() * Self::BN + j as u32 * 8 + 2 * q + v as u32 % 2;
                    // SAFETY: each lane owns its rows and columns.
                    unsafe { x.write(rows[v / 2], col, rc[i][j][v]) };
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
        let load = |r: u32, s: u32| unsafe { sa.load_wide(Ring::<f64, Self>::at(row + r, l + s)) };
        if BY_ROWS {
            let [a, b, c, d] = [load(g, 0), load(g + 8, 0), load(g, 2), load(g + 8, 2)];
            [a[0], b[0], a[1], b[1], c[0], d[0], c[1], d[1]]
        } else {
            let [a, b, c, d] = [load(2 * g, 0), load(2 * g, 1), load(2 * g, 2), load(2 * g, 3)];
            [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]
        }
    }
}
