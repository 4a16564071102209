//! NaN and infinities by every entry, with zeros on the other side: they are where the formula has them, and nowhere else. Of f32 in parts both are NaN.

use crate::numbers::{Job, Number, batches, products};
use watched::numbers::{conj_if, hash};

/// The value in which part of an element: of the other, or of a real element, nothing is said.
const WILD: [(f64, usize); 4] = [(f64::NAN, 0), (f64::INFINITY, 1), (f64::INFINITY, 0), (f64::NEG_INFINITY, 0)];

/// Small integers, every other one 0, which no NaN and no infinity may turn into nothing.
fn integer(seed: u32, [problem, i, j]: [u32; 3]) -> Number {
    let part = |seed: u32| {
        let random = hash((seed + 100 * problem).into(), i as usize, j as usize);
        if random % 2 == 0 { 0.0 } else { (random / 2 % 4) as f64 - 1.5 }
    };
    [2.0 * part(seed), 2.0 * part(seed + 3)]
}

/// One element of A, or of B, is wild; C is compared by kind where it is not finite, and else to the bit but for the sign of 0.
fn check(job: Job, turn: usize) {
    let is_complex = job.dtype().is_complex();
    let ([m, n, k], in_a, (value, part)) = (job.sizes(), turn % 2 == 0 || job.is_gram(), WILD[turn / 2 % WILD.len()]);
    let pick = |of: u32, stride: usize| (turn * stride % 4) as u32 * (of - 1) / 3;
    let l = pick(k, 3);
    let (problem, i, j) =
        (pick(job.problems(), 2), if in_a { pick(m, 1) } else { l }, if in_a { l } else { pick(n, 1) });
    let problem = job.matrices(problem)[usize::from(!in_a)];
    let element = |seed, wild: bool, at: [u32; 3]| {
        let mut number = integer(seed, at);
        if wild && at == [problem, i, j] {
            number[if is_complex { part } else { 0 }] = value;
        }
        if is_complex { number } else { [number[0], 0.0] }
    };
    let a = |problem, i, l| element(1, in_a, [problem, i, l]);
    let b = |problem, l, j| if job.is_gram() { a(problem, j, l) } else { element(2, !in_a, [problem, l, j]) };
    let c = |problem, i, j| element(5, false, [problem, i, j]);
    let beta = [0.0, 1.0][turn / 3 % 2];
    let got = job.scaled([1.0, beta]).run([&a, &b, &c]);
    let places = (0..job.problems()).flat_map(|p| (0..n).flat_map(move |j| (0..m).map(move |i| (p, i, j))));
    let mut wild = 0;
    for (got, (problem, i, j)) in got.into_iter().zip(places) {
        let [of_a, of_b] = job.matrices(problem);
        let old = c(problem, i, j).map(|old| if beta == 0.0 { 0.0 } else { old });
        let sum = (0..k).fold(old, |[re, im], l| {
            let ([x, y], [u, v]) = (conj_if(a(of_a, i, l), job.conj()[0]), conj_if(b(of_b, l, j), job.conj()[1]));
            // A real product has no imaginary part that 0 times infinity would spoil.
            if is_complex { [re + x * u - y * v, im + x * v + y * u] } else { [re + x * u, 0.0] }
        });
        let same = |part: usize| match sum[part].is_nan() || job.splits_f32() && sum[part].is_infinite() {
            true => got[part].is_nan(),
            false => got[part] == sum[part],
        };
        assert!(
            same(0) && same(1),
            "{value} at {i}, {l} of a factor: C({i}, {j}) of {problem} is {got:?}, not {sum:?}"
        );
        wild += u32::from(!(sum[0].is_finite() && sum[1].is_finite()));
    }
    assert!(wild > 0 && wild < m * n * job.problems().max(2), "{wild} elements of C are not finite");
}

/// Every entry with each, in A and in B, in one of its layouts after another.
fn check_all(entries: Vec<Vec<Job>>) {
    for (row, jobs) in entries.into_iter().enumerate() {
        for turn in 0..4 {
            check(jobs[(turn + turn / 2) % jobs.len()], turn + 4 * (row % 2));
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

/// Of f32 in two parts: the last element that does not round to infinity, and those from there on.
#[test]
fn what_rounds_to_infinity_is_nan_in_parts() {
    let mut tried = 0;
    for job in products().into_iter().flatten().filter(Job::splits_f32) {
        let [m, ..] = job.sizes();
        for (bits, is_nan) in [(0x7f7f_efff, false), (0x7f7f_f000, true), (f32::MAX.to_bits(), true)] {
            let large = f64::from(f32::from_bits(bits));
            let a = |_, i, l| [if (i, l) == (0, 0) { large } else { 0.0 }, 0.0];
            let b = |_, l, j| [if (l, j) == (0, 0) { 0.5 } else { 0.0 }, 0.0];
            let got = job.scaled([1.0, 0.0]).run([&a, &b, &|_, _, _| [0.0; 2]]);
            for (place, [got, _]) in got.into_iter().enumerate() {
                let expected = if place == 0 { 0.5 * large } else { 0.0 };
                let is_in_row = place % m as usize == 0;
                let close = (got - expected).abs() <= expected * f64::from(f32::EPSILON);
                assert!(if is_nan && is_in_row { got.is_nan() } else { close }, "{bits:x}, {place}: {got}");
            }
        }
        tried += 1;
    }
    assert!(tried > 0);
}
