//! The kernels: what runs on the GPU.
//!
//! | folder | operation |
//! |---|---|
//! | [`tsm2r`] | C ← α A B + β C, a large matrix times a skinny one: Algorithms 1 to 4 of TSM2X, and what goes beyond them |
//! | [`tsmm`] | the same for a tall A of few columns: TSM2X's Algorithms 6 and 7, Ernst et al.'s mappings, and what goes beyond |
//! | [`gemm`] | C ← α A B + β C of any shape: the plain register-tiled kernel, and both operands through a ring of stages |
//! | [`tsmttsm`] | C ← α Aᵀ B + β C over the long side of two tall matrices, and Gram matrices: the variants of Ernst et al., and what goes beyond them |
//! | [`gemv`] | y ← α A x + β y: the kernels of Sørensen's paper, and what goes beyond them |
//! | [`batched`] | C_i ← α A_i B_i + β C_i of many small matrices: tiles of several products, a warp a product, and the variants of MAGMA's paper |
//! | [`complex_fragments`] | how numbers of A, B and C lie in fragments of the matrix units where they are complex |
//! | [`slots`] | C ← α (S₀ + S₁ + ...) + β C: adds what the parts of k gave, in order |
//! | [`ceiling`] | moves memory, and multiplies, as fast as the GPU can, to measure it |
//!
//! C is m x n, A m x k, B k x n, of f32, f64 or complex numbers of them; sizes are 32 bits, strides and offsets 64 bits, in elements. An entry
//! is called by a launch on the GPU, which is the host's affair, or by an emulator on the host; it allocates nothing,
//! and its result has the same bits every time, but for `tsmttsm_atomic`, which adds in any order. TSM2X: Rivera et al., J. Parallel Distrib. Comput. 151 (2021).
//!
//! Every file reads: contract, checks, coordinates, main loop, epilogue. Entries are stamped from the tables of
//! `model::variants`; tile sizes, cuts of k and shared-memory layouts come from `model::launch`. Memory is touched only
//! through `Global` and `Shared`. On the host, [`table`] finds an entry by its name.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]
// Indices are the algorithm's, and loops over const ranges are unrolled into registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

pub mod batched;
pub mod ceiling;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod complex_fragments;
pub mod gemm;
pub mod gemv;
pub mod product;
pub mod slots;
#[cfg(not(target_arch = "nvptx64"))]
pub mod table;
pub mod tsm2r;
pub mod tsmm;
pub mod tsmttsm;

/// Device code does not panic; should it, the grid is stopped and the launch reports an illegal instruction.
#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` has no requirements.
    unsafe { core::arch::nvptx::trap() }
}
