//! Every public instruction of `cuda_std` in a kernel of its own, for the table in `../../table`.
//!
//! A kernel takes `(input, out)`, runs in one block of 32 threads unless its row of the table says otherwise, and has
//! 4096 bytes of dynamic shared memory. Whole numbers are stored as the bits of an `f32`.
//!
//! SAFETY, of all blocks: the table gives each kernel the input that it reads, room for what it writes, whole warps;
//! between accesses of two threads to one place there is a barrier.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]

mod arithmetic;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod bulk;
mod copies;
mod memory;
mod threads;
mod warps;

use cuda_std::Global;

/// Stores a whole number.
///
/// # Safety
/// As for [`Global::store`].
#[inline(always)]
unsafe fn put(out: Global<f32>, index: u32, value: u32) {
    // SAFETY: the element is in the operand and this thread's, as the caller promised.
    unsafe { out.store(u64::from(index), f32::from_bits(value)) }
}

/// Reads a whole number.
///
/// # Safety
/// As for [`Global::load`].
#[inline(always)]
unsafe fn get(input: Global<f32>, index: u32) -> u32 {
    // SAFETY: the element is in the operand, as the caller promised.
    unsafe { input.load(u64::from(index)) }.to_bits()
}

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` has no requirements.
    unsafe { core::arch::nvptx::trap() }
}
