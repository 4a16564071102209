//! Sums that stay in registers over some steps of k, and are in memory between them.

use super::ask::{Ask, Asks};
use crate::simd::{Real, Simd, Work};

/// Most vectors along the rows of a tile.
pub const MOST_VECTORS: usize = 3;

/// Steps between which nothing is asked for.
const STEPS_AT_ONCE: usize = 4;

/// Most columns of a tile of `vectors`: a power of 2, so that its sums, the vectors of A and one of B are in registers.
pub const fn most_columns<S: Simd, const PARTS: usize>(vectors: usize) -> usize {
    let mut columns = 8;
    while columns > 1 && vectors * PARTS * columns + vectors + 1 > S::REGISTERS {
        columns /= 2;
    }
    columns
}

/// A and B from the tile's first element and step on, and its sums.
#[derive(Clone, Copy)]
pub struct Operands<R> {
    pub a: *const R,
    /// From each step to the next.
    pub a_by: usize,
    pub b: *const R,
    pub b_row: usize,
    pub b_col: usize,
    pub sums: *mut R,
    /// From the sums of each column and part to the next.
    pub sums_by: usize,
}

/// Tiles of a size that is known when they run, beside each other: sums ← sums + A B, or A B unless they are `begun`. They ask by turns.
/// Narrow ones that are called OFTEN, for a few steps each, are no functions: a call would take as long.
///
/// # Safety
/// The CPU has the instructions of S; A is good for as many vectors, B for the columns of all tiles, and the sums for both.
#[inline(always)]
pub unsafe fn any_tiles<S: Simd, const PARTS: usize, const OFTEN: bool>(
    (vectors, columns): (usize, usize),
    count: usize,
    steps: usize,
    at: Operands<S::Real>,
    begun: bool,
    asks: &mut Asks<S::Real>,
) {
    macro_rules! choose {
        ($($v:literal: $($n:literal)*;)*) => {
            match (vectors, columns) {
                $($(($v, $n) if const { $n <= most_columns::<S, PARTS>($v) } => {
                    // SAFETY: the caller promised what `Strip` asks for.
                    unsafe {
                        if const { OFTEN && $n < most_columns::<S, PARTS>($v) } {
                            match at.b_col == PARTS {
                                true => Strip::<S, PARTS, $v, $n, true> { count, steps, at, begun, asks }.run(),
                                false => Strip::<S, PARTS, $v, $n, false> { count, steps, at, begun, asks }.run(),
                            }
                        } else if const { $n == most_columns::<S, PARTS>($v) } && at.b_col == PARTS {
                            S::vectorize(Strip::<S, PARTS, $v, $n, true> { count, steps, at, begun, asks });
                        } else {
                            S::vectorize(Strip::<S, PARTS, $v, $n, false> { count, steps, at, begun, asks });
                        }
                    }
                })*)*
                _ => debug_assert!(false, "no tile has {vectors} vectors and {columns} columns"),
            }
        };
    }
    choose! {
        1: 1 2 4 8;
        2: 1 2 4 8;
        3: 1 2 4 8;
    }
}

/// Tiles beside each other. The widest, and those that are no functions, are compiled for a B by rows as well, whose columns are at constant
/// distances.
struct Strip<'e, S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize, const BY_ROWS: bool> {
    count: usize,
    steps: usize,
    at: Operands<S::Real>,
    begun: bool,
    asks: &'e mut Asks<S::Real>,
}

impl<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize, const BY_ROWS: bool> Work
    for Strip<'_, S, PARTS, VECTORS, COLUMNS, BY_ROWS>
{
    #[inline(always)]
    unsafe fn run(self) {
        let Strip { count, steps, mut at, begun, asks } = self;
        at.b_col = if BY_ROWS { PARTS } else { at.b_col };
        for _ in 0..count {
            // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions, and A, B and the sums of each tile.
            unsafe {
                tile::<S, PARTS, VECTORS, COLUMNS>(steps, at, begun, asks.next());
            }
            at.b = at.b.wrapping_add(COLUMNS * at.b_col);
            at.sums = at.sums.wrapping_add(COLUMNS * PARTS * at.sums_by);
        }
    }
}

/// # Safety
/// The CPU has the instructions of S; A is good for VECTORS, B for COLUMNS, and the sums for both.
#[inline(always)]
unsafe fn tile<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize>(
    steps: usize,
    Operands { a, a_by, b, b_row, b_col, sums, sums_by }: Operands<S::Real>,
    begun: bool,
    ask: &mut Ask<S::Real>,
) {
    let place = |j: usize, part: usize, v: usize| sums.wrapping_add((j * PARTS + part) * sums_by + v * S::LANES);
    // SAFETY: the caller promised the instructions, and A, B and the sums for all v < VECTORS, j < COLUMNS and l < steps.
    unsafe {
        let mut rc = [[[S::splat(S::Real::ZERO); PARTS]; VECTORS]; COLUMNS]; // (COLUMNS, VECTORS, PARTS)
        if begun {
            let mut j = 0;
            while j < COLUMNS {
                let mut v = 0;
                while v < VECTORS {
                    let mut part = 0;
                    while part < PARTS {
                        rc[j][v][part] = S::load(place(j, part, v));
                        part += 1;
                    }
                    v += 1;
                }
                j += 1;
            }
        }
        let mut own = *ask;
        let mut l = 0;
        while l < steps {
            // Not in each step: with another loop in this one sums are moved between registers, and to memory.
            let end = steps.min(l + STEPS_AT_ONCE);
            own.steps::<S>(end - l);
            while l < end {
                let (a, b) = (a.add(l * a_by), b.add(l * b_row));
                let mut ra = [S::splat(S::Real::ZERO); VECTORS]; // (VECTORS)
                let mut v = 0;
                while v < VECTORS {
                    ra[v] = S::load(a.add(v * S::LANES));
                    v += 1;
                }
                let mut j = 0;
                while j < COLUMNS {
                    let mut part = 0;
                    while part < PARTS {
                        let rb = S::splat(*b.add(j * b_col + part));
                        let mut v = 0;
                        while v < VECTORS {
                            rc[j][v][part] = S::mul_add(ra[v], rb, rc[j][v][part]);
                            v += 1;
                        }
                        part += 1;
                    }
                    j += 1;
                }
                l += 1;
            }
        }
        *ask = own;
        let mut j = 0;
        while j < COLUMNS {
            let mut v = 0;
            while v < VECTORS {
                let mut part = 0;
                while part < PARTS {
                    S::store(place(j, part, v), rc[j][v][part]);
                    part += 1;
                }
                v += 1;
            }
            j += 1;
        }
    }
}
