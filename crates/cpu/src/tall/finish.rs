//! C ← α sums + β C, a vector of C at a time.

use super::Output;
use super::cuts::Piece;
use crate::epilogue::{Epilogue, pairs};
use crate::job::Job;
use crate::packed::may_stream;
use crate::simd::{MOST_LANES, Real, Simd};

/// The factors, as vectors, and where C is.
pub struct Finish<S: Simd, const PARTS: usize> {
    /// Of products without α and β.
    epilogue: Epilogue<S>,
    alpha: Factor<S>,
    beta: Factor<S>,
    reads_c: bool,
    c: *mut S::Real,
    row: usize,
    col: usize,
    rows: usize,
    /// Whether what is above the diagonal stays.
    lower: bool,
    streams: bool,
}

/// A factor: by a vector's elements, and by them with the two parts of each exchanged, unless it is real.
struct Factor<S: Simd> {
    own: S::Vector,
    crossed: Option<S::Vector>,
}

impl<S: Simd> Factor<S> {
    /// # Safety
    /// The CPU has the instructions of S; of all functions here.
    #[inline(always)]
    unsafe fn new([re, im]: [S::Real; 2]) -> Self {
        // SAFETY: as the caller promised.
        unsafe {
            // Not by a closure, which instructions are not inlined into.
            let crossed = if im == S::Real::ZERO { None } else { Some(pairs::<S>(-im, im)) };
            Factor { own: S::splat(re), crossed }
        }
    }

    #[inline(always)]
    unsafe fn times(&self, v: S::Vector) -> S::Vector {
        // SAFETY: as the caller promised; vectors alone.
        unsafe {
            let own = S::mul(v, self.own);
            match self.crossed {
                Some(crossed) => S::mul_add(S::swap_pairs(v), crossed, own),
                None => own,
            }
        }
    }

    /// factor · v + sum.
    #[inline(always)]
    unsafe fn times_plus(&self, v: S::Vector, sum: S::Vector) -> S::Vector {
        // SAFETY: as the caller promised; vectors alone.
        unsafe {
            let sum = S::mul_add(v, self.own, sum);
            match self.crossed {
                Some(crossed) => S::mul_add(S::swap_pairs(v), crossed, sum),
                None => sum,
            }
        }
    }
}

impl<S: Simd, const PARTS: usize> Finish<S, PARTS> {
    /// Of a product of the job's.
    ///
    /// # Safety
    /// The CPU has the instructions of S; there is such a product.
    #[inline(always)]
    pub unsafe fn new(job: &Job<S::Real>, index: usize, output: Output) -> Self {
        // SAFETY: as the caller promised.
        unsafe {
            let c = job.c.at(index).cast_mut();
            let rows = job.m * PARTS;
            let is_aligned = job.n == 1 || job.c.col * size_of::<S::Real>() % 16 == 0;
            let is_whole =
                job.c.row == PARTS && is_aligned && may_stream::<S>(c) && (rows % S::LANES == 0 || rows > job.n);
            Finish {
                epilogue: Epilogue::new(&Job {
                    alpha: [S::Real::ONE, S::Real::ZERO],
                    beta: [S::Real::ZERO; 2],
                    ..*job
                }),
                alpha: Factor::new(job.alpha),
                beta: Factor::new(job.beta),
                reads_c: job.reads_c(),
                c,
                row: job.c.row,
                col: job.c.col,
                rows,
                lower: output.lower,
                streams: output.past_caches && !job.reads_c() && is_whole,
            }
        }
    }

    /// Whether C goes past the caches.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// A block of C, from its sums.
    ///
    /// # Safety
    /// The CPU has the instructions of S; the block is of C, and its sums are there, `by` after each other.
    #[inline(always)]
    pub unsafe fn block(&self, block: &Piece, sums: *const S::Real, by: usize) {
        // SAFETY: columns and vectors are the block's, whose last one may hang over C's rows (`vector` stores what does not).
        unsafe {
            for j in 0..block.cols {
                let to = self.c.add((block.col + j) * self.col + block.row / PARTS * self.row);
                // Of those that are above it all rows are, sums need not be there.
                let above = if self.lower { (block.col + j) * PARTS } else { 0 };
                for v in above.saturating_sub(block.row) / S::LANES..block.vectors {
                    let from = sums.add(j * PARTS * by + v * S::LANES);
                    let mut sum = [S::load(from); PARTS];
                    let mut part = 1;
                    while part < PARTS {
                        sum[part] = S::load(from.add(part * by));
                        part += 1;
                    }
                    let product = self.alpha.times(self.epilogue.product(sum));
                    let count = S::LANES.min(self.rows - block.row - v * S::LANES);
                    self.vector(to.add(v * S::LANES / PARTS * self.row), count, product);
                }
            }
        }
    }

    /// product + β C, of `count` rows.
    #[inline(always)]
    unsafe fn vector(&self, to: *mut S::Real, count: usize, product: S::Vector) {
        // SAFETY: `to` is good for `count` rows, by the caller's promise; the array for any vector.
        unsafe {
            if self.row != PARTS {
                let mut lanes = [S::Real::ZERO; MOST_LANES];
                let place = |i: usize| to.add(i / PARTS * self.row + i % PARTS);
                let mut result = product;
                if self.reads_c {
                    for (i, lane) in lanes.iter_mut().enumerate().take(count) {
                        *lane = *place(i);
                    }
                    result = self.beta.times_plus(S::load(lanes.as_ptr()), product);
                }
                S::store(lanes.as_mut_ptr(), result);
                for (i, lane) in lanes.iter().enumerate().take(count) {
                    *place(i) = *lane;
                }
            } else if count == S::LANES {
                let result = if self.reads_c { self.beta.times_plus(S::load(to), product) } else { product };
                if self.streams { S::stream(to, result) } else { S::store(to, result) }
            } else {
                let result =
                    if self.reads_c { self.beta.times_plus(S::load_first(to, count), product) } else { product };
                S::store_first(to, count, result);
            }
        }
    }
}
