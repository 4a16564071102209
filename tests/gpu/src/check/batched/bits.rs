//! The bits of batches of random numbers: at equal distances and by lists, of every element type.

use super::{Case, Follow, Spec};
use crate::lab::{Lab, Outcome};
use crate::operand::Storage;
use crate::real::{Element, unit};
use host::Complex;

/// Of a packed tile, and of one whose steps go through stages.
const SIZES: [(usize, usize, usize); 2] = [(8, 8, 8), (19, 23, 31)];
const RUNS: usize = 5;

/// Adds them, several times.
pub fn bits(lab: &Lab, found: &mut Vec<u128>) -> Outcome {
    of::<f32>(lab, found)?;
    of::<f64>(lab, found)?;
    of::<Complex<f32>>(lab, found)?;
    of::<Complex<f64>>(lab, found)
}

fn of<T: Element>(lab: &Lab, found: &mut Vec<u128>) -> Outcome {
    let (storage, count) = ([Storage::default(); 3], if lab.is_emulated() { 7 } else { 3001 });
    let value = |seed, p, i, j| T::of_two(unit(seed, 40 * p + i, j), unit(seed + 9, i, 40 * p + j));
    for (size, follow) in SIZES.into_iter().zip([Follow::Strided, Follow::Listed]) {
        let spec = Spec { size, count, storage, follow: [follow; 3], conj: [false; 2], alpha: 1.0, beta: 0.0 };
        let mut case = Case::<T>::new(lab, spec, value)?;
        for _ in 0..lab.times(RUNS) {
            found.extend(case.run(lab, None)?.iter().map(|value| value.bits()));
        }
    }
    Ok(())
}
