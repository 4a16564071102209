//! `tsmttsm_mma`, `gram_mma`: fragments straight from device memory, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! A fragment of `mma.m16n8k16` takes 16 rows of the tall matrices, and which of them is which step of k is free, as long as
//! A and B agree. So the layout of a fragment can be that of memory: no shared memory, no barrier, nothing but loads of 16
//! bytes in flight and multiplications. A Gram matrix uses what it loaded twice, and leaves out the tiles above the diagonal.
//! # Thread mapping
//! A warp owns 16·X x 16·Y of C, WX x WY warps have all of the block's, and KG groups of them take 16 rows each in turn, with
//! DEPTH such rounds in flight. Lane (g, q) = (lane / 4, lane % 4) loads rows 2q, 2q + 1, 2q + 8, 2q + 9, of each 16 columns
//!
//! | unit stride | columns | by |
//! |---|---|---|
//! | along m and n | 2g, 2g + 1 | 16 bytes: a warp's load is 4 rows of 128 bytes |
//! | along k | g, g + 8 | 16 bytes: 8 columns of 64 bytes |
//! | any | g, g + 8 | elements |
//!
//! The rows are the same everywhere, so that sums have the same bits however A and B lie.
//! A's two columns are rows g and g + 8 of a fragment; B's two belong to two fragments of 8 columns.

use super::Reduced;
use super::finish;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The warps of a block.
pub trait Shape {
    /// Warps along BM, along BN, and groups of them along k.
    const WX: u32;
    /// As above.
    const WY: u32;
    /// As above.
    const KG: u32;
    /// Whether B is A.
    const GRAM: bool;
}

/// WX x WY warps in KG groups along k, of a GRAM matrix or not.
pub struct Warps<const WX: usize, const WY: usize, const KG: usize, const GRAM: bool>;

impl<const WX: usize, const WY: usize, const KG: usize, const GRAM: bool> Shape for Warps<WX, WY, KG, GRAM> {
    const WX: u32 = WX as u32;
    const WY: u32 = WY as u32;
    const KG: u32 = KG as u32;
    const GRAM: bool = GRAM;
}

/// Any strides, element by element; columns g and g + 8.
const ANY: u32 = 0;
/// The same; columns 2g and 2g + 1.
const PAIRED: u32 = 1;
/// 16 bytes along m and n.
const ACROSS: u32 = 2;
/// 16 bytes along k.
const DOWN: u32 = 3;

/// Rows of a step.
pub(super) const STEP: u32 = 16;

/// A lane's part of 16 columns of a step, as a fragment of A has it: element 2·i + r is step i of column r of the two.
pub(super) type Fragment = [f64; 8];

/// The sums of a warp: X x Y tiles of 16 x 16, the even and the odd columns (or the first and the last 8) apart.
pub struct Mma<S, const X: usize, const Y: usize, const DEPTH: usize> {
    rc: [[[[f64; 4]; 2]; Y]; X],
    /// The warp's first row and column of the block's tile of C, and its group.
    pub(super) row: u32,
    pub(super) col: u32,
    pub(super) group: u32,
    shape: PhantomData<S>,
}

impl<S: Shape, const X: usize, const Y: usize, const DEPTH: usize> Mma<S, X, Y, DEPTH> {
    const OK: () = {
        assert!(X > 0 && Y > 0 && DEPTH > 0, "empty tiles");
        assert!(
            !S::GRAM || (X == Y && S::WX == S::WY && S::WX <= 2),
            "a Gram matrix is square, and one or three warps'"
        );
    };
    pub(super) const BM: u32 = 16 * X as u32 * S::WX;
    pub(super) const BN: u32 = 16 * Y as u32 * S::WY;
    /// Warps a group: of a Gram matrix none is above the diagonal.
    const OWNERS: u32 = if S::GRAM { S::WX * (S::WX + 1) / 2 } else { S::WX * S::WY };
    pub(super) const THREADS: u32 = 32 * Self::OWNERS * S::KG;
    /// Whether B's fragments are A's.
    pub(super) const SHARED: bool = S::GRAM && S::WX == 1;
    /// Rows that the groups take at a time, a step each.
    const ROWS: u32 = STEP * S::KG;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(mut x: Reduced<f64>) {
        if S::GRAM {
            (x.p.b, x.p.b_row, x.p.b_col) = (x.p.a, x.p.a_col, x.p.a_row);
        }
        // SAFETY: all lanes are here.
        let mut sums = unsafe { Self::new() };
        let (start, end) = x.p.part(Self::ROWS * DEPTH as u32);
        let round = Self::ROWS * DEPTH as u32;
        let whole = start + (end - start) / round * round;
        // SAFETY: `end` <= k; wide loads are aligned and inside where the conditions hold, in whole rounds.
        let paired = unsafe {
            if is_across(&x) {
                sums.run::<ACROSS>(&x, start, whole);
                sums.run::<PAIRED>(&x, whole, end);
                true
            } else {
                let down = is_down(&x);
                if down {
                    sums.run::<DOWN>(&x, start, whole);
                }
                sums.run::<ANY>(&x, if down { whole } else { start }, end);
                false
            }
        };
        // SAFETY: all threads of the block are here.
        unsafe { sums.hand_in(&x, paired) };
    }

