//! Copies between host and device.
//!
//! Every one is an asynchronous copy on a stream that is not the null stream. Those that block use a stream of their
//! own and wait for it, behind all earlier work of the context.

use super::{DeviceBuffer, DeviceCopy, DeviceSlice};
use crate::error::{CudaError, CudaResult, refuse};
use crate::private::Sealed;
use crate::stream::{Stream, blocking};
use crate::sys;

/// Device memory that copies, and waits until the copy is done. Lengths must be equal. From and to the host (`&[T]`) and
/// device memory.
///
/// Cost: waits for all earlier work of the context (`cuCtxSynchronize`), then makes a stream, copies on it, waits for
/// it and destroys it. No elements cost nothing.
pub trait CopyDestination<O: ?Sized>: Sealed {
    /// Overwrites this with `source`.
    ///
    /// # Errors
    /// [`InvalidValue`](CudaError::InvalidValue) if the lengths differ; [those of the driver](crate#errors) and of
    /// earlier work.
    fn copy_from(&mut self, source: &O) -> CudaResult<()>;

    /// Overwrites `dest` with this.
    ///
    /// # Errors
    /// As [`CopyDestination::copy_from`].
    fn copy_to(&self, dest: &mut O) -> CudaResult<()>;
}

/// Device memory that copies in a stream's order: `cuMemcpyHtoDAsync`, `cuMemcpyDtoHAsync` or `cuMemcpyDtoDAsync`. Lengths
/// must be equal. With memory of the host that is not pinned a call may return only when the copy is done.
pub trait AsyncCopyDestination<O: ?Sized>: Sealed {
    /// Overwrites this with `source`.
    ///
    /// # Safety
    /// Until the stream's work so far is done, `source` is neither changed nor freed (a host one is best pinned), and
    /// this is used by nothing but that work.
    ///
    /// # Errors
    /// As [`CopyDestination::copy_from`].
    unsafe fn async_copy_from(&mut self, source: &O, stream: &Stream) -> CudaResult<()>;

    /// Overwrites `dest` with this.
    ///
    /// # Safety
    /// Until the stream's work so far is done, `dest` is neither used nor freed, and this not changed by other work.
    ///
    /// # Errors
    /// As [`CopyDestination::copy_from`].
    unsafe fn async_copy_to(&self, dest: &mut O, stream: &Stream) -> CudaResult<()>;
}

fn same_len(function: &'static str, this: usize, other: usize) -> CudaResult<()> {
    if this == other {
        return Ok(());
    }
    let text = format!("a copy between {this} elements on the device and {other} elsewhere");
    Err(refuse(function, CudaError::InvalidValue, text))
}

impl<T: DeviceCopy> Sealed for DeviceSlice<T> {}

impl<T: DeviceCopy, I: AsRef<[T]> + AsMut<[T]> + ?Sized> AsyncCopyDestination<I> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &I, stream: &Stream) -> CudaResult<()> {
        let source = source.as_ref();
        same_len("cuMemcpyHtoDAsync", self.len(), source.len())?;
        let (to, bytes) = (self.as_device_ptr().as_raw(), size_of_val(source));
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both sides have `bytes` bytes (`same_len`), and stay until the copy is done, as
        // `AsyncCopyDestination` asks.
        unsafe { sys::cuMemcpyHtoDAsync_v2(to, source.as_ptr().cast(), bytes, stream.as_inner()) }.to_result()
    }

    unsafe fn async_copy_to(&self, dest: &mut I, stream: &Stream) -> CudaResult<()> {
        let dest = dest.as_mut();
        same_len("cuMemcpyDtoHAsync", self.len(), dest.len())?;
        let (from, bytes) = (self.as_device_ptr().as_raw(), size_of_val(dest));
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both sides have `bytes` bytes (`same_len`), and stay until the copy is done, as
        // `AsyncCopyDestination` asks.
        unsafe { sys::cuMemcpyDtoHAsync_v2(dest.as_mut_ptr().cast(), from, bytes, stream.as_inner()) }.to_result()
    }
}

/// Copies between device memory.
///
/// # Safety
/// Both stay until the stream's work so far is done, `from` unchanged and `to` used by nothing else.
unsafe fn device_to_device<T: DeviceCopy>(
    from: &DeviceSlice<T>,
    to: &mut DeviceSlice<T>,
    stream: &Stream,
) -> CudaResult<()> {
    same_len("cuMemcpyDtoDAsync", from.len(), to.len())?;
    let (from, to, bytes) = (from.as_device_ptr().as_raw(), to.as_device_ptr().as_raw(), from.len() * size_of::<T>());
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: both sides have `bytes` bytes (`same_len`), and stay, `to` used by nothing else, as the caller promised.
    unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_inner()) }.to_result()
}

impl<T: DeviceCopy> AsyncCopyDestination<DeviceSlice<T>> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &DeviceSlice<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both stay until the copy is done, `self` used by nothing else: what `AsyncCopyDestination` asks its
        // callers for.
        unsafe { device_to_device(source, self, stream) }
    }

    unsafe fn async_copy_to(&self, dest: &mut DeviceSlice<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both stay until the copy is done, `dest` used by nothing else: what `AsyncCopyDestination` asks its
        // callers for.
        unsafe { device_to_device(self, dest, stream) }
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<DeviceBuffer<T>> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &DeviceBuffer<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both stay until the copy is done, `self` used by nothing else: what `AsyncCopyDestination` asks its
        // callers for.
        unsafe { device_to_device(source, self, stream) }
    }

    unsafe fn async_copy_to(&self, dest: &mut DeviceBuffer<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both stay until the copy is done, `dest` used by nothing else: what `AsyncCopyDestination` asks its
        // callers for.
        unsafe { device_to_device(self, &mut dest.slice, stream) }
    }
}

/// Whatever can be copied in a stream's order can be copied and waited for.
impl<T: DeviceCopy, O: ?Sized> CopyDestination<O> for DeviceSlice<T>
where
    DeviceSlice<T>: AsyncCopyDestination<O>,
{
    fn copy_from(&mut self, source: &O) -> CudaResult<()> {
        if self.is_empty() || size_of::<T>() == 0 {
            // Nothing to wait for; this is the check of the lengths alone, which gives nothing to its stream.
            // SAFETY: no stream is used for no bytes.
            return unsafe { self.async_copy_from(source, &Stream::borrowed(std::ptr::null_mut())) };
        }
        // SAFETY: both are borrowed until `blocking` returns, which is when the copy is done.
        blocking(|stream| unsafe { self.async_copy_from(source, stream) })
    }

    fn copy_to(&self, dest: &mut O) -> CudaResult<()> {
        if self.is_empty() || size_of::<T>() == 0 {
            // SAFETY: no stream is used for no bytes.
            return unsafe { self.async_copy_to(dest, &Stream::borrowed(std::ptr::null_mut())) };
        }
        // SAFETY: both are borrowed until `blocking` returns, which is when the copy is done.
        blocking(|stream| unsafe { self.async_copy_to(dest, stream) })
    }
}
