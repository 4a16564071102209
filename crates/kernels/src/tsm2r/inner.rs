//! `tsm2r_inner`, Algorithm 1 of TSM2X: a thread computes one inner product after another.
//!
//! # Idea
//! The plainest mapping: A is read once for every column of C, n times in all. The first rung of the ladder, and the
//! measure of the others.

use super::{Check, own_row};
use crate::product::Product;
use cuda_std::prelude::*;

/// # Safety
/// Launched with T1 threads a block, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const T1: usize, const T2: usize, const T3: usize>(x: Product<T>) {
    const { Check::<T1, T2, T3>::THREADS };
    const { assert!(T2 == 1 && T3 == 1, "the inner product takes one column and one element at a time") };
    let row = own_row::<T1>();
    let (start, end) = x.part(T1 as u32);

    for col in 0..x.n {
        let mut sum = T::ZERO;
        for l in start..end {
            // SAFETY: `end` <= k.
            let (a, b) = unsafe { (x.a(row, l, end), x.b(l, col, end)) };
            sum = a.fma(b, sum);
        }
        // SAFETY: each thread owns its row.
        unsafe { x.write(row, col, sum) };
    }
}
