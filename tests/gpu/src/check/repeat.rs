//! The same plan, the same bits: 100 runs of data that cancel, with NaN in the workspace before some of them.

use crate::case::{Case, Spec};
use crate::check::splits::split;
use crate::compare::bitwise;
use crate::entries::is_reduced;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::real::{Real, unit};
use host::Plan;

const RUNS: usize = 100;
/// m, n, k.
pub const SIZE: (usize, usize, usize) = (70, 9, 4099);

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

/// Sums of 4099 numbers whose second half nearly undoes the first: every change of order shows.
fn cancelling<T: Real>(lab: &Lab, spec: Spec) -> Outcome<Case<T>> {
    let half = spec.size.2 / 2;
    let a = |i, l| if l < half { unit(1, i, l) } else { -unit(1, i, l - half) };
    let b = |l, j| unit(2, if l < half { l } else { l - half }, j) * (1.0 + l as f64 * 1e-6);
    spec.make(lab, a, b, |i, j| unit(3, i, j))
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    let spec = Spec { beta: 0.5, ..Spec::plain(SIZE) };
    for (spec, entries) in lab.groups_of_all::<T>(spec) {
        let mut case = cancelling::<T>(lab, spec)?;
        let mut poison = spec.make::<T>(lab, |_, _| f64::NAN, |_, _| f64::NAN, |_, _| 0.0)?;
        for entry in entries {
            let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                // Of those entries longer ones are repeated in checks of their own.
                if lab.device.is_cuda() && !is_reduced(entry) {
                    split(plan.choice(), entry)?;
                }
                plan.warm_up()?;
                same_bits(lab, &mut case, &mut poison, &plan)
            });
            lab.record(|| format!("repeat {} {}", named(entry), spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

fn same_bits<T: Real>(lab: &Lab, case: &mut Case<T>, poison: &mut Case<T>, plan: &Plan) -> Outcome {
    let first = case.run(lab, plan)?;
    for run in 1..RUNS {
        if run % 10 == 0 {
            let spoilt = poison.run_unwatched(lab, plan)?;
            ensure(spoilt.iter().all(|value| value.is_nan()), || "NaN did not reach every element".into())?;
        }
        let again = case.run_unwatched(lab, plan)?;
        bitwise(&again, &first, case.spec.size.0).map_err(|fault| format!("run {run}: {fault}"))?;
    }
    Ok(())
}
