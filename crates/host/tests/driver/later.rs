//! Work that fails once the call that gave it has returned: a later call says so, names itself, and does not take the blame.

use super::*;
use lanky_host::{Error, Plan, Stream, gemm};

/// What a caller may do next.
const NEXT: [(&str, &str); 9] = [
    ("Stream::synchronize", "cuStreamSynchronize"),
    ("Device::download", "cuMem"),
    ("Device::upload", "cuMem"),
    ("Device::zeros", "cuMem"),
    ("gemm", "cuLaunchKernel"),
    ("Device::matmul", "cuCtxSynchronize"),
    ("Device::memory", "cuMemGetInfo"),
    ("Mark::seconds_since", "cuEventSynchronize"),
    ("Graph::launch", "cuGraphLaunch"),
];

fn meets(next: &str, code: i32) -> Result<Error> {
    let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
    let stream = device.stream()?;
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(300, 4)?;
    let (first, mut graph) = (stream.mark()?, stream.record(|| Ok(()))?);
    let last = stream.mark()?;
    // It is loaded, and its workspace is there.
    gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
    stream.synchronize()?;
    tell(&format!("async={code}"));
    let mut product = |stream: &Stream| gemm(stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut());
    if product(&stream).is_err() {
        // A product of two launches: the second one meets the end of the first.
        assert_eq!(next, "gemm");
    }
    let met = match next {
        "Stream::synchronize" => stream.synchronize(),
        "Device::download" => there_a.download(&stream).map(drop),
        "Device::upload" => device.upload(&stream, a.view()).map(drop),
        "Device::zeros" => device.zeros::<f64>(5, 5).map(drop),
        "gemm" => product(&stream),
        "Device::matmul" => device.matmul(there_a.view(), b.view()).map(drop),
        "Device::memory" => device.memory().map(drop),
        "Mark::seconds_since" => last.seconds_since(&first).map(drop),
        // SAFETY: an empty graph.
        _ => unsafe { graph.launch(&stream) },
    };
    Ok(met.expect_err("work before it has failed"))
}

#[test]
fn work_that_fails_later_is_told_by_the_next_call() {
    const NAME: &str = "later::work_that_fails_later_is_told_by_the_next_call";
    with_driver(NAME, "", || {
        for (next, function) in NEXT {
            let case = || {
                let error = meets(next, 719).expect("the fake serves");
                assert!(matches!(&error, Error::ContextLost { code: 719, .. }), "{error:?}");
                let text = error.to_string();
                let said = text.strip_prefix("the GPU context was lost in ").expect("it says what is lost");
                let (operation, _) = said.split_once(" or in work before it: ").expect("it may be earlier work");
                let (found, during) = operation.rsplit_once(" in ").expect("it says what was called");
                assert!(found.starts_with(function) && during == next, "{next}: {text}");
                assert!(Device::cuda(0).is_err_and(|later| later.to_string() == text), "the first report is kept");
            };
            in_a_fork(20, case).unwrap_or_else(|error| panic!("{next}: {error}"));
        }
        Ok(())
    });
}

/// LANKY_SYNC=1 waits for no kernel that is recorded, whose stream would have nothing to wait for.
#[test]
fn a_synchronous_process_records_too() {
    const NAME: &str = "later::a_synchronous_process_records_too";
    with_driver(NAME, "", || {
        // SAFETY: this child has no other thread that looks at the environment.
        unsafe { std::env::set_var("LANKY_SYNC", "1") };
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let mut c = device.zeros::<f64>(300, 4)?;
        // Another launch adds its slots.
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).variant("gemm_tiled").parts(3).build()?;
        plan.warm_up_on(&stream)?;
        let count = |calls: &[String], name: &str| calls.iter().filter(|call| *call == name).count();
        calls();
        let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()))?;
        let recorded = calls();
        assert_eq!((count(&recorded, "cuLaunchKernel"), count(&recorded, "cuStreamSynchronize")), (2, 0));
        // SAFETY: all of it lives until the stream is synchronised.
        unsafe { graph.launch(&stream) }?;
        stream.synchronize()?;
        calls();
        plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
        let ran = calls();
        assert_eq!(
            (count(&ran, "cuLaunchKernel"), count(&ran, "cuStreamSynchronize")),
            (2, 2),
            "it is waited for again"
        );
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// LANKY_SYNC=1 waits for every kernel, and so names the one that failed.
#[test]
fn a_synchronous_launch_names_its_kernel() {
    const NAME: &str = "later::a_synchronous_launch_names_its_kernel";
    with_driver(NAME, "", || {
        // SAFETY: this child has no other thread that looks at the environment.
        unsafe { std::env::set_var("LANKY_SYNC", "1") };
        let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
        let stream = device.stream()?;
        let (a, b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
        let mut c = device.zeros::<f64>(300, 4)?;
        tell("async=700");
        let error = gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()).expect_err("the kernel fails");
        let launched = launches().pop().expect("a launch");
        let entry = launched.split(' ').next().expect("a name");
        let expected =
            format!("the GPU context was lost in cuStreamSynchronize of kernel {entry} in gemm or in work before it");
        assert!(error.to_string().starts_with(&expected), "{error}");
        Ok(())
    });
}
