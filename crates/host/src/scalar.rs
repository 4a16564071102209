//! The element types.

use model::Dtype;
use num_complex::Complex;
use std::fmt;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for super::Complex<f32> {}
    impl Sealed for super::Complex<f64> {}
}

/// An element of a matrix: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`. Sealed: the kernels exist for these. All
/// arithmetic is in the type itself: sums of f32 are f32.
///
/// # Example
/// ```
/// use lanky_host::{Complex, Scalar};
/// assert_eq!(Complex::new(1.0, 2.0).conj().parts(), (1.0, -2.0));
/// assert_eq!((3.0_f64.conj().parts(), f64::of_parts(3.0, 4.0)), ((3.0, 0.0), 3.0));
/// ```
pub trait Scalar:
    sealed::Sealed
    + ::cpu::Element
    + bytemuck::Pod
    + num_traits::NumAssign
    + std::ops::Neg<Output = Self>
    + fmt::Debug
    + fmt::Display
    + Send
    + Sync
    + 'static
{
    /// The type of the real and of the imaginary part: of a real type itself.
    type Real: Scalar<Real = Self::Real> + num_traits::Float;
    /// Its name at run time.
    const DTYPE: Dtype;
    /// The complex conjugate; of a real number itself.
    fn conj(self) -> Self;
    /// The real and the imaginary part; of a real number itself and 0.
    fn parts(self) -> (Self::Real, Self::Real);
    /// The number of these parts; a real type leaves out the second.
    fn of_parts(re: Self::Real, im: Self::Real) -> Self;
}

macro_rules! scalars {
    ($($float:ty: $real:ident, $complex:ident;)*) => {$(
        impl Scalar for $float {
            type Real = $float;
            const DTYPE: Dtype = Dtype::$real;
            fn conj(self) -> Self {
                self
            }
            fn parts(self) -> (Self, Self) {
                (self, 0.0)
            }
            fn of_parts(re: Self, _im: Self) -> Self {
                re
            }
        }

        impl Scalar for Complex<$float> {
            type Real = $float;
            const DTYPE: Dtype = Dtype::$complex;
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            fn parts(self) -> ($float, $float) {
                (self.re, self.im)
            }
            fn of_parts(re: $float, im: $float) -> Self {
                Complex::new(re, im)
            }
        }
    )*};
}
scalars! {
    f32: F32, C64;
    f64: F64, C128;
}
