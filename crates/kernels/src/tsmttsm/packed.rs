//! `tsmttsm_packed`, `gram_packed`: packed rows by bulk copies into a ring of stages, f64 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! KT packed rows are one run of memory whatever their width, which is a multiple of 16 bytes where KT is even: one bulk copy for each
//! matrix and stage, which takes no registers, and of odd widths what [`super::ring`] copies element by element. What a warp loads straight from
//! memory begins anywhere in a sector where rows do, as in [`super::mma`]; here each sector comes once.
//!
//! # Thread mapping
//! Warps as in [`super::mma`], groups along k as in [`super::ring`]. Rows of a stage lie as in memory, WIDTH elements apart, and which rows of a
//! step are which of the matrix units' is free: lane (g, q) = (lane / 4, lane % 4) has of each 16 columns g and g + 8 of four rows, the
//! q-th lane's `spacing` rows behind those of the one before. Half a warp loads four columns of four rows at a time, which meet in no bank where
//! spacing · WIDTH is 4 or 12 elements past a multiple of 16: of odd widths rows 4 apart, of multiples of 2 rows 2 apart, of 4 neighbours. Multiples of 8 have no such
//! spacing. Columns past the last are those of the next row, and what comes of them is not stored.
//!
//! # Tails
//! What is no run at a multiple of 16 bytes, and the last rows of k where they are no whole stage, come element by element.
//! # Cost
//! Of 33 x 33 a row is 528 bytes, 28 cycles of an SM's share of the memory on an H200, and of 48 x 48, which are multiplied, 2304
//! multiply-adds, 18 cycles of its matrix units. Measured on 2026-11-22 and 23, of the bound, by whole steps in place of the halves of [`super::ring`]: 17 to 31 columns 97 to 98%, 33 to 47
//! 97 to 98, of multiples of 16 54 to 71 (not chosen); Gram matrices of 17 to 31 columns 90 to 98%, 33 to 48 85 to 97. On 2026-11-27, by halves and of 4·10⁶ rows: 33 columns 92, 49 92, 56 94 (by
//! [`super::ring`] 79, 84, 97).

use super::Reduced;
use super::fragments::{Fragments, lane};
use super::share::{Division, Operand, Share, Work};
use super::stages::{Place, Source};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::reduced::{STAGES, pitch, spacing};

/// A block of warps with shares W of C, and KT rows a stage; m and n no more than it has.
pub struct Packed<W, const KT: usize>(PhantomData<W>);

/// One of the matrices: how it comes, and where this lane finds its elements.
#[derive(Clone, Copy)]
struct Rows {
    of: Global<f64>,
    source: Source<f64>,
    width: u32,
    /// From the stage's first element to this lane's first of a step; from its first row to its second, and to its third.
    first: u32,
    near: u32,
    far: u32,
}

/// Both; `runs` if rows of both are.
struct Operands {
    a: Rows,
    b: Rows,
    runs: bool,
}

