//! `batched_warps`: a warp a problem, through shared memory of its own: f32 and c64.
//!
//! # Idea
//! That of `tile.rs`, for larger problems, by compile-time sizes and without barriers: while a warp multiplies one problem, the next one's A
//! and B are on their way into its other stage. A lane reads shared memory 16 bytes at a time: rows of A at one step, and several
//! steps of a column of B. C goes straight between device memory and registers.
//!
//! # Thread mapping
//! Warps take problems in turn. Lane (g, q) = (lane / 4, lane % 4) has columns q, q + 4, .. of C, and of its rows 16 bytes in each eight
//! times 16 bytes: neighbours have neighbouring rows.
//! # Tile parameters
//! TM x TN sums a lane: k and m up to 8·TM, n up to 4·TN, and since C may be transposed m too.
//! # Preconditions
//! C does not lie by rows: the launch asks for the transposed product instead.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. Stages are zeros where no matrix ever is; what is past the last column is the last one
//! again, and not stored.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k, as of the other entries.
//! # Cost
//! Each matrix is read once and each C written once. Of m = n = k = 32 in f32, β = 1, these are 16 KiB a problem, for which an H200's memory
//! takes 860 cycles an SM; 1024 multiply-adds a lane and some 700 other instructions take its schedulers 430, and 96 reads of 16
//! bytes a lane its shared memory at most 400. Twelve warps an SM with 8 KiB of A and B each ahead are 96 KiB on their way, where 64
//! would do: the memory is predicted to be the limit.

use super::{Batched, matrices::Matrices, side::copy};
use cuda_std::prelude::*;
use cuda_std::{Word, ptx::Hint, warp::WARP_LANES};
use model::launch::batched::WarpTile;

/// All lanes of a warp.
const ALL: u32 = u32::MAX;

/// An element of which 16 bytes are several.
pub trait Piece: Scalar {
    /// Element `i` of 16 bytes.
    fn of_piece(piece: [u64; 2], i: usize) -> Self;
}

impl Piece for f32 {
    #[inline(always)]
    fn of_piece(piece: [u64; 2], i: usize) -> f32 {
        f32::from_bits((piece[i / 2] >> (32 * (i % 2))) as u32)
    }
}

impl Piece for Complex<f32> {
    #[inline(always)]
    fn of_piece(piece: [u64; 2], i: usize) -> Self {
        Self::from_word(piece[i])
    }
}

/// # Safety
/// Launched with whole warps, at most as many as there are problems, rounded up to blocks, and `WarpTile::shared_len` elements of shared
/// memory a warp; m, k <= 8·TM, m, n <= 4·TN; operands that span their elements and lie as their codes say.
#[inline(always)]
pub unsafe fn body<T: Piece, const TM: usize, const TN: usize>(x: Batched<T>) {
    const { assert!(TM % T::WIDTH == 0 && TN > 0, "whole pieces of rows") };
    // SAFETY: what the launch promises is what `run` asks for; PIECES where `has_pieces` found it of C.
    unsafe {
        if Matrices::new(x.c, x.codes >> 16 & 255).has_pieces(x.m) {
            run::<T, TM, TN, true>(x);
        } else {
            run::<T, TM, TN, false>(x);
        }
    }
}

/// # Safety
/// As for [`body`]; where `PIECES`, C's columns are whole pieces.
#[inline(always)]
unsafe fn run<T: Piece, const TM: usize, const TN: usize, const PIECES: bool>(x: Batched<T>) {
    let (own, warps) = (thread::thread_idx_x(), thread::block_dim_x() / WARP_LANES);
    let tile = WarpTile::new(x.n, x.k, TM as u32, T::WIDTH as u32);
    let lane = Lane::<T, TM, TN>::new(&x, own % WARP_LANES, tile);
    let base = Shared::<T>::at(own / WARP_LANES * tile.shared_len());
    let turn = thread::grid_dim_x() * warps;
    let mut problem = thread::block_idx_x() * warps + own / WARP_LANES;
    // SAFETY: all lanes of the warp are here; `fill` and `has` look whether there is the problem and the element; a
    // stage is overwritten behind a wait of all lanes.
    unsafe {
        for at in (own % WARP_LANES * lane.width..tile.shared_len()).step_by((WARP_LANES * lane.width) as usize) {
            base.store_wide(at, |_| T::ZERO);
        }
        warp::sync_warp(ALL); // no lane copies before all zeros are there
        lane.fill(problem, base);
        ptx::cp_async_commit_group();
        let mut stage = 0;
        while problem < x.count {
            let now = base.starting_at(stage * tile.stage_len);
            stage = 1 - stage;
            lane.fill(problem + turn, base.starting_at(stage * tile.stage_len));
            ptx::cp_async_commit_group();
            ptx::cp_async_wait_group::<1>();
            warp::sync_warp(ALL); // the stage is whole
            let sums = lane.multiply(now);
            warp::sync_warp(ALL); // and may be overwritten
            let old = lane.old::<PIECES>(problem);
            lane.write::<PIECES>(problem, sums, old);
            problem += turn;
        }
    }
}

