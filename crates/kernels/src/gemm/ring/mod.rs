//! A and B on their way through shared memory, for products of any shape: a ring of stages that `cp.async` fills.
//!
//! # Idea
//! A product of two large matrices is bound by its multipliers, so every other instruction is a loss: stages are filled
//! without registers in between, a thread's operands of the next step are loaded, and its copies go out, while those of this one are
//! multiplied, and a stage costs one barrier, behind which its last operands are still to be multiplied. Where a step has many multiply-adds and an SM
//! many warps, nothing is loaded ahead ([`Steps::AHEAD`]): a stage is filled, and another multiplied, in a loop of single steps.
//!
//! # A stage
//! Both parts are stored with k as the slow index, (BM, KT) and (BN, KT), each step, or every second one, followed by 32 bytes
//! ([`model::launch::gemm_ring_step`]): whole sectors, after which neither the 16 bytes of a step that neighbours load nor
//! the fragments of the matrix units, of every second step, meet in a bank. How the operands lie in memory is a matter of the
//! copies alone, `ring/fill.rs`: one entry serves every transposition and every leading dimension. Where the thread's loads can do
//! with it, a part by lines ([`Way`]) has k as its fast index instead ([`model::launch::gemm_ring_line`]): then copies along k are of 16
//! bytes too.
//!
//! # Parts of k
//! Where a tile has several blocks, each with a part of k, the last one joins their sums: [`crate::slots::join`].
//!
//! # Order of blocks
//! Bands of [`BAND`] columns of tiles, along a band's rows one after another: blocks that run at a time share rows of A and
//! columns of B in the second-level cache.

mod fill;

use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use fill::{Copies, STEPS};
use model::launch::{GEMM_BAND as BAND, gemm_ring_line, gemm_ring_step};

pub use fill::{Along, ByLines, BySteps, Either, Elements, Way, lies_by_lines, lies_by_steps};

/// The shape of a ring and of the block that fills it.
pub trait Tile {
    /// Threads a block.
    const THREADS: u32;
    /// Rows of C a block.
    const BM: u32;
    /// Columns of C a block.
    const BN: u32;
    /// Steps of k a stage.
    const KT: u32;
    /// Stages.
    const STAGES: u32;
    /// Whether the gap of a stage by steps is behind every second step, not behind each.
    const PAIRS: bool;
}

/// A block of THREADS threads for BM x BN of C, with STAGES stages of KT steps of k, in PAIRS or not.
pub struct Block<
    const THREADS: usize,
    const BM: usize,
    const BN: usize,
    const KT: usize,
    const STAGES: usize,
    const PAIRS: bool,
>;

impl<const THREADS: usize, const BM: usize, const BN: usize, const KT: usize, const STAGES: usize, const PAIRS: bool>
    Tile for Block<THREADS, BM, BN, KT, STAGES, PAIRS>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = BM as u32;
    const BN: u32 = BN as u32;
    const KT: u32 = KT as u32;
    const STAGES: u32 = STAGES as u32;
    const PAIRS: bool = PAIRS;
}

/// A's and B's part of a stage.
#[derive(Clone, Copy)]
pub struct Stage<T> {
    /// A's: (BM, KT).
    pub a: Shared<T>,
    /// B's: (BN, KT).
    pub b: Shared<T>,
}

/// How a thread multiplies a stage: step by step, each with operands of its own.
pub trait Steps<T: Scalar> {
    /// Steps a stage: even where AHEAD, so that two sets of registers can take turns.
    const COUNT: u32;
    /// Whether a step's operands are loaded, and a part of a stage is copied, while those of the step before are multiplied.
    const AHEAD: bool;
    /// What the thread needs of A and B for a step.
    type Operands: Copy;
    /// Operands whose products add nothing.
    const ZEROS: Self::Operands;

    /// Loads the operands of a step.
    ///
    /// # Safety
    /// The stage is whole.
    unsafe fn load(&self, stage: Stage<T>, step: u32) -> Self::Operands;

