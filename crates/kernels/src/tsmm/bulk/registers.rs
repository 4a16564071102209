//! `tsmm_bulk_registers`: the vector units, with B in registers: f32 and c64.
//!
//! # Idea
//! A lane owns columns of C, and has theirs of B in registers. What it reads of A is 16 bytes of a row at a time, and each of its elements is
//! multiplied CT times: shared memory hands the lanes of an SM 32 words a cycle, whether they are the same or not, and four warps want 128 for
//! as many multiply-adds. So LC is small and CT large, as far as there are registers.
//!
//! # Thread mapping
//! LC lanes, each with every LC-th of up to LC · CT columns, are a group; the 32 / LC groups have TM = 4 rows each. Where k is whole 16 bytes
//! they are every so-manieth row, and group g takes the pieces of a row in an order of its own (`turned`), so that rows of a power of two of
//! pieces meet in no bank. Where it is not they are neighbours: four rows together begin at a multiple of 16 bytes, and the i-th of them
//! as many elements behind one as i·k leaves, which for each is known when this is compiled.
//!
//! # Determinism
//! The order of a sum's steps follows from k and the row's place in its tile.
//!
//! # Cost
//! Measured on an H200 on 2026-11-28, f32, matrices of 1 GB, of what a copy moves in the same process (benches/results/trials/lanes.csv,
//! run 2): 8 x 64 82%; 8 x 16, 8 x 32 and 16 x 16 99, 86 and 92%, where `tsmm_bulk_shared` and `tsmm_bulk_rows`, which have fewer
//! instructions, 99, 87 and 92, took their place.

use super::{Tile, Units, held};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use crate::tsmm::unrolled::{Turns, unrolled};
use core::array::from_fn;
use cuda_std::prelude::*;

/// Rows of a lane.
const TM: usize = 4;
/// Words of B in registers up to which two pieces of a row are loaded at a time.
const FEW: usize = 128;

/// LC lanes with CT columns each, and up to K steps.
pub struct Registers<T, const LC: usize, const CT: usize, const K: usize> {
    /// This lane's columns, of which the first is `col`; its steps in the order in which its group takes them.
    rb: [[T; CT]; K],
    col: u32,
    group: u32,
    /// The group's turn.
    turn: u32,
    sb: Shared<T>,
}

/// Which turn `group` takes in rows of `pieces` pieces: its own multiple of the largest power of two that divides them, up to 8, in eighths.
/// Piece p is then p ^ turn: in eight pieces of shared memory, which are all banks, groups of neighbouring rows are at different ones.
#[inline(always)]
pub(super) fn turned(group: u32, pieces: u32) -> u32 {
    let power = pieces & pieces.wrapping_neg();
    let power = if power > 8 { 8 } else { power };
    group * power / 8 % power.max(1)
}

/// Loads a lane's columns of B, step by step.
struct Load<'a, T, const LC: usize, const CT: usize, const K: usize> {
    rb: &'a mut [[T; CT]; K],
    /// Its first column of step 0.
    from: Shared<T>,
    turn: u32,
}

impl<T: Scalar, const LC: usize, const CT: usize, const K: usize> Turns for Load<'_, T, LC, CT, K> {
    #[inline(always)]
    fn turn(&mut self, l: usize) {
        let width = T::WIDTH as u32;
        let step = ((l as u32 / width) ^ self.turn) * width + l as u32 % width;
        for j in 0..CT {
            // SAFETY: a turn leaves steps within eight pieces, and K is whole ones.
            self.rb[l][j] = unsafe { self.from.load((step * CT as u32 + j as u32) * LC as u32) };
        }
    }
}

/// Adds the products of whole rows, a block of pieces after the other; the i-th row begins (i · SHIFT) mod WIDTH elements behind a piece's
/// start.
struct Pieces<'a, T, const LC: usize, const CT: usize, const K: usize, const SHIFT: usize> {
    b: &'a Registers<T, LC, CT, K>,
    k: u32,
    starts: [Shared<T>; TM],
    rc: [[T; CT]; TM],
}