/// A lane of a warp.
struct Lane<'a, T, const TM: usize, const TN: usize> {
    x: &'a Batched<T>,
    of_a: Matrices<T>,
    of_b: Matrices<T>,
    of_c: Matrices<T>,
    tile: WarpTile,
    width: u32,
    lane: u32,
}

impl<'a, T: Piece, const TM: usize, const TN: usize> Lane<'a, T, TM, TN> {
    #[inline(always)]
    fn new(x: &'a Batched<T>, lane: u32, tile: WarpTile) -> Self {
        let of_a = Matrices::new(x.a, x.codes & 255);
        let of_b = Matrices::new(x.b, x.codes >> 8 & 255);
        let of_c = Matrices::new(x.c, x.codes >> 16 & 255);
        Lane { x, of_a, of_b, of_c, tile, width: T::WIDTH as u32, lane }
    }

    /// Its row `i` of TM.
    #[inline(always)]
    fn row(&self, i: usize) -> u32 {
        (i as u32 / self.width * 8 + self.lane / 4) * self.width + i as u32 % self.width
    }

    /// Its column `j` of TN.
    #[inline(always)]
    fn col(&self, j: usize) -> u32 {
        4 * j as u32 + self.lane % 4
    }

    /// Starts copying A and B of a problem into a stage, if there is the problem.
    ///
    /// # Safety
    /// The operands span their elements; nobody accesses the stage before the copies were waited for.
    #[inline(always)]
    unsafe fn fill(&self, problem: u32, into: Shared<T>) {
        let x = self.x;
        if problem < x.count {
            // SAFETY: `problem < count`, operands span their elements, and nobody accesses the stage, as the caller
            // promised; B's part begins behind A's at `b_at`.
            unsafe {
                self.copy(&self.of_a, problem, (x.m, x.k), into);
                self.copy(&self.of_b, problem, (x.k, x.n), into.starting_at(self.tile.b_at));
            }
        }
    }

    /// Starts copying a matrix, by columns.
    ///
    /// # Safety
    /// As for [`Lane::fill`]; there is the problem.
    #[inline(always)]
    unsafe fn copy(&self, of: &Matrices<T>, problem: u32, (rows, cols): (u32, u32), into: Shared<T>) {
        let (lane, pitch, width) = (self.lane, self.tile.pitch, self.width);
        // SAFETY: elements of the matrix, whole pieces where they are.
        unsafe {
            let from = of.of.base.starting_at(of.start(problem, self.x.count));
            if of.has_pieces(rows) {
                for col in (lane / 8..cols).step_by(4) {
                    for row in (lane % 8 * width..rows).step_by(8 * width as usize) {
                        let at = row as u64 + col as u64 * of.of.col;
                        ptx::cp_async_16(into.address(row + col * pitch), from.address(at), true);
                    }
                }
            } else if of.by_columns() {
                for col in 0..if lane < rows { cols } else { 0 } {
                    let at = lane as u64 * of.of.row + col as u64 * of.of.col;
                    copy::<T>(into.address(lane + col * pitch), from.address(at));
                }
            } else {
                for row in 0..if lane < cols { rows } else { 0 } {
                    let at = row as u64 * of.of.row + lane as u64 * of.of.col;
                    copy::<T>(into.address(row + lane * pitch), from.address(at));
                }
            }
        }
    }

