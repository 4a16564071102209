//! Marks, graphs and ceilings: on a GPU where there is one, which is said.

mod common;

use lanky_host::{Device, Error, MatMut, MatRef, Matrix, Plan, Result, Stream};
use std::time::Duration;

fn gpu(test: &str) -> Option<(Device, Stream)> {
    let device = common::gpu(test)?;
    let stream = device.stream().expect("a stream of a GPU");
    Some((device, stream))
}

#[test]
fn marks_on_the_cpu_are_the_clock() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let first = stream.mark()?;
    std::thread::sleep(Duration::from_millis(20));
    let second = stream.mark()?;
    let seconds = second.seconds_since(&first)?;
    assert!((0.02..10.0).contains(&seconds), "{seconds}");
    assert_eq!(first.seconds_since(&second)?, 0.0);
    Ok(())
}

#[test]
fn the_cpu_has_no_graphs() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut worked = false;
    let refused = stream.record(|| {
        worked = true;
        Ok(())
    });
    assert!(matches!(refused, Err(Error::Unsupported { .. })) && !worked);
    Ok(())
}

#[test]
fn the_address_of_a_view_is_that_of_its_first_element() -> Result<()> {
    let device = Device::cpu();
    let mut matrix = Matrix::from_fn(5, 3, |i, j| (10 * i + j) as f64)?;
    let part = matrix.view().rows(2..4)?.cols(1..3)?;
    // SAFETY: the matrix lives, and nobody writes it meanwhile.
    let again = unsafe { MatRef::<f64>::from_raw(&device, part.as_raw(), 2, 2, 1, 5) }?;
    assert_eq!((again.get(0, 0), again.get(1, 1)), (Some(21.0), Some(32.0)));
    let address = matrix.view_mut().as_raw();
    // SAFETY: as above; nobody reads it either.
    let mut all = unsafe { MatMut::<f64>::from_raw(&device, address, 5, 3, 1, 5) }?;
    assert!(all.set(4, 2, -1.0));
    assert_eq!(matrix.get(4, 2), Some(-1.0));
    Ok(())
}

#[test]
fn work_within_a_context_is_done_once_and_its_result_handed_on() -> Result<()> {
    assert_eq!(Device::cpu().entered(|| 7)?, 7);
    let Some((device, _)) = gpu("work_within_a_context_is_done_once_and_its_result_handed_on") else { return Ok(()) };
    assert!(Device::from_current_context().is_err(), "none is current before");
    let inside = device.entered(Device::from_current_context)??;
    assert_eq!(inside.ordinal(), device.ordinal());
    assert!(Device::from_current_context().is_err(), "nor after");
    Ok(())
}

#[test]
fn a_graph_does_what_was_recorded() -> Result<()> {
    let Some((device, stream)) = gpu("a_graph_does_what_was_recorded") else { return Ok(()) };
    let host = Matrix::from_fn(300, 200, |i, l| ((i + 2 * l) % 5) as f64)?;
    let a = device.upload(&stream, host.view())?;
    let b = device.upload(&stream, host.view().rows(..200)?.cols(..3)?)?;
    let mut c = device.zeros::<f64>(300, 3)?;
    let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
    plan.warm_up_on(&stream)?;
    let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 1.0, c.view_mut()))?;
    stream.synchronize()?;
    assert_eq!(c.download(&stream)?.get(7, 1), Some(0.0), "nothing was done while it was recorded");
    for _ in 0..3 {
        // SAFETY: plan and matrices live until the download below has waited for the stream.
        unsafe { graph.launch(&stream) }?;
    }
    let found = c.download(&stream)?;
    let once = Device::cpu().matmul(host.view(), host.view().rows(..200)?.cols(..3)?)?;
    for (i, j) in [(0, 0), (7, 1), (299, 2)] {
        assert_eq!(found.get(i, j), once.get(i, j).map(|value| 3.0 * value), "({i}, {j})");
    }
    let failed = stream.record(|| Err(Error::Forked));
    assert!(matches!(failed, Err(Error::Forked)));
    stream.synchronize()
}

#[test]
fn a_gpu_s_ceilings_are_checked_and_plausible() -> Result<()> {
    let Some((device, stream)) = gpu("a_gpu_s_ceilings_are_checked_and_plausible") else { return Ok(()) };
    let c = device.ceilings(&stream)?;
    for rate in [c.read, c.copy, c.write, c.update, c.fma_f32, c.fma_f64] {
        assert!(rate.is_finite() && rate > 1e10, "{c:?}");
    }
    assert!(c.fma_f32 > c.fma_f64 && c.mma_f64.is_none_or(|rate| rate > 1e10), "{c:?}");
    Ok(())
}
