//! The memory of a case's C, and what it holds before a product: NaN, or what it was at first.
//!
//! On a GPU it is made so by the device itself: C may be gigabytes, and is spoilt before every check.

use std::mem::ManuallyDrop;

use cust::context::CurrentContext;
use cust::error::CudaError;
use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer, DeviceSlice};
use lanky::{Matrix, Stream};

use super::data::{filled, narrow};
use crate::error::Fault;
use crate::made_up::{MadeUp, wide};
use crate::real::Real;

/// Every float type's bytes of NaN.
const POISON: u8 = 0xff;

/// A C of its own.
pub struct Target<T> {
    /// Reals.
    len: u64,
    /// What it holds before a product; NaN if nothing.
    source: Option<MadeUp>,
    memory: Memory<T>,
}

enum Memory<T> {
    /// Sent by the host each time.
    Sent(Matrix<T>),
    /// Made by the device; of what C holds at first there is a copy.
    Kept(Block, Option<Matrix<T>>),
}

impl<T: Real> Target<T> {
    /// Of `len` reals, as [`Target::spoil`] leaves it. On a GPU its context is current as long as this is there.
    pub fn new(stream: &Stream, len: u64, source: Option<MadeUp>) -> Result<Self, Fault> {
        let mut target = Self { len, source, memory: Memory::Sent(Matrix::zeros(0, 0)?) };
        target.spoil(stream)?;
        Ok(target)
    }

    /// Makes it NaN or what it was at first, behind all earlier work.
    pub fn spoil(&mut self, stream: &Stream) -> Result<(), Fault> {
        if let Memory::Kept(block, first) = &mut self.memory {
            return block.set(stream, first.as_ref());
        }
        // Freed first: both may not fit.
        self.memory = Memory::Sent(Matrix::zeros(0, 0)?);
        self.memory = if !stream.device().is_cuda() {
            Memory::Sent(self.sent(stream)?)
        } else if self.source.is_none() {
            Memory::Kept(Block::new(stream, self.bytes()?)?.poisoned(stream)?, None)
        } else {
            self.beside_a_copy(stream)?
        };
        Ok(())
    }

    /// A C beside a copy of what it holds at first, where both leave a tenth of the memory free.
    fn beside_a_copy(&self, stream: &Stream) -> Result<Memory<T>, Fault> {
        let (first, bytes) = (self.sent(stream)?, self.bytes()?);
        let (free, total) = stream.device().memory()?;
        if wide(bytes).saturating_add(total / 10) > free {
            return Ok(Memory::Sent(first));
        }
        let mut block = Block::new(stream, bytes)?;
        block.set(stream, Some(&first))?;
        Ok(Memory::Kept(block, Some(first)))
    }

    /// Sent by the host.
    fn sent(&self, stream: &Stream) -> Result<Matrix<T>, Fault> {
        let (source, mut first) = (self.source, 0);
        filled(stream, self.len, &mut |elements: &mut [T]| {
            if let Some(source) = source {
                source.fill(first, elements);
                first += wide(elements.len());
            } else {
                elements.fill(T::nan());
            }
        })
    }

    fn bytes(&self) -> Result<usize, Fault> {
        let [bytes] = narrow([self.len.saturating_mul(T::DTYPE.bytes())])?;
        Ok(bytes)
    }

    /// Where it is.
    pub fn address(&mut self) -> u64 {
        match &mut self.memory {
            Memory::Sent(matrix) => matrix.view_mut().as_raw(),
            Memory::Kept(block, _) => block.0.as_device_ptr().as_raw(),
        }
    }
}

/// Device memory that is freed after the work that uses it.
struct Block(ManuallyDrop<DeviceBuffer<u8>>);

impl Block {
    fn new(stream: &Stream, bytes: usize) -> Result<Self, Fault> {
        // SAFETY: whoever makes one sets every byte before it hands it on.
        let buffer = unsafe { DeviceBuffer::uninitialized(bytes) }.map_err(|error| failed(stream, error))?;
        Ok(Self(ManuallyDrop::new(buffer)))
    }

    fn poisoned(mut self, stream: &Stream) -> Result<Self, Fault> {
        self.set::<f64>(stream, None)?;
        Ok(self)
    }

    /// To the bytes of a matrix of the same length, or to NaN. Behind all earlier work of the context; done when it returns.
    fn set<T: Real>(&mut self, stream: &Stream, first: Option<&Matrix<T>>) -> Result<(), Fault> {
        let done = if let Some(first) = first {
            let start = DevicePointer::<u8>::from_raw(first.view().as_raw());
            // SAFETY: the matrix is device memory of this context, and packed; the copy is done when the borrow ends. One of
            // another length than the block's is refused by the copy.
            let first = unsafe { DeviceSlice::from_raw_parts(start, first.nrows() * first.ncols() * size_of::<T>()) };
            self.0.copy_from(&first)
        } else {
            self.0.set_8(POISON)
        };
        done.map_err(|error| failed(stream, error))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // Memory in use is leaked rather than freed, and the driver takes it back with the context.
        if CurrentContext::synchronize().is_ok() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// In lanky's words where earlier work is at fault, which the stream then says too.
fn failed(stream: &Stream, error: CudaError) -> Fault {
    match stream.synchronize() {
        Ok(()) => Fault::Device(format!("the memory of C: {error}")),
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanky::{Device, MatRef};

    fn held(stream: &Stream, target: &mut Target<f64>) -> Result<Vec<f64>, Fault> {
        let [len] = narrow([target.len])?;
        // SAFETY: the target's own memory, which is there until the download is done.
        let view = unsafe { MatRef::<f64>::from_raw(stream.device(), target.address(), len, 1, 1, len) }?;
        Ok(stream.device().download(stream, view)?.into_vec().unwrap_or_default())
    }

    /// On a GPU, where there is one, what the device makes; on the CPU what the host sends.
    #[test]
    fn it_holds_what_it_should_whatever_was_written() -> Result<(), Fault> {
        let source = MadeUp { seed: 3 << 60 };
        for device in [Device::cpu(), Device::auto()] {
            let stream = device.stream()?;
            device.entered(|| -> Result<(), Fault> {
                let mut first = vec![0.0_f64; 10_001];
                source.fill(0, &mut first);
                let mut read = Target::<f64>::new(&stream, 10_001, Some(source))?;
                assert_eq!(held(&stream, &mut read)?, first);
                match &mut read.memory {
                    Memory::Kept(block, _) => block.set::<f64>(&stream, None)?,
                    Memory::Sent(matrix) => matrix.as_mut_slice().unwrap_or_default().fill(f64::NAN),
                }
                assert!(held(&stream, &mut read)?.iter().all(|x| x.is_nan()));
                read.spoil(&stream)?;
                assert_eq!(held(&stream, &mut read)?, first);
                let mut written = Target::<f64>::new(&stream, 10_001, None)?;
                let found = held(&stream, &mut written)?;
                assert!(found.len() == 10_001 && found.iter().all(|x| x.is_nan()));
                assert_eq!(
                    device.is_cuda(),
                    matches!((read.memory, written.memory), (Memory::Kept(..), Memory::Kept(..)))
                );
                Ok(())
            })??;
        }
        Ok(())
    }
}
