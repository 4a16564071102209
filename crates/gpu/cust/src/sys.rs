//! The driver's types and the functions called here, each looked up in the driver library by its name.

#![allow(non_camel_case_types, non_snake_case, reason = "the driver's own names, so that they can be searched for")]

pub(crate) use crate::error::Status;
use crate::library;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A driver result: 0, or one of the codes of `cudaError_enum`.
pub type CUresult = c_int;
/// A device's number as the driver counts.
pub type CUdevice = c_int;
/// An address in device memory.
pub type CUdeviceptr = u64;
/// An option of the driver's PTX compiler.
pub type CUjit_option = c_uint;

/// What a [`CUcontext`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUctx_st([u8; 0]);
/// What a [`CUstream`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUstream_st([u8; 0]);
/// What a [`CUevent`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUevent_st([u8; 0]);
/// What a [`CUmodule`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUmod_st([u8; 0]);
/// What a [`CUfunction`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUfunc_st([u8; 0]);
/// What a [`CUgraph`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUgraph_st([u8; 0]);
/// What a [`CUgraphExec`] points to.
#[derive(Debug)]
#[repr(C)]
pub struct CUgraphExec_st([u8; 0]);

/// A context.
pub type CUcontext = *mut CUctx_st;
/// A stream.
pub type CUstream = *mut CUstream_st;
/// An event.
pub type CUevent = *mut CUevent_st;
/// A loaded module.
pub type CUmodule = *mut CUmod_st;
/// A kernel in a loaded module.
pub type CUfunction = *mut CUfunc_st;
/// Recorded work.
pub type CUgraph = *mut CUgraph_st;
/// Recorded work that can be launched.
pub type CUgraphExec = *mut CUgraphExec_st;

/// Stamps the table and, for each of its functions, one wrapper of the same name and parameters.
///
/// Longer than macros here are to be: a field, its look-up and its wrapper from one line are what keeps the three from
/// disagreeing about a type, which nothing else would notice.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The functions that the driver library has; `None` for those it lacks, as older ones may.
        pub(crate) struct Table { $(pub(crate) $name: Option<unsafe extern "system" fn($($type),*) -> CUresult>,)* }
        impl Table {
            #[cfg(test)]
            pub(crate) const EMPTY: Table = Table { $($name: None,)* };
            pub(crate) fn new(library: &libloading::Library) -> Table {
                // SAFETY: the types are those that NVIDIA's cuda.h declares for these names.
                Table { $($name: unsafe { library::symbol(library, concat!(stringify!($name), "\0")) },)* }
            }
        }
        $(#[allow(clippy::too_many_arguments, reason = "as many as the driver's")]
        pub(crate) unsafe fn $name($($argument: $type),*) -> Status {
            // SAFETY: the arguments are as the driver's documentation of this function asks: each caller in this crate
            // says why.
            library::call(stringify!($name), |table| table.$name, |function| unsafe { function($($argument),*) })
        })*
    };
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);

    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuDevicePrimaryCtxReset_v2(device: CUdevice);
    cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint);

    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxGetFlags(flags: *mut c_uint);
    cuCtxGetLimit(value: *mut usize, limit: c_int);
    cuCtxSetLimit(limit: c_int, value: usize);
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint);
    cuCtxSynchronize();

    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    cuStreamIsCapturing(stream: CUstream, status: *mut c_int);
    cuStreamBeginCapture_v2(stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);

    cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: u64);
    cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
    cuGraphExecDestroy(executable: CUgraphExec);
    cuGraphDestroy(graph: CUgraph);

    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventQuery(event: CUevent);
    cuEventSynchronize(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

    cuModuleLoadDataEx(module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option,
        values: *mut *mut c_void);
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int);
    cuLaunchKernel(function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: CUstream, arguments: *mut *mut c_void,
        extra: *mut *mut c_void);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, threads: c_int,
        shared_bytes: usize);

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(address: *mut c_void);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemsetD8Async(address: CUdeviceptr, value: u8, bytes: usize, stream: CUstream);
}
