//! Elements without an imaginary part, or without a real one: so is the product, whose other part is 0, whatever is rounded.

use super::dtype;
use super::product::{Product, Spec};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::real::{Real, unit};
use host::{Complex, Scalar};

/// Both complex types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn sweep<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for index in 0..8 {
        let (of_a, of_b) = (index & 1, index >> 1 & 1);
        let spec = Spec { conj: [index & 4 > 0, index & 2 > 0], ..Spec::varied((33, 5, 131), index as usize) };
        let beta = if index & 4 > 0 { (0.5, 0.0) } else { (0.0, 0.0) };
        let spec = Spec { alpha: (-0.7, 0.0), beta, ..spec };
        let part = |seed, of| move |i, j, im: u64| if im == of { unit(seed, i, j) } else { 0.0 };
        // The product of two without a real part has one alone.
        let empty = 1 - (of_a ^ of_b);
        for (spec, entries) in spec.groups_of_all(dtype::<R>(), lab.device.is_cuda()) {
            let mut product = Product::<R>::new(lab, spec, part(1, of_a), part(2, of_b), part(3, 1 - empty))?;
            for (_, entry) in entries.into_iter().enumerate().filter(|(at, _)| lab.takes(*at + index as usize, 8)) {
                let result = product.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let found = product.run(lab, &plan)?;
                    let part = |value: &Complex<R>, of| if of == 0 { value.re } else { value.im };
                    let fits = |value| part(value, empty) == R::zero() && part(value, 1 - empty) != R::zero();
                    let wrong = found.iter().position(|value| !fits(value));
                    ensure(wrong.is_none(), || format!("element {wrong:?} of {found:?} has another part, or none"))
                });
                let name = || format!("complex-parts {of_a} {of_b} {} {}", named(entry), spec.name::<R>());
                lab.record(name, result)?;
            }
        }
    }
    Ok(())
}
