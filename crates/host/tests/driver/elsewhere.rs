//! Two devices: what is of one is refused by the other, and both are named.

use super::*;
use lanky_host::{Error, Layout, MatMut, MatRef, Operand, Plan, Shape, Stream, gemm};

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
        calls();

        let stream = "the stream is of cuda:1, but the plan is for cuda:0: take a stream of cuda:0";
        let refused = plan.run(&of_one, 1.0, a0.view(), b0.view(), 0.0, c0.view_mut());
        said(refused, stream, |error| matches!(error, Error::WrongStream { whose: "plan", .. }));
        said(plan.warm_up_on(&of_one), stream, |error| matches!(error, Error::WrongStream { .. }));
        let plans = "the plan is for cuda:0, but the call is for cuda:1: make a plan for cuda:1";
        said(one.warm_up(&[&plan]), plans, |error| matches!(error, Error::WrongPlan { .. }));
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

/// Somebody else's memory and stream: no copy, no synchronisation, no allocation once the plan is warm.
#[test]
fn a_warm_plan_asks_the_driver_for_launches_alone() {
    const NAME: &str = "elsewhere::a_warm_plan_asks_the_driver_for_launches_alone";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let owner = device.stream()?;
        let (m, n, k) = (300, 4, 20_000);
        let (a, b, c) = (device.zeros::<f64>(m, k)?, device.zeros::<f64>(k, n)?, device.zeros::<f64>(m, n)?);
        // SAFETY: the stream outlives its borrower.
        let stream = unsafe { Stream::from_raw(&device, owner.as_raw().expect("a GPU's")) };
        let addresses = [a.view().as_raw(), b.view().as_raw(), c.view().as_raw()];
        let (va, vb, vc) = borrowed(&device, addresses, (m, n, k))?;
        let plan = Plan::gemm(&device, va.shape(), vb.shape(), vc.shape()).build()?;
        assert!(plan.choice().is_some_and(|choice| choice.splits > 1), "a workspace is needed: {plan}");
        plan.warm_up_on(&stream)?;
        calls();
        for _ in 0..10 {
            let (a, b, c) = borrowed(&device, addresses, (m, n, k))?;
            plan.run(&stream, 1.0, a, b, 1.0, c)?;
        }
        let allowed = ["cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuLaunchKernel"];
        let calls = calls();
        assert_eq!(calls.iter().filter(|call| *call == "cuLaunchKernel").count(), 20, "{calls:?}");
        let others: Vec<_> = calls.iter().filter(|call| !allowed.contains(&call.as_str())).collect();
        assert!(others.is_empty(), "{others:?}");
        Ok(())
    });
}

type Views<'a> = (MatRef<'a, f64>, MatRef<'a, f64>, MatMut<'a, f64>);

/// A, B and C at these addresses, packed by columns.
fn borrowed<'a>(device: &Device, [a, b, c]: [u64; 3], (m, n, k): (usize, usize, usize)) -> Result<Views<'a>> {
    // SAFETY: the caller's matrices, which live on and are used by nothing else.
    unsafe {
        let (a, b) = (MatRef::from_raw(device, a, m, k, 1, m)?, MatRef::from_raw(device, b, k, n, 1, k)?);
        Ok((a, b, MatMut::from_raw(device, c, m, n, 1, m)?))
    }
}
