//! No driver, none that serves, no device, none that is free.

use super::*;
use lanky_host::{Error, Version, env};

/// `Device::auto` takes the CPU and says why; nothing is cached that a later, better moment would contradict.
fn falls_back(error: &Error) -> Result<()> {
    let auto = Device::auto();
    assert!(!auto.is_cuda() && error.is_device(), "{auto}: {error}");
    // Each says what it was that failed.
    let text = error.to_string().replace("Device::cuda", "Device::auto");
    let reason = auto.reason().replace("Device::count", "Device::auto");
    assert!(text.ends_with(&reason), "{text}; {reason}");
    the_cpu_multiplies()
}

#[test]
fn a_library_that_is_none_is_no_driver() {
    const NAME: &str = "absent::a_library_that_is_none_is_no_driver";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver-none");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    std::fs::write(folder.join("libcuda.so.1"), "no library").expect("the target folder can be written");
    in_a_child(NAME, "", &folder, || {
        let error = Device::cuda(0).expect_err("there is no driver");
        let Error::NoDriver { tried, reason, .. } = &error else { panic!("{error:?}") };
        assert_eq!(tried[0], "libcuda.so.1");
        assert!(reason.contains("libcuda.so.1"), "{reason}");
        assert!(matches!(Device::count(), Err(Error::NoDriver { .. })));
        assert!(matches!(env::gpu_report().problem, Some(Error::NoDriver { .. })));
        falls_back(&error)
    });
}

#[test]
fn a_driver_without_the_functions_says_which() {
    const NAME: &str = "absent::a_driver_without_the_functions_says_which";
    let folder = compile("empty", &["--cfg", "empty"]);
    in_a_child(NAME, "", &folder, || {
        let error = Device::cuda(0).expect_err("there is no cuInit");
        let text = "cuInit in Device::cuda failed: CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND (302): the CUDA driver is too old: it has no cuInit";
        assert!(matches!(error, Error::Driver { code: 302, .. }), "{error:?}");
        assert_eq!(error.to_string(), text);
        falls_back(&error)
    });
}

#[test]
fn a_driver_too_old_for_the_ptx_is_told_both_versions() {
    const NAME: &str = "absent::a_driver_too_old_for_the_ptx_is_told_both_versions";
    for (words, has, wants) in [("version=11020 capability=80", "11.2", "11.4"), ("version=11060", "11.6", "12.0")] {
        with_driver(NAME, words, || {
            let error = Device::cuda(0).expect_err("the driver is too old");
            let Error::DriverTooOld { driver, needs, .. } = error else { panic!("{error:?}") };
            assert_eq!((driver.to_string(), needs.to_string()), (has.to_owned(), wants.to_owned()));
            assert!(driver < needs);
            assert!(!calls().iter().any(|call| call == "cuDevicePrimaryCtxRetain"), "no context was made");
            falls_back(&Device::cuda(0).expect_err("still"))
        });
    }
}

#[test]
fn no_device_is_one_error_however_it_is_said() {
    const NAME: &str = "absent::no_device_is_one_error_however_it_is_said";
    for (words, text) in [
        ("cuInit=100", "no usable GPU: the driver sees no device"),
        ("devices=0", "no usable GPU: the driver sees no device"),
        ("cuDeviceGet=101", "no usable GPU: the driver has no device of that number"),
        ("capability=75", "no usable GPU: Fake has compute capability 7.5; the kernels need 8.0"),
    ] {
        with_driver(NAME, words, || {
            let error = Device::cuda(0).expect_err("there is none");
            assert!(matches!(error, Error::NoDevice { .. }), "{error:?}");
            assert_eq!(error.to_string(), text);
            falls_back(&error)
        });
    }
}

#[test]
fn a_number_beyond_the_devices_is_told_how_many_there_are() {
    const NAME: &str = "absent::a_number_beyond_the_devices_is_told_how_many_there_are";
    for (words, text) in [("", "only cuda:0"), ("devices=3", "only cuda:0 to cuda:2")] {
        with_driver(NAME, words, || {
            let error = Device::cuda(7).expect_err("there is no such GPU");
            assert!(matches!(error, Error::NoDevice { .. }) && error.to_string().ends_with(text), "{error:?}");
            assert!(Device::cuda(0).is_ok());
            Ok(())
        });
    }
}

#[test]
fn a_busy_device_is_free_later() {
    const NAME: &str = "absent::a_busy_device_is_free_later";
    for (words, code) in
        [("cuDevicePrimaryCtxRetain=46*2", 46), ("cuDevicePrimaryCtxRetain=216*2", 216), ("cuInit=802*2", 802)]
    {
        with_driver(NAME, words, || {
            let error = Device::cuda(0).expect_err("it is busy");
            assert!(matches!(error, Error::DeviceBusy { code: found, .. } if found == code), "{error:?}");
            falls_back(&error)?; // which asks a second time
            assert!(Device::auto().is_cuda(), "the third time it is free");
            Ok(())
        });
    }
}

