//! `tsmm_bulk`: rows of A in and of C out by bulk copies, a ring of slots a warp: from sm_90 on.
//!
//! # Idea
//! Whole rows of a packed matrix are one run of memory whatever the width: a tile comes by one bulk copy and leaves by another, which take
//! no registers and no instructions of the lanes, odd widths as well as even ones. Each warp has SLOTS slots of its own and waits for no
//! other: while it multiplies one, others are on their way in, and the last one out. C is written where A was, so that a slot needs the
//! room of the wider one, and the narrower they are the more rows. Where β is not 0 C's rows come in behind A's, or into a slot beside.
//!
//! Blocks have a few tiles a warp, next to each other, and end: an SM that is done early has another block, none waits for the slowest, and
//! what all of them read and write lies close together. Of many columns, where each block's B costs more, they have more, or all: `slot_turns`.
//!
//! # Who multiplies
//! | variant | elements | by | B |
//! |---|---|---|---|
//! | `tsmm_bulk` | f64, c128 | [`matrix`] units | in shared memory, as fragments |
//! | `tsmm_bulk_registers` | f32, c64 | vector units | in [`registers`] of the lanes that own its columns |
//! | `tsmm_bulk_shared` | f32, c64 | vector units | in [`shared`] memory |
//! | `tsmm_bulk_rows` | all | vector units, few steps, a lane a whole [row](rows) | in shared memory, the same for all lanes |
//!
//! # Zero β, tails
//! β = 0 never reads C. What is no run at a multiple of 16 bytes, and an odd end, is copied by the lanes, element by element.
//!
//! # In place
//! All rows of a tile are in its slot before the first of them is written, and no tile has another's rows.
//!
//! # Cost
//! Measured on H200s, of what a copy moves of as many bytes in the same process, matrices of 1 GB, n = k: f64 of 17, 24, 25, 32, 36, 40, 44 and 52
//! columns 96, 97, 96, 95, 93, 94, 90 and 90%, of 48, 56 and 64 91, 91 and 88, c128 of 17, 20, 24, 25, 28 and 32 90, 94, 94, 88, 91 and 93; but where
//! cuBLAS took longer than in another process, too, f64 of 48 and 49 82 and 81, c128 of 30 76. With all of a warp's tiles in one ring a prototype
//! of the matrix units lost 3% of 5, 16 and 32 columns and 1% of 48.

pub mod matrix;
pub mod registers;
pub mod rows;
pub mod shared;

use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::variants::bulk::{holds_both, slot_rows};

/// How the lanes of a warp multiply a tile with B.
pub trait Units<T: Scalar>: Sized {
    /// Rows that they multiply at a time.
    const FRAGMENT: u32;
    /// Most columns of A.
    const STEPS: u32;
    /// Most columns of C.
    const COLS: u32;
    /// A lane's sums of such rows.
    type Sums;

    /// Brings B into shared memory, STEPS · COLS elements, with zeros for what it does not have; by all of so many threads.
    ///
    /// # Safety
    /// B spans its elements; a barrier follows.
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32);

    /// What this lane needs of it.
    ///
    /// # Safety
    /// It is there.
    unsafe fn new(x: &Product<T>, sb: Shared<T>) -> Self;

    /// The products of a tile's rows from `first` on and B.
    ///
    /// # Safety
    /// A's slot is filled; all lanes of the warp are here.
    unsafe fn sums(&self, x: &Product<T>, tile: Tile, sa: Shared<T>, first: u32) -> Self::Sums;

    /// C's rows from `first` on, which the slot holds where β is not 0.
    ///
    /// # Safety
    /// As for [`Units::sums`], and nobody reads A's rows there any more.
    unsafe fn write(&self, x: &Product<T>, tile: Tile, sc: Shared<T>, first: u32, sums: Self::Sums);
}

/// A tile's rows: the first, and how many there are.
#[derive(Clone, Copy)]
pub struct Tile {
    first: u32,
    rows: u32,
}

