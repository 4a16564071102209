//! Matrices whose every element follows from its place, so that rows of a product can be checked without keeping A.

use lanky::Scalar;
use model::Dtype;
use num_traits::{Float, ToPrimitive, cast};
use rayon::prelude::*;

/// Elements that one task makes: enough to be worth a task.
const GRAIN: usize = 1 << 14;

/// Sums of a block that are formed beside each other, so that they are vectors'.
const LANES: usize = 16;

/// A source of elements in [-1, 1).
#[derive(Clone, Copy, Debug)]
pub struct MadeUp {
    /// Tells one matrix from another.
    pub seed: u64,
}

impl MadeUp {
    /// Number `index` of all, with all the digits that T has: with fewer, sums would not be rounded, and nothing tested.
    pub fn element<T: Scalar>(self, index: u64) -> f64 {
        // Mixing as in SplitMix64 (Steele, Lea, Flood 2014): a bijection whose every input bit reaches every output bit.
        let mut bits = self.seed.wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let digits = if T::DTYPE.real() == Dtype::F32 { f32::MANTISSA_DIGITS } else { f64::MANTISSA_DIGITS };
        // Exact throughout: an integer of so many bits, scaled by a power of two, and a difference of its multiples.
        (bits >> (64 - digits)) as f64 / (1_u64 << (digits - 1)) as f64 - 1.0
    }

    /// Real and imaginary part of element `index`: two numbers of a complex one, the one number of a real one and 0.
    pub fn parts<T: Scalar>(self, index: u64) -> [f64; 2] {
        match parts::<T>() {
            1 => [self.element::<T>(index), 0.0],
            parts => [0, 1].map(|part| self.element::<T>(parts * index + part)),
        }
    }

    /// The elements from number `first` on.
    pub fn fill<T: Scalar>(self, first: u64, elements: &mut [T]) {
        let numbers: &mut [T::Real] = bytemuck::cast_slice_mut(elements);
        let first = first.wrapping_mul(parts::<T>());
        numbers.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, numbers)| {
            let start = first.wrapping_add(wide(chunk * GRAIN));
            for (number, index) in numbers.iter_mut().zip(start..) {
                *number = cast(self.element::<T>(index)).unwrap_or_else(T::Real::nan);
            }
        });
    }
}

/// Numbers an element.
fn parts<T: Scalar>() -> u64 {
    if T::DTYPE.is_complex() { 2 } else { 1 }
}

/// A sum of products with an error of about one rounding, whatever its length: Dot2 of Ogita, Rump and Oishi (2005),
/// Algorithm 5.3, and beside it the sum of magnitudes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dot {
    sum: f64,
    lost: f64,
    magnitude: f64,
}

impl Dot {
    pub fn add(&mut self, a: f64, b: f64) {
        let (product, product_lost) = exact_product(a, b);
        let (sum, sum_lost) = exact_sum(self.sum, product);
        self.sum = sum;
        self.lost += product_lost + sum_lost;
        self.magnitude += product.abs();
    }

    /// Adds the products of a block, or takes them off (`sign` -1), summed plainly in `LANES` sums: of a block of 1024 at most
    /// gamma(1024/16 + 5) of their magnitudes is lost, where `add`, ten times as slow, would lose next to nothing.
    pub fn add_block(&mut self, sign: f64, a: &[f64], b: &[f64]) {
        let (mut sums, mut magnitudes) = ([0.0; LANES], [0.0; LANES]);
        for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
            let lanes = sums.iter_mut().zip(&mut magnitudes);
            for ((a, b), (sum, magnitude)) in a.iter().zip(b).zip(lanes) {
                *sum += a * b;
                *magnitude += (a * b).abs();
            }
        }
        self.join(Dot { sum: sign * sums.iter().sum::<f64>(), lost: 0.0, magnitude: magnitudes.iter().sum() });
    }

    /// The sum of both.
    pub fn join(&mut self, other: Dot) {
        let (sum, sum_lost) = exact_sum(self.sum, other.sum);
        self.sum = sum;
        self.lost += other.lost + sum_lost;
        self.magnitude += other.magnitude;
    }

    pub fn value(self) -> f64 {
        self.sum + self.lost
    }

    /// Sum of |a b|.
    pub fn magnitude(self) -> f64 {
        self.magnitude
    }
}

/// a + b and what was rounded away (Knuth).
fn exact_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// a b and what was rounded away (Dekker): without a fused multiply-add, which is a slow call on old CPUs.
fn exact_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let lost = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
    (product, lost)
}

