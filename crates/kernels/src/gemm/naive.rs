//! `gemm_naive`, the report's first version: a thread an element of C, straight from memory.
//!
//! # Idea
//! None: a thread loads two elements for each multiply-add. A warp's 32 are 32 neighbours of A and one of B, where both lie by
//! columns; each element of A is loaded n times, and each of B m times. What makes it bearable is the cache.
//! # Thread mapping
//! Block x owns S x S of C, tiles down the rows first; y is its part of k. Thread (i, j) has element (i, j) of that.
//! # Zero β, tails
//! β = 0 never reads C; loads outside are zero; stores are guarded.
//! # Determinism
//! A sum runs over k in ascending order, here and in all rungs.
//! # Cost
//! 2mnk flops; 2mnk elements loaded.
//! # Source
//! UCSD course report on SGEMM on a K80, "naive": 32 x 32 threads.

use super::square::{load_a, load_b, origin, own};
use crate::product::Product;
use cuda_std::prelude::*;

/// # Safety
/// Launched with S · S threads a block, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const S: usize, const FIXED: bool>(x: Product<T>) {
    let side = S as u32;
    let ((row0, col0), (i, j)) = (origin(&x, side, side), own(side));
    let (row, col) = (row0 + i, col0 + j);
    let (start, end) = x.part(side);
    let mut sum = T::ZERO;
    for l in start..end {
        // SAFETY: `end` <= k.
        sum = unsafe { load_a::<T, FIXED>(&x, row, l, end).fma(load_b::<T, FIXED>(&x, l, col, end), sum) };
    }
    // SAFETY: each thread owns its element.
    unsafe { x.write(row, col, sum) };
}
