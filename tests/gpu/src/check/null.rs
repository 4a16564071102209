//! The null stream is somebody else's: while it is busy, a product on a stream of lanky's ends.

use crate::case::Spec;
use crate::compare::equal;
use crate::lab::{Lab, Outcome, ensure};
use crate::oracle::exact;
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After which the null stream goes on by itself.
const PATIENCE: Duration = Duration::from_secs(20);
const SIZE: (usize, usize, usize) = (130, 5, 4099);

/// Set where the null stream may go on, and where it has.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    passed: AtomicBool,
}

type LaunchHost = unsafe extern "system" fn(*mut c_void, unsafe extern "system" fn(*mut c_void), *mut c_void) -> c_int;
type Synchronize = unsafe extern "system" fn(*mut c_void) -> c_int;

/// What the null stream does meanwhile.
unsafe extern "system" fn wait(gate: *mut c_void) {
    // SAFETY: `run` waits for the stream before its gate ends.
    let gate = unsafe { &*gate.cast::<Gate>() };
    let start = Instant::now();
    while !gate.open.load(Ordering::Acquire) && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(100));
    }
    gate.passed.store(true, Ordering::Release);
}

/// Products with a plan and without while the null stream is held.
pub fn run(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("null", "the CPU has no null stream");
        return Ok(());
    }
    let mut case = Spec::plain(SIZE).integers::<f64>(lab)?;
    let (expected, plan) = (exact(&case), case.plan(lab, None)?);
    // Everything is loaded and allocated, and the stream's own workspace is there.
    plan.warm_up_on(&lab.stream)?;
    case.run_planless(lab)?;
    // SAFETY: the driver, which is loaded already: no code of it runs now; the types are those of NVIDIA's cuda.h.
    let library = unsafe { Library::new("libcuda.so.1") }?;
    let (launch, synchronize): (LaunchHost, Synchronize) =
        // SAFETY: as above.
        unsafe { (*library.get(b"cuLaunchHostFunc\0")?, *library.get(b"cuStreamSynchronize\0")?) };
    let gate = Gate::default();
    // SAFETY: the gate outlives the function: the null stream is waited for below.
    let code = unsafe { launch(std::ptr::null_mut(), wait, (&raw const gate).cast_mut().cast()) };
    ensure(code == 0, || format!("cuLaunchHostFunc failed: {code}"))?;
    let found = case.run(lab, &plan).and_then(|found| equal(&found, &expected, SIZE.0));
    let planless = case.run_planless(lab).and_then(|found| equal(&found, &expected, SIZE.0));
    let held = !gate.passed.load(Ordering::Acquire);
    gate.open.store(true, Ordering::Release);
    // SAFETY: the null stream of the current context.
    let code = unsafe { synchronize(std::ptr::null_mut()) };
    ensure(code == 0 && gate.passed.load(Ordering::Acquire), || format!("cuStreamSynchronize failed: {code}"))?;
    lab.record(|| "null, with a plan".into(), found)?;
    lab.record(|| "null, without a plan".into(), planless)?;
    lab.record(|| "null".into(), ensure(held, || "products waited for the null stream".into()))
}
