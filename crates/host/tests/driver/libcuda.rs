//! A driver library without a GPU, which `crates/host/tests/driver/main.rs` compiles and puts in the place of libcuda.so.1.
//!
//! It has contexts, streams, events, memory (the host's) and modules as the driver has them; kernels do nothing, but are
//! not done before somebody waits for them. FAKE_CUDA in the environment says what is there and what fails, in words like
//! `devices=2`, `version=11020`, `capability=75`, `memory=1000000`, `cuMemAlloc_v2=2` (fails with code 2),
//! `cuMemAlloc_v2=2*1` (the first time), `spoiled=1` (no recording ends well).
//!
//! With `--cfg empty` it is a library without any function.

#![allow(non_snake_case, unexpected_cfgs, reason = "the driver's names; it is not cargo's")]
#![cfg(not(empty))]

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Handle = usize;

struct State {
    settings: HashMap<String, u64>,
    /// By function: the code, and how often.
    failing: HashMap<String, (c_int, u64)>,
    /// The code of the fault after which nothing works.
    lost: c_int,
    /// What was called, in order; and what was freed, destroyed or unloaded while a stream had work.
    calls: Vec<&'static str>,
    freed_in_use: Vec<&'static str>,
    next: Handle,
    /// Contexts of streams.
    streams: HashMap<Handle, Handle>,
    /// Streams with work that nobody has waited for.
    busy: HashSet<Handle>,
    /// Streams that are recorded.
    recorded: HashSet<Handle>,
    /// Streams of events' last records.
    events: HashMap<Handle, Handle>,
    memory: HashMap<u64, Layout>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    static CONTEXTS: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

fn new() -> State {
    let words = std::env::var("FAKE_CUDA").unwrap_or_default();
    let (mut settings, mut failing) = (HashMap::new(), HashMap::new());
    for (name, value) in words.split_whitespace().filter_map(|word| word.split_once('=')) {
        if name.starts_with("cu") {
            let (code, times) = value.split_once('*').unwrap_or((value, "1000000"));
            failing.insert(name.to_owned(), (code.parse().expect("a code"), times.parse().expect("a count")));
        } else {
            settings.insert(name.to_owned(), value.parse().expect("a number"));
        }
    }
    State {
        settings,
        failing,
        lost: 0,
        calls: Vec::new(),
        freed_in_use: Vec::new(),
        next: 0x1000,
        streams: HashMap::new(),
        busy: HashSet::new(),
        recorded: HashSet::new(),
        events: HashMap::new(),
        memory: HashMap::new(),
    }
}

struct Locked(MutexGuard<'static, Option<State>>);

impl std::ops::Deref for Locked {
    type Target = State;
    fn deref(&self) -> &State {
        self.0.as_ref().expect("made by state()")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("made by state()")
    }
}

fn state() -> Locked {
    let mut guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_with(new);
    Locked(guard)
}

impl State {
    fn setting(&self, name: &str, default: u64) -> u64 {
        self.settings.get(name).copied().unwrap_or(default)
    }

    fn handle(&mut self) -> Handle {
        self.next += 0x100;
        self.next
    }

    fn used(&self) -> u64 {
        self.memory.values().map(|layout| layout.size() as u64).sum()
    }

    /// Gives back what no work may use any more.
    fn frees(&mut self, function: &'static str, is_busy: bool) {
        if is_busy {
            self.freed_in_use.push(function);
        }
    }

    fn allocate(&mut self, bytes: usize) -> Option<u64> {
        let layout = Layout::from_size_align(bytes, 256).ok()?;
        if bytes == 0 || self.used() + bytes as u64 > self.setting("memory", 1 << 30) {
            return None;
        }
        // SAFETY: not of no bytes.
        let address = unsafe { std::alloc::alloc_zeroed(layout) } as u64;
        self.memory.insert(address, layout);
        Some(address)
    }

    fn free(&mut self, address: u64) -> c_int {
        let Some(layout) = self.memory.remove(&address) else { return 1 };
        // SAFETY: from `allocate`, which was asked for so many bytes.
        unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        0
    }

    /// Whether work given to the stream is taken: a stream of the current context.
    fn takes(&self, stream: Handle) -> bool {
        self.streams.get(&stream).copied() == Some(context()) && context() != 0
    }
}

fn context() -> Handle {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0))
}

/// The context of a device, and back.
fn primary(device: c_int) -> Handle {
    0x100 + device as Handle
}

/// What every call begins with: its code if it is to fail.
fn answer(function: &'static str) -> c_int {
    let mut state = state();
    state.calls.push(function);
    if state.lost != 0 && !function.starts_with("cuCtxP") && !function.starts_with("cuDevice") {
        return state.lost;
    }
    let code = match state.failing.get_mut(function) {
        Some((code, times)) if *times > 0 => {
            *times -= 1;
            *code
        }
        _ => return 0,
    };
    // A context that is not made is none that is lost; 709 is said of one context, which others may have made anew.
    let sticky = matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 | 810);
    if sticky && function != "cuDevicePrimaryCtxRetain" {
        state.lost = code;
    }
    code
}

