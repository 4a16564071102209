//! What a choice costs: `cargo run --release -p lanky-model --example planning_time`.

use lanky_model::{Dtype, Machine, Problem, choose};
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
        for (m, n, k) in shapes {
            let problem = Problem::column_major(dtype, m, n, k);
            let once = || {
                let _ = black_box(choose(black_box(&problem), black_box(&Machine::H200), None));
            };
            println!("{dtype} {m} x {n} x {k}: {:.1} us", least_s(once) * 1e6);
        }
    }
}

/// Seconds a call, the least of ten means of a hundred.
fn least_s(call: impl Fn()) -> f64 {
    let mean = || {
        let start = Instant::now();
        (0..100).for_each(|_| call());
        start.elapsed().as_secs_f64() / 100.0
    };
    (0..10).map(|_| mean()).fold(f64::INFINITY, f64::min)
}
