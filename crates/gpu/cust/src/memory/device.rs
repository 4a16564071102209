//! Buffers in device memory.

use super::{
    AnyBits, AsyncCopyDestination, CopyDestination, DeviceCopy, DevicePointer, DeviceSlice, cuda_free_async,
    cuda_malloc, cuda_malloc_async,
};
use crate::error::{CudaResult, DropResult};
use crate::owner::Owner;
use crate::private::Sealed;
use crate::stream::Stream;
use crate::sys::{self, Status};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;

/// Memory of its own on the device, freed on drop (`cuMemFree`), on whatever thread that is. Work that uses it must
/// have ended.
///
/// It is borrowed as a [`DeviceSlice`] to be read, and has what writes to one itself: through a `&mut DeviceSlice` another
/// address could be put in the place of the one that is freed. This does not compile:
/// ```compile_fail,E0596
/// # use lanky_cust::memory::DeviceBuffer;
/// fn exchanged(a: &mut DeviceBuffer<f32>, b: &mut DeviceBuffer<f32>) {
///     std::mem::swap(&mut **a, &mut **b);
/// }
/// ```
#[derive(Debug)]
pub struct DeviceBuffer<T: DeviceCopy> {
    pub(super) slice: DeviceSlice<T>,
    owner: Owner,
}

/// Where a buffer of no bytes is: not null, which many take for "absent", and aligned as the driver aligns.
const NOWHERE: u64 = 256;

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// Room for `size` elements in the current context, aligned to 256 bytes; none is fine and asks the driver nothing.
    /// `cuMemAlloc`.
    ///
    /// # Safety
    /// They are not read before they are written.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::error::CudaError::OutOfMemory);
    /// [`InvalidMemoryAllocation`](crate::error::CudaError::InvalidMemoryAllocation) for more than can exist; [those of
    /// the driver](crate#errors).
    pub unsafe fn uninitialized(size: usize) -> CudaResult<Self> {
        if size == 0 || size_of::<T>() == 0 {
            return Ok(Self::nowhere(size));
        }
        // SAFETY: the caller writes before reading, and the buffer is what frees it.
        let ptr = unsafe { cuda_malloc(size) }?;
        Ok(DeviceBuffer { slice: DeviceSlice { ptr, len: size }, owner: Owner::current() })
    }

    /// As [`DeviceBuffer::uninitialized`], in the stream's order. `cuMemAllocAsync`.
    ///
    /// # Safety
    /// As there; other streams use it only behind this stream's work so far.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn uninitialized_async(size: usize, stream: &Stream) -> CudaResult<Self> {
        if size == 0 || size_of::<T>() == 0 {
            return Ok(Self::nowhere(size));
        }
        // SAFETY: the caller writes before reading, and the buffer is what frees it.
        let ptr = unsafe { cuda_malloc_async(stream, size) }?;
        Ok(DeviceBuffer { slice: DeviceSlice { ptr, len: size }, owner: Owner::current() })
    }

    fn nowhere(len: usize) -> Self {
        DeviceBuffer { slice: DeviceSlice { ptr: DevicePointer::from_raw(NOWHERE), len }, owner: Owner::none() }
    }

    /// Frees the memory when the stream's work so far is done. `cuMemFreeAsync`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors); the memory is then freed at once, or, if that fails too, not.
    pub fn drop_async(self, stream: &Stream) -> CudaResult<()> {
        if self.is_nowhere() {
            return Ok(());
        }
        // SAFETY: the memory is this buffer's own, which ends here.
        unsafe { cuda_free_async(stream, self.slice.ptr) }?;
        self.forget();
        Ok(())
    }

    /// A buffer that owns memory from elsewhere; the context current now is the one it is freed in.
    ///
    /// # Safety
    /// `ptr` is memory for `capacity` elements that the driver's `cuMemFree` may free and nothing else will.
    pub unsafe fn from_raw_parts(ptr: DevicePointer<T>, capacity: usize) -> DeviceBuffer<T> {
        DeviceBuffer { slice: DeviceSlice { ptr, len: capacity }, owner: Owner::current() }
    }

    fn is_nowhere(&self) -> bool {
        self.slice.len == 0 || size_of::<T>() == 0 || self.slice.ptr.is_null()
    }

    fn free(&self) -> Status {
        // SAFETY: the memory is this buffer's own, and both callers end with it.
        self.owner.free(|| unsafe { sys::cuMemFree_v2(self.slice.ptr.as_raw()) })
    }

    /// Ends without freeing.
    fn forget(self) {
        let mut buffer = ManuallyDrop::new(self);
        // SAFETY: `buffer` is not used, and not dropped, after this.
        unsafe { ptr::drop_in_place(&raw mut buffer.owner) };
    }

    /// Frees the memory. `cuMemFree`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), with the buffer.
    pub fn drop(dev_buf: DeviceBuffer<T>) -> DropResult<DeviceBuffer<T>> {
        if dev_buf.is_nowhere() {
            return Ok(());
        }
        match dev_buf.free().to_result() {
            Ok(()) => {
                dev_buf.forget();
                Ok(())
            }
            Err(error) => Err((error, dev_buf)),
        }
    }

    /// A copy of `slice` on the device; waits as [`CopyDestination::copy_from`] does.
    ///
    /// # Errors
    /// As [`DeviceBuffer::uninitialized`], and those of earlier work in the context.
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        // SAFETY: written by the copy, before anything reads it.
        let mut buffer = unsafe { Self::uninitialized(slice.len()) }?;
        buffer.copy_from(slice)?;
        Ok(buffer)
    }

    /// A copy of `slice` on the device, in the stream's order.
    ///
    /// # Safety
    /// Until the stream's work so far is done, `slice` is neither changed nor freed, and only it uses the result.
    ///
    /// # Errors
    /// As [`DeviceBuffer::uninitialized`].
    pub unsafe fn from_slice_async(slice: &[T], stream: &Stream) -> CudaResult<Self> {
        // SAFETY: written by the copy, before anything reads it.
        let mut buffer = unsafe { Self::uninitialized_async(slice.len(), stream) }?;
        // SAFETY: `slice` stays unchanged, and only the stream's work uses the buffer, until that is done, as the
        // caller promised.
        unsafe { buffer.async_copy_from(slice, stream) }?;
        Ok(buffer)
    }

    /// All of it; a buffer is used as a [`DeviceSlice`] wherever one is read.
    pub fn as_slice(&self) -> &DeviceSlice<T> {
        self
    }

    /// As [`DeviceSlice::set_8_async`].
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn set_8_async(&mut self, value: u8, stream: &Stream) -> CudaResult<()> {
        // SAFETY: what the caller promised is what the slice asks for.
        unsafe { self.slice.set_8_async(value, stream) }
    }

    /// As [`DeviceSlice::set_zero_async`].
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn set_zero_async(&mut self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: what the caller promised is what the slice asks for.
        unsafe { self.slice.set_zero_async(stream) }
    }
}

