//! Work in flight: what is dropped meanwhile, and what is recorded.

use super::*;
use cust::event::{Event, EventFlags, EventStatus};
use lanky_host::{BatchMut, BatchRef, Error, Layout, Plan, Shape, Stream, gemm, gemm_batched, gemv, gram};

/// Whether all that the stream has is done.
pub fn is_done(device: &Device, stream: &Stream) -> Result<bool> {
    device.entered(|| {
        // SAFETY: the stream outlives the result.
        let raw = unsafe { cust::extra::borrow_stream(stream.as_raw().expect("a GPU's")) };
        let event = Event::new(EventFlags::DISABLE_TIMING).expect("the fake makes events");
        event.record(&raw).expect("the fake records");
        event.query().expect("the fake answers") == EventStatus::Ready
    })
}

#[test]
fn what_is_dropped_while_work_is_in_flight_waits_for_it() {
    const NAME: &str = "flight::what_is_dropped_while_work_is_in_flight_waits_for_it";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let (a, b) = hosts()?;
        for order in 0..5 {
            let stream = device.stream()?;
            let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
            let mut c = device.zeros::<f64>(300, 4)?;
            let shape = Shape::packed(300, 4, Layout::ColumnMajor, c.shape().dtype);
            let plan = Plan::gemm(&device, there_a.shape(), there_b.shape(), shape).build()?;
            plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
            assert!(!is_done(&device, &stream)?, "order {order}: the work must be in flight when things are dropped");
            calls();
            match order {
                0 => drop((there_a, there_b, plan, c, stream)),
                1 => drop((stream, c, plan, there_b, there_a)),
                2 => drop((c, stream, there_a, plan, there_b)),
                3 => drop((plan, there_a, c, there_b, stream)),
                _ => {
                    std::thread::spawn(move || drop((there_b, plan, stream, c, there_a))).join().expect("no panic");
                }
            }
            let calls = calls();
            let place = |name: &str| calls.iter().position(|call| call == name);
            let (wait, free) = (place("cuCtxSynchronize").or(place("cuStreamSynchronize")), place("cuMemFree_v2"));
            assert!(wait.is_some() && free.is_some() && wait < free, "order {order}: {calls:?}");
            assert_eq!(freed_in_use(), [""; 0], "order {order}");
        }
        Ok(())
    });
}

/// The fake sees what the test before looks for.
#[test]
fn memory_freed_in_flight_would_be_seen() {
    const NAME: &str = "flight::memory_freed_in_flight_would_be_seen";
    with_driver(NAME, "", || {
        let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
        let stream = device.stream()?;
        let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
        let mut c = device.zeros::<f64>(300, 4)?;
        lanky_host::gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
        let memory = device.entered(|| cust::memory::DeviceBuffer::<u32>::zeroed(1).expect("the fake allocates"))?;
        lanky_host::gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
        drop(memory); // cust's own, which does not wait
        assert_eq!(freed_in_use(), ["cuMemFree"]);
        Ok(())
    });
}

/// Copies too, of what is on the device and of what is pinned; and of them alone.
#[test]
fn memory_freed_while_it_is_copied_would_be_seen() {
    const NAME: &str = "flight::memory_freed_while_it_is_copied_would_be_seen";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        device.entered(|| {
            use cust::memory::{AsyncCopyDestination, DeviceBuffer, LockedBuffer};
            // SAFETY: the stream outlives the result.
            let raw = unsafe { cust::extra::borrow_stream(stream.as_raw().expect("a GPU's")) };
            // SAFETY: nothing reads it.
            let there = || unsafe { DeviceBuffer::<u32>::uninitialized(8) }.expect("the fake allocates");
            let pinned = || LockedBuffer::new(&0_u32, 8).expect("the fake allocates");
            let (mut to, from, mut back) = (there(), pinned(), pinned());
            // SAFETY: the fake copies at once, whatever it says.
            unsafe { to.async_copy_from(&from[..], &raw) }.expect("a copy");
            drop((there(), pinned()));
            assert_eq!(freed_in_use(), [""; 0], "nothing copies these");
            drop(from);
            assert_eq!(freed_in_use(), ["cuMemFreeHost"]);
            raw.synchronize().expect("the fake waits");
            // SAFETY: as above.
            unsafe { to.async_copy_to(&mut back[..], &raw) }.expect("a copy");
            let event = Event::new(EventFlags::DISABLE_TIMING).expect("the fake makes events");
            event.record(&raw).expect("the fake records");
            // SAFETY: as above.
            unsafe { to.set_8_async(1, &raw) }.expect("it is set");
            event.synchronize().expect("the fake waits");
            drop(back);
            assert_eq!(freed_in_use(), [""; 0], "the event came after the copy");
            drop(to);
            assert_eq!(freed_in_use(), ["cuMemFree"], "and before it was set");
        })
    });
}

