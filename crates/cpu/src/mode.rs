//! How a CPU computes with floating-point numbers: whether it keeps subnormal ones, how it rounds, and when it traps. It is a
//! setting of each thread, which a new one has from the thread that started it.

use std::marker::PhantomData;

/// Does `work` as IEEE 754 has it unless told otherwise: to the nearest number, subnormal ones kept, without traps. The
/// thread's own setting is back afterwards, also where `work` panics. Only on x86-64 and AArch64 is there anything to do.
pub fn as_ieee_has_it<R>(work: impl FnOnce() -> R) -> R {
    let _own = Own::replaced();
    work()
}

/// What this thread had, and gets back.
struct Own {
    setting: u64,
    /// Of this thread alone.
    thread: PhantomData<*const ()>,
}

impl Own {
    fn replaced() -> Own {
        let setting = setting();
        set(IEEE);
        Own { setting, thread: PhantomData }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        set(self.setting);
    }
}

/// MXCSR: all six exceptions masked, nothing else.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const IEEE: u64 = 0x1f80;

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn setting() -> u64 {
    let mut mxcsr = 0_u32;
    // SAFETY: SSE is part of x86-64; `mxcsr` has the 32 bits that are stored, and no flag changes.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
    mxcsr.into()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn set(mxcsr: u64) {
    let mxcsr = mxcsr as u32;
    // SAFETY: SSE is part of x86-64; `mxcsr` has the 32 bits: IEEE's, which Rust reckons with, or what was in the
    // register before. Not `preserves_flags`: the exception flags are among them.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack)) };
}

/// FPCR: no bit set.
#[cfg(all(target_arch = "aarch64", not(miri)))]
const IEEE: u64 = 0;

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn setting() -> u64 {
    let fpcr;
    // SAFETY: every AArch64 CPU has the register, and every program may read it.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, preserves_flags)) };
    fpcr
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn set(fpcr: u64) {
    // SAFETY: every AArch64 CPU has the register, and every program may write it; the bits are IEEE's, which Rust
    // reckons with, or were in it before. The flags are in other registers, NZCV and FPSR.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
const IEEE: u64 = 0;

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn setting() -> u64 {
    IEEE
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn set(_: u64) {}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod tests {
    use super::*;

    /// What a caller may have: flush to zero, denormals are zero, towards zero; on AArch64 flush to zero, towards zero.
    const OTHER: u64 = if cfg!(target_arch = "x86_64") { IEEE | 0xe040 } else { 0x1c0_0000 };

    #[test]
    fn the_callers_setting_is_back_afterwards() {
        let before = setting();
        set(OTHER);
        let (inside, panicked) = (
            as_ieee_has_it(setting),
            std::panic::catch_unwind(|| as_ieee_has_it(|| panic!("a panic of the work's own"))),
        );
        let after = setting();
        set(before);
        assert!(panicked.is_err());
        // Flags of what happened meanwhile are in the lowest bits of x86-64's.
        assert_eq!((inside & !0x3f, after & !0x3f), (IEEE & !0x3f, OTHER & !0x3f));
    }
}
