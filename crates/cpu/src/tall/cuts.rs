//! How C is cut into blocks, and k into steps: by the shape alone.

use super::panel::Vectors;
use super::tile::{MOST_VECTORS, most_columns};
use crate::simd::Simd;
use crate::tile::Cut;

/// Most bytes of a column of a block: long runs, which the CPU asks for ahead.
const MOST_COLUMN_BYTES: usize = 4096;
/// Fewer if C has many columns, but not below this.
const LEAST_COLUMN_BYTES: usize = 1024;
/// Columns of which a block has all.
const MOST_NARROW: usize = 64;
/// The bytes of a block's sums are about so many, and of A's elements for its steps.
const SUMS_BYTES: usize = 128 << 10;
const A_BYTES: usize = 32 << 10;
/// Columns of A that the CPU follows at once.
const LEAST_STEPS: usize = 8;
/// Fewest columns of a block where there is little room.
const LEAST_COLUMNS: usize = 8;
/// Most columns of C for which these are enough. Of more there are twice as many steps, so that sums are loaded and stored less often, ..
const COLUMNS_OF_LEAST_STEPS: usize = 4;
/// .. and of more than these four times as many.
const COLUMNS_OF_TWICE: usize = 32;
/// Fewest vectors of a block for which what it takes of B is copied: the copy costs little.
const VECTORS_OF_COPIED: usize = 8 * MOST_VECTORS;
/// And fewest columns.
const COLUMNS_OF_COPIED: usize = 9;
/// Room behind each column of sums: columns of a power of two drive each other out of the cache.
const GAP_BYTES: usize = 64;

/// Fewest steps of a small C, both of whose operands are long, where A is loaded as it lies.
const STEPS_AS_IT_LIES: usize = 128;
/// The same where A is copied: mostly B is by columns too, and more of both would be too much for the first-level cache.
const STEPS_OF_COPIES: usize = 64;
/// The same of few columns of C.
const STEPS_OF_FEW: usize = 32;
/// Most columns that are few.
const MOST_OF_FEW: usize = 16;
/// Fewest bytes of A's steps, times the operands.
const BYTES_OF_SMALL: usize = 8 << 10;

/// Bytes of the least cuts: eight columns, of two parts, and eight steps, of a vector and the gap.
pub const LEAST_BYTES: usize = (2 * LEAST_COLUMNS + LEAST_STEPS) * (MOST_VECTOR_BYTES + GAP_BYTES) + MOST_VECTOR_BYTES;
/// Bytes of the widest vectors.
pub const MOST_VECTOR_BYTES: usize = 64;

/// A block of C and some steps of k: rows count parts of numbers, and are whole vectors.
#[derive(Clone, Copy)]
pub struct Piece {
    pub row: usize,
    pub vectors: usize,
    pub col: usize,
    pub cols: usize,
    pub first: usize,
    pub steps: usize,
}

/// Tiles of a width beside each other, from a column of a piece on. Widths are powers of 2: a division takes as long as a narrow tile.
#[derive(Clone, Copy)]
pub struct Tiles {
    pub col: usize,
    pub width: usize,
    pub count: usize,
}

impl Tiles {
    /// Those that begin before a column.
    #[inline(always)]
    pub fn before(self, col: usize) -> Tiles {
        let cols = col.saturating_sub(self.col) + self.width - 1;
        Tiles { count: self.count.min(cols >> self.width.trailing_zeros()), ..self }
    }

    /// Each by itself.
    #[inline(always)]
    pub fn each(self) -> impl Iterator<Item = Tiles> {
        (0..self.count).map(move |tile| Tiles { col: self.col + tile * self.width, count: 1, ..self })
    }
}

/// Blocks, tiles and steps of a product.
pub struct Cuts {
    /// Vectors along the rows of C, in blocks; columns in blocks.
    pub rows: Cut,
    pub cols: Cut,
    /// Steps of k at a time.
    pub steps: usize,
    k: usize,
    /// Whether the rows of C are the long side.
    pub is_tall: bool,
    lanes: usize,
    parts: usize,
    gap: usize,
    /// Whether the elements of B that a block takes at a time are copied.
    copies_b: bool,
    /// Most columns of a tile of as many vectors as the index says.
    most_columns: [usize; MOST_VECTORS + 1],
}

impl Cuts {
    /// Of so many rows (times PARTS), columns and steps, for the caches.
    pub fn new<S: Simd, const PARTS: usize>(rows: usize, cols: usize, k: usize) -> Cuts {
        let vector = S::LANES * size_of::<S::Real>();
        let vectors = rows.div_ceil(S::LANES);
        // A long side is cut to columns that the CPU follows, a narrow one is not.
        let column_bytes = (SUMS_BYTES / (cols.min(MOST_NARROW) * PARTS)).clamp(LEAST_COLUMN_BYTES, MOST_COLUMN_BYTES);
        let of_rows = Cut::new(vectors, column_bytes / vector);
        let most_rows = of_rows.part(0) * vector;
        let most_cols = (SUMS_BYTES / (most_rows * PARTS)).max(MOST_NARROW).next_multiple_of(8);
        let times = 1 + usize::from(cols > COLUMNS_OF_LEAST_STEPS) + 2 * usize::from(cols > COLUMNS_OF_TWICE);
        let least = times * LEAST_STEPS;
        Cuts::of::<S, PARTS>(rows, cols, k, of_rows, most_cols, (A_BYTES / most_rows).max(least))
    }

