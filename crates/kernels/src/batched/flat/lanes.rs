//! How `batched_flat` multiplies f32 and c64: on the vector units.
//!
//! Lane (g, q) = (lane / 4, lane % 4) has rows g, g + 8, .. of C, and of its columns q, q + 4, .., of which ACROSS warps take fours in turn.

use super::{Matrix, Multiply, Own, multiplied, write};
use crate::batched::Batched;
use cuda_std::prelude::*;

/// m up to 8·TM, n up to 4·TN·ACROSS; A and B of STEPS steps are in registers at a time, one or two.
pub struct Lanes<const TM: usize, const TN: usize, const ACROSS: u32, const STEPS: u32>;

impl<T: Scalar, const TM: usize, const TN: usize, const ACROSS: u32, const STEPS: u32> Multiply<T>
    for Lanes<TM, TN, ACROSS, STEPS>
{
    const PARTS: u32 = ACROSS;

    #[inline(always)]
    unsafe fn multiply(x: &Batched<T>, own: Own, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>) {
        const { assert!(8 * TM as u32 == 4 * TN as u32 * ACROSS, "m and n are at most the same") };
        // SAFETY: all lanes are here.
        let own = unsafe { own.again() };
        let (g, q) = (own.lane / 4, own.lane % 4);
        let rows: [u32; TM] = core::array::from_fn(|i| g + 8 * i as u32);
        let cols: [u32; TN] = core::array::from_fn(|j| 4 * (j as u32 * ACROSS + own.part) + q);
        let conj_b = x.conj_b();
        // What is past the last row or column is the last one again, and not stored.
        let mut at_a = rows.map(|row| a.at(row.min(x.m - 1), 0));
        let mut at_b = cols.map(|col| b.at(0, col.min(x.n - 1)));
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        // A and B of the next step.
        let mut load = || {
            // SAFETY: elements of A and of B: there is the step.
            let loaded = unsafe { (at_a.map(|at| at.load(0)), at_b.map(|at| at.load(0))) };
            at_a = at_a.map(|at| at.starting_at(a.col));
            at_b = at_b.map(|at| at.starting_at(b.row));
            loaded
        };
        let mut multiply = |(ra, rb): ([T; TM], [T; TN])| {
            let rb = rb.map(|b| b.conj_if(conj_b));
            for i in 0..TM {
                for j in 0..TN {
                    rc[i][j] = ra[i].fma(rb[j], rc[i][j]);
                }
            }
        };
        if STEPS == 1 {
            for _ in 0..x.k {
                multiply(load());
            }
        } else if x.k > 0 {
            // Those of a step are on their way while the one before is multiplied.
            let mut now = load();
            for _ in 0..(x.k - 1) / 2 {
                let next = load();
                multiply(now);
                now = load();
                multiply(next);
            }
            if x.k % 2 == 0 {
                let next = load();
                multiply(now);
                now = next;
            }
            multiply(now);
        }
        multiplied(x);
        // SAFETY: each lane of the problem's warps has elements of its own.
        unsafe { write(x, rows, cols, rc, c) };
    }
}
