//! Two devices: what is of one is refused by the other, and both are named.

use super::*;
use lanky_host::{Complex, Determinism, Error, Layout, MatMut, MatRef, Operand, Plan, Scalar, Shape, Stream, gemm};

#[test]
fn what_is_of_another_device_is_named_with_both() {
    const NAME: &str = "elsewhere::what_is_of_another_device_is_named_with_both";
    with_driver(NAME, "devices=2", || {
        let (zero, one, cpu) = (Device::cuda(0)?, Device::cuda(1)?, Device::cpu());
        let (of_zero, of_one) = (zero.stream()?, one.stream()?);
        let (a, b) = hosts()?;
        let (a0, b0, mut c0) =
            (zero.upload(&of_zero, a.view())?, zero.upload(&of_zero, b.view())?, zero.zeros(300, 4)?);
        let b1 = one.upload(&of_one, b.view())?;
        let c = Shape::packed(300, 4, Layout::ColumnMajor, a.shape().dtype);
        let plan = Plan::gemm(&zero, a.shape(), b.shape(), c).build()?;
        let cold = Plan::gemm(&one, a.shape(), b.shape(), c).build()?;
        calls();

        let stream = "the stream is of cuda:1, but the plan is for cuda:0: take a stream of cuda:0";
        let refused = plan.run(&of_one, 1.0, a0.view(), b0.view(), 0.0, c0.view_mut());
        said(refused, stream, |error| matches!(error, Error::WrongStream { whose: "plan", .. }));
        said(plan.warm_up_on(&of_one), stream, |error| matches!(error, Error::WrongStream { .. }));
        let plans = "the plan is for cuda:0, but the call is for cuda:1: make a plan for cuda:1";
        // Also where it stands behind one that could be warmed up.
        for all in [&[&plan][..], &[&cold, &plan], &[&cold, &cold, &plan, &cold]] {
            said(one.warm_up(all), plans, |error| matches!(error, Error::WrongPlan { .. }));
            assert_eq!(calls(), [""; 0], "nothing is loaded");
        }
        let text = "the stream is of cuda:0, but the call is for cuda:1: take a stream of cuda:1";
        said(one.upload(&of_zero, b.view()), text, |error| matches!(error, Error::WrongStream { whose: "call", .. }));
        let operand = "B is on cuda:1, but the call is for cuda:0: upload or download it first";
        let is_b = |error: &Error| matches!(error, Error::WrongDevice { operand: Operand::B, .. });
        said(gemm(&of_zero, 1.0, a0.view(), b1.view(), 0.0, c0.view_mut()), operand, is_b);
        said(plan.run(&of_zero, 1.0, a0.view(), b1.view(), 0.0, c0.view_mut()), operand, is_b);
        said(zero.matmul(a0.view(), b1.view()), operand, is_b);
        let text = "A is on the host, but the call is for cuda:0: upload or download it first";
        said(gemm(&of_zero, 1.0, a.view(), b0.view(), 0.0, c0.view_mut()), text, |error| !error.is_device());
        let text = "the matrix is on cuda:1, but the call is for cuda:0: upload or download it first";
        said(zero.download(&of_zero, b1.view()), text, |error| matches!(error, Error::WrongDevice { .. }));
        let text = "the stream is of cpu, but the call is for cuda:0: take a stream of cuda:0";
        said(zero.upload(&cpu.stream()?, b.view()), text, |error| matches!(error, Error::WrongStream { .. }));
        assert_eq!(calls(), [""; 0], "nothing was asked of the driver");

        let mut graph = of_zero.record(|| Ok(()))?;
        calls();
        let text = "the stream is of cuda:1, but the graph is for cuda:0: take a stream of cuda:0";
        // SAFETY: nothing is in it.
        let refused = unsafe { graph.launch(&of_one) };
        said(refused, text, |error| matches!(error, Error::WrongStream { whose: "graph", .. }));
        assert_eq!(calls(), [""; 0], "nothing was asked of the driver");
        // SAFETY: as above.
        unsafe { graph.launch(&of_zero) }?;

        // What is of one device goes on.
        plan.run(&of_zero, 1.0, a0.view(), b0.view(), 0.0, c0.view_mut())?;
        zero.warm_up(&[&plan])
    });
}

