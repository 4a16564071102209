//! The driver's calls for graphs, which lanky itself has no use for.

use crate::lab::Outcome;
use libloading::Library;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

type Handle = *mut c_void;

/// Graph calls of libcuda.so.1, for one stream.
pub struct Driver {
    stream: Handle,
    begin: unsafe extern "system" fn(Handle, c_uint) -> c_int,
    end: unsafe extern "system" fn(Handle, *mut Handle) -> c_int,
    instantiate: unsafe extern "system" fn(*mut Handle, Handle, c_ulonglong) -> c_int,
    launch: unsafe extern "system" fn(Handle, Handle) -> c_int,
    destroy_executable: unsafe extern "system" fn(Handle) -> c_int,
    destroy: unsafe extern "system" fn(Handle) -> c_int,
    /// The functions are in it.
    _library: Library,
}

impl Driver {
    /// For the stream, whose context must be current whenever the result is used.
    ///
    /// # Errors
    /// If the driver lacks one of the functions.
    pub fn open(stream: Handle) -> Outcome<Driver> {
        // SAFETY: the driver, which is loaded already: no code of it runs now.
        let library = unsafe { Library::new("libcuda.so.1") }?;
        // SAFETY: the types are those that NVIDIA's cuda.h declares for these names.
        unsafe {
            Ok(Driver {
                stream,
                begin: *library.get(b"cuStreamBeginCapture_v2\0")?,
                end: *library.get(b"cuStreamEndCapture\0")?,
                instantiate: *library.get(b"cuGraphInstantiateWithFlags\0")?,
                launch: *library.get(b"cuGraphLaunch\0")?,
                destroy_executable: *library.get(b"cuGraphExecDestroy\0")?,
                destroy: *library.get(b"cuGraphDestroy\0")?,
                _library: library,
            })
        }
    }
}

fn done(call: &str, code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(format!("{call} failed: {code}").into()) }
}

/// A stream that records instead of running, until the end.
pub struct Recording<'d> {
    driver: &'d Driver,
}

impl<'d> Recording<'d> {
    /// In the mode in which a call that could wait or allocate, on any thread, is an error.
    pub fn begin(driver: &'d Driver) -> Outcome<Self> {
        // SAFETY: the stream is alive and its context current; mode 0 is CU_STREAM_CAPTURE_MODE_GLOBAL.
        done("cuStreamBeginCapture", unsafe { (driver.begin)(driver.stream, 0) })?;
        Ok(Recording { driver })
    }

    /// What was recorded, ready to run.
    pub fn end(self) -> Outcome<Graph<'d>> {
        let driver = self.driver;
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the stream is recording; `graph` is a place for the answer.
        done("cuStreamEndCapture", unsafe { (driver.end)(driver.stream, &raw mut graph) })?;
        // SAFETY: a graph that was just made, and a place for the answer.
        let made = done("cuGraphInstantiate", unsafe { (driver.instantiate)(&raw mut executable, graph, 0) });
        // SAFETY: nobody else knows of the graph; what was made from it stays.
        unsafe { (driver.destroy)(graph) };
        made.map(|()| Graph { driver, executable })
    }
}

/// Recorded work.
pub struct Graph<'d> {
    driver: &'d Driver,
    executable: Handle,
}

impl Graph<'_> {
    /// Gives the work to the stream.
    pub fn launch(&self) -> Outcome {
        // SAFETY: both are alive; the memory that the work uses is its recorder's, who waits for it.
        done("cuGraphLaunch", unsafe { (self.driver.launch)(self.executable, self.driver.stream) })
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `Recording::end`, dropped once.
        unsafe { (self.driver.destroy_executable)(self.executable) };
    }
}
