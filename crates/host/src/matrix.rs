//! Matrices that own their memory.

use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::memory::DeviceMemory;
use crate::pack;
use crate::scalar::Scalar;
use crate::shape::{Layout, Shape, check_span, checked_span, narrow, wide};
use crate::stream::Stream;
use crate::view::{MatMut, MatRef, Place};
use std::fmt;
use std::io;
use std::marker::PhantomData;

/// A packed matrix in the host's memory or a GPU's: no gaps between its lines, see [`Layout`]. Dropped on any thread; a
/// GPU's memory after the work that uses it, for which the drop waits.
///
/// # Example
/// ```
/// use lanky_host::{Layout, Matrix};
/// let a = Matrix::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3, Layout::RowMajor)?;
/// assert_eq!((a.get(1, 0), a.t().get(0, 1), a.get(2, 0)), (Some(4.0), Some(4.0), None));
/// let middle = Matrix::to_contiguous(a.view().cols(1..2)?)?;
/// assert_eq!(middle.into_vec(), Some(vec![2.0, 5.0]));
/// # Ok::<(), lanky_host::Error>(())
/// ```
///
/// A result that is also read does not compile:
/// ```compile_fail,E0502
/// let device = lanky_host::Device::cpu();
/// let mut a = device.zeros::<f64>(3, 3)?;
/// lanky_host::gemm(&device.stream()?, 1.0, a.view(), a.view(), 0.0, a.view_mut())?; // `a` is lent to be read
/// # Ok::<(), lanky_host::Error>(())
/// ```
/// Nor does a view of what is gone:
/// ```compile_fail,E0505
/// let a = lanky_host::Device::cpu().zeros::<f64>(3, 3)?;
/// let view = a.view();
/// drop(a);
/// assert_eq!(view.nrows(), 3);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct Matrix<T> {
    store: Store<T>,
    shape: Shape,
    layout: Layout,
}

enum Store<T> {
    Host(Vec<T>),
    Cuda(DeviceMemory, PhantomData<T>),
}

impl<T: Scalar> Matrix<T> {
    /// A column-major matrix on the host whose element (i, j) is `value(i, j)`; called in storage order, on this thread.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Shape`] if rows · cols elements exceed 2^63 − 1 bytes.
    pub fn from_fn(rows: usize, cols: usize, mut value: impl FnMut(usize, usize) -> T) -> Result<Self> {
        let mut matrix = Self::zeros(rows, cols)?;
        if let (Store::Host(data), true) = (&mut matrix.store, rows > 0) {
            for (j, column) in data.chunks_exact_mut(rows).enumerate() {
                for (i, element) in column.iter_mut().enumerate() {
                    *element = value(i, j);
                }
            }
        }
        Ok(matrix)
    }

    /// A column-major matrix of zeros on the host.
    ///
    /// # Errors
    /// As [`Matrix::from_fn`].
    pub fn zeros(rows: usize, cols: usize) -> Result<Self> {
        Self::zeros_in(rows, cols, Layout::ColumnMajor)
    }

    pub(crate) fn zeros_in(rows: usize, cols: usize, layout: Layout) -> Result<Self> {
        let shape = Shape::packed(rows, cols, layout, T::DTYPE);
        let len = checked_span(Operand::View, &shape)?;
        let data =
            bytemuck::allocation::try_zeroed_vec(len).map_err(|()| Error::host_memory(wide(len) * T::DTYPE.bytes()))?;
        Ok(Matrix { store: Store::Host(data), shape, layout })
    }

    /// A matrix on the host of packed elements in the layout's order, in place.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not exactly rows · cols elements; they are then dropped.
    pub fn from_vec(data: Vec<T>, rows: usize, cols: usize, layout: Layout) -> Result<Self> {
        let shape = Shape::packed(rows, cols, layout, T::DTYPE);
        check_span(Operand::View, &shape, data.len())?;
        let needed = checked_span(Operand::View, &shape)?;
        if needed < data.len() {
            let text = format!("a {rows} x {cols} matrix has {needed} elements, but {} were given", data.len());
            return Err(ShapeError::new(Operand::View, Rule::Span, wide(needed), wide(data.len()), text).into());
        }
        Ok(Matrix { store: Store::Host(data), shape, layout })
    }

    /// A packed copy, on the host, of a view there, by rayon's threads; in the layout whose unit stride is along
    /// the view's smaller one.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the view is not the host's, else as [`Matrix::from_fn`].
    pub fn to_contiguous(view: MatRef<'_, T>) -> Result<Self> {
        if !view.is_host() {
            return Err(Error::WrongDevice {
                operand: Operand::View,
                expected: Place::Host.to_string(),
                actual: view.place().to_string(),
            });
        }
        let layout = closest_layout(&view.shape());
        let mut matrix = Self::zeros_in(view.nrows(), view.ncols(), layout)?;
        if let Store::Host(data) = &mut matrix.store {
            pack::pack(view, layout, 0, data);
        }
        Ok(matrix)
    }

