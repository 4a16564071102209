//! What fails once a device is open: memory, the compiler, work of others.

use super::*;
use lanky_host::{Error, Layout, Plan, Shape, gemm};

#[test]
fn memory_that_is_not_there_is_told_how_much_is() {
    const NAME: &str = "failing::memory_that_is_not_there_is_told_how_much_is";
    with_driver(NAME, "memory=50000000", || {
        let device = Device::cuda(0)?;
        let error = device.zeros::<f64>(10_000, 10_000).expect_err("that is too much");
        let Error::OutOfMemory { wanted, free, total, .. } = error else { panic!("{error:?}") };
        assert_eq!((wanted, total), (800_000_000, 50_000_000));
        assert!(0 < free && free <= total);
        // What fits is still served.
        assert_eq!(device.zeros::<f64>(10, 10)?.nrows(), 10);
        the_cpu_multiplies()
    });
    for words in ["cuDevicePrimaryCtxRetain=2*1", "cuStreamCreateWithPriority=2*1"] {
        with_driver(NAME, words, || {
            // The driver itself wants the memory: for a context, for a stream.
            let error = Device::cuda(0).and_then(|device| device.stream().map(drop)).expect_err("told to fail");
            assert!(matches!(error, Error::OutOfMemory { wanted: 0, free: 0, total: 0, .. }), "{error:?}");
            Device::cuda(0)?.stream().map(drop)
        });
    }
    with_driver(NAME, "cuMemHostAlloc=2*1", || {
        let (device, (a, _)) = (Device::cuda(0)?, hosts()?);
        let stream = device.stream()?;
        let error = device.upload(&stream, a.view()).expect_err("there is no pinned memory");
        assert!(matches!(error, Error::OutOfMemory { wanted: 1.., .. }), "{error:?}");
        assert_eq!(device.upload(&stream, a.view())?.download(&stream)?.as_slice(), a.as_slice());
        Ok(())
    });
}

#[test]
fn a_kernel_that_does_not_compile_brings_its_log() {
    const NAME: &str = "failing::a_kernel_that_does_not_compile_brings_its_log";
    for code in [200, 209, 218, 221, 222, 223] {
        with_driver(NAME, &format!("cuModuleLoadDataEx={code}*1"), || {
            let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
            let c = Shape::packed(300, 4, Layout::ColumnMajor, a.shape().dtype);
            let plan = Plan::gemm(&device, a.shape(), b.shape(), c).build()?;
            let error = plan.warm_up().expect_err("told to fail");
            let Error::Jit { entry, operation, code: found, log, .. } = &error else { panic!("{error:?}") };
            assert_eq!((operation.as_str(), *found), ("cuModuleLoadDataEx in Plan::warm_up", code));
            let begin = format!("the driver refused kernel {entry}: cuModuleLoadDataEx in Plan::warm_up: CUDA_ERROR_");
            assert!(error.to_string().starts_with(&begin), "{error}");
            assert!(!entry.is_empty() && log.contains("line 7") && log.ends_with("line two"), "{entry}: {log}");
            assert!(error.to_string().ends_with("the fake has no assembler"), "{error}");
            assert!(error.is_device());
            // Not remembered: the next time it loads.
            plan.warm_up()
        });
    }
    // The same of the function in a module that was loaded.
    with_driver(NAME, "cuModuleGetFunction=209*1", || {
        let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
        let error = device.matmul(a.view(), b.view()).expect_err("told to fail");
        let Error::Jit { entry, operation, code: 209, .. } = &error else { panic!("{error:?}") };
        assert_eq!(operation, "cuModuleGetFunction in Device::matmul");
        let begin = format!("the driver refused kernel {entry}: {operation}: CUDA_ERROR_NO_BINARY_FOR_GPU (209): ");
        assert!(error.to_string().starts_with(&begin), "{error}");
        device.matmul(a.view(), b.view()).map(drop)
    });
}

