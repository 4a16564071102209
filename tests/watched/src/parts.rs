//! What a product of complex numbers must be: by the definition, exactly on integers, and to twice the precision of f64.

use crate::compare::{all, same_kind};
use crate::numbers::{conj_if, times};
use crate::oracle::{Terms, dot2_of, gamma};
use crate::{Element, Outcome, Real};

/// Real and imaginary part.
type Parts = [f64; 2];

/// A factor without an imaginary part multiplies as a real number.
fn factor(by: Parts, x: Parts) -> Parts {
    if by[1] == 0.0 { x.map(|part| by[0] * part) } else { times(by, x) }
}

fn add(x: Parts, y: Parts) -> Parts {
    [x[0] + y[0], x[1] + y[1]]
}

fn size([re, im]: Parts) -> f64 {
    re.hypot(im)
}

/// Σ aᵢ bᵢ to nearly twice the precision of f64, and Σ |aᵢ||bᵢ|.
pub fn dot(a: &[Parts], b: &[Parts]) -> (Parts, f64) {
    let pairs = || a.iter().zip(b);
    let (re, re_rest) = dot2_of(pairs().flat_map(|(a, b)| [(a[0], b[0]), (-a[1], b[1])]));
    let (im, im_rest) = dot2_of(pairs().flat_map(|(a, b)| [(a[0], b[1]), (a[1], b[0])]));
    ([re + re_rest, im + im_rest], pairs().map(|(&a, &b)| size(a) * size(b)).sum())
}

/// √2 γ(2L + 4) for sums of `length` products: what a complex product's error is of |A||B| at most.
pub fn bound<T: Element>(length: f64) -> f64 {
    2.0_f64.sqrt() * gamma(2.0 * length + 4.0, T::Part::U)
}

/// An element, and the sizes that bound errors.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    value: Parts,
    /// |α| |A||B| and |β| |C|.
    product: f64,
    kept: f64,
}

impl<T: Element> Terms<'_, T> {
    /// Down the columns: of a row of op(A), a column of op(B), and β C, nothing where β = 0.
    fn map_parts<V: Send>(&self, of: impl Fn(&[Parts], &[Parts], Parts) -> V + Sync) -> Vec<V> {
        let ([conj_a, conj_b], beta) = (self.conj, self.factors[1]);
        let read = (|x: T| conj_if(x.two(), conj_a), |x: T| conj_if(x.two(), conj_b));
        self.map(read, |row, col, old| of(row, col, if beta == [0.0; 2] { [0.0; 2] } else { factor(beta, old.two()) }))
    }

    /// C in f64 by the definition: exact for small integers, and right in kind where something is not finite.
    pub fn parts(&self) -> Vec<Parts> {
        self.map_parts(|row, col, kept| {
            let sum = row.iter().zip(col).fold([0.0; 2], |sum, (&a, &b)| add(sum, times(a, b)));
            add(factor(self.factors[0], sum), kept)
        })
    }

    /// β C alone.
    pub fn scaled(&self) -> Vec<Parts> {
        self.map_parts(|_, _, kept| kept)
    }

    /// C to nearly twice the precision of f64, but for α and β.
    pub fn near_parts(&self) -> Vec<Near> {
        let alpha = self.factors[0];
        self.map_parts(|row, col, kept| {
            let (sum, sizes) = dot(row, col);
            Near { value: add(factor(alpha, sum), kept), product: size(alpha) * sizes, kept: size(kept) }
        })
    }
}

/// Equal where both parts are finite; else each part of the same kind, or, where not `by_parts`, something not finite: α and
/// β that are real are complex to some libraries.
pub fn alike<T: Element>(found: &[T], expected: &[Parts], rows: usize, by_parts: bool) -> Outcome {
    let fine = |e: usize| {
        let (found, expected) = (found[e].two(), expected[e]);
        let finite = |parts: Parts| parts.iter().all(|part| part.is_finite());
        let by_parts = by_parts || finite(expected);
        if by_parts { (0..2).all(|part| same_kind(found[part], expected[part])) } else { !finite(found) }
    };
    all(found, expected.len(), rows, fine, |e| format!("{:?}", expected[e]))
}

