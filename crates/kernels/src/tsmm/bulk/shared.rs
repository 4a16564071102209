//! `tsmm_bulk_shared`: the vector units, with B in shared memory: f32 and c64.
//!
//! # Idea
//! Where B is more than registers hold, a lane has TM x TN sums, and each element that it reads of A and of B is multiplied TN and TM times: of
//! 8 x 8 sums four times on the average, which is as much as shared memory can hand the lanes while they multiply. Narrower tiles of C
//! have fewer lanes across and more rows, and the fewer bytes a slot has, the more warps an SM: of more steps than columns, where a slot is all A, lanes are
//! across rather than down.
//!
//! # Thread mapping
//! Lane (g, c) = (lane / ACROSS, lane % ACROSS) has rows g, g + 32 / ACROSS, .. of 32 / ACROSS · TM, of every ACROSS · 16 bytes of columns the
//! c-th 16, and of the columns behind them, if TN is no whole pieces, every ACROSS-th. Where k is whole 16 bytes, group g takes the pieces
//! of a row in an order of its own (`turned`), so that rows of a power of two of pieces meet in no bank; of c64 the steps, which are half of one.
//!
//! c64 is multiplied from copies of B's elements ([`Scalar::add_outer`]), one step after the other: unrolled over a piece, a sum's register is another
//! one after each step, and two of three multiply-adds meet in a bank whatever is copied. Where A has K columns and the tile is whole its rows begin
//! at constants. Eight to sixteen warps an SM hide the loads; of 5 columns a lane the next step's are loaded ahead, which took 0.90 to 0.96 of the time, of other tiles
//! 0.98 to 1.2 (benches/results/trials/copies.csv, run 3).
//!
//! # Cost
//! Measured on an H200 on 2026-11-28, f32, matrices of 1 GB, of what a copy moves in the same process (benches/results/trials/lanes.csv, run 2): 8 x 24 93%,
//! 16 x 32 99%, 16 x 48 81%, 16 x 64 79%, 24 x 24 85%, 32 x 32 86%, 20 x 60 69%, 40 x 40 72%, 48 x 48 57%, 64 x 64 59%, where multiply-adds alone
//! allow 93; 31 x 31, whose elements are loaded and stored one by one, 74%, 33 x 33 56%. c64: benches/results/h200/tall-widths.csv.

use super::registers::turned;
use super::{Tile, Units, held};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use crate::tsmm::unrolled::{Turns, unrolled};
use core::array::from_fn;
use cuda_std::prelude::*;

/// TM x TN sums a lane, ACROSS lanes along the columns, and up to K steps.
pub struct SharedB<T, const TM: usize, const TN: usize, const ACROSS: usize, const K: usize> {
    sb: Shared<T>,
    group: u32,
    across: u32,
    signs: Signs,
}

impl<T: Scalar, const TM: usize, const TN: usize, const ACROSS: usize, const K: usize> Units<T>
    for SharedB<T, TM, TN, ACROSS, K>
{
    const FRAGMENT: u32 = (TM * 32 / ACROSS) as u32;
    const STEPS: u32 = K as u32;
    const COLS: u32 = (TN * ACROSS) as u32;
    type Sums = [[T; TN]; TM];

    /// By rows of COLS.
    #[inline(always)]
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32) {
        let place = |at: u32| Place { to: at, l: at / Self::COLS, col: at % Self::COLS };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; B's part has so many.
        unsafe { bring(x, sb, Self::STEPS * Self::COLS, threads, place) };
    }

    #[inline(always)]
    unsafe fn new(x: &Product<T>, sb: Shared<T>) -> Self {
        const { assert!(32 % ACROSS == 0, "lanes are across and down") };
        const { assert!(TN < T::WIDTH || TN * ACROSS % T::WIDTH == 0, "B's lines begin at whole pieces") };
        let lane = thread::thread_idx_x() % warp::WARP_LANES;
        // Nothing but copies: B's elements were conjugated when they were brought.
        let never = x.signs().never;
        let signs = Signs { conj_b: never, never };
        SharedB { sb, group: lane / ACROSS as u32, across: lane % ACROSS as u32, signs }
    }

    #[inline(always)]
    unsafe fn sums(&self, x: &Product<T>, tile: Tile, sa: Shared<T>, first: u32) -> [[T; TN]; TM] {
        // SAFETY: as the caller promised; rows that are not there are the last one, and not stored.
        unsafe {
            if !T::COPIES {
                self.by_pieces(x.k, tile.rows - 1, sa, first)
            } else if x.k == Self::STEPS && first + Self::FRAGMENT <= tile.rows {
                self.by_steps(Self::STEPS, u32::MAX, sa, first)
            } else {
                self.by_steps(x.k, tile.rows - 1, sa, first)
            }
        }
    }

    #[inline(always)]
    unsafe fn write(&self, x: &Product<T>, tile: Tile, sc: Shared<T>, first: u32, sums: [[T; TN]; TM]) {
        let is_zero = x.beta.is_zero();
        // SAFETY: all lanes are here, as `Units::write` asks.
        let x = &x.with_beta(if is_zero { x.beta } else { unsafe { held(x.beta) } });
        let rows = Rows { lane: self, x, tile, sc, first, sums };
        match (is_zero, x.n % T::WIDTH as u32 == 0) {
            (true, true) => unrolled::<TM>(&mut Write::<_, false, true>(rows)),
            (true, false) => unrolled::<TM>(&mut Write::<_, false, false>(rows)),
            (false, true) => unrolled::<TM>(&mut Write::<_, true, true>(rows)),
            (false, false) => unrolled::<TM>(&mut Write::<_, true, false>(rows)),
        }
    }
}