/// Two numbers of at most 26 bits each with the sum `a`.
fn halves(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a; // 2^27 + 1
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// Relative error that k fused or unfused multiply-adds in any order may have: the lesser of gamma_k = k u / (1 - k u)
/// (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1) and of what rounding errors without a
/// mean exceed with a probability of at most 2 k exp(-32), exp(8 sqrt(k) u + k u^2 / (1 - u)) - 1 (Higham and Mary, SIAM
/// J. Sci. Comput. 41, 2019, Theorem 2.4, lambda = 8).
///
/// The first alone grows as k, and sums of random numbers as its root: from k = 10^6 on no f32 would be wrong.
pub fn gamma<T: Scalar>(k: usize) -> f64 {
    let unit = T::Real::epsilon().to_f64().unwrap_or(1.0) / 2.0;
    let k = crate::say::float(k);
    let worst = if k * unit < 1.0 { k * unit / (1.0 - k * unit) } else { f64::INFINITY };
    worst.min((8.0 * k.sqrt() * unit + k * unit * unit / (1.0 - unit)).exp_m1())
}

/// At most `most` indices below `length`, among them the first and the last; off any grid of tiles.
pub fn spread(length: u64, most: u64) -> Vec<u64> {
    let count = most.min(length);
    let step = length / count.max(1);
    (0..count)
        .map(|place| match place {
            0 => 0,
            _ if place + 1 == count => length - 1,
            _ => step * place + place * 7 % step.max(1),
        })
        .collect()
}

/// usize to u64: no target that Rust has makes this fail.
pub fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_in_parts_is_filling_at_once() {
        let source = MadeUp { seed: 3 };
        let mut whole = vec![0.0_f64; 40_000];
        source.fill(0, &mut whole);
        let mut parts = vec![0.0_f64; 40_000];
        let (head, tail) = parts.split_at_mut(12_345);
        source.fill(0, head);
        source.fill(12_345, tail);
        assert_eq!(whole, parts);
        assert!(whole.iter().all(|x| (-1.0..1.0).contains(x)));
        let mean = whole.iter().sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.02, "mean {mean}");
    }

    #[test]
    fn the_formula_gives_the_very_elements() {
        let source = MadeUp { seed: 9 };
        let (mut single, mut double) = (vec![0.0_f32; 1000], vec![0.0_f64; 1000]);
        source.fill(7, &mut single);
        source.fill(7, &mut double);
        for (index, (&single, &double)) in (7..).zip(single.iter().zip(&double)) {
            assert_eq!(f64::from(single), source.element::<f32>(index));
            assert_eq!(double, source.element::<f64>(index));
        }
        assert!(double.iter().any(|x| f64::from(*x as f32) != *x), "f64 has no more digits than f32");
    }

    #[test]
    fn the_reference_keeps_what_a_plain_sum_loses() {
        let near_1 = 1.0 + 2.0_f64.powi(-30);
        let terms = [(1e16, 1.0), (1.0, 1.0), (-1e16, 1.0), (near_1, near_1)];
        // All in one sum, and in two that are joined.
        for first in 0..=terms.len() {
            let [mut dot, mut rest] = [Dot::default(); 2];
            terms[..first].iter().for_each(|(a, b)| dot.add(*a, *b));
            terms[first..].iter().for_each(|(a, b)| rest.add(*a, *b));
            dot.join(rest);
            assert_eq!((dot.value(), dot.magnitude()), (2.0 + 2.0_f64.powi(-29), 2e16 + 2.0), "{first}");
        }
    }

    #[test]
    fn blocks_are_sums_of_their_products() {
        let source = MadeUp { seed: 5 };
        let (mut a, mut b) = (vec![0.0_f64; 1024], vec![0.0_f64; 1024]);
        source.fill(0, &mut a);
        source.fill(4096, &mut b);
        for length in [0, 1, 15, 16, 17, 1000, 1024] {
            for sign in [1.0, -1.0] {
                // On top of what was there.
                let mut dot = Dot::default();
                dot.add(3.0, 0.25);
                let mut block = dot;
                block.add_block(sign, &a[..length], &b[..length]);
                a[..length].iter().zip(&b).for_each(|(a, b)| dot.add(sign * a, *b));
                let bound = 69.0 * f64::EPSILON / 2.0 * dot.magnitude();
                assert!((block.value() - dot.value()).abs() <= bound, "{length}");
                assert!((block.magnitude() - dot.magnitude()).abs() <= bound, "{length}");
            }
        }
    }

    #[test]
    fn spreads_are_distinct_sorted_and_include_both_ends() {
        for length in [1, 2, 3, 31, 32, 33, 63, 64, 65, 100, 127, 128, 1000, 20480] {
            for most in [8, 32, 64] {
                let spread = spread(length, most);
                assert!(spread.windows(2).all(|pair| pair[0] < pair[1]), "{length}: {spread:?}");
                assert_eq!((spread[0], spread[spread.len() - 1]), (0, length - 1));
                assert_eq!(wide(spread.len()), length.min(most));
            }
        }
        assert!(spread(0, 8).is_empty());
    }

    #[test]
    fn gamma_is_higham_s() {
        assert_eq!(gamma::<f64>(1), 2.0_f64.powi(-53) / (1.0 - 2.0_f64.powi(-53)));
        // 8 · 2^12 · 2^-24 from there on, where the worst case is beyond 1.
        let likely = gamma::<f32>(1 << 24);
        assert!((likely / 2.0_f64.powi(-9) - 1.0).abs() <= 2e-3, "{likely}");
        // Both are alike at k = 64.
        assert!(gamma::<f32>(63) < 64.0 * 2.0_f64.powi(-24) && gamma::<f32>(256) < 200.0 * 2.0_f64.powi(-24));
    }
}
