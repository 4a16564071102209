//! What a decision costs: on every product of a shape that no plan was made for.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use lanky::{Device, Layout, Plan, Shape};
use model::{BatchedProblem, Dtype, Machine, Problem, choose, choose_batched};

mod end;
use end::or_end;

fn choosing(c: &mut Criterion) {
    let mut group = c.benchmark_group("choose");
    for (name, dtype, (m, n, k)) in [
        ("skinny", Dtype::F64, (20480, 4, 20480)),
        ("a vector, many entries alike", Dtype::F64, (20480, 1, 20480)),
        ("few rows, many parts of k", Dtype::F64, (128, 4, 1_000_000)),
        ("a tiny C, many entries and parts alike", Dtype::F32, (8, 8, 100_000)),
        ("a C of one element", Dtype::F64, (1, 1, 10_000_000)),
        ("few rows, many entries and parts alike", Dtype::F64, (8, 16, 20480)),
        ("square", Dtype::F64, (4096, 4096, 4096)),
    ] {
        let problem = Problem::column_major(dtype, m, n, k);
        group.bench_function(name, |b| b.iter(|| or_end(name, choose(black_box(&problem), &Machine::H200, None))));
    }
    let problem = Problem::column_major(Dtype::F64, 20480, 4, 20480);
    group.bench_function("one variant", |b| {
        b.iter(|| or_end("one variant", choose(black_box(&problem), &Machine::H200, Some("tsm2r_prefetch"))));
    });
    // The dearest of `cargo run --release -p lanky-model --example planning_time`, and what once was.
    for (name, machine, dtype, (m, n, k)) in [
        ("a P100's, few columns", Machine::P100, Dtype::F64, (2, 1000, 100_000)),
        ("an H100's, complex", Machine::H100, Dtype::C128, (64, 33, 1000)),
        ("an RTX 4090's, many entries alike", Machine::RTX4090, Dtype::F32, (1000, 2, 20480)),
        ("an RTX 4090's, many parts alike", Machine::RTX4090, Dtype::F64, (2769, 7, 59_028_017)),
        ("a B200's, few rows", Machine::B200, Dtype::F64, (8, 16, 20480)),
        ("an A100's, many entries alike", Machine::A100, Dtype::F64, (1000, 2, 20480)),
        ("a GK210's, many parts alike", Machine::GK210, Dtype::F32, (2, 1000, 300_000_000)),
        ("a P100's, many parts alike", Machine::P100, Dtype::F64, (2, 4096, 300_000_000)),
    ] {
        let problem = Problem::column_major(dtype, m, n, k);
        group.bench_function(name, |b| b.iter(|| or_end(name, choose(black_box(&problem), &machine, None))));
    }
    for n in [1, 2, 4, 8, 32] {
        let batch = BatchedProblem::column_major(Dtype::F64, (n, n, n), 100_000);
        group.bench_function(format!("a batch of {n} x {n}"), |b| {
            b.iter(|| or_end("a batch", choose_batched(black_box(&batch), &Machine::H200, None)));
        });
    }
    group.finish();
}

fn planning(c: &mut Criterion) {
    let device = Device::cpu();
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let (x, y, z) = (shape(2000, 300), shape(300, 4), shape(2000, 4));
    c.bench_function("plan on the CPU", |b| {
        b.iter(|| or_end("a plan", Plan::gemm(&device, black_box(x), y, z).build()))
    });
}

criterion_group!(benches, choosing, planning);
criterion_main!(benches);
