//! `tsmm_bulk_rows`: the vector units, a lane a row.
//!
//! # Idea
//! Of few steps a row of A is a lane's registers. What is then left to read is B, which all lanes have alike, 16 bytes of TN columns at a time
//! for TM rows: no lane multiplies what another column's padding is, and an odd width is nothing special: rows of an odd
//! number of words begin in 32 different banks.
//!
//! # Thread mapping
//! Lane i has rows i, i + 32, .. of 32 · TM, and all their columns, TN after TN.
//!
//! # Determinism
//! Each sum is one lane's, from step 0 on; steps behind k, of a last piece, add zeros.
//!
//! # Cost
//! Measured on an H200 on 2026-11-28, matrices of 1 GB, of what a copy moves in the same process (benches/results/trials/lanes.csv, run 2): f32 3 x 3 92%, 2 x 4 95,
//! 13 x 5 83, 17 x 3 84 (of 20 columns at most, 24 now), 11 x 11 89, 15 x 15 90; f64 5 x 5 92, 17 x 3 85; c64 3 x 3 and 5 x 5 91, 17 x 3 78, 11 x 11 78;
//! c128 2 x 2 and 3 x 3 96. The kernels that were chosen before reached, of the bound, 17 x 3 46%, 13 x 5 61, 2 x 4 72 in f32. As long as its
//! loop waited for α, which the assembler loaded for each element of C (run 1, 32 columns), 17 x 3 took 53%.

use super::{Tile, Units, held};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use crate::tsmm::unrolled::{Turns, unrolled};
use core::array::from_fn;
use cuda_std::prelude::*;

/// TM rows a lane, TN columns at a time, of up to N, and up to K steps.
pub struct Rows<T, const TM: usize, const TN: usize, const N: usize, const K: usize> {
    sb: Shared<T>,
    lane: u32,
}

impl<T: Scalar, const TM: usize, const TN: usize, const N: usize, const K: usize> Units<T> for Rows<T, TM, TN, N, K> {
    const FRAGMENT: u32 = 32 * TM as u32;
    const STEPS: u32 = K as u32;
    const COLS: u32 = N as u32;
    /// Its rows of A, with zeros behind.
    type Sums = [[T; K]; TM];

    /// By rows of COLS.
    #[inline(always)]
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32) {
        let place = |at: u32| Place { to: at, l: at / Self::COLS, col: at % Self::COLS };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; B's part has so many.
        unsafe { bring(x, sb, Self::STEPS * Self::COLS, threads, place) };
    }

    #[inline(always)]
    unsafe fn new(_: &Product<T>, sb: Shared<T>) -> Self {
        const { assert!(TN % T::WIDTH == 0 && N % TN == 0 && K % T::WIDTH == 0, "columns and steps are whole pieces") };
        Rows { sb, lane: thread::thread_idx_x() % warp::WARP_LANES }
    }

    #[inline(always)]
    unsafe fn sums(&self, x: &Product<T>, tile: Tile, sa: Shared<T>, first: u32) -> [[T; K]; TM] {
        // Rows that are not there are the last one, and not stored.
        let starts: [u32; TM] = from_fn(|i| self.row(first, i).min(tile.rows - 1) * x.k);
        let is_whole = x.k % T::WIDTH as u32 == 0;
        let mut loaded = Loaded { sa, k: x.k, starts, is_whole, ra: [[T::ZERO; K]; TM] };
        unrolled::<K>(&mut loaded);
        loaded.ra
    }

    #[inline(always)]
    unsafe fn write(&self, x: &Product<T>, tile: Tile, sc: Shared<T>, first: u32, ra: [[T; K]; TM]) {
        // SAFETY: as the caller promised.
        unsafe {
            let is_zero = x.beta.is_zero();
            let x = &x.with_beta(if is_zero { x.beta } else { held(x.beta) });
            match (is_zero, x.n % T::WIDTH as u32 == 0) {
                (true, true) => self.write_as::<false, true>(x, tile, sc, first, ra),
                (true, false) => self.write_as::<false, false>(x, tile, sc, first, ra),
                (false, true) => self.write_as::<true, true>(x, tile, sc, first, ra),
                (false, false) => self.write_as::<true, false>(x, tile, sc, first, ra),
            }
        }
    }
}

/// A lane's rows of A, of which the i-th starts at `starts[i]`; by 16 bytes if they are whole ones.
struct Loaded<T, const TM: usize, const K: usize> {
    sa: Shared<T>,
    k: u32,
    starts: [u32; TM],
    is_whole: bool,
    ra: [[T; K]; TM],
}