    /// Its sums of the problem in a stage.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn multiply(&self, sa: Shared<T>) -> [[T; TN]; TM] {
        let (x, pitch) = (self.x, self.tile.pitch);
        let sa = sa.starting_at(self.row(0));
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        let conj_b = x.conj_b();
        // Of a sum of no steps B begins before A's rows, and nothing of it is loaded.
        let b_at = |j: usize| (self.tile.b_at + self.col(j).min(x.n - 1) * pitch).wrapping_sub(self.row(0));
        let sb: [Shared<T>; TN] = core::array::from_fn(|j| sa.starting_at(b_at(j)));
        for l in (0..x.k).step_by(T::WIDTH) {
            // SAFETY: steps up to whole pieces are there, zeros from k on.
            unsafe {
                let rb: [T::Wide; TN] = core::array::from_fn(|j| sb[j].load_wide(l)); // (TN, WIDTH)
                for d in 0..T::WIDTH {
                    let mut ra = [T::ZERO; TM]; // (TM)
                    for i in (0..TM).step_by(T::WIDTH) {
                        let wide = sa.load_wide((l + d as u32) * pitch + 8 * i as u32);
                        for e in 0..T::WIDTH {
                            ra[i + e] = wide[e];
                        }
                    }
                    for j in 0..TN {
                        let rb = rb[j][d].conj_if(conj_b);
                        for i in 0..TM {
                            rc[i][j] = ra[i].fma(rb, rc[i][j]);
                        }
                    }
                }
            }
        }
        rc
    }

    /// Where its part of C begins. It is worked out at each use, for to keep all places takes registers.
    ///
    /// # Safety
    /// As for [`Matrices::start`]; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn spot(&self, problem: u32) -> Spot<T> {
        let (x, c) = (self.x, &self.of_c);
        // SAFETY: all lanes are here, and the list has `count` problems, as the caller promised.
        let (lane, start) = unsafe { (ptx::pinned(self.lane), c.start(ptx::pinned(problem), x.count)) };
        let (row, col) = (lane / 4 * self.width, lane % 4);
        let left = |of: u32, first: u32| of.saturating_sub(first);
        Spot { at: c.at(row, col).starting_at(start), row: c.of.row, rows: left(x.m, row), cols: left(x.n, col) }
    }

    /// What is in C where its sums go, if it is read.
    ///
    /// # Safety
    /// C spans its elements, in whole pieces where `PIECES`; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn old<const PIECES: bool>(&self, problem: u32) -> [[T; TM]; TN] {
        let mut old = [[T::ZERO; TM]; TN]; // (TN, TM)
        if self.x.beta.is_zero() {
            return old;
        }
        // SAFETY: C spans its elements, so its list all problems, and all lanes are here, as the caller promised.
        let mut spot = unsafe { self.spot(problem) };
        for j in 0..TN {
            for i in (0..TM).step_by(T::WIDTH) {
                // SAFETY: elements of C; whole pieces where they are.
                unsafe {
                    if PIECES {
                        let at = spot.at.address(8 * i as u64);
                        let piece = <[u64; 2]>::ld_global_if(at, Hint::Coherent, spot.has(8 * i, j));
                        for e in 0..T::WIDTH {
                            old[j][i + e] = T::of_piece(piece, e);
                        }
                    } else {
                        for e in 0..T::WIDTH {
                            let at = spot.at.address((8 * i + e) as u64 * spot.row);
                            let word = T::Word::ld_global_if(at, Hint::Coherent, spot.has(8 * i + e, j));
                            old[j][i + e] = T::from_word(word);
                        }
                    }
                }
            }
            spot.at = spot.at.starting_at(4 * self.of_c.of.col);
        }
        old
    }

    /// C ← α · sums + β · old.
    ///
    /// # Safety
    /// C spans its elements, in whole pieces where `PIECES`, and the problem is this warp's; all its lanes are here.
    #[inline(always)]
    unsafe fn write<const PIECES: bool>(&self, problem: u32, sums: [[T; TN]; TM], old: [[T; TM]; TN]) {
        // SAFETY: C spans its elements, so its list all problems, and all lanes are here, as the caller promised.
        let mut spot = unsafe { self.spot(problem) };
        for j in 0..TN {
            for i in (0..TM).step_by(T::WIDTH) {
                let value = |e: usize| self.x.scaled(sums[i + e][j], old[j][i + e]);
                // SAFETY: elements of C, this lane's; whole pieces where they are.
                unsafe {
                    if PIECES {
                        if spot.has(8 * i, j) {
                            spot.at.store_wide(8 * i as u64, value);
                        }
                    } else {
                        for e in 0..T::WIDTH {
                            if spot.has(8 * i + e, j) {
                                spot.at.store((8 * i + e) as u64 * spot.row, value(e));
                            }
                        }
                    }
                }
            }
            spot.at = spot.at.starting_at(4 * self.of_c.of.col);
        }
    }
}

/// A place in C.
struct Spot<T> {
    /// The lane's first row in some column of its.
    at: Global<T>,
    /// Elements to the next row.
    row: u64,
    /// Rows and columns that there are from the lane's first ones on.
    rows: u32,
    cols: u32,
}

impl<T> Spot<T> {
    /// Whether there is the row so many after the lane's first, in its column `j`.
    #[inline(always)]
    fn has(&self, rows_on: usize, j: usize) -> bool {
        (rows_on as u32) < self.rows && 4 * (j as u32) < self.cols
    }
}
