//! Sums to C, column by column.

use super::{Lines, Units, own, rows_of};
use crate::product::Product;
use crate::tsmm::unrolled::Turns;
use cuda_std::prelude::*;

/// C is not read.
pub(super) const NOT: u32 = 0;
/// Its columns are in the lines.
pub(super) const BROUGHT: u32 = 1;
/// It is loaded.
pub(super) const LOADED: u32 = 2;

/// Writes a lane's sums, a column a turn, if it is one from `start` to `end`; by 16 bytes if WIDE. How C is READ.
///
/// One column of C at a time is read: threads that have few registers left have their multiply-adds' dealt so that two of the three meet in a
/// bank, of 8 x 8 sums in f32 55% in place of 12 by the assembler's listing.
pub(super) struct Write<'a, T, U, const TM: usize, const TN: usize, const WIDE: bool, const READ: u32> {
    pub(super) x: &'a Product<T>,
    pub(super) units: U,
    /// The warp's first row.
    pub(super) row: u32,
    pub(super) sums: &'a [[T; TN]; TM],
    /// C from the lane's first row in its first column on.
    pub(super) line: Global<T>,
    /// Columns of C from `start` on.
    pub(super) lines: Lines<T>,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl<T: Scalar, U: Units<T, TM, TN>, const TM: usize, const TN: usize, const WIDE: bool, const READ: u32> Turns
    for Write<'_, T, U, TM, TN, WIDE, READ>
{
    #[inline(always)]
    fn turn(&mut self, j: usize) {
        let (x, down, col) = (self.x, self.lines.down, self.units.col(j));
        if col >= self.end || READ == BROUGHT && col < self.start {
            return;
        }
        let line = self.line.starting_at((col - self.units.col(0)) as u64 * x.c_col);
        let own = |v: usize| own::<T, WIDE>(U::DOWN, down, v);
        let is_there = |v: usize| self.row + own(v) < x.m;
        let at = |v: usize| (own(v) - own(0)) as u64 * if WIDE { 1 } else { x.c_row };
        let mut old = [T::ZERO; TM];
        // SAFETY: elements of C, this lane's; of its line where it is brought, which `lines` has from column `start` on; 16 bytes are aligned
        // where rows are neighbours by them.
        unsafe {
            if READ == BROUGHT {
                old = rows_of::<T, WIDE, TM>(self.lines.line::<true>(col - self.start, col), U::DOWN, down);
            } else if READ == LOADED {
                for v in 0..TM {
                    if is_there(v) {
                        old[v] = line.load(at(v));
                    }
                }
            }
            let value = |v: usize| {
                let sum = self.sums[v][j].conj_if(x.conj_sum());
                if READ == NOT { x.alpha.scale(sum) } else { x.alpha.scale_onto(sum, x.beta.scale(old[v])) }
            };
            for v in (0..TM).step_by(T::WIDTH) {
                if WIDE && is_there(v + T::WIDTH - 1) {
                    line.store_wide(at(v), |i| value(v + i));
                } else {
                    for i in v..v + T::WIDTH {
                        if is_there(i) {
                            line.store(at(i), value(i));
                        }
                    }
                }
            }
        }
    }
}
