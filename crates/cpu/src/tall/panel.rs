//! Some vectors of A's rows over some steps: as they lie, or copied.

use crate::simd::{MOST_LANES, Real, Simd, Work};

/// Vectors along the rows: the first row, how far it is from the block's, and how many.
#[derive(Clone, Copy)]
pub struct Vectors {
    pub row: usize,
    pub offset: usize,
    pub count: usize,
}

/// What a tile loads of A.
#[derive(Clone, Copy)]
pub struct Panel<R> {
    pub first: *const R,
    /// From each step to the next.
    pub by: usize,
}

/// All rows of A, or of the transpose of B.
#[derive(Clone, Copy)]
pub struct Rows<R> {
    pub first: *const R,
    /// From each row to the next, and from each step.
    pub row: usize,
    pub col: usize,
    /// How many, times PARTS, and how many steps.
    pub count: usize,
    pub steps: usize,
}

impl<R: Real> Rows<R> {
    /// Those that `vectors` are as they lie, over `steps` from `first` on; `None` if they are not next to each other, or not all are there. Where no gap
    /// is between steps, what a vector has beyond the last row is the next step's, whose products are nobody's.
    #[inline(always)]
    pub fn as_they_lie<S: Simd<Real = R>, const PARTS: usize>(
        &self,
        vectors: Vectors,
        (first, steps): (usize, usize),
    ) -> Option<Panel<R>> {
        let end = vectors.row + vectors.count * S::LANES;
        let is_followed = || self.col == self.count && (first + steps - 1) * self.col + end <= self.steps * self.col;
        let is_there = self.row == PARTS && (end <= self.count || is_followed());
        let first = self.first.wrapping_add(vectors.row + first * self.col);
        is_there.then_some(Panel { first, by: self.col })
    }

    /// Copies them, over `steps` from `first` on, `by` from each step to the next. Behind the last row is zero or anything, whose products are
    /// nobody's.
    ///
    /// # Safety
    /// The CPU has the instructions of S, the rows are good for the steps, `room` for the vectors of each.
    #[inline(always)]
    pub unsafe fn copy<S: Simd<Real = R>, const PARTS: usize>(
        &self,
        vectors: Vectors,
        (first, steps): (usize, usize),
        room: *mut R,
        by: usize,
    ) {
        // SAFETY: as the caller promised.
        unsafe { S::vectorize(Copied::<S, PARTS> { all: *self, vectors, first, steps, room, by }) }
    }
}

/// What [`Rows::copy`] does, as a function of its own.
struct Copied<S: Simd, const PARTS: usize> {
    all: Rows<S::Real>,
    vectors: Vectors,
    first: usize,
    steps: usize,
    room: *mut S::Real,
    by: usize,
}

impl<S: Simd, const PARTS: usize> Work for Copied<S, PARTS> {
    #[inline(always)]
    unsafe fn run(self) {
        let Copied { all, vectors, first, steps, room, by } = self;
        for v in 0..vectors.count {
            let row = vectors.row + v * S::LANES;
            let rows = S::LANES.min(all.count - row);
            // SAFETY: `row` and `first` are an element, as the caller of `copy` promised; the room has the vector `v` of each step.
            unsafe {
                let from = all.first.add(row / PARTS * all.row + first * all.col);
                let to = room.add(v * S::LANES);
                if all.row == PARTS {
                    for l in 0..steps {
                        let from = from.add(l * all.col);
                        S::store(
                            to.add(l * by),
                            if rows == S::LANES { S::load(from) } else { S::load_first(from, rows) },
                        );
                    }
                    continue;
                }
                let at_once = S::LANES / PARTS;
                let whole = if all.col == PARTS { steps / at_once * at_once } else { 0 };
                for l in (0..whole).step_by(at_once) {
                    transpose::<S, PARTS>(from.add(l * PARTS), all.row, rows / PARTS, to.add(l * by), by);
                }
                for l in whole..steps {
                    for i in 0..S::LANES {
                        let is_there = i < rows;
                        let from = from.wrapping_add(i / PARTS * all.row + i % PARTS + l * all.col);
                        *to.add(l * by + i) = if is_there { *from } else { S::Real::ZERO };
                    }
                }
            }
        }
    }
}

/// As many rows as a vector holds elements become as many columns. Of those rows `count` are there, the others zeros.
///
/// # Safety
/// The CPU has the instructions of S; `from` is good for a vector of each row that is there, `to` for a vector of each column.
#[inline(always)]
unsafe fn transpose<S: Simd, const PARTS: usize>(
    from: *const S::Real,
    row: usize,
    count: usize,
    to: *mut S::Real,
    col: usize,
) {
    // SAFETY: rows below `count` and all columns, for which the caller promised `from` and `to`.
    unsafe {
        let mut v = [S::splat(S::Real::ZERO); MOST_LANES];
        for (i, v) in v.iter_mut().enumerate().take(S::LANES / PARTS) {
            if i < count {
                *v = S::load(from.add(i * row));
            }
        }
        exchange::<S, PARTS, 1>(&mut v);
        exchange::<S, PARTS, 2>(&mut v);
        exchange::<S, PARTS, 4>(&mut v);
        exchange::<S, PARTS, 8>(&mut v);
        for (l, v) in v.iter().enumerate().take(S::LANES / PARTS) {
            S::store(to.add(l * col), *v);
        }
    }
}

/// Blocks of D lanes above the diagonal for those below it.
///
/// # Safety
/// The CPU has the instructions of S.
#[inline(always)]
unsafe fn exchange<S: Simd, const PARTS: usize, const D: usize>(v: &mut [S::Vector; MOST_LANES]) {
    if D < PARTS || D >= S::LANES {
        return;
    }
    let mut i = 0;
    while i < S::LANES / PARTS {
        let j = i + D / PARTS;
        if i & (D / PARTS) == 0 {
            // SAFETY: as the caller promised.
            [v[i], v[j]] = unsafe { S::exchange::<D>(v[i], v[j]) };
        }
        i += 1;
    }
}
