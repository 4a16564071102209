//! Devices: which there are, and what they are.

use crate::error::CudaResult;
use crate::sys::{self, CUdevice};
use std::ffi::{CStr, c_int};
use std::ops::Range;

/// What can be asked of a device, by [`Device::get_attribute`]: the numbers of the driver's `CUdevice_attribute`.
/// [`crate::extra::device_attribute`] takes those that have no name here.
#[repr(u32)]
#[non_exhaustive]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub enum DeviceAttribute {
    /// Threads a block, at most.
    MaxThreadsPerBlock = 1,
    /// Threads a block along x, at most.
    MaxBlockDimX = 2,
    /// Threads a block along y, at most.
    MaxBlockDimY = 3,
    /// Threads a block along z, at most.
    MaxBlockDimZ = 4,
    /// Blocks a grid along x, at most.
    MaxGridDimX = 5,
    /// Blocks a grid along y, at most.
    MaxGridDimY = 6,
    /// Blocks a grid along z, at most.
    MaxGridDimZ = 7,
    /// Bytes of shared memory a block may have without asking for more.
    MaxSharedMemoryPerBlock = 8,
    /// Bytes of constant memory for a kernel.
    TotalConstantMemory = 9,
    /// Threads a warp.
    WarpSize = 10,
    /// Bytes from one row to the next, at most, in copies of two dimensions.
    MaxPitch = 11,
    /// 32-bit registers a block, at most.
    MaxRegistersPerBlock = 12,
    /// Clock of the multiprocessors at most, kHz.
    ClockRate = 13,
    /// Bytes that a texture's address must be a multiple of.
    TextureAlignment = 14,
    /// Multiprocessors.
    MultiprocessorCount = 16,
    /// 1 if kernels that run long are ended.
    KernelExecTimeout = 17,
    /// 1 if the device shares the host's memory.
    Integrated = 18,
    /// 1 if host memory can be mapped for the device.
    CanMapHostMemory = 19,
    /// 0 any process may use it, 2 none, 3 one at a time.
    ComputeMode = 20,
    /// Elements of a one-dimensional texture, at most.
    MaximumTexture1DWidth = 21,
    /// Width of a two-dimensional texture, at most.
    MaximumTexture2DWidth = 22,
    /// Height of a two-dimensional texture, at most.
    MaximumTexture2DHeight = 23,
    /// Width of a three-dimensional texture, at most.
    MaximumTexture3DWidth = 24,
    /// Height of a three-dimensional texture, at most.
    MaximumTexture3DHeight = 25,
    /// Depth of a three-dimensional texture, at most.
    MaximumTexture3DDepth = 26,
    /// Width of a layered two-dimensional texture, at most.
    MaximumTexture2DLayeredWidth = 27,
    /// Height of a layered two-dimensional texture, at most.
    MaximumTexture2DLayeredHeight = 28,
    /// Layers of a layered two-dimensional texture, at most.
    MaximumTexture2DLayeredLayers = 29,
    /// Bytes that a surface's address must be a multiple of.
    SurfaceAlignment = 30,
    /// 1 if kernels of one context may run side by side.
    ConcurrentKernels = 31,
    /// 1 if memory has error correction, and it is on.
    EccEnabled = 32,
    /// Number of its PCI bus.
    PciBusId = 33,
    /// Its number on that bus.
    PciDeviceId = 34,
    /// 1 if Windows runs it by the driver for computing alone.
    TccDriver = 35,
    /// Clock of the memory at most, kHz.
    MemoryClockRate = 36,
    /// Width of the memory's bus, bits.
    GlobalMemoryBusWidth = 37,
    /// Second-level cache, bytes.
    L2CacheSize = 38,
    /// Threads that a multiprocessor holds at once, at most.
    MaxThreadsPerMultiprocessor = 39,
    /// Copies that may run beside kernels.
    AsyncEngineCount = 40,
    /// 1 if host and device share one space of addresses.
    UnifiedAddressing = 41,
    /// Width of a layered one-dimensional texture, at most.
    MaximumTexture1DLayeredWidth = 42,
    /// Layers of a layered one-dimensional texture, at most.
    MaximumTexture1DLayeredLayers = 43,
    /// Width of a two-dimensional texture that is gathered from, at most.
    MaximumTexture2DGatherWidth = 45,
    /// Height of a two-dimensional texture that is gathered from, at most.
    MaximumTexture2DGatherHeight = 46,
    /// The other width of a three-dimensional texture, at most.
    MaximumTexture3DWidthAlternate = 47,
    /// The other height of a three-dimensional texture, at most.
    MaximumTexture3DHeightAlternate = 48,
    /// The other depth of a three-dimensional texture, at most.
    MaximumTexture3DDepthAlternate = 49,
    /// Number of its PCI domain.
    PciDomainId = 50,
    /// Bytes that a texture's distance of rows must be a multiple of.
    TexturePitchAlignment = 51,
    /// Width, and height, of a cubemap texture, at most.
    MaximumTextureCubemapWidth = 52,
    /// Width, and height, of a layered cubemap texture, at most.
    MaximumTextureCubemapLayeredWidth = 53,
    /// Layers of a layered cubemap texture, at most.
    MaximumTextureCubemapLayeredLayers = 54,
    /// Width of a one-dimensional surface, at most.
    MaximumSurface1DWidth = 55,
    /// Width of a two-dimensional surface, at most.
    MaximumSurface2DWidth = 56,
    /// Height of a two-dimensional surface, at most.
    MaximumSurface2DHeight = 57,
    /// Width of a three-dimensional surface, at most.
    MaximumSurface3DWidth = 58,
    /// Height of a three-dimensional surface, at most.
    MaximumSurface3DHeight = 59,
    /// Depth of a three-dimensional surface, at most.
    MaximumSurface3DDepth = 60,
    /// Width of a layered one-dimensional surface, at most.
    MaximumSurface1DLayeredWidth = 61,
    /// Layers of a layered one-dimensional surface, at most.
    MaximumSurface1DLayeredLayers = 62,
    /// Width of a layered two-dimensional surface, at most.
    MaximumSurface2DLayeredWidth = 63,
    /// Height of a layered two-dimensional surface, at most.
    MaximumSurface2DLayeredHeight = 64,
    /// Layers of a layered two-dimensional surface, at most.
    MaximumSurface2DLayeredLayers = 65,
    /// Width of a cubemap surface, at most (the published crate's spelling).
    MaximumSurfacecubemapWidth = 66,
    /// Width of a layered cubemap surface, at most.
    MaximumSurfacecubemapLayeredWidth = 67,
    /// Layers of a layered cubemap surface, at most.
    MaximumSurfacecubemapLayeredLayers = 68,
    /// Elements of a one-dimensional texture of linear memory, at most.
    MaximumTexture1DLinearWidth = 69,
    /// Width of a two-dimensional texture of linear memory, at most.
    MaximumTexture2DLinearWidth = 70,
    /// Height of a two-dimensional texture of linear memory, at most.
    MaximumTexture2DLinearHeight = 71,
    /// Bytes from one row to the next of such a texture, at most.
    MaximumTexture2DLinearPitch = 72,
    /// Width of a two-dimensional texture with mipmaps, at most.
    MaximumTexture2DMipmappedWidth = 73,
    /// Height of a two-dimensional texture with mipmaps, at most.
    MaximumTexture2DMipmappedHeight = 74,
    /// The 9 of compute capability 9.0.
    ComputeCapabilityMajor = 75,
    /// The 0 of compute capability 9.0.
    ComputeCapabilityMinor = 76,
    /// Width of a one-dimensional texture with mipmaps, at most.
    MaximumTexture1DMipmappedWidth = 77,
    /// 1 if streams may have priorities.
    StreamPrioritiesSupported = 78,
    /// 1 if global memory can be cached in the first-level cache.
    GlobalL1CacheSupported = 79,
    /// 1 if local memory can be cached in the first-level cache.
    LocalL1CacheSupported = 80,
    /// Bytes of shared memory of a multiprocessor.
    MaxSharedMemoryPerMultiprocessor = 81,
    /// 32-bit registers of a multiprocessor.
    MaxRegistersPerMultiprocessor = 82,
    /// 1 if memory can be allocated that moves between host and device by itself.
    ManagedMemory = 83,
    /// 1 if there are other devices on its board.
    MultiGpuBoard = 84,
    /// A number that the devices of a board share.
    MultiGpuBoardGroupId = 85,
    /// 1 if atomic operations on the host's memory go through the link natively.
    HostNativeAtomicSupported = 86,
    /// How many times faster f32 is than f64.
    SingleToDoublePrecisionPerfRatio = 87,
    /// 1 if it can access pageable memory of the host as it is.
    PageableMemoryAccess = 88,
    /// 1 if host and device may access managed memory at the same time.
    ConcurrentManagedAccess = 89,
    /// 1 if kernels can be interrupted.
    ComputePreemptionSupported = 90,
    /// 1 if registered host memory has the same address on the device.
    CanUseHostPointerForRegisteredMem = 91,
}

