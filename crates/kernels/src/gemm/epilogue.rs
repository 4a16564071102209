//! C ← α · sums + β C of a thread's tile, by 16 bytes where C lies by columns and they are aligned. (A product whose C lies by
//! rows is computed transposed: `model::choose`.)
//!
//! Plain cases have code of their own, without a question in it: no cache holds a kernel's code when it is launched after others, and what runs once is
//! waited for line by line. By code that asks for each element 640 cubed took up to 6 us longer so than behind itself (f64, an H200, 2026-11-27; no file is kept).

use crate::product::{Product, scaled};
use cuda_std::prelude::*;

/// Whether C, which has to be the caller's and no slot, is not read and lies by columns.
#[inline(always)]
pub(crate) fn is_plain<T: Scalar>(x: &Product<T>) -> bool {
    x.beta.is_zero() && x.c_row == 1
}

/// Whether all of such a C is written by 16 bytes.
#[inline(always)]
pub(crate) fn is_wide<T: Scalar>(x: &Product<T>) -> bool {
    let is_aligned = x.c.is_aligned(16) && x.c_col * size_of::<T>() as u64 % 16 == 0;
    is_plain(x) && x.m % T::WIDTH as u32 == 0 && is_aligned
}

/// As [`write`], of a C that [`is_plain`], or WIDE where it [`is_wide`].
///
/// # Safety
/// As for [`Product::write`].
#[inline(always)]
pub(crate) unsafe fn write_plain<const WIDE: bool, T: Scalar, const R: usize, const Q: usize>(
    x: &Product<T>,
    row: impl Fn(usize) -> u32,
    col: impl Fn(usize) -> u32,
    sums: [[T; Q]; R],
) {
    const { assert!(!WIDE || R % T::WIDTH == 0, "16 bytes of rows") };
    let width = if WIDE { T::WIDTH } else { 1 };
    for j in 0..Q {
        for i in (0..R).step_by(width) {
            if row(i) < x.m && col(j) < x.n {
                let at = row(i) as u64 + col(j) as u64 * x.c_col;
                let value = |v: usize| x.alpha.scale(sums[i + v][j].conj_if(x.conj_sum()));
                // SAFETY: inside; of 16 bytes the first is aligned, and so all are, since m is a multiple of them. They are this thread's.
                unsafe { if WIDE { x.c.store_wide(at, value) } else { x.c.store(at, value(0)) } };
            }
        }
    }
}

/// Writes R x Q sums, whose rows and columns `row` and `col` give, rows in groups of WIDTH neighbours that start at multiples of
/// WIDTH. Nothing outside C; C is not read where β = 0.
///
/// # Safety
/// As for [`Product::write`].
#[inline(always)]
pub(crate) unsafe fn write<T: Scalar, const R: usize, const Q: usize>(
    x: &Product<T>,
    row: impl Fn(usize) -> u32,
    col: impl Fn(usize) -> u32,
    mut sums: [[T; Q]; R],
) {
    let c = x.c.starting_at(x.slot());
    let at = |i: usize, j: usize| row(i) as u64 * x.c_row + col(j) as u64 * x.c_col;
    let inside = |i: usize, j: usize| row(i) < x.m && col(j) < x.n;
    for i in 0..R {
        for j in 0..Q {
            let sum = sums[i][j].conj_if(x.conj_sum());
            // SAFETY: C is read inside alone, and each thread owns its elements.
            sums[i][j] = unsafe {
                if x.beta.is_zero() {
                    x.alpha.scale(sum)
                } else if inside(i, j) {
                    scaled(x.alpha, sum, x.beta, c, at(i, j))
                } else {
                    sum
                }
            };
        }
    }
    let is_aligned = c.is_aligned(16) && x.c_col * size_of::<T>() as u64 % 16 == 0;
    // SAFETY: what is stored is inside; of 16 bytes the last is, and the first is aligned.
    unsafe {
        if R % T::WIDTH == 0 && x.c_row == 1 && is_aligned && x.m % T::WIDTH as u32 == 0 {
            for j in 0..Q {
                for i in (0..R).step_by(T::WIDTH) {
                    if inside(i, j) {
                        c.store_wide(at(i, j), |v| sums[i + v][j]);
                    }
                }
            }
        } else {
            for i in 0..R {
                for j in 0..Q {
                    if inside(i, j) {
                        c.store(at(i, j), sums[i][j]);
                    }
                }
            }
        }
    }
}
