//! Loads and stores of words: `ld.global`, `ld.shared`, `st.global`, `st.shared`, alone, predicated and 16 bytes wide.

use super::{GlobalAddress, SharedAddress};
use crate::Word;

/// What a load from device memory may assume and what it leaves in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// `ld.global`: sees this thread's own writes. Any architecture.
    Coherent,
    /// `ld.global.nc`: nobody writes it while the kernel runs. From sm_32.
    ReadOnly,
    /// `ld.global.nc.L1::evict_first`: read once or in passing: the first line to leave the first-level cache. From
    /// sm_70, PTX 7.4.
    Streamed,
}

#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(".extern .shared .align 16 .b8 lanky_dynamic_shared[];");

/// The address of the block's dynamic shared memory, aligned to 16 bytes: `mov.u32` of a symbol. Any architecture.
#[inline(always)]
pub fn dynamic_shared() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let base: u32;
        // SAFETY: taking the address of a symbol has no requirements.
        unsafe {
            core::arch::asm!("mov.u32 {0}, lanky_dynamic_shared;", out(reg32) base, options(pure, nomem, nostack))
        };
        base
    }
    #[cfg(not(target_arch = "nvptx64"))]
    0
}

/// All ten instructions for a word of one size; `$scalar` and `$wide` are their mnemonics' endings.
#[cfg(target_arch = "nvptx64")]
macro_rules! word {
    ($word:ident, $width:literal, $class:ident, $scalar:literal, $wide:literal, $from:literal, $lanes:literal, $count:literal, [$($lane:ident),*]) => {
        impl Word for $word {
            type Wide = [$word; $width];
            #[inline(always)]
            unsafe fn ld_global(at: GlobalAddress, hint: Hint) -> $word {
                let word;
                // SAFETY, all three: the caller promises a word there.
                match hint {
                    Hint::Coherent => unsafe { asm!(concat!("ld.global.", $scalar, " {0}, [{1}];"), out($class) word, in(reg64) at.0, options(readonly, nostack)) },
                    Hint::ReadOnly => unsafe { asm!(concat!("ld.global.nc.", $scalar, " {0}, [{1}];"), out($class) word, in(reg64) at.0, options(pure, readonly, nostack)) },
                    Hint::Streamed => unsafe { asm!(concat!("ld.global.nc.L1::evict_first.", $scalar, " {0}, [{1}];"), out($class) word, in(reg64) at.0, options(pure, readonly, nostack)) },
                }
                word
            }
            #[inline(always)]
            unsafe fn ld_global_if(at: GlobalAddress, hint: Hint, inside: bool) -> $word {
                let word;
                // SAFETY, all three: the caller promises a word there, or that the condition is false.
                match hint {
                    Hint::Coherent => unsafe { asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {2}, 0; mov.", $scalar, " {0}, 0; @p ld.global.", $scalar, " {0}, [{1}]; }}"), out($class) word, in(reg64) at.0, in(reg32) inside as u32, options(readonly, nostack)) },
                    Hint::ReadOnly => unsafe { asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {2}, 0; mov.", $scalar, " {0}, 0; @p ld.global.nc.", $scalar, " {0}, [{1}]; }}"), out($class) word, in(reg64) at.0, in(reg32) inside as u32, options(pure, readonly, nostack)) },
                    Hint::Streamed => unsafe { asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {2}, 0; mov.", $scalar, " {0}, 0; @p ld.global.nc.L1::evict_first.", $scalar, " {0}, [{1}]; }}"), out($class) word, in(reg64) at.0, in(reg32) inside as u32, options(pure, readonly, nostack)) },
                }
                word
            }
            #[inline(always)]
            unsafe fn ld_global_wide(at: GlobalAddress) -> [$word; $width] {
                $(let $lane: $word;)*
                // SAFETY: the caller promises words there.
                unsafe { asm!(concat!("ld.global.nc.L1::evict_first.", $wide, " ", $lanes, ", [", $from, "];"), $(out($class) $lane,)* in(reg64) at.0, options(pure, readonly, nostack)) }
                [$($lane),*]
            }
            #[inline(always)]
            unsafe fn ld_global_wide_if(at: GlobalAddress, inside: bool) -> [$word; $width] {
                $(let mut $lane: $word = 0;)*
                // SAFETY: the caller promises words there, or that the condition is false.
                unsafe { asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {", stringify!($count), "}, 0; @p ld.global.nc.L1::evict_first.", $wide, " ", $lanes, ", [", $from, "]; }}"), $(inout($class) $lane,)* in(reg64) at.0, in(reg32) inside as u32, options(pure, readonly, nostack)) }
                [$($lane),*]
            }
            #[inline(always)]
            unsafe fn st_global(at: GlobalAddress, value: $word) {
                // SAFETY: the caller promises room for a word there.
                unsafe { asm!(concat!("st.global.", $scalar, " [{0}], {1};"), in(reg64) at.0, in($class) value, options(nostack)) }
            }
            #[inline(always)]
            fn wide(of: impl FnMut(usize) -> $word) -> [$word; $width] {
                core::array::from_fn(of)
            }
            #[inline(always)]
            unsafe fn st_global_wide(at: GlobalAddress, [$($lane),*]: [$word; $width]) {
                // SAFETY: the caller promises room for words there.
                unsafe { asm!(concat!("st.global.", $wide, " [", $from, "], ", $lanes, ";"), $(in($class) $lane,)* in(reg64) at.0, options(nostack)) }
            }
            #[inline(always)]
            unsafe fn st_shared_wide(at: SharedAddress, [$($lane),*]: [$word; $width]) {
                // SAFETY: the caller promises room for words there.
                unsafe { asm!(concat!("st.shared.", $wide, " [", $from, "], ", $lanes, ";"), $(in($class) $lane,)* in(reg32) at.0, options(nostack)) }
            }
            #[inline(always)]
            unsafe fn ld_shared(at: SharedAddress) -> $word {
                let word;
                // SAFETY: the caller promises a word there.
                unsafe { asm!(concat!("ld.shared.", $scalar, " {0}, [{1}];"), out($class) word, in(reg32) at.0, options(readonly, nostack)) }
                word
            }
            #[inline(always)]
            unsafe fn ld_shared_wide(at: SharedAddress) -> [$word; $width] {
                $(let $lane: $word;)*
                // SAFETY: the caller promises words there.
                unsafe { asm!(concat!("ld.shared.", $wide, " ", $lanes, ", [", $from, "];"), $(out($class) $lane,)* in(reg32) at.0, options(readonly, nostack)) }
                [$($lane),*]
            }
            #[inline(always)]
            unsafe fn st_shared(at: SharedAddress, value: $word) {
                // SAFETY: the caller promises room for a word there.
                unsafe { asm!(concat!("st.shared.", $scalar, " [{0}], {1};"), in(reg32) at.0, in($class) value, options(nostack)) }
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
#[cfg(target_arch = "nvptx64")]
word!(u32, 4, reg32, "b32", "v4.b32", "{4}", "{{{0}, {1}, {2}, {3}}}", 5, [x, y, z, w]);
#[cfg(target_arch = "nvptx64")]
word!(u64, 2, reg64, "b64", "v2.b64", "{2}", "{{{0}, {1}}}", 3, [x, y]);

/// Loads 16 bytes as a word, by the instruction of this name; with a condition predicated, and zeros else.
#[cfg(target_arch = "nvptx64")]
macro_rules! load_pair {
    ($at:expr, $mnemonic:literal, $options:tt) => {{
        let (x, y): (u64, u64);
        // SAFETY: the caller promises a word there.
        unsafe { asm!(concat!($mnemonic, ".v2.b64 {{{0}, {1}}}, [{2}];"), out(reg64) x, out(reg64) y, in(reg64) $at, options $options) }
        [x, y]
    }};
    ($at:expr, $inside:expr, $mnemonic:literal, $options:tt) => {{
        let (x, y): (u64, u64);
        // SAFETY: the caller promises a word there, or that the condition is false.
        unsafe { asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {3}, 0; mov.b64 {0}, 0; mov.b64 {1}, 0; @p ", $mnemonic, ".v2.b64 {{{0}, {1}}}, [{2}]; }}"), out(reg64) x, out(reg64) y, in(reg64) $at, in(reg32) $inside as u32, options $options) }
        [x, y]
    }};
}

