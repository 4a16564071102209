//! Contexts: a device's memory, modules and streams as one process sees them.

use crate::CudaApiVersion;
use crate::device::Device;
use crate::error::{CudaResult, DropResult};
use crate::private::Sealed;
use crate::sys::{self, CUcontext, CUdevice};
use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

bitflags::bitflags! {
    /// How a thread waits for the device, and more.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ContextFlags: c_uint {
        /// Waits by asking again and again.
        const SCHED_SPIN = 0x01;
        /// Waits by asking, giving way to other threads in between.
        const SCHED_YIELD = 0x02;
        /// Waits asleep.
        const SCHED_BLOCKING_SYNC = 0x04;
        /// The driver decides how to wait.
        const SCHED_AUTO = 0x00;
        /// Pinned memory may be mapped for the device (always so on current drivers).
        const MAP_HOST = 0x08;
        /// Local memory that a kernel needed is kept for the next.
        const LMEM_RESIZE_TO_MAX = 0x10;
    }
}

/// A limit of a context.
#[repr(u32)]
#[non_exhaustive]
#[derive(Copy, Clone, Debug, Hash, Eq, PartialEq)]
pub enum ResourceLimit {
    /// Bytes of stack a thread.
    StackSize = 0,
    /// Bytes of the buffer for `printf` in kernels.
    PrintfFifoSize = 1,
    /// Bytes of the heap for `malloc` in kernels.
    MallocHeapSize = 2,
    /// Depth to which kernels may wait for those that they launch.
    DeviceRuntimeSynchronizeDepth = 3,
    /// Launches by kernels that may be pending.
    DeviceRuntimePendingLaunchCount = 4,
    /// Bytes that the L2 cache fetches at once, as a hint.
    MaxL2FetchGranularity = 5,
}

impl ResourceLimit {
    fn raw(self) -> c_int {
        match self {
            ResourceLimit::StackSize => 0,
            ResourceLimit::PrintfFifoSize => 1,
            ResourceLimit::MallocHeapSize => 2,
            ResourceLimit::DeviceRuntimeSynchronizeDepth => 3,
            ResourceLimit::DeviceRuntimePendingLaunchCount => 4,
            ResourceLimit::MaxL2FetchGranularity => 5,
        }
    }
}

/// Something that stands for a context.
pub trait ContextHandle: Sealed {
    /// The driver's handle.
    fn get_inner(&self) -> CUcontext;
}

/// A device's primary context, the one that CUDA's runtime and every library on it use, retained until this and all
/// that was made in it are dropped.
#[derive(Clone, Debug)]
pub struct Context {
    primary: Arc<Primary>,
}

/// One retention of a primary context.
#[derive(Debug)]
pub(crate) struct Primary {
    inner: CUcontext,
    device: CUdevice,
}

// SAFETY: the driver lets any thread use and release a context.
unsafe impl Send for Primary {}
// SAFETY: a shared Primary only gives its handle; the driver locks a context for itself.
unsafe impl Sync for Primary {}

/// The retentions that exist, by the address of their context. [`Primary::retained`] finds here whom a resource keeps
/// alive.
static RETAINED: Mutex<Vec<(usize, Weak<Primary>)>> = Mutex::new(Vec::new());

