//! C ← α Aᴴ A + β C.

use crate::cpu;
use crate::driver;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::gpu::hold;
use crate::ops::enqueue::enqueue;
use crate::ops::gemm::{check, check_places, is_done, problem};
use crate::scalar::Scalar;
use crate::shape::{Shape, wide};
use crate::stream::{Queue, Stream};
use crate::view::{MatMut, MatRef};
use model::Problem;
use model::launch::reduced::Triangle;
use num_traits::Zero;
use std::cmp::Ordering;

/// C ← α Aᴴ A + β C, with A k x n and C n x n, all of C; asynchronous on `stream` on a GPU, where A comes from memory once (of up to 8192 rows in f64 a few times
/// from the cache). The Gram matrix of A's rows is that of `a.h()`. Of real elements Aᴴ is Aᵀ; Aᵀ A of complex ones is a plan's:
/// [`PlanBuilder::no_conj`](crate::PlanBuilder::no_conj).
///
/// Elements (i, j) and (j, i) of Aᴴ A are one number and its conjugate, and those of its diagonal are real: with β = 0, or
/// a C that was so, C is symmetric to the bit, of complex elements and a real α Hermitian. With β ≠ 0 each element of C
/// keeps its own β C(i, j). For α, β, empty operands and the error of a sum see [`gemm`](crate::gemm()).
///
/// # Errors
/// Those of [`gemm`](crate::gemm()).
///
/// # Example
/// ```
/// use lanky_host::{Device, MatMut, MatRef, gram};
/// let a = MatRef::column_major(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2)?; // 1 4; 2 5; 3 6
/// let mut c = [f64::NAN; 4];
/// gram(&Device::cpu().stream()?, 1.0, a, 0.0, MatMut::row_major(&mut c, 2, 2)?)?;
/// assert_eq!(c, [14.0, 32.0, 32.0, 77.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn gram<T: Scalar>(stream: &Stream, alpha: T, a: MatRef<'_, T>, beta: T, c: MatMut<'_, T>) -> Result<()> {
    gram_triangle(stream, Triangle::Full, alpha, a, beta, c)
}

/// As [`gram`](crate::gram()), of a triangle of C alone, its diagonal included: what is beyond is neither read nor written.
///
/// # Errors
/// Those of [`gemm`](crate::gemm()).
///
/// # Example
/// ```
/// use lanky_host::{Device, MatMut, MatRef, Triangle, gram_triangle};
/// let a = MatRef::row_major(&[1.0, 2.0], 1, 2)?;
/// let mut c = [0.0, 0.0, -1.0, 0.0];
/// let c_view = MatMut::column_major(&mut c, 2, 2)?;
/// gram_triangle(&Device::cpu().stream()?, Triangle::Lower, 1.0, a, 0.0, c_view)?;
/// assert_eq!(c, [1.0, 2.0, -1.0, 4.0]); // by columns
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn gram_triangle<T: Scalar>(
    stream: &Stream,
    triangle: Triangle,
    alpha: T,
    a: MatRef<'_, T>,
    beta: T,
    mut c: MatMut<'_, T>,
) -> Result<()> {
    let _during = driver::during("gram");
    check_places(stream.device(), [(Operand::A, a.place()), (Operand::C, c.place())])?;
    agree_gram(&a.shape(), &c.shape())?;
    check(stream.device(), &a.h(), &a, &c)?;
    if is_done(alpha, &a.h(), beta, &c) {
        return Ok(());
    }
    match stream.queue() {
        Queue::Cpu => on_cpu(triangle, alpha, (a.h(), a), beta, c),
        Queue::Cuda(queue) => {
            let multiplies = alpha != T::zero() && a.nrows() > 0;
            let is_part = triangle != Triangle::Full;
            let problem = Problem {
                gram: true,
                triangle: is_part,
                ..problem(&a.h().shape(), &a.shape(), &c.shape(), beta != T::zero())
            };
            let choice = if multiplies { Some(queue.gpu.choice(&problem, None)?) } else { None };
            // Locked until all launches of a product are in the stream: its workspace is theirs till then.
            let mut scratch = hold(&queue.scratch)?;
            enqueue(queue, choice.as_ref(), &mut scratch, alpha, &a.h(), &a, beta, &mut c, Some(triangle))
        }
    }
}

/// Refuses a C that is not n x n for A k x n, in the caller's terms: a product's would speak of Aᴴ and of B.
pub(crate) fn agree_gram(a: &Shape, c: &Shape) -> Result<()> {
    let needs = |rule, actual: usize, unit: &str| {
        let (n, s) = (a.cols, if a.cols == 1 { "" } else { "s" });
        let text = format!("C is {} x {}, but A is {} x {n}: C needs {n} {unit}{s}", c.rows, c.cols, a.rows);
        Err(ShapeError::new(Operand::C, rule, wide(n), wide(actual), text).into())
    };
    match (c.rows == a.cols, c.cols == a.cols) {
        (false, _) => needs(Rule::Rows, c.rows, "row"),
        (_, false) => needs(Rule::Cols, c.cols, "column"),
        _ => Ok(()),
    }
}

/// The same on the CPU, of Aᴴ or Aᵀ and A: the lower triangle of the product beside C first, then that into both.
pub(crate) fn on_cpu<T: Scalar>(
    triangle: Triangle,
    alpha: T,
    (first, a): (MatRef<'_, T>, MatRef<'_, T>),
    beta: T,
    mut c: MatMut<'_, T>,
) -> Result<()> {
    let n = a.ncols();
    let multiplies = alpha != T::zero() && a.nrows() > 0;
    let is_hermitian = first.shape().conj != a.shape().conj;
    let of_lower = |i: usize, j: usize, sum: T| match i.cmp(&j) {
        Ordering::Less if is_hermitian => sum.conj(),
        Ordering::Equal if is_hermitian => T::of_parts(sum.parts().0, T::Real::zero()),
        _ => sum,
    };
    let len = if multiplies { n * n } else { 0 };
    let mut sums: Vec<T> =
        bytemuck::allocation::try_zeroed_vec(len).map_err(|()| Error::host_memory(wide(len) * T::DTYPE.bytes()))?;
    if multiplies {
        cpu::lower(first, a, MatMut::column_major(&mut sums, n, n)?)?;
    }
    let mut write = |i: usize, j: usize| {
        let is_asked_for = match triangle {
            Triangle::Full => true,
            Triangle::Lower => i >= j,
            Triangle::Upper => i <= j,
        };
        if !is_asked_for {
            return;
        }
        // β = 0 reads no element, α = 0 no sum.
        let old = if beta == T::zero() { None } else { c.get(i, j).map(|old| scaled(beta, old)) };
        let new = sums.get(i.min(j) * n + i.max(j)).map(|sum| scaled(alpha, of_lower(i, j, *sum)));
        let value = match (new, old) {
            (Some(new), Some(old)) => new + old,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => T::zero(),
        };
        c.set(i, j, value);
    };
    ::cpu::as_ieee_has_it(|| (0..n).for_each(|j| (0..n).for_each(|i| write(i, j))));
    Ok(())
}

/// factor · value; a factor without an imaginary part is a real number, as in the kernels: conjugates stay conjugates.
fn scaled<T: Scalar>(factor: T, value: T) -> T {
    match (factor.parts(), value.parts()) {
        ((factor, none), (re, im)) if none.is_zero() => T::of_parts(factor * re, factor * im),
        _ => factor * value,
    }
}
