//! The reasoning of the papers that the kernels come from: their formulas, as functions, with the numbers they print.
//!
//! | module | paper |
//! |---|---|
//! | [`tsm2x`] | C. Rivera et al., TSM2X: high-performance tall-and-skinny matrix-matrix multiplication on GPUs, 2021 |
//! | [`tsmttsm`] | D. Ernst et al., Performance engineering for real and complex tall & skinny matrix multiplication kernels on GPUs, 2020 |
//! | [`gemv`] | H. H. B. Sørensen, High-performance matrix-vector multiplication on the GPU, 2011 |
//! | [`batched`] | I. Masliah et al., Algorithms and optimization techniques for high-performance matrix-matrix multiplications of very small matrices, 2019 |
//! | [`squares`] | T. E. Zosa IV, Matrix multiplication: parallel computation via GPGPU programming, a course report, 2017 |
//!
//! What is launched is decided by [`mod@crate::choose`], which is fitted to measurements; nothing of this module is in
//! its way. This module says what the papers would do, and where that can be checked it agrees with what they print. A
//! formula that a paper's text has lost is reconstructed from its prose, which its documentation says; so does a test of
//! what a reconstruction cannot yield.

pub mod batched;
pub mod gemv;
pub mod squares;
pub mod tsm2x;
pub mod tsmttsm;
