//! GEMV: y ← α A x + β y, of any matrix and a vector, or NB of them.
//!
//! | operand | shape | strides | role |
//! |---------|-------|---------|------|
//! | A | m x k | one of them 1, as the variant wants; the paper's any | streamed, read once |
//! | x, called B | k x 1, or up to NB vectors | any | small; a thread reads an element for all of its rows |
//! | y, called C | m x 1, or as many | any | written at the end |
//!
//! | variant | Sørensen | idea |
//! |---|---|---|
//! | [`columns`] | | unit stride down the columns: lanes along the rows by 16 bytes, several columns in flight |
//! | [`tall`] | | the same, each load multiplied before the next: columns so long that there are blocks enough |
//! | [`lines`] | | the same, columns by bulk copies through shared memory, wherever they start: from sm_90 on |
//! | [`dots`] | | unit stride along the rows: lanes along k by 16 bytes, several rows in flight |
//! | [`chunks`] | (a) to (d) | a thread has a row or several, x by chunks in shared memory; full tiles have no conditions |
//! | [`wide`] | (e) | threads of a block run along the columns of a matrix of few rows |
//!
//! # Thread mapping
//! Block (x, y) owns rows x·BM .. and part y of k, but of [`dots`], whose blocks take a tile's parts one after the other. A thread has TM of its rows; those that
//! share rows have different steps of k.
//! # Tile parameters
//! BM: rows a block. TM: rows a thread. NB: vectors, 1 but of entries of [`columns`] and [`dots`], to which a matrix of two columns is two vectors. STEPS: steps of k that a
//! thread loads at a time.
//! # Zero β, tails
//! β = 0 never reads y. What is outside of A and x is zero and touches no memory; rows past m are not stored. Lines that do
//! not start at multiples of 16 bytes are loaded by elements, as many of them in flight.
//! # Conjugates
//! As of `Product::conj_sum`.
//! # Determinism
//! A thread adds its steps in ascending order; lanes, groups and slots are added in orders that follow from the entry and the
//! plan ([`crate::tsmttsm::finish`]). No atomic adds.
//! # Cost
//! 2mk flops a vector, of complex elements 8mk; reads m·k + NB·k elements, x mostly from a cache: `model::roofline`.
//! # Source
//! H. H. B. Sørensen, High-performance matrix-vector multiplication on the GPU, Euro-Par 2011 Workshops, LNCS 7155: Sections 3.1
//! to 3.5; its m and n are m and k here, BLOCKSIZE is THREADS, WORKSIZE_m is TM. Ours: slots in place of atomics, any strides,
//! `columns`, `tall`, `lines` and `dots`.

pub mod chunks;
pub mod columns;
pub mod dots;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod lines;
pub mod tall;
pub mod wide;

use crate::product::{Product, c64, c128};
use crate::tsmttsm::{Duty, Reduced, finish, reduced_entry};
use cuda_std::prelude::*;

/// Adds the sums of those that share a row and hands in the rows that are the block's duty: sum g of element e of its BM x NB, by columns, lies at g·`pitch` + e
/// of shared memory, `count` of them for each.
///
/// # Safety
/// All threads of the block are here, and their sums are stored; `model::launch::tiling`'s shared memory; the operands span
/// their elements.
#[inline(always)]
unsafe fn hand_in<T: Scalar>(
    x: &Reduced<T>,
    duty: Duty,
    (bm, nb): (u32, u32),
    threads: u32,
    (pitch, count): (u32, u32),
) {
    let sums = Shared::<T>::at(0);
    thread::sync_threads();
    if count > 1 {
        let row = duty.down * bm;
        for e in (thread::thread_idx_x()..bm * nb).step_by(threads as usize) {
            if row + e % bm < x.p.m {
                // SAFETY: behind the barrier; an element's sums are read and its first written by this thread alone.
                unsafe {
                    let mut sum = sums.load(e);
                    for g in 1..count {
                        sum = sum.add(sums.load(g * pitch + e));
                    }
                    sums.store(e, sum);
                }
            }
        }
        thread::sync_threads();
    }
    // SAFETY: the block's rows are whole, behind a barrier.
    unsafe { finish::tile_at::<T, false>(x, duty, (bm, nb, threads)) };
}

/// The modules by their variants' names: the paper's first four differ in tiles and launches alone.
mod body {
    pub use super::chunks as one_thread;
    pub use super::chunks as several_threads;
    pub use super::chunks as several_rows;
    pub use super::chunks as versatile;
    pub use super::{columns, dots, tall, wide};
}

macro_rules! entries {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal, $bm:literal, $tm:literal, $nb:literal, $steps:literal, $blocks:literal;)*) => {
        $(reduced_entry!($entry, $elem, body::$variant::body::<$elem, $threads, $bm, $tm, $nb, $steps>);)*
    };
}
model::gemv_variants!(entries);

macro_rules! lines_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $bm:literal, $tm:literal, $steps:literal, $blocks:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            reduced_entry!($entry, $elem, lines::body::<$elem, $threads, $bm, $tm, $steps>);
        )*
    };
}
model::gemv_lines_variants!(lines_entries);
