//! Matrices in a device's memory: zeros, copies from the host, and copies back.

use crate::device::{Device, Kind};
use crate::driver;
use crate::error::{Error, Operand, Result};
use crate::matrix::{Matrix, closest_layout};
use crate::memory::DeviceMemory;
use crate::pack;
use crate::scalar::Scalar;
use crate::shape::{Layout, Shape, checked_span, narrow, wide};
use crate::stream::{CudaStream, Queue, Stream};
use crate::transfer::{self, CHUNK_BYTES, chunk_len};
use crate::view::{MatRef, Place};
use std::io;

impl Device {
    /// A column-major matrix of zeros in the device's memory, which is allocated, cleared, and waited for.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Shape`] if it exceeds 2^63 − 1 bytes; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub fn zeros<T: Scalar>(&self, rows: usize, cols: usize) -> Result<Matrix<T>> {
        if matches!(self.kind(), Kind::Cpu) {
            return Matrix::zeros(rows, cols);
        }
        let _during = driver::during("Device::zeros");
        checked_span(Operand::View, &Shape::packed(rows, cols, Layout::ColumnMajor, T::DTYPE))?;
        self.with_stream(|stream| {
            let matrix = self.allocate(rows, cols, Layout::ColumnMajor)?;
            if let Queue::Cuda(queue) = stream.queue() {
                let (address, bytes) = matrix.view().extent();
                // SAFETY: the matrix was just allocated, nothing else knows of it, and the copy is waited for.
                unsafe { transfer::clear(queue, address, bytes) }?;
            }
            stream.synchronize()?;
            Ok(matrix)
        })
    }

    /// A matrix of uninitialised device memory; on the CPU of zeros.
    pub(crate) fn allocate<T: Scalar>(&self, rows: usize, cols: usize, layout: Layout) -> Result<Matrix<T>> {
        match self.kind() {
            Kind::Cpu => Matrix::zeros_in(rows, cols, layout),
            Kind::Refused(error) => Err(Error::clone(error)),
            Kind::Cuda(gpu) => {
                let shape = Shape::packed(rows, cols, layout, T::DTYPE);
                let len = checked_span(Operand::View, &shape)?;
                let memory = DeviceMemory::new(gpu, wide(len) * T::DTYPE.bytes())?;
                Ok(Matrix::on_device(memory, rows, cols, layout))
            }
        }
    }

    /// A packed copy of a host view in the device's memory, in the layout closer to the view's. When this returns the
    /// view's memory is free again; on a GPU the last pieces may still be on their way, ahead of the stream's later work.
    ///
    /// Cost: the matrix is allocated; on a GPU the elements go through the stream's pinned memory in pieces of up to 16
    /// MiB, packed by all threads.
    ///
    /// # Errors
    /// [`Error::WrongStream`]; [`Error::WrongDevice`] if the view is not the host's; [`Error::OutOfMemory`] for the
    /// matrix or the pinned memory; [`Error::Shape`] if a packed copy exceeds 2^63 − 1 bytes; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub fn upload<T: Scalar>(&self, stream: &Stream, view: MatRef<'_, T>) -> Result<Matrix<T>> {
        let _during = driver::during("Device::upload");
        self.same(stream)?;
        refuse_elsewhere(view, Place::Host)?;
        let layout = closest_layout(&view.shape());
        let (rows, cols) = (view.nrows(), view.ncols());
        match stream.queue() {
            Queue::Cpu => Matrix::to_contiguous(view),
            Queue::Cuda(queue) => self.send(queue, rows, cols, layout, &mut |start, piece| {
                pack::pack(view, layout, start, piece);
                Ok(())
            }),
        }
    }

    /// A matrix in the device's memory whose elements `fill` writes: it is called with piece after piece, in the
    /// layout's order, and each is sent while the next is filled. On a GPU the pieces are pinned memory, on the CPU
    /// parts of the matrix itself; so no element is twice in the host's memory. A piece has up to 16 MiB, and holds old
    /// elements or zeros.
    ///
    /// # Errors
    /// [`Error::WrongStream`]; [`Error::Io`] if `fill` fails, which is then not called again; [`Error::OutOfMemory`];
    /// [`Error::Shape`] if it exceeds 2^63 − 1 bytes; [those of every GPU call](crate#errors-of-every-gpu-call).
    ///
    /// # Example
    /// ```
    /// use lanky_host::{Device, Layout};
    /// let device = Device::cpu();
    /// let mut next = 0.0;
    /// let a = device.upload_with(&device.stream()?, 2, 3, Layout::RowMajor, &mut |piece| {
    ///     piece.iter_mut().for_each(|element| (*element, next) = (next, next + 1.0)); // or read from a file
    ///     Ok(())
    /// })?;
    /// assert_eq!((a.get(0, 2), a.get(1, 0)), (Some(2.0), Some(3.0)));
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn upload_with<T: Scalar>(
        &self,
        stream: &Stream,
        rows: usize,
        cols: usize,
        layout: Layout,
        fill: &mut dyn FnMut(&mut [T]) -> io::Result<()>,
    ) -> Result<Matrix<T>> {
        let _during = driver::during("Device::upload_with");
        self.same(stream)?;
        match stream.queue() {
            Queue::Cuda(queue) => self.send(queue, rows, cols, layout, &mut |_, piece| Ok(fill(piece)?)),
            Queue::Cpu => {
                let mut matrix = Matrix::zeros_in(rows, cols, layout)?;
                for piece in matrix.as_mut_slice().unwrap_or_default().chunks_mut(chunk_len::<T>()) {
                    fill(piece)?;
                }
                Ok(matrix)
            }
        }
    }

    fn send<T: Scalar>(
        &self,
        queue: &CudaStream,
        rows: usize,
        cols: usize,
        layout: Layout,
        fill: &mut dyn FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<Matrix<T>> {
        let matrix = self.allocate::<T>(rows, cols, layout)?;
        let (address, _) = matrix.view().extent();
        // SAFETY: the matrix was just allocated with rows * cols elements, nothing else knows of it yet, and whoever
        // frees it waits for the device's work first.
        unsafe { transfer::send(queue, address, rows * cols, fill) }?;
        Ok(matrix)
    }

    /// A packed copy on the host of a view of the device's memory, in the layout closer to the view's. Waits for the
    /// stream's earlier work.
    ///
    /// Cost: the matrix is allocated; on a GPU the elements come through the stream's pinned memory in pieces of up to
    /// 16 MiB, with the gaps between them where neither stride is 1, and with a copy for each line (column or row) that
    /// does not follow the one before.
    ///
    /// # Errors
    /// [`Error::WrongStream`]; [`Error::WrongDevice`] if the view is another device's; [`Error::OutOfMemory`] for the
    /// matrix or the pinned memory; [`Error::Shape`] if a packed copy exceeds 2^63 − 1 bytes; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub fn download<T: Scalar>(&self, stream: &Stream, view: MatRef<'_, T>) -> Result<Matrix<T>> {
        let _during = driver::during("Device::download");
        self.same(stream)?;
        refuse_elsewhere(view, self.place())?;
        let queue = match stream.queue() {
            Queue::Cpu => return Matrix::to_contiguous(view),
            Queue::Cuda(queue) => queue,
        };
        let layout = closest_layout(&view.shape());
        let mut matrix = Matrix::zeros_in(view.nrows(), view.ncols(), layout)?;
        let data = matrix.as_mut_slice().unwrap_or_default();
        let lines = Lines::new(&view.shape(), layout);
        // SAFETY: `lines` are pieces of the view, whose span its constructor checked against its memory.
        unsafe {
            transfer::receive(queue, view.extent().0, &mut lines.pieces(), &mut |index, piece: &[T]| {
                let start = lines.start(index);
                for (element, &value) in data[start..].iter_mut().zip(piece.iter().step_by(lines.step.max(1))) {
                    *element = if view.shape().conj { value.conj() } else { value };
                }
                Ok(())
            })
        }?;
        Ok(matrix)
    }

    /// Hands a view of the device's memory to `sink`, piece by piece in the layout's order.
    pub(crate) fn download_with<T: Scalar>(
        &self,
        stream: &Stream,
        view: MatRef<'_, T>,
        layout: Layout,
        sink: &mut dyn FnMut(&[T]) -> io::Result<()>,
    ) -> Result<()> {
        let _during = driver::during("Matrix::download_with");
        self.same(stream)?;
        refuse_elsewhere(view, self.place())?;
        if let Queue::Cuda(queue) = stream.queue() {
            let lines = Lines::new(&view.shape(), layout);
            if lines.packed && !view.shape().conj {
                // SAFETY: `lines` are pieces of the view, whose span its constructor checked against its memory.
                return unsafe {
                    transfer::receive(queue, view.extent().0, &mut lines.pieces(), &mut |_, piece: &[T]| {
                        Ok(sink(piece)?)
                    })
                };
            }
            return hand_out(self.download(stream, view)?.view(), layout, sink);
        }
        hand_out(view, layout, sink)
    }
}

