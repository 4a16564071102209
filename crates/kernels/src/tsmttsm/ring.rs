//! `tsmttsm_ring`, `gram_ring`: fragments from a ring of stages in shared memory, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! Past 32 columns several warps share C, and each element of A and B is a fragment of as many of them: straight from device
//! memory, as in [`super::mma`], the second-level cache serves each of them anew. Here `cp.async` brings a row once, into a
//! stage of KT rows, whoever multiplies it; STAGES - 1 stages are in flight, in no register.
//! # Thread mapping
//! Warps as in [`super::mma`]: 16·X x 16·Y of C each, WX x WY of them, KG groups that take 16 rows of a stage each in turn. Lane
//! (g, q) = (lane / 4, lane % 4) loads of each 16 columns 2g and 2g + 1 of rows q, q + 4, q + 8, q + 12, by 16 bytes. Rows of a
//! stage are [`pitch`] apart, a quarter of the banks more than whole rounds: eight lanes of a load, two columns of four rows,
//! meet in no bank.
//!
//! Rows that do not all begin at 16 bytes, those of an odd width, are copied by 16 bytes too: in a stage they lie a pitch apart
//! that is as odd as theirs in memory, and begin where they do in memory modulo 16 bytes. What is left of a pair at their ends is
//! copied by itself, and fragments are loaded by elements.
//! # Cost
//! Of a 64 x 64 C a row is 1024 bytes, 55 cycles of an SM's share of the memory on an H200, and 4096 multiply-adds, 28 cycles of
//! its matrix units; fragments take 16 cycles of shared memory. Of its Gram matrix a row is 512 bytes, 28 cycles, and 21 cycles of the matrix
//! units: three of four squares of 32 x 32.
//! # Source
//! Ours: the ring of `tsmttsm_staged`, the fragments of `tsmttsm_mma`. Not measured yet.

use super::Reduced;
use super::mma::{Fragment, Mma, STEP, Shape};
use super::staged::{Place, Source};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::reduced::{STAGES, odd_pitch, pitch};

/// A block of warps S with 16·X x 16·Y sums each, and KT rows a stage.
pub struct Ring<S, const X: usize, const Y: usize, const KT: usize>(PhantomData<S>);

impl<S: Shape, const X: usize, const Y: usize, const KT: usize> Ring<S, X, Y, KT> {
    const OK: () = assert!(KT as u32 % (STEP * S::KG) == 0, "groups have as many steps of a stage each");
    const THREADS: u32 = Mma::<S, X, Y, 1>::THREADS;
    const A: Place = Self::place(Mma::<S, X, Y, 1>::BM);
    const B: Place = Self::place(Mma::<S, X, Y, 1>::BN);
    const A_LEN: u32 = KT as u32 * odd_pitch(Self::A.side);
    /// A Gram matrix's B is its A.
    const B_LEN: u32 = if S::GRAM { 0 } else { KT as u32 * odd_pitch(Self::B.side) };

    const fn place(side: u32) -> Place {
        Place { rows: KT as u32, side, pitch: pitch(side) }
    }

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<f64>) {
        const { Self::OK };
        let p = &x.p;
        let (row, col) = (thread::block_idx_x() * Self::A.side, thread::block_idx_z() * Self::B.side);
        let a = Source::new(p.a, p.a_row, p.a_col, p.m, row);
        let b = Source::new(p.b, p.b_col, p.b_row, p.n, col);
        let wide = a.wide && (S::GRAM || b.wide);
        // SAFETY: the caller's promise; rows of paired sources are contiguous.
        unsafe {
            if !wide && p.a_row == 1 && (S::GRAM || p.b_col == 1) {
                let (a, b) = (Paired::new(p.a, p.a_col, p.m, row), Paired::new(p.b, p.b_row, p.n, col));
                Self::run(&x, &a, &b);
            } else {
                Self::run(&x, &a, &b);
            }
        }
    }

    /// # Safety
    /// As for [`Ring::body`]; the sources are A and B.
    #[inline(always)]
    unsafe fn run<F: Fill>(x: &Reduced<f64>, a: &F, b: &F) {
        let kt = KT as u32;
        let (start, end) = x.p.part(kt);
        let stages = (end - start).div_ceil(kt);
        // SAFETY: all lanes are here. `end` <= k. A stage is filled behind a barrier after which nobody reads it, and read behind
        // the barrier after everyone's copies have come. All threads take the same turns.
        unsafe {
            let mut sums = Mma::<S, X, Y, 1>::new();
            for ahead in 0..STAGES - 1 {
                Self::fill(a, b, ahead, (start + ahead * kt, end));
            }
            for at in 0..stages {
                ptx::cp_async_wait_group::<{ STAGES - 2 }>();
                thread::sync_threads();
                let ahead = at + STAGES - 1;
                Self::fill(a, b, ahead % STAGES, (start + ahead * kt, end));
                Self::multiply(&mut sums, (a, b), at % STAGES);
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
            sums.hand_in(x, true);
        }
    }

    #[inline(always)]
    fn stage(index: u32) -> Shared<f64> {
        Shared::at(index * (Self::A_LEN + Self::B_LEN))
    }

    /// # Safety
    /// As for [`Fill::fill`].
    #[inline(always)]
    unsafe fn fill<F: Fill>(a: &F, b: &F, stage: u32, rows: (u32, u32)) {
        if rows.0 < rows.1 {
            // SAFETY: promised by the caller.
            unsafe {
                a.fill(Self::stage(stage), Self::A, Self::THREADS, rows);
                if !S::GRAM {
                    b.fill(Self::stage(stage).starting_at(Self::A_LEN), Self::B, Self::THREADS, rows);
                }
            }
        }
        ptx::cp_async_commit_group();
    }

    /// Multiplies this group's steps of a stage.
    ///
    /// # Safety
    /// The stage is whole; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn multiply<F: Fill>(sums: &mut Mma<S, X, Y, 1>, (a, b): (&F, &F), stage: u32) {
        let sa = Self::stage(stage);
        let (b, sb) = if S::GRAM { (a, sa) } else { (b, sa.starting_at(Self::A_LEN)) };
        for step in (sums.group..KT as u32 / STEP).step_by(S::KG as usize) {
            // SAFETY: the step is in the stage, and so are the warp's lines.
            unsafe {
                let ra: [Fragment; X] = fragments(a, sa, Self::A, (step * STEP, sums.row));
                let rb: [Fragment; Y] = if Mma::<S, X, Y, 1>::SHARED {
                    core::array::from_fn(|y| ra[y % X])
                } else {
                    fragments(b, sb, Self::B, (step * STEP, sums.col))
                };
                sums.multiply(&(ra, rb));
            }
        }
    }
}

