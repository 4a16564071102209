//! Batches on a GPU's stream.

use super::enqueue::warm;
use super::gemm::check_address_aligned;
use crate::driver;
use crate::error::{Error, Operand, Result};
use crate::gpu::hold;
use crate::launch::{self, BatchOperand};
use crate::memory::DeviceMemory;
use crate::scalar::Scalar;
use crate::shape::{narrow, wide};
use crate::stream::CudaStream;
use crate::transfer;
use crate::view::batch::{Batch, Spots};
use model::batched::BatchedProblem;
use model::launch::batched::{Lie, MOST_PROBLEMS};

/// Bytes of a piece that kernels move.
const PIECE_BYTES: u64 = 16;

/// Whether complex elements lie at multiples of their size.
pub(crate) fn check_batch_aligned<T: Scalar>(operands: [(Operand, &Batch<T>); 3]) -> Result<()> {
    for (operand, batch) in operands {
        let some = if batch.shape.is_empty() { 0 } else { batch.count };
        match &batch.spots {
            Spots::Strided { first, .. } if some > 0 => check_address_aligned::<T>(operand, address(*first))?,
            Spots::Strided { .. } => {}
            Spots::Listed(list) => {
                list.iter().take(some).try_for_each(|at| check_address_aligned::<T>(operand, address(*at)))?
            }
        }
    }
    Ok(())
}

/// Gives C_i ← α A_i B_i + β C_i to the stream. The batches were checked, something is left to do, m, n and k
/// are at most [`model::batched::LARGEST`].
pub(crate) fn enqueue_batch<T: Scalar>(
    stream: &CudaStream,
    (alpha, beta): (T, T),
    a: &Batch<T>,
    b: &Batch<T>,
    c: &Batch<T>,
    force: Option<&str>,
) -> Result<()> {
    let k = if alpha == T::zero() { 0 } else { a.shape.cols };
    // Till all launches that read the lists are in the stream, they are this call's.
    let mut lists = hold(&stream.lists)?;
    let listed = send_lists(stream, &mut lists, [a, b, c], k > 0)?;
    let most = narrow(MOST_PROBLEMS);
    for first in (0..c.count).step_by(most) {
        let count = wide((c.count - first).min(most));
        let lie = |batch: &Batch<T>| lie(batch, first);
        let (of_a, of_b) = if k == 0 { (NOTHING, NOTHING) } else { (lie(a), lie(b)) };
        let problem = BatchedProblem {
            dtype: T::DTYPE,
            m: wide(c.shape.rows),
            n: wide(c.shape.cols),
            k: wide(k),
            count,
            a: of_a,
            b: of_b,
            c: lie(c),
            reads_c: beta != T::zero(),
            conj_a: a.shape.conj,
            conj_b: b.shape.conj,
        };
        let choice = stream.gpu.choices.choose_batched(&problem, force)?;
        let _current = stream.gpu.enter()?;
        let kernel = warm(stream, choice.variant.entry)?;
        let operands = [operand(a, listed[0], first), operand(b, listed[1], first), operand(c, listed[2], first)];
        // SAFETY: the context is current; the batches were found on this device, of agreeing shapes, each matrix inside its
        // memory (the constructors of the batches), no two elements of C sharing an address, and C overlapping neither A
        // nor B; the choice is of this batch; the lists have its matrices and stay till the stream's next call.
        unsafe { launch::batched(stream, &choice, &kernel, (alpha, beta), operands) }?;
    }
    Ok(())
}

/// Matrices without elements.
const NOTHING: Lie = Lie::packed(0, 0);

fn address<T>(of: *const T) -> u64 {
    wide(of.expose_provenance())
}

/// A batch from problem `first` on; `list` is where its list is, if it has one, whose distances are from its first matrix.
fn operand<T: Scalar>(batch: &Batch<T>, list: Option<u64>, first: usize) -> BatchOperand {
    let address = match &batch.spots {
        Spots::Strided { .. } => address(batch.at(first)),
        Spots::Listed(list) => list.first().map_or(0, |start| address(*start)),
    };
    BatchOperand { address, list: list.map_or(0, |list| list + 8 * wide(first)) }
}

