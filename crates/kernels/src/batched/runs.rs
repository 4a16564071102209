//! Problems that lie one behind the other: how a block's lanes share them, and what a lane does of its unit.
//!
//! A unit is TM rows next to each other by TN columns of one problem's C. The units of all problems of a stage are the block's lanes', one after
//! the other, rows first, so that a warp has units of several problems and few lanes have none. Where TM is odd, rows that lanes load
//! together meet in no bank. The last rows, and the last columns, begin so early that they end with C: what another unit has too is
//! multiplied by both, and stored by the other.

use super::Batched;
use cuda_std::prelude::*;
use model::launch::batched::BulkTile;

/// Most elements in 16 bytes.
const MOST_PIECE: usize = 4;

/// What a lane knows of its block, whose lanes each have a unit of TM x TN sums, STEPS steps of k before places of B are moved on.
pub struct Runs<'a, T, const TM: usize, const TN: usize, const STEPS: u32> {
    pub x: &'a Batched<T>,
    pub lane: u32,
    lanes: u32,
    pub tile: BulkTile,
    /// Units down a problem, and of all of it, and by what their division is a multiplication.
    down: Divisor,
    units: Divisor,
}

/// Divides numbers below 2048, as threads of a block are, by one of at most 512.
#[derive(Clone, Copy)]
struct Divisor {
    by: u32,
    inverse: u32,
}

impl Divisor {
    const BITS: u32 = 20;

    #[inline(always)]
    fn new(by: u32) -> Divisor {
        Divisor { by, inverse: (1 << Self::BITS) / by + 1 }
    }

    /// The quotient and the rest.
    #[inline(always)]
    fn divide(self, number: u32) -> (u32, u32) {
        let quotient = (number * self.inverse) >> Self::BITS;
        (quotient, number - quotient * self.by)
    }
}

impl<'a, T: Scalar, const TM: usize, const TN: usize, const STEPS: u32> Runs<'a, T, TM, TN, STEPS> {
    const BYTES: u32 = size_of::<T>() as u32;
    /// Elements of a column that a lane loads or stores at a time.
    pub const PIECE: usize = if TM % T::WIDTH == 0 { T::WIDTH } else { 1 };

    /// Of a launch with stages like this.
    #[inline(always)]
    pub fn new(x: &'a Batched<T>, tile: BulkTile) -> Self {
        const {
            assert!(TM > 0 && TN > 0, "a unit has rows and columns");
            assert!(STEPS as usize % Self::PIECE == 0 && T::WIDTH <= MOST_PIECE, "steps are whole pieces");
        }
        let (down, across) = (x.m.div_ceil(TM as u32), x.n.div_ceil(TN as u32));
        let (lane, lanes) = (thread::thread_idx_x(), thread::block_dim_x());
        Runs { x, lane, lanes, tile, down: Divisor::new(down), units: Divisor::new(down * across) }
    }

    /// Groups of problems, of which a stage has one.
    #[inline(always)]
    pub fn groups(&self) -> u32 {
        self.x.count.div_ceil(self.x.problems)
    }

    #[inline(always)]
    pub fn stage(&self, stage: u32) -> Shared<T> {
        Shared::at(stage * self.tile.stage_len)
    }

    /// Where so many stages' mbarriers are, behind them.
    #[inline(always)]
    pub fn ready(&self, stages: u32) -> Shared<f64> {
        Shared::at(stages * self.tile.stage_len * Self::BYTES / size_of::<f64>() as u32)
    }

    /// Problems of a group.
    #[inline(always)]
    pub fn problems(&self, group: u32) -> u32 {
        (self.x.count - group * self.x.problems).min(self.x.problems)
    }

    /// Whether so many problems are whole pieces of 16 bytes: all groups but the last are.
    #[inline(always)]
    pub fn is_whole(&self, problems: u32) -> bool {
        problems == self.x.problems
    }

    /// Whether this lane has a unit of a group.
    #[inline(always)]
    pub fn has_unit(&self, problems: u32) -> bool {
        self.lane < problems * self.units.by
    }

    /// A's, B's and C's elements of a problem.
    #[inline(always)]
    pub fn lens(&self) -> [u32; 3] {
        let x = self.x;
        [x.m * x.k, x.k * x.n, x.m * x.n]
    }

    /// Starts copying those of a group's A, B and C that are asked for into a stage; when they are there, `ready` is. Of a group that is no whole
    /// pieces they are when all threads have returned.
    ///
    /// # Safety
    /// Nobody else uses their places; all threads of the block are here.
    #[inline(always)]
    pub unsafe fn fetch(&self, which: [bool; 3], into: Shared<T>, ready: ptx::SharedAddress, group: u32) {
        let (x, problems) = (self.x, self.problems(group));
        let places = [0, self.tile.b_at, self.tile.c_at];
        let operands = [x.a.base, x.b.base, x.c.base];
        let each = self.lens();
        let lens: [u32; 3] = core::array::from_fn(|i| if which[i] { problems * each[i] } else { 0 });
        let from = |i: usize| operands[i].starting_at(group as u64 * (x.problems * each[i]) as u64);
        // SAFETY: parts of the operands, into a stage that has room for them and that nobody reads or stores from.
        unsafe {
            if self.is_whole(problems) {
                if self.lane == 0 {
                    ptx::mbarrier_expect(ready, lens.iter().sum::<u32>() * Self::BYTES);
                    for i in 0..3 {
                        if lens[i] > 0 {
                            let bytes = lens[i] * Self::BYTES;
                            ptx::bulk_load(into.address(places[i]), from(i).address(0), bytes, ready);
                        }
                    }
                }
            } else {
                if self.lane == 0 {
                    ptx::mbarrier_expect(ready, 0);
                }
                for i in 0..3 {
                    for at in (self.lane..lens[i]).step_by(self.lanes as usize) {
                        into.store(places[i] + at, from(i).load(at as u64));
                    }
                }
            }
        }
    }

