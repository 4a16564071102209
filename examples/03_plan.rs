//! A plan: made once, explained, warmed up, run many times.
use lanky::prelude::*;
use lanky::{Dtype, Shape};

fn main() -> lanky::Result<()> {
    let device = Device::auto();
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let plan = Plan::gemm(&device, shape(2000, 1000), shape(1000, 8), shape(2000, 8)).build()?;
    println!("{plan}"); // what will run, how fast it can be, and who chose it

    let stream = device.stream()?;
    let a = device.upload(&stream, Matrix::from_fn(2000, 1000, |i, l| (i as f64 - l as f64) / 1e3)?.view())?;
    let b = device.upload(&stream, Matrix::from_fn(1000, 8, |l, j| ((l + j) % 3) as f64)?.view())?;
    let mut c = device.zeros::<f64>(2000, 8)?;

    plan.warm_up()?; // loads code and allocates the workspace: nothing of that happens in run
    let seconds = stream.timed(|| {
        for _ in 0..10 {
            plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
        }
        Ok(())
    })?;
    println!("{:.1} us a product on {}", seconds * 1e5, device.name());

    // The rounding of a sum of k products is at most k times the unit of its terms, in whatever order they are added.
    let c = c.download(&stream)?;
    let terms = || (0..1000).map(|l| (1999.0 - l as f64) / 1e3 * ((l + 7) % 3) as f64);
    let (by_hand, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
    let error = c.get(1999, 7).map(|found| (found - by_hand).abs());
    assert!(error.is_some_and(|error| error <= 1000.0 * f64::EPSILON * size), "{error:?}");
    Ok(())
}
