//! Device memory that frees itself on any thread, after the work that uses it.

use crate::driver;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::left::Held;
use crate::shape::narrow;
use cust::context::CurrentContext;
use cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice};
use cust::stream::{Stream, StreamFlags};
use model::launch::reduced::WORK_HEAD_BYTES;
use std::sync::Arc;

/// Bytes on a GPU. Aligned as the driver aligns: to 256 bytes.
pub(crate) struct DeviceMemory {
    /// Work on any stream may still use it: freed when all is done.
    buffer: Held<DeviceBuffer<u64>>,
    bytes: u64,
}

impl DeviceMemory {
    /// Uninitialised memory. The context need not be current.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        gpu.free_left();
        let _current = gpu.enter()?;
        let words = narrow(bytes.div_ceil(8));
        // SAFETY: any bit pattern is a u64, and only device code and copies to and from the host see these.
        let buffer = unsafe { DeviceBuffer::uninitialized(words) }
            .map_err(|error| driver::allocation_failed(error, bytes, || driver::memory().ok()))?;
        Ok(DeviceMemory { buffer: Held::new(gpu, buffer, |_| CurrentContext::synchronize()), bytes })
    }

    /// A workspace of `bytes`, a head of [`WORK_HEAD_BYTES`] among them, in which the tickets are 0.
    pub(crate) fn workspace(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let memory = Self::new(gpu, bytes)?;
        let _current = gpu.enter()?;
        let head = narrow(bytes.min(WORK_HEAD_BYTES.into()));
        // Not by `set_8`, which waits for all work of the GPU and so may not be called while anything is recorded.
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(driver::failed)?;
        // SAFETY: the head lies in the memory, which nothing uses before the stream has been waited for.
        let set = unsafe {
            DeviceSlice::from_raw_parts_mut(DevicePointer::<u8>::from_raw(memory.address()), head)
                .set_8_async(0, &stream)
        };
        if let Err(error) = set.and_then(|()| stream.synchronize()) {
            let error = driver::failed(error);
            // It may have the head to set yet.
            gpu.free_after(Stream::synchronize, stream);
            return Err(error);
        }
        Ok(memory)
    }

    /// Its address; some address, but not 0, if it has no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.as_device_ptr().as_raw()
    }

    /// The GPU's number.
    pub(crate) fn ordinal(&self) -> u32 {
        self.buffer.gpu().ordinal
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
