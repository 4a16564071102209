//! Bulk copies: rings that are right, in many orders, and each fault that they can have; and single copies.

// Wrong kernels are what is tested: the emulator stops them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

#[path = "../common/mod.rs"]
mod common;
mod copies;
mod handed;
mod ring;

/// All lanes of a warp.
const ALL: u32 = u32::MAX;

/// What is copied.
fn numbers(len: u32) -> Vec<f64> {
    (0..len).map(|i| f64::from(i) + 0.5).collect()
}
