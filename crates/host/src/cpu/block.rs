//! A block of C, by whichever kernels.

use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::view::{MatMut, MatRef};
use ::cpu::{Batch, Matrices, Operand, Output, gemm_tall};

/// Who multiplies.
#[derive(Clone, Copy)]
pub(super) enum Kernels {
    /// Of products with a narrow side: lanky-cpu.
    Narrow(Output),
    /// The `gemm` crate.
    Wide,
}

/// One block, on this thread.
pub(super) fn block<T: Scalar>(
    kernels: Kernels,
    alpha: T,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    beta: T,
    c: MatMut<'_, T>,
) {
    match kernels {
        Kernels::Narrow(output) => narrow(output, alpha, a, b, beta, c),
        Kernels::Wide => by_gemm(alpha, a, b, beta, c),
    }
}

fn narrow<T: Scalar>(output: Output, alpha: T, a: MatRef<'_, T>, b: MatRef<'_, T>, beta: T, mut c: MatMut<'_, T>) {
    let operand = |first, shape: Shape| {
        let (row, col) = strides(&shape);
        let matrices = Matrices::Strided { first, stride: 0 };
        Operand { matrices, row: row.unsigned_abs(), col: col.unsigned_abs(), conj: shape.conj }
    };
    let (first, shape) = (c.as_mut_ptr().cast_const(), c.shape());
    let batch = Batch {
        m: a.nrows(),
        n: b.ncols(),
        k: a.ncols(),
        count: 1,
        alpha,
        a: operand(a.as_ptr(), a.shape()),
        b: operand(b.as_ptr(), b.shape()),
        beta,
        c: operand(first, shape),
    };
    // SAFETY: as in `by_gemm`.
    unsafe { gemm_tall(&batch, output) }
}

fn by_gemm<T: Scalar>(alpha: T, a: MatRef<'_, T>, b: MatRef<'_, T>, beta: T, mut c: MatMut<'_, T>) {
    let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
    let (a_row, a_col) = strides(&a.shape());
    let (b_row, b_col) = strides(&b.shape());
    let (c_row, c_col) = strides(&c.shape());
    // SAFETY: the shapes agree (`agree`), and the constructors of the views checked that every element of each is inside
    // its memory, and of C distinct; C is borrowed mutably, so overlaps neither A nor B (raw views: `refuse_overlap`).
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            c_col,
            c_row,
            // C is read if and only if β is not 0.
            beta != T::zero(),
            a.as_ptr(),
            a_col,
            a_row,
            b.as_ptr(),
            b_col,
            b_row,
            // This crate computes C ← alpha C + beta A B: the names are the other way round.
            beta,
            alpha,
            false,
            a.shape().conj,
            b.shape().conj,
            gemm::Parallelism::None,
        );
    }
}

/// Row and column strides; one that does not fit is of an axis of one element, and never taken.
fn strides(shape: &Shape) -> (isize, isize) {
    let strides = shape.strides;
    let signed = |stride: u64| isize::try_from(stride).unwrap_or(0);
    (signed(strides.row), signed(strides.col))
}
