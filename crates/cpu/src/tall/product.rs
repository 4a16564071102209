//! One product: piece after piece, in panels of A and tiles of C.

use super::Output;
use super::ask::{Ask, Asks};
use super::cuts::{Cuts, Piece, Tiles};
use super::finish::Finish;
use super::panel::{Panel, Rows, Vectors};
use super::tile::{Operands, any_tiles};
use crate::job::Job;
use crate::simd::{Simd, Work};
use crate::stage::end_of_stream;

/// One product.
pub struct Product<'a, S: Simd, const PARTS: usize> {
    pub job: &'a Job<S::Real>,
    pub index: usize,
    pub cuts: &'a Cuts,
    /// The rows of A, and the columns of B, which are rows of its transpose.
    pub a: Rows<S::Real>,
    pub b: Rows<S::Real>,
    /// Of a block: (columns, PARTS, rows), with a gap after the rows.
    pub sums: *mut S::Real,
    /// What is copied of A, and of B behind it.
    pub panels: *mut S::Real,
    pub output: Output,
}

impl<S: Simd, const PARTS: usize> Work for Product<'_, S, PARTS> {
    #[inline(always)]
    unsafe fn run(self) {
        let Product { job, index, cuts, sums, .. } = self;
        // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions, the matrices and the room; pieces are parts of C and of k.
        unsafe {
            let finish = Finish::<S, PARTS>::new(job, index, self.output);
            for piece in cuts.pieces() {
                match cuts.is_tall {
                    true => self.tall(&piece),
                    false => self.wide(&piece),
                }
                if piece.first + piece.steps == job.k {
                    finish.block(&piece, sums, cuts.sums_by());
                }
            }
            if finish.streams() {
                end_of_stream();
            }
        }
    }
}

impl<S: Simd, const PARTS: usize> Product<'_, S, PARTS> {
    /// A piece of at least as many rows as columns: panel after panel of A.
    ///
    /// # Safety
    /// As [`Work::run`].
    #[inline(always)]
    unsafe fn tall(&self, piece: &Piece) {
        let cuts = self.cuts;
        // SAFETY: as the caller promised.
        unsafe { self.copy_b(piece) }
        for vectors in cuts.panels(piece) {
            let end = (vectors.row + vectors.count * S::LANES).div_ceil(PARTS).saturating_sub(piece.col);
            let wanted = if self.output.lower { end } else { piece.cols };
            let tiles = || cuts.tiles(vectors.count, piece.cols).map(|tiles| tiles.before(wanted));
            let mut asks = self.panel_ahead(piece, vectors, || tiles().map(|tiles| tiles.count).sum());
            // SAFETY: the panel and the columns are the piece's.
            unsafe {
                let panel = self.panel(piece, vectors, true);
                for tiles in tiles() {
                    self.multiply::<true>(piece, (vectors, panel), tiles, &mut asks);
                }
            }
        }
    }

    /// A piece of more columns than rows: what is long is B, a few columns of which go with all panels of A.
    ///
    /// # Safety
    /// As [`Work::run`].
    #[inline(always)]
    unsafe fn wide(&self, piece: &Piece) {
        let cuts = self.cuts;
        // What was copied is there still, if it was all of A.
        let is_new = piece.col == 0 || cuts.rows.count > 1 || piece.steps < self.job.k;
        let most = cuts.panels(piece).map(|vectors| vectors.count).max().unwrap_or(1);
        for tile in cuts.tiles(most, piece.cols).flat_map(Tiles::each) {
            let mut asks = Asks::new(self.columns_ahead(piece, &tile), Ask::NOTHING);
            for vectors in cuts.panels(piece) {
                // SAFETY: the panel and the columns are the piece's.
                unsafe {
                    let panel = self.panel(piece, vectors, is_new && tile.col == 0);
                    self.multiply::<false>(piece, (vectors, panel), tile, &mut asks);
                }
            }
        }
    }

    /// A panel of a piece; if it `is_new`, what has to be copied is not yet.
    ///
    /// # Safety
    /// As [`Work::run`].
    #[inline(always)]
    unsafe fn panel(&self, piece: &Piece, vectors: Vectors, is_new: bool) -> Panel<S::Real> {
        let (a, room) = (self.a, self.panels.wrapping_add(vectors.offset * self.cuts.steps));
        let by = vectors.count * S::LANES;
        if let Some(panel) = a.as_they_lie::<S, PARTS>(vectors, (piece.first, piece.steps)) {
            return panel;
        }
        if is_new {
            // SAFETY: the rows and steps are the piece's, for which the caller promised A and the room.
            unsafe { a.copy::<S, PARTS>(vectors, (piece.first, piece.steps), room, by) }
        }
        Panel { first: room.cast_const(), by }
    }

    /// Copies a piece's part of B, if there is room for it.
    ///
    /// # Safety
    /// As [`Work::run`].
    #[inline(always)]
    unsafe fn copy_b(&self, piece: &Piece) {
        if let Some(by) = self.cuts.copied_b() {
            let vectors = Vectors { row: piece.col * PARTS, offset: 0, count: (piece.cols * PARTS).div_ceil(S::LANES) };
            // SAFETY: the columns and steps are the piece's, for which the caller promised B and the room.
            unsafe { self.b.copy::<S, PARTS>(vectors, (piece.first, piece.steps), self.copied_b(), by) }
        }
    }

    /// Where to.
    #[inline(always)]
    fn copied_b(&self) -> *mut S::Real {
        self.panels.wrapping_add(self.cuts.panels_len())
    }

    /// The sums of a panel's tiles.
    ///
    /// # Safety
    /// As [`Work::run`]; the panel is one of the piece's, and the columns are.
    #[inline(always)]
    unsafe fn multiply<const OFTEN: bool>(
        &self,
        piece: &Piece,
        (vectors, panel): (Vectors, Panel<S::Real>),
        Tiles { col, width, count }: Tiles,
        asks: &mut Asks<S::Real>,
    ) {
        let (b, by) = (self.b, self.cuts.sums_by());
        let (b, b_row, b_col) = match self.cuts.copied_b() {
            Some(by) => (self.copied_b().wrapping_add(col * PARTS).cast_const(), by, PARTS),
            None => (b.first.wrapping_add(piece.first * b.col + (piece.col + col) * b.row), b.col, b.row),
        };
        let sums = self.sums.wrapping_add(vectors.offset + col * PARTS * by);
        let at = Operands { a: panel.first, a_by: panel.by, b, b_row, b_col, sums, sums_by: by };
        // SAFETY: the columns and steps are the piece's, for which the caller promised B and the sums.
        unsafe { any_tiles::<S, PARTS, OFTEN>((vectors.count, width), count, piece.steps, at, piece.first > 0, asks) }
    }
}
