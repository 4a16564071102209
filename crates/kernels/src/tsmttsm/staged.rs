//! `tsmttsm_staged`, `gram_staged`: both matrices through a ring of stages in shared memory, TM x TN sums a thread.
//!
//! # Idea
//! Threads that share a row also share what they hold of it in registers: of 4 x 4 sums a thread has 8 elements in flight,
//! of which 1 in 4 is another one than its neighbours' at 16 columns. So few bytes are in flight from 8 columns on.
//! `cp.async` has whole rows in flight that no register holds: STAGES − 1 stages of KT rows.
//! It is for c128 where there are no matrix units for it, and c64 of full tiles. Tiles of more rows than columns are multiplied by
//! [`Scalar::add_outer`], c64 from copies of B's elements. Of squares, which are small, copies would be an eighth of the instructions or more.
//! # Thread mapping
//! As [`super::tiles`] with `INTERLEAVED` tiles: a tile's rows and columns are 16 bytes out of every tile's, so that neighbours
//! read neighbours. Group g multiplies rows g, g + G, .. of a stage.
//! # Source
//! Ours, after the ring of `tsm2r`; the outlook of Ernst et al. names shared memory for this mapping.

use super::Reduced;
use super::stages::{Place, Source};
use super::tiles::{HandIn, Tiles};
use cuda_std::prelude::*;
use cuda_std::warp::WarpShuffleValue;
use model::launch::reduced::STAGES;

/// A block of shape S with TM x TN sums a thread and KT rows a stage.
pub struct Staged<T, S, const TM: usize, const TN: usize, const KT: usize>(core::marker::PhantomData<(T, S)>);

impl<T: Scalar, S: HandIn<T>, const TM: usize, const TN: usize, const KT: usize> Staged<T, S, TM, TN, KT>
where
    T::Word: WarpShuffleValue,
{
    const OK: () = {
        assert!(TM % T::WIDTH == 0 && TN % T::WIDTH == 0, "loads of 16 bytes");
        assert!(KT as u32 % Tiles::<T, S, TM, TN, 1>::GROUPS == 0, "groups have as many rows of a stage each");
        assert!(S::THREADS >= S::BM && S::THREADS >= S::BN, "a row of a stage has a thread for each element");
    };
    const A: Place = Self::place(S::BM);
    const B: Place = Self::place(S::BN);
    const A_LEN: u32 = KT as u32 * S::BM;
    /// A Gram matrix's B is its A.
    const B_LEN: u32 = if S::GRAM { 0 } else { KT as u32 * S::BN };

    const fn place(side: u32) -> Place {
        Place { steps: KT as u32, side, pitch: side }
    }

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<T>) {
        const { Self::OK };
        let mut sums = Tiles::<T, S, TM, TN, 1>::new();
        let (row, col) = (thread::block_idx_x() * S::BM, thread::block_idx_z() * S::BN);
        let p = &x.p;
        let a = Source::by_rows(p.a, p.a_row, p.a_col, p.m, row);
        let b = Source::by_rows(p.b, p.b_col, p.b_row, p.n, col);
        let kt = KT as u32;
        let (start, end) = p.part(kt);
        let stages = (end - start).div_ceil(kt);
        // SAFETY: `end` <= k. A stage is filled behind a barrier after which nobody reads it, and read behind the barrier after
        // everyone's copies have come. Lines that are not there are cleared in front of the first barrier, and copied by
        // nobody. All threads take the same turns.
        unsafe {
            a.clear_rows(Self::stage(0), Self::A, S::THREADS, Self::A_LEN + Self::B_LEN);
            if !S::GRAM {
                b.clear_rows(Self::stage(0).starting_at(Self::A_LEN), Self::B, S::THREADS, Self::A_LEN + Self::B_LEN);
            }
            for ahead in 0..STAGES - 1 {
                Self::fill(&a, &b, ahead, start + ahead * kt, end);
            }
            for at in 0..stages {
                ptx::cp_async_wait_group::<{ STAGES - 2 }>();
                thread::sync_threads();
                let ahead = at + STAGES - 1;
                Self::fill(&a, &b, ahead % STAGES, start + ahead * kt, end);
                Self::multiply(&mut sums, at % STAGES, p.signs());
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
            sums.hand_in(&x);
        }
    }

    #[inline(always)]
    fn stage(index: u32) -> Shared<T> {
        Shared::at(index * (Self::A_LEN + Self::B_LEN))
    }

    /// # Safety
    /// As for [`Source::fill_rows`].
    #[inline(always)]
    unsafe fn fill(a: &Source<T>, b: &Source<T>, stage: u32, l: u32, end: u32) {
        if l < end {
            // SAFETY: what this is promised is what `Source::fill_rows` asks for, of both parts of the stage.
            unsafe {
                a.fill_rows(Self::stage(stage), Self::A, S::THREADS, (l, end));
                if !S::GRAM {
                    b.fill_rows(Self::stage(stage).starting_at(Self::A_LEN), Self::B, S::THREADS, (l, end));
                }
            }
        }
        ptx::cp_async_commit_group();
    }

    /// Multiplies this group's rows of a stage.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn multiply(sums: &mut Tiles<T, S, TM, TN, 1>, stage: u32, signs: Signs) {
        let sa = Self::stage(stage);
        let sb = if S::GRAM { sa } else { sa.starting_at(Self::A_LEN) };
        for l in (sums.group()..ptx::opaque(KT as u32)).step_by(Tiles::<T, S, TM, TN, 1>::GROUPS as usize) {
            // SAFETY: the row is in the stage, and so are the tile's lines.
            let (ra, rb) = unsafe {
                (lines::<T, TM>(sa, l * S::BM, |i| sums.row(i)), lines::<T, TN>(sb, l * S::BN, |j| sums.col(j)))
            };
            if TM > TN {
                sums.multiply_outer(ra, rb, signs);
            } else {
                sums.multiply(([ra], [rb]), signs.conj_b != 0);
            }
        }
    }
}

/// A thread's lines of a row of a stage.
///
/// # Safety
/// They are in the stage, 16 bytes of them neighbours and aligned.
#[inline(always)]
unsafe fn lines<T: Scalar, const SIDE: usize>(stage: Shared<T>, row: u32, line: impl Fn(usize) -> u32) -> [T; SIDE] {
    let mut all = [T::ZERO; SIDE];
    for i in (0..SIDE).step_by(T::WIDTH) {
        // SAFETY: 16 bytes of neighbouring lines are in the stage, aligned, as the caller promised.
        let wide = unsafe { stage.load_wide(row + line(i)) };
        for v in 0..T::WIDTH {
            all[i + v] = wide[v];
        }
    }
    all
}
