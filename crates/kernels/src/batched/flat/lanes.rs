//! How `batched_flat` multiplies f32 and c64: each lane has sums of its own.
//!
//! Lane (r, s) = (lane % 8, lane / 8) has rows r, r + 8, .. and columns s, s + 4, .. of C: what lanes read together are neighbouring rows
//! of A, or lines in different banks. Of several warps each has all rows and a part of the columns.

use super::{Matrix, Multiply, Own, write};
use crate::batched::Batched;
use cuda_std::prelude::*;

/// Steps of k whose loads go out together.
const UNROLL: u32 = 2;

/// m up to 8·TM, n up to 4·TN·ACROSS.
pub struct Sums<const TM: usize, const TN: usize, const ACROSS: u32>;

impl<T: Scalar, const TM: usize, const TN: usize, const ACROSS: u32> Multiply<T> for Sums<TM, TN, ACROSS> {
    const PARTS: u32 = ACROSS;

    #[inline(always)]
    unsafe fn multiply(x: &Batched<T>, own: Own, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>) {
        // SAFETY: all lanes are here.
        let own = unsafe { own.again() };
        let rows: [u32; TM] = core::array::from_fn(|i| 8 * i as u32 + own.lane % 8);
        let first_col = 4 * (TN as u32) * own.part + own.lane / 8;
        // What is past the last row or column is the last one again, and not stored.
        let mut at_a = rows.map(|row| a.at(row.min(x.m - 1), 0));
        let mut at_b: [u32; TN] = core::array::from_fn(|j| b.at(0, (first_col + 4 * j as u32).min(x.n - 1)));
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        let conj_b = x.conj_b();
        let mut step = || {
            // SAFETY: a step of A and of B: it is called once for each.
            let ra: [T; TM] = core::array::from_fn(|i| unsafe { a.load(at_a[i]) });
            // SAFETY: as above.
            let rb: [T; TN] = core::array::from_fn(|j| unsafe { b.load(at_b[j]).conj_if(conj_b) });
            for i in 0..TM {
                for j in 0..TN {
                    rc[i][j] = ra[i].fma(rb[j], rc[i][j]);
                }
            }
            at_a = at_a.map(|at| at + a.col);
            at_b = at_b.map(|at| at + b.row);
        };
        for _ in 0..x.k / UNROLL {
            for _ in 0..UNROLL {
                step();
            }
        }
        for _ in 0..x.k % UNROLL {
            step();
        }
        // SAFETY: all lanes are here.
        let own = unsafe { own.again() };
        let rows: [u32; TM] = core::array::from_fn(|i| 8 * i as u32 + own.lane % 8);
        let first_col = 4 * (TN as u32) * own.part + own.lane / 8;
        for j in 0..TN {
            // SAFETY: each lane of the problem's warps has elements of its own.
            unsafe { write(x, rows, [first_col + 4 * j as u32], rc.map(|row| [row[j]]), c) };
        }
    }
}
