//! `batched_fragments` of complex elements: c128, from sm_90 on.
//!
//! # Idea
//! That of `fragments.rs`. An element is 16 bytes, so that a lane loads it at once, and what the lanes load together are whole sectors
//! however matrices lie. Its parts are two rows of a fragment of `mma.m16n8k4`, in the registers in which they arrive: rows 0 to 7 are the real
//! parts of eight rows of A, rows 8 to 15 their imaginary parts. By the imaginary parts of B the fragment gives two of the four
//! sums, which change places and one its sign, and by its real parts the other two, on top of them. A warp has eight rows of A at a time:
//! as each of its fragments was multiplied for the last time, the next eight rows' or the next problem's is asked for.
//!
//! # Thread mapping
//! A task is a problem, or half of its columns, of which both warps are of one block and read the same A at about the same time, from the
//! caches the second time; warps take tasks in turn. Lane (g, q) = (lane / 4, lane % 4) holds row g of A at steps q, q + 4, .., these steps
//! of B's columns g, g + 8, .., and of each 8 x 8 of C columns 2q and 2q + 1 of row g.
//! # Tile parameters
//! m and n up to 8·NB·PARTS, k up to 4·KS. A lane has KS numbers of A, NB·KS of B, 2·NB of C and 2·AHEAD of the old C, complex ones.
//! # Preconditions
//! C does not lie by rows: the launch asks for the transposed product instead.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. Rows, columns and steps that are not there are zeros, and not stored.
//! # Determinism
//! A sum is one chain of multiply-adds: first, in the order of k, the products with B's imaginary parts, then those with its real ones;
//! where the transposed product is computed these are A's. Otherwise than of other entries, bits thus depend on whether C lies by rows.
//! # Cost
//! Each matrix is read once, A once more from the caches where there are two parts, and each C written once. Of m = n = k = 32, β = 1, 64 KiB
//! a problem take an H200's memory 3400 cycles an SM, and its 256 `mma` the matrix units 1024 of them. Ahead of each of eight warps are
//! 4 KiB of A, 2 KiB of C, and once in four turns 8 KiB of B, together 64 KiB where 40 would do: the memory is predicted to be the limit.

use super::{Batched, matrices::Matrices};
use cuda_std::prelude::*;
use cuda_std::{Word, ptx::Hint};

type Elem = Complex<f64>;

/// # Safety
/// Launched with whole warps and at most as many of them as there are tasks, rounded up to blocks; m and n up to 8·NB·PARTS, k up to 4·KS;
/// operands that span their elements, at multiples of 16 bytes, and lie as their codes say.
#[inline(always)]
pub unsafe fn body<const NB: usize, const KS: usize, const AHEAD: usize, const PARTS: usize>(x: Batched<Elem>) {
    const { assert!(NB % AHEAD == 0 && (PARTS == 1 || PARTS == 2), "whole fragments, and halves at most") };
    let (own, warps) = (thread::thread_idx_x(), thread::block_dim_x() / warp::WARP_LANES);
    let lane = Lane::<NB, PARTS>::new(&x, own % warp::WARP_LANES);
    let (turn, blocks) = (thread::grid_dim_x() * warps, x.m.div_ceil(8));
    let tasks = x.count * PARTS as u32;
    let mut now = Item { task: thread::block_idx_x() * warps + own / warp::WARP_LANES, block: 0 };
    // SAFETY: `left`, `has` and `cols` are 0 where there is no element, of problems past the last too; all lanes of the
    // warp take the same turns.
    unsafe {
        let (mut a, mut b) = (lane.a(now), lane.b(now));
        let mut ra: [Elem; KS] = core::array::from_fn(|_| a.fragment());
        let mut rb: [[Elem; NB]; KS] = core::array::from_fn(|_| b.fragments());
        let mut old: [[Elem; 2]; AHEAD] = lane.old(now, 0);
        while now.task < tasks {
            let is_last = now.block + 1 == blocks;
            let next =
                if is_last { Item { task: now.task + turn, block: 0 } } else { Item { block: now.block + 1, ..now } };
            let mut a = lane.a(next);
            let mut rc = [[0.0; 4]; NB];
            for s in 0..KS {
                for j in 0..NB {
                    rc[j] = ptx::mma_m16n8k4_f64([ra[s].re, ra[s].im], [rb[s][j].im], rc[j]);
                }
            }
            // Real parts less, and imaginary parts more, what the imaginary parts of B gave; the other way round of its conjugate.
            let conj = x.conj_b();
            rc = rc.map(|[re0, re1, im0, im1]| if conj { [im0, im1, -re0, -re1] } else { [-im0, -im1, re0, re1] });
            for s in 0..KS {
                for j in 0..NB {
                    rc[j] = ptx::mma_m16n8k4_f64([ra[s].re, ra[s].im], [rb[s][j].re], rc[j]);
                }
                ra[s] = a.fragment();
            }
            if is_last {
                let mut b = lane.b(next);
                for s in 0..KS {
                    rb[s] = b.fragments();
                }
            }
            for first in (0..NB).step_by(AHEAD) {
                lane.write(now, first, core::array::from_fn(|j| rc[first + j]), old);
                old = if first + AHEAD < NB { lane.old(now, first + AHEAD) } else { lane.old(next, 0) };
            }
            now = next;
        }
    }
}