    /// Of device memory that holds the packed matrix.
    pub(crate) fn on_device(memory: DeviceMemory, rows: usize, cols: usize, layout: Layout) -> Self {
        let shape = Shape::packed(rows, cols, layout, T::DTYPE);
        Matrix { store: Store::Cuda(memory, PhantomData), shape, layout }
    }

    /// All of it, to be read.
    pub fn view(&self) -> MatRef<'_, T> {
        match &self.store {
            Store::Host(data) => MatRef::of_parts(data.as_ptr(), self.shape, Place::Host),
            Store::Cuda(memory, _) => {
                let pointer = std::ptr::without_provenance(narrow(memory.address()));
                MatRef::of_parts(pointer, self.shape, Place::Cuda(memory.ordinal()))
            }
        }
    }

    /// All of it, to be written.
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        match &mut self.store {
            Store::Host(data) => MatMut::of_parts(data.as_mut_ptr(), self.shape, Place::Host),
            Store::Cuda(memory, _) => {
                let pointer = std::ptr::without_provenance_mut(narrow(memory.address()));
                MatMut::of_parts(pointer, self.shape, Place::Cuda(memory.ordinal()))
            }
        }
    }

    /// The transposed matrix, in the same memory; to be read.
    pub fn t(&self) -> MatRef<'_, T> {
        self.view().t()
    }

    /// The conjugate transpose, in the same memory; to be read. Of real elements [`Matrix::t`].
    pub fn h(&self) -> MatRef<'_, T> {
        self.view().h()
    }

    /// Element (i, j); `None` outside, and where the memory is a GPU's.
    pub fn get(&self, i: usize, j: usize) -> Option<T> {
        self.view().get(i, j)
    }

    /// A copy on the host, its elements in the same order. Waits for the stream's earlier work.
    ///
    /// Cost: the matrix is allocated; on a GPU one copy for each 16 MiB, through the stream's pinned memory.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the stream is another device's; [`Error::OutOfMemory`] for the matrix or the pinned
    /// memory; [those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn download(&self, stream: &Stream) -> Result<Matrix<T>> {
        stream.device().download(stream, self.view())
    }

    /// Hands all elements to `sink`, in pieces of up to 16 MiB, in the layout's order; on a GPU the next pieces are on
    /// their way meanwhile, and the other layout than the matrix's own costs a whole copy on the host first.
    ///
    /// # Errors
    /// [`Error::Io`] if `sink` fails, which is then not called again; else as [`Matrix::download`].
    pub fn download_with(
        &self,
        stream: &Stream,
        layout: Layout,
        sink: &mut dyn FnMut(&[T]) -> io::Result<()>,
    ) -> Result<()> {
        stream.device().download_with(stream, self.view(), layout, sink)
    }
}

impl<T> Matrix<T> {
    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.shape.rows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.shape.cols
    }

    /// Rows, columns, strides and element type.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The order in which the elements lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the memory is the host's.
    pub fn is_host(&self) -> bool {
        matches!(self.store, Store::Host(_))
    }

    /// The elements in the layout's order; `None` where the memory is a GPU's.
    pub fn as_slice(&self) -> Option<&[T]> {
        match &self.store {
            Store::Host(data) => Some(data),
            Store::Cuda(..) => None,
        }
    }

    /// The elements in the layout's order; `None` where the memory is a GPU's.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        match &mut self.store {
            Store::Host(data) => Some(data),
            Store::Cuda(..) => None,
        }
    }

    /// The elements in the layout's order, in place; `None`, and the matrix gone, where the memory is a GPU's.
    pub fn into_vec(self) -> Option<Vec<T>> {
        match self.store {
            Store::Host(data) => Some(data),
            Store::Cuda(..) => None,
        }
    }
}

impl<T> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { rows, cols, dtype, .. } = self.shape;
        let place = match &self.store {
            Store::Host(_) => Place::Host,
            Store::Cuda(memory, _) => Place::Cuda(memory.ordinal()),
        };
        write!(f, "Matrix({rows} x {cols} {dtype}, {:?}, on {place})", self.layout)
    }
}

/// The packed layout in which a copy of the view reads along its smaller stride.
pub(crate) fn closest_layout(shape: &Shape) -> Layout {
    let row_major = shape.strides.col < shape.strides.row || (shape.rows == 1 && shape.cols > 1);
    if row_major { Layout::RowMajor } else { Layout::ColumnMajor }
}
