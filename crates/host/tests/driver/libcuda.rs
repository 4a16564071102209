//! A driver library without a GPU, which `crates/host/tests/driver/main.rs` compiles and puts in the place of libcuda.so.1.
//!
//! It has contexts, streams, events, graphs, memory (the host's, every bit of it set) and modules as the driver has them. Kernels do nothing but
//! those of ceilings, which leave what is looked for. Neither they nor copies are done before somebody waits for them. FAKE_CUDA in the environment,
//! and later `fake_tell`, say what is there and what fails, in words:
//!
//! | word | meaning |
//! |---|---|
//! | `devices=2` `version=11020` `capability=75` `sms=16` `memory=1000000` | what there is |
//! | `cuMemAlloc_v2=2` `cuMemAlloc_v2=2*1` | the function fails with code 2: always, the first time |
//! | `call=17:700` | the 17th call from now on fails with code 700 |
//! | `from=17:600` | the 17th call from now on and all after it fail with code 600 |
//! | `async=719` | the next kernel fails, which a later call says |
//! | `spoiled=1` | no recording ends well |
//! | `late=1` | copies are done when somebody waits for them, and not before |
//! | `l2=1` `shared=1` `block=1` `registers=1` `threads=1` `bus=1` `clock=1` `memory_clock=1` | more of what there is |
//! | `cuLaunchKernel=-1` | the function returns when other words are told |
//! | `mmas=4` | multiplications of a round of the matrix units' ceiling |
//!
//! After a code that NVIDIA calls the end of the process every call fails with it. Calls that cannot be recorded fail with
//! 900 while something is, and spoil it. `fake_asked` tells what was called, what there is, and what was misused.
//!
//! With `--cfg empty` it is a library without any function; as a part of lanky-emulated-gpu its kernels compute.

#![allow(non_snake_case, unexpected_cfgs, reason = "the driver's names; it is not cargo's")]
#![cfg(not(empty))]

#[path = "libcuda/state.rs"]
mod state;

use state::{CONTEXTS, Event, Function, Handle, Job, answer, context, primary, state};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