    /// The least: whatever the product is, its sums and its part of A are in [`LEAST_BYTES`].
    pub fn least<S: Simd, const PARTS: usize>(rows: usize, cols: usize, k: usize) -> Cuts {
        Cuts::of::<S, PARTS>(rows, cols, k, Cut::new(rows.div_ceil(S::LANES), 1), LEAST_COLUMNS, LEAST_STEPS)
    }

    fn of<S: Simd, const PARTS: usize>(
        rows: usize,
        cols: usize,
        k: usize,
        of_rows: Cut,
        most_cols: usize,
        most_steps: usize,
    ) -> Cuts {
        let mut columns = [1; MOST_VECTORS + 1];
        let mut count = 1;
        while count <= MOST_VECTORS {
            columns[count] = most_columns::<S, PARTS>(count);
            count += 1;
        }
        Cuts {
            rows: of_rows,
            cols: Cut::new(cols, most_cols),
            steps: most_steps.min(k),
            k,
            is_tall: rows >= cols * PARTS,
            lanes: S::LANES,
            parts: PARTS,
            gap: GAP_BYTES / size_of::<S::Real>(),
            copies_b: false,
            most_columns: columns,
        }
    }

    /// Whether C is small, so that both operands are long.
    pub fn is_small(&self) -> bool {
        let (rows, cols) = (self.rows.part(0) * self.lanes, self.cols.part(0) * self.parts);
        self.rows.count == 1 && self.cols.count == 1 && rows.max(cols) <= MOST_NARROW * self.parts
    }

    /// With as many steps as suit a small C of no more columns than rows, whose A is loaded as it lies or copied, of so many operands: a Gram matrix's are
    /// one.
    pub fn for_small<S: Simd>(self, as_it_lies: bool, operands: usize) -> Cuts {
        if !self.is_small() || !self.is_tall {
            return self;
        }
        let least = match as_it_lies {
            true => STEPS_AS_IT_LIES,
            false if self.cols.part(0) <= MOST_OF_FEW => STEPS_OF_FEW,
            false => STEPS_OF_COPIES,
        };
        let bytes = self.rows.part(0) * S::LANES * size_of::<S::Real>() * operands;
        Cuts { steps: (BYTES_OF_SMALL / bytes).max(least).min(self.k), ..self }
    }

    /// With room for a copy of B's part of a piece, if that is taken often.
    pub fn with_b(self) -> Cuts {
        Cuts {
            copies_b: !self.is_small()
                && self.is_tall
                && self.cols.part(0) >= COLUMNS_OF_COPIED
                && self.rows.part(0) >= VECTORS_OF_COPIED,
            ..self
        }
    }

    /// From each row of the copied part of B to the next, if it is copied.
    pub fn copied_b(&self) -> Option<usize> {
        self.copies_b.then_some((self.cols.part(0) * self.parts).next_multiple_of(self.lanes) + self.gap)
    }

    /// From each column of sums, of a part, to the next.
    pub fn sums_by(&self) -> usize {
        self.rows.part(0) * self.lanes + self.gap
    }

    /// Elements of all that a block needs.
    pub fn len(&self) -> usize {
        self.sums_len() + self.panels_len() + self.copied_b().map_or(0, |by| by * self.steps)
    }

    /// Elements of the sums of a block.
    pub fn sums_len(&self) -> usize {
        self.sums_by() * self.cols.part(0) * self.parts
    }

    /// Elements of A for a block's steps, and a vector beyond them.
    pub fn panels_len(&self) -> usize {
        self.sums_by() * self.steps + self.lanes
    }

    /// The blocks of C, the steps of k of each one after the other.
    #[inline(always)]
    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        let (cols, steps) = (self.cols.count, self.k.div_ceil(self.steps));
        (0..self.rows.count * cols * steps).map(move |index| {
            let (of_rows, of_cols, first) = (index / steps / cols, index / steps % cols, index % steps * self.steps);
            Piece {
                row: self.rows.start(of_rows) * self.lanes,
                vectors: self.rows.part(of_rows),
                col: self.cols.start(of_cols),
                cols: self.cols.part(of_cols),
                first,
                steps: self.steps.min(self.k - first),
            }
        })
    }

    /// The rows of a block in parts that fit into registers.
    #[inline(always)]
    pub fn panels(&self, piece: &Piece) -> impl Iterator<Item = Vectors> {
        let (cut, lanes, row) = (Cut::new(piece.vectors, MOST_VECTORS), self.lanes, piece.row);
        (0..cut.count).map(move |index| {
            let offset = cut.start(index) * lanes;
            Vectors { row: row + offset, offset, count: cut.part(index) }
        })
    }

    /// So many columns in tiles that fit into registers, beside each other.
    #[inline(always)]
    pub fn tiles(&self, vectors: usize, cols: usize) -> impl Iterator<Item = Tiles> {
        let (mut next, mut width) = (0, self.most_columns[vectors]);
        std::iter::from_fn(move || {
            while width > cols - next {
                width /= 2;
            }
            // A width of 0 has as many zeros as there are bits: no columns are left.
            let tiles = Tiles { col: next, width, count: (cols - next).checked_shr(width.trailing_zeros())? };
            next += tiles.count * width;
            Some(tiles)
        })
    }
}
