//! One product: piece after piece, in panels of A and tiles of C.

use super::ask::Ask;
use super::cuts::{Cuts, Piece};
use super::finish::Finish;
use super::panel::{Panel, Vectors};
use super::tile::{MOST_VECTORS, Operands, any_tile};
use crate::job::Job;
use crate::simd::{Simd, Work};
use crate::stage::end_of_stream;

/// What is asked for is so many bytes ahead: what memory delivers while a load is under way.
const AHEAD_BYTES: usize = 4096;
/// Panels ahead that are asked for where the rows of C are the long side, ..
const PANELS_AHEAD: usize = 4;
/// .. if it has more columns: of fewer the CPU is soon at the next panel by itself.
const FEW_COLUMNS: usize = 4;

/// One product.
pub struct Product<'a, S: Simd, const PARTS: usize> {
    pub job: &'a Job<S::Real>,
    pub index: usize,
    pub cuts: &'a Cuts,
    /// Of a block: (columns, PARTS, rows), with a gap after the rows.
    pub sums: *mut S::Real,
    /// What is copied of A.
    pub panels: *mut S::Real,
    pub past_caches: bool,
}

impl<S: Simd, const PARTS: usize> Work for Product<'_, S, PARTS> {
    #[inline(always)]
    unsafe fn run(self) {
        let Product { job, index, cuts, sums, .. } = self;
        // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions, the matrices and the room; pieces are parts of C and of k.
        unsafe {
            let finish = Finish::<S, PARTS>::new(job, index, self.past_caches);
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
        for vectors in cuts.panels(piece) {
            let mut ask = self.panel_ahead(piece, vectors);
            // SAFETY: the panel and the columns are the piece's.
            unsafe {
                let panel = self.panel(piece, vectors, true);
                for tile in cuts.tiles(vectors.count, piece.cols) {
                    self.tile(piece, (vectors, panel), tile, &mut ask);
                }
            }
        }
    }

    /// The panel that is to be asked for: of the same block, or of its next steps.
    #[inline(always)]
    fn panel_ahead(&self, piece: &Piece, vectors: Vectors) -> Ask<S::Real> {
        let (cuts, job) = (self.cuts, self.job);
        if job.a.row != PARTS || piece.cols <= FEW_COLUMNS {
            return Ask::NOTHING;
        }
        let (rows, panel) = (piece.vectors * S::LANES, vectors.count * S::LANES);
        let mut row = vectors.offset + (PANELS_AHEAD * MOST_VECTORS * S::LANES).min(rows);
        let mut l = piece.first;
        if row >= rows {
            (row, l) = (row - rows, l + piece.steps);
        }
        // SAFETY: the product is one of the job's; addresses alone, which may be beyond A where it ends.
        let a = unsafe { job.a.at(self.index) }.wrapping_add(piece.row + row).wrapping_add(l.wrapping_mul(job.a.col));
        let tiles = cuts.tiles(vectors.count, piece.cols).count();
        Ask::runs(a, (piece.steps, job.a.col), panel, piece.steps * tiles)
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
        for (turn, (col, width)) in cuts.tiles(most, piece.cols).enumerate() {
            let mut ask = self.columns_ahead(piece, (col, width));
            for vectors in cuts.panels(piece) {
                // SAFETY: the panel and the columns are the piece's.
                unsafe {
                    let panel = self.panel(piece, vectors, is_new && turn == 0);
                    self.tile(piece, (vectors, panel), (col, width), &mut ask);
                }
            }
        }
    }

    /// The columns of B that are to be asked for: of the same block, or of its next steps.
    #[inline(always)]
    fn columns_ahead(&self, piece: &Piece, (col, width): (usize, usize)) -> Ask<S::Real> {
        let job = self.job;
        let len = piece.steps * PARTS;
        // Of longer rows, and such with gaps, the CPU asks by itself.
        if job.b.row != PARTS || job.b.col != len || width * len * size_of::<S::Real>() > AHEAD_BYTES {
            return Ask::NOTHING;
        }
        let ahead = (AHEAD_BYTES / size_of::<S::Real>()).div_ceil(width * len) * width;
        let (mut col, mut l) = (col + ahead, piece.first);
        if col >= piece.cols && piece.first + piece.steps < job.k {
            (col, l) = ((col - piece.cols).min(piece.cols - width), l + piece.steps);
        }
        // SAFETY: the product is one of the job's; addresses alone, which may be beyond B where it ends.
        let b = unsafe { job.b.at(self.index) }.wrapping_add(l * PARTS + (piece.col + col).wrapping_mul(job.b.col));
        Ask::runs(b, (width, job.b.col), len, piece.steps * self.cuts.panels(piece).count())
    }

    /// A panel of a piece; if it `is_new`, what has to be copied is not yet.
    ///
    /// # Safety
    /// As [`Work::run`].
    #[inline(always)]
    unsafe fn panel(&self, piece: &Piece, vectors: Vectors, is_new: bool) -> Panel<S::Real> {
        let job = self.job;
        let room = self.panels.wrapping_add(vectors.offset * self.cuts.steps);
        // SAFETY: the rows and steps are the piece's, for which the caller promised A and the room.
        unsafe {
            let a = job.a.at(self.index);
            if let Some(panel) = Panel::as_it_lies::<S, PARTS>(a, job, vectors, piece.first) {
                return panel;
            }
            if is_new {
                Panel::copy::<S, PARTS>(a, job, vectors, (piece.first, piece.steps), room);
            }
        }
        Panel::copied::<S>(vectors, room)
    }

    /// # Safety
    /// As [`Work::run`]; the panel is one of the piece's, and the columns are.
    #[inline(always)]
    unsafe fn tile(
        &self,
        piece: &Piece,
        (vectors, panel): (Vectors, Panel<S::Real>),
        (col, width): (usize, usize),
        ask: &mut Ask<S::Real>,
    ) {
        let (job, by) = (self.job, self.cuts.sums_by());
        // SAFETY: the columns and steps are the piece's, for which the caller promised B and the sums.
        unsafe {
            let at = Operands {
                a: panel.first,
                a_by: panel.by,
                b: job.b.at(self.index).add(piece.first * job.b.row + (piece.col + col) * job.b.col),
                b_row: job.b.row,
                b_col: job.b.col,
                sums: self.sums.add(vectors.offset + col * PARTS * by),
                sums_by: by,
            };
            any_tile::<S, PARTS>((vectors.count, width), piece.steps, at, piece.first > 0, ask);
        }
    }
}
