//! The driver's errors, and what this thread's last one was.

use crate::codes::{self, Row};
use crate::library;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;

/// Why a call failed.
///
/// Each variant is the driver's code of that number; `CUDA_ERROR_INVALID_PTX` is [`CudaError::InvalidPtx`]. Codes that have
/// no variant here are [`CudaError::UnknownError`]; [`crate::extra::last_failure`] keeps the code.
#[repr(u32)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CudaError {
    /// An argument is out of its range.
    InvalidValue = 1,
    /// Out of memory.
    OutOfMemory = 2,
    /// The driver is not initialised, or failed to be.
    NotInitialized = 3,
    /// The driver is shutting down.
    Deinitialized = 4,
    /// Profiling is not possible in this run.
    ProfilerDisabled = 5,
    /// The profiler is not initialised.
    ProfilerNotInitialized = 6,
    /// The profiler runs already.
    ProfilerAlreadyStarted = 7,
    /// The profiler is stopped already.
    ProfilerAlreadyStopped = 8,
    /// There is no CUDA device.
    NoDevice = 100,
    /// There is no device of that number.
    InvalidDevice = 101,
    /// The module is no valid kernel image.
    InvalidImage = 200,
    /// No context is current, or the one given is invalid.
    InvalidContext = 201,
    /// The context is current already.
    ContextAlreadyCurrent = 202,
    /// Mapping failed.
    MapFailed = 205,
    /// Unmapping failed.
    UnmapFailed = 206,
    /// The array is mapped.
    ArrayIsMapped = 207,
    /// The resource is mapped already.
    AlreadyMapped = 208,
    /// The module has no code for this GPU.
    NoBinaryForGpu = 209,
    /// The resource is acquired already.
    AlreadyAcquired = 210,
    /// The resource is not mapped.
    NotMapped = 211,
    /// The resource is not mapped as an array.
    NotMappedAsArray = 212,
    /// The resource is not mapped as a pointer.
    NotMappedAsPointer = 213,
    /// The device's memory had an error that cannot be corrected.
    EccUncorrectable = 214,
    /// The device has no such limit.
    UnsupportedLimit = 215,
    /// The context is in use by another thread.
    ContextAlreadyInUse = 216,
    /// The devices cannot reach each other's memory.
    PeerAccessUnsupported = 217,
    /// The PTX did not compile.
    InvalidPtx = 218,
    /// The graphics context is invalid.
    InvalidGraphicsContext = 219,
    /// NVLink had an error that cannot be corrected.
    NvlinkUncorrectable = 220,
    /// The kernel source is invalid.
    InvalidSource = 300,
    /// The file was not found.
    FileNotFound = 301,
    /// A shared library lacks a function.
    SharedObjectSymbolNotFound = 302,
    /// A shared library could not be initialised.
    SharedObjectInitFailed = 303,
    /// A call to the operating system failed.
    OperatingSystemError = 304,
    /// A handle is invalid.
    InvalidHandle = 400,
    /// The name was not found.
    NotFound = 500,
    /// The work is not done yet.
    NotReady = 600,
    /// A kernel used an address that is not its own.
    IllegalAddress = 700,
    /// A block needs more than a multiprocessor has.
    LaunchOutOfResources = 701,
    /// A kernel ran for too long.
    LaunchTimeout = 702,
    /// The kernel's texturing mode is incompatible.
    LaunchIncompatibleTexturing = 703,
    /// Access to the peer is enabled already.
    PeerAccessAlreadyEnabled = 704,
    /// Access to the peer is not enabled.
    PeerAccessNotEnabled = 705,
    /// The primary context is active already.
    PrimaryContextActive = 708,
    /// The context is destroyed.
    ContextIsDestroyed = 709,
    /// An assertion in a kernel failed.
    AssertError = 710,
    /// There are too many peers.
    TooManyPeers = 711,
    /// The memory is pinned already.
    HostMemoryAlreadyRegistered = 712,
    /// The memory is not pinned.
    HostMemoryNotRegistered = 713,
    /// A kernel broke its stack.
    HardwareStackError = 714,
    /// A kernel ran an illegal instruction.
    IllegalInstruction = 715,
    /// A kernel used a misaligned address.
    MisalignedAddress = 716,
    /// A kernel used an address of the wrong memory.
    InvalidAddressSpace = 717,
    /// A kernel jumped out of its code.
    InvalidProgramCounter = 718,
    /// A kernel failed.
    LaunchFailed = 719,
    /// The operation is not permitted.
    NotPermitted = 800,
    /// The operation is not supported here.
    NotSupported = 801,
    /// The driver gives no reason, or a code that is not known here.
    UnknownError = 999,
    /// No memory of that size can exist.
    InvalidMemoryAllocation = 100_100,
    /// OptiX failed.
    OptixError = 100_101,
}

impl fmt::Display for CudaError {
    /// Says what the code means, from a table: the driver is not asked, so this works without one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Row::of(*self).text)
    }
}

impl Error for CudaError {}

/// What most calls give.
pub type CudaResult<T> = Result<T, CudaError>;

/// What dropping by hand gives; on failure the thing is handed back.
pub type DropResult<T> = Result<(), (CudaError, T)>;

/// The last failed call of a thread. See [`crate::extra::last_failure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The driver's function, as NVIDIA documents it: `cuModuleLoadDataEx`, `cuMemAlloc`.
    pub function: &'static str,
    /// The raw code. 303 also where there is no driver library and 302 where it lacks the function.
    pub code: i32,
    /// The code's name: `CUDA_ERROR_INVALID_PTX`; of codes without a known one `CUDA_ERROR_12345`.
    pub name: String,
    /// One line on what it means.
    pub text: String,
    /// What the driver's PTX compiler wrote; empty for all but the loading of a module.
    pub log: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}): {}", self.function, self.name, self.code, self.text)
    }
}

impl Error for Failure {}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

pub(crate) fn last() -> Option<Failure> {
    // A destructor may ask when the thread's storage is gone.
    LAST.try_with(|last| last.borrow().clone()).ok().flatten()
}

fn remember(failure: Failure) {
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
}

/// Who gave a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Driver,
    NoLibrary,
    NoSymbol,
}

/// What a call gave. A destructor drops it and so leaves this thread's last failure as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) function: &'static str,
    pub(crate) code: i32,
    pub(crate) cause: Cause,
}

impl Status {
    pub(crate) fn is_ok(self) -> bool {
        self.code == 0
    }

    /// Remembers a failure as this thread's last.
    pub(crate) fn to_result(self) -> CudaResult<()> {
        self.with_log(String::new)
    }

    /// As [`Status::to_result`], with what the PTX compiler wrote.
    pub(crate) fn with_log(self, log: impl FnOnce() -> String) -> CudaResult<()> {
        if self.is_ok() {
            return Ok(());
        }
        let function = self.function.strip_suffix("_v2").unwrap_or(self.function);
        let text = match self.cause {
            Cause::Driver => codes::text(self.code).to_owned(),
            Cause::NoSymbol => format!("the CUDA driver is too old: it has no {function}"),
            Cause::NoLibrary => library::load().err().map(|none| none.to_string()).unwrap_or_default(),
        };
        remember(Failure { function, code: self.code, name: codes::name(self.code), text, log: log() });
        Err(codes::error(self.code))
    }
}

/// An error found before the driver was asked; remembered as this thread's last failure.
pub(crate) fn refuse(function: &'static str, error: CudaError, text: impl Into<String>) -> CudaError {
    let code = Row::of(error).code;
    remember(Failure { function, code, name: codes::name(code), text: text.into(), log: String::new() });
    error
}
