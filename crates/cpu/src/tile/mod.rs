//! One product, in blocks of C that stay in registers.
//!
//! The rows of C lie along vectors: a step of the sum loads a column's part of A and multiplies it by each element of B's
//! row. PARTS is 1 for real numbers and 2 for complex ones, whose parts are rows of their own; all lengths and strides
//! count real numbers. Each element is one chain of multiply-adds, l ascending, from 0 on: neither the block that it is
//! in nor the length of the vectors changes a bit of it.

mod block;
mod ends;
mod large;

use crate::ahead::{Ahead, Nothing};
use crate::epilogue::Epilogue;
use crate::simd::Simd;
pub use block::Stores;
use block::{Tail, any_block, block, with_sizes};
use ends::{Ends, Room};
pub use large::{Large, large};

/// A, its rows next to each other.
#[derive(Clone, Copy)]
pub struct Left<R> {
    pub first: *const R,
    pub col: usize,
}

/// B, with any strides.
#[derive(Clone, Copy)]
pub struct Right<R> {
    pub first: *const R,
    pub row: usize,
    pub col: usize,
}

/// C, its rows next to each other: what it was, and where it is written, which may be elsewhere.
#[derive(Clone, Copy)]
pub struct Out<R> {
    pub old: *const R,
    pub old_col: usize,
    pub first: *mut R,
    pub col: usize,
}

/// A, B and C.
pub type Operands<R> = (Left<R>, Right<R>, Out<R>);

/// Rows of C (times PARTS), its columns, and the length of the sums.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub rows: usize,
    pub cols: usize,
    pub k: usize,
}

/// Most columns of a block with more than one sum a column.
const MOST_WIDE: usize = 6;
/// Most vectors along the rows of a block.
const MOST_VECTORS: usize = 4;

/// A length in `count` parts of `least` or, the first `longer` of them, one more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub count: usize,
    least: usize,
    longer: usize,
}

impl Cut {
    /// As few parts as can be, none above `most`, all as equal as can be: a narrow last one would wait for its own sums.
    pub const fn new(len: usize, most: usize) -> Cut {
        Cut::by_count(len, len.div_ceil(most))
    }

    /// So many parts, all as equal as can be.
    const fn by_count(len: usize, count: usize) -> Cut {
        if len == 0 {
            return Cut { count: 0, least: 0, longer: 0 };
        }
        Cut { count, least: len / count, longer: len % count }
    }

    /// Parts of the same length: how many, where they begin, and how long each is.
    const fn runs(&self) -> [(usize, usize, usize); 2] {
        let Cut { count, least, longer } = *self;
        [(longer, 0, least + 1), (count - longer, longer * (least + 1), least)]
    }

    #[inline(always)]
    /// How long a part is.
    pub const fn part(&self, index: usize) -> usize {
        if index < self.longer { self.least + 1 } else { self.least }
    }

    #[inline(always)]
    /// Where it begins.
    pub const fn start(&self, index: usize) -> usize {
        index * self.least + if index < self.longer { index } else { self.longer }
    }
}

/// Most vectors along the rows of a block that leave room for several columns.
const fn most_vectors<S: Simd, const PARTS: usize>() -> usize {
    if S::REGISTERS >= 32 { MOST_VECTORS } else { 4 - PARTS }
}

/// Blocks of so many vectors of rows. With few registers two vectors leave room for the most sums, and three, where one
/// would be left, for more than that one.
const fn cut_of_rows<S: Simd, const PARTS: usize>(vectors: usize) -> Cut {
    let most = most_vectors::<S, PARTS>();
    if most == 3 && vectors > 1 { Cut::by_count(vectors, vectors / 2) } else { Cut::new(vectors, most) }
}

/// Most columns of a block of `vectors`: its sums, those of A and two of B are in registers. With room for one of B alone
/// the compiler keeps a sum in memory.
const fn most_columns<S: Simd, const PARTS: usize>(vectors: usize) -> usize {
    let columns = (S::REGISTERS - vectors - 2) / (vectors * PARTS);
    // Fewer sums than eight wait for each other's multiply-adds; of more columns with more sums each the compiler keeps some in memory.
    let most = if vectors * PARTS > 1 && S::MOST_COLUMNS > MOST_WIDE { MOST_WIDE } else { S::MOST_COLUMNS };
    if columns > most { most } else { columns }
}

/// How C is cut into blocks.
#[derive(Clone, Copy)]
pub struct Cuts {
    vectors: Cut,
    /// Of blocks of as many vectors as the index says.
    columns: [Cut; MOST_VECTORS + 1],
}

impl Cuts {
    /// Whether a block has all rows.
    pub fn has_whole_columns(&self) -> bool {
        self.vectors.count == 1
    }

