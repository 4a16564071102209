//! How `batched_flat` multiplies f64: on the matrix units, from sm_90 on.
//!
//! Lane (g, q) = (lane / 4, lane % 4) loads rows g of octets of A at steps q and q + 4 of eight, columns g of octets of B at the same,
//! and has of each 8 x 8 of C columns 2q and 2q + 1 of row g. Of DOWN x ACROSS warps each has OCTETS octets of rows of C and of these
//! every ACROSS-th octet of columns. An octet is 8 rows or columns, next to each other or apart (`Dealt`).

use super::{Matrix, Multiply, Own, multiplied, write};
use crate::batched::Batched;
use cuda_std::prelude::*;

/// Steps of k of a fragment.
const STEPS: u32 = 8;

/// Rows or columns in octets: 8 that are next to each other, or, where those of a load would meet in banks, every second, third or fourth one, as
/// many as there are octets.
#[derive(Clone, Copy)]
struct Dealt {
    /// From an octet's row or column to its next, and from an octet to the next.
    within: u32,
    between: u32,
}

impl Dealt {
    /// Of a matrix, whose lanes g and q load elements g·within + q·pitch, or g·within·pitch + q, half a warp at a time, from 16 pairs of banks.
    #[inline(always)]
    fn new(of: Matrix<f64>, octets: u32) -> Dealt {
        let pitch = of.row.max(of.col);
        let meets = matches!(pitch % 16, 1 | 15) || octets == 4 && pitch % 2 == 1;
        if meets { Dealt { within: octets, between: 1 } } else { Dealt { within: 1, between: 8 } }
    }

    #[inline(always)]
    fn at(self, octet: u32, row: u32) -> u32 {
        octet * self.between + row * self.within
    }
}

/// m up to 8·OCTETS·DOWN, n up to 8·NB·ACROSS, MB = ⌈OCTETS / 2⌉.
pub struct Fragments<const MB: usize, const OCTETS: usize, const NB: usize, const DOWN: u32, const ACROSS: u32>;

impl<const MB: usize, const OCTETS: usize, const NB: usize, const DOWN: u32, const ACROSS: u32> Multiply<f64>
    for Fragments<MB, OCTETS, NB, DOWN, ACROSS>
{
    const PARTS: u32 = DOWN * ACROSS;
    const LATE: bool = false;

    #[inline(always)]
    unsafe fn multiply(x: &Batched<f64>, own: Own, a: Matrix<f64>, b: Matrix<f64>, c: Matrix<f64>) {
        const {
            assert!(MB == OCTETS.div_ceil(2), "a fragment has two octets of rows");
            assert!(OCTETS as u32 * DOWN == NB as u32 * ACROSS, "m and n are at most the same");
        }
        // SAFETY: all lanes are here.
        let own = unsafe { own.again() };
        let (g, q) = (own.lane / 4, own.lane % 4);
        let dealt = Dealt::new(a, OCTETS as u32 * DOWN);
        let rows: [u32; OCTETS] =
            core::array::from_fn(|octet| dealt.at(own.part / ACROSS * OCTETS as u32 + octet as u32, g));
        let dealt = Dealt::new(b, NB as u32 * ACROSS);
        let col = |j: usize, at: u32| dealt.at(j as u32 * ACROSS + own.part % ACROSS, at);
        let mut rc = [[[0.0; 4]; NB]; MB]; // (MB, NB)
        // Loads A and B by pairs of steps, of those that are not there zeros; what is past the last row or column is the last one again,
        // and not stored.
        let mut multiply = |a: [[Shared<f64>; OCTETS]; 2], b: [[Shared<f64>; NB]; 2], is_there: [bool; 2]| {
            let mut ra = [[0.0; 4]; MB]; // (MB)
            let mut rb = [[0.0; 2]; NB]; // (NB)
            for t in 0..2 {
                // SAFETY: elements of A and of B.
                let only = |at: Shared<f64>| unsafe { at.load(0) };
                for octet in 0..OCTETS {
                    let value = only(a[t][octet]);
                    ra[octet / 2][octet % 2 + 2 * t] = if is_there[t] { value } else { 0.0 };
                }
                for j in 0..NB {
                    let value = only(b[t][j]);
                    rb[j][t] = if is_there[t] { value } else { 0.0 };
                }
            }
            for i in 0..MB {
                for j in 0..NB {
                    // SAFETY: all lanes are here: k is of all of them.
                    rc[i][j] = unsafe { ptx::mma_m16n8k8_f64(ra[i], rb[j], rc[i][j]) };
                }
            }
        };
        let at = |steps: [u32; 2]| {
            let a = steps.map(|step| rows.map(|row| a.at(row.min(x.m - 1), step)));
            let b = steps.map(|step| core::array::from_fn(|j| b.at(step, col(j, g).min(x.n - 1))));
            (a, b)
        };
        let whole = x.k / STEPS * STEPS;
        let (mut at_a, mut at_b): ([[_; OCTETS]; 2], [[_; NB]; 2]) = at([q, q + 4]);
        for _ in (0..whole).step_by(STEPS as usize) {
            multiply(at_a, at_b, [true; 2]);
            at_a = at_a.map(|at| at.map(|at: Shared<f64>| at.starting_at(STEPS * a.col)));
            at_b = at_b.map(|at| at.map(|at: Shared<f64>| at.starting_at(STEPS * b.row)));
        }
        if whole < x.k {
            let steps = [whole + q, whole + q + 4];
            let (at_a, at_b) = at(steps.map(|step| step.min(x.k - 1)));
            multiply(at_a, at_b, steps.map(|step| step < x.k));
        }
        multiplied(x, <Self as Multiply<f64>>::LATE);
        for j in 0..NB {
            let sums: [[f64; 2]; OCTETS] = core::array::from_fn(|octet| {
                let sums = rc[octet / 2][j];
                [0, 1].map(|v| sums[2 * (octet % 2) + v])
            });
            // SAFETY: each lane of the problem's warps has elements of its own.
            unsafe { write(x, rows, [0, 1].map(|v| col(j, 2 * q + v)), sums, c) };
        }
    }
}