/// Eight rows of a task.
#[derive(Clone, Copy)]
struct Item {
    task: u32,
    block: u32,
}

/// A lane of a warp.
struct Lane<'a, const NB: usize, const PARTS: usize> {
    x: &'a Batched<Elem>,
    of_a: Matrices<Elem>,
    of_b: Matrices<Elem>,
    of_c: Matrices<Elem>,
    g: u32,
    q: u32,
    /// Its first row and step of A, its first step and column of B, and its first row and column of C.
    a: Global<Elem>,
    b: Global<Elem>,
    c: Global<Elem>,
}

impl<'a, const NB: usize, const PARTS: usize> Lane<'a, NB, PARTS> {
    #[inline(always)]
    fn new(x: &'a Batched<Elem>, lane: u32) -> Self {
        let (g, q) = (lane / 4, lane % 4);
        let of_a = Matrices::new(x.a, x.codes & 255);
        let of_b = Matrices::new(x.b, x.codes >> 8 & 255);
        let of_c = Matrices::new(x.c, x.codes >> 16 & 255);
        Lane { x, of_a, of_b, of_c, g, q, a: of_a.at(g, q), b: of_b.at(q, g), c: of_c.at(g, 2 * q) }
    }

    /// The problem of a task, and the first of its columns.
    #[inline(always)]
    fn of_task(&self, task: u32) -> (u32, u32) {
        (task / PARTS as u32, task % PARTS as u32 * 8 * NB as u32)
    }

    /// This lane's row of A, from its first step on.
    ///
    /// # Safety
    /// As for [`Matrices::start`].
    #[inline(always)]
    unsafe fn a(&self, item: Item) -> Row {
        let (x, problem) = (self.x, self.of_task(item.task).0);
        let [m, k] = if problem < x.count { [x.m, x.k] } else { [0; 2] };
        // SAFETY: the list has `count` problems, as the caller promised; past them `start` loads nothing.
        let start = unsafe { self.of_a.start(problem, x.count) };
        let first = 8 * item.block;
        let left = if first + self.g < m { k.saturating_sub(self.q) } else { 0 };
        let at = self.a.starting_at(start.wrapping_add(first as u64 * self.of_a.of.row));
        Row { at, left, steps: 0, on: 4 * self.of_a.of.col }
    }

    /// This lane's columns of B, in the same way.
    ///
    /// # Safety
    /// As for [`Matrices::start`].
    #[inline(always)]
    unsafe fn b(&self, item: Item) -> Columns<NB> {
        let (x, (problem, first)) = (self.x, self.of_task(item.task));
        let [n, k] = if problem < x.count { [x.n, x.k] } else { [0; 2] };
        // SAFETY: the list has `count` problems, as the caller promised; past them `start` loads nothing.
        let start = unsafe { self.of_b.start(problem, x.count) };
        let col = |j: usize| first + 8 * j as u32 + self.g;
        let left = core::array::from_fn(|j| if col(j) < n { k.saturating_sub(self.q) } else { 0 });
        let at = self.b.starting_at(start.wrapping_add(first as u64 * self.of_b.of.col));
        Columns { at, left, steps: 0, across: 8 * self.of_b.of.col, on: 4 * self.of_b.of.row }
    }

