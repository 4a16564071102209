//! Plans for all GPUs: the entry and the parts of k are those of every GPU, and the results those of that entry in those parts.

use crate::case::{Case, Spec};
use crate::compare::{bitwise, equal};
use crate::lab::{Lab, Outcome, ensure};
use crate::oracle::exact;
use crate::real::{Real, unit};
use host::{Determinism, Plan};
use model::choose_across;

/// Of every family that is chosen for all GPUs: skinny, few rows, tall times small, two tall matrices, a vector, squares.
const SIZES: [(usize, usize, usize); 7] = [
    (4099, 8, 4099),
    (33, 9, 16411),
    (100_003, 5, 7),
    (13, 7, 100_003),
    (4099, 1, 513),
    (300, 290, 310),
    (1, 1, 70_001),
];
const RUNS: usize = 20;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (index, size) in SIZES.into_iter().enumerate() {
        for row_major in [false, true] {
            let mut spec = Spec { alpha: 0.5, beta: [0.0, 1.0][index % 2], ..Spec::plain(size) };
            spec.storage[0].row_major = row_major;
            let result = alike::<T>(lab, spec);
            lab.record(|| format!("across {}", spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

fn alike<T: Real>(lab: &Lab, spec: Spec) -> Outcome {
    let mut integers = spec.integers::<T>(lab)?;
    let plan = across(lab, &integers, None)?;
    equal(&integers.run(lab, &plan)?, &exact(&integers), spec.size.0)?;
    let mut random = spec.make::<T>(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |i, j| unit(3, i, j))?;
    let first = random.run(lab, &plan)?;
    (1..RUNS).try_for_each(|_| bitwise(&random.run_unwatched(lab, &plan)?, &first, spec.size.0))?;
    let Some(choice) = plan.choice() else { return Ok(()) };
    let problem = if choice.swapped { choice.problem.transposed() } else { choice.problem };
    for (name, machine) in model::machine::TABLE.iter().filter(|(_, machine)| machine.compute_capability >= (8, 0)) {
        let there = choose_across(&problem, machine, None, None)?;
        let (here, there) = ((choice.variant.entry, choice.splits), (there.variant.entry, there.splits));
        ensure(here == there, || format!("{here:?}, on {name} {there:?}"))?;
    }
    // The same sums in the same order, asked for by name, in a plan of this GPU.
    let given = across(lab, &random, Some((choice.variant.entry, choice.splits)))?;
    bitwise(&random.run(lab, &given)?, &first, spec.size.0)
}

/// For all GPUs, or for this one by an entry in so many parts.
fn across<T: Real>(lab: &Lab, case: &Case<T>, given: Option<(&str, u32)>) -> host::Result<Plan> {
    let builder = case.builder(lab)?;
    match given {
        None => builder.determinism(Determinism::AcrossGpus).build(),
        Some((entry, parts)) => builder.variant(entry).parts(parts).build(),
    }
}
