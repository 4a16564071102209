//! Element types, and the words that carry them through the instructions.

use crate::ptx::{GlobalAddress, Hint, SharedAddress};
use core::ops::Index;

/// 32, 64 or 128 bits in registers, `u32`, `u64` or `[u64; 2]`: what loads and stores move, one instruction each, whose
/// name ends in `.b32`, `.b64` or `.v2.b64`. [`crate::Global`] and [`crate::Shared`] call them.
pub trait Word: Copy + crate::warp::WarpShuffleValue {
    /// 16 bytes of them.
    type Wide: Copy;

    /// A word of device memory. `ld.global`, with what [`Hint`] adds.
    ///
    /// # Safety
    /// The address holds a word, aligned; what the hint promises of other writes is so.
    unsafe fn ld_global(at: GlobalAddress, hint: Hint) -> Self;

    /// A word of device memory, or 0 where `inside` is false, without touching memory then. `ld.global`, predicated.
    ///
    /// # Safety
    /// As for [`Word::ld_global`], where `inside`.
    unsafe fn ld_global_if(at: GlobalAddress, hint: Hint, inside: bool) -> Self;

    /// 16 bytes of device memory. `ld.global.nc.L1::evict_first`, `.v4` or `.v2`, from sm_70, PTX 7.4.
    ///
    /// # Safety
    /// The address holds 16 bytes, aligned to 16, that nobody writes while the kernel runs.
    unsafe fn ld_global_wide(at: GlobalAddress) -> Self::Wide;

    /// 16 bytes of device memory, or zeros where `inside` is false, without touching memory then.
    /// `ld.global.nc.L1::evict_first`, `.v4` or `.v2`, predicated, from sm_70, PTX 7.4.
    ///
    /// # Safety
    /// As for [`Word::ld_global_wide`], where `inside`.
    unsafe fn ld_global_wide_if(at: GlobalAddress, inside: bool) -> Self::Wide;

    /// Writes a word of device memory. `st.global`, any architecture.
    ///
    /// # Safety
    /// The address may take a word, aligned, that no other thread accesses without a barrier or fence between.
    unsafe fn st_global(at: GlobalAddress, value: Self);

    /// 16 bytes of words.
    fn wide(of: impl FnMut(usize) -> Self) -> Self::Wide;

    /// Writes 16 bytes of device memory. `st.global`, `.v4` or `.v2`, any architecture.
    ///
    /// # Safety
    /// As for [`Word::st_global`], for 16 bytes, aligned to 16.
    unsafe fn st_global_wide(at: GlobalAddress, words: Self::Wide);

    /// Writes 16 bytes of shared memory. `st.shared`, `.v4` or `.v2`, any architecture.
    ///
    /// # Safety
    /// As for [`Word::st_shared`], for 16 bytes, aligned to 16.
    unsafe fn st_shared_wide(at: SharedAddress, words: Self::Wide);

    /// A word of shared memory. `ld.shared`, any architecture.
    ///
    /// # Safety
    /// The address holds a word of the block's shared memory, aligned; a barrier lies between this and another thread's
    /// write.
    unsafe fn ld_shared(at: SharedAddress) -> Self;

    /// 16 bytes of shared memory. `ld.shared`, `.v4` or `.v2`, any architecture.
    ///
    /// # Safety
    /// As for [`Word::ld_shared`], for 16 bytes, aligned to 16.
    unsafe fn ld_shared_wide(at: SharedAddress) -> Self::Wide;

    /// Writes a word of shared memory. `st.shared`, any architecture.
    ///
    /// # Safety
    /// As for [`Word::ld_shared`]; a barrier lies between this and another thread's access.
    unsafe fn st_shared(at: SharedAddress, value: Self);
}

/// An element of a matrix; `f32` and `f64` are, and [`Complex`](crate::Complex) numbers of them. Nothing here touches memory; on the host it is ordinary arithmetic, of
/// which an emulator counts [`Scalar::fma`].
pub trait Scalar: Copy + 'static {
    /// The word that carries it.
    type Word: Word;
    /// 16 bytes of elements.
    type Wide: Copy + Index<usize, Output = Self>;
    /// Elements in 16 bytes.
    const WIDTH: usize;
    /// Whether it has an imaginary part.
    const IS_COMPLEX: bool = false;
    /// Whether [`Scalar::add_outer`] multiplies from copies.
    const COPIES: bool = false;
    /// 0, the positive one.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 16 bytes of zeros.
    const ZEROS: Self::Wide;
    /// self · factor + addend, rounded once. `fma.rn`; of complex numbers four of them.
    fn fma(self, factor: Self, addend: Self) -> Self;
    /// self · factor. `mul.rn`.
    fn mul(self, factor: Self) -> Self;
    /// self + addend. `add.rn`.
    fn add(self, addend: Self) -> Self;
    /// Whether it equals 0, of either sign.
    fn is_zero(self) -> bool;
    /// The conjugate where `conj`: one `xor` of a complex number, and nothing at all of a real one.
    #[inline(always)]
    fn conj_if(self, _conj: bool) -> Self {
        self
    }
    /// The real part where `real`: of a complex number its imaginary part becomes 0, and a real one stays as it is.
    #[inline(always)]
    fn real_if(self, _real: bool) -> Self {
        self
    }
    /// self · value, where a self without an imaginary part multiplies as a real number: its 0 meets no infinity.
    #[inline(always)]
    fn scale(self, value: Self) -> Self {
        self.mul(value)
    }
    /// The same number, of which the compiler knows that it is real, if it is.
    #[inline(always)]
    fn as_real(self) -> Option<Self> {
        Some(self)
    }
    /// self · value + addend, in the same way.
    #[inline(always)]
    fn scale_onto(self, value: Self, addend: Self) -> Self {
        self.fma(value, addend)
    }
    /// sums(i, j) + a(i) · b(j), or of b's conjugates: each as [`Scalar::fma`] gives it, to the bit.
    ///
    /// [`there_and_back`] along b.
    #[inline(always)]
    fn add_outer<const M: usize, const N: usize>(sums: &mut [[Self; N]; M], a: [Self; M], b: [Self; N], _: Signs) {
        for i in 0..M {
            for turn in 0..N {
                let j = there_and_back(i, turn, N);
                sums[i][j] = a[i].fma(b[j], sums[i][j]);
            }
        }
    }
    /// The element in a word.
    fn from_word(word: Self::Word) -> Self;
    /// The word of an element.
    fn to_word(self) -> Self::Word;
    /// The elements in 16 bytes.
    fn from_words(words: <Self::Word as Word>::Wide) -> Self::Wide;
}

/// The place of a line's `turn`-th of `len`: forwards in even lines and backwards in odd ones, so that the next multiply-add of an outer
/// product has an operand of this one's, which a register then hands out once.
#[inline(always)]
pub const fn there_and_back(line: usize, turn: usize, len: usize) -> usize {
    if line % 2 == 0 { turn } else { len - 1 - turn }
}

/// The signs of [`Scalar::add_outer`]'s b.
#[derive(Clone, Copy)]
pub struct Signs {
    /// Bit 31 where b's conjugates are multiplied.
    pub conj_b: u32,
    /// 0, which no compiler knows, and of which no other bit than 31 could be set.
    pub never: u32,
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
