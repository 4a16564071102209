//! Views of `faer`.

use super::{Foreign, begin, on_the_host};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::view::{MatMut, MatRef, Place};

/// With the feature `faer`: the same memory. [`Error::Shape`] if a stride is negative (`a.reverse_rows()`).
impl<'a, T: Scalar> TryFrom<::faer::MatRef<'a, T>> for MatRef<'a, T> {
    type Error = Error;

    fn try_from(view: ::faer::MatRef<'a, T>) -> Result<Self> {
        let ((rows, cols), row_stride, col_stride) = (view.shape(), view.row_stride(), view.col_stride());
        let foreign = Foreign { pointer: view.as_ptr(), rows, cols, row_stride, col_stride, place: Place::Host };
        // SAFETY: the view borrows its elements for `'a`.
        unsafe { foreign.view() }
    }
}

/// With the feature `faer`: the same memory. [`Error::Shape`] if a stride is negative or two elements share an address.
impl<'a, T: Scalar> TryFrom<::faer::MatMut<'a, T>> for MatMut<'a, T> {
    type Error = Error;

    fn try_from(view: ::faer::MatMut<'a, T>) -> Result<Self> {
        let ((rows, cols), row_stride, col_stride) = (view.shape(), view.row_stride(), view.col_stride());
        let foreign = Foreign { pointer: view.as_ptr_mut(), rows, cols, row_stride, col_stride, place: Place::Host };
        // SAFETY: the view borrows its elements for `'a`, alone.
        unsafe { foreign.view_mut() }
    }
}

/// With the feature `faer`: the same memory. [`Error::WrongDevice`] if it is a GPU's.
impl<'a, T: Scalar> TryFrom<MatRef<'a, T>> for ::faer::MatRef<'a, T> {
    type Error = Error;

    fn try_from(view: MatRef<'a, T>) -> Result<Self> {
        let shape = view.shape();
        let (rows, cols, row, col) = on_the_host(shape, view.place(), 0, 0)?;
        let pointer = begin(view.as_ptr().cast_mut(), &shape);
        // SAFETY: the view's elements are valid for `'a`; strides inside a checked span fit in an isize.
        Ok(unsafe { ::faer::MatRef::from_raw_parts(pointer.cast_const(), rows, cols, signed(row), signed(col)) })
    }
}

/// With the feature `faer`: the same memory. [`Error::WrongDevice`] if it is a GPU's.
impl<'a, T: Scalar> TryFrom<MatMut<'a, T>> for ::faer::MatMut<'a, T> {
    type Error = Error;

    fn try_from(mut view: MatMut<'a, T>) -> Result<Self> {
        let shape = view.shape();
        let (rows, cols, row, col) = on_the_host(shape, view.place(), 0, 0)?;
        let pointer = begin(view.as_mut_ptr(), &shape);
        // SAFETY: the view's elements are valid for `'a`, distinct and its alone; strides inside a checked span fit in
        // an isize.
        Ok(unsafe { ::faer::MatMut::from_raw_parts_mut(pointer, rows, cols, signed(row), signed(col)) })
    }
}

/// A stride inside a checked span: its bytes fit in an isize.
fn signed(stride: usize) -> isize {
    isize::try_from(stride).unwrap_or(isize::MAX)
}
