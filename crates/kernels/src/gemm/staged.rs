//! `gemm_staged`: A and B through a ring of stages, TM x TN sums a thread, fused multiply-adds.
//!
//! # Idea
//! What a thread is handed of a step, TM + TN elements, grows with the sides of its tile, and what it multiplies with the
//! area: shared memory hands an SM 128 bytes a cycle, which is what 8 x 8 sums of f32 take at the multipliers' full rate,
//! and 8 x 16 take three quarters of it.
//!
//! # Thread mapping
//! Warps have 8·TM x 4·TN of the block's tile each, side by side along the rows first. Lane (r, c) = (lane mod 8, lane / 8)
//! owns WIDTH neighbouring rows out of every 8·WIDTH and as many columns out of every 4·WIDTH, 16 bytes each: a warp's
//! loads ask for 128 and 64 bytes.

use super::epilogue::write;
use super::ring::{Ring, Stage, Steps, Tile};
use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Lanes of a warp along the rows and along the columns of C.
const DOWN: u32 = 8;
const ACROSS: u32 = 4;

/// The sums of a thread of a block of shape S: TM x TN.
pub struct Staged<T, S, const TM: usize, const TN: usize> {
    rc: [[T; TN]; TM],
    /// This thread's first row and column of the block's tile.
    row: u32,
    col: u32,
    /// Whether B's elements are conjugated.
    conj_b: bool,
    shape: PhantomData<S>,
}

impl<T: Scalar, S: Tile, const TM: usize, const TN: usize> Staged<T, S, TM, TN> {
    const OK: () = {
        assert!(TM % T::WIDTH == 0 && TN % T::WIDTH == 0, "loads of 16 bytes");
        assert!(S::BM % Self::ROWS == 0 && S::BN % Self::COLS == 0, "whole warps");
        assert!(S::THREADS / 32 == (S::BM / Self::ROWS) * (S::BN / Self::COLS), "the threads' sums are the block's");
    };
    /// Rows and columns of a warp.
    const ROWS: u32 = DOWN * TM as u32;
    const COLS: u32 = ACROSS * TN as u32;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<T>) {
        const { Self::OK };
        let t = thread::thread_idx_x();
        let (warp, lane) = (t / warp::WARP_LANES, t % warp::WARP_LANES);
        let warps = S::BM / Self::ROWS;
        let (row, col) = Ring::<T, S>::origin(&x);
        let mut sums = Self {
            rc: [[T::ZERO; TN]; TM],
            row: warp % warps * Self::ROWS + lane % DOWN * T::WIDTH as u32,
            col: warp / warps * Self::COLS + lane / DOWN * T::WIDTH as u32,
            conj_b: x.conj_b(),
            shape: PhantomData,
        };
        // SAFETY: the launch's promise is that of `Ring::run`; rows and columns of C are this thread's, and `write`
        // looks whether they are there.
        unsafe {
            Ring::<T, S>::run(&x, (row, col), &mut sums);
            let (row, col) = (row + sums.row, col + sums.col);
            write(&x, |i| row + apart::<T>(i, DOWN), |j| col + apart::<T>(j, ACROSS), sums.rc);
        }
    }
}

/// How far the `index`-th row or column of a thread lies from its first.
#[inline(always)]
fn apart<T: Scalar>(index: usize, lanes: u32) -> u32 {
    (index / T::WIDTH * T::WIDTH) as u32 * lanes + (index % T::WIDTH) as u32
}

/// A step is one of k.
impl<T: Scalar, S: Tile, const TM: usize, const TN: usize> Steps<T> for Staged<T, S, TM, TN> {
    const COUNT: u32 = S::KT;
    type Operands = ([T; TM], [T; TN]);
    const ZEROS: Self::Operands = ([T::ZERO; TM], [T::ZERO; TN]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<T>, step: u32) -> Self::Operands {
        let (mut ra, mut rb) = ([T::ZERO; TM], [T::ZERO; TN]);
        let sa = stage.a.starting_at(self.row);
        let sb = stage.b.starting_at(self.col);
        for i in (0..TM).step_by(T::WIDTH) {
            // SAFETY: inside the stage, and aligned: what lies before steps and first rows are whole 16 bytes.
            let wide = unsafe { sa.load_wide(Ring::<T, S>::a_at(apart::<T>(i, DOWN), step)) };
            for v in 0..T::WIDTH {
                ra[i + v] = wide[v];
            }
        }
        for j in (0..TN).step_by(T::WIDTH) {
            // SAFETY: inside the stage, and aligned: what lies before steps and first columns are whole 16 bytes.
            let wide = unsafe { sb.load_wide(Ring::<T, S>::b_at(apart::<T>(j, ACROSS), step)) };
            for v in 0..T::WIDTH {
                rb[j + v] = wide[v];
            }
        }
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        T::add_outer(&mut self.rc, ra, rb, self.conj_b);
    }
}
