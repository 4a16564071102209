//! The operations, a file each. [`gemm()`](gemm::gemm) serves every shape, [`gemv()`](gemv::gemv)
//! a matrix and a vector, [`gram()`](gram::gram) a matrix and itself; [`gemm_batched()`](batched::gemm_batched) many small ones, and
//! [`tsmm_in_place()`](tsmm::tsmm_in_place) writes where it reads.

pub mod batched;
pub(crate) mod enqueue;
pub(crate) mod enqueue_batch;
pub mod gemm;
pub mod gemv;
pub mod gram;
pub mod tsmm;
