//! B on its way into shared memory, once a block.
//!
//! A block that stands for memory's latency at each of its loads of B waits for most of the time that one of its four tiles takes: so a
//! thread asks for 64 bytes before it stores the first of them, or for less where that spills. Measured on an H200, matrices of 1 GB, of
//! what a copy moves, one load at a time and so: `dtsmm_bulk_16x32_n32_k32_s3_t128`, 24, 28 and 32 columns, 76, 76 and 81%, 96, 96 and 95;
//! `ztsmm_bulk_16x32_n32_k32_s3_t128`, 32 columns, 74 and 83, in turns of eight tiles 91. By a profiler 16 to 18% of the warps' time went to
//! these loads.

use crate::product::Product;
use core::array::from_fn;
use cuda_std::prelude::*;

/// An element of B: where it goes, its step of k and its column.
pub struct Place {
    pub to: u32,
    pub l: u32,
    pub col: u32,
}

/// Brings `len` elements of B, whose places are `place`'s, with zeros for what B does not have; by all of so many threads.
///
/// # Safety
/// B spans its elements, and there is room for all places; a barrier follows.
#[inline(always)]
pub unsafe fn bring<T: Scalar>(x: &Product<T>, sb: Shared<T>, len: u32, threads: u32, place: impl Fn(u32) -> Place) {
    // SAFETY: as the caller promised.
    unsafe {
        match T::WIDTH {
            1 => together::<T, 4>(x, sb, len, threads, place),
            2 => together::<T, 8>(x, sb, len, threads, place),
            _ => together::<T, 16>(x, sb, len, threads, place),
        }
    }
}

/// So many loads at a time.
///
/// # Safety
/// As for [`bring`].
#[inline(always)]
pub unsafe fn together<T: Scalar, const LOADS: usize>(
    x: &Product<T>,
    sb: Shared<T>,
    len: u32,
    threads: u32,
    place: impl Fn(u32) -> Place,
) {
    for first in (thread::thread_idx_x()..len).step_by(LOADS * threads as usize) {
        let at = |i: usize| first + i as u32 * threads;
        let elements: [T; LOADS] = from_fn(|i| {
            let Place { l, col, .. } = place(at(i));
            // SAFETY: `x.b` loads nothing outside B.
            unsafe { x.b(l, col, x.k) }
        });
        for i in 0..LOADS {
            if at(i) < len {
                // SAFETY: there is room for all places, as the caller promised.
                unsafe { sb.store(place(at(i)).to, elements[i]) };
            }
        }
    }
}
