//! Matrices so small that a vector holds several: one set of permutations and multiply-adds computes all of them.
//!
//! With the elements of P matrices A in one vector, of their B in another, step l of all their sums is one multiply-add of
//! the first in an order that puts A(i, l) where C(i, j) is, and of the second in one that puts B(l, j) there. The orders
//! hold for any layout of A and B: no transposition is needed.

use crate::epilogue::Epilogue;
use crate::job::{Job, Source};
use crate::simd::{MOST_LANES, Real, Simd, Work};
use crate::stage::{Buffer, Stage, end_of_stream};
use std::ops::Range;

/// A range of the batch, with sums of K steps.
pub struct Packed<'a, S: Simd, const PARTS: usize, const K: usize> {
    pub job: &'a Job<S::Real>,
    pub range: Range<usize>,
    pub past_caches: bool,
}

/// Most steps of a sum that the orders of a [`Packed`] are kept for.
pub const MOST_STEPS: usize = 2;

/// Matrices that a vector holds; 0 where the job is not for [`Packed`].
pub fn a_vector<S: Simd, const PARTS: usize>(job: &Job<S::Real>) -> usize {
    let (m, n, k) = (job.m, job.n, job.k);
    let fits = |source: &Source<S::Real>, rows, cols| {
        let by_cols = source.row == PARTS && source.col == rows * PARTS;
        let by_rows = source.col == PARTS && source.row == cols * PARTS;
        source.is_packed(rows, cols, PARTS) || (source.is_shared() && (by_cols || by_rows))
    };
    let is_packed = fits(&job.a, m, k) && fits(&job.b, k, n) && job.c.is_packed(m, n, PARTS);
    if !is_packed || k > MOST_STEPS || job.c.row != PARTS || job.combines_later() {
        return 0;
    }
    S::LANES / ((m * k).max(k * n).max(m * n) * PARTS)
}

/// Whether vectors of C, from this address on one behind the other, may be sent past the caches as they are.
pub fn may_stream<S: Simd>(first: *const S::Real) -> bool {
    S::STREAMS && first.addr() % 16 == 0
}

/// How far the factors of C's lanes lie from each other, in an operand's vector.
#[derive(Clone, Copy)]
struct Steps {
    matrix: usize,
    row: usize,
    col: usize,
    /// 1 where the factor of a part is that part, 0 where it is one for both.
    part: usize,
    /// Of the factor of lane 0.
    start: usize,
}

/// Where C's lanes find their factors; those beyond the last matrix, which are not stored, somewhere.
#[inline(never)]
fn factors<R>(job: &Job<R>, parts: usize, lanes: usize, steps: Steps) -> [usize; MOST_LANES] {
    std::array::from_fn(|lane| {
        let (element, part) = (lane / parts, lane % parts);
        let (matrix, within) = (element / (job.m * job.n), element % (job.m * job.n));
        let (row, col) = (within % job.m, within / job.m);
        (steps.start + matrix * steps.matrix + row * steps.row + col * steps.col + part * steps.part) % lanes
    })
}

impl<S: Simd, const PARTS: usize, const K: usize> Work for Packed<'_, S, PARTS, K> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions and the matrices of the range.
        unsafe { self.products() }
    }
}

impl<S: Simd, const PARTS: usize, const K: usize> Packed<'_, S, PARTS, K> {
    /// # Safety
    /// The CPU has the instructions of S, and the matrices of the range are there.
    #[inline(always)]
    unsafe fn products(self) {
        let (job, at_once) = (self.job, a_vector::<S, PARTS>(self.job));
        let (a_len, b_len, c_len) = (job.m * job.k * PARTS, job.k * job.n * PARTS, job.m * job.n * PARTS);
        let (a, b) = (job.a, job.b);
        // SAFETY: the caller promised the instructions and the matrices; `a_vector` found them packed, so that `count`
        // of them are as many elements as are loaded and stored.
        unsafe {
            let of = |steps| factors(job, PARTS, S::LANES, steps);
            let nowhere = S::order(&[0; MOST_LANES]);
            let mut orders = [(nowhere, [nowhere; PARTS]); K];
            // Not by closures, which instructions are not inlined into.
            for (l, (of_a, of_b)) in orders.iter_mut().enumerate() {
                *of_a = S::order(&of(Steps { matrix: a.stride, row: a.row, col: 0, part: 1, start: l * a.col }));
                for (part, of_b) in of_b.iter_mut().enumerate() {
                    let start = l * b.row + part;
                    *of_b = S::order(&of(Steps { matrix: b.stride, row: 0, col: b.col, part: 0, start }));
                }
            }
            let epilogue = Epilogue::<S>::new(job);
            let mut buffer = Buffer::NEW;
            let to = job.c.at(self.range.start).cast_mut();
            let mut stage = Stage::new(&mut buffer, to, size_of::<S::Vector>(), 1);
            let streams = self.past_caches && at_once * c_len == S::LANES && may_stream::<S>(to);
            let is_staged = self.past_caches && !streams;
            let mut i = self.range.start;
            while i < self.range.end {
                let count = at_once.min(self.range.end - i);
                let last = count < at_once;
                let len = |source: &Source<S::Real>, len: usize| if source.stride == 0 { len } else { count * len };
                let (ra, rb) = if last || !self.is_whole(at_once) {
                    (S::load_first(a.at(i), len(&a, a_len)), S::load_first(b.at(i), len(&b, b_len)))
                } else {
                    (S::load(a.at(i)), S::load(b.at(i)))
                };
                let mut sums = [S::splat(S::Real::ZERO); PARTS];
                for (of_a, of_b) in &orders {
                    let ra = S::permute(ra, *of_a);
                    for (sum, of_b) in sums.iter_mut().zip(of_b) {
                        *sum = S::mul_add(ra, S::permute(rb, *of_b), *sum);
                    }
                }
                let c = job.c.at(i).cast_mut();
                let mut result = epilogue.product(sums);
                if epilogue.reads_c {
                    result = epilogue.plus_old(result, S::load_first(c, count * c_len));
                }
                if is_staged {
                    S::store(stage.room(), result);
                    stage.take(count * c_len * size_of::<S::Real>());
                    stage.send_some();
                } else if streams && !last {
                    S::stream(c, result);
                } else if count * c_len == S::LANES {
                    S::store(c, result);
                } else {
                    S::store_first(c, count * c_len, result);
                }
                i += count;
            }
            if is_staged {
                stage.finish();
            }
            if streams {
                end_of_stream();
            }
        }
    }

    /// Whether `at_once` matrices of A, and of B, fill a vector.
    #[inline(always)]
    fn is_whole(&self, at_once: usize) -> bool {
        at_once * self.job.a.stride == S::LANES && at_once * self.job.b.stride == S::LANES
    }
}
