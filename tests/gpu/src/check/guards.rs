//! The checks' own check: guards and comparators catch planted faults, on the device that is tested.

use crate::case::Spec;
use crate::compare::{alike, bitwise, equal, within};
use crate::lab::{Lab, Outcome, dtype_name, ensure};
use crate::operand::{Operand, Storage};
use crate::oracle::{exact, near};
use crate::real::Real;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    for result in [damage::<f32>(lab), damage::<f64>(lab), comparators::<f32>(lab), comparators::<f64>(lab)] {
        lab.record(|| "guards".into(), result)?;
    }
    Ok(())
}

/// One bit in every kind of place that is watched.
fn damage<T: Real>(lab: &Lab) -> Outcome {
    let storage = Storage::new(false, 2, 3);
    let mut operand = Operand::new(lab, 5, 3, storage, |i, j| T::of((i + j) as f64))?;
    let guard = isize::try_from(lab.guard)?;
    let places = [-guard - 3, -2, -1, 5, 6, 7 + 5, 2 * 7 + 5, 2 * 7 + 4 + guard];
    for place in places {
        operand.reset()?;
        operand.unchanged("A")?;
        operand.result("A")?;
        operand.damage(place)?;
        let caught = operand.unchanged("A").is_err() && operand.result("A").is_err();
        ensure(caught, || format!("{}: damage at {place} is not seen", dtype_name::<T>()))?;
    }
    operand.reset()?;
    operand.damage(7 + 4)?;
    let seen = bitwise(&operand.result("A")?, &operand.elements(), 5).is_err() && operand.unchanged("A").is_err();
    ensure(seen, || format!("{}: a damaged element is not seen", dtype_name::<T>()))
}

/// A right product passes every comparator; with one NaN, or one wrong element, none.
fn comparators<T: Real>(lab: &Lab) -> Outcome {
    let mut case = Spec::plain((67, 5, 70)).integers::<T>(lab)?;
    let right = case.run_planless(lab)?;
    let (expected, close) = (exact(&case), near(&case));
    let verdicts = |found: &[T]| {
        [
            equal(found, &expected, 67),
            within(found, &close, 67, 70.0, 70),
            bitwise(found, &right, 67),
            alike(found, &expected, 67),
        ]
    };
    verdicts(&right).into_iter().collect::<Outcome<()>>()?;
    for wrong in [T::nan(), T::of(1e6), T::infinity()] {
        let mut found = right.clone();
        found[67 * 5 - 1] = wrong;
        let blind = verdicts(&found).iter().filter(|verdict| verdict.is_ok()).count();
        ensure(blind == 0, || format!("{}: {blind} comparators pass {wrong:?}", dtype_name::<T>()))?;
    }
    Ok(())
}
