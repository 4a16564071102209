//! `batched_flat`: whole matrices through shared memory as they lie in device memory, f64 and c128: those without gaps, of any size
//! up to 32.
//!
//! # Idea
//! A matrix without gaps is one run of bytes, whatever its size and its order are, and runs move by 16 bytes from their first multiple of
//! 16 on. So the copies of A, B and C are the same for all sizes, odd ones too, and as few as can be; the next problems' are on their
//! way while one is multiplied, C's among them, so that nothing of a problem is waited for twice. Transposes are strides in shared
//! memory. C is written there and leaves as it came, by 16 bytes.
//!
//! # Thread mapping
//! The PARTS warps of a block have a problem. Blocks take problems in turn, where all matrices follow one another several small ones at a time,
//! which are one run. Who computes what is `real.rs`' of f64, `complex.rs`' of c128.
//! # Tile parameters
//! Each block has a ring of 2 to 4 stages, `model::launch::batched::FlatTile`: A, B and, where β is not 0, C.
//! # Preconditions
//! No matrix has gaps: the elements of each are one run.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. Nothing outside of a matrix is read or written: what of it lies before its first multiple
//! of 16 bytes and behind its last moves by elements.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k, as of the other entries; of c128 as of `batched_fragments`.
//! # Cost
//! Each matrix is read once, one that problems share once for each of them, and each C written once. A matrix begins in shared memory as far past 16 bytes as in device memory, and a
//! piece is left out behind each eight, so that neighbouring columns of 16 or 32 elements do not begin in the same bank. Of
//! m = n = k = 32 in f64, β = 1, an H200's memory takes 1700 cycles an SM for a problem, its shared memory some 700, its matrix units
//! 256, its schedulers some 400.
//! On 2026-11-22 it reached 77, 82, 76 and 86% of the bound there at 20, 24, 28 and 32 (f64, β = 1, 100 000). The same in f32 and c64, sums of lanes
//! by multiply-adds of the vector units, was slower than `batched_warps` and `batched_packed` but for c64 at 24 and 32 (`benches/NOTES.md`).

pub mod complex;
pub mod real;
mod runs;

use super::Batched;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_LANES;
use model::launch::batched::FlatTile;
use runs::{Block, Run};

/// How the warps of a problem multiply it.
pub trait Multiply<T> {
    /// Warps of a block, which have a problem.
    const PARTS: u32;

    /// C ← α · op(A) op(B) + β C in shared memory, each element by one lane.
    ///
    /// # Safety
    /// The matrices are whole and m, n >= 1; all lanes of the problem's warps are here.
    unsafe fn multiply(x: &Batched<T>, own: Own, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>);
}

/// A lane of a problem's warps.
#[derive(Clone, Copy)]
pub struct Own {
    /// Of its warp's lanes.
    pub lane: u32,
    /// Its warp, of [`Multiply::PARTS`].
    pub part: u32,
}

impl Own {
    /// The same, of which the compiler knows nothing any more: what depends on it is worked out for each problem, for to keep it takes
    /// registers.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    unsafe fn again(self) -> Own {
        // SAFETY: all lanes of the warp are here, as the caller promised.
        Own { lane: unsafe { ptx::pinned(self.lane) }, ..self }
    }
}

/// A matrix in shared memory.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    shared: Shared<T>,
    skew: u32,
    /// Elements to the next row, and to the next column, were no piece left out.
    pub row: u32,
    /// The same along a row.
    pub col: u32,
}

impl<T: Scalar> Matrix<T> {
    /// The element (row, col) as [`Matrix::load`] and [`Matrix::store`] know it: additive in both.
    #[inline(always)]
    pub fn at(&self, row: u32, col: u32) -> u32 {
        self.skew + row * self.row + col * self.col
    }

    /// An element.
    ///
    /// # Safety
    /// There is the element, and nobody writes it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(&self, at: u32) -> T {
        // SAFETY: there is the element, in shared memory, and nobody writes it, as the caller promised.
        unsafe { self.shared.load(FlatTile::place(at, T::WIDTH as u32)) }
    }

    /// Writes an element.
    ///
    /// # Safety
    /// There is the element, and no other lane accesses it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(&self, at: u32, value: T) {
        // SAFETY: there is the element, in shared memory, and no other lane accesses it, as the caller promised.
        unsafe { self.shared.store(FlatTile::place(at, T::WIDTH as u32), value) }
    }
}

