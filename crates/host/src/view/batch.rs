//! Batches: matrices of one shape, at equal distances or by their addresses.

use super::overlap::{check_apart, reserve};
use super::{MatMut, MatRef, Place};
use crate::device::Device;
use crate::error::{Operand, Result, Rule, ShapeError};
use crate::scalar::Scalar;
use crate::shape::{Layout, Shape, check_address, check_batch_distinct, check_batch_span, narrow, wide};
use model::Strides;
use std::fmt;
use std::marker::PhantomData;

/// Where the matrices begin.
#[derive(Clone)]
pub(crate) enum Spots<T> {
    /// Each `stride` elements after the one before.
    Strided { first: *const T, stride: u64 },
    /// Anywhere.
    Listed(Vec<*const T>),
}

/// What both kinds of batches are.
#[derive(Clone)]
pub(crate) struct Batch<T> {
    pub(crate) spots: Spots<T>,
    pub(crate) count: usize,
    /// Of each matrix.
    pub(crate) shape: Shape,
    pub(crate) place: Place,
}

impl<T: Scalar> Batch<T> {
    fn strided(first: *const T, len: usize, count: usize, stride: u64, shape: Shape) -> Result<Self> {
        check_batch_span(&shape, wide(count), stride, len)?;
        Ok(Batch { spots: Spots::Strided { first, stride }, count, shape, place: Place::Host })
    }

    fn packed(first: *const T, len: usize, count: usize, (rows, cols): (usize, usize), layout: Layout) -> Result<Self> {
        let shape = Shape::packed(rows, cols, layout, T::DTYPE);
        Self::strided(first, len, count, wide(rows).saturating_mul(wide(cols)), shape)
    }

    /// Memory of a device's that something else owns.
    fn raw(device: &Device, address: u64, count: usize, stride: u64, shape: Shape) -> Result<Self> {
        check_batch_span(&shape, wide(count), stride, usize::MAX)?;
        check_address(address, count > 0 && !shape.is_empty())?;
        let first = std::ptr::with_exposed_provenance(narrow(address));
        Ok(Batch { spots: Spots::Strided { first, stride }, count, shape, place: device.place() })
    }

    /// The `count` equal parts of a matrix, one below the other or side by side.
    fn parts(first: *const T, whole: Shape, place: Place, count: usize, below: bool) -> Result<Self> {
        let (all, step, what) = match below {
            true => (whole.rows, whole.strides.row, "rows"),
            false => (whole.cols, whole.strides.col, "columns"),
        };
        let each = all.checked_div(count).unwrap_or(0);
        if each * count != all {
            let text = format!("a matrix of {all} {what} has no {count} equal parts");
            let rule = if below { Rule::Rows } else { Rule::Cols };
            return Err(ShapeError::new(Operand::View, rule, wide(each * count), wide(all), text).into());
        }
        let shape = if below { Shape { rows: each, ..whole } } else { Shape { cols: each, ..whole } };
        let stride = wide(each).saturating_mul(step);
        Ok(Batch { spots: Spots::Strided { first, stride }, count, shape, place })
    }

    /// Of views, which must be of one shape.
    fn of_views(views: impl ExactSizeIterator<Item = (*const T, Shape, Place)>) -> Result<Self> {
        let count = views.len();
        let mut spots = Vec::new();
        reserve(&mut spots, count)?;
        let mut first = None;
        for (index, (ptr, shape, place)) in views.enumerate() {
            let (expected, of_first) = *first.get_or_insert((shape, place));
            if let Some(error) = differs(index, &expected, &shape) {
                return Err(error.into());
            }
            if place != of_first {
                let (expected, actual) = (of_first.to_string(), place.to_string());
                return Err(crate::Error::WrongDevice { operand: Operand::View, expected, actual });
            }
            spots.push(ptr);
        }
        let empty = (Shape::packed(0, 0, Layout::ColumnMajor, T::DTYPE), Place::Host);
        let (shape, place) = first.unwrap_or(empty);
        Ok(Batch { spots: Spots::Listed(spots), count, shape, place })
    }

    /// Element (0, 0) of matrix `index`, which is below the count.
    pub(crate) fn at(&self, index: usize) -> *const T {
        match &self.spots {
            Spots::Strided { first, stride } => first.wrapping_add(index.wrapping_mul(narrow(*stride))),
            Spots::Listed(spots) => spots[index],
        }
    }