/// What the device is called.
const NAME: &str = if cfg!(feature = "emulated") { "Emulated" } else { "Fake" };

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
    cuDeviceGetName(name: *mut c_char, room: c_int, _device: c_int) { write_text(NAME, name, room as usize); 0 }
    cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { bytes.write(state().room().1 as usize); 0 }
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        let capability = state().setting("capability", 90) as c_int;
        value.write(match attribute {
            1 => 1024,                           // threads a block
            13 => state().setting("clock", 1_980_000) as c_int, // kHz
            16 => state().setting("sms", 132) as c_int,
            36 => state().setting("memory_clock", 3_201_000) as c_int,
            37 => state().setting("bus", 6016) as c_int, // bits
            38 => state().setting("l2", 50 << 20) as c_int,
            39 => state().setting("threads", 2048) as c_int, // a multiprocessor
            75 => capability / 10,
            76 => capability % 10,
            81 => state().setting("shared", 228 << 10) as c_int, // a multiprocessor
            82 => state().setting("registers", 65_536) as c_int, // a multiprocessor
            97 => state().setting("block", 227 << 10) as c_int, // shared memory that a block may opt in to
            _ => 1,
        });
        0
    }
    cuDevicePrimaryCtxRetain(at: *mut Handle, device: c_int) {
        *state().contexts.entry(device).or_default() += 1;
        at.write(primary(device));
        0
    }
    cuDevicePrimaryCtxRelease_v2(device: c_int) { *state().contexts.entry(device).or_default() -= 1; 0 }

    cuCtxGetCurrent(at: *mut Handle) { at.write(context()); 0 }
    cuCtxSetCurrent(context: Handle) {
        CONTEXTS.with_borrow_mut(|contexts| { contexts.pop(); contexts.push(context); });
        0
    }
    cuCtxPushCurrent_v2(context: Handle) { CONTEXTS.with_borrow_mut(|contexts| contexts.push(context)); 0 }
    cuCtxPopCurrent_v2(_context: *mut Handle) {
        match CONTEXTS.with_borrow_mut(Vec::pop) { Some(_) => 0, None => state().misuse(201, "no context is there") }
    }
    cuCtxGetDevice(device: *mut c_int) {
        if context() == 0 { return 201; }
        device.write((context() & 0xFF) as c_int);
        0
    }
    cuCtxSynchronize() {
        let here = context();
        state().all_done(here);
        if here == 0 { 201 } else { 0 }
    }

    cuStreamCreateWithPriority(at: *mut Handle, flags: c_uint, _priority: c_int) {
        if context() == 0 { return state().misuse(201, "no context is current"); }
        let mut state = state();
        if flags != 1 { state.misuse(0, "a stream that waits for the null stream"); }
        let stream = state.handle();
        state.streams.insert(stream, context());
        at.write(stream);
        0
    }
    cuStreamDestroy_v2(stream: Handle) {
        let mut state = state();
        let is_busy = state.is_busy(stream, u64::MAX);
        state.frees("cuStreamDestroy", is_busy);
        state.done(stream, u64::MAX);
        state.jobs.remove(&stream);
        let was = state.streams.remove(&stream).is_some();
        state.gone(was, "a stream")
    }
    cuStreamSynchronize(stream: Handle) {
        let mut state = state();
        if let Some((_, is_whole)) = state.recorded.get_mut(&stream) { *is_whole = false; return 900; }
        state.done(stream, u64::MAX);
        state.takes(stream)
    }
    cuStreamIsCapturing(stream: Handle, status: *mut c_int) {
        let mut state = state();
        status.write(state.recorded.contains_key(&stream).into());
        let is = state.streams.contains_key(&stream);
        state.gone(is, "a stream")
    }
    cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) {
        let mut state = state();
        if mode != 1 { state.misuse(0, "other threads' calls are forbidden too"); }
        state.recorded.insert(stream, (std::thread::current().id(), true));
        state.takes(stream)
    }
    cuStreamEndCapture(stream: Handle, graph: *mut Handle) {
        let mut state = state();
        let Some((_, is_whole)) = state.recorded.remove(&stream) else { return state.misuse(400, "nothing is recorded") };
        let jobs = state.jobs.remove(&stream).unwrap_or_default();
        if !is_whole || state.setting("spoiled", 0) == 1 { graph.write(0); return 901; }
        let made = state.handle();
        state.graphs.insert(made);
        state.jobs.insert(made, jobs);
        graph.write(made);
        0
    }
    cuGraphInstantiateWithFlags(at: *mut Handle, graph: Handle, _flags: u64) {
        let mut state = state();
        let made = state.handle();
        state.executables.insert(made);
        let jobs = state.jobs.get(&graph).cloned().unwrap_or_default();
        state.jobs.insert(made, jobs);
        at.write(made);
        let is = state.graphs.contains(&graph);
        state.gone(is, "a graph")
    }
    cuGraphLaunch(executable: Handle, stream: Handle) {
        let mut state = state();
        let code = state.takes(stream);
        if code != 0 { return code; }
        state.gives(stream, None);
        state.launched();
        let is = state.executables.contains(&executable);
        let (code, jobs) = (state.gone(is, "a graph"), state.jobs.get(&executable).cloned().unwrap_or_default());
        drop(state);
        jobs.into_iter().map(|job| job()).find(|code| *code != 0).unwrap_or(code)
    }
    cuGraphExecDestroy(executable: Handle) {
        let mut state = state();
        state.jobs.remove(&executable);
        let was = state.executables.remove(&executable);
        state.gone(was, "a graph")
    }
    cuGraphDestroy(graph: Handle) {
        let mut state = state();
        state.jobs.remove(&graph);
        let was = state.graphs.remove(&graph);
        state.gone(was, "a graph")
    }

    cuEventCreate(event: *mut Handle, _flags: c_uint) {
        if context() == 0 { return state().misuse(201, "no context is current"); }
        let mut state = state();
        let made = state.handle();
        state.events.insert(made, Event { context: context(), stream: 0, until: 0 });
        event.write(made);
        0
    }
    cuEventDestroy_v2(event: Handle) { let mut state = state(); let was = state.events.remove(&event).is_some(); state.gone(was, "an event") }
    cuEventRecord(event: Handle, stream: Handle) { state().records(event, stream) }
    cuEventQuery(event: Handle) {
        let state = state();
        if state.events.get(&event).is_some_and(|event| state.is_busy(event.stream, event.until)) { 600 } else { 0 }
    }
    cuEventSynchronize(event: Handle) {
        let mut state = state();
        let of = state.events.get(&event).copied();
        if let Some(event) = of { state.done(event.stream, event.until); }
        state.gone(of.is_some(), "an event")
    }
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        // So that no measured rate is more than a GPU could have.
        milliseconds.write(0.25);
        state().measures(start, end)
    }

    cuModuleUnload(module: Handle) {
        let mut state = state();
        let is_busy = state.computes();
        state.frees("cuModuleUnload", is_busy);
        state.functions.retain(|_, known| known.module != module);
        let was = state.modules.remove(&module);
        state.gone(was, "a module")
    }
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        let mut state = state();
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        let known = state.functions.iter().find(|(_, known)| known.module == module && known.name == name).map(|(at, _)| *at);
        let found = known.unwrap_or_else(|| {
            let made = state.handle();
            state.functions.insert(made, Function { module, name, shared: 48 << 10 });
            made
        });
        function.write(found);
        let is = state.modules.contains(&module);
        state.gone(is, "a module")
    }
    cuFuncGetAttribute(value: *mut c_int, _attribute: c_int, _function: Handle) { value.write(32); 0 }
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) {
        let mut state = state();
        match state.functions.get_mut(&function) {
            Some(found) if attribute == 8 => { found.shared = value; 0 }
            Some(_) => 1,
            None => state.misuse(400, "a function that is not there"),
        }
    }
    cuLaunchKernel(
        function: Handle, x: c_uint, y: c_uint, z: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        let mut state = state();
        let code = state.takes(stream);
        if code != 0 { return code; }
        let fits = (1..1 << 31).contains(&x) && (1..=65_535).contains(&y) && (1..=65_535).contains(&z);
        if !fits || bx * by * bz > 1024 { return state.misuse(1, &format!("a grid of {x} x {y} x {z}")); }
        let Some(Function { name: entry, shared: allowed, .. }) = state.functions.get(&function) else {
            return state.misuse(400, "a function that is not there");
        };
        let (entry, allowed) = (entry.clone(), *allowed);
        if i64::from(shared) > i64::from(allowed) {
            return state.misuse(1, &format!("{shared} bytes of shared memory, where {allowed} are allowed"));
        }
        state.gives(stream, None);
        state.launched();
        let mmas = state.setting("mmas", 0) as f64;
        state.launches.push(format!("{entry} {x} {y} {z} {} {shared}", bx * by * bz));
        if entry.contains("batched_") { state.batches.push(batch(arguments)); }
        drop(state);
        // SAFETY: the parameters that this entry has.
        #[cfg(feature = "emulated")]
        if let Some(kernel) = kernel(&entry, [x, y, z], [bx, by, bz], shared, arguments) { return does(stream, kernel); }
        ceiling(&entry, x as usize * bx as usize, mmas, arguments)
    }

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let (rest, all) = state().room();
        free.write(rest as usize);
        total.write(all as usize);
        0
    }
    cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        if context() == 0 { return state().misuse(201, "no context is current"); }
        state().allocate(bytes, false).map_or(2, |found| { address.write(found); 0 })
    }
    cuMemFree_v2(address: u64) {
        let mut state = state();
        state.frees_memory("cuMemFree", address, false);
        state.free(address, false)
    }
    cuMemHostAlloc(address: *mut u64, bytes: usize, _flags: c_uint) { state().allocate(bytes, true).map_or(2, |found| { address.write(found); 0 }) }
    cuMemFreeHost(address: u64) {
        let mut state = state();
        state.frees_memory("cuMemFreeHost", address, true);
        state.free(address, true)
    }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: Handle) {
        let code = state().copies(stream, from as u64, to, bytes);
        if code == 0 { does(stream, copy(from as u64, to, bytes)) } else { code }
    }
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: Handle) {
        let code = state().copies(stream, from, to as u64, bytes);
        if code == 0 { does(stream, copy(from, to as u64, bytes)) } else { code }
    }
    cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle) {
        let code = state().copies(stream, address, address, bytes);
        // SAFETY: the caller's memory, until it is done.
        let set = move || unsafe { std::ptr::write_bytes(address as *mut u8, value, bytes) };
        if code == 0 { does(stream, Arc::new(move || { set(); 0 })) } else { code }
    }
}

