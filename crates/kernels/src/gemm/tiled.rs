//! `gemm_tiled`: the plain register-tiled product.
//!
//! # Idea
//! An element of a staged tile is used by 16 threads, and an element in a register by TM or TN sums: per step of k a
//! thread loads TM + TN elements for TM · TN multiply-adds.
//! # Thread mapping
//! Block x owns tile x mod ⌈m/BM⌉ of the rows and x / ⌈m/BM⌉ of the columns, BM = 16·TM, BN = 16·TN; y is its part of k.
//! Thread t owns rows in groups of 16 bytes, 16 groups apart, from group t mod 16 on; columns likewise from t / 16.
//! # Zero β, tails
//! β = 0 never reads C; loads outside are zero; stores are guarded.
//! # Determinism
//! A sum runs over k in ascending order.
//! # Cost
//! 2mnk flops; reads A ⌈n/BN⌉ and B ⌈m/BM⌉ times.
//! # Source
//! The usual scheme of BLAS on GPUs; it is also where the teaching ladder of square products starts to be fast.

use crate::product::Product;
use cuda_std::prelude::*;
use model::launch::gemm_pitch;
use model::variants::{GEMM_BK as BK, GEMM_SIDE as SIDE};

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const TM: usize, const TN: usize, const THREADS: usize>(x: Product<T>) {
    const { assert!(THREADS == (SIDE * SIDE) as usize, "a block is 16 x 16 threads") };
    const { assert!(TM % T::WIDTH == 0 && TN % T::WIDTH == 0, "tiles are whole 16-byte loads") };
    const { assert!((TM * BK as usize) % (SIDE as usize) == 0, "threads stage equal shares of A") };
    const { assert!((TN * BK as usize) % (SIDE as usize) == 0, "threads stage equal shares of B") };
    let (bm, bn) = (SIDE * TM as u32, SIDE * TN as u32);
    let tiles_m = x.m.div_ceil(bm).max(1); // at least one where the compiler cannot know, so that no division can panic
    let (row0, col0) = (thread::block_idx_x() % tiles_m * bm, thread::block_idx_x() / tiles_m * bn);
    let (start, end) = x.part(BK);
    let stage = Stage::<T, TM, TN>::new(&x);
    let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)

    for tile in (start..end).step_by(BK as usize) {
        // SAFETY: `end` <= k; barriers lie between the filling and the use of the tiles.
        unsafe { stage.fill(&x, row0, col0, tile, end) };
        thread::sync_threads();
        for l in 0..BK {
            // SAFETY: l < BK, behind the barrier.
            let (ra, rb) = unsafe { (stage.a(l), stage.b(l)) };
            for i in 0..TM {
                for j in 0..TN {
                    rc[i][j] = ra[i].fma(rb[j], rc[i][j]);
                }
            }
        }
        thread::sync_threads(); // the tiles may be overwritten
    }

    let t = thread::thread_idx_x();
    for i in 0..TM {
        for j in 0..TN {
            let (row, col) = (row0 + own::<T>(t % SIDE, i), col0 + own::<T>(t / SIDE, j));
            // SAFETY: each thread owns its elements.
            unsafe { x.write(row, col, rc[i][j]) };
        }
    }
}

/// Where in its tile the `index`-th element of thread `at` of a side lies: 16 bytes a thread, then the next round.
#[inline(always)]
fn own<T: Scalar>(at: u32, index: usize) -> u32 {
    let (round, lane) = (index / T::WIDTH, index % T::WIDTH);
    (round as u32 * SIDE + at) * T::WIDTH as u32 + lane as u32
}

/// The two tiles in shared memory, both with k as the slow index.
struct Stage<T, const TM: usize, const TN: usize> {
    sa: Shared<T>, // (BM, BK), pitch gemm_pitch(BM)
    sb: Shared<T>, // (BN, BK), pitch gemm_pitch(BN)
    a_down: bool,
    b_down: bool,
}

impl<T: Scalar, const TM: usize, const TN: usize> Stage<T, TM, TN> {
    const A_PITCH: u32 = gemm_pitch(SIDE * TM as u32, size_of::<T>() as u32);
    const B_PITCH: u32 = gemm_pitch(SIDE * TN as u32, size_of::<T>() as u32);

    /// Neighbouring threads load neighbours in memory: down the rows of op(A) where that is its unit stride, else along
    /// k; along the columns of op(B) where that is its unit stride, else along k.
    #[inline(always)]
    fn new(x: &Product<T>) -> Self {
        let (sa, sb) = (Shared::at(0), Shared::at(Self::A_PITCH * BK));
        Stage { sa, sb, a_down: x.a_row <= x.a_col, b_down: x.b_col <= x.b_row }
    }

    /// # Safety
    /// `end` <= k; no thread uses the tiles.
    #[inline(always)]
    unsafe fn fill(&self, x: &Product<T>, row0: u32, col0: u32, tile: u32, end: u32) {
        for share in 0..TM * BK as usize / SIDE as usize {
            let (i, l) = place::<TM>(share, self.a_down);
            // SAFETY: `end` <= k; (i, l) lies in the tile and is this thread's.
            unsafe { self.sa.store(l * Self::A_PITCH + i, x.a(row0 + i, tile + l, end)) };
        }
        for share in 0..TN * BK as usize / SIDE as usize {
            let (j, l) = place::<TN>(share, self.b_down);
            // SAFETY: `end` <= k; (j, l) lies in the tile and is this thread's.
            unsafe { self.sb.store(l * Self::B_PITCH + j, x.b(tile + l, col0 + j, end)) };
        }
    }

    /// This thread's elements of row `l` of A's tile.
    ///
    /// # Safety
    /// l < BK, and a barrier lies behind the filling.
    #[inline(always)]
    unsafe fn a(&self, l: u32) -> [T; TM] {
        // SAFETY: inside the tile; pitch and groups are whole 16 bytes.
        unsafe { read(self.sa, l * Self::A_PITCH, thread::thread_idx_x() % SIDE) }
    }

    /// This thread's elements of row `l` of B's tile.
    ///
    /// # Safety
    /// As for [`Stage::a`].
    #[inline(always)]
    unsafe fn b(&self, l: u32) -> [T; TN] {
        // SAFETY: inside the tile; pitch and groups are whole 16 bytes.
        unsafe { read(self.sb, l * Self::B_PITCH, thread::thread_idx_x() / SIDE) }
    }
}

/// The `share`-th element of a (16·TILE, BK) tile that this thread stages: (along the tile's side, along k).
#[inline(always)]
fn place<const TILE: usize>(share: usize, down: bool) -> (u32, u32) {
    let side = SIDE * TILE as u32;
    let index = share as u32 * SIDE * SIDE + thread::thread_idx_x();
    if down { (index % side, index / side) } else { (index / BK, index % BK) }
}

/// A thread's elements of one row of a staged tile, 16 bytes at a time.
///
/// # Safety
/// The row lies in the tile, whose rows are 16-byte aligned.
#[inline(always)]
unsafe fn read<T: Scalar, const TILE: usize>(tile: Shared<T>, row: u32, at: u32) -> [T; TILE] {
    let mut elements = [T::ZERO; TILE];
    for round in 0..TILE / T::WIDTH {
        // SAFETY: the row lies in the tile, 16 bytes aligned, as the caller promised.
        let wide = unsafe { tile.load_wide(row + own::<T>(at, round * T::WIDTH)) };
        for v in 0..T::WIDTH {
            elements[round * T::WIDTH + v] = wide[v];
        }
    }
    elements
}
