//! `batched_fragments`: A, B and C between device memory and the registers of the matrix units: f64, from sm_90 on.
//!
//! # Idea
//! A product of up to 32 x 32 x 32 fits into the registers of a warp, in the order in which `mma.m16n8k8` wants it, and what the
//! lanes load at once are whole sectors. So nothing goes through shared memory, and no warp waits for another: each walks over
//! problems of its own. A fragment of the next problem's A and B is asked for as soon as the one in its registers is multiplied for
//! the last time, and the next rows of C as soon as these are stored, so that at any time a problem a warp is on its way.
//!
//! # Thread mapping
//! Warps take problems in turn, 16 rows of C at a time. Lane (g, q) = (lane / 4, lane % 4) holds two rows of A at steps q, q + 4, ..,
//! these steps of B's columns g, g + 8, .., and of each 16 x 8 of C columns 2q and 2q + 1 of its two rows: rows 2g and 2g + 1 where
//! they are 16 bytes of A and of C, aligned, else g and g + 8. Of a C that lies by rows the transposed product is computed.
//! # Tile parameters
//! m and n up to 8·NB, k up to 8·KS, MB = ⌈NB / 2⌉ blocks of 16 rows. A lane has 4·MB·KS numbers of A, 2·NB·KS of B and 4·NB of C; of the
//! old C 4·AHEAD, those of AHEAD fragments, on their way while the ones before them are multiplied or stored.
//! # Preconditions
//! C does not lie by rows: the launch asks for the transposed product instead.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. Rows, columns and steps that are not there are zeros, and not stored.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k, as of the other entries: `mma` is such a chain.
//! # Cost
//! Each matrix is read once and each C written once. Of m = n = k = 32, β = 1, these are 32 KiB a problem, for which an H200's memory takes
//! 1700 cycles an SM; 32 `mma` keep its matrix units busy for 256 of them, some 1000 other instructions its schedulers for 250. Eight
//! warps an SM with 16 KiB of A and B and 2 KiB of C ahead are 144 KiB on their way, where 40 would do. So the memory is predicted
//! to be the limit; of columns that do not start at multiples of 32 bytes the stores are of parts of sectors, which costs more.

use super::{Batched, matrices::Matrices};
use cuda_std::prelude::*;
use cuda_std::{Word, ptx::Hint};

/// Steps of k of a fragment.
const STEPS: usize = 8;

/// A batch.
struct Batch {
    x: Batched<f64>,
    a: Matrices<f64>,
    b: Matrices<f64>,
    c: Matrices<f64>,
}

impl Batch {
    #[inline(always)]
    fn new(x: Batched<f64>) -> Self {
        let a = Matrices::new(x.a, x.codes & 255);
        let b = Matrices::new(x.b, x.codes >> 8 & 255);
        let c = Matrices::new(x.c, x.codes >> 16 & 255);
        Batch { x, a, b, c }
    }

    /// Whether rows 2g and 2g + 1 are 16 bytes of A and of C.
    #[inline(always)]
    fn is_paired(&self) -> bool {
        self.a.has_pieces(self.x.m) && self.c.has_pieces(self.x.m)
    }
}

/// # Safety
/// Launched with whole warps and at most as many of them as there are problems, rounded up to blocks; m and n up to 8·NB, k up to 8·KS,
/// MB = ⌈NB / 2⌉; operands that span their elements and lie as their codes say.
#[inline(always)]
pub unsafe fn body<const MB: usize, const NB: usize, const KS: usize, const AHEAD: usize>(x: Batched<f64>) {
    const { assert!(MB == NB.div_ceil(2) && NB % AHEAD == 0, "C may be transposed, and is whole fragments") };
    let of = Batch::new(x);
    // SAFETY: what the launch promises is what `run` asks for; PAIRED where `is_paired` found it.
    unsafe {
        if of.is_paired() {
            run::<MB, NB, KS, AHEAD, true>(&of);
        } else {
            run::<MB, NB, KS, AHEAD, false>(&of);
        }
    }
}

