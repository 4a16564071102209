//! The driver beneath `cust`: its failures as [`Error`]s, and what only our `cust` has.
//!
//! This is the one file that touches `cust::extra`; with `cfg(published_cust)` stand-ins take its place, so that the
//! rest type-checks against the published crate too.

use crate::error::{Error, Result, Version};
use crate::shape::wide;
use cust::context::Context;
use cust::error::{CudaError, CudaResult};
use cust::function::Function;
use cust::module::Module;
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

thread_local! {
    /// What the caller asked for, by the name of the function.
    static DURING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// While this lives, failures on this thread are said to have happened in that function.
#[must_use = "it names failures as long as it lives"]
pub(crate) struct During {
    is_outermost: bool,
}

/// Names what the caller asked for in what fails from now on; of functions that call each other the first is the caller's.
pub(crate) fn during(function: &'static str) -> During {
    let is_outermost = DURING.get().is_none();
    if is_outermost {
        DURING.set(Some(function));
    }
    During { is_outermost }
}

/// What was asked for on this thread; for another one that does a part of it.
pub(crate) fn asked_for() -> Option<&'static str> {
    DURING.get()
}

impl Drop for During {
    fn drop(&mut self) {
        if self.is_outermost {
            DURING.set(None);
        }
    }
}

/// The driver's function, and what the caller asked for.
fn located(operation: String) -> String {
    match DURING.get() {
        Some(function) => format!("{operation} in {function}"),
        None => operation,
    }
}

/// The fault after which no GPU call of this process can succeed.
static LOST: OnceLock<Fault> = OnceLock::new();

#[derive(Debug)]
struct Fault {
    operation: String,
    code: i32,
    name: String,
}

impl Fault {
    fn error(&self) -> Error {
        Error::ContextLost { operation: self.operation.clone(), code: self.code, name: self.name.clone() }
    }
}

/// Codes after which no GPU call of this process can succeed. Of most of them NVIDIA's manual says that the process must be
/// terminated and relaunched; of 710, an assertion in a kernel, that the context must be destroyed, which the primary one is
/// with the process; 214 and 220, memory or NVLink beyond correction, end the context's work as well.
const fn is_fatal(code: i32) -> bool {
    // CONTAINED 226, TENSOR_MEMORY_LEAK 721, MPS_CLIENT_TERMINATED 810.
    matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 | 810)
}

/// The context is destroyed, or not there yet: not by a fault, and of one GPU alone, so that the driver is asked anew each
/// time.
const CONTEXT_IS_DESTROYED: i32 = 709;

/// Fails at once where the context was lost before.
pub(crate) fn alive() -> Result<()> {
    match LOST.get() {
        Some(fault) => Err(fault.error()),
        None => Ok(()),
    }
}

/// The error of a call that has just failed on this thread.
pub(crate) fn failed(error: CudaError) -> Error {
    classify(platform::last_failure(error))
}

/// The error of a context that could not be made. A GPU that cannot give one for its own hardware's sake leaves the others of
/// this process as they are.
pub(crate) fn open_failed(error: CudaError) -> Error {
    match platform::last_failure(error) {
        Failure { operation, code: code @ (214 | 220), name, text, .. } => {
            Error::Driver { operation: located(operation), code, name, text }
        }
        failure => classify(failure),
    }
}

/// The error of an allocation that has just failed on this thread.
pub(crate) fn allocation_failed(error: CudaError, wanted: u64, memory: impl FnOnce() -> Option<(u64, u64)>) -> Error {
    // Before the driver is asked anything else, whose failure would then be the last one.
    let failure = platform::last_failure(error);
    if error == CudaError::OutOfMemory || error == CudaError::InvalidMemoryAllocation {
        let (free, total) = memory().unwrap_or((0, 0));
        return Error::OutOfMemory { operation: located(failure.operation), wanted, free, total };
    }
    classify(failure)
}

/// The error of a module that did not load.
pub(crate) fn load_failed(error: CudaError, entry: &str) -> Error {
    module_error(platform::last_failure(error), entry)
}

fn module_error(failure: Failure, entry: &str) -> Error {
    match failure.code {
        // NO_BINARY_FOR_GPU, INVALID_PTX, JIT_COMPILER_NOT_FOUND, UNSUPPORTED_PTX_VERSION, JIT_COMPILATION_DISABLED
        200 | 209 | 218 | 221..=223 => {
            let log = if failure.log.trim().is_empty() { failure.text } else { failure.log };
            let operation = located(failure.operation);
            Error::Jit { entry: entry.to_owned(), operation, code: failure.code, name: failure.name, log }
        }
        _ => classify(failure),
    }
}