/// A complex number of two f64: the wide instructions, as a word.
#[cfg(target_arch = "nvptx64")]
impl Word for [u64; 2] {
    type Wide = [[u64; 2]; 1];
    #[inline(always)]
    unsafe fn ld_global(at: GlobalAddress, hint: Hint) -> [u64; 2] {
        match hint {
            Hint::Coherent => load_pair!(at.0, "ld.global", (readonly, nostack)),
            Hint::ReadOnly => load_pair!(at.0, "ld.global.nc", (pure, readonly, nostack)),
            Hint::Streamed => load_pair!(at.0, "ld.global.nc.L1::evict_first", (pure, readonly, nostack)),
        }
    }
    #[inline(always)]
    unsafe fn ld_global_if(at: GlobalAddress, hint: Hint, inside: bool) -> [u64; 2] {
        match hint {
            Hint::Coherent => load_pair!(at.0, inside, "ld.global", (readonly, nostack)),
            Hint::ReadOnly => load_pair!(at.0, inside, "ld.global.nc", (pure, readonly, nostack)),
            Hint::Streamed => load_pair!(at.0, inside, "ld.global.nc.L1::evict_first", (pure, readonly, nostack)),
        }
    }
    #[inline(always)]
    unsafe fn ld_global_wide(at: GlobalAddress) -> [[u64; 2]; 1] {
        // SAFETY: the caller promises words there.
        [unsafe { u64::ld_global_wide(at) }]
    }
    #[inline(always)]
    unsafe fn ld_global_wide_if(at: GlobalAddress, inside: bool) -> [[u64; 2]; 1] {
        // SAFETY: the caller promises words there, or that the condition is false.
        [unsafe { u64::ld_global_wide_if(at, inside) }]
    }
    #[inline(always)]
    fn wide(mut of: impl FnMut(usize) -> [u64; 2]) -> [[u64; 2]; 1] {
        [of(0)]
    }
    #[inline(always)]
    unsafe fn st_global_wide(at: GlobalAddress, [word]: [[u64; 2]; 1]) {
        // SAFETY: promised by the caller.
        unsafe { Self::st_global(at, word) }
    }
    #[inline(always)]
    unsafe fn st_shared_wide(at: SharedAddress, [word]: [[u64; 2]; 1]) {
        // SAFETY: promised by the caller.
        unsafe { Self::st_shared(at, word) }
    }
    #[inline(always)]
    unsafe fn st_global(at: GlobalAddress, [x, y]: [u64; 2]) {
        // SAFETY: the caller promises room for a word there.
        unsafe {
            asm!("st.global.v2.b64 [{0}], {{{1}, {2}}};", in(reg64) at.0, in(reg64) x, in(reg64) y, options(nostack))
        }
    }
    #[inline(always)]
    unsafe fn ld_shared(at: SharedAddress) -> [u64; 2] {
        // SAFETY: the caller promises a word there.
        unsafe { u64::ld_shared_wide(at) }
    }
    #[inline(always)]
    unsafe fn ld_shared_wide(at: SharedAddress) -> [[u64; 2]; 1] {
        // SAFETY: the caller promises words there.
        [unsafe { u64::ld_shared_wide(at) }]
    }
    #[inline(always)]
    unsafe fn st_shared(at: SharedAddress, [x, y]: [u64; 2]) {
        // SAFETY: the caller promises room for a word there.
        unsafe {
            asm!("st.shared.v2.b64 [{0}], {{{1}, {2}}};", in(reg32) at.0, in(reg64) x, in(reg64) y, options(nostack))
        }
    }
}

