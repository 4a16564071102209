//! A driver for tests: functions of our own in place of the library's, on the threads that install them.
//!
//! It keeps a thread's stack of contexts, hands out handles, counts what was made and not freed, and fails as told.

use crate::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUjit_option, CUmodule, CUstream,
    Table,
};
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static INSTALLED: Cell<Option<&'static Table>> = const { Cell::new(None) };
    static STATE: RefCell<State> = const { RefCell::new(State::new(0)) };
}

pub(crate) fn installed() -> Option<&'static Table> {
    INSTALLED.try_with(Cell::get).ok().flatten()
}

struct State {
    /// The primary context: another one for each test, since retentions are known in the whole process.
    primary: usize,
    calls: Vec<&'static str>,
    contexts: Vec<usize>,
    /// Streams that copies were given to.
    copied_on: Vec<usize>,
    /// Addresses that were given back.
    freed: Vec<CUdeviceptr>,
    next: usize,
    fail: Fail,
}

impl State {
    const fn new(primary: usize) -> State {
        State {
            primary,
            calls: Vec::new(),
            contexts: Vec::new(),
            copied_on: Vec::new(),
            freed: Vec::new(),
            next: 0x1000,
            fail: Fail::Never,
        }
    }
}

/// Which calls fail, and with which code.
#[derive(Clone, Copy)]
pub(crate) enum Fail {
    Never,
    /// Every call of a function.
    All(&'static str, c_int),
    /// One call, counted from 1.
    Nth(usize, c_int),
}

/// The fake driver on this thread, until it is dropped.
pub(crate) struct Fake;

impl Fake {
    pub(crate) fn install() -> Fake {
        static PLAIN: Table = TABLE;
        Fake::with(&PLAIN)
    }

    pub(crate) fn with(table: &'static Table) -> Fake {
        static FAKES: AtomicUsize = AtomicUsize::new(1);
        STATE.set(State::new(FAKES.fetch_add(1, Ordering::Relaxed) << 32));
        INSTALLED.set(Some(table));
        Fake
    }

    pub(crate) fn fail(&self, fail: Fail) {
        STATE.with_borrow_mut(|state| state.fail = fail);
    }

    /// The calls since the last time this was asked.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        STATE.with_borrow_mut(|state| std::mem::take(&mut state.calls))
    }

    pub(crate) fn contexts(&self) -> Vec<usize> {
        STATE.with_borrow(|state| state.contexts.clone())
    }

    pub(crate) fn primary(&self) -> usize {
        STATE.with_borrow(|state| state.primary)
    }

    pub(crate) fn copied_on(&self) -> Vec<usize> {
        STATE.with_borrow(|state| state.copied_on.clone())
    }

    pub(crate) fn freed(&self) -> Vec<CUdeviceptr> {
        STATE.with_borrow(|state| state.freed.clone())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        INSTALLED.set(None);
    }
}

fn answer(function: &'static str) -> c_int {
    STATE.with_borrow_mut(|state| {
        state.calls.push(function);
        match state.fail {
            Fail::All(name, code) if name == function => code,
            Fail::Nth(n, code) if n == state.calls.len() => code,
            _ => 0,
        }
    })
}

/// Answers a call that makes something; `at` is a place for a handle or an address.
unsafe fn make(function: &'static str, at: *mut usize) -> c_int {
    let code = answer(function);
    if code == 0 {
        STATE.with_borrow_mut(|state| {
            state.next += 0x100;
            // SAFETY: `at` is a place for a handle or an address, as the caller promised.
            unsafe { at.write(state.next) };
        });
    }
    code
}

fn copy(function: &'static str, stream: CUstream) -> c_int {
    STATE.with_borrow_mut(|state| state.copied_on.push(stream.addr()));
    answer(function)
}

unsafe extern "system" fn retain(context: *mut CUcontext, _device: CUdevice) -> c_int {
    let primary = STATE.with_borrow(|state| state.primary);
    // SAFETY: `context` is a place for the answer: `Primary::retain` gives its own variable.
    unsafe { context.write(ptr::without_provenance_mut(primary)) };
    answer("retain")
}

unsafe extern "system" fn current(context: *mut CUcontext) -> c_int {
    let top = STATE.with_borrow(|state| state.contexts.last().copied().unwrap_or(0));
    // SAFETY: `context` is a place for the answer: both callers give a variable of theirs.
    unsafe { context.write(ptr::without_provenance_mut(top)) };
    answer("current")
}

unsafe extern "system" fn set_current(context: CUcontext) -> c_int {
    let code = answer("set_current");
    if code == 0 {
        STATE.with_borrow_mut(|state| {
            state.contexts.pop();
            state.contexts.push(context.addr());
        });
    }
    code
}

unsafe extern "system" fn push(context: CUcontext) -> c_int {
    let code = answer("push");
    if code == 0 {
        STATE.with_borrow_mut(|state| state.contexts.push(context.addr()));
    }
    code
}

unsafe extern "system" fn pop(_context: *mut CUcontext) -> c_int {
    STATE.with_borrow_mut(|state| state.contexts.pop());
    answer("pop")
}