/// A warp with SLOTS slots, each with room for R rows of the most columns that U has.
struct Warp<'a, T, U, const R: usize, const SLOTS: usize> {
    x: &'a Product<T>,
    lane: u32,
    /// Its first slot, and its first mbarrier.
    slots: Shared<T>,
    ready: Shared<f64>,
    /// Whether tiles of A, and of C, are runs.
    a_runs: bool,
    c_runs: bool,
    /// Rows of a tile; elements from A's to C's in a slot, and from slot to slot, of which there are `turns`.
    rows: u32,
    beside: u32,
    apart: u32,
    turns: u32,
    units: PhantomData<U>,
}

/// # Safety
/// Launched with 32·WARPS threads a block and `model::launch::tiling`'s shared memory; k and n no more than U has, and operands that span
/// their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, U: Units<T>, const WARPS: usize, const R: usize, const SLOTS: usize>(x: Product<T>) {
    const { assert!(SLOTS >= 2 && R as u32 % U::FRAGMENT == 0, "a slot is filled ahead, and has whole fragments") };
    let own = thread::thread_idx_x() / warp::WARP_LANES;
    let sb = Shared::<T>::at(0);
    // SAFETY: a block begins with all threads of it.
    let x = Product { alpha: unsafe { held(x.alpha) }, ..x };
    let warp = Warp::<T, U, R, SLOTS>::new(&x, own, WARPS as u32);
    // The block's tiles: as many as each other block's, from the first warp's on.
    let tiles = x.m.div_ceil(warp.rows);
    let own_tiles = tiles.div_ceil((thread::grid_dim_x() * WARPS as u32).max(1)) * WARPS as u32;
    let first = thread::block_idx_x() * own_tiles;
    let (tile, end, turn) = (first + own, (first + own_tiles).min(tiles), WARPS as u32);
    // SAFETY: shared memory and operands are as the launch promised; the tiles from `tile` on are this warp's; all
    // threads of the block are here.
    unsafe {
        warp.begin(tile, end, turn);
        U::bring(&x, sb, 32 * WARPS as u32);
        thread::sync_threads(); // B is whole
        warp.run(&U::new(&x, sb), tile, end, turn);
    }
}

impl<'a, T: Scalar, U: Units<T>, const R: usize, const SLOTS: usize> Warp<'a, T, U, R, SLOTS> {
    /// Elements of a slot.
    const LEN: u32 = R as u32 * if U::STEPS > U::COLS { U::STEPS } else { U::COLS };
    const BYTES: u32 = size_of::<T>() as u32;

    /// The `own`-th of a block's warps.
    #[inline(always)]
    fn new(x: &'a Product<T>, own: u32, warps: u32) -> Self {
        let slots = U::STEPS * U::COLS;
        let mbarriers = (slots + warps * SLOTS as u32 * Self::LEN) * Self::BYTES / size_of::<f64>() as u32;
        // With C's tile behind A's, or in the next slot where one has no room for a fragment's rows of both.
        let wider = if x.k > x.n { x.k } else { x.n };
        let (cols, slots_a_turn) = match x.beta.is_zero() {
            true => (wider, 1),
            false if holds_both(Self::LEN, x.k + x.n, U::FRAGMENT) => (x.k + x.n, 1),
            false => (wider, 2),
        };
        let rows = slot_rows(Self::LEN, cols, U::FRAGMENT);
        let beside = match (x.beta.is_zero(), slots_a_turn) {
            (true, _) => 0,
            (_, 1) => rows * x.k,
            _ => Self::LEN,
        };
        Warp {
            x,
            lane: thread::thread_idx_x() % warp::WARP_LANES,
            slots: Shared::at(slots + own * SLOTS as u32 * Self::LEN),
            ready: Shared::at(mbarriers + own * SLOTS as u32),
            a_runs: is_run(x.a, (x.a_row, x.a_col), x.k),
            c_runs: is_run(x.c, (x.c_row, x.c_col), x.n),
            rows,
            beside,
            apart: slots_a_turn * Self::LEN,
            turns: SLOTS as u32 / slots_a_turn,
            units: PhantomData,
        }
    }

