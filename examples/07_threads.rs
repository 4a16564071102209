//! One plan, four threads, a stream each; on a GPU or the CPU. The same bits everywhere.
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    let a = device.upload(&stream, Matrix::from_fn(2000, 3000, |i, l| 1.0 / (1.0 + (i + l) as f64))?.view())?;
    let b = device.upload(&stream, Matrix::from_fn(3000, 5, |l, j| (l as f64 - j as f64).sin())?.view())?;
    let c_shape = device.zeros::<f64>(2000, 5)?.shape();
    stream.synchronize()?; // the other streams do not wait for this one
    let plan = Plan::gemm(&device, a.shape(), b.shape(), c_shape).build()?;

    let work = || -> lanky::Result<Matrix<f64>> {
        let stream = device.stream()?;
        plan.warm_up_on(&stream)?; // a workspace of its own
        let mut c = device.zeros::<f64>(2000, 5)?;
        for _ in 0..20 {
            plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
        }
        c.download(&stream)
    };
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<lanky::Result<Vec<_>>>()
    })?;
    for c in &results[1..] {
        assert_eq!(c.as_slice(), results[0].as_slice());
    }
    println!("{device}: {} threads, the same bits", results.len());
    Ok(())
}