impl Primary {
    fn retain(device: Device) -> CudaResult<Arc<Primary>> {
        let mut inner = ptr::null_mut();
        // SAFETY: `inner` is a place for the answer.
        unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut inner, device.as_raw()) }.to_result()?;
        let primary = Arc::new(Primary { inner, device: device.as_raw() });
        let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
        retained.retain(|(_, other)| other.strong_count() > 0);
        retained.push((inner.addr(), Arc::downgrade(&primary)));
        Ok(primary)
    }

    /// A retention of `context`, if it is a primary context that is retained here.
    pub(crate) fn retained(context: CUcontext) -> Option<Arc<Primary>> {
        let retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
        retained.iter().filter(|(inner, _)| *inner == context.addr()).find_map(|(_, primary)| primary.upgrade())
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        // SAFETY: this is the release that belongs to the one retention in `retain`.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

impl Context {
    /// Retains the device's primary context and makes it current on this thread. `cuDevicePrimaryCtxRetain`,
    /// `cuCtxSetCurrent`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors): no memory for the context, a device that another process holds.
    pub fn new(device: Device) -> CudaResult<Self> {
        let context = Context { primary: Primary::retain(device)? };
        CurrentContext::set_current(&context)?;
        Ok(context)
    }

    /// Destroys what is in the device's primary context. `cuDevicePrimaryCtxReset`.
    ///
    /// # Safety
    /// Nothing in this process uses anything of that context afterwards.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub unsafe fn reset(device: &Device) -> CudaResult<()> {
        // SAFETY: the device is one of the driver's (`Device`); nothing uses what is in the context afterwards, as the
        // caller promised.
        unsafe { sys::cuDevicePrimaryCtxReset_v2(device.as_raw()) }.to_result()
    }

    /// Sets the context's flags. `cuDevicePrimaryCtxSetFlags`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn set_flags(&self, flags: ContextFlags) -> CudaResult<()> {
        // SAFETY: no pointers.
        unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(self.primary.device, flags.bits()) }.to_result()
    }

    /// The driver's handle.
    pub fn as_raw(&self) -> CUcontext {
        self.primary.inner
    }

    /// The version of the driver's interface that the context was made with. `cuCtxGetApiVersion`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn get_api_version(&self) -> CudaResult<CudaApiVersion> {
        let mut version = 0;
        // SAFETY: the context is retained; `version` is a place for the answer.
        unsafe { sys::cuCtxGetApiVersion(self.as_raw(), &raw mut version) }.to_result()?;
        Ok(CudaApiVersion { version: i32::try_from(version).unwrap_or(0) })
    }

    /// Drops the context. What was made in it, and clones, keep it alive until they are dropped.
    /// `cuDevicePrimaryCtxRelease`.
    ///
    /// # Errors
    /// None: a release that fails is as good as one that does not.
    pub fn drop(ctx: Context) -> DropResult<Context> {
        std::mem::drop(ctx);
        Ok(())
    }
}

impl Sealed for Context {}

impl ContextHandle for Context {
    fn get_inner(&self) -> CUcontext {
        self.as_raw()
    }
}

/// This thread's current context.
#[derive(Debug)]
pub struct CurrentContext;

impl CurrentContext {
    /// Its device. `cuCtxGetDevice`.
    ///
    /// # Errors
    /// [`InvalidContext`](crate::error::CudaError::InvalidContext) if there is none, and [those of the
    /// driver](crate#errors).
    pub fn get_device() -> CudaResult<Device> {
        let mut device = 0;
        // SAFETY: `device` is a place for the answer.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.to_result()?;
        Ok(Device { device })
    }

    /// Its flags. `cuCtxGetFlags`.
    ///
    /// # Errors
    /// As [`CurrentContext::get_device`].
    pub fn get_flags() -> CudaResult<ContextFlags> {
        let mut flags = 0;
        // SAFETY: `flags` is a place for the answer.
        unsafe { sys::cuCtxGetFlags(&raw mut flags) }.to_result()?;
        Ok(ContextFlags::from_bits_truncate(flags))
    }

    /// One of its limits. `cuCtxGetLimit`.
    ///
    /// # Errors
    /// As [`CurrentContext::get_device`].
    pub fn get_resource_limit(resource: ResourceLimit) -> CudaResult<usize> {
        let mut limit = 0;
        // SAFETY: `limit` is a place for the answer.
        unsafe { sys::cuCtxGetLimit(&raw mut limit, resource.raw()) }.to_result()?;
        Ok(limit)
    }

    /// Asks for another limit; the driver may round it. `cuCtxSetLimit`.
    ///
    /// # Errors
    /// As [`CurrentContext::get_device`].
    pub fn set_resource_limit(resource: ResourceLimit, limit: usize) -> CudaResult<()> {
        // SAFETY: no pointers.
        unsafe { sys::cuCtxSetLimit(resource.raw(), limit) }.to_result()
    }

    /// Makes a context current on this thread, in place of the one that is. [`crate::extra::enter`] puts that one back.
    /// `cuCtxSetCurrent`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn set_current<C: ContextHandle>(c: &C) -> CudaResult<()> {
        // SAFETY: `c` keeps the context alive during the call.
        unsafe { sys::cuCtxSetCurrent(c.get_inner()) }.to_result()
    }

    /// Waits until all work in the context is done. `cuCtxSynchronize`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), and those of any of that work.
    pub fn synchronize() -> CudaResult<()> {
        // SAFETY: no arguments.
        unsafe { sys::cuCtxSynchronize() }.to_result()
    }
}