impl<T: AnyBits> DeviceBuffer<T> {
    /// As [`DeviceSlice::set_8`].
    ///
    /// # Errors
    /// As there.
    pub fn set_8(&mut self, value: u8) -> CudaResult<()> {
        self.slice.set_8(value)
    }

    /// As [`DeviceSlice::set_zero`].
    ///
    /// # Errors
    /// As there.
    pub fn set_zero(&mut self) -> CudaResult<()> {
        self.slice.set_zero()
    }

    /// `size` elements of zero bytes; waits as [`DeviceSlice::set_8`] does.
    ///
    /// # Errors
    /// As [`DeviceBuffer::uninitialized`], and those of earlier work in the context.
    pub fn zeroed(size: usize) -> CudaResult<Self> {
        // SAFETY: written here, before anything reads it.
        let mut buffer = unsafe { Self::uninitialized(size) }?;
        buffer.set_zero()?;
        Ok(buffer)
    }

    /// `size` elements of zero bytes, in the stream's order.
    ///
    /// # Safety
    /// Until the stream's work so far is done, only that work uses the result.
    ///
    /// # Errors
    /// As [`DeviceBuffer::uninitialized`].
    pub unsafe fn zeroed_async(size: usize, stream: &Stream) -> CudaResult<Self> {
        // SAFETY: written here, before anything reads it.
        let mut buffer = unsafe { Self::uninitialized_async(size, stream) }?;
        // SAFETY: only the stream's work uses the buffer until that is done, as the caller promised; zero bytes are a
        // `T` (AnyBits).
        unsafe { buffer.set_zero_async(stream) }?;
        Ok(buffer)
    }
}

impl<T: DeviceCopy> Deref for DeviceBuffer<T> {
    type Target = DeviceSlice<T>;

    fn deref(&self) -> &DeviceSlice<T> {
        &self.slice
    }
}

impl<T: DeviceCopy> Sealed for DeviceBuffer<T> {}

impl<T: DeviceCopy, O: ?Sized> AsyncCopyDestination<O> for DeviceBuffer<T>
where
    DeviceSlice<T>: AsyncCopyDestination<O>,
{
    unsafe fn async_copy_from(&mut self, source: &O, stream: &Stream) -> CudaResult<()> {
        // SAFETY: what the caller promised is what the slice asks for.
        unsafe { self.slice.async_copy_from(source, stream) }
    }

    unsafe fn async_copy_to(&self, dest: &mut O, stream: &Stream) -> CudaResult<()> {
        // SAFETY: what the caller promised is what the slice asks for.
        unsafe { self.slice.async_copy_to(dest, stream) }
    }
}

impl<T: DeviceCopy, O: ?Sized> CopyDestination<O> for DeviceBuffer<T>
where
    DeviceSlice<T>: CopyDestination<O>,
{
    fn copy_from(&mut self, source: &O) -> CudaResult<()> {
        self.slice.copy_from(source)
    }

    fn copy_to(&self, dest: &mut O) -> CudaResult<()> {
        self.slice.copy_to(dest)
    }
}

impl<T: DeviceCopy> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if !self.is_nowhere() {
            let _ = self.free();
        }
    }
}
