//! What a choice costs: `cargo run --release -p lanky-model --example planning_time`.

use lanky_model::{BatchedProblem, Dtype, Machine, Problem, choose, choose_batched};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let shapes = [
        (20480, 1, 20480),
        (20480, 16, 20480),
        (20480, 64, 20480),
        (1000, 16, 1_000_000),
        (8, 8, 100_000),
        (2, 1, 100_000),
        (1, 1, 10_000_000),
    ];
    for dtype in [Dtype::F32, Dtype::F64] {
        for shape in shapes {
            product(&Machine::H200, dtype, shape);
        }
    }
    // Those where many entries are alike.
    product(&Machine::RTX4090, Dtype::F32, (1000, 2, 20480));
    product(&Machine::A100, Dtype::F64, (1000, 2, 20480));
    product(&Machine::B200, Dtype::F64, (8, 16, 20480));
    product(&Machine::H200, Dtype::F64, (8, 16, 20480));
    for n in [1, 2, 4, 8, 16, 32] {
        let batch = BatchedProblem::column_major(Dtype::F64, (n, n, n), 100_000);
        let once = || {
            let _ = black_box(choose_batched(black_box(&batch), black_box(&Machine::H200), None));
        };
        println!("{} f64 batch of {n} x {n}: {:.1} us", Machine::H200.name, least_s(once) * 1e6);
    }
}

fn product(machine: &Machine, dtype: Dtype, (m, n, k): (u64, u64, u64)) {
    let problem = Problem::column_major(dtype, m, n, k);
    let once = || {
        let _ = black_box(choose(black_box(&problem), black_box(machine), None));
    };
    println!("{} {dtype} {m} x {n} x {k}: {:.1} us", machine.name, least_s(once) * 1e6);
}

/// Seconds a call, the least of a hundred means of ten.
fn least_s(call: impl Fn()) -> f64 {
    let mean = || {
        let start = Instant::now();
        (0..10).for_each(|_| call());
        start.elapsed().as_secs_f64() / 10.0
    };
    (0..100).map(|_| mean()).fold(f64::INFINITY, f64::min)
}
