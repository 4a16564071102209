//! Out of memory: the error says how much was wanted and how much was free, and the next call works.

use crate::case::Spec;
use crate::compare::equal;
use crate::lab::{Lab, Outcome, dtype_name, ensure};
use crate::oracle::exact;
use crate::real::Real;
use host::Error;

/// Rows and columns of which no machine has the product.
const SIDE: usize = 1 << 24;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    for _ in 0..2 {
        lab.record(|| format!("memory {}", dtype_name::<f32>()), one::<f32>(lab))?;
        lab.record(|| format!("memory {}", dtype_name::<f64>()), one::<f64>(lab))?;
    }
    Ok(())
}

fn one<T: Real>(lab: &Lab) -> Outcome {
    let before = lab.device.memory()?;
    let error = match lab.device.zeros::<T>(SIDE, SIDE) {
        Ok(_) => return Err(format!("{SIDE} x {SIDE} elements were allocated").into()),
        Err(error) => error,
    };
    let bytes = (SIDE as u64).pow(2) * T::DTYPE.bytes();
    let Error::OutOfMemory { wanted, free, total, .. } = error else {
        return Err(format!("expected OutOfMemory, found {error:?}").into());
    };
    ensure(wanted == bytes, || format!("{wanted} bytes wanted, but {bytes} were"))?;
    let text = error.to_string();
    ensure(text.contains(&wanted.to_string()), || format!("the text hides what was wanted: {text}"))?;
    if lab.device.is_cuda() {
        ensure(0 < free && free <= total && total == before.1, || format!("{free} of {total} bytes free: {before:?}"))?;
        ensure(text.contains(&free.to_string()), || format!("the text hides what was free: {text}"))?;
        let kept = before.0.saturating_sub(lab.device.memory()?.0);
        ensure(kept <= 32 << 20, || format!("{kept} bytes are gone after the failure"))?;
    }
    let mut case = Spec::plain((130, 5, 70)).integers::<T>(lab)?;
    let found = case.run_planless(lab)?;
    equal(&found, &exact(&case), 130)
}
