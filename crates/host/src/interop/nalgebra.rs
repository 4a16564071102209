//! Views of `nalgebra`.

use super::{Foreign, on_the_host};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
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

/// With the feature `nalgebra`: the same memory. [`Error::WrongDevice`] if it is a GPU's.
impl<'a, T: Scalar + Element> TryFrom<MatRef<'a, T>> for MatrixView<'a, T, Dyn, Dyn, Dyn, Dyn> {
    type Error = Error;

    fn try_from(view: MatRef<'a, T>) -> Result<Self> {
        let (rows, cols, row, col) = on_the_host(view.shape(), view.place())?;
        // SAFETY: the view's elements are valid for `'a`, and its span was checked.
        let storage =
            unsafe { ViewStorage::from_raw_parts(view.as_ptr(), (Dyn(rows), Dyn(cols)), (Dyn(row), Dyn(col))) };
        Ok(Self::from_data(storage))
    }
}

/// With the feature `nalgebra`: the same memory. [`Error::WrongDevice`] if it is a GPU's.
impl<'a, T: Scalar + Element> TryFrom<MatMut<'a, T>> for MatrixViewMut<'a, T, Dyn, Dyn, Dyn, Dyn> {
    type Error = Error;

    fn try_from(mut view: MatMut<'a, T>) -> Result<Self> {
        let (rows, cols, row, col) = on_the_host(view.shape(), view.place())?;
        let (shape, strides) = ((Dyn(rows), Dyn(cols)), (Dyn(row), Dyn(col)));
        // SAFETY: the view's elements are valid for `'a`, distinct and its alone, and its span was checked.
        Ok(Self::from_data(unsafe { ViewStorageMut::from_raw_parts(view.as_mut_ptr(), shape, strides) }))
    }
}
