//! Views of device memory.

use super::{AnyBits, CopyDestination, DeviceCopy, DevicePointer};
use crate::error::CudaResult;
use crate::stream::{Stream, blocking, bytes_of};
use crate::sys;

/// Elements in device memory, wherever they are from. Not to be copied, so that none outlives the [`DeviceBuffer`] that it
/// was borrowed from; this does not compile:
/// ```compile_fail,E0507
/// fn outliving(buffer: lanky_cust::memory::DeviceBuffer<f32>) -> lanky_cust::memory::DeviceSlice<f32> {
///     *buffer
/// }
/// ```
///
/// [`DeviceBuffer`]: super::DeviceBuffer
#[derive(Debug)]
#[repr(C)]
pub struct DeviceSlice<T: DeviceCopy> {
    pub(super) ptr: DevicePointer<T>,
    pub(super) len: usize,
}

const _: () = assert!(size_of::<DeviceSlice<u8>>() == 16, "an address and a length, as kernels take slices");

// SAFETY: an address that the host cannot follow and a length; the driver lets any thread use memory.
unsafe impl<T: Send + DeviceCopy> Send for DeviceSlice<T> {}
// SAFETY: through a shared slice the host reads an address and a length alone, and copies what nothing changes
// meanwhile.
unsafe impl<T: Sync + DeviceCopy> Sync for DeviceSlice<T> {}

impl<T: DeviceCopy> DeviceSlice<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they start.
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        self.ptr
    }

    /// Elements that are somewhere in device memory.
    ///
    /// # Safety
    /// They are there, as long as the result is used.
    pub unsafe fn from_raw_parts(ptr: DevicePointer<T>, len: usize) -> DeviceSlice<T> {
        DeviceSlice { ptr, len }
    }

    /// As [`DeviceSlice::from_raw_parts`], to be written to.
    ///
    /// # Safety
    /// As there, and nothing else uses them meanwhile.
    pub unsafe fn from_raw_parts_mut(ptr: DevicePointer<T>, len: usize) -> DeviceSlice<T> {
        DeviceSlice { ptr, len }
    }

    /// Sets every byte to `value`, in the stream's order. `cuMemsetD8Async`.
    ///
    /// # Safety
    /// Such bytes are a `T`. Until the stream's work so far is done, this memory is used by nothing but that work.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub unsafe fn set_8_async(&mut self, value: u8, stream: &Stream) -> CudaResult<()> {
        match bytes_of::<T>("cuMemsetD8Async", self.len)? {
            0 => Ok(()),
            // SAFETY: the slice has `bytes` bytes, of which any `value` makes a `T`, and only the stream's work uses
            // them, as the caller promised.
            bytes => unsafe { sys::cuMemsetD8Async(self.ptr.as_raw(), value, bytes, stream.as_inner()) }.to_result(),
        }
    }

    /// Sets every byte to zero, in the stream's order.
    ///
    /// # Safety
    /// As [`DeviceSlice::set_8_async`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn set_zero_async(&mut self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: zero bytes are a `T`, and only the stream's work uses them, as the caller promised.
        unsafe { self.set_8_async(0, stream) }
    }
}

impl<T: AnyBits> DeviceSlice<T> {
    /// Sets every byte to `value`, behind all earlier work of the context, and waits until that is done. `cuMemsetD8Async`
    /// on a stream of its own.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), and of earlier work in the context.
    pub fn set_8(&mut self, value: u8) -> CudaResult<()> {
        if self.is_empty() || size_of::<T>() == 0 {
            return Ok(());
        }
        // SAFETY: any bytes are a `T`; earlier work is done, and this returns when the bytes are set.
        blocking(|stream| unsafe { self.set_8_async(value, stream) })
    }

    /// Sets every byte to zero, and waits until that is done.
    ///
    /// # Errors
    /// As [`DeviceSlice::set_8`].
    pub fn set_zero(&mut self) -> CudaResult<()> {
        self.set_8(0)
    }
}

impl<T: DeviceCopy + Default> DeviceSlice<T> {
    /// The elements, copied to the host, into a new vector; waits as [`CopyDestination::copy_to`] does.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), and of earlier work in the context.
    pub fn as_host_vec(&self) -> CudaResult<Vec<T>> {
        let mut elements = vec![T::default(); self.len];
        self.copy_to(&mut elements)?;
        Ok(elements)
    }
}