/// Does a job of a stream, or records it.
fn does(stream: Handle, job: Job) -> c_int {
    let now = state().now(stream, job);
    now.map_or(0, |job| job())
}

fn copy(from: u64, to: u64, bytes: usize) -> Job {
    Arc::new(move || {
        // SAFETY: the caller's memory, until it is done.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        0
    })
}

/// The work of a kernel, if there is one of the name: 719 if it does what none may.
///
/// # Safety
/// `arguments` are the entry's, which name memory of this device.
#[cfg(feature = "emulated")]
unsafe fn kernel(
    entry: &str,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    arguments: *mut *mut c_void,
) -> Option<Job> {
    let allocation = |address| state().allocation(address);
    // SAFETY: the caller's promise.
    let parameters = unsafe { crate::parameters::Parameters::new(arguments, &allocation) };
    let work = crate::run::Work::of(entry, grid, block, shared, parameters)?;
    Some(Arc::new(move || match work.run() {
        Ok(()) => 0,
        Err(fault) => {
            eprintln!("{fault}");
            state().loses(719)
        }
    }))
}

/// What a launch of an entry of batches is told: the number of matrices, and of A, B and C the first one's address and the list's.
///
/// # Safety
/// `arguments` are such an entry's.
unsafe fn batch(arguments: *mut *mut c_void) -> String {
    // SAFETY: the fourth parameter is a number of 32 bits.
    let count = unsafe { *(*arguments.add(3)).cast::<u32>() };
    // SAFETY: at these places are addresses.
    let operands = [6, 7, 11, 12, 18, 19].map(|at| unsafe { *(*arguments.add(at)).cast::<u64>() }.to_string());
    format!("{count} {}", operands.join(" "))
}

