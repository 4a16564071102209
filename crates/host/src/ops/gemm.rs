//! C ← α A B + β C.

use crate::cpu;
use crate::device::{Device, Kind};
use crate::driver;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::gpu::hold;
use crate::matrix::Matrix;
use crate::ops::enqueue::enqueue;
use crate::scalar::Scalar;
use crate::shape::{Layout, Shape, agree, check_distinct, wide};
use crate::stream::{Queue, Stream};
use crate::view::{MatMut, MatRef, Place};
use model::Problem;

/// C ← α A B + β C, with A m x k, B k x n and C m x n; transposes and conjugates are views (`a.t()`, `a.conj()`,
/// `a.h()`). Asynchronous on `stream` on a GPU.
///
/// As in BLAS: β = 0 does not read C (a NaN there is overwritten), α = 0 reads neither A nor B, m = 0 or n = 0 does
/// nothing, k = 0 gives C ← β C. NaN and infinities in A and B travel. Complex numbers are multiplied by the plain
/// formula, (a + bi)(c + di) = (ac − bd) + (ad + bc)i, which makes NaN of many an infinity. Unlike BLAS's gemv, a
/// product with k = 0 scales C also where n is 1.
///
/// The kernel is the one the model expects to be the fastest, or the one that was measured to be ([`tuned`](crate::tuned)); a
/// [`Plan`](crate::Plan) shows or forces it. Each element
/// of C is a sum of k products in an order that shapes, strides and the device decide: the same bits under any load and
/// for any number of threads. Where nothing overflows its error is at most γ(k + 2) |α| |A||B| + γ(2) |β| |C|, and k +
/// 2 times the least positive number for what underflows, with γ(n) = n u / (1 − n u) and u = 2⁻²⁴ or 2⁻⁵³ (Higham,
/// Accuracy and Stability of Numerical Algorithms, Sect. 3.5). Of complex elements it is at most √2 times γ(2k + 4) |α|
/// |A||B| + γ(4) |β| |C|, absolute values being those of complex numbers: either part is a sum of 2k products of reals.
///
/// Cost on a GPU: one launch, or two where another one adds the parts of k. Their sums lie in a workspace of the stream's, which grows
/// as they ask for it; the first product by a kernel waits until the driver has compiled it. On the CPU: blocks of C, or of
/// a vector of few rows parts of k, by rayon's threads, done when this returns.
///
/// # Errors
/// In this order, nothing being launched or written: [`Error::WrongDevice`] for an operand that the stream's device
/// does not own; [`Error::Shape`] if the sizes do not agree, the elements of C overlap each other, or C overlaps A or
/// B, or on a GPU complex elements do not lie at multiples of their size (an operand without elements lies nowhere, and the others
/// are looked at all the same); [`Error::Unsupported`], on a GPU, if a dimension exceeds [`model::choose::LARGEST_DIMENSION`], C is larger than a
/// grid, or no kernel is carried for the GPU; [`Error::DriverTooOld`] or [`Error::Jit`] if the kernel does not load;
/// [`Error::OutOfMemory`] for the workspace, and on the CPU, where C is as it was, for the sums of parts of k; instead of the last three [`Error::ColdPlanInCapture`] while the stream
/// records a graph. Besides, [those of every GPU call](crate#errors-of-every-gpu-call), which may stem from earlier
/// asynchronous work.
///
/// # Example
/// ```
/// use lanky_host::{Device, MatMut, MatRef, gemm};
/// let a = MatRef::column_major(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2)?; // 1 4; 2 5; 3 6
/// let mut c = [f64::NAN; 9];
/// let stream = Device::cpu().stream()?;
/// gemm(&stream, 1.0, a, a.t(), 0.0, MatMut::row_major(&mut c, 3, 3)?)?;
/// assert_eq!(c, [17.0, 22.0, 27.0, 22.0, 29.0, 36.0, 27.0, 36.0, 45.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn gemm<T: Scalar>(
    stream: &Stream,
    alpha: T,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    beta: T,
    c: MatMut<'_, T>,
) -> Result<()> {
    let _during = driver::during("gemm");
    check(stream.device(), &a, &b, &c)?;
    if is_done(alpha, &a, beta, &c) {
        return Ok(());
    }
    multiply(stream, alpha, a, b, beta, c)
}

/// The same of operands that were checked, where something is left to do.
pub(crate) fn multiply<T: Scalar>(
    stream: &Stream,
    alpha: T,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    beta: T,
    mut c: MatMut<'_, T>,
) -> Result<()> {
    match stream.queue() {
        Queue::Cpu => cpu::product(alpha, a, b, beta, c),
        Queue::Cuda(queue) => {
            let multiplies = alpha != T::zero() && a.ncols() > 0;
            let problem = problem(&a.shape(), &b.shape(), &c.shape(), beta != T::zero());
            let choice = if multiplies { Some(queue.gpu.choice(&problem, None)?) } else { None };
            // Locked until all launches of a product are in the stream: its workspace is theirs till then.
            let mut scratch = hold(&queue.scratch)?;
            enqueue(queue, choice.as_ref(), &mut scratch, alpha, &a, &b, beta, &mut c, None)
        }
    }
}

/// The product as the model sees it; `reads_c`: β is not 0.
pub(crate) fn problem(a: &Shape, b: &Shape, c: &Shape, reads_c: bool) -> Problem {
    Problem {
        dtype: c.dtype,
        m: wide(a.rows),
        n: wide(b.cols),
        k: wide(a.cols),
        a: a.strides,
        b: b.strides,
        c: c.strides,
        reads_c,
        gram: false,
        triangle: false,
        conj_a: a.conj,
        conj_b: b.conj,
        splits_f32: false,
    }
}

