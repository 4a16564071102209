//! How `batched_flat` multiplies c128: on the matrix units, from sm_90 on, as `complex_fragments.rs` does, in two passes over the steps.
//!
//! Lane (g, q) = (lane / 4, lane % 4) loads rows g, g + 8, .. of A at step q of four, columns g, g + 8, .. of B at the same, and has of
//! each 8 x 8 of C columns 2q and 2q + 1 of row g. Of DOWN x ACROSS warps each has 8·OCTETS rows of C and of these
//! every ACROSS-th 8 columns.
//!
//! A sum is one chain of multiply-adds: first, in the order of k, the products with B's imaginary parts, then those with its real ones.

use super::{Matrix, Multiply, Own, multiplied, write};
use crate::batched::Batched;
use cuda_std::prelude::*;

type Elem = Complex<f64>;

/// Steps of k of a fragment.
const STEPS: u32 = 4;

/// m up to 8·OCTETS·DOWN, n up to 8·NB·ACROSS.
pub struct Fragments<const OCTETS: usize, const NB: usize, const DOWN: u32, const ACROSS: u32>;

impl<const OCTETS: usize, const NB: usize, const DOWN: u32, const ACROSS: u32> Multiply<Elem>
    for Fragments<OCTETS, NB, DOWN, ACROSS>
{
    const PARTS: u32 = DOWN * ACROSS;
    const LATE: bool = OCTETS as u32 * DOWN > 2;

    #[inline(always)]
    unsafe fn multiply(x: &Batched<Elem>, own: Own, a: Matrix<Elem>, b: Matrix<Elem>, c: Matrix<Elem>) {
        const { assert!(OCTETS as u32 * DOWN == NB as u32 * ACROSS, "m and n are at most the same") };
        // SAFETY: all lanes are here.
        let own = unsafe { own.again() };
        let (g, q) = (own.lane / 4, own.lane % 4);
        let first_row = own.part / ACROSS * (8 * OCTETS as u32) + g;
        let rows: [u32; OCTETS] = core::array::from_fn(|octet| first_row + 8 * octet as u32);
        let first_col = |j: usize| 8 * (j as u32 * ACROSS + own.part % ACROSS);
        let mut rc = [[[0.0; 4]; NB]; OCTETS]; // (OCTETS, NB)
        let at = |step: u32| {
            let a = rows.map(|row| a.at(row.min(x.m - 1), step));
            let b: [Shared<Elem>; NB] = core::array::from_fn(|j| b.at(step, (first_col(j) + g).min(x.n - 1)));
            (a, b)
        };
        let whole = x.k / STEPS * STEPS;
        for by_real in [false, true] {
            // A step that is not there is zeros; what is past the last row or column is the last one again, and not stored.
            let mut multiply = |a: [Shared<Elem>; OCTETS], b: [Shared<Elem>; NB], is_there: bool| {
                let only = |part: f64| if is_there { part } else { 0.0 };
                // SAFETY: elements of A and of B; all lanes are here: k is of all of them.
                unsafe {
                    let ra = a.map(|at| {
                        let value = at.load(0);
                        [only(value.re), only(value.im)]
                    });
                    let rb = b.map(|at| {
                        let value = at.load(0);
                        only(if by_real { value.re } else { value.im })
                    });
                    for octet in 0..OCTETS {
                        for j in 0..NB {
                            rc[octet][j] = ptx::mma_m16n8k4_f64(ra[octet], [rb[j]], rc[octet][j]);
                        }
                    }
                }
            };
            let (mut at_a, mut at_b) = at(q);
            for _ in (0..whole).step_by(STEPS as usize) {
                multiply(at_a, at_b, true);
                at_a = at_a.map(|at| at.starting_at(STEPS * a.col));
                at_b = at_b.map(|at| at.starting_at(STEPS * b.row));
            }
            if whole < x.k {
                let (at_a, at_b) = at((whole + q).min(x.k - 1));
                multiply(at_a, at_b, whole + q < x.k);
            }
            if !by_real {
                // Real parts less, and imaginary parts more, what the imaginary parts of B gave; the other way round of its conjugate.
                let conj = x.conj_b();
                let turned = |[re0, re1, im0, im1]: [f64; 4]| {
                    if conj { [im0, im1, -re0, -re1] } else { [-im0, -im1, re0, re1] }
                };
                rc = rc.map(|row| row.map(turned));
            }
        }
        multiplied(x, <Self as Multiply<Elem>>::LATE);
        for j in 0..NB {
            let sums: [[Elem; 2]; OCTETS] = core::array::from_fn(|octet| {
                let sums = rc[octet][j];
                [0, 1].map(|v| Complex::new(sums[v], sums[2 + v]))
            });
            // SAFETY: each lane of the problem's warps has elements of its own.
            unsafe { write(x, rows, [0, 1].map(|v| first_col(j) + 2 * q + v), sums, c) };
        }
    }
}
