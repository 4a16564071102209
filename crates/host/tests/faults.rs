//! Faults that are not this library's, on a GPU: each its own error, and the process lives on. Skipped, and said so, where
//! there is none.
#![cfg(not(published_cust))]

mod common;

use common::gpu;
use cust::error::CudaResult;
use cust::event::{Event, EventFlags, EventStatus};
use cust::memory::DeviceBuffer;
use cust::module::Module;
use cust::stream::{Stream as Raw, StreamFlags};
use lanky_host::{Device, Error, Layout, Matrix, Plan, Shape, Stream, gemm};
use std::mem::ManuallyDrop;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes to an address that is nobody's.
const WILD: &str = ".version 7.0\n.target sm_70\n.address_size 64
.visible .entry wild() {
    .reg .b64 %rd<2>; .reg .b32 %r<2>;
    mov.u64 %rd1, 16; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret;
}";

/// Waits so many nanoseconds of the GPU's own clock.
const SLOW: &str = ".version 7.0\n.target sm_70\n.address_size 64
.visible .entry slow(.param .u64 out, .param .u64 nanoseconds) {
    .reg .pred %p1; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [nanoseconds]; mov.u64 %rd3, %globaltimer;
again:
    mov.u64 %rd4, %globaltimer; sub.u64 %rd4, %rd4, %rd3; setp.lt.u64 %p1, %rd4, %rd2; @%p1 bra again;
    st.global.u64 [%rd1], %rd4; ret;
}";

/// Set in the child that a test is.
const CHILD: &str = "LANKY_TEST_IS_A_CHILD";

/// These tests take turns: while one has its kernels compiled another's launches wait, longer than what is to be in flight.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hosts() -> lanky_host::Result<(Matrix<f64>, Matrix<f64>)> {
    Ok((Matrix::from_fn(300, 500, |i, l| ((i + l) % 3) as f64)?, Matrix::from_fn(500, 4, |l, j| ((l + j) % 5) as f64)?))
}

/// Runs somebody else's kernel that leaves the context unusable; waits for it.
fn wild() -> CudaResult<()> {
    let module = Module::from_ptx(WILD, &[])?;
    let stream = Raw::new(StreamFlags::NON_BLOCKING, None)?;
    let function = module.get_function("wild")?;
    // SAFETY: the kernel has no parameters; what it does is the fault that is tested.
    unsafe { stream.launch(&function, 1, 1, 0, &[]) }?;
    stream.synchronize()
}

/// A process reads CUDA_VISIBLE_DEVICES once.
#[test]
fn a_gpu_that_is_hidden_is_not_there() -> lanky_host::Result<()> {
    let _turn = alone();
    if std::env::var_os(CHILD).is_some() {
        let error = Device::cuda(0).expect_err("the GPUs are hidden");
        assert!(matches!(error, Error::NoDevice { .. }), "{error:?}");
        assert!(matches!(Device::count(), Err(Error::NoDevice { .. })));
        assert!(!Device::auto().is_cuda());
        return Ok(());
    }
    let Some(_device) = gpu("a_gpu_that_is_hidden_is_not_there") else { return Ok(()) };
    let child = Command::new(std::env::current_exe()?)
        .args(["--exact", "a_gpu_that_is_hidden_is_not_there"])
        .envs([(CHILD, "1"), ("CUDA_VISIBLE_DEVICES", "")])
        .env_remove("LANKY_REQUIRE_GPU")
        .output()?;
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    Ok(())
}

#[test]
fn what_others_kernels_destroy_is_said_and_the_process_lives_on() -> lanky_host::Result<()> {
    let _turn = alone();
    let Some(device) = gpu("what_others_kernels_destroy_is_said_and_the_process_lives_on") else { return Ok(()) };
    if std::env::var_os(CHILD).is_none() {
        // A lost context is lost for the whole process.
        let child = Command::new(std::env::current_exe()?)
            .args(["--exact", "what_others_kernels_destroy_is_said_and_the_process_lives_on", "--nocapture"])
            .env(CHILD, "1")
            .env_remove("LANKY_REQUIRE_GPU")
            .output()?;
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        return Ok(());
    }
    let (a, b) = hosts()?;
    let expected = Device::cpu().matmul(a.view(), b.view())?;
    let stream = device.stream()?;
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(300, 4)?;
    gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
    stream.synchronize()?;
    assert!(device.entered(wild)?.is_err());
    // Whichever call is first meets it; from then on every one says so at once.
    let first =
        gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut()).and_then(|()| stream.synchronize());
    assert!(matches!(first, Err(Error::ContextLost { code: 700 | 719, .. })), "{first:?}");
    assert!(matches!(device.stream(), Err(Error::ContextLost { .. })));
    assert!(matches!(device.zeros::<f64>(2, 2), Err(Error::ContextLost { .. })));
    assert!(matches!(Device::cuda(0), Err(Error::ContextLost { .. })));
    drop((c, there_b, stream, there_a, device));
    let again = Device::auto();
    assert!(!again.is_cuda(), "{again}");
    assert_eq!(again.matmul(a.view(), b.view())?.as_slice(), expected.as_slice());
    Ok(())
}

