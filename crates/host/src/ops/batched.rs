//! C_i ← α A_i B_i + β C_i, of many small matrices.

use crate::cpu as large;
use crate::driver;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::ops::enqueue::unknown_of_batches;
use crate::ops::enqueue_batch::{check_batch_aligned, enqueue_batch};
use crate::ops::gemm::{self, check_places};
use crate::scalar::Scalar;
use crate::shape::{Shape, agree, check_batch_distinct, wide};
use crate::stream::{Queue, Stream};
use crate::view::batch::{Batch, BatchMut, BatchRef, Spots};
use crate::view::overlap::refuse_overlap;
use crate::view::{MatMut, MatRef};
use model::variants::batched::BATCHED;

/// C_i ← α A_i B_i + β C_i for all i, with A_i m x k, B_i k x n and C_i m x n; transposes and conjugates are views
/// (`a.t()`, `a.conj()`, `a.h()`). Asynchronous on `stream` on a GPU.
///
/// A batch lies at equal distances or anywhere ([`BatchRef::listed`]); one matrix may serve all products
/// ([`BatchRef::shared`]). α, β, NaN, infinities and empty matrices are as in [`gemm`](crate::gemm()), and so is the error
/// of a sum.
///
/// Up to m = n = k = 32 the products have kernels of their own, on the CPU those of `lanky-cpu`: each element's sum is one chain
/// of multiply-adds in the order of k, so that its bits depend neither on its place in the batch, nor on layouts, nor on the
/// number of threads; of complex elements on a GPU, if some of A, B and C lie by rows, and of c128 always, they depend on how these
/// lie and on how many problems there are. Larger ones are computed as
/// [`gemm`](crate::gemm()) computes them.
///
/// Cost: each matrix is read and written once; on the CPU each of rayon's threads takes one contiguous part of the batch. Where
/// A_i, or B_i if C_i lies by rows, has no unit stride along the same axis as C_i, each is first copied within the caches. On a
/// GPU one launch for up to 2^30 products; lists of addresses are sent to it first, 8 bytes a matrix, through pinned memory. Lists are
/// looked through in every call, and put into order where they lie among what C may not overlap.
///
/// # Errors
/// In this order, nothing being written: [`Error::WrongDevice`] for a batch that the stream's device
/// does not own; [`Error::Shape`] if the sizes do not agree, the numbers of matrices differ
/// ([`Rule::Count`]), elements of C overlap each other, or C overlaps A or B (of a batch at equal distances all from its first to
/// its last element counts, of a list each matrix by itself), or on a GPU complex elements do not lie at multiples
/// of their size; [`Error::OutOfMemory`] where lists cannot be put into order. On a GPU [`Error::OutOfMemory`] for lists;
/// [`Error::ColdPlanInCapture`] while the stream records a graph, if the kernel is not loaded
/// or a batch is listed; and those of loading a kernel, as of [`gemm`](crate::gemm()). Besides, [those of every GPU
/// call](crate#errors-of-every-gpu-call).
///
/// Not in this order: on the CPU, of products beyond 32 whose k is cut into parts, [`Error::OutOfMemory`] for a product's sums of these. It is found
/// product by product: that one's C_i is as it was, others' may be written, so that C is not to be used.
///
/// # Example
/// ```
/// use lanky_host::{BatchMut, BatchRef, Device, gemm_batched};
/// let a: Vec<f64> = (0..18).map(f64::from).collect(); // two 3 x 3 matrices
/// let swap = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]; // 0 1; 1 0; 0 0
/// let mut c = [f64::NAN; 12];
/// gemm_batched(
///     &Device::cpu().stream()?,
///     2.0,
///     BatchRef::row_major(&a, 2, 3, 3)?,
///     BatchRef::shared(lanky_host::MatRef::row_major(&swap, 3, 2)?, 2),
///     0.0,
///     BatchMut::row_major(&mut c, 2, 3, 2)?,
/// )?;
/// assert_eq!(c, [2.0, 0.0, 8.0, 6.0, 14.0, 12.0, 20.0, 18.0, 26.0, 24.0, 32.0, 30.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn gemm_batched<T: Scalar>(
    stream: &Stream,
    alpha: T,
    a: BatchRef<'_, T>,
    b: BatchRef<'_, T>,
    beta: T,
    c: BatchMut<'_, T>,
) -> Result<()> {
    let _during = driver::during("gemm_batched");
    multiply(stream, alpha, a, b, beta, c, None)
}

