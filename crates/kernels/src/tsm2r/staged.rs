//! `tsm2r_staged`: A and B through a ring of stages, TM x TN sums a thread, fused multiply-adds.
//!
//! # Idea
//! What limits [`super::prefetch`] from some columns on is B: every lane is handed every element of it. With TM rows a
//! thread each element that comes from shared memory serves TM multiply-adds; with A in shared memory too
//! ([`super::ring`]) there are registers for that, and A may lie by rows. From 16 columns on the columns too are shared
//! out: 8 x 8 sums of f32 take 4 loads a step, as long as their multiply-adds, and 16 x 8, twice as many, take 6. Measured on H200s in f32 at m = k = 40960 (benches/results/h200/tsm2r.csv):
//! 95% of the bound at n = 7, 96% at 16, 77% at 24, 73% at 64, on 2026-11-28; from 24 on the multipliers limit.
//!
//! 8 x 4 sums of c64, by rows 8 x 6 too, are multiplied from copies of B's elements ([`Scalar::add_outer`]), and a step's operands not loaded ahead, as
//! in [`crate::gemm::staged`].
//!
//! # Thread mapping
//! Thread t is (r, c) = (t / COLS, t % COLS), COLS = BN / TN: neighbours share rows, so a warp's loads of A ask for few
//! bytes. By columns of A it owns WIDTH neighbouring rows out of every ROWS·WIDTH, ROWS = THREADS / COLS, which come in one
//! load of 16 bytes; by rows it owns every ROWS-th row, and a load brings WIDTH steps of one. Of the columns it owns
//! WIDTH neighbours out of every COLS·WIDTH.

use super::ring::{Ring, Stage, Steps, Tile, tile_of_c};
use crate::gemm::epilogue::write;
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The sums of a thread of a block of shape S: TM x TN.
pub struct Staged<T, S, const TM: usize, const TN: usize> {
    rc: [[T; TN]; TM],
    /// The signs of B's elements.
    signs: Signs,
    shape: PhantomData<S>,
}

impl<T: Scalar, S: Tile, const TM: usize, const TN: usize> Staged<T, S, TM, TN> {
    const OK: () = {
        assert!(TN % T::WIDTH == 0 && (S::A_BY_ROWS || TM % T::WIDTH == 0), "loads of 16 bytes");
        assert!(
            Self::COLS * TN as u32 == S::BN && Self::ROWS * TM as u32 == S::BM,
            "the threads' sums are the block's"
        );
    };
    const WIDTH: u32 = T::WIDTH as u32;
    /// More sums than the loops of `write_tile` are unrolled for, which would keep them in memory.
    const IS_LARGE: bool = TM * TN * size_of::<T>() > 256;
    /// [`model::launch::ring_copies_b`]: whether B's elements are copied, and no step is loaded ahead.
    const COPIES: bool = T::COPIES && model::launch::ring_copies_b(TM as u32, TN as u32, S::A_BY_ROWS);
    /// Threads along the columns and along the rows of C.
    const COLS: u32 = S::BN / TN as u32;
    const ROWS: u32 = S::THREADS / Self::COLS;

    /// This thread's i-th row and j-th column of the block's part of C.
    #[inline(always)]
    fn row(i: u32) -> u32 {
        let r = thread::thread_idx_x() % S::THREADS / Self::COLS;
        if S::A_BY_ROWS {
            i * Self::ROWS + r
        } else {
            (i / Self::WIDTH * Self::ROWS + r) * Self::WIDTH + i % Self::WIDTH
        }
    }

