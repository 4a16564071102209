//! A complex matrix times a vector: every entry, with every conjugate.

use super::product::{ALPHAS, BETAS, Spec};
use super::{dtype, integers};
use crate::check::gemv::{SIZES, entries, specs};
use crate::lab::{Lab, Outcome};
use crate::real::Real;
use host::{Complex, Scalar};

/// Both complex types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab, &SIZES)?;
    sweep::<f64>(lab, &SIZES)
}

/// A little of it, for a tool that is slow.
pub fn small(lab: &Lab) -> Outcome {
    let sizes = [(131, 37), (5, 2051)];
    sweep::<f32>(lab, &sizes)?;
    sweep::<f64>(lab, &sizes)
}

fn sweep<R: Real>(lab: &Lab, sizes: &[(usize, usize)]) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (index, &size) in sizes.iter().enumerate() {
        // Either part is a sum of twice as many products.
        if size.1 as f64 * 18.0 * R::U >= 1.0 {
            continue;
        }
        for (at, plain) in specs(size, 1, index).into_iter().enumerate() {
            let turn = index + at;
            let conj = [turn & 1 > 0, turn & 2 > 0];
            let (alpha, beta) = (ALPHAS[turn % ALPHAS.len()], BETAS[turn % BETAS.len()]);
            let spec = Spec { size: plain.size, storage: plain.storage, conj, alpha, beta };
            integers::<R>(lab, "complex-gemv", &spec, entries(lab, dtype::<R>(), &plain))?;
        }
    }
    Ok(())
}
