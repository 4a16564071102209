//! `batched_bulk`: problems that lie one behind the other, several at a time, by bulk copies: from sm_90 on.
//!
//! # Idea
//! The matrices of a batch without gaps are three runs of bytes, whatever their sizes. A stage has so many problems that their parts of the runs are
//! whole pieces of 16 bytes: A, B and a C that is read come by one bulk copy each, C leaves from its place by another. These take no
//! registers of the lanes and no instructions, for odd sizes as for even ones, so that all that lanes do is multiply.
//!
//! # Thread mapping
//! A unit is TM rows next to each other by TN columns of one problem's C. The units of all problems of a stage are the block's lanes', one after
//! the other, rows first, so that a warp has units of several problems and few lanes have none. Where TM is odd, rows that lanes load
//! together meet in no bank. The last rows, and the last columns, begin so early that they end with C: what another unit has too is
//! multiplied by both, and stored by the other.
//! # Preconditions
//! All matrices are by columns, without gaps and one behind the other, from a multiple of 16 bytes on; m >= TM, n >= TN; where TM is whole pieces
//! of 16 bytes, m and k are. So many problems a stage that each matrix's part of it is whole pieces.
//! # Zero β, tails
//! β = 0 never reads C; k = 0 reads neither A nor B. The last stage, which may be no whole pieces, is copied by the lanes, element by element.
//! # Determinism
//! A sum is one chain of multiply-adds in the order of k, as of the other entries; by rows, where the transposed product is computed, of complex
//! elements with B's parts first.
//! # Cost
//! Each matrix is read once and each C written once. Of m = n = k = 9 in f64, β = 1, an H200's memory takes 140 cycles an SM for a problem; by 3 x
//! 3 sums its schedulers are predicted to take 14, and its shared memory 50.
//! Measured: `benches/results/h200/batched.csv`.

use super::Batched;
use cuda_std::prelude::*;
use model::launch::batched::BulkTile;

/// Steps of k between which places of B are moved on.
const STEPS: u32 = 4;
/// Most elements in 16 bytes.
const MOST_PIECE: usize = 4;

/// # Safety
/// Launched with whole warps, a thread at least for each unit of a stage, and `BulkTile::shared_bytes` of shared memory; what [the file](self)
/// asks for, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, const TM: usize, const TN: usize>(x: Batched<T>) {
    const {
        assert!(TM > 0 && TN > 0, "a unit has rows and columns");
        assert!(STEPS as usize % T::WIDTH == 0 && T::WIDTH <= MOST_PIECE, "steps are whole pieces");
    }
    let block = Block::<T, TM, TN>::new(&x);
    let groups = x.count.div_ceil(x.problems);
    let own_groups = groups.div_ceil(thread::grid_dim_x());
    let first = thread::block_idx_x() * own_groups;
    let end = (first + own_groups).min(groups);
    // SAFETY: shared memory is as the launch promised; the groups from `first` on are this block's, all of whose threads are here.
    unsafe {
        block.run(first, end);
    }
}

/// What a lane knows of its block.
struct Block<'a, T, const TM: usize, const TN: usize> {
    x: &'a Batched<T>,
    lane: u32,
    lanes: u32,
    tile: BulkTile,
    /// Units down a problem, and of all of it, and by what their division is a multiplication.
    down: Divisor,
    units: Divisor,
    ready: Shared<f64>,
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

impl<'a, T: Scalar, const TM: usize, const TN: usize> Block<'a, T, TM, TN> {
    const BYTES: u32 = size_of::<T>() as u32;
    /// Elements that a lane loads or stores at a time.
    const PIECE: usize = if TM % T::WIDTH == 0 { T::WIDTH } else { 1 };

    #[inline(always)]
    fn new(x: &'a Batched<T>) -> Self {
        let tile = BulkTile::new([x.m, x.n, x.k], x.problems, T::WIDTH as u32);
        let (down, across) = (x.m.div_ceil(TM as u32), x.n.div_ceil(TN as u32));
        Block {
            x,
            lane: thread::thread_idx_x(),
            lanes: thread::block_dim_x(),
            tile,
            down: Divisor::new(down),
            units: Divisor::new(down * across),
            ready: Shared::at(x.stages * tile.stage_len * Self::BYTES / size_of::<f64>() as u32),
        }
    }