/// Whichever call meets it first, from then on every one says so at once, and nothing is freed in the lost context.
#[test]
fn what_others_kernels_destroy_is_met_by_any_call() {
    const NAME: &str = "failing::what_others_kernels_destroy_is_met_by_any_call";
    for first in [
        "cuMemAlloc_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuModuleLoadDataEx",
        "cuLaunchKernel",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuEventCreate",
        "cuStreamCreateWithPriority",
    ] {
        let codes: &[i32] = match first {
            "cuStreamSynchronize" => &[214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810],
            _ => &[700, 719],
        };
        for &code in codes {
            with_driver(NAME, &format!("{first}={code}"), || {
                let device = Device::cuda(0)?;
                let (a, b) = hosts()?;
                // Made while all is well, where the fault comes later.
                let early = device.zeros::<f64>(3, 3);
                let met = device.stream().and_then(|stream| {
                    let (a, b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
                    let mut c = device.zeros::<f64>(300, 4)?;
                    gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
                    stream.synchronize()?;
                    drop((a, b, c));
                    device.matmul(a_host()?.view(), b_host()?.view()).map(drop)
                });
                let lost = |error: &Error| matches!(error, Error::ContextLost { code: found, .. } if *found == code);
                let error = early.as_ref().err().or(met.as_ref().err()).expect("some call meets it");
                assert!(lost(error), "{error:?}");
                calls();
                assert!(device.stream().is_err_and(|error| lost(&error)));
                assert!(device.zeros::<f64>(2, 2).is_err_and(|error| lost(&error)));
                assert!(device.memory().is_err_and(|error| lost(&error)));
                assert!(Device::cuda(0).is_err_and(|error| lost(&error)));
                drop((early, met, device));
                assert_eq!(calls(), [""; 0], "a lost context is left alone");
                assert!(!Device::auto().is_cuda());
                the_cpu_multiplies()
            });
        }
    }
}

/// What is of one GPU, and can end, is not taken for the end of all of them.
#[test]
fn what_one_gpu_cannot_give_leaves_the_others() {
    const NAME: &str = "failing::what_one_gpu_cannot_give_leaves_the_others";
    for code in [214, 220] {
        with_driver(NAME, &format!("devices=2 cuDevicePrimaryCtxRetain={code}*1"), || {
            let error = Device::cuda(0).expect_err("its memory is broken");
            assert!(matches!(&error, Error::Driver { code: found, .. } if *found == code), "{error:?}");
            Device::cuda(1)?.stream().map(drop)
        });
    }
    with_driver(NAME, "devices=2 cuStreamCreateWithPriority=709*1", || {
        let (zero, one) = (Device::cuda(0)?, Device::cuda(1)?);
        let error = zero.stream().map(drop).expect_err("somebody reset the device");
        assert!(matches!(error, Error::ContextLost { code: 709, .. }), "{error:?}");
        assert!(error.to_string().contains("restart the process, or use the CPU"), "{error}");
        one.stream().map(drop)?;
        the_cpu_multiplies()
    });
    with_driver(NAME, "cuCtxGetDevice=709", || {
        let _theirs = cust::device::Device::get_device(0).and_then(cust::context::Context::new);
        let error = Device::from_current_context().expect_err("what is current is destroyed");
        assert!(
            matches!(&error, Error::NoDevice { reason, .. } if reason.ends_with("has been destroyed")),
            "{error:?}"
        );
        Device::cuda(0)?.stream().map(drop)
    });
}

fn a_host() -> Result<Matrix<f64>> {
    hosts().map(|(a, _)| a)
}

fn b_host() -> Result<Matrix<f64>> {
    hosts().map(|(_, b)| b)
}

/// Not fatal: the call that failed is named, and the next one is served.
#[test]
fn a_call_that_failed_once_is_served_the_next_time() {
    const NAME: &str = "failing::a_call_that_failed_once_is_served_the_next_time";
    for first in
        ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuModuleGetFunction", "cuCtxPushCurrent_v2"]
    {
        with_driver(NAME, &format!("{first}=1*1"), || {
            let (device, (a, b)) = (Device::cuda(0)?, hosts()?);
            let error = device.matmul(a.view(), b.view()).expect_err("told to fail");
            let Error::Driver { operation, code: 1, .. } = &error else { panic!("{error:?}") };
            assert!(operation.starts_with(first.trim_end_matches("_v2")), "{operation}");
            device.matmul(a.view(), b.view()).map(drop)
        });
    }
}