    /// Of this thread's warp, all 0.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        const { Self::OK };
        let warp = thread::thread_idx_x() / warp::WARP_LANES;
        let (owner, group) = (warp % Self::OWNERS, warp / Self::OWNERS);
        // Of a Gram matrix (0, 0), (1, 0), (1, 1).
        let (down, along) = if S::GRAM { (owner.div_ceil(2), owner / 2) } else { (owner / S::WY, owner % S::WY) };
        // SAFETY: promised by the caller.
        let (row, col) = unsafe { (ptx::pinned(down * 16 * X as u32), ptx::pinned(along * 16 * Y as u32)) };
        Self { rc: [[[[0.0; 4]; 2]; Y]; X], row, col, group, shape: PhantomData }
    }

    /// Multiplies rows `start .. end`, which by 16 bytes are whole rounds of DEPTH steps a group.
    ///
    /// # Safety
    /// `end` <= k; PATH's condition holds; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn run<const PATH: u32>(&mut self, x: &Reduced<f64>, start: u32, end: u32) {
        if start >= end {
            return;
        }
        let round = Self::ROWS * DEPTH as u32;
        let first = start + self.group * STEP;
        // What is ahead of the end is loaded again, and not multiplied.
        let last = start + (end - start - 1) / round * round + self.group * STEP;
        let step = |l: u32, d: usize| l + d as u32 * Self::ROWS;
        // SAFETY: from `first` to `last` on there are rows, by 16 bytes whole rounds; elements are loaded where they are.
        unsafe {
            let mut ready: [([Fragment; X], [Fragment; Y]); DEPTH] =
                core::array::from_fn(|d| self.load::<PATH>(x, step(first, d), end));
            let mut l = first;
            while l <= last {
                let ahead = if l < last { l + round } else { last };
                for d in 0..DEPTH {
                    self.multiply(&ready[d]);
                    ready[d] = self.load::<PATH>(x, step(ahead, d), end);
                }
                l += round;
            }
        }
    }

    /// This lane's fragments of the 16 rows from l on.
    ///
    /// # Safety
    /// As for [`Mma::run`].
    #[inline(always)]
    unsafe fn load<const PATH: u32>(&self, x: &Reduced<f64>, l: u32, end: u32) -> ([Fragment; X], [Fragment; Y]) {
        let p = &x.p;
        let (row, col) = (thread::block_idx_x() * Self::BM + self.row, thread::block_idx_z() * Self::BN + self.col);
        // SAFETY: promised by the caller.
        unsafe {
            let ra = fragments::<PATH, X>(p.a, (p.a_row, p.a_col), (p.m, row), (l, end));
            if Self::SHARED {
                return (ra, core::array::from_fn(|y| ra[y % X]));
            }
            (ra, fragments::<PATH, Y>(p.b, (p.b_col, p.b_row), (p.n, col), (l, end)))
        }
    }

    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn multiply(&mut self, (ra, rb): &([Fragment; X], [Fragment; Y])) {
        for i in 0..X {
            for j in 0..Y {
                if Self::SHARED && j > i {
                    continue; // above the diagonal
                }
                for h in 0..2 {
                    let b = [rb[j][h], rb[j][2 + h], rb[j][4 + h], rb[j][6 + h]];
                    // SAFETY: promised by the caller.
                    self.rc[i][j][h] = unsafe { ptx::mma_m16n8k16_f64(ra[i], b, self.rc[i][j][h]) };
                }
            }
        }
    }

    /// Adds the groups' sums in shared memory, in order, and finishes.
    ///
    /// # Safety
    /// As for [`Mma::body`]; all threads of the block are here.
    #[inline(always)]
    pub(super) unsafe fn hand_in(&self, x: &Reduced<f64>, paired: bool) {
        let lane = thread::thread_idx_x() % warp::WARP_LANES;
        let (g, q) = (lane / 4, lane % 4);
        // Column of the 16 that is first or last of a fragment's two, for its lines i.
        let place = |i: u32, second: u32| if paired { 2 * i + second } else { i + 8 * second };
        let sc = Shared::<f64>::at(0); // (BM, BN) by columns
        for turn in 0..ptx::opaque(S::KG) {
            if turn == self.group {
                for i in 0..X {
                    for j in 0..Y {
                        if Self::SHARED && j > i {
                            continue;
                        }
                        for h in 0..2 {
                            for e in 0..4 {
                                let row = self.row + 16 * i as u32 + place(g, e as u32 / 2);
                                let col = self.col + 16 * j as u32 + place(2 * q + e as u32 % 2, h as u32);
                                let (at, sum) = (col * Self::BM + row, self.rc[i][j][h][e]);
                                // SAFETY: inside the tile; each element is one lane's in each turn, between barriers.
                                unsafe { sc.store(at, if turn == 0 { sum } else { sc.load(at) + sum }) };
                            }
                        }
                    }
                }
            }
            thread::sync_threads();
        }
        let shape = (Self::BM, Self::BN, Self::THREADS);
        // SAFETY: the tile is whole, behind a barrier.
        unsafe { if S::GRAM { finish::tile::<f64, true>(x, shape) } else { finish::tile::<f64, false>(x, shape) } }
    }
}

