//! Products on a GPU's stream, planned or not.

use crate::driver;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::launch::{self, DeviceOperand, Operands, dimension};
use crate::memory::DeviceMemory;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::stream::CudaStream;
use crate::view::{MatMut, MatRef};
use model::launch::reduced::{Finish, Triangle, WORK_HEAD_BYTES};
use model::variants::batched::BATCHED;
use model::{Choice, Dtype, Refusal, Refusals, VARIANTS};
use std::sync::Arc;

/// Gives C ← α A B + β C to the stream; without a choice C ← β C. The operands were checked ([`super::gemm::check`]), C is
/// not empty. `scratch` grows as the product's slots ask for it.
#[expect(clippy::too_many_arguments, reason = "a product has six, whatever they are packed into")]
pub(crate) fn enqueue<T: Scalar>(
    stream: &CudaStream,
    choice: Option<&Choice>,
    scratch: &mut Option<DeviceMemory>,
    alpha: T,
    a: &MatRef<'_, T>,
    b: &MatRef<'_, T>,
    beta: T,
    c: &mut MatMut<'_, T>,
    triangle: Option<Triangle>,
) -> Result<()> {
    let operands = Operands {
        m: dimension("m", a.nrows())?,
        n: dimension("n", b.ncols())?,
        k: dimension("k", a.ncols())?,
        alpha,
        a: operand(a.extent().0, &a.shape()),
        b: operand(b.extent().0, &b.shape()),
        beta,
        c: operand(c.extent().0, &c.shape()),
    };
    let _current = stream.gpu.enter()?;
    let Some(choice) = choice else {
        if triangle.is_some() {
            let kernel = warm(stream, model::variants::reduce_slots(T::DTYPE))?;
            // SAFETY: the context is current; C is memory of this device, as `check` found; no slot is read.
            return unsafe { launch::reduce_slots(stream, &kernel, 0, 0, operands, triangle) };
        }
        let kernel = warm(stream, model::variants::sum_slots(T::DTYPE))?;
        // SAFETY: the context is current; C is memory of this device, as `check` found; no slot is read.
        return unsafe { launch::sum_slots(stream, &kernel, 0, 0, operands) };
    };
    let kernel = warm(stream, choice.variant.entry)?;
    if choice.variant.is_reduced() {
        return reduced(stream, choice, &kernel, scratch, operands, triangle.unwrap_or_default());
    }
    debug_assert!(triangle.is_none_or(|triangle| triangle == Triangle::Full), "what is asked for here is all of C");
    let adds = match choice.finish {
        Finish::SecondLaunch => Some(warm(stream, model::variants::sum_slots(T::DTYPE))?),
        Finish::Direct | Finish::LastBlock => None,
    };
    let work = if choice.slots_len > 0 { slots(stream, choice, T::DTYPE, scratch)? } else { 0 };
    // SAFETY: the context is current; `check` found the operands on this device, of agreeing shapes, each inside its
    // memory (the views' constructors), and C overlapping neither A nor B; the choice is of this product; the slots are
    // the stream's (or the plan's for this stream) and as long as it asks; its tickets are 0 from its making on, and after every launch that draws.
    unsafe { launch::product(stream, choice, &kernel, (work, adds.as_deref()), operands) }
}

