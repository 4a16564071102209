//! What batches promise beyond integers: random data within their bound, NaN and infinities in their row alone, nothing read where
//! α = 0, and the same bits wherever operands lie.

use super::{Case, Follow, Spec, entries, is_refused};
use crate::entries::Entry;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::operand::Storage;
use crate::real::{Element, conj_if, integer, times, unit};
use host::Complex;
use watched::parts::{bound, dot};

const COUNT: usize = 23;
/// Packed tiles, tiles of 8, odd ones, and many steps.
const SIZES: [(usize, usize, usize); 4] = [(3, 5, 4), (8, 8, 8), (13, 9, 11), (19, 23, 31)];
/// Of C and of all operands: elements past an aligned address, and beyond a line.
const PLACES: [(usize, usize); 4] = [(0, 0), (1, 0), (0, 1), (3, 2)];

/// All element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)?;
    sweep::<Complex<f32>>(lab)?;
    sweep::<Complex<f64>>(lab)
}

fn spec(size: (usize, usize, usize), index: usize) -> Spec {
    let storage = |at: usize| Storage::new(index >> at & 1 > 0, 0, 0);
    let storage = [storage(0), storage(1), storage(2)];
    let conj = [index & 1 > 0, index & 2 > 0];
    Spec { size, count: COUNT, storage, follow: [Follow::Strided; 3], conj, alpha: 1.0, beta: 0.0 }
}

fn random<T: Element>(seed: u64, p: usize, i: usize, j: usize) -> T {
    T::of_two(unit(seed, 40 * p + i, j), unit(seed + 9, i, 40 * p + j))
}

fn sweep<T: Element>(lab: &Lab) -> Outcome {
    for (index, size) in SIZES.into_iter().enumerate() {
        let spec = spec(size, 3 * index + 1);
        let mut case = Case::<T>::new(lab, spec, random)?;
        let near = Near::of(&case);
        for entry in entries(lab, T::DTYPE) {
            let found = match case.run(lab, entry) {
                Err(fault) if is_refused(entry, &fault) => continue,
                found => found,
            };
            let record = |what: &str, result: Outcome| {
                lab.record(|| format!("batched-special, {what}, {} {}", named(entry), spec.name(T::DTYPE)), result)
            };
            let Ok(clean) = &found else {
                record("random data", found.map(drop))?;
                continue;
            };
            record("random data", near.holds(&case, clean))?;
            for (at, special) in [f64::NAN, f64::INFINITY].into_iter().enumerate() {
                record("a NaN or an infinity", reaches_its_row(lab, (spec, entry), special, (at + index) % 2, clean))?;
            }
            record("alpha = 0", reads_neither::<T>(lab, spec, entry))?;
            for (offset, pad) in PLACES {
                record("elsewhere", has_these_bits(lab, spec, entry, (offset, pad), (&case, clean)))?;
            }
        }
    }
    Ok(())
}

/// A special number in A (operand 0) or B (1) of one problem: not finite are its row or column there, and nothing else.
fn reaches_its_row<T: Element>(
    lab: &Lab,
    (spec, entry): (Spec, Entry),
    special: f64,
    operand: usize,
    clean: &[T],
) -> Outcome {
    let ((m, n, k), problem) = (spec.size, 11);
    let place = [(m / 2, k - 1), (k / 2, n - 1)][operand];
    let mut case = Case::<T>::new(lab, spec, |seed, p, i, j| {
        let is_there = seed as usize == operand + 1 && p == problem && (i, j) == place;
        if is_there { T::of_two(special, 0.0) } else { random(seed, p, i, j) }
    })?;
    let found = case.run(lab, entry)?;
    for (p, i, j) in elements(&spec) {
        let (row, col) = case.c.place(p, i, j);
        let at = row + col * case.c.all.rows;
        let is_hit = p == problem && if operand == 0 { i == place.0 } else { j == place.1 };
        let is_finite = found[at].two().iter().all(|part| part.is_finite());
        let fine = if is_hit { !is_finite } else { found[at].bits() == clean[at].bits() };
        ensure(fine, || format!("{special} at {place:?} of problem {problem}: C_{p}({i}, {j}) is {:?}", found[at]))?;
    }
    Ok(())
}