fn said<T>(result: Result<T>, text: &str, is: impl FnOnce(&Error) -> bool) {
    let error = result.err().unwrap_or_else(|| panic!("taken, but: {text}"));
    assert_eq!(error.to_string(), text);
    assert!(is(&error), "{error:?}");
}

#[test]
fn contexts_of_others_are_kept_and_none_but_the_primary_is_taken() {
    const NAME: &str = "elsewhere::contexts_of_others_are_kept_and_none_but_the_primary_is_taken";
    with_driver(NAME, "devices=2", || {
        let error = Device::from_current_context().expect_err("none is current");
        assert!(
            matches!(&error, Error::NoDevice { reason, .. } if reason == "no context is current on this thread"),
            "{error}"
        );
        let current = || cust::extra::current_context_raw().expect("the fake says");
        assert!(current().is_null(), "and none was left current");

        let theirs =
            cust::device::Device::get_device(1).and_then(cust::context::Context::new).expect("the fake retains");
        let before = current();
        assert!(!before.is_null());
        let device = Device::from_current_context()?;
        assert_eq!(device.ordinal(), Some(1));
        let (a, b) = hosts()?;
        device.matmul(a.view(), b.view())?;
        Device::cuda(0)?.matmul(a.view(), b.view())?;
        assert_eq!(current(), before, "products on two devices leave it current");
        drop(theirs);

        let push: unsafe extern "system" fn(usize) -> i32 = symbol("cuCtxPushCurrent_v2");
        // SAFETY: the fake takes any number; this one is of device 0 (its low byte), and not its primary context.
        assert_eq!(unsafe { push(0x7700) }, 0);
        let error = Device::from_current_context().expect_err("it is not the primary context");
        assert_eq!(error.to_string(), "unsupported: a context of cuda:0 other than its primary one");
        Ok(())
    });
}

/// The handle of another stream on each thread, which would all have one workspace.
#[test]
fn a_stream_of_each_thread_is_refused() {
    const NAME: &str = "elsewhere::a_stream_of_each_thread_is_refused";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let owner = device.stream()?;
        let (a, b) = hosts()?;
        let (a, b) = (device.upload(&owner, a.view())?, device.upload(&owner, b.view())?);
        let mut c = device.zeros(300, 4)?;
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
        let mut graph = owner.record(|| Ok(()))?;
        calls();

        // SAFETY: the driver's own handle, which is always there.
        let stream = unsafe { Stream::from_raw(&device, std::ptr::without_provenance_mut(2)) };
        let text = "unsupported: CU_STREAM_PER_THREAD (cudaStreamPerThread), which is another stream on each thread: make a \
                    stream, by Device::stream or the driver, and give that";
        let is = |error: &Error| matches!(error, Error::Unsupported { .. });
        said(gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()), text, is);
        said(plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()), text, is);
        said(plan.warm_up_on(&stream), text, is);
        said(device.download(&stream, a.view()), text, is);
        said(stream.synchronize(), text, is);
        said(stream.timed(|| Ok(())), text, is);
        said(stream.mark().map(drop), text, is);
        said(stream.record(|| Ok(())).map(drop), text, is);
        // SAFETY: nothing is in it.
        said(unsafe { graph.launch(&stream) }, text, is);
        assert_eq!(stream.as_raw(), None);
        assert_eq!(calls(), [""; 0], "nothing was asked of the driver");

        // The legacy default stream is one for all threads.
        for handle in [0, 1] {
            // SAFETY: the driver's own handle, which is always there.
            let stream = unsafe { Stream::from_raw(&device, std::ptr::without_provenance_mut(handle)) };
            assert_eq!(stream.as_raw().map(<*mut _>::addr), Some(handle));
        }
        Ok(())
    });
}

