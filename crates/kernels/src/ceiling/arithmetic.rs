//! Multiplies as fast as it goes, without memory.
//!
//! # Idea
//! Independent chains of multiply-adds, more than a unit's latency has steps, in registers. What they end with is
//! written, so that none is left out; it is known in advance, so that it can be checked.
//! # Cost
//! `rounds` · [`FMAS_A_ROUND`] fused multiply-adds a thread, or `rounds` · [`MMAS_A_ROUND`] `mma.m16n8k16` a warp.

use cuda_std::prelude::*;
use model::variants::{CEILING_FMAS, CEILING_MMAS};

/// Independent chains a thread.
const CHAINS: usize = 8;
/// Steps of each chain a round.
const STEPS: usize = 8;
/// Fused multiply-adds a thread and round.
pub const FMAS_A_ROUND: u64 = CEILING_FMAS as u64;
const _: () = assert!(FMAS_A_ROUND == (CHAINS * STEPS) as u64);
/// Independent `mma` a warp and round.
pub const MMAS_A_ROUND: u64 = CEILING_MMAS as u64;

/// A thread writes the sum of its chains, each x ← x / 2 + 1 from 2 on, where it stays: 2 · [`CHAINS`].
#[inline(always)]
unsafe fn chains<T: Scalar>(rounds: u32, half: T, out: Global<T>) {
    let two = T::ONE.add(T::ONE);
    let mut x = [two; CHAINS];
    for _ in 0..rounds {
        for _ in 0..STEPS {
            for chain in 0..CHAINS {
                x[chain] = x[chain].fma(half, T::ONE);
            }
        }
    }
    let mut sum = T::ZERO;
    for chain in 0..CHAINS {
        sum = sum.add(x[chain]);
    }
    // SAFETY: `out` holds an element a thread, as the entry's launch promised, and this is this thread's.
    unsafe { out.store(thread::index_1d() as u64, sum) };
}

/// out ← 16 in every element, if `half` is ½.
///
/// # Safety
/// `out` holds an element a thread of the grid.
#[kernel]
pub unsafe fn sfma_ceiling_t256(rounds: u32, half: f32, out: Global<f32>) {
    // SAFETY: `out` holds an element a thread, as the launch promised.
    unsafe { chains(rounds, half, out) };
}

/// out ← 16 in every element, if `half` is ½.
///
/// # Safety
/// `out` holds an element a thread of the grid.
#[kernel]
pub unsafe fn dfma_ceiling_t256(rounds: u32, half: f64, out: Global<f64>) {
    // SAFETY: `out` holds an element a thread, as the launch promised.
    unsafe { chains(rounds, half, out) };
}

/// out ← 64 · `rounds` · `MMAS_A_ROUND` in every element: products of ones, 16 a sum, of the lane's four sums. Below
/// sm_90, which has no such instruction, nothing is computed or written.
///
/// # Safety
/// `out` holds an element a thread of the grid; blocks are whole warps.
#[kernel]
pub unsafe fn dmma_ceiling_t256(rounds: u32, one: f64, out: Global<f64>) {
    #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
    {
        let mut sums = [[0.0; 4]; MMAS_A_ROUND as usize];
        for _ in 0..rounds {
            for chain in 0..MMAS_A_ROUND as usize {
                // SAFETY: all lanes of all warps are here.
                sums[chain] = unsafe { ptx::mma_m16n8k16_f64([one; 8], [one; 4], sums[chain]) };
            }
        }
        let sum = sums.iter().flatten().fold(0.0, |total, part| total + part);
        // SAFETY: `out` holds an element a thread, as the launch promised, and this is this thread's.
        unsafe { out.store(thread::index_1d() as u64, sum) };
    }
    #[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_90")))]
    let _ = (rounds, one, out);
}
