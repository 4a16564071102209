//! An operand of a batch, matrix by matrix.

use super::Operand;
use cuda_std::prelude::*;
use cuda_std::{Word, ptx::Hint};
use model::launch::batched::Code;

/// An operand's matrices.
#[derive(Clone, Copy)]
pub(super) struct Matrices<T> {
    pub(super) of: Operand<T>,
    code: Code,
}

impl<T: Scalar> Matrices<T> {
    #[inline(always)]
    pub(super) fn new(of: Operand<T>, code: u32) -> Self {
        Matrices { of, code: Code::unpack(code) }
    }

    /// Elements from the base to a problem's matrix, if there is the problem. One that is listed may lie anywhere, so that sums with
    /// this wrap.
    ///
    /// # Safety
    /// A list has as many as there are.
    #[inline(always)]
    pub(super) unsafe fn start(&self, problem: u32, count: u32) -> u64 {
        if self.code.listed {
            // SAFETY: the list has the problem where it is loaded.
            unsafe { u64::ld_global_if(self.of.list.address(problem as u64), Hint::ReadOnly, problem < count) }
        } else {
            problem as u64 * self.of.stride
        }
    }

    /// Element (row, col) of the first matrix.
    #[inline(always)]
    pub(super) fn at(&self, row: u32, col: u32) -> Global<T> {
        self.of.base.starting_at(row as u64 * self.of.row + col as u64 * self.of.col)
    }

    #[inline(always)]
    pub(super) fn by_columns(&self) -> bool {
        self.code.by_columns
    }

    /// Whether the columns, of so many rows, are whole pieces of 16 bytes, aligned.
    #[inline(always)]
    pub(super) fn has_pieces(&self, rows: u32) -> bool {
        let width = T::WIDTH as u64;
        self.code.wide && self.of.row == 1 && self.of.col % width == 0 && rows as u64 % width == 0
    }
}
