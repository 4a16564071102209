//! A block of C, whose sums stay in registers.

use super::ends::{Ends, reached};
use super::{Operands, Out, most_columns, most_vectors};
use crate::ahead::{Ahead, Meanwhile, Pace};
use crate::epilogue::Epilogue;
use crate::simd::{Real, Simd, Work};
use std::mem::MaybeUninit;

/// The last vector of a block's rows.
#[derive(Clone, Copy)]
pub struct Tail<R> {
    /// Its lanes in C.
    pub len: usize,
    /// Of A, and of the old C.
    pub a: Ends<R>,
    pub old: Ends<R>,
    pub stores: Stores,
}

impl<R: Real> Tail<R> {
    /// How many of `columns`, which begin `col` after each other, are stored whole: the first ones.
    #[inline(always)]
    fn whole_columns<S: Simd<Real = R>>(&self, columns: usize, col: usize) -> usize {
        match self.stores {
            _ if self.len == S::LANES => columns,
            Stores::Anywhere | Stores::PastCaches => columns,
            Stores::OverTheBlock => columns.saturating_sub(reached(S::LANES - self.len, col)),
            Stores::Exactly => 0,
        }
    }
}

/// How columns are stored: parts of a vector take longer than whole ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// The lanes of C alone.
    Exactly,
    /// Also those beyond, of columns of the same block, which are stored later: C has no gaps.
    OverTheBlock,
    /// All lanes: what is beyond is written later, or belongs to nobody.
    Anywhere,
    /// Whole vectors past the caches: columns have no parts of vectors, and follow each other in one run of whole lines but for its
    /// ends.
    PastCaches,
}

/// Hands every size of a block to a macro, behind what else it takes: vectors, and columns of so many.
macro_rules! with_sizes {
    ($stamp:ident! { $($before:tt)* }) => {
        $stamp! { $($before)*
            1: 1 2 3 4 5 6 7 8;
            2: 1 2 3 4 5 6;
            3: 1 2 3 4 5 6;
            4: 1 2 3 4 5 6;
        }
    };
}
pub(super) use with_sizes;

/// Stamps the choice of a block's compiled size.
macro_rules! choose_block {
    ($vectors:expr, $width:expr, $call:ident, $($v:literal: $($n:literal)*;)*) => {
        match ($vectors, $width) {
            $($(($v, $n) if const { fits::<S, PARTS>($v, $n) } => $call!($v, $n),)*)*
            _ => unreachable!("no block has {} vectors and {} columns", $vectors, $width),
        }
    };
}

const fn fits<S: Simd, const PARTS: usize>(vectors: usize, columns: usize) -> bool {
    vectors <= most_vectors::<S, PARTS>() && columns <= most_columns::<S, PARTS>(vectors)
}

/// A block of a size that is known when it runs.
///
/// # Safety
/// As [`block`].
#[inline(always)]
pub unsafe fn any_block<S: Simd, const PARTS: usize>(
    k: usize,
    (vectors, width): (usize, usize),
    at: Operands<S::Real>,
    tail: Tail<S::Real>,
    epilogue: &Epilogue<S>,
    ahead: &mut Ahead<S::Real>,
) {
    macro_rules! call {
        ($v:literal, $n:literal) => {
            // SAFETY: the caller promised what `Block` asks for: the instructions of S, and A, B and C for this block.
            unsafe { S::vectorize(Block::<S, PARTS, $v, $n> { k, at, tail, epilogue, pace: &mut ahead.pace }) }
        };
    }
    with_sizes! { choose_block! { vectors, width, call, } }
}

/// A block as a function of its own: one function of all sizes would take the compiler minutes.
struct Block<'e, S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize> {
    k: usize,
    at: Operands<S::Real>,
    tail: Tail<S::Real>,
    epilogue: &'e Epilogue<S>,
    pace: &'e mut Pace<S::Real>,
}

impl<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize> Work
    for Block<'_, S, PARTS, VECTORS, COLUMNS>
{
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `Simd::vectorize` runs this, whose caller, `any_block`, was promised the instructions, and A, B and C
        // for the block.
        unsafe { block::<S, PARTS, VECTORS, COLUMNS, false>(self.k, self.at, self.tail, self.epilogue, self.pace) }
    }
}

/// The last vector of a column of A or the old C. Where its length is known when this is compiled no copy is needed.
///
/// # Safety
/// The CPU has the instructions of S; `from` is good for the column, `ends` are its ends.
#[inline(always)]
unsafe fn last<S: Simd, const KNOWN: bool>(
    from: *const S::Real,
    column: usize,
    len: usize,
    ends: Ends<S::Real>,
) -> S::Vector {
    // SAFETY: `from` is good for `len` elements, as the caller promised; a whole vector is loaded where `ends` has one.
    unsafe {
        if KNOWN && column >= ends.whole { S::load_first(from, len) } else { S::load(ends.at::<S>(column, from)) }
    }
}

