//! One product, in blocks of C that stay in registers.
//!
//! The rows of C lie along vectors: a step of the sum loads a column's part of A and multiplies it by each element of B's
//! row. PARTS is 1 for real numbers and 2 for complex ones, whose parts are rows of their own; all lengths and strides
//! count real numbers. Each element is one chain of multiply-adds, l ascending, from 0 on: neither the block that it is
//! in nor the length of the vectors changes a bit of it.

use crate::epilogue::Epilogue;
use crate::simd::{Real, Simd, Work};
use std::ops::RangeInclusive;

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

/// Most vectors along the rows of a block.
const MOST_VECTORS: usize = 4;

/// A length in `count` parts of `least` or, the first `longer` of them, one more.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cut {
    count: usize,
    least: usize,
    longer: usize,
}

impl Cut {
    /// As few parts as can be, none above `most`, all as equal as can be: a narrow last one would wait for its own sums.
    const fn new(len: usize, most: usize) -> Cut {
        Cut::by_count(len, len.div_ceil(most))
    }

    /// So many parts, all as equal as can be.
    const fn by_count(len: usize, count: usize) -> Cut {
        if len == 0 {
            return Cut { count: 0, least: 0, longer: 0 };
        }
        Cut { count, least: len / count, longer: len % count }
    }

    #[inline(always)]
    const fn part(&self, index: usize) -> usize {
        if index < self.longer { self.least + 1 } else { self.least }
    }

