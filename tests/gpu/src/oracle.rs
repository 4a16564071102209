//! What a product must be: exact for integers, by kind for NaN and infinities, within a bound for the rest.

use crate::case::Case;
use crate::real::Real;
use model::Choice;
use model::launch::{part_of_k, tiling};
use rayon::prelude::*;

/// Multiply-adds for which it pays to ask another thread.
const STEPS_A_TASK: usize = 1 << 15;

/// A and B, arranged so that an element of C is a product of two slices.
struct Lines<E> {
    m: usize,
    n: usize,
    k: usize,
    rows: Vec<E>,
    cols: Vec<E>,
}

impl<E: Copy + Send + Sync> Lines<E> {
    fn new<T: Real>(case: &Case<T>, of: impl Fn(f64) -> E + Sync) -> Self {
        let (m, n, k) = case.spec.size;
        let rows = (0..m * k).into_par_iter().map(|e| of(case.a.get(e / k, e % k).wide())).collect();
        let cols = (0..n * k).map(|e| of(case.b.get(e % k, e / k).wide())).collect();
        Lines { m, n, k, rows, cols }
    }

    /// `of(row of A, column of B, i, j)` for all elements, down the columns.
    fn map<R: Send>(&self, of: impl Fn(&[E], &[E], usize, usize) -> R + Sync) -> Vec<R> {
        let k = self.k;
        let element = |e: usize| (e % self.m, e / self.m);
        (0..self.m * self.n)
            .into_par_iter()
            .with_min_len((STEPS_A_TASK / k.max(1)).max(1))
            .map(element)
            .map(|(i, j)| of(&self.rows[i * k..][..k], &self.cols[j * k..][..k], i, j))
            .collect()
    }
}

/// C for operands and C of integers, α and β multiples of 1/2; computed in integers.
pub fn exact<T: Real>(case: &Case<T>) -> Vec<f64> {
    let (alpha, beta) = ((case.spec.alpha * 2.0) as i64, (case.spec.beta * 2.0) as i64);
    Lines::new(case, |x| x as i32).map(|row, col, i, j| {
        let sum = dot_of_integers(row, col);
        let old = if beta == 0 { 0 } else { case.c.get(i, j).wide() as i64 };
        (alpha * sum + beta * old) as f64 / 2.0
    })
}

/// Σ aᵢ bᵢ, never rounded.
pub fn dot_of_integers(a: &[i32], b: &[i32]) -> i64 {
    a.iter().zip(b).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum()
}

/// C in f64 by the definition, for data with NaN or infinities among small integers: right in kind everywhere, and exact
/// where it is finite. α = 0, β = 0 and k = 0 mean what they do in BLAS.
pub fn by_definition<T: Real>(case: &Case<T>) -> Vec<f64> {
    let (alpha, beta, k) = (case.spec.alpha, case.spec.beta, case.spec.size.2);
    Lines::new(case, |x| x).map(|row, col, i, j| {
        let old = if beta == 0.0 { 0.0 } else { beta * case.c.get(i, j).wide() };
        if alpha == 0.0 || k == 0 {
            return old;
        }
        let sum: f64 = row.iter().zip(col).map(|(a, b)| a * b).sum();
        if beta == 0.0 { alpha * sum } else { alpha * sum + old }
    })
}

/// An element of C to twice the precision of f64, and the sizes that bound errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// The nearest f64.
    pub value: f64,
    /// What is missing in it.
    pub rest: f64,
    /// |α| |A||B|.
    pub size: f64,
    /// |β| |C₀|.
    pub old: f64,
}

impl Near {
    /// How far `found` is.
    pub fn error(&self, found: f64) -> f64 {
        (found - self.value - self.rest).abs()
    }

    /// γ(L+2) |α| |A||B| + γ(2) |β| |C₀| + (k+2) η for chains of `length`.
    ///
    /// # Source
    /// Higham, Accuracy and Stability of Numerical Algorithms, Sect. 3.5.
    pub fn bound<T: Real>(&self, length: f64, k: usize) -> f64 {
        gamma(length + 2.0, T::U) * self.size + self.little::<T>(k)
    }

    /// The size below which errors usually stay: as the bound, with 6 √L u in place of γ.
    pub fn usual<T: Real>(&self, length: f64, k: usize) -> f64 {
        6.0 * length.sqrt() * T::U * self.size + self.little::<T>(k)
    }

    fn little<T: Real>(&self, k: usize) -> f64 {
        gamma(2.0, T::U) * self.old + (k as f64 + 2.0) * T::ETA
    }
}

/// n u / (1 − n u); infinite where that says nothing.
pub fn gamma(n: f64, u: f64) -> f64 {
    if n * u < 1.0 { n * u / (1.0 - n * u) } else { f64::INFINITY }
}