/// Writes text of at most so many bytes with its zero.
unsafe fn write_text(text: &str, at: *mut c_char, room: usize) {
    let len = text.len().min(room.saturating_sub(1));
    // SAFETY: the caller's room.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), len);
        at.add(len).write(0);
    }
}

/// Stamps the driver's functions: each answers first, and does its work where it is not told to fail.
macro_rules! driver {
    ($($name:ident($($argument:ident: $type:ty),*) $work:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub unsafe extern "system" fn $name($($argument: $type),*) -> c_int {
            match answer(stringify!($name)) {
                // SAFETY: the caller's places are places for the answers, as with the driver.
                0 => unsafe { $work },
                code => code,
            }
        }
    )*};
}

driver! {
    cuInit(_flags: c_uint) { 0 }
    cuDriverGetVersion(version: *mut c_int) { version.write(state().setting("version", 13_000) as c_int); 0 }
    cuDeviceGetCount(count: *mut c_int) { count.write(state().setting("devices", 1) as c_int); 0 }
    cuDeviceGet(device: *mut c_int, ordinal: c_int) { device.write(ordinal); 0 }
    cuDeviceGetName(name: *mut c_char, room: c_int, _device: c_int) { write_text("Fake", name, room as usize); 0 }
    cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { bytes.write(state().setting("memory", 1 << 30) as usize); 0 }
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        let capability = state().setting("capability", 90) as c_int;
        value.write(match attribute {
            1 => 1024,                           // threads a block
            13 => 1_980_000,                     // clock, kHz
            16 => 132,                           // multiprocessors
            36 => 3_201_000,                     // memory clock, kHz
            37 => 6144,                          // bus, bits
            38 => 50 << 20,                      // second-level cache
            39 => 2048,                          // threads a multiprocessor
            75 => capability / 10,
            76 => capability % 10,
            81 => 228 << 10,                     // shared memory a multiprocessor
            82 => 65_536,                        // registers a multiprocessor
            97 => 227 << 10,                     // shared memory a block may opt in to
            _ => 1,
        });
        0
    }
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) { context.write(primary(device)); 0 }
    cuDevicePrimaryCtxRelease_v2(_device: c_int) { 0 }

    cuCtxGetCurrent(at: *mut Handle) { at.write(context()); 0 }
    cuCtxSetCurrent(context: Handle) {
        CONTEXTS.with_borrow_mut(|contexts| { contexts.pop(); contexts.push(context); });
        0
    }
    cuCtxPushCurrent_v2(context: Handle) { CONTEXTS.with_borrow_mut(|contexts| contexts.push(context)); 0 }
    cuCtxPopCurrent_v2(_context: *mut Handle) { CONTEXTS.with_borrow_mut(|contexts| { contexts.pop(); }); 0 }
    cuCtxGetDevice(device: *mut c_int) {
        if context() == 0 { return 201; }
        device.write((context() & 0xFF) as c_int);
        0
    }
    cuCtxSynchronize() {
        let mut state = state();
        let here = context();
        let others: HashSet<_> = state.busy.iter().filter(|stream| state.streams.get(stream) != Some(&here)).copied().collect();
        state.busy = others;
        if here == 0 { 201 } else { 0 }
    }

    cuStreamCreateWithPriority(at: *mut Handle, _flags: c_uint, _priority: c_int) {
        if context() == 0 { return 201; }
        let mut state = state();
        let stream = state.handle();
        state.streams.insert(stream, context());
        at.write(stream);
        0
    }
    cuStreamDestroy_v2(stream: Handle) {
        let mut state = state();
        let is_busy = state.busy.contains(&stream);
        state.frees("cuStreamDestroy", is_busy);
        if state.streams.remove(&stream).is_some() { 0 } else { 400 }
    }
    cuStreamSynchronize(stream: Handle) {
        let mut state = state();
        state.busy.remove(&stream);
        if state.takes(stream) { 0 } else { 400 }
    }
    cuStreamIsCapturing(stream: Handle, status: *mut c_int) { status.write(state().recorded.contains(&stream).into()); 0 }
    cuStreamBeginCapture_v2(stream: Handle, _mode: c_uint) { state().recorded.insert(stream); 0 }
    cuStreamEndCapture(stream: Handle, graph: *mut Handle) {
        let mut state = state();
        state.recorded.remove(&stream);
        let is_spoiled = state.setting("spoiled", 0) == 1;
        graph.write(if is_spoiled { 0 } else { state.handle() });
        if is_spoiled { 901 } else { 0 }
    }
    cuGraphInstantiateWithFlags(at: *mut Handle, _graph: Handle, _flags: u64) { at.write(state().handle()); 0 }
    cuGraphLaunch(_graph: Handle, stream: Handle) { state().busy.insert(stream); 0 }
    cuGraphExecDestroy(_graph: Handle) { 0 }
    cuGraphDestroy(_graph: Handle) { 0 }

    cuEventCreate(event: *mut Handle, _flags: c_uint) {
        if context() == 0 { return 201; }
        event.write(state().handle());
        0
    }
    cuEventDestroy_v2(event: Handle) { state().events.remove(&event); 0 }
    cuEventRecord(event: Handle, stream: Handle) { state().events.insert(event, stream); 0 }
    cuEventQuery(event: Handle) {
        let state = state();
        if state.events.get(&event).is_some_and(|stream| state.busy.contains(stream)) { 600 } else { 0 }
    }
    cuEventSynchronize(event: Handle) {
        let mut state = state();
        if let Some(stream) = state.events.get(&event).copied() {
            state.busy.remove(&stream);
        }
        0
    }
    cuEventElapsedTime(milliseconds: *mut f32, _start: Handle, _end: Handle) { milliseconds.write(1.0); 0 }

    cuModuleUnload(_module: Handle) { let mut state = state(); let is_busy = !state.busy.is_empty(); state.frees("cuModuleUnload", is_busy); 0 }
    cuModuleGetFunction(function: *mut Handle, _module: Handle, _name: *const c_char) { function.write(state().handle()); 0 }
    cuFuncGetAttribute(value: *mut c_int, _attribute: c_int, _function: Handle) { value.write(32); 0 }
    cuFuncSetAttribute(_function: Handle, _attribute: c_int, _value: c_int) { 0 }
    cuLaunchKernel(
        _function: Handle, _x: c_uint, _y: c_uint, _z: c_uint, _bx: c_uint, _by: c_uint, _bz: c_uint, _shared: c_uint,
        stream: Handle, _arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        let mut state = state();
        if !state.takes(stream) { return 400; }
        if !state.recorded.contains(&stream) { state.busy.insert(stream); }
        0
    }

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let state = state();
        let all = state.setting("memory", 1 << 30);
        free.write((all - state.used()) as usize);
        total.write(all as usize);
        0
    }
    cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        if context() == 0 { return 201; }
        state().allocate(bytes).map_or(2, |found| { address.write(found); 0 })
    }
    cuMemFree_v2(address: u64) {
        let mut state = state();
        let is_busy = !state.busy.is_empty();
        state.frees("cuMemFree", is_busy);
        state.free(address)
    }
    cuMemHostAlloc(address: *mut u64, bytes: usize, _flags: c_uint) { state().allocate(bytes).map_or(2, |found| { address.write(found); 0 }) }
    cuMemFreeHost(address: u64) { state().free(address) }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: Handle) {
        if !state().takes(stream) { return 400; }
        std::ptr::copy_nonoverlapping(from, to as *mut u8, bytes);
        0
    }
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: Handle) {
        if !state().takes(stream) { return 400; }
        std::ptr::copy_nonoverlapping(from as *const u8, to, bytes);
        0
    }
    cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle) {
        if !state().takes(stream) { return 400; }
        std::ptr::write_bytes(address as *mut u8, value, bytes);
        0
    }
}

