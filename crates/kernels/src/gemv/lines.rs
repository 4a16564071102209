//! `gemv_lines`: A's columns by bulk copies through a ring of stages, wherever they begin: from sm_90 on.
//!
//! # Idea
//! A tile's piece of a column is a run of memory, and so are all columns of a matrix that is no higher than a tile and has no gaps: bulk copies
//! bring the pieces of 16 bytes that hold them, without registers and instructions of the threads, so that a column may start anywhere. What
//! is left to a thread is an element of shared memory and a multiply-add. The last warp brings, the others multiply: neither waits for a
//! barrier, but for a stage that is filled, or read.
//!
//! # Thread mapping
//! Block (x, y) has a tile of as many rows as any other's, BM at most, and part y of k. LANES threads along the rows, a thread every LANES-th, TM at
//! most; the others are further groups along k: group g takes columns g, g + groups .. of each stage. LANES follows from m alone, and
//! so do the groups, of whose columns a stage has as many each: the bits of a sum depend on no place.
//!
//! # Preconditions
//! A's rows are neighbours in memory, or one; its base is a multiple of an element's size. Copies read up to 12 bytes before and behind a
//! piece, but nothing outside of A's span.
//!
//! # Cost
//! Measured: `benches/results/h200/gemv.csv`; what was tried: benches/NOTES.md.

use crate::tsmttsm::{Duty, Reduced};
use core::array::from_fn;
use cuda_std::prelude::*;
use model::launch::reduced::{LINES_COLS, LINES_STAGES, lines_head, lines_stage_len};

/// Columns that the warp which brings them fills one by one: a lane each.
const LINES: u32 = warp::WARP_LANES;
/// Bytes of a line of the memory. Elements lie as far past a multiple of it in shared memory as in A, so that a copy's requests are whole lines.
const LINE_BYTES: u32 = 128;

/// # Safety
/// Launched with THREADS threads a block, a block for each BM rows, `model::launch::tiling`'s shared memory, and operands that span their
/// elements; A's rows are neighbours.
#[inline(always)]
pub unsafe fn body<T: Scalar, const THREADS: usize, const BM: usize, const TM: usize, const STEPS: usize>(
    x: Reduced<T>,
) {
    const { assert!(BM == (THREADS - 32) * TM && T::WIDTH > 1, "TM rows a thread, elements of which a piece has several") };
    let block = Block::<T, THREADS, TM, STEPS>::new(&x);
    let mut sums = [T::ZERO; TM];
    // SAFETY: shared memory and operands are as the launch promised; all threads of the block are here, behind the barrier in `begin`.
    unsafe {
        block.begin();
        if block.group < block.groups {
            block.multiply_all(&mut sums);
        } else if thread::thread_idx_x() >= Block::<T, THREADS, TM, STEPS>::OWNERS {
            block.bring_all();
        }
        block.hand_in(&sums);
    }
}

/// One of a block's threads.
struct Block<'a, T, const THREADS: usize, const TM: usize, const STEPS: usize> {
    x: &'a Reduced<T>,
    lane: u32,
    /// Its row of the tile's, as many further on the next, and which of how many groups along k it is of.
    row: u32,
    lanes: u32,
    group: u32,
    groups: u32,
    /// The tile's first row, those that each tile has, and those of this one.
    first: u32,
    tile: u32,
    rows: u32,
    /// The block's part of k, and columns of a stage.
    start: u32,
    end: u32,
    cols: u32,
    /// Whether these are one run; elements of a stage from a column to the next, and those that each starts further past a line of the memory.
    is_run: bool,
    pitch: u32,
    apart: u32,
    /// (STAGES, COLS), (STAGES, STAGE_LEN); an mbarrier a stage that is filled, and one that is read.
    xs: Shared<T>,
    stages: Shared<T>,
    filled: Shared<f64>,
    read: Shared<f64>,
}

/// Where the ring is, of one side: a stage, and the parity of its phase.
#[derive(Clone, Copy)]
struct Turn {
    stage: u32,
    parity: u32,
}

impl Turn {
    #[inline(always)]
    fn next(self) -> Turn {
        let stage = if self.stage + 1 == LINES_STAGES { 0 } else { self.stage + 1 };
        Turn { stage, parity: self.parity ^ u32::from(stage == 0) }
    }
}