/// # Safety
/// As for [`body`]; where `PAIRED`, [`Batch::is_paired`].
#[inline(always)]
unsafe fn run<const MB: usize, const NB: usize, const KS: usize, const AHEAD: usize, const PAIRED: bool>(of: &Batch) {
    let (own, warps) = (thread::thread_idx_x(), thread::block_dim_x() / warp::WARP_LANES);
    let lane = own % warp::WARP_LANES;
    let lane = Lane::<PAIRED>::new(of, lane / 4, lane % 4);
    let turn = thread::grid_dim_x() * warps;
    let mut problem = thread::block_idx_x() * warps + own / warp::WARP_LANES;
    // SAFETY: lengths that are left and `rows` are 0 where there is no element, of problems past the last too; all
    // lanes of the warp take the same turns.
    unsafe {
        let mut ahead = lane.factors::<MB, NB>(problem);
        let mut ra: [[[f64; 4]; KS]; MB] = [[[0.0; 4]; KS]; MB];
        let mut rb: [[[f64; 2]; NB]; KS] = [[[0.0; 2]; NB]; KS];
        for s in 0..KS {
            for i in 0..MB {
                ra[i][s] = ahead.a(i);
            }
            rb[s] = ahead.b();
        }
        let mut old: [[f64; 4]; AHEAD] = lane.old(problem, 0, 0);
        while problem < of.x.count {
            let mut ahead = lane.factors::<MB, NB>(problem + turn);
            for i in 0..MB {
                let mut rc = [[0.0; 4]; NB];
                for s in 0..KS {
                    for j in 0..NB {
                        rc[j] = ptx::mma_m16n8k8_f64(ra[i][s], rb[s][j], rc[j]);
                    }
                    ra[i][s] = ahead.a(i);
                    if i + 1 == MB {
                        rb[s] = ahead.b();
                    }
                }
                for first in (0..NB).step_by(AHEAD) {
                    let sums: [[f64; 4]; AHEAD] = core::array::from_fn(|j| rc[first + j]);
                    lane.write(problem, i, first, (sums, old));
                    old = if first + AHEAD < NB {
                        lane.old(problem, i, first + AHEAD)
                    } else if i + 1 < MB {
                        lane.old(problem, i + 1, 0)
                    } else {
                        lane.old(problem + turn, 0, 0)
                    };
                }
            }
            problem += turn;
        }
    }
}

/// A lane of a warp.
#[derive(Clone, Copy)]
struct Lane<'a, const PAIRED: bool> {
    of: &'a Batch,
    g: u32,
    q: u32,
    /// Its first row and step of A, its first step and column of B, and its first row and column of C.
    a: Global<f64>,
    b: Global<f64>,
    c: Global<f64>,
}

impl<'a, const PAIRED: bool> Lane<'a, PAIRED> {
    #[inline(always)]
    fn new(of: &'a Batch, g: u32, q: u32) -> Self {
        let row = if PAIRED { 2 * g } else { g };
        Lane { of, g, q, a: of.a.at(row, q), b: of.b.at(q, g), c: of.c.at(row, 2 * q) }
    }

    /// Its first or its second row of 16.
    #[inline(always)]
    fn row(&self, block: usize, e: u32) -> u32 {
        16 * block as u32 + if PAIRED { 2 * self.g + e } else { self.g + 8 * e }
    }

    /// Its first or its second column of 8.
    #[inline(always)]
    fn col(&self, j: usize, v: usize) -> u32 {
        (8 * j + v) as u32 + 2 * self.q
    }

