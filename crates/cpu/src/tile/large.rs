//! Larger squares of a size that the compiler knows, by columns without gaps.
//!
//! Strides that are constants leave registers for what memory does meanwhile: in each step of a sum a part of a later product's operands
//! is asked for, and a line of the last product's C leaves. Each size is a function of its own, which the others call by its address;
//! blocks of one size are a loop.

use super::block::{Stores, Tail, block};
use super::ends::{Ends, Room};
use super::{Cuts, Left, Operands, Out, Right, at};
use crate::ahead::Evenly;
use crate::epilogue::Epilogue;
use crate::simd::{Simd, Work};
use crate::stage::{LINE_BYTES, Lines};

/// One product of N x N matrices.
///
/// # Safety
/// Of [`Work::run`]: the CPU has the instructions of S; A, B and C are good for N x N elements without gaps, C for what `stores` says;
/// `lines` as [`Lines::send_one`] asks.
pub struct Large<'e, S: Simd, const PARTS: usize, const N: usize> {
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

impl<S: Simd, const PARTS: usize, const N: usize> Work for Large<'_, S, PARTS, N> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions, the matrices and the lines.
        unsafe { self.product() }
    }
}

impl<S: Simd, const PARTS: usize, const N: usize> Large<'_, S, PARTS, N> {
    /// Rows, in real numbers: from each column to the next.
    const ROWS: usize = N * PARTS;
    const CUTS: Cuts = Cuts::new::<S, PARTS>(Self::ROWS, N);
    /// Elements of each operand that are asked for in a step.
    const ASKED: usize = {
        let lines = (N * Self::ROWS * size_of::<S::Real>()).div_ceil(LINE_BYTES);
        (lines * LINE_BYTES / size_of::<S::Real>()).div_ceil(Self::CUTS.blocks() * N)
    };

    /// # Safety
    /// As [`Large`].
    #[inline(always)]
    unsafe fn product(self) {
        // SAFETY: what the caller promised; each of the blocks' rows belongs to one of both.
        unsafe {
            let mut meanwhile = Evenly::new(self.asked, Self::ASKED, self.lines);
            self.rows::<0>(&mut meanwhile);
            self.rows::<1>(&mut meanwhile);
            meanwhile.end();
        }
    }

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
    /// As [`Large`].
    #[inline(always)]
    unsafe fn rows<const ROWS: usize>(&self, meanwhile: &mut Evenly<S::Real>) {
        let (count, first, vectors) = const { Self::equal_rows(ROWS) };
        let is_only = const { Self::CUTS.vectors.count == 1 };
        let Large { a, b, old, c, epilogue, .. } = *self;
        let abc = (
            Left { first: a, col: Self::ROWS },
            Right { first: b, row: PARTS, col: Self::ROWS },
            Out { old, old_col: Self::ROWS, first: c, col: Self::ROWS },
        );
        for row in (0..count).map(|block| (first + block * vectors) * S::LANES) {
            let (mut a_room, mut old_room) = (Room::NEW, Room::NEW);
            let last = row + (vectors - 1) * S::LANES;
            let len = if is_only { Self::ROWS - last } else { (Self::ROWS - last).min(S::LANES) };
            // SAFETY: `last` is a row of A and C, for which the caller promised them.
            unsafe {
                let ends = Ends::new::<S>((N, Self::ROWS), Self::ROWS, len);
                let of_a = ends.copied::<S>(a.add(last), (N, Self::ROWS), len, &mut a_room);
                let olds = if epilogue.reads_c { N } else { 0 };
                let of_old = Ends::of_old::<S>((N, Self::ROWS), Self::ROWS, len, is_only);
                let of_old = of_old.copied::<S>(old.wrapping_add(last), (olds, Self::ROWS), len, &mut old_room);
                // Else the rows at the top of the next column are of a block that was stored before.
                let stores = if is_only { self.stores } else { Stores::Exactly };
                let tail = Tail { len, a: of_a, old: of_old, stores };
                Self::blocks::<ROWS, 0>(abc, row, tail, epilogue, meanwhile);
                Self::blocks::<ROWS, 1>(abc, row, tail, epilogue, meanwhile);
            }
        }
    }

    /// The blocks of one size beside each other; all others are left out when this is compiled.
    ///
    /// # Safety
    /// As [`Large`]; `row` is where a block of [`Large::equal_rows`] begins, `tail` its last vector.
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
        call! {
            1: 1 2 3 4 5 6 7 8;
            2: 1 2 3 4 5 6;
            3: 1 2 3 4 5 6;
            4: 1 2 3 4 5 6;
        }
    }
}