/// A run of an operand in a line of shared memory: its elements from `past` to `last`, of which those from `begin` to `end` are pieces of 16 bytes
/// that do not reach out of the operand.
#[derive(Clone, Copy)]
struct Piece {
    first: u64,
    past: u32,
    last: u32,
    begin: u32,
    end: u32,
}

impl Piece {
    /// Of `len` elements from `first` on of an operand of `span`, of which a piece has `width`.
    #[inline(always)]
    fn new(first: u64, past: u32, len: u32, span: u64, width: u32) -> Piece {
        if len == 0 {
            return Piece { first, past: 0, last: 0, begin: 0, end: 0 };
        }
        let (before, last) = (past % width, past + len);
        let (begin, end) = (past - before, last.next_multiple_of(width));
        let begin = if first < before as u64 { begin + width } else { begin };
        let end = if first + (end - past) as u64 > span { end - width } else { end };
        Piece { first, past, last, begin, end }
    }

    /// Elements that a bulk copy brings.
    #[inline(always)]
    fn len(self) -> u32 {
        self.end.saturating_sub(self.begin)
    }

    /// Copies the elements that lie in pieces which reach out of the operand.
    ///
    /// # Safety
    /// The operand spans the run, and `into` has room for it, which nobody uses.
    #[inline(always)]
    unsafe fn copy_ends<T: Scalar>(self, from: Global<T>, into: Shared<T>) {
        let whole = self.begin.max(self.past);
        let ends = [(self.past, self.begin.min(self.last)), (self.end.max(whole), self.last)];
        for (start, end) in ends {
            for at in start..end {
                // SAFETY: an element of the run, and its place.
                unsafe { into.store(at, from.load(self.first + (at - self.past) as u64)) };
            }
        }
        if ends.iter().any(|(start, end)| start < end) {
            ptx::fence_proxy_async(); // a bulk copy may fill their place next
        }
    }

    /// Starts the copy of the others, of which `filled` is told.
    ///
    /// # Safety
    /// As for [`Piece::copy_ends`]; the phase of the mbarrier expects them.
    #[inline(always)]
    unsafe fn start<T: Scalar>(self, from: Global<T>, into: Shared<T>, filled: ptx::SharedAddress) {
        if self.len() > 0 {
            let pieces = from.starting_at((self.first + self.begin as u64).wrapping_sub(self.past as u64));
            // SAFETY: whole pieces of the operand, at multiples of 16 bytes, and their place.
            unsafe {
                ptx::bulk_load(into.address(self.begin), pieces.address(0), self.len() * size_of::<T>() as u32, filled)
            };
        }
    }
}

impl<'a, T: Scalar, const THREADS: usize, const TM: usize, const STEPS: usize> Block<'a, T, THREADS, TM, STEPS> {
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;
    /// Elements of a line of the memory.
    const LINE: u32 = LINE_BYTES / Self::BYTES;
    /// Threads that multiply.
    const OWNERS: u32 = THREADS as u32 - warp::WARP_LANES;
    const BM: u32 = Self::OWNERS * TM as u32;
    const STAGE_LEN: u32 = lines_stage_len(Self::BYTES);

    #[inline(always)]
    fn new(x: &'a Reduced<T>) -> Self {
        let (p, t) = (&x.p, thread::thread_idx_x());
        let blocks = thread::grid_dim_x().max(1);
        // Whole sectors where no tile is without rows then, else as many rows each, or BM.
        let even = p.m.div_ceil(blocks);
        let has_rows = |tile: u32| (blocks - 1) * tile < p.m;
        let whole = even.next_multiple_of(32 / Self::BYTES);
        let tile = match (has_rows(whole), has_rows(even)) {
            (true, _) => whole,
            (_, true) => even,
            _ => Self::BM,
        };
        let first = thread::block_idx_x() * tile;
        let (start, end) = p.part(STEPS as u32);
        let is_run = p.a_col == p.m as u64 && p.m <= tile;
        let (pitch, cols) = match is_run {
            true => (p.m, (Self::STAGE_LEN - Self::LINE) / p.m.max(1)),
            false => {
                let pitch = tile.next_multiple_of(Self::LINE) + Self::LINE;
                (pitch, (Self::STAGE_LEN / pitch.max(1)).min(LINES))
            }
        };
        let lanes = p.m.clamp(1, Self::BM).div_ceil(TM as u32).next_multiple_of(warp::WARP_LANES).max(warp::WARP_LANES);
        let groups = Self::OWNERS / lanes;
        // So that a group's columns are the same, however many a stage has.
        let cols = cols.min(LINES_COLS - Self::LINE) / groups.max(1) * groups;
        let head = lines_head(THREADS as u32, Self::BM, Self::BYTES);
        let stages = head + LINES_STAGES * LINES_COLS;
        let mbarriers = (stages + LINES_STAGES * Self::STAGE_LEN) * Self::BYTES / size_of::<f64>() as u32;
        Block {
            x,
            lane: t % warp::WARP_LANES,
            row: t % lanes,
            lanes,
            // The last warp has none.
            group: if t < Self::OWNERS { t / lanes } else { groups },
            groups,
            first,
            tile,
            rows: tile.min(p.m - first),
            start,
            end,
            cols,
            is_run,
            pitch,
            apart: if is_run { 0 } else { p.a_col as u32 },
            xs: Shared::at(head),
            stages: Shared::at(stages),
            filled: Shared::at(mbarriers),
            read: Shared::at(mbarriers + LINES_STAGES),
        }
    }

