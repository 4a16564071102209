//! `tsmttsm_whole`, `_columns`, `_tiled`, `_interleaved`, `_leapfrog`, `_atomic`, `_along`, and the same of Gram matrices: TM x
//! TN sums a thread, fused multiply-adds.
//!
//! # Idea
//! A thread that has all of C loads m + n elements a row for m·n multiply-adds, but has registers for 11 x 11 sums of f64 at most, or 12 x 12 of f32.
//! Tiles share a row among threads, which load it from the first-level cache TN or TM times, and from memory once. Loading
//! the next rows ahead of this one's arithmetic (leap-frogging) hides the memory's latency where registers leave few warps.
//! # Thread mapping
//! Group g of G takes rows g, g + G, .. of each G·STEPS. Where unit strides run along m and n, the threads of a group are
//! neighbours; where they run along k ([`ALONG`]), neighbours are of other groups, and a group takes STEPS rows that follow
//! one another. A tile's rows and columns are neighbours, or ([`INTERLEAVED`]) 16 bytes out of every tile's.
//! # Source
//! Ernst et al., Sect. 3: Figures 7 to 11, Listings 4 and 5.

use super::Reduced;
use super::finish::{self, Atomic};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::{WARP_LANES, WarpShuffleValue};

/// Load, then multiply.
pub const PLAIN: u32 = 0;
/// The next rows are loaded before these are multiplied.
pub const LEAPFROG: u32 = 1;
/// The same, and tiles are not contiguous.
pub const INTERLEAVED: u32 = 2;
/// The same as [`LEAPFROG`], lanes and loads running along k.
pub const ALONG: u32 = 3;
/// Of [`super::lines`]: a tile's lines are as many apart as there are tiles.
pub const DEALT: u32 = 4;

/// What a block is.
pub trait Shape {
    /// Threads.
    const THREADS: u32;
    /// Rows of C.
    const BM: u32;
    /// Columns of C.
    const BN: u32;
    /// One of those above.
    const HOW: u32;
    /// Whether B is A.
    const GRAM: bool;
}

/// How a block of this shape hands in its tile of C.
pub trait HandIn<T>: Shape {
    /// The tile, BM x BN by columns, is in shared memory.
    ///
    /// # Safety
    /// As for [`finish::tile`]; added atomically, C is only added to while the kernel runs.
    unsafe fn hand_in(x: &Reduced<T>);
}

/// A block of THREADS threads for BM x BN of C, of a GRAM matrix or not, added ATOMICally or not.
pub struct Block<
    const THREADS: usize,
    const BM: usize,
    const BN: usize,
    const HOW: u32,
    const GRAM: bool,
    const ATOMIC: bool,
>;

impl<const THREADS: usize, const BM: usize, const BN: usize, const HOW: u32, const GRAM: bool, const ATOMIC: bool> Shape
    for Block<THREADS, BM, BN, HOW, GRAM, ATOMIC>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = BM as u32;
    const BN: u32 = BN as u32;
    const HOW: u32 = HOW;
    const GRAM: bool = GRAM;
}

impl<T: Scalar, const THREADS: usize, const BM: usize, const BN: usize, const HOW: u32, const GRAM: bool> HandIn<T>
    for Block<THREADS, BM, BN, HOW, GRAM, false>
{
    #[inline(always)]
    unsafe fn hand_in(x: &Reduced<T>) {
        // SAFETY: what `HandIn::hand_in` asks for is what `finish::tile` does.
        unsafe { finish::tile::<T, GRAM>(x, (Self::BM, Self::BN, Self::THREADS)) }
    }
}

impl<T: Atomic, const THREADS: usize, const BM: usize, const BN: usize, const HOW: u32> HandIn<T>
    for Block<THREADS, BM, BN, HOW, false, true>
{
    #[inline(always)]
    unsafe fn hand_in(x: &Reduced<T>) {
        // SAFETY: what `HandIn::hand_in` asks for: the tile is whole, and C is only added to.
        unsafe { add_atomically(x, (Self::BM, Self::BN, Self::THREADS)) }
    }
}

