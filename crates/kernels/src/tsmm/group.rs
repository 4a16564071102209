//! `tsmm_row`, `tsmm_group`, `tsmm_element`: the mappings of Ernst et al. for A and C by rows.
//!
//! | variant | threads a row of C | columns a thread | Ernst et al. |
//! |---|---|---|---|
//! | `tsmm_row` | 1 | all | parallel over the rows: stores of neighbouring lanes are rows apart |
//! | `tsmm_group` | G | every G-th | groups with interleaved columns (Fig. 13), k unrolled inside (Fig. 14) |
//! | `tsmm_element` | n | one | parallel over rows and columns: one result a thread |
//!
//! # Thread mapping
//! Threads are numbered over the grid, which is as large as the GPU holds; thread t owns column t mod G, and G further
//! on, of rows ⌊t / G⌋ and then of every ⌊threads / G⌋-th. What is left of the threads idles.
//!
//! # Where B comes from
//! FROM = 0: from memory through the first-level cache; 1: from shared memory; 2: from registers, which hold this
//! thread's columns of B whole, for k up to U.
//!
//! # Source
//! Ernst, Hager, Thies, Wellein (2020), TSMM, Figs. 13 and 14; M, N, K there are our k, n, m. Ours: tails, strides, β.

use crate::product::Product;
use cuda_std::prelude::*;

/// B from memory through the cache.
pub const CACHE: usize = 0;
/// B from shared memory.
pub const SHARED: usize = 1;
/// B from registers.
pub const REGISTERS: usize = 2;

/// Where this thread's elements of B are.
struct Factor<T, const TN: usize, const U: usize, const FROM: usize> {
    sb: Shared<T>,
    /// Of REGISTERS.
    rb: [[T; TN]; U],
    col: u32,
    group: u32,
}

impl<T: Scalar, const TN: usize, const U: usize, const FROM: usize> Factor<T, TN, U, FROM> {
    /// # Safety
    /// B spans its elements, and all threads of the block are here.
    #[inline(always)]
    unsafe fn new<const THREADS: usize>(x: &Product<T>, col: u32, group: u32) -> Self {
        let sb = Shared::<T>::at(0);
        let mut rb = [[T::ZERO; TN]; U];
        // SAFETY: `x.b` loads nothing outside B; `at < k · n`, which B's part of the memory has.
        unsafe {
            if FROM == SHARED {
                let n = x.n.max(1); // which it is; no division can panic
                for at in (thread::thread_idx_x()..x.k * n).step_by(THREADS) {
                    sb.store(at, x.b(at / n, at % n, x.k));
                }
                thread::sync_threads();
            }
            if FROM == REGISTERS {
                rb = core::array::from_fn(|l| core::array::from_fn(|j| x.b(l as u32, col + j as u32 * group, x.k)));
            }
        }
        Factor { sb, rb, col, group }
    }

    /// Element (l, j-th column of this thread), zero where there is none; `u` = l where B is in registers.
    ///
    /// # Safety
    /// As for [`Factor::new`], which was called.
    #[inline(always)]
    unsafe fn at(&self, x: &Product<T>, l: u32, u: usize, j: usize) -> T {
        let col = self.col + j as u32 * self.group;
        // SAFETY: `l < k` and `col < n` where it is loaded from shared memory, which `new` filled; else `x.b` looks.
        unsafe {
            match FROM {
                REGISTERS => self.rb[u][j],
                SHARED if l < x.k && col < x.n => self.sb.load(l * x.n + col),
                SHARED => T::ZERO,
                _ => x.b(l, col, x.k),
            }
        }
    }
}

/// G = 0: n threads a row.
///
/// # Safety
/// Launched with THREADS threads a block and `model::launch::tiling`'s shared memory; n <= TN · G, or TN = 1 where G = 0;
/// k <= U where B is in registers; operands that span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Scalar,
    const THREADS: usize,
    const G: usize,
    const TN: usize,
    const U: usize,
    const FROM: usize,
>(
    x: Product<T>,
) {
    let group = if G == 0 { x.n.max(1) } else { G as u32 };
    let thread = thread::block_idx_x() * THREADS as u32 + thread::thread_idx_x();
    let apart = (thread::grid_dim_x() * THREADS as u32 / group).max(1);
    // SAFETY: all threads of the block are here.
    let b = unsafe { Factor::<T, TN, U, FROM>::new::<THREADS>(&x, thread % group, group) };
    let mut row = thread / group;
    if row >= apart {
        return; // behind the only barrier
    }
    while row < x.m {
        let mut rc = [T::ZERO; TN]; // (1, TN)
        for l in (0..x.k).step_by(U) {
            // SAFETY: A and B span their elements, as the launch promised; `x.a` loads nothing outside, and neither
            // does `at`.
            unsafe {
                let ra: [T; U] = core::array::from_fn(|u| x.a(row, l + u as u32, x.k));
                for u in 0..U {
                    for j in 0..TN {
                        rc[j] = ra[u].fma(b.at(&x, l + u as u32, u, j), rc[j]);
                    }
                }
            }
        }
        for j in 0..TN {
            // SAFETY: each thread owns its row and columns.
            unsafe { x.write(row, b.col + j as u32 * group, rc[j]) };
        }
        if x.m - row <= apart {
            break;
        }
        row += apart;
    }
}
