//! Element types that the library multiplies and whose memory is watched, and numbers made from a position.

use host::Scalar;

pub use watched::numbers::{conj_if, hash, integer, times, u, unit, v};

/// An element whose memory is watched.
pub trait Element: watched::Element + Scalar {}

impl<T: watched::Element + Scalar> Element for T {}

/// A real one.
pub trait Real: watched::Real + Scalar {
    /// Largest exponent of made-up factors whose sums of products neither overflow nor vanish.
    const EXPONENT: i64 = if size_of::<Self>() == 4 { 30 } else { 60 };
}

impl<T: watched::Real + Scalar> Real for T {}