    /// Adds their products to the thread's sums.
    ///
    /// # Safety
    /// All threads of the warp are here.
    unsafe fn multiply(&mut self, operands: Self::Operands);
}

/// A ring of stages of elements of T, into which A and B are copied by these ways.
pub struct Ring<T, S, A = Either, B = Either>(PhantomData<(T, S, A, B)>);

/// Elements before a line and step of a part of a stage.
const fn at<T, S: Tile>(side: u32, by_lines: bool, line: u32, step: u32) -> u32 {
    let bytes = size_of::<T>() as u32;
    if by_lines {
        line * gemm_ring_line(S::KT, bytes, S::PAIRS) + step
    } else {
        gemm_ring_step(side, step, bytes, S::PAIRS) + line
    }
}

impl<T: Scalar, S: Tile, A: Way, B: Way> Ring<T, S, A, B> {
    const OK: () = {
        assert!(S::STAGES == 3, "one stage is multiplied, two are on their way");
        assert!(S::THREADS.is_power_of_two() && S::KT.is_power_of_two(), "copies are powers of two apart");
        assert!(S::BM.is_power_of_two() && S::BN.is_power_of_two(), "copies are powers of two apart");
        assert!(
            !S::PAIRS || Self::shares_pairs(S::BM) && Self::shares_pairs(S::BN),
            "a thread's copies are pairs of steps apart, or it copies an element of each step"
        );
        let whole = S::THREADS / S::KT * T::WIDTH as u32;
        assert!(!A::BY_LINES || S::KT % T::WIDTH as u32 == 0 && whole <= S::BM, "threads copy whole rounds of lines");
        assert!(!B::BY_LINES || S::KT % T::WIDTH as u32 == 0 && whole <= S::BN, "threads copy whole rounds of lines");
        assert!(A::BY_LINES || S::THREADS >= S::BM, "a step's rows are shared out");
        assert!(B::BY_LINES || S::THREADS >= S::BN, "a step's columns are shared out");
        assert!(
            !(A::LOOKS || B::LOOKS) || S::KT >= STEPS && S::THREADS / 32 >= S::KT / STEPS,
            "warps copy whole squares of steps and lines"
        );
    };
    /// Whether places of a thread's copies of a stage in PAIRS add up: copies of 16 bytes are pairs of steps apart, elements are, or their first is of
    /// step 0, since all threads copy one step, so that a number of steps has its own place.
    const fn shares_pairs(side: u32) -> bool {
        S::THREADS * T::WIDTH as u32 >= 2 * side && (S::THREADS >= 2 * side || S::THREADS == side)
    }

    const A_LEN: u32 = if A::BY_LINES { Self::a_at(S::BM, 0) } else { Self::a_at(0, S::KT) };
    const B_LEN: u32 = if B::BY_LINES { Self::b_at(S::BN, 0) } else { Self::b_at(0, S::KT) };

    /// Elements before a row and step of A's part of a stage. The place of an even step and what is added for a number of steps, or of two
    /// numbers of lines, add up.
    #[inline(always)]
    pub const fn a_at(row: u32, step: u32) -> u32 {
        at::<T, S>(S::BM, A::BY_LINES, row, step)
    }

    /// The same of a column and step of B's.
    #[inline(always)]
    pub const fn b_at(col: u32, step: u32) -> u32 {
        at::<T, S>(S::BN, B::BY_LINES, col, step)
    }

    /// First row and column of this block's tile of C.
    #[inline(always)]
    pub fn origin(x: &Product<T>) -> (u32, u32) {
        // At least one where the compiler cannot know, so that no division can panic.
        let (down, across) = (x.m.div_ceil(S::BM).max(1), x.n.div_ceil(S::BN).max(1));
        let (band, at) = (thread::block_idx_x() / (BAND * down), thread::block_idx_x() % (BAND * down));
        let width = across.wrapping_sub(band * BAND).clamp(1, BAND);
        (at / width * S::BM, (band * BAND + at % width) * S::BN)
    }

