//! `tsmttsm_ring`, `gram_ring`, and `tsmttsm_lines`, `gram_lines` of f64 and c128: fragments from a ring of stages in
//! shared memory, multiplied by the matrix units of sm_90.
//!
//! # Idea
//! Past 32 columns several warps share C, and each element of A and B is a fragment of as many of them: straight from device
//! memory, as in [`super::mma`], the second-level cache serves each of them anew. Here `cp.async` brings a row once, into a
//! stage of KT rows, whoever multiplies it; STAGES - 1 stages are in flight, in no register.
//!
//! One warp issues a product every 32 cycles, which is what its scheduler's matrix units take: they stand still while all of a scheduler's warps do
//! something else, and behind a barrier all of a block's warps do the same. So a step's two halves take turns: while one is multiplied the fragments of
//! the other come, the first ones of the next stage too, whose barrier lies between the halves; copies are some instructions without a
//! question (fill.rs) in front of products; and C is shared out so that warps have equally much to multiply ([`super::dealt`]).
//! # Thread mapping
//! Warps as in [`super::mma`]: X x Y squares of C each, WX x WY of them, KG groups that take a step of a stage each; or as in [`super::dealt`].
//! Lane (g, q) = (lane / 4, lane % 4) loads of each 16 columns of f64 2g and 2g + 1 of rows q and q + 4, then q + 8 and q + 12, by 16 bytes.
//! Rows of a stage are [`pitch`] apart, a quarter of the banks more than whole rounds: eight lanes of a load, two of each of four
//! rows, meet in no bank. Lines are [`fragment_line_pitch`] apart, half of the banks more: eight lanes, four of each
//! of two lines, which have what they have along k of memory. Tails are as in stages.rs; behind the last stage of a part there are as many of zeros as a ring
//! has, of which the first is loaded and not multiplied.
//! # Cost
//! Of a 64 x 64 C a row is 1024 bytes, 55 cycles of an SM's share of the memory on an H200, and 4096 multiply-adds, 32 cycles of
//! its matrix units; fragments take 16 cycles of shared memory. Of its Gram matrix a row is 512 bytes, 28 cycles, and 20 cycles of the matrix units.
//! Of c128: of a 64 x 64 C 110 cycles of the memory and 128 of the matrix units, of its Gram matrix 55 and 72; fragments take 32 and 22 cycles of
//! shared memory.
//!
//! Measured on an H200 on 2026-11-27, of the bound (benches/results/h200/rings.csv, 6 times each): f64, 4·10⁶ rows, of 48 columns 96%, of 64 98, Gram matrices of 64 92, of 2·10⁵ rows 65, 69 and 51;
//! c128, 2·10⁶ rows, of 33, 40, 48, 49, 56 and 64 columns 83, 93, 90, 65, 76 and 81, Gram matrices 68, 80, 75, 62, 70 and 75, of 10⁵ rows 53 to 63 and 30 to 48.
//! # Source
//! Ours: the ring of `tsmttsm_staged`, the fragments of `tsmttsm_mma`. Rows of f64 of an odd width are copied by
//! elements; [`super::packed`] has them if they are packed.

use super::Reduced;
use super::fill::{Along, ByElement, Fill, Pieces};
use super::fragments::Squares;
use super::share::{Division, Operand, Share, Work};
use super::stages::{Place, Source};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::reduced::{STAGES, fragment_line_pitch, pitch};

/// A block of warps with shares W of C, and KT steps of k a stage, in rows or in LINES.
pub struct Ring<T, W, const KT: usize, const LINES: bool>(PhantomData<(T, W)>);

/// A step of a stage, from row l on.
struct Step<T, const LINES: bool> {
    stage: Shared<T>,
    pitch: u32,
    l: u32,
}

impl<T: Squares, const LINES: bool> Operand<T> for Step<T, LINES> {
    #[inline(always)]
    unsafe fn load<const COUNT: usize>(&self, line: u32, half: u32) -> [T::Half; COUNT] {
        let &Step { stage, pitch, l } = self;
        // SAFETY: what the caller promised.
        unsafe { if LINES { T::of_lines(stage, pitch, l, line, half) } else { T::staged(stage, pitch, l, line, half) } }
    }
}

impl<T: Squares, W: Division<T>, const KT: usize, const LINES: bool> Ring<T, W, KT, LINES> {
    const OK: () = {
        assert!(KT as u32 == T::SIDE * W::KG, "groups have a step of a stage each");
        assert!(!LINES || Self::THREADS % KT as u32 == 0, "a thread copies the same step of each of its lines");
        assert!(
            LINES || Self::THREADS >= Self::A.side && Self::THREADS >= Self::B.side,
            "a row of a stage has a thread for each element"
        );
    };
    const THREADS: u32 = W::THREADS;
    const A: Place = Self::place(W::BM);
    const B: Place = Self::place(W::BN);
    const A_LEN: u32 = Self::len(Self::A);
    /// A Gram matrix's B is its A.
    const B_LEN: u32 = if W::GRAM { 0 } else { Self::len(Self::B) };

    const fn place(side: u32) -> Place {
        let (steps, bytes) = (KT as u32, size_of::<T>() as u32);
        Place { steps, side, pitch: if LINES { fragment_line_pitch(steps, bytes) } else { pitch(side, bytes) } }
    }

