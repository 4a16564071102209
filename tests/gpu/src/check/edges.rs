//! Integers at every tile edge, by every entry: exact, guards and gaps intact, β = 0 over NaN.

use crate::case::{Case, Spec};
use crate::compare::equal;
use crate::entries::{Entry, product_or_refusal};
use crate::lab::{Lab, Outcome, named};
use crate::oracle::exact;
use crate::real::Real;
use crate::shapes::Edges;
use host::Plan;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (index, size) in Edges::of(T::DTYPE).sizes().into_iter().enumerate() {
        for (spec, entries) in lab.groups::<T>(Spec::varied(size, index)) {
            by_these::<T>(lab, spec, entries)?;
        }
    }
    Ok(())
}

/// One product of integers, by these entries: exact, or refused by those that want another layout.
pub fn by_these<T: Real>(lab: &Lab, spec: Spec, entries: Vec<Entry>) -> Outcome {
    let mut case = spec.integers::<T>(lab)?;
    let expected = exact(&case);
    for entry in entries {
        let product = |case: &mut Case<T>, plan: &Plan| equal(&case.run(lab, plan)?, &expected, spec.size.0);
        let result = product_or_refusal(lab, &mut case, entry, product);
        lab.record(|| format!("{} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}
