//! Allocating and freeing, without owners. Sizes are checked: nothing of zero bytes, nothing that overflows.

use super::{DeviceCopy, DevicePointer};
use crate::error::{CudaError, CudaResult, refuse};
use crate::stream::{Stream, bytes_of};
use crate::sys;
use std::ptr;

/// Bytes of `count` elements: not none, and not more than can exist.
fn some_bytes_of<T>(function: &'static str, count: usize) -> CudaResult<usize> {
    match bytes_of::<T>(function, count)? {
        0 => Err(refuse(function, CudaError::InvalidMemoryAllocation, "no bytes were asked for")),
        bytes => Ok(bytes),
    }
}

/// Memory for `count` elements in the current context, aligned to 256 bytes. `cuMemAlloc`.
///
/// # Safety
/// It is not read before it is written, nor used after it is freed.
///
/// # Errors
/// [`InvalidMemoryAllocation`](CudaError::InvalidMemoryAllocation) for no bytes, or more than can exist;
/// [`OutOfMemory`](CudaError::OutOfMemory); [those of the driver](crate#errors).
pub unsafe fn cuda_malloc<T: DeviceCopy>(count: usize) -> CudaResult<DevicePointer<T>> {
    let bytes = some_bytes_of::<T>("cuMemAlloc", count)?;
    let mut address = 0;
    // SAFETY: `address` is a place for the answer.
    unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes) }.to_result()?;
    Ok(DevicePointer::from_raw(address))
}

/// As [`cuda_malloc`], in the stream's order. `cuMemAllocAsync`.
///
/// # Safety
/// As [`cuda_malloc`]; other streams use it only behind this stream's work so far.
///
/// # Errors
/// As [`cuda_malloc`].
pub unsafe fn cuda_malloc_async<T: DeviceCopy>(stream: &Stream, count: usize) -> CudaResult<DevicePointer<T>> {
    let bytes = some_bytes_of::<T>("cuMemAllocAsync", count)?;
    let mut address = 0;
    // SAFETY: `address` is a place for the answer; the stream is alive.
    unsafe { sys::cuMemAllocAsync(&raw mut address, bytes, stream.as_inner()) }.to_result()?;
    Ok(DevicePointer::from_raw(address))
}

/// Frees memory when the stream's work so far is done. `cuMemFreeAsync`.
///
/// # Safety
/// `p` was allocated here and was not freed; nothing uses it but that work.
///
/// # Errors
/// [`InvalidMemoryAllocation`](CudaError::InvalidMemoryAllocation) for null; [those of the driver](crate#errors).
pub unsafe fn cuda_free_async<T: DeviceCopy>(stream: &Stream, p: DevicePointer<T>) -> CudaResult<()> {
    if p.is_null() {
        return Err(refuse("cuMemFreeAsync", CudaError::InvalidMemoryAllocation, "null was to be freed"));
    }
    // SAFETY: `p` is memory of the driver's that was not freed, and only the stream's work so far uses it, as the
    // caller promised.
    unsafe { sys::cuMemFreeAsync(p.as_raw(), stream.as_inner()) }.to_result()
}

/// Frees memory. `cuMemFree`.
///
/// # Safety
/// `ptr` was allocated here, in the current context, and was not freed; nothing uses it.
///
/// # Errors
/// [`InvalidMemoryAllocation`](CudaError::InvalidMemoryAllocation) for null; [those of the driver](crate#errors).
pub unsafe fn cuda_free<T: DeviceCopy>(ptr: DevicePointer<T>) -> CudaResult<()> {
    if ptr.is_null() {
        return Err(refuse("cuMemFree", CudaError::InvalidMemoryAllocation, "null was to be freed"));
    }
    // SAFETY: `ptr` is memory of the current context that was not freed and that nothing uses, as the caller promised.
    unsafe { sys::cuMemFree_v2(ptr.as_raw()) }.to_result()
}

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for every context, so that a process with several GPUs copies at full speed.
const PORTABLE: u32 = 1;

/// Pinned host memory for `count` elements, for every context of the process. `cuMemHostAlloc`.
///
/// # Safety
/// It is not read before it is written, nor used after it is freed.
///
/// # Errors
/// As [`cuda_malloc`].
pub unsafe fn cuda_malloc_locked<T>(count: usize) -> CudaResult<*mut T> {
    let bytes = some_bytes_of::<T>("cuMemHostAlloc", count)?;
    let mut address = ptr::null_mut();
    // SAFETY: `address` is a place for the answer.
    unsafe { sys::cuMemHostAlloc(&raw mut address, bytes, PORTABLE) }.to_result()?;
    Ok(address.cast())
}

/// Frees pinned host memory. `cuMemFreeHost`.
///
/// # Safety
/// `ptr` was allocated by [`cuda_malloc_locked`] and was not freed; nothing uses it, copies under way included.
///
/// # Errors
/// [`InvalidMemoryAllocation`](CudaError::InvalidMemoryAllocation) for null; [those of the driver](crate#errors).
pub unsafe fn cuda_free_locked<T>(ptr: *mut T) -> CudaResult<()> {
    if ptr.is_null() {
        return Err(refuse("cuMemFreeHost", CudaError::InvalidMemoryAllocation, "null was to be freed"));
    }
    // SAFETY: `ptr` is pinned memory that was not freed and that nothing uses, as the caller promised.
    unsafe { sys::cuMemFreeHost(ptr.cast()) }.to_result()
}
