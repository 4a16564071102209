//! A and B on their way through shared memory: a ring of stages that `cp.async` fills while others are multiplied.
//!
//! # Idea
//! Memory is kept busy by what is in flight, and what is in flight needs a place to land. Registers are the scarce one:
//! here STAGES - 1 stages of KT columns of A are on their way into shared memory while the threads multiply one more,
//! and no register waits for memory. One barrier a stage.
//!
//! # A stage
//! | operand | stored                                                    | why                                       |
//! |---------|-----------------------------------------------------------|-------------------------------------------|
//! | A       | by columns: (BM, KT), its 16-byte pieces in swizzled order | neither filling nor use has bank conflicts |
//! |         | by rows: (KT, BM), sectors of each row turned              | the same; sectors are whole, as copies fill them |
//! | B       | by columns: (KT, BN), gaps behind columns, or turned as A's rows | `mma` takes four steps of a column a lane |
//! |         | by rows: (BN, KT), a gap behind each row                   | multiply-adds take all columns of a step; filling goes down the columns |
//!
//! The gaps are [`model::launch::ring_gap`]'s and [`model::launch::ring_pair_gap`]'s, lines are turned by [`model::launch::ring_turn`]. A gap of 16 bytes in A by rows tore
//! sectors, so that copies into every other row fetched each twice: 163 M sectors instead of 110 M at m = k = 20480, n = 8 in f64, and 88% of the bound. Gaps of whole sectors
//! took 11 to 33% of the memory that has to hold what is in flight: by the best shape of each 785, 787, 804 us in f64 at n = 8, 16 and 24, with lines that are turned 764, 772, 781
//! (m = k = 20480, an H200 on 2026-11-28, benches/results/trials/rows.csv). Lines of 64 bytes, which are shorter than all banks, keep their gaps.
//! Of the vector units' loads a quarter of a warp meets in no bank; where a thread has all columns of the block, it loads eight rows of A, and those four apart meet.
//!
//! # A turn
//! A stage is multiplied in [`Steps`]: while one is, the operands of the next are on their way into registers, and of
//! the last step those of the stage that follows. So the threads wait for each other, and for shared memory, while their
//! multipliers have work. Even and odd steps have registers of their own where those suffice: else the compiler copies each
//! operand once, which is 48 of the 87 instructions of a stage of f64 at n = 32 (780 -> 772 us, 64 1387 -> 1225 at m = k = 20480 on an
//! H200 on 2026-11-21). Against all loads behind the barrier, and B without the 16 bytes, an H200 on 2026-11-21 took at
//! m = k = 20480: f32 n = 16 416 -> 383 us, 32 638 -> 606, 64 1378 -> 1251; f64 n = 32 814 -> 780 (benches/results/h200 before
//! and after). Not so where other warps have work enough while one loads ([`Steps::AHEAD`]): there steps are a loop, each loaded when it is multiplied.
//!
//! # Parts of k
//! Where a tile has several blocks, each with a part of k, the last one joins their sums, and it alone writes C: [`crate::slots::join`]. Of many parts each
//! is a slot, which another launch adds (`model::launch::reduced::is_joined`).
//! Two tall matrices of few rows are tiles of 16 rows a warp and 8 columns, in up to 32 parts that are joined: f64, 64 x 64 of 1000 rows 5.7 us, by the entries for them 7.9
//! (an H200 on 2026-11-29, benches/results/trials/two-tall.csv). Of a Gram matrix all is computed so, each sum as the one across the diagonal.

mod fill;

use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use fill::Source;
use model::launch::{ring_a_len, ring_b_len, ring_gap, ring_pair_gap, ring_turn, ring_turns};

/// The shape of a ring and of the block that fills it.
pub trait Tile {
    /// Threads a block.
    const THREADS: u32;
    /// Rows of A a stage.
    const BM: u32;
    /// Columns of B a stage.
    const BN: u32;
    /// Steps of k a stage.
    const KT: u32;
    /// Stages.
    const STAGES: u32;
    /// Whether A's unit stride runs along its rows.
    const A_BY_ROWS: bool;
}

/// A block of THREADS threads for BM rows and BN columns of C, with STAGES stages of KT steps of k; BY_ROWS: A's unit
/// stride runs along its rows.
pub struct Block<
    const THREADS: usize,
    const BM: usize,
    const BN: usize,
    const KT: usize,
    const STAGES: usize,
    const BY_ROWS: bool,
