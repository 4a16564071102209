//! Devices, with a GPU or without one.

mod common;

use lanky_host::{Device, Error, Matrix, env};

#[test]
fn the_cpu_is_always_there() {
    let cpu = Device::cpu();
    assert!(!cpu.is_cuda() && cpu.ordinal().is_none() && cpu.machine().is_none());
    assert_eq!((cpu.name(), cpu.reason()), ("cpu", "asked for"));
    assert!(cpu.to_string().starts_with("cpu  "), "{cpu}");
    let ceilings = cpu.ceilings(&cpu.stream().unwrap()).unwrap();
    assert!(cpu.calibrate(&ceilings).is_err_and(|error| error.to_string().contains("calibration of the CPU")));
    let (free, total) = cpu.memory().unwrap();
    assert!(0 < free && free <= total);
    let a = Matrix::from_fn(3, 2, |i, l| (i + 10 * l) as f64).unwrap();
    let c = cpu.matmul(a.view(), a.t()).unwrap();
    assert_eq!(c.get(2, 1), Some(2.0 + 12.0 * 11.0));
    let stream = cpu.stream().unwrap();
    assert!(stream.as_raw().is_none());
    stream.synchronize().unwrap();
    assert!(stream.timed(|| Ok(())).unwrap() >= 0.0);
    assert!(matches!(stream.timed(|| Err(Error::Forked)), Err(Error::Forked)));
    assert!(cpu.zeros::<f32>(2, 3).unwrap().as_slice().unwrap().iter().all(|&value| value == 0.0));
}

#[test]
fn without_a_gpu_the_reason_is_said() {
    let report = env::gpu_report();
    let Some(problem) = report.problem else {
        assert!(!report.devices.is_empty());
        return common::skipped("without_a_gpu_the_reason_is_said", "there is a GPU");
    };
    assert!(report.devices.is_empty() && problem.is_device());
    let Err(error) = Device::cuda(0) else { panic!("a GPU that the report does not have") };
    assert!(
        matches!(
            error,
            Error::NoDriver { .. } | Error::NoDevice { .. } | Error::DriverSetup { .. } | Error::Driver { .. }
        ),
        "{error:?}"
    );
    assert_eq!(error.to_string().lines().count(), 1);
    assert!(Device::count().is_err());
    assert!(Device::from_current_context().is_err());
    let device = Device::auto();
    if device.is_cuda() || std::env::var_os("LANKY_REQUIRE_GPU").is_some_and(|value| value == "1") {
        return common::skipped("without_a_gpu_the_reason_is_said", "a GPU is asked for");
    }
    assert_eq!(device.name(), "cpu");
    assert!(!device.reason().is_empty() && device.reason().lines().count() == 1);
    assert!(error.to_string().ends_with(device.reason()), "{error}; {}", device.reason());
}

/// Runs this test's binary again with LANKY_REQUIRE_GPU=1: the environment of a process is everybody's.
#[test]
fn a_required_gpu_is_not_replaced() {
    const CHILD: &str = "LANKY_TEST_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let name = "a_required_gpu_is_not_replaced";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--quiet"])
            .envs([(CHILD, "1"), ("LANKY_REQUIRE_GPU", "1")])
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let device = Device::auto();
    if device.is_cuda() {
        return common::skipped("a_required_gpu_is_not_replaced", "there is a GPU");
    }
    assert!(Device::try_auto().is_err_and(|error| error.is_device()));
    assert!(device.stream().is_err_and(|error| error.is_device()));
    assert!(device.memory().is_err() && device.zeros::<f64>(1, 1).is_err());
    let a = Matrix::<f64>::zeros(2, 2).unwrap();
    assert!(device.matmul(a.view(), a.view()).is_err_and(|error| error.is_device()));
    assert_eq!(device.name(), "no device");
}