    /// A and B of a problem, from this lane's first step on.
    ///
    /// # Safety
    /// As for [`Matrices::start`].
    #[inline(always)]
    unsafe fn factors<const MB: usize, const NB: usize>(&self, problem: u32) -> Factors<MB, NB, PAIRED> {
        let Batch { x, a: of_a, b: of_b, .. } = self.of;
        let [m, n, k] = if problem < x.count { [x.m, x.n, x.k] } else { [0; 3] };
        // SAFETY: the lists have `count` problems, as the caller promised; past them `start` loads nothing.
        let (a, b) = unsafe { (of_a.start(problem, x.count), of_b.start(problem, x.count)) };
        let left = |inside: bool| if inside { k.saturating_sub(self.q) } else { 0 };
        Factors {
            a: core::array::from_fn(|i| self.a.starting_at(a).starting_at(16 * i as u64 * of_a.of.row)),
            b: self.b.starting_at(b),
            a_left: core::array::from_fn(|i| core::array::from_fn(|e| left(self.row(i, e as u32) < m))),
            b_left: core::array::from_fn(|j| left(8 * (j as u32) + self.g < n)),
            a_steps: [0; MB],
            b_steps: 0,
            a_across: 8 * of_a.of.row,
            b_across: 8 * of_b.of.col,
            a_on: 4 * of_a.of.col,
            b_on: 4 * of_b.of.row,
        }
    }

    /// Where this lane's part of a block of C begins. It is worked out at each use, for to keep all places takes registers.
    ///
    /// # Safety
    /// As for [`Matrices::start`]; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn spot(&self, problem: u32, block: usize, first: usize) -> Spot {
        let Batch { x, c, .. } = self.of;
        // SAFETY: all lanes are here, and the list has `count` problems, as the caller promised.
        let (problem, start) = unsafe {
            let problem = ptx::pinned(problem);
            (problem, c.start(problem, x.count))
        };
        let [m, n] = if problem < x.count { [x.m, x.n] } else { [0; 2] };
        let row = start.wrapping_add(16 * block as u64 * c.of.row);
        let at = self.c.starting_at(row.wrapping_add(8 * first as u64 * c.of.col));
        Spot { at, across: 8 * c.of.row, on: c.of.col, rows: [0, 1].map(|e| self.row(block, e) < m), n }
    }

    /// What is in C where a block's sums go, if it is read.
    ///
    /// # Safety
    /// C spans its elements; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn old<const AHEAD: usize>(&self, problem: u32, block: usize, first: usize) -> [[f64; 4]; AHEAD] {
        let mut old = [[0.0; 4]; AHEAD];
        if self.of.x.beta.is_zero() {
            return old;
        }
        // SAFETY: C spans its elements, so its list all problems, and all lanes are here, as the caller promised.
        let mut spot = unsafe { self.spot(problem, block, first) };
        for j in 0..AHEAD {
            for v in 0..2 {
                let is_there = self.col(first + j, v) < spot.n;
                // SAFETY: elements of C; a row behind an even one is there where that is.
                unsafe {
                    if PAIRED {
                        let pair =
                            <[u64; 2]>::ld_global_if(spot.at.address(0), Hint::Coherent, spot.rows[0] && is_there);
                        for e in 0..2 {
                            old[j][2 * e + v] = f64::from_bits(pair[e]);
                        }
                    } else {
                        for e in 0..2 {
                            let at = spot.at.address(e as u64 * spot.across);
                            old[j][2 * e + v] =
                                f64::from_bits(u64::ld_global_if(at, Hint::Coherent, spot.rows[e] && is_there));
                        }
                    }
                }
                spot.advance(v);
            }
        }
        old
    }

    /// C ← α · sums + β · old, for a block.
    ///
    /// # Safety
    /// C spans its elements, and the problem is this warp's; all its lanes are here.
    #[inline(always)]
    unsafe fn write<const AHEAD: usize>(
        &self,
        problem: u32,
        block: usize,
        first: usize,
        (sums, old): ([[f64; 4]; AHEAD], [[f64; 4]; AHEAD]),
    ) {
        // SAFETY: C spans its elements, so its list all problems, and all lanes are here, as the caller promised.
        let mut spot = unsafe { self.spot(problem, block, first) };
        for j in 0..AHEAD {
            for v in 0..2 {
                let is_there = self.col(first + j, v) < spot.n;
                let value = |e: usize| self.of.x.scaled(sums[j][2 * e + v], old[j][2 * e + v]);
                // SAFETY: elements of C, this lane's; a row behind an even one is there where that is.
                unsafe {
                    if PAIRED {
                        if spot.rows[0] && is_there {
                            spot.at.store_wide(0, value);
                        }
                    } else {
                        for e in 0..2 {
                            if spot.rows[e] && is_there {
                                spot.at.store(e as u64 * spot.across, value(e));
                            }
                        }
                    }
                }
                spot.advance(v);
            }
        }
    }
}

