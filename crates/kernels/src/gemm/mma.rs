//! `gemm_mma`: A and B through a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! `mma.m16n8k4` multiplies twice as fast as the vector units. Rows, columns and steps within 16 may be dealt to a fragment in any
//! order, as long as C's and both operands' are dealt alike: lane (g, q) takes rows 2g and 2g + 1 of A, columns 2g and 2g + 1 of B for two
//! fragments, and of eight steps 2q and 2q + 1 for two `mma`. So a load of 16 bytes is two lines of a step, from a stage that has k as its slow
//! index, or two steps of a line, from one where it is the fast one, and is used from the registers that it comes in. One case is left: a fragment
//! of A has two lines side by side, so that an A along k comes by elements.
//!
//! An operand lies in a stage as it lies in memory, along k or across it, and is copied by 16 bytes: the loop is there for each of the four
//! cases, and a fifth for what no 16 bytes can be copied of. Where that is known before, [`Mma::elements`] has four loops that copy elements.
//! (No more than five an entry: whatever the loop, the assembler schedules a sixth and those behind it as if each `mma` had to wait for the one before.)
//!
//! The operands of a step are loaded, and a part of the copies go out, between the `mma` of the step before; those of a stage's last step are
//! multiplied behind the barrier, while the next stage's first are on their way.
//!
//! On an H200 on 2026-11-27, in one process with cuBLAS (benches/results/h200/gemm.csv): by columns 57 TFLOP/s at 2048, 52 at 4096, 49 at 8192, 0.95
//! to 0.98 of its speed, with A and B transposed 0.93 at 8192. 1025, 2047, 2049, 4095 and 4097: 1.10 to 1.27. Of stages of 16 steps 128 x 128 takes 2 to 4%
//! longer.
//!
//! # Thread mapping
//! A warp owns 16·RB rows and 8·NT columns; warps side by side along the rows first. Lane (g, q) = (lane / 4, lane mod 4)
//! holds of each 16 x 16 tile of C rows 2g and 2g + 1, columns 4q .. 4q + 3.

use super::epilogue::{is_plain, is_wide, write, write_plain};
use super::ring::{ByLines, BySteps, Elements, Ring, Stage, Steps, Tile, Way, lies_by_lines, lies_by_steps};
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The sums of a warp of a block of shape S: RB x NT tiles of 16 x 8.
pub struct Mma<S, const RB: usize, const NT: usize, A = Elements, B = Elements> {
    rc: Sums<RB, NT>, // tiles
    /// Where this lane's fragments of the first tiles start in A's and B's part of a stage.
    a: u32,
    b: u32,
    shape: PhantomData<(S, A, B)>,
}

/// First row and column of a block's tile of C, and of a warp's sums in it.
type At = ((u32, u32), (u32, u32));
/// The sums of a warp.
type Sums<const RB: usize, const NT: usize> = [[[f64; 4]; NT]; RB];