    /// Number of blocks.
    pub const fn blocks(&self) -> usize {
        let (mut blocks, mut of_rows) = (0, 0);
        while of_rows < self.vectors.count {
            blocks += self.columns[self.vectors.part(of_rows)].count;
            of_rows += 1;
        }
        blocks
    }

    pub const fn new<S: Simd, const PARTS: usize>(rows: usize, cols: usize) -> Cuts {
        let mut columns = [Cut::new(0, 1); MOST_VECTORS + 1];
        let mut vectors = 1;
        while vectors <= most_vectors::<S, PARTS>() {
            columns[vectors] = Cut::new(cols, most_columns::<S, PARTS>(vectors));
            vectors += 1;
        }
        Cuts { vectors: cut_of_rows::<S, PARTS>(rows.div_ceil(S::LANES)), columns }
    }
}

/// C from A and B, block by block; `between` is called after each, and `ahead` meanwhile.
///
/// # Safety
/// The CPU has the instructions of S. A, B and C are good for `sizes`; C for what `stores` says.
#[inline(always)]
pub unsafe fn product<S: Simd, const PARTS: usize>(
    sizes: Sizes,
    cuts: &Cuts,
    (a, b, c): Operands<S::Real>,
    stores: Stores,
    epilogue: &Epilogue<S>,
    ahead: &mut Ahead<S::Real>,
    mut between: impl FnMut(),
) {
    let k = sizes.k;
    let is_only = cuts.vectors.count == 1;
    for of_rows in 0..cuts.vectors.count {
        let vectors = cuts.vectors.part(of_rows);
        let row = cuts.vectors.start(of_rows) * S::LANES;
        let (mut rooms, last) = ((Room::NEW, Room::NEW), row + (vectors - 1) * S::LANES);
        // SAFETY: `last < rows`, of which the caller promised A and, where it is read, C.
        let tail = unsafe { tail_of::<S>(sizes, (a, c), last, is_only, (stores, epilogue.reads_c), &mut rooms) };
        let columns = &cuts.columns[vectors];
        for of_cols in 0..columns.count {
            let (col, width) = (columns.start(of_cols), columns.part(of_cols));
            let tail = Tail { old: tail.old.from::<S>(col), ..tail };
            // SAFETY: rows from `row` on and `width` columns from `col` on are parts of the cuts of `sizes`, so the
            // block is inside C.
            unsafe {
                any_block::<S, PARTS>(k, (vectors, width), at::<S>((a, b, c), row, col), tail, epilogue, ahead);
            }
            ahead.block::<S>();
            between();
        }
    }
}

/// The last vector of a block's rows, which begins at row `last`; the block has all rows, or not. Copies go to the rooms.
///
/// # Safety
/// The CPU has the instructions of S; A, and the old C where it is read, are good for `sizes`, which have the row.
#[inline(always)]
unsafe fn tail_of<S: Simd>(
    Sizes { rows, cols, k }: Sizes,
    (a, c): (Left<S::Real>, Out<S::Real>),
    last: usize,
    is_only: bool,
    (stores, reads_c): (Stores, bool),
    (of_a, of_old): &mut (Room<S>, Room<S>),
) -> Tail<S::Real> {
    let len = if is_only { rows - last } else { (rows - last).min(S::LANES) };
    let olds = if reads_c { cols } else { 0 };
    let (a_ends, old_ends) =
        (Ends::new::<S>((k, a.col), rows, len), Ends::of_old::<S>((cols, c.old_col), rows, len, is_only));
    // SAFETY: `last < rows`, as the caller promised with A and the old C.
    unsafe {
        Tail {
            len,
            a: a_ends.copied::<S>(a.first.add(last), (k, a.col), len, of_a),
            old: old_ends.copied::<S>(c.old.wrapping_add(last), (olds, c.old_col), len, of_old),
            // Else the rows at the top of the next column are of a block that was stored before.
            stores: if is_only { stores } else { Stores::Exactly },
        }
    }
}

/// A, B and C from the block's first element on.
///
/// # Safety
/// The block is inside C.
#[inline(always)]
unsafe fn at<S: Simd>((a, b, c): Operands<S::Real>, row: usize, col: usize) -> Operands<S::Real> {
    // SAFETY: the block is inside C, as the caller promised, so its rows are A's and its columns B's.
    unsafe {
        (
            Left { first: a.first.add(row), ..a },
            Right { first: b.first.add(col * b.col), ..b },
            Out { first: c.first.add(row + col * c.col), old: c.old.wrapping_add(row + col * c.old_col), ..c },
        )
    }
}

