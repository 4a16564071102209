//! `tsmm_packed`: a thread has 16 bytes of A, and the rows of C that they give.
//!
//! # Idea
//! Rows of A that are no wider than 16 bytes need nothing but what a copy does: one load, a few multiply-adds, one store. Blocks take one
//! tile each and end, as those of the fastest copy: an SM that is done early has another, and no SM waits for the slowest.
//!
//! # Thread mapping
//! A thread has R = WIDTH / W rows of up to W columns of A and of C, WIDTH elements being 16 bytes, and all of B in registers.
//!
//! # Zero β, tails
//! β = 0 never reads C. Rows that are not packed, operands that are not aligned, narrower ones and the last rows go element by element.
//!
//! # Cost
//! Measured on an H200, f64, m · n = 2²⁹, GB/s read and written: 4210 of one column and 4177 of two, where a copy has 4175; where as many blocks as there
//! is room for take tiles in turn, by a prototype, 3960.

use crate::product::Product;
use core::array::from_fn;
use cuda_std::prelude::*;

/// # Safety
/// Launched with THREADS threads a block; k <= W, n <= W, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const THREADS: usize, const R: usize, const W: usize>(x: Product<T>) {
    const { assert!(R * W == T::WIDTH, "a thread's rows are 16 bytes") };
    // SAFETY: `x.b` loads nothing outside B.
    let rb: [[T; W]; W] = from_fn(|l| from_fn(|j| unsafe { x.b(l as u32, j as u32, x.k) }));
    let is_run = |of: Global<T>, row: u64, col: u64, cols: u32| {
        of.is_aligned(16) && cols == W as u32 && row == W as u64 && (col == 1 || W == 1)
    };
    let (a_runs, c_runs) = (is_run(x.a, x.a_row, x.a_col, x.k), is_run(x.c, x.c_row, x.c_col, x.n));
    let rows_of = |block: u32| (block as u64 * THREADS as u64 + thread::thread_idx_x() as u64) * R as u64;
    let mut block = thread::block_idx_x();
    while rows_of(block) < x.m as u64 {
        let first = rows_of(block) as u32;
        let is_whole = x.m - first >= R as u32;
        // The last rows there can be: 2³² - 1 is none.
        let row = |r: usize| first.saturating_add(r as u32);
        // SAFETY: whole rows, or guarded elements; each row of C is one thread's.
        unsafe {
            let ra: [[T; W]; R] = if a_runs && is_whole {
                let wide = x.a.stream_wide(first as u64 * W as u64);
                from_fn(|r| from_fn(|l| wide[r * W + l]))
            } else {
                from_fn(|r| from_fn(|l| x.a(row(r), l as u32, x.k)))
            };
            let mut rc = [[T::ZERO; W]; R];
            for r in 0..R {
                for l in 0..W {
                    for j in 0..W {
                        rc[r][j] = ra[r][l].fma(rb[l][j], rc[r][j]);
                    }
                }
            }
            if c_runs && is_whole && x.beta.is_zero() {
                let scaled = |v: usize| x.alpha.scale(rc[v / W][v % W].conj_if(x.conj_sum()));
                x.c.store_wide(first as u64 * W as u64, scaled);
            } else {
                x.write_tile(row, |j| j as u32, rc);
            }
        }
        block += thread::grid_dim_x();
    }
}
