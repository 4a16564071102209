//! `tsmm_outer`: few steps, and many columns of C, each row of which is written where it is computed.
//!
//! # Idea
//! Of few steps nearly all that is moved is C, and memory takes what is written fastest where it comes as it lies: neighbouring threads have
//! neighbouring pieces of a row, and go down the rows of a tile side by side. A step's 16 bytes of B are a thread's registers; a tile of A
//! is in shared memory, of which all threads of a row read the same. Blocks take one tile and end: while one waits for its A the others of an
//! SM write.
//!
//! # Thread mapping
//! A row of C is cut into pieces of W columns, 16 bytes. Thread t owns piece t mod P of P pieces, of row ⌊t / P⌋ of the tile and each ⌊THREADS / P⌋-th further
//! on, U of them at a time. What is left of the threads idles. Where rows of C are no whole pieces its columns are P apart in place of neighbours.
//!
//! # Zero β, tails
//! β = 0 never reads C. Rows and columns that are not there are not written.
//!
//! # Cost
//! Measured on an H200 (benches/results/trials/outer.csv), C of 1 GB, percent of the bound, the fastest of the others in brackets: 64 columns of 1, 2 and
//! 4 steps f64 85, 83 and 81 (80, 77, 76), of 8 82 (77), f32 86, 83, 83 and 81 (80, 77, 76, 77), c64 85, 82 and 81 (80, 76, 74), c128 87, 81 and 80 (80, 76, 76).
//! No pattern of stores was found that reaches 89: reads of A between them cost a tenth (benches/NOTES.md). Tiles of fewer rows begin more often: what a
//! block does before its first row took f32 of 32 rows to 38%.
//!
//! # Determinism
//! Each sum is one thread's, from step 0 on.

use super::tile::{Rows, place};
use crate::product::{Product, scaled};
use core::array::from_fn;
use cuda_std::prelude::*;

/// Rows of a thread at a time.
const U: usize = 2;

/// This thread's columns of B and of C.
struct Columns<T, const W: usize, const K: usize> {
    rb: [[T; W]; K],
    /// How many there are, and from each to the next in C.
    count: u32,
    apart: u64,
    /// Whether those of C are 16 bytes.
    are_wide: bool,
}

/// A's tile in shared memory, whose rows are `down` apart, steps `across`; `is_wide` if a row is pieces.
struct Tile<T> {
    sa: Shared<T>,
    rows: u32,
    down: u32,
    across: u32,
    is_wide: bool,
}

/// # Safety
/// Launched with THREADS threads a block and `model::launch::tiling`'s shared memory; k <= K, n <= W · THREADS, and operands that span their
/// elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const THREADS: usize, const ROWS: usize, const W: usize, const K: usize>(x: Product<T>) {
    const { assert!(W == T::WIDTH && K % W == 0, "a thread's columns are 16 bytes, steps whole pieces") };
    const { assert!(ROWS % 16 == 0, "tiles start at multiples of 16 bytes") };
    const { assert!(THREADS % 64 == 0, "a thread's pieces of a run are equally far apart") };
    let a = Rows::new(x.a, (x.a_row, x.a_col), (x.m, x.k), ROWS as u32, THREADS as u32);
    let width = W as u32;
    let pieces = x.n.div_ceil(width).max(1); // of no columns there is nothing
    let (piece, own, abreast) =
        (thread::thread_idx_x() % pieces, thread::thread_idx_x() / pieces, THREADS as u32 / pieces);
    let lies_in_pieces = x.c.is_aligned(16) && x.c_col == 1 && x.c_row % width as u64 == 0;
    let are_wide = lies_in_pieces && x.n > 0 && x.n % width == 0;
    let (col, apart) = if are_wide { (piece * width, 1) } else { (piece, pieces) };
    // SAFETY: shared memory and operands are as the launch promised; the tile exists; barriers lie between filling and reading it.
    unsafe {
        let columns = Columns::<T, W, K> {
            // `x.b` loads nothing outside B.
            rb: from_fn(|l| from_fn(|j| x.b(l as u32, col + j as u32 * apart, x.k))),
            count: if col < x.n { (x.n - col).div_ceil(apart) } else { 0 },
            apart: apart as u64 * x.c_col,
            are_wide,
        };
        let c = x.c.starting_at(own as u64 * x.c_row + col as u64 * x.c_col);
        let mut tile = thread::block_idx_x();
        while tile < x.m.div_ceil(ROWS as u32) {
            let (sa, first) = (Shared::<T>::at(0), tile * ROWS as u32); // (ROWS, k)
            a.fill(sa, first);
            ptx::cp_async_commit_group();
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the tile is whole
            let rows = a.rows_from(first);
            let filled = Tile { sa, rows, down: a.down, across: a.across, is_wide: a.is_wide() };
            let (mut row, mut c) = (own, c.starting_at(first as u64 * x.c_row));
            while own < abreast && row < rows {
                columns.rows(&x, &filled, row, abreast, c);
                row += U as u32 * abreast;
                c = c.starting_at((U as u32 * abreast) as u64 * x.c_row);
            }
            thread::sync_threads(); // and may be overwritten
            tile += thread::grid_dim_x();
        }
    }
}