    /// Multiplies the groups of problems from `group` to `end`.
    ///
    /// # Safety
    /// Nothing else is in shared memory; the groups are this block's, all of whose threads are here.
    #[inline(always)]
    unsafe fn run(&self, mut group: u32, end: u32) {
        let stages = self.x.stages;
        let after = |stage: u32| if stage + 1 == stages { 0 } else { stage + 1 };
        // The stage that is multiplied, and the group and the stage that are filled; those to be filled before the first is multiplied.
        let (mut now, mut parity) = (0, 0);
        let (mut next, mut next_stage, mut missing) = (group, 0, stages - 1);
        // SAFETY: nothing else is in the mbarriers' place, as the caller promised; a stage is filled when it was read and stored from, and
        // threads meet between all uses of it.
        unsafe {
            if self.lane == 0 {
                for stage in 0..stages {
                    ptx::mbarrier_init(self.ready.address(stage), 1);
                }
                ptx::fence_proxy_async();
            }
            thread::sync_threads(); // nobody waits at what is not there
            while group < end {
                if missing > 0 {
                    missing -= 1;
                } else {
                    ptx::mbarrier_wait(self.ready.address(now), parity);
                    let (stage, problems) = (self.stage(now), self.problems(group));
                    if !self.is_whole(problems) {
                        thread::sync_threads(); // what lanes copied is there too
                    }
                    if self.lane < problems * self.units.by {
                        self.multiply(stage);
                    }
                    // Of the turn before C has left its stage, which is the next one to be filled.
                    ptx::bulk_wait_group_read::<0>();
                    ptx::fence_proxy_async();
                    thread::sync_threads(); // and this turn's C is whole
                    self.drain(stage, group);
                    group += 1;
                    now = after(now);
                    parity ^= u32::from(now == 0);
                }
                if next < end {
                    self.fill(next_stage, next);
                    next += 1;
                    next_stage = after(next_stage);
                }
            }
            ptx::bulk_wait_group::<0>();
        }
    }

    #[inline(always)]
    fn stage(&self, stage: u32) -> Shared<T> {
        Shared::at(stage * self.tile.stage_len)
    }

    /// Problems of a group.
    #[inline(always)]
    fn problems(&self, group: u32) -> u32 {
        (self.x.count - group * self.x.problems).min(self.x.problems)
    }

    /// Whether so many problems are whole pieces of 16 bytes: all groups but the last are.
    #[inline(always)]
    fn is_whole(&self, problems: u32) -> bool {
        problems == self.x.problems
    }

    /// A's, B's and C's elements of a problem.
    #[inline(always)]
    fn lens(&self) -> [u32; 3] {
        let x = self.x;
        [x.m * x.k, x.k * x.n, x.m * x.n]
    }