/// A lane's sums of rows of a tile, from `first` on.
struct Rows<'a, T, const TM: usize, const TN: usize, const ACROSS: usize, const K: usize> {
    lane: &'a SharedB<T, TM, TN, ACROSS, K>,
    x: &'a Product<T>,
    tile: Tile,
    sc: Shared<T>,
    first: u32,
    sums: [[T; TN]; TM],
}

/// Writes them to C's tile, row by row, with β C if READ, by 16 bytes if WIDE.
struct Write<R, const READ: bool, const WIDE: bool>(R);

impl<
    T: Scalar,
    const TM: usize,
    const TN: usize,
    const ACROSS: usize,
    const K: usize,
    const READ: bool,
    const WIDE: bool,
> Turns for Write<Rows<'_, T, TM, TN, ACROSS, K>, READ, WIDE>
{
    #[inline(always)]
    fn turn(&mut self, i: usize) {
        let Rows { lane, x, tile, sc, ref sums, .. } = self.0;
        let row = lane.row(self.0.first, i);
        if row >= tile.rows {
            return;
        }
        let start = row * x.n;
        // SAFETY: elements of C's tile, this lane's.
        let scaled = |j: usize, at: u32| unsafe {
            let sum = sums[i][j].conj_if(x.conj_sum());
            if READ { x.alpha.scale_onto(sum, x.beta.scale(sc.load(at))) } else { x.alpha.scale(sum) }
        };
        for piece in 0..TN / T::WIDTH {
            let (col, j) = (lane.piece(piece), piece * T::WIDTH);
            let at = start + col;
            for v in 0..if WIDE { 1 } else { T::WIDTH } {
                if col + (v as u32) < x.n {
                    // SAFETY: elements of C's tile, this lane's; WIDE: all 16 bytes are.
                    unsafe {
                        if WIDE {
                            sc.store_wide(at, |v| scaled(j + v, at + v as u32));
                        } else {
                            sc.store(at + v as u32, scaled(j + v, at + v as u32));
                        }
                    }
                }
            }
        }
        for j in TN / T::WIDTH * T::WIDTH..TN {
            let col = lane.alone(j);
            if col < x.n {
                // SAFETY: an element of C's tile, this lane's.
                unsafe { sc.store(start + col, scaled(j, start + col)) };
            }
        }
    }
}

impl<T: Scalar, const TM: usize, const TN: usize, const ACROSS: usize, const K: usize> SharedB<T, TM, TN, ACROSS, K> {
    /// Whether a step's operands are loaded behind the products of the one before.
    const AHEAD: bool = TN == 5;
    /// Lanes along the rows.
    const DOWN: u32 = 32 / ACROSS as u32;

    /// This lane's i-th row of those from `first` on.
    #[inline(always)]
    fn row(&self, first: u32, i: usize) -> u32 {
        first + self.group + Self::DOWN * i as u32
    }

