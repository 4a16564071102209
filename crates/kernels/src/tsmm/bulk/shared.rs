//! `tsmm_bulk_shared`: the vector units, with B in shared memory: f32 and c64.
//!
//! # Idea
//! Where B is more than registers hold, a lane has TM x TN sums, and each element that it reads of A and of B is multiplied TN and TM times: of
//! 8 x 8 sums four times on the average, which is as much as shared memory can hand the lanes while they multiply.
//!
//! # Thread mapping
//! Lane (g, c) = (lane / 8, lane % 8) has rows g, g + 4, .. of 32, and of every 8 · 16 bytes of columns the c-th 16. Where k is whole 16
//! bytes, group g takes the pieces of a row in an order of its own (`turned`), so that rows of a power of two of pieces meet in no bank.
//!
//! # Cost
//! Measured on an H200, f32, packed rows of 1.5 GB, of the bound: 32 x 32 78%, 20 x 60 63%, 64 x 16 80%, 64 x 32 73%, 64 x 64 61%, of which
//! multiply-adds alone would take all; of odd widths, whose elements are stored one by one, 31 columns 57% and 33 34%.

use super::registers::turned;
use super::{Tile, Units};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use crate::tsmm::unrolled::{Turns, unrolled};
use core::array::from_fn;
use cuda_std::prelude::*;

/// Rows of a lane.
const TM: usize = 8;
/// Lanes along the columns, and along the rows.
const ACROSS: u32 = 8;
const DOWN: u32 = 4;

/// TN columns a lane, and up to K steps.
pub struct SharedB<T, const TN: usize, const K: usize> {
    sb: Shared<T>,
    group: u32,
    across: u32,
}

impl<T: Scalar, const TN: usize, const K: usize> Units<T> for SharedB<T, TN, K> {
    const FRAGMENT: u32 = TM as u32 * DOWN;
    const STEPS: u32 = K as u32;
    const COLS: u32 = TN as u32 * ACROSS;
    type Sums = [[T; TN]; TM];

    /// By rows of COLS.
    #[inline(always)]
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32) {
        let place = |at: u32| Place { to: at, l: at / Self::COLS, col: at % Self::COLS };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; B's part has so many.
        unsafe { bring(x, sb, Self::STEPS * Self::COLS, threads, place) };
    }

    #[inline(always)]
    unsafe fn new(_: &Product<T>, sb: Shared<T>) -> Self {
        const { assert!(TN % T::WIDTH == 0, "a lane's columns are whole pieces") };
        let lane = thread::thread_idx_x() % warp::WARP_LANES;
        SharedB { sb, group: lane / ACROSS, across: lane % ACROSS }
    }

    #[inline(always)]
    unsafe fn sums(&self, x: &Product<T>, tile: Tile, sa: Shared<T>, first: u32) -> [[T; TN]; TM] {
        let (k, width) = (x.k, T::WIDTH as u32);
        // Rows that are not there are the last one, and not stored.
        let starts: [u32; TM] = from_fn(|i| self.row(first, i).min(tile.rows - 1) * k);
        let mut rc = [[T::ZERO; TN]; TM];
        // SAFETY: steps below k, of rows of the tile and of B.
        unsafe {
            if k % width == 0 {
                let turn = turned(self.group, k / width);
                for piece in 0..ptx::opaque(k / width) {
                    let l = (piece ^ turn) * width;
                    let ra: [T::Wide; TM] = from_fn(|i| sa.load_wide(starts[i] + l));
                    for v in 0..T::WIDTH {
                        self.multiply(from_fn(|i| ra[i][v]), l + v as u32, &mut rc);
                    }
                }
            } else {
                for l in 0..ptx::opaque(k) {
                    self.multiply(from_fn(|i| sa.load(starts[i] + l)), l, &mut rc);
                }
            }
        }
        rc
    }

    #[inline(always)]
    unsafe fn write(&self, x: &Product<T>, tile: Tile, sc: Shared<T>, first: u32, sums: [[T; TN]; TM]) {
        let rows = Rows { lane: self, x, tile, sc, first, sums };
        match (x.beta.is_zero(), x.n % T::WIDTH as u32 == 0) {
            (true, true) => unrolled::<TM>(&mut Write::<_, _, _, false, true>(rows)),
            (true, false) => unrolled::<TM>(&mut Write::<_, _, _, false, false>(rows)),
            (false, true) => unrolled::<TM>(&mut Write::<_, _, _, true, true>(rows)),
            (false, false) => unrolled::<TM>(&mut Write::<_, _, _, true, false>(rows)),
        }
    }
}

