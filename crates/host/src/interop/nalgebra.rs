//! Views of `nalgebra`.

use super::{Foreign, begin, most, on_the_host};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::shape::{Shape, wide};
use crate::view::{MatMut, MatRef, Place};
use ::nalgebra::{Dim, Dyn, MatrixView, MatrixViewMut, Scalar as Element, ViewStorage, ViewStorageMut};

impl<P> Foreign<P> {
    fn of_nalgebra(pointer: P, (rows, cols): (usize, usize), (row, col): (usize, usize)) -> Self {
        // A stride beyond an isize is refused with the span, as it would be in full.
        let signed = |stride| isize::try_from(stride).unwrap_or(isize::MAX);
        Foreign { pointer, rows, cols, row_stride: signed(row), col_stride: signed(col), place: Place::Host }
    }
}

/// With the feature `nalgebra`: the same memory, whatever the strides.
impl<'a, T, R, C, RS, CS> TryFrom<MatrixView<'a, T, R, C, RS, CS>> for MatRef<'a, T>
where
    T: Scalar + Element,
    R: Dim,
    C: Dim,
    RS: Dim,
    CS: Dim,
{
    type Error = Error;

    fn try_from(view: MatrixView<'a, T, R, C, RS, CS>) -> Result<Self> {
        // SAFETY: the view borrows its elements for `'a`.
        unsafe { Foreign::of_nalgebra(view.as_ptr(), view.shape(), view.strides()).view() }
    }
}

/// With the feature `nalgebra`: the same memory. [`Error::Shape`] if two elements share an address.
impl<'a, T, R, C, RS, CS> TryFrom<MatrixViewMut<'a, T, R, C, RS, CS>> for MatMut<'a, T>
where
    T: Scalar + Element,
    R: Dim,
    C: Dim,
    RS: Dim,
    CS: Dim,
{
    type Error = Error;

    fn try_from(mut view: MatrixViewMut<'a, T, R, C, RS, CS>) -> Result<Self> {
        let (shape, strides) = (view.shape(), view.strides());
        // SAFETY: the view borrows its elements for `'a`, alone.
        unsafe { Foreign::of_nalgebra(view.as_mut_ptr(), shape, strides).view_mut() }
    }
}

/// With the feature `nalgebra`: the same memory. [`Error::WrongDevice`] if it is a GPU's; [`Error::Shape`] if it is conjugated, or has
/// [more elements](crate::interop), some repeated, than a view may.
impl<'a, T: Scalar + Element> TryFrom<MatRef<'a, T>> for MatrixView<'a, T, Dyn, Dyn, Dyn, Dyn> {
    type Error = Error;

    fn try_from(view: MatRef<'a, T>) -> Result<Self> {
        let shape = view.shape();
        let (rows, cols, row, col) = counted(&shape, view.place())?;
        let pointer = begin(view.as_ptr().cast_mut(), &shape);
        // SAFETY: the view's elements are valid for `'a`, its span and their number were checked.
        let storage =
            unsafe { ViewStorage::from_raw_parts(pointer.cast_const(), (Dyn(rows), Dyn(cols)), (Dyn(row), Dyn(col))) };
        Ok(Self::from_data(storage))
    }
}

/// With the feature `nalgebra`: the same memory. [`Error::WrongDevice`] if it is a GPU's.
impl<'a, T: Scalar + Element> TryFrom<MatMut<'a, T>> for MatrixViewMut<'a, T, Dyn, Dyn, Dyn, Dyn> {
    type Error = Error;

    fn try_from(mut view: MatMut<'a, T>) -> Result<Self> {
        let shape = view.shape();
        let (rows, cols, row, col) = counted(&shape, view.place())?;
        let pointer = begin(view.as_mut_ptr(), &shape);
        let (shape, strides) = ((Dyn(rows), Dyn(cols)), (Dyn(row), Dyn(col)));
        // SAFETY: the view's elements are valid for `'a`, distinct and its alone, its span and their number were checked.
        Ok(Self::from_data(unsafe { ViewStorageMut::from_raw_parts(pointer, shape, strides) }))
    }
}

/// Rows, columns and strides for a view, whose elements must be those of an array `[T; rows * cols]`.
fn counted(shape: &Shape, place: Place) -> Result<(usize, usize, usize, usize)> {
    let counted = wide(shape.rows).saturating_mul(wide(shape.cols));
    on_the_host(*shape, place, counted, most() / shape.dtype.bytes())
}