/// C ← α · sums + β · C, of this lane's rows and columns.
///
/// # Safety
/// C is whole, and no other lane has these elements.
#[inline(always)]
unsafe fn write<T: Scalar, const R: usize, const V: usize>(
    x: &Batched<T>,
    rows: [u32; R],
    cols: [u32; V],
    sums: [[T; V]; R],
    c: Matrix<T>,
) {
    let reads_c = !x.beta.is_zero();
    let has = |r: usize, v: usize| rows[r] < x.m && cols[v] < x.n;
    let mut old = [[T::ZERO; V]; R]; // (R, V)
    // SAFETY: `has` found the elements in C, which is whole, and they are this lane's, as the caller promised.
    unsafe {
        for r in 0..R {
            for v in 0..V {
                if reads_c && has(r, v) {
                    old[r][v] = c.load(c.at(rows[r], cols[v]));
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                if has(r, v) {
                    c.store(c.at(rows[r], cols[v]), x.scaled(sums[r][v], old[r][v]));
                }
            }
        }
    }
}

/// Bits of a stage in a row of stages' [`Block::skews`].
const STAGE_BITS: u32 = 8;

/// # Safety
/// Launched with blocks of THREADS threads and `FlatTile::shared_len` elements of shared memory; m, n >= 1 as P takes them; `stages`
/// from 2 to 4; operands without gaps that span their elements and lie as their codes say, and where `problems` is not 1 one matrix
/// right behind the other.
#[inline(always)]
pub unsafe fn body<T: Scalar, P: Multiply<T>, const THREADS: u32>(x: Batched<T>) {
    const { assert!(THREADS == P::PARTS * WARP_LANES, "a block is one problem's warps") };
    let thread = thread::thread_idx_x();
    let own = Own { lane: thread % WARP_LANES, part: thread / WARP_LANES };
    let tile = FlatTile::new([x.m, x.n, x.k], x.problems, !x.beta.is_zero(), T::WIDTH as u32);
    let block = Block::new(&x, &tile, thread, THREADS);
    let base = Shared::<T>::at(0);
    let turn = thread::grid_dim_x() * x.problems;
    // The first problem to be multiplied, and the first to be copied.
    let mut first = thread::block_idx_x() * x.problems;
    let mut next = first;
    // The stage of each; the skews of all stages, the last one's first.
    let (mut now, mut next_stage, mut skews) = (0, 0, 0);
    let mut missing = x.stages - 1;
    // SAFETY: stages and tile are those of `FlatTile`, so inside the launch's shared memory; problems are below
    // `count`; waits of all lanes lie between filling, multiplying and storing.
    unsafe {
        let mut ahead = block.starts(next);
        while first < x.count {
            if missing == 0 {
                match x.stages {
                    2 => ptx::cp_async_wait_group::<0>(),
                    3 => ptx::cp_async_wait_group::<1>(),
                    _ => ptx::cp_async_wait_group::<2>(),
                }
                thread::sync_threads(); // this stage is whole, and C of the one before is stored
            }
            let begins = block.skews(ahead);
            if next < x.count {
                block.fill(ahead, block.problems(next), begins, base.starting_at(next_stage * tile.stage_len));
            }
            ptx::cp_async_commit_group();
            skews = skews << STAGE_BITS | begins;
            next += turn;
            next_stage = if next_stage + 1 == x.stages { 0 } else { next_stage + 1 };
            ahead = block.starts(next); // a list is read long before it is needed
            if missing > 0 {
                missing -= 1;
                continue;
            }
            let (stage, problems) = (base.starting_at(now * tile.stage_len), block.problems(first));
            let behind = base.starting_at(x.stages * tile.stage_len);
            let shared = [
                stage,
                stage.starting_at(tile.b_at),
                if block.reads_c { stage.starting_at(tile.c_at) } else { behind },
            ];
            let skews = skews >> (STAGE_BITS * (x.stages - 1));
            let [_, _, out] = block.starts(first);
            for problem in 0..problems {
                let [a, b, c] = block.matrices(shared, skews, problem);
                P::multiply(&x, own, a, b, c);
            }
            thread::sync_threads(); // C is whole
            block.drain(shared[2], Run::new::<T>(skews >> 4 & 3, problems * block.len[2]), out);
            first += turn;
            now = if now + 1 == x.stages { 0 } else { now + 1 };
        }
    }
}