    /// Starts filling a stage, from which C was stored one turn ago.
    ///
    /// # Safety
    /// Nobody else uses it; all threads of the block are here.
    #[inline(always)]
    unsafe fn fill(&self, stage: u32, group: u32) {
        let (x, problems) = (self.x, self.problems(group));
        let (into, ready) = (self.stage(stage), self.ready.address(stage));
        let places = [0, self.tile.b_at, self.tile.c_at];
        let operands = [x.a.base, x.b.base, x.c.base];
        let [a, b, c] = self.lens().map(|len| problems * len);
        let lens = [a, b, if x.beta.is_zero() { 0 } else { c }];
        let from = |i: usize| operands[i].starting_at(group as u64 * (x.problems * self.lens()[i]) as u64);
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
    unsafe fn drain(&self, stage: Shared<T>, group: u32) {
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

    /// C ← α · op(A) op(B) + β C of this lane's unit.
    ///
    /// # Safety
    /// The stage is filled, and has the unit.
    #[inline(always)]
    unsafe fn multiply(&self, stage: Shared<T>) {
        let (x, [a, b, c]) = (self.x, self.lens());
        let (problem, rest) = self.units.divide(self.lane);
        let (across, down) = self.down.divide(rest);
        let (row, col) = (down * TM as u32, across * TN as u32);
        // Where the unit begins, which is before its first own row or column if there are not as many.
        let (from_row, from_col) = (row.min(x.m - TM as u32), col.min(x.n - TN as u32));
        let sa = stage.starting_at(problem * a + from_row);
        let sb = stage.starting_at(self.tile.b_at + problem * b + from_col * x.k);
        let sc = stage.starting_at(self.tile.c_at + problem * c + from_col * x.m + from_row);
        let is_own = |i: usize, j: usize| from_row + i as u32 >= row && from_col + j as u32 >= col;
        // SAFETY: elements of the problem's A, B and C, of which this thread alone has the unit's own.
        unsafe {
            let rc = self.sums(sa, sb);
            let at = |i: usize, j: usize| sc.starting_at(j as u32 * x.m + i as u32);
            let mut out = [[T::ZERO; TN]; TM]; // (TM, TN)
            for j in 0..TN {
                for i in (0..TM).step_by(Self::PIECE) {
                    // What is another unit's is being written.
                    if !x.beta.is_zero() && is_own(i, j) {
                        let old = Self::load_piece(at(i, j));
                        for e in 0..Self::PIECE {
                            out[i + e][j] = old[e];
                        }
                    }
                }
            }
            x.scale(rc, &mut out);
            for j in 0..TN {
                for i in (0..TM).step_by(Self::PIECE) {
                    if is_own(i, j) {
                        Self::store_piece(at(i, j), core::array::from_fn(|e| out[(i + e).min(TM - 1)][j]));
                    }
                }
            }
        }
    }

    /// As many elements as a lane loads at a time, of which 16 bytes begin at a multiple.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn load_piece(at: Shared<T>) -> [T; MOST_PIECE] {
        let mut piece = [T::ZERO; MOST_PIECE];
        // SAFETY: elements that are there, whole pieces where there are several.
        unsafe {
            if Self::PIECE > 1 {
                let wide = at.load_wide(0);
                for e in 0..Self::PIECE {
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
    /// As for [`Block::load_piece`], and they are this thread's.
    #[inline(always)]
    unsafe fn store_piece(at: Shared<T>, piece: [T; MOST_PIECE]) {
        // SAFETY: elements that are there, this thread's, whole pieces where there are several.
        unsafe {
            if Self::PIECE > 1 {
                at.store_wide(0, |e| piece[e]);
            } else {
                at.store(0, piece[0]);
            }
        }
    }

    /// The sums of a unit whose rows begin at `sa` and whose columns at `sb`.
    ///
    /// # Safety
    /// These are elements of a problem's A and B, which are there.
    #[inline(always)]
    unsafe fn sums(&self, mut sa: Shared<T>, sb: Shared<T>) -> [[T; TN]; TM] {
        let (m, k, signs) = (self.x.m, self.x.k, self.x.signs());
        let mut sb: [Shared<T>; TN] = core::array::from_fn(|j| sb.starting_at(j as u32 * k));
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        // PIECE steps from one on.
        let mut multiply = |sb: &[Shared<T>; TN], first: u32| {
            // SAFETY: there are the steps, as the caller promised of the elements.
            let rb: [[T; MOST_PIECE]; TN] =
                core::array::from_fn(|j| unsafe { Self::load_piece(sb[j].starting_at(first)) });
            for d in 0..Self::PIECE {
                let mut ra = [T::ZERO; TM]; // (TM)
                for i in (0..TM).step_by(Self::PIECE) {
                    // SAFETY: the same.
                    let piece = unsafe { Self::load_piece(sa.starting_at(i as u32)) };
                    for (e, value) in piece.into_iter().enumerate().take(Self::PIECE) {
                        ra[i + e] = value;
                    }
                }
                T::add_outer(&mut rc, ra, core::array::from_fn(|j| rb[j][d]), signs);
                sa = sa.starting_at(m);
            }
        };
        for _ in 0..k / STEPS {
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
