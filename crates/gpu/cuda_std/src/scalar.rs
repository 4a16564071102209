//! Element types, and the words that carry them through the instructions.

use crate::ptx::{GlobalAddress, Hint, SharedAddress};
use core::ops::Index;

/// 32 or 64 bits in a register: what loads and stores move. The functions are documented in [`crate::ptx`].
///
/// # Safety of the functions
/// Each accesses memory at the given address, which must hold the word (or 16 aligned bytes, for `_wide`).
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Word: Copy {
    /// 16 bytes of them.
    type Wide: Copy;
    unsafe fn ld_global(at: GlobalAddress, hint: Hint) -> Self;
    unsafe fn ld_global_if(at: GlobalAddress, hint: Hint, inside: bool) -> Self;
    unsafe fn ld_global_wide(at: GlobalAddress) -> Self::Wide;
    unsafe fn st_global(at: GlobalAddress, value: Self);
    unsafe fn ld_shared(at: SharedAddress) -> Self;
    unsafe fn ld_shared_wide(at: SharedAddress) -> Self::Wide;
    unsafe fn st_shared(at: SharedAddress, value: Self);
}

/// An element of a matrix.
pub trait Scalar: Copy + 'static {
    /// The word that carries it.
    type Word: Word;
    /// 16 bytes of elements.
    type Wide: Copy + Index<usize, Output = Self>;
    /// Elements in 16 bytes.
    const WIDTH: usize;
    /// 0, positive.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 16 bytes of zeros.
    const ZEROS: Self::Wide;
    /// self · factor + addend, rounded once. `fma.rn`.
    fn fma(self, factor: Self, addend: Self) -> Self;
    /// self · factor. `mul.rn`.
    fn mul(self, factor: Self) -> Self;
    /// self + addend. `add.rn`.
    fn add(self, addend: Self) -> Self;
    /// Whether it equals 0, of either sign.
    fn is_zero(self) -> bool;
    /// The element in a word.
    fn from_word(word: Self::Word) -> Self;
    /// The word of an element.
    fn to_word(self) -> Self::Word;
    /// The elements in 16 bytes.
    fn from_words(words: <Self::Word as Word>::Wide) -> Self::Wide;
}

/// A float type: its word, how many fill 16 bytes, and its fused multiply-add on either side.
macro_rules! scalar {
    ($float:ident, $word:ident, $width:literal, $fma:ident) => {
        impl Scalar for $float {
            type Word = $word;
            type Wide = [$float; $width];
            const WIDTH: usize = $width;
            const ZERO: $float = 0.0;
            const ONE: $float = 1.0;
            const ZEROS: [$float; $width] = [0.0; $width];
            #[inline(always)]
            fn fma(self, factor: $float, addend: $float) -> $float {
                #[cfg(target_arch = "nvptx64")]
                return core::intrinsics::$fma(self, factor, addend);
                #[cfg(not(target_arch = "nvptx64"))]
                {
                    crate::hooks::count_fma();
                    self.mul_add(factor, addend)
                }
            }
            #[inline(always)]
            fn mul(self, factor: $float) -> $float {
                self * factor
            }
            #[inline(always)]
            fn add(self, addend: $float) -> $float {
                self + addend
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0.0
            }
            #[inline(always)]
            fn from_word(word: $word) -> $float {
                $float::from_bits(word)
            }
            #[inline(always)]
            fn to_word(self) -> $word {
                self.to_bits()
            }
            #[inline(always)]
            fn from_words(words: [$word; $width]) -> [$float; $width] {
                words.map($float::from_bits)
            }
        }
    };
}
scalar!(f32, u32, 4, fmaf32);
scalar!(f64, u64, 2, fmaf64);
