//! Every combination of layouts with every α and β and several gaps; the same through transposed views and without a
//! plan.

use super::edges::by_these;
use crate::case::{ALPHAS, BETAS, Spec};
use crate::compare::{bitwise, equal};
use crate::lab::{Lab, Outcome};
use crate::operand::Storage;
use crate::oracle::exact;
use crate::real::Real;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    let sizes = [(131, 5, 67), (6, 140, 130), (70, 66, 9), (1, 9, 300), (9, 1, 300)];
    for (index, layouts) in (0..8_usize).flat_map(|layouts| [layouts; 20]).enumerate() {
        let factors = index % 20;
        let storage = |at: usize| Storage::new(layouts >> at & 1 > 0, (index + at) % 4, index % 3);
        let storage = [storage(0), storage(1), storage(2)];
        let (alpha, beta) = (ALPHAS[factors % 4], BETAS[factors / 4]);
        for (at, &size) in sizes.iter().enumerate() {
            let spec = Spec { size, storage, alpha, beta };
            // Every entry meets every combination, those that it does not take in order to refuse them; the other sizes meet
            // all of them by the model's choice.
            if at == (layouts + factors) % sizes.len() {
                by_these::<T>(lab, spec, lab.entries::<T>())?;
            }
            lab.record(|| format!("views and no plan, {}", spec.name::<T>()), views::<T>(lab, spec))?;
        }
    }
    Ok(())
}

fn views<T: Real>(lab: &Lab, spec: Spec) -> Outcome {
    let mut case = spec.integers::<T>(lab)?;
    let expected = exact(&case);
    let found = case.run_planless(lab)?;
    equal(&found, &expected, spec.size.0)?;
    // Integers are exact whichever way round, but for the sign of a zero.
    equal(&case.run_transposed(lab)?, &expected, spec.size.0)?;
    bitwise(&case.run_planless(lab)?, &found, spec.size.0)
}
