//! Integers at every tile edge, by every entry: exact, guards and gaps intact, β = 0 over NaN.

use crate::case::Spec;
use crate::compare::equal;
use crate::lab::{Lab, Outcome, named};
use crate::oracle::exact;
use crate::real::Real;
use crate::shapes::Edges;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (index, size) in Edges::of(T::DTYPE).sizes().into_iter().enumerate() {
        by_every_entry::<T>(lab, Spec::varied(size, index))?;
    }
    Ok(())
}

/// One product of integers, by the model's choice and every entry.
pub fn by_every_entry<T: Real>(lab: &Lab, spec: Spec) -> Outcome {
    let mut case = spec.integers::<T>(lab)?;
    let expected = exact(&case);
    for entry in lab.entries::<T>() {
        let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            let found = case.run(lab, &plan)?;
            equal(&found, &expected, spec.size.0)
        });
        lab.record(|| format!("{} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}
