//! What a launch costs on a GPU, by events: a product so small that nothing else counts. Without a GPU there is nothing to
//! measure; on a GPU whatever fails ends the benchmark.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use lanky::{Device, Layout, Matrix, Plan, Result, Stream};

mod end;
use end::or_end;

struct Small {
    stream: Stream,
    plan: Plan,
    a: Matrix<f64>,
    b: Matrix<f64>,
    c: Matrix<f64>,
}

impl Small {
    fn new(device: &Device) -> Result<Small> {
        let stream = device.stream()?;
        let made = |rows, cols| {
            let mut fill = |elements: &mut [f64]| {
                elements.fill(1.0);
                Ok(())
            };
            device.upload_with(&stream, rows, cols, Layout::ColumnMajor, &mut fill)
        };
        let (a, b, c) = (made(128, 128)?, made(128, 2)?, made(128, 2)?);
        let plan = Plan::gemm(device, a.shape(), b.shape(), c.shape()).build()?;
        plan.warm_up_on(&stream)?;
        Ok(Small { stream, plan, a, b, c })
    }

    /// Seconds of so many launches.
    fn run(&mut self, count: u64) -> Result<f64> {
        let Small { stream, plan, a, b, c } = self;
        stream.timed(|| (0..count).try_for_each(|_| plan.run(stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())))
    }
}

fn launches(c: &mut Criterion) {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(why) => {
            eprintln!("launches: nothing to measure: {why}");
            return;
        }
    };
    let mut small = or_end("a small product", Small::new(&device));
    c.bench_function("a small product", |b| {
        b.iter_custom(|count| Duration::from_secs_f64(or_end("a small product", small.run(count))));
    });
}

criterion_group!(benches, launches);
criterion_main!(benches);