    /// Stores the problems' C.
    ///
    /// # Safety
    /// It is whole, and seen by bulk copies; all threads of the block are here.
    #[inline(always)]
    pub unsafe fn drain(&self, stage: Shared<T>, group: u32) {
        let (x, problems, [_, _, each]) = (self.x, self.problems(group), self.lens());
        let (from, len) = (stage.starting_at(self.tile.c_at), problems * each);
        let into = x.c.base.starting_at(group as u64 * (x.problems * each) as u64);
        // SAFETY: the problems' C, this block's.
        unsafe {
            if self.is_whole(problems) {
                if self.lane == 0 {
                    ptx::bulk_store(into.address(0), from.address(0), len * Self::BYTES);
                }
            } else {
                for at in (self.lane..len).step_by(self.lanes as usize) {
                    into.store(at as u64, from.load(at));
                }
            }
        }
        ptx::bulk_commit_group();
    }

    /// The problem of a stage that has a lane's unit, and the unit's place in it: down, and across.
    #[inline(always)]
    pub fn unit_of(&self, lane: u32) -> (u32, u32, u32) {
        let (problem, rest) = self.units.divide(lane);
        let (across, down) = self.down.divide(rest);
        (problem, down, across)
    }

    /// The sums of a unit whose rows begin at `sa` and whose columns at `sb`.
    ///
    /// # Safety
    /// These are elements of a problem's A and B, which are there.
    #[inline(always)]
    pub unsafe fn sums(&self, mut sa: Shared<T>, sb: Shared<T>) -> [[T; TN]; TM] {
        let (m, k, signs) = (self.x.m, self.x.k, self.x.signs());
        let mut sb: [Shared<T>; TN] = core::array::from_fn(|j| sb.starting_at(j as u32 * k));
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        // PIECE steps from one on.
        let mut multiply = |sb: &[Shared<T>; TN], first: u32| {
            // SAFETY: there are the steps, as the caller promised of the elements.
            let rb: [[T; MOST_PIECE]; TN] =
                core::array::from_fn(|j| unsafe { load_piece(sb[j].starting_at(first), Self::PIECE) });
            for d in 0..Self::PIECE {
                let mut ra = [T::ZERO; TM]; // (TM)
                for i in (0..TM).step_by(Self::PIECE) {
                    // SAFETY: the same.
                    let piece = unsafe { load_piece(sa.starting_at(i as u32), Self::PIECE) };
                    for (e, value) in piece.into_iter().enumerate().take(Self::PIECE) {
                        ra[i + e] = value;
                    }
                }
                T::add_outer(&mut rc, ra, core::array::from_fn(|j| rb[j][d]), signs);
                sa = sa.starting_at(m);
            }
        };
        // A step at a time it stays a loop: unrolled, sums change their registers and meet factors in banks.
        for _ in 0..if STEPS == 1 { ptx::opaque(k) } else { k / STEPS } {
            if STEPS == 1 {
                ptx::nounroll();
            }
            for step in (0..STEPS).step_by(Self::PIECE) {
                multiply(&sb, step);
            }
            sb = sb.map(|at| at.starting_at(STEPS));
        }
        for step in (0..k % STEPS).step_by(Self::PIECE) {
            multiply(&sb, step);
        }
        rc
    }
}

/// So many elements, one or 16 bytes that begin at a multiple.
///
/// # Safety
/// They are there.
#[inline(always)]
pub unsafe fn load_piece<T: Scalar>(at: Shared<T>, len: usize) -> [T; MOST_PIECE] {
    let mut piece = [T::ZERO; MOST_PIECE];
    // SAFETY: elements that are there, whole pieces where there are several.
    unsafe {
        if len > 1 {
            let wide = at.load_wide(0);
            for e in 0..len {
                piece[e] = wide[e];
            }
        } else {
            piece[0] = at.load(0);
        }
    }
    piece
}

/// Stores as many.
///
/// # Safety
/// As for [`load_piece`], and they are this thread's.
#[inline(always)]
pub unsafe fn store_piece<T: Scalar>(at: Shared<T>, piece: [T; MOST_PIECE], len: usize) {
    // SAFETY: elements that are there, this thread's, whole pieces where there are several.
    unsafe {
        if len > 1 {
            at.store_wide(0, |e| piece[e]);
        } else {
            at.store(0, piece[0]);
        }
    }
}
