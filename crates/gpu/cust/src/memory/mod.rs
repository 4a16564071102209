//! Memory on the device, and host memory that the device can reach.

mod copy;
mod device;
mod locked;
mod malloc;
mod pointer;
mod slice;

pub use self::copy::{AsyncCopyDestination, CopyDestination};
pub use self::device::DeviceBuffer;
pub use self::locked::LockedBuffer;
pub use self::malloc::{
    cuda_free, cuda_free_async, cuda_free_locked, cuda_malloc, cuda_malloc_async, cuda_malloc_locked,
};
pub use self::pointer::DevicePointer;
pub use self::slice::DeviceSlice;

use crate::error::CudaResult;
use crate::stream::blocking;
use crate::sys::{self, CUdeviceptr};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::num::Wrapping;

/// Types whose values may be copied to and from a device as bytes: numbers, arrays and tuples of them, and what is
/// declared so.
///
/// # Safety
/// A value has no pointers or references into host memory that device code would follow.
pub unsafe trait DeviceCopy: Copy {}

/// Types of which any bytes are a value: numbers, and arrays of them.
///
/// # Safety
/// They are.
pub unsafe trait AnyBits: DeviceCopy {}

/// Stamps the types that are nothing but numbers.
macro_rules! numbers {
    ($($type:ty)*) => {$(
        // SAFETY: a number has no pointers.
        unsafe impl DeviceCopy for $type {}
        // SAFETY: any bits are a number.
        unsafe impl AnyBits for $type {}
    )*};
}

numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: no pointers in any of these.
unsafe impl DeviceCopy for bool {}
// SAFETY: a character has no pointers.
unsafe impl DeviceCopy for char {}
// SAFETY: as `T`.
unsafe impl<T: DeviceCopy> DeviceCopy for Option<T> {}
// SAFETY: as `T`.
unsafe impl<T: DeviceCopy> DeviceCopy for Wrapping<T> {}
// SAFETY: as `T`.
unsafe impl<T: AnyBits> AnyBits for Wrapping<T> {}
// SAFETY: as `T`.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}
// SAFETY: an array has no bytes but those of its elements.
unsafe impl<T: AnyBits, const N: usize> AnyBits for [T; N] {}
// SAFETY: no bytes at all.
unsafe impl<T: DeviceCopy> DeviceCopy for PhantomData<T> {}
// SAFETY: as its parts.
unsafe impl<A: DeviceCopy, B: DeviceCopy> DeviceCopy for (A, B) {}
// SAFETY: as its parts.
unsafe impl<A: DeviceCopy, B: DeviceCopy, C: DeviceCopy> DeviceCopy for (A, B, C) {}
// SAFETY: as its parts.
unsafe impl<A: DeviceCopy, B: DeviceCopy, C: DeviceCopy, D: DeviceCopy> DeviceCopy for (A, B, C, D) {}

/// Something in device memory.
pub trait DeviceMemory {
    /// Where it starts.
    fn as_raw_ptr(&self) -> CUdeviceptr;
    /// How long it is.
    fn size_in_bytes(&self) -> usize;
}

impl<T: DeviceCopy> DeviceMemory for DeviceBuffer<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }
    fn size_in_bytes(&self) -> usize {
        size_of::<T>() * self.len()
    }
}

impl<T: DeviceCopy> DeviceMemory for DeviceSlice<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }
    fn size_in_bytes(&self) -> usize {
        size_of::<T>() * self.len()
    }
}

/// Copies `size` bytes from the host to the device, behind all earlier work of the context, and returns when they are
/// there. `cuMemcpyHtoDAsync` on a stream of its own, `cuStreamSynchronize`.
///
/// # Safety
/// From `src_ptr` on there are `size` bytes to be read, and from `d_ptr` on as many to be written, of the current
/// context, which nothing else uses meanwhile.
///
/// # Errors
/// [Those of the driver](crate#errors), and of earlier work in the context, which is waited for.
pub unsafe fn memcpy_htod(d_ptr: CUdeviceptr, src_ptr: *const c_void, size: usize) -> CudaResult<()> {
    if size == 0 {
        return Ok(());
    }
    // SAFETY: there are `size` bytes on both sides, as the caller promised, until `blocking` returns, which is when the
    // copy is done.
    blocking(|stream| unsafe { sys::cuMemcpyHtoDAsync_v2(d_ptr, src_ptr, size, stream.as_inner()) }.to_result())
}

/// (free, total) bytes of the current context's device. `cuMemGetInfo`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn mem_get_info() -> CudaResult<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are places for an answer.
    unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) }.to_result()?;
    Ok((free, total))
}
