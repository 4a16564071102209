//! [`Complex`]: complex elements.

use crate::{Scalar, Signs};

/// A complex number: the real part and behind it the imaginary one, as in C, Fortran and `num_complex`.
///
/// In memory it is one access: of `Complex<f32>` 8 bytes, of `Complex<f64>` 16, aligned to as many, which is more than the
/// type itself asks for; CUDA's own complex types ask for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T> Complex<T> {
    /// re + im·i.
    #[inline(always)]
    pub const fn new(re: T, im: T) -> Self {
        Complex { re, im }
    }
}

// SAFETY: both parts are zero where all bytes are.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: bytemuck::Zeroable> bytemuck::Zeroable for Complex<T> {}
// SAFETY: two numbers of one type, one behind the other: no padding, and every bit pattern is one.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: bytemuck::Pod> bytemuck::Pod for Complex<T> {}

/// A complex type: its parts, its word, how many fill 16 bytes, and how it becomes a word and back.
macro_rules! complex {
    ($float:ident, $word:ty, $width:literal, $sign:literal, $flip:expr, $from_word:expr, $to_word:expr) => {
        impl Scalar for Complex<$float> {
            type Word = $word;
            type Wide = [Self; $width];
            const WIDTH: usize = $width;
            const IS_COMPLEX: bool = true;
            const COPIES: bool = size_of::<$float>() == 4;
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            const ZEROS: Self::Wide = [Self::ZERO; $width];

            /// Four fused multiply-adds: two for the real part, two for the imaginary one.
            #[inline(always)]
            fn fma(self, factor: Self, addend: Self) -> Self {
                let (re, im) = (self.re.fma(factor.re, addend.re), self.re.fma(factor.im, addend.im));
                Complex { re: (-self.im).fma(factor.im, re), im: self.im.fma(factor.re, im) }
            }
            #[inline(always)]
            fn mul(self, factor: Self) -> Self {
                let (re, im) = (self.re * factor.re, self.re * factor.im);
                Complex { re: (-self.im).fma(factor.im, re), im: self.im.fma(factor.re, im) }
            }
            #[inline(always)]
            fn add(self, addend: Self) -> Self {
                Complex { re: self.re + addend.re, im: self.im + addend.im }
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self.re == 0.0 && self.im == 0.0
            }
            #[inline(always)]
            fn conj_if(self, conj: bool) -> Self {
                let sign = if conj { $sign } else { 0 };
                Complex { im: $float::from_bits(self.im.to_bits() ^ sign), ..self }
            }
            #[inline(always)]
            fn real_if(self, real: bool) -> Self {
                Complex { im: if real { 0.0 } else { self.im }, ..self }
            }
            #[inline(always)]
            fn scale(self, value: Self) -> Self {
                let real = Complex { re: self.re * value.re, im: self.re * value.im };
                if self.im == 0.0 { real } else { self.mul(value) }
            }
            #[inline(always)]
            fn as_real(self) -> Option<Self> {
                (self.im == 0.0).then_some(Complex { im: 0.0, ..self })
            }
            #[inline(always)]
            fn scale_onto(self, value: Self, addend: Self) -> Self {
                let real = Complex { re: self.re.fma(value.re, addend.re), im: self.re.fma(value.im, addend.im) };
                if self.im == 0.0 { real } else { self.fma(value, addend) }
            }
            /// Of f32 from copies of b in registers that the assembler is free to choose. A cycle's multiply-add of f32 is handed one register of each of
            /// two banks, even and odd ones, and one that the multiply-add before it had too. Loads put real parts into even registers and
            /// imaginary ones into odd ones; both are multiplied onto the same sum, which lies where one or the other does. A `xor` with
            /// what may be a sign, of which the assembler knows nothing, is a copy that it cannot leave out. Of f64, which takes two cycles,
            /// registers are read in time.
            #[inline(always)]
            fn add_outer<const M: usize, const N: usize>(
                sums: &mut [[Self; N]; M],
                a: [Self; M],
                b: [Self; N],
                signs: Signs,
            ) {
                let flip = |part: $float, sign: u32| $float::from_bits(part.to_bits() ^ $flip(sign));
                let b = b.map(|b| Complex {
                    re: if Self::COPIES { flip(b.re, signs.never) } else { b.re },
                    im: flip(b.im, signs.conj_b),
                });
                for i in 0..M {
                    for j in 0..N {
                        sums[i][j].re = a[i].re.fma(b[j].re, sums[i][j].re);
                    }
                    for j in 0..N {
                        sums[i][j].im = a[i].re.fma(b[j].im, sums[i][j].im);
                    }
                    for j in 0..N {
                        sums[i][j].re = (-a[i].im).fma(b[j].im, sums[i][j].re);
                    }
                    for j in 0..N {
                        sums[i][j].im = a[i].im.fma(b[j].re, sums[i][j].im);
                    }
                }
            }
            #[inline(always)]
            fn from_word(word: $word) -> Self {
                $from_word(word)
            }
            #[inline(always)]
            fn to_word(self) -> $word {
                $to_word(self)
            }
            #[inline(always)]
            fn from_words(words: [$word; $width]) -> Self::Wide {
                words.map(Self::from_word)
            }
        }
    };
}
complex!(
    f32,
    u64,
    2,
    0x8000_0000_u32,
    |sign: u32| sign,
    |word: u64| Complex { re: f32::from_bits(word as u32), im: f32::from_bits((word >> 32) as u32) },
    |c: Complex<f32>| u64::from(c.re.to_bits()) | u64::from(c.im.to_bits()) << 32
);
complex!(
    f64,
    [u64; 2],
    1,
    0x8000_0000_0000_0000_u64,
    |sign: u32| u64::from(sign) << 32,
    |[re, im]: [u64; 2]| Complex { re: f64::from_bits(re), im: f64::from_bits(im) },
    |c: Complex<f64>| [c.re.to_bits(), c.im.to_bits()]
);

