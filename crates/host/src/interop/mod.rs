//! Matrices of other crates, viewed without a copy; a feature each. No feature changes what is computed.
//!
//! | feature | from | to |
//! |---|---|---|
//! | `ndarray` | `ArrayView2`, `ArrayViewMut2` | the same |
//! | `faer` | `faer::MatRef`, `faer::MatMut` | the same |
//! | `nalgebra` | `MatrixView`, `MatrixViewMut`, any strides | `MatrixView`, `MatrixViewMut` with strides of run time |
//! | `dlpack` | [`dlpack::Tensor`], of a CPU or a GPU | [`Matrix::into_dlpack`](crate::Matrix::into_dlpack) |
//!
//! All by `try_from`: strides may be negative there and may not here, and a view of a GPU's memory is none of theirs.
//!
//! By strides of 0 a few elements may be a matrix of any size here ([`MatRef::with_strides`](crate::MatRef::with_strides)). Where another
//! crate counts them each time that they are repeated, a view of more than it allows is refused, by
//! [`Error::Shape`](crate::Error::Shape) with [`Rule::Span`]:
//!
//! | crate | most elements |
//! |---|---|
//! | `ndarray` | 2^63 − 1; where there are none, the other length may have 2^63 − 1 bytes |
//! | `faer` | as here |
//! | `nalgebra` | those of 2^63 − 1 bytes |

#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;

use crate::error::{Operand, Result, Rule, ShapeError};
use crate::scalar::Scalar;
use crate::shape::{Shape, check_address, check_distinct, checked_span, wide};
use crate::view::{MatMut, MatRef, Place};
use model::Strides;

/// A matrix as every such crate has it.
struct Foreign<P> {
    pointer: P,
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
    place: Place,
}

impl<P> Foreign<P> {
    /// Refuses a negative stride along an axis that is walked. An axis of one element may have any: it gets 1.
    fn shape<T: Scalar>(&self) -> Result<Shape> {
        let stride = |len: usize, stride: isize| match u64::try_from(stride) {
            Ok(stride) => Ok(stride),
            Err(_) if len <= 1 || self.rows == 0 || self.cols == 0 => Ok(1),
            Err(_) => Err(ShapeError::new(
                Operand::View,
                Rule::Strides,
                0,
                wide(stride.unsigned_abs()),
                format!(
                    "the matrix is {} x {} with strides {} and {}: negative strides are not supported, copy it first",
                    self.rows, self.cols, self.row_stride, self.col_stride
                ),
            )),
        };
        let strides = Strides { row: stride(self.rows, self.row_stride)?, col: stride(self.cols, self.col_stride)? };
        let shape = Shape::with_strides(self.rows, self.cols, strides, T::DTYPE);
        checked_span(Operand::View, &shape)?;
        Ok(shape)
    }
}

impl<T: Scalar> Foreign<*const T> {
    /// # Safety
    /// Every element is memory that stays valid, and is not written, for `'a`.
    unsafe fn view<'a>(self) -> Result<MatRef<'a, T>> {
        let shape = self.shape::<T>()?;
        check_address(wide(self.pointer.addr()), !shape.is_empty())?;
        Ok(MatRef::of_parts(self.pointer, shape, self.place))
    }
}

impl<T: Scalar> Foreign<*mut T> {
    /// # Safety
    /// Every element is memory that stays valid, and is neither read nor written by anything else, for `'a`.
    unsafe fn view_mut<'a>(self) -> Result<MatMut<'a, T>> {
        let shape = self.shape::<T>()?;
        check_distinct(Operand::View, &shape)?;
        check_address(wide(self.pointer.addr()), !shape.is_empty())?;
        Ok(MatMut::of_parts(self.pointer, shape, self.place))
    }
}

/// Rows, columns and strides of a view that is to become another crate's: of memory that the host reads, of at most so many
/// elements as that crate counts them.
#[cfg(any(feature = "ndarray", feature = "faer", feature = "nalgebra"))]
fn on_the_host(shape: Shape, place: Place, counted: u64, most: u64) -> Result<(usize, usize, usize, usize)> {
    if place != Place::Host {
        let (operand, expected, actual) = (Operand::View, Place::Host.to_string(), place.to_string());
        return Err(crate::Error::WrongDevice { operand, expected, actual });
    }
    if shape.conj {
        let text =
            "the view is conjugated, which other crates' views are not: copy it by Matrix::to_contiguous".to_owned();
        return Err(ShapeError::new(Operand::View, Rule::Conjugate, 0, 1, text).into());
    }
    if counted > most {
        let (rows, cols, Strides { row, col }) = (shape.rows, shape.cols, shape.strides);
        let text = format!(
            "the matrix is {rows} x {cols} with strides {row} and {col}: the other crate counts elements also where they are \
             repeated, and takes at most {most}"
        );
        return Err(ShapeError::new(Operand::View, Rule::Span, most, counted, text).into());
    }
    // Along an axis that is not walked a stride may be beyond what a pointer difference holds.
    let stride = |len: usize, stride: u64| if len <= 1 || shape.is_empty() { 1 } else { crate::shape::narrow(stride) };
    Ok((shape.rows, shape.cols, stride(shape.rows, shape.strides.row), stride(shape.cols, shape.strides.col)))
}

/// 2^63 - 1, the most that a pointer difference holds.
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
fn most() -> u64 {
    wide(isize::MAX.unsigned_abs())
}

/// Where a view begins; of no elements, which may lie nowhere, an address that is aligned and not null, as other crates ask.
#[cfg(any(feature = "ndarray", feature = "faer", feature = "nalgebra"))]
fn begin<T>(pointer: *mut T, shape: &Shape) -> *mut T {
    let fits = !pointer.is_null() && pointer.is_aligned();
    if fits || !shape.is_empty() { pointer } else { std::ptr::NonNull::dangling().as_ptr() }
}
