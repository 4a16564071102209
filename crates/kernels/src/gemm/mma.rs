//! `gemm_mma`: A and B through a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! `mma.m16n8k4` multiplies twice as fast as the vector units. Rows and columns within 16 may be dealt to a fragment in any
//! order, as long as C's are dealt alike: lane (g, q) takes rows 2g and 2g + 1 of A, and columns 2g and 2g + 1 of B for two
//! fragments, of step q, so that both operands come by loads of 16 bytes from a stage that has k as its slow index, and are used
//! from the registers they come in: larger fragments of B, which multiply no faster, would be put together by moves. A warp's
//! 32 x 32 sums are handed 64 bytes a cycle and SM at the units' full rate. The order of k is the natural one: the bits are
//! those of `gemm_staged`.
//!
//! All warps of a block wait at one barrier a stage, and the matrix units with them, but for other blocks: three blocks of 64 x 64 an SM
//! with few and long stages reach 0.91 of cuBLAS's speed at 8192 and 0.89 at 4096 on an H200, a block of 128 x 128 0.72 and 0.77.
//!
//! An operand whose unit stride runs along k, as that of B does where all are column-major, would be transposed on its way into such
//! a stage, element by element: 4096 x 4096 x 4096 so, in blocks of 128 x 128, ran on an H200 at 52.4 TFLOP/s where neither does, 48.7 and 47.1
//! where B's or A's does, 40.3 where both do. Its part of a stage lies by lines instead, and its fragments come by loads of 8 bytes, twice as many. The loop
//! is there for each of the four cases.
//!
//! # Thread mapping
//! A warp owns 16·RB rows and 8·NT columns; warps side by side along the rows first. Lane (g, q) = (lane / 4, lane mod 4)
//! holds of each 16 x 16 tile of C rows 2g and 2g + 1, columns 4q .. 4q + 3.

use super::epilogue::write;
use super::ring::{Ring, Stage, Steps, Tile, lies_by_lines};
use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The sums of a warp of a block of shape S: RB x NT tiles of 16 x 8.
pub struct Mma<S, const RB: usize, const NT: usize, const A_BY_LINES: bool = false, const B_BY_LINES: bool = false> {
    rc: Sums<RB, NT>, // tiles
    /// Where this lane's fragments of the first tiles start in A's and B's part of a stage.
    a: u32,
    b: u32,
    shape: PhantomData<S>,
}

/// The sums of a warp.
type Sums<const RB: usize, const NT: usize> = [[[f64; 4]; NT]; RB];

impl<S: Tile, const RB: usize, const NT: usize> Mma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 8 == 0, "an even number of steps");
        assert!(NT % 2 == 0, "a load is of two fragments of B");
        assert!(S::BM % Self::ROWS == 0 && S::BN % Self::COLS == 0, "whole warps");
        assert!(S::THREADS / 32 == (S::BM / Self::ROWS) * (S::BN / Self::COLS), "the warps' sums are the block's");
    };
    /// Rows and columns of a warp.
    const ROWS: u32 = 16 * RB as u32;
    const COLS: u32 = 8 * NT as u32;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f64>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let warps = S::BM / Self::ROWS;
        let (row, col) = (warp % warps * Self::ROWS, warp / warps * Self::COLS);
        let origin = Ring::<f64, S>::origin(&x);
        let a_by_lines = lies_by_lines(x.a, (x.a_row, x.a_col), x.k);
        let b_by_lines = lies_by_lines(x.b, (x.b_col, x.b_row), x.k);
        let own = (row + 2 * g, col + 2 * g, q);
        // SAFETY: the launch's promise is that of `Ring::run`; all lanes of the warp are here; rows and columns of C
        // are this lane's, and `write` looks whether they are there.
        unsafe {
            let rc = match (a_by_lines, b_by_lines) {
                (false, false) => Mma::<S, RB, NT, false, false>::sums(&x, origin, own),
                (false, true) => Mma::<S, RB, NT, false, true>::sums(&x, origin, own),
                (true, false) => Mma::<S, RB, NT, true, false>::sums(&x, origin, own),
                (true, true) => Mma::<S, RB, NT, true, true>::sums(&x, origin, own),
            };
            let (row, col) = (origin.0 + row + 2 * g, origin.1 + col + 4 * q);
            for i in 0..RB {
                for j in (0..NT).step_by(2) {
                    let (even, odd) = (rc[i][j], rc[i][j + 1]);
                    let tile = [[even[0], odd[0], even[1], odd[1]], [even[2], odd[2], even[3], odd[3]]];
                    write(&x, |r| row + (16 * i + r) as u32, |s| col + (8 * j + s) as u32, tile);
                }
            }
        }
    }
}

