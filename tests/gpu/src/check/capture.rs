//! CUDA graphs: a warm plan may be recorded and replayed, over whatever its buffers then hold; a cold one is refused
//! without harm to the recording.

use crate::case::{Case, Spec};
use crate::compare::equal;
use crate::driver::{Driver, Recording};
use crate::lab::{Lab, Outcome, dtype_name, ensure, named};
use crate::oracle::exact;
use crate::real::{Real, integer};
use host::{Error, Plan};

const REPLAYS: usize = 100;
/// m, n, k.
pub const SIZE: (usize, usize, usize) = (70, 5, 4099);

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    let Some(raw) = lab.stream.as_raw() else {
        lab.skip("capture", "the CPU has no graphs");
        return Ok(());
    };
    let driver = match Driver::open(raw) {
        Ok(driver) => driver,
        Err(why) => {
            lab.skip("capture", &why.to_string());
            return Ok(());
        }
    };
    every::<f32>(lab, &driver)?;
    every::<f64>(lab, &driver)
}

fn every<T: Real>(lab: &Lab, driver: &Driver) -> Outcome {
    let spec = Spec { beta: 0.5, ..Spec::plain(SIZE) };
    // Cold first: afterwards the kernels are loaded, and only the workspace would be missing.
    let refused = cold(lab, driver, &mut spec.integers::<T>(lab)?);
    lab.record(|| format!("capture of a cold plan, {}", dtype_name::<T>()), refused)?;
    for (spec, entries) in lab.groups_of_all::<T>(spec) {
        let mut case = spec.integers::<T>(lab)?;
        let entries =
            entries.into_iter().enumerate().filter(|(index, _)| lab.takes(*index, 50)).map(|(_, entry)| entry);
        for (entry, for_stream) in entries.flat_map(|entry| [(entry, true), (entry, false)]) {
            let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                // On the stream itself, or on whichever comes first.
                if for_stream {
                    plan.warm_up_on(&lab.stream)?
                } else {
                    plan.warm_up()?
                }
                let replays = if entry.is_some() || lab.is_emulated() { 3 } else { REPLAYS };
                replayed(lab, driver, &mut case, &plan, replays)
            });
            lab.record(|| format!("capture {} {}", named(entry), case.spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

/// Enqueues the product and nothing else.
fn enqueue<T: Real>(lab: &Lab, case: &mut Case<T>, plan: &Plan) -> host::Result<()> {
    let (alpha, beta) = (T::of(case.spec.alpha), T::of(case.spec.beta));
    plan.run(&lab.stream, alpha, case.a.view(lab)?, case.b.view(lab)?, beta, case.c.view_mut(lab)?)
}

pub fn replayed<T: Real>(lab: &Lab, driver: &Driver, case: &mut Case<T>, plan: &Plan, replays: usize) -> Outcome {
    lab.stream.synchronize()?;
    let recording = Recording::begin(driver)?;
    let enqueued = enqueue(lab, case, plan);
    let graph = recording.end();
    enqueued?;
    let graph = graph?;
    for replay in 0..replays {
        if replay % 20 == 0 {
            let (m, _, k) = case.spec.size;
            (0..m * k).for_each(|e| case.a.set(e % m, e / m, T::of(integer(replay as u64, e % m, e / m, 3))));
            case.a.reset()?;
        }
        case.c.reset()?;
        graph.launch()?;
        lab.stream.synchronize()?;
        if replay % 20 < 2 {
            equal(&case.c.result("C")?, &exact(case), case.spec.size.0)
                .map_err(|fault| format!("replay {replay}: {fault}"))?;
        }
    }
    Ok(())
}

fn cold<T: Real>(lab: &Lab, driver: &Driver, case: &mut Case<T>) -> Outcome {
    let (warm, cold) = (case.plan(lab, None)?, case.plan(lab, None)?);
    ensure(cold.choice().is_some_and(|choice| choice.splits > 1), || "k is not split".into())?;
    warm.warm_up_on(&lab.stream)?;
    let recording = Recording::begin(driver)?;
    let refused = enqueue(lab, case, &cold);
    let enqueued = enqueue(lab, case, &warm);
    let graph = recording.end();
    ensure(matches!(refused, Err(Error::ColdPlanInCapture { .. })), || format!("found {refused:?}"))?;
    enqueued?;
    let graph = graph?;
    case.c.reset()?;
    graph.launch()?;
    lab.stream.synchronize()?;
    equal(&case.c.result("C")?, &exact(case), SIZE.0)
}
