//! Batches with sizes of 0 and factors of 0, −0, 1 and NaN; what is not to be read is NaN.

use super::{Case, Follow, Spec};
use crate::lab::{Lab, Outcome, ensure};
use crate::operand::Storage;
use crate::real::{Element, integer, times};
use host::Complex;

const COUNT: usize = 3;

/// All element types, with m, n and k, and with α and β, of these.
pub fn run(lab: &Lab, sizes: &[usize; 3], factors: &[f64; 5]) -> Outcome {
    sweep::<f32>(lab, sizes, factors)?;
    sweep::<f64>(lab, sizes, factors)?;
    sweep::<Complex<f32>>(lab, sizes, factors)?;
    sweep::<Complex<f64>>(lab, sizes, factors)
}

fn sweep<T: Element>(lab: &Lab, sizes: &[usize; 3], factors: &[f64; 5]) -> Outcome {
    for index in 0..27 * 25 {
        let size = (sizes[index % 3], sizes[index / 3 % 3], sizes[index / 9 % 3]);
        let (alpha, beta) = (factors[index / 27 % 5], factors[index / 135]);
        let storage =
            [0, 1, 2].map(|at| Storage { row_major: index >> at & 1 > 0, pad: index % 2, ..Storage::default() });
        let follow = [Follow::Strided, Follow::Listed][index % 7 % 2];
        let spec = Spec { size, count: COUNT, storage, follow: [follow; 3], conj: [false; 2], alpha, beta };
        let value = |seed: u64, p: usize, i: usize, j: usize| match seed {
            1 | 2 if alpha == 0.0 => T::of_two(f64::NAN, f64::NAN),
            _ => T::of_two(integer(seed, 31 * p + i, j, 3), integer(seed + 7, 31 * p + i, j, 3)),
        };
        let mut case = Case::<T>::new(lab, spec, value)?;
        let result = case.run(lab, None).and_then(|found| is_right(&case, &found));
        lab.record(|| format!("quick, {}", spec.name(T::DTYPE)), result)?;
    }
    Ok(())
}

fn is_right<T: Element>(case: &Case<T>, found: &[T]) -> Outcome {
    let ((m, n, k), [alpha, beta]) = (case.spec.size, [case.spec.alpha, case.spec.beta]);
    let multiplies = alpha != 0.0 && k > 0;
    for (p, i, j) in (0..COUNT).flat_map(|p| (0..n).flat_map(move |j| (0..m).map(move |i| (p, i, j)))) {
        let product = |l| times(case.a.get(p, i, l), case.b.get(p, l, j));
        let sum = (0..k).map(product).fold([0.0; 2], |[re, im], [x, y]| [re + x, im + y]);
        let term =
            |is_there: bool, by: f64, of| if is_there { times(Case::<T>::factor(by).two(), of) } else { [0.0; 2] };
        let (new, kept) = (term(multiplies, alpha, sum), term(beta != 0.0, beta, case.c.get(p, i, j)));
        let expected = [new[0] + kept[0], new[1] + kept[1]];
        let (row, col) = case.c.place(p, i, j);
        let value = found[row + col * case.c.all.rows].two();
        // A real element has no other part, whatever NaN times it is.
        let agrees =
            |part: usize| if expected[part].is_nan() { value[part].is_nan() } else { value[part] == expected[part] };
        let is_fine = agrees(0) && (!T::DTYPE.is_complex() || agrees(1));
        ensure(is_fine, || format!("({i}, {j}) of {p}: expected {expected:?}, found {value:?}"))?;
    }
    Ok(())
}
