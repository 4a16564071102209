//! Stages of `tsmm_lines_mma` multiplied by the matrix units: f64.
//!
//! # Thread mapping
//! The product is computed as Cᵀ = Bᵀ Aᵀ: of a fragment of 16 columns of C and 8 rows lane (g, q) = (lane / 4, lane % 4) then has two rows of
//! columns g and g + 8, neighbours down a column of C. Of B it has columns g and g + 8, of A row g, at steps q, q + 4, q + 8 and q + 12 of
//! 16: lines are 32 bytes more than whole rounds of the banks apart, so that where rows are neighbours the four q meet in none. Where they are not,
//! row g of a fragment is the (g / 2 + 4 (g % 2))-th, so that a lane's two are four apart, and q meet in pairs.

use super::{Lines, Units};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use core::array::from_fn;
use cuda_std::prelude::*;

/// Steps of a fragment; its columns of C; its rows.
const STEPS: u32 = 16;
const COLS: u32 = 16;
const ROWS: u32 = 8;

/// BN columns of up to BK steps.
#[derive(Clone, Copy)]
pub struct Matrix<const BN: usize, const BK: usize> {
    lane: u32,
    first: u32,
    /// This lane's part of the first fragment of its columns.
    sb: Shared<f64>,
}

impl<const TM: usize, const TN: usize, const BN: usize, const BK: usize> Units<f64, TM, TN> for Matrix<BN, BK> {
    const DOWN: u32 = 4;
    const MMA: bool = true;

    /// As (fragments of steps, of columns, 4 pairs of steps, 32 lanes, 2 columns), as many as have a step that is there.
    #[inline(always)]
    unsafe fn bring(x: &Product<f64>, sb: Shared<f64>, threads: u32) {
        let across = BN as u32 / COLS;
        let place = |at: u32| {
            let (fragment, step, lane, half) = (at / (STEPS * COLS), at / 64 % 4, at / 2 % 32, at % 2);
            let l = fragment / across * STEPS + 4 * step + lane % 4;
            Place { to: at, l, col: fragment % across * COLS + lane / 4 + 8 * half }
        };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; k is no more than BK.
        unsafe { bring(x, sb, x.k.next_multiple_of(STEPS) * BN as u32, threads, place) };
    }

    #[inline(always)]
    fn new(_: &Product<f64>, lane: u32, first: u32, sb: Shared<f64>) -> Self {
        const { assert!(TM % 2 == 0 && TN % 2 == 0 && BK as u32 % STEPS == 0 && BN as u32 % COLS == 0, "whole fragments") };
        Matrix { lane, first, sb: sb.starting_at(first / COLS * (STEPS * COLS) + 2 * lane) }
    }

    #[inline(always)]
    fn col(&self, j: usize) -> u32 {
        self.first + self.lane / 4 + 8 * j as u32
    }

    #[inline(always)]
    unsafe fn multiply<const WIDE: bool>(&self, lines: Lines<f64>, start: u32, end: u32, rc: &mut [[f64; TN]; TM]) {
        let (g, q) = (self.lane / 4, self.lane % 4);
        let row = if WIDE { g } else { g / 2 + 4 * (g % 2) };
        for first in (start..ptx::opaque(end)).step_by(STEPS as usize) {
            let fragment = self.sb.starting_at(first / STEPS * (BN as u32 * STEPS));
            // SAFETY: the stage's lines, B's fragments, and all lanes of the warp are here.
            unsafe {
                // Lines of steps that are not there hold anything.
                let is_whole = first + STEPS <= end;
                let ra: [[f64; 4]; TM] = from_fn(|v| {
                    from_fn(|i| {
                        let l = first + 4 * i as u32 + q;
                        let at = row + v as u32 / 2 * ROWS;
                        if v % 2 == 0 && (is_whole || l < end) {
                            lines.line::<WIDE>(l - start, l).load(at)
                        } else {
                            0.0
                        }
                    })
                });
                for j in (0..TN).step_by(2) {
                    let pairs: [[f64; 2]; 4] =
                        from_fn(|i| fragment.load_wide(j as u32 / 2 * (STEPS * COLS) + 64 * i as u32));
                    let rb: [f64; 8] = from_fn(|at| pairs[at / 2][at % 2]);
                    for v in (0..TM).step_by(2) {
                        let sums = [rc[v][j], rc[v + 1][j], rc[v][j + 1], rc[v + 1][j + 1]];
                        let [c0, c1, c2, c3] = ptx::mma_m16n8k16_f64(rb, ra[v], sums);
                        (rc[v][j], rc[v + 1][j], rc[v][j + 1], rc[v + 1][j + 1]) = (c0, c1, c2, c3);
                    }
                }
            }
        }
    }
}
