//! What the published crate does not have. All else in this crate has its names and signatures.

use crate::context::Context;
use crate::device::Device;
use crate::error::CudaResult;
use crate::event::Event;
use crate::function::Function;
use crate::module::Module;
use crate::owner;
use crate::stream::{Stream, StreamWaitEventFlags};
use crate::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

pub use crate::error::Failure;
pub use crate::library::{LibraryInfo, NoDriver};
pub use crate::memory::AnyBits;

/// This thread's last failed call, set whenever a call of this crate gives an error; destructors leave it alone.
pub fn last_failure() -> Option<Failure> {
    crate::error::last()
}

/// Opens the driver library, which the first call of anything else does too. Later calls give the same answer.
///
/// # Errors
/// [`NoDriver`] if there is none.
pub fn load() -> Result<LibraryInfo, NoDriver> {
    crate::library::load()
}

/// The newest CUDA that the driver serves, as 1000 major + 10 minor: 13000. Needs no [`crate::init`]. `cuDriverGetVersion`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn driver_version() -> CudaResult<i32> {
    let mut version = 0;
    // SAFETY: `version` is a place for the answer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.to_result()?;
    Ok(version)
}

/// What NVIDIA calls a code, by our own table: `CUDA_ERROR_INVALID_PTX`; `CUDA_ERROR_12345` where that is not known.
pub fn error_name(code: i32) -> String {
    crate::codes::name(code)
}

/// One line on what a code means, by our own table; of codes that are not in it, that they are not.
pub fn error_text(code: i32) -> &'static str {
    crate::codes::text(code)
}

/// A device's attribute by its number in `CUdevice_attribute`; 97 is the shared memory that a block may opt in to.
/// `cuDeviceGetAttribute`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn device_attribute(device: Device, attribute: i32) -> CudaResult<i32> {
    device.attribute(attribute)
}

/// Lets blocks of this kernel have that many bytes of dynamic shared memory; without it 48 KiB is the most.
/// `cuFuncSetAttribute`.
///
/// # Errors
/// [`InvalidValue`](crate::error::CudaError::InvalidValue) if the device has less.
pub fn set_max_dynamic_shared(function: &Function<'_>, bytes: u32) -> CudaResult<()> {
    function.set_attribute(8, i32::try_from(bytes).unwrap_or(i32::MAX))
}

/// A kernel that [`Module::get_function`](crate::module::Module::get_function) gave before, by its handle
/// ([`Function::to_raw`]): the driver is not asked again.
///
/// # Safety
/// `raw` is a kernel of this module.
pub unsafe fn function_of(module: &Module, raw: *mut c_void) -> Function<'_> {
    Function::new(raw.cast(), module)
}

/// Whether work given to the stream is being recorded into a graph. `cuStreamIsCapturing`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn is_capturing(stream: &Stream) -> CudaResult<bool> {
    let mut status = 0;
    // SAFETY: the stream is alive; `status` is a place for the answer.
    unsafe { sys::cuStreamIsCapturing(stream.as_inner(), &raw mut status) }.to_result()?;
    Ok(status != 0)
}

/// Work that was recorded instead of done, and can be launched as one.
#[derive(Debug)]
pub struct Graph {
    executable: sys::CUgraphExec,
    owner: owner::Owner,
}