    #[inline(always)]
    fn stage(index: u32) -> Stage<T> {
        let a = Shared::at(index * (Self::A_LEN + Self::B_LEN));
        Stage { a, b: a.starting_at(Self::A_LEN) }
    }

    /// The stage behind this one.
    #[inline(always)]
    fn behind(index: u32) -> u32 {
        if index + 1 == S::STAGES { 0 } else { index + 1 }
    }

    /// The stage before this one, which was multiplied last.
    #[inline(always)]
    fn before(index: u32) -> u32 {
        if index == 0 { S::STAGES - 1 } else { index - 1 }
    }

    /// Has `steps` multiply this block's part of k, in ascending order.
    ///
    /// # Safety
    /// Launched with THREADS threads and `model::launch::tiling`'s shared memory; A and B span their elements, and can be copied by
    /// their ways.
    #[inline(always)]
    pub unsafe fn run<W: Steps<T>>(x: &Product<T>, (row, col): (u32, u32), steps: &mut W) {
        const { Self::OK };
        const { assert!(W::COUNT >= 2 && W::COUNT % 2 == 0, "two sets of registers can take turns") };
        let (start, end) = x.part(S::KT);
        if start >= end {
            return; // the whole block: there is nothing to add
        }
        let mut a = Copies::<T, A>::new::<S>(x.a, (x.a_row, x.a_col), (row, x.m), S::BM, (start, x.k));
        let mut b = Copies::<T, B>::new::<S>(x.b, (x.b_col, x.b_row), (col, x.n), S::BN, (start, x.k));
        let mut now = 0;
        let mut held = W::ZEROS; // multiplied once, while the first operands are loaded, if AHEAD
        // SAFETY: `end` <= k. Who reads a stage was done with it at the last barrier before it is filled; who loads from one
        // waited for it, and met the others, before that. All threads take the same turns.
        unsafe {
            for stage in 0..S::STAGES - 1 {
                let count = (end - start).saturating_sub(stage * S::KT);
                Self::fill((&mut a, &mut b), Self::stage(stage), count, (0, 1));
                ptx::cp_async_commit_group();
            }
            Self::wait();
            thread::sync_threads();
            let mut left = end - start; // one number to keep, not two
            while left > 0 {
                let (free, count) = (Self::before(now), left.saturating_sub((S::STAGES - 1) * S::KT));
                if W::AHEAD {
                    for step in 0..W::COUNT {
                        let next = steps.load(Self::stage(now), step);
                        Self::fill((&mut a, &mut b), Self::stage(free), count, (step, W::COUNT));
                        steps.multiply(held);
                        held = next;
                    }
                } else {
                    Self::fill((&mut a, &mut b), Self::stage(free), count, (0, 1));
                    for step in 0..ptx::opaque(W::COUNT) {
                        let operands = steps.load(Self::stage(now), step);
                        steps.multiply(operands);
                    }
                }
                ptx::cp_async_commit_group();
                now = Self::behind(now);
                left = left.saturating_sub(S::KT);
                Self::wait();
                thread::sync_threads(); // everyone's copies are there, and everyone is done with the stage before
            }
            if W::AHEAD {
                steps.multiply(held);
            }
        }
    }

    /// Starts the copies of a part of a stage, of whose steps `count` are there.
    ///
    /// # Safety
    /// As for [`Ring::run`]; nobody reads the stage.
    #[inline(always)]
    unsafe fn fill((a, b): (&mut Copies<T, A>, &mut Copies<T, B>), stage: Stage<T>, count: u32, part: (u32, u32)) {
        // SAFETY: as the caller promised.
        unsafe {
            a.fill::<S>(stage.a, S::BM, count, part);
            b.fill::<S>(stage.b, S::BN, count, part);
        }
    }

    /// Waits for the older of the two stages in flight.
    #[inline(always)]
    fn wait() {
        ptx::cp_async_wait_group::<1>();
    }
}
