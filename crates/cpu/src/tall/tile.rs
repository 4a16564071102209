//! Sums that stay in registers over some steps of k, and are in memory between them.

use super::ask::Ask;
use crate::simd::{Real, Simd, Work};

/// Most vectors along the rows of a tile.
pub const MOST_VECTORS: usize = 3;

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

/// A tile of a size that is known when it runs: sums ← sums + A B, or A B unless they are `begun`.
///
/// # Safety
/// The CPU has the instructions of S; A is good for as many vectors, B for as many columns, and the sums for both.
#[inline(always)]
pub unsafe fn any_tile<S: Simd, const PARTS: usize>(
    (vectors, columns): (usize, usize),
    steps: usize,
    at: Operands<S::Real>,
    begun: bool,
    ask: &mut Ask<S::Real>,
) {
    macro_rules! choose {
        ($($v:literal: $($n:literal)*;)*) => {
            match (vectors, columns) {
                $($(($v, $n) if const { $n <= most_columns::<S, PARTS>($v) } => {
                    // SAFETY: the caller promised what `Tile` asks for.
                    unsafe { S::vectorize(Tile::<S, PARTS, $v, $n> { steps, at, begun, ask }) }
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

/// A tile as a function of its own.
struct Tile<'e, S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize> {
    steps: usize,
    at: Operands<S::Real>,
    begun: bool,
    ask: &'e mut Ask<S::Real>,
}

impl<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize> Work
    for Tile<'_, S, PARTS, VECTORS, COLUMNS>
{
    #[inline(always)]
    unsafe fn run(self) {
        let Operands { a, a_by, b, b_row, b_col, sums, sums_by } = self.at;
        let place = |j: usize, part: usize, v: usize| sums.wrapping_add((j * PARTS + part) * sums_by + v * S::LANES);
        // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions, and A, B and the sums for all
        // v < VECTORS, j < COLUMNS and l < steps.
        unsafe {
            let mut rc = [[[S::splat(S::Real::ZERO); PARTS]; VECTORS]; COLUMNS]; // (COLUMNS, VECTORS, PARTS)
            if self.begun {
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
            let mut ask = *self.ask;
            for l in 0..self.steps {
                let (a, b) = (a.add(l * a_by), b.add(l * b_row));
                ask.step::<S>();
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
            }
            *self.ask = ask;
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
}