>;

impl<const THREADS: usize, const BM: usize, const BN: usize, const KT: usize, const STAGES: usize, const BY_ROWS: bool>
    Tile for Block<THREADS, BM, BN, KT, STAGES, BY_ROWS>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = BM as u32;
    const BN: u32 = BN as u32;
    const KT: u32 = KT as u32;
    const STAGES: u32 = STAGES as u32;
    const A_BY_ROWS: bool = BY_ROWS;
}

/// This block's tile of C among all of them.
#[inline(always)]
pub fn tile_of_c() -> u32 {
    thread::block_idx_z() * thread::grid_dim_x() + thread::block_idx_x()
}

/// A's and B's part of a stage.
#[derive(Clone, Copy)]
pub struct Stage<T> {
    /// A's.
    pub a: Shared<T>,
    /// B's.
    pub b: Shared<T>,
}

/// How a thread multiplies a stage: step by step, each with operands of its own.
pub trait Steps<T: Scalar> {
    /// Steps a stage: even where AHEAD, so that two sets of registers can take turns.
    const COUNT: u32;
    /// Whether a step's operands are loaded while those of the step before are multiplied.
    const AHEAD: bool;
    /// [`model::launch::ring_takes_turns`]: whether even and odd steps have registers of their own.
    const TAKES_TURNS: bool;
    /// What the thread needs of A and B for a step.
    type Operands: Copy;
    /// Zeros.
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

/// Operands that were loaded and not yet multiplied.
struct Held<O> {
    even: O,
    odd: O,
}

impl<O: Copy> Held<O> {
    /// Loads the operands of a step while those of the one before are multiplied.
    ///
    /// # Safety
    /// As for [`Steps::load`] and [`Steps::multiply`].
    #[inline(always)]
    unsafe fn step<T: Scalar, W: Steps<T, Operands = O>>(&mut self, steps: &mut W, stage: Stage<T>, step: u32) {
        // SAFETY: promised by the caller.
        unsafe {
            if !W::TAKES_TURNS {
                let next = steps.load(stage, step);
                steps.multiply(self.even);
                self.even = next;
            } else if step % 2 == 0 {
                self.even = steps.load(stage, step);
                steps.multiply(self.odd);
            } else {
                self.odd = steps.load(stage, step);
                steps.multiply(self.even);
            }
        }
    }
}

/// A ring of stages of elements of T, laid out for the matrix units or for the vector units.
pub struct Ring<T, S, const MMA: bool>(PhantomData<(T, S)>);

impl<T: Scalar, S: Tile, const MMA: bool> Ring<T, S, MMA> {
    const OK: () = assert!(S::STAGES >= 2 && S::STAGES <= 4, "a ring has 2 to 4 stages");
    /// Elements in 16 bytes.
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;
    /// Whether lines along k are turned.
    pub const TURNED: bool = ring_turns(S::A_BY_ROWS, S::KT, Self::BYTES);
    /// Elements from line to line of what is stored along k.
    pub const PITCH: u32 = S::KT + ring_gap(S::A_BY_ROWS, MMA, S::KT, Self::BYTES) / Self::BYTES;
    /// The same of B stored along n.
    const B_PITCH: u32 = S::BN + ring_gap(false, false, S::KT, Self::BYTES) / Self::BYTES;
    const A_LEN: u32 = ring_a_len(S::BM, S::KT, S::A_BY_ROWS, MMA, Self::BYTES);
    const B_LEN: u32 = ring_b_len(S::BN, S::KT, S::A_BY_ROWS, MMA, Self::BYTES);

    /// Where element l of a line along k lies in it.
    #[inline(always)]
    fn turned(line: u32, l: u32) -> u32 {
        if Self::TURNED { l ^ (ring_turn(line) / Self::BYTES) } else { l }
    }

