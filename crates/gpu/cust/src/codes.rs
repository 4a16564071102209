//! What the driver's codes are called and mean: our own table, so that an error can be shown without asking a driver.

use crate::error::CudaError::{self, *};

/// A code that is known here.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) code: i32,
    pub(crate) error: CudaError,
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

const fn row(code: i32, error: CudaError, name: &'static str, text: &'static str) -> Row {
    Row { code, error, name, text }
}

impl Row {
    fn find(code: i32) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.code == code)
    }

    /// The row of an error; that of code 999 for [`CudaError::UnknownError`], which many codes share.
    pub(crate) fn of(error: CudaError) -> &'static Row {
        ROWS.iter().rev().find(|row| row.error == error).unwrap_or(&UNKNOWN)
    }
}

/// The error of a code: never one that is not that code's.
pub(crate) fn error(code: i32) -> CudaError {
    Row::find(code).map_or(UnknownError, |row| row.error)
}

/// `CUDA_ERROR_...`, with the number where the name is not known; `CUST_ERROR_...` where the code is not the driver's.
pub(crate) fn name(code: i32) -> String {
    match Row::find(code) {
        Some(row) if code < 100_000 => format!("CUDA_ERROR_{}", row.name),
        Some(row) => format!("CUST_ERROR_{}", row.name),
        None => format!("CUDA_ERROR_{code}"),
    }
}

/// One line on what a code means.
pub(crate) fn text(code: i32) -> &'static str {
    Row::find(code).map_or("the driver reports a code that is not known here", |row| row.text)
}

static UNKNOWN: Row = row(999, UnknownError, "UNKNOWN", "the driver gives no reason");

