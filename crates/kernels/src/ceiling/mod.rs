//! What the machine can do at most: kernels that only move memory, or only multiply.
//!
//! | entry | moves or computes |
//! |---|---|
//! | [`memory::read_ceiling_t256`] | reads 16 bytes a word |
//! | [`memory::write_ceiling_t256`] | writes them |
//! | [`memory::copy_ceiling_t256`] | reads and writes them |
//! | [`memory::update_ceiling_t256`] | reads and writes the same ones |
//! | [`arithmetic::sfma_ceiling_t256`], [`arithmetic::dfma_ceiling_t256`] | fused multiply-adds of the vector units |
//! | [`arithmetic::dmma_ceiling_t256`] | f64 `mma`, from sm_90 on |
//!
//! A percentage of a ceiling means something where both were measured on the same GPU in the same minute: these are what
//! the host measures before it times anything.

pub mod arithmetic;
pub mod memory;
