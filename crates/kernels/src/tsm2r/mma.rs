//! `tsm2r_mma`: A and B through a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! `mma.m16n8k8` multiplies twice as fast as the vector units and takes a fragment of B once for 16 rows. The order of
//! k within 16 is free as long as A and B agree: lane q of a group takes steps 4q .. 4q + 3 of both, two at a time (by rows of
//! A 2q and 2q + 1, and the same 8 further on), so that its fragment of B is a load of 16 bytes down a column, and its
//! fragment of A two, of two rows or of two steps each. (`m16n8k16` multiplies no faster, and its fragments would leave no registers for those of the next step.)
//!
//! Measured on an H200 on 2026-11-28 at m = k = 20480: 96% of the bound at n = 16, 95% at 32, 83% at 48; with A, B and C by rows 94, 90 and 75%
//! (benches/results/h200/tsm2r.csv).
//!
//! # Thread mapping
//! A warp owns 16·RB rows and all 8·NT columns of the block. Lane (g, q) = (lane / 4, lane % 4)
//! holds of each 16 x 8 tile of C two columns of two rows: by columns of A rows 2g and 2g + 1, since they come in one
//! load, by rows g and g + 8.

use super::ring::{Ring, Stage, Steps, Tile, tile_of_c};
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The sums of a warp of a block of shape S: RB x NT tiles of 16 x 8.
pub struct Mma<S, const RB: usize, const NT: usize> {
    rc: [[[f64; 4]; NT]; RB], // (RB, NT) tiles
    /// Where this lane's fragments of the first tiles, of both halves of 16 steps, start in A's and B's part of a stage.
    a: [u32; 2],
    b: [u32; 2],
    shape: PhantomData<S>,
}

impl<S: Tile, const RB: usize, const NT: usize> Mma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 16 == 0, "whole fragments");
        assert!(S::BN == 8 * NT as u32, "a warp has all of the block's columns");
        assert!(S::THREADS / 32 * 16 * RB as u32 == S::BM, "the warps' sums are the block's");
    };
    /// Lane q's two steps of a half start at FIRST · q, and SECOND further on in the other half.
    const FIRST: u32 = if S::A_BY_ROWS { 2 } else { 4 };
    const SECOND: u32 = if S::A_BY_ROWS { 8 } else { 2 };

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f64>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let row = warp * 16 * RB as u32;
        let rows = if S::A_BY_ROWS { [g, g + 8] } else { [2 * g, 2 * g + 1] };
        // SAFETY: the caller's promise; all lanes of the warp are here.
        unsafe {
            let mut sums = Self {
                rc: [[[0.0; 4]; NT]; RB],
                a: Ring::<f64, S, true>::places(
                    |l| Ring::<f64, S, true>::at(row + rows[0], Self::FIRST * q + l),
                    Self::SECOND,
                ),
                b: Ring::<f64, S, true>::places(|l| Ring::<f64, S, true>::b_at(Self::FIRST * q + l, g), Self::SECOND),
                shape: PhantomData,
            };
            Ring::<f64, S, true>::run(&x, &mut sums);
            let mut rc = [sums.rc];
            if x.slot_len == 0 && !join(&x, S::THREADS, tile_of_c(), &mut rc) {
                return;
            }
            let [rc] = rc;
            for i in 0..RB {
                let start = thread::block_idx_x() * S::BM + row + 16 * i as u32;
                for j in 0..NT {
                    let first = thread::block_idx_z() * S::BN + 8 * j as u32 + 2 * q;
                    let [c00, c01, c10, c11] = rc[i][j];
                    x.write_tile(|r| start + rows[r], |s| first + s as u32, [[c00, c01], [c10, c11]]);
                }
            }
        }
    }
}

/// A step is half of 16 steps of k: two of each lane's four.
impl<S: Tile, const RB: usize, const NT: usize> Steps<f64> for Mma<S, RB, NT> {
    const COUNT: u32 = S::KT / 8;
    const AHEAD: bool = true;
    const TAKES_TURNS: bool = model::launch::ring_takes_turns(S::A_BY_ROWS, true, 8 * NT as u32);
    type Operands = ([[f64; 4]; RB], [[f64; 2]; NT]);
    const ZEROS: Self::Operands = ([[0.0; 4]; RB], [[0.0; 2]; NT]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<f64>, step: u32) -> Self::Operands {
        let pitch = Ring::<f64, S, true>::PITCH;
        let half = step % 2;
        let (sa, sb) = (stage.a.starting_at(self.a[half as usize]), stage.b.starting_at(self.b[half as usize]));
        let l = step / 2 * 16 + Ring::<f64, S, true>::rest(half * Self::SECOND); // and this lane's FIRST · q
        // What a tile further on, or steps further on, adds to a lane's places does not depend on the lane.
        let fragment = |i: u32| {
            // SAFETY: the step is inside the stage, and so are the warp's rows.
            unsafe {
                if S::A_BY_ROWS {
                    let (a, b) = (sa.load_wide(16 * i * pitch + l), sa.load_wide((16 * i + 8) * pitch + l));
                    [a[0], b[0], a[1], b[1]]
                } else {
                    let (a, b) = (sa.load_wide(l * S::BM + 16 * i), sa.load_wide((l + 1) * S::BM + 16 * i));
                    [a[0], a[1], b[0], b[1]]
                }
            }
        };
        let ra = core::array::from_fn(|i| fragment(i as u32));
        // SAFETY: the same of the warp's columns.
        let rb = core::array::from_fn(|j| unsafe { sb.load_wide(Ring::<f64, S, true>::b_at(0, 8 * j as u32) + l) });
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        for i in 0..RB {
            for j in 0..NT {
                // SAFETY: promised by the caller.
                self.rc[i][j] = unsafe { ptx::mma_m16n8k8_f64(ra[i], rb[j], self.rc[i][j]) };
            }
        }
    }
}
