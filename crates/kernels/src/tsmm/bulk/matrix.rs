//! Tiles of `tsmm_bulk` multiplied by the matrix units: f64 and c128.
//!
//! # Thread mapping
//! Lane (g, q) = (lane / 4, lane % 4) has of each fragment rows g and, of real numbers, g + 8, at neighbouring steps: 4q .. 4q + 3 of 16, of
//! complex numbers 2q and 2q + 1 of 8, so that rows of an odd width meet in no bank. B is in shared memory in that order.

use super::{Tile, Units};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use crate::tsmm::fragments::{COLS, Element, b_of, steps};
use core::array::from_fn;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// NT fragments of eight columns of C, and KS of steps.
pub struct Matrix<T, const NT: usize, const KS: usize> {
    lane: u32,
    /// Whether β is not 0: asked once, since of 32 columns in c128 asking for each tile spills.
    reads_c: bool,
    /// This lane's part of the first fragment of B.
    sb: Shared<T>,
    of: PhantomData<T>,
}

impl<T: Element, const NT: usize, const KS: usize> Units<T> for Matrix<T, NT, KS> {
    const FRAGMENT: u32 = 8 * T::ROWS;
    const STEPS: u32 = KS as u32 * steps::<T>();
    const COLS: u32 = NT as u32 * COLS;
    type Sums = [[f64; 4]; NT];

    /// As (KS, NT, 2 halves, 32 lanes, 16 bytes of steps).
    #[inline(always)]
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32) {
        let (width, b_len) = (T::WIDTH as u32, steps::<T>() * COLS);
        let place = |at: u32| {
            let (fragment, half, lane, v) = (at / b_len, at / (32 * width) % 2, at / width % 32, at % width);
            let l = fragment / NT as u32 * steps::<T>() + (lane % 4 * 2 + half) * width + v;
            let col = fragment % NT as u32 * COLS + T::column(lane / 8, lane / 4 % 2);
            Place { to: at, l, col }
        };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; B's part has so many.
        unsafe { bring(x, sb, KS as u32 * NT as u32 * b_len, threads, place) };
    }

    #[inline(always)]
    unsafe fn new(x: &Product<T>, sb: Shared<T>) -> Self {
        let lane = thread::thread_idx_x() % warp::WARP_LANES;
        Matrix { lane, reads_c: !x.beta.is_zero(), sb: sb.starting_at(lane * T::WIDTH as u32), of: PhantomData }
    }

    #[inline(always)]
    unsafe fn sums(&self, x: &Product<T>, tile: Tile, sa: Shared<T>, first: u32) -> [[f64; 4]; NT] {
        let (k, width, q) = (x.k, T::WIDTH as u32, self.lane % 4);
        // Rows that are not there are the last one, and not stored.
        let starts: [u32; 2] = from_fn(|row| (first + self.lane / 4 + 8 * row as u32).min(tile.rows - 1) * k);
        let mut rc = [[0.0; 4]; NT];
        for s in 0..KS {
            let end = (s as u32 + 1) * steps::<T>();
            if end - steps::<T>() >= k {
                break;
            }
            let l = end - steps::<T>() + q * 2 * width;
            // SAFETY: steps below k, as they are guarded; whole pieces where k is.
            let pieces: [[[T; 2]; 2]; 2] = unsafe {
                match (end <= k, k % width == 0) {
                    (true, true) => pieces::<T, true, true>(k, sa, starts, l),
                    (true, false) => pieces::<T, true, false>(k, sa, starts, l),
                    (false, true) => pieces::<T, false, true>(k, sa, starts, l),
                    (false, false) => pieces::<T, false, false>(k, sa, starts, l),
                }
            };
            let ra = T::a(|step, row| pieces[row][step / T::WIDTH][step % T::WIDTH]);
            for j in 0..NT {
                // SAFETY: B is whole; all lanes of the warp are here.
                rc[j] = unsafe { T::multiply(ra, b_of(self.sb, (s * NT + j) as u32), rc[j]) };
            }
        }
        rc
    }

    #[inline(always)]
    unsafe fn write(&self, x: &Product<T>, tile: Tile, sc: Shared<T>, first: u32, sums: [[f64; 4]; NT]) {
        // SAFETY: A's slot is filled, nobody reads A's rows there any more, and all lanes are here, as `Units::write`
        // asks.
        unsafe {
            if self.reads_c {
                self.write_as::<true>(x, tile, sc, first, sums)
            } else {
                self.write_as::<false>(x, tile, sc, first, sums)
            }
        }
    }
}

