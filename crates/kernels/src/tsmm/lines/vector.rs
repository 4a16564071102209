//! Stages of `tsmm_lines` multiplied by the vector units.
//!
//! # Thread mapping
//! LX lanes are beside each other, with TN neighbouring columns each: an element of A is read by LX lanes, one of B by 32 / LX.

use super::{Lines, Units, rows_of};
use crate::product::Product;
use crate::tsmm::bring::{Place, bring};
use core::array::from_fn;
use cuda_std::prelude::*;

/// LX lanes beside each other, and BN columns of up to BK steps.
#[derive(Clone, Copy)]
pub struct Vector<T, const LX: usize, const BN: usize, const BK: usize> {
    /// The lane's first column.
    col: u32,
    sb: Shared<T>,
    /// Nothing but copies: B's elements were conjugated when they were brought.
    signs: Signs,
}

impl<T: Scalar, const TM: usize, const TN: usize, const LX: usize, const BN: usize, const BK: usize> Units<T, TM, TN>
    for Vector<T, LX, BN, BK>
{
    const DOWN: u32 = 32 / LX as u32;
    const MMA: bool = false;

    /// By rows, as many as there are.
    #[inline(always)]
    unsafe fn bring(x: &Product<T>, sb: Shared<T>, threads: u32) {
        let place = |at: u32| Place { to: at, l: at / BN as u32, col: at % BN as u32 };
        // SAFETY: B spans its elements, and a barrier follows, as `Units::bring` asks; k is no more than BK.
        unsafe { bring(x, sb, x.k * BN as u32, threads, place) };
    }

    #[inline(always)]
    fn new(x: &Product<T>, lane: u32, first: u32, sb: Shared<T>) -> Self {
        const { assert!(TN % T::WIDTH == 0, "a lane's columns are whole pieces") };
        let never = x.signs().never;
        let col = first + lane / <Self as Units<T, TM, TN>>::DOWN * TN as u32;
        Vector { col, sb, signs: Signs { conj_b: never, never } }
    }

    #[inline(always)]
    fn col(&self, j: usize) -> u32 {
        self.col + j as u32
    }

    #[inline(always)]
    unsafe fn multiply<const WIDE: bool>(&self, lines: Lines<T>, start: u32, end: u32, rc: &mut [[T; TN]; TM]) {
        for l in start..ptx::opaque(end) {
            let (line, row) = (lines.line::<WIDE>(l - start, l), self.sb.starting_at(l * BN as u32 + self.col));
            // SAFETY: the stage's lines, and a row of B. The compiler sees that a piece of it is loaded several times.
            unsafe {
                let ra = rows_of::<T, WIDE, TM>(line, 32 / LX as u32, lines.down);
                let rb = from_fn(|j| row.load_wide((j - j % T::WIDTH) as u32)[j % T::WIDTH]);
                add_outer::<T, WIDE, TM, TN>(rc, ra, rb, self.signs);
            }
        }
    }
}

/// Adds a · b to the sums, in an order in which few multiply-adds have two of three registers in one bank: one of them is that of the
/// multiply-add before, at the turn of a line or column too. By the assembler's listing 20% of 8 x 8 sums in f32, where without turns
/// it is 41, and where rows are loaded one by one 5 to 20%.
#[inline(always)]
fn add_outer<T: Scalar, const WIDE: bool, const TM: usize, const TN: usize>(
    rc: &mut [[T; TN]; TM],
    ra: [T; TM],
    rb: [T; TN],
    signs: Signs,
) {
    if T::IS_COMPLEX || !WIDE {
        T::add_outer(rc, ra, rb, signs);
        return;
    }
    for j in 0..TN {
        for turn in 0..TM {
            let v = there_and_back(j, turn, TM);
            rc[v][j] = ra[v].fma(rb[j], rc[v][j]);
        }
    }
}