    /// Where this lane's part of C begins. It is worked out at each use, for to keep all places takes registers.
    ///
    /// # Safety
    /// As for [`Matrices::start`]; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn spot(&self, item: Item, first: usize) -> Spot {
        let x = self.x;
        // SAFETY: all lanes are here, and the list has `count` problems, as the caller promised.
        let (problem, part, start) = unsafe {
            let (problem, part) = self.of_task(ptx::pinned(item.task));
            (problem, part, self.of_c.start(problem, x.count))
        };
        let [m, n] = if problem < x.count { [x.m, x.n] } else { [0; 2] };
        let (row, col) = (8 * item.block, part + 8 * first as u32);
        let (down, on) = (self.of_c.of.row, self.of_c.of.col);
        let at = self.c.starting_at(start.wrapping_add(row as u64 * down).wrapping_add(col as u64 * on));
        let cols = if row + self.g < m { n.saturating_sub(col + 2 * self.q) } else { 0 };
        Spot { at, on, cols }
    }

    /// What is in C where sums go, if it is read.
    ///
    /// # Safety
    /// C spans its elements; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn old<const AHEAD: usize>(&self, item: Item, first: usize) -> [[Elem; 2]; AHEAD] {
        let mut old = [[Elem::ZERO; 2]; AHEAD];
        if self.x.beta.is_zero() {
            return old;
        }
        // SAFETY: C spans its elements, so its list all problems, and all lanes are here, as the caller promised.
        let mut spot = unsafe { self.spot(item, first) };
        for j in 0..AHEAD {
            for v in 0..2 {
                // SAFETY: `has` found the element in C.
                let word = unsafe { <[u64; 2]>::ld_global_if(spot.at.address(0), Hint::Coherent, spot.has(j, v)) };
                old[j][v] = Elem::from_word(word);
                spot.advance(v);
            }
        }
        old
    }

    /// C ← α · sums + β · old.
    ///
    /// # Safety
    /// C spans its elements, and the task is this warp's; all its lanes are here.
    #[inline(always)]
    unsafe fn write<const AHEAD: usize>(
        &self,
        item: Item,
        first: usize,
        sums: [[f64; 4]; AHEAD],
        old: [[Elem; 2]; AHEAD],
    ) {
        // SAFETY: C spans its elements, so its list all problems, and all lanes are here, as the caller promised.
        let mut spot = unsafe { self.spot(item, first) };
        for j in 0..AHEAD {
            for v in 0..2 {
                if spot.has(j, v) {
                    let sum = Complex::new(sums[j][v], sums[j][2 + v]);
                    // SAFETY: `has` found the element in C; the task is this warp's, so it is this lane's.
                    unsafe { spot.at.store(0, self.x.scaled(sum, old[j][v])) };
                }
                spot.advance(v);
            }
        }
    }
}

/// A place in C.
struct Spot {
    /// This lane's row and first column.
    at: Global<Elem>,
    /// Elements to the next column.
    on: u64,
    /// Columns that there are from this one on; none of a row outside of C.
    cols: u32,
}

impl Spot {
    #[inline(always)]
    fn has(&self, j: usize, v: usize) -> bool {
        ((8 * j + v) as u32) < self.cols
    }

    /// From the first of two columns to the second, or from there to the first of the next eight.
    #[inline(always)]
    fn advance(&mut self, from: usize) {
        self.at = self.at.starting_at(if from == 0 { self.on } else { 7 * self.on });
    }
}

/// A lane's row of A, from some step on.
struct Row {
    /// The next step.
    at: Global<Elem>,
    /// Steps that it has from this lane's first one on; none outside of A.
    left: u32,
    /// Steps done.
    steps: u32,
    /// Elements to the fourth step from here.
    on: u64,
}

impl Row {
    /// Its part of the next fragment, zero for what A does not have.
    ///
    /// # Safety
    /// A spans its elements.
    #[inline(always)]
    unsafe fn fragment(&mut self) -> Elem {
        // SAFETY: loaded where `steps < left`, which counts the row's steps, 0 outside of A.
        let ra = unsafe { self.at.stream_if(self.steps < self.left, 0) };
        self.at = self.at.starting_at(self.on);
        self.steps += 4;
        ra
    }
}

/// A lane's part of columns of B, from some step on.
struct Columns<const NB: usize> {
    /// The next step of the first of its columns.
    at: Global<Elem>,
    /// Steps that they have from this lane's first one on; none outside of B.
    left: [u32; NB],
    /// Steps done.
    steps: u32,
    /// Elements from a column to the next, and to the fourth step from here.
    across: u64,
    on: u64,
}

impl<const NB: usize> Columns<NB> {
    /// Its part of the next fragments, one for 8 columns each; zeros for what B does not have.
    ///
    /// # Safety
    /// B spans its elements.
    #[inline(always)]
    unsafe fn fragments(&mut self) -> [Elem; NB] {
        let (mut rb, mut from) = ([Elem::ZERO; NB], self.at);
        for j in 0..NB {
            // SAFETY: loaded where `steps < left[j]`, which counts the column's steps, 0 outside of B.
            rb[j] = unsafe { from.stream_if(self.steps < self.left[j], 0) };
            from = from.starting_at(self.across);
        }
        self.at = self.at.starting_at(self.on);
        self.steps += 4;
        rb
    }
}