/// By code; of the rows with one error the last is the error's own.
static ROWS: &[Row] = &[
    row(1, InvalidValue, "INVALID_VALUE", "an argument is out of its range"),
    row(2, OutOfMemory, "OUT_OF_MEMORY", "out of memory"),
    row(3, NotInitialized, "NOT_INITIALIZED", "the driver is not initialised, or failed to be"),
    row(4, Deinitialized, "DEINITIALIZED", "the driver is shutting down"),
    row(5, ProfilerDisabled, "PROFILER_DISABLED", "profiling is not possible in this run"),
    row(6, ProfilerNotInitialized, "PROFILER_NOT_INITIALIZED", "the profiler is not initialised"),
    row(7, ProfilerAlreadyStarted, "PROFILER_ALREADY_STARTED", "the profiler runs already"),
    row(8, ProfilerAlreadyStopped, "PROFILER_ALREADY_STOPPED", "the profiler is stopped already"),
    row(34, UnknownError, "STUB_LIBRARY", "the toolkit's stub was loaded in place of the driver library"),
    row(36, UnknownError, "CALL_REQUIRES_NEWER_DRIVER", "the call needs a newer driver"),
    row(46, UnknownError, "DEVICE_UNAVAILABLE", "the device is in use by another process, or gone"),
    row(100, NoDevice, "NO_DEVICE", "there is no CUDA device"),
    row(101, InvalidDevice, "INVALID_DEVICE", "there is no device of that number"),
    row(102, UnknownError, "DEVICE_NOT_LICENSED", "the device has no licence"),
    row(200, InvalidImage, "INVALID_IMAGE", "the module is no valid kernel image"),
    row(201, InvalidContext, "INVALID_CONTEXT", "no context is current, or the one given is invalid"),
    row(202, ContextAlreadyCurrent, "CONTEXT_ALREADY_CURRENT", "the context is current already"),
    row(205, MapFailed, "MAP_FAILED", "mapping failed"),
    row(206, UnmapFailed, "UNMAP_FAILED", "unmapping failed"),
    row(207, ArrayIsMapped, "ARRAY_IS_MAPPED", "the array is mapped"),
    row(208, AlreadyMapped, "ALREADY_MAPPED", "the resource is mapped already"),
    row(209, NoBinaryForGpu, "NO_BINARY_FOR_GPU", "the module has no code for this GPU"),
    row(210, AlreadyAcquired, "ALREADY_ACQUIRED", "the resource is acquired already"),
    row(211, NotMapped, "NOT_MAPPED", "the resource is not mapped"),
    row(212, NotMappedAsArray, "NOT_MAPPED_AS_ARRAY", "the resource is not mapped as an array"),
    row(213, NotMappedAsPointer, "NOT_MAPPED_AS_POINTER", "the resource is not mapped as a pointer"),
    row(214, EccUncorrectable, "ECC_UNCORRECTABLE", "the device's memory had an error that cannot be corrected"),
    row(215, UnsupportedLimit, "UNSUPPORTED_LIMIT", "the device has no such limit"),
    row(216, ContextAlreadyInUse, "CONTEXT_ALREADY_IN_USE", "the context is in use by another thread"),
    row(217, PeerAccessUnsupported, "PEER_ACCESS_UNSUPPORTED", "the devices cannot reach each other's memory"),
    row(218, InvalidPtx, "INVALID_PTX", "the PTX did not compile"),
    row(219, InvalidGraphicsContext, "INVALID_GRAPHICS_CONTEXT", "the graphics context is invalid"),
    row(220, NvlinkUncorrectable, "NVLINK_UNCORRECTABLE", "NVLink had an error that cannot be corrected"),
    row(221, UnknownError, "JIT_COMPILER_NOT_FOUND", "the driver's PTX compiler library was not found"),
    row(
        222,
        UnknownError,
        "UNSUPPORTED_PTX_VERSION",
        "the driver is older than the PTX: its compiler does not know the version",
    ),
    row(223, UnknownError, "JIT_COMPILATION_DISABLED", "compiling PTX was disabled"),
    row(224, UnknownError, "UNSUPPORTED_EXEC_AFFINITY", "the device has no such execution affinity"),
    row(225, UnknownError, "UNSUPPORTED_DEVSIDE_SYNC", "kernels may not wait for what they launch"),
    row(226, UnknownError, "CONTAINED", "an error was contained to this process"),
    row(300, InvalidSource, "INVALID_SOURCE", "the kernel source is invalid"),
    row(301, FileNotFound, "FILE_NOT_FOUND", "the file was not found"),
    row(302, SharedObjectSymbolNotFound, "SHARED_OBJECT_SYMBOL_NOT_FOUND", "a shared library lacks a function"),
    row(303, SharedObjectInitFailed, "SHARED_OBJECT_INIT_FAILED", "a shared library could not be initialised"),
    row(304, OperatingSystemError, "OPERATING_SYSTEM", "a call to the operating system failed"),
    row(400, InvalidHandle, "INVALID_HANDLE", "a handle is invalid"),
    row(401, UnknownError, "ILLEGAL_STATE", "a resource is not in the state that the call needs"),
    row(402, UnknownError, "LOSSY_QUERY", "the answer would lose information"),
    row(500, NotFound, "NOT_FOUND", "the name was not found"),
    row(600, NotReady, "NOT_READY", "the work is not done yet"),
    row(700, IllegalAddress, "ILLEGAL_ADDRESS", "a kernel used an address that is not its own"),
    row(701, LaunchOutOfResources, "LAUNCH_OUT_OF_RESOURCES", "a block needs more than a multiprocessor has"),
    row(702, LaunchTimeout, "LAUNCH_TIMEOUT", "a kernel ran for too long"),
    row(
        703,
        LaunchIncompatibleTexturing,
        "LAUNCH_INCOMPATIBLE_TEXTURING",
        "the kernel's texturing mode is incompatible",
    ),
    row(704, PeerAccessAlreadyEnabled, "PEER_ACCESS_ALREADY_ENABLED", "access to the peer is enabled already"),
    row(705, PeerAccessNotEnabled, "PEER_ACCESS_NOT_ENABLED", "access to the peer is not enabled"),
    row(708, PrimaryContextActive, "PRIMARY_CONTEXT_ACTIVE", "the primary context is active already"),
    row(709, ContextIsDestroyed, "CONTEXT_IS_DESTROYED", "the context is destroyed"),
    row(710, AssertError, "ASSERT", "an assertion in a kernel failed"),
    row(711, TooManyPeers, "TOO_MANY_PEERS", "there are too many peers"),
    row(712, HostMemoryAlreadyRegistered, "HOST_MEMORY_ALREADY_REGISTERED", "the memory is pinned already"),
    row(713, HostMemoryNotRegistered, "HOST_MEMORY_NOT_REGISTERED", "the memory is not pinned"),
    row(714, HardwareStackError, "HARDWARE_STACK_ERROR", "a kernel broke its stack"),
    row(715, IllegalInstruction, "ILLEGAL_INSTRUCTION", "a kernel ran an illegal instruction"),
    row(716, MisalignedAddress, "MISALIGNED_ADDRESS", "a kernel used a misaligned address"),
    row(717, InvalidAddressSpace, "INVALID_ADDRESS_SPACE", "a kernel used an address of the wrong memory"),
    row(718, InvalidProgramCounter, "INVALID_PC", "a kernel jumped out of its code"),
    row(719, LaunchFailed, "LAUNCH_FAILED", "a kernel failed"),
    row(720, UnknownError, "COOPERATIVE_LAUNCH_TOO_LARGE", "a cooperative launch has more blocks than fit at once"),
    row(721, UnknownError, "TENSOR_MEMORY_LEAK", "a kernel ended with tensor memory not freed"),
    row(800, NotPermitted, "NOT_PERMITTED", "the operation is not permitted"),
    row(801, NotSupported, "NOT_SUPPORTED", "the operation is not supported here"),
    row(
        802,
        UnknownError,
        "SYSTEM_NOT_READY",
        "the system is not ready yet for CUDA; are the driver's services running?",
    ),
    row(
        803,
        UnknownError,
        "SYSTEM_DRIVER_MISMATCH",
        "the kernel driver and the driver library have different versions",
    ),
    row(804, UnknownError, "COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility is not supported on this device"),
    row(805, UnknownError, "MPS_CONNECTION_FAILED", "the MPS server cannot be reached"),
    row(806, UnknownError, "MPS_RPC_FAILURE", "a call to the MPS server failed"),
    row(807, UnknownError, "MPS_SERVER_NOT_READY", "the MPS server is not ready"),
    row(808, UnknownError, "MPS_MAX_CLIENTS_REACHED", "the MPS server has as many clients as it takes"),
    row(809, UnknownError, "MPS_MAX_CONNECTIONS_REACHED", "the MPS server has as many connections as the device takes"),
    row(810, UnknownError, "MPS_CLIENT_TERMINATED", "the MPS server ended this client"),
    row(811, UnknownError, "CDP_NOT_SUPPORTED", "launches from kernels are not supported here"),
    row(812, UnknownError, "CDP_VERSION_MISMATCH", "parts of the program launch from kernels in different ways"),
    row(900, UnknownError, "STREAM_CAPTURE_UNSUPPORTED", "the operation is not allowed while the stream is captured"),
    row(901, UnknownError, "STREAM_CAPTURE_INVALIDATED", "an earlier error ended the stream's capture"),
    row(902, UnknownError, "STREAM_CAPTURE_MERGE", "the call would merge two captures"),
    row(903, UnknownError, "STREAM_CAPTURE_UNMATCHED", "the capture was not begun on this stream"),
    row(904, UnknownError, "STREAM_CAPTURE_UNJOINED", "a stream that joined the capture was not joined back"),
    row(905, UnknownError, "STREAM_CAPTURE_ISOLATION", "the call would make captured work depend on work outside"),
    row(906, UnknownError, "STREAM_CAPTURE_IMPLICIT", "the call would use the null stream during a capture"),
    row(907, UnknownError, "CAPTURED_EVENT", "the event was recorded in a capture"),
    row(908, UnknownError, "STREAM_CAPTURE_WRONG_THREAD", "the capture was begun on another thread"),
    row(909, UnknownError, "TIMEOUT", "the wait took too long"),
    row(910, UnknownError, "GRAPH_EXEC_UPDATE_FAILURE", "the graph cannot be updated in this way"),
    row(911, UnknownError, "EXTERNAL_DEVICE", "a device other than a GPU failed"),
    row(912, UnknownError, "INVALID_CLUSTER_SIZE", "the cluster of blocks is misconfigured"),
    row(913, UnknownError, "FUNCTION_NOT_LOADED", "the kernel is not loaded"),
    row(914, UnknownError, "INVALID_RESOURCE_TYPE", "the resource is of the wrong type"),
    row(915, UnknownError, "INVALID_RESOURCE_CONFIGURATION", "the resource is misconfigured"),
    row(916, UnknownError, "KEY_ROTATION", "the key was being changed"),
    row(999, UnknownError, "UNKNOWN", "the driver gives no reason"),
    row(100_100, InvalidMemoryAllocation, "INVALID_MEMORY_ALLOCATION", "no memory of that size can exist"),
    row(100_101, OptixError, "OPTIX", "OptiX failed"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_ascend_and_agree_with_the_enum() {
        assert!(ROWS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for row in ROWS {
            let own = i64::from(row.error as u32) == i64::from(row.code);
            assert!(own || row.error == UnknownError, "{row:?}");
            assert_eq!(error(row.code), row.error);
            assert!(!row.text.is_empty() && !row.text.ends_with('.'), "{row:?}");
        }
    }

    /// An error that has no row would say `CUDA_ERROR_UNKNOWN` of itself.
    #[test]
    fn every_error_of_the_enum_has_its_row() {
        let known: Vec<u32> = ROWS.iter().map(|row| row.error as u32).filter(|&code| code != 999).collect();
        assert_eq!(known.len(), 59);
        for row in ROWS.iter().filter(|row| row.error != UnknownError) {
            assert_eq!(Row::of(row.error).code, row.code);
        }
        assert_eq!(Row::of(UnknownError).code, 999);
    }

    #[test]
    fn an_errors_page_says_what_its_row_says() {
        let lines: Vec<&str> = include_str!("error.rs").lines().map(str::trim).collect();
        for row in ROWS.iter().filter(|row| Row::of(row.error).code == row.code) {
            let name = format!("{:?} =", row.error);
            let at = lines.iter().position(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("no {name}"));
            let page = lines[at - 1].trim_start_matches("/// ").to_lowercase();
            assert!(page.starts_with(&row.text.to_lowercase()), "{name}: {page}");
        }
    }

    #[test]
    fn codes_without_a_variant_keep_their_names() {
        assert_eq!((error(222), name(222).as_str()), (UnknownError, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"));
        assert_eq!((error(34), name(34).as_str()), (UnknownError, "CUDA_ERROR_STUB_LIBRARY"));
        assert_eq!((error(12_345), name(12_345).as_str()), (UnknownError, "CUDA_ERROR_12345"));
        assert_eq!((error(-1), name(i32::MIN).as_str()), (UnknownError, "CUDA_ERROR_-2147483648"));
        assert_eq!((error(218), name(218).as_str()), (InvalidPtx, "CUDA_ERROR_INVALID_PTX"));
    }

    #[test]
    fn display_needs_no_driver() {
        assert_eq!(OutOfMemory.to_string(), "out of memory");
        assert_eq!(UnknownError.to_string(), "the driver gives no reason");
        assert_eq!(InvalidMemoryAllocation.to_string(), "no memory of that size can exist");
    }
}
