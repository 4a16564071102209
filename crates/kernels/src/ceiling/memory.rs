//! Moves memory as fast as it goes.
//!
//! # Idea
//! Eight independent accesses a thread, of 16 bytes where they only read and of 8 where they write, in tiles that the
//! grid takes turns at; a copy has one, of 16 bytes.
//! # Cost
//! 16 · `words` bytes each way, `words` a multiple of [`TILE`].

use cuda_std::prelude::*;
use model::variants::{CEILING_THREADS, CEILING_UNROLL};

/// Accesses in flight a thread.
const UNROLL: usize = CEILING_UNROLL as usize;
/// Accesses of a block in flight: `words` must be a multiple.
pub const TILE: u64 = UNROLL as u64 * CEILING_THREADS as u64;

/// Calls `step` with what this thread accesses of each tile of its block.
#[inline(always)]
fn tiles(len: u64, mut step: impl FnMut([u64; UNROLL])) {
    let t = thread::thread_idx_x() as u64;
    let mut tile = thread::block_idx_x() as u64;
    while (tile + 1) * TILE <= len {
        step(core::array::from_fn(|u| tile * TILE + u as u64 * CEILING_THREADS as u64 + t));
        tile += thread::grid_dim_x() as u64;
    }
}

/// What it reads is folded into one word, which is written only if it has a value that zeros never fold to.
///
/// # Safety
/// `data` holds 16 · `words` bytes of zeros, aligned to 16; `out` holds one element.
#[kernel]
pub unsafe fn read_ceiling_t256(words: u64, data: Global<f32>, out: Global<f32>) {
    let mut folded = 0;
    tiles(words, |at| {
        // SAFETY: the tile lies within the data, which nobody writes.
        let loaded = at.map(|word| unsafe { data.stream_wide(word * 4) });
        for u in 0..UNROLL {
            for v in 0..4 {
                folded ^= loaded[u][v].to_bits();
            }
        }
    });
    if folded == 0x9e37_79b9 {
        // SAFETY: one element.
        unsafe { out.store(0, 1.0) };
    }
}

/// to ← from: 16 bytes a thread at a time.
///
/// On an H200 4.27 TB/s where each block has one time and ends, 4.0 where as many as there is room for have many.
///
/// # Safety
/// Both hold 16 · `words` bytes, aligned to 16, and do not overlap.
#[kernel]
pub unsafe fn copy_ceiling_t256(words: u64, from: Global<f64>, to: Global<f64>) {
    let mut word = thread::index_1d() as u64;
    while word < words {
        // SAFETY: the word lies within both, and is this thread's alone; nobody writes `from`.
        unsafe {
            let loaded = from.stream_wide(2 * word);
            to.store_wide(2 * word, |v| loaded[v]);
        }
        word += thread::grid_dim_x() as u64 * CEILING_THREADS as u64;
    }
}

/// to ← 1.
///
/// # Safety
/// `to` holds 16 · `words` bytes.
#[kernel]
pub unsafe fn write_ceiling_t256(words: u64, to: Global<f64>) {
    tiles(2 * words, |at| {
        for u in 0..UNROLL {
            // SAFETY: the tile lies within `to`; each element is this thread's alone.
            unsafe { to.store(at[u], 1.0) };
        }
    });
}

/// data ← data / 2.
///
/// # Safety
/// `data` holds 16 · `words` bytes.
#[kernel]
pub unsafe fn update_ceiling_t256(words: u64, data: Global<f64>) {
    tiles(2 * words, |at| {
        // SAFETY: the tile lies within the data; each element is this thread's alone.
        let loaded = at.map(|index| unsafe { data.load(index) });
        for u in 0..UNROLL {
            // SAFETY: the tile lies within the data; each element is this thread's alone.
            unsafe { data.store(at[u], 0.5 * loaded[u]) };
        }
    });
}