    /// Where a lane's part of a line starts at step 0, and at step `on`, whose distance depends on the line if lines are turned. If not, both are the
    /// first place, and [`Ring::rest`] is what is left to the second.
    ///
    /// # Safety
    /// As for [`ptx::pinned`].
    #[inline(always)]
    pub unsafe fn places(at: impl Fn(u32) -> u32, on: u32) -> [u32; 2] {
        // SAFETY: the caller's promise.
        let pinned = |l| unsafe { ptx::pinned(at(l)) };
        let first = pinned(0);
        [first, if Self::TURNED { pinned(on) } else { first }]
    }

    /// Steps from the second of [`Ring::places`] to what lies there.
    pub const fn rest(on: u32) -> u32 {
        if Self::TURNED { 0 } else { on }
    }

    /// Where the 16 bytes of A from element (row, l) of the stage on lie: along the unit stride, and aligned to it.
    #[inline(always)]
    pub fn at(row: u32, l: u32) -> u32 {
        if S::A_BY_ROWS {
            row * Self::PITCH + Self::turned(row, l)
        } else {
            // Fragments of `mma` take four columns a lane, of complex numbers one: these pieces of them lie in different banks.
            let lane = if Self::WIDTH == 1 { l } else { l / 4 };
            let swizzle = if MMA { lane % 4 * 2 } else { 0 };
            l * S::BM + ((row / Self::WIDTH) ^ swizzle) * Self::WIDTH
        }
    }

    /// Where element (l, j) of B's part of the stage lies; (l, j + 8) lies [`Ring::b_at`]`(0, 8)` further on.
    #[inline(always)]
    pub fn b_at(l: u32, j: u32) -> u32 {
        let pair_gap = ring_pair_gap(S::A_BY_ROWS, MMA, S::KT, Self::BYTES) / Self::BYTES;
        if MMA { j * Self::PITCH + j / 2 * pair_gap + Self::turned(j, l) } else { l * Self::B_PITCH + j }
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
    /// Launched with THREADS threads and `model::launch::tiling`'s shared memory; A and B span their elements, and A's unit
    /// stride is the one of the shape (`model::choose` refuses others).
    #[inline(always)]
    pub unsafe fn run<W: Steps<T>>(x: &Product<T>, steps: &mut W) {
        const { Self::OK };
        const { assert!(W::COUNT >= 2 && W::COUNT % 2 == 0, "two sets of registers can take turns") };
        let (start, end) = x.part(S::KT);
        let ahead = (S::STAGES - 1) * S::KT;
        let stop = if start < end { end + ahead } else { start };
        let mut source = Source::new::<S, MMA>(x, start);
        let (mut now, mut last) = (0, 0);
        let mut held = Held { even: W::ZEROS, odd: W::ZEROS }; // multiplied once, in the turn that loads the first operands, if AHEAD
        // Steps l .. are copied while those `ahead` of them are multiplied; the first turns only copy, the last only
        // multiply.
        for l in (start..stop).step_by(S::KT as usize) {
            // SAFETY: `end` <= k; who reads the stage was done with it at the last barrier. Stages that are loaded from
            // were filled, and waited for, before that. All threads take the same turns.
            unsafe {
                if l < end {
                    Self::fill(x, &source, Self::stage(last), end - l);
                    source.advance::<S>(x);
                }
                ptx::cp_async_commit_group();
                last = Self::behind(last);
                if W::TAKES_TURNS {
                    held.odd = W::ZEROS; // so that no registers are kept for what was multiplied
                }
                if l >= start + ahead && !W::AHEAD {
                    for step in 0..ptx::opaque(W::COUNT) {
                        let operands = steps.load(Self::stage(now), step);
                        steps.multiply(operands);
                    }
                    now = Self::behind(now);
                } else if l >= start + ahead {
                    // In pairs: where the compiler leaves the loop, it still knows which registers are whose.
                    for pair in 1..W::COUNT / 2 {
                        held.step(steps, Self::stage(now), 2 * pair - 1);
                        held.step(steps, Self::stage(now), 2 * pair);
                    }
                    held.step(steps, Self::stage(now), W::COUNT - 1);
                    // What the last turn loads is not multiplied: any whole stage will do.
                    now = if l + S::KT < stop { Self::behind(now) } else { now };
                }
                if l + S::KT >= start + ahead {
                    Self::wait();
                    thread::sync_threads(); // everyone's copies are there, and everyone is done with the stage before
                    if W::AHEAD {
                        held.step(steps, Self::stage(now), 0);
                    }
                }
            }
        }
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
