//! `tsmttsm_ring`, `gram_ring`, and `tsmttsm_lines`, `gram_lines` of f64 and c128: fragments from a ring of stages in
//! shared memory, multiplied by the matrix units of sm_90.
//!
//! # Idea
//! Past 32 columns several warps share C, and each element of A and B is a fragment of as many of them: straight from device
//! memory, as in [`super::mma`], the second-level cache serves each of them anew. Here `cp.async` brings a row once, into a
//! stage of KT rows, whoever multiplies it; STAGES - 1 stages are in flight, in no register.
//! # Thread mapping
//! Warps as in [`super::mma`]: X x Y squares of C each, WX x WY of them, KG groups that take the rows of a step of a stage each in
//! turn. Lane (g, q) = (lane / 4, lane % 4) loads of each 16 columns of f64 2g and 2g + 1 of rows q, q + 4, q + 8, q + 12, by 16 bytes.
//! Rows of a stage are [`pitch`] apart, a quarter of the banks more than whole rounds: eight lanes of a load, two of each of four
//! rows, meet in no bank. Lines are [`fragment_line_pitch`] apart, half of the banks more: eight lanes, four of each
//! of two lines, which have what they have along k of memory. Tails are as in stages.rs.
//! # Cost
//! Of a 64 x 64 C a row is 1024 bytes, 55 cycles of an SM's share of the memory on an H200, and 4096 multiply-adds, 28 cycles of
//! its matrix units; fragments take 16 cycles of shared memory. Of its Gram matrix a row is 512 bytes, 28 cycles, and 21 cycles of the matrix
//! units: three of four squares of 32 x 32.
//! Of c128: of a 64 x 64 C 110 cycles of the memory and 128 of the matrix units, of its Gram matrix 55 and, of 10 of 16
//! squares of 16 x 16, 80; fragments take 32 and 40 cycles of shared memory. Measured 66 and 48% of the bound.
//! # Source
//! Ours: the ring of `tsmttsm_staged`, the fragments of `tsmttsm_mma`. On an H200 in f64 48 columns took 93% of the bound and 64 84 to 91%, a Gram matrix of 64 62%. Rows of an odd width, copied by
//! elements, took 51% at 33; by pairs, in rows of a stage of an odd pitch, 46%: [`super::packed`] has them if they are packed.

use super::Reduced;
use super::fragments::Squares;
use super::mma::{Mma, Shape};
use super::stages::{Place, Source};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::reduced::{STAGES, fragment_line_pitch, pitch};

/// A block of warps S with X x Y squares each, and KT steps of k a stage, in rows or in LINES.
pub struct Ring<T, S, const X: usize, const Y: usize, const KT: usize, const LINES: bool>(PhantomData<(T, S)>);