    /// Makes the mbarriers, and starts filling all slots but one with the tiles from `tile` to `end`, each `turn` further on.
    ///
    /// # Safety
    /// Nothing else is where they are; the tiles are this warp's, and the operands span their elements.
    #[inline(always)]
    unsafe fn begin(&self, tile: u32, end: u32, turn: u32) {
        // SAFETY: nothing else is in the mbarriers' place, and the tiles are this warp's, as the caller promised.
        unsafe {
            if self.lane == 0 {
                for slot in 0..SLOTS as u32 {
                    ptx::mbarrier_init(self.ready.address(slot), 1);
                }
                ptx::fence_proxy_async();
            }
            for ahead in 0..self.ahead() {
                self.fill(ahead, self.slot(ahead), tile + ahead * turn, end);
            }
        }
    }

    /// Turns that are filled before the first of them is multiplied.
    #[inline(always)]
    fn ahead(&self) -> u32 {
        if self.turns > 1 { self.turns - 1 } else { 1 }
    }

    #[inline(always)]
    fn slot(&self, turn: u32) -> Shared<T> {
        self.slots.starting_at(turn * self.apart)
    }

    /// Multiplies the tiles from `tile` to `end`, each `turn` further on.
    ///
    /// # Safety
    /// As for [`Warp::begin`], of the same tiles, behind which a barrier lies; B is there, and all lanes of the warp are here.
    #[inline(always)]
    unsafe fn run(&self, units: &U, mut tile: u32, end: u32, turn: u32) {
        let (turns, ahead) = (self.turns, self.ahead());
        // SAFETY: a slot is filled when it was read and stored from; lanes meet before and behind each use.
        unsafe {
            let (mut now, mut parity) = (0, 0);
            while tile < end {
                ptx::mbarrier_wait(self.ready.address(now), parity);
                warp::sync_warp(u32::MAX); // what lanes copied is there too
                let (whole, sa) = (self.tile(tile), self.slot(now));
                let sc = sa.starting_at(self.beside);
                self.multiply(units, whole, sa, sc);
                ptx::fence_proxy_async();
                warp::sync_warp(u32::MAX); // C's tile is whole
                self.drain(whole, sc);
                let next = if now + ahead < turns { now + ahead } else { now + ahead - turns };
                // The slot that is filled was stored from one turn ago, or now.
                if turns > 1 {
                    ptx::bulk_wait_group_read::<1>()
                } else {
                    ptx::bulk_wait_group_read::<0>()
                }
                warp::sync_warp(u32::MAX);
                self.fill(next, self.slot(next), tile + ahead * turn, end);
                tile += turn;
                (now, parity) = if now + 1 == turns { (0, parity ^ 1) } else { (now + 1, parity) };
            }
            ptx::bulk_wait_group::<0>();
        }
    }

    #[inline(always)]
    fn tile(&self, tile: u32) -> Tile {
        let first = tile * self.rows;
        Tile { first, rows: (self.x.m - first).min(self.rows) }
    }

    /// Bytes of a tile of so many columns, if a bulk copy takes them.
    #[inline(always)]
    fn run_of(tile: Tile, runs: bool, cols: u32) -> Option<u32> {
        let bytes = tile.rows * cols * Self::BYTES;
        (runs && bytes % 16 == 0).then_some(bytes)
    }

