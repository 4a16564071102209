//! What a product must be: exact for integers, by kind for NaN and infinities, within a bound for the rest.

use crate::{Element, Image, Real};
use model::Variant;
use model::launch::{part_of_k, tiling};
use rayon::prelude::*;

/// Multiply-adds for which it pays to ask another thread.
const STEPS_A_TASK: usize = 1 << 15;

/// C ← α op(A) op(B) + β C, by what A, B and C were before.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'t, T> {
    /// A, B and C.
    pub operands: [&'t Image<T>; 3],
    /// Whether the conjugates of A, and of B, are multiplied.
    pub conj: [bool; 2],
    /// α and β by their parts.
    pub factors: [[f64; 2]; 2],
}

impl<'t, T: Element> Terms<'t, T> {
    /// A B, with real α and β.
    pub fn new(operands: [&'t Image<T>; 3], factors: [f64; 2]) -> Self {
        Terms { operands, conj: [false; 2], factors: factors.map(|factor| [factor, 0.0]) }
    }

    /// m, n and k.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.operands[2].rows, self.operands[2].cols, self.operands[0].cols)
    }

    /// `of(row of A, column of B, element of C)` for all elements, down the columns.
    pub(crate) fn map<E: Copy + Send + Sync, R: Send>(
        &self,
        (read_a, read_b): (impl Fn(T) -> E + Sync, impl Fn(T) -> E),
        of: impl Fn(&[E], &[E], T) -> R + Sync,
    ) -> Vec<R> {
        let ((m, n, k), [a, b, c]) = (self.sizes(), self.operands);
        let rows: Vec<E> = (0..m * k).into_par_iter().map(|e| read_a(a.get(e / k, e % k))).collect();
        let cols: Vec<E> = (0..n * k).map(|e| read_b(b.get(e % k, e / k))).collect();
        let one = |e: usize| {
            let (i, j) = (e % m, e / m);
            of(&rows[i * k..][..k], &cols[j * k..][..k], c.get(i, j))
        };
        (0..m * n).into_par_iter().with_min_len((STEPS_A_TASK / k.max(1)).max(1)).map(one).collect()
    }
}

impl<T: Real> Terms<'_, T> {
    fn real_factors(&self) -> [f64; 2] {
        self.factors.map(|[re, _]| re)
    }

    /// C for operands and C of integers, α and β multiples of 1/2; computed in integers. Where α or β is 0, what is not read may be NaN.
    pub fn exact(&self) -> Vec<f64> {
        let [alpha, beta] = self.real_factors().map(|factor| (factor * 2.0) as i64);
        let read = |x: T| x.wide() as i32;
        self.map((read, read), |row, col, old| {
            let old = if beta == 0 { 0 } else { old.wide() as i64 };
            (alpha * dot_of_integers(row, col) + beta * old) as f64 / 2.0
        })
    }

    /// C in f64 by the definition, for data with NaN or infinities among small integers: right in kind everywhere, and exact
    /// where it is finite. α = 0, β = 0 and k = 0 mean what they do in BLAS.
    pub fn by_definition(&self) -> Vec<f64> {
        let ([alpha, beta], k) = (self.real_factors(), self.sizes().2);
        self.map((T::wide, T::wide), |row, col, old| {
            let old = if beta == 0.0 { 0.0 } else { beta * old.wide() };
            if alpha == 0.0 || k == 0 {
                return old;
            }
            let sum: f64 = row.iter().zip(col).map(|(a, b)| a * b).sum();
            if beta == 0.0 { alpha * sum } else { alpha * sum + old }
        })
    }

    /// C to twice the precision of f64; where α or β is 0, what is not read may be NaN.
    pub fn near(&self) -> Vec<Near> {
        let [alpha, beta] = self.real_factors();
        self.map((T::wide, T::wide), |row, col, old| {
            let (row, col) = if alpha == 0.0 { (&row[..0], &col[..0]) } else { (row, col) };
            let (sum, rest) = dot2(row, col);
            let size: f64 = row.iter().zip(col).map(|(a, b)| (a * b).abs()).sum();
            let old = if beta == 0.0 { 0.0 } else { old.wide() };
            let (product, product_rest) = two_product(alpha, sum);
            let (scaled, scaled_rest) = two_product(beta, old);
            let (value, sum_rest) = two_sum(product, scaled);
            let rest = sum_rest + (product_rest + alpha * rest + scaled_rest);
            Near { value, rest, size: alpha.abs() * size, old: (beta * old).abs() }
        })
    }
}