impl<T: Squares, S: Shape, const X: usize, const Y: usize, const KT: usize, const LINES: bool>
    Ring<T, S, X, Y, KT, LINES>
{
    const OK: () = {
        assert!(KT as u32 % (T::SIDE * S::KG) == 0, "groups have as many steps of a stage each");
        assert!(!LINES || Self::THREADS % KT as u32 == 0, "a thread copies the same step of each of its lines");
        assert!(
            LINES || Self::THREADS >= Self::A.side && Self::THREADS >= Self::B.side,
            "a row of a stage has a thread for each element"
        );
    };
    const THREADS: u32 = Mma::<T, S, X, Y, 1>::THREADS;
    const A: Place = Self::place(Mma::<T, S, X, Y, 1>::BM);
    const B: Place = Self::place(Mma::<T, S, X, Y, 1>::BN);
    const A_LEN: u32 = Self::len(Self::A);
    /// A Gram matrix's B is its A.
    const B_LEN: u32 = if S::GRAM { 0 } else { Self::len(Self::B) };

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
        let kt = KT as u32;
        let (start, end) = p.part(kt);
        let stages = (end - start).div_ceil(kt);
        // SAFETY: all lanes are here. `end` <= k, and parts begin at whole stages. A stage is filled behind a barrier
        // after which nobody reads it, and read behind the barrier after everyone's copies have come. Lines that are
        // not there are cleared in front of the first barrier, and copied by nobody. All threads take the same turns.
        unsafe {
            let mut sums = Mma::<T, S, X, Y, 1>::new();
            let (sa, apart) = (Self::stage(0), Self::A_LEN + Self::B_LEN);
            Self::clear(&a, sa, Self::A, apart);
            if !S::GRAM {
                Self::clear(&b, sa.starting_at(Self::A_LEN), Self::B, apart);
            }
            for ahead in 0..if LINES { ptx::opaque(STAGES - 1) } else { STAGES - 1 } {
                Self::fill(&a, &b, ahead, (start + ahead * kt, end));
            }
            for at in 0..stages {
                ptx::cp_async_wait_group::<{ STAGES - 2 }>();
                thread::sync_threads();
                let ahead = at + STAGES - 1;
                Self::fill(&a, &b, ahead % STAGES, (start + ahead * kt, end));
                Self::multiply(&mut sums, at % STAGES, p.conj_b());
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
            sums.hand_in(&x, !LINES);
        }
    }

    #[inline(always)]
    fn source(of: Global<T>, (across, down): (u64, u64), lines: u32, first: u32) -> Source<T> {
        if LINES {
            return Source::by_lines(of, across, down, lines, first);
        }
        let mut source = Source::by_rows(of, across, down, lines, first);
        // Elements of 16 bytes are copied one by one anyway: what another way needs is not kept in registers.
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
        Shared::at(index * (Self::A_LEN + Self::B_LEN))
    }

    /// # Safety
    /// As for [`Source::fill`] and [`Source::fill_lines`].
    #[inline(always)]
    unsafe fn fill(a: &Source<T>, b: &Source<T>, stage: u32, steps: (u32, u32)) {
        let fill = |source: &Source<T>, stage: Shared<T>, place: Place| {
            // SAFETY: what this is promised is what both ask for, of both parts of the stage.
            unsafe {
                if LINES {
                    source.fill_lines(stage, place, Self::THREADS, steps);
                } else {
                    source.fill_rows(stage, place, Self::THREADS, steps);
                }
            }
        };
        if steps.0 < steps.1 {
            fill(a, Self::stage(stage), Self::A);
            if !S::GRAM {
                fill(b, Self::stage(stage).starting_at(Self::A_LEN), Self::B);
            }
        }
        ptx::cp_async_commit_group();
    }

    /// This lane's fragments of a step of a stage, from `line` on.
    ///
    /// # Safety
    /// The step and the lines are in the stage.
    #[inline(always)]
    unsafe fn load<const COUNT: usize>(stage: Shared<T>, pitch: u32, l: u32, line: u32) -> [T::Fragment; COUNT] {
        // SAFETY: what the caller promised.
        unsafe { if LINES { T::of_lines(stage, pitch, l, line) } else { T::staged(stage, pitch, l, line) } }
    }

    /// Multiplies this group's steps of a stage.
    ///
    /// # Safety
    /// The stage is whole; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn multiply(sums: &mut Mma<T, S, X, Y, 1>, stage: u32, conj_b: bool) {
        let sa = Self::stage(stage);
        let sb = if S::GRAM { sa } else { sa.starting_at(Self::A_LEN) };
        for step in (sums.group..KT as u32 / T::SIDE).step_by(S::KG as usize) {
            // SAFETY: the step is in the stage, and so are the warp's lines; all its lanes are here.
            unsafe {
                // Of several steps each works out where its lines begin: to keep it takes registers.
                let first = |line: u32| if KT as u32 > T::SIDE * S::KG { ptx::pinned(line) } else { line };
                let ra: [T::Fragment; X] = Self::load(sa, Self::A.pitch, step * T::SIDE, first(sums.row));
                let rb: [T::Fragment; Y] = if Mma::<T, S, X, Y, 1>::SHARED {
                    core::array::from_fn(|y| ra[y % X])
                } else {
                    Self::load(sb, Self::B.pitch, step * T::SIDE, first(sums.col))
                };
                sums.multiply(&(ra, rb), conj_b);
            }
        }
    }
}
