//! Streams: work in order.

use crate::device::{Device, Kind};
use crate::driver;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, lock};
use crate::memory::DeviceMemory;
use crate::transfer::Ring;
use cust::event::{Event, EventFlags};
use cust::stream::{Stream as Raw, StreamFlags};
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Work of one device, done in the order in which it was given.
///
/// On a GPU calls return before their work is done, and nothing orders two streams but what callers do about it
/// ([`Stream::synchronize`], or events of their own on [`Stream::as_raw`]). On the CPU work is done when a call returns.
///
/// With LANKY_SYNC=1 in the environment every kernel is waited for, so that a fault is reported with its name.
pub struct Stream {
    device: Device,
    queue: Queue,
}

pub(crate) enum Queue {
    Cpu,
    Cuda(CudaStream),
}

/// A GPU's stream, the pinned memory of its transfers and the workspace of its plan-less products.
pub(crate) struct CudaStream {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) raw: ManuallyDrop<Raw>,
    owned: bool,
    /// Taken out while a transfer runs, so that one started inside a caller's function finds none and makes its own.
    pub(crate) ring: Mutex<Option<Ring>>,
    pub(crate) scratch: Mutex<Option<DeviceMemory>>,
}

impl Stream {
    /// Somebody else's stream of this device: used in place, neither synchronised nor destroyed by the result. On the
    /// CPU, where streams are nothing, `raw` is not looked at.
    ///
    /// # Safety
    /// `raw` is a CUstream of the device's primary context that outlives the result and all work given to it.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Stream {
        let queue = match device.kind() {
            // Of no device: whatever it is given to looks at the device first, and fails with its reason.
            Kind::Cpu | Kind::Refused(_) => Queue::Cpu,
            Kind::Cuda(gpu) => {
                // SAFETY: the caller promises that the stream outlives this.
                let raw = unsafe { driver::borrow_stream(raw) };
                Queue::Cuda(CudaStream::new(gpu, raw, false))
            }
        };
        Stream { device: device.clone(), queue }
    }

    pub(crate) fn new(device: &Device) -> Result<Stream> {
        let queue = match device.kind() {
            Kind::Cpu => Queue::Cpu,
            Kind::Refused(error) => return Err(Error::clone(error)),
            Kind::Cuda(gpu) => {
                let _current = gpu.enter()?;
                let raw = Raw::new(StreamFlags::NON_BLOCKING, None).map_err(driver::failed)?;
                Queue::Cuda(CudaStream::new(gpu, ManuallyDrop::new(raw), true))
            }
        };
        Ok(Stream { device: device.clone(), queue })
    }

    /// The device that does the work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The CUstream; `None` on the CPU.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        match &self.queue {
            Queue::Cpu => None,
            Queue::Cuda(stream) => Some(stream.raw.as_inner().cast()),
        }
    }

    /// Waits until all work given to the stream is done.
    ///
    /// # Errors
    /// [`Error::Driver`] or [`Error::ContextLost`] if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.queue {
            Queue::Cpu => Ok(()),
            Queue::Cuda(stream) => stream.synchronize(),
        }
    }

    /// Seconds that the work given to this stream by `work` took: between two events on a GPU, by the clock on the CPU.
    /// Waits for its end.
    ///
    /// # Errors
    /// Those of `work`, and [`Error::Driver`] or [`Error::ContextLost`].
    pub fn timed(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let stream = match &self.queue {
            Queue::Cpu => {
                let start = Instant::now();
                work()?;
                return Ok(start.elapsed().as_secs_f64());
            }
            Queue::Cuda(stream) => stream,
        };
        let _current = stream.gpu.enter()?;
        let start = Event::new(EventFlags::DEFAULT).map_err(driver::failed)?;
        let end = Event::new(EventFlags::DEFAULT).map_err(driver::failed)?;
        start.record(&stream.raw).map_err(driver::failed)?;
        work()?;
        end.record(&stream.raw).map_err(driver::failed)?;
        end.synchronize().map_err(driver::failed)?;
        let milliseconds = end.elapsed_time_f32(&start).map_err(driver::failed)?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {:?})", self.device, self.as_raw())
    }
}

impl CudaStream {
    fn new(gpu: &Arc<Gpu>, raw: ManuallyDrop<Raw>, owned: bool) -> Self {
        CudaStream { gpu: Arc::clone(gpu), raw, owned, ring: Mutex::default(), scratch: Mutex::default() }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.gpu.enter()?;
        self.raw.synchronize().map_err(driver::failed)
    }

    /// What tells this stream from the others of its context.
    pub(crate) fn key(&self) -> usize {
        self.raw.as_inner().addr()
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        // Each waits for the work that uses it.
        drop(lock(&self.ring).take());
        drop(lock(&self.scratch).take());
        if !self.owned {
            return;
        }
        let Ok(_current) = self.gpu.enter() else { return };
        // A plan's workspace of this stream may serve a later stream at the same address: not before this one is idle.
        if self.raw.synchronize().map_err(driver::failed).is_ok() {
            // SAFETY: dropped once, here, and not used afterwards; a borrowed stream is left to its owner.
            unsafe { ManuallyDrop::drop(&mut self.raw) };
        }
    }
}