// SAFETY: the driver lets any thread use what is launched, one at a time (`launch` borrows it mutably), and `Owner` has the
// context current where it is freed.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `work` gives to the stream, none of which is done now. While it records, calls of this thread that
    /// could wait or allocate fail. `cuStreamBeginCapture` with the capture's mode for this thread alone,
    /// `cuStreamEndCapture`, `cuGraphInstantiateWithFlags`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), before `work` is begun; beside what `work` gives, where it did what cannot be
    /// recorded, or the driver makes no graph of it. The stream has ended recording in any case, also where `work` panics.
    pub fn record<R>(stream: &Stream, work: impl FnOnce() -> R) -> CudaResult<(R, CudaResult<Graph>)> {
        // SAFETY: the stream is alive; mode 1 is CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.
        unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), 1) }.to_result()?;
        let recording = Recording(stream);
        let result = work();
        Ok((result, recording.end().and_then(Graph::of)))
    }

    /// Takes the graph over.
    fn of(graph: sys::CUgraph) -> CudaResult<Graph> {
        let mut executable = ptr::null_mut();
        // SAFETY: a graph that was just made, and a place for the answer.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut executable, graph, 0) }.to_result();
        // SAFETY: nobody else knows of the graph; what was made from it stays.
        let _ = unsafe { sys::cuGraphDestroy(graph) };
        made.map(|()| Graph { executable, owner: owner::Owner::current() })
    }

    /// Gives the recorded work to the stream; it may be launched again. `cuGraphLaunch`.
    ///
    /// # Safety
    /// The memory that the work was recorded with is there, and nothing else uses it, until the work is done. So long the
    /// modules of the kernels in it stay loaded.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub unsafe fn launch(&mut self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: graph and stream are alive; what was recorded has its memory alone, and its modules, until the work is
        // done, as the caller promised.
        unsafe { sys::cuGraphLaunch(self.executable, stream.as_inner()) }.to_result()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `record`, destroyed once; the driver lets launches under way end first.
        let _ = self.owner.free(|| unsafe { sys::cuGraphExecDestroy(self.executable) });
    }
}

/// A stream that records; dropped, it has ended that, and what was recorded is gone.
struct Recording<'a>(&'a Stream);

impl Recording<'_> {
    fn end(self) -> CudaResult<sys::CUgraph> {
        let (stream, mut graph) = (ManuallyDrop::new(self).0, ptr::null_mut());
        // SAFETY: the stream is recording; `graph` is a place for the answer.
        unsafe { sys::cuStreamEndCapture(stream.as_inner(), &raw mut graph) }.to_result()?;
        Ok(graph)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is recording, as `end` has not run; `graph` is a place for the answer.
        let _ = unsafe { sys::cuStreamEndCapture(self.0.as_inner(), &raw mut graph) };
        if !graph.is_null() {
            // SAFETY: nobody else knows of the graph.
            let _ = unsafe { sys::cuGraphDestroy(graph) };
        }
    }
}

/// Work given to the stream from now on waits for what the event recorded. `cuStreamWaitEvent`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn wait_for(stream: &Stream, event: &Event) -> CudaResult<()> {
    stream.wait_for(event, StreamWaitEventFlags::DEFAULT)
}

/// Somebody else's stream, to be used in place; it is not destroyed.
///
/// # Safety
/// `raw` is a CUstream that outlives the result, which is not dropped by hand.
pub unsafe fn borrow_stream(raw: *mut c_void) -> ManuallyDrop<Stream> {
    Stream::borrowed(raw.cast())
}

/// This thread's current context, whoever made it; null if there is none. `cuCtxGetCurrent`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn current_context_raw() -> CudaResult<*mut c_void> {
    let mut context = ptr::null_mut();
    // SAFETY: `context` is a place for the answer.
    unsafe { sys::cuCtxGetCurrent(&raw mut context) }.to_result()?;
    Ok(context.cast())
}

/// The device of this thread's current context. `cuCtxGetDevice`.
///
/// # Errors
/// [`InvalidContext`](crate::error::CudaError::InvalidContext) if there is none, and [those of the driver](crate#errors).
pub fn current_device() -> CudaResult<Device> {
    crate::context::CurrentContext::get_device()
}

/// While this lives a context is current; when it is dropped the thread's context is the one from before.
///
/// Several are dropped in the opposite order of their making, as scopes do by themselves.
#[derive(Debug)]
#[must_use = "the context is current only as long as this lives"]
pub struct Current {
    /// Its own share of the context, so that this outlives the one that was entered.
    _context: Context,
    /// It belongs to this thread: a `*mut ()` is not Send.
    _thread: PhantomData<*mut ()>,
}

/// Makes a context current on this thread until the result is dropped. `cuCtxPushCurrent`, then `cuCtxPopCurrent`.
///
/// # Errors
/// [Those of the driver](crate#errors).
pub fn enter(context: &Context) -> CudaResult<Current> {
    // SAFETY: the context is retained, and the result keeps it so.
    unsafe { sys::cuCtxPushCurrent_v2(context.as_raw()) }.to_result()?;
    Ok(Current { _context: context.clone(), _thread: PhantomData })
}

impl Drop for Current {
    fn drop(&mut self) {
        owner::pop();
    }
}
