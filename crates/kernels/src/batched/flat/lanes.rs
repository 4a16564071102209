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
    const LATE: bool = TM > 2;

    #[inline(always)]
    unsafe fn multiply(x: &Batched<T>, own: Own, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>) {
        const { assert!(8 * TM as u32 == 4 * TN as u32 * ACROSS, "m and n are at most the same") };
        // SAFETY: all lanes are here.
        let own = unsafe { own.again() };
        let (g, q) = (own.lane / 4, own.lane % 4);
        let rows: [u32; TM] = core::array::from_fn(|i| g + 8 * i as u32);
        let cols: [u32; TN] = core::array::from_fn(|j| 4 * (j as u32 * ACROSS + own.part) + q);
        // What is past the last row or column is the last one again, and not stored.
        let at_a = rows.map(|row| a.at(row.min(x.m - 1), 0));
        let at_b = cols.map(|col| b.at(0, col.min(x.n - 1)));
        let by_steps = Steps { a: at_a, b: at_b, to_a: a.col, to_b: b.row, count: x.k };
        // SAFETY: A has a column, and B a row, for each step.
        let rc = unsafe {
            if T::IS_COMPLEX && x.conj_b() { by_steps.sums::<STEPS, true>() } else { by_steps.sums::<STEPS, false>() }
        };
        multiplied(x, <Self as Multiply<T>>::LATE);
        // SAFETY: each lane of the problem's warps has elements of its own.
        unsafe { write(x, rows, cols, rc, c) };
    }
}

/// The rows of A and the columns of B that a lane multiplies, from their first elements on.
struct Steps<T, const TM: usize, const TN: usize> {
    a: [Shared<T>; TM],
    b: [Shared<T>; TN],
    /// Elements to the next step's.
    to_a: u32,
    to_b: u32,
    count: u32,
}

impl<T: Scalar, const TM: usize, const TN: usize> Steps<T, TM, TN> {
    /// What is multiplied in a step.
    ///
    /// # Safety
    /// There is the step.
    #[inline(always)]
    unsafe fn load(&self, step: u32) -> ([T; TM], [T; TN]) {
        let (to_a, to_b) = (step * self.to_a, step * self.to_b);
        // SAFETY: elements of A and of B, as the caller promised.
        unsafe { (self.a.map(|at| at.load(to_a)), self.b.map(|at| at.load(to_b))) }
    }

    /// The sums of all steps, with B's conjugates where CONJ.
    ///
    /// # Safety
    /// A and B are whole.
    #[inline(always)]
    unsafe fn sums<const STEPS: u32, const CONJ: bool>(&self) -> [[T; TN]; TM] {
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        let mut multiply = |(ra, rb): ([T; TM], [T; TN])| {
            let rb = rb.map(|b| b.conj_if(CONJ));
            for i in 0..TM {
                for j in 0..TN {
                    rc[i][j] = ra[i].fma(rb[j], rc[i][j]);
                }
            }
        };
        // SAFETY: only steps that are there are loaded, of A and B, which are whole, as the caller promised.
        unsafe {
            if STEPS == 1 {
                for step in 0..self.count {
                    multiply(self.load(step));
                }
            } else if self.count > 0 {
                // A step's are on their way while those of the one before are multiplied.
                let mut now = self.load(0);
                for pair in 0..(self.count - 1) / 2 {
                    let next = self.load(2 * pair + 1);
                    multiply(now);
                    now = self.load(2 * pair + 2);
                    multiply(next);
                }
                if self.count % 2 == 0 {
                    let next = self.load(self.count - 1);
                    multiply(now);
                    now = next;
                }
                multiply(now);
            }
        }
        rc
    }
}
