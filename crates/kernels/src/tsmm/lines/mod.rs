//! A's columns by bulk copies through a ring of stages, and sums in registers: from sm_90 on.
//!
//! # Idea
//! A tile's piece of a column is a run of memory: one bulk copy brings it, without registers and instructions of the threads, wherever it
//! begins. The copy is of the pieces of 16 bytes that hold it, and the threads read past what is not theirs, so that columns that start
//! anywhere cost hardly more than aligned ones. Where C is read and aligned, its columns come behind A's. The ring goes on from a tile to the
//! next: while sums are stored, the next tile is on its way. B is brought once a block.
//!
//! Behind the start no barrier holds the block together: warps say when they have read a stage, and fill them in turn, each a stage that all
//! are to have read a step ago.
//!
//! # Who multiplies
//! | variant | elements | by |
//! |---|---|---|
//! | `tsmm_lines` | f32, f64, c64 | [`vector`] units |
//! | `tsmm_lines_mma` | f64 | [`matrix`] units |
//!
//! # Thread mapping
//! A lane has TM rows and TN columns of its warp's, DOWN lanes are below each other and the others beside. Its rows are neighbours by 16 bytes
//! where A's and C's columns start at multiples of 16 bytes; else, and of complex numbers, each is DOWN below the one before, so that the
//! lanes' loads and stores are of neighbours, one by one.
//!
//! # Zero β, tails
//! β = 0 never reads C. Rows and columns that are not there, and what a copy brings from beside a column, are multiplied at most, and never
//! stored.
//!
//! # Preconditions
//! k and n no more than an entry serves; A's rows neighbours in memory, or one; m at most `model::LARGEST_DIMENSION`, so that rows count in
//! 32 bits. Not in place: copies read up to 12 bytes before and behind a column's piece, which may be other tiles' rows, but nothing outside
//! of the operand.
//!
//! # Cost
//! Measured on an H200, of the bound, half a gigabyte, β = 0, 16, 32 and 64 columns: f32 87, 82 and 55%, not aligned 78, 70 and 51; c64 81,
//! 55 and 62; f64, what is chosen, 87, 86 and 82, not aligned, 16 and 32 columns, 83 and 73: `benches/results/h200/tall.csv`.
//!
//! # Determinism
//! Each sum is of one lane or one warp, over k in order.

pub mod matrix;
pub mod vector;
mod write;

use super::unrolled::unrolled;
use crate::product::Product;
use core::array::from_fn;
use cuda_std::prelude::*;
use model::variants::lines::{line_pitch, lines_steps};
use write::{BROUGHT, LOADED, NOT, Write};

/// How the lanes of a warp multiply a stage's lines with B; a lane has TM rows and TN columns of the sums.
pub trait Units<T: Scalar, const TM: usize, const TN: usize>: Copy {
    /// Lanes that are below each other.
    const DOWN: u32;
    /// Whether they are the matrix units.
    const MMA: bool;

    /// Brings B into shared memory, with zeros for the columns that it does not have; by all of so many threads.
    ///
    /// # Safety
    /// B spans its elements; a barrier follows.
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32);

    /// Of the lane of a warp whose columns begin with `first`.
    fn new(x: &Product<T>, lane: u32, first: u32, sb: Shared<T>) -> Self;

    /// The lane's j-th column.
    fn col(&self, j: usize) -> u32;

    /// Adds the products of steps `start` to `end`, whose lines a stage has; a lane's rows are neighbours by 16 bytes if WIDE.
    ///
    /// # Safety
    /// The lines are there, and B is; all lanes of the warp are here.
    unsafe fn multiply<const WIDE: bool>(&self, lines: Lines<T>, start: u32, end: u32, rc: &mut [[T; TN]; TM]);
}

/// The lines of a stage as a lane of a warp has them: from the warp's first row on.
#[derive(Clone, Copy)]
pub struct Lines<T> {
    from: Shared<T>,
    pitch: u32,
    /// This lane's place among those below each other.
    down: u32,
    /// Elements that column 0 starts past a multiple of 16 bytes, and that each column starts past the one before.
    past: u32,
    apart: u32,
}

impl<T: Scalar> Lines<T> {
    /// The stage's l-th line, which is column `col`, from the warp's first row on. Tiles are whole pieces, so that the column decides how far
    /// past one it starts; if WIDE none does.
    #[inline(always)]
    fn line<const WIDE: bool>(&self, l: u32, col: u32) -> Shared<T> {
        let past = self.past.wrapping_add(col.wrapping_mul(self.apart)) % T::WIDTH as u32;
        self.from.starting_at(l * self.pitch + if WIDE { 0 } else { past })
    }
}

