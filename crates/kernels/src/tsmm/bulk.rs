//! `tsmm_bulk`: rows of A in and of C out by bulk copies, a ring of slots a warp: f64 and c128, from sm_90 on.
//!
//! # Idea
//! Whole rows of a packed matrix are one run of memory whatever the width: a tile comes by one bulk copy and leaves by another, which take
//! no registers and no instructions of the lanes, odd widths as well as even ones. Each warp has SLOTS slots of its own and waits for no
//! other: while it multiplies one, others are on their way in, and the last one out. C is written where A was, so that a slot needs the
//! room of the wider one, and the narrower they are the more rows. Where β is not 0 C's rows come in behind A's, or into a slot beside.
//!
//! Blocks have a few tiles a warp, next to each other, and end: an SM that is done early has another block, none waits for the slowest, and
//! what all of them read and write lies close together. Of many columns, where each block's B costs more, they have more: `slot_turns`.
//!
//! # Thread mapping
//! A block's warps take its tiles in turn. Lane (g, q) = (lane / 4, lane % 4) has of each fragment rows g
//! and, of real numbers, g + 8, at neighbouring steps: 4q .. 4q + 3 of 16, of complex numbers 2q and 2q + 1 of 8, so that rows of an odd
//! width meet in no bank. B is in shared memory in that order.
//!
//! # Zero β, tails
//! β = 0 never reads C. What is no run at a multiple of 16 bytes, and an odd end, is copied by the lanes, element by element.
//!
//! # In place
//! All rows of a tile are in its slot before the first of them is written, and no tile has another's rows.
//!
//! # Cost
//! Measured on an H200, f64, m · n = 2²⁹, GB/s read and written: 3831 of 5 columns, 4152 of 16, 4015 of 32, 3982 of 48, 3354 of 64, where a
//! copy has 4175. With
//! all of a warp's tiles in one ring a prototype lost 3% of 5, 16 and 32 columns and 1% of 48.

use super::fragments::{COLS, Element, steps};
use crate::product::Product;
use core::array::from_fn;
use cuda_std::prelude::*;
use model::variants::tsmm::slot_rows;

/// A warp with SLOTS slots, each with room for R rows of 8·NT columns of C and KS fragments of steps.
struct Warp<'a, T, const R: usize, const NT: usize, const KS: usize, const SLOTS: usize> {
    x: &'a Product<T>,
    lane: u32,
    /// This lane's part of the first fragment of B.
    sb: Shared<T>,
    /// The warp's first slot, and its first mbarrier.
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
}

/// # Safety
/// Launched with 32·WARPS threads a block and `model::launch::tiling`'s shared memory; k <= KS fragments, n <= 8·NT, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Element,
    const WARPS: usize,
    const R: usize,
    const NT: usize,
    const KS: usize,
    const SLOTS: usize,
>(
    x: Product<T>,
) {
    const { assert!(SLOTS >= 2 && R as u32 % (8 * T::ROWS) == 0, "a slot is filled ahead, and has whole fragments") };
    let (own, width) = (thread::thread_idx_x(), T::WIDTH as u32);
    let b_len = steps::<T>() * COLS;
    let sb = Shared::<T>::at(0); // (KS, NT, 2 halves, 32 lanes, 16 bytes of steps)
    for at in (own..KS as u32 * NT as u32 * b_len).step_by(32 * WARPS) {
        let (fragment, half, lane, v) = (at / b_len, at / (32 * width) % 2, at / width % 32, at % width);
        let l = fragment / NT as u32 * steps::<T>() + (lane % 4 * 2 + half) * width + v;
        let col = fragment % NT as u32 * COLS + T::column(lane / 8, lane / 4 % 2);
        // SAFETY: `x.b` guards; inside of B's part of the memory.
        unsafe { sb.store(at, x.b(l, col, x.k)) };
    }
    let (warp, lane) = (own / warp::WARP_LANES, own % warp::WARP_LANES);
    let slots = sb.starting_at(KS as u32 * NT as u32 * b_len);
    let before = KS as u32 * NT as u32 * b_len + (WARPS * SLOTS) as u32 * Warp::<T, R, NT, KS, SLOTS>::LEN;
    let mbarriers = Shared::<f64>::at(before * (size_of::<T>() / size_of::<f64>()) as u32);
    let is_run =
        |of: Global<T>, row: u64, col: u64, cols: u32| cols > 0 && of.is_aligned(16) && col == 1 && row == cols as u64;
    let (len, fragment) = (Warp::<T, R, NT, KS, SLOTS>::LEN, 8 * T::ROWS);
    // With C's tile behind A's, or in the next slot where one has no room for a fragment's rows of both.
    let wider = if x.k > x.n { x.k } else { x.n };
    let (cols, slots_a_turn) = match x.beta.is_zero() {
        true => (wider, 1),
        false if fragment * (x.k + x.n) <= len => (x.k + x.n, 1),
        false => (wider, 2),
    };
    let rows = slot_rows(len, cols, fragment);
    let beside = match (x.beta.is_zero(), slots_a_turn) {
        (true, _) => 0,
        (_, 1) => rows * x.k,
        _ => len,
    };
    let warp = Warp::<T, R, NT, KS, SLOTS> {
        x: &x,
        lane,
        sb: sb.starting_at(lane * width),
        slots: slots.starting_at(warp * SLOTS as u32 * Warp::<T, R, NT, KS, SLOTS>::LEN),
        ready: mbarriers.starting_at(warp * SLOTS as u32),
        a_runs: is_run(x.a, x.a_row, x.a_col, x.k),
        c_runs: is_run(x.c, x.c_row, x.c_col, x.n),
        rows,
        beside,
        apart: slots_a_turn * len,
        turns: SLOTS as u32 / slots_a_turn,
    };
    // The block's tiles: as many as each other block's, from the first warp's on.
    let tiles = x.m.div_ceil(rows);
    let own_tiles = tiles.div_ceil((thread::grid_dim_x() * WARPS as u32).max(1)) * WARPS as u32;
    let first = thread::block_idx_x() * own_tiles;
    // SAFETY: the caller's promise; all threads of the block are here.
    unsafe {
        warp.begin();
        thread::sync_threads(); // B is whole, and the mbarriers are there
        warp.run(first + own / warp::WARP_LANES, (first + own_tiles).min(tiles), WARPS as u32);
    }
}

