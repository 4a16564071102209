//! Many threads, each of which opens the device, makes a stream, a plan and its operands, and drops all of them with work in flight.

use super::join;
use crate::args;
use crate::compare::equal;
use crate::lab::{Lab, Outcome};
use crate::real::integer;
use host::{Matrix, Plan};

const THREADS: usize = 64;
const ROUNDS: usize = 20;
/// m, n, k; k is cut on a GPU.
const SIZE: (usize, usize, usize) = (70, 3, 1031);

/// A and B on the host, and what A B is.
struct Inputs {
    a: Matrix<f64>,
    b: Matrix<f64>,
    expected: Vec<f64>,
}

/// 64 threads at once.
pub fn run(lab: &Lab) -> Outcome {
    let (m, n, k) = SIZE;
    let host = |rows, cols, seed| Matrix::from_fn(rows, cols, |i, j| integer(seed, i, j, 3));
    let sum = |i: usize, j: usize| (0..k).map(|l| integer(1, i, l, 3) * integer(2, l, j, 3)).sum::<f64>();
    let expected = (0..m * n).map(|e| sum(e % m, e / m)).collect();
    let inputs = Inputs { a: host(m, k, 1)?, b: host(k, n, 2)?, expected };
    let (inputs, ordinal, rounds) = (&inputs, lab.device.ordinal(), lab.times(ROUNDS));
    let work = move |thread: usize| (0..rounds).try_for_each(|at| round(inputs, ordinal, thread + at));
    let threads = if lab.is_emulated() { 8 } else { THREADS };
    let result =
        std::thread::scope(|scope| join((0..threads).map(|thread| scope.spawn(move || work(thread))).collect()));
    lab.record(|| format!("threads, {threads} that make all and drop it"), result)
}

fn round(Inputs { a, b, expected }: &Inputs, ordinal: Option<u32>, order: usize) -> Outcome {
    let device = args::open(ordinal)?;
    let stream = device.stream()?;
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(SIZE.0, SIZE.1)?;
    let plan = Plan::gemm(&device, there_a.shape(), there_b.shape(), c.shape()).build()?;
    plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
    let found = c.download(&stream)?.into_vec().ok_or("the copy is not on the host")?;
    plan.run(&stream, 1.0, there_a.view(), there_b.view(), 1.0, c.view_mut())?;
    match order % 3 {
        0 => drop((device, stream, plan, there_a, there_b, c)),
        1 => drop((c, there_b, there_a, plan, stream, device)),
        _ => drop((plan, c, device, there_a, stream, there_b)),
    }
    equal(&found, expected, SIZE.0)
}