#[test]
fn a_cold_plan_leaves_a_recording_whole() {
    const NAME: &str = "flight::a_cold_plan_leaves_a_recording_whole";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let mut c = device.zeros::<f64>(300, 4)?;
        // Another launch adds its slots.
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).variant("gemm_tiled").parts(3).build()?;
        let mut refusals = Vec::new();
        let mut cold = |plan: &Plan, stream: &Stream| -> Result<()> {
            calls();
            drop(stream.record(|| {
                refusals.push(plan.run(stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()));
                Ok(())
            })?);
            let forbidden =
                ["cuModuleLoadDataEx", "cuMemAlloc_v2", "cuLaunchKernel", "cuStreamSynchronize", "cuCtxSynchronize"];
            let calls = calls();
            assert!(calls.iter().all(|call| !forbidden.contains(&call.as_str())), "{calls:?}");
            Ok(())
        };
        cold(&plan, &stream)?;
        // Loaded, but without a workspace for the other stream.
        plan.warm_up_on(&stream)?;
        cold(&plan, &device.stream()?)?;
        for (refused, what) in refusals.iter().zip(["would have to be loaded", "bytes would have to be allocated"]) {
            let Err(error @ Error::ColdPlanInCapture { .. }) = refused else { panic!("{refused:?}") };
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(refusals.len(), 2);

        calls();
        let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()))?;
        assert_eq!(calls().iter().filter(|call| *call == "cuLaunchKernel").count(), 2);
        for _ in 0..100 {
            // SAFETY: all of it lives until the stream is synchronised.
            unsafe { graph.launch(&stream) }?;
        }
        assert_eq!(calls().iter().filter(|call| *call == "cuGraphLaunch").count(), 100);
        stream.synchronize()
    });
}

/// `Device::matmul` of what is on the GPU waits for all of its work: while anybody records it is refused, and the recording is whole.
#[test]
fn what_waits_for_a_whole_gpu_is_refused_while_one_records() {
    const NAME: &str = "flight::what_waits_for_a_whole_gpu_is_refused_while_one_records";
    with_driver(NAME, "", || {
        let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
        let stream = device.stream()?;
        let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
        let mut c = device.zeros::<f64>(300, 4)?;
        let plan = Plan::gemm(&device, there_a.shape(), there_b.shape(), c.shape()).build()?;
        plan.warm_up_on(&stream)?;
        for (a, b) in [(there_a.view(), there_b.view()), (a.view(), there_b.view()), (there_a.view(), b.view())] {
            let mut refused = None;
            calls();
            let mut graph = stream.record(|| {
                refused = Some(device.matmul(a, b).map(drop));
                plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())
            })?;
            let Some(Err(error @ Error::Unsupported { .. })) = refused else { panic!("{refused:?}") };
            assert!(error.to_string().contains("to wait for all work of a GPU while a graph is recorded"), "{error}");
            let calls = calls();
            assert!(!calls.iter().any(|call| call == "cuCtxSynchronize" || call == "cuMemAlloc_v2"), "{calls:?}");
            assert!(calls.iter().any(|call| call == "cuLaunchKernel"), "{calls:?}");
            // SAFETY: all of it lives until the stream is synchronised.
            unsafe { graph.launch(&stream) }?;
            stream.synchronize()?;
        }
        assert_eq!(device.matmul(there_a.view(), there_b.view())?.shape(), c.shape(), "afterwards it waits");
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// Calls without a plan, and how long their operands are: m, n, k.
const WITHOUT_A_PLAN: [(&str, (usize, usize, usize)); 4] =
    [("gemm", (300, 4, 20_000)), ("gram", (16, 16, 300_000)), ("gemv", (300, 1, 200_000)), ("a list", (40, 4, 4))];

fn without_a_plan(stream: &Stream, call: &str, lengths: (usize, usize, usize)) -> Result<()> {
    let (a, b, c) = super::elsewhere::borrowed::<f64>(stream.device(), lengths)?;
    match call {
        "gemm" => gemm(stream, 1.0, a, b, 0.0, c),
        "gram" => gram(stream, 1.0, b, 0.0, c),
        "gemv" => gemv(stream, 1.0, a, b, 0.0, c),
        _ => {
            let listed = [a.rows(..4)?, a.rows(12..16)?, a.rows(4..8)?];
            let (results, shared) = (BatchMut::parts_below(c.rows(..12)?, 3)?, BatchRef::shared(b, 3));
            gemm_batched(stream, 1.0, BatchRef::listed(&listed)?, shared, 0.0, results)
        }
    }
}

/// Neither does a call without a plan spoil it that lacks its kernel, a workspace of that stream or a list of matrices.
#[test]
fn cold_calls_without_a_plan_leave_a_recording_whole() {
    const NAME: &str = "flight::cold_calls_without_a_plan_leave_a_recording_whole";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let (stream, other) = (device.stream()?, device.stream()?);
        let refused = |stream: &Stream, call: &str, lengths, what: &str| -> Result<()> {
            let mut result = Ok(());
            calls();
            let mut graph = stream.record(|| {
                result = without_a_plan(stream, call, lengths);
                Ok(())
            })?;
            let asked = calls();
            let needed = ["cuCtx", "cuStreamIsCapturing", "cuStreamBegin", "cuStreamEnd", "cuGraph"];
            assert!(asked.iter().all(|asked| needed.iter().any(|name| asked.starts_with(name))), "{call}: {asked:?}");
            let Err(error @ Error::ColdPlanInCapture { .. }) = &result else { panic!("{call}: {result:?}") };
            assert!(error.to_string().contains(what), "{call}: {error}");
            // SAFETY: nothing is in it.
            unsafe { graph.launch(stream) }?;
            stream.synchronize()
        };
        for (call, lengths) in WITHOUT_A_PLAN {
            let [cold, elsewhere] = match call {
                "a list" => ["a list of 24 bytes of addresses would have to be sent"; 2],
                _ => ["would have to be loaded", "bytes would have to be allocated"],
            };
            refused(&stream, call, lengths, cold)?;
            without_a_plan(&stream, call, lengths)?;
            refused(&other, call, lengths, elsewhere)?;
            if call == "a list" {
                refused(&stream, call, lengths, elsewhere)?;
                continue;
            }
            launches();
            let mut graph = stream.record(|| without_a_plan(&stream, call, lengths))?;
            assert!(!launches().is_empty(), "{call} is recorded");
            // SAFETY: the fake's kernels look at no memory, and the stream keeps its workspace.
            unsafe { graph.launch(&stream) }?;
            stream.synchronize()?;
        }
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// The work's own error is the one that is told, whatever became of the recording.
#[test]
fn a_recording_ends_whatever_becomes_of_the_work() {
    const NAME: &str = "flight::a_recording_ends_whatever_becomes_of_the_work";
    for words in ["", "spoiled=1"] {
        with_driver(NAME, words, || {
            let stream = Device::cuda(0)?.stream()?;
            let own = || Err(Error::from(std::io::Error::other("the work's own")));
            let error = stream.record(own).map(drop).expect_err("the work failed");
            assert_eq!(error.to_string(), "the work's own");
            let silent = stream.record(|| Ok(())).map(drop);
            let told = |error: &Error| matches!(error, Error::Driver { code: 901, .. });
            assert!(if words.is_empty() { silent.is_ok() } else { silent.as_ref().is_err_and(told) }, "{silent:?}");
            calls();
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                stream.record(|| panic!("a panic of the work's own")).map(drop)
            }));
            assert!(panicked.is_err(), "{panicked:?}");
            let calls = calls();
            let ended =
                if words.is_empty() { &["cuStreamEndCapture", "cuGraphDestroy"][..] } else { &["cuStreamEndCapture"] };
            assert_eq!(calls[calls.len() - ended.len() - 1..calls.len() - 1], *ended, "{calls:?}");
            // SAFETY: the stream outlives the result.
            let raw = unsafe { cust::extra::borrow_stream(stream.as_raw().expect("a GPU's")) };
            assert_eq!(cust::extra::is_capturing(&raw), Ok(false));
            stream.synchronize()
        });
    }
}

