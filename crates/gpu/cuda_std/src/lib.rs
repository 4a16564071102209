//! What a GPU kernel in Rust needs, with the names of rust-cuda's `cuda_std`, for stock rustc.
//!
//! | module | what it has |
//! |---|---|
//! | [`thread`] | who am I, barriers, fences |
//! | [`warp`] | shuffles and votes among 32 lanes |
//! | [`memory`] | [`Global`] and [`Shared`], the only ways to touch memory, and the asynchronous copies between them |
//! | [`scalar`], [`complex`] | element types: [`Scalar`], [`Complex`] |
//! | [`ptx`] | the instructions, one function each: matrix units, atomics, asynchronous copies, bulk ones and their mbarriers |
//! | [`hooks`] | off the GPU: who runs the instructions instead |
//!
//! On the GPU everything here is one instruction, which its page names with the oldest architecture and PTX version
//! that has it, or a few where the page says so, or none. On the host each instruction is handed to the emulator that
//! [`hooks::install`] was given, with the place in the source that asked for it; without one it panics and says so.
//! Arithmetic needs no emulator.
//!
//! ```
//! # extern crate lanky_cuda_std as cuda_std;
//! use cuda_std::prelude::*;
//!
//! #[kernel]
//! pub unsafe fn double(n: u64, x: Global<f32>) {
//!     let i = thread::index_1d().into();
//!     if i < n {
//!         // SAFETY: i < n, the length of x; no other thread has this element.
//!         unsafe { x.store(i, x.load(i) + x.load(i)) };
//!     }
//! }
//!
//! # fn main() {
//! // No emulator is installed here, so the first instruction panics.
//! let mut x = [1.0_f32; 4];
//! let x = Global::on_host("x", x.as_mut_ptr(), 4);
//! let stopped = std::panic::catch_unwind(|| unsafe { double(4, x) });
//! assert!(stopped.is_err());
//! # }
//! ```
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, stdarch_nvptx, core_intrinsics))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

pub mod complex;
#[cfg(not(target_arch = "nvptx64"))]
pub mod hooks;
pub mod memory;
pub mod ptx;
pub mod scalar;
pub mod thread;
pub mod warp;

pub use complex::Complex;
pub use cuda_std_macros::kernel;
pub use memory::{Global, Shared};
pub use scalar::{Scalar, Signs, Word, there_and_back};

/// What every kernel file imports.
pub mod prelude {
    pub use crate::{Complex, Global, Scalar, Shared, Signs, kernel, ptx, there_and_back, thread, warp};
}