    #[inline(always)]
    fn col(j: u32) -> u32 {
        let c = thread::thread_idx_x() % Self::COLS;
        (j / Self::WIDTH * Self::COLS + c) * Self::WIDTH + j % Self::WIDTH
    }

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<T>) {
        const { Self::OK };
        let mut sums = Self { rc: [[T::ZERO; TN]; TM], signs: x.signs(), shape: PhantomData };
        // SAFETY: the caller's promise.
        unsafe {
            Ring::<T, S, false>::run(&x, &mut sums);
            let mut rc = [[sums.rc]];
            if Self::IS_LARGE && x.slot_len == 0 && thread::grid_dim_y() > 1 {
                // By one way to C for both half of the multiply-adds of f32's 16 x 8 sums meet in banks, by two 12% (ptxas 13.0, 2026-11-28).
                if join(&x, S::THREADS, tile_of_c(), &mut rc) {
                    Self::hand_in(&x, rc);
                }
                return;
            }
            if !Self::IS_LARGE && x.slot_len == 0 && !join(&x, S::THREADS, tile_of_c(), &mut rc) {
                return;
            }
            Self::hand_in(&x, rc);
        }
    }

    /// Writes the sums of this thread's rows and columns.
    ///
    /// # Safety
    /// C spans its elements, and so does the slot.
    #[inline(always)]
    unsafe fn hand_in(x: &Product<T>, [[rc]]: [[[[T; TN]; TM]; 1]; 1]) {
        // SAFETY: the caller's promise; each element is one thread's.
        unsafe {
            let (row, col) = (thread::block_idx_x() * S::BM, thread::block_idx_z() * S::BN);
            let (row, col) = (|i| row + Self::row(i as u32), |j| col + Self::col(j as u32));
            if !Self::IS_LARGE {
                x.write_tile(row, col, rc);
            } else if S::A_BY_ROWS {
                // Halves, each of which is unrolled.
                for i in 0..TM / 2 {
                    x.write_tile(|_| row(i), col, [rc[i]]);
                }
                for i in TM / 2..TM {
                    x.write_tile(|_| row(i), col, [rc[i]]);
                }
            } else {
                write(x, row, col, rc);
            }
        }
    }

    /// This thread's columns of B at step l of the stage.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load_b(&self, sb: Shared<T>, l: u32) -> [T; TN] {
        let mut rb = [T::ZERO; TN];
        for j in (0..TN).step_by(T::WIDTH) {
            // SAFETY: inside the stage; TN is a multiple of 16 bytes.
            let wide = unsafe { sb.load_wide(Ring::<T, S, false>::b_at(l, Self::col(j as u32))) };
            for v in 0..T::WIDTH {
                rb[j + v] = if Self::COPIES { wide[v] } else { wide[v].conj_if(self.signs.conj_b != 0) };
            }
        }
        rb
    }
}

/// By columns of A a step is one of k; by rows, where a load brings WIDTH of one row, it is WIDTH of k.
impl<T: Scalar, S: Tile, const TM: usize, const TN: usize> Steps<T> for Staged<T, S, TM, TN> {
    const COUNT: u32 = S::KT / if S::A_BY_ROWS { Self::WIDTH } else { 1 };
    const AHEAD: bool = !Self::COPIES;
    const TAKES_TURNS: bool = model::launch::ring_takes_turns(S::A_BY_ROWS, false, TN as u32);
    /// Of A by columns the rows 0, WIDTH .. have theirs and those that follow; of B by columns of A there is one step.
    type Operands = ([T::Wide; TM], [[T; TN]; 4]);
    const ZEROS: Self::Operands = ([T::ZEROS; TM], [[T::ZERO; TN]; 4]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<T>, step: u32) -> Self::Operands {
        let (mut ra, mut rb) = Self::ZEROS;
        let (rows, steps) = if S::A_BY_ROWS { (1, T::WIDTH) } else { (T::WIDTH, 1) };
        let l = step * steps as u32;
        // SAFETY: the steps are inside the stage, and so are the thread's rows and columns.
        unsafe {
            for v in 0..steps {
                rb[v] = self.load_b(stage.b, l + v as u32);
            }
            for i in (0..TM).step_by(rows) {
                ra[i] = stage.a.load_wide(Ring::<T, S, false>::at(Self::row(i as u32), l));
            }
        }
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        for v in 0..if S::A_BY_ROWS { T::WIDTH } else { 1 } {
            let a = |i: usize| if S::A_BY_ROWS { ra[i][v] } else { ra[i / T::WIDTH * T::WIDTH][i % T::WIDTH] };
            if Self::COPIES || !T::IS_COMPLEX {
                T::add_outer(&mut self.rc, core::array::from_fn(a), rb[v], self.signs);
                continue;
            }
            for i in 0..TM {
                for j in 0..TN {
                    self.rc[i][j] = a(i).fma(rb[v][j], self.rc[i][j]);
                }
            }
        }
    }
}
