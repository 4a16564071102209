//! Larger squares of a size that the compiler knows, by columns without gaps.
//!
//! Strides that are constants leave registers for what memory does meanwhile: in each step of a sum a part of a later product's operands
//! is asked for, and a line of the last product's C leaves. Each size is a function of its own, which the others call by its address;
//! blocks of one size are a loop.

use super::block::{Stores, Tail, block, with_sizes};
use super::ends::Room;
use super::{Cuts, Left, Operands, Out, Right, Sizes, at, tail_of};
use crate::ahead::Evenly;
use crate::epilogue::Epilogue;
use crate::simd::{Simd, Work};
use crate::stage::{LINE_BYTES, Lines};

/// One product.
pub struct Large<'e, S: Simd> {
    pub a: *const S::Real,
    pub b: *const S::Real,
    /// The old C, and where C is stored.
    pub old: *const S::Real,
    pub c: *mut S::Real,
    pub stores: Stores,
    pub epilogue: &'e Epilogue<S>,
    /// The operands of a later product.
    pub asked: [*const S::Real; 3],
    /// Of the last one's C.
    pub lines: Lines,
}

/// The product of N x N matrices.
///
/// # Safety
/// The CPU has the instructions of S; A, B and C are good for N x N elements without gaps, C for what `stores` says; `lines` as
/// [`Lines::send_one`] asks.
pub unsafe fn large<S: Simd, const PARTS: usize, const N: usize>(product: &Large<S>) {
    // SAFETY: the caller promised the instructions, the matrices and the lines.
    unsafe { S::vectorize(OfSize::<S, PARTS, N>(product)) }
}

struct OfSize<'l, S: Simd, const PARTS: usize, const N: usize>(&'l Large<'l, S>);

impl<S: Simd, const PARTS: usize, const N: usize> Work for OfSize<'_, S, PARTS, N> {
    #[inline(always)]
    unsafe fn run(self) {
        let Large { asked, lines, .. } = *self.0;
        // SAFETY: what [`large`] was promised; each of the blocks' rows belongs to one of both.
        unsafe {
            let mut meanwhile = Evenly::new(asked, Self::ASKED, lines);
            self.rows::<0>(&mut meanwhile);
            self.rows::<1>(&mut meanwhile);
            meanwhile.end();
        }
    }
}

impl<S: Simd, const PARTS: usize, const N: usize> OfSize<'_, S, PARTS, N> {
    /// Rows, in real numbers: from each column to the next.
    const ROWS: usize = N * PARTS;
    const CUTS: Cuts = Cuts::new::<S, PARTS>(Self::ROWS, N);
    /// Elements of each operand that are asked for in a step.
    const ASKED: usize = {
        let lines = (N * Self::ROWS * size_of::<S::Real>()).div_ceil(LINE_BYTES);
        (lines * LINE_BYTES / size_of::<S::Real>()).div_ceil(Self::CUTS.blocks() * N)
    };

    /// Blocks of as many vectors of rows: how many, where they begin, and their vectors.
    const fn equal_rows(rows: usize) -> (usize, usize, usize) {
        Self::CUTS.vectors.runs()[rows]
    }

    /// Of those, blocks of as many columns: how many, where they begin, and their columns.
    const fn equal_columns(rows: usize, columns: usize) -> (usize, usize, usize) {
        match Self::equal_rows(rows) {
            (0, ..) => (0, 0, 0),
            (_, _, vectors) => Self::CUTS.columns[vectors].runs()[columns],
        }
    }

    /// All blocks of as many vectors of rows.
    ///
    /// # Safety
    /// As [`large`].
    #[inline(always)]
    unsafe fn rows<const ROWS: usize>(&self, meanwhile: &mut Evenly<S::Real>) {
        let (count, first, vectors) = const { Self::equal_rows(ROWS) };
        let is_only = const { Self::CUTS.vectors.count == 1 };
        let Large { a, b, old, c, stores, epilogue, .. } = *self.0;
        let sizes = Sizes { rows: Self::ROWS, cols: N, k: N };
        let abc @ (a, _, c) = (
            Left { first: a, col: Self::ROWS },
            Right { first: b, row: PARTS, col: Self::ROWS },
            Out { old, old_col: Self::ROWS, first: c, col: Self::ROWS },
        );
        for row in (0..count).map(|block| (first + block * vectors) * S::LANES) {
            let (mut rooms, last) = ((Room::NEW, Room::NEW), row + (vectors - 1) * S::LANES);
            // SAFETY: `last` is a row of A and C, for which the caller promised them.
            unsafe {
                let tail = tail_of::<S>(sizes, (a, c), last, is_only, (stores, epilogue.reads_c), &mut rooms);
                Self::blocks::<ROWS, 0>(abc, row, tail, epilogue, meanwhile);
                Self::blocks::<ROWS, 1>(abc, row, tail, epilogue, meanwhile);
            }
        }
    }

    /// The blocks of one size beside each other; all others are left out when this is compiled.
    ///
    /// # Safety
    /// As [`large`]; `row` is where a block of [`OfSize::equal_rows`] begins, `tail` its last vector.
    #[inline(always)]
    unsafe fn blocks<const ROWS: usize, const COLUMNS: usize>(
        abc: Operands<S::Real>,
        row: usize,
        tail: Tail<S::Real>,
        epilogue: &Epilogue<S>,
        meanwhile: &mut Evenly<S::Real>,
    ) {
        let (count, first, width) = const { Self::equal_columns(ROWS, COLUMNS) };
        const {
            let ((_, _, vectors), (count, _, width)) = (Self::equal_rows(ROWS), Self::equal_columns(ROWS, COLUMNS));
            assert!(count == 0 || matches!((vectors, width), (1, 1..=8) | (2..=4, 1..=6)), "a block that is not below");
        }
        macro_rules! call {
            ($($v:literal: $($n:literal)*;)*) => {$($(
                if const { matches!((Self::equal_rows(ROWS), Self::equal_columns(ROWS, COLUMNS)), ((1.., _, $v), (1.., _, $n))) } {
                    for col in (0..count).map(|block| first + block * width) {
                        let tail = Tail { old: tail.old.from::<S>(col), ..tail };
                        // SAFETY: the block is one of the cuts of N x N, for which the caller promised the matrices.
                        unsafe { block::<S, PARTS, $v, $n, false>(N, at::<S>(abc, row, col), tail, epilogue, meanwhile) }
                    }
                }
            )*)*};
        }
        with_sizes! { call! {} }
    }
}