/// Writes to the compiler's error log, as the options say where.
unsafe extern "system" fn load(
    module: *mut CUmodule,
    _image: *const c_void,
    count: c_uint,
    options: *mut CUjit_option,
    values: *mut *mut c_void,
) -> c_int {
    let count = usize::try_from(count).expect("a few");
    // SAFETY: there are `count` options and values.
    let (options, values) =
        unsafe { (std::slice::from_raw_parts(options, count), std::slice::from_raw_parts(values, count)) };
    let find = |wanted| options.iter().position(|&option| option == wanted).map(|index| values[index]);
    let (log, room) = (find(5).expect("an error log"), find(6).expect("its length").addr());
    let text = b"ptxas fatal: no\0";
    assert!(room >= text.len());
    // SAFETY: there is room.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), log.cast(), text.len()) };
    // SAFETY: `module` is a place for the answer: `Module::load` gives its own variable.
    unsafe { make("load", module.cast()) }
}

/// Flags of a stream are part of the call's name where they are not those of every stream here.
unsafe extern "system" fn stream(stream: *mut CUstream, flags: c_uint, _priority: c_int) -> c_int {
    // SAFETY: `stream` is a place for the answer: `Stream::new` gives its own variable.
    unsafe { make(if flags == 1 { "stream" } else { "blocking stream" }, stream.cast()) }
}

/// Host memory that holds something: the page-locked buffer writes to it. Never given back, as a test has little.
unsafe extern "system" fn host_alloc(at: *mut *mut c_void, bytes: usize, _flags: c_uint) -> c_int {
    let code = answer("alloc host");
    if code == 0 {
        // SAFETY: `at` is a place for the answer: `cuda_malloc_locked` gives its own variable.
        unsafe { at.write(Vec::leak(vec![0_u128; bytes.div_ceil(16)]).as_mut_ptr().cast()) };
    }
    code
}

/// One function of the fake driver, which does nothing but answer.
macro_rules! answering {
    ($name:literal, $($type:ty),*) => {{
        unsafe extern "system" fn function($(_: $type),*) -> c_int { answer($name) }
        Some(function)
    }};
}

/// One function of the fake driver, which makes something.
macro_rules! making {
    ($name:literal, $handle:ty $(, $type:ty)*) => {{
        unsafe extern "system" fn function(at: *mut $handle $(, _: $type)*) -> c_int {
            // SAFETY: `at` is a place of 8 bytes, a handle's or an address's: each caller of the driver gives a
            // variable of its own.
            unsafe { make($name, at.cast()) }
        }
        Some(function)
    }};
}

unsafe extern "system" fn to_device(_: CUdeviceptr, _: *const c_void, _: usize, stream: CUstream) -> c_int {
    copy("HtoD", stream)
}

unsafe extern "system" fn to_host(_: *mut c_void, _: CUdeviceptr, _: usize, stream: CUstream) -> c_int {
    copy("DtoH", stream)
}

unsafe extern "system" fn on_device(_: CUdeviceptr, _: CUdeviceptr, _: usize, stream: CUstream) -> c_int {
    copy("DtoD", stream)
}

unsafe extern "system" fn free(address: CUdeviceptr) -> c_int {
    STATE.with_borrow_mut(|state| state.freed.push(address));
    answer("free")
}

unsafe extern "system" fn set(_: CUdeviceptr, _: u8, _: usize, stream: CUstream) -> c_int {
    copy("set", stream)
}

unsafe extern "system" fn end_capture(_: CUstream, graph: *mut CUgraph) -> c_int {
    // SAFETY: `graph` is a place for the answer: both callers give a variable of theirs.
    unsafe { make("end", graph.cast()) }
}

/// The same driver with graphs.
pub(crate) static GRAPHS: Table = Table {
    cuStreamBeginCapture_v2: answering!("begin", CUstream, c_uint),
    cuStreamEndCapture: Some(end_capture),
    cuGraphInstantiateWithFlags: making!("executable", CUgraphExec, CUgraph, u64),
    cuGraphExecDestroy: answering!("no executable", CUgraphExec),
    cuGraphDestroy: answering!("no graph", CUgraph),
    ..TABLE
};

const TABLE: Table = Table {
    cuDevicePrimaryCtxRetain: Some(retain),
    cuDevicePrimaryCtxRelease_v2: answering!("release", CUdevice),
    cuCtxGetCurrent: Some(current),
    cuCtxSetCurrent: Some(set_current),
    cuCtxPushCurrent_v2: Some(push),
    cuCtxPopCurrent_v2: Some(pop),
    cuCtxSynchronize: answering!("wait",),
    cuStreamCreateWithPriority: Some(stream),
    cuStreamDestroy_v2: answering!("no stream", CUstream),
    cuStreamSynchronize: answering!("wait for stream", CUstream),
    cuEventCreate: making!("event", CUevent, c_uint),
    cuEventDestroy_v2: answering!("no event", CUevent),
    cuEventRecord: answering!("record", CUevent, CUstream),
    cuEventQuery: answering!("query", CUevent),
    cuEventElapsedTime: answering!("elapsed", *mut f32, CUevent, CUevent),
    cuModuleLoadDataEx: Some(load),
    cuModuleUnload: answering!("unload", CUmodule),
    cuModuleGetFunction: making!("function", CUfunction, CUmodule, *const c_char),
    cuMemAlloc_v2: making!("alloc", CUdeviceptr, usize),
    cuMemFree_v2: Some(free),
    cuMemAllocAsync: making!("alloc async", CUdeviceptr, usize, CUstream),
    cuMemFreeAsync: answering!("free async", CUdeviceptr, CUstream),
    cuMemHostAlloc: Some(host_alloc),
    cuMemFreeHost: answering!("free host", *mut c_void),
    cuMemcpyHtoDAsync_v2: Some(to_device),
    cuMemcpyDtoHAsync_v2: Some(to_host),
    cuMemcpyDtoDAsync_v2: Some(on_device),
    cuMemsetD8Async: Some(set),
    ..Table::EMPTY
};