/// A place in C.
struct Spot {
    /// The first of this lane's two rows.
    at: Global<f64>,
    /// Elements to the second where they are not next to each other, and to the next column.
    across: u64,
    on: u64,
    /// Whether there are the rows, and how many columns there are.
    rows: [bool; 2],
    n: u32,
}

impl Spot {
    /// From the first of two columns to the second, or from there to the first of the next eight.
    #[inline(always)]
    fn advance(&mut self, from: usize) {
        self.at = self.at.starting_at(if from == 0 { self.on } else { 7 * self.on });
    }
}

/// A lane's part of A and B of a problem, from some step on.
struct Factors<const MB: usize, const NB: usize, const PAIRED: bool> {
    /// The next step of the first of its two rows of each 16 of A, and of the first of its columns of B.
    a: [Global<f64>; MB],
    b: Global<f64>,
    /// Steps that rows and columns have from this lane's first one on; none outside of A and B.
    a_left: [[u32; 2]; MB],
    b_left: [u32; NB],
    /// Steps done.
    a_steps: [u32; MB],
    b_steps: u32,
    /// Elements from the first row to the second, from a column to the next, and to the fourth step from here.
    a_across: u64,
    b_across: u64,
    a_on: u64,
    b_on: u64,
}

impl<const MB: usize, const NB: usize, const PAIRED: bool> Factors<MB, NB, PAIRED> {
    /// Its part of the next fragment of 16 rows of A, zeros for what A does not have.
    ///
    /// # Safety
    /// A spans its elements.
    #[inline(always)]
    unsafe fn a(&mut self, block: usize) -> [f64; 4] {
        let mut ra = [0.0; STEPS / 2];
        for i in 0..2 {
            let (from, steps) = (self.a[block], self.a_steps[block]);
            let is_there = self.a_left[block].map(|left| steps < left);
            // SAFETY: a row and a step of A; a row behind an even one is there where that is.
            unsafe {
                if PAIRED {
                    [ra[2 * i], ra[2 * i + 1]] = from.stream_wide_if(is_there[0], 0);
                } else {
                    ra[2 * i] = from.stream_if(is_there[0], 0);
                    ra[2 * i + 1] = from.stream_if(is_there[1], self.a_across);
                }
            }
            self.a[block] = from.starting_at(self.a_on);
            self.a_steps[block] += 4;
        }
        ra
    }

    /// Its part of the next fragments of B, one for 8 columns each.
    ///
    /// # Safety
    /// B spans its elements.
    #[inline(always)]
    unsafe fn b(&mut self) -> [[f64; 2]; NB] {
        let mut rb = [[0.0; STEPS / 4]; NB];
        for i in 0..2 {
            let mut from = self.b;
            for j in 0..NB {
                // SAFETY: a step and a column of B.
                rb[j][i] = unsafe { from.stream_if(self.b_steps < self.b_left[j], 0) };
                from = from.starting_at(self.b_across);
            }
            self.b = self.b.starting_at(self.b_on);
            self.b_steps += 4;
        }
        rb
    }
}
