//! A product recorded into a CUDA graph and replayed 100 times. Without a GPU graphs are refused, and it says so.
use lanky::Error;
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    if !device.is_cuda() {
        assert!(matches!(stream.record(|| Ok(())), Err(Error::Unsupported { .. })));
        println!("skipped: {}", device.reason());
        return Ok(());
    }
    let a = device.upload(&stream, Matrix::from_fn(2000, 3000, |i, l| ((i + l) % 3) as f64)?.view())?;
    let b = device.upload(&stream, Matrix::from_fn(3000, 5, |l, j| ((l + 2 * j) % 5) as f64)?.view())?;
    let mut c = device.zeros::<f64>(2000, 5)?;
    let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;

    // Cold: to load or to allocate would spoil the graph, so that nothing is done but to say so.
    let nothing = stream.record(|| {
        let refused = plan.run(&stream, 1.0, a.view(), b.view(), 1.0, c.view_mut());
        assert!(matches!(refused, Err(Error::ColdPlanInCapture { .. })), "{refused:?}");
        Ok(())
    });
    assert!(nothing.is_ok(), "the recording ends well");

    plan.warm_up_on(&stream)?;
    let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 1.0, c.view_mut()))?; // C <- A B + C
    for _ in 0..100 {
        // SAFETY: matrices and plan live until the stream is synchronised, and nothing else uses them.
        unsafe { graph.launch(&stream) }?;
    }
    stream.synchronize()?;

    let c = c.download(&stream)?;
    let once = device.matmul(a.view(), b.view())?.download(&stream)?;
    for (i, j) in [(0, 0), (1234, 3), (1999, 4)] {
        let by_hand: usize = (0..3000).map(|l| (i + l) % 3 * ((l + 2 * j) % 5)).sum();
        assert_eq!(once.get(i, j), Some(by_hand as f64), "element ({i}, {j})");
        assert_eq!(c.get(i, j), Some(100.0 * by_hand as f64), "element ({i}, {j}) of 100 replays");
    }
    println!("{device}: 100 replays are right");
    Ok(())
}