/// A device of this machine.
#[derive(Debug, Clone, Copy, Hash, Eq, PartialEq)]
pub struct Device {
    pub(crate) device: CUdevice,
}

impl Device {
    /// How many there are that CUDA may use. `cuDeviceGetCount`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors); [`crate::init`] must have been called.
    pub fn num_devices() -> CudaResult<u32> {
        let mut count = 0;
        // SAFETY: `count` is a place for the answer.
        unsafe { sys::cuDeviceGetCount(&raw mut count) }.to_result()?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Device number `ordinal`, from 0 on. `cuDeviceGet`.
    ///
    /// # Errors
    /// [`InvalidDevice`](crate::error::CudaError::InvalidDevice) if there is none of that number; [those of the
    /// driver](crate#errors).
    pub fn get_device(ordinal: u32) -> CudaResult<Device> {
        let mut device = 0;
        // No device has a number that does not fit, and the driver says so of the largest that does.
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: `device` is a place for the answer.
        unsafe { sys::cuDeviceGet(&raw mut device, ordinal) }.to_result()?;
        Ok(Device { device })
    }

    /// All of them.
    ///
    /// # Errors
    /// As [`Device::num_devices`].
    pub fn devices() -> CudaResult<Devices> {
        Device::num_devices().map(|count| Devices { range: 0..count })
    }

    /// Bytes of memory, free or not. `cuDeviceTotalMem`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn total_memory(self) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: `bytes` is a place for the answer.
        unsafe { sys::cuDeviceTotalMem_v2(&raw mut bytes, self.device) }.to_result()?;
        Ok(bytes)
    }

    /// Its name: `NVIDIA H200`. `cuDeviceGetName`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn name(self) -> CudaResult<String> {
        // One byte more than the driver is told of, so that there is a zero whatever it writes.
        let mut name = [0_u8; 257];
        // SAFETY: `name` has room for 256 bytes.
        unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), 256, self.device) }.to_result()?;
        Ok(CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned())
    }

    /// What the driver says about the device. `cuDeviceGetAttribute`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn get_attribute(self, attr: DeviceAttribute) -> CudaResult<i32> {
        // The discriminants are below 92.
        self.attribute(c_int::try_from(attr as u32).unwrap_or(0))
    }

    pub(crate) fn attribute(self, attribute: c_int) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: `value` is a place for the answer.
        unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, self.device) }.to_result()?;
        Ok(value)
    }

    /// The driver's number of it.
    pub fn as_raw(&self) -> CUdevice {
        self.device
    }
}

/// The devices, one after the other.
#[derive(Debug, Clone)]
pub struct Devices {
    range: Range<u32>,
}

impl Iterator for Devices {
    type Item = CudaResult<Device>;

    fn next(&mut self) -> Option<CudaResult<Device>> {
        self.range.next().map(Device::get_device)
    }
}