/// A lane's part of a fragment of A: of rows that start there 16 bytes of steps from l on, twice, WHOLE or with zeros for what is not
/// there; at once if WIDE.
///
/// # Safety
/// All steps are there if WHOLE, and 16 bytes are aligned if WIDE.
#[inline(always)]
unsafe fn pieces<T: Element, const WHOLE: bool, const WIDE: bool>(
    k: u32,
    sa: Shared<T>,
    starts: [u32; 2],
    l: u32,
) -> [[[T; 2]; 2]; 2] {
    let width = T::WIDTH as u32;
    // SAFETY: steps below k.
    let piece = |row: usize, half: u32| unsafe {
        let step = l + half * width;
        if row >= T::ROWS as usize {
            [T::ZERO; 2]
        } else if WIDE {
            let wide = sa.load_wide(starts[row] + if WHOLE { step } else { step.min(k - width) });
            from_fn(|v| if WHOLE || step < k { wide[v % T::WIDTH] } else { T::ZERO })
        } else {
            from_fn(|v| {
                let step = step + v as u32;
                let element = sa.load(starts[row] + if WHOLE { step } else { step.min(k - 1) });
                if WHOLE || step < k { element } else { T::ZERO }
            })
        }
    };
    from_fn(|row| from_fn(|half| piece(row, half as u32)))
}

impl<T: Element, const NT: usize, const KS: usize> Matrix<T, NT, KS> {
    /// C's rows, with β C if READ.
    ///
    /// # Safety
    /// As for [`Units::write`].
    #[inline(always)]
    unsafe fn write_as<const READ: bool>(
        &self,
        x: &Product<T>,
        tile: Tile,
        sc: Shared<T>,
        first: u32,
        sums: [[f64; 4]; NT],
    ) {
        let q = self.lane % 4;
        let are_there = first + 8 * T::ROWS <= tile.rows;
        for row in 0..T::ROWS as usize {
            let line = first + self.lane / 4 + 8 * row as u32;
            let col = |j: usize, v: usize| j as u32 * COLS + T::column(q, v as u32);
            let at = |j: usize, v: usize| line * x.n + col(j, v);
            let is_col = |j: usize, v: usize| T::column(q, v as u32) < x.n.saturating_sub(j as u32 * COLS);
            // SAFETY: elements of C's tile, this lane's.
            unsafe {
                let scaled = |j: usize, v: usize| {
                    let sum = T::sum(sums[j], row, v).conj_if(x.conj_sum());
                    if READ { x.alpha.scale_onto(sum, x.beta.scale(sc.load(at(j, v)))) } else { x.alpha.scale(sum) }
                };
                // What holds for all lanes first: hardly any tile has a guard.
                if T::WIDTH == 2 && x.n % 2 == 0 {
                    for j in 0..NT {
                        let is_whole = are_there && (j as u32 + 1) * COLS <= x.n;
                        if is_whole || (line < tile.rows && is_col(j, 0)) {
                            sc.store_wide(at(j, 0), |v| scaled(j, v));
                        }
                    }
                    continue;
                }
                for j in 0..NT {
                    if are_there && (j as u32 + 1) * COLS <= x.n {
                        for v in 0..2 {
                            sc.store(at(j, v), scaled(j, v));
                        }
                    } else if line < tile.rows {
                        for v in 0..2 {
                            if is_col(j, v) {
                                sc.store(at(j, v), scaled(j, v));
                            }
                        }
                    }
                }
            }
        }
    }
}