/// Hands a host view to `sink`.
fn hand_out<T: Scalar>(
    view: MatRef<'_, T>,
    layout: Layout,
    sink: &mut dyn FnMut(&[T]) -> io::Result<()>,
) -> Result<()> {
    let len = view.nrows() * view.ncols();
    let count = len.min(chunk_len::<T>());
    let wanted = wide(count) * T::DTYPE.bytes();
    let mut piece = bytemuck::allocation::try_zeroed_vec::<T>(count).map_err(|()| Error::host_memory(wanted))?;
    let mut done = 0;
    while done < len {
        let count = piece.len().min(len - done);
        pack::pack(view, layout, done, &mut piece[..count]);
        sink(&piece[..count])?;
        done += count;
    }
    Ok(())
}

fn refuse_elsewhere<T>(view: MatRef<'_, T>, place: Place) -> Result<()> {
    if view.place() == place {
        return Ok(());
    }
    let (expected, actual) = (place.to_string(), view.place().to_string());
    Err(Error::WrongDevice { operand: Operand::View, expected, actual })
}

/// The lines of a view (its columns in column-major order), cut into pieces that fit into a chunk.
struct Lines {
    /// Elements a line.
    len: usize,
    lines: usize,
    /// Distance of neighbours in a line, in elements.
    step: usize,
    /// Distance of lines, in elements.
    jump: usize,
    /// Elements a piece.
    piece: usize,
    /// Whether the view is packed, and so one line.
    packed: bool,
}

