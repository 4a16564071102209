//! Sums that round, by every entry: within the bound of docs/reliability.md, in the unit roundoff of the element's type.
//!
//! Numbers are positive, so that what steps cut off adds up: a sum that keeps few bits less than its type is found.

use crate::numbers::{Job, Number, batches, products};
use model::Dtype;
use model::launch::{part_of_k, tiling};

/// From 1/2 up to 1, with every bit that f32 or f64 has.
fn number(dtype: Dtype, seed: u32, [problem, i, j]: [u32; 3]) -> Number {
    let part = |seed: u32| {
        let at = [problem, i, j].iter().fold(u64::from(seed), |at, index| at * 1_048_583 + u64::from(*index) + 1);
        let random = (at ^ at >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let value = (random >> 11) as f64 / (1_u64 << 54) as f64 + 0.5;
        if is_single(dtype) { f64::from(value as f32) } else { value }
    };
    [part(seed), if dtype.is_complex() { part(seed + 3) } else { 0.0 }]
}

fn is_single(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::C64)
}

/// γ(n) = n u / (1 − n u).
fn gamma(n: u32, dtype: Dtype) -> f64 {
    let nu = f64::from(n) * if is_single(dtype) { f64::from(f32::EPSILON) / 2.0 } else { f64::EPSILON / 2.0 };
    nu / (1.0 - nu)
}

/// The longest chain of roundings of a sum over k: the longest part and the slots behind it; twice as long where a step of it has two
/// products.
fn chain(job: &Job) -> u32 {
    let [m, n, k] = job.sizes();
    let length = match job {
        Job::One(variant, case) => {
            let step = tiling(variant, m.into(), n.into()).k_step;
            let part = |index| part_of_k(k, step, case.splits, index);
            let longest = (0..case.splits).map(part).map(|(start, end)| end - start).max();
            longest.unwrap_or(k) + case.splits - 1
        }
        Job::Batch(..) => k,
    };
    if job.dtype().is_complex() { 2 * length } else { length }
}

/// The sum of numbers, of products of two that are given, as the nearest f64 and what is missing in it.
///
/// # Source
/// Ogita, Rump and Oishi's Dot2 (SIAM J. Sci. Comput. 26, 2005).
fn dot2(products: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    products.fold((0.0, 0.0), |(sum, rest), (a, b)| {
        let product = a * b;
        let next: f64 = sum + product;
        let of_b = next - sum;
        let lost = (sum - (next - of_b)) + (product - of_b);
        (next, rest + lost + a.mul_add(b, -product))
    })
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
    let conj = |[re, im]: Number, conj: bool| [re, if conj { -im } else { im }];
    // As `Element::factor` has them.
    let [alpha, beta] = factors.map(|x| [x, if !dtype.is_complex() || x == 0.0 || x == 1.0 { 0.0 } else { 2.0 * x }]);
    let places = (0..job.problems()).flat_map(|p| (0..n).flat_map(move |j| (0..m).map(move |i| (p, i, j))));
    for (got, (problem, i, j)) in got.into_iter().zip(places) {
        let [of_a, of_b] = job.matrices(problem);
        let factors = |l| (conj(a(of_a, i, l), job.conj()[0]), conj(b(of_b, l, j), job.conj()[1]));
        for part in 0..if dtype.is_complex() { 2 } else { 1 } {
            // α is a power of two in each part, so that α's products with A are exact; its two parts are added apart.
            let step = |l| {
                let (x, y) = factors(l);
                let [re, im] = [[alpha[0] * x[0], alpha[0] * x[1]], [-alpha[1] * x[1], alpha[1] * x[0]]];
                products_of(re, y, part).into_iter().chain(products_of(im, y, part))
            };
            let old = products_of(beta, c(problem, i, j), part)
                .map(|(x, y)| if beta == [0.0; 2] { (0.0, 0.0) } else { (x, y) });
            let (value, rest) = dot2((0..k).flat_map(step).chain(old));
            let of_sum: f64 = (0..k).flat_map(step).map(|(x, y)| (x * y).abs()).sum();
            let of_old: f64 = old.iter().map(|(x, y)| (x * y).abs()).sum();
            let ends = if dtype.is_complex() { 4 } else { 2 };
            let bound = gamma(chain(&job) + ends, dtype) * of_sum + gamma(ends, dtype) * of_old;
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