/// Within √2 (γ(2L + 4) |α||A||B| + γ(4) |β||C|), as lanky-host's `gemm` says, for sums of `length` products.
pub fn within<T: Element>(found: &[T], expected: &[Near], (rows, _, k): (usize, usize, usize), length: f64) -> Outcome {
    let most = |e: usize| {
        let Near { product, kept, .. } = expected[e];
        bound::<T>(length) * product + bound::<T>(0.0) * kept
            + (2.0 * k as f64 + 4.0) * T::Part::ETA
            // The reference's own factors, in f64.
            + 8.0 * f64::EPSILON * (product + kept)
    };
    let fine = |e: usize| {
        let ([re, im], value) = (found[e].two(), expected[e].value);
        size([re - value[0], im - value[1]]) <= most(e)
    };
    all(found, expected.len(), rows, fine, |e| format!("{:?} +- {:e}", expected[e].value, most(e)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::equal_parts;
    use crate::{Image, PACKED};
    use num_complex::Complex;

    fn c(re: f64, im: f64) -> Complex<f64> {
        Complex::new(re, im)
    }

    #[test]
    fn a_wrong_element_and_a_nan_fail() {
        assert!(equal_parts(&[c(1.0, 2.0)], &[[1.0, 2.0]], 1).is_ok());
        assert!(
            equal_parts(&[c(1.0, 2.0)], &[[1.0, 3.0]], 1).is_err()
                && equal_parts(&[c(1.0, f64::NAN)], &[[1.0, f64::NAN]], 1).is_err()
        );
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for by_parts in [false, true] {
            assert!(alike(&[c(nan, inf)], &[[nan, inf]], 1, by_parts).is_ok());
            assert!(alike(&[c(1.0, 2.0)], &[[nan, inf]], 1, by_parts).is_err());
            assert!(alike(&[c(nan, 2.0)], &[[1.0, 2.0]], 1, by_parts).is_err());
        }
        assert!(alike(&[c(inf, inf)], &[[nan, inf]], 1, true).is_err());
        let near = |value| [Near { value, product: 1.0, kept: 0.0 }];
        let off = |x: Complex<f64>| within(&[x], &near([1.0, 1.0]), (1, 1, 1), 1e12);
        assert!(off(c(1.0, 1.0)).is_ok() && off(c(1.0001, 1.0)).is_ok());
        assert!(off(c(1.001, 1.0)).is_err() && off(c(1.0, 0.999)).is_err() && off(c(nan, 1.0)).is_err());
    }

    #[test]
    fn factors_are_complex_or_real_and_conjugates_of_their_operand() {
        assert_eq!(factor([1.0, -2.0], [3.0, 4.0]), [11.0, -2.0]);
        assert_eq!(factor([2.0, 0.0], [f64::INFINITY, 4.0]), [f64::INFINITY, 8.0]);
        let of = |value| Image::stored((1, 1), PACKED, 1, |_, _| value);
        let operands = [&of(c(1.0, 2.0)), &of(c(3.0, 4.0)), &of(c(f64::NAN, 0.0))];
        let product = |conj| Terms { operands, conj, factors: [[1.0, 0.0], [0.0; 2]] }.parts();
        assert_eq!(product([false, false]), [[-5.0, 10.0]]);
        assert_eq!((product([true, false]), product([false, true])), (vec![[11.0, -2.0]], vec![[11.0, 2.0]]));
        assert_eq!(product([true, true]), [[-5.0, -10.0]]);
        assert_eq!(dot(&[[1.0, 2.0]], &[[3.0, 4.0]]), ([-5.0, 10.0], 5.0_f64.sqrt() * 5.0));
    }
}