/// Where it fails, the compiler's log says why.
///
/// # Safety
/// As with the driver: so many options and values, and a place for the module.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuModuleLoadDataEx(
    module: *mut Handle,
    _image: *const c_void,
    count: c_uint,
    options: *const c_uint,
    values: *const *mut c_void,
) -> c_int {
    let code = answer("cuModuleLoadDataEx");
    if code == 0 {
        // SAFETY: the caller's place.
        unsafe { module.write(state().handle()) };
        return 0;
    }
    // SAFETY: the caller's promise.
    let find = |wanted| {
        (0..count as usize).find(|&at| unsafe { *options.add(at) } == wanted).map(|at| unsafe { *values.add(at) })
    };
    if let (Some(log), Some(room)) = (find(5), find(6)) {
        // SAFETY: the caller's room.
        unsafe {
            write_text(
                "ptxas application ptx input, line 7; fatal   : the fake has no assembler\nline two",
                log.cast(),
                room.addr(),
            )
        };
    }
    code
}

/// The calls since the last time this was asked, with commas between them; or (`what` = 1) what was freed in use.
///
/// # Safety
/// There is so much room at `at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_calls(what: c_int, at: *mut c_char, room: usize) {
    let mut state = state();
    let names = if what == 1 { std::mem::take(&mut state.freed_in_use) } else { std::mem::take(&mut state.calls) };
    // SAFETY: the caller's room.
    unsafe { write_text(&names.join(","), at, room) };
}
