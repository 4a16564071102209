//! The kernels: what runs on the GPU.
//!
//! | folder | operation |
//! |---|---|
//! | [`tsm2r`] | a large matrix times a skinny one: Algorithms 1 to 4 of TSM2X |
//! | [`gemm`] | any product: the plain register-tiled kernel |
//! | [`slots`] | adds what the parts of k gave, and applies α and β |
//! | [`ceiling`] | reads as fast as the memory allows, to measure it |
//!
//! Every file reads: contract, checks, coordinates, main loop, epilogue. Entries are stamped from the tables of
//! `model::variants`; tile sizes, cuts of k and shared-memory layouts come from `model::launch`. Memory is touched only
//! through `Global` and `Shared`. On the host, [`table`] finds an entry by its name.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]
// Indices are the algorithm's, and loops over const ranges are unrolled into registers.
#![allow(clippy::needless_range_loop)]

pub mod ceiling;
pub mod gemm;
pub mod product;
pub mod slots;
#[cfg(not(target_arch = "nvptx64"))]
pub mod table;
pub mod tsm2r;

/// Device code does not panic; should it, the grid is stopped and the launch reports an illegal instruction.
#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` has no requirements.
    unsafe { core::arch::nvptx::trap() }
}