    /// The first column of its pieces.
    #[inline(always)]
    fn piece(&self, piece: usize) -> u32 {
        (self.across + (ACROSS * piece) as u32) * T::WIDTH as u32
    }

    /// Its `j`-th column, of those that are no whole piece.
    #[inline(always)]
    fn alone(&self, j: usize) -> u32 {
        self.across + (ACROSS * j) as u32
    }

    /// Where this lane's rows begin in A's slot, of rows up to `last`.
    #[inline(always)]
    fn starts(&self, k: u32, last: u32, first: u32) -> [u32; TM] {
        from_fn(|i| self.row(first, i).min(last) * k)
    }

    /// The sums of its rows and columns, a piece of A's rows at a time, where k is whole ones.
    ///
    /// # Safety
    /// The rows are in A's slot, and B has k steps.
    #[inline(always)]
    unsafe fn by_pieces(&self, k: u32, last: u32, sa: Shared<T>, first: u32) -> [[T; TN]; TM] {
        let (starts, width) = (self.starts(k, last, first), T::WIDTH as u32);
        let mut rc = [[T::ZERO; TN]; TM];
        // SAFETY: steps below k, of rows of the slot and of B, as the caller promised.
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

    /// The same a step at a time, from copies of B's elements ([`Scalar::add_outer`]).
    ///
    /// # Safety
    /// As for [`SharedB::by_pieces`].
    #[inline(always)]
    unsafe fn by_steps(&self, k: u32, last: u32, sa: Shared<T>, first: u32) -> [[T; TN]; TM] {
        let (starts, turn) = (self.starts(k, last, first), turned(self.group, k));
        let load = |step: u32| -> ([T; TM], [T; TN]) {
            let l = step ^ turn;
            // SAFETY: a step below k, of rows of the slot and of B, as the caller promised.
            unsafe { (from_fn(|i| sa.load(starts[i] + l)), self.columns(l)) }
        };
        let mut rc = [[T::ZERO; TN]; TM];
        let steps = ptx::opaque(k);
        if !Self::AHEAD {
            for step in 0..steps {
                let (ra, rb) = load(step);
                T::add_outer(&mut rc, ra, rb, self.signs);
            }
        } else if steps > 0 {
            let mut now = load(0);
            for step in 1..steps {
                let next = load(step);
                T::add_outer(&mut rc, now.0, now.1, self.signs);
                now = next;
            }
            T::add_outer(&mut rc, now.0, now.1, self.signs);
        }
        rc
    }

    /// Its columns' elements of a step of B.
    ///
    /// # Safety
    /// B has the step.
    #[inline(always)]
    unsafe fn columns(&self, l: u32) -> [T; TN] {
        let in_pieces = TN / T::WIDTH * T::WIDTH;
        // SAFETY: the step is B's, as the caller promised; pieces and elements are of its COLS columns. The compiler sees that a piece is
        // loaded several times.
        from_fn(|j| unsafe {
            if j < in_pieces {
                self.sb.load_wide(l * Self::COLS + self.piece(j / T::WIDTH))[j % T::WIDTH]
            } else {
                self.sb.load(l * Self::COLS + self.alone(j))
            }
        })
    }

    /// Adds the products of a step: of its rows' elements of A and its columns' of B.
    ///
    /// # Safety
    /// The step is one of B's.
    #[inline(always)]
    unsafe fn multiply(&self, ra: [T; TM], l: u32, rc: &mut [[T; TN]; TM]) {
        for piece in 0..TN / T::WIDTH {
            // SAFETY: `l` is a step of B's, as the caller promised; the piece is 16 bytes of its COLS columns.
            let rb = unsafe { self.sb.load_wide(l * Self::COLS + self.piece(piece)) };
            for i in 0..TM {
                for turn in 0..T::WIDTH {
                    let v = there_and_back(i, turn, T::WIDTH);
                    let j = piece * T::WIDTH + v;
                    rc[i][j] = ra[i].fma(rb[v], rc[i][j]);
                }
            }
        }
        for j in TN / T::WIDTH * T::WIDTH..TN {
            // SAFETY: as above, of an element.
            let b = unsafe { self.sb.load(l * Self::COLS + self.alone(j)) };
            for i in 0..TM {
                rc[i][j] = ra[i].fma(b, rc[i][j]);
            }
        }
    }
}
