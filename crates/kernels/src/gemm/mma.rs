//! `gemm_mma`: A and B through a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! `mma.m16n8k4` multiplies twice as fast as the vector units. Rows and columns within 16 may be dealt to a fragment in any
//! order, as long as C's are dealt alike: lane (g, q) takes rows 2g and 2g + 1 of A, and columns 2g and 2g + 1 of B for two
//! fragments, of step q, so that both operands come by loads of 16 bytes from a stage that has k as its slow index, and are used
//! from the registers they come in: larger fragments of B, which multiply no faster, would be put together by moves. A warp's
//! 64 x 32 sums are handed 48 bytes a cycle and SM at the units' full rate. The order of k is the natural one: the bits are
//! those of `gemm_staged`.
//!
//! # Thread mapping
//! A warp owns 16·RB rows and 8·NT columns; warps side by side along the rows first. Lane (g, q) = (lane / 4, lane mod 4)
//! holds of each 16 x 16 tile of C rows 2g and 2g + 1, columns 4q .. 4q + 3.

use super::epilogue::write;
use super::ring::{Ring, Stage, Steps, Tile};
use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The sums of a warp of a block of shape S: RB x NT tiles of 16 x 8.
pub struct Mma<S, const RB: usize, const NT: usize> {
    rc: [[[f64; 4]; NT]; RB], // (RB, NT) tiles
    /// Where this lane's fragments of the first tiles start in A's and B's part of a stage.
    a: u32,
    b: u32,
    shape: PhantomData<S>,
}

impl<S: Tile, const RB: usize, const NT: usize> Mma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 8 == 0, "an even number of steps");
        assert!(NT % 2 == 0, "a load is of two fragments of B");
        assert!(S::BM % Self::ROWS == 0 && S::BN % Self::COLS == 0, "whole warps");
        assert!(S::THREADS / 32 == (S::BM / Self::ROWS) * (S::BN / Self::COLS), "the warps' sums are the block's");
    };
    /// Rows and columns of a warp.
    const ROWS: u32 = 16 * RB as u32;
    const COLS: u32 = 8 * NT as u32;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f64>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let warps = S::BM / Self::ROWS;
        let (row, col) = (warp % warps * Self::ROWS, warp / warps * Self::COLS);
        let origin = Ring::<f64, S>::origin(&x);
        // SAFETY: the caller's promise; all lanes of the warp are here, and each owns its elements.
        unsafe {
            let mut sums = Self {
                rc: [[[0.0; 4]; NT]; RB],
                a: ptx::pinned(q * Ring::<f64, S>::A_PITCH + row + 2 * g),
                b: ptx::pinned(q * Ring::<f64, S>::B_PITCH + col + 2 * g),
                shape: PhantomData,
            };
            Ring::<f64, S>::run(&x, origin, &mut sums);
            let (row, col) = (origin.0 + row + 2 * g, origin.1 + col + 4 * q);
            for i in 0..RB {
                for j in (0..NT).step_by(2) {
                    let (even, odd) = (sums.rc[i][j], sums.rc[i][j + 1]);
                    let tile = [[even[0], odd[0], even[1], odd[1]], [even[2], odd[2], even[3], odd[3]]];
                    write(&x, |r| row + (16 * i + r) as u32, |s| col + (8 * j + s) as u32, tile);
                }
            }
        }
    }
}

/// A step is four of k.
impl<S: Tile, const RB: usize, const NT: usize> Steps<f64> for Mma<S, RB, NT> {
    const COUNT: u32 = S::KT / 4;
    type Operands = ([[f64; 2]; RB], [f64; NT]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<f64>, step: u32) -> Self::Operands {
        let sa = stage.a.starting_at(self.a + 4 * step * Ring::<f64, S>::A_PITCH); // and this lane's q
        let sb = stage.b.starting_at(self.b + 4 * step * Ring::<f64, S>::B_PITCH);
        // SAFETY: the step is inside the stage, and so are the warp's rows; pitches are whole 16 bytes.
        let ra = core::array::from_fn(|i| unsafe { sa.load_wide(16 * i as u32) });
        let mut rb = [0.0; NT];
        for j in (0..NT).step_by(2) {
            // SAFETY: the same of the warp's columns.
            let wide = unsafe { sb.load_wide(8 * j as u32) };
            (rb[j], rb[j + 1]) = (wide[0], wide[1]);
        }
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn turn(&mut self, (ra, rb): Self::Operands, stage: Stage<f64>, step: u32) -> Self::Operands {
        // SAFETY: promised by the caller.
        unsafe {
            let next = self.load(stage, step);
            for i in 0..RB {
                for j in 0..NT {
                    self.rc[i][j] = ptx::mma_m16n8k4_f64(ra[i], [rb[j]], self.rc[i][j]);
                }
            }
            next
        }
    }
}
