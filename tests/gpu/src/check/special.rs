//! NaN and infinities: an element of A reaches its row of C and nothing else, one of B its column, zeros included.
//! Subnormal numbers are numbers. Of f32 in parts an infinity is a NaN, and what is subnormal may be 0.

use crate::case::{Case, Spec};
use crate::compare::{alike, bitwise};
use crate::entries::Entry;
use crate::lab::{Lab, Outcome, named};
use crate::oracle::by_definition;
use crate::real::{Real, integer};

/// At these rows and columns of A, and those of them that B has.
const ROWS: [usize; 6] = [0, 31, 32, 127, 128, 129];
const STEPS: [usize; 14] = [0, 3, 4, 7, 8, 11, 12, 15, 16, 31, 32, 119, 120, 149];
const COLS: [usize; 7] = [0, 1, 3, 4, 7, 8, 16];
const SIZE: (usize, usize, usize) = (130, 17, 150);

/// Both element types.
pub fn run_specials(lab: &Lab) -> Outcome {
    specials::<f32>(lab)?;
    specials::<f64>(lab)
}

fn specials<T: Real>(lab: &Lab) -> Outcome {
    for (index, (special, at)) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
        .into_iter()
        .flat_map(|special| (0..STEPS.len() * 4).map(move |at| (special, at)))
        .enumerate()
        .filter(|(index, _)| lab.takes(*index, 82))
    {
        let l = STEPS[at % STEPS.len()];
        let (row, col) = (ROWS[(index * 5 + at) % ROWS.len()], COLS[(index + at / STEPS.len()) % COLS.len()]);
        let beta = [0.0, 1.0][index % 2];
        // Half of B is zero, so that an infinity times zero is everywhere.
        let zeros = |seed, i, j| integer(seed, i, j, 1) * integer(seed + 10, i, j, 2);
        for (spec, entries) in lab.groups_of_all::<T>(Spec { beta, ..Spec::varied(SIZE, index) }) {
            let (row, col) = (row % spec.size.0, col % spec.size.1);
            let c = |i, j| integer(3, i, j, 3);
            let mut case = spec.make::<T>(lab, |i, l| zeros(1, i, l), |l, j| zeros(2, l, j), c)?;
            let place = match index % 3 {
                0 | 1 => {
                    case.a.set(row, l, T::of(special));
                    format!("A({row}, {l}) = {special}")
                }
                _ => {
                    case.b.set(l, col, T::of(special));
                    format!("B({l}, {col}) = {special}")
                }
            };
            case.a.reset()?;
            case.b.reset()?;
            by_these(lab, &mut case, &place, entries)?;
        }
    }
    Ok(())
}

fn by_these<T: Real>(lab: &Lab, case: &mut Case<T>, place: &str, entries: Vec<Entry>) -> Outcome {
    let expected = by_definition(case);
    let in_parts: Vec<f64> = expected.iter().map(|value| if value.is_finite() { *value } else { f64::NAN }).collect();
    for entry in entries {
        let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            let found = case.run(lab, &plan)?;
            alike(&found, if splits(entry) { &in_parts } else { &expected }, case.spec.size.0)
        });
        lab.record(|| format!("special {} {place} {}", named(entry), case.spec.name::<T>()), result)?;
    }
    Ok(())
}

/// Whether an entry multiplies in parts.
fn splits(entry: Entry) -> bool {
    entry.is_some_and(model::variants::splits_f32)
}

/// Both element types.
pub fn run_subnormals(lab: &Lab) -> Outcome {
    subnormals::<f32>(lab)?;
    subnormals::<f64>(lab)
}

/// The smallest number times the identity, and half the smallest normal one: not flushed to zero.
fn subnormals<T: Real>(lab: &Lab) -> Outcome {
    for (index, (value, factor)) in
        [(T::of(T::ETA), 1.0), (T::of(T::ETA), 5.0), (T::min_positive_value(), 0.5)].into_iter().enumerate()
    {
        let spec = Spec { beta: 0.0, alpha: 1.0, ..Spec::varied((130, 5, 130), index) };
        let a = |i, l| if i == l { value.wide() } else { 0.0 };
        for (spec, entries) in lab.groups_of_all::<T>(spec) {
            let (m, n, _) = spec.size;
            let expected = vec![value * T::of(factor); m * n];
            let mut case = spec.make::<T>(lab, a, |_, _| factor, |_, _| 0.0)?;
            for entry in entries {
                let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let mut found = case.run(lab, &plan)?;
                    if splits(entry) && value < T::min_positive_value() {
                        found.iter_mut().zip(&expected).filter(|(f, _)| f.is_zero()).for_each(|(f, e)| *f = *e);
                    }
                    bitwise(&found, &expected, m)
                });
                let name = || format!("subnormal {} {value:?} * {factor}, {}", named(entry), spec.name::<T>());
                lab.record(name, result)?;
            }
        }
    }
    Ok(())
}