/// Whether 16 bytes of a row are inside A and B, or outside, and aligned.
#[inline(always)]
fn is_across(x: &Reduced<f64>) -> bool {
    let p = &x.p;
    let even = (p.m as u64 | p.n as u64 | p.a_col | p.b_row) % 2 == 0;
    p.a_row == 1 && p.b_col == 1 && even && p.a.is_aligned(16) && p.b.is_aligned(16)
}

/// Whether 16 bytes along k are contiguous in A and B, and aligned.
#[inline(always)]
fn is_down(x: &Reduced<f64>) -> bool {
    let p = &x.p;
    let is_line = |stride: u64, lines: u32| stride % 2 == 0 || lines == 1;
    p.a_col == 1
        && p.b_row == 1
        && is_line(p.a_row, p.m)
        && is_line(p.b_col, p.n)
        && p.a.is_aligned(16)
        && p.b.is_aligned(16)
}

/// The i-th row of 16 that lane q of four has: as 16 bytes along k have them.
#[inline(always)]
fn row(q: u32, i: usize) -> u32 {
    2 * q + i as u32 % 2 + 8 * (i as u32 / 2)
}

/// This lane's fragments of `COUNT` times 16 lines from `first` on: `across` from line to line, `down` from row to row.
///
/// # Safety
/// The matrix has `lines` lines and spans its elements, which nobody writes; by elements, its rows end at `end`; by 16 bytes
/// rows l .. l + 16 are there, and PATH's condition holds.
#[inline(always)]
unsafe fn fragments<const PATH: u32, const COUNT: usize>(
    of: Global<f64>,
    (across, down): (u64, u64),
    (lines, first): (u32, u32),
    (l, end): (u32, u32),
) -> [Fragment; COUNT] {
    let lane = thread::thread_idx_x() % warp::WARP_LANES;
    let (g, q) = (lane / 4, lane % 4);
    let mut all = [[0.0; 8]; COUNT];
    // Lines past the last are loaded from the first: what comes of them is not stored.
    let inside = |line: u32| if line < lines { line } else { 0 };
    for at in 0..COUNT {
        let line = first + 16 * at as u32;
        match PATH {
            ACROSS => {
                let from = of.starting_at(l as u64 * down + inside(line + 2 * g) as u64);
                for i in 0..4 {
                    // SAFETY: rows are there, and the two lines or the first two.
                    let wide = unsafe { from.stream_wide(row(q, i) as u64 * down) };
                    (all[at][2 * i], all[at][2 * i + 1]) = (wide[0], wide[1]);
                }
            }
            DOWN => {
                for r in 0..2 {
                    let from = of.starting_at(inside(line + g + 8 * r as u32) as u64 * across + (l + 2 * q) as u64);
                    for half in 0..2 {
                        // SAFETY: the line is there, and so are rows l .. l + 16.
                        let wide = unsafe { from.stream_wide(8 * half as u64) };
                        (all[at][4 * half + r], all[at][4 * half + 2 + r]) = (wide[0], wide[1]);
                    }
                }
            }
            _ => {
                for i in 0..4 {
                    let row = l + row(q, i);
                    for r in 0..2 {
                        let line = line + if PATH == PAIRED { 2 * g + r as u32 } else { g + 8 * r as u32 };
                        let is_there = line < lines && row < end;
                        // SAFETY: inside the matrix wherever the load happens.
                        all[at][2 * i + r] =
                            unsafe { of.stream_if(is_there, row as u64 * down + line as u64 * across) };
                    }
                }
            }
        }
    }
    all
}
