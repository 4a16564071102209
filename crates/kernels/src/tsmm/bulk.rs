//! `tsmm_bulk`: rows of A in and of C out by bulk copies, a ring of slots a warp: f64 and c128, from sm_90 on.
//!
//! # Idea
//! Whole rows of a packed matrix are one run of memory whatever the width: a tile comes by one bulk copy and leaves by another, which take
//! no registers and no instructions of the lanes, odd widths as well as even ones. Each warp has SLOTS slots of its own and waits for no
//! other: while it multiplies one, others are on their way in, and the last one out. C is written where A was, so that a slot needs the
//! room of the wider one. Where β is not 0 C's rows come into a slot beside A's.
//!
//! # Thread mapping
//! A warp takes tiles of R rows in turn, as many warps as the GPU holds. Lane (g, q) = (lane / 4, lane % 4) has of each fragment rows g
//! and, of real numbers, g + 8, at neighbouring steps: 4q .. 4q + 3 of 16, of complex numbers 2q and 2q + 1 of 8, so that rows of an odd
//! width meet in no bank. B is in shared memory in that order.
//!
//! # Zero β, tails
//! β = 0 never reads C. What is no run at a multiple of 16 bytes, and an odd end, is copied by the lanes, element by element.
//!
//! # In place
//! All rows of a tile are in its slot before the first of them is written, and no tile has another's rows.

use super::fragments::{COLS, Element, steps};
use crate::product::Product;
use core::array::from_fn;
use cuda_std::prelude::*;

/// A warp with tiles of R rows, up to 8·NT columns of C and KS fragments of steps, and SLOTS slots.
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
}

