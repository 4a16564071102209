//! k cut into parts: the model must do it for long k, for every entry, and the slots must add up.

use crate::case::Spec;
use crate::compare::equal;
use crate::entries::{Entry, all_of_k};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::oracle::exact;
use crate::real::Real;
use host::{Plan, PlanBuilder};
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

/// Parts where the model would leave k whole.
pub const PARTS: u32 = 7;

/// A plan by this entry, whose k is cut, whatever the model would do, unless the entry's blocks have all of it; the model's own
/// plan where no entry is named.
pub fn cut(entry: Entry, builder: impl Fn() -> host::Result<PlanBuilder>) -> Outcome<Plan> {
    let Some(name) = entry else { return Ok(builder()?.build()?) };
    let plan = builder()?.variant(name).build()?;
    if plan.choice().is_some_and(|choice| choice.splits > 1) || all_of_k(entry) {
        return Ok(plan);
    }
    let plan = builder()?.variant(name).parts(PARTS).build()?;
    split(plan.choice(), entry)?;
    Ok(plan)
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
    use crate::check::{capture, repeat, streams};
    use crate::entries::tests::{planned, problem};
    use crate::small;
    use model::{Kernel, Machine, Parts, Problem, Refusal, VARIANTS, Variant, choose, choose_given};

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

    /// Where workspaces are what is looked at, those of every entry that can cut k are.
    #[test]
    fn what_the_model_leaves_whole_can_be_cut() -> Result<(), Refusal> {
        let of_streams = streams::LARGE;
        let (of_capture, capture_tall) = (capture::SIZE, capture::tall(false));
        let sized = |v: &Variant| match v.kernel {
            Kernel::Tsmttsm => [of_streams.tall, capture_tall],
            Kernel::Gram => [of_streams.square, capture::SQUARE],
            _ => [of_streams.product, of_capture].map(|(m, _, k)| (m, 1, k)),
        };
        for v in VARIANTS.iter().filter(|v| v.is_reduced() && !v.adds_atomically() && !v.has_all_of_k()) {
            for (m, n, k) in sized(v) {
                let most = v.most_columns().map_or(n, |most| n.min(most as usize));
                let size = if v.kernel == Kernel::Gram { (most, most, k) } else { (m, n, k) };
                // Of two tall matrices those of fewer columns are not tried there.
                if v.kernel == Kernel::Tsmttsm && !crate::entries::serves(Some(v.entry), size) {
                    continue;
                }
                let spec = Spec::plain(size);
                let spec = if spec.suits(Some(v.entry)) { spec } else { spec.turned() };
                let p = problem(&spec, v.dtype);
                let gram = Problem { c: p.c, ..Problem::gram(v.dtype, p.n, p.k, p.b) };
                let p = if v.kernel == Kernel::Gram { gram } else { p };
                let parts = match choose(&p, &Machine::H200, Some(v.entry))?.splits {
                    1 => choose_given(&p, &Machine::H200, v.entry, Parts::Exactly(PARTS))?.splits,
                    parts => parts,
                };
                assert!(parts > 1, "{} {size:?}", v.entry);
            }
        }
        Ok(())
    }
}
