//! Every entry on small shapes in every layout: what compute-sanitizer can get through.
//!
//! Two blocks of rows with a ragged end, a side swapped, one element, and k in parts, so that the entries that add slots
//! run too.

use crate::case::{ALPHAS, BETAS, Case, Spec};
use crate::check::{batched, complex, gemv, tsmm, tsmttsm};
use crate::compare::equal;
use crate::entries::{Entry, product_or_refusal, serves};
use crate::lab::{Lab, Outcome, named};
use crate::operand::Storage;
use crate::oracle::exact;
use crate::real::Real;
use host::Plan;

/// Elements of guard on each side of an operand: copies are slow there.
pub const GUARD: usize = 64;

const SIZES: [(usize, usize, usize); 3] = [(131, 3, 37), (7, 19, 13), (1, 1, 1)];
/// The first k of these that is cut into parts is taken.
pub const LONG: [usize; 6] = [300, 600, 1200, 2500, 5000, 20000];

type Part = (&'static str, fn(&Lab) -> Outcome);

/// By name: under a slow tool several processes can share them.
const PARTS: [Part; 5] = [
    ("f32", sweep::<f32>),
    ("f64", sweep::<f64>),
    ("reduced", reduced),
    ("batched", batched::small),
    ("complex", complex::small),
];

/// All element types.
pub fn run(lab: &Lab) -> Outcome {
    run_these(lab, &[])
}

/// The parts of these names, or all.
pub fn run_these(lab: &Lab, only: &[String]) -> Outcome {
    if let Some(unknown) = only.iter().find(|name| PARTS.iter().all(|part| part.0 != name.as_str())) {
        let known: Vec<&str> = PARTS.iter().map(|part| part.0).collect();
        return Err(format!("no part is called {unknown}; there are {}", known.join(", ")).into());
    }
    let mut asked = PARTS.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|o| o == name));
    asked.try_for_each(|(_, part)| part(lab))
}

/// Those of two tall matrices and of vectors.
fn reduced(lab: &Lab) -> Outcome {
    tsmttsm::small::<f32>(lab)?;
    tsmttsm::small::<f64>(lab)?;
    gemv::small::<f32>(lab)?;
    gemv::small::<f64>(lab)
}

fn spec(size: (usize, usize, usize), layouts: usize, index: usize) -> Spec {
    let storage = |at: usize| Storage::new(layouts >> at & 1 > 0, index % 3, (index + at) % 2);
    let storage = [storage(0), storage(1), storage(2)];
    Spec { size, storage, alpha: ALPHAS[index % 3], beta: BETAS[index % BETAS.len()] }
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for layouts in 0..8 {
        for (at, &size) in SIZES.iter().enumerate() {
            let spec = spec(size, layouts, layouts + 3 * at);
            let mut case = spec.integers::<T>(lab)?;
            let expected = exact(&case);
            for entry in lab.entries::<T>() {
                one(lab, &mut case, entry, &expected)?;
            }
        }
    }
    // Those of a tall A never cut k.
    let of_any_k = |entry: &Entry| serves(*entry, (5, 3, LONG[0]));
    for (index, entry) in lab.entries::<T>().into_iter().filter(of_any_k).enumerate() {
        in_parts::<T>(lab, entry, index)?;
    }
    tsmm::small::<T>(lab)?;
    // C <- beta C is an entry's work too.
    for beta in BETAS {
        let mut case = Spec { alpha: 0.0, beta, ..Spec::plain((37, 11, 5)) }.integers::<T>(lab)?;
        let expected = exact(&case);
        one(lab, &mut case, None, &expected)?;
    }
    Ok(())
}

fn one<T: Real>(lab: &Lab, case: &mut Case<T>, entry: Entry, expected: &[f64]) -> Outcome {
    let product = |case: &mut Case<T>, plan: &Plan| equal(&case.run(lab, plan)?, expected, case.spec.size.0);
    let result = product_or_refusal(lab, case, entry, product);
    lab.record(|| format!("small {} {}", named(entry), case.spec.name::<T>()), result)
}

fn in_parts<T: Real>(lab: &Lab, entry: Entry, index: usize) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("k in parts", "the CPU has none");
        return Ok(());
    }
    for k in LONG {
        let spec = spec((5, 3, k), index % 8, index);
        let mut case = if spec.suits(entry) { spec } else { spec.turned() }.integers::<T>(lab)?;
        if case.plan(lab, entry)?.choice().is_some_and(|choice| choice.splits > 1) {
            let expected = exact(&case);
            return one(lab, &mut case, entry, &expected);
        }
    }
    let why = format!("k of {LONG:?} is never cut into parts");
    lab.record(|| format!("small {}", named(entry)), Err(why.into()))
}
