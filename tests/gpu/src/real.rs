//! What a check needs to know of an element type, and numbers made from a position.

use host::{Complex, Scalar};

/// An element whose memory is watched.
pub trait Element: Scalar {
    /// Its bits.
    fn bits(self) -> u128;
    /// A signalling NaN with a payload that arithmetic does not make.
    fn canary() -> Self;
    /// Bytes 0xA5: a small number, which spoils a sum where a NaN would be overlooked.
    fn filler() -> Self;
    /// Of two numbers, rounded; a real one of the first.
    fn of_two(re: f64, im: f64) -> Self;
    /// Its parts, exactly.
    fn two(self) -> [f64; 2];
}

impl<R: Real> Element for Complex<R>
where
    Complex<R>: Scalar,
{
    fn bits(self) -> u128 {
        self.re.bits() | self.im.bits() << 64
    }
    fn canary() -> Self {
        Complex::new(R::canary(), R::canary())
    }
    fn filler() -> Self {
        Complex::new(R::filler(), R::filler())
    }
    fn of_two(re: f64, im: f64) -> Self {
        Complex::new(R::of(re), R::of(im))
    }
    fn two(self) -> [f64; 2] {
        [self.re.wide(), self.im.wide()]
    }
}

/// A real element type as checks see it.
pub trait Real: Element + num_traits::Float {
    /// Unit roundoff.
    const U: f64;
    /// Smallest subnormal.
    const ETA: f64;
    /// Largest exponent of made-up factors whose sums of products neither overflow nor vanish.
    const EXPONENT: i64;
    /// Rounded from f64.
    fn of(value: f64) -> Self;
    /// As f64, exactly.
    fn wide(self) -> f64;
}

impl Real for f32 {
    const U: f64 = 1.0 / (1_u64 << 24) as f64;
    const ETA: f64 = 1.401_298_464_324_817e-45;
    const EXPONENT: i64 = 30;
    fn of(value: f64) -> Self {
        value as f32
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f32 {
    fn bits(self) -> u128 {
        u128::from(self.to_bits())
    }
    fn canary() -> Self {
        f32::from_bits(0x7fa5_a5a5)
    }
    fn filler() -> Self {
        f32::from_bits(0xa5a5_a5a5)
    }
    fn of_two(re: f64, _im: f64) -> Self {
        Self::of(re)
    }
    fn two(self) -> [f64; 2] {
        [self.wide(), 0.0]
    }
}

impl Real for f64 {
    const U: f64 = 1.0 / (1_u64 << 53) as f64;
    const ETA: f64 = 5e-324;
    const EXPONENT: i64 = 60;
    fn of(value: f64) -> Self {
        value
    }
    fn wide(self) -> f64 {
        self
    }
}

impl Element for f64 {
    fn bits(self) -> u128 {
        u128::from(self.to_bits())
    }
    fn canary() -> Self {
        f64::from_bits(0x7ff4_a5a5_a5a5_a5a5)
    }
    fn filler() -> Self {
        f64::from_bits(0xa5a5_a5a5_a5a5_a5a5)
    }
    fn of_two(re: f64, _im: f64) -> Self {
        Self::of(re)
    }
    fn two(self) -> [f64; 2] {
        [self.wide(), 0.0]
    }
}

/// The product of two numbers by their parts.
pub fn times([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// Bits that depend on a seed and a position alone (the mixer of splitmix64): the same everywhere, in any order.
pub fn hash(seed: u64, i: usize, j: usize) -> u64 {
    let at = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mut z = at.wrapping_add(seed.wrapping_add(1).wrapping_mul(0x1656_67b1_9e37_79f9));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An integer in -bound..=bound.
pub fn integer(seed: u64, i: usize, j: usize, bound: u64) -> f64 {
    (hash(seed, i, j) % (2 * bound + 1)) as f64 - bound as f64
}

/// Uniform in (-1, 1).
pub fn unit(seed: u64, i: usize, j: usize) -> f64 {
    (hash(seed, i, j) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_are_signalling_and_fillers_are_numbers() {
        assert!(f32::canary().is_nan() && f64::canary().is_nan());
        assert_eq!((f32::canary().to_bits() >> 22 & 1, f64::canary().to_bits() >> 51 & 1), (0, 0), "quiet");
        assert!(f32::filler().is_finite() && f64::filler().is_finite());
        assert_eq!(f32::ETA, f64::from(f32::from_bits(1)));
        assert_eq!(f64::ETA, f64::from_bits(1));
    }

    #[test]
    fn numbers_depend_on_every_part_of_the_position() {
        assert_ne!(hash(1, 2, 3), hash(1, 3, 2));
        assert_ne!(hash(1, 2, 3), hash(2, 2, 3));
        let all: Vec<f64> = (0..1000).map(|i| integer(7, i, 0, 3)).collect();
        assert!(all.iter().all(|v| v.abs() <= 3.0) && all.contains(&-3.0) && all.contains(&3.0));
        assert!((0..1000).all(|i| unit(7, i, 1).abs() <= 1.0));
    }
}
