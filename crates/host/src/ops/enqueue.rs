//! Products on a GPU's stream, planned or not.

use crate::driver;
use crate::error::{Error, Result};
use crate::launch::{self, DeviceOperand, Operands, dimension};
use crate::memory::DeviceMemory;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::stream::CudaStream;
use crate::view::{MatMut, MatRef};
use cust::module::Module;
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
        let module = warm(stream, model::variants::sum_slots(T::DTYPE))?;
        // SAFETY: the context is current; C is memory of this device, as `check` found; no slot is read.
        return unsafe { launch::sum_slots(stream, &module, 0, 0, operands) };
    };
    let module = warm(stream, choice.variant.entry)?;
    let sum = match choice.splits {
        0 | 1 => None,
        _ => Some((warm(stream, model::variants::sum_slots(T::DTYPE))?, slots(stream, choice, T::DTYPE, scratch)?)),
    };
    let sum = sum.as_ref().map(|(module, address)| (&**module, *address));
    // SAFETY: the context is current; `check` found the operands on this device, of agreeing shapes, each inside its
    // memory (the views' constructors), and C overlapping neither A nor B; the choice is of this product; the slots are
    // the stream's (or the plan's for this stream) and as long as it asks.
    unsafe { launch::product(stream, choice, &module, sum, operands) }
}

fn operand(address: u64, shape: &Shape) -> DeviceOperand {
    DeviceOperand { address, strides: shape.strides, conj: shape.conj }
}

/// The module of an entry; loaded now if it never was, except while the stream is recorded into a graph.
fn warm(stream: &CudaStream, entry: &'static str) -> Result<Arc<Module>> {
    if let Some(module) = stream.gpu.loaded(entry) {
        return Ok(module);
    }
    if driver::is_capturing(&stream.raw)? {
        return Err(Error::ColdPlanInCapture { what: format!("kernel {entry} would have to be loaded") });
    }
    stream.gpu.module(entry)
}

/// Memory for the slots; allocated now if there is not enough, except while the stream is recorded into a graph.
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
    Ok(scratch.insert(DeviceMemory::new(&stream.gpu, bytes)?).address())
}

/// Bytes of workspace that a choice asks for.
pub(crate) fn slots_bytes(choice: &Choice, dtype: Dtype) -> u64 {
    choice.slots_len.saturating_mul(dtype.bytes())
}

/// The error for what the model refuses, with every reason.
pub(crate) fn refused(refusals: &Refusals<'_>) -> Error {
    match (refusals.refusal, refusals.force) {
        (Refusal::UnknownVariant, name) => unknown_variant(name.unwrap_or_default()),
        (_, Some(name)) => Error::Unsupported { what: format!("variant {name}: {refusals}") },
        (_, None) => Error::Unsupported { what: format!("on a GPU: {refusals}") },
    }
}

/// The error for a name that is no variant's, with those that are.
pub(crate) fn unknown_variant(name: &str) -> Error {
    let mut known: Vec<&'static str> = VARIANTS.iter().map(|variant| variant.name).collect();
    known.sort_unstable();
    known.dedup();
    Error::UnknownVariant { name: name.to_owned(), known }
}
