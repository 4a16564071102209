//! Matrices that are written.

use super::{MatRef, Place, describe, extent, offset, row_range};
use crate::device::Device;
use crate::error::{Operand, Result};
use crate::scalar::Scalar;
use crate::shape::{
    Layout, Shape, check_address, check_distinct, check_span, checked_span, narrow, packed_strides, wide,
};
use model::Strides;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// A matrix that is written; no two of its elements share an address. Functions that take it by value use it up:
/// [`MatMut::reborrow`] keeps it.
///
/// # Example
/// ```
/// use lanky_host::MatMut;
/// let mut data = [0.0; 6];
/// let mut c = MatMut::row_major(&mut data, 2, 3)?;
/// assert!(c.reborrow().rows(1..)?.set(0, 2, 7.0)); // row 1 of c
/// assert!(!c.set(2, 0, 7.0)); // there is no row 2
/// assert_eq!(data, [0.0, 0.0, 0.0, 0.0, 0.0, 7.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
///
/// What is used up is not there any more:
/// ```compile_fail,E0382
/// let mut data = [0.0; 6];
/// let c = lanky_host::MatMut::row_major(&mut data, 2, 3)?;
/// let rows = c.rows(1..)?;
/// assert_eq!(c.nrows(), 2);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct MatMut<'a, T> {
    ptr: *mut T,
    shape: Shape,
    place: Place,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: a MatMut is a `&'a mut [T]` with a shape (or an address that only a GPU dereferences).
unsafe impl<T: Send> Send for MatMut<'_, T> {}
// SAFETY: through a shared MatMut memory is only read, as through a `&&mut [T]`.
unsafe impl<T: Sync> Sync for MatMut<'_, T> {}

impl<'a, T: Scalar> MatMut<'a, T> {
    /// A packed column-major matrix: element (i, j) is `data[i + j * rows]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than rows · cols elements.
    pub fn column_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        Self::checked(data, rows, cols, packed_strides(rows, cols, Layout::ColumnMajor))
    }

    /// A packed row-major matrix: element (i, j) is `data[i * cols + j]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than rows · cols elements.
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        Self::checked(data, rows, cols, packed_strides(rows, cols, Layout::RowMajor))
    }

    /// Element (i, j) is `data[i * row_stride + j * col_stride]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if two elements would share an address: with s the smaller stride, not 0,
    /// along an axis of len elements, the larger one must be s · (len − 1) + 1 at least, which also refuses a few
    /// layouts that interleave without overlap; or if `data` is shorter than row_stride·(rows−1) + col_stride·(cols−1)
    /// + 1 elements (0 if empty).
    pub fn with_strides(
        data: &'a mut [T],
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<Self> {
        Self::checked(data, rows, cols, Strides { row: wide(row_stride), col: wide(col_stride) })
    }

    /// A vector as a column: element i is `data[i * stride]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than stride·(len−1) + 1 elements (0 if empty), or stride is 0
    /// and there is more than one.
    pub fn vector(data: &'a mut [T], len: usize, stride: usize) -> Result<Self> {
        // There is no second column, whose distance would be of no matter.
        Self::with_strides(data, len, 1, stride, len.saturating_mul(stride).max(1))
    }

    fn checked(data: &'a mut [T], rows: usize, cols: usize, strides: Strides) -> Result<Self> {
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        check_distinct(Operand::View, &shape)?;
        check_span(Operand::View, &shape, data.len())?;
        Ok(MatMut { ptr: data.as_mut_ptr(), shape, place: Place::Host, memory: PhantomData })
    }

    /// Memory of the device that something else owns, in place: for a GPU its address (a CUdeviceptr), for the CPU a
    /// pointer whose provenance was exposed (`pointer.expose_provenance()`). Element (i, j) is i · row_stride + j ·
    /// col_stride elements further on.
    ///
    /// # Safety
    /// From `address` on, the span of the view is memory of the device that stays valid, and is neither read nor
    /// written by anything else, until all work that was given this view has ended. `address` is a multiple of the
    /// element's size.
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the span exceeds 2^63 − 1 bytes, two elements share an address, or there are elements
    /// at address 0.
    pub unsafe fn from_raw(
        device: &Device,
        address: u64,
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<Self> {
        let strides = Strides { row: wide(row_stride), col: wide(col_stride) };
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        check_distinct(Operand::View, &shape)?;
        checked_span(Operand::View, &shape)?;
        check_address(address, !shape.is_empty())?;
        Ok(MatMut {
            ptr: std::ptr::with_exposed_provenance_mut(narrow(address)),
            shape,
            place: device.place(),
            memory: PhantomData,
        })
    }

    /// Of memory that a [`Matrix`](crate::Matrix) owns, which has made sure that the span is inside.
    pub(crate) fn of_parts(ptr: *mut T, shape: Shape, place: Place) -> Self {
        MatMut { ptr, shape, place, memory: PhantomData }
    }

    /// Element (i, j); `None` outside, and where the memory is not the host's.
    pub fn get(&self, i: usize, j: usize) -> Option<T> {
        self.as_ref().get(i, j)
    }

    /// Sets element (i, j). False, and nothing done, outside and where the memory is not the host's.
    pub fn set(&mut self, i: usize, j: usize, value: T) -> bool {
        if self.place != Place::Host || i >= self.shape.rows || j >= self.shape.cols {
            return false;
        }
        // SAFETY: (i, j) is inside the view, the constructor checked that its span is inside the borrowed buffer.
        unsafe { *self.ptr.add(offset(&self.shape, i, j)) = value };
        true
    }

    /// The rows in `range`, in the same memory.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the range leaves the matrix, or ends before it begins.
    pub fn rows(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (skipped, shape) = row_range(&self.shape, range)?;
        Ok(MatMut { ptr: self.ptr.wrapping_add(skipped), shape, ..self })
    }

    /// The columns in `range`, in the same memory.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the range leaves the matrix, or ends before it begins.
    pub fn cols(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(self.t().rows(range)?.t())
    }

    /// The first `count` rows (all there are, if fewer) and the others.
    pub(crate) fn split_rows(self, count: usize) -> (Self, Self) {
        let count = count.min(self.shape.rows);
        let head = Shape { rows: count, ..self.shape };
        let tail = Shape { rows: self.shape.rows - count, ..self.shape };
        let skipped = if tail.is_empty() { 0 } else { offset(&self.shape, count, 0) };
        let rest = MatMut { ptr: self.ptr.wrapping_add(skipped), shape: tail, ..self };
        (MatMut { ptr: self.ptr, shape: head, place: self.place, memory: PhantomData }, rest)
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.ptr
    }
}

impl<'a, T> MatMut<'a, T> {
    /// The same view for a shorter time, so that this one can be used again afterwards.
    pub fn reborrow(&mut self) -> MatMut<'_, T> {
        MatMut { ptr: self.ptr, shape: self.shape, place: self.place, memory: PhantomData }
    }

    /// The same memory, to be read.
    pub fn as_ref(&self) -> MatRef<'_, T> {
        MatRef::of_parts(self.ptr, self.shape, self.place)
    }

    /// The transposed matrix, in the same memory.
    pub fn t(self) -> Self {
        MatMut { shape: self.shape.t(), ..self }
    }

    /// First address and number of bytes.
    pub(crate) fn extent(&self) -> (u64, u64) {
        extent(wide(self.ptr.addr()), &self.shape)
    }
}

facts!(MatMut);

impl<T> fmt::Debug for MatMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "MatMut", &self.shape, self.place)
    }
}