/// [`gemm_batched`] by a variant (`batched_any`) or an entry (`dbatched_any_2x2_t128`) that is named, on a GPU; the tile and the
/// launch are the model's.
///
/// # Errors
/// Those of [`gemm_batched`]; behind those of shapes [`Error::UnknownVariant`], also where nothing is to be done, and
/// [`Error::Unsupported`] if the variant does not take the batch, of which none does beyond m = n = k = 32, or on the CPU, which
/// has none.
///
/// # Example
/// ```
/// use lanky_host::{BatchMut, BatchRef, Device, Error, gemm_batched_by};
/// let (a, mut c) = ([1.0; 8], [0.0; 8]);
/// let (square, result) = (BatchRef::row_major(&a, 2, 2, 2)?, BatchMut::row_major(&mut c, 2, 2, 2)?);
/// let refused = gemm_batched_by(&Device::cpu().stream()?, "batched_any", 1.0, square.clone(), square, 0.0, result);
/// assert!(matches!(refused, Err(Error::Unsupported { .. })));
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn gemm_batched_by<T: Scalar>(
    stream: &Stream,
    variant: &str,
    alpha: T,
    a: BatchRef<'_, T>,
    b: BatchRef<'_, T>,
    beta: T,
    c: BatchMut<'_, T>,
) -> Result<()> {
    let _during = driver::during("gemm_batched_by");
    multiply(stream, alpha, a, b, beta, c, Some(variant))
}

fn multiply<T: Scalar>(
    stream: &Stream,
    alpha: T,
    a: BatchRef<'_, T>,
    b: BatchRef<'_, T>,
    beta: T,
    c: BatchMut<'_, T>,
    force: Option<&str>,
) -> Result<()> {
    let (a, b, c) = (a.batch, b.batch, c.batch);
    check_places(stream.device(), [(Operand::A, a.place), (Operand::B, b.place), (Operand::C, c.place)])?;
    let (m, n, k) = agree(&a.shape, &b.shape, &c.shape)?;
    check_counts(&a, &b, &c)?;
    if let Spots::Strided { stride, .. } = c.spots {
        check_batch_distinct(Operand::C, &c.shape, wide(c.count), stride)?;
    }
    refuse_overlap(Operand::A, &a, &c)?;
    refuse_overlap(Operand::B, &b, &c)?;
    if stream.device().is_cuda() {
        check_batch_aligned([(Operand::A, &a), (Operand::B, &b), (Operand::C, &c)])?;
    }
    check_name(stream, force)?;
    let multiplies = alpha != T::zero() && k > 0;
    if c.shape.is_empty() || c.count == 0 || (!multiplies && beta == T::one()) {
        return Ok(());
    }
    if let Queue::Cuda(queue) = stream.queue() {
        if wide(m.max(n).max(k)) > model::batched::LARGEST {
            refuse_large(force, [m, n, k])?;
            let shared = Shared { a: &a, b: &b, c: &c };
            return (0..c.count).try_for_each(|index| {
                let (a, b, c) = shared.at(index);
                gemm::multiply(stream, alpha, a, b, beta, c)
            });
        }
        return enqueue_batch(queue, (alpha, beta), &a, &b, &c, force);
    }
    if m.max(n).max(k) > ::cpu::MOST {
        return one_by_one(alpha, &a, &b, beta, &c);
    }
    let (of_a, of_b, of_c) = (operand(&a), operand(&b), operand(&c));
    let batch = ::cpu::Batch { m, n, k, count: c.count, alpha, a: of_a, b: of_b, beta, c: of_c };
    // SAFETY: the shapes and the counts agree, and the constructors of the batches checked that every element is inside its
    // memory, and of C distinct; C overlaps neither A nor B (`refuse_overlap`).
    unsafe { ::cpu::gemm_batched(&batch) };
    Ok(())
}

