//! Element types.

use core::fmt;

/// The type of the elements of all three matrices of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// A complex number of two binary32: the real part, then the imaginary one.
    C64,
    /// The same of two binary64.
    C128,
}

impl Dtype {
    /// All of them.
    pub const ALL: [Dtype; 4] = [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128];

    /// Whether elements have an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, Dtype::C64 | Dtype::C128)
    }

    /// The type of an element's parts: itself, if it is real.
    pub const fn real(self) -> Dtype {
        match self {
            Dtype::F32 | Dtype::C64 => Dtype::F32,
            Dtype::F64 | Dtype::C128 => Dtype::F64,
        }
    }

    /// Fused multiply-adds, in [`Dtype::real`], that multiplying two elements and adding the product takes: four where they
    /// are complex.
    pub const fn fmas(self) -> u32 {
        if self.is_complex() { 4 } else { 1 }
    }

    /// Bytes an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Dtype::F32 => 4,
            Dtype::F64 | Dtype::C64 => 8,
            Dtype::C128 => 16,
        }
    }

    /// BLAS's letter, the first of an entry's name: `s`, `d`, `c` or `z`.
    pub const fn letter(self) -> &'static str {
        match self {
            Dtype::F32 => "s",
            Dtype::F64 => "d",
            Dtype::C64 => "c",
            Dtype::C128 => "z",
        }
    }

    /// `f32`, `f64`, `c64` or `c128`: a letter, and the bits of an element.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
            Dtype::C64 => "c64",
            Dtype::C128 => "c128",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
