//! The operations, a file each. [`gemm()`](gemm::gemm) serves every shape, [`gram()`](gram::gram) a matrix and itself.

pub(crate) mod enqueue;
pub mod gemm;
pub mod gram;