/// The longest chain of roundings of a sum over k: the longest part and the slots behind it.
pub fn chain(choice: Option<&Choice>, k: usize) -> f64 {
    let Some(choice) = choice else { return k as f64 };
    let step = tiling(choice.variant, choice.problem.m, choice.problem.n).k_step;
    let k = u32::try_from(k).unwrap_or(u32::MAX);
    let part = |index| {
        let (start, end) = part_of_k(k, step, choice.splits, index);
        end - start
    };
    let longest = (0..choice.splits).map(part).max().unwrap_or(k);
    f64::from(longest) + f64::from(choice.splits - 1)
}

/// C to twice the precision of f64.
///
/// # Source
/// The compensated dot product is Ogita, Rump and Oishi's Dot2 (SIAM J. Sci. Comput. 26, 2005): its own error is of the
/// size of u² |A||B|.
pub fn near<T: Real>(case: &Case<T>) -> Vec<Near> {
    let (alpha, beta) = (case.spec.alpha, case.spec.beta);
    Lines::new(case, |x| x).map(|row, col, i, j| {
        let (sum, rest) = dot2(row, col);
        let size: f64 = row.iter().zip(col).map(|(a, b)| (a * b).abs()).sum();
        let old = if beta == 0.0 { 0.0 } else { case.c.get(i, j).wide() };
        let (product, product_rest) = two_product(alpha, sum);
        let (scaled, scaled_rest) = two_product(beta, old);
        let (value, sum_rest) = two_sum(product, scaled);
        let rest = sum_rest + (product_rest + alpha * rest + scaled_rest);
        Near { value, rest, size: alpha.abs() * size, old: (beta * old).abs() }
    })
}

/// (s, e) with s + e = a + b exactly.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// (p, e) with p + e = a b exactly, but for underflow.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// Σ aᵢ bᵢ as the nearest f64 and what is missing in it.
pub fn dot2(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mut sum, mut rest) = (0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        let (product, product_rest) = two_product(a, b);
        let (next, sum_rest) = two_sum(sum, product);
        sum = next;
        rest += product_rest + sum_rest;
    }
    two_sum(sum, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Spec;
    use crate::lab::{Lab, Outcome};
    use host::Device;
    use model::{Dtype, Machine, Problem, choose};

    #[test]
    fn the_compensated_dot_keeps_what_plain_sums_lose() {
        // 1e16 + 1 - 1e16, and (1 + 2^-30)^2 - 1, whose last bit is 2^-60.
        assert_eq!(dot2(&[1e16, 1.0, -1e16], &[1.0, 1.0, 1.0]), (1.0, 0.0));
        let x = 1.0 + (-30_f64).exp2();
        let (value, rest) = dot2(&[x, -1.0], &[x, 1.0]);
        assert_eq!((value, rest), ((-29_f64).exp2() + (-60_f64).exp2(), 0.0));
    }

    #[test]
    fn the_oracles_agree_on_integers() -> Outcome {
        let lab = Lab::new(Device::cpu(), 8)?;
        for (alpha, beta) in [(1.0, 0.0), (-1.0, 0.5), (0.5, -1.0), (0.0, 0.5)] {
            let case = Spec { alpha, beta, ..Spec::varied((5, 3, 7), 4) }.integers::<f32>(&lab)?;
            let exact = exact(&case);
            assert_eq!(exact, by_definition(&case));
            let near: Vec<f64> = near(&case).iter().map(|b| b.value + b.rest).collect();
            assert_eq!(exact, near);
        }
        Ok(())
    }

    #[test]
    fn the_oracles_are_right_where_it_can_be_seen() -> Outcome {
        let lab = Lab::new(Device::cpu(), 8)?;
        let spec = Spec { alpha: 0.5, beta: -1.0, ..Spec::plain((2, 1, 2)) };
        let case = spec.make::<f64>(&lab, |i, l| (1 + i + 2 * l) as f64, |l, _| (5 + l) as f64, |i, _| i as f64)?;
        // A = 1 3; 2 4, B = 5; 6, C = 0; 1.
        assert_eq!(exact(&case), [11.5, 16.0]);
        Ok(())
    }

    #[test]
    fn chains_are_parts_and_slots() -> Result<(), model::Refusal> {
        assert_eq!(chain(None, 100), 100.0);
        let p = Problem::column_major(Dtype::F64, 128, 4, 1_000_000);
        let choice = choose(&p, &Machine::H200, None)?;
        let length = chain(Some(&choice), 1_000_000);
        let splits = f64::from(choice.splits);
        assert!(splits > 1.0 && length >= 1e6 / splits + splits - 1.0 && length < 1e6 / splits + splits + 600.0);
        assert_eq!(gamma(2.0, 0.5), f64::INFINITY);
        Ok(())
    }
}
