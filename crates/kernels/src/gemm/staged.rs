//! `gemm_staged` and `gemm_along`: A and B through a ring of stages, TM x TN sums a thread, fused multiply-adds.
//!
//! # Idea
//! What a thread is handed of a step, TM + TN elements, grows with the sides of its tile, and what it multiplies with the
//! area: shared memory hands an SM 128 bytes a cycle, which is what 8 x 8 sums of f32 take at the multipliers' full rate,
//! and 8 x 16 take three quarters of it.
//!
//! So copies have to be few. `gemm_staged` copies an operand across k by 16 bytes; one along k, which its stages turn, by
//! elements. Where both A and B lie along k, `gemm_along` keeps them so, and copies 16 bytes; a thread loads elements then, which
//! are as many bytes, and of which the assembler joins neighbouring steps. On an H200 on 2026-11-27 it took 0.92 of the time of
//! the same tile of `gemm_staged` for Aᵀ B of 1024 cubed, 0.89 to 0.92 for 64 columns and an A by rows, 0.92 in c64; where operands
//! do not lie so up to 1.6 times as long. One entry that has a loop for each case, or A across k and B along it, lost more by the
//! registers that the assembler deals than by copies (benches/NOTES.md).
//!
//! c64 is multiplied from copies of B's elements ([`Scalar::add_outer`]), one step after the other and without loads ahead: a step is 128
//! multiply-adds, and other warps have theirs while one waits. Unrolled, a sum moves from register to register, and the copies save nothing. By ptxas 13.0's listing
//! for sm_90 a step takes 1.42 cycles a multiply-add where it took 1.78, and `gemm_along`'s 1.38 where it took 1.64 (benches/NOTES.md, 2026-11-27).
//!
//! # Thread mapping
//! Warps have 8·TM x 4·TN of the block's tile each, side by side along the rows first. Lane (r, c) = (lane mod 8, lane / 8)
//! owns WIDTH neighbouring rows out of every 8·WIDTH and as many columns out of every 4·WIDTH, 16 bytes each: a warp's
//! loads ask for 128 and 64 bytes. In stages along k it owns every eighth row and every fourth column, whose lines begin in different banks.

use super::epilogue::{is_plain, is_wide, write, write_plain};
use super::ring::{Ring, Stage, Steps, Tile, Way};
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Lanes of a warp along the rows and along the columns of C.
const DOWN: u32 = 8;
const ACROSS: u32 = 4;

/// The sums of a thread of a block of shape S, TM x TN, of an A and a B that are both copied by the way W.
pub struct Staged<T, S, const TM: usize, const TN: usize, W> {
    rc: [[T; TN]; TM],
    /// This thread's first row and column of the block's tile.
    row: u32,
    col: u32,
    /// The signs of B's elements.
    signs: Signs,
    shape: PhantomData<(S, W)>,
}

impl<T: Scalar, S: Tile, const TM: usize, const TN: usize, W: Way> Staged<T, S, TM, TN, W> {
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
        let (row, col) = Ring::<T, S, W, W>::origin(&x);
        let first = |lane: u32| if W::BY_LINES { lane } else { lane * T::WIDTH as u32 };
        let mut sums = Self {
            rc: [[T::ZERO; TN]; TM],
            row: warp % warps * Self::ROWS + first(lane % DOWN),
            col: warp / warps * Self::COLS + first(lane / DOWN),
            signs: x.signs(),
            shape: PhantomData,
        };
        // SAFETY: the launch's promise is that of `Ring::run`; rows and columns of C are this thread's, and `write` and
        // `write_tile` look whether they are there.
        unsafe {
            Ring::<T, S, W, W>::run(&x, (row, col), &mut sums);
            let mut rc = [[sums.rc]];
            if !join(&x, S::THREADS, thread::block_idx_x(), &mut rc) {
                return;
            }
            let [[rc]] = rc;
            let (row, col) = (row + sums.row, col + sums.col);
            let (row, col) = (|i| row + apart::<T, W>(i, DOWN), |j| col + apart::<T, W>(j, ACROSS));
            // `write` stores 16 bytes of neighbouring rows, and those of a thread along k are apart.
            if W::BY_LINES {
                x.write_tile(row, col, rc);
            } else if is_wide(&x) {
                write_plain::<true, _, _, _>(&x, row, col, rc);
            } else if !T::COPIES && is_plain(&x) {
                // Not in c64, where the assembler deals the loop's registers worse then.
                write_plain::<false, _, _, _>(&x, row, col, rc);
            } else {
                write(&x, row, col, rc);
            }
        }
    }
}

/// How far the `index`-th row or column of a thread lies from its first.
#[inline(always)]
fn apart<T: Scalar, W: Way>(index: usize, lanes: u32) -> u32 {
    if W::BY_LINES {
        index as u32 * lanes
    } else {
        (index / T::WIDTH * T::WIDTH) as u32 * lanes + (index % T::WIDTH) as u32
    }
}

/// A thread's N lines of an operand at a step, of which `at` gives the place in the stage; `lanes` have others.
///
/// # Safety
/// The stage is whole; lines and step are in it, aligned to 16 bytes where these are loaded.
#[inline(always)]
unsafe fn lines<T: Scalar, W: Way, const N: usize>(part: Shared<T>, at: impl Fn(u32) -> u32, lanes: u32) -> [T; N] {
    let mut of = [T::ZERO; N];
    let width = if W::BY_LINES { 1 } else { T::WIDTH };
    for i in (0..N).step_by(width) {
        let place = at(apart::<T, W>(i, lanes));
        // SAFETY: as the caller promised.
        unsafe {
            if W::BY_LINES {
                of[i] = part.load(place);
            } else {
                let wide = part.load_wide(place);
                for v in 0..width {
                    of[i + v] = wide[v];
                }
            }
        }
    }
    of
}

/// A step is one of k.
impl<T: Scalar, S: Tile, const TM: usize, const TN: usize, W: Way> Steps<T> for Staged<T, S, TM, TN, W> {
    const COUNT: u32 = S::KT;
    const AHEAD: bool = !T::COPIES;
    type Operands = ([T; TM], [T; TN]);
    const ZEROS: Self::Operands = ([T::ZERO; TM], [T::ZERO; TN]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<T>, step: u32) -> Self::Operands {
        let sa = stage.a.starting_at(Ring::<T, S, W, W>::a_at(self.row, 0));
        let sb = stage.b.starting_at(Ring::<T, S, W, W>::b_at(self.col, 0));
        // SAFETY: inside the stage, and aligned across k: what lies before steps and first lines are whole 16 bytes.
        unsafe {
            let ra = lines::<T, W, TM>(sa, |row| Ring::<T, S, W, W>::a_at(row, step), DOWN);
            let rb = lines::<T, W, TN>(sb, |col| Ring::<T, S, W, W>::b_at(col, step), ACROSS);
            (ra, rb)
        }
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        T::add_outer(&mut self.rc, ra, rb, self.signs);
    }
}
