//! PTX instructions, one function each. Every one names its instruction, what it requires and the oldest architecture.
//!
//! Kernels use [`crate::Global`] and [`crate::Shared`] for plain loads and stores; what is here beyond those is for
//! asynchronous copies, bulk ones among them, atomics and matrix instructions.
//!
//! # Design note: macros
//! An instruction differs from its neighbour in a mnemonic and a register class, which must be literals in `asm!`. The
//! macros of this folder stamp such families; each expands to one instruction and has no logic.

mod arithmetic;
mod atomic;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod bulk;
mod copy;
mod word;

pub use arithmetic::*;
pub use atomic::*;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub use bulk::*;
pub use copy::*;
pub use word::{Hint, dynamic_shared};

/// Where an element of a [`crate::Global`] lies: an address on the GPU, a whole access report on the host.
#[derive(Clone, Copy)]
pub struct GlobalAddress(
    #[cfg(target_arch = "nvptx64")] pub(crate) u64,
    #[cfg(not(target_arch = "nvptx64"))] pub(crate) crate::hooks::Access,
);

/// Where an element of a [`crate::Shared`] lies: a 32-bit shared address on the GPU, an access report on the host.
#[derive(Clone, Copy)]
pub struct SharedAddress(
    #[cfg(target_arch = "nvptx64")] pub(crate) u32,
    #[cfg(not(target_arch = "nvptx64"))] pub(crate) crate::hooks::Access,
);