#[cfg(test)]
mod tests {
    use super::*;

    fn c(re: f64, im: f64) -> Complex<f64> {
        Complex { re, im }
    }

    #[test]
    fn arithmetic_is_by_the_formula() {
        let (x, y, z) = (c(2.0, 3.0), c(5.0, -7.0), c(100.0, 1000.0));
        assert_eq!(x.mul(y), c(31.0, 1.0));
        assert_eq!(x.fma(y, z), c(131.0, 1001.0));
        assert_eq!((x.conj_if(true), x.conj_if(false)), (c(2.0, -3.0), x));
        assert_eq!((x.real_if(true), x.real_if(false), 2.5.real_if(true)), (c(2.0, 0.0), x, 2.5));
        assert_eq!((x.scale(y), x.scale_onto(y, z)), (c(31.0, 1.0), c(131.0, 1001.0)));
        assert!(c(0.0, -0.0).is_zero() && !c(0.0, 1.0).is_zero() && !c(f64::NAN, 0.0).is_zero());
        let infinite = c(f64::INFINITY, 1.0).mul(c(1.0, 0.0));
        assert!(infinite.re == f64::INFINITY && infinite.im.is_nan(), "{infinite:?}");
    }

    /// Numbers that round, of which every order of a sum but `fma`'s would give other bits somewhere.
    macro_rules! outer_products_have_the_bits_of_fma {
        ($($name:ident: $float:ident;)*) => {$(
            #[test]
            fn $name() {
                let part = |seed: u32| (seed.wrapping_mul(2_654_435_761) % 1009) as $float / 1009.0 - 0.5;
                let number = |seed: u32| Complex { re: part(2 * seed), im: part(2 * seed + 1) };
                let (a, b) = (core::array::from_fn::<_, 13, _>(|i| number(i as u32)), core::array::from_fn::<_, 7, _>(|j| number(20 + j as u32)));
                for conj_b in [false, true] {
                    let signs = Signs { conj_b: u32::from(conj_b) << 31, never: 0 };
                    let mut sums = core::array::from_fn(|i| core::array::from_fn(|j| number((40 + 7 * i + j) as u32)));
                    let before = sums;
                    Complex::add_outer(&mut sums, a, b, signs);
                    let (mut others, mut rounded) = (0, 0);
                    for (i, j) in (0..13).flat_map(|i| (0..7).map(move |j| (i, j))) {
                        let (x, y, z): (Complex<$float>, _, Complex<$float>) = (a[i], b[j].conj_if(conj_b), before[i][j]);
                        let bits = |c: Complex<$float>| [c.re.to_bits(), c.im.to_bits()];
                        assert_eq!(bits(sums[i][j]), bits(x.fma(y, z)), "{i} {j} {conj_b}");
                        // The same products added the other way round.
                        let turned = Complex {
                            re: x.re.fma(y.re, (-x.im).fma(y.im, z.re)),
                            im: x.re.fma(y.im, x.im.fma(y.re, z.im)),
                        };
                        others += usize::from(turned.re.to_bits() != sums[i][j].re.to_bits());
                        rounded += usize::from(turned.im.to_bits() != sums[i][j].im.to_bits());
                    }
                    assert!(others > 0 && rounded > 0, "{others} {rounded}: the order would not be seen");
                }
                // What is never a sign would be one of b's real parts, where these are copied.
                let mut sums = [[Complex::<$float>::ZERO]];
                let signs = Signs { conj_b: 0, never: 1 << 31 };
                Complex::add_outer(&mut sums, [Complex { re: 1.0, im: 0.0 }], [Complex { re: 2.0, im: 3.0 }], signs);
                assert_eq!((sums[0][0].re, sums[0][0].im), (if size_of::<$float>() == 4 { -2.0 } else { 2.0 }, 3.0));
                let mut sums = [[2.0 as $float, 3.0]];
                <$float>::add_outer(&mut sums, [5.0], [7.0, 11.0], Signs { conj_b: 1 << 31, never: 1 << 31 });
                assert_eq!(sums, [[37.0, 58.0]]);
            }
        )*};
    }
    outer_products_have_the_bits_of_fma! {
        outer_products_of_c64_have_the_bits_of_fma: f32;
        outer_products_of_c128_have_the_bits_of_fma: f64;
    }

    /// A factor without an imaginary part multiplies both parts as a real number does.
    #[test]
    fn a_real_factor_makes_no_nan() {
        let (two, x) = (c(2.0, 0.0), c(f64::INFINITY, 1.0));
        assert_eq!(two.scale(x), c(f64::INFINITY, 2.0));
        assert_eq!(two.scale_onto(x, c(1.0, 1.0)), c(f64::INFINITY, 3.0));
    }

    #[test]
    fn words_hold_the_real_part_first() {
        let x = Complex { re: 1.5_f32, im: f32::NAN };
        assert_eq!(x.to_word().to_le_bytes()[..4], 1.5_f32.to_le_bytes());
        let back = Complex::<f32>::from_word(x.to_word());
        assert_eq!((back.re, back.im.to_bits()), (1.5, f32::NAN.to_bits()));
        assert_eq!(Complex::<f64>::from_word(c(1.0, -2.0).to_word()), c(1.0, -2.0));
        assert_eq!((size_of::<Complex<f32>>(), size_of::<Complex<f64>>()), (8, 16));
        let wide = Complex::<f32>::from_words([x.to_word(), Complex::<f32>::ONE.to_word()]);
        assert_eq!((wide[0].re, wide[1]), (1.5, Complex::<f32>::ONE));
    }
}
