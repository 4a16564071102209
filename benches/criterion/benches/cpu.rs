//! The CPU path, by bytes of A, B and C.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lanky::{Device, Matrix, Plan, Scalar};

fn products<T: Scalar>(c: &mut Criterion) {
    let device = Device::cpu();
    let Ok(stream) = device.stream() else { return };
    let mut group = c.benchmark_group(format!("cpu {}", T::DTYPE));
    for (m, n, k) in [(2048, 1, 2048), (2048, 4, 2048), (2048, 16, 2048), (256, 256, 256), (16, 16, 100_000)] {
        let element = |i: usize, j: usize| T::from((i * 7 + j * 3) % 5).unwrap_or_else(T::zero);
        let (Ok(x), Ok(y), Ok(mut z)) =
            (Matrix::from_fn(m, k, element), Matrix::from_fn(k, n, element), Matrix::<T>::zeros(m, n))
        else {
            return;
        };
        let Ok(plan) = Plan::gemm(&device, x.shape(), y.shape(), z.shape()).build() else { return };
        let bytes = (m * k + k * n + m * n) * size_of::<T>();
        group.throughput(Throughput::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
        group.bench_function(BenchmarkId::from_parameter(format!("{m} x {n} x {k}")), |b| {
            b.iter(|| plan.run(&stream, T::one(), x.view(), y.view(), T::zero(), z.view_mut()));
        });
    }
    group.finish();
}

criterion_group!(benches, products<f32>, products<f64>);
criterion_main!(benches);
