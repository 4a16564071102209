//! The kernels of MAGMA's paper: a thread an element of C, or four of them.
//!
//! # Idea
//! `batched_single`: one product a block, a thread an element of C, A and B in shared memory. `batched_aggregated`: several
//! products a block, so that small ones fill warps. `batched_prefetch`: blocks take products in turn, the next one's A and B
//! on their way into registers while this one is multiplied; the paper rejects it for what that takes. `batched_blocked`: a
//! quarter of the threads, each with four elements of A, B and C in registers; quarters of A and B go through shared memory
//! one after the other, so that a block needs little of it. All matrices are read once, in the order in which they lie:
//! what is transposed is so on its way into shared memory.
//!
//! # Zero β, tails
//! β = 0 never reads C; elements that do not exist are zeros, and not stored.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k.
//! # Source
//! Masliah et al. (2019), Sections 7.1 to 7.6. Layouts, complex conjugates and rectangles go through run-time sizes here, where
//! the paper has templates.

use super::{Batched, Operand};
use cuda_std::prelude::*;
use cuda_std::{Word, ptx::Hint};
use model::launch::batched::Code;

/// Elements of A, or B, that a thread loads ahead.
const AHEAD: usize = 2;

/// An operand's matrices.
#[derive(Clone, Copy)]
struct Matrices<T> {
    of: Operand<T>,
    code: Code,
    rows: u32,
    cols: u32,
}

impl<T: Scalar> Matrices<T> {
    #[inline(always)]
    fn new(of: Operand<T>, code: u32, rows: u32, cols: u32) -> Self {
        Matrices { of, code: Code::unpack(code), rows, cols }
    }

    /// Where a problem's matrix starts.
    ///
    /// # Safety
    /// There is the problem.
    #[inline(always)]
    unsafe fn start(&self, problem: u32) -> Global<T> {
        // SAFETY: the list has the problem.
        let listed =
            self.code.listed.then(|| unsafe { u64::ld_global(self.of.list.address(problem as u64), Hint::ReadOnly) });
        self.of.base.starting_at(listed.unwrap_or(problem as u64 * self.of.stride))
    }

    /// Row and column of element `x` in the order in which they lie.
    #[inline(always)]
    fn place(&self, x: u32) -> (u32, u32) {
        let (rows, cols) = (self.rows.max(1), self.cols.max(1));
        if self.code.by_columns { (x % rows, x / rows) } else { (x / cols, x % cols) }
    }

    #[inline(always)]
    fn at(&self, row: u32, col: u32) -> u64 {
        row as u64 * self.of.row + col as u64 * self.of.col
    }

    /// An element of a matrix; zero outside.
    ///
    /// # Safety
    /// The matrix spans its elements, and nobody writes it.
    #[inline(always)]
    unsafe fn load(&self, start: Global<T>, row: u32, col: u32) -> T {
        // SAFETY: inside where the load happens.
        unsafe { start.load_if(row < self.rows && col < self.cols, self.at(row, col)) }
    }
}

/// Which product of a block's a thread works on, and on which of its elements.
#[derive(Clone, Copy)]
struct Own {
    /// Products a block, and threads a product.
    problems: u32,
    threads: u32,
    problem: u32,
    index: u32,
}

impl Own {
    #[inline(always)]
    fn new(threads: u32, problems: u32) -> Own {
        let own = thread::thread_idx_x();
        Own { problems, threads, problem: own / threads, index: own % threads }
    }
}

/// Loads up to AHEAD elements for this thread, in the order in which they lie, and the others right into shared memory.
///
/// # Safety
/// There is the problem; the memory has the matrix, and a barrier lies before and behind.
#[inline(always)]
unsafe fn load<T: Scalar>(of: &Matrices<T>, problem: u32, own: Own) -> [T; AHEAD] {
    // SAFETY: elements of the matrix, or zeros.
    unsafe {
        let start = of.start(problem);
        core::array::from_fn(|i| {
            let x = own.index + i as u32 * own.threads;
            let (row, col) = of.place(x);
            start.load_if(x < of.rows * of.cols, of.at(row, col))
        })
    }
}

/// Brings a matrix into shared memory by columns: those that were loaded, and the rest.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
unsafe fn keep<T: Scalar>(of: &Matrices<T>, problem: u32, own: Own, loaded: [T; AHEAD], into: Shared<T>) {
    // SAFETY: elements of the matrix.
    unsafe {
        let put = |x: u32, value: T| {
            let (row, col) = of.place(x);
            into.store(row + col * of.rows, value);
        };
        for i in 0..AHEAD {
            let x = own.index + i as u32 * own.threads;
            if x < of.rows * of.cols {
                put(x, loaded[i]);
            }
        }
        let start = of.start(problem);
        let mut x = own.index + AHEAD as u32 * own.threads;
        while x < of.rows * of.cols {
            let (row, col) = of.place(x);
            put(x, start.load_if(true, of.at(row, col)));
            x += own.threads;
        }
    }
}