impl<T: Scalar, const TM: usize, const K: usize> Turns for Loaded<T, TM, K> {
    #[inline(always)]
    fn turn(&mut self, l: usize) {
        if l as u32 >= self.k || (self.is_whole && l % T::WIDTH > 0) {
            return;
        }
        for i in 0..TM {
            let at = self.starts[i] + l as u32;
            // SAFETY: steps below k, of rows of the tile.
            unsafe {
                if self.is_whole {
                    let wide = self.sa.load_wide(at);
                    for v in 0..T::WIDTH {
                        self.ra[i][(l + v) % K] = wide[v];
                    }
                } else {
                    self.ra[i][l] = self.sa.load(at);
                }
            }
        }
    }
}

/// Adds the products of rows of A and TN columns of B, from those of step 0 in `from` on.
struct Products<'a, T, const TM: usize, const TN: usize, const N: usize, const K: usize> {
    k: u32,
    from: Shared<T>,
    ra: &'a [[T; K]; TM],
    rc: [[T; TN]; TM],
}

impl<T: Scalar, const TM: usize, const TN: usize, const N: usize, const K: usize> Turns
    for Products<'_, T, TM, TN, N, K>
{
    #[inline(always)]
    fn turn(&mut self, piece: usize) {
        let first = piece * T::WIDTH;
        // Steps of a piece behind k are zeros of both.
        if first >= K || first as u32 >= self.k {
            return;
        }
        for l in first..first + T::WIDTH {
            for j in (0..TN).step_by(T::WIDTH) {
                // SAFETY: a step of B's part, and 16 bytes of its columns.
                let rb = unsafe { self.from.load_wide((l * N + j) as u32) };
                for i in 0..TM {
                    for v in 0..T::WIDTH {
                        self.rc[i][j + v] = self.ra[i][l % K].fma(rb[v], self.rc[i][j + v]);
                    }
                }
            }
        }
    }
}

impl<T: Scalar, const TM: usize, const TN: usize, const N: usize, const K: usize> Rows<T, TM, TN, N, K> {
    /// This lane's i-th row of those from `first` on.
    #[inline(always)]
    fn row(&self, first: u32, i: usize) -> u32 {
        first + self.lane + 32 * i as u32
    }

    /// The products of rows of A and B's columns from `col` on.
    ///
    /// # Safety
    /// B's part has them.
    #[inline(always)]
    unsafe fn products(&self, k: u32, col: u32, ra: &[[T; K]; TM]) -> [[T; TN]; TM] {
        let from = self.sb.starting_at(col);
        let mut products = Products::<T, TM, TN, N, K> { k, from, ra, rc: [[T::ZERO; TN]; TM] };
        unrolled::<K>(&mut products);
        products.rc
    }

    /// C's rows, with β C if READ, by 16 bytes if WIDE.
    ///
    /// # Safety
    /// As for [`Units::write`].
    #[inline(always)]
    unsafe fn write_as<const READ: bool, const WIDE: bool>(
        &self,
        x: &Product<T>,
        tile: Tile,
        sc: Shared<T>,
        first: u32,
        ra: [[T; K]; TM],
    ) {
        let mut col = 0;
        // SAFETY: columns of B's part, which N is whole turns of.
        unsafe {
            while col + TN as u32 <= ptx::opaque(x.n) {
                self.write_columns::<READ, WIDE, true>(x, tile, sc, (first, col), &ra);
                col += TN as u32;
            }
            if col < x.n {
                self.write_columns::<READ, WIDE, false>(x, tile, sc, (first, col), &ra);
            }
        }
    }

    /// Those of TN columns from `col` on, all of which C has if WHOLE.
    ///
    /// # Safety
    /// As for [`Units::write`].
    #[inline(always)]
    unsafe fn write_columns<const READ: bool, const WIDE: bool, const WHOLE: bool>(
        &self,
        x: &Product<T>,
        tile: Tile,
        sc: Shared<T>,
        (first, col): (u32, u32),
        ra: &[[T; K]; TM],
    ) {
        // SAFETY: as the caller promised.
        let sums = unsafe { self.products(x.k, col, ra) };
        for i in 0..TM {
            let row = self.row(first, i);
            if row >= tile.rows {
                continue;
            }
            for j in (0..TN).step_by(if WIDE { T::WIDTH } else { 1 }) {
                let at = row * x.n + col + j as u32;
                // SAFETY: elements of C's tile, this lane's.
                let scaled = |v: usize| unsafe {
                    let sum = sums[i][j + v].conj_if(x.conj_sum());
                    if READ {
                        x.alpha.scale_onto(sum, x.beta.scale(sc.load(at + v as u32)))
                    } else {
                        x.alpha.scale(sum)
                    }
                };
                if WHOLE || col + (j as u32) < x.n {
                    // SAFETY: an element of C's tile, this lane's, or if WIDE 16 bytes of them.
                    unsafe {
                        if WIDE {
                            sc.store_wide(at, scaled);
                        } else {
                            sc.store(at, scaled(0));
                        }
                    }
                }
            }
        }
    }
}