/// The v-th of a lane's rows of its warp's: neighbours by 16 bytes if WIDE, else all `down_lanes` apart.
#[inline(always)]
const fn own<T: Scalar, const WIDE: bool>(down_lanes: u32, down: u32, v: usize) -> u32 {
    if WIDE {
        ((v / T::WIDTH) as u32 * down_lanes + down) * T::WIDTH as u32 + (v % T::WIDTH) as u32
    } else {
        v as u32 * down_lanes + down
    }
}

/// One of a block's threads: of WARPS warps, with TM x TN sums, BN columns, up to BK steps and STAGES stages.
struct Block<
    'a,
    T,
    U,
    const WARPS: usize,
    const TM: usize,
    const TN: usize,
    const BN: usize,
    const BK: usize,
    const STAGES: usize,
> {
    x: &'a Product<T>,
    warp: u32,
    lane: u32,
    /// The first of this warp's rows of a tile, and of its columns.
    row: u32,
    col: u32,
    tiles: u32,
    /// Stages that A's columns of a tile take, and with C's.
    of_a: u32,
    of_tile: u32,
    /// (BK, BN); (STAGES, STEPS, PITCH); an mbarrier a stage that is filled, and one that is read.
    sb: Shared<T>,
    stages: Shared<T>,
    filled: Shared<f64>,
    read: Shared<f64>,
    units: U,
}

/// A step of the ring: a tile, and which of its stages.
#[derive(Clone, Copy)]
struct Step {
    tile: u32,
    part: u32,
}

/// # Safety
/// Launched with 32·WARPS threads a block and `model::launch::tiling`'s shared memory; k <= BK, n <= BN, A by columns, and operands that
/// span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Scalar,
    U: Units<T, TM, TN>,
    const WARPS: usize,
    const TM: usize,
    const TN: usize,
    const BN: usize,
    const BK: usize,
    const STAGES: usize,
>(
    x: Product<T>,
) {
    let width = T::WIDTH as u64;
    let is_a_aligned = x.a.is_aligned(16) && (x.a_col % width == 0 || x.k <= 1);
    let is_c_aligned = x.c.is_aligned(16) && x.c_row == 1 && (x.c_col % width == 0 || x.n <= 1);
    let block = Block::<T, U, WARPS, TM, TN, BN, BK, STAGES>::new(&x, is_c_aligned && !x.beta.is_zero());
    // SAFETY: shared memory and operands are as the launch promised; all threads of the block are here.
    unsafe {
        block.begin();
        if !T::IS_COMPLEX && is_a_aligned && is_c_aligned { block.run::<true>() } else { block.run::<false>() }
    }
}

impl<
    'a,
    T: Scalar,
    U: Units<T, TM, TN>,
    const WARPS: usize,
    const TM: usize,
    const TN: usize,
    const BN: usize,
    const BK: usize,
    const STAGES: usize,