impl<T: Scalar, const LC: usize, const CT: usize, const K: usize> Units<T> for Registers<T, LC, CT, K> {
    const FRAGMENT: u32 = (TM * 32 / LC) as u32;
    const STEPS: u32 = K as u32;
    const COLS: u32 = (LC * CT) as u32;
    type Sums = [[T; CT]; TM];

    /// By rows of COLS.
    #[inline(always)]
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32) {
        let place = |at: u32| Place { to: at, l: at / Self::COLS, col: at % Self::COLS };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; B's part has so many.
        unsafe { bring(x, sb, Self::STEPS * Self::COLS, threads, place) };
    }

    #[inline(always)]
    unsafe fn new(x: &Product<T>, sb: Shared<T>) -> Self {
        let (lane, width) = (thread::thread_idx_x() % warp::WARP_LANES, T::WIDTH as u32);
        let (col, group) = (lane % LC as u32, lane / LC as u32);
        let turn = if x.k % width == 0 { turned(group, x.k / width) } else { 0 };
        let mut rb = [[T::ZERO; CT]; K];
        unrolled::<K>(&mut Load::<T, LC, CT, K> { rb: &mut rb, from: sb.starting_at(col), turn });
        Registers { rb, col, group, turn, sb }
    }

    #[inline(always)]
    unsafe fn sums(&self, x: &Product<T>, tile: Tile, sa: Shared<T>, first: u32) -> [[T; CT]; TM] {
        // SAFETY: A's slot is filled and all lanes are here, as `Units::sums` asks; `guarded` takes what the tile's
        // rows do not fill.
        unsafe {
            if first + Self::FRAGMENT > tile.rows {
                return self.guarded(x.k, tile.rows, sa, first);
            }
            match x.k % T::WIDTH as u32 {
                0 => self.pieces::<0>(x.k, sa, first),
                2 => self.pieces::<2>(x.k, sa, first),
                _ => self.pieces::<1>(x.k, sa, first),
            }
        }
    }

    #[inline(always)]
    unsafe fn write(&self, x: &Product<T>, tile: Tile, sc: Shared<T>, first: u32, sums: [[T; CT]; TM]) {
        // SAFETY: A's slot is filled, nobody reads A's rows there any more, and all lanes are here, as `Units::write`
        // asks.
        unsafe {
            if x.beta.is_zero() {
                self.write_as::<false>(x, tile, sc, first, sums)
            } else {
                self.write_as::<true>(&x.with_beta(held(x.beta)), tile, sc, first, sums)
            }
        }
    }
}

impl<T: Scalar, const LC: usize, const CT: usize, const K: usize> Registers<T, LC, CT, K> {
    /// Pieces of 16 bytes of a row between which nothing is asked.
    const TOGETHER: usize = if CT * K * size_of::<T>() / 4 > FEW { 1 } else { 2 };
    const OK: () = assert!(LC >= 8 && 32 % LC == 0 && K % 8 == 0, "four groups take turns in eight pieces");

    /// This lane's i-th row of those from `first` on. Of neighbours the i-th is the one that begins i · SHIFT elements behind a piece.
    #[inline(always)]
    fn row(&self, k: u32, first: u32, i: usize) -> u32 {
        let (i, width) = (i as u32, T::WIDTH as u32);
        match k % width {
            0 => first + self.group + 32 / LC as u32 * i,
            3 => first + self.group * TM as u32 + (TM as u32 - i) % TM as u32,
            _ => first + self.group * TM as u32 + i,
        }
    }

    /// The products of whole rows by pieces of 16 bytes.
    ///
    /// # Safety
    /// As for [`Units::sums`]; the rows are there, and SHIFT is k mod WIDTH, or 1 for 3.
    #[inline(always)]
    unsafe fn pieces<const SHIFT: usize>(&self, k: u32, sa: Shared<T>, first: u32) -> [[T; CT]; TM] {
        const { Self::OK };
        let starts = from_fn(|i| {
            let behind = (i * SHIFT % T::WIDTH) as u32;
            sa.starting_at(self.row(k, first, i) * k - behind)
        });
        let mut pieces = Pieces::<T, LC, CT, K, SHIFT> { b: self, k, starts, rc: [[T::ZERO; CT]; TM] };
        unrolled::<64>(&mut pieces);
        pieces.rc
    }