/// Whether BLAS leaves nothing to do.
pub(crate) fn is_done<T: Scalar>(alpha: T, a: &MatRef<'_, T>, beta: T, c: &MatMut<'_, T>) -> bool {
    c.shape().is_empty() || ((alpha == T::zero() || a.ncols() == 0) && beta == T::one())
}

/// What every product checks, in the order in which errors are reported.
pub(crate) fn check<T: Scalar>(device: &Device, a: &MatRef<'_, T>, b: &MatRef<'_, T>, c: &MatMut<'_, T>) -> Result<()> {
    check_places(device, [(Operand::A, a.place()), (Operand::B, b.place()), (Operand::C, c.place())])?;
    agree(&a.shape(), &b.shape(), &c.shape())?;
    check_memory(device, PRODUCT, a, b, c)
}

/// A, B and C as a product's caller calls them.
pub(crate) const PRODUCT: [Operand; 3] = [Operand::A, Operand::B, Operand::C];

/// The rest of what every product checks, where sizes agree: where the operands, whom the caller calls so, lie.
pub(crate) fn check_memory<T: Scalar>(
    device: &Device,
    [of_a, of_b, of_c]: [Operand; 3],
    a: &MatRef<'_, T>,
    b: &MatRef<'_, T>,
    c: &MatMut<'_, T>,
) -> Result<()> {
    check_distinct(of_c, &c.shape())?;
    refuse_overlap(of_c, of_a, a, c)?;
    refuse_overlap(of_c, of_b, b, c)?;
    check_aligned::<T, 3>(device, [(of_a, a.extent()), (of_b, b.extent()), (of_c, c.extent())])
}

/// On a GPU, of operands that have elements, by their first addresses and numbers of bytes.
pub(crate) fn check_aligned<T: Scalar, const N: usize>(
    device: &Device,
    operands: [(Operand, (u64, u64)); N],
) -> Result<()> {
    let mut lie = operands.into_iter().filter(|(_, (_, bytes))| device.is_cuda() && *bytes > 0);
    lie.try_for_each(|(operand, (address, _))| check_address_aligned::<T>(operand, address))
}

/// A kernel accesses a complex element as a whole; those of memory that others own need not lie so.
pub(crate) fn check_address_aligned<T: Scalar>(operand: Operand, address: u64) -> Result<()> {
    let bytes = T::DTYPE.bytes();
    if !T::DTYPE.is_complex() || address % bytes == 0 {
        return Ok(());
    }
    let (dtype, beyond) = (T::DTYPE, address % bytes);
    let text =
        format!("{operand} is at {address:#x}, {beyond} bytes beyond a multiple of {bytes}, where {dtype} must lie");
    Err(ShapeError::new(operand, Rule::Alignment, bytes, beyond, text).into())
}

pub(crate) fn check_places<const N: usize>(device: &Device, operands: [(Operand, Place); N]) -> Result<()> {
    if let Kind::Refused(error) = device.kind() {
        return Err(Error::clone(error));
    }
    for (operand, place) in operands {
        if place != device.place() {
            let (expected, actual) = (device.short(), place.to_string());
            return Err(Error::WrongDevice { operand, expected, actual });
        }
    }
    Ok(())
}

/// C, which the caller calls `written`, may share no address with what is read, not even between its columns: whether the elements
/// themselves meet is not worth deciding.
pub(crate) fn refuse_overlap<T: Scalar>(
    written: Operand,
    operand: Operand,
    read: &MatRef<'_, T>,
    c: &MatMut<'_, T>,
) -> Result<()> {
    let ((from, bytes), (c_from, c_bytes)) = (read.extent(), c.extent());
    let start = from.max(c_from);
    let end = from.saturating_add(bytes).min(c_from.saturating_add(c_bytes));
    if end <= start {
        return Ok(());
    }
    let shared = end - start;
    let text =
        format!("{written} overlaps {operand}: their address ranges share {shared} bytes; multiply into other memory");
    Err(ShapeError::new(operand, Rule::Overlap, 0, shared, text).into())
}

/// [`Device::matmul`].
pub(crate) fn matmul<T: Scalar>(device: &Device, a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Matrix<T>> {
    for (operand, view) in [(Operand::A, &a), (Operand::B, &b)] {
        if !view.is_host() {
            check_places(device, [(operand, view.place())])?;
        }
    }
    let c = Shape::packed(a.nrows(), b.ncols(), Layout::ColumnMajor, T::DTYPE);
    agree(&a.shape(), &b.shape(), &c)?;
    let stays = device.is_cuda() && !(a.is_host() && b.is_host());
    if stays {
        // The operand may be the result of work on a stream that is not known here.
        device.synchronize()?;
    }
    device.with_stream(|stream| {
        let upload = |view: MatRef<'_, T>| match view.is_host() && device.is_cuda() {
            true => device.upload(stream, view).map(Some),
            false => Ok(None),
        };
        let (a_copy, b_copy) = (upload(a)?, upload(b)?);
        let mut c = device.allocate::<T>(a.nrows(), b.ncols(), Layout::ColumnMajor)?;
        let a = a_copy.as_ref().map_or(a, Matrix::view);
        let b = b_copy.as_ref().map_or(b, Matrix::view);
        gemm(stream, T::one(), a, b, T::zero(), c.view_mut())?;
        if device.is_cuda() && !stays {
            return c.download(stream);
        }
        stream.synchronize()?;
        Ok(c)
    })
}
