//! A batch in real numbers: complex ones are pairs, and lengths and strides count their parts.

use crate::simd::Real;
use crate::{Batch, Element, Matrices, Operand};

/// Where the matrices of an operand lie, and how.
#[derive(Clone, Copy)]
pub struct Source<R> {
    /// The first matrix; of a list, nothing.
    first: *const R,
    /// From each matrix to the next.
    pub stride: usize,
    /// The addresses of all, or null.
    list: *const *const R,
    pub row: usize,
    pub col: usize,
}

impl<R> Source<R> {
    fn new<T: Element<Part = R>>(operand: &Operand<T>) -> Self {
        let (row, col) = (operand.row * T::PARTS, operand.col * T::PARTS);
        match operand.matrices {
            Matrices::Strided { first, stride } => {
                Source { first: first.cast(), stride: stride * T::PARTS, list: std::ptr::null(), row, col }
            }
            Matrices::Listed(list) => Source { first: std::ptr::null(), stride: 0, list: list.cast(), row, col },
        }
    }

    /// Matrix i.
    ///
    /// # Safety
    /// There is one: i is below the count of the batch.
    #[inline(always)]
    pub unsafe fn at(&self, i: usize) -> *const R {
        if self.list.is_null() {
            self.first.wrapping_add(i * self.stride)
        } else {
            // SAFETY: `i < count`, as the caller promised, and the list has `count` addresses (`gemm_batched_with` asks
            // for both).
            unsafe { *self.list.add(i) }
        }
    }

    pub fn is_listed(&self) -> bool {
        !self.list.is_null()
    }

    /// Whether all of the batch is one matrix.
    pub fn is_shared(&self) -> bool {
        !self.is_listed() && self.stride == 0
    }

    /// Whether each matrix begins where the one before ends, and none has gaps.
    pub fn is_packed(&self, rows: usize, cols: usize, parts: usize) -> bool {
        let by_cols = self.row == parts && self.col == rows * parts;
        let by_rows = self.col == parts && self.row == cols * parts;
        !self.is_listed() && self.stride == rows * cols * parts && (by_cols || by_rows)
    }

    /// The stride of an axis of one element is never taken: the most convenient one stands for it.
    fn tidied(mut self, rows: usize, cols: usize, parts: usize) -> Self {
        match (rows, cols) {
            (1, 1) => (self.row, self.col) = (parts, parts),
            (1, _) => self.row = if self.col == parts { cols * parts } else { parts },
            (_, 1) => self.col = if self.row == parts { rows * parts } else { parts },
            _ => {}
        }
        self
    }

    fn transposed(self) -> Self {
        Source { row: self.col, col: self.row, ..self }
    }
}

/// C_i ← α op(A_i) op(B_i) + β C_i, such that C's rows are next to each other where that can be.
#[derive(Clone, Copy)]
pub struct Job<R> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub count: usize,
    pub a: Source<R>,
    pub b: Source<R>,
    pub c: Source<R>,
    pub conj_a: bool,
    pub conj_b: bool,
    pub alpha: [R; 2],
    pub beta: [R; 2],
}

// SAFETY: the addresses are of memory that every thread may read, and of C_i that only the one that has i writes.
unsafe impl<R: Sync> Sync for Job<R> {}

impl<R: Real> Job<R> {
    /// Cᵀ ← α op(B)ᵀ op(A)ᵀ + β Cᵀ is the same product: a C by rows is one by columns.
    pub fn new<T: Element<Part = R>>(batch: &Batch<T>) -> Self {
        let (job, m) = (Job::as_given(batch), batch.m);
        let is_by_cols = job.c.row == T::PARTS && (m > 1 || job.a.row == T::PARTS);
        if is_by_cols || job.c.col != T::PARTS { job } else { job.transposed() }
    }

    /// With C as it lies.
    pub fn as_given<T: Element<Part = R>>(batch: &Batch<T>) -> Self {
        let Batch { m, n, k, count, .. } = *batch;
        Job {
            m,
            n,
            k,
            count,
            a: Source::new(&batch.a).tidied(m, k, T::PARTS),
            b: Source::new(&batch.b).tidied(k, n, T::PARTS),
            c: Source::new(&batch.c).tidied(m, n, T::PARTS),
            conj_a: batch.a.conj && T::PARTS == 2,
            conj_b: batch.b.conj && T::PARTS == 2,
            alpha: batch.alpha.to_parts(),
            beta: batch.beta.to_parts(),
        }
    }

    /// Cᵀ ← α op(B)ᵀ op(A)ᵀ + β Cᵀ.
    pub fn transposed(self) -> Self {
        Job {
            m: self.n,
            n: self.m,
            a: self.b.transposed(),
            b: self.a.transposed(),
            c: self.c.transposed(),
            conj_a: self.conj_b,
            conj_b: self.conj_a,
            ..self
        }
    }

    /// Whether C is read: β is not 0.
    #[inline(always)]
    pub fn reads_c(&self) -> bool {
        self.beta != [R::ZERO; 2]
    }

    /// Whether α or β is not real: then the kernels leave both to [`crate::combine`].
    #[inline(always)]
    pub fn combines_later(&self) -> bool {
        self.alpha[1] != R::ZERO || self.beta[1] != R::ZERO
    }

    /// Whether C is only scaled.
    pub fn only_scales(&self) -> bool {
        self.k == 0 || self.alpha == [R::ZERO; 2]
    }

    /// Bytes that the batch reads and writes, each matrix once.
    pub fn bytes(&self, parts: usize) -> usize {
        let (m, n, k) = (self.m, self.n, self.k);
        let of = |source: &Source<R>, len: usize| if source.is_shared() { 0 } else { len };
        let c = if self.reads_c() { 2 * m * n } else { m * n };
        let elements = of(&self.a, m * k) + of(&self.b, k * n) + c;
        self.count.saturating_mul(elements * parts * size_of::<R>())
    }
}
