//! Grids: more blocks than 16 bits count along x are launched; those that no grid has are refused by the plan.

use crate::case::Spec;
use crate::compare::equal;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::oracle::exact;
use crate::real::Real;
use host::{Error, Layout, Plan, Shape};
use model::{Kernel, VARIANTS};

/// Rows of 65537 blocks of the tallest tiles, and one.
fn tall() -> usize {
    let tallest = VARIANTS.iter().map(|v| v.threads).max().unwrap_or(1);
    65536 * tallest as usize + 1
}

/// One element type for the launches; the arithmetic of grids is the same for both.
pub fn run(lab: &Lab) -> Outcome {
    let spec = Spec { beta: 0.5, ..Spec::plain((tall(), 1, 2)) };
    for (spec, entries) in lab.groups::<f32>(spec) {
        let mut case = spec.integers::<f32>(lab)?;
        let expected = exact(&case);
        for entry in entries {
            let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                let found = case.run_unwatched(lab, &plan)?;
                equal(&found, &expected, spec.size.0)
            });
            lab.record(|| format!("grids {} {}", named(entry), spec.name::<f32>()), result)?;
        }
        lab.record(|| "grids A".into(), case.a.unchanged("A"))?;
    }
    if !lab.device.is_cuda() {
        lab.skip("grids, refusals", "the CPU has none");
        return Ok(());
    }
    refusals::<f32>(lab)?;
    refusals::<f64>(lab)
}

/// Nothing is allocated for these: a plan is made of shapes.
fn refusals<T: Real>(lab: &Lab) -> Outcome {
    let build = |m, n, entry: Option<&str>| {
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, T::DTYPE);
        let builder = Plan::gemm(&lab.device, shape(m, 3), shape(3, n), shape(m, n));
        entry.into_iter().fold(builder, |builder, name| builder.variant(name)).build()
    };
    let unsupported = |result: host::Result<Plan>| match result {
        Err(Error::Unsupported { .. }) => Ok(()),
        other => Err(format!("expected Unsupported, found {other:?}").into()),
    };
    for v in VARIANTS.iter().filter(|v| v.dtype == T::DTYPE && v.kernel == Kernel::Tsm2r && v.name != "tsm2r_inner") {
        let columns = 65535 * v.t2 as usize;
        let result = unsupported(build(columns + 1, columns + 1, Some(v.entry)))
            .and_then(|()| ensure(build(columns, columns, Some(v.entry)).is_ok(), || "65535 are refused too".into()));
        lab.record(|| format!("grids {} of 65536 along z", v.entry), result)?;
    }
    for (m, n) in [(1 << 32, 1), (1, 1 << 32)] {
        lab.record(|| format!("grids m = {m}, n = {n}"), unsupported(build(m, n, None)))?;
    }
    Ok(())
}
