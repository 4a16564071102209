//! The CUDA driver API under the names of rust-cuda's `cust`, for machines without a CUDA toolkit.
//!
//! The published `cust` 0.3.2 cannot be built where there is no toolkit, and a program linked to it does not start
//! where there is no driver. This crate needs neither: it builds anywhere and opens the library (`libcuda.so.1`,
//! `nvcuda.dll`) when it is first called. Where there is none, calls give an error; nothing panics.
//!
//! Names and signatures are those of the published crate, for the part that a host of kernels needs, so that code can
//! use either. What only this crate has is in [`extra`].
//!
//! # What is different
//!
//! | | `cust` 0.3.2 | here |
//! |---|---|---|
//! | to build | a toolkit's folder | nothing |
//! | to start | `libcuda.so.1` | nothing; [`extra::load`] says what is missing |
//! | a function that the driver lacks | the program does not start | that one call gives an error |
//! | `Display` of an error | asks the driver | our own table |
//! | codes unknown to the crate | lost | `UnknownError`; [`extra::last_failure`] has code, name, text and function |
//! | why PTX did not compile | lost | the compiler's log, in the same place |
//! | dropped on a thread without the context | leaks | freed: each thing knows its context, and keeps it alive |
//! | blocking copies | on the null stream, for which non-blocking streams do not wait | on a stream of their own, after all earlier work |
//! | `StreamFlags::NON_BLOCKING` | ignored | heeded |
//! | copies of unequal lengths, zero bytes in names | panic | an error |
//! | a `DeviceSlice` | `Copy`; may outlive its buffer, be freed twice | not `Copy`; a `DeviceBuffer` is borrowed as one to be read alone, and copies and sets itself |
//! | buffers of no elements | null, and an error in places | not null; copies, sets and drops do nothing |
//! | a clone of a context | may panic | shares the retention |
//!
//! `zeroed` and `set_8` ask for [`extra::AnyBits`] where the published crate asks for traits of `bytemuck`.
//!
//! Each page names the driver's function behind it, where NVIDIA's documentation says more. Lengths count elements unless a
//! name or page says bytes. Nothing panics.
//!
//! # Errors
//! Beside what its page names, a call that reaches the driver gives "those of the driver":
//!
//! | error | when |
//! |---|---|
//! | [`SharedObjectInitFailed`](error::CudaError::SharedObjectInitFailed) | there is no driver library |
//! | [`SharedObjectSymbolNotFound`](error::CudaError::SharedObjectSymbolNotFound) | the driver is too old to have the function |
//! | [`NotInitialized`](error::CudaError::NotInitialized) | [`init`] was not called |
//! | [`InvalidContext`](error::CudaError::InvalidContext) | no context is current on this thread |
//! | any other | the driver says so; also of earlier asynchronous work in the context |
//!
//! [`extra::last_failure`] has the function, the code, its name and a text of this thread's last one.
//!
//! # Example
//!
//! ```no_run
//! use lanky_cust::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ptx = std::fs::read_to_string("axpy.ptx")?; // axpy(n: u32, a: f32, x: *const f32, y: *mut f32)
//! lanky_cust::init(CudaFlags::empty())?;
//! let _context = Context::new(Device::get_device(0)?)?;
//! let module = Module::from_ptx(ptx, &[])?;
//! let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
//!
//! let x = DeviceBuffer::from_slice(&[1.0_f32; 1000])?;
//! let y = DeviceBuffer::from_slice(&[2.0_f32; 1000])?;
//! // SAFETY: these are the kernel's parameters, and both buffers have 1000 elements and outlive the kernel, as the module does.
//! unsafe {
//!     launch!(module.axpy<<<4, 256, 0, stream>>>(1000_u32, 3.0_f32, x.as_device_ptr(), y.as_device_ptr()))?;
//! }
//! stream.synchronize()?;
//! assert_eq!(y.as_host_vec()?, [5.0; 1000]);
//! # Ok(())
//! # }
//! ```

mod codes;
pub mod context;
pub mod device;
pub mod error;
pub mod event;
pub mod extra;
#[cfg(test)]
mod fake;
pub mod function;
mod library;
pub mod memory;
pub mod module;
mod owner;
pub mod prelude;
pub mod stream;
pub mod sys;
#[cfg(test)]
mod tests;

use crate::context::{Context, ContextFlags};
use crate::device::Device;
use crate::error::CudaResult;
use std::ffi::c_uint;

bitflags::bitflags! {
    /// How to initialise the driver; there is nothing to choose.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CudaFlags: c_uint {}
}

/// Opens and initialises the driver. All but [`extra::load`] and the driver's version needs this; again is fine.
/// `cuInit`.
///
/// # Errors
/// [`SharedObjectInitFailed`](error::CudaError::SharedObjectInitFailed) if there is no driver library;
/// [`NoDevice`](error::CudaError::NoDevice); others [of the driver](crate#errors).
pub fn init(flags: CudaFlags) -> CudaResult<()> {
    // SAFETY: no pointers.
    unsafe { sys::cuInit(flags.bits()) }.to_result()
}

/// Initialises the driver and makes the primary context of device 0 current, for small programs.
///
/// # Errors
/// Those of [`init`], [`Device::get_device`], [`Context::new`] and [`Context::set_flags`].
#[must_use = "dropped, the context is gone"]
pub fn quick_init() -> CudaResult<Context> {
    init(CudaFlags::empty())?;
    let context = Context::new(Device::get_device(0)?)?;
    context.set_flags(ContextFlags::SCHED_AUTO)?;
    Ok(context)
}

/// A version of CUDA.
#[derive(Debug, Hash, Eq, PartialEq, Ord, PartialOrd, Copy, Clone)]
pub struct CudaApiVersion {
    version: i32,
}

impl CudaApiVersion {
    /// The newest that the driver serves. `cuDriverGetVersion`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn get() -> CudaResult<CudaApiVersion> {
        extra::driver_version().map(|version| CudaApiVersion { version })
    }

    /// The 12 of 12.4.
    #[inline]
    pub fn major(self) -> i32 {
        self.version / 1000
    }

    /// The 4 of 12.4.
    #[inline]
    pub fn minor(self) -> i32 {
        (self.version % 1000) / 10
    }
}

/// Keeps others from implementing a trait.
mod private {
    pub trait Sealed {}
}