/// A driver that is there, but not as it should be: its user is told what to do. It may be mended while the process runs.
#[test]
fn a_driver_that_is_not_set_up_says_what_to_do() {
    const NAME: &str = "absent::a_driver_that_is_not_set_up_says_what_to_do";
    for (code, name, words) in [
        (34, "STUB_LIBRARY", "take the toolkit's folder `stubs` out of LD_LIBRARY_PATH"),
        (36, "CALL_REQUIRES_NEWER_DRIVER", "update the driver"),
        (303, "SHARED_OBJECT_INIT_FAILED", "install the driver again"),
        (304, "OPERATING_SYSTEM", "look whether /dev/nvidia* are there"),
        (803, "SYSTEM_DRIVER_MISMATCH", "restart the machine after an update"),
        (804, "COMPAT_NOT_SUPPORTED_ON_DEVICE", "take its folder (`compat`) out of LD_LIBRARY_PATH"),
    ] {
        with_driver(NAME, &format!("cuInit={code}*2"), || {
            let error = Device::cuda(0).expect_err("told to fail");
            assert!(matches!(error, Error::DriverSetup { code: found, .. } if found == code), "{error:?}");
            let text = error.to_string();
            let begin = "the NVIDIA driver cannot be used as it is: cuInit in Device::cuda: CUDA_ERROR_";
            assert!(text.starts_with(&format!("{begin}{name} ({code}): ")) && text.contains(words), "{text}");
            assert_eq!(text.lines().count(), 1);
            falls_back(&error)?; // which asks a second time
            assert!(Device::auto().is_cuda(), "the third time it starts");
            Ok(())
        });
    }
    // Of a driver that has started only what still speaks of it as a whole.
    for (code, is_setup) in [(36, true), (304, false)] {
        with_driver(NAME, &format!("cuMemHostAlloc={code}*1"), || {
            let (device, (a, _)) = (Device::cuda(0)?, hosts()?);
            let error = device.upload(&device.stream()?, a.view()).expect_err("told to fail");
            assert_eq!(matches!(error, Error::DriverSetup { .. }), is_setup, "{error:?}");
            assert!(error.to_string().contains(&format!("({code})")), "{error}");
            Ok(())
        });
    }
}

#[test]
fn what_else_the_driver_says_is_kept() {
    const NAME: &str = "absent::what_else_the_driver_says_is_kept";
    for (words, expected) in [
        ("cuInit=999", ("cuInit in Device::cuda", 999, "CUDA_ERROR_UNKNOWN")),
        ("cuInit=4711", ("cuInit in Device::cuda", 4711, "CUDA_ERROR_4711")),
        ("cuDeviceGetName=3", ("cuDeviceGetName in Device::cuda", 3, "CUDA_ERROR_NOT_INITIALIZED")),
    ] {
        with_driver(NAME, words, || {
            let error = Device::cuda(0).expect_err("told to fail");
            let Error::Driver { operation, code, name, .. } = &error else { panic!("{error:?}") };
            assert_eq!((operation.as_str(), *code, name.as_str()), expected);
            falls_back(&error)
        });
    }
}

#[test]
fn what_is_here_is_reported_without_a_context() {
    const NAME: &str = "absent::what_is_here_is_reported_without_a_context";
    with_driver(NAME, "devices=2 version=12040", || {
        let report = env::gpu_report();
        assert!(report.problem.is_none() && report.devices.len() == 2, "{report:?}");
        assert_eq!(report.driver.map(|version: Version| version.to_string()).as_deref(), Some("12.4"));
        assert_eq!(report.devices[1].arch.as_deref(), Some("sm_90"));
        assert!(report.library.is_some_and(|path| path.ends_with("/libcuda.so.1")));
        assert!(!calls().iter().any(|call| call.starts_with("cuCtx") || call.contains("Retain")));
        Ok(())
    });
    for function in ["cuInit", "cuDeviceGetCount", "cuDeviceGetName"] {
        with_driver(NAME, &format!("{function}=999"), || {
            let problem = env::gpu_report().problem.expect("told to fail");
            let text = format!("{function} in env::gpu_report failed: CUDA_ERROR_UNKNOWN (999)");
            assert!(problem.to_string().starts_with(&text), "{problem}");
            Ok(())
        });
    }
}

/// The codes of no device, of a call that does not say which devices there are, are that call's failure.
#[test]
fn codes_of_no_device_are_named_where_a_device_is_open() {
    const NAME: &str = "absent::codes_of_no_device_are_named_where_a_device_is_open";
    for code in [100, 101] {
        for function in ["cuMemAlloc_v2", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuDeviceGetAttribute"] {
            with_driver(NAME, &format!("{function}={code}*1"), || {
                let error = Device::cuda(0).and_then(|device| device.zeros::<f64>(3, 3)).expect_err("told to fail");
                let Error::Driver { operation, code: found, .. } = &error else { panic!("{error:?}") };
                let during = if function.starts_with("cuDevice") { "Device::cuda" } else { "Device::zeros" };
                assert_eq!(*operation, format!("{} in {during}", function.trim_end_matches("_v2")));
                assert_eq!(*found, code);
                Device::cuda(0)?.zeros::<f64>(3, 3).map(drop)
            });
        }
    }
}
