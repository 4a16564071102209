//! Matrices that are read.

use super::{Place, describe, extent, offset, row_range};
use crate::device::Device;
use crate::error::{Operand, Result};
use crate::scalar::Scalar;
use crate::shape::{Layout, Shape, check_address, check_span, checked_span, narrow, packed_strides, wide};
use model::Strides;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// A matrix that is read: a pointer, a shape, and where it is. Copied freely; no function of it copies an element.
///
/// # Example
/// ```
/// use lanky_host::MatRef;
/// let data = [1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0]; // 1 4; 2 5; 3 6 by columns, four elements from one to the next
/// let a = MatRef::with_strides(&data, 3, 2, 1, 4)?;
/// let last = a.t().cols(2..)?; // of the transposed matrix, so the last row
/// assert_eq!((last.nrows(), last.ncols(), last.get(1, 0)), (2, 1, Some(6.0)));
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct MatRef<'a, T> {
    ptr: *const T,
    shape: Shape,
    place: Place,
    memory: PhantomData<&'a [T]>,
}

// SAFETY: a MatRef is a `&'a [T]` with a shape (or an address that only a GPU dereferences), and such a reference is Send
// and Sync where T is Sync, as every Scalar is.
unsafe impl<T: Sync> Send for MatRef<'_, T> {}
// SAFETY: a shared MatRef gives what one of its own does, a `&'a [T]` with a shape.
unsafe impl<T: Sync> Sync for MatRef<'_, T> {}
impl<T> Clone for MatRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MatRef<'_, T> {}

impl<'a, T: Scalar> MatRef<'a, T> {
    /// A packed column-major matrix: element (i, j) is `data[i + j * rows]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than rows · cols elements.
    pub fn column_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::checked(data, rows, cols, packed_strides(rows, cols, Layout::ColumnMajor))
    }

    /// A packed row-major matrix: element (i, j) is `data[i * cols + j]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than rows · cols elements.
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::checked(data, rows, cols, packed_strides(rows, cols, Layout::RowMajor))
    }

    /// Element (i, j) is `data[i * row_stride + j * col_stride]`. Strides may be 0: the elements are then repeated.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` is shorter than row_stride·(rows−1) + col_stride·(cols−1) + 1
    /// elements (0 if empty).
    pub fn with_strides(data: &'a [T], rows: usize, cols: usize, row_stride: usize, col_stride: usize) -> Result<Self> {
        Self::checked(data, rows, cols, Strides { row: wide(row_stride), col: wide(col_stride) })
    }

    /// A vector as a column: element i is `data[i * stride]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than stride·(len−1) + 1 elements (0 if empty).
    pub fn vector(data: &'a [T], len: usize, stride: usize) -> Result<Self> {
        // There is no second column, whose distance would be of no matter.
        Self::with_strides(data, len, 1, stride, len.saturating_mul(stride).max(1))
    }

    fn checked(data: &'a [T], rows: usize, cols: usize, strides: Strides) -> Result<Self> {
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        check_span(Operand::View, &shape, data.len())?;
        Ok(MatRef { ptr: data.as_ptr(), shape, place: Place::Host, memory: PhantomData })
    }

    /// Memory of the device that something else owns, in place: for a GPU its address (a CUdeviceptr), for the CPU a
    /// pointer whose provenance was exposed (`pointer.expose_provenance()`). Element (i, j) is i · row_stride + j ·
    /// col_stride elements further on.
    ///
    /// # Safety
    /// From `address` on, the span of the view is memory of the device that stays valid, and is written by nothing,
    /// until all work that was given this view has ended. `address` is a multiple of the element's size.
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the span exceeds 2^63 − 1 bytes, or there are elements at address 0.
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
        checked_span(Operand::View, &shape)?;
        check_address(address, !shape.is_empty())?;
        Ok(MatRef {
            ptr: std::ptr::with_exposed_provenance(narrow(address)),
            shape,
            place: device.place(),
            memory: PhantomData,
        })
    }

    /// Element (i, j); `None` outside, and where the memory is not the host's.
    pub fn get(&self, i: usize, j: usize) -> Option<T> {
        if self.place != Place::Host || i >= self.shape.rows || j >= self.shape.cols {
            return None;
        }
        // SAFETY: (i, j) is inside the view, the constructor checked that its span is inside the borrowed buffer.
        let stored = unsafe { *self.ptr.add(offset(&self.shape, i, j)) };
        Some(if self.shape.conj { stored.conj() } else { stored })
    }

    /// The rows in `range`, in the same memory.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the range leaves the matrix, or ends before it begins.
    pub fn rows(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (skipped, shape) = row_range(&self.shape, range)?;
        Ok(MatRef { ptr: self.ptr.wrapping_add(skipped), shape, ..self })
    }

    /// The columns in `range`, in the same memory.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the range leaves the matrix, or ends before it begins.
    pub fn cols(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(self.t().rows(range)?.t())
    }

    pub(crate) fn as_ptr(&self) -> *const T {
        self.ptr
    }
}

impl<'a, T> MatRef<'a, T> {
    /// Of memory that its owner has made sure to hold the span.
    pub(crate) fn of_parts(ptr: *const T, shape: Shape, place: Place) -> Self {
        MatRef { ptr, shape, place, memory: PhantomData }
    }

    /// The transposed matrix, in the same memory.
    pub fn t(self) -> Self {
        MatRef { shape: self.shape.t(), ..self }
    }

    /// The matrix of the conjugates, in the same memory; of real elements itself. A product reads it at no cost.
    pub fn conj(self) -> Self {
        MatRef { shape: self.shape.conj(), ..self }
    }

    /// The conjugate transpose, in the same memory; of real elements [`MatRef::t`].
    pub fn h(self) -> Self {
        self.t().conj()
    }

    /// First address and number of bytes.
    pub(crate) fn extent(&self) -> (u64, u64) {
        extent(wide(self.ptr.addr()), &self.shape)
    }
}

facts!(MatRef);

impl<T> fmt::Debug for MatRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "MatRef", &self.shape, self.place)
    }
}
