//! `tsmm_fragments`: A and C between device memory and the registers of the matrix units: f64 and c128, from sm_90 on.
//!
//! # Idea
//! A fragment of `mma.m16n8k16` is 16 rows of A by 16 steps of k, of which a lane holds two rows at steps q, q + 4, q + 8 and q +
//! 12; one of complex numbers is eight rows by eight steps ([`crate::complex_fragments`]), of which a lane holds one row at two steps: what
//! the lanes of a warp load at once are whole sectors of eight rows, or of four columns, wherever they start. So A needs no way
//! through shared memory, and warps need no barriers: each streams tiles of its own. A fragment of the next tile is asked for
//! as soon as the one in its registers is multiplied. B is in shared memory in the order in which lanes want it.
//!
//! # Thread mapping
//! A warp owns 16 rows, of complex numbers 8, and all columns of a tile; warps take tiles in turn. Lane (g, q) = (lane / 4, lane % 4)
//! holds rows g and, of real numbers, g + 8 of A, and of each eight columns of C two of these rows: 2q and 2q + 1, of complex
//! numbers q and q + 4, so that the lanes' stores too are whole sectors. For that B's columns change places in its fragments.

use crate::complex_fragments;
use crate::product::{Product, c128};
use crate::tsmm::bring::{self, Place};
use core::array::from_fn;
use cuda_std::prelude::*;

/// Columns of C of a fragment.
pub(super) const COLS: u32 = 8;
/// Fragments of C whose old values are asked for together.
const TOGETHER: usize = 2;

/// An element as fragments have it.
pub trait Element: Scalar {
    /// Rows of a lane, eight apart.
    const ROWS: u32;
    /// A lane's part of a fragment of A.
    type A: Copy;

    /// That part, of the element in each of the lane's steps, which are four apart, and rows.
    fn a(element: impl FnMut(usize, usize) -> Self) -> Self::A;

    /// Sums, and on top of them the products of two fragments; b has a lane's steps, in order.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    unsafe fn multiply(a: Self::A, b: [Self::Wide; 2], sums: [f64; 4]) -> [f64; 4];

    /// Of eight columns the v-th of lane q's two.
    fn column(q: u32, v: u32) -> u32;

    /// A lane's sum in one of its rows, and the v-th of its columns.
    fn sum(sums: [f64; 4], row: usize, v: usize) -> Self;
}

impl Element for f64 {
    const ROWS: u32 = 2;
    type A = [f64; 8];

    #[inline(always)]
    fn a(mut element: impl FnMut(usize, usize) -> f64) -> [f64; 8] {
        from_fn(|at| element(at / 2, at % 2))
    }

    #[inline(always)]
    unsafe fn multiply(a: [f64; 8], [[b0, b1], [b2, b3]]: [[f64; 2]; 2], sums: [f64; 4]) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as `Element::multiply` asks; registers alone.
        unsafe { ptx::mma_m16n8k16_f64(a, [b0, b1, b2, b3], sums) }
    }

    #[inline(always)]
    fn column(q: u32, v: u32) -> u32 {
        2 * q + v
    }

    #[inline(always)]
    fn sum(sums: [f64; 4], row: usize, v: usize) -> f64 {
        sums[2 * row + v]
    }
}

impl Element for c128 {
    const ROWS: u32 = 1;
    type A = [c128; 2];

    #[inline(always)]
    fn a(mut element: impl FnMut(usize, usize) -> c128) -> [c128; 2] {
        from_fn(|step| element(step, 0))
    }

    #[inline(always)]
    unsafe fn multiply(a: [c128; 2], [[first], [second]]: [[c128; 1]; 2], sums: [f64; 4]) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as `Element::multiply` asks; registers alone.
        unsafe { complex_fragments::multiply(a, [first, second], false, sums) }
    }

    #[inline(always)]
    fn column(q: u32, v: u32) -> u32 {
        q + 4 * v
    }

    #[inline(always)]
    fn sum(sums: [f64; 4], _: usize, v: usize) -> c128 {
        complex_fragments::sums(sums)[v]
    }
}

/// Steps of k of a fragment, of which a lane has every fourth.
pub(super) const fn steps<T: Element>() -> u32 {
    8 * T::WIDTH as u32
}

/// # Safety
/// Launched with 32·WARPS threads a block, `model::launch::tiling`'s shared memory and at most as many blocks as there are
/// tiles; k <= KS fragments, n <= 8·NT, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Element, const WARPS: usize, const NT: usize, const KS: usize>(x: Product<T>) {
    let (own, threads, width) = (thread::thread_idx_x(), 32 * WARPS as u32, T::WIDTH as u32);
    let b_len = steps::<T>() * COLS;
    let sb = Shared::<T>::at(0); // (KS, NT, 2 halves, 32 lanes, 16 bytes of steps)
    let place = |at: u32| {
        let (fragment, half, lane, v) = (at / b_len, at / (32 * width) % 2, at / width % 32, at % width);
        let l = fragment / NT as u32 * steps::<T>() + lane % 4 + 4 * (half * width + v);
        let col = fragment % NT as u32 * COLS + T::column(lane / 8, lane / 4 % 2);
        Place { to: at, l, col }
    };
    // Two loads at a time: of four c128 spills.
    // SAFETY: B spans its elements, as the launch promised; its part of the memory has so many.
    unsafe { bring::together::<T, 2>(&x, sb, KS as u32 * NT as u32 * b_len, threads, place) };
    thread::sync_threads(); // B is whole
    let warp = Warp { x: &x, g: own % 32 / 4, q: own % 4, sb: sb.starting_at(own % 32 * width) };
    let (tiles, turn) = (x.m.div_ceil(8 * T::ROWS), thread::grid_dim_x() * WARPS as u32);
    let mut tile = thread::block_idx_x() * WARPS as u32 + own / 32;
    // SAFETY: `lanes` and `write` look for rows below m and steps below k; all lanes of the warp take the same turns.
    unsafe {
        let mut ahead = warp.lanes(tile);
        let mut ra: [T::A; KS] = from_fn(|_| ahead.fragment());
        while tile < tiles {
            let mut rc = [[0.0; 4]; NT];
            ahead = warp.lanes(tile + turn);
            for s in 0..KS {
                let now = ra[s];
                ra[s] = ahead.fragment();
                for j in 0..NT {
                    rc[j] = T::multiply(now, b_of(warp.sb, (s * NT + j) as u32), rc[j]);
                }
            }
            warp.write(tile, rc);
            tile += turn;
        }
    }
}