    fn with_shape(self, shape: Shape) -> Self {
        Batch { shape, ..self }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let how = match &self.spots {
            Spots::Strided { stride, .. } => format!("{stride} elements apart"),
            Spots::Listed(_) => "by their addresses".to_owned(),
        };
        write!(f, "{name}({} matrices {how}, each ", self.count)?;
        super::describe(f, "", &self.shape, self.place)?;
        f.write_str(")")
    }
}

/// Why matrix `index` is not of the first one's shape.
fn differs(index: usize, first: &Shape, shape: &Shape) -> Option<ShapeError> {
    let say = |rule, what: &str, required: u64, actual: u64| {
        let text = format!("matrix {index} of the batch has {actual} for {what}, but matrix 0 has {required}");
        Some(ShapeError::new(Operand::View, rule, required, actual, text))
    };
    let Strides { row, col } = first.strides;
    match shape {
        _ if shape.rows != first.rows => say(Rule::Rows, "rows", wide(first.rows), wide(shape.rows)),
        _ if shape.cols != first.cols => say(Rule::Cols, "columns", wide(first.cols), wide(shape.cols)),
        _ if shape.strides.row != row => say(Rule::Strides, "the row stride", row, shape.strides.row),
        _ if shape.strides.col != col => say(Rule::Strides, "the column stride", col, shape.strides.col),
        _ if shape.conj != first.conj => {
            say(Rule::Conjugate, "conjugated", u64::from(first.conj), u64::from(shape.conj))
        }
        _ => None,
    }
}

/// Stamps what both batches tell of themselves.
macro_rules! facts {
    ($batch:ident) => {
        impl<T> $batch<'_, T> {
            /// Number of matrices.
            pub fn count(&self) -> usize {
                self.batch.count
            }
            /// Rows, columns, strides and element type of each.
            pub fn shape(&self) -> Shape {
                self.batch.shape
            }
        }

        impl<T: Scalar> fmt::Debug for $batch<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.batch.describe(f, stringify!($batch))
            }
        }
    };
}

/// Matrices of one shape that are read: A or B of [`gemm_batched`](crate::gemm_batched()).
///
/// # Example
/// ```
/// use lanky_host::BatchRef;
/// let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
/// let a = BatchRef::row_major(&data, 2, 2, 3)?; // 1 2 3; 4 5 6 and 7 8 9; 10 11 12
/// assert_eq!(a.get(1).and_then(|matrix| matrix.get(0, 2)), Some(9.0));
/// assert_eq!(a.t().get(1).and_then(|matrix| matrix.get(2, 0)), Some(9.0));
/// # Ok::<(), lanky_host::Error>(())
/// ```
#[derive(Clone)]
pub struct BatchRef<'a, T> {
    pub(crate) batch: Batch<T>,
    memory: PhantomData<&'a [T]>,
}

// SAFETY: a BatchRef stands for `&'a [T]`s with a shape, which are Send and Sync where T is Sync.
unsafe impl<T: Sync> Send for BatchRef<'_, T> {}
// SAFETY: a shared BatchRef gives `&'a [T]`s, as one of its own does.
unsafe impl<T: Sync> Sync for BatchRef<'_, T> {}

impl<'a, T: Scalar> BatchRef<'a, T> {
    /// Packed column-major matrices, one after the other.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than count · rows · cols elements.
    pub fn column_major(data: &'a [T], count: usize, rows: usize, cols: usize) -> Result<Self> {
        Batch::packed(data.as_ptr(), data.len(), count, (rows, cols), Layout::ColumnMajor).map(Self::of)
    }

    /// Packed row-major matrices, one after the other: an array of NumPy's, batch first.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than count · rows · cols elements.
    pub fn row_major(data: &'a [T], count: usize, rows: usize, cols: usize) -> Result<Self> {
        Batch::packed(data.as_ptr(), data.len(), count, (rows, cols), Layout::RowMajor).map(Self::of)
    }

    /// Element (i, j) of matrix p is `data[p * batch_stride + i * strides.0 + j * strides.1]`. Any stride may be 0: with a
    /// `batch_stride` of 0 all matrices are one.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` is too short for the last element of the last matrix.
    pub fn with_strides(
        data: &'a [T],
        count: usize,
        batch_stride: usize,
        (rows, cols): (usize, usize),
        strides: (usize, usize),
    ) -> Result<Self> {
        let strides = Strides { row: wide(strides.0), col: wide(strides.1) };
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        Batch::strided(data.as_ptr(), data.len(), count, wide(batch_stride), shape).map(Self::of)
    }