    #[inline(always)]
    const fn start(&self, index: usize) -> usize {
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
    if columns > S::MOST_COLUMNS { S::MOST_COLUMNS } else { columns }
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
    pub fn blocks(&self) -> usize {
        (0..self.vectors.count).map(|of_rows| self.columns[self.vectors.part(of_rows)].count).sum()
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

/// The last vector of a block's rows.
#[derive(Clone, Copy)]
struct Tail<S: Simd> {
    /// Its lanes in C.
    len: usize,
    mask: S::Mask,
    stores: Stores,
}

impl<S: Simd> Tail<S> {
    /// # Safety
    /// The CPU has the instructions of S; `from` is good for the lanes.
    #[inline(always)]
    unsafe fn load(&self, from: *const S::Real) -> S::Vector {
        // SAFETY: by the caller's promise.
        unsafe { if self.len == S::LANES { S::load(from) } else { S::load_masked(from, self.mask) } }
    }

    /// How many of `columns`, which begin `col` after each other, are stored whole: the first ones.
    #[inline(always)]
    fn whole_columns(&self, columns: usize, col: usize) -> usize {
        match self.stores {
            _ if self.len == S::LANES => columns,
            Stores::Anywhere | Stores::PastCaches => columns,
            Stores::OverTheBlock => columns.saturating_sub((S::LANES - self.len).div_ceil(col)),
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

/// C from A and B, block by block; `between` is called after each.
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
    mut between: impl FnMut(),
) {
    for of_rows in 0..cuts.vectors.count {
        let vectors = cuts.vectors.part(of_rows);
        let row = cuts.vectors.start(of_rows) * S::LANES;
        let columns = &cuts.columns[vectors];
        for of_cols in 0..columns.count {
            let (col, width) = (columns.start(of_cols), columns.part(of_cols));
            // SAFETY: by the caller's promise; the block is inside C.
            unsafe {
                let tail = tail::<S>(sizes.rows - row, vectors, cuts.vectors.count == 1, stores);
                let at = at::<S>((a, b, c), row, col);
                any_block::<S, PARTS>(sizes.k, (vectors, width), at, tail, epilogue);
            }
            between();
        }
    }
}

/// The last vector of a block of `vectors`, of which `rows` are left.
///
/// # Safety
/// The CPU has the instructions of S.
#[inline(always)]
unsafe fn tail<S: Simd>(rows: usize, vectors: usize, is_only: bool, stores: Stores) -> Tail<S> {
    let len = (rows - (vectors - 1) * S::LANES).min(S::LANES);
    // Else the rows at the top of the next column are of a block that was stored before.
    let stores = if is_only { stores } else { Stores::Exactly };
    // SAFETY: by the caller's promise.
    Tail { len, mask: unsafe { S::mask(len) }, stores }
}

/// A, B and C from the block's first element on.
///
/// # Safety
/// The block is inside C.
#[inline(always)]
unsafe fn at<S: Simd>((a, b, c): Operands<S::Real>, row: usize, col: usize) -> Operands<S::Real> {
    // SAFETY: inside A, B and C, as the block is.
    unsafe {
        (
            Left { first: a.first.add(row), ..a },
            Right { first: b.first.add(col * b.col), ..b },
            Out { first: c.first.add(row + col * c.col), old: c.old.wrapping_add(row + col * c.old_col), ..c },
        )
    }
}

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
unsafe fn any_block<S: Simd, const PARTS: usize>(
    k: usize,
    (vectors, width): (usize, usize),
    at: Operands<S::Real>,
    tail: Tail<S>,
    epilogue: &Epilogue<S>,
) {
    macro_rules! call {
        ($v:literal, $n:literal) => {
            // SAFETY: by the caller's promise.
            unsafe { S::vectorize(Block::<S, PARTS, $v, $n> { k, at, tail, epilogue }) }
        };
    }
    choose_block! { vectors, width, call,
        1: 1 2 3 4 5 6;
        2: 1 2 3 4 5 6;
        3: 1 2 3 4 5 6;
        4: 1 2 3 4 5 6;
    }
}

/// A block as a function of its own: one function of all sizes would take the compiler minutes.
struct Block<'e, S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize> {
    k: usize,
    at: Operands<S::Real>,
    tail: Tail<S>,
    epilogue: &'e Epilogue<S>,
}

impl<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize> Work
    for Block<'_, S, PARTS, VECTORS, COLUMNS>
{
    #[inline(always)]
    fn run(self) {
        // SAFETY: this runs inside `Simd::vectorize`; A, B and C are those that `any_block` was promised.
        unsafe { block::<S, PARTS, VECTORS, COLUMNS>(self.k, self.at, self.tail, self.epilogue) }
    }
}

/// A block of `VECTORS` by `COLUMNS` that stays in registers. Its loops count by hand: ranges take the compiler twice as long.
///
/// # Safety
/// The CPU has the instructions of S, and A, B and C are good for the block.
#[inline(always)]
unsafe fn block<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize>(
    k: usize,
    (a, b, c): Operands<S::Real>,
    tail: Tail<S>,
    epilogue: &Epilogue<S>,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut sums = [[[S::splat(S::Real::ZERO); PARTS]; VECTORS]; COLUMNS]; // (COLUMNS, VECTORS, PARTS)
        for l in 0..k {
            let from = a.first.add(l * a.col);
            let mut ra = [S::splat(S::Real::ZERO); VECTORS]; // (VECTORS)
            let mut v = 0;
            while v + 1 < VECTORS {
                ra[v] = S::load(from.add(v * S::LANES));
                v += 1;
            }
            ra[v] = tail.load(from.add(v * S::LANES));
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
        finish::<S, PARTS, VECTORS, COLUMNS>(&mut sums, c, tail, epilogue);
    }
}

/// C from the sums of a block. All of the old C is loaded before anything is stored: a load waits for a store near it.
///
/// # Safety
/// As [`block`].
#[inline(always)]
unsafe fn finish<S: Simd, const PARTS: usize, const VECTORS: usize, const COLUMNS: usize>(
    sums: &mut [[[S::Vector; PARTS]; VECTORS]; COLUMNS],
    c: Out<S::Real>,
    tail: Tail<S>,
    epilogue: &Epilogue<S>,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut j = 0;
        while j < COLUMNS {
            let mut v = 0;
            while v < VECTORS {
                sums[j][v][0] = epilogue.product(sums[j][v]);
                v += 1;
            }
            j += 1;
        }
        if epilogue.reads_c {
            let mut j = 0;
            while j < COLUMNS {
                let old = c.old.add(j * c.old_col);
                let mut v = 0;
                while v + 1 < VECTORS {
                    sums[j][v][0] = epilogue.plus_old(sums[j][v][0], S::load(old.add(v * S::LANES)));
                    v += 1;
                }
                sums[j][v][0] = epilogue.plus_old(sums[j][v][0], tail.load(old.add(v * S::LANES)));
                j += 1;
            }
        }
        if tail.stores == Stores::PastCaches {
            let mut j = 0;
            while j < COLUMNS {
                let mut v = 0;
                while v < VECTORS {
                    S::stream(c.first.add(j * c.col + v * S::LANES), sums[j][v][0]);
                    v += 1;
                }
                j += 1;
            }
            return;
        }
        let whole = tail.whole_columns(COLUMNS, c.col);
        let mut j = 0;
        while j < COLUMNS {
            let to = c.first.add(j * c.col);
            let mut v = 0;
            while v + 1 < VECTORS {
                S::store(to.add(v * S::LANES), sums[j][v][0]);
                v += 1;
            }
            let (to, last) = (to.add(v * S::LANES), sums[j][v][0]);
            if j < whole {
                S::store(to, last)
            } else {
                S::store_first(to, tail.len, last)
            }
            j += 1;
        }
    }
}

/// The product of square matrices of a size that the compiler knows, by columns without gaps.
///
/// # Safety
/// As [`product`], of N x N matrices without gaps.
#[inline(always)]
pub unsafe fn square<S: Simd, const PARTS: usize, const N: usize>(
    (a, b, c): Operands<S::Real>,
    stores: Stores,
    epilogue: &Epilogue<S>,
) {
    let packed = N * PARTS;
    let b = Right { row: PARTS, col: packed, ..b };
    let abc = (Left { col: packed, ..a }, b, Out { col: packed, old_col: packed, ..c });
    // SAFETY: by the caller's promise. Steps beyond the cuts of N are none.
    unsafe {
        step::<S, PARTS, N, 0, 0>(abc, stores, epilogue);
        step::<S, PARTS, N, 0, 1>(abc, stores, epilogue);
        step::<S, PARTS, N, 0, 2>(abc, stores, epilogue);
        step::<S, PARTS, N, 1, 0>(abc, stores, epilogue);
        step::<S, PARTS, N, 1, 1>(abc, stores, epilogue);
        step::<S, PARTS, N, 1, 2>(abc, stores, epilogue);
    }
}

/// Sizes of [`square`], whose steps are enough for these: loops and branches are a good part of the time of so small a
/// product. For smaller ones, and those of 2 that a vector holds, there is [`crate::packed`].
pub const SQUARES: RangeInclusive<usize> = 2..=8;

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
                // SAFETY: by the caller's promise; the block is one of the cut of C.
                unsafe {
                    let tail = tail::<S>(N * PARTS - row, $v, cuts.vectors.count == 1, stores);
                    block::<S, PARTS, $v, $n>(N, at::<S>(abc, row, col), tail, epilogue);
                }
            }
        )*)*};
    }
    call! {
        1: 1 2 3 4 5 6;
        2: 1 2 3 4 5 6;
        3: 1 2 3 4 5 6;
        4: 1 2 3 4 5 6;
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::simd::Avx2;

    fn has_steps<S: Simd, const PARTS: usize>() {
        for n in SQUARES {
            let cuts = Cuts::new::<S, PARTS>(n * PARTS, n);
            assert!(cuts.vectors.count <= 2, "{n}: more blocks of rows than steps");
            for of_rows in 0..cuts.vectors.count {
                assert!(cuts.columns[cuts.vectors.part(of_rows)].count <= 3, "{n}: more blocks of columns than steps");
            }
        }
    }

    #[test]
    fn the_steps_of_squares_are_all_of_c() {
        // As products of squares take them.
        fn of_both<S: Simd>() {
            has_steps::<S::Narrow, 1>();
            has_steps::<S::Narrow, 2>();
        }
        of_both::<Avx2<f32>>();
        of_both::<Avx2<f64>>();
        #[cfg(has_avx512)]
        {
            of_both::<crate::simd::Avx512<f32>>();
            of_both::<crate::simd::Avx512<f64>>();
        }
    }

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