/// The error of a launch, or of waiting for it, which names the kernel.
pub(crate) fn launch_failed(error: CudaError, entry: &str) -> Error {
    let mut failure = platform::last_failure(error);
    failure.operation = format!("{} of kernel {entry}", failure.operation);
    classify(failure)
}

/// What is wrong with a driver that gives a code in a function, and what to do, where its user can do something.
fn remedy(code: i32, function: &str) -> Option<&'static str> {
    Some(match code {
        // STUB_LIBRARY, CALL_REQUIRES_NEWER_DRIVER, SHARED_OBJECT_INIT_FAILED
        34 => {
            "the CUDA toolkit's stub was loaded in place of the driver's libcuda.so.1: take the toolkit's folder `stubs` out of \
             LD_LIBRARY_PATH"
        }
        36 => "the driver is older than its library asks for: update the driver",
        303 => "one of the driver's libraries does not start: install the driver again",
        // OPERATING_SYSTEM: later it is of that call alone.
        304 if function == "cuInit" => {
            "the system does not let the driver at its devices: look whether /dev/nvidia* are there, in a container too, and \
             may be opened"
        }
        // SYSTEM_DRIVER_MISMATCH, COMPAT_NOT_SUPPORTED_ON_DEVICE
        803 => {
            "the driver's library and kernel module are of different versions: restart the machine after an update; in a \
             container, take the host's library"
        }
        804 => {
            "a libcuda.so.1 for forward compatibility was loaded, which this GPU does not allow: take its folder (`compat`) \
             out of LD_LIBRARY_PATH, or update the driver"
        }
        _ => return None,
    })
}

/// Whether the codes 100 and 101 of this function say which devices there are; of others they are faults of that call.
fn says_what_is_there(function: &str) -> bool {
    matches!(function, "cuInit" | "cuDeviceGet" | "cuDeviceGetCount")
}

fn classify(failure: Failure) -> Error {
    let Failure { operation, code, name, text, .. } = failure;
    let remedy = remedy(code, &operation);
    let is_absent = says_what_is_there(&operation);
    let operation = located(operation);
    if is_fatal(code) {
        return LOST.get_or_init(|| Fault { operation, code, name }).error();
    }
    if let Some(remedy) = remedy {
        return Error::DriverSetup { operation, code, name, remedy };
    }
    match code {
        100 if is_absent => Error::NoDevice { reason: "the driver sees no device".to_owned() },
        101 if is_absent => Error::NoDevice { reason: "the driver has no device of that number".to_owned() },
        2 => Error::OutOfMemory { operation, wanted: 0, free: 0, total: 0 },
        // DEVICE_UNAVAILABLE, CONTEXT_ALREADY_IN_USE, SYSTEM_NOT_READY
        46 | 216 | 802 => Error::DeviceBusy { operation, code, name },
        CONTEXT_IS_DESTROYED => Error::ContextLost { operation, code, name },
        _ => Error::Driver { operation, code, name, text },
    }
}

/// A failed driver call, as plain data.
struct Failure {
    operation: String,
    code: i32,
    name: String,
    text: String,
    log: String,
}

/// The process that first opened the driver; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Fails in a process that was forked from one that had opened the driver.
pub(crate) fn same_process() -> Result<()> {
    let opened_by = PROCESS.load(Ordering::Relaxed);
    if opened_by == 0 || opened_by == std::process::id() { Ok(()) } else { Err(Error::Forked) }
}

/// Loads and initialises the driver library, once; its path.
pub(crate) fn open() -> Result<String> {
    same_process()?;
    alive()?;
    let path = platform::load()?;
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    cust::init(cust::CudaFlags::empty()).map_err(failed)?;
    Ok(path)
}

/// The newest CUDA that the driver serves.
pub(crate) fn version() -> Result<Version> {
    let number = platform::driver_version().map_err(failed)?;
    let number = u32::try_from(number).unwrap_or(0);
    Ok(Version { major: number / 1000, minor: number % 1000 / 10 })
}

/// Free and total bytes of the current context's device.
pub(crate) fn memory() -> Result<(u64, u64)> {
    let (free, total) = cust::memory::mem_get_info().map_err(failed)?;
    Ok((wide(free), wide(total)))
}

/// The ordinal of the device of the thread's current context, and that context; `None` if there is none.
pub(crate) fn current() -> Result<Option<(u32, *mut c_void)>> {
    let context = platform::current_context().map_err(failed)?;
    if context.is_null() {
        return Ok(None);
    }
    let device = platform::current_device().map_err(|error| match error {
        // Somebody else's: ours, if there is one, is not lost with it.
        CudaError::ContextIsDestroyed => {
            Error::NoDevice { reason: "the context that is current on this thread has been destroyed".to_owned() }
        }
        error => failed(error),
    })?;
    for ordinal in 0..cust::device::Device::num_devices().map_err(failed)? {
        if cust::device::Device::get_device(ordinal).map_err(failed)? == device {
            return Ok(Some((ordinal, context)));
        }
    }
    Err(Error::NoDevice { reason: "the current context's device is not in the driver's list".to_owned() })
}