    /// Elements that a stage's columns, from `col` on, start past a line of the memory, the first of them, and those of x.
    #[inline(always)]
    fn past(&self, col: u32) -> (u32, u32) {
        let p = &self.x.p;
        let past =
            |operand: Global<T>, first: u32| (operand.past(LINE_BYTES) / Self::BYTES).wrapping_add(first) % Self::LINE;
        (past(p.a, self.first.wrapping_add(col.wrapping_mul(p.a_col as u32))), past(p.b, col))
    }

    /// A stage: its vector, its columns, and the mbarrier that says that both are there.
    #[inline(always)]
    fn stage(&self, stage: u32) -> (Shared<T>, Shared<T>, ptx::SharedAddress) {
        let [xs, columns] =
            [(self.xs, LINES_COLS), (self.stages, Self::STAGE_LEN)].map(|(all, len)| all.starting_at(stage * len));
        (xs, columns, self.filled.address(stage))
    }

    /// Makes the mbarriers.
    ///
    /// # Safety
    /// Nothing else is in the shared memory; all threads of the block are here.
    #[inline(always)]
    unsafe fn begin(&self) {
        if thread::thread_idx_x() == 0 {
            for stage in 0..LINES_STAGES {
                // SAFETY: nobody uses them yet.
                unsafe {
                    ptx::mbarrier_init(self.filled.address(stage), warp::WARP_LANES);
                    ptx::mbarrier_init(self.read.address(stage), self.groups * self.lanes);
                }
            }
            ptx::fence_proxy_async();
        }
        thread::sync_threads();
    }

    /// Brings the tile's columns.
    ///
    /// # Safety
    /// Behind [`Block::begin`]; all lanes of the warp are here, and others multiply what it brings.
    #[inline(always)]
    unsafe fn bring_all(&self) {
        // The first time a stage counts as read.
        let mut turn = Turn { stage: 0, parity: 1 };
        let mut col = self.start;
        while col < self.end {
            // SAFETY: all threads have read the stage, or nobody was to; its phase lacks this warp's arrivals.
            unsafe {
                ptx::mbarrier_wait(self.read.address(turn.stage), turn.parity);
                // What it was filled with is there: who has read it knows, and so, at once, does this warp.
                ptx::mbarrier_wait(self.filled.address(turn.stage), turn.parity);
                self.fill(turn.stage, col);
            }
            turn = turn.next();
            col += self.cols;
        }
    }

    /// Multiplies the tile's columns.
    ///
    /// # Safety
    /// Behind [`Block::begin`]; all lanes of the warp are here, which has a group, and another warp brings them.
    #[inline(always)]
    unsafe fn multiply_all(&self, sums: &mut [T; TM]) {
        let mut turn = Turn { stage: 0, parity: 0 };
        let mut col = self.start;
        while col < self.end {
            // SAFETY: the stage is filled with these columns, and is not filled anew before all threads have arrived.
            unsafe {
                ptx::mbarrier_wait(self.filled.address(turn.stage), turn.parity);
                self.multiply(turn.stage, col, sums);
                // Each lane arrives for itself, which takes no longer, and racecheck follows it; it expects nothing.
                ptx::mbarrier_expect(self.read.address(turn.stage), 0);
            }
            turn = turn.next();
            col += self.cols;
        }
    }