/// Its addresses and strides; a stride that does not fit is of an axis of one element, and never taken.
fn operand<T>(batch: &Batch<T>) -> ::cpu::Operand<T> {
    let stride = |stride: u64| isize::try_from(stride).map_or(0, isize::unsigned_abs);
    let Shape { strides, conj, .. } = batch.shape;
    let matrices = match &batch.spots {
        Spots::Strided { first, stride: step } => ::cpu::Matrices::Strided { first: *first, stride: stride(*step) },
        Spots::Listed(list) => ::cpu::Matrices::Listed(list.as_ptr()),
    };
    ::cpu::Operand { matrices, row: stride(strides.row), col: stride(strides.col), conj }
}

/// Refuses a name that no kernel of batches has, and any name on the CPU.
fn check_name(stream: &Stream, force: Option<&str>) -> Result<()> {
    let Some(name) = force else { return Ok(()) };
    if !BATCHED.iter().any(|variant| variant.name == name || variant.entry == name) {
        return Err(unknown_of_batches(name));
    }
    match stream.queue() {
        Queue::Cuda(_) => Ok(()),
        Queue::Cpu => Err(Error::Unsupported { what: format!("variant {name}: variants are for GPUs") }),
    }
}

/// Refuses a name where no kernel of batches takes the sizes.
fn refuse_large(force: Option<&str>, [m, n, k]: [usize; 3]) -> Result<()> {
    let Some(name) = force else { return Ok(()) };
    let most = model::batched::LARGEST;
    let what = format!("variant {name}: m, n and k are {m}, {n} and {k}, but kernels of batches take {most} at most");
    Err(Error::Unsupported { what })
}

fn check_counts<T>(a: &Batch<T>, b: &Batch<T>, c: &Batch<T>) -> Result<()> {
    for (operand, count) in [(Operand::A, a.count), (Operand::B, b.count)] {
        if count != c.count {
            let text = format!("{operand} has {count} matrices, but C has {}: {operand} needs as many", c.count);
            return Err(ShapeError::new(operand, Rule::Count, wide(c.count), wide(count), text).into());
        }
    }
    Ok(())
}

/// Products too large for the kernels of batches.
fn one_by_one<T: Scalar>(alpha: T, a: &Batch<T>, b: &Batch<T>, beta: T, c: &Batch<T>) -> Result<()> {
    let shared = Shared { a, b, c };
    large::each(0..c.count, |index| {
        let (a, b, c) = shared.at(index);
        large::product(alpha, a, b, beta, c)
    })
}

/// Batches for several threads.
struct Shared<'a, T> {
    a: &'a Batch<T>,
    b: &'a Batch<T>,
    c: &'a Batch<T>,
}

// SAFETY: A and B are read; each C_i is written by the one thread that has its index, and no two of them overlap.
unsafe impl<T: Sync> Sync for Shared<'_, T> {}

impl<T: Scalar> Shared<'_, T> {
    /// Product `index`, which one thread alone takes.
    fn at(&self, index: usize) -> (MatRef<'_, T>, MatRef<'_, T>, MatMut<'_, T>) {
        let read = |batch: &Batch<T>| MatRef::of_parts(batch.at(index), batch.shape, batch.place);
        let c = MatMut::of_parts(self.c.at(index).cast_mut(), self.c.shape, self.c.place);
        (read(self.a), read(self.b), c)
    }
}
