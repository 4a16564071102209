//! `gemv_tall`: [`super::columns`] for columns so long that k need not be cut.
//!
//! # Idea
//! Loads that are multiplied before the next ones leave room for four blocks an SM, by 64 registers, where two sets of them, 96 to 108, leave room for two. While one
//! multiplies, the others have theirs on their way, and a tall matrix's blocks are fewer waves. On an H200 f32 38633 x 472 takes 19.8 us so, 23.7 without. Of some
//! gigabytes two sets are faster, and in the parts that the model cuts k into (benches/NOTES.md, 2026-11-29).
//!
//! # Thread mapping
//! That of [`super::columns`], and the order of its sums.
//!
//! # Cost
//! Measured: `benches/results/h200/gemv-graphs.csv`; what was tried: benches/NOTES.md.
//!
//! # Source
//! Ours.

use crate::tsmttsm::Reduced;
use cuda_std::prelude::*;

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Scalar,
    const THREADS: usize,
    const BM: usize,
    const TM: usize,
    const NB: usize,
    const STEPS: usize,
>(
    x: Reduced<T>,
) {
    // SAFETY: the caller's promise.
    unsafe { super::columns::product::<T, THREADS, BM, TM, NB, STEPS, false>(x) }
}