impl<T: Scalar, const W: usize, const K: usize> Columns<T, W, K> {
    /// C ← α A B + β C of these columns, the first of which is at `c`, and of rows of the tile from `row` on, so many apart.
    ///
    /// # Safety
    /// The tile is filled, and its rows of C are the block's.
    #[inline(always)]
    unsafe fn rows(&self, x: &Product<T>, tile: &Tile<T>, row: u32, abreast: u32, c: Global<T>) {
        let row = |u: usize| row + u as u32 * abreast;
        let at = |u: usize, j: usize| (u as u32 * abreast) as u64 * x.c_row + j as u64 * self.apart;
        // SAFETY: the tile is filled; the elements of C are there, and this thread's.
        unsafe {
            let sums = self.sums(x.k, tile, from_fn(row));
            for u in 0..U {
                if row(u) >= tile.rows {
                    continue;
                }
                let scaled = |j: usize| scaled(x.alpha, sums[u][j].conj_if(x.conj_sum()), x.beta, c, at(u, j));
                if self.are_wide {
                    c.store_wide(at(u, 0), scaled);
                    continue;
                }
                for j in 0..W {
                    if (j as u32) < self.count {
                        c.store(at(u, j), scaled(j));
                    }
                }
            }
        }
    }

    /// The products; of rows that are not there some others.
    ///
    /// # Safety
    /// The tile is filled.
    #[inline(always)]
    unsafe fn sums(&self, k: u32, tile: &Tile<T>, rows: [u32; U]) -> [[T; W]; U] {
        let mut rc = [[T::ZERO; W]; U];
        let starts = rows.map(|row| row.min(tile.rows - 1) * tile.down);
        // SAFETY: steps below k, of rows of the tile.
        unsafe {
            if tile.is_wide {
                for l in (0..K).step_by(W) {
                    if l as u32 >= k {
                        break;
                    }
                    let ra: [T::Wide; U] = from_fn(|u| tile.sa.load_wide(place::<T>(starts[u] + l as u32)));
                    for v in 0..W {
                        for u in 0..U {
                            for j in 0..W {
                                rc[u][j] = ra[u][v].fma(self.rb[l + v][j], rc[u][j]);
                            }
                        }
                    }
                }
            } else {
                for l in 0..K {
                    if l as u32 >= k {
                        break;
                    }
                    let ra: [T; U] = from_fn(|u| tile.sa.load(place::<T>(starts[u] + l as u32 * tile.across)));
                    for u in 0..U {
                        for j in 0..W {
                            rc[u][j] = ra[u].fma(self.rb[l][j], rc[u][j]);
                        }
                    }
                }
            }
        }
        rc
    }
}