/// A and B are NaN, and C is multiplied by β.
fn reads_neither<T: Element>(lab: &Lab, spec: Spec, entry: Entry) -> Outcome {
    let mut case = Case::<T>::new(lab, Spec { alpha: 0.0, beta: -1.0, ..spec }, |seed, p, i, j| match seed {
        1 | 2 => T::of_two(f64::NAN, f64::NAN),
        _ => T::of_two(integer(3, 40 * p + i, j, 3), integer(4, i, 40 * p + j, 3)),
    })?;
    let found = case.run(lab, entry)?;
    let beta = Case::<T>::factor(-1.0).two();
    for (p, i, j) in elements(&spec) {
        let (row, col) = case.c.place(p, i, j);
        let (old, new) = (case.c.get(p, i, j), found[row + col * case.c.all.rows]);
        let expected = times(beta, old);
        ensure(new.two() == expected, || format!("C_{p}({i}, {j}) is {new:?}, not {expected:?}"))?;
    }
    Ok(())
}

/// The operands elsewhere: refused, as what wants packed batches says, or the same bits.
fn has_these_bits<T: Element>(
    lab: &Lab,
    spec: Spec,
    entry: Entry,
    (offset, pad): (usize, usize),
    (case, clean): (&Case<T>, &[T]),
) -> Outcome {
    let storage = spec.storage.map(|storage| Storage { pad, offset, ..storage });
    let mut moved = Case::<T>::new(lab, Spec { storage, ..spec }, random)?;
    let found = match moved.run(lab, entry) {
        Err(fault) if is_refused(entry, &fault) => return Ok(()),
        found => found?,
    };
    let at = |of: &Case<T>, (p, i, j)| {
        let (row, col) = of.c.place(p, i, j);
        row + col * of.c.all.rows
    };
    for element in elements(&spec) {
        let (before, after) = (clean[at(case, element)], found[at(&moved, element)]);
        // The model may choose another entry for it, which nobody forced.
        let fine = entry.is_none() || before.bits() == after.bits();
        ensure(fine, || format!("offset {offset}, pad {pad}: C_p(i, j) at {element:?} was {before:?}, is {after:?}"))?;
    }
    Ok(())
}

fn elements(spec: &Spec) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
    let (m, n, count) = (spec.size.0, spec.size.1, spec.count);
    (0..count * m * n).map(move |e| (e / (m * n), e % m, e / m % n))
}

/// Every element to twice the precision of f64, and √2 γ(2k + 4) |A||B|.
struct Near(Vec<([f64; 2], f64)>);

impl Near {
    fn of<T: Element>(case: &Case<T>) -> Near {
        let ((.., k), [conj_a, conj_b]) = (case.spec.size, case.spec.conj);
        let one = |(p, i, j)| {
            let a: Vec<[f64; 2]> = (0..k).map(|l| conj_if(case.a.get(p, i, l), conj_a)).collect();
            let b: Vec<[f64; 2]> = (0..k).map(|l| conj_if(case.b.get(p, l, j), conj_b)).collect();
            let (parts, sizes) = dot(&a, &b);
            (parts, (bound::<T>(k as f64) + 4.0 * f64::EPSILON) * sizes)
        };
        Near(elements(&case.spec).map(one).collect())
    }

    fn holds<T: Element>(&self, case: &Case<T>, found: &[T]) -> Outcome {
        for ((p, i, j), (expected, bound)) in elements(&case.spec).zip(&self.0) {
            let (row, col) = case.c.place(p, i, j);
            let [re, im] = found[row + col * case.c.all.rows].two();
            let error = (re - expected[0]).hypot(if T::DTYPE.is_complex() { im - expected[1] } else { 0.0 });
            ensure(error <= *bound, || format!("C_{p}({i}, {j}) is off by {error:e}, the bound is {bound:e}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Device;

    /// The checks pass on the CPU, and their comparisons refuse a wrong element and a NaN.
    #[test]
    fn a_wrong_element_and_a_nan_are_refused() -> Outcome {
        let lab = Lab::new(Device::cpu(), 16)?;
        run(&lab)?;
        assert!(lab.finish());
        let mut case = Case::<f64>::new(&lab, spec((3, 5, 4), 0), random)?;
        let (near, right) = (Near::of(&case), case.run(&lab, None)?);
        assert!(near.holds(&case, &right).is_ok());
        for wrong in [right[7] * (1.0 + 1e-12), f64::NAN] {
            let mut found = right.clone();
            found[7] = wrong;
            assert!(near.holds(&case, &found).is_err(), "{wrong}");
        }
        let mut exact = Case::<f64>::integers(&lab, spec((3, 5, 4), 0))?;
        let mut found = exact.run(&lab, None)?;
        assert!(exact.right(&found).is_ok());
        for wrong in [found[7] + 1.0, f64::NAN] {
            found[7] = wrong;
            assert!(exact.right(&found).is_err(), "{wrong}");
        }
        Ok(())
    }
}
