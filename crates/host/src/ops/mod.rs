//! The operations, a file each.

pub(crate) mod enqueue;
pub mod gemm;