/// How a batch lies, from problem `first` on.
fn lie<T: Scalar>(batch: &Batch<T>, first: usize) -> Lie {
    let past = |at: u64| at % PIECE_BYTES / T::DTYPE.bytes();
    let strides = batch.shape.strides;
    let skew = |past: u64| u32::try_from(past).unwrap_or(0);
    match &batch.spots {
        Spots::Strided { stride, .. } => {
            Lie { strides, stride: *stride, listed: false, skew: skew(past(address(batch.at(first)))) }
        }
        Spots::Listed(list) => {
            let aligned = list.iter().all(|at| past(address(*at)) == 0);
            Lie { strides, stride: 0, listed: true, skew: u32::from(!aligned) }
        }
    }
}

/// Sends the lists of those that have one, in elements from the first matrix: their addresses on the device.
fn send_lists<T: Scalar>(
    stream: &CudaStream,
    lists: &mut Option<Box<DeviceMemory>>,
    batches: [&Batch<T>; 3],
    reads_factors: bool,
) -> Result<[Option<u64>; 3]> {
    let list = |place: usize| match &batches[place].spots {
        Spots::Listed(list) if place == 2 || reads_factors => Some(list),
        _ => None,
    };
    let lens = [0, 1, 2].map(|place| list(place).map_or(0, Vec::len));
    let bytes = 8 * wide(lens.iter().sum::<usize>());
    if bytes == 0 {
        return Ok([None; 3]);
    }
    if driver::is_capturing(&stream.raw)? {
        let what = format!("a list of {bytes} bytes of addresses would have to be sent");
        return Err(Error::ColdPlanInCapture { what });
    }
    if lists.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
        // The old one is freed first, behind the work that uses it.
        *lists = None;
        *lists = Some(Box::new(DeviceMemory::new(&stream.gpu, bytes)?));
    }
    let Some(memory) = lists else { return Ok([None; 3]) };
    let mut next = memory.address();
    let mut found = [None; 3];
    for (place, found) in found.iter_mut().enumerate() {
        let Some(list) = list(place).filter(|list| !list.is_empty()) else { continue };
        let base = address(list[0]);
        let offset = |at: *const T| (address(at).wrapping_sub(base) as i64 / T::DTYPE.bytes() as i64) as u64;
        // SAFETY: the memory has a word for each, which only this stream's work uses, in order.
        unsafe {
            transfer::send::<f64>(stream, next, list.len(), &mut |start, piece| {
                // Bits of offsets, which nobody takes for numbers.
                piece.iter_mut().zip(&list[start..]).for_each(|(word, at)| *word = f64::from_bits(offset(*at)));
                Ok(())
            })
        }?;
        *found = Some(next);
        next += 8 * wide(list.len());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Layout, Shape};
    use crate::view::Place;

    fn batch(spots: Spots<f64>) -> Batch<f64> {
        Batch {
            spots,
            count: 4 << 30,
            shape: Shape::packed(2, 3, Layout::ColumnMajor, model::Dtype::F64),
            place: Place::Host,
        }
    }

    /// A launch's first problem is beyond 32 bits: at equal distances the address is its matrix's, of a list its word's.
    #[test]
    fn each_launch_begins_where_the_one_before_ended() {
        let at = |bytes: usize| std::ptr::with_exposed_provenance::<f64>(bytes);
        let most = narrow(MOST_PROBLEMS);
        for first in [0, most, 2 * most, 3 * most] {
            let found = operand(&batch(Spots::Strided { first: at(4096), stride: 6 }), None, first);
            assert_eq!((found.address, found.list), (4096 + 48 * wide(first), 0));
            let found = operand(&batch(Spots::Strided { first: at(4096), stride: 0 }), None, first);
            assert_eq!((found.address, found.list), (4096, 0));
            let found = operand(&batch(Spots::Listed(vec![at(8000), at(4096)])), Some(1 << 40), first);
            assert_eq!((found.address, found.list), (8000, (1 << 40) + 8 * wide(first)));
        }
    }
}