    /// Starts filling a stage with the columns from `col` on.
    ///
    /// # Safety
    /// Nobody uses the stage; the phase of its mbarrier lacks the arrivals of this warp, all of whose lanes are here.
    #[inline(always)]
    unsafe fn fill(&self, stage: u32, col: u32) {
        let (p, cols) = (&self.x.p, (self.end - col).min(self.cols));
        let ((xs, columns, filled), (past_a, past_x)) = (self.stage(stage), self.past(col));
        let (lines, line) = if self.is_run { (1, cols * p.m) } else { (cols, self.rows) };
        let first = self.first as u64 + (col + self.lane) as u64 * p.a_col;
        let past = past_a.wrapping_add(self.lane.wrapping_mul(self.apart)) % Self::LINE;
        let span = p.m as u64 + (p.k - 1) as u64 * p.a_col;
        let a = Piece::new(first, past, if self.lane < lines { line } else { 0 }, span, Self::WIDTH);
        let is_packed = p.b_row == 1;
        let brings_x = is_packed && self.lane == 0;
        let x = Piece::new(col as u64, past_x, if brings_x { cols } else { 0 }, p.k as u64, Self::WIDTH);
        // SAFETY: the columns, into a stage that nobody uses and that has room for them; of x before the part's end.
        unsafe {
            if !is_packed {
                for j in (self.lane..cols).step_by(LINES as usize) {
                    xs.store(past_x + j, p.b.load((col + j) as u64 * p.b_row));
                }
            }
            let ends = [(p.a, columns.starting_at(self.lane * self.pitch), a), (p.b, xs, x)];
            for (from, into, piece) in ends {
                piece.copy_ends(from, into);
            }
            ptx::mbarrier_expect(filled, (a.len() + x.len()) * Self::BYTES);
            for (from, into, piece) in ends {
                piece.start(from, into, filled);
            }
        }
    }

    /// Adds what a stage has of this thread's rows, times x, its group's columns in ascending order.
    ///
    /// # Safety
    /// The stage is filled with the columns from `col` on.
    #[inline(always)]
    unsafe fn multiply(&self, stage: u32, col: u32, sums: &mut [T; TM]) {
        let (cols, (xs, columns, _)) = ((self.end - col).min(self.cols), self.stage(stage));
        // Rows that are not there are the last, whose sums nobody stores.
        let own: [u32; TM] = from_fn(|i| (self.row + i as u32 * self.lanes).min(self.rows - 1));
        let ((past_a, past_x), conj_b) = (self.past(col), self.x.p.conj_b());
        let load = |j: u32| {
            let past = past_a.wrapping_add(j.wrapping_mul(self.apart)) % Self::LINE;
            let column = columns.starting_at(j * self.pitch + past);
            // SAFETY: an element of x, and of the column for each row.
            unsafe { (xs.load(past_x + j).conj_if(conj_b), from_fn::<_, TM, _>(|i| column.load(own[i]))) }
        };
        let mut add = |(rx, ra): (T, [T; TM])| {
            for i in 0..TM {
                sums[i] = ra[i].fma(rx, sums[i]);
            }
        };
        let (together, apart) = (STEPS as u32 * self.groups, self.groups);
        let mut j = self.group;
        while j + (together - apart) < cols {
            let loaded: [_; STEPS] = from_fn(|s| load(j + s as u32 * apart)); // (STEPS, TM)
            for s in 0..STEPS {
                add(loaded[s]);
            }
            j += together;
        }
        while j < cols {
            add(load(j));
            j += apart;
        }
    }

    /// Hands in the tile.
    ///
    /// # Safety
    /// All threads of the block are here.
    #[inline(always)]
    unsafe fn hand_in(&self, sums: &[T; TM]) {
        let (sc, pitch) = (Shared::<T>::at(0), self.lanes * TM as u32); // (groups, LANES · TM)
        if self.group < self.groups {
            for i in 0..TM {
                // SAFETY: an element of each thread's own.
                unsafe { sc.store(self.group * pitch + i as u32 * self.lanes + self.row, sums[i]) };
            }
        }
        // SAFETY: shared memory and operands are as the launch promised; all sums are stored, and all threads here.
        unsafe { super::hand_in(self.x, Duty::tiles_first(), (self.tile, 1), THREADS as u32, (pitch, self.groups)) };
    }
}