/// # Safety
/// Launched with 32·WARPS threads a block, `model::launch::tiling`'s shared memory and at most as many blocks as there are tiles for;
/// k <= KS fragments, n <= 8·NT, and operands that span their elements.
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
    const { assert!(SLOTS >= 2 && R % 16 == 0, "a slot is filled ahead, and has whole fragments") };
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
    let mbarriers = slots.starting_at((WARPS * SLOTS) as u32 * Warp::<T, R, NT, KS, SLOTS>::LEN);
    let is_run = |of: Global<T>, row: u64, col: u64, cols: u32| of.is_aligned(16) && col == 1 && row == cols as u64;
    let warp = Warp::<T, R, NT, KS, SLOTS> {
        x: &x,
        lane,
        sb: sb.starting_at(lane * width),
        slots: slots.starting_at(warp * SLOTS as u32 * Warp::<T, R, NT, KS, SLOTS>::LEN),
        ready: mbarriers.cast::<f64>().starting_at(warp * SLOTS as u32),
        a_runs: is_run(x.a, x.a_row, x.a_col, x.k),
        c_runs: is_run(x.c, x.c_row, x.c_col, x.n),
    };
    // SAFETY: the caller's promise; all threads of the block are here.
    unsafe {
        warp.begin();
        thread::sync_threads(); // B is whole, and the mbarriers are there
        warp.run(thread::block_idx_x() * WARPS as u32 + own / warp::WARP_LANES, thread::grid_dim_x() * WARPS as u32);
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

    /// Multiplies the tiles from `tile` on, each `turn` further on.
    ///
    /// # Safety
    /// They are this warp's, all lanes of which are here; B is whole, and the operands span their elements.
    #[inline(always)]
    unsafe fn run(&self, mut tile: u32, turn: u32) {
        let (x, tiles) = (self.x, self.x.m.div_ceil(R as u32));
        // With C's tiles a turn has two slots.
        let beside = if x.beta.is_zero() { 0 } else { 1 };
        let turns = SLOTS as u32 >> beside;
        let ahead = if turns > 1 { turns - 1 } else { 1 };
        let slot = |turn: u32| self.slots.starting_at((turn << beside) * Self::LEN);
        let old = |turn: u32| slot(turn).starting_at(beside * Self::LEN);
        // SAFETY: a slot is filled when it was read and stored from; lanes meet before and behind each use.
        unsafe {
            for turn_on in 0..ahead {
                self.fill(turn_on, (slot(turn_on), old(turn_on)), tile + turn_on * turn);
            }
            let (mut now, mut parity) = (0, 0);
            while tile < tiles {
                ptx::mbarrier_wait(self.ready.address(now), parity);
                warp::sync_warp(u32::MAX); // what lanes copied is there too
                let whole = self.tile(tile);
                self.multiply(whole, slot(now), old(now));
                ptx::fence_proxy_async();
                warp::sync_warp(u32::MAX); // C's tile is whole
                self.drain(whole, old(now));
                let next = if now + ahead < turns { now + ahead } else { now + ahead - turns };
                // The slot that is filled was stored from one turn ago, or now.
                if turns > 1 {
                    ptx::bulk_wait_group_read::<1>()
                } else {
                    ptx::bulk_wait_group_read::<0>()
                }
                warp::sync_warp(u32::MAX);
                self.fill(next, (slot(next), old(next)), tile + ahead * turn);
                tile += turn;
                (now, parity) = if now + 1 == turns { (0, parity ^ 1) } else { (now + 1, parity) };
            }
            ptx::bulk_wait_group::<0>();
        }
    }

    #[inline(always)]
    fn tile(&self, tile: u32) -> Tile {
        let first = tile * R as u32;
        Tile { first, rows: (self.x.m - first).min(R as u32) }
    }

    /// Bytes of a tile of so many columns, if a bulk copy takes them.
    #[inline(always)]
    fn run_of(tile: Tile, runs: bool, cols: u32) -> Option<u32> {
        let bytes = tile.rows * cols * Self::BYTES;
        (runs && bytes % 16 == 0).then_some(bytes)
    }

    /// Starts filling a turn's slots, of A and, where β is not 0, of C; or nothing, past the last tile.
    ///
    /// # Safety
    /// Nobody uses them; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn fill(&self, turn: u32, (sa, sc): (Shared<T>, Shared<T>), tile: u32) {
        let x = self.x;
        if tile >= x.m.div_ceil(R as u32) {
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
                    let cols = cols.max(1); // which it is; no division can panic
                    for at in (self.lane..rows * cols).step_by(32) {
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
        let start = |row: u32| (first + self.lane / 4 + 8 * row).min(tile.rows - 1) * k;
        let mut rc = [[0.0; 4]; NT];
        for s in 0..KS {
            let l = s as u32 * steps::<T>() + q * 2 * width;
            if s as u32 * steps::<T>() >= k {
                break;
            }
            // SAFETY: steps below k; what is not there is zero, whatever was loaded in its place.
            let piece = |row: usize, half: usize| unsafe {
                let l = l + half as u32 * width;
                if row as u32 >= T::ROWS {
                    from_fn::<T, 2, _>(|_| T::ZERO)
                } else if k % width == 0 {
                    let wide = sa.load_wide(start(row as u32) + l.min(k - width));
                    from_fn(|v| if l < k && v < T::WIDTH { wide[v % T::WIDTH] } else { T::ZERO })
                } else {
                    from_fn(|v| {
                        let element = sa.load(start(row as u32) + (l + v as u32).min(k - 1));
                        if l + (v as u32) < k { element } else { T::ZERO }
                    })
                }
            };
            let pieces: [[[T; 2]; 2]; 2] = from_fn(|row| from_fn(|half| piece(row, half)));
            let ra = T::a(|step, row| pieces[row][step / T::WIDTH][step % T::WIDTH]);
            for j in 0..NT {
                // SAFETY: B is whole; all lanes of the warp are here.
                rc[j] = unsafe { T::multiply(ra, super::fragments::b_of(self.sb, (s * NT + j) as u32), rc[j]) };
            }
        }
        rc
    }

    /// C's rows from `first` on, which the slot holds where β is not 0.
    ///
    /// # Safety
    /// As for [`Warp::multiply`].
    #[inline(always)]
    unsafe fn write(&self, tile: Tile, sc: Shared<T>, first: u32, sums: [[f64; 4]; NT]) {
        let (x, q) = (self.x, self.lane % 4);
        let is_read = !x.beta.is_zero();
        for row in 0..T::ROWS as usize {
            let line = first + self.lane / 4 + 8 * row as u32;
            if line >= tile.rows {
                continue;
            }
            for j in 0..NT {
                let col = |v: usize| j as u32 * COLS + T::column(q, v as u32);
                let at = |v: usize| line * x.n + col(v);
                // SAFETY: elements of C's tile, this lane's.
                unsafe {
                    let scaled = |v: usize| {
                        let sum = T::sum(&sums[j], row, v).conj_if(x.conj_sum());
                        if is_read { x.alpha.scale_onto(sum, x.beta.scale(sc.load(at(v)))) } else { x.alpha.scale(sum) }
                    };
                    if T::WIDTH == 2 && x.n % 2 == 0 {
                        if col(0) < x.n {
                            sc.store_wide(at(0), scaled);
                        }
                    } else {
                        for v in 0..2 {
                            if col(v) < x.n {
                                sc.store(at(v), scaled(v));
                            }
                        }
                    }
                }
            }
        }
    }
}
