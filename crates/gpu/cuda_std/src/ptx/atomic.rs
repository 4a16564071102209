//! Atomic updates of device memory, relaxed, at the scope of the GPU.

use super::GlobalAddress;

/// One reduction: an instruction without a result on the GPU, an update through the hooks elsewhere.
macro_rules! red {
    ($(#[$doc:meta])* $name:ident, $float:ident, $bits:ident, $class:ident, $instruction:literal) => {
        $(#[$doc])*
        /// The order of additions, and so the last bits of the sum, differ from run to run.
        ///
        /// # Safety
        /// The address holds an element, aligned, that is only updated atomically while the kernel runs.
        #[inline(always)]
        pub unsafe fn $name(at: GlobalAddress, value: $float) {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: an aligned element that is only updated atomically, as the caller promised.
            unsafe { core::arch::asm!(concat!($instruction, " [{0}], {1};"), in(reg64) at.0, in($class) value, options(nostack)) }
            #[cfg(not(target_arch = "nvptx64"))]
            crate::hooks::hooks().atomic(at.0, size_of::<$float>() as u32, &|old| {
                u64::from(($float::from_bits(old as $bits) + value).to_bits())
            });
        }
    };
}
red!(/** Adds to an f32. `red.global.add.f32`, any architecture. */ red_add_f32, f32, u32, reg32, "red.global.add.f32");
red!(/** Adds to an f64. `red.global.add.f64`, from sm_60. */ red_add_f64, f64, u64, reg64, "red.global.add.f64");

/// Adds to a u32 and returns what was there. `atom.global.add.u32`, any architecture.
///
/// # Safety
/// The address holds a u32, aligned, that is only accessed atomically while the kernel runs.
#[inline(always)]
pub unsafe fn atom_add_u32(at: GlobalAddress, value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let old: u32;
        // SAFETY: an aligned u32 that is only accessed atomically, as the caller promised.
        unsafe {
            core::arch::asm!("atom.global.add.u32 {0}, [{1}], {2};", out(reg32) old, in(reg64) at.0, in(reg32) value, options(nostack))
        };
        old
    }
    #[cfg(not(target_arch = "nvptx64"))]
    return crate::hooks::hooks().atomic(at.0, 4, &|old| u64::from((old as u32).wrapping_add(value))) as u32;
}
