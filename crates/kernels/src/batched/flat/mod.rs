//! `batched_flat`: whole matrices through shared memory as they lie in device memory: those without gaps, of any size up to 32.
//!
//! # Idea
//! A matrix without gaps is one run of bytes, whatever its size and its order are, and runs move by 16 bytes. Whole matrices come by copies
//! that nobody waits for, those of the next problems while one is multiplied; a C that is read while they are, or while it is itself.
//! Transposes are strides in shared memory. C is written there and leaves as it came, by 16 bytes.
//!
//! # Thread mapping
//! The PARTS warps of a block have a problem. Blocks take problems in turn, where all matrices follow one another several small ones at a
//! time, which are one run. Who computes what is `real.rs`' of f64, `complex.rs`' of c128, `lanes.rs`' of f32 and c64.
//! # Tile parameters
//! Each block has a ring of 2 to 4 stages, `model::launch::batched::FlatTile`: A, B and, mostly, a C that is read. Lines of whole pieces of
//! 16 bytes, of matrices that begin at one, are spaced there, so that lines which lanes load together meet in few banks. Others lie as in
//! device memory, as far past a piece as there: where odd numbers of elements would meet `real.rs` loads lines that are apart; those of
//! 8, 16, 24 and 32 that begin between pieces meet.
//!
//! Of a single problem, so that an SM holds more blocks, a C that is not read lies over A and B once these are multiplied, if it has room, and
//! one that is read, where [`Multiply::LATE`], lies behind the last stage: it is asked for when its turn begins, and waited for when the sums
//! are there.
//! # Preconditions
//! No matrix has gaps: the elements of each are one run.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. Nothing outside of a matrix is read or written: what of it lies before its first
//! multiple of 16 bytes and behind its last moves by elements.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k, as of the other entries; of c128 as of `batched_fragments`.
//! # Cost
//! Each matrix is read once, one that problems share once for each of them, and each C written once. Of m = n = k = 32 in f64, β = 1, an
//! H200's memory takes 1700 cycles an SM for a problem and its matrix units 256; in c64 its memory takes the same, its vector units 1024,
//! and of two steps' 150 instructions 128 multiply.
//! Measured: `benches/results/h200/batched.csv`.

pub mod complex;
pub mod lanes;
pub mod real;
mod runs;

use super::Batched;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_LANES;
use model::launch::batched::{Code, FlatTile};
use runs::Block;

/// How the warps of a problem multiply it.
pub trait Multiply<T> {
    /// Warps of a block, which have a problem.
    const PARTS: u32;
    /// Whether a single problem's C, if it is read, is read while A and B are multiplied: an SM holds more blocks.
    const LATE: bool;

    /// C ← α · op(A) op(B) + β C in shared memory, each element by one lane.
    ///
    /// # Safety
    /// The matrices are whole and m, n >= 1; all lanes of the problem's warps are here; where C lies over A and B there is no other problem.
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
    first: Shared<T>,
    /// Elements to the next row, and to the next column.
    pub row: u32,
    /// The same along a row.
    pub col: u32,
}

impl<T: Scalar> Matrix<T> {
    /// Where the element (row, col) is.
    #[inline(always)]
    pub fn at(&self, row: u32, col: u32) -> Shared<T> {
        self.first.starting_at(row * self.row + col * self.col)
    }
}

/// Of a single problem, whose C may lie over its A and B, or be read late: waits until all lanes of the block have multiplied and C is there.
#[inline(always)]
fn multiplied<T: Scalar>(x: &Batched<T>, late: bool) {
    if x.problems == 1 {
        if late && !x.beta.is_zero() {
            ptx::cp_async_wait_group::<1>(); // all but the stage asked for last
        }
        thread::sync_threads();
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
    let has = |r: usize, v: usize| rows[r] < x.m && cols[v] < x.n;
    let at = |r: usize, v: usize| c.at(rows[r], cols[v]);
    let mut out = [[T::ZERO; V]; R]; // (R, V)
    // SAFETY: `has` found the elements in C, which is whole, and they are this lane's, as the caller promised.
    unsafe {
        if !x.beta.is_zero() {
            for r in 0..R {
                for v in 0..V {
                    if has(r, v) {
                        out[r][v] = at(r, v).load(0);
                    }
                }
            }
        }
        x.scale(sums, &mut out);
        for r in 0..R {
            for v in 0..V {
                if has(r, v) {
                    at(r, v).store(0, out[r][v]);
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
    let codes = [0, 8, 16].map(|bit| Code::unpack(x.codes >> bit));
    let tile = FlatTile::new([x.m, x.n, x.k], codes, x.problems, !x.beta.is_zero(), T::WIDTH as u32, P::LATE);
    let block = Block::new(&x, &tile, thread, THREADS);
    let base = Shared::<T>::at(0);
    let behind = base.starting_at(x.stages * tile.stage_len);
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
        let [_, _, mut out] = ahead;
        while first < x.count {
            if missing == 0 {
                // Asked for before the wait, for a list takes a while; where C is not late it is needed, and asked for, below.
                if P::LATE {
                    [_, _, out] = block.starts(first);
                }
                match x.stages {
                    2 => ptx::cp_async_wait_group::<0>(),
                    3 => ptx::cp_async_wait_group::<1>(),
                    _ => ptx::cp_async_wait_group::<2>(),
                }
                thread::sync_threads(); // this stage is whole, and C of the one before is stored
                if P::LATE && tile.c_is_late {
                    let skews = skews >> (STAGE_BITS * (x.stages - 2));
                    block.fill(2, out, block.problems(first), skews, behind);
                    ptx::cp_async_commit_group();
                }
            }
            let begins = block.skews(ahead);
            if next < x.count {
                let (problems, stage) = (block.problems(next), base.starting_at(next_stage * tile.stage_len));
                for i in 0..3 {
                    if i < 2 || tile.c_is_staged {
                        block.fill(i, ahead[i], problems, begins, stage.starting_at(tile.places[i]));
                    }
                }
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
            let [at_a, at_b, at_c] = tile.places;
            let c = if tile.c_is_staged || tile.c_is_over { stage.starting_at(at_c) } else { behind };
            let shared = [stage.starting_at(at_a), stage.starting_at(at_b), c];
            let skews = skews >> (STAGE_BITS * (x.stages - 1));
            if !P::LATE {
                [_, _, out] = block.starts(first);
            }
            for problem in 0..problems {
                let [a, b, c] = block.matrices(shared, skews, problem);
                P::multiply(&x, own, a, b, c);
            }
            thread::sync_threads(); // C is whole
            block.drain(shared[2], problems, skews, out);
            first += turn;
            now = if now + 1 == x.stages { 0 } else { now + 1 };
        }
    }
}