/// The product of square matrices of a size that the compiler knows, by columns without gaps.
///
/// # Safety
/// As [`product`], of N x N matrices without gaps, for which [`steps_are_enough`].
#[inline(always)]
pub unsafe fn square<S: Simd, const PARTS: usize, const N: usize>(
    (a, b, c): Operands<S::Real>,
    stores: Stores,
    epilogue: &Epilogue<S>,
) {
    let packed = N * PARTS;
    let b = Right { row: PARTS, col: packed, ..b };
    let abc = (Left { col: packed, ..a }, b, Out { col: packed, old_col: packed, ..c });
    // SAFETY: the caller promised N x N matrices without gaps. Steps beyond the cuts of N are none.
    unsafe {
        step::<S, PARTS, N, 0, 0>(abc, stores, epilogue);
        step::<S, PARTS, N, 0, 1>(abc, stores, epilogue);
        step::<S, PARTS, N, 0, 2>(abc, stores, epilogue);
        step::<S, PARTS, N, 0, 3>(abc, stores, epilogue);
        step::<S, PARTS, N, 1, 0>(abc, stores, epilogue);
        step::<S, PARTS, N, 1, 1>(abc, stores, epilogue);
        step::<S, PARTS, N, 1, 2>(abc, stores, epilogue);
    }
}

/// Whether the steps of [`square`] are all blocks of an n x n product.
pub const fn steps_are_enough<S: Simd, const PARTS: usize>(n: usize) -> bool {
    // The first ones that are not there.
    let beyond = [step_size::<S, PARTS>(n, 0, 4), step_size::<S, PARTS>(n, 1, 3), step_size::<S, PARTS>(n, 2, 0)];
    matches!(beyond, [(0, 0), (0, 0), (0, 0)])
}

/// Vectors and columns of a block of an N x N product; 0 where there is none.
const fn step_size<S: Simd, const PARTS: usize>(n: usize, of_rows: usize, of_cols: usize) -> (usize, usize) {
    let cuts = Cuts::new::<S, PARTS>(n * PARTS, n);
    if of_rows >= cuts.vectors.count {
        return (0, 0);
    }
    let vectors = cuts.vectors.part(of_rows);
    if of_cols >= cuts.columns[vectors].count {
        return (0, 0);
    }
    (vectors, cuts.columns[vectors].part(of_cols))
}

/// One block of an N x N product; all that is not its size is left out when it is compiled.
///
/// # Safety
/// As [`square`].
#[inline(always)]
unsafe fn step<S: Simd, const PARTS: usize, const N: usize, const OF_ROWS: usize, const OF_COLS: usize>(
    abc: Operands<S::Real>,
    stores: Stores,
    epilogue: &Epilogue<S>,
) {
    let cuts = const { Cuts::new::<S, PARTS>(N * PARTS, N) };
    let (vectors, _) = const { step_size::<S, PARTS>(N, OF_ROWS, OF_COLS) };
    if vectors == 0 {
        return;
    }
    let (row, col) = (cuts.vectors.start(OF_ROWS) * S::LANES, cuts.columns[vectors].start(OF_COLS));
    macro_rules! call {
        ($($v:literal: $($n:literal)*;)*) => {$($(
            if const { matches!(step_size::<S, PARTS>(N, OF_ROWS, OF_COLS), ($v, $n)) } {
                // SAFETY: the block is one of the cut of N x N (`step_size`), for which the caller promised the
                // matrices.
                unsafe {
                    let len = (N * PARTS - row - ($v - 1) * S::LANES).min(S::LANES);
                    let is_only = cuts.vectors.count == 1;
                    let tail = Tail {
                        len,
                        a: Ends::new::<S>((N, N * PARTS), N * PARTS, len),
                        old: Ends::of_old::<S>((N, N * PARTS), N * PARTS, len, is_only).from::<S>(col),
                        stores: if is_only { stores } else { Stores::Exactly },
                    };
                    block::<S, PARTS, $v, $n, true>(N, at::<S>(abc, row, col), tail, epilogue, &mut Nothing);
                }
            }
        )*)*};
    }
    with_sizes! { call! {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole() {
        for (len, most) in (0..100).flat_map(|len| (1..9).map(move |most| (len, most))) {
            let cut = Cut::new(len, most);
            let starts: Vec<usize> = (0..cut.count).map(|part| cut.start(part)).collect();
            let mut end = 0;
            for (part, start) in starts.into_iter().enumerate() {
                assert!(start == end && (1..=most).contains(&cut.part(part)), "{len} by {most}");
                end = start + cut.part(part);
            }
            assert_eq!((end, cut.count), (len, len.div_ceil(most)));
        }
    }
}
