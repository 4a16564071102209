//! C ← α · sums + β C of a thread's tile, by 16 bytes where C lies by columns and they are aligned. (A product whose C lies by
//! rows is computed transposed: `model::choose`.)

use crate::product::{Product, scaled};
use cuda_std::prelude::*;

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
