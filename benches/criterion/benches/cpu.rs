//! The CPU path, by bytes of A, B and C.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lanky::{Device, Matrix, Plan, Scalar};

mod end;
use end::or_end;

fn products<T: Scalar + From<u8>>(c: &mut Criterion) {
    let device = Device::cpu();
    let stream = or_end("a stream", device.stream());
    let mut group = c.benchmark_group(format!("cpu {}", T::DTYPE));
    for (m, n, k) in [(2048, 1, 2048), (2048, 4, 2048), (2048, 16, 2048), (256, 256, 256), (16, 16, 100_000)] {
        let element = |i: usize, j: usize| T::from(((i * 7 + j * 3) % 5) as u8);
        let name = format!("{m} x {n} x {k}");
        let x = or_end(&name, Matrix::from_fn(m, k, element));
        let y = or_end(&name, Matrix::from_fn(k, n, element));
        let mut z = or_end(&name, Matrix::<T>::zeros(m, n));
        let plan = or_end(&name, Plan::gemm(&device, x.shape(), y.shape(), z.shape()).build());
        let bytes = (m * k + k * n + m * n) * size_of::<T>();
        group.throughput(Throughput::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
        group.bench_function(BenchmarkId::from_parameter(&name), |b| {
            b.iter(|| or_end(&name, plan.run(&stream, T::one(), x.view(), y.view(), T::zero(), z.view_mut())));
        });
    }
    group.finish();
}

criterion_group!(benches, products<f32>, products<f64>);
criterion_main!(benches);
