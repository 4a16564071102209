//! What choices cost, and the ten dearest of a mesh of shapes, machines, types and layouts:
//! `cargo run --release -p lanky-model --example planning_time`.

use lanky_model::machine::TABLE;
use lanky_model::{BatchedProblem, Choice, Dtype, Machine, Problem, Refusal, Strides, choose, choose_batched};
use std::hint::black_box;
use std::time::Instant;

/// Rounds of which the least counts: a computer that others share is slow for some milliseconds at a time.
const ROUNDS: usize = 20;

const LENGTHS: [u64; 18] =
    [1, 2, 3, 5, 8, 16, 17, 33, 64, 128, 300, 1000, 4096, 20_480, 100_000, 1_000_000, 10_000_000, 300_000_000];

fn main() {
    let mut times: Vec<_> = products().map(|(machine, p)| (seconds(5, || once(machine, &p)), machine, p)).collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{} products, the mean {:.1} us", times.len(), mean(&times) * 1e6);
    // What something else on this computer made dear is not so again.
    times.truncate(300);
    for _ in 0..ROUNDS {
        times.iter_mut().for_each(|(time, machine, p)| *time = time.min(seconds(11, || once(machine, p))));
    }
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (time, machine, Problem { dtype, m, n, k, a, b, c, gram, reads_c, .. }) in &times[..10] {
        let rows = [a, b, c].map(|strides| if strides.row == 1 { 'c' } else { 'r' });
        println!(
            "{:.1} us: {} {dtype} {m} x {n} x {k} {rows:?} gram {gram} reads C {reads_c}",
            time * 1e6,
            machine.name
        );
    }
    let batch = |n| BatchedProblem::column_major(Dtype::F64, (n, n, n), 100_000);
    for n in [1, 2, 4, 8, 16, 32] {
        let time = seconds(101, || choose_batched(black_box(&batch(n)), &Machine::H200, None));
        println!("{:.1} us: {} f64 batch of {n} x {n}", time * 1e6, Machine::H200.name);
    }
}

/// Of each machine, type and layout.
fn products() -> impl Iterator<Item = (&'static Machine, Problem)> {
    let lengths = || LENGTHS.into_iter().flat_map(|m| LENGTHS.into_iter().map(move |n| (m, n)));
    let shapes = move || lengths().flat_map(|(m, n)| LENGTHS.into_iter().map(move |k| (m, n, k)));
    let of = move |dtype| shapes().flat_map(move |(m, n, k)| laid(Problem::column_major(dtype, m, n, k)));
    TABLE.iter().flat_map(move |(_, machine)| Dtype::ALL.into_iter().flat_map(of).map(move |p| (machine, p)))
}

/// By columns; by rows, with C read; both tall matrices along their rows; a Gram matrix.
fn laid(p: Problem) -> impl Iterator<Item = Problem> {
    let rows = Problem {
        a: Strides::row_major(p.k),
        b: Strides::row_major(p.n),
        c: Strides::row_major(p.n),
        reads_c: true,
        ..p
    };
    let tall = Problem { b: Strides::row_major(p.n), reads_c: true, ..p };
    let gram = Problem::gram(p.dtype, p.n, p.k, Strides::row_major(p.n));
    [Some(p), Some(rows), Some(tall), (p.m == p.n).then_some(gram)].into_iter().flatten()
}

fn once(machine: &Machine, p: &Problem) -> Result<Choice, Refusal> {
    choose(black_box(p), black_box(machine), None)
}

/// Seconds a call, the median of so many.
fn seconds<T>(calls: usize, call: impl Fn() -> T) -> f64 {
    let time = || {
        let start = Instant::now();
        black_box(call());
        start.elapsed().as_secs_f64()
    };
    let mut times: Vec<_> = (0..calls).map(|_| time()).collect();
    times.sort_by(f64::total_cmp);
    times[calls / 2]
}

fn mean(times: &[(f64, &Machine, Problem)]) -> f64 {
    times.iter().map(|(time, ..)| time).sum::<f64>() / times.len() as f64
}
