//! Views of `ndarray`.

use super::{Foreign, begin, most, on_the_host};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::shape::{Shape, wide};
use crate::view::{MatMut, MatRef, Place};
use ::ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

/// With the feature `ndarray`: the same memory. [`Error::Shape`] if a stride is negative (`a.slice(s![..;-1, ..])`).
impl<'a, T: Scalar> TryFrom<ArrayView2<'a, T>> for MatRef<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayView2<'a, T>) -> Result<Self> {
        let ((rows, cols), &[row_stride, col_stride]) = (array.dim(), array.strides().first_chunk().unwrap_or(&[1, 1]));
        let place = Place::Host;
        let foreign = Foreign { pointer: array.as_ptr(), rows, cols, row_stride, col_stride, place };
        // SAFETY: the array borrows its elements for `'a`.
        unsafe { foreign.view() }
    }
}

/// With the feature `ndarray`: the same memory. [`Error::Shape`] if a stride is negative or two elements share an address.
impl<'a, T: Scalar> TryFrom<ArrayViewMut2<'a, T>> for MatMut<'a, T> {
    type Error = Error;

    fn try_from(mut array: ArrayViewMut2<'a, T>) -> Result<Self> {
        let ((rows, cols), &[row_stride, col_stride]) = (array.dim(), array.strides().first_chunk().unwrap_or(&[1, 1]));
        let place = Place::Host;
        let foreign = Foreign { pointer: array.as_mut_ptr(), rows, cols, row_stride, col_stride, place };
        // SAFETY: the array borrows its elements for `'a`, alone.
        unsafe { foreign.view_mut() }
    }
}

/// With the feature `ndarray`: the same memory. [`Error::WrongDevice`] if it is a GPU's; [`Error::Shape`] if it is conjugated, or has
/// [more elements](crate::interop), some repeated, than an array may.
impl<'a, T: Scalar> TryFrom<MatRef<'a, T>> for ArrayView2<'a, T> {
    type Error = Error;

    fn try_from(view: MatRef<'a, T>) -> Result<Self> {
        let shape = view.shape();
        let (rows, cols, row, col) = counted(&shape, view.place())?;
        let pointer = begin(view.as_ptr().cast_mut(), &shape);
        // SAFETY: the view's elements are valid for `'a`, its span and their number were checked; strides of 0 are fine where
        // elements are only read.
        Ok(unsafe { ArrayView2::from_shape_ptr((rows, cols).strides((row, col)), pointer.cast_const()) })
    }
}

/// With the feature `ndarray`: the same memory. [`Error::WrongDevice`] if it is a GPU's; [`Error::Shape`] if it has no elements, and
/// [more lines](crate::interop) of them than an array may.
impl<'a, T: Scalar> TryFrom<MatMut<'a, T>> for ArrayViewMut2<'a, T> {
    type Error = Error;

    fn try_from(mut view: MatMut<'a, T>) -> Result<Self> {
        let shape = view.shape();
        let (rows, cols, row, col) = counted(&shape, view.place())?;
        let pointer = begin(view.as_mut_ptr(), &shape);
        // SAFETY: the view's elements are valid for `'a`, distinct and its alone, its span and their number were checked.
        Ok(unsafe { ArrayViewMut2::from_shape_ptr((rows, cols).strides((row, col)), pointer) })
    }
}

/// Rows, columns and strides for an array: the product of the lengths that are not 0 must fit in an isize, and steps along
/// such a length, where there is nothing to step over, its bytes.
fn counted(shape: &Shape, place: Place) -> Result<(usize, usize, usize, usize)> {
    let counted = wide(shape.rows.max(1)).saturating_mul(wide(shape.cols.max(1)));
    let each = if shape.is_empty() { shape.dtype.bytes() } else { 1 };
    on_the_host(*shape, place, counted, most() / each)
}