/// The same by an entry of two tall matrices. Atomics add to C, which is scaled first.
fn reduced<T: Scalar>(
    stream: &CudaStream,
    choice: &Choice,
    kernel: &Kernel,
    scratch: &mut Option<DeviceMemory>,
    operands: Operands<T>,
    triangle: Triangle,
) -> Result<()> {
    let work = if choice.slots_len > 0 { slots(stream, choice, T::DTYPE, scratch)? } else { 0 };
    let adds = match choice.finish {
        Finish::SecondLaunch if choice.slots_len > 0 => Some(warm(stream, model::variants::reduce_slots(T::DTYPE))?),
        _ => None,
    };
    if choice.variant.adds_atomically() && operands.beta != T::one() {
        let scales = warm(stream, model::variants::sum_slots(T::DTYPE))?;
        // SAFETY: the context is current; C is memory of this device, as `check` found; no slot is read.
        unsafe { launch::sum_slots(stream, &scales, 0, 0, operands) }?;
    }
    // SAFETY: the context is current; `check` found the operands, as in `enqueue`; the workspace is the stream's (or
    // the plan's for it) and as long as the choice asks; its ticket is 0 from its making on, and after every launch
    // that draws.
    unsafe { launch::reduced(stream, choice, kernel, (work, adds.as_deref()), operands, triangle) }
}

fn operand(address: u64, shape: &Shape) -> DeviceOperand {
    DeviceOperand { address, strides: shape.strides, conj: shape.conj }
}

/// An entry's kernel; loaded now if it never was, except while the stream is recorded into a graph.
pub(crate) fn warm(stream: &CudaStream, entry: &'static str) -> Result<Arc<Kernel>> {
    if let Some(kernel) = stream.gpu.loaded(entry) {
        return Ok(kernel);
    }
    if driver::is_capturing(&stream.raw)? {
        return Err(Error::ColdPlanInCapture { what: format!("kernel {entry} would have to be loaded") });
    }
    stream.gpu.kernel(entry)
}

/// A workspace with its head and the slots; allocated now if there is not enough, except while the stream is recorded into a graph.
fn slots(stream: &CudaStream, choice: &Choice, dtype: Dtype, scratch: &mut Option<DeviceMemory>) -> Result<u64> {
    let bytes = slots_bytes(choice, dtype);
    if let Some(memory) = scratch.as_ref().filter(|memory| memory.bytes() >= bytes) {
        return Ok(memory.address());
    }
    if driver::is_capturing(&stream.raw)? {
        return Err(Error::ColdPlanInCapture {
            what: format!("a workspace of {bytes} bytes would have to be allocated"),
        });
    }
    // The old one is freed first, behind the work that uses it, so that both are never needed at once.
    *scratch = None;
    Ok(scratch.insert(DeviceMemory::workspace(&stream.gpu, bytes)?).address())
}

/// Bytes of workspace that a choice with slots asks for: the head, and the slots.
pub(crate) fn slots_bytes(choice: &Choice, dtype: Dtype) -> u64 {
    choice.slots_len.saturating_mul(dtype.bytes()).saturating_add(WORK_HEAD_BYTES.into())
}

/// Whether a choice of two tall matrices has its slots added by a launch of its own.
pub(crate) fn reduces_in_a_launch(choice: &Choice) -> bool {
    choice.variant.is_reduced() && choice.finish == Finish::SecondLaunch && choice.slots_len > 0
}

/// The error for what the model refuses, with every reason.
pub(crate) fn refused(refusals: &Refusals<'_>) -> Error {
    match (refusals.refusal, refusals.force) {
        (Refusal::UnknownVariant, name) => unknown_variant(name.unwrap_or_default()),
        (_, Some(name)) => Error::Unsupported { what: format!("variant {name}: {refusals}") },
        (_, None) => Error::Unsupported { what: format!("on a GPU: {refusals}") },
    }
}

/// The error for a name that is no variant's of products, with those that are.
pub(crate) fn unknown_variant(name: &str) -> Error {
    unknown(name, VARIANTS.iter().map(|variant| variant.name))
}

/// The same of batches.
pub(crate) fn unknown_of_batches(name: &str) -> Error {
    unknown(name, BATCHED.iter().map(|variant| variant.name))
}

fn unknown(name: &str, known: impl Iterator<Item = &'static str>) -> Error {
    let mut known: Vec<&'static str> = known.collect();
    known.sort_unstable();
    known.dedup();
    Error::UnknownVariant { name: name.to_owned(), known }
}