/// How a matrix gets into a stage, and lies there.
trait Fill {
    /// Starts copying the place's rows from l on, as far as there are some before `end`, by `threads` threads; zeros where
    /// there is nothing.
    ///
    /// # Safety
    /// The matrix spans its elements, `end` <= k, l is even; nobody reads the stage.
    unsafe fn fill(&self, stage: Shared<f64>, place: Place, threads: u32, rows: (u32, u32));

    /// Elements from row to row of a place.
    fn pitch(&self, place: Place) -> u32;

    /// An even line of a row and the next one, from where a row of the stage begins.
    ///
    /// # Safety
    /// They are in the stage.
    unsafe fn pair(&self, row: Shared<f64>, line: u32) -> [f64; 2];
}

/// By 16 bytes where all rows begin at such, else by elements.
impl Fill for Source<f64> {
    #[inline(always)]
    unsafe fn fill(&self, stage: Shared<f64>, place: Place, threads: u32, rows: (u32, u32)) {
        // SAFETY: promised by the caller.
        unsafe { Source::fill(self, stage, place, threads, rows) }
    }

    #[inline(always)]
    fn pitch(&self, place: Place) -> u32 {
        place.pitch
    }

    #[inline(always)]
    unsafe fn pair(&self, row: Shared<f64>, line: u32) -> [f64; 2] {
        // SAFETY: promised by the caller; rows of the stage are aligned to 16 bytes.
        let wide = unsafe { row.load_wide(line) };
        [wide[0], wide[1]]
    }
}

/// Contiguous rows that begin anywhere, copied by 16 bytes.
struct Paired {
    of: Global<f64>,
    /// From row to row.
    down: u64,
    /// Lines there are from the block's first on.
    lines: u32,
    /// Elements before the first row in a stage: it begins at 16 bytes, or between.
    shift: u32,
}

impl Paired {
    /// From line `first` on, which is even.
    #[inline(always)]
    fn new(of: Global<f64>, down: u64, lines: u32, first: u32) -> Self {
        let of = of.starting_at(first as u64);
        Paired { of, down, lines: lines.saturating_sub(first), shift: !of.is_aligned(16) as u32 }
    }
}

impl Fill for Paired {
    #[inline(always)]
    unsafe fn fill(&self, stage: Shared<f64>, place: Place, threads: u32, (l, end): (u32, u32)) {
        let pitch = self.pitch(place);
        let pairs = place.side / 2 + 1; // a row that begins between two has one more
        for pair in (thread::thread_idx_x()..place.rows * pairs).step_by(threads as usize) {
            let row = pair / pairs;
            let begin = self.shift + row * pitch;
            let into = begin / 2 * 2 + pair % pairs * 2;
            let is_there = |at: u32| l + row < end && at >= begin && at - begin < self.lines;
            let from = |at: u32| if is_there(at) { (l + row) as u64 * self.down + (at - begin) as u64 } else { self.shift as u64 };
            // SAFETY: inside the matrix, or nothing is read; the places are in the stage, and pairs lie in both alike.
            unsafe {
                if is_there(into) == is_there(into + 1) {
                    ptx::cp_async_16(stage.address(into), self.of.address(from(into)), is_there(into));
                } else {
                    for at in [into, into + 1] {
                        ptx::cp_async_8(stage.address(at), self.of.address(from(at)), is_there(at));
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn pitch(&self, place: Place) -> u32 {
        place.pitch + (self.down % 2) as u32
    }

    #[inline(always)]
    unsafe fn pair(&self, row: Shared<f64>, line: u32) -> [f64; 2] {
        // SAFETY: promised by the caller.
        unsafe { [row.load(self.shift + line), row.load(self.shift + line + 1)] }
    }
}

/// This lane's fragments of COUNT times 16 lines from `line` on, of the 16 rows from l on.
///
/// # Safety
/// They are in the stage.
#[inline(always)]
unsafe fn fragments<F: Fill, const COUNT: usize>(
    source: &F,
    stage: Shared<f64>,
    place: Place,
    (l, line): (u32, u32),
) -> [Fragment; COUNT] {
    let lane = thread::thread_idx_x() % warp::WARP_LANES;
    let pitch = source.pitch(place);
    let from = stage.starting_at((l + lane % 4) * pitch + line + 2 * (lane / 4));
    let mut all = [[0.0; 8]; COUNT];
    for at in 0..COUNT {
        for i in 0..4 {
            // SAFETY: promised by the caller.
            let pair = unsafe { source.pair(from, 4 * i as u32 * pitch + 16 * at as u32) };
            (all[at][2 * i], all[at][2 * i + 1]) = (pair[0], pair[1]);
        }
    }
    all
}
