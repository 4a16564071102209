//! `tsm2r_staged`: A and B through a ring of stages, TM x TN sums a thread, fused multiply-adds.
//!
//! # Idea
//! What limits [`super::prefetch`] from some columns on is B: every lane is handed every element of it. With TM rows a
//! thread each element that comes from shared memory serves TM multiply-adds; with A in shared memory too
//! ([`super::ring`]) there are registers for that, and A may lie by rows. From 16 columns on the columns too are shared
//! out: 8 x 8 sums take 4 loads a step, 4 x 16 take 5. Measured on an H200 on 2026-11-21
//! in f32 at m = k = 20480: 95% of the bound at n = 8, 89% at 16, 74% at 24 (benches/results/h200/tsm2r.csv); from there
//! on the multipliers limit.
//!
//! # Thread mapping
//! Thread t is (r, c) = (t / COLS, t % COLS), COLS = BN / TN: neighbours share rows, so a warp's loads of A ask for few
//! bytes. By columns of A it owns WIDTH neighbouring rows out of every ROWS·WIDTH, ROWS = THREADS / COLS, which come in one
//! load of 16 bytes; by rows it owns every ROWS-th row, and a load brings WIDTH steps of one. Of the columns it owns
//! WIDTH neighbours out of every COLS·WIDTH.

use super::ring::{Ring, Tile};
use crate::product::Product;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// TM x TN sums a thread of a block of shape S.
pub struct Staged<T, S, const TM: usize, const TN: usize>(PhantomData<(T, S)>);

impl<T: Scalar, S: Tile, const TM: usize, const TN: usize> Staged<T, S, TM, TN> {
    const OK: () = {
        assert!(TN % T::WIDTH == 0 && (S::A_BY_ROWS || TM % T::WIDTH == 0), "loads of 16 bytes");
        assert!(
            Self::COLS * TN as u32 == S::BN && Self::ROWS * TM as u32 == S::BM,
            "the threads' sums are the block's"
        );
    };
    const WIDTH: u32 = T::WIDTH as u32;
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
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)

        // SAFETY: the caller's promise.
        unsafe {
            Ring::<T, S, false>::run(&x, |sa, sb| {
                if S::A_BY_ROWS {
                    Self::multiply_by_rows(&mut rc, sa, sb);
                } else {
                    Self::multiply_by_cols(&mut rc, sa, sb);
                }
            });
            let (row, col) = (thread::block_idx_x() * S::BM, thread::block_idx_z() * S::BN);
            x.write_tile(|i| row + Self::row(i as u32), |j| col + Self::col(j as u32), rc);
        }
    }

    /// Where the stage keeps the 16 bytes of A from the thread's i-th row and step l on.
    #[inline(always)]
    fn a_at(i: u32, l: u32) -> u32 {
        Ring::<T, S, false>::at(Self::row(i), l)
    }

    /// rc += A B over a stage; what the next step needs is on its way while this one is multiplied.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn multiply_by_cols(rc: &mut [[T; TN]; TM], sa: Shared<T>, sb: Shared<T>) {
        // SAFETY: promised by the caller; every step is inside the stage.
        unsafe {
            let (mut ra, mut rb) = (Self::load_col(sa, 0), Self::load_b(sb, 0));
            for l in 1..S::KT {
                let (next_a, next_b) = (Self::load_col(sa, l), Self::load_b(sb, l));
                Self::step(rc, |i| ra[i], rb);
                (ra, rb) = (next_a, next_b);
            }
            Self::step(rc, |i| ra[i], rb);
        }
    }

    /// The same where a load brings WIDTH steps of one row.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn multiply_by_rows(rc: &mut [[T; TN]; TM], sa: Shared<T>, sb: Shared<T>) {
        // SAFETY: promised by the caller; every step is inside the stage.
        unsafe {
            for l in (0..S::KT).step_by(T::WIDTH) {
                let ra: [T::Wide; TM] = core::array::from_fn(|i| sa.load_wide(Self::a_at(i as u32, l)));
                for v in 0..T::WIDTH {
                    Self::step(rc, |i| ra[i][v], Self::load_b(sb, l + v as u32));
                }
            }
        }
    }

    /// rc(i, j) += ra(i) · rb(j).
    #[inline(always)]
    fn step(rc: &mut [[T; TN]; TM], ra: impl Fn(usize) -> T, rb: [T; TN]) {
        for i in 0..TM {
            for j in 0..TN {
                rc[i][j] = ra(i).fma(rb[j], rc[i][j]);
            }
        }
    }

    /// This thread's rows of A at a step of the stage, which has them by columns.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load_col(sa: Shared<T>, l: u32) -> [T; TM] {
        let mut ra = [T::ZERO; TM];
        for i in (0..TM).step_by(T::WIDTH) {
            // SAFETY: inside the stage; TM is a multiple of 16 bytes.
            let wide = unsafe { sa.load_wide(Self::a_at(i as u32, l)) };
            for v in 0..T::WIDTH {
                ra[i + v] = wide[v];
            }
        }
        ra
    }

    /// This thread's columns of B at a step of the stage.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load_b(sb: Shared<T>, l: u32) -> [T; TN] {
        let mut rb = [T::ZERO; TN];
        for j in (0..TN).step_by(T::WIDTH) {
            // SAFETY: inside the stage; TN is a multiple of 16 bytes.
            let wide = unsafe { sb.load_wide(Ring::<T, S, false>::b_at(l, Self::col(j as u32))) };
            for v in 0..T::WIDTH {
                rb[j + v] = wide[v];
            }
        }
        rb
    }
}