/// Somebody else's memory and stream: no copy, no synchronisation, no allocation once the plan is warm, whatever it is of.
#[test]
fn a_warm_plan_asks_the_driver_for_launches_alone() {
    const NAME: &str = "elsewhere::a_warm_plan_asks_the_driver_for_launches_alone";
    // In a process each: what one has loaded is there for the other.
    for (words, determinism) in [("", Determinism::OneGpu), ("devices=1", Determinism::AcrossGpus)] {
        with_driver(NAME, words, || {
            let device = Device::cuda(0)?;
            let owner = device.stream()?;
            // SAFETY: the stream outlives its borrower.
            let stream = unsafe { Stream::from_raw(&device, owner.as_raw().expect("a GPU's")) };
            warm_plans::<f32>(&stream, determinism)?;
            warm_plans::<f64>(&stream, determinism)?;
            warm_plans::<Complex<f32>>(&stream, determinism)?;
            warm_plans::<Complex<f64>>(&stream, determinism)
        });
    }
}

/// Each operation, of a long k and of others: m, n, k. A kernel stays loaded, so that what few plans load is asked for first.
const WARM: [(&str, usize, usize, usize); 9] = [
    ("gram", 300, 300, 300),
    ("gram", 16, 16, 300_000),
    ("gemm", 300, 4, 20_000),
    ("gemm", 20_480, 4, 20_480),
    ("gemm", 20_000, 8, 8),
    ("gemm", 8, 6, 300_000),
    ("gemm", 2000, 2000, 2000),
    ("gemv", 300, 1, 200_000),
    ("gemv", 200_000, 1, 300),
];

/// Runs each plan warm, also where it does not multiply: what it launches, and nothing else.
fn warm_plans<T: Scalar>(stream: &Stream, determinism: Determinism) -> Result<()> {
    let device = stream.device();
    let one = T::one();
    let mut with_slots = Vec::new();
    for (operation, m, n, k) in WARM {
        let views = || borrowed::<T>(device, (m, n, k));
        let (va, vb, vc) = views()?;
        let plan = match operation {
            "gemm" => Plan::gemm(device, va.shape(), vb.shape(), vc.shape()),
            "gram" => Plan::gram(device, vb.shape(), vc.shape()),
            _ => Plan::gemv(device, va.shape(), vb.shape(), vc.shape()),
        };
        let plan = plan.determinism(determinism).build()?;
        let run = |alpha: T, beta: T| {
            let (a, b, c) = views()?;
            match operation {
                "gemm" => plan.run(stream, alpha, a, b, beta, c),
                "gram" => plan.run_gram(stream, alpha, b, beta, c),
                _ => plan.run_gemv(stream, alpha, a, b, beta, c),
            }
        };
        plan.warm_up_on(stream)?;
        calls();
        launches();
        run(one, one)?;
        let once = launches().len();
        let slots = plan.choice().map_or(0, |choice| choice.slots_len);
        assert!(once == 1 || (slots > 0 && once == 2), "{operation} {m} x {n} x {k}: {once} launches of {plan}");
        if slots > 0 {
            with_slots.push(operation);
        }
        for _ in 1..10 {
            run(one, one)?;
        }
        run(T::zero(), one + one)?; // C is scaled, by a kernel of its own
        run(T::zero(), one)?; // C as it is
        let allowed = ["cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuLaunchKernel"];
        let calls = calls();
        assert_eq!(calls.iter().filter(|call| *call == "cuLaunchKernel").count(), 10 * once + 1, "{plan}: {calls:?}");
        let others: Vec<_> = calls.iter().filter(|call| !allowed.contains(&call.as_str())).collect();
        assert!(others.is_empty(), "{operation} {m} x {n} x {k} of {}, {plan}: {others:?}", T::DTYPE);
    }
    with_slots.dedup();
    assert_eq!(with_slots, ["gram", "gemm", "gemv"], "{}: plans that need a workspace", T::DTYPE);
    Ok(())
}

pub type Views<'a, T> = (MatRef<'a, T>, MatRef<'a, T>, MatMut<'a, T>);

/// A, B and C of somebody else's, packed by columns.
pub fn borrowed<'a, T: Scalar>(device: &Device, (m, n, k): (usize, usize, usize)) -> Result<Views<'a, T>> {
    // SAFETY: the fake's kernels look at no memory.
    unsafe {
        let (a, b) = (MatRef::from_raw(device, 1 << 44, m, k, 1, m)?, MatRef::from_raw(device, 2 << 44, k, n, 1, k)?);
        Ok((a, b, MatMut::from_raw(device, 3 << 44, m, n, 1, m)?))
    }
}