/// A lane's sums of rows of a tile, from `first` on.
struct Rows<'a, T, const TN: usize, const K: usize> {
    lane: &'a SharedB<T, TN, K>,
    x: &'a Product<T>,
    tile: Tile,
    sc: Shared<T>,
    first: u32,
    sums: [[T; TN]; TM],
}

/// Writes them to C's tile, row by row, with β C if READ, by 16 bytes if WIDE.
struct Write<'a, T, const TN: usize, const K: usize, const READ: bool, const WIDE: bool>(Rows<'a, T, TN, K>);

impl<T: Scalar, const TN: usize, const K: usize, const READ: bool, const WIDE: bool> Turns
    for Write<'_, T, TN, K, READ, WIDE>
{
    #[inline(always)]
    fn turn(&mut self, i: usize) {
        let Rows { lane, x, tile, sc, ref sums, .. } = self.0;
        let row = lane.row(self.0.first, i);
        if row >= tile.rows {
            return;
        }
        for piece in 0..TN / T::WIDTH {
            let col = lane.col(piece);
            let at = row * x.n + col;
            // SAFETY: elements of C's tile, this lane's.
            let scaled = |v: usize| unsafe {
                let sum = sums[i][piece * T::WIDTH + v].conj_if(x.conj_sum());
                if READ { x.alpha.scale_onto(sum, x.beta.scale(sc.load(at + v as u32))) } else { x.alpha.scale(sum) }
            };
            for v in 0..if WIDE { 1 } else { T::WIDTH } {
                if col + (v as u32) < x.n {
                    // SAFETY: elements of C's tile, this lane's; WIDE: all 16 bytes are.
                    unsafe {
                        if WIDE {
                            sc.store_wide(at, scaled);
                        } else {
                            sc.store(at + v as u32, scaled(v));
                        }
                    }
                }
            }
        }
    }
}

impl<T: Scalar, const TN: usize, const K: usize> SharedB<T, TN, K> {
    /// This lane's i-th row of those from `first` on.
    #[inline(always)]
    fn row(&self, first: u32, i: usize) -> u32 {
        first + self.group + DOWN * i as u32
    }

    /// The first column of its pieces.
    #[inline(always)]
    fn col(&self, piece: usize) -> u32 {
        (self.across + ACROSS * piece as u32) * T::WIDTH as u32
    }

    /// Adds the products of a step: of its rows' elements of A and its columns' of B.
    ///
    /// # Safety
    /// The step is one of B's.
    #[inline(always)]
    unsafe fn multiply(&self, ra: [T; TM], l: u32, rc: &mut [[T; TN]; TM]) {
        for piece in 0..TN / T::WIDTH {
            // SAFETY: `l` is a step of B's, as the caller promised; the piece is 16 bytes of its COLS columns.
            let rb = unsafe { self.sb.load_wide(l * Self::COLS + self.col(piece)) };
            for i in 0..TM {
                for turn in 0..T::WIDTH {
                    let v = there_and_back(i, turn, T::WIDTH);
                    let j = piece * T::WIDTH + v;
                    rc[i][j] = ra[i].fma(rb[v], rc[i][j]);
                }
            }
        }
    }
}