/// Σ aᵢ bᵢ, never rounded.
pub fn dot_of_integers(a: &[i32], b: &[i32]) -> i64 {
    a.iter().zip(b).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum()
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

/// The longest chain of roundings of a sum over k that an entry adds in so many parts: the longest part and the slots behind it.
pub fn chain(variant: &Variant, (m, n, k): (u64, u64, u32), splits: u32) -> f64 {
    let step = tiling(variant, m, n).k_step;
    let part = |index| {
        let (start, end) = part_of_k(k, step, splits, index);
        end - start
    };
    let length = (0..splits).map(part).max().unwrap_or(k);
    f64::from(splits - 1) + if variant.splits_f32() { f64::from(length) / 16.0 + SPLIT } else { length.into() }
}

/// Roundings of f32 that are as much as what multiplying in parts loses: of a product a b 2⁻²¹ |a b|, which is eight of them, of the six sums of each 16
/// steps, which are rounded towards 0 and to a bit less than f32 has, four each, and two on the way to C. Sums of 16 steps are added as any others.
const SPLIT: f64 = 34.0;

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
///
/// # Source
/// The compensated dot product is Ogita, Rump and Oishi's Dot2 (SIAM J. Sci. Comput. 26, 2005): its own error is of the
/// size of u² |A||B|.
pub fn dot2(a: &[f64], b: &[f64]) -> (f64, f64) {
    dot2_of(a.iter().copied().zip(b.iter().copied()))
}

/// The same of pairs.
pub fn dot2_of(products: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (sum, rest) = products.fold((0.0, 0.0), |(sum, rest), (a, b)| {
        let (product, product_rest) = two_product(a, b);
        let (next, sum_rest) = two_sum(sum, product);
        (next, rest + (product_rest + sum_rest))
    });
    two_sum(sum, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::integer;
    use crate::{PACKED, Storage};
    use model::{Dtype, Machine, Problem, VARIANTS, choose};

    fn integers(size: (usize, usize, usize), storage: Storage) -> [Image<f32>; 3] {
        let of = |seed, rows, cols| Image::stored((rows, cols), storage, 4, |i, j| integer(seed, i, j, 3) as f32);
        [of(1, size.0, size.2), of(2, size.2, size.1), of(3, size.0, size.1)]
    }

    #[test]
    fn the_compensated_dot_keeps_what_plain_sums_lose() {
        // 1e16 + 1 - 1e16, and (1 + 2^-30)^2 - 1, whose last bit is 2^-60.
        assert_eq!(dot2(&[1e16, 1.0, -1e16], &[1.0, 1.0, 1.0]), (1.0, 0.0));
        let x = 1.0 + (-30_f64).exp2();
        let (value, rest) = dot2(&[x, -1.0], &[x, 1.0]);
        assert_eq!((value, rest), ((-29_f64).exp2() + (-60_f64).exp2(), 0.0));
    }

    #[test]
    fn the_oracles_agree_on_integers() {
        for (index, factors) in [[1.0, 0.0], [-1.0, 0.5], [0.5, -1.0], [0.0, 0.5]].into_iter().enumerate() {
            let [a, b, c] = integers((5, 3, 7), Storage::new(index % 2 > 0, index, 1));
            let terms = Terms::new([&a, &b, &c], factors);
            let exact = terms.exact();
            assert_eq!(exact, terms.by_definition());
            let near: Vec<f64> = terms.near().iter().map(|b| b.value + b.rest).collect();
            assert_eq!(exact, near);
            let nan = |of: &Image<f32>| Image::stored((of.rows, of.cols), PACKED, 4, |_, _| f32::NAN);
            let unread = if factors[0] == 0.0 { [&nan(&a), &nan(&b), &c] } else { [&a, &b, &nan(&c)] };
            if factors.contains(&0.0) {
                let terms = Terms::new(unread, factors);
                assert!(terms.exact() == exact && terms.by_definition() == exact);
                assert!(terms.near().iter().zip(&exact).all(|(near, exact)| near.value + near.rest == *exact));
            }
        }
    }

    #[test]
    fn the_oracles_are_right_where_it_can_be_seen() {
        let of = |rows, cols, value: fn(usize, usize) -> f64| Image::stored((rows, cols), PACKED, 1, value);
        // A = 1 3; 2 4, B = 5; 6, C = 0; 1.
        let (a, b) = (of(2, 2, |i, l| (1 + i + 2 * l) as f64), of(2, 1, |l, _| (5 + l) as f64));
        assert_eq!(Terms::new([&a, &b, &of(2, 1, |i, _| i as f64)], [0.5, -1.0]).exact(), [11.5, 16.0]);
    }

    #[test]
    fn chains_are_parts_and_slots() -> Result<(), model::Refusal> {
        let p = Problem::column_major(Dtype::F64, 128, 4, 1_000_000);
        let choice = choose(&p, &Machine::H200, None)?;
        let length = chain(choice.variant, (128, 4, 1_000_000), choice.splits);
        let splits = f64::from(choice.splits);
        assert!(splits > 1.0 && length >= 1e6 / splits + splits - 1.0 && length < 1e6 / splits + splits + 600.0);
        assert_eq!(gamma(2.0, 0.5), f64::INFINITY);
        let split = VARIANTS.iter().find(|v| v.splits_f32()).expect("an entry");
        assert_eq!(chain(split, (128, 4, 1600), 1), 134.0);
        Ok(())
    }
}