    /// `count` times the same matrix: it is read from memory once.
    pub fn shared(matrix: MatRef<'a, T>, count: usize) -> Self {
        let spots = Spots::Strided { first: matrix.as_ptr(), stride: 0 };
        Self::of(Batch { spots, count, shape: matrix.shape(), place: matrix.place() })
    }

    /// These matrices, wherever they are; the same one may be there twice. Keeps a list of their addresses.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if they are not of one size, with the same strides, all conjugated or none;
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) if they are on different devices;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is none for the list.
    pub fn listed(matrices: &[MatRef<'a, T>]) -> Result<Self> {
        Batch::of_views(matrices.iter().map(|view| (view.as_ptr(), view.shape(), view.place()))).map(Self::of)
    }

    /// The `count` equal parts of a matrix, one below the other: of a row-major one on a device a batch as NumPy has it.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the rows are no multiple of `count`.
    pub fn parts_below(matrix: MatRef<'a, T>, count: usize) -> Result<Self> {
        Batch::parts(matrix.as_ptr(), matrix.shape(), matrix.place(), count, true).map(Self::of)
    }

    /// The `count` equal parts of a matrix, side by side: of a column-major one packed column-major matrices.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the columns are no multiple of `count`.
    pub fn parts_beside(matrix: MatRef<'a, T>, count: usize) -> Result<Self> {
        Batch::parts(matrix.as_ptr(), matrix.shape(), matrix.place(), count, false).map(Self::of)
    }

    /// Memory of the device that something else owns, as [`MatRef::from_raw`]: element (i, j) of matrix p is
    /// p · batch_stride + i · strides.0 + j · strides.1 elements from `address` on.
    ///
    /// # Safety
    /// As of [`MatRef::from_raw`], of all matrices.
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the span exceeds 2^63 − 1 bytes, or there are elements at address 0.
    pub unsafe fn from_raw(
        device: &Device,
        address: u64,
        count: usize,
        batch_stride: usize,
        (rows, cols): (usize, usize),
        strides: (usize, usize),
    ) -> Result<Self> {
        let strides = Strides { row: wide(strides.0), col: wide(strides.1) };
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        Batch::raw(device, address, count, wide(batch_stride), shape).map(Self::of)
    }

    fn of(batch: Batch<T>) -> Self {
        BatchRef { batch, memory: PhantomData }
    }

    /// Matrix `index`; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<MatRef<'a, T>> {
        let Batch { count, shape, place, .. } = self.batch;
        (index < count).then(|| MatRef::of_parts(self.batch.at(index), shape, place))
    }

    /// Each transposed, in the same memory.
    pub fn t(self) -> Self {
        let shape = self.batch.shape.t();
        Self::of(self.batch.with_shape(shape))
    }

    /// Their conjugates, in the same memory; of real elements themselves.
    pub fn conj(self) -> Self {
        let shape = self.batch.shape.conj();
        Self::of(self.batch.with_shape(shape))
    }

    /// Their conjugate transposes, in the same memory; of real elements [`BatchRef::t`].
    pub fn h(self) -> Self {
        self.t().conj()
    }
}

facts!(BatchRef);

/// Matrices of one shape that are written: C of [`gemm_batched`](crate::gemm_batched()). No two elements share an address.
///
/// # Example
/// ```
/// use lanky_host::{BatchMut, Error, Rule};
/// let mut data = [0.0; 12];
/// assert_eq!(BatchMut::row_major(&mut data, 2, 2, 3)?.count(), 2);
/// // Matrices of 6 elements, only 5 elements apart: the last of the first would be the first of the second.
/// let Err(Error::Shape(error)) = BatchMut::with_strides(&mut data, 2, 5, (2, 3), (3, 1)) else { panic!("it overlaps") };
/// assert_eq!((error.rule, error.required, error.actual), (Rule::Strides, 6, 5));
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct BatchMut<'a, T> {
    pub(crate) batch: Batch<T>,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: a BatchMut stands for `&'a mut [T]`s with a shape.
unsafe impl<T: Send> Send for BatchMut<'_, T> {}
// SAFETY: through a shared BatchMut memory is only read, as through a `&&mut [T]`.
unsafe impl<T: Sync> Sync for BatchMut<'_, T> {}