/// Bytes of dynamic shared memory that a block may have once its kernel opts in.
pub(crate) fn shared_per_block(device: cust::device::Device) -> CudaResult<i32> {
    platform::shared_per_block(device)
}

/// Lets a kernel's blocks have so much dynamic shared memory, and no more.
pub(crate) fn allow_shared(function: &Function<'_>, bytes: u32) -> CudaResult<()> {
    platform::allow_shared(function, bytes)
}

/// A function of the module that was got before.
///
/// # Safety
/// `raw` is a function of this module.
pub(crate) unsafe fn function_of(module: &Module, raw: *mut c_void) -> Function<'_> {
    // SAFETY: `raw` is a function of this module, as the caller promised.
    unsafe { platform::function_of(module, raw) }
}

/// Whether launches on the stream are being recorded into a graph.
pub(crate) fn is_capturing(stream: &cust::stream::Stream) -> Result<bool> {
    platform::is_capturing(stream).map_err(failed)
}

/// Makes the context current until the result is dropped; the caller's is then current again.
pub(crate) fn enter(context: &Context) -> Result<Entered> {
    platform::enter(context).map_err(failed)
}

/// Somebody else's stream.
///
/// # Safety
/// `raw` is a stream that outlives the result.
pub(crate) unsafe fn borrow_stream(raw: *mut c_void) -> ManuallyDrop<cust::stream::Stream> {
    // SAFETY: `raw` is a stream that outlives the result, as the caller promised.
    unsafe { platform::borrow_stream(raw) }
}

pub(crate) use platform::{Entered, Graph};

#[cfg(not(published_cust))]
mod platform {
    use super::*;
    use cust::extra;

    pub(crate) type Entered = extra::Current;
    pub(crate) type Graph = extra::Graph;

    pub(super) fn last_failure(error: CudaError) -> Failure {
        match extra::last_failure() {
            Some(failure) => Failure {
                operation: failure.function.to_owned(),
                code: failure.code,
                name: failure.name,
                text: failure.text,
                log: failure.log,
            },
            None => Failure {
                operation: "the driver".to_owned(),
                code: 0,
                name: format!("{error:?}"),
                text: String::new(),
                log: String::new(),
            },
        }
    }

    pub(super) fn load() -> Result<String> {
        match extra::load() {
            Ok(library) => Ok(library.path.to_string()),
            Err(none) => Err(Error::NoDriver { tried: none.tried, reason: none.reason }),
        }
    }

    pub(super) fn driver_version() -> CudaResult<i32> {
        extra::driver_version()
    }

    pub(super) fn shared_per_block(device: cust::device::Device) -> CudaResult<i32> {
        /// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
        const OPT_IN: i32 = 97;
        extra::device_attribute(device, OPT_IN)
    }

    pub(super) fn allow_shared(function: &Function<'_>, bytes: u32) -> CudaResult<()> {
        extra::set_max_dynamic_shared(function, bytes)
    }

    pub(super) unsafe fn function_of(module: &Module, raw: *mut c_void) -> Function<'_> {
        // SAFETY: `raw` is a function of `module`, as this one's caller promised.
        unsafe { extra::function_of(module, raw) }
    }

    pub(super) fn is_capturing(stream: &cust::stream::Stream) -> CudaResult<bool> {
        extra::is_capturing(stream)
    }

    pub(super) fn enter(context: &Context) -> CudaResult<Entered> {
        extra::enter(context)
    }

    pub(super) unsafe fn borrow_stream(raw: *mut c_void) -> ManuallyDrop<cust::stream::Stream> {
        // SAFETY: `raw` is a stream that outlives the result, as this one's caller promised.
        unsafe { extra::borrow_stream(raw) }
    }

    pub(super) fn current_context() -> CudaResult<*mut c_void> {
        extra::current_context_raw()
    }

    pub(super) fn current_device() -> CudaResult<cust::device::Device> {
        extra::current_device()
    }
}

/// Enough of the same for a type check against the published crate, which has none of it.
#[cfg(published_cust)]
mod platform {
    use super::*;
    use cust::context::CurrentContext;

    pub(crate) struct Entered;

    pub(crate) struct Graph;

    impl Graph {
        pub(crate) fn record<R>(_: &cust::stream::Stream, _: impl FnOnce() -> R) -> CudaResult<(R, CudaResult<Graph>)> {
            Err(CudaError::NotSupported)
        }