/// # Safety
/// Launched with at least m · n threads for each of `problems` products a block, and shared memory for their A and B; unless
/// `AHEAD_OF_TIME`, as many blocks as the products take.
#[inline(always)]
pub unsafe fn element<T: Scalar, const AHEAD_OF_TIME: bool>(x: Batched<T>) {
    let (threads, problems) = (x.m * x.n, x.problems.max(1));
    let own = Own::new(threads.max(1), problems);
    let a = Matrices::new(x.a, x.codes & 255, x.m, x.k);
    let b = Matrices::new(x.b, x.codes >> 8 & 255, x.k, x.n);
    let c = Matrices::new(x.c, x.codes >> 16 & 255, x.m, x.n);
    let (a_len, b_len) = (x.m * x.k, x.k * x.n);
    let sa = Shared::<T>::at(0).starting_at(own.problem.min(problems - 1) * (a_len + b_len)); // (m, k)
    let sb = sa.starting_at(a_len); // (k, n)
    let (row, col) = c.place(own.index);
    let turn = thread::grid_dim_x() * own.problems;
    let mut problem = thread::block_idx_x() * own.problems + own.problem;
    let mut first = thread::block_idx_x() * own.problems;
    let is_there = |problem: u32| own.problem < own.problems && problem < x.count;
    // SAFETY: the problem exists where it is looked at; barriers lie between filling and multiplying.
    unsafe {
        let mut next = ([T::ZERO; AHEAD], [T::ZERO; AHEAD]);
        if is_there(problem) {
            next = (load(&a, problem, own), load(&b, problem, own));
        }
        while first < x.count {
            let here = is_there(problem);
            let mut old = T::ZERO;
            if here {
                if !x.beta.is_zero() {
                    old = c.start(problem).load(c.at(row, col));
                }
                keep(&a, problem, own, next.0, sa);
                keep(&b, problem, own, next.1, sb);
            }
            thread::sync_threads(); // A and B are whole
            if AHEAD_OF_TIME && is_there(problem + turn) {
                next = (load(&a, problem + turn, own), load(&b, problem + turn, own));
            }
            if here {
                let mut sum = T::ZERO;
                for l in 0..x.k {
                    let rb = sb.load(l + col * x.k).conj_if(x.conj_b());
                    sum = sa.load(row + l * x.m).fma(rb, sum);
                }
                c.start(problem).store(c.at(row, col), x.scaled(sum, old));
            }
            if !AHEAD_OF_TIME {
                return;
            }
            thread::sync_threads(); // A and B may be overwritten
            (first, problem) = (first + turn, problem + turn);
        }
    }
}

/// # Safety
/// Launched with side · side threads a block, `side` being half of the longest of m, n and k, rounded up; shared memory for two
/// squares of them, and a block a product.
#[inline(always)]
pub unsafe fn blocked<T: Scalar>(x: Batched<T>) {
    let side = x.m.max(x.n).max(x.k).div_ceil(2).max(1);
    let (own, problem) = (thread::thread_idx_x(), thread::block_idx_x());
    let (i, j) = (own % side, own / side);
    let a = Matrices::new(x.a, x.codes & 255, x.m, x.k);
    let b = Matrices::new(x.b, x.codes >> 8 & 255, x.k, x.n);
    let c = Matrices::new(x.c, x.codes >> 16 & 255, x.m, x.n);
    let sa = Shared::<T>::at(0); // (side, side)
    let sb = sa.starting_at(side * side); // (side, side)
    let is_own = j < side;
    // SAFETY: elements that exist, or zeros; barriers lie between filling and multiplying.
    unsafe {
        let quarters = |of: &Matrices<T>| -> [[T; 2]; 2] {
            let start = of.start(problem);
            // Down the lines as they lie, into shared memory as rows and columns.
            let (down, along) = if of.code.by_columns { (i, j) } else { (j, i) };
            core::array::from_fn(|p| {
                core::array::from_fn(|q| {
                    let (row, col) = (down + p as u32 * side, along + q as u32 * side);
                    if is_own { of.load(start, row, col) } else { T::ZERO }
                })
            })
        };
        let (ra, rb) = (quarters(&a), quarters(&b)); // (2, 2)
        let put = |into: Shared<T>, of: &Matrices<T>, value: T| {
            let at = if of.code.by_columns { i + j * side } else { j + i * side };
            if is_own {
                into.store(at, value);
            }
        };
        let mut rc = [[T::ZERO; 2]; 2]; // (2, 2)
        for p in 0..2 {
            for r in 0..2 {
                for q in 0..2 {
                    thread::sync_threads(); // the quarters may be overwritten
                    if q == 0 {
                        put(sa, &a, ra[p][r]);
                    }
                    put(sb, &b, rb[r][q].conj_if(x.conj_b()));
                    thread::sync_threads(); // and are whole
                    if is_own {
                        for l in 0..side {
                            rc[p][q] = sa.load(i + l * side).fma(sb.load(l + j * side), rc[p][q]);
                        }
                    }
                }
            }
        }
        let start = c.start(problem);
        for p in 0..2 {
            for q in 0..2 {
                let (row, col) = (i + p as u32 * side, j + q as u32 * side);
                if is_own && row < x.m && col < x.n {
                    let at = c.at(row, col);
                    let old = if x.beta.is_zero() { T::ZERO } else { start.load(at) };
                    start.store(at, x.scaled(rc[p][q], old));
                }
            }
        }
    }
}
