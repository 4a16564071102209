//! A and B on their way through shared memory, for products of any shape: a ring of stages that `cp.async` fills.
//!
//! # Idea
//! A product of two large matrices is bound by its multipliers, so every other instruction is a loss: stages are filled
//! without registers in between, a thread's operands of the next step are loaded while those of this one are multiplied,
//! and a stage costs one barrier.
//!
//! # A stage
//! Both parts are stored with k as the slow index, (BM, KT) and (BN, KT), each step followed by 32 bytes
//! ([`model::launch::gemm_ring_pitch`]): whole sectors, after which neither the 16 bytes of a step that neighbours load nor
//! the fragments of the matrix units, of four steps, meet in a bank. How the operands lie in memory is a matter of the
//! copies alone, `ring/fill.rs`: one entry serves every transposition and every leading dimension. Where the thread's loads can do
//! with it, a part BY_LINES has k as its fast index instead ([`model::launch::gemm_ring_line`]): then copies along k are of 16
//! bytes too.
//!
//! # Order of blocks
//! Bands of [`BAND`] columns of tiles, along a band's rows one after another: blocks that run at a time share rows of A and
//! columns of B in the second-level cache.

mod fill;

use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use fill::Copies;
use model::launch::{GEMM_BAND as BAND, gemm_ring_line, gemm_ring_pitch};

pub use fill::lies_by_lines;

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
}

/// A block of THREADS threads for BM x BN of C, with STAGES stages of KT steps of k.
pub struct Block<const THREADS: usize, const BM: usize, const BN: usize, const KT: usize, const STAGES: usize>;

impl<const THREADS: usize, const BM: usize, const BN: usize, const KT: usize, const STAGES: usize> Tile
    for Block<THREADS, BM, BN, KT, STAGES>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = BM as u32;
    const BN: u32 = BN as u32;
    const KT: u32 = KT as u32;
    const STAGES: u32 = STAGES as u32;
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
    /// Steps a stage: even, so that two sets of registers can take turns.
    const COUNT: u32;
    /// What the thread needs of A and B for a step.
    type Operands: Copy;

    /// Loads the operands of a step.
    ///
    /// # Safety
    /// The stage is whole.
    unsafe fn load(&self, stage: Stage<T>, step: u32) -> Self::Operands;

    /// Adds the products of the operands to the thread's sums, while it loads those of a step.
    ///
    /// # Safety
    /// As for [`Steps::load`]; all threads of the warp are here.
    unsafe fn turn(&mut self, operands: Self::Operands, stage: Stage<T>, step: u32) -> Self::Operands;
}

/// A ring of stages of elements of T, whose parts of A and of B lie by lines or by steps.
pub struct Ring<T, S, const A_BY_LINES: bool = false, const B_BY_LINES: bool = false>(PhantomData<(T, S)>);

/// Elements from step to step of a part of a stage, or from line to line.
const fn pitch<T, S: Tile>(side: u32, by_lines: bool) -> u32 {
    let bytes = size_of::<T>() as u32;
    if by_lines { gemm_ring_line(S::KT, bytes) } else { gemm_ring_pitch(side, bytes) }
}

impl<T: Scalar, S: Tile, const A_BY_LINES: bool, const B_BY_LINES: bool> Ring<T, S, A_BY_LINES, B_BY_LINES> {
    const OK: () = assert!(S::STAGES >= 2 && S::STAGES <= 4, "a ring has 2 to 4 stages");
    /// Elements from step to step of A's part of a stage, or from line to line.
    pub const A_PITCH: u32 = pitch::<T, S>(S::BM, A_BY_LINES);
    /// The same of B's.
    pub const B_PITCH: u32 = pitch::<T, S>(S::BN, B_BY_LINES);
    const A_LEN: u32 = Self::A_PITCH * if A_BY_LINES { S::BM } else { S::KT };
    const B_LEN: u32 = Self::B_PITCH * if B_BY_LINES { S::BN } else { S::KT };

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

    /// Has `steps` multiply this block's part of k, in ascending order.
    ///
    /// # Safety
    /// Launched with THREADS threads and `model::launch::tiling`'s shared memory; A and B span their elements, and lie by lines
    /// where their parts do.
    #[inline(always)]
    pub unsafe fn run<W: Steps<T>>(x: &Product<T>, (row, col): (u32, u32), steps: &mut W) {
        const { Self::OK };
        const { assert!(W::COUNT >= 2 && W::COUNT % 2 == 0, "two sets of registers can take turns") };
        let (start, end) = x.part(S::KT);
        if start >= end {
            return; // the whole block: there is nothing to add
        }
        let mut a = Copies::<T, A_BY_LINES>::new::<S>(x.a, (x.a_row, x.a_col), (row, x.m), S::BM, start);
        let mut b = Copies::<T, B_BY_LINES>::new::<S>(x.b, (x.b_col, x.b_row), (col, x.n), S::BN, start);
        let (mut now, mut last) = (0, 0);
        // SAFETY: `end` <= k. Who reads a stage was done with it at the last barrier before it is filled; who loads from one
        // waited for it, and met the others, before that. All threads take the same turns.
        unsafe {
            for stage in 0..S::STAGES - 1 {
                Self::fill((&mut a, &mut b), Self::stage(stage), start + stage * S::KT, end);
                last = Self::behind(last);
            }
            Self::wait();
            thread::sync_threads();
            let mut held = steps.load(Self::stage(0), 0);
            for l in (start..end).step_by(S::KT as usize) {
                Self::fill((&mut a, &mut b), Self::stage(last), l + (S::STAGES - 1) * S::KT, end);
                last = Self::behind(last);
                for step in 1..W::COUNT {
                    held = steps.turn(held, Self::stage(now), step);
                }
                // What is loaded behind the last stage is not multiplied: any whole stage will do.
                now = if l + S::KT < end { Self::behind(now) } else { now };
                Self::wait();
                thread::sync_threads(); // everyone's copies are there, and everyone is done with the stage before
                held = steps.turn(held, Self::stage(now), 0);
            }
        }
    }

    /// Starts the copies of steps `l ..`, if there are such, and closes their group.
    ///
    /// # Safety
    /// As for [`Ring::run`]; nobody reads the stage.
    #[inline(always)]
    unsafe fn fill(
        (a, b): (&mut Copies<T, A_BY_LINES>, &mut Copies<T, B_BY_LINES>),
        stage: Stage<T>,
        l: u32,
        end: u32,
    ) {
        if l < end {
            // SAFETY: nobody reads the stage, as the caller promised; `l < end` <= k, so the steps that are left are
            // the operands'.
            unsafe {
                a.fill::<S>(stage.a, S::BM, end - l);
                b.fill::<S>(stage.b, S::BN, end - l);
            }
        }
        ptx::cp_async_commit_group();
    }

    /// Waits for the oldest stage in flight.
    #[inline(always)]
    fn wait() {
        match S::STAGES {
            2 => ptx::cp_async_wait_group::<0>(),
            3 => ptx::cp_async_wait_group::<1>(),
            _ => ptx::cp_async_wait_group::<2>(),
        }
    }
}