impl<'a, T: Scalar> BatchMut<'a, T> {
    /// Packed column-major matrices, one after the other.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than count · rows · cols elements.
    pub fn column_major(data: &'a mut [T], count: usize, rows: usize, cols: usize) -> Result<Self> {
        Batch::packed(data.as_mut_ptr(), data.len(), count, (rows, cols), Layout::ColumnMajor).map(Self::of)
    }

    /// Packed row-major matrices, one after the other: an array of NumPy's, batch first.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `data` has fewer than count · rows · cols elements.
    pub fn row_major(data: &'a mut [T], count: usize, rows: usize, cols: usize) -> Result<Self> {
        Batch::packed(data.as_mut_ptr(), data.len(), count, (rows, cols), Layout::RowMajor).map(Self::of)
    }

    /// Element (i, j) of matrix p is `data[p * batch_stride + i * strides.0 + j * strides.1]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if two elements would share an address: each stride, from the smallest on,
    /// must step over all that the smaller ones reach, which also refuses a few layouts that interleave without overlap;
    /// or if `data` is too short for the last element of the last matrix.
    pub fn with_strides(
        data: &'a mut [T],
        count: usize,
        batch_stride: usize,
        (rows, cols): (usize, usize),
        strides: (usize, usize),
    ) -> Result<Self> {
        let strides = Strides { row: wide(strides.0), col: wide(strides.1) };
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        check_batch_distinct(Operand::View, &shape, wide(count), wide(batch_stride))?;
        Batch::strided(data.as_mut_ptr(), data.len(), count, wide(batch_stride), shape).map(Self::of)
    }

    /// These matrices, wherever they are, also between each other's lines. Keeps a list of their addresses, and the matrices
    /// borrowed. Cost: the addresses are put into order, where they are not; where matrices lie between each other's lines, those
    /// of all lines.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if they are not of one size, with the same strides, or two of them share an
    /// element, as views of raw addresses may; [`Error::WrongDevice`](crate::Error::WrongDevice) if they are on different devices;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is none for the list, or in which to put them into order.
    pub fn listed(matrices: &'a mut [MatMut<'_, T>]) -> Result<Self> {
        let views = matrices.iter_mut().map(|view| (view.as_mut_ptr().cast_const(), view.shape(), view.place()));
        let batch = Batch::of_views(views)?;
        check_apart(&batch)?;
        Ok(Self::of(batch))
    }

    /// The `count` equal parts of a matrix, one below the other: [`BatchRef::parts_below`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the rows are no multiple of `count`.
    pub fn parts_below(mut matrix: MatMut<'a, T>, count: usize) -> Result<Self> {
        let first = matrix.as_mut_ptr().cast_const();
        Batch::parts(first, matrix.shape(), matrix.place(), count, true).map(Self::of)
    }

    /// The `count` equal parts of a matrix, side by side: [`BatchRef::parts_beside`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the columns are no multiple of `count`.
    pub fn parts_beside(mut matrix: MatMut<'a, T>, count: usize) -> Result<Self> {
        let first = matrix.as_mut_ptr().cast_const();
        Batch::parts(first, matrix.shape(), matrix.place(), count, false).map(Self::of)
    }

    /// Memory of the device that something else owns: [`BatchRef::from_raw`].
    ///
    /// # Safety
    /// As of [`MatMut::from_raw`], of all matrices.
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) as [`BatchMut::with_strides`], but for the length, and if there are elements at address 0.
    pub unsafe fn from_raw(
        device: &Device,
        address: u64,
        count: usize,
        batch_stride: usize,
        (rows, cols): (usize, usize),
        strides: (usize, usize),
    ) -> Result<Self> {
        let strides = Strides { row: wide(strides.0), col: wide(strides.1) };
        let shape = Shape::with_strides(rows, cols, strides, T::DTYPE);
        check_batch_distinct(Operand::View, &shape, wide(count), wide(batch_stride))?;
        Batch::raw(device, address, count, wide(batch_stride), shape).map(Self::of)
    }

    fn of(batch: Batch<T>) -> Self {
        BatchMut { batch, memory: PhantomData }
    }

    /// Each transposed, in the same memory.
    pub fn t(self) -> Self {
        let shape = self.batch.shape.t();
        Self::of(self.batch.with_shape(shape))
    }
}

facts!(BatchMut);
