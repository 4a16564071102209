//! k cut into parts: the model must do it for long k, for every entry, and the slots must add up.

use crate::case::Spec;
use crate::compare::equal;
use crate::lab::{Lab, Outcome, dtype_name, ensure, named};
use crate::oracle::exact;
use crate::real::Real;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("splits", "the CPU has none");
        return Ok(());
    }
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

const SIZES: [(usize, usize, usize); 5] =
    [(33, 9, 16411), (9, 33, 8209), (129, 5, 4099), (1, 1, 70001), (40, 70, 5000)];

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (index, size) in SIZES.into_iter().enumerate() {
        for factors in 0..3 {
            let spec = Spec::varied(size, 3 * index + factors);
            let mut case = spec.integers::<T>(lab)?;
            let expected = exact(&case);
            for entry in lab.entries::<T>() {
                let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let splits = plan.choice().map_or(1, |choice| choice.splits);
                    ensure(splits > 1, || "k is not split, so that nothing of it is checked".into())?;
                    equal(&case.run(lab, &plan)?, &expected, size.0)
                });
                lab.record(|| format!("splits {} {}", named(entry), spec.name::<T>()), result)?;
            }
        }
    }
    whole::<T>(lab)
}

const WHOLE: (usize, usize, usize) = (257, 3, 5);

/// The other way is tried too: short k is left whole.
fn whole<T: Real>(lab: &Lab) -> Outcome {
    let case = Spec::plain(WHOLE).integers::<T>(lab)?;
    for entry in lab.entries::<T>() {
        let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            let splits = plan.choice().map_or(1, |choice| choice.splits);
            ensure(splits == 1, || format!("k = 5 in {splits} parts"))
        });
        lab.record(|| format!("whole {} {}", named(entry), dtype_name::<T>()), result)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{capture, repeat};
    use crate::small;
    use model::{Layout, Machine, Problem, Refusal, Strides, VARIANTS, choose};

    #[test]
    fn the_sizes_are_split_on_a_large_gpu() -> Result<(), Refusal> {
        for v in VARIANTS {
            let parts = |(m, n, k): (usize, usize, usize)| {
                let mut problem = Problem::column_major(v.dtype, m as u64, n as u64, k as u64);
                // Whichever of A and B is the large one, it lies as the entry wants it.
                if v.layout == Layout::Rows {
                    problem.a = Strides::row_major(problem.k);
                } else {
                    problem.b = Strides::row_major(problem.n);
                }
                Ok(choose(&problem, &Machine::H200, Some(v.entry))?.splits)
            };
            for size in SIZES.into_iter().chain([repeat::SIZE, capture::SIZE]) {
                assert!(parts(size)? > 1, "{} {size:?}", v.entry);
            }
            assert_eq!(parts(WHOLE)?, 1, "{}", v.entry);
            let mut long = small::LONG.into_iter();
            assert!(long.any(|k| parts((5, 3, k)).is_ok_and(|parts| parts > 1)), "{}", v.entry);
        }
        Ok(())
    }
}
