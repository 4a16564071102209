//! The types that parts of elements have.

use std::str::FromStr;

use lanky::{Complex, Scalar};
use num_traits::Float;

/// A type of real numbers, with that of complex ones which are made of two.
pub trait Real: Scalar<Real = Self> + Float + FromStr {
    type Complex: Scalar<Real = Self>;
}

impl Real for f32 {
    type Complex = Complex<f32>;
}

impl Real for f64 {
    type Complex = Complex<f64>;
}