        pub(crate) unsafe fn launch(&mut self, _: &cust::stream::Stream) -> CudaResult<()> {
            Err(CudaError::NotSupported)
        }
    }

    pub(super) fn last_failure(error: CudaError) -> Failure {
        let name = format!("{error:?}");
        Failure { operation: "the driver".to_owned(), code: -1, name, text: String::new(), log: String::new() }
    }

    pub(super) fn load() -> Result<String> {
        Ok(String::new())
    }

    pub(super) fn driver_version() -> CudaResult<i32> {
        let version = cust::CudaApiVersion::get()?;
        Ok(version.major() * 1000 + version.minor() * 10)
    }

    pub(super) fn shared_per_block(device: cust::device::Device) -> CudaResult<i32> {
        device.get_attribute(cust::device::DeviceAttribute::MaxSharedMemoryPerBlock)
    }

    pub(super) fn allow_shared(_: &Function<'_>, _: u32) -> CudaResult<()> {
        Err(CudaError::NotSupported)
    }

    pub(super) unsafe fn function_of(_: &Module, _: *mut c_void) -> Function<'_> {
        unimplemented!("the published crate has no way to make a function of a handle")
    }

    pub(super) fn is_capturing(_: &cust::stream::Stream) -> CudaResult<bool> {
        Ok(false)
    }

    pub(super) fn enter(context: &Context) -> CudaResult<Entered> {
        CurrentContext::set_current(context)?;
        Ok(Entered)
    }

    pub(super) unsafe fn borrow_stream(_: *mut c_void) -> ManuallyDrop<cust::stream::Stream> {
        unimplemented!("the published crate has no way to borrow a stream")
    }

    pub(super) fn current_context() -> CudaResult<*mut c_void> {
        Ok(std::ptr::null_mut())
    }

    pub(super) fn current_device() -> CudaResult<cust::device::Device> {
        CurrentContext::get_device()
    }
}

#[cfg(all(test, not(published_cust)))]
mod tests {
    use super::*;

    fn failure(code: i32) -> Failure {
        let text = |text: &str| text.to_owned();
        Failure { operation: text("op"), code, name: text("NAME"), text: text("text"), log: text("log") }
    }

    fn kind(error: &Error) -> &'static str {
        match error {
            Error::NoDevice { .. } => "no device",
            Error::OutOfMemory { .. } => "memory",
            Error::DeviceBusy { .. } => "busy",
            Error::Driver { .. } => "driver",
            Error::DriverSetup { .. } => "setup",
            Error::ContextLost { .. } => "lost",
            Error::Jit { .. } => "jit",
            _ => "other",
        }
    }

    #[test]
    fn codes_become_errors_to_match_on() {
        for (code, expected) in [(2, "memory"), (46, "busy"), (216, "busy"), (802, "busy")] {
            assert_eq!(kind(&classify(failure(code))), expected, "{code}");
        }
        for code in [34, 36, 303, 803, 804] {
            assert_eq!(kind(&classify(failure(code))), "setup", "{code}");
        }
        // Of the start of the driver, and of a call that comes later.
        let of = |function: &str, code| kind(&classify(Failure { operation: function.to_owned(), ..failure(code) }));
        assert_eq!((of("cuInit", 304), of("cuMemHostAlloc", 304)), ("setup", "driver"));
        for function in ["cuInit", "cuDeviceGet", "cuDeviceGetCount"] {
            assert_eq!((of(function, 100), of(function, 101)), ("no device", "no device"), "{function}");
        }
        for function in ["cuCtxGetDevice", "cuDeviceGetName", "cuMemAlloc"] {
            assert_eq!((of(function, 100), of(function, 101)), ("driver", "driver"), "{function}");
        }
        for code in [1, 3, 100, 101, 304, 400, 999, 12345] {
            assert!(matches!(classify(failure(code)), Error::Driver { code: found, .. } if found == code));
        }
        for code in [200, 209, 218, 221, 222, 223] {
            let error = module_error(failure(code), "entry");
            assert!(
                matches!(&error, Error::Jit { operation, log, .. } if operation == "op" && log == "log"),
                "{error}"
            );
        }
        assert_eq!(kind(&module_error(failure(2), "entry")), "memory");
        // What is lost stays lost for the process: the tests here do not touch a GPU, and look at the codes alone.
        let fatal = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810];
        assert_eq!((0..1000).filter(|&code| is_fatal(code)).collect::<Vec<_>>(), fatal);
        assert_eq!(kind(&classify(failure(CONTEXT_IS_DESTROYED))), "lost");
        assert!(LOST.get().is_none(), "a context that somebody destroyed is no fault of the process");
    }
}
