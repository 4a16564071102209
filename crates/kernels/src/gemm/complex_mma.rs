//! `gemm_mma` of complex elements: c128, from sm_90 on.
//!
//! # Idea
//! That of [`super::mma`], with the fragments of [`crate::complex_fragments`]: an element is 16 bytes, which a copy moves and a lane
//! loads at once, however its operand lies in memory.
//!
//! Measured on an H200 on 2026-11-27, in one process with cuBLAS: all by columns, 1024, 2048 and 4096 rows by 1024 columns and steps 0.92 to 0.93 of its
//! speed by tiles of 128 x 64 and 0.90 to 0.91 by those of 64 x 64, 4096 cubed 0.87 and 0.90.
//!
//! # Thread mapping
//! A warp owns 16·RB rows and 8·NT columns; warps side by side along the rows first. Lane (g, q) = (lane / 4, lane mod 4) has row g
//! of each eight of A and column g of each eight of B at step q of every four, and holds of each 8 x 8 of C columns 2q and
//! 2q + 1 of row g.

use super::epilogue::{is_wide, write, write_plain};
use super::ring::{Ring, Stage, Steps, Tile};
use crate::complex_fragments;
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

type Elem = Complex<f64>;

/// The sums of a warp of a block of shape S: 2·RB x NT tiles of 8 x 8.
pub struct ComplexMma<S, const RB: usize, const NT: usize> {
    rc: [[[[f64; 4]; NT]; 2]; RB],
    /// Where this lane's elements of the first tiles start in A's and B's part of a stage.
    a: u32,
    b: u32,
    conj_b: bool,
    shape: PhantomData<S>,
}

impl<S: Tile, const RB: usize, const NT: usize> ComplexMma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 8 == 0, "an even number of steps");
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
    pub unsafe fn body(x: Product<Elem>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let warps = S::BM / Self::ROWS;
        let (row, col) = (warp % warps * Self::ROWS, warp / warps * Self::COLS);
        let origin = Ring::<Elem, S>::origin(&x);
        // SAFETY: the launch's promise is that of `Ring::run`; all lanes of the warp are here; rows and columns of C are this lane's,
        // and `write` looks whether they are there.
        unsafe {
            let mut sums = Self {
                rc: [[[[0.0; 4]; NT]; 2]; RB],
                a: ptx::pinned(Ring::<Elem, S>::a_at(row + g, q)),
                b: ptx::pinned(Ring::<Elem, S>::b_at(col + g, q)),
                conj_b: x.conj_b(),
                shape: PhantomData,
            };
            Ring::<Elem, S>::run(&x, origin, &mut sums);
            let mut found = sums.rc.map(|rows| rows.map(|half| half.map(complex_fragments::sums)));
            if !join(&x, S::THREADS, thread::block_idx_x(), &mut found) {
                return;
            }
            let at = (origin.0 + row + g, origin.1 + col + 2 * q);
            if is_wide(&x) {
                Self::write::<true>(&x, at, found);
            } else {
                Self::write::<false>(&x, at, found);
            }
        }
    }

    /// # Safety
    /// As for [`ComplexMma::body`]; the lane's first row and column, and WIDE where C [`is_wide`].
    #[inline(always)]
    unsafe fn write<const WIDE: bool>(x: &Product<Elem>, (row, col): (u32, u32), found: [[[[Elem; 2]; NT]; 2]; RB]) {
        for i in 0..2 * RB {
            for j in 0..NT {
                let (row, col) = (|_| row + 8 * i as u32, |s| col + (8 * j + s) as u32);
                let tile = [found[i / 2][i % 2][j]];
                // SAFETY: rows and columns are this lane's, and both look whether they are there.
                unsafe {
                    if WIDE { write_plain::<true, _, _, _>(x, row, col, tile) } else { write(x, row, col, tile) }
                };
            }
        }
    }
}

/// A step is four of k: one of each lane.
impl<S: Tile, const RB: usize, const NT: usize> Steps<Elem> for ComplexMma<S, RB, NT> {
    const COUNT: u32 = S::KT / 4;
    const AHEAD: bool = true;
    type Operands = ([[Elem; 2]; RB], [Elem; NT]);
    const ZEROS: Self::Operands = ([[Elem::ZERO; 2]; RB], [Elem::ZERO; NT]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<Elem>, step: u32) -> Self::Operands {
        let (sa, sb) = (stage.a.starting_at(self.a), stage.b.starting_at(self.b));
        // SAFETY: `step < KT / 4`, and the warp's rows and columns are below BM and BN, so inside the stage.
        let a = |row: usize| unsafe { sa.load(Ring::<Elem, S>::a_at(row as u32, 4 * step)) };
        // SAFETY: the same.
        let b = |col: usize| unsafe { sb.load(Ring::<Elem, S>::b_at(col as u32, 4 * step)) };
        (core::array::from_fn(|i| [a(16 * i), a(16 * i + 8)]), core::array::from_fn(|j| b(8 * j)))
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        for i in 0..RB {
            for half in 0..2 {
                for j in 0..NT {
                    let sums = self.rc[i][half][j];
                    // SAFETY: promised by the caller.
                    let sums = unsafe { complex_fragments::multiply_four(ra[i][half], rb[j], self.conj_b, sums) };
                    self.rc[i][half][j] = sums;
                }
            }
        }
    }
}
