//! Reads memory as fast as it goes, to measure how fast that is.
//!
//! # Idea
//! Eight independent 16-byte loads a thread, past the first-level cache, in tiles that the grid takes turns at. What
//! they read is folded into one word that is written only if it has a value that it never has.
//! # Cost
//! Reads 16 · `words` bytes, `words` a multiple of 8 · threads.

use cuda_std::prelude::*;
use model::variants::READ_CEILING_THREADS;

/// Loads in flight a thread.
const UNROLL: usize = 8;

/// # Safety
/// `data` holds 16 · `words` bytes, aligned to 16; `out` holds one element.
#[kernel]
pub unsafe fn read_ceiling_t256(words: u64, data: Global<f32>, out: Global<f32>) {
    let tile_words = UNROLL as u64 * READ_CEILING_THREADS as u64;
    let t = thread::thread_idx_x() as u64;
    let mut folded = 0;
    let mut tile = thread::block_idx_x() as u64;
    while (tile + 1) * tile_words <= words {
        let loaded: [[f32; 4]; UNROLL] = core::array::from_fn(|u| {
            let word = tile * tile_words + u as u64 * READ_CEILING_THREADS as u64 + t;
            // SAFETY: the tile lies within the data, which nobody writes.
            unsafe { data.stream_wide(word * 4) }
        });
        for u in 0..UNROLL {
            for v in 0..4 {
                folded ^= loaded[u][v].to_bits();
            }
        }
        tile += thread::grid_dim_x() as u64;
    }
    // The data are zeros: they fold to zero, and the loads are needed to know it.
    if folded == 0x9e37_79b9 {
        // SAFETY: one element.
        unsafe { out.store(0, 1.0) };
    }
}