/// Any strides, element by element.
const ANY: u32 = 0;
/// 16 bytes along m and n.
const ACROSS: u32 = 1;
/// 16 bytes along k.
const DOWN: u32 = 2;

/// The sums of a thread of a block of shape S: TM x TN, for STEPS rows at a time.
pub struct Tiles<T, S, const TM: usize, const TN: usize, const STEPS: usize> {
    rc: [[T; TN]; TM], // (TM, TN)
    /// This thread's tile, and its group.
    tile: u32,
    group: u32,
    shape: PhantomData<S>,
}

/// What is loaded at a time: STEPS rows of A and of B.
type Loaded<T, const TM: usize, const TN: usize, const STEPS: usize> = ([[T; TM]; STEPS], [[T; TN]; STEPS]);

impl<T: Scalar, S: HandIn<T>, const TM: usize, const TN: usize, const STEPS: usize> Tiles<T, S, TM, TN, STEPS>
where
    T::Word: WarpShuffleValue,
{
    const OK: () = {
        assert!(S::BM % TM as u32 == 0 && S::BN % TN as u32 == 0, "whole tiles");
        assert!(Self::TILES.is_power_of_two() && S::THREADS % Self::TILES == 0, "whole groups");
        assert!(S::HOW != ALONG || STEPS % T::WIDTH == 0, "loads of 16 bytes along k");
        assert!(!S::GRAM || S::BM == S::BN, "a Gram matrix is square");
    };
    const TILES_M: u32 = S::BM / TM as u32;
    const TILES_N: u32 = S::BN / TN as u32;
    /// Threads a group, and groups.
    const TILES: u32 = Self::TILES_M * Self::TILES_N;
    pub(super) const GROUPS: u32 = S::THREADS / Self::TILES;
    /// Rows that the block takes at a time.
    const ROWS: u32 = Self::GROUPS * STEPS as u32;

    /// No sums yet.
    #[inline(always)]
    pub(super) fn new() -> Self {
        const { Self::OK };
        let t = thread::thread_idx_x() % S::THREADS;
        let (tile, group) =
            if S::HOW == ALONG { (t / Self::GROUPS, t % Self::GROUPS) } else { (t % Self::TILES, t / Self::TILES) };
        Self { rc: [[T::ZERO; TN]; TM], tile, group, shape: PhantomData }
    }

    /// This thread's group.
    #[inline(always)]
    pub(super) fn group(&self) -> u32 {
        self.group
    }

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(mut x: Reduced<T>) {
        const { Self::OK };
        if S::GRAM {
            (x.p.b, x.p.b_row, x.p.b_col) = (x.p.a, x.p.a_col, x.p.a_row);
        }
        let mut sums = Self::new();
        let (start, end) = x.p.part(Self::ROWS);
        // Blocks above the diagonal have nothing to do but to draw their tickets.
        let end = if S::GRAM && thread::block_idx_x() < thread::block_idx_z() { start } else { end };
        // SAFETY: `end` <= k; wide loads are aligned and inside where `is_across` and `is_down` say so, in whole rows.
        unsafe {
            let whole = start + (end - start) / Self::ROWS * Self::ROWS;
            let mut done = start;
            if S::HOW == ALONG {
                if Self::is_down(&x) {
                    sums.run::<DOWN>(&x, start, whole);
                    done = whole;
                }
            } else if Self::is_across(&x) {
                sums.run::<ACROSS>(&x, start, whole);
                done = whole;
            }
            sums.run::<ANY>(&x, done, end);
            sums.hand_in(&x);
        }
    }

    /// Whether all 16 bytes of a row of a tile are inside A and B, or outside, and aligned.
    #[inline(always)]
    fn is_across(x: &Reduced<T>) -> bool {
        let (p, width) = (&x.p, T::WIDTH as u64);
        TM % T::WIDTH == 0
            && TN % T::WIDTH == 0
            && p.a_row == 1
            && p.b_col == 1
            && (p.m as u64 | p.n as u64 | p.a_col | p.b_row) % width == 0
            && p.a.is_aligned(16)
            && p.b.is_aligned(16)
    }

    /// Whether 16 bytes along k are contiguous in A and B, and aligned.
    #[inline(always)]
    fn is_down(x: &Reduced<T>) -> bool {
        let (p, width) = (&x.p, T::WIDTH as u64);
        let is_line = |stride: u64, lines: u32| stride % width == 0 || lines == 1;
        p.a_col == 1
            && p.b_row == 1
            && is_line(p.a_row, p.m)
            && is_line(p.b_col, p.n)
            && p.a.is_aligned(16)
            && p.b.is_aligned(16)
    }

    /// The `index`-th line of a tile's side, of `tiles` tiles of SIDE lines.
    #[inline(always)]
    fn line<const SIDE: usize>(tile: u32, tiles: u32, index: usize) -> u32 {
        let width = if SIDE % T::WIDTH == 0 { T::WIDTH } else { 1 };
        match S::HOW {
            DEALT => index as u32 * tiles + tile,
            INTERLEAVED => ((index / width) as u32 * tiles + tile) * width as u32 + (index % width) as u32,
            _ => tile * SIDE as u32 + index as u32,
        }
    }

    /// This thread's i-th row and j-th column of the block's part of C.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> u32 {
        Self::line::<TM>(self.tile / Self::TILES_N, Self::TILES_M, i)
    }

    #[inline(always)]
    pub(super) fn col(&self, j: usize) -> u32 {
        Self::line::<TN>(self.tile % Self::TILES_N, Self::TILES_N, j)
    }

    /// The `step`-th row of A and B that this thread takes of those from l on.
    #[inline(always)]
    fn at(&self, l: u32, step: usize) -> u32 {
        if S::HOW == ALONG {
            l + self.group * STEPS as u32 + step as u32
        } else {
            l + step as u32 * Self::GROUPS + self.group
        }
    }

    /// Multiplies rows `start .. end`, which by 16 bytes are whole rounds.
    ///
    /// # Safety
    /// `end` <= k; if PATH is not ANY its condition holds.
    #[inline(always)]
    unsafe fn run<const PATH: u32>(&mut self, x: &Reduced<T>, start: u32, end: u32) {
        if start >= end {
            return;
        }
        // The last rows that can be loaded at a time: what is ahead of the end is loaded again, and not multiplied.
        let last = start + (end - start - 1) / Self::ROWS * Self::ROWS;
        // SAFETY: from `start` to `last` on there are rows, by 16 bytes whole rounds of them.
        unsafe {
            if S::HOW == PLAIN {
                for l in (start..end).step_by(Self::ROWS as usize) {
                    let now = self.load::<PATH>(x, l, end);
                    self.multiply(now, x.p.conj_b());
                }
            } else {
                let mut now = self.load::<PATH>(x, start, end);
                for l in (start..end).step_by(Self::ROWS as usize) {
                    let ahead = if l < last { l + Self::ROWS } else { last };
                    let next = self.load::<PATH>(x, ahead, end);
                    self.multiply(now, x.p.conj_b());
                    now = next;
                }
            }
        }
    }

    /// This thread's elements of the rows from l on.
    ///
    /// # Safety
    /// As for [`Tiles::run`], of rows that are there.
    #[inline(always)]
    unsafe fn load<const PATH: u32>(&self, x: &Reduced<T>, l: u32, end: u32) -> Loaded<T, TM, TN, STEPS> {
        let p = &x.p;
        let (row, col) = (thread::block_idx_x() * S::BM, thread::block_idx_z() * S::BN);
        // SAFETY: the rows from l on are there, as the caller promised, and PATH's condition holds.
        unsafe {
            let ra = self.load_of::<PATH, TM>(p.a, (p.a_row, p.a_col), (p.m, row), |i| self.row(i), (l, end));
            if S::GRAM && Self::TILES == 1 {
                return (ra, core::array::from_fn(|s| core::array::from_fn(|j| ra[s][j % TM])));
            }
            (ra, self.load_of::<PATH, TN>(p.b, (p.b_col, p.b_row), (p.n, col), |j| self.col(j), (l, end)))
        }
    }

    /// The same of one matrix: `across` from column to column of the tall matrix, `down` from row to row; `lines` columns.
    ///
    /// # Safety
    /// As for [`Tiles::load`].
    #[inline(always)]
    unsafe fn load_of<const PATH: u32, const SIDE: usize>(
        &self,
        of: Global<T>,
        (across, down): (u64, u64),
        (lines, first): (u32, u32),
        line: impl Fn(usize) -> u32,
        (l, end): (u32, u32),
    ) -> [[T; SIDE]; STEPS] {
        let mut loaded = [[T::ZERO; SIDE]; STEPS];
        // Lines past the last are loaded from the first: what comes of them is not stored.
        let inside = |i: usize| if first + line(i) < lines { first + line(i) } else { 0 };
        match PATH {
            ACROSS => {
                for s in 0..STEPS {
                    let from = of.starting_at(self.at(l, s) as u64 * down);
                    for i in (0..SIDE).step_by(T::WIDTH) {
                        // SAFETY: the row is there, and 16 bytes of a line inside it.
                        let wide = unsafe { from.stream_wide(inside(i) as u64) };
                        for v in 0..T::WIDTH {
                            loaded[s][(i + v) % SIDE] = wide[v];
                        }
                    }
                }
            }
            DOWN => {
                for i in 0..SIDE {
                    let from = of.starting_at(inside(i) as u64 * across + self.at(l, 0) as u64);
                    for s in (0..STEPS).step_by(T::WIDTH) {
                        // SAFETY: the line is there, and STEPS of its rows.
                        let wide = unsafe { from.stream_wide(s as u64) };
                        for v in 0..T::WIDTH {
                            loaded[(s + v) % STEPS][i] = wide[v];
                        }
                    }
                }
            }
            _ => {
                for s in 0..STEPS {
                    let from = of.starting_at(self.at(l, s) as u64 * down);
                    for i in 0..SIDE {
                        let is_there = first + line(i) < lines && self.at(l, s) < end;
                        // SAFETY: inside the matrix wherever the load happens, which nobody writes.
                        loaded[s][i] = unsafe { from.stream_if(is_there, (first + line(i)) as u64 * across) };
                    }
                }
            }
        }
        loaded
    }

    /// rc(i, j) += Σ a(s, i) · b(s, j), s ascending, or of b's conjugates.
    #[inline(always)]
    pub(super) fn multiply(&mut self, (ra, rb): Loaded<T, TM, TN, STEPS>, conj_b: bool) {
        for s in 0..STEPS {
            let rb = rb[s].map(|b| b.conj_if(conj_b)); // (TN)
            let is_triangle = S::GRAM && Self::TILES == 1;
            if !T::IS_COMPLEX && !is_triangle {
                T::add_outer(&mut self.rc, ra[s], rb, Signs { conj_b: 0, never: 0 });
                continue;
            }
            for i in 0..TM {
                for j in 0..TN {
                    // What is above the diagonal is not asked for.
                    if !(is_triangle && j > i) {
                        self.rc[i][j] = ra[s][i].fma(rb[j], self.rc[i][j]);
                    }
                }
            }
        }
    }

    /// rc(i, j) += Σ a(i, s) · b(s), s ascending, of one j.
    #[inline(always)]
    pub(super) fn multiply_line(&mut self, ra: &[[T; STEPS]; TM], j: usize, rb: [T; STEPS]) {
        for s in 0..STEPS {
            for i in 0..TM {
                self.rc[i][j] = ra[i][s].fma(rb[s], self.rc[i][j]);
            }
        }
    }

    /// rc(i, j) += a(i) · b(j), or of b's conjugates.
    #[inline(always)]
    pub(super) fn multiply_outer(&mut self, ra: [T; TM], rb: [T; TN], signs: Signs) {
        T::add_outer(&mut self.rc, ra, rb, signs);
    }

    /// Calls `visit` with the place of each sum in the block's tile, by columns, and the sum.
    #[inline(always)]
    fn each(&self, visit: impl Fn(u32, T)) {
        for j in 0..TN {
            let first = self.col(j) * S::BM;
            for i in 0..TM {
                visit(first + self.row(i), self.rc[i][j]);
            }
        }
    }

    /// Adds the groups' sums in shared memory and finishes: lanes of a warp first, then warps in order.
    ///
    /// # Safety
    /// As for [`Tiles::body`]; all threads of the block are here.
    #[inline(always)]
    pub(super) unsafe fn hand_in(&mut self, x: &Reduced<T>) {
        let t = thread::thread_idx_x() % S::THREADS;
        // Lanes of one tile: their distances, from and to; warps of one tile; whether this lane has the warp's sum.
        let (from, to, rounds, round, writes) = if S::HOW == ALONG {
            let lanes = if Self::GROUPS < WARP_LANES { Self::GROUPS } else { WARP_LANES };
            (1, lanes, Self::GROUPS / lanes, self.group / lanes, self.group % lanes == 0)
        } else {
            let threads = if Self::TILES < WARP_LANES { WARP_LANES } else { Self::TILES };
            (Self::TILES, WARP_LANES, S::THREADS / threads, t / threads, t % threads < Self::TILES)
        };
        for i in 0..TM {
            for j in 0..TN {
                let mut distance = from;
                while distance < to {
                    let word = self.rc[i][j].to_word();
                    // SAFETY: all lanes are here; the source lane is in the warp.
                    let (other, _) = unsafe { warp::warp_shuffle_xor(u32::MAX, word, distance, WARP_LANES) };
                    self.rc[i][j] = self.rc[i][j].add(T::from_word(other));
                    distance *= 2;
                }
            }
        }
        let sc = Shared::<T>::at(0); // (BM, BN) by columns
        for turn in 0..ptx::opaque(rounds) {
            if writes && turn == round {
                // SAFETY: inside the tile; each element is one thread's in each turn, between barriers.
                unsafe {
                    if turn == 0 {
                        self.each(|at, sum| sc.store(at, sum));
                    } else {
                        self.each(|at, sum| sc.store(at, sc.load(at).add(sum)));
                    }
                }
            }
            thread::sync_threads();
        }
        // SAFETY: the tile is whole, behind a barrier.
        unsafe { S::hand_in(x) };
    }
}

/// C += α · the block's tile, which is in shared memory.
///
/// # Safety
/// As for [`finish::tile`]; C is only added to while the kernel runs.
#[inline(always)]
unsafe fn add_atomically<T: Atomic>(x: &Reduced<T>, (bm, bn, threads): (u32, u32, u32)) {
    let (row, col) = (thread::block_idx_x() * bm, thread::block_idx_z() * bn);
    let sc = Shared::<T>::at(0);
    for e in (thread::thread_idx_x()..bm * bn).step_by(threads as usize) {
        let (i, j) = (row + e % bm, col + e / bm);
        if i < x.p.m && j < x.p.n {
            let at = i as u64 * x.p.c_row + j as u64 * x.p.c_col;
            // SAFETY: (i, j) lies in C.
            unsafe { T::red_add(x.p.c, at, x.p.alpha.mul(sc.load(e))) };
        }
    }
}