/// A lane's part of a fragment of B, of which that of the first begins at `sb`.
///
/// # Safety
/// It is one of B's, and stored.
#[inline(always)]
pub(super) unsafe fn b_of<T: Element>(sb: Shared<T>, fragment: u32) -> [T::Wide; 2] {
    let half = 4 * COLS * T::WIDTH as u32;
    // SAFETY: the fragment is one of B's, whose two halves are stored one behind the other, as the caller promised.
    unsafe { [sb.load_wide(2 * half * fragment), sb.load_wide(2 * half * fragment + half)] }
}

/// A warp's part of a product.
struct Warp<'a, T> {
    x: &'a Product<T>,
    g: u32,
    q: u32,
    /// This lane's part of the first fragment of B.
    sb: Shared<T>,
}

impl<T: Element> Warp<'_, T> {
    /// This lane's rows of a tile; of complex numbers the first.
    #[inline(always)]
    fn rows(&self, tile: u32) -> [u32; 2] {
        from_fn(|i| tile * 8 * T::ROWS + self.g + 8 * i as u32)
    }

    /// Where this lane's part of a tile of A begins.
    #[inline(always)]
    fn lanes(&self, tile: u32) -> Lane<T> {
        let x = self.x;
        let at = |row: u32| x.a.starting_at(row as u64 * x.a_row + self.q as u64 * x.a_col);
        let rows = self.rows(tile).map(|row| (if row < x.m { x.k } else { 0 }, at(row)));
        Lane { rows, l: self.q, four_on: 4 * x.a_col }
    }

    /// C ← α · sums + β · C, for a tile.
    ///
    /// # Safety
    /// C spans its elements; the tile is this warp's.
    #[inline(always)]
    unsafe fn write<const NT: usize>(&self, tile: u32, sums: [[f64; 4]; NT]) {
        let (x, rows) = (self.x, self.rows(tile));
        // Both columns of a lane are 16 bytes of a row.
        let by_16_bytes = T::WIDTH == 2 && x.c.is_aligned(16) && x.c_col == 1 && x.c_row % 2 == 0 && x.n % 2 == 0;
        let starts = rows.map(|row| row as u64 * x.c_row);
        let is_read = !x.beta.is_zero();
        for first in (0..NT).step_by(TOGETHER) {
            let together = TOGETHER.min(NT - first);
            let col = |j: usize, v: usize| (first + j) as u32 * COLS + T::column(self.q, v as u32);
            let inside = |row: usize, j: usize, v: usize| rows[row] < x.m && col(j, v) < x.n;
            let mut old = [[[T::ZERO; 2]; 2]; TOGETHER];
            if is_read {
                for j in 0..together {
                    for row in 0..T::ROWS as usize {
                        for v in 0..2 {
                            if inside(row, j, v) {
                                // SAFETY: an element of C.
                                let was = unsafe { x.c.load(starts[row] + col(j, v) as u64 * x.c_col) };
                                old[j][row][v] = x.beta.scale(was);
                            }
                        }
                    }
                }
            }
            for j in 0..together {
                let scaled = |row: usize, v: usize| {
                    let sum = T::sum(sums[first + j], row, v).conj_if(x.conj_sum());
                    if is_read { x.alpha.scale_onto(sum, old[j][row][v]) } else { x.alpha.scale(sum) }
                };
                for row in 0..T::ROWS as usize {
                    // SAFETY: elements of C, this lane's.
                    unsafe {
                        if by_16_bytes {
                            if inside(row, j, 0) {
                                x.c.store_wide(starts[row] + col(j, 0) as u64, |v| scaled(row, v));
                            }
                        } else {
                            for v in 0..2 {
                                if inside(row, j, v) {
                                    x.c.store(starts[row] + col(j, v) as u64 * x.c_col, scaled(row, v));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A lane's part of a tile of A, from some step on.
struct Lane<T> {
    /// Its rows: the steps that they have, none of rows outside of A, and from where on.
    rows: [(u32, Global<T>); 2],
    /// The step.
    l: u32,
    /// Elements from a step to the fourth after it.
    four_on: u64,
}

impl<T: Element> Lane<T> {
    /// Its part of the next fragment, zeros for what A does not have.
    ///
    /// # Safety
    /// A spans its elements.
    #[inline(always)]
    unsafe fn fragment(&mut self) -> T::A {
        T::a(|_, row| {
            let (steps, from) = self.rows[row];
            // SAFETY: a row and a step of A.
            let element = unsafe { from.stream_if(self.l < steps, 0) };
            self.rows[row].1 = from.starting_at(self.four_on);
            if row + 1 == T::ROWS as usize {
                self.l += 4;
            }
            element
        })
    }
}