impl Lines {
    fn new(shape: &Shape, layout: Layout) -> Self {
        Self::with_chunk(shape, layout, CHUNK_BYTES / narrow(shape.dtype.bytes()))
    }

    fn with_chunk(shape: &Shape, layout: Layout, chunk: usize) -> Self {
        let shape = match layout {
            Layout::ColumnMajor => *shape,
            Layout::RowMajor => shape.t(),
        };
        let (len, lines) = if shape.is_empty() { (0, 0) } else { (shape.rows, shape.cols) };
        let (step, jump) = (narrow(shape.strides.row), narrow(shape.strides.col));
        let packed = (step == 1 || len <= 1) && (jump == len || lines <= 1);
        let (len, lines, step) = if packed { (len * lines, lines.min(1), 1) } else { (len, lines, step) };
        // A stride of 0 repeats one element, which is then fetched again and again: nobody does that for long.
        let piece = (chunk - 1).checked_div(step).map_or(1, |whole| whole + 1);
        Lines { len, lines, step, jump, piece, packed }
    }

    fn each_line(&self) -> usize {
        self.len.div_ceil(self.piece)
    }

    /// Offset and span of every piece, in elements of the view's memory.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let each = self.each_line();
        (0..each * self.lines).map(move |index| {
            let first = index % each * self.piece;
            let count = self.piece.min(self.len - first);
            (index / each * self.jump + first * self.step, (count - 1) * self.step + 1)
        })
    }

    /// Where the first element of a piece goes in the packed copy.
    fn start(&self, index: usize) -> usize {
        let each = self.each_line();
        index / each * self.len + index % each * self.piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Dtype, Strides};

    /// What `download` does, in host memory.
    fn gather(memory: &[u64], shape: &Shape, layout: Layout, chunk: usize) -> Vec<u64> {
        let lines = Lines::with_chunk(shape, layout, chunk);
        let mut out = vec![u64::MAX; shape.rows * shape.cols];
        for (index, (offset, span)) in lines.pieces().enumerate() {
            assert!(span <= chunk, "a piece of {span} in a chunk of {chunk}");
            let piece = &memory[offset..offset + span];
            for (element, &value) in out[lines.start(index)..].iter_mut().zip(piece.iter().step_by(lines.step.max(1))) {
                *element = value;
            }
        }
        out
    }

    #[test]
    fn pieces_cover_every_view_in_order() {
        let memory: Vec<u64> = (0..1000).collect();
        for layout in [Layout::ColumnMajor, Layout::RowMajor] {
            for (rows, cols) in [(0, 3), (3, 0), (1, 1), (1, 7), (7, 1), (5, 7), (13, 4)] {
                for (row, col) in
                    [(1, 5), (1, 13), (1, 7), (7, 1), (4, 1), (1, 20), (20, 1), (2, 30), (0, 1), (1, 0), (3, 0)]
                {
                    for chunk in [1, 2, 3, 8, 1000] {
                        let shape = Shape::with_strides(rows, cols, Strides { row, col }, Dtype::F64);
                        let found = gather(&memory, &shape, layout, chunk);
                        for (at, &value) in found.iter().enumerate() {
                            let (i, j) = match layout {
                                Layout::ColumnMajor => (at % rows, at / rows),
                                Layout::RowMajor => (at / cols, at % cols),
                            };
                            let expected = crate::view::offset(&shape, i, j);
                            assert_eq!(usize::try_from(value), Ok(expected), "{shape:?} {layout:?} chunk {chunk}");
                        }
                    }
                }
            }
        }
    }
}
