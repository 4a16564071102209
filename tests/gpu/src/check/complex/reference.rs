//! What a complex product must be: by the definition, exactly on integers, and to twice the precision of f64.

use super::product::Product;
use crate::lab::Outcome;
use crate::oracle::{dot2, gamma};
use crate::real::{Real, times};
use host::{Complex, Scalar};
use rayon::prelude::*;

/// Real and imaginary part.
type Parts = [f64; 2];

/// A factor without an imaginary part multiplies as a real number.
fn factor(by: Parts, x: Parts) -> Parts {
    if by[1] == 0.0 { x.map(|part| by[0] * part) } else { times(by, x) }
}

fn size([re, im]: Parts) -> f64 {
    re.hypot(im)
}

/// op(A) row by row, op(B) column by column, and C, in f64.
struct Lines {
    rows: Vec<Vec<Parts>>,
    cols: Vec<Vec<Parts>>,
    old: Vec<Parts>,
    alpha: Parts,
    beta: Parts,
}

impl Lines {
    fn new<R: Real>(product: &Product<R>) -> Lines
    where
        Complex<R>: Scalar<Real = R>,
    {
        let ((m, n, k), [conj_a, conj_b]) = (product.spec.size, product.spec.conj);
        let wide = |x: Complex<R>, conj: bool| [x.re.wide(), if conj { -x.im.wide() } else { x.im.wide() }];
        let beta = [product.spec.beta.0, product.spec.beta.1];
        let old = |e: usize| wide(product.c.get(e % m, e / m), false);
        Lines {
            rows: (0..m).map(|i| (0..k).map(|l| wide(product.a.get(i, l), conj_a)).collect()).collect(),
            cols: (0..n).map(|j| (0..k).map(|l| wide(product.b.get(l, j), conj_b)).collect()).collect(),
            old: (0..m * n).map(|e| if beta == [0.0; 2] { [0.0; 2] } else { old(e) }).collect(),
            alpha: [product.spec.alpha.0, product.spec.alpha.1],
            beta,
        }
    }

    /// Down the columns: of a row, a column, and what C held.
    fn map<V: Send>(&self, of: impl Fn(&[Parts], &[Parts], Parts) -> V + Sync) -> Vec<V> {
        let m = self.rows.len();
        let one = |e: usize| of(&self.rows[e % m], &self.cols[e / m], self.old[e]);
        (0..m * self.cols.len()).into_par_iter().map(one).collect()
    }

    /// β C, nothing where β = 0.
    fn kept(&self, old: Parts) -> Parts {
        if self.beta == [0.0; 2] { [0.0; 2] } else { factor(self.beta, old) }
    }
}

/// C in f64 by the definition: exact for small integers, and right in kind where something is not finite.
pub fn by_definition<R: Real>(product: &Product<R>) -> Vec<Parts>
where
    Complex<R>: Scalar<Real = R>,
{
    let lines = Lines::new(product);
    lines.map(|row, col, old| {
        let sum = row.iter().zip(col).fold([0.0; 2], |sum, (&a, &b)| {
            let product = times(a, b);
            [sum[0] + product[0], sum[1] + product[1]]
        });
        let (product, kept) = (factor(lines.alpha, sum), lines.kept(old));
        [product[0] + kept[0], product[1] + kept[1]]
    })
}

/// The same of integers, whose sums are exact in any order.
pub fn exact<R: Real>(product: &Product<R>) -> Vec<Parts>
where
    Complex<R>: Scalar<Real = R>,
{
    by_definition(product)
}

/// β C alone.
pub fn scaled<R: Real>(product: &Product<R>) -> Vec<Parts>
where
    Complex<R>: Scalar<Real = R>,
{
    let lines = Lines::new(product);
    lines.map(|_, _, old| lines.kept(old))
}

/// An element, and the sizes that bound errors.
pub struct Near {
    value: Parts,
    /// |α| |A||B| and |β| |C|.
    product: f64,
    kept: f64,
}