    /// Starts filling a turn's slot with A's tile and, where β is not 0, C's; or nothing, past the last tile.
    ///
    /// # Safety
    /// Nobody uses it; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn fill(&self, turn: u32, sa: Shared<T>, tile: u32, end: u32) {
        let (x, sc) = (self.x, sa.starting_at(self.beside));
        if tile >= end {
            return;
        }
        let tile = self.tile(tile);
        let (ready, reads_c) = (self.ready.address(turn), !x.beta.is_zero());
        let (a_run, c_run) = (Self::run_of(tile, self.a_runs, x.k), Self::run_of(tile, self.c_runs, x.n));
        // SAFETY: tiles of the operands, into slots that have room for them.
        unsafe {
            if self.lane == 0 {
                ptx::mbarrier_expect(ready, a_run.unwrap_or(0) + if reads_c { c_run.unwrap_or(0) } else { 0 });
            }
            let a = x.a.starting_at(tile.first as u64 * x.a_row);
            self.bring(sa, a, (x.a_row, x.a_col), (tile.rows, x.k), (a_run, ready));
            if reads_c {
                let c = x.c.starting_at(tile.first as u64 * x.c_row);
                self.bring(sc, c, (x.c_row, x.c_col), (tile.rows, x.n), (c_run, ready));
            }
        }
    }

    /// Starts a bulk copy of a tile, of so many bytes, or copies its elements.
    ///
    /// # Safety
    /// As for [`Warp::fill`]; the mbarrier expects the bytes.
    #[inline(always)]
    unsafe fn bring(
        &self,
        into: Shared<T>,
        from: Global<T>,
        (row, col): (u64, u64),
        (rows, cols): (u32, u32),
        (run, ready): (Option<u32>, ptx::SharedAddress),
    ) {
        // SAFETY: the tile is in the operand, the slot nobody's, and the mbarrier expects the bytes, as the caller
        // promised.
        unsafe {
            match run {
                Some(bytes) if self.lane == 0 => ptx::bulk_load(into.address(0), from.address(0), bytes, ready),
                Some(_) => {}
                None => {
                    let (len, cols) = (rows * cols, cols.max(1)); // of no columns there is nothing
                    for at in (self.lane..len).step_by(32) {
                        into.store(at, from.load((at / cols) as u64 * row + (at % cols) as u64 * col));
                    }
                }
            }
        }
    }

    /// Stores a tile of C, and closes the group of its copies.
    ///
    /// # Safety
    /// It is whole, and seen by bulk copies; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn drain(&self, tile: Tile, sc: Shared<T>) {
        let x = self.x;
        let into = x.c.starting_at(tile.first as u64 * x.c_row);
        // SAFETY: rows of C, this warp's.
        unsafe {
            match Self::run_of(tile, self.c_runs, x.n) {
                Some(bytes) if self.lane == 0 => ptx::bulk_store(into.address(0), sc.address(0), bytes),
                Some(_) => {}
                None => {
                    let n = x.n.max(1);
                    for at in (self.lane..tile.rows * n).step_by(32) {
                        into.store((at / n) as u64 * x.c_row + (at % n) as u64 * x.c_col, sc.load(at));
                    }
                }
            }
        }
        ptx::bulk_commit_group();
    }

    /// C ← α A B + β C of a tile, from A's slot and C's, which may be one.
    ///
    /// # Safety
    /// They are filled; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn multiply(&self, units: &U, tile: Tile, sa: Shared<T>, sc: Shared<T>) {
        let x = self.x;
        let blocks = tile.rows.div_ceil(U::FRAGMENT);
        for block in 0..blocks {
            // Of one slot C's rows may reach over A's that were multiplied, and no others.
            let first = U::FRAGMENT * if x.n <= x.k { block } else { blocks - 1 - block };
            // SAFETY: rows of the tile; all lanes have loaded A's before C's are written.
            unsafe {
                let sums = units.sums(x, tile, sa, first);
                warp::sync_warp(u32::MAX);
                units.write(x, tile, sc, first, sums);
            }
        }
    }
}

/// A real factor of a launch, in registers from here on: the assembler, which sees that all lanes have the same one, would load it wherever it is
/// used, and wait. So one lane has it, and tells the others. Of a complex one branches hang on its parts, which are cheaper where all lanes are
/// known to agree.
///
/// # Safety
/// All lanes of the warp are here.
#[inline(always)]
unsafe fn held<T: Scalar>(factor: T) -> T {
    if T::IS_COMPLEX {
        return factor;
    }
    let is_first = thread::thread_idx_x() % warp::WARP_LANES == 0;
    let own = if is_first { factor } else { T::ZERO };
    // SAFETY: all lanes are here, as the caller promised.
    let (word, _) = unsafe { warp::warp_shuffle_idx(u32::MAX, own.to_word(), 0, warp::WARP_LANES) };
    T::from_word(word)
}

/// Whether so many columns' rows lie behind each other, from a multiple of 16 bytes on.
#[inline(always)]
fn is_run<T: Scalar>(of: Global<T>, (row, col): (u64, u64), cols: u32) -> bool {
    cols > 0 && of.is_aligned(16) && col == 1 && row == cols as u64
}
