//! `gemv_dots`: A's unit stride runs along its rows, whose products with x are dot products.
//!
//! # Idea
//! Each lane has 16 bytes of each of its TM rows in flight while it multiplies those before them: 32 KiB a block. What it loads of x, or of NB vectors, serves all of
//! these rows, so that x adds little to what comes from the caches. Lanes add their sums in a tree of shuffles, warps theirs in
//! shared memory. Blocks take the parts of k of the same rows one after the other: those that begin together read lines of memory, and not a piece of each line.
//!
//! # Thread mapping
//! ALONG = THREADS·TM / BM threads along k have the same TM rows: a block where rows are few
//! or long, since memory gives 4 KiB of a row faster than as much of eight, a warp where they are many and short, eight lanes where they are very short. A lane has WIDTH neighbouring steps of k, by 16 bytes or, where rows do not
//! begin at multiples of them, by elements: its sums are the same.

use crate::tsmttsm::{Duty, Reduced};
use cuda_std::prelude::*;
use cuda_std::warp::{WARP_LANES, WarpShuffleValue};

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
) where
    T::Word: WarpShuffleValue,
{
    const {
        assert!(
            STEPS == T::WIDTH && BM % TM == 0 && (THREADS * TM / BM).is_power_of_two(),
            "16 bytes a row, lanes that halve"
        )
    };
    let along = const { (THREADS * TM / BM) as u32 };
    let t = thread::thread_idx_x();
    let (lane, first) = (t % along, t / along * TM as u32);
    let duty = Duty::parts_first();
    let (p, row) = (&x.p, duty.down * BM as u32 + first);
    let (start, end) = p.part_at(along * STEPS as u32, duty.part);
    let by_16_bytes = p.a.is_aligned(16) && (p.m <= 1 || p.a_row % STEPS as u64 == 0);
    // Up to here there are whole 16 bytes, since a part starts at a multiple of them.
    let whole = if by_16_bytes { start + (end - start) / STEPS as u32 * STEPS as u32 } else { start };
    let mut sums = [[T::ZERO; TM]; NB];

    let next = |l: u32| {
        let at = l + lane * STEPS as u32;
        let mut from = p.a.starting_at(row as u64 * p.a_row + at as u64);
        let mut ra = [T::ZEROS; TM]; // (TM, STEPS)
        for i in 0..TM {
            // SAFETY: 16 bytes of a row before `whole` <= k, aligned.
            ra[i] = unsafe { from.stream_wide_if(row + (i as u32) < p.m && at < whole, 0) };
            from = from.starting_at(p.a_row);
        }
        // SAFETY: `whole` <= k.
        let column = |j: usize| core::array::from_fn(|s| unsafe { p.b(at + s as u32, j as u32, whole) });
        let rx: [[T; STEPS]; NB] = core::array::from_fn(column); // (NB, STEPS)
        (ra, rx)
    };
    let mut now = next(start);
    let step = STEPS as u32 * along;
    for l in (start..whole).step_by(step as usize) {
        let (ra, rx) = now;
        // Past the end nothing is loaded. That it is ahead keeps the assembler from loading one by one.
        now = next(l + step);
        for s in 0..STEPS {
            for i in 0..TM {
                for j in 0..NB {
                    sums[j][i] = ra[i][s].fma(rx[j][s], sums[j][i]);
                }
            }
        }
    }
    // Without 16 bytes all, else what is left of a row, by the lane whose steps they are.
    let rest = start + (whole - start) / step * step + if whole == end { step } else { 0 };
    for l in (rest..end).step_by(step as usize) {
        if l + lane * (STEPS as u32) < whole {
            continue;
        }
        let at = |s: usize| l + lane * STEPS as u32 + s as u32;
        // SAFETY: `end` <= k.
        let load = |i: usize| core::array::from_fn(|s| unsafe { p.a(row + i as u32, at(s), end) });
        let ra: [[T; STEPS]; TM] = core::array::from_fn(load);
        for s in 0..STEPS {
            for j in 0..NB {
                // SAFETY: `end` <= k.
                let rx = unsafe { p.b(at(s), j as u32, end) };
                for i in 0..TM {
                    sums[j][i] = ra[i][s].fma(rx, sums[j][i]);
                }
            }
        }
    }

    let lanes = if along < WARP_LANES { along } else { WARP_LANES };
    let sc = Shared::<T>::at(0); // (BM, NB, warps along k) by columns
    for j in 0..NB {
        for i in 0..TM {
            let mut distance = 1;
            while distance < lanes {
                // SAFETY: all lanes are here; the source lane is in the warp.
                let (other, _) =
                    unsafe { warp::warp_shuffle_xor(u32::MAX, sums[j][i].to_word(), distance, WARP_LANES) };
                sums[j][i] = sums[j][i].add(T::from_word(other));
                distance *= 2;
            }
            if lane % lanes == 0 {
                let column = lane / lanes * NB as u32 + j as u32;
                // SAFETY: an element of each of the threads' own.
                unsafe { sc.store(column * BM as u32 + first + i as u32, sums[j][i]) };
            }
        }
    }
    // SAFETY: shared memory and operands are as the launch promised; all sums are stored, and all threads here.
    unsafe { super::hand_in(&x, duty, (BM as u32, NB as u32), THREADS as u32, ((BM * NB) as u32, along / lanes)) };
}