impl<S: Tile, const RB: usize, const NT: usize> Mma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 16 == 0, "an even number of steps");
        assert!(NT % 2 == 0, "a load is of two fragments of B");
        assert!(S::BM % Self::ROWS == 0 && S::BN % Self::COLS == 0, "whole warps");
        assert!(S::THREADS / 32 == (S::BM / Self::ROWS) * (S::BN / Self::COLS), "the warps' sums are the block's");
    };
    /// Rows and columns of a warp.
    const ROWS: u32 = 16 * RB as u32;
    const COLS: u32 = 8 * NT as u32;

    /// By 16 bytes where all of A and B can be copied so.
    ///
    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f64>) {
        let a = (lies_by_lines(x.a, (x.a_row, x.a_col), x.k), lies_by_steps(x.a, (x.a_row, x.a_col), x.m));
        let b = (lies_by_lines(x.b, (x.b_col, x.b_row), x.k), lies_by_steps(x.b, (x.b_col, x.b_row), x.n));
        let at = (Ring::<f64, S>::origin(&x), Self::corner());
        // SAFETY: the caller's promise.
        unsafe {
            let sums = match (a, b) {
                ((_, true), (_, true)) => Mma::<S, RB, NT, BySteps<true>, BySteps<true>>::sums(&x, at),
                ((_, true), (true, _)) => Mma::<S, RB, NT, BySteps<true>, ByLines<true>>::sums(&x, at),
                ((true, _), (_, true)) => Mma::<S, RB, NT, ByLines<true>, BySteps<true>>::sums(&x, at),
                ((true, _), (true, _)) => Mma::<S, RB, NT, ByLines<true>, ByLines<true>>::sums(&x, at),
                _ => Mma::<S, RB, NT, Elements, Elements>::sums(&x, at),
            };
            // Twice, and not behind one condition: sums that come from either way cost registers.
            let mut parts = [sums];
            if thread::grid_dim_y() == 1 {
                Self::write(&x, sums);
            } else if join(&x, S::THREADS, thread::block_idx_x(), &mut parts) {
                Self::write(&x, parts[0]);
            }
        }
    }

    /// By elements, however A and B lie.
    ///
    /// # Safety
    /// As for [`Mma::body`].
    #[inline(always)]
    pub unsafe fn elements(x: Product<f64>) {
        let a_by_lines = x.a_col == 1 && x.a_row != 1;
        let b_by_lines = x.b_row == 1 && x.b_col != 1;
        let at = (Ring::<f64, S>::origin(&x), Self::corner());
        // SAFETY: the caller's promise.
        unsafe {
            let sums = match (a_by_lines, b_by_lines) {
                (false, false) => Mma::<S, RB, NT, BySteps<false>, BySteps<false>>::sums(&x, at),
                (false, true) => Mma::<S, RB, NT, BySteps<false>, ByLines<false>>::sums(&x, at),
                (true, false) => Mma::<S, RB, NT, ByLines<false>, BySteps<false>>::sums(&x, at),
                (true, true) => Mma::<S, RB, NT, ByLines<false>, ByLines<false>>::sums(&x, at),
            };
            // Twice, and not behind one condition: sums that come from either way cost registers.
            let mut parts = [sums];
            if thread::grid_dim_y() == 1 {
                Self::write(&x, sums);
            } else if join(&x, S::THREADS, thread::block_idx_x(), &mut parts) {
                Self::write(&x, parts[0]);
            }
        }
    }

    /// First row and column of this warp's sums in the block's tile.
    #[inline(always)]
    fn corner() -> (u32, u32) {
        let (warp, warps) = (thread::thread_idx_x() / warp::WARP_LANES, S::BM / Self::ROWS);
        (warp % warps * Self::ROWS, warp / warps * Self::COLS)
    }

    /// # Safety
    /// As for [`Mma::body`].
    #[inline(always)]
    unsafe fn write(x: &Product<f64>, rc: Sums<RB, NT>) {
        let (origin, corner) = (Ring::<f64, S>::origin(x), Self::corner());
        // Not the lane of before, which would be kept all the while.
        let (g, q) = (warp::lane_id() / 4, warp::lane_id() % 4);
        let (row, col) = (origin.0 + corner.0 + 2 * g, origin.1 + corner.1 + 4 * q);
        let tile = |i: usize, j: usize| {
            let (even, odd) = (rc[i][j], rc[i][j + 1]);
            [[even[0], odd[0], even[1], odd[1]], [even[2], odd[2], even[3], odd[3]]]
        };
        // Three loops: by one whose way is a parameter the large tile spills.
        // SAFETY: rows and columns are this lane's, and all look whether they are there.
        unsafe {
            if is_wide(x) {
                for i in 0..RB {
                    for j in (0..NT).step_by(2) {
                        let (row, col) = (|r| row + (16 * i + r) as u32, |s| col + (8 * j + s) as u32);
                        write_plain::<true, _, _, _>(x, row, col, tile(i, j));
                    }
                }
            } else if RB * NT < 16 && is_plain(x) {
                // Not by the large tile, which has no registers left for it.
                for i in 0..RB {
                    for j in (0..NT).step_by(2) {
                        let (row, col) = (|r| row + (16 * i + r) as u32, |s| col + (8 * j + s) as u32);
                        write_plain::<false, _, _, _>(x, row, col, tile(i, j));
                    }
                }
            } else {
                for i in 0..RB {
                    for j in (0..NT).step_by(2) {
                        let (row, col) = (|r| row + (16 * i + r) as u32, |s| col + (8 * j + s) as u32);
                        write(x, row, col, tile(i, j));
                    }
                }
            }
        }
    }
}