#[test]
fn what_is_dropped_while_work_is_in_flight_waits_for_it() -> lanky_host::Result<()> {
    let _turn = alone();
    let Some(device) = gpu("what_is_dropped_while_work_is_in_flight_waits_for_it") else { return Ok(()) };
    let (a, b) = hosts()?;
    let expected = Device::cpu().matmul(a.view(), b.view())?;
    for order in 0..3 {
        let stream = device.stream()?;
        let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
        let mut c = device.zeros::<f64>(300, 4)?;
        let shape = Shape::packed(300, 4, Layout::ColumnMajor, c.shape().dtype);
        let plan = Plan::gemm(&device, there_a.shape(), there_b.shape(), shape).build()?;
        // Loading would take as long as the slow kernel does.
        plan.warm_up_on(&stream)?;
        let slow = device.entered(|| -> CudaResult<_> {
            let (module, out) = (Module::from_ptx(SLOW, &[])?, DeviceBuffer::<u64>::zeroed(1)?);
            let (done, raw) = (Event::new(EventFlags::DISABLE_TIMING)?, borrowed(&stream));
            launch_slow(&module, &out, &raw)?;
            Ok((module, out, done))
        })?;
        let (module, out, done) = slow.expect("a kernel of somebody else's");
        // Behind the slow kernel: not done when the next lines drop what it uses.
        plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
        let state = device.entered(|| done.record(&borrowed(&stream)).and_then(|()| done.query()))?;
        assert!(matches!(state, Ok(EventStatus::NotReady)), "order {order}: nothing is in flight: {state:?}");
        match order {
            0 => drop((there_a, there_b, plan)),
            1 => drop((plan, there_b, there_a)),
            _ => std::thread::scope(|scope| drop(scope.spawn(move || drop((there_b, plan, there_a))))),
        }
        // What is allocated now may be the memory that was just freed: writing it must not reach the product.
        let _others = (device.zeros::<f64>(300, 500)?, device.zeros::<f64>(500, 4)?);
        assert_eq!(c.download(&stream)?.as_slice(), expected.as_slice(), "order {order}");
        let waited = device.entered(|| out.as_host_vec())?.expect("the slow kernel's own count");
        assert!(waited[0] >= SLOW_NS, "order {order}: the slow kernel waited {waited:?} ns");
        drop((out, module));
    }
    Ok(())
}

#[test]
fn a_recording_that_fails_tells_why_and_leaves_the_stream_as_it_was() -> lanky_host::Result<()> {
    let _turn = alone();
    let Some(device) = gpu("a_recording_that_fails_tells_why_and_leaves_the_stream_as_it_was") else { return Ok(()) };
    let (stream, (a, b)) = (device.stream()?, hosts()?);
    // To wait for what is recorded cannot be recorded: the driver says 900 of that, and 901 of the recording's end.
    let waited = stream.record(|| stream.synchronize()).map(drop);
    assert!(matches!(waited, Err(Error::Driver { code: 900, .. })), "{waited:?}");
    let silent = stream.record(|| stream.synchronize().or(Ok(()))).map(drop);
    assert!(matches!(silent, Err(Error::Driver { code: 901, .. })), "{silent:?}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.record(|| panic!("a panic of the work's own")).map(drop)
    }));
    assert!(panicked.is_err(), "{panicked:?}");
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(300, 4)?;
    gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
    assert_eq!(c.download(&stream)?.as_slice(), Device::cpu().matmul(a.view(), b.view())?.as_slice());
    Ok(())
}

/// Longer than the host takes from the launch to the drops.
const SLOW_NS: u64 = 300_000_000;

fn borrowed(stream: &Stream) -> ManuallyDrop<Raw> {
    // SAFETY: each use of the result ends before the stream is dropped.
    unsafe { cust::extra::borrow_stream(stream.as_raw().expect("a GPU's stream")) }
}

fn launch_slow(module: &Module, out: &DeviceBuffer<u64>, stream: &Raw) -> CudaResult<()> {
    let function = module.get_function("slow")?;
    let (address, nanoseconds) = (out.as_device_ptr().as_raw(), SLOW_NS);
    let arguments = [(&raw const address).cast_mut().cast(), (&raw const nanoseconds).cast_mut().cast()];
    // SAFETY: the kernel's parameters; `out` has one element and is dropped after the work.
    unsafe { stream.launch(&function, 1, 1, 0, &arguments) }
}
