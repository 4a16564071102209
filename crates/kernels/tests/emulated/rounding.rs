//! Sums that round, by every entry: within the bound of docs/reliability.md, in the unit roundoff of the element's type.
//!
//! Numbers are positive, so that what steps cut off adds up: a sum that keeps few bits less than its type is found.

use crate::numbers::{Job, Number, batches, products};
use lanky_kernels::tsm2r::split::Halves;
use model::Dtype;
use watched::Real;
use watched::numbers::{conj_if, unit};
use watched::oracle::{chain, dot2_of, gamma};

/// From 1/2 up to 1, with every bit that f32 or f64 has.
fn number(dtype: Dtype, seed: u32, [problem, i, j]: [u32; 3]) -> Number {
    let part = |seed: u32| {
        let value = (unit((seed + 100 * problem).into(), i as usize, j as usize) + 3.0) / 4.0;
        if roundoff(dtype) == f32::U { f64::from(value as f32) } else { value }
    };
    [part(seed), if dtype.is_complex() { part(seed + 3) } else { 0.0 }]
}

fn roundoff(dtype: Dtype) -> f64 {
    if matches!(dtype, Dtype::F32 | Dtype::C64) { f32::U } else { f64::U }
}

/// The longest chain of roundings of a sum over k; twice as long where a step of it has two products.
fn length(job: &Job) -> f64 {
    let [m, n, k] = job.sizes();
    let length = match job {
        Job::One(variant, case) => chain(variant, (m.into(), n.into(), k), case.splits),
        Job::Batch(..) => k.into(),
    };
    if job.dtype().is_complex() { 2.0 * length } else { length }
}

/// Products of reals that add up to a part of x y.
fn products_of(x: Number, y: Number, part: usize) -> [(f64, f64); 2] {
    if part == 0 { [(x[0], y[0]), (-x[1], y[1])] } else { [(x[0], y[1]), (x[1], y[0])] }
}

/// Each part of C is no further from what it must be than γ(L + 2) |α||A||B| + γ(2) |β||C|.
fn check(job: Job, factors: [f64; 2]) {
    let (job, dtype, [m, n, k]) = (job.scaled(factors), job.dtype(), job.sizes());
    let a = |problem, i, l| number(dtype, 1, [problem, i, l]);
    let b = |problem, l, j| if job.is_gram() { a(problem, j, l) } else { number(dtype, 2, [problem, l, j]) };
    let c = |problem, i, j| number(dtype, 9, [problem, i, j]);
    let got = job.run([&a, &b, &c]);
    // As `Element::factor` has them.
    let [alpha, beta] = factors.map(|x| [x, if !dtype.is_complex() || x == 0.0 || x == 1.0 { 0.0 } else { 2.0 * x }]);
    let places = (0..job.problems()).flat_map(|p| (0..n).flat_map(move |j| (0..m).map(move |i| (p, i, j))));
    for (got, (problem, i, j)) in got.into_iter().zip(places) {
        let [of_a, of_b] = job.matrices(problem);
        let factors = |l| (conj_if(a(of_a, i, l), job.conj()[0]), conj_if(b(of_b, l, j), job.conj()[1]));
        for part in 0..if dtype.is_complex() { 2 } else { 1 } {
            // α is a power of two in each part, so that α's products with A are exact; its two parts are added apart.
            let step = |l| {
                let (x, y) = factors(l);
                let [re, im] = [[alpha[0] * x[0], alpha[0] * x[1]], [-alpha[1] * x[1], alpha[1] * x[0]]];
                products_of(re, y, part).into_iter().chain(products_of(im, y, part))
            };
            let old = products_of(beta, c(problem, i, j), part)
                .map(|(x, y)| if beta == [0.0; 2] { (0.0, 0.0) } else { (x, y) });
            let (value, rest) = dot2_of((0..k).flat_map(step).chain(old));
            let of_sum: f64 = (0..k).flat_map(step).map(|(x, y)| (x * y).abs()).sum();
            let of_old: f64 = old.iter().map(|(x, y)| (x * y).abs()).sum();
            let (ends, u) = (if dtype.is_complex() { 4.0 } else { 2.0 }, roundoff(dtype));
            let bound = gamma(length(&job) + ends, u) * of_sum + gamma(ends, u) * of_old;
            let error = (got[part] - value - rest).abs();
            assert!(
                error <= bound,
                "C({i}, {j}) of {problem}: {got:?}, not {value} in part {part}: {error:e}, not {bound:e}"
            );
        }
    }
}

fn check_all(entries: Vec<Vec<Job>>) {
    for (row, jobs) in entries.into_iter().enumerate() {
        for (turn, factors) in [[1.0, 0.0], [-0.5, 0.5]].into_iter().enumerate() {
            check(jobs[(row + turn) % jobs.len()], factors);
        }
    }
}

#[test]
fn of_products() {
    check_all(products());
}

#[test]
fn of_batches() {
    check_all(batches());
}

#[test]
fn halves_are_the_element_and_the_first_is_rounded() {
    for bits in (0x3f80_0000u32..0x4080_0000).step_by(997) {
        for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
            let Halves { first: [first], rest: [rest] } = Halves::of([x]);
            assert_eq!((first.to_bits() % (1 << 13), first + rest), (0, x), "{x}");
            // No more than half of the eleventh bit, of which the matrix units drop no more than the last.
            let last = f32::from_bits(x.to_bits() & 0x7f80_0000) * f32::EPSILON;
            let seen = f32::from_bits(rest.to_bits() & !((1 << 13) - 1));
            assert!(rest.abs() <= 4096.0 * last && (rest - seen).abs() <= last, "{x}: {rest}");
        }
    }
}
