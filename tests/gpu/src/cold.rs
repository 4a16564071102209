//! What the first product of a process costs: opening the device, sending the operands, and loading the kernels.
//!
//! Run it with CUDA_CACHE_PATH set to an empty folder, so that the driver has compiled nothing before.

use crate::args;
use crate::lab::Outcome;
use crate::real::integer;
use host::{Matrix, gemm};
use std::time::Instant;

const SIZE: (usize, usize, usize) = (4096, 4, 4096);
/// The most that loading may add to a product, s.
const LIMIT: f64 = 1.0;

/// Prints the seconds of each step; whether the first product was quick enough and right.
pub fn run(ordinal: Option<u32>) -> Outcome<bool> {
    let (m, n, k) = SIZE;
    let (a, b) =
        (Matrix::from_fn(m, k, |i, l| integer(1, i, l, 3))?, Matrix::from_fn(k, n, |l, j| integer(2, l, j, 3))?);
    let start = Instant::now();
    let device = args::open(ordinal)?;
    let stream = device.stream()?;
    step("device and stream", start);
    let start = Instant::now();
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(m, n)?;
    stream.synchronize()?;
    step("upload", start);
    let mut product = |name: &str| -> Outcome<f64> {
        let start = Instant::now();
        gemm(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
        stream.synchronize()?;
        Ok(step(name, start))
    };
    let (first, second) = (product("first product")?, product("second product")?);
    println!("loading           {:9.4} s", first - second);
    let found = c.download(&stream)?;
    let right = (0..m).step_by(97).all(|i| {
        (0..n).all(|j| {
            let expected: f64 = (0..k).map(|l| integer(1, i, l, 3) * integer(2, l, j, 3)).sum();
            found.get(i, j) == Some(expected)
        })
    });
    if !right {
        println!("FAILED cold: the product is wrong");
    }
    let quick = first - second <= LIMIT;
    if !quick {
        println!("FAILED cold: expected at most {LIMIT} s to load, found {:.3} s", first - second);
    }
    let passed = usize::from(right) + usize::from(quick);
    println!("{passed} passed, {} failed, 0 skipped", 2 - passed);
    Ok(right && quick)
}

fn step(name: &str, start: Instant) -> f64 {
    let seconds = start.elapsed().as_secs_f64();
    println!("{name:<18}{seconds:9.4} s");
    seconds
}