    const fn len(place: Place) -> u32 {
        place.pitch * if LINES { place.side } else { place.steps }
    }

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<T>) {
        const { Self::OK };
        let p = &x.p;
        let a = Self::source(p.a, (p.a_row, p.a_col), p.m, thread::block_idx_x() * Self::A.side);
        let b = Self::source(p.b, (p.b_col, p.b_row), p.n, thread::block_idx_z() * Self::B.side);
        let part = p.part(KT as u32);
        let pieces = |of, place| if LINES { None } else { Pieces::new(of, place, Self::THREADS, part.0) };
        let by_pieces = (pieces(&a, Self::A), pieces(if W::GRAM { &a } else { &b }, Self::B));
        let is_even = |place: Place| Pieces::<T>::is_even(place.steps, place.side, Self::THREADS);
        // SAFETY: all lanes are here. The part ends at k, and begins at a whole stage. Lines that are not there are cleared in front of the
        // first barrier, or copied as zeros.
        unsafe {
            if by_pieces.0.is_none() || by_pieces.1.is_none() || !is_even(Self::A) || !is_even(Self::B) {
                let (sa, apart) = (Self::stage(0), Self::A_LEN + Self::B_LEN);
                Self::clear(&a, sa, Self::A, apart);
                if !W::GRAM {
                    Self::clear(&b, sa.starting_at(Self::A_LEN), Self::B, apart);
                }
            }
            match by_pieces {
                (Some(a), Some(b)) => W::run(Self::turns((a, b), part, p.conj_b()), true),
                _ if LINES => W::run(Self::turns((Along(a), Along(b)), part, p.conj_b()), false),
                _ => W::run(Self::turns((ByElement(a), ByElement(b)), part, p.conj_b()), true),
            }
            W::finish(&x);
        }
    }

    #[inline(always)]
    fn turns<F>(fill: (F, F), part: (u32, u32), conj_b: bool) -> Turns<T, W, F, KT, LINES> {
        Turns { fill, part, conj_b, ring: PhantomData }
    }

    #[inline(always)]
    fn source(of: Global<T>, (across, down): (u64, u64), lines: u32, first: u32) -> Source<T> {
        if LINES {
            return Source::by_lines(of, across, down, lines, first);
        }
        let mut source = Source::by_rows(of, across, down, lines, first);
        // An element of 16 bytes is a piece whichever way rows lie: what another way needs is not kept in registers.
        source.wide &= T::WIDTH > 1;
        source
    }

    /// # Safety
    /// As for [`Source::clear_rows`] and [`Source::clear_lines`].
    #[inline(always)]
    unsafe fn clear(source: &Source<T>, first: Shared<T>, place: Place, apart: u32) {
        // SAFETY: what this is promised is what both ask for.
        unsafe {
            if LINES {
                source.clear_lines(first, place, Self::THREADS, apart);
            } else {
                source.clear_rows(first, place, Self::THREADS, apart);
            }
        }
    }

    #[inline(always)]
    fn stage(index: u32) -> Shared<T> {
        Shared::at(index % STAGES * (Self::A_LEN + Self::B_LEN))
    }
}

/// All stages of a part of k, filled by F.
struct Turns<T, W, F, const KT: usize, const LINES: bool> {
    fill: (F, F),
    part: (u32, u32),
    conj_b: bool,
    ring: PhantomData<(T, W)>,
}

impl<T: Squares, W: Division<T>, F: Fill<T>, const KT: usize, const LINES: bool> Turns<T, W, F, KT, LINES> {
    /// Starts filling a stage, with zeros where the part has ended.
    ///
    /// # Safety
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn fill(&mut self, index: u32) {
        let (start, end) = self.part;
        let rows = (start.saturating_add(index * KT as u32).min(end), end);
        let stage = Ring::<T, W, KT, LINES>::stage(index);
        let (a, b) = (Ring::<T, W, KT, LINES>::A, Ring::<T, W, KT, LINES>::B);
        // SAFETY: the part is of A's and B's rows, and nobody uses the stage, as the caller promised.
        unsafe {
            self.fill.0.fill(stage, a, W::THREADS, rows);
            if !W::GRAM {
                self.fill.1.fill(stage.starting_at(Ring::<T, W, KT, LINES>::A_LEN), b, W::THREADS, rows);
            }
            ptx::cp_async_commit_group();
        }
    }

    /// Loads half of the step of a stage that is this share's group's.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load<S: Share<T>>(share: &S, index: u32, half: u32) -> S::Loaded {
        let sa = Ring::<T, W, KT, LINES>::stage(index);
        let sb = if W::GRAM { sa } else { sa.starting_at(Ring::<T, W, KT, LINES>::A_LEN) };
        let l = share.group() * T::SIDE;
        let of = |stage, place: Place| Step::<T, LINES> { stage, pitch: place.pitch, l };
        // SAFETY: what the caller promised.
        unsafe { share.load(&of(sa, Ring::<T, W, KT, LINES>::A), &of(sb, Ring::<T, W, KT, LINES>::B), half) }
    }
}

impl<T: Squares, W: Division<T>, F: Fill<T>, const KT: usize, const LINES: bool> Work<T> for Turns<T, W, F, KT, LINES> {
    #[inline(always)]
    unsafe fn go<S: Share<T>>(mut self, share: &mut S) {
        let (start, end) = self.part;
        // SAFETY: all threads are here, and take the same turns. A stage is filled behind a barrier that all have met when they had loaded what it
        // was, and loaded behind the one that all meet when their copies of it have come.
        unsafe {
            for ahead in 0..ptx::opaque(STAGES) {
                self.fill(ahead);
            }
            ptx::cp_async_wait_group::<{ STAGES - 1 }>();
            thread::sync_threads();
            let mut first = Self::load(share, 0, 0);
            for at in 0..(end - start).div_ceil(KT as u32) {
                let last = Self::load(share, at, 1);
                share.multiply(first, self.conj_b);
                ptx::cp_async_wait_group::<{ STAGES - 2 }>();
                thread::sync_threads();
                first = Self::load(share, at + 1, 0);
                self.fill(at + STAGES);
                share.multiply(last, self.conj_b);
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
        }
    }
}
