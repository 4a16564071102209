//! `tsmttsm_packed`, `gram_packed`: packed rows by bulk copies into a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! KT packed rows come by one bulk copy for each matrix and stage (`runs`). What a warp loads straight from
//! memory begins anywhere in a sector where rows do, as in [`super::mma`]; here each sector comes once.
//!
//! # Thread mapping
//! Warps as in [`super::mma`], groups along k as in [`super::ring`]. Rows of a stage lie as in memory, WIDTH elements apart, and which rows of a
//! step are which of the matrix units' is free: lane (g, q) = (lane / 4, lane % 4) has of each 16 columns g and g + 8 of four rows, the
//! q-th lane's `spacing` rows behind those of the one before. Half a warp loads four columns of four rows at a time, which meet in no bank where
//! spacing · WIDTH is 4 or 12 elements past a multiple of 16: of odd widths rows 4 apart, of multiples of 2 rows 2 apart, of 4 neighbours. Multiples of 8 have no such
//! spacing. Columns past the last are those of the next row, and what comes of them is not stored.
//!
//! # Cost
//! Of 33 x 33 a row is 528 bytes, 28 cycles of an SM's share of the memory on an H200, and of 48 x 48, which are multiplied, 2304
//! multiply-adds, 18 cycles of its matrix units. Measured on 2026-11-22 and 23, of the bound, by whole steps in place of the halves of [`super::ring`]: 17 to 31 columns 97 to 98%, 33 to 47
//! 97 to 98, of multiples of 16 54 to 71 (not chosen); Gram matrices of 17 to 31 columns 90 to 98%, 33 to 48 85 to 97. On 2026-11-27, by halves and of 4·10⁶ rows: 33 columns 92, 49 92, 56 94 (by
//! [`super::ring`] 79, 84, 97).

use super::Reduced;
use super::fragments::{Fragments, lane};
use super::runs::{Runs, Staged};
use super::share::{Division, Operand, Share, Work};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::reduced::{STAGES, pitch, second_half, second_row, spacing};

/// A block of warps with shares W of C, and KT rows a stage; m and n no more than it has.
pub struct Packed<W, const KT: usize>(PhantomData<W>);

impl<W: Division<f64>, const KT: usize> Staged for Packed<W, KT> {
    type Elem = f64;
    const ROWS: u32 = KT as u32;
    const SIDES: (u32, u32) = (W::BM, W::BN);
    const THREADS: u32 = W::THREADS;
    const GRAM: bool = W::GRAM;
    const LENS: (u32, u32) = (Self::len(W::BM), if W::GRAM { 0 } else { Self::len(W::BN) });
    /// Behind the rows of the last stage, which have no pitch.
    const MBARRIERS: u32 = STAGES * (Self::LENS.0 + Self::LENS.1) - STAGES;
}

impl<W: Division<f64>, const KT: usize> Packed<W, KT> {
    const OK: () = assert!(KT as u32 == f64::SIDE * W::KG, "groups have a step of a stage each");

    const fn len(side: u32) -> u32 {
        KT as u32 * pitch(side, size_of::<f64>() as u32)
    }

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements; m <= BM,
    /// n <= BN.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<f64>) {
        const { Self::OK };
        let runs = Runs::<Self>::new(&x);
        let (a, b) = runs.widths();
        let lanes = (Lanes::new(a, spacing(a, b)), Lanes::new(b, spacing(a, b)));
        // SAFETY: all lanes are here, and the part ends at k.
        unsafe {
            runs.begin();
            thread::sync_threads(); // the mbarriers are there
            W::run(Turns::<W, KT> { runs, lanes }, false);
            W::finish(&x);
        }
    }
}

/// All stages of a part of k.
struct Turns<W: Division<f64>, const KT: usize> {
    runs: Runs<Packed<W, KT>>,
    lanes: (Lanes, Lanes),
}

impl<W: Division<f64>, const KT: usize> Turns<W, KT> {
    /// Loads half of the step of a stage that is this share's group's.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load<S: Share<f64>>(&self, share: &S, index: u32, half: u32) -> S::Loaded {
        let ((sa, sb), step) = (Runs::<Packed<W, KT>>::stage(index), share.group());
        let (a, b) = self.lanes;
        // SAFETY: what the caller promised.
        unsafe { share.load(&Step { stage: sa, of: a, step }, &Step { stage: sb, of: b, step }, half) }
    }
}

impl<W: Division<f64>, const KT: usize> Work<f64> for Turns<W, KT> {
    #[inline(always)]
    unsafe fn go<S: Share<f64>>(self, share: &mut S) {
        let stages = self.runs.stages();
        // SAFETY: all threads are here, and take the same turns. A stage is filled behind a barrier that all have met when they had loaded what it
        // was, and loaded behind its mbarrier, or the barrier that all meet when their copies of it have come.
        unsafe {
            for ahead in 0..STAGES {
                self.runs.fill(ahead);
            }
            if stages > 0 {
                self.runs.wait::<{ STAGES - 1 }>(0);
                let mut first = self.load(share, 0, 0);
                for at in 0..stages {
                    let last = self.load(share, at, 1);
                    share.multiply(first, false);
                    self.runs.wait::<{ STAGES - 2 }>(at + 1);
                    first = if at + 1 < stages { self.load(share, at + 1, 0) } else { last };
                    self.runs.fill(at + STAGES);
                    share.multiply(last, false);
                }
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
        }
    }
}

/// A step of a stage of rows.
struct Step {
    stage: Shared<f64>,
    of: Lanes,
    step: u32,
}

impl Operand<f64> for Step {
    #[inline(always)]
    unsafe fn load<const COUNT: usize>(&self, line: u32, half: u32) -> [[f64; 4]; COUNT] {
        // SAFETY: what the caller promised; columns behind the last row's are the zeros that `begin` stored.
        unsafe { self.of.halves(self.stage, self.step, line, half) }
    }
}

/// Where this lane finds its elements of one of the matrices.
#[derive(Clone, Copy)]
struct Lanes {
    width: u32,
    /// From the stage's first element to this lane's first of a step; from its first row to its second, and to its third.
    first: u32,
    near: u32,
    far: u32,
}

impl Lanes {
    /// Of rows of so many elements, so many of them from lane to lane.
    #[inline(always)]
    fn new(width: u32, spaced: u32) -> Self {
        let (g, q) = lane();
        let near = second_row(spaced);
        let far = second_half(spaced);
        Lanes { width, first: q * spaced * width + g, near: near * width, far: far * width }
    }

    /// This lane's part of half of a step's rows, of the columns from `line` on.
    ///
    /// # Safety
    /// The stage has the step.
    #[inline(always)]
    unsafe fn halves<const COUNT: usize>(
        &self,
        stage: Shared<f64>,
        step: u32,
        line: u32,
        half: u32,
    ) -> [[f64; 4]; COUNT] {
        let from = stage.starting_at(step * f64::SIDE * self.width + self.first + line + half * self.far);
        let mut all = [[0.0; 4]; COUNT];
        for (i, row) in [0, self.near].into_iter().enumerate() {
            let from = from.starting_at(row);
            for at in 0..COUNT {
                for r in 0..2 {
                    // SAFETY: the stage has the step's rows, as the caller promised, and behind the last the zeros that
                    // `begin` stored.
                    all[at][2 * i + r] = unsafe { from.load(16 * at as u32 + 8 * r as u32) };
                }
            }
        }
        all
    }
}
