//! y ← α A x + β y.

use crate::device::Device;
use crate::driver;
use crate::error::{Operand, Result, Rule, ShapeError};
use crate::ops::gemm::{check_memory, check_places, is_done, multiply};
use crate::plan::{Plan, PlanBuilder};
use crate::scalar::Scalar;
use crate::shape::{Shape, wide};
use crate::stream::Stream;
use crate::view::{MatMut, MatRef};

/// y ← α A x + β y, with A m x k, x of k elements and y of m; transposes and conjugates are views (`a.t()`, `a.h()`,
/// `x.conj()`). Asynchronous on `stream` on a GPU, where A is read once.
///
/// A vector is a view of one column or of one row, its elements any distance apart: [`MatRef::vector`],
/// [`MatMut::vector`]. For α, β, empty operands and the error of a sum see [`gemm`](crate::gemm()): this is the same product,
/// to the bit where x and y are columns there, and its plan's operation is `gemv`.
///
/// # Errors
/// Those of [`gemm`](crate::gemm()), in the same order; x and y are [`Operand::X`] and [`Operand::Y`] in them.
///
/// # Example
/// ```
/// use lanky_host::{Device, MatMut, MatRef, gemv};
/// let a = MatRef::column_major(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2)?; // 1 4; 2 5; 3 6
/// let x = [1.0, 0.0, 0.0, -1.0]; // 1, -1: every third element
/// let mut y = [f64::NAN; 3];
/// let stream = Device::cpu().stream()?;
/// gemv(&stream, 2.0, a, MatRef::vector(&x, 2, 3)?, 0.0, MatMut::vector(&mut y, 3, 1)?)?;
/// assert_eq!(y, [-6.0, -6.0, -6.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn gemv<T: Scalar>(
    stream: &Stream,
    alpha: T,
    a: MatRef<'_, T>,
    x: MatRef<'_, T>,
    beta: T,
    y: MatMut<'_, T>,
) -> Result<()> {
    let _during = driver::during("gemv");
    let x = if is_row(&x.shape()) { x.t() } else { x };
    let y = if is_row(&y.shape()) { y.t() } else { y };
    check(stream.device(), &a, &x, &y)?;
    if is_done(alpha, &a, beta, &y) {
        return Ok(());
    }
    multiply(stream, alpha, a, x, beta, y)
}

/// Whether a vector lies as a row.
fn is_row(shape: &Shape) -> bool {
    shape.rows == 1 && shape.cols != 1
}

/// The same vector as a column.
fn column(shape: Shape) -> Shape {
    if is_row(&shape) { shape.t() } else { shape }
}

/// What [`crate::ops::gemm::check`] checks, of columns x and y.
fn check<T: Scalar>(device: &Device, a: &MatRef<'_, T>, x: &MatRef<'_, T>, y: &MatMut<'_, T>) -> Result<()> {
    check_places(device, [(Operand::A, a.place()), (Operand::X, x.place()), (Operand::Y, y.place())])?;
    check_vectors(&a.shape(), &x.shape(), &y.shape())?;
    check_memory(device, VECTORS, a, x, y)
}

/// A, B and C as the caller of a product with vectors calls them.
const VECTORS: [Operand; 3] = [Operand::A, Operand::X, Operand::Y];

/// Refuses columns x and y that are none, or not of A's sizes.
pub(crate) fn check_vectors(a: &Shape, x: &Shape, y: &Shape) -> Result<(), ShapeError> {
    check_vector(Operand::X, x, ("columns", a.cols), a)?;
    check_vector(Operand::Y, y, ("rows", a.rows), a)
}

/// Refuses what is no vector, or not of as many elements as A has rows or columns.
fn check_vector(operand: Operand, vector: &Shape, (side, length): (&str, usize), a: &Shape) -> Result<(), ShapeError> {
    let (rows, cols) = (vector.rows, vector.cols);
    if cols != 1 {
        let text = format!("{operand} is {rows} x {cols}: a vector has one column, or one row");
        return Err(ShapeError::new(operand, Rule::Cols, 1, wide(cols), text));
    }
    if rows != length {
        let (m, k, plural) = (a.rows, a.cols, if length == 1 { "" } else { "s" });
        let text =
            format!("{operand} has {rows} elements, but A is {m} x {k}: as many as {side}, {length} element{plural}");
        return Err(ShapeError::new(operand, Rule::Rows, wide(length), wide(rows), text));
    }
    Ok(())
}

impl Plan {
    /// Begins a plan for y ← α A x + β y on the device, for operands of these shapes and strides: that of [`Plan::gemm`], with
    /// x and y in place of B and C, and so called in errors. [`Plan::run_gemv`] runs it.
    ///
    /// # Example
    /// ```
    /// use lanky_host::{Device, Dtype, Layout, Plan, Shape};
    /// let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    /// let plan = Plan::gemv(&Device::cpu(), shape(20_000, 300), shape(300, 1), shape(20_000, 1)).build()?;
    /// assert_eq!(plan.operation(), "gemv");
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn gemv(device: &Device, a: Shape, x: Shape, y: Shape) -> PlanBuilder {
        let mut builder = Plan::gemm(device, a, column(x), column(y));
        builder.names = VECTORS;
        builder
    }

    /// y ← α A x + β y, as planned; see [`gemv`](crate::gemv()) and [`Plan::run`].
    ///
    /// # Errors
    /// As [`Plan::run`]; x and y are [`Operand::X`] and [`Operand::Y`] in them.
    pub fn run_gemv<T: Scalar>(
        &self,
        stream: &Stream,
        alpha: T,
        a: MatRef<'_, T>,
        x: MatRef<'_, T>,
        beta: T,
        y: MatMut<'_, T>,
    ) -> Result<()> {
        let _during = driver::during("Plan::run_gemv");
        let x = if is_row(&x.shape()) { x.t() } else { x };
        let y = if is_row(&y.shape()) { y.t() } else { y };
        self.run_as(VECTORS, stream, alpha, a, x, beta, y)
    }
}