> Block<'a, T, U, WARPS, TM, TN, BN, BK, STAGES>
{
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;
    /// A warp's rows and columns, warps beside each other, rows of a tile.
    const ROWS: u32 = U::DOWN * TM as u32;
    const COLS: u32 = 32 / U::DOWN * TN as u32;
    const ACROSS: u32 = BN as u32 / Self::COLS;
    const BM: u32 = WARPS as u32 / Self::ACROSS * Self::ROWS;
    /// Lines of a stage, and elements from one to the next.
    const STEPS: u32 = lines_steps(Self::BM, Self::BYTES, U::MMA);
    const PITCH: u32 = line_pitch(Self::BM, Self::BYTES);

    /// C's columns come by the ring if `brings_c`.
    #[inline(always)]
    fn new(x: &'a Product<T>, brings_c: bool) -> Self {
        const { assert!(TM % T::WIDTH == 0 && BN as u32 % Self::COLS == 0, "whole pieces and whole warps") };
        const { assert!(WARPS as u32 % Self::ACROSS == 0 && Self::STEPS <= 32 && STAGES >= 2, "a lane fills a line") };
        let (thread, sb) = (thread::thread_idx_x(), Shared::at(0));
        let (warp, lane) = (thread / warp::WARP_LANES, thread % warp::WARP_LANES);
        let (sb_len, stages_len) = (BK as u32 * BN as u32, STAGES as u32 * Self::STEPS * Self::PITCH);
        let mbarriers = (sb_len + stages_len) * Self::BYTES / size_of::<f64>() as u32;
        let of_a = x.k.div_ceil(Self::STEPS).max(1);
        let col = warp % Self::ACROSS * Self::COLS;
        Block {
            x,
            warp,
            lane,
            row: warp / Self::ACROSS * Self::ROWS,
            col,
            tiles: x.m.div_ceil(Self::BM),
            of_a,
            of_tile: of_a + if brings_c { x.n.div_ceil(Self::STEPS) } else { 0 },
            sb,
            stages: Shared::at(sb_len),
            filled: Shared::at(mbarriers),
            read: Shared::at(mbarriers + STAGES as u32),
            units: U::new(x, lane, col, sb),
        }
    }

    /// A stage, and the mbarrier that says that it is filled.
    #[inline(always)]
    fn stage(&self, stage: u32) -> (Shared<T>, ptx::SharedAddress) {
        (self.stages.starting_at(stage * (Self::STEPS * Self::PITCH)), self.filled.address(stage))
    }

    /// What this block has behind a step.
    #[inline(always)]
    fn next(&self, Step { tile, part }: Step) -> Step {
        if part + 1 < self.of_tile {
            Step { tile, part: part + 1 }
        } else {
            Step { tile: tile + thread::grid_dim_x(), part: 0 }
        }
    }

    /// Makes the mbarriers, and clears the stages, of whose lines the rows that are not there are multiplied too.
    ///
    /// # Safety
    /// Nothing else is in the shared memory; all threads of the block are here.
    #[inline(always)]
    unsafe fn begin(&self) {
        let (own, threads, warps) = (thread::thread_idx_x(), 32 * WARPS, WARPS as u32);
        // SAFETY: nobody uses the shared memory yet.
        unsafe {
            if own == 0 {
                for stage in 0..STAGES as u32 {
                    ptx::mbarrier_init(self.filled.address(stage), warp::WARP_LANES);
                    ptx::mbarrier_init(self.read.address(stage), warps * warp::WARP_LANES);
                }
            }
            for piece in (own..STAGES as u32 * Self::STEPS * Self::PITCH / Self::WIDTH).step_by(threads) {
                self.stages.store_wide(piece * Self::WIDTH, |_| T::ZERO);
            }
            ptx::fence_proxy_async();
        }
        thread::sync_threads();
    }

    /// All tiles of this block; lanes' rows are neighbours by 16 bytes if WIDE.
    ///
    /// # Safety
    /// Behind [`Block::begin`]; all threads of the block are here.
    #[inline(always)]
    unsafe fn run<const WIDE: bool>(&self) {
        let (x, warps) = (self.x, WARPS as u32);
        let mut now = Step { tile: thread::block_idx_x(), part: 0 };
        let mut ahead = now;
        let (mut stage, mut parity) = (0, 0);
        // The stage of the step before, and its phase; which warp is to fill it, none at first.
        let (mut before, mut before_parity, mut turn) = (0, 0, warps);
        let mut rc = [[T::ZERO; TN]; TM];
        // SAFETY: a stage is filled when nobody has read it yet or all warps have, and read when it is filled; B's part of the memory is
        // nobody's until the barrier behind `bring`; C's tiles are one block's each; a phase of `read` lacks all lanes' arrivals.
        unsafe {
            for stage in 0..STAGES as u32 {
                if stage % warps == self.warp {
                    self.fill(self.stage(stage), ahead);
                }
                ahead = self.next(ahead);
            }
            U::bring(x, self.sb, 32 * warps);
            thread::sync_threads(); // B is whole
            while now.tile < self.tiles {
                if turn == self.warp {
                    ptx::mbarrier_wait(self.read.address(before), before_parity);
                    self.fill(self.stage(before), ahead);
                }
                if turn < warps {
                    ahead = self.next(ahead);
                }
                if now.part == 0 {
                    rc = [[T::ZERO; TN]; TM];
                }
                let (from, filled) = self.stage(stage);
                ptx::mbarrier_wait(filled, parity);
                if now.part < self.of_a {
                    let start = now.part * Self::STEPS;
                    if self.col < x.n {
                        let lines = self.lines(from, x.a.past(16), x.a_col);
                        self.units.multiply::<WIDE>(lines, start, x.k.min(start + Self::STEPS), &mut rc);
                    }
                } else {
                    let start = (now.part - self.of_a) * Self::STEPS;
                    let lines = self.lines(from, 0, 0); // C is aligned
                    self.write::<WIDE, BROUGHT>(now.tile, &rc, lines, (start, start + Self::STEPS));
                }
                warp::sync_warp(u32::MAX);
                ptx::mbarrier_expect(self.read.address(stage), 0); // arrives, and expects nothing
                if now.part + 1 == self.of_a {
                    if x.beta.is_zero() {
                        self.write::<WIDE, NOT>(now.tile, &rc, self.lines(from, 0, 0), (0, x.n));
                    } else if !WIDE && self.of_tile == self.of_a {
                        self.write::<WIDE, LOADED>(now.tile, &rc, self.lines(from, 0, 0), (0, x.n));
                    }
                }
                now = self.next(now);
                (before, before_parity) = (stage, parity);
                (stage, parity) = if stage + 1 == STAGES as u32 { (0, parity ^ 1) } else { (stage + 1, parity) };
                turn = if turn + 1 < warps { turn + 1 } else { 0 };
            }
        }
    }

    /// Starts filling a stage, a lane a line, with the tile's rows of A's columns, or of C's; or nothing, past the last tile.
    ///
    /// # Safety
    /// Nobody uses the stage: it was cleared, or all warps have said that they read it; the phase of its mbarrier lacks the arrivals of this
    /// warp, all of whose lanes are here.
    #[inline(always)]
    unsafe fn fill(&self, (stage, filled): (Shared<T>, ptx::SharedAddress), Step { tile, part }: Step) {
        if tile >= self.tiles {
            return;
        }
        let x = self.x;
        let (operand, apart, lines, line) = if part < self.of_a {
            (x.a, x.a_col, x.k, part * Self::STEPS + self.lane)
        } else {
            (x.c, x.c_col, x.n, (part - self.of_a) * Self::STEPS + self.lane)
        };
        let is_there = self.lane < Self::STEPS && line < lines;
        let first = (tile * Self::BM) as u64 + line as u64 * apart;
        let rows = (x.m - tile * Self::BM).min(Self::BM);
        // The pieces of 16 bytes that hold the rows, but for those that reach out of the operand.
        let from = operand.starting_at(first);
        let past = from.past(16) / Self::BYTES;
        let len = (past + rows).next_multiple_of(Self::WIDTH);
        let operand_len = x.m as u64 + (lines.max(1) - 1) as u64 * apart;
        let begin = if first < past as u64 { Self::WIDTH } else { 0 };
        let end = if first + (len - past) as u64 > operand_len { len - Self::WIDTH } else { len };
        let bytes = if is_there && begin < end { (end - begin) * Self::BYTES } else { 0 };
        let into = stage.starting_at(self.lane * Self::PITCH);
        // SAFETY: elements of the operand, from `begin` to `end` by pieces that do not reach out of it, into a line that nobody uses.
        unsafe {
            if is_there && (begin, end) != (0, len) {
                for at in past..past + rows {
                    if at < begin || at >= end {
                        into.store(at, from.load((at - past) as u64));
                    }
                }
                ptx::fence_proxy_async(); // a bulk copy may fill their place next
            }
            ptx::mbarrier_expect(filled, bytes);
            if bytes > 0 {
                let pieces = operand.starting_at((first + begin as u64).wrapping_sub(past as u64));
                ptx::bulk_load(into.address(begin), pieces.address(0), bytes, filled);
            }
        }
    }

    /// A stage's lines as this lane has them: of columns of which the first starts `past` bytes past a multiple of 16.
    #[inline(always)]
    fn lines(&self, from: Shared<T>, past: u32, apart: u64) -> Lines<T> {
        Lines {
            from: from.starting_at(self.row),
            pitch: Self::PITCH,
            down: self.lane % U::DOWN,
            past: past / Self::BYTES,
            apart: apart as u32,
        }
    }

    /// C ← α · sums + β · C in this lane's rows of a tile, and those of its columns from `start` to `end`; how C is READ.
    ///
    /// # Safety
    /// C spans its elements, and no other thread accesses these; `lines` has the columns from `start` on where they are brought.
    #[inline(always)]
    unsafe fn write<const WIDE: bool, const READ: u32>(
        &self,
        tile: u32,
        sums: &[[T; TN]; TM],
        lines: Lines<T>,
        (start, end): (u32, u32),
    ) {
        let (x, row) = (self.x, tile * Self::BM + self.row);
        let col = self.units.col(0) as u64;
        unrolled::<TN>(&mut Write::<_, _, TM, TN, WIDE, READ> {
            x,
            units: self.units,
            row,
            sums,
            line: x.c.starting_at((row + own::<T, WIDE>(U::DOWN, lines.down, 0)) as u64 * x.c_row + col * x.c_col),
            lines,
            start,
            end: end.min(x.n),
        });
    }
}

/// This lane's rows of a line, which begins with the warp's first.
///
/// # Safety
/// The line is there; its pieces are aligned if WIDE.
#[inline(always)]
unsafe fn rows_of<T: Scalar, const WIDE: bool, const TM: usize>(
    line: Shared<T>,
    down_lanes: u32,
    down: u32,
) -> [T; TM] {
    let row = |v: usize| own::<T, WIDE>(down_lanes, down, v);
    // SAFETY: the line is there, as the caller promised. The compiler sees that pieces are loaded several times.
    unsafe {
        if WIDE {
            from_fn(|v| line.load_wide(row(v - v % T::WIDTH))[v % T::WIDTH])
        } else {
            from_fn(|v| line.load(row(v)))
        }
    }
}