impl<S: Tile, const RB: usize, const NT: usize, A: Way, B: Way> Mma<S, RB, NT, A, B> {
    /// Those of this warp.
    ///
    /// # Safety
    /// As for [`Mma::body`]; A and B can be copied so.
    #[inline(always)]
    unsafe fn sums(x: &Product<f64>, (origin, (row, col)): At) -> Sums<RB, NT> {
        const { Mma::<S, RB, NT>::OK };
        let lane = thread::thread_idx_x() % warp::WARP_LANES;
        let (line, step) = (2 * (lane / 4), 2 * (lane % 4));
        // SAFETY: the launch's promise is that of `Ring::run`; all lanes of the warp are here.
        unsafe {
            let mut sums = Self {
                rc: [[[0.0; 4]; NT]; RB],
                a: ptx::pinned(Ring::<f64, S, A, B>::a_at(row + line, step)),
                b: ptx::pinned(Ring::<f64, S, A, B>::b_at(col + line, step)),
                shape: PhantomData,
            };
            Ring::<f64, S, A, B>::run(x, origin, &mut sums);
            sums.rc
        }
    }
}

/// A lane's elements of two neighbouring steps, of two neighbouring lines each: from the place of the first of them in a stage and how far the
/// other line's or step's lies behind it.
///
/// # Safety
/// All of them are in the part of the stage that starts at this lane's first, and places are whole 16 bytes.
#[inline(always)]
unsafe fn square<W: Way>(part: Shared<f64>, at: u32, next: u32) -> [[f64; 2]; 2] {
    // SAFETY: as the caller promised.
    let [first, second]: [[f64; 2]; 2] = unsafe { [part.load_wide(at), part.load_wide(at + next)] };
    if W::BY_LINES { [[first[0], second[0]], [first[1], second[1]]] } else { [first, second] }
}

/// A step is eight of k.
impl<S: Tile, const RB: usize, const NT: usize, A: Way, B: Way> Steps<f64> for Mma<S, RB, NT, A, B> {
    const COUNT: u32 = S::KT / 8;
    const AHEAD: bool = true;
    type Operands = ([[[f64; 2]; 2]; RB], [[f64; NT]; 2]);
    const ZEROS: Self::Operands = ([[[0.0; 2]; 2]; RB], [[0.0; NT]; 2]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<f64>, step: u32) -> Self::Operands {
        let (sa, sb) = (stage.a.starting_at(self.a), stage.b.starting_at(self.b));
        let a_at = Ring::<f64, S, A, B>::a_at;
        let b_at = Ring::<f64, S, A, B>::b_at;
        let a_next = if A::BY_LINES { a_at(1, 0) } else { a_at(0, 1) };
        let b_next = if B::BY_LINES { b_at(1, 0) } else { b_at(0, 1) };
        let ra = core::array::from_fn(|i| {
            let at = a_at(16 * i as u32, 8 * step);
            // By lines by elements: of 16 bytes, every second register would have to be moved.
            // SAFETY: `step < KT / 8` and the warp's rows are below BM, so inside the stage.
            unsafe {
                if A::BY_LINES {
                    [0, 1].map(|s| [sa.load(at + s), sa.load(at + a_next + s)])
                } else {
                    square::<A>(sa, at, a_next)
                }
            }
        });
        let mut rb = [[0.0; NT]; 2];
        for j in (0..NT).step_by(2) {
            // SAFETY: `step < KT / 8` and the warp's columns are below BN, so inside the stage.
            let cols = unsafe { square::<B>(sb, b_at(8 * j as u32, 8 * step), b_next) };
            for s in 0..2 {
                [rb[s][j], rb[s][j + 1]] = cols[s];
            }
        }
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        for s in 0..2 {
            for i in 0..RB {
                for j in 0..NT {
                    // SAFETY: promised by the caller.
                    self.rc[i][j] = unsafe { ptx::mma_m16n8k4_f64(ra[i][s], [rb[s][j]], self.rc[i][j]) };
                }
            }
        }
    }
}
