//! The last vectors of columns that are no whole number of vectors.
//!
//! What a whole vector finds beyond such a column is the next one, where there is no gap: that does no harm, and parts of
//! vectors take longer. Of the last columns the rows are copied to where a vector may be loaded.

use crate::MOST;
use crate::simd::Simd;
use std::mem::MaybeUninit;

/// How many columns lie, in part, in so many elements beyond one. A division takes as long as a good part of a small product.
#[inline(always)]
pub const fn reached(beyond: usize, col: usize) -> usize {
    if beyond <= col { 1 } else { beyond.div_ceil(col) }
}

/// Room for copies.
pub struct Room<S: Simd>([MaybeUninit<S::Vector>; MOST]);

impl<S: Simd> Room<S> {
    /// With nothing in it.
    pub const NEW: Self = Room([const { MaybeUninit::uninit() }; MOST]);
}

/// Where the last vectors of columns are loaded.
#[derive(Clone, Copy)]
pub struct Ends<R> {
    /// Of the columns before it, where they are.
    pub whole: usize,
    /// Of the others from copies, one behind the other.
    copies: *const R,
}

impl<R> Ends<R> {
    /// Of `count` columns of `rows`, `col` after each other, whose last vector has `len` of them.
    #[inline(always)]
    pub const fn new<S: Simd<Real = R>>((count, col): (usize, usize), rows: usize, len: usize) -> Self {
        let whole = match S::LANES - len {
            0 => count,
            beyond if col == rows => count.saturating_sub(reached(beyond, rows)),
            _ => 0,
        };
        Ends { whole, copies: std::ptr::null() }
    }

    /// Of the old C, of which the rows at the top of the next column were just stored unless a block has all rows: a load would wait
    /// for that.
    #[inline(always)]
    pub const fn of_old<S: Simd<Real = R>>(columns: (usize, usize), rows: usize, len: usize, is_only: bool) -> Self {
        if is_only || len == S::LANES {
            Ends::new::<S>(columns, rows, len)
        } else {
            Ends { whole: 0, copies: std::ptr::null() }
        }
    }

    /// With copies of the `len` rows from `from` on, of all columns that need one.
    ///
    /// # Safety
    /// The CPU has the instructions of S; `from` is good for those rows of all columns.
    #[inline(always)]
    pub unsafe fn copied<S: Simd<Real = R>>(
        self,
        from: *const R,
        (count, col): (usize, usize),
        len: usize,
        room: &mut Room<S>,
    ) -> Self {
        for (column, copy) in (self.whole..count).zip(room.0.iter_mut()) {
            // SAFETY: `from` is good for `len` rows of each of `count` columns, as the caller promised.
            copy.write(unsafe { S::load_first(from.wrapping_add(column * col), len) });
        }
        Ends { copies: room.0.as_ptr().cast(), ..self }
    }

    /// Of the columns from `column` on.
    #[inline(always)]
    pub const fn from<S: Simd<Real = R>>(self, column: usize) -> Self {
        let copied = column.saturating_sub(self.whole);
        Ends { whole: self.whole.saturating_sub(column), copies: self.copies.wrapping_add(copied * S::LANES) }
    }

    /// The vector of a column, which is `from` where it is loaded whole.
    #[inline(always)]
    pub fn at<S: Simd<Real = R>>(&self, column: usize, from: *const R) -> *const R {
        if column < self.whole { from } else { self.copies.wrapping_add((column - self.whole) * S::LANES) }
    }
}
