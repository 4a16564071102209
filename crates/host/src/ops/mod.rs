//! The operations, a file each. [`gemm()`](gemm::gemm) serves every shape.

pub(crate) mod enqueue;
pub mod gemm;