impl<S: Tile, const RB: usize, const NT: usize, const A_BY_LINES: bool, const B_BY_LINES: bool>
    Mma<S, RB, NT, A_BY_LINES, B_BY_LINES>
{
    const A_PITCH: u32 = Ring::<f64, S, A_BY_LINES, B_BY_LINES>::A_PITCH;
    const B_PITCH: u32 = Ring::<f64, S, A_BY_LINES, B_BY_LINES>::B_PITCH;

    /// Those of the lane whose first row and column of the block's tile, and step of four, are given.
    ///
    /// # Safety
    /// As for [`Mma::body`]; A and B lie by lines where this says so.
    #[inline(always)]
    unsafe fn sums(x: &Product<f64>, origin: (u32, u32), (row, col, q): (u32, u32, u32)) -> Sums<RB, NT> {
        let first = |by_lines, line: u32, pitch| if by_lines { line * pitch + q } else { q * pitch + line };
        // SAFETY: the launch's promise is that of `Ring::run`; all lanes of the warp are here.
        unsafe {
            let mut sums = Self {
                rc: [[[0.0; 4]; NT]; RB],
                a: ptx::pinned(first(A_BY_LINES, row, Self::A_PITCH)),
                b: ptx::pinned(first(B_BY_LINES, col, Self::B_PITCH)),
                shape: PhantomData,
            };
            Ring::<f64, S, A_BY_LINES, B_BY_LINES>::run(x, origin, &mut sums);
            sums.rc
        }
    }
}

/// A lane's elements of two neighbouring lines, `line` and the one behind it, of a step of four.
///
/// # Safety
/// They are in the part of the stage that starts at this lane's first; pitches of parts by steps are whole 16 bytes.
#[inline(always)]
unsafe fn pair<const BY_LINES: bool>(part: Shared<f64>, line: u32, step: u32, pitch: u32) -> [f64; 2] {
    // SAFETY: both lines' elements are in the stage, as the caller promised; by steps they are neighbours, and 16 bytes
    // aligned.
    unsafe {
        if BY_LINES {
            [part.load(line * pitch + 4 * step), part.load((line + 1) * pitch + 4 * step)]
        } else {
            part.load_wide(4 * step * pitch + line)
        }
    }
}

/// A step is four of k.
impl<S: Tile, const RB: usize, const NT: usize, const A_BY_LINES: bool, const B_BY_LINES: bool> Steps<f64>
    for Mma<S, RB, NT, A_BY_LINES, B_BY_LINES>
{
    const COUNT: u32 = S::KT / 4;
    type Operands = ([[f64; 2]; RB], [f64; NT]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<f64>, step: u32) -> Self::Operands {
        let (sa, sb) = (stage.a.starting_at(self.a), stage.b.starting_at(self.b));
        // SAFETY: `step < KT / 4` and the warp's rows are below BM, so inside the stage.
        let ra = core::array::from_fn(|i| unsafe { pair::<A_BY_LINES>(sa, 16 * i as u32, step, Self::A_PITCH) });
        let mut rb = [0.0; NT];
        for j in (0..NT).step_by(2) {
            // SAFETY: `step < KT / 4` and the warp's columns are below BN, so inside the stage.
            [rb[j], rb[j + 1]] = unsafe { pair::<B_BY_LINES>(sb, 8 * j as u32, step, Self::B_PITCH) };
        }
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn turn(&mut self, (ra, rb): Self::Operands, stage: Stage<f64>, step: u32) -> Self::Operands {
        // SAFETY: `Ring::run` gives a step of a whole stage, and all lanes of the warp are here.
        unsafe {
            let next = self.load(stage, step);
            for i in 0..RB {
                for j in 0..NT {
                    self.rc[i][j] = ptx::mma_m16n8k4_f64(ra[i], [rb[j]], self.rc[i][j]);
                }
            }
            next
        }
    }
}
