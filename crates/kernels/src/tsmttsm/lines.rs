//! `tsmttsm_lines`, `gram_lines`: columns of tall matrices that lie along k, through a ring of stages in shared memory.
//!
//! # Idea
//! By columns a row of the tall matrices is an element of each of m + n lines. Copied to rows of a stage, as [`super::staged`] does, they
//! move one by one and meet in the same banks. Here a stage keeps lines as they are: 16 bytes of them are copied together, and
//! loaded together, which are STEPS steps of k. TM + TN loads of 16 bytes are STEPS·TM·TN multiply-adds, as many as by rows.
//!
//! Complex elements are multiplied a step after the other by [`Scalar::add_outer`], c64 from copies of B's.
//! # Thread mapping
//! As [`super::tiles`] with [`super::tiles::DEALT`] tiles: a tile has every so many-th line, so that neighbours load neighbouring lines. Group g
//! multiplies pieces of STEPS steps g, g + G, .. of a stage.
//!
//! Lines of a stage are [`line_pitch`] apart, three pieces of 16 bytes more than whole rounds of the banks: eight lanes of a load, one piece of
//! up to eight lines or two of two, meet in no bank.
//! # Tails
//! A piece that k ends in is copied as far as it goes, and zeros for the rest. Lines that do not begin at multiples of 16 bytes, or do not run along k,
//! are copied by elements (stages.rs).
//! # Determinism
//! A sum runs over a group's pieces in ascending order, four steps of f32 or two of c64 at a time.
//! # Cost
//! Of a 64 x 64 C in f32 a step is 512 bytes, 29 cycles of an SM's share of the memory on an H200, and 4096 multiply-adds, 32 cycles of its vector units;
//! its loads from shared memory take 16. Of 16 x 16 128 bytes are 7 cycles, and multiply-adds 2.
//! Measured: `benches/results/h200/columns.csv`.
//! # Source
//! Ours.

use super::Reduced;
use super::stages::{Place, Source};
use super::tiles::{HandIn, Tiles};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::WarpShuffleValue;
use model::launch::reduced::{STAGES, line_pitch};

/// A block of shape S with TM x TN sums a thread, KT steps a stage, and STEPS in 16 bytes.
pub struct Lines<T, S, const TM: usize, const TN: usize, const KT: usize, const STEPS: usize>(PhantomData<(T, S)>);

impl<T: Scalar, S: HandIn<T>, const TM: usize, const TN: usize, const KT: usize, const STEPS: usize>
    Lines<T, S, TM, TN, KT, STEPS>
where
    T::Word: WarpShuffleValue,
{
    const OK: () = {
        assert!(STEPS == T::WIDTH, "loads of 16 bytes");
        assert!(Self::PIECES % Tiles::<T, S, TM, TN, STEPS>::GROUPS == 0, "groups have as many pieces of a stage each");
        assert!(S::THREADS % KT as u32 == 0, "a thread copies the same step of each of its lines");
    };
    /// Pieces of 16 bytes of a line of a stage.
    const PIECES: u32 = (KT / STEPS) as u32;
    const PITCH: u32 = line_pitch(KT as u32, size_of::<T>() as u32);
    const A: Place = Place { steps: KT as u32, side: S::BM, pitch: Self::PITCH };
    const B: Place = Place { steps: KT as u32, side: S::BN, pitch: Self::PITCH };
    const A_LEN: u32 = S::BM * Self::PITCH;
    /// A Gram matrix's B is its A.
    const B_LEN: u32 = if S::GRAM { 0 } else { S::BN * Self::PITCH };

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<T>) {
        const { Self::OK };
        let mut sums = Tiles::<T, S, TM, TN, STEPS>::new();
        let (row, col) = (thread::block_idx_x() * S::BM, thread::block_idx_z() * S::BN);
        let p = &x.p;
        let a = Source::by_lines(p.a, p.a_row, p.a_col, p.m, row);
        let b = Source::by_lines(p.b, p.b_col, p.b_row, p.n, col);
        let kt = KT as u32;
        let (start, end) = p.part(kt);
        let stages = (end - start).div_ceil(kt);
        // SAFETY: `end` <= k, and parts begin at whole stages. A stage is filled behind a barrier after which nobody reads it, and read
        // behind the barrier after everyone's copies have come. Lines that are not there are cleared in front of the
        // first barrier, and copied by nobody. All threads take the same turns.
        unsafe {
            a.clear_lines(Self::stage(0), Self::A, S::THREADS, Self::A_LEN + Self::B_LEN);
            if !S::GRAM {
                b.clear_lines(Self::stage(0).starting_at(Self::A_LEN), Self::B, S::THREADS, Self::A_LEN + Self::B_LEN);
            }
            for ahead in 0..ptx::opaque(STAGES - 1) {
                Self::fill_both(&a, &b, ahead, (start + ahead * kt, end));
            }
            for at in 0..stages {
                ptx::cp_async_wait_group::<{ STAGES - 2 }>();
                thread::sync_threads();
                let ahead = at + STAGES - 1;
                Self::fill_both(&a, &b, ahead % STAGES, (start + ahead * kt, end));
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
    /// As for [`Source::fill_lines`].
    #[inline(always)]
    unsafe fn fill_both(a: &Source<T>, b: &Source<T>, stage: u32, steps: (u32, u32)) {
        if steps.0 < steps.1 {
            // SAFETY: what this is promised is what `fill_lines` asks for, of both parts of the stage.
            unsafe {
                a.fill_lines(Self::stage(stage), Self::A, S::THREADS, steps);
                if !S::GRAM {
                    b.fill_lines(Self::stage(stage).starting_at(Self::A_LEN), Self::B, S::THREADS, steps);
                }
            }
        }
        ptx::cp_async_commit_group();
    }

    /// Multiplies this group's pieces of a stage.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn multiply(sums: &mut Tiles<T, S, TM, TN, STEPS>, stage: u32, signs: Signs) {
        let sa = Self::stage(stage);
        let sb = if S::GRAM { sa } else { sa.starting_at(Self::A_LEN) };
        for piece in (sums.group()..ptx::opaque(Self::PIECES)).step_by(Tiles::<T, S, TM, TN, STEPS>::GROUPS as usize) {
            let load = |lines: Shared<T>, line: u32| -> [T; STEPS] {
                // SAFETY: a piece of a line is in the stage, and aligned.
                let wide = unsafe { lines.load_wide(line * Self::PITCH + piece * STEPS as u32) };
                core::array::from_fn(|step| wide[step])
            };
            let ra: [[T; STEPS]; TM] = core::array::from_fn(|i| load(sa, sums.row(i))); // (TM, STEPS)
            if T::IS_COMPLEX {
                let rb: [[T; STEPS]; TN] = core::array::from_fn(|j| load(sb, sums.col(j))); // (TN, STEPS)
                for s in 0..STEPS {
                    sums.multiply_outer(ra.map(|a| a[s]), rb.map(|b| b[s]), signs);
                }
            } else {
                for j in 0..TN {
                    sums.multiply_line(&ra, j, load(sb, sums.col(j)));
                }
            }
        }
    }
}