/// The memory that copies go through is used again and again, five times here, and by the next transfer: what is on its way is waited for.
#[test]
fn what_goes_through_pinned_memory_again_arrives() {
    const NAME: &str = "flight::what_goes_through_pinned_memory_again_arrives";
    with_driver(NAME, "late=1", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        // 16 MiB are copied at once.
        let (rows, cols) = (1 << 20, 5 * 2);
        let made = |seed: usize| Matrix::from_fn(rows, cols, |i, j| (i + (j + seed) * rows) as f64);
        let (first, second) = (made(0)?, made(1)?);
        let there = [device.upload(&stream, first.view())?, device.upload(&stream, second.view())?];
        for (there, here) in there.iter().zip([&first, &second]) {
            let back = device.download(&stream, there.view())?;
            assert!(back.as_slice() == here.as_slice(), "other numbers came back");
        }
        Ok(())
    });
}

/// Where no event tells when pinned memory is free again, the transfer that fails waits for its copies.
#[test]
fn a_transfer_that_fails_leaves_pinned_memory_free() {
    const NAME: &str = "flight::a_transfer_that_fails_leaves_pinned_memory_free";
    with_driver(NAME, "late=1", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let made = |first: usize| Matrix::from_fn(300, 4, |i, j| (first + i + 300 * j) as f64);
        let (first, second) = (made(1)?, made(5000)?);
        let there = device.upload(&stream, first.view())?;
        stream.synchronize()?;
        tell("late=1 cuEventRecord=2*1");
        let failed = device.download(&stream, there.view());
        assert!(matches!(failed, Err(Error::Driver { code: 2, .. } | Error::OutOfMemory { .. })), "{failed:?}");
        // The last of them takes the memory that the failed one had.
        let sent = (0..3).map(|_| device.upload(&stream, second.view())).collect::<Result<Vec<_>>>()?;
        for there in &sent {
            let back = there.download(&stream)?;
            assert!(back.as_slice() == second.as_slice(), "other numbers came back");
        }
        Ok(())
    });
}
