//! k cut into parts: the model must do it for long k, for every entry, and the slots must add up.

use crate::case::Spec;
use crate::compare::equal;
use crate::entries::Entry;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::oracle::exact;
use crate::real::Real;
use model::Choice;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("splits", "the CPU has none");
        return Ok(());
    }
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

/// m, n, k.
pub const SIZES: [(usize, usize, usize); 5] =
    [(33, 9, 16411), (9, 33, 8209), (129, 5, 4099), (1, 1, 70001), (40, 70, 20011)];

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (index, size) in SIZES.into_iter().enumerate() {
        for factors in 0..3 {
            for (spec, entries) in lab.groups::<T>(Spec::varied(size, 3 * index + factors)) {
                let mut case = spec.integers::<T>(lab)?;
                let expected = exact(&case);
                for entry in entries {
                    let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                        split(plan.choice(), entry)?;
                        equal(&case.run(lab, &plan)?, &expected, size.0)
                    });
                    lab.record(|| format!("splits {} {}", named(entry), spec.name::<T>()), result)?;
                }
            }
        }
    }
    whole::<T>(lab)
}

/// Fails if k is whole. Of an entry of two tall matrices that the model chooses itself small tiles may have it so.
pub fn split(choice: Option<&Choice>, entry: Entry) -> Outcome {
    let is_split = |choice: &Choice| choice.splits > 1 || entry.is_none() && choice.variant.is_reduced();
    ensure(choice.is_some_and(is_split), || "k is not split, so that nothing of it is checked".into())
}

const WHOLE: (usize, usize, usize) = (257, 3, 5);

/// The other way is tried too: short k is left whole.
fn whole<T: Real>(lab: &Lab) -> Outcome {
    for (spec, entries) in lab.groups::<T>(Spec::plain(WHOLE)) {
        let case = spec.integers::<T>(lab)?;
        for entry in entries {
            let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                let splits = plan.choice().map_or(1, |choice| choice.splits);
                ensure(splits == 1, || format!("k = 5 in {splits} parts"))
            });
            lab.record(|| format!("whole {} {}", named(entry), spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{capture, repeat};
    use crate::entries::tests::planned;
    use crate::small;
    use model::{Refusal, VARIANTS};

    #[test]
    fn the_sizes_are_split_on_a_large_gpu() -> Result<(), Refusal> {
        let varied = |(index, size)| (0..3).map(move |factors| Spec::varied(size, 3 * index + factors));
        let sweep = SIZES.into_iter().enumerate().flat_map(varied);
        let specs: Vec<Spec> = sweep.chain([repeat::SIZE, capture::SIZE].map(Spec::plain)).collect();
        for v in VARIANTS.iter().filter(|v| !v.is_reduced() && crate::entries::serves(Some(v.entry), SIZES[0])) {
            let parts = |spec: &Spec| {
                let suited = if spec.suits(Some(v.entry)) { *spec } else { spec.turned() };
                Ok(planned(&suited, v)?.splits)
            };
            for spec in &specs {
                assert!(parts(spec)? > 1, "{} {spec:?}", v.entry);
            }
            assert_eq!(parts(&Spec::plain(WHOLE))?, 1, "{}", v.entry);
            let mut long = small::LONG.into_iter();
            assert!(long.any(|k| parts(&Spec::plain((5, 3, k))).is_ok_and(|parts| parts > 1)), "{}", v.entry);
        }
        Ok(())
    }
}
