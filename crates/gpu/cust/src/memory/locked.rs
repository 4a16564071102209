//! Pinned host memory: what the device copies from and to without a detour.

use super::{DeviceCopy, cuda_malloc_locked};
use crate::error::{CudaResult, DropResult};
use crate::owner::Owner;
use crate::sys::{self, Status};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

/// Pinned host memory of its own, freed on drop, on whatever thread that is.
#[derive(Debug)]
pub struct LockedBuffer<T: DeviceCopy> {
    buf: *mut T,
    capacity: usize,
    owner: Owner,
}

// SAFETY: it owns its elements, as a Vec does, and `Owner` has the context current to free them.
unsafe impl<T: Send + DeviceCopy> Send for LockedBuffer<T> {}
// SAFETY: as a Vec.
unsafe impl<T: Sync + DeviceCopy> Sync for LockedBuffer<T> {}

impl<T: DeviceCopy> LockedBuffer<T> {
    /// `size` copies of a value.
    ///
    /// # Errors
    /// As [`LockedBuffer::uninitialized`].
    pub fn new(value: &T, size: usize) -> CudaResult<Self> {
        Self::filled(size, |_| *value)
    }

    /// A copy of a slice.
    ///
    /// # Errors
    /// As [`LockedBuffer::uninitialized`].
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        Self::filled(slice.len(), |index| slice[index])
    }

    fn filled(size: usize, element: impl Fn(usize) -> T) -> CudaResult<Self> {
        // SAFETY: written below, before anything reads it.
        let buffer = unsafe { Self::uninitialized(size) }?;
        for index in 0..size {
            // SAFETY: there is room for `size` elements, and these are Copy, so nothing is lost.
            unsafe { buffer.buf.add(index).write(element(index)) };
        }
        Ok(buffer)
    }

    /// Room for `size` elements; none is fine, and asks the driver nothing. A context must be current. `cuMemHostAlloc`.
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
            return Ok(LockedBuffer { buf: NonNull::dangling().as_ptr(), capacity: size, owner: Owner::none() });
        }
        // SAFETY: the caller writes before reading, and the buffer is what frees it.
        let buf = unsafe { cuda_malloc_locked(size) }?;
        Ok(LockedBuffer { buf, capacity: size, owner: Owner::current() })
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        self
    }

    /// The elements.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self
    }

    /// A buffer that owns memory from elsewhere; the context current now is the one it is freed in.
    ///
    /// # Safety
    /// `ptr` is memory of `size` elements that the driver's `cuMemFreeHost` may free and nothing else will.
    pub unsafe fn from_raw_parts(ptr: *mut T, size: usize) -> LockedBuffer<T> {
        LockedBuffer { buf: ptr, capacity: size, owner: Owner::current() }
    }

    fn is_nowhere(&self) -> bool {
        self.capacity == 0 || size_of::<T>() == 0 || self.buf.is_null()
    }

    fn free(&self) -> Status {
        // SAFETY: the memory is this buffer's own, and both callers end with it.
        self.owner.free(|| unsafe { sys::cuMemFreeHost(self.buf.cast()) })
    }

    /// Frees the memory. `cuMemFreeHost`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), with the buffer.
    pub fn drop(buf: LockedBuffer<T>) -> DropResult<LockedBuffer<T>> {
        if buf.is_nowhere() {
            return Ok(());
        }
        match buf.free().to_result() {
            Ok(()) => {
                let mut buf = ManuallyDrop::new(buf);
                // SAFETY: `buf` is not used, and not dropped, after this.
                unsafe { ptr::drop_in_place(&raw mut buf.owner) };
                Ok(())
            }
            Err(error) => Err((error, buf)),
        }
    }
}

impl<T: DeviceCopy> AsRef<[T]> for LockedBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: DeviceCopy> AsMut<[T]> for LockedBuffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: DeviceCopy> Deref for LockedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `buf` has `capacity` elements, and is aligned and not null where there are none.
        unsafe { slice::from_raw_parts(self.buf, self.capacity) }
    }
}

impl<T: DeviceCopy> DerefMut for LockedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as `deref`, and this is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.buf, self.capacity) }
    }
}

impl<T: DeviceCopy> Drop for LockedBuffer<T> {
    fn drop(&mut self) {
        if !self.is_nowhere() {
            let _ = self.free();
        }
    }
}