/// On the host: the same ten, as bytes handed to the hooks.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! word {
    ($word:ident, $width:literal) => {
        impl Word for $word {
            type Wide = [$word; $width];
            unsafe fn ld_global(at: GlobalAddress, _hint: Hint) -> $word {
                let mut bytes = [0; size_of::<$word>()];
                hooks().load(at.0, &mut bytes, true);
                $word::from_le_bytes(bytes)
            }
            unsafe fn ld_global_if(at: GlobalAddress, _hint: Hint, inside: bool) -> $word {
                let mut bytes = [0; size_of::<$word>()];
                hooks().load(at.0, &mut bytes, inside);
                $word::from_le_bytes(bytes)
            }
            unsafe fn ld_global_wide(at: GlobalAddress) -> [$word; $width] {
                wide(at.0, true).map($word::from_le_bytes)
            }
            unsafe fn ld_global_wide_if(at: GlobalAddress, inside: bool) -> [$word; $width] {
                wide(at.0, inside).map($word::from_le_bytes)
            }
            unsafe fn st_global(at: GlobalAddress, value: $word) {
                hooks().store(at.0, &value.to_le_bytes());
            }
            fn wide(of: impl FnMut(usize) -> $word) -> [$word; $width] {
                core::array::from_fn(of)
            }
            unsafe fn st_global_wide(at: GlobalAddress, words: [$word; $width]) {
                hooks().store(at.0, &piece(words.map($word::to_le_bytes)));
            }
            unsafe fn st_shared_wide(at: SharedAddress, words: [$word; $width]) {
                hooks().store(at.0, &piece(words.map($word::to_le_bytes)));
            }
            unsafe fn ld_shared(at: SharedAddress) -> $word {
                let mut bytes = [0; size_of::<$word>()];
                hooks().load(at.0, &mut bytes, true);
                $word::from_le_bytes(bytes)
            }
            unsafe fn ld_shared_wide(at: SharedAddress) -> [$word; $width] {
                wide(at.0, true).map($word::from_le_bytes)
            }
            unsafe fn st_shared(at: SharedAddress, value: $word) {
                hooks().store(at.0, &value.to_le_bytes());
            }
        }
    };
}