/// A tile's rows: the first, and how many there are.
#[derive(Clone, Copy)]
struct Tile {
    first: u32,
    rows: u32,
}

impl<T: Element, const R: usize, const NT: usize, const KS: usize, const SLOTS: usize> Warp<'_, T, R, NT, KS, SLOTS> {
    /// Elements of a slot.
    const LEN: u32 = R as u32
        * if KS as u32 * steps::<T>() > NT as u32 * COLS { KS as u32 * steps::<T>() } else { NT as u32 * COLS };
    const BYTES: u32 = size_of::<T>() as u32;

    /// Makes the mbarriers.
    ///
    /// # Safety
    /// Nothing else is where they are.
    #[inline(always)]
    unsafe fn begin(&self) {
        if self.lane == 0 {
            for slot in 0..SLOTS as u32 {
                // SAFETY: promised by the caller.
                unsafe { ptx::mbarrier_init(self.ready.address(slot), 1) };
            }
            ptx::fence_proxy_async();
        }
    }

    /// Multiplies the tiles from `tile` to `end`, each `turn` further on.
    ///
    /// # Safety
    /// They are this warp's, all lanes of which are here; B is whole, and the operands span their elements.
    #[inline(always)]
    unsafe fn run(&self, mut tile: u32, end: u32, turn: u32) {
        let turns = self.turns;
        let ahead = if turns > 1 { turns - 1 } else { 1 };
        let slot = |turn: u32| self.slots.starting_at(turn * self.apart);
        // SAFETY: a slot is filled when it was read and stored from; lanes meet before and behind each use.
        unsafe {
            for turn_on in 0..ahead {
                self.fill(turn_on, slot(turn_on), tile + turn_on * turn, end);
            }
            let (mut now, mut parity) = (0, 0);
            while tile < end {
                ptx::mbarrier_wait(self.ready.address(now), parity);
                warp::sync_warp(u32::MAX); // what lanes copied is there too
                let (whole, sc) = (self.tile(tile), slot(now).starting_at(self.beside));
                self.multiply(whole, slot(now), sc);
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
                self.fill(next, slot(next), tile + ahead * turn, end);
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
        // SAFETY: the caller's promise.
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
    unsafe fn multiply(&self, tile: Tile, sa: Shared<T>, sc: Shared<T>) {
        let (x, fragment) = (self.x, 8 * T::ROWS);
        let blocks = tile.rows.div_ceil(fragment);
        for block in 0..blocks {
            // Of one slot C's rows may reach over A's that were multiplied, and no others.
            let first = fragment * if x.n <= x.k { block } else { blocks - 1 - block };
            // SAFETY: rows of the tile; all lanes have loaded A's before C's are written.
            unsafe {
                let sums = self.sums(tile, sa, first);
                warp::sync_warp(u32::MAX);
                self.write(tile, sc, first, sums);
            }
        }
    }

    /// The products of a fragment's rows, from `first` on, and B.
    ///
    /// # Safety
    /// As for [`Warp::multiply`].
    #[inline(always)]
    unsafe fn sums(&self, tile: Tile, sa: Shared<T>, first: u32) -> [[f64; 4]; NT] {
        let (k, width, q) = (self.x.k, T::WIDTH as u32, self.lane % 4);
        // Rows that are not there are the last one, and not stored.
        let starts: [u32; 2] = from_fn(|row| (first + self.lane / 4 + 8 * row as u32).min(tile.rows - 1) * k);
        let mut rc = [[0.0; 4]; NT];
        for s in 0..KS {
            let end = (s as u32 + 1) * steps::<T>();
            if end - steps::<T>() >= k {
                break;
            }
            let l = end - steps::<T>() + q * 2 * width;
            // SAFETY: steps below k, as they are guarded; whole pieces where k is.
            let pieces: [[[T; 2]; 2]; 2] = unsafe {
                match (end <= k, k % width == 0) {
                    (true, true) => self.pieces::<true, true>(sa, starts, l),
                    (true, false) => self.pieces::<true, false>(sa, starts, l),
                    (false, true) => self.pieces::<false, true>(sa, starts, l),
                    (false, false) => self.pieces::<false, false>(sa, starts, l),
                }
            };
            let ra = T::a(|step, row| pieces[row][step / T::WIDTH][step % T::WIDTH]);
            for j in 0..NT {
                // SAFETY: B is whole; all lanes of the warp are here.
                rc[j] = unsafe { T::multiply(ra, super::fragments::b_of(self.sb, (s * NT + j) as u32), rc[j]) };
            }
        }
        rc
    }

    /// This lane's part of a fragment of A: of rows that start there 16 bytes of steps from l on, twice, WHOLE or with zeros for what is not
    /// there; at once if WIDE.
    ///
    /// # Safety
    /// All steps are there if WHOLE, and 16 bytes are aligned if WIDE.
    #[inline(always)]
    unsafe fn pieces<const WHOLE: bool, const WIDE: bool>(
        &self,
        sa: Shared<T>,
        starts: [u32; 2],
        l: u32,
    ) -> [[[T; 2]; 2]; 2] {
        let (k, width) = (self.x.k, T::WIDTH as u32);
        // SAFETY: steps below k.
        let piece = |row: usize, half: u32| unsafe {
            let step = l + half * width;
            if row >= T::ROWS as usize {
                [T::ZERO; 2]
            } else if WIDE {
                let wide = sa.load_wide(starts[row] + if WHOLE { step } else { step.min(k - width) });
                from_fn(|v| if WHOLE || step < k { wide[v % T::WIDTH] } else { T::ZERO })
            } else {
                from_fn(|v| {
                    let step = step + v as u32;
                    let element = sa.load(starts[row] + if WHOLE { step } else { step.min(k - 1) });
                    if WHOLE || step < k { element } else { T::ZERO }
                })
            }
        };
        from_fn(|row| from_fn(|half| piece(row, half as u32)))
    }

    /// C's rows from `first` on, which the slot holds where β is not 0.
    ///
    /// # Safety
    /// As for [`Warp::multiply`].
    #[inline(always)]
    unsafe fn write(&self, tile: Tile, sc: Shared<T>, first: u32, sums: [[f64; 4]; NT]) {
        // SAFETY: promised by the caller.
        unsafe {
            if self.x.beta.is_zero() {
                self.write_as::<false>(tile, sc, first, sums)
            } else {
                self.write_as::<true>(tile, sc, first, sums)
            }
        }
    }

    /// The same, with β C if READ.
    ///
    /// # Safety
    /// As for [`Warp::multiply`].
    #[inline(always)]
    unsafe fn write_as<const READ: bool>(&self, tile: Tile, sc: Shared<T>, first: u32, sums: [[f64; 4]; NT]) {
        let (x, q) = (self.x, self.lane % 4);
        let are_there = first + 8 * T::ROWS <= tile.rows;
        for row in 0..T::ROWS as usize {
            let line = first + self.lane / 4 + 8 * row as u32;
            let col = |j: usize, v: usize| j as u32 * COLS + T::column(q, v as u32);
            let at = |j: usize, v: usize| line * x.n + col(j, v);
            // SAFETY: elements of C's tile, this lane's.
            unsafe {
                let scaled = |j: usize, v: usize| {
                    let sum = T::sum(sums[j], row, v).conj_if(x.conj_sum());
                    if READ { x.alpha.scale_onto(sum, x.beta.scale(sc.load(at(j, v)))) } else { x.alpha.scale(sum) }
                };
                // What holds for all lanes first: hardly any tile has a guard.
                if T::WIDTH == 2 && are_there && x.n == NT as u32 * COLS {
                    for j in 0..NT {
                        sc.store_wide(at(j, 0), |v| scaled(j, v));
                    }
                    continue;
                }
                for j in 0..NT {
                    if are_there && (j as u32 + 1) * COLS <= x.n {
                        for v in 0..2 {
                            sc.store(at(j, v), scaled(j, v));
                        }
                    } else if line < tile.rows {
                        for v in 0..2 {
                            if col(j, v) < x.n {
                                sc.store(at(j, v), scaled(j, v));
                            }
                        }
                    }
                }
            }
        }
    }
}