    /// The same of rows of which some are not there, in the same order, element by element.
    ///
    /// # Safety
    /// As for [`Units::sums`].
    #[inline(always)]
    unsafe fn guarded(&self, k: u32, rows: u32, sa: Shared<T>, first: u32) -> [[T; CT]; TM] {
        let (mut rc, width) = ([[T::ZERO; CT]; TM], T::WIDTH as u32);
        for step in 0..k {
            let l = ((step / width) ^ self.turn) * width + step % width;
            for i in 0..TM {
                let row = self.row(k, first, i);
                // SAFETY: an element of A, if the row is there, and one of B.
                unsafe {
                    let element = if row < rows { sa.load(row * k + l) } else { T::ZERO };
                    for j in 0..CT {
                        let b = self.sb.load(l * Self::COLS + self.col + (j * LC) as u32);
                        rc[i][j] = element.fma(b, rc[i][j]);
                    }
                }
            }
        }
        rc
    }

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
        sums: [[T; CT]; TM],
    ) {
        for i in 0..TM {
            let row = self.row(x.k, first, i);
            for j in 0..CT {
                let col = self.col + (j * LC) as u32;
                if row < tile.rows && col < x.n {
                    let (at, sum) = (row * x.n + col, sums[i][j].conj_if(x.conj_sum()));
                    // SAFETY: an element of C's tile, this lane's.
                    unsafe {
                        let scaled =
                            if READ { x.alpha.scale_onto(sum, x.beta.scale(sc.load(at))) } else { x.alpha.scale(sum) };
                        sc.store(at, scaled);
                    }
                }
            }
        }
    }
}

impl<T: Scalar, const LC: usize, const CT: usize, const K: usize, const SHIFT: usize> Turns
    for Pieces<'_, T, LC, CT, K, SHIFT>
{
    #[inline(always)]
    fn turn(&mut self, block: usize) {
        let len = Registers::<T, LC, CT, K>::TOGETHER * T::WIDTH;
        // A row that begins behind a piece's start reaches into the next.
        let reach = if SHIFT > 0 { T::WIDTH } else { 1 };
        let (from, end) = (block * len, (block + 1) * len);
        if from >= K + reach - 1 {
            return;
        }
        // SAFETY: pieces that have elements of the row.
        unsafe {
            if end as u32 <= self.k {
                self.block::<true>(from);
            } else if (from as u32) < self.k + reach as u32 - 1 {
                self.block::<false>(from);
            }
        }
    }
}

impl<T: Scalar, const LC: usize, const CT: usize, const K: usize, const SHIFT: usize> Pieces<'_, T, LC, CT, K, SHIFT> {
    /// Those of the steps from `from` on, less those that a row begins behind; with zeros for what is not there unless WHOLE.
    ///
    /// # Safety
    /// The rows are there, and all steps if WHOLE.
    #[inline(always)]
    unsafe fn block<const WHOLE: bool>(&mut self, from: usize) {
        let width = T::WIDTH;
        for p in 0..Registers::<T, LC, CT, K>::TOGETHER {
            let at = from + p * width;
            let turn = if SHIFT == 0 { self.b.turn } else { 0 };
            let turned = ((at / width) as u32 ^ turn) * width as u32;
            let ra: [T::Wide; TM] = from_fn(|i| {
                let is_there = WHOLE || at < self.k as usize + i * SHIFT % width;
                // SAFETY: a piece that has an element of the row.
                if is_there { unsafe { self.starts[i].load_wide(turned) } } else { T::ZEROS }
            });
            for v in 0..width {
                for i in 0..TM {
                    let behind = i * SHIFT % width;
                    if at + v < behind || at + v - behind >= K {
                        continue;
                    }
                    let l = at + v - behind;
                    let element = if WHOLE || SHIFT == 0 || (l as u32) < self.k { ra[i][v] } else { T::ZERO };
                    for j in 0..CT {
                        self.rc[i][j] = element.fma(self.b.rb[l][j], self.rc[i][j]);
                    }
                }
            }
        }
    }
}
