//! What BLAS leaves undone: sizes of 0, factors of 0, −0, 1 and NaN. What is not to be read is NaN, or not there at all.

use super::batched;
use super::tsmttsm::{Gram, asked_for};
use crate::case::Spec;
use crate::compare::{alike, bitwise};
use crate::entries::Entry;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::operand::Operand;
use crate::oracle::by_definition;
use crate::real::{Real, integer};
use host::{MatRef, Triangle, gemm};

const SIZES: [usize; 3] = [0, 1, 5];
const FACTORS: [f64; 5] = [0.0, -0.0, 1.0, 2.0, f64::NAN];
const TRIANGLES: [Triangle; 3] = [Triangle::Full, Triangle::Lower, Triangle::Upper];

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)?;
    grams::<f32>(lab)?;
    grams::<f64>(lab)?;
    batched::run_quick(lab, &SIZES, &FACTORS)
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for index in 0..27 * 25 {
        let size = (SIZES[index % 3], SIZES[index / 3 % 3], SIZES[index / 9 % 3]);
        let (alpha, beta) = (FACTORS[index / 27 % 5], FACTORS[index / 135]);
        let spec = Spec { alpha, beta, ..Spec::varied(size, index) };
        let multiplies = alpha != 0.0 && size.2 > 0;
        // Entries differ only where something is multiplied.
        let entries = if multiplies && size.0 * size.1 > 0 { lab.entries::<T>() } else { vec![None] };
        for (spec, entries) in spec.groups(entries) {
            for entry in entries {
                let result = one::<T>(lab, spec, entry);
                lab.record(|| format!("quick {} {}", named(entry), spec.name::<T>()), result)?;
            }
        }
        if !multiplies {
            let result = absent::<T>(lab, spec);
            lab.record(|| format!("quick, no A and B, {}", spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

/// By a plan, warmed up, and without one. Where α = 0, A and B are NaN.
fn one<T: Real>(lab: &Lab, spec: Spec, entry: Entry) -> Outcome {
    let unread = spec.alpha == 0.0;
    let value = |seed, i, j| if unread { f64::NAN } else { integer(seed, i, j, 3) };
    let mut case = spec.make::<T>(lab, |i, l| value(1, i, l), |l, j| value(2, l, j), |i, j| integer(3, i, j, 3))?;
    let expected = by_definition(&case);
    let plan = case.plan(lab, entry)?;
    plan.warm_up()?;
    let found = case.run(lab, &plan)?;
    let rows = spec.size.0;
    alike(&found, &expected, rows)?;
    exactly(&spec, &found, &case.c, &expected)?;
    match entry {
        Some(_) => Ok(()),
        None => bitwise(&case.run_planless(lab)?, &found, rows),
    }
}

/// Where nothing is multiplied every bit is known: C itself for β = 1, +0 for β = 0, else the rounded product.
fn exactly<T: Real>(spec: &Spec, found: &[T], c: &Operand<T>, expected: &[f64]) -> Outcome {
    if (spec.alpha != 0.0 && spec.size.2 > 0) || spec.beta.is_nan() {
        return Ok(());
    }
    let bits: Vec<T> = match spec.beta {
        0.0 => vec![T::zero(); expected.len()],
        1.0 => c.elements(),
        _ => expected.iter().map(|&value| T::of(value)).collect(),
    };
    bitwise(found, &bits, spec.size.0)
}

/// The same of Gram matrices. Where α = 0, A is NaN.
fn grams<T: Real>(lab: &Lab) -> Outcome {
    for index in 0..9 * 25 {
        let (n, k, triangle) = (SIZES[index % 3], SIZES[index / 3 % 3], TRIANGLES[index % 4 % 3]);
        let (alpha, beta) = (FACTORS[index / 9 % 5], FACTORS[index / 45]);
        let spec = Spec { alpha, beta, ..Spec::varied((n, n, k), index) };
        let value = |l, j| if alpha == 0.0 { f64::NAN } else { integer(2, l, j, 3) };
        let mut gram = Gram::<T>::new(lab, spec, triangle, value)?;
        let multiplies = alpha != 0.0 && k > 0;
        let expected: Vec<f64> = (0..n * n)
            .map(|e| {
                let (i, j) = (e % n, e / n);
                let (old, sum) = (gram.c.get(i, j).wide(), (0..k).map(|l| value(l, i) * value(l, j)).sum::<f64>());
                let kept = if beta == 0.0 { 0.0 } else { beta * old };
                if asked_for(triangle, i, j) { kept + if multiplies { alpha * sum } else { 0.0 } } else { old }
            })
            .collect();
        let result = gram.plan(lab, None).map_err(Into::into).and_then(|plan| {
            plan.warm_up()?;
            alike(&gram.run(lab, &plan)?, &expected, n)
        });
        lab.record(|| format!("quick, a Gram matrix, {triangle:?} {}", spec.name::<T>()), result)?;
    }
    Ok(())
}

/// Where neither a GPU nor a process has memory.
const NOWHERE: u64 = 1 << 12;

/// A and B that are nowhere: an access would fault.
fn absent<T: Real>(lab: &Lab, spec: Spec) -> Outcome {
    let mut case = spec.integers::<T>(lab)?;
    let expected = by_definition(&case);
    let ((m, n, k), rows) = (spec.size, spec.size.0);
    // SAFETY: no element of them is read: α = 0, or there is none; that is what is checked.
    let (a, b) = unsafe {
        (
            MatRef::<T>::from_raw(&lab.device, NOWHERE, m, k, 1, m.max(1))?,
            MatRef::<T>::from_raw(&lab.device, NOWHERE, k, n, 1, k.max(1))?,
        )
    };
    gemm(&lab.stream, T::of(spec.alpha), a, b, T::of(spec.beta), case.c.view_mut(lab)?)?;
    lab.stream.synchronize()?;
    let found = case.c.result("C")?;
    ensure(found.len() == m * n, || "elements are missing".into())?;
    alike(&found, &expected, rows)?;
    exactly(&spec, &found, &case.c, &expected)
}
