//! Element types.

use core::fmt;

/// The type of the elements of all three matrices of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Dtype {
    /// Bytes an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Dtype::F32 => 4,
            Dtype::F64 => 8,
        }
    }

    /// BLAS's letter, the first of an entry's name: `s` or `d`.
    pub const fn letter(self) -> &'static str {
        match self {
            Dtype::F32 => "s",
            Dtype::F64 => "d",
        }
    }

    /// Rust's name: `f32` or `f64`.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