/// What the kernels leave that measure what a device does at most; others leave memory as it is.
///
/// # Safety
/// `arguments` are the entry's: words of 16 bytes and addresses, or rounds, a factor and an address with an element a thread.
unsafe fn ceiling(entry: &str, threads: usize, mmas: f64, arguments: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let value = |index| unsafe { *arguments.add(index) };
    // SAFETY: the first parameter of those of memory.
    let doubles = || unsafe { *value(0).cast::<u64>() } as usize * 2;
    // SAFETY: an address of so many elements.
    let at = |index, len| unsafe { std::slice::from_raw_parts_mut(*value(index).cast::<u64>() as *mut f64, len) };
    match entry.split("_ceiling").next() {
        Some("write") => at(1, doubles()).fill(1.0),
        Some("copy") => at(2, doubles()).copy_from_slice(at(1, doubles())),
        Some("update") => at(1, doubles()).iter_mut().for_each(|element| *element /= 2.0),
        Some("sfma") => {
            // SAFETY: an address of so many elements of that type.
            unsafe { std::slice::from_raw_parts_mut(*value(2).cast::<u64>() as *mut f32, threads) }.fill(16.0);
        }
        Some("dfma") => at(2, threads).fill(16.0),
        // SAFETY: the first parameter of those of arithmetic.
        Some("dmma") => at(2, threads).fill(64.0 * f64::from(unsafe { *value(0).cast::<u32>() }) * mmas),
        _ => {}
    }
    0
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
        let mut state = state();
        let made = state.handle();
        state.modules.insert(made);
        // SAFETY: the caller's place.
        unsafe { module.write(made) };
        return 0;
    }
    let find = |wanted| {
        // SAFETY: the caller's promise: there are so many options.
        let place = (0..count as usize).find(|&at| unsafe { *options.add(at) } == wanted);
        // SAFETY: and as many values.
        place.map(|at| unsafe { *values.add(at) })
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

/// What there is to tell, with semicolons between: 0 the calls since this was asked; 1 what was freed in use; 2 how many there
/// are of each kind; 3 what was misused; 4 the launches since this was asked; 5 the function that `call=` or `from=` met first; 6 the number of
/// calls since something was told; 7 the number of contexts on this thread's stack; 8 the batches that were multiplied since this was
/// asked; 9 address and bytes of the device's memory.
///
/// # Safety
/// There is so much room at `at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_asked(what: c_int, at: *mut c_char, room: usize) {
    let mut state = state();
    let text = match what {
        0 => std::mem::take(&mut state.calls).join(";"),
        1 => std::mem::take(&mut state.freed_in_use).join(";"),
        2 => state.living(),
        3 => std::mem::take(&mut state.misused).join(";"),
        4 => std::mem::take(&mut state.launches).join(";"),
        5 => state.hit.to_owned(),
        6 => state.count.to_string(),
        8 => std::mem::take(&mut state.batches).join(";"),
        9 => state.allocations().join(";"),
        _ => CONTEXTS.with_borrow(|contexts| contexts.iter().filter(|context| **context != 0).count().to_string()),
    };
    // SAFETY: the caller's room.
    unsafe { write_text(&text, at, room) };
}

/// Tells it other words than FAKE_CUDA did.
///
/// # Safety
/// Text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_tell(words: *const c_char) {
    // SAFETY: the caller's text.
    state().tell(&unsafe { CStr::from_ptr(words) }.to_string_lossy());
}
