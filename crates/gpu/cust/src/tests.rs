//! What the traps of the published crate would do, against a driver of our own (`fake.rs`).

use crate::context::{Context, CurrentContext};
use crate::device::Device;
use crate::error::{CudaError, CudaResult};
use crate::event::{Event, EventFlags, EventStatus};
use crate::extra::{self, last_failure};
use crate::fake::{Fail, Fake, GRAPHS};
use crate::memory::{AsyncCopyDestination, CopyDestination, DeviceBuffer, LockedBuffer};
use crate::module::{Module, ModuleJitOption};
use crate::stream::{Stream, StreamFlags};
use crate::sys::Table;

fn context() -> Context {
    Context::new(Device { device: 0 }).expect("the fake retains")
}

fn stream() -> Stream {
    Stream::new(StreamFlags::NON_BLOCKING, None).expect("the fake makes streams")
}

fn buffer(len: usize) -> DeviceBuffer<f64> {
    // SAFETY: nothing reads it.
    unsafe { DeviceBuffer::uninitialized(len) }.expect("the fake allocates")
}

#[test]
fn a_code_that_nobody_knows_is_kept() {
    let fake = Fake::install();
    for (code, error, name) in [
        (12_345, CudaError::UnknownError, "CUDA_ERROR_12345"),
        (999, CudaError::UnknownError, "CUDA_ERROR_UNKNOWN"),
        (46, CudaError::UnknownError, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        (-7, CudaError::UnknownError, "CUDA_ERROR_-7"),
        (2, CudaError::OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"),
    ] {
        fake.fail(Fail::All("alloc", code));
        // SAFETY: nothing reads it.
        let given = unsafe { DeviceBuffer::<u8>::uninitialized(1) }.map(drop);
        assert_eq!(given, Err(error));
        let failure = last_failure().expect("there was one");
        assert_eq!((failure.function, failure.code, failure.name.as_str()), ("cuMemAlloc", code, name));
        assert!(failure.log.is_empty() && !failure.text.is_empty());
    }
}

#[test]
fn a_function_that_the_driver_lacks_is_one_error() {
    static OLD: Table = Table::EMPTY;
    let _fake = Fake::with(&OLD);
    assert_eq!(extra::driver_version(), Err(CudaError::SharedObjectSymbolNotFound));
    let failure = last_failure().expect("there was one");
    assert_eq!((failure.function, failure.code), ("cuDriverGetVersion", 302));
    assert_eq!(failure.text, "the CUDA driver is too old: it has no cuDriverGetVersion");
}

#[test]
fn a_driver_without_graphs_says_so_and_nothing_is_recorded() {
    let _fake = Fake::install();
    let (_context, stream) = (context(), stream());
    let mut worked = false;
    let refused = extra::Graph::record(&stream, || worked = true);
    assert_eq!(refused.map(|_| ()), Err(CudaError::SharedObjectSymbolNotFound));
    assert!(!worked);
    assert_eq!(last_failure().map(|failure| failure.function), Some("cuStreamBeginCapture"));
}

#[test]
fn a_recording_ends_whatever_becomes_of_the_work() {
    let fake = Fake::with(&GRAPHS);
    let (_context, stream) = (context(), stream());
    fake.calls();
    let (worked, graph) = extra::Graph::record(&stream, || 7).expect("the fake begins");
    assert_eq!(worked, 7);
    drop(graph.expect("the fake makes graphs"));
    assert_eq!(fake.calls(), ["begin", "end", "executable", "no graph", "current", "current", "no executable"]);
    // What the work says is kept where no graph comes of it.
    fake.fail(Fail::All("end", 901));
    let (worked, graph) = extra::Graph::record(&stream, || 8).expect("the fake begins");
    assert_eq!((worked, graph.map(drop)), (8, Err(CudaError::UnknownError)));
    assert_eq!(last_failure().map(|failure| (failure.function, failure.code)), Some(("cuStreamEndCapture", 901)));
    fake.fail(Fail::All("executable", 2));
    let (worked, graph) = extra::Graph::record(&stream, || 9).expect("the fake begins");
    assert_eq!((worked, graph.map(drop)), (9, Err(CudaError::OutOfMemory)));
    fake.fail(Fail::Never);
    fake.calls();
    let work = std::panic::AssertUnwindSafe(|| extra::Graph::record(&stream, || panic!("of the work's own")).map(drop));
    assert!(std::panic::catch_unwind(work).is_err());
    assert_eq!(fake.calls(), ["begin", "end", "no graph"]);
}

#[test]
fn dropped_on_another_thread_things_are_freed_in_their_context() {
    let fake = Fake::install();
    let context = context();
    let module = Module::from_ptx("", &[]).expect("the fake loads");
    let event = Event::new(EventFlags::DEFAULT).expect("the fake makes events");
    let things = (buffer(3), stream(), event, module);
    fake.calls();
    let calls = std::thread::spawn(move || {
        let fake = Fake::install();
        let (buffer, stream, event, module) = things;
        drop(buffer);
        drop(stream);
        drop(event);
        drop(module);
        assert!(fake.contexts().is_empty(), "the thread has no context, as before");
        fake.calls()
    });
    let expected = ["free", "no stream", "no event", "unload"].map(|free| ["current", "push", free, "pop"]).concat();
    assert_eq!(calls.join().expect("no panic"), expected);
    assert_eq!(fake.calls(), [""; 0]);
    drop(context);
    assert_eq!(fake.calls(), ["release"]);
}

#[test]
fn a_context_stays_until_its_last_resource_is_freed() {
    let fake = Fake::install();
    let context = context();
    let (first, second) = (buffer(1), buffer(1));
    let clone = context.clone();
    fake.calls();
    drop(context);
    drop(clone);
    drop(first);
    assert_eq!(fake.calls(), ["current", "free"]);
    drop(second);
    assert_eq!(fake.calls(), ["current", "free", "release"]);
}

#[test]
fn a_drop_that_fails_is_silent() {
    let fake = Fake::install();
    let _context = context();
    let (free_fails, push_fails) = (buffer(1), buffer(1));
    fake.fail(Fail::All("alloc", 2));
    // SAFETY: nothing reads it.
    assert!(unsafe { DeviceBuffer::<u8>::uninitialized(1) }.is_err());
    let before = last_failure();
    fake.fail(Fail::All("free", 700));
    drop(free_fails);
    crate::owner::pop();
    fake.calls();
    fake.fail(Fail::All("push", 4));
    drop(push_fails);
    assert_eq!(fake.calls(), ["current", "push"], "what cannot be freed in its context is not freed in another");
    assert_eq!(last_failure(), before);
}

#[test]
fn dropping_by_hand_hands_back_what_could_not_be() {
    let fake = Fake::install();
    let _context = context();
    let stream = stream();
    fake.fail(Fail::All("no stream", 719));
    let (error, stream) = Stream::drop(stream).expect_err("told to fail");
    assert_eq!(error, CudaError::LaunchFailed);
    fake.fail(Fail::Never);
    fake.calls();
    assert!(Stream::drop(stream).is_ok());
    assert_eq!(fake.calls(), ["current", "no stream"], "once");
}

#[test]
fn freed_in_a_streams_order_memory_is_not_freed_again() {
    let fake = Fake::install();
    let _context = context();
    let stream = stream();
    // SAFETY: nothing reads it.
    let memory = unsafe { DeviceBuffer::<u32>::uninitialized_async(9, &stream) }.expect("the fake allocates");
    fake.calls();
    memory.drop_async(&stream).expect("the fake frees");
    assert_eq!(fake.calls(), ["free async"]);
}

#[test]
fn exchanged_buffers_are_freed_once_each() {
    let fake = Fake::install();
    let _context = context();
    let (mut first, mut second, mut none) = (buffer(2), buffer(3), buffer(0));
    let (two, three) = (first.as_device_ptr(), second.as_device_ptr());
    std::mem::swap(&mut first, &mut second);
    std::mem::swap(&mut second, &mut none);
    assert_eq!((first.as_device_ptr(), first.len()), (three, 3));
    assert_eq!((none.as_device_ptr(), none.len()), (two, 2));
    drop((first, second, none));
    assert_eq!(fake.freed(), [three.as_raw(), two.as_raw()]);
}

#[test]
fn a_buffer_is_written_to_as_a_slice_is() {
    let fake = Fake::install();
    let _context = context();
    let (mut first, mut second, stream) = (buffer(2), buffer(2), stream());
    fake.calls();
    first.copy_from(&second).expect("the fake copies");
    first.copy_to(&mut second).expect("the fake copies");
    first.copy_from(second.as_slice()).expect("the fake copies");
    // SAFETY: the fake does nothing, and so does its stream.
    unsafe {
        first.async_copy_from(&[0.0; 2], &stream).expect("the fake copies");
        first.set_8_async(1, &stream).expect("the fake sets");
        first.set_zero_async(&stream).expect("the fake sets");
    }
    first.set_8(1).expect("the fake sets");
    let copies: Vec<_> = fake.calls().into_iter().filter(|call| ["DtoD", "HtoD", "set"].contains(call)).collect();
    assert_eq!(copies, ["DtoD", "DtoD", "DtoD", "HtoD", "set", "set", "set"]);
}

#[test]
fn entering_leaves_the_callers_context_as_it_was() {
    let fake = Fake::install();
    let context = context();
    CurrentContext::set_current(&context).expect("the fake sets");
    let theirs = fake.contexts();
    {
        let _outer = extra::enter(&context).expect("the fake pushes");
        let _inner = extra::enter(&context).expect("the fake pushes");
        assert_eq!(fake.contexts(), [fake.primary(); 3]);
        assert_eq!(extra::current_context_raw().map(|raw| raw.addr()), Ok(fake.primary()));
    }
    assert_eq!(fake.contexts(), theirs);
}

#[test]
fn blocking_copies_wait_for_earlier_work_and_never_use_the_null_stream() {
    let fake = Fake::install();
    let _context = context();
    let mut memory = buffer(2);
    fake.calls();
    memory.copy_from(&[1.0, 2.0]).expect("the fake copies");
    assert_eq!(
        fake.calls(),
        ["wait", "stream", "current", "HtoD", "wait for stream", "current", "no stream"],
        "the copy is done when the call returns"
    );
    memory.copy_to(&mut [0.0; 2]).expect("the fake copies");
    memory.set_zero().expect("the fake sets");
    assert_eq!(fake.copied_on().len(), 3);
    assert!(fake.copied_on().iter().all(|&stream| stream != 0));
    fake.fail(Fail::All("HtoD", 700));
    fake.calls();
    assert_eq!(memory.copy_from(&[1.0, 2.0]), Err(CudaError::IllegalAddress));
    assert!(fake.calls().contains(&"wait for stream"), "a copy that was begun is waited for");
}

#[test]
fn lengths_that_differ_and_sizes_that_overflow_are_errors() {
    let fake = Fake::install();
    let _context = context();
    let (mut memory, stream) = (buffer(2), stream());
    fake.calls();
    assert_eq!(memory.copy_from(&[1.0]), Err(CudaError::InvalidValue));
    // SAFETY: nothing is copied.
    assert_eq!(unsafe { memory.async_copy_to(&mut [0.0; 3], &stream) }, Err(CudaError::InvalidValue));
    assert_eq!(buffer(0).copy_to(&mut [0.0]), Err(CudaError::InvalidValue));
    fake.calls();
    for len in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 2] {
        // SAFETY: nothing reads it.
        let given = unsafe { DeviceBuffer::<f64>::uninitialized(len) }.map(drop);
        assert_eq!(given, Err(CudaError::InvalidMemoryAllocation));
        // SAFETY: nothing reads it.
        let given = unsafe { LockedBuffer::<f64>::uninitialized(len) }.map(drop);
        assert_eq!(given, Err(CudaError::InvalidMemoryAllocation));
    }
    assert_eq!(fake.calls(), [""; 0], "the driver was not asked");
}

#[test]
fn buffers_of_nothing_ask_nothing() {
    let fake = Fake::install();
    let mut none = DeviceBuffer::<f64>::from_slice(&[]).expect("nothing can fail");
    assert!(none.is_empty() && !none.as_device_ptr().is_null());
    none.set_zero().expect("nothing can fail");
    none.copy_from(&[]).expect("nothing can fail");
    none.copy_to(&mut []).expect("nothing can fail");
    assert_eq!(none.as_host_vec(), Ok(vec![]));
    assert_eq!(DeviceBuffer::<f32>::zeroed(0).map(|buffer| buffer.len()), Ok(0));
    assert_eq!(LockedBuffer::new(&1_u8, 0).map(|buffer| buffer.to_vec()), Ok(vec![]));
    // SAFETY: there is nothing to read.
    let sizeless = unsafe { DeviceBuffer::<[u8; 0]>::uninitialized(5) }.expect("nothing can fail");
    assert_eq!(sizeless.len(), 5);
    drop((none, sizeless));
    assert_eq!(fake.calls(), [""; 0]);
}

#[test]
fn the_compilers_log_is_in_the_failure() {
    let fake = Fake::install();
    let _context = context();
    fake.fail(Fail::All("load", 218));
    let options = [ModuleJitOption::DetermineTargetFromContext, ModuleJitOption::MaxRegisters(64)];
    assert_eq!(Module::from_ptx("nonsense", &options).map(drop), Err(CudaError::InvalidPtx));
    let failure = last_failure().expect("there was one");
    assert_eq!((failure.function, failure.log.as_str()), ("cuModuleLoadDataEx", "ptxas fatal: no"));
    assert_eq!(Module::from_ptx("a\0b", &[]).map(drop), Err(CudaError::InvalidPtx));
    fake.fail(Fail::Never);
    let module = Module::from_ptx("", &[]).expect("the fake loads");
    assert!(module.get_function("kernel").is_ok());
    assert_eq!(module.get_function("ker\0nel").map(drop), Err(CudaError::NotFound));
}

#[test]
fn machine_code_that_is_cut_off_is_not_loaded() {
    let fake = Fake::install();
    let _context = context();
    let cubin = cubin();
    // A fatbin's: 16 bytes of header, 0x101 behind it.
    let mut fatbin = vec![0; 16 + 0x101];
    fatbin[..10].copy_from_slice(&[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 1, 1]);
    for whole in [&cubin, &fatbin] {
        assert!(Module::from_cubin(whole, &[]).is_ok());
        fake.calls();
        for len in [4, 9, 63, whole.len() - 1] {
            assert_eq!(Module::from_fatbin(&whole[..len], &[]).map(drop), Err(CudaError::InvalidImage), "{len}");
        }
        assert_eq!(fake.calls(), [""; 0]);
    }
    // The wrapper that nvcc puts into a program leads to an address.
    assert_eq!(Module::from_cubin([0xb1, 0x43, 0x62, 0x46, 1, 0, 0, 0], &[]).map(drop), Err(CudaError::InvalidImage));
}

/// ELF's header of 64 bytes, 2 segments of 56, 8 bytes that are the second segment and the second section, 3 sections of 64, of
/// which the last is in memory alone.
fn cubin() -> Vec<u8> {
    let mut cubin = vec![0; 64 + 2 * 56 + 8 + 3 * 64];
    cubin[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (cubin[32], cubin[54], cubin[56]) = (64, 56, 2);
    (cubin[40], cubin[58], cubin[60]) = (184, 64, 3);
    let (segment, sections) = (64 + 56, [184 + 64, 184 + 128]);
    (cubin[segment], cubin[segment + 8], cubin[segment + 32]) = (1, 176, 8);
    (cubin[sections[0] + 4], cubin[sections[0] + 24], cubin[sections[0] + 32]) = (1, 176, 8);
    (cubin[sections[1] + 4], cubin[sections[1] + 24], cubin[sections[1] + 37]) = (8, 184, 1);
    cubin
}

/// Tables that are in the image lead to what is not; or are shorter than what they are to have.
#[test]
fn machine_code_that_leads_beyond_its_end_is_not_loaded() {
    let _fake = Fake::install();
    let _context = context();
    let loaded = |changes: &[(usize, u8)]| {
        let mut image = cubin();
        changes.iter().for_each(|&(at, byte)| image[at] = byte);
        Module::from_cubin(image, &[]).map(drop)
    };
    let (segment, section, in_memory) = (64 + 56, 184 + 64, 184 + 128);
    let whole: [&[_]; 5] = [
        &[],
        // To its last byte.
        &[(section + 32, 200)],
        // No segments; nor sections.
        &[(54, 0), (56, 0), (40, 0), (58, 0), (60, 0)],
        // An entry that is none, wherever it leads to.
        &[(segment, 0), (segment + 15, 1)],
        // As many sections as the first says, which is none of them.
        &[(60, 0), (184 + 32, 3)],
    ];
    for changes in whole {
        assert_eq!(loaded(changes), Ok(()), "{changes:?}");
    }
    let cut: [&[_]; 11] = [
        &[(section + 32, 201)],
        &[(section + 24, 178), (section + 32, 200)],
        &[(section + 31, 1)],
        &[(section + 24, 255), (section + 39, 255)],
        &[(in_memory + 4, 1)],
        &[(segment + 32, 201)],
        &[(segment + 15, 255)],
        &[(58, 56)],
        &[(54, 0)],
        &[(60, 0), (184 + 32, 4)],
        // Of 32 bits, whose header is another.
        &[(4, 1)],
    ];
    for changes in cut {
        assert_eq!(loaded(changes), Err(CudaError::InvalidImage), "{changes:?}");
    }
}

/// The published crate removes the flag that it is given.
#[test]
fn a_stream_has_the_flags_that_were_asked_for() {
    let fake = Fake::install();
    let _context = context();
    fake.calls();
    drop(stream());
    drop(Stream::new(StreamFlags::DEFAULT, None));
    let calls = fake.calls();
    assert_eq!((calls[0], calls[4]), ("stream", "blocking stream"), "{calls:?}");
}

#[test]
fn pinned_memory_is_freed_as_such_in_its_context() {
    let fake = Fake::install();
    let _context = context();
    let memory = LockedBuffer::from_slice(&[1_u32, 2, 3]).expect("the fake allocates");
    assert_eq!(*memory, [1, 2, 3]);
    fake.calls();
    drop(memory);
    assert_eq!(fake.calls(), ["current", "free host"]);
}

#[test]
fn work_that_is_not_done_is_no_failure() {
    let fake = Fake::install();
    let _context = context();
    let event = Event::new(EventFlags::DEFAULT).expect("the fake makes events");
    let before = last_failure();
    fake.fail(Fail::All("query", 600));
    assert_eq!(event.query(), Ok(EventStatus::NotReady));
    assert_eq!(last_failure(), before);
    fake.fail(Fail::Never);
    assert_eq!(event.query(), Ok(EventStatus::Ready));
}

/// Makes, uses and drops everything.
fn everything() -> CudaResult<()> {
    let context = Context::new(Device { device: 0 })?;
    let _current = extra::enter(&context)?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let event = Event::new(EventFlags::DEFAULT)?;
    let module = Module::from_ptx("", &[])?;
    module.get_function("kernel")?;
    let mut memory = DeviceBuffer::from_slice(&[1_u64, 2])?;
    memory.set_zero()?;
    event.record(&stream)?;
    memory.as_host_vec()?;
    memory.drop_async(&stream)?;
    stream.synchronize()
}

/// The i-th call fails, for every i: an error or nothing, never a panic, and all that was made is freed.
#[test]
fn whichever_call_fails_nothing_is_left() {
    const MAKE: [&str; 5] = ["retain", "stream", "event", "load", "alloc"];
    const FREE: [&str; 6] = ["release", "no stream", "no event", "unload", "free", "free async"];
    let fake = Fake::install();
    everything().expect("the fake does everything");
    let calls = fake.calls().len();
    assert!(calls > 30);
    for fails in 1..=calls {
        fake.fail(Fail::Nth(fails, 719));
        let given = everything();
        let seen = fake.calls();
        let failed = seen[fails - 1];
        let done = |names: &[&str]| {
            let named = seen.iter().enumerate().filter(|(_, call)| names.contains(call));
            named.filter(|(index, _)| index + 1 != fails).count()
        };
        // What cannot be freed is left, once: the failing call was to free it, or to make its context current for that.
        let left = FREE[..5].contains(&failed) || failed == "push" && done(&["push"]) > 0;
        assert_eq!(done(&MAKE), done(&FREE) + usize::from(left), "call {fails}, {failed}, fails: {seen:?}");
        assert!(given.is_err() || left || ["current", "pop"].contains(&failed), "{failed}");
        fake.fail(Fail::Never);
        everything().expect("the next time all is well");
        fake.calls();
    }
}
