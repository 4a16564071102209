//! What a test needs to know of an element type.

use bytemuck::Pod;
use num_traits::Float;
use std::fmt::Debug;

/// An element whose memory is watched.
pub trait Element: Pod + PartialEq + Debug + Send + Sync {
    /// The type of its parts: of a real one itself.
    type Part: Real;
    /// Of these parts; a real one has no other than the first.
    fn join(re: Self::Part, im: Self::Part) -> Self;
    /// Its parts; the second of a real one is 0.
    fn split(self) -> [Self::Part; 2];

    /// Its bits.
    fn bits(self) -> u128 {
        let [re, im] = self.split().map(|part| u128::from(part.word()));
        re | im << 64
    }
    /// A signalling NaN with a payload that arithmetic does not make.
    fn canary() -> Self {
        Self::join(Self::Part::CANARY, Self::Part::CANARY)
    }
    /// Bytes 0xA5: a small number, which spoils a sum where a NaN would be overlooked.
    fn filler() -> Self {
        Self::join(Self::Part::FILLER, Self::Part::FILLER)
    }
    /// Of two numbers, rounded; a real one of the first.
    fn of_two(re: f64, im: f64) -> Self {
        Self::join(Self::Part::of(re), Self::Part::of(im))
    }
    /// Its parts, exactly.
    fn two(self) -> [f64; 2] {
        self.split().map(Real::wide)
    }
}

/// A real element type.
pub trait Real: Element<Part = Self> + Float {
    /// Unit roundoff.
    const U: f64;
    /// Smallest subnormal.
    const ETA: f64;
    /// [`Element::canary`].
    const CANARY: Self;
    /// [`Element::filler`].
    const FILLER: Self;
    /// Its bits.
    fn word(self) -> u64;
    /// Rounded from f64.
    fn of(value: f64) -> Self;
    /// As f64, exactly.
    fn wide(self) -> f64;
}

impl Element for f32 {
    type Part = f32;
    fn join(re: f32, _im: f32) -> f32 {
        re
    }
    fn split(self) -> [f32; 2] {
        [self, 0.0]
    }
}

impl Real for f32 {
    const U: f64 = 1.0 / (1_u64 << 24) as f64;
    const ETA: f64 = 1.401_298_464_324_817e-45;
    const CANARY: f32 = f32::from_bits(0x7fa5_a5a5);
    const FILLER: f32 = f32::from_bits(0xa5a5_a5a5);
    fn word(self) -> u64 {
        self.to_bits().into()
    }
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Element for f64 {
    type Part = f64;
    fn join(re: f64, _im: f64) -> f64 {
        re
    }
    fn split(self) -> [f64; 2] {
        [self, 0.0]
    }
}

impl Real for f64 {
    const U: f64 = 1.0 / (1_u64 << 53) as f64;
    const ETA: f64 = 5e-324;
    const CANARY: f64 = f64::from_bits(0x7ff4_a5a5_a5a5_a5a5);
    const FILLER: f64 = f64::from_bits(0xa5a5_a5a5_a5a5_a5a5);
    fn word(self) -> u64 {
        self.to_bits()
    }
    fn of(value: f64) -> f64 {
        value
    }
    fn wide(self) -> f64 {
        self
    }
}

impl<R: Real> Element for num_complex::Complex<R> {
    type Part = R;
    fn join(re: R, im: R) -> Self {
        Self { re, im }
    }
    fn split(self) -> [R; 2] {
        [self.re, self.im]
    }
}

/// The kernels' own.
impl<R: Real> Element for cuda_std::Complex<R> {
    type Part = R;
    fn join(re: R, im: R) -> Self {
        Self { re, im }
    }
    fn split(self) -> [R; 2] {
        [self.re, self.im]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn canaries_are_signalling_and_fillers_are_numbers() {
        assert!(f32::canary().is_nan() && f64::canary().is_nan());
        assert_eq!((f32::canary().to_bits() >> 22 & 1, f64::canary().to_bits() >> 51 & 1), (0, 0), "quiet");
        assert!(f32::filler().is_finite() && f64::filler().is_finite());
        assert_eq!(f32::ETA, f64::from(f32::from_bits(1)));
        assert_eq!(f64::ETA, f64::from_bits(1));
    }

    #[test]
    fn each_bit_of_either_part_is_one_of_the_element() {
        let of = |re: u32, im: u32| Complex::new(f32::from_bits(re), f32::from_bits(im)).bits();
        let all: Vec<u128> = (0..32).flat_map(|bit| [of(1 << bit, 0), of(0, 1 << bit)]).collect();
        assert!(all.iter().all(|bits| bits.count_ones() == 1));
        assert_eq!(all.iter().fold(0, |sum, bits| sum | bits).count_ones(), 64);
        assert_eq!(Complex::<f64>::of_two(1.0, -2.0).two(), [1.0, -2.0]);
        assert_eq!(f32::of_two(0.1, 5.0).two(), [f64::from(0.1_f32), 0.0]);
    }
}
