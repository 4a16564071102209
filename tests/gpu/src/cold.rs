//! What the first product of a process costs: opening the device, sending the operands, and loading the kernels.
//!
//! Two processes follow each other with one cache of the driver's, which is empty before the first.

use crate::args;
use crate::lab::Outcome;
use crate::real::integer;
use host::{Matrix, gemm};
use std::process::Command;
use std::time::Instant;

const SIZE: (usize, usize, usize) = (4096, 4, 4096);
/// What loading may add to the first product, s: where the driver compiles, and where it finds what it compiled.
const LIMITS: [(&str, f64); 2] = [("empty", 1.0), ("filled", 0.15)];

/// Runs [`first`] in two processes of its own; whether both passed.
pub fn run(device: &str) -> Outcome<bool> {
    let cache = std::env::temp_dir().join(format!("lanky-cold-{}", std::process::id()));
    std::fs::create_dir(&cache)?;
    let mut passed = true;
    for (name, limit) in LIMITS {
        println!("the driver's cache is {name}");
        let mut process = Command::new(std::env::current_exe()?);
        process.args(["first", "--device", device, "--limit", &limit.to_string()]);
        process.env("CUDA_CACHE_PATH", &cache).env_remove("CUDA_CACHE_DISABLE").env_remove("CUDA_FORCE_PTX_JIT");
        passed &= process.status()?.success();
    }
    std::fs::remove_dir_all(&cache)?;
    Ok(passed)
}

/// Prints the seconds of each step; whether the first product was right and loading took at most `limit` seconds.
pub fn first(ordinal: Option<u32>, limit: f64) -> Outcome<bool> {
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
        println!("FAILED first: the product is wrong");
    }
    let quick = first - second <= limit;
    if !quick {
        println!("FAILED first: expected at most {limit} s to load, found {:.3} s", first - second);
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
