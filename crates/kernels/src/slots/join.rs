//! Where k is cut into parts: the sums of a tile's blocks become those of the last one of them.
//!
//! # Idea
//! A block leaves its sums in a slot as they lie in its threads, an element of each lane's behind one another: no edges, and whole lines. The last
//! block of a tile to do so, which the tile's ticket tells it, adds the slots in the order of the parts, whoever it is, and hands in C. So a
//! second launch, which costs 2 us and another for each megabyte of slots, is saved. On an
//! H200 squares gain that; of TSM2R's long products the last block reads slots for as long (benches/NOTES.md, 2026-11-28).

use crate::product::Product;
use cuda_std::prelude::*;
use model::launch::reduced::WORK_HEAD_BYTES;

/// Whether this block hands in tile `tile` of C: where k is whole, and as the last of the tile's blocks, whose `sums`, of which each of its `threads`
/// has as many, are then those of all parts.
///
/// # Safety
/// All `threads` threads of the block are here; where there are parts, the blocks (x, 0, z), (x, 1, z), .. are one tile's, and the workspace has a
/// ticket for each tile, which is 0 before the launch, and behind its head a slot of the tile's elements for each block.
#[inline(always)]
pub unsafe fn join<T: Scalar, const P: usize, const Q: usize, const R: usize, const N: usize>(
    x: &Product<T>,
    threads: u32,
    tile: u32,
    sums: &mut [[[[T; P]; Q]; R]; N],
) -> bool {
    let parts = thread::grid_dim_y();
    if parts == 1 {
        return true;
    }
    let t = thread::thread_idx_x() % threads; // there are no more, which the compiler cannot know
    let own = P * Q * R * N;
    let len = own as u64 * threads as u64;
    let head = (WORK_HEAD_BYTES as usize / size_of::<T>()) as u64;
    let slots = x.work.starting_at(head + tile as u64 * parts as u64 * len + t as u64);
    let slot = slots.starting_at(thread::block_idx_y() as u64 * len);
    for i in 0..own {
        let [p, q, r, n] = [i % P, i / P % Q, i / P / Q % R, i / P / Q / R];
        // SAFETY: this block's slot, in which each thread has elements of its own.
        unsafe { slot.store(i as u64 * threads as u64, sums[n][r][q][p]) };
    }
    thread::device_fence(); // this thread's sums, ahead of the ticket that is drawn behind the barrier
    thread::sync_threads();
    let ticket = x.work.address(tile as u64);
    // SAFETY: the first word of an element of the head, which is updated atomically alone.
    let is_last = t == 0 && unsafe { ptx::atom_add_u32(ticket, 1) } + 1 == parts;
    if thread::sync_threads_or(is_last as u32) == 0 {
        return false;
    }
    thread::device_fence(); // what the others wrote ahead of theirs
    if t == 0 {
        // SAFETY: the tile has no more blocks: the next launch finds 0.
        unsafe { ptx::atom_add_u32(ticket, 0u32.wrapping_sub(parts)) };
    }
    for n in 0..N {
        sums[n] = [[[T::ZERO; P]; Q]; R];
    }
    for part in 0..parts {
        let slot = slots.starting_at(part as u64 * len);
        for i in 0..own {
            let [p, q, r, n] = [i % P, i / P % Q, i / P / Q % R, i / P / Q / R];
            // SAFETY: a slot of this tile's, all of which are written.
            sums[n][r][q][p] = sums[n][r][q][p].add(unsafe { slot.load(i as u64 * threads as u64) });
        }
    }
    true
}
