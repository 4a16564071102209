//! `tsm2l_columns`: A and C by columns, straight between registers and memory.
//!
//! # Idea
//! Down a column neighbouring lanes have neighbouring rows: a load of 16 bytes a lane is 512 neighbouring bytes a warp, and so
//! is a store. So nothing but B needs shared memory, no barrier is met after the first, and each thread has KU such loads in
//! flight while it multiplies the last KU, across tiles too: a chunk is always under way. Papers' TSM2L has one row a
//! thread, and nothing in flight from a tile to the next.
//!
//! # Thread mapping
//! Blocks take tiles of THREADS · V rows in turn, as many blocks as the GPU holds. Thread t owns V rows from V · t on where
//! A's columns start at multiples of 16 bytes; where they do not, rows t, t + THREADS, ..., by elements. All NB columns.

use super::bring::{Place, bring};
use crate::product::Product;
use cuda_std::prelude::*;

/// A tile's rows as this thread has them.
#[derive(Clone, Copy)]
struct Own {
    /// A's columns are aligned: V neighbours.
    wide: bool,
    first: u32,
    apart: u32,
}

impl Own {
    /// Row v of those from the tile's `start` on.
    #[inline(always)]
    fn row(&self, start: u32, v: usize) -> u32 {
        start + self.first + v as u32 * self.apart
    }
}

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory and at most as many blocks as there are
/// tiles; k <= BK, n <= NB, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Scalar,
    const THREADS: usize,
    const V: usize,
    const NB: usize,
    const BK: usize,
    const KU: usize,
>(
    x: Product<T>,
) {
    const { assert!(V == T::WIDTH, "16 bytes a load") };
    const { assert!(BK % KU == 0, "whole chunks") };
    let sb = Shared::<T>::at(0); // (NB, BK) by rows
    let own = thread::thread_idx_x();
    let place = |at: u32| Place { to: at, l: at / NB as u32, col: at % NB as u32 };
    // SAFETY: B spans its elements, as the launch promised; its part of the memory has so many.
    unsafe { bring(&x, sb, (BK * NB) as u32, THREADS as u32, place) };
    thread::sync_threads();

    let width = T::WIDTH as u64;
    let wide = x.a.is_aligned(16) && x.a_row == 1 && (x.a_col % width == 0 || x.k <= 1);
    let stores_wide = wide && x.c.is_aligned(16) && x.c_row == 1 && (x.c_col % width == 0 || x.n <= 1);
    let rows = if wide {
        Own { wide, first: own * V as u32, apart: 1 }
    } else {
        Own { wide, first: own, apart: THREADS as u32 }
    };
    let (tile_rows, turn) = ((THREADS * V) as u32, thread::grid_dim_x());
    let tiles = x.m.div_ceil(tile_rows);
    // SAFETY: A spans its elements, as the launch promised; `load` looks for rows below m and steps below k.
    let next = |tile: u32, l: u32| unsafe { load::<T, V, KU>(&x, rows, tile, tiles, tile_rows, l) };
    let (mut tile, mut l) = (thread::block_idx_x(), 0);
    let mut ra = next(tile, 0); // (V, KU)
    let mut rc = [[T::ZERO; NB]; V]; // (V, NB)
    while tile < tiles {
        let (tile_on, l_on) = if l + (KU as u32) < x.k { (tile, l + KU as u32) } else { (tile + turn, 0) };
        let now = ra;
        ra = next(tile_on, l_on);
        for u in 0..KU {
            let row = sb.starting_at((l + u as u32) * NB as u32);
            // SAFETY: l + u < BK.
            let rb: [T; NB] = unsafe { load_row(row) };
            for v in 0..V {
                for j in 0..NB {
                    rc[v][j] = now[u][v].fma(rb[j], rc[v][j]);
                }
            }
        }
        if l_on == 0 {
            // SAFETY: each thread owns its rows.
            unsafe { store::<T, V, NB>(&x, rows, tile * tile_rows, stores_wide, rc) };
            rc = [[T::ZERO; NB]; V];
        }
        (tile, l) = (tile_on, l_on);
    }
}

/// This thread's rows of steps `l ..` of A; zeros for what is not there.
///
/// # Safety
/// A spans its elements.
#[inline(always)]
unsafe fn load<T: Scalar, const V: usize, const KU: usize>(
    x: &Product<T>,
    rows: Own,
    tile: u32,
    tiles: u32,
    tile_rows: u32,
    l: u32,
) -> [[T; V]; KU] {
    let mut ra = [[T::ZERO; V]; KU];
    if tile >= tiles {
        return ra;
    }
    let start = tile * tile_rows;
    // SAFETY: rows below m and steps below k, or no access.
    unsafe {
        if rows.wide && rows.row(start, V - 1) < x.m {
            let from = x.a.starting_at(rows.row(start, 0) as u64 + l as u64 * x.a_col);
            for u in 0..KU {
                let wide = from.stream_wide_if(l + (u as u32) < x.k, u as u64 * x.a_col);
                for v in 0..V {
                    ra[u][v] = wide[v];
                }
            }
        } else {
            for u in 0..KU {
                for v in 0..V {
                    ra[u][v] = x.a(rows.row(start, v), l + u as u32, x.k);
                }
            }
        }
    }
    ra
}

/// A row of B, 16 bytes at a time where it is whole pieces.
///
/// # Safety
/// The row is in shared memory.
#[inline(always)]
unsafe fn load_row<T: Scalar, const NB: usize>(row: Shared<T>) -> [T; NB] {
    let mut rb = [T::ZERO; NB];
    // SAFETY: the row's NB elements are in shared memory, as the caller promised; whole pieces are aligned, as rows
    // then are.
    unsafe {
        if NB % T::WIDTH == 0 {
            for j in (0..NB).step_by(T::WIDTH) {
                let wide = row.load_wide(j as u32);
                for v in 0..T::WIDTH {
                    rb[j + v] = wide[v];
                }
            }
        } else {
            for j in 0..NB {
                rb[j] = row.load(j as u32);
            }
        }
    }
    rb
}

/// C ← α · sums + β · C in this thread's rows.
///
/// # Safety
/// C spans its elements, and no other thread accesses these rows.
#[inline(always)]
unsafe fn store<T: Scalar, const V: usize, const NB: usize>(
    x: &Product<T>,
    rows: Own,
    start: u32,
    wide: bool,
    sums: [[T; NB]; V],
) {
    // SAFETY: C spans its elements and the rows are this thread's, as the caller promised; rows below m, columns below
    // n.
    unsafe {
        if wide && rows.row(start, V - 1) < x.m {
            let first = rows.row(start, 0) as u64;
            for j in 0..NB {
                if (j as u32) < x.n {
                    let at = first + j as u64 * x.c_col;
                    let sum = |v: usize| sums[v][j].conj_if(x.conj_sum());
                    x.c.store_wide(at, |v| crate::product::scaled(x.alpha, sum(v), x.beta, x.c, at + v as u64));
                }
            }
        } else {
            x.write_tile(|v| rows.row(start, v), |j| j as u32, sums);
        }
    }
}