/// A block of `VECTORS` by `COLUMNS` that stays in registers. Its loops count by hand: ranges take the compiler twice as long.
///
/// # Safety
/// The CPU has the instructions of S, and A, B and C are good for the block.
#[inline(always)]
pub unsafe fn block<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize, const KNOWN: bool>(
    k: usize,
    (a, b, c): Operands<S::Real>,
    tail: Tail<S::Real>,
    epilogue: &Epilogue<S>,
    meanwhile: &mut (impl Meanwhile<S> + Copy),
) {
    // SAFETY: `l < k` and `j < COLUMNS`, for which the caller promised A and B; the last vector of A is `tail.a`'s.
    unsafe {
        let mut own = *meanwhile;
        let mut sums = [[[S::splat(S::Real::ZERO); PARTS]; VECTORS]; COLUMNS]; // (COLUMNS, VECTORS, PARTS)
        for l in 0..k {
            own.step();
            let from = a.first.add(l * a.col);
            let mut ra = [S::splat(S::Real::ZERO); VECTORS]; // (VECTORS)
            let mut v = 0;
            while v + 1 < VECTORS {
                ra[v] = S::load(from.add(v * S::LANES));
                v += 1;
            }
            ra[v] = last::<S, KNOWN>(from.add(v * S::LANES), l, tail.len, tail.a);
            let mut j = 0;
            while j < COLUMNS {
                let mut part = 0;
                while part < PARTS {
                    let rb = S::splat(*b.first.add(l * b.row + j * b.col + part));
                    let mut v = 0;
                    while v < VECTORS {
                        sums[j][v][part] = S::mul_add(ra[v], rb, sums[j][v][part]);
                        v += 1;
                    }
                    part += 1;
                }
                j += 1;
            }
        }
        *meanwhile = own;
        finish::<S, PARTS, VECTORS, COLUMNS, KNOWN>(&mut sums, c, tail, epilogue);
    }
}

/// C from the sums of a block. All of the old C is loaded before anything is stored: a load waits for a store near it.
///
/// # Safety
/// As [`block`].
#[inline(always)]
unsafe fn finish<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize, const KNOWN: bool>(
    sums: &mut [[[S::Vector; PARTS]; VECTORS]; COLUMNS],
    c: Out<S::Real>,
    tail: Tail<S::Real>,
    epilogue: &Epilogue<S>,
) {
    // SAFETY: the caller promised C for the block; the last vectors are of `tail`'s length, or go where `tail.stores`
    // says they may. The last loop takes the `parts` from `whole` on, which the loop before it wrote.
    unsafe {
        if PARTS == 2 || epilogue.scales {
            let mut j = 0;
            while j < COLUMNS {
                let mut v = 0;
                while v < VECTORS {
                    sums[j][v][0] = epilogue.product(sums[j][v]);
                    v += 1;
                }
                j += 1;
            }
        }
        if epilogue.reads_c {
            let mut j = 0;
            while j < COLUMNS {
                let mut v = 0;
                while v + 1 < VECTORS {
                    let old = S::load(c.old.add(j * c.old_col + v * S::LANES));
                    sums[j][v][0] = epilogue.plus_old(sums[j][v][0], old);
                    v += 1;
                }
                j += 1;
            }
            let mut j = 0;
            while j < COLUMNS {
                let from = c.old.add(j * c.old_col + (VECTORS - 1) * S::LANES);
                let old = last::<S, KNOWN>(from, j, tail.len, tail.old);
                sums[j][VECTORS - 1][0] = epilogue.plus_old(sums[j][VECTORS - 1][0], old);
                j += 1;
            }
        }
        if tail.stores == Stores::PastCaches {
            // From a copy in memory: were this loop not unrolled, the sums would be there from the start.
            let mut results = [[sums[0][0][0]; VECTORS]; COLUMNS];
            let mut j = 0;
            while j < COLUMNS {
                let mut v = 0;
                while v < VECTORS {
                    results[j][v] = sums[j][v][0];
                    v += 1;
                }
                j += 1;
            }
            for (j, column) in results.iter().enumerate() {
                for (v, &result) in column.iter().enumerate() {
                    S::stream(c.first.add(j * c.col + v * S::LANES), result);
                }
            }
            return;
        }
        // The last vectors come first: what they write beyond their column is then written over.
        let (whole, to) = (tail.whole_columns::<S>(COLUMNS, c.col), c.first.add((VECTORS - 1) * S::LANES));
        let mut parts = [MaybeUninit::uninit(); COLUMNS];
        let mut j = 0;
        while j < COLUMNS {
            let last = sums[j][VECTORS - 1][0];
            if j < whole {
                S::store(to.add(j * c.col), last)
            } else if KNOWN {
                S::store_first(to.add(j * c.col), tail.len, last)
            } else {
                parts[j].write(last);
            }
            j += 1;
        }
        let mut j = 0;
        while j < COLUMNS {
            let mut v = 0;
            while v + 1 < VECTORS {
                S::store(c.first.add(j * c.col + v * S::LANES), sums[j][v][0]);
                v += 1;
            }
            j += 1;
        }
        if !KNOWN {
            // In one place: how many lanes are stored is found when this runs.
            for (j, last) in parts.iter().enumerate().skip(whole) {
                S::store_first(to.add(j * c.col), tail.len, last.assume_init());
            }
        }
    }
}