#[cfg(not(target_arch = "nvptx64"))]
use crate::hooks::{Access, hooks};
#[cfg(not(target_arch = "nvptx64"))]
word!(u32, 4);
#[cfg(not(target_arch = "nvptx64"))]
word!(u64, 2);

/// A complex number of two f64: 16 bytes handed to the hooks at once.
#[cfg(not(target_arch = "nvptx64"))]
impl Word for [u64; 2] {
    type Wide = [[u64; 2]; 1];
    unsafe fn ld_global(at: GlobalAddress, _hint: Hint) -> [u64; 2] {
        wide(at.0, true).map(u64::from_le_bytes)
    }
    unsafe fn ld_global_if(at: GlobalAddress, _hint: Hint, inside: bool) -> [u64; 2] {
        wide(at.0, inside).map(u64::from_le_bytes)
    }
    unsafe fn ld_global_wide(at: GlobalAddress) -> [[u64; 2]; 1] {
        [wide(at.0, true).map(u64::from_le_bytes)]
    }
    unsafe fn ld_global_wide_if(at: GlobalAddress, inside: bool) -> [[u64; 2]; 1] {
        [wide(at.0, inside).map(u64::from_le_bytes)]
    }
    fn wide(mut of: impl FnMut(usize) -> [u64; 2]) -> [[u64; 2]; 1] {
        [of(0)]
    }
    unsafe fn st_global_wide(at: GlobalAddress, [word]: [[u64; 2]; 1]) {
        // SAFETY: promised by the caller.
        // SAFETY: promised by the caller.
        unsafe { Self::st_global(at, word) }
    }
    unsafe fn st_shared_wide(at: SharedAddress, [word]: [[u64; 2]; 1]) {
        // SAFETY: promised by the caller.
        // SAFETY: promised by the caller.
        unsafe { Self::st_shared(at, word) }
    }
    unsafe fn st_global(at: GlobalAddress, value: [u64; 2]) {
        hooks().store(at.0, &pair(value));
    }
    unsafe fn ld_shared(at: SharedAddress) -> [u64; 2] {
        wide(at.0, true).map(u64::from_le_bytes)
    }
    unsafe fn ld_shared_wide(at: SharedAddress) -> [[u64; 2]; 1] {
        [wide(at.0, true).map(u64::from_le_bytes)]
    }
    unsafe fn st_shared(at: SharedAddress, value: [u64; 2]) {
        hooks().store(at.0, &pair(value));
    }
}

/// The bytes of two words.
#[cfg(not(target_arch = "nvptx64"))]
fn pair([x, y]: [u64; 2]) -> [u8; 16] {
    (u128::from(x) | u128::from(y) << 64).to_le_bytes()
}

/// One access of 16 bytes, cut into words.
#[cfg(not(target_arch = "nvptx64"))]
fn wide<const WORD: usize, const WIDTH: usize>(access: Access, inside: bool) -> [[u8; WORD]; WIDTH] {
    let mut bytes = [0; 16];
    hooks().load(access, &mut bytes, inside);
    core::array::from_fn(|word| core::array::from_fn(|byte| bytes[word * WORD + byte]))
}

/// Words as one access of 16 bytes.
#[cfg(not(target_arch = "nvptx64"))]
fn piece<const WORD: usize, const WIDTH: usize>(words: [[u8; WORD]; WIDTH]) -> [u8; 16] {
    core::array::from_fn(|byte| words[byte / WORD][byte % WORD])
}
