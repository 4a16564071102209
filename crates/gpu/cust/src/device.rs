//! Devices: which there are, and what they are.

use crate::error::CudaResult;
use crate::sys::{self, CUdevice};
use std::ffi::{CStr, c_int};
use std::ops::Range;

/// What can be asked of a device: the numbers of the driver's `CUdevice_attribute`.
/// [`crate::extra::device_attribute`] takes those that have no name here.
#[repr(u32)]
#[expect(missing_docs, reason = "NVIDIA documents each at CUdevice_attribute")]
#[non_exhaustive]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub enum DeviceAttribute {
    MaxThreadsPerBlock = 1,
    MaxBlockDimX = 2,
    MaxBlockDimY = 3,
    MaxBlockDimZ = 4,
    MaxGridDimX = 5,
    MaxGridDimY = 6,
    MaxGridDimZ = 7,
    MaxSharedMemoryPerBlock = 8,
    TotalConstantMemory = 9,
    WarpSize = 10,
    MaxPitch = 11,
    MaxRegistersPerBlock = 12,
    ClockRate = 13,
    TextureAlignment = 14,
    MultiprocessorCount = 16,
    KernelExecTimeout = 17,
    Integrated = 18,
    CanMapHostMemory = 19,
    ComputeMode = 20,
    MaximumTexture1DWidth = 21,
    MaximumTexture2DWidth = 22,
    MaximumTexture2DHeight = 23,
    MaximumTexture3DWidth = 24,
    MaximumTexture3DHeight = 25,
    MaximumTexture3DDepth = 26,
    MaximumTexture2DLayeredWidth = 27,
    MaximumTexture2DLayeredHeight = 28,
    MaximumTexture2DLayeredLayers = 29,
    SurfaceAlignment = 30,
    ConcurrentKernels = 31,
    EccEnabled = 32,
    PciBusId = 33,
    PciDeviceId = 34,
    TccDriver = 35,
    MemoryClockRate = 36,
    GlobalMemoryBusWidth = 37,
    L2CacheSize = 38,
    MaxThreadsPerMultiprocessor = 39,
    AsyncEngineCount = 40,
    UnifiedAddressing = 41,
    MaximumTexture1DLayeredWidth = 42,
    MaximumTexture1DLayeredLayers = 43,
    MaximumTexture2DGatherWidth = 45,
    MaximumTexture2DGatherHeight = 46,
    MaximumTexture3DWidthAlternate = 47,
    MaximumTexture3DHeightAlternate = 48,
    MaximumTexture3DDepthAlternate = 49,
    PciDomainId = 50,
    TexturePitchAlignment = 51,
    MaximumTextureCubemapWidth = 52,
    MaximumTextureCubemapLayeredWidth = 53,
    MaximumTextureCubemapLayeredLayers = 54,
    MaximumSurface1DWidth = 55,
    MaximumSurface2DWidth = 56,
    MaximumSurface2DHeight = 57,
    MaximumSurface3DWidth = 58,
    MaximumSurface3DHeight = 59,
    MaximumSurface3DDepth = 60,
    MaximumSurface1DLayeredWidth = 61,
    MaximumSurface1DLayeredLayers = 62,
    MaximumSurface2DLayeredWidth = 63,
    MaximumSurface2DLayeredHeight = 64,
    MaximumSurface2DLayeredLayers = 65,
    MaximumSurfacecubemapWidth = 66,
    MaximumSurfacecubemapLayeredWidth = 67,
    MaximumSurfacecubemapLayeredLayers = 68,
    MaximumTexture1DLinearWidth = 69,
    MaximumTexture2DLinearWidth = 70,
    MaximumTexture2DLinearHeight = 71,
    MaximumTexture2DLinearPitch = 72,
    MaximumTexture2DMipmappedWidth = 73,
    MaximumTexture2DMipmappedHeight = 74,
    ComputeCapabilityMajor = 75,
    ComputeCapabilityMinor = 76,
    MaximumTexture1DMipmappedWidth = 77,
    StreamPrioritiesSupported = 78,
    GlobalL1CacheSupported = 79,
    LocalL1CacheSupported = 80,
    MaxSharedMemoryPerMultiprocessor = 81,
    MaxRegistersPerMultiprocessor = 82,
    ManagedMemory = 83,
    MultiGpuBoard = 84,
    MultiGpuBoardGroupId = 85,
    HostNativeAtomicSupported = 86,
    SingleToDoublePrecisionPerfRatio = 87,
    PageableMemoryAccess = 88,
    ConcurrentManagedAccess = 89,
    ComputePreemptionSupported = 90,
    CanUseHostPointerForRegisteredMem = 91,
}

/// A device of this machine.
#[derive(Debug, Clone, Copy, Hash, Eq, PartialEq)]
pub struct Device {
    pub(crate) device: CUdevice,
}

impl Device {
    /// How many there are that CUDA may use.
    ///
    /// # Errors
    /// Those of the driver; [`crate::init`] must have been called.
    pub fn num_devices() -> CudaResult<u32> {
        let mut count = 0;
        // SAFETY: `count` is a place for the answer.
        unsafe { sys::cuDeviceGetCount(&raw mut count) }.to_result()?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Device number `ordinal`, from 0 on.
    ///
    /// # Errors
    /// [`InvalidDevice`](crate::error::CudaError::InvalidDevice) if there is none of that number; those of the driver.
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

    /// Bytes of memory, free or not.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn total_memory(self) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: `bytes` is a place for the answer.
        unsafe { sys::cuDeviceTotalMem_v2(&raw mut bytes, self.device) }.to_result()?;
        Ok(bytes)
    }

    /// Its name: `NVIDIA H200`.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn name(self) -> CudaResult<String> {
        // One byte more than the driver is told of, so that there is a zero whatever it writes.
        let mut name = [0_u8; 257];
        // SAFETY: `name` has room for 256 bytes.
        unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), 256, self.device) }.to_result()?;
        Ok(CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned())
    }

    /// What the driver says about the device.
    ///
    /// # Errors
    /// Those of the driver.
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