impl<W: Division<f64>, const KT: usize> Packed<W, KT> {
    const OK: () = assert!(KT as u32 == f64::SIDE * W::KG, "groups have a step of a stage each");
    const THREADS: u32 = W::THREADS;
    const BM: u32 = W::BM;
    const BN: u32 = W::BN;
    const A_LEN: u32 = KT as u32 * pitch(Self::BM, size_of::<f64>() as u32);
    /// A Gram matrix's B is its A.
    const B_LEN: u32 = if W::GRAM { 0 } else { KT as u32 * pitch(Self::BN, size_of::<f64>() as u32) };
    /// Behind the rows of the last stage, which have no pitch.
    const MBARRIERS: u32 = STAGES * (Self::A_LEN + Self::B_LEN) - STAGES;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements; m <= BM,
    /// n <= BN.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<f64>) {
        const { Self::OK };
        let both = Self::operands(&x);
        let part = x.p.part(KT as u32);
        // SAFETY: all lanes are here, and the part ends at k.
        unsafe {
            Self::begin(&both);
            thread::sync_threads(); // the mbarriers are there
            W::run(Turns::<W, KT> { both, part, shares: PhantomData }, false);
            W::finish(&x);
        }
    }

    /// A and B, or A twice.
    #[inline(always)]
    fn operands(x: &Reduced<f64>) -> Operands {
        let p = &x.p;
        let (b, b_strides, n) = if W::GRAM { (p.a, (p.a_row, p.a_col), p.m) } else { (p.b, (p.b_col, p.b_row), p.n) };
        let spaced = spacing(p.m, n);
        Operands {
            a: Rows::new(p.a, (p.a_row, p.a_col), (p.m, spaced)),
            b: Rows::new(b, b_strides, (n, spaced)),
            runs: is_run(p.a, (p.a_row, p.a_col), p.m) && is_run(b, b_strides, n),
        }
    }

    #[inline(always)]
    fn mbarrier(stage: u32) -> ptx::SharedAddress {
        Shared::<f64>::at(Self::MBARRIERS).address(stage % STAGES)
    }

    #[inline(always)]
    fn stage(index: u32) -> (Shared<f64>, Shared<f64>) {
        let sa = Shared::at(index % STAGES * (Self::A_LEN + Self::B_LEN));
        (sa, if W::GRAM { sa } else { sa.starting_at(Self::A_LEN) })
    }

    /// Makes the mbarriers, and what is read behind the last row of a stage, columns that are not there.
    ///
    /// # Safety
    /// All threads are here, and nobody uses the stages.
    #[inline(always)]
    unsafe fn begin(of: &Operands) {
        let t = thread::thread_idx_x();
        for index in 0..STAGES {
            let (sa, sb) = Self::stage(index);
            // SAFETY: rows that are narrower than the tile leave as much at the end of the stage.
            unsafe {
                of.a.end(sa, KT as u32, Self::BM, Self::THREADS);
                if !W::GRAM {
                    of.b.end(sb, KT as u32, Self::BN, Self::THREADS);
                }
                if t == 0 {
                    ptx::mbarrier_init(Self::mbarrier(index), 1);
                }
            }
        }
        if t == 0 {
            ptx::fence_proxy_async();
        }
    }

    /// Starts filling a stage with KT rows from l on, as far as there are some before `end`, and zeros.
    ///
    /// # Safety
    /// Nobody uses the stage, and whoever used it has met all others; `end` <= k.
    #[inline(always)]
    unsafe fn fill(&Operands { ref a, ref b, runs }: &Operands, index: u32, (l, end): (u32, u32)) {
        let ((sa, sb), kt) = (Self::stage(index), KT as u32);
        // SAFETY: nobody uses the stage, as the caller promised; of a run KT rows are there, and aligned; `copy` ends
        // at `end` <= k.
        unsafe {
            if l < end && runs && kt <= end - l {
                if thread::thread_idx_x() == 0 {
                    let ready = Self::mbarrier(index);
                    ptx::mbarrier_expect(ready, a.bytes(kt) + if W::GRAM { 0 } else { b.bytes(kt) });
                    a.load(sa, l, kt, ready);
                    if !W::GRAM {
                        b.load(sb, l, kt, ready);
                    }
                }
            } else if l < end {
                a.copy(sa, (l, end), kt, Self::THREADS);
                if !W::GRAM {
                    b.copy(sb, (l, end), kt, Self::THREADS);
                }
            }
        }
        ptx::cp_async_commit_group();
    }
}

/// All stages of a part of k.
struct Turns<W, const KT: usize> {
    both: Operands,
    part: (u32, u32),
    shares: PhantomData<W>,
}

impl<W: Division<f64>, const KT: usize> Turns<W, KT> {
    /// The rows of a stage, of the part's.
    #[inline(always)]
    fn rows(&self, index: u32) -> (u32, u32) {
        let (start, end) = self.part;
        (start.saturating_add(index * KT as u32), end)
    }

    /// Waits for a stage's copies.
    ///
    /// # Safety
    /// They were started.
    #[inline(always)]
    unsafe fn wait<const PENDING: u32>(&self, index: u32) {
        let (l, end) = self.rows(index);
        // SAFETY: what the caller promised.
        unsafe {
            ptx::cp_async_wait_group::<PENDING>();
            if self.both.runs && l < end && KT as u32 <= end - l {
                ptx::mbarrier_wait(Packed::<W, KT>::mbarrier(index), index / STAGES % 2);
            }
        }
        thread::sync_threads();
    }

    /// Loads half of the step of a stage that is this share's group's.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load<S: Share<f64>>(&self, share: &S, index: u32, half: u32) -> S::Loaded {
        let ((sa, sb), step) = (Packed::<W, KT>::stage(index), share.group());
        let Operands { a, b, .. } = self.both;
        // SAFETY: what the caller promised.
        unsafe { share.load(&Step { stage: sa, of: a, step }, &Step { stage: sb, of: b, step }, half) }
    }
}

