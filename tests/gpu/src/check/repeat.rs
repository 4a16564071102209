//! The same plan, the same bits: 100 runs of data that cancel, with NaN in the workspace before some of them.

use crate::case::{Case, Spec};
use crate::check::splits::split;
use crate::compare::bitwise;
use crate::entries::is_reduced;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::real::{Element, Real, unit};
use host::Plan;

pub const RUNS: usize = 100;
/// m, n, k.
pub const SIZE: (usize, usize, usize) = (70, 9, 4099);

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

/// Sums of 4099 numbers whose second half nearly undoes the first: every change of order shows.
pub fn cancelling<T: Real>(lab: &Lab, spec: Spec) -> Outcome<Case<T>> {
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
    again(&first, case.spec.size.0, RUNS, || case.run_unwatched(lab, plan), || poison.run_unwatched(lab, plan))
}

/// Fails unless each of the runs after the first has its bits. Before every tenth `spoil` computes NaN by the same plan, which
/// leaves NaN in the workspace: what reads a slot that was not written since would else find the same number there.
pub fn again<T: Element>(
    first: &[T],
    rows: usize,
    runs: usize,
    mut run: impl FnMut() -> Outcome<Vec<T>>,
    mut spoil: impl FnMut() -> Outcome<Vec<T>>,
) -> Outcome {
    for index in 1..runs {
        if index % 10 == 0 {
            let spoilt = spoil()?;
            ensure(spoilt.iter().all(|value| value.two()[0].is_nan()), || "NaN did not reach every element".into())?;
        }
        bitwise(&run()?, first, rows).map_err(|fault| format!("run {index}: {fault}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A second slot that is written in the first run alone, or by what spoils it.
    #[test]
    fn a_slot_of_the_run_before_is_found() {
        let (slots, runs) = (Cell::new([0.25_f64, 0.5]), Cell::new(0));
        let stale = || {
            runs.set(runs.get() + 1);
            slots.set([0.25, slots.get()[1]]);
            Ok(vec![slots.get().iter().sum::<f64>()])
        };
        let spoil = || {
            slots.set([f64::NAN; 2]);
            Ok(vec![f64::NAN])
        };
        assert!(again(&[0.75], 1, 10, stale, spoil).is_ok() && runs.get() == 9);
        assert!(again(&[0.75], 1, 11, stale, spoil).is_err());
        // What leaves no NaN spoils nothing.
        assert!(again(&[0.75], 1, 11, || Ok(vec![0.75]), || Ok(vec![0.75])).is_err());
        assert!(again(&[0.75], 1, 2, || Ok(vec![0.5]), spoil).is_err());
    }
}
