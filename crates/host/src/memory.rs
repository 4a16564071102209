//! Device memory that frees itself on any thread, after the work that uses it.

use crate::driver;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::shape::narrow;
use cust::context::CurrentContext;
use cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice};
use model::launch::reduced::WORK_HEAD_BYTES;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Bytes on a GPU. Aligned as the driver aligns: to 256 bytes.
pub(crate) struct DeviceMemory {
    gpu: Arc<Gpu>,
    buffer: ManuallyDrop<DeviceBuffer<u64>>,
    bytes: u64,
}

impl DeviceMemory {
    /// Uninitialised memory. The context need not be current.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let _current = gpu.enter()?;
        let words = narrow(bytes.div_ceil(8));
        // SAFETY: any bit pattern is a u64, and only device code and copies to and from the host see these.
        let buffer = unsafe { DeviceBuffer::uninitialized(words) }
            .map_err(|error| driver::allocation_failed(error, bytes, driver::memory().ok()))?;
        Ok(DeviceMemory { gpu: Arc::clone(gpu), buffer: ManuallyDrop::new(buffer), bytes })
    }

    /// A workspace of `bytes`, a head of [`WORK_HEAD_BYTES`] among them, in which the ticket is 0.
    pub(crate) fn workspace(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let memory = Self::new(gpu, bytes)?;
        let _current = gpu.enter()?;
        let head = narrow(bytes.min(WORK_HEAD_BYTES.into()));
        // SAFETY: the head lies in the memory, which nothing uses yet; the call waits.
        unsafe { DeviceSlice::from_raw_parts_mut(DevicePointer::<u8>::from_raw(memory.address()), head) }
            .set_8(0)
            .map_err(driver::failed)?;
        Ok(memory)
    }

    /// Its address; some address, but not 0, if it has no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.as_device_ptr().as_raw()
    }

    /// The GPU's number.
    pub(crate) fn ordinal(&self) -> u32 {
        self.gpu.ordinal
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // Work on any stream may still use it, so it is freed after that; where waiting is impossible (a lost context,
        // a forked process) it is left to the driver: to free memory in use is worse than to leak it.
        let Ok(_current) = self.gpu.enter() else { return };
        if CurrentContext::synchronize().map_err(driver::failed).is_ok() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}
