//! The driver's errors, and what this thread's last one was.

use crate::codes::{self, Row};
use crate::library;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;

/// Why a call failed.
///
/// Codes that have no variant here are [`CudaError::UnknownError`]; [`crate::extra::last_failure`] keeps the code.
#[repr(u32)]
#[expect(missing_docs, reason = "each is the driver's code of that name; Display says what it means")]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CudaError {
    InvalidValue = 1,
    OutOfMemory = 2,
    NotInitialized = 3,
    Deinitialized = 4,
    ProfilerDisabled = 5,
    ProfilerNotInitialized = 6,
    ProfilerAlreadyStarted = 7,
    ProfilerAlreadyStopped = 8,
    NoDevice = 100,
    InvalidDevice = 101,
    InvalidImage = 200,
    InvalidContext = 201,
    ContextAlreadyCurrent = 202,
    MapFailed = 205,
    UnmapFailed = 206,
    ArrayIsMapped = 207,
    AlreadyMapped = 208,
    NoBinaryForGpu = 209,
    AlreadyAcquired = 210,
    NotMapped = 211,
    NotMappedAsArray = 212,
    NotMappedAsPointer = 213,
    EccUncorrectable = 214,
    UnsupportedLimit = 215,
    ContextAlreadyInUse = 216,
    PeerAccessUnsupported = 217,
    InvalidPtx = 218,
    InvalidGraphicsContext = 219,
    NvlinkUncorrectable = 220,
    InvalidSource = 300,
    FileNotFound = 301,
    SharedObjectSymbolNotFound = 302,
    SharedObjectInitFailed = 303,
    OperatingSystemError = 304,
    InvalidHandle = 400,
    NotFound = 500,
    NotReady = 600,
    IllegalAddress = 700,
    LaunchOutOfResources = 701,
    LaunchTimeout = 702,
    LaunchIncompatibleTexturing = 703,
    PeerAccessAlreadyEnabled = 704,
    PeerAccessNotEnabled = 705,
    PrimaryContextActive = 708,
    ContextIsDestroyed = 709,
    AssertError = 710,
    TooManyPeers = 711,
    HostMemoryAlreadyRegistered = 712,
    HostMemoryNotRegistered = 713,
    HardwareStackError = 714,
    IllegalInstruction = 715,
    MisalignedAddress = 716,
    InvalidAddressSpace = 717,
    InvalidProgramCounter = 718,
    LaunchFailed = 719,
    NotPermitted = 800,
    NotSupported = 801,
    UnknownError = 999,
    InvalidMemoryAllocation = 100_100,
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
