//! Asynchronous copies from global into shared memory: `cp.async` and its groups.

use super::{GlobalAddress, SharedAddress};

/// Starts copying 16 bytes past the first-level cache, or writes 16 zero bytes where `inside` is false, without touching
/// global memory then. `cp.async.cg.shared.global`, from sm_80, PTX 7.0.
///
/// # Safety
/// Both addresses are aligned to 16 bytes, the source holds 16 bytes where `inside`, and the target is not accessed
/// until the copy's group was waited for; a barrier lies between earlier accesses to the target and this.
#[inline(always)]
pub unsafe fn cp_async_16(into: SharedAddress, from: GlobalAddress, inside: bool) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: promised by the caller.
    unsafe {
        core::arch::asm!("cp.async.cg.shared.global [{0}], [{1}], 16, {2};",
            in(reg32) into.0, in(reg64) from.0, in(reg32) if inside { 16u32 } else { 0 }, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().copy_async(into.0, from.0, 16, if inside { 16 } else { 0 });
}

/// Starts copying the first `bytes` of 16 bytes, at most 16, and zeros for the rest; else as [`cp_async_16`].
/// `cp.async.cg.shared.global`, from sm_80, PTX 7.0.
///
/// # Safety
/// As for [`cp_async_16`]; the source holds `bytes` bytes.
#[inline(always)]
pub unsafe fn cp_async_16_first(into: SharedAddress, from: GlobalAddress, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: promised by the caller.
    unsafe {
        core::arch::asm!("cp.async.cg.shared.global [{0}], [{1}], 16, {2};",
            in(reg32) into.0, in(reg64) from.0, in(reg32) bytes, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().copy_async(into.0, from.0, 16, bytes);
}

/// Starts copying 8 bytes through the first-level cache; else as [`cp_async_16`]. `cp.async.ca.shared.global`, 8 bytes,
/// from sm_80, PTX 7.0.
///
/// # Safety
/// As for [`cp_async_16`], with 8 bytes.
#[inline(always)]
pub unsafe fn cp_async_8(into: SharedAddress, from: GlobalAddress, inside: bool) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: promised by the caller.
    unsafe {
        core::arch::asm!("cp.async.ca.shared.global [{0}], [{1}], 8, {2};",
            in(reg32) into.0, in(reg64) from.0, in(reg32) if inside { 8u32 } else { 0 }, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().copy_async(into.0, from.0, 8, if inside { 8 } else { 0 });
}

/// Starts copying 4 bytes through the first-level cache; else as [`cp_async_16`]. `cp.async.ca.shared.global`, 4 bytes,
/// from sm_80, PTX 7.0.
///
/// # Safety
/// As for [`cp_async_16`], with 4 bytes.
#[inline(always)]
pub unsafe fn cp_async_4(into: SharedAddress, from: GlobalAddress, inside: bool) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: promised by the caller.
    unsafe {
        core::arch::asm!("cp.async.ca.shared.global [{0}], [{1}], 4, {2};",
            in(reg32) into.0, in(reg64) from.0, in(reg32) if inside { 4u32 } else { 0 }, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().copy_async(into.0, from.0, 4, if inside { 4 } else { 0 });
}

/// Closes this thread's group of copies: those since the last one, which may be none. `cp.async.commit_group`,
/// from sm_80, PTX 7.0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cp_async_commit_group() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: closing a group has no requirements.
    unsafe {
        core::arch::asm!("cp.async.commit_group;", options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().commit_group(core::panic::Location::caller());
}

/// Waits until at most `PENDING` of this thread's groups are in flight. Other threads see the data after a barrier.
/// `cp.async.wait_group`, from sm_80, PTX 7.0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cp_async_wait_group<const PENDING: u32>() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: waiting has no requirements.
    unsafe {
        core::arch::asm!("cp.async.wait_group {0};", const PENDING, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().wait_group(PENDING, core::panic::Location::caller());
}