impl<W: Division<f64>, const KT: usize> Work<f64> for Turns<W, KT> {
    #[inline(always)]
    unsafe fn go<S: Share<f64>>(self, share: &mut S) {
        let (start, end) = self.part;
        let stages = (end - start).div_ceil(KT as u32);
        // SAFETY: all threads are here, and take the same turns. A stage is filled behind a barrier that all have met when they had loaded what it
        // was, and loaded behind its mbarrier, or the barrier that all meet when their copies of it have come.
        unsafe {
            for ahead in 0..STAGES {
                Packed::<W, KT>::fill(&self.both, ahead, self.rows(ahead));
            }
            if stages > 0 {
                self.wait::<{ STAGES - 1 }>(0);
                let mut first = self.load(share, 0, 0);
                for at in 0..stages {
                    let last = self.load(share, at, 1);
                    share.multiply(first, false);
                    self.wait::<{ STAGES - 2 }>(at + 1);
                    first = if at + 1 < stages { self.load(share, at + 1, 0) } else { last };
                    Packed::<W, KT>::fill(&self.both, at + STAGES, self.rows(at + STAGES));
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
    of: Rows,
    step: u32,
}

impl Operand<f64> for Step {
    #[inline(always)]
    unsafe fn load<const COUNT: usize>(&self, line: u32, half: u32) -> [[f64; 4]; COUNT] {
        // SAFETY: what the caller promised; columns behind the last row's are the zeros that `end` stored.
        unsafe { self.of.halves(self.stage, self.step, line, half) }
    }
}

impl Rows {
    /// Of a matrix of `width` columns, with so many rows from lane to lane.
    #[inline(always)]
    fn new(of: Global<f64>, (across, down): (u64, u64), (width, spaced): (u32, u32)) -> Self {
        let mut source = Source::by_rows(of, across, down, width, 0);
        source.wide = false; // rows in a stage are not aligned
        let (g, q) = lane();
        // The rows of a lane are neighbours where lanes are 4 apart, pairs of them where they are 2 apart.
        let near = if spaced == 1 { 4 } else { 1 };
        let far = if spaced == 4 { 2 } else { 8 };
        let first = q * spaced * width + g;
        Rows { of, source, width, first, near: near * width, far: far * width }
    }

    /// Bytes of so many rows.
    #[inline(always)]
    fn bytes(&self, rows: u32) -> u32 {
        rows * self.width * size_of::<f64>() as u32
    }

    /// Zeros behind the last of so many rows, where columns that are not there are read: the tile's `side` less its own.
    ///
    /// # Safety
    /// All of `threads` threads are here, and nobody uses the stage.
    #[inline(always)]
    unsafe fn end(&self, stage: Shared<f64>, rows: u32, side: u32, threads: u32) {
        for at in (thread::thread_idx_x()..side - self.width).step_by(threads as usize) {
            // SAFETY: behind `rows` rows the stage has the tile's side less `width` elements; nobody uses it, as the
            // caller promised.
            unsafe { stage.store(rows * self.width + at, 0.0) };
        }
    }

    /// Starts a bulk copy of rows from l on.
    ///
    /// # Safety
    /// They are there, and a run; nobody uses the stage, and the mbarrier expects the bytes.
    #[inline(always)]
    unsafe fn load(&self, stage: Shared<f64>, l: u32, rows: u32, ready: ptx::SharedAddress) {
        let from = self.of.address(l as u64 * self.width as u64);
        // SAFETY: the rows are a run and there, nobody uses the stage, and the mbarrier expects the bytes, as the
        // caller promised.
        unsafe { ptx::bulk_load(stage.address(0), from, self.bytes(rows), ready) };
    }

    /// Starts copying elements of rows l .. `end`, at most `rows`, and zeros.
    ///
    /// # Safety
    /// As for [`Source::fill`].
    #[inline(always)]
    unsafe fn copy(&self, stage: Shared<f64>, part: (u32, u32), rows: u32, threads: u32) {
        let place = Place { steps: rows, side: self.width, pitch: self.width };
        // SAFETY: what this is promised is what `Source::fill` asks for; rows of `width` elements are packed in the
        // stage.
        unsafe { self.source.fill(stage, place, threads, part) };
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
                    // `end` stored.
                    all[at][2 * i + r] = unsafe { from.load(16 * at as u32 + 8 * r as u32) };
                }
            }
        }
        all
    }
}

/// Whether rows of so many columns lie behind each other, from a multiple of 16 bytes on.
#[inline(always)]
fn is_run(of: Global<f64>, (across, down): (u64, u64), width: u32) -> bool {
    of.is_aligned(16) && (across == 1 || width == 1) && down == width as u64
}
