//! `tsmm_mma`: as [`super::staged`], f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! From 8 columns on the vector units and the reads of B from shared memory would be in the memory's way. A fragment of
//! `mma.m16n8k16` is 16 rows of A; lane q of a group takes steps 4q .. 4q + 3 of every 16 of both factors, so that its part
//! of A and of B are two loads of 16 bytes each.
//!
//! # Thread mapping
//! A warp owns 16 rows and 8·NT columns of a tile; warps that share rows are neighbours. Lane (g, q) = (lane / 4, lane % 4)
//! holds of each 16 x 8 tile rows g and g + 8, columns 2q and 2q + 1.

use super::bring::{Place, bring};
use super::staged::{Multiply, Out, Shape, Tile};
use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::ring_gap;

/// NT tiles of 16 x 8 a warp, of a block of shape S.
pub struct Mma<S, const NT: usize> {
    /// This lane's rows are `row` and 8 further on.
    row: u32,
    /// The warp's first column.
    col: u32,
    shape: PhantomData<S>,
}

impl<S: Shape, const NT: usize> Mma<S, NT> {
    const OK: () = {
        assert!(S::BN % (8 * NT as u32) == 0, "whole warps along the columns");
        assert!(S::BK % 16 == 0, "whole fragments");
        assert!(S::THREADS / 32 / Self::COLS * 16 == S::BM, "the warps' sums are the block's");
    };
    /// Warps along the columns of C.
    const COLS: u32 = S::BN / (8 * NT as u32);
    /// Elements from a column of B to the next.
    const PITCH: u32 = S::BK + ring_gap(false, true, S::BK, 8) / 8;

    /// Lane q's fragments of a row: steps 4q .. 4q + 3 from `l` on, zero from k on.
    ///
    /// # Safety
    /// l < k.
    #[inline(always)]
    unsafe fn a(tile: &Tile<'_, f64>, row: u32, l: u32) -> [f64; 4] {
        let (at, k) = (l + thread::thread_idx_x() % 4 * 4, tile.k());
        // SAFETY: steps below k. What is not there is zero whatever was loaded in its place.
        unsafe {
            if tile.is_wide() {
                let pair = |l: u32| {
                    let [first, second] = tile.load_wide(row, l.min(k - 2));
                    if l < k { [first, second] } else { [0.0; 2] }
                };
                let ([first, second], [third, fourth]) = (pair(at), pair(at + 2));
                [first, second, third, fourth]
            } else {
                core::array::from_fn(|i| {
                    let l = at + i as u32;
                    let element = tile.load(row, l.min(k - 1));
                    if l < k { element } else { 0.0 }
                })
            }
        }
    }
}

impl<S: Shape, const NT: usize> Multiply<f64> for Mma<S, NT> {
    #[inline(always)]
    unsafe fn begin(x: &Product<f64>, sb: Shared<f64>) -> Self {
        const { Self::OK };
        let (own, steps) = (thread::thread_idx_x(), x.k.next_multiple_of(16));
        let place = |at: u32| {
            let (l, col) = (at / S::BN, at % S::BN);
            Place { to: col * Self::PITCH + l, l, col }
        };
        // SAFETY: B spans its elements, and a barrier follows, as `Multiply::begin` asks; a place is below BN · PITCH.
        unsafe { bring(x, sb, S::BN * steps, S::THREADS, place) };
        let (warp, g) = (own / warp::WARP_LANES, own % warp::WARP_LANES / 4);
        Mma { row: warp / Self::COLS * 16 + g, col: warp % Self::COLS * 8 * NT as u32, shape: PhantomData }
    }

    #[inline(always)]
    unsafe fn tile(&self, tile: &Tile<'_, f64>, out: &Out<'_, f64>) {
        let (g, q) = (thread::thread_idx_x() % warp::WARP_LANES / 4, thread::thread_idx_x() % 4);
        let mut rc = [[0.0; 4]; NT]; // (16, 8 NT)
        let sb = Shared::<f64>::at((self.col + g) * Self::PITCH + 4 * q);
        for l in (0..tile.k()).step_by(16) {
            // SAFETY: l < k; B has zeros up to the next multiple of 16; all lanes of the warp are here.
            unsafe {
                let (low, high) = (Self::a(tile, self.row, l), Self::a(tile, self.row + 8, l));
                let ra = [low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3]];
                for j in 0..NT {
                    let at = 8 * j as u32 * Self::PITCH + l;
                    let ([b0, b1], [b2, b3]) = (sb.load_wide(at), sb.load_wide(at + 2));
                    rc[j] = ptx::mma_m16n8k16_f64(ra, [b0, b1, b2, b3], rc[j]);
                }
            }
        }
        for j in 0..NT {
            let (col, [c00, c01, c10, c11]) = (self.col + 8 * j as u32 + 2 * q, rc[j]);
            // SAFETY: this lane's rows and columns.
            unsafe {
                out.write(self.row, col, [c00, c01]);
                out.write(self.row + 8, col, [c10, c11]);
            }
        }
    }
}
