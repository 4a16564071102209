//! What the teaching rungs share: blocks of S x S threads, neighbours down the rows of C.

use crate::product::Product;
use cuda_std::prelude::*;

/// First row and column of this block's ROWS x COLS of C: tiles go down the rows of C first.
#[inline(always)]
pub(super) fn origin<T: Scalar>(x: &Product<T>, rows: u32, cols: u32) -> (u32, u32) {
    let tiles = x.m.div_ceil(rows).max(1); // at least one where the compiler cannot know, so that no division can panic
    (thread::block_idx_x() % tiles * rows, thread::block_idx_x() / tiles * cols)
}

/// This thread's place in the block: neighbours have neighbouring first numbers.
#[inline(always)]
pub(super) fn own(side: u32) -> (u32, u32) {
    (thread::thread_idx_x() % side, thread::thread_idx_x() / side)
}

/// Element (row, l) of A. A robust rung finds zero outside; a fixed one, whose tiles are all whole, does not look.
///
/// # Safety
/// `end` <= k, and A spans its m x k elements; of a fixed rung the element is one of them.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn load_a<T: Scalar, const FIXED: bool>(x: &Product<T>, row: u32, l: u32, end: u32) -> T {
    // SAFETY: FIXED: the element is one of A's, as the caller promised; else `x.a` looks.
    unsafe { if FIXED { x.a.load(row as u64 * x.a_row + l as u64 * x.a_col) } else { x.a(row, l, end) } }
}

/// The same of element (l, col) of B.
///
/// # Safety
/// As for [`load_a`].
#[inline(always)]
#[track_caller]
pub(super) unsafe fn load_b<T: Scalar, const FIXED: bool>(x: &Product<T>, l: u32, col: u32, end: u32) -> T {
    let at = l as u64 * x.b_row + col as u64 * x.b_col;
    // SAFETY: FIXED: the element is one of B's, as the caller promised; else `x.b` looks.
    unsafe { if FIXED { x.b.load(at).conj_if(x.conj_b()) } else { x.b(l, col, end) } }
}

/// Steps of a tile that are multiplied: of a fixed rung all, which the compiler unrolls; of a robust one those that are left.
#[inline(always)]
pub(super) fn steps<const FIXED: bool>(tile: u32, left: u32) -> u32 {
    if FIXED { tile } else { tile.min(left) }
}

/// sum += Σ A's tile (i, l) · B's tile (l, j), l ascending; A's tile is stored by columns of `rows`, B's of `pitch`.
///
/// # Safety
/// The tiles hold `steps` steps, and a barrier lies behind their filling.
#[inline(always)]
pub(super) unsafe fn multiply<T: Scalar>(
    sum: T,
    (sa, rows, i): (Shared<T>, u32, u32),
    (sb, pitch, j): (Shared<T>, u32, u32),
    steps: u32,
) -> T {
    let mut sum = sum;
    for l in 0..steps {
        // SAFETY: `l < steps`, which the tiles hold, behind a barrier, as the caller promised.
        sum = unsafe { sa.load(l * rows + i).fma(sb.load(j * pitch + l), sum) };
    }
    sum
}
