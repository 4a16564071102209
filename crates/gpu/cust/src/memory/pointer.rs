//! Addresses in device memory.

use super::DeviceCopy;
use crate::sys::CUdeviceptr;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// The address of a `T` in device memory: a kernel takes it as `*mut T`. The host cannot follow it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialOrd, Ord, PartialEq, Eq, Hash)]
pub struct DevicePointer<T: DeviceCopy> {
    ptr: CUdeviceptr,
    marker: PhantomData<*mut T>,
}

// SAFETY: it is a number to the host, and to the device an address of its own memory.
unsafe impl<T: DeviceCopy> DeviceCopy for DevicePointer<T> {}

const _: () = assert!(size_of::<DevicePointer<u8>>() == 8, "a kernel's pointer parameter has 8 bytes");

impl<T: DeviceCopy> fmt::Pointer for DevicePointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.as_ptr(), f)
    }
}

impl<T: DeviceCopy> DevicePointer<T> {
    /// As a pointer, which the host must not follow.
    pub fn as_ptr(&self) -> *const T {
        self.as_mut_ptr().cast_const()
    }

    /// As a pointer, which the host must not follow.
    pub fn as_mut_ptr(&self) -> *mut T {
        ptr::without_provenance_mut(usize::try_from(self.ptr).unwrap_or(0))
    }

    /// The address.
    pub fn as_raw(&self) -> CUdeviceptr {
        self.ptr
    }

    /// An address.
    pub fn from_raw(ptr: CUdeviceptr) -> Self {
        Self { ptr, marker: PhantomData }
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.ptr == 0
    }

    /// Null.
    pub fn null() -> Self {
        Self::from_raw(0)
    }

    /// `count` elements on.
    ///
    /// # Safety
    /// Both are in, or at the end of, the same allocation.
    pub unsafe fn offset(self, count: isize) -> Self {
        self.wrapping_offset(count)
    }

    /// `count` elements on, wherever that is.
    pub fn wrapping_offset(self, count: isize) -> Self {
        let bytes = Self::bytes(count.unsigned_abs());
        Self::from_raw(if count < 0 { self.ptr.wrapping_sub(bytes) } else { self.ptr.wrapping_add(bytes) })
    }

    /// `count` elements on.
    ///
    /// # Safety
    /// As [`DevicePointer::offset`].
    pub unsafe fn add(self, count: usize) -> Self {
        self.wrapping_add(count)
    }

    /// `count` elements back.
    ///
    /// # Safety
    /// As [`DevicePointer::offset`].
    pub unsafe fn sub(self, count: usize) -> Self {
        self.wrapping_sub(count)
    }

    /// `count` elements on, wherever that is.
    pub fn wrapping_add(self, count: usize) -> Self {
        Self::from_raw(self.ptr.wrapping_add(Self::bytes(count)))
    }

    /// `count` elements back, wherever that is.
    pub fn wrapping_sub(self, count: usize) -> Self {
        Self::from_raw(self.ptr.wrapping_sub(Self::bytes(count)))
    }

    /// Bytes of `count` elements, modulo the address space.
    fn bytes(count: usize) -> u64 {
        // A usize has at most 64 bits.
        u64::try_from(count.wrapping_mul(size_of::<T>())).unwrap_or(u64::MAX)
    }

    /// The same address of another type.
    pub fn cast<U: DeviceCopy>(self) -> DevicePointer<U> {
        DevicePointer::from_raw(self.ptr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_elements() {
        let start = DevicePointer::<u64>::from_raw(1 << 40);
        assert_eq!(start.wrapping_add(3).as_raw(), (1 << 40) + 24);
        assert_eq!(start.wrapping_sub(3).as_raw(), (1 << 40) - 24);
        assert_eq!(start.wrapping_offset(-1).as_raw(), (1 << 40) - 8);
        assert_eq!(start.wrapping_add(1 << 36).as_raw(), (1 << 40) + (1 << 39), "beyond 2^32 elements");
        assert_eq!(DevicePointer::<u64>::null().wrapping_sub(1).wrapping_add(1), DevicePointer::null());
        assert_eq!(format!("{start:p}"), "0x10000000000");
    }
}