/// C to nearly twice the precision of f64, but for α and β.
pub fn near<R: Real>(product: &Product<R>) -> Vec<Near>
where
    Complex<R>: Scalar<Real = R>,
{
    let lines = Lines::new(product);
    lines.map(|row, col, old| {
        // Of 2k products of reals each: (re, -im) with (re, im), and (re, im) with (im, re).
        let flat = |line: &[Parts], sign: f64| line.iter().flat_map(|p| [p[0], sign * p[1]]).collect::<Vec<f64>>();
        let turned: Vec<f64> = col.iter().flat_map(|p| [p[1], p[0]]).collect();
        let sum =
            [dot2(&flat(row, -1.0), &flat(col, 1.0)), dot2(&flat(row, 1.0), &turned)].map(|(sum, rest)| sum + rest);
        let (scaled, kept) = (factor(lines.alpha, sum), lines.kept(old));
        let sizes: f64 = row.iter().zip(col).map(|(&a, &b)| size(a) * size(b)).sum();
        Near {
            value: [scaled[0] + kept[0], scaled[1] + kept[1]],
            product: size(lines.alpha) * sizes,
            kept: size(lines.beta) * size(old),
        }
    })
}

fn all<R: Real>(
    found: &[Complex<R>],
    expected: usize,
    rows: usize,
    fine: impl Fn(usize, Parts) -> bool,
    text: impl Fn(usize) -> String,
) -> Outcome {
    if found.len() != expected {
        return Err(format!("{} elements, expected {expected}", found.len()).into());
    }
    let wrong: Vec<usize> = (0..expected).filter(|&e| !fine(e, [found[e].re.wide(), found[e].im.wide()])).collect();
    let Some(&first) = wrong.first() else { return Ok(()) };
    let (i, j) = (first % rows.max(1), first / rows.max(1));
    let (count, found) = (wrong.len(), found[first]);
    Err(format!("{count} of {expected} elements are wrong, the first ({i}, {j}): {}, found {found:?}", text(first))
        .into())
}

/// Equal as numbers.
pub fn equal<R: Real>(found: &[Complex<R>], expected: &[Parts], rows: usize) -> Outcome {
    all(found, expected.len(), rows, |e, found| found == expected[e], |e| format!("expected {:?}", expected[e]))
}

/// Equal where both parts are finite; else each part of the same kind, or, where not `by_parts`, something not finite: α and
/// β that are real are complex to some libraries.
pub fn alike<R: Real>(found: &[Complex<R>], expected: &[Parts], rows: usize, by_parts: bool) -> Outcome {
    let same = |found: f64, expected: f64| found == expected || (found.is_nan() && expected.is_nan());
    let fine = |e: usize, found: Parts| {
        let expected = expected[e];
        let finite = |parts: Parts| parts.iter().all(|part| part.is_finite());
        let by_parts = by_parts || finite(expected);
        if by_parts { (0..2).all(|part| same(found[part], expected[part])) } else { !finite(found) }
    };
    all(found, expected.len(), rows, fine, |e| format!("expected {:?}", expected[e]))
}

/// Within √2 (γ(2L + 4) |α||A||B| + γ(4) |β||C|), as [`host::gemm`] says, for sums of `length` products.
pub fn within<R: Real>(
    found: &[Complex<R>],
    expected: &[Near],
    (rows, _, k): (usize, usize, usize),
    length: f64,
) -> Outcome {
    let bound = |e: usize| {
        let Near { product, kept, .. } = expected[e];
        2.0_f64.sqrt() * (gamma(2.0 * length + 4.0, R::U) * product + gamma(4.0, R::U) * kept)
            + (2.0 * k as f64 + 4.0) * R::ETA
            // The reference's own factors, in f64.
            + 8.0 * f64::EPSILON * (product + kept)
    };
    let error = |e: usize, [re, im]: Parts| size([re - expected[e].value[0], im - expected[e].value[1]]);
    let fine = |e: usize, found: Parts| error(e, found) <= bound(e);
    all(found, expected.len(), rows, fine, |e| format!("expected {:?} +- {:e}", expected[e].value, bound(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(re: f64, im: f64) -> Complex<f64> {
        Complex::new(re, im)
    }

    #[test]
    fn a_wrong_element_and_a_nan_fail() {
        assert!(equal(&[c(1.0, 2.0)], &[[1.0, 2.0]], 1).is_ok());
        assert!(
            equal(&[c(1.0, 2.0)], &[[1.0, 3.0]], 1).is_err()
                && equal(&[c(1.0, f64::NAN)], &[[1.0, f64::NAN]], 1).is_err()
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
    fn factors_are_complex_or_real() {
        assert_eq!(factor([1.0, -2.0], [3.0, 4.0]), [11.0, -2.0]);
        assert_eq!(factor([2.0, 0.0], [f64::INFINITY, 4.0]), [f64::INFINITY, 8.0]);
    }
}
