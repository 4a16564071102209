//! `tsm2r_staged`: A and B through a ring of stages, TM rows a thread, fused multiply-adds.
//!
//! # Idea
//! What limits [`super::prefetch`] from some columns on is B: every lane is handed every element of it. With TM rows a
//! thread each element that comes from shared memory serves TM multiply-adds; with A in shared memory too
//! ([`super::ring`]) there are registers for that, and A may lie by rows.
//!
//! # Thread mapping
//! By columns of A a thread owns WIDTH neighbouring rows, which come in one load of 16 bytes; by rows it owns every
//! THREADS-th row, and a load brings WIDTH steps of one. It owns all TN columns.

use super::ring::{Ring, Tile};
use super::{own_col, write_row};
use crate::product::Product;
use cuda_std::prelude::*;

/// TM x TN sums a thread, KT steps of k a stage; BY_ROWS: A's unit stride runs along its rows.
pub struct Staged<
    const THREADS: usize,
    const TM: usize,
    const TN: usize,
    const KT: usize,
    const STAGES: usize,
    const BY_ROWS: bool,
>;

impl<const THREADS: usize, const TM: usize, const TN: usize, const KT: usize, const STAGES: usize, const BY_ROWS: bool>
    Tile for Staged<THREADS, TM, TN, KT, STAGES, BY_ROWS>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = (THREADS * TM) as u32;
    const BN: u32 = TN as u32;
    const KT: u32 = KT as u32;
    const STAGES: u32 = STAGES as u32;
    const A_BY_ROWS: bool = BY_ROWS;
    const B_BY_ROWS: bool = true;
}

impl<const THREADS: usize, const TM: usize, const TN: usize, const KT: usize, const STAGES: usize, const BY_ROWS: bool>
    Staged<THREADS, TM, TN, KT, STAGES, BY_ROWS>
{
    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body<T: Scalar>(x: Product<T>) {
        const { assert!(TN % T::WIDTH == 0 && (BY_ROWS || TM == T::WIDTH), "loads of 16 bytes") };
        let t = thread::thread_idx_x();
        let row = |i: u32| if BY_ROWS { i * THREADS as u32 + t } else { t * TM as u32 + i };
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)

        // SAFETY: the caller's promise.
        unsafe {
            Ring::<T, Self>::run(&x, |sa, sb| {
                for l in (0..KT as u32).step_by(T::WIDTH) {
                    if BY_ROWS {
                        let ra: [T::Wide; TM] =
                            core::array::from_fn(|i| sa.load_wide(Ring::<T, Self>::at(row(i as u32), l)));
                        for v in 0..T::WIDTH {
                            Self::step(&mut rc, |i| ra[i][v], sb, l + v as u32);
                        }
                    } else {
                        for v in 0..T::WIDTH as u32 {
                            let ra = sa.load_wide(Ring::<T, Self>::at(row(0), l + v));
                            Self::step(&mut rc, |i| ra[i], sb, l + v);
                        }
                    }
                }
            });
            for i in 0..TM {
                write_row(&x, thread::block_idx_x() * Self::BM + row(i as u32), own_col::<TN>(), rc[i]);
            }
        }
    }

    /// rc(i, j) += ra(i) · B(l, j).
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn step<T: Scalar>(rc: &mut [[T; TN]; TM], ra: impl Fn(usize) -> T, sb: Shared<T>, l: u32) {
        for j in (0..TN).step_by(T::WIDTH) {
            // SAFETY: inside the stage; TN is a multiple of 16 bytes.
            let rb = unsafe { sb.load_wide(Ring::<T, Self>::b_at(l, j as u32)) };
            for i in 0..TM {
                for v in 0..T::WIDTH {
                    rc[i][j + v] = ra(i).fma(rb[v], rc[i][j + v]);
                }
            }
        }
    }
}
