//! What is asked for while a piece is computed.

use super::ask::{Ask, Asks};
use super::cuts::{Piece, Tiles};
use super::panel::{Rows, Vectors};
use super::product::Product;
use super::tile::MOST_VECTORS;
use crate::simd::Simd;

/// What is asked for is so many bytes ahead: what memory delivers while a load is under way.
const AHEAD_BYTES: usize = 4096;
/// Panels ahead that are asked for where the rows of C are the long side, ..
const PANELS_AHEAD: usize = 4;
/// .. if it has more columns: of fewer the CPU is soon at the next panel by itself.
const FEW_COLUMNS: usize = 4;

impl<S: Simd, const PARTS: usize> Product<'_, S, PARTS> {
    /// What so many tiles of a panel ask for: of A a later panel; where C is small, of A and of B, unless there is one tile or B is taken to be A, what
    /// the next steps take.
    #[inline(always)]
    pub fn panel_ahead(&self, piece: &Piece, vectors: Vectors, tiles: impl Fn() -> usize) -> Asks<S::Real> {
        if piece.cols <= FEW_COLUMNS {
            return Asks::NOTHING;
        }
        let tiles = tiles();
        if !self.cuts.is_small() {
            return Asks::new(self.rows_ahead(piece, vectors, tiles), Ask::NOTHING);
        }
        let share = |vector: usize| piece.cols * vector / piece.vectors;
        let (first, end) = (vectors.offset / S::LANES, vectors.offset / S::LANES + vectors.count);
        let cols = (piece.col + share(first), share(end) - share(first));
        // Of a triangle they are taken to be one, as a Gram matrix's are.
        let of_b = if self.output.lower { 0 } else { tiles / 2 };
        let rows = (vectors.count * S::LANES).min(self.job.m * PARTS - vectors.row) / PARTS;
        // B's rows the CPU asks for by itself as well: with A's steps they are too much for the first-level cache.
        let far = of_b > 0 && self.b.row == PARTS;
        Asks::new(
            self.steps_ahead(self.a, (vectors.row / PARTS, rows), piece, tiles - of_b).past_first(far),
            self.steps_ahead(self.b, cols, piece, of_b).past_first(far),
        )
    }

    /// The next steps of some rows of an operand.
    #[inline(always)]
    fn steps_ahead(
        &self,
        from: Rows<S::Real>,
        (row, rows): (usize, usize),
        piece: &Piece,
        tiles: usize,
    ) -> Ask<S::Real> {
        let l = piece.first + piece.steps;
        let steps = piece.steps.min(self.job.k - l);
        if steps == 0 || tiles == 0 {
            return Ask::NOTHING;
        }
        let at = from.first.wrapping_add(row * from.row + l * from.col);
        match (from.row == PARTS, from.col == PARTS) {
            (true, _) => Ask::runs(at, (steps, from.col), rows * PARTS, piece.steps * tiles),
            (_, true) => Ask::runs(at, (rows, from.row), steps * PARTS, piece.steps * tiles),
            _ => Ask::NOTHING,
        }
    }

    /// A panel of the same block, or of its next steps.
    #[inline(always)]
    fn rows_ahead(&self, piece: &Piece, vectors: Vectors, tiles: usize) -> Ask<S::Real> {
        let a = self.a;
        if a.row != PARTS {
            return Ask::NOTHING;
        }
        let (rows, panel) = (piece.vectors * S::LANES, vectors.count * S::LANES);
        let mut row = vectors.offset + (PANELS_AHEAD * MOST_VECTORS * S::LANES).min(rows);
        let mut l = piece.first;
        if row >= rows {
            (row, l) = (row - rows, l + piece.steps);
        }
        // Beyond A where it ends.
        let from = a.first.wrapping_add(piece.row + row).wrapping_add(l.wrapping_mul(a.col));
        Ask::runs(from, (piece.steps, a.col), panel, piece.steps * tiles)
    }

    /// The columns of B that are to be asked for: of the same block, or of its next steps.
    #[inline(always)]
    pub fn columns_ahead(&self, piece: &Piece, &Tiles { col, width, .. }: &Tiles) -> Ask<S::Real> {
        let (b, len) = (self.b, piece.steps * PARTS);
        // Of longer rows, and such with gaps, the CPU asks by itself.
        if b.col != PARTS || b.row != len || width * len * size_of::<S::Real>() > AHEAD_BYTES {
            return Ask::NOTHING;
        }
        let ahead = (AHEAD_BYTES / size_of::<S::Real>()).div_ceil(width * len) * width;
        let (mut col, mut l) = (col + ahead, piece.first);
        if col >= piece.cols && piece.first + piece.steps < self.job.k {
            (col, l) = ((col - piece.cols).min(piece.cols - width), l + piece.steps);
        }
        // Beyond B where it ends.
        let from = b.first.wrapping_add(l * PARTS + (piece.col + col).wrapping_mul(b.row));
        Ask::runs(from, (width, b.row), len, piece.steps * self.cuts.panels(piece).count())
    }
}
