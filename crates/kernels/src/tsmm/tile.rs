//! Tiles of rows on their way between device memory and shared memory, in the order in which they lie.
//!
//! # Idea
//! A tile of whole rows of a packed row-major matrix is one run of memory, whatever the width: it is copied by pieces of
//! 16 bytes, and C's is stored by them, so that every sector is whole for odd widths too. A tile of a column-major matrix
//! is a run a column; one with a larger leading dimension a run a row. Runs that do not start at multiples of 16 bytes
//! are copied by elements. Which of it holds is the same for all threads.
//!
//! # In shared memory
//! Element x of the tile, in that order, lies at [`place`]: a piece is left out after every 8, and after every 64, so that
//! the rows that neighbouring lanes read lie in different banks for every width that is a power of two.

use cuda_std::prelude::*;
use model::variants::tsmm::place_of_piece;

/// Pieces of a run that a thread loads before it stores the first.
const TOGETHER: u32 = 4;

/// Where element `x` of a tile lies.
#[inline(always)]
pub(super) fn place<T: Scalar>(x: u32) -> u32 {
    let width = T::WIDTH as u32;
    place_of_piece(x / width) * width + x % width
}

/// Where the copies of a thread lie: from which line and how far along it, and what leads to its next.
#[derive(Clone, Copy)]
struct Turns {
    /// Copies a line.
    each: u32,
    line: u32,
    along: u32,
    lines_on: u32,
    along_on: u32,
}

impl Turns {
    /// Of this thread among `threads`, with `each` copies a line, at least 1.
    #[inline(always)]
    fn new(each: u32, threads: u32) -> Self {
        let own = thread::thread_idx_x();
        Turns { each, line: own / each, along: own % each, lines_on: threads / each, along_on: threads % each }
    }
}

/// An operand of m rows that is cut into tiles of `rows`.
pub(super) struct Rows<T> {
    base: Global<T>,
    m: u32,
    cols: u32,
    /// Rows of a whole tile.
    rows: u32,
    /// Threads of the block.
    threads: u32,
    /// Strides in memory.
    row: u64,
    col: u64,
    /// Whether its lines are its columns.
    by_columns: bool,
    /// Whether a tile is a single run.
    single: bool,
    /// Elements that are copied together: 1 or 16 bytes' worth.
    unit: u32,
    /// Strides in the tile.
    pub(super) down: u32,
    pub(super) across: u32,
    turns: Turns,
}

impl<T: Scalar> Rows<T> {
    const WIDTH: u32 = T::WIDTH as u32;
    const BYTES: u32 = size_of::<T>() as u32;

    /// `rows` is a multiple of 16, `threads` of 64.
    #[inline(always)]
    pub(super) fn new(base: Global<T>, (row, col): (u64, u64), (m, cols): (u32, u32), rows: u32, threads: u32) -> Self {
        let by_columns = row == 1;
        let single = if by_columns { cols == 1 } else { col == 1 && row == cols as u64 };
        let (down, across) = if by_columns { (1, rows) } else { (cols, 1) };
        let (ld, line) = if by_columns { (col, rows) } else { (row, cols) };
        let lines_aligned = (by_columns || col == 1) && ld % Self::WIDTH as u64 == 0 && line % Self::WIDTH == 0;
        let unit = if base.is_aligned(16) && (single || lines_aligned) { Self::WIDTH } else { 1 };
        let (_, len) = Self::lines_of(by_columns, single, rows, cols);
        let turns = Turns::new(len.div_ceil(unit).max(1), threads);
        Rows { base, m, cols, rows, threads, row, col, by_columns, single, unit, down, across, turns }
    }

    /// Lines of a tile of so many rows, and elements a line.
    #[inline(always)]
    fn lines_of(by_columns: bool, single: bool, rows: u32, cols: u32) -> (u32, u32) {
        match (by_columns, single) {
            (_, true) => (1, rows * cols),
            (true, _) => (cols, rows),
            (false, _) => (rows, cols),
        }
    }

    /// Rows of the tile that starts at row `first` < m.
    #[inline(always)]
    pub(super) fn rows_from(&self, first: u32) -> u32 {
        (self.m - first).min(self.rows)
    }

    /// Whether the elements of a row are neighbours and each row starts a piece: rows are read and written 16 bytes at a
    /// time.
    #[inline(always)]
    pub(super) fn is_wide(&self) -> bool {
        !self.by_columns && self.cols % Self::WIDTH == 0
    }

    /// Whole pieces of a tile that is a single run, and the elements behind them.
    #[inline(always)]
    fn run(&self, rows: u32) -> (u32, u32) {
        let len = rows * self.cols;
        (len / Self::WIDTH, len % Self::WIDTH)
    }

    /// Places from a piece of a thread to its next, `threads` pieces further on: the threads are a multiple of 64.
    #[inline(always)]
    fn apart(&self) -> u32 {
        place_of_piece(self.threads)
    }

    /// This thread's first piece of a single run: its number, and both its places.
    #[inline(always)]
    fn own(&self, shared: Shared<T>, global: Global<T>) -> (u32, Shared<T>, Global<T>) {
        let piece = thread::thread_idx_x();
        let shared = shared.starting_at(place_of_piece(piece) * Self::WIDTH);
        (piece, shared, global.starting_at((piece * Self::WIDTH) as u64))
    }

    /// And its next.
    #[inline(always)]
    fn on(&self, piece: u32, shared: Shared<T>, global: Global<T>) -> (u32, Shared<T>, Global<T>) {
        let shared = shared.starting_at(self.apart() * Self::WIDTH);
        (piece + self.threads, shared, global.starting_at((self.threads * Self::WIDTH) as u64))
    }

    /// What `each` gets for every copy of this thread: the element of the tile, its distance from the tile's first in
    /// memory, and the elements that are left of its line.
    #[inline(always)]
    fn for_each(&self, rows: u32, mut each: impl FnMut(u32, u64, u32)) {
        let (lines, len) = Self::lines_of(self.by_columns, self.single, rows, self.cols);
        let lines = if len == 0 { 0 } else { lines };
        let turns =
            if rows == self.rows { self.turns } else { Turns::new(len.div_ceil(self.unit).max(1), self.threads) };
        let (pitch, ld) = if self.by_columns { (self.rows, self.col) } else { (self.cols, self.row) };
        let step = if self.by_columns { self.row } else { self.col };
        let (mut line, mut along) = (turns.line, turns.along);
        while line < lines {
            let at = along * self.unit;
            each(line * pitch + at, line as u64 * ld + at as u64 * step, len - at);
            line += turns.lines_on;
            along += turns.along_on;
            if along >= turns.each {
                along -= turns.each;
                line += 1;
            }
        }
    }

    /// Starts copying the tile from row `first` on into shared memory.
    ///
    /// # Safety
    /// first < m, the operand spans its elements, and nobody accesses the tile's place before the copies were waited for.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, into: Shared<T>, first: u32) {
        let from = self.base.starting_at(first as u64 * self.row);
        let rows = self.rows_from(first);
        // SAFETY: elements of the operand; pieces are aligned, as `new` found.
        unsafe {
            if self.single && self.unit == Self::WIDTH {
                let (whole, rest) = self.run(rows);
                let (mut piece, mut into, mut from) = self.own(into, from);
                while piece < whole {
                    ptx::cp_async_16(into.address(0), from.address(0), true);
                    (piece, into, from) = self.on(piece, into, from);
                }
                if piece == whole && rest > 0 {
                    ptx::cp_async_16_first(into.address(0), from.address(0), rest * Self::BYTES);
                }
            } else if self.unit > 1 {
                self.for_each(rows, |x, at, left| {
                    let bytes = left.min(Self::WIDTH) * Self::BYTES;
                    ptx::cp_async_16_first(into.address(place::<T>(x)), from.address(at), bytes);
                });
            } else {
                self.for_each(rows, |x, at, _| copy::<T>(into.address(place::<T>(x)), from.address(at)));
            }
        }
    }

    /// Stores the tile from row `first` on.
    ///
    /// # Safety
    /// first < m, the operand spans its elements, which no other block accesses; a barrier lies behind the tile's writing.
    #[inline(always)]
    pub(super) unsafe fn drain(&self, from: Shared<T>, first: u32) {
        let into = self.base.starting_at(first as u64 * self.row);
        let rows = self.rows_from(first);
        // SAFETY: elements of the operand; pieces are aligned, as `new` found.
        unsafe {
            if self.single && self.unit == Self::WIDTH {
                let (whole, rest) = self.run(rows);
                let (mut piece, mut from, mut into) = self.own(from, into);
                while piece + (TOGETHER - 1) * self.threads < whole {
                    let pieces: [T::Wide; TOGETHER as usize] =
                        core::array::from_fn(|i| from.load_wide(i as u32 * self.apart() * Self::WIDTH));
                    for i in 0..TOGETHER as usize {
                        into.store_wide((i as u32 * self.threads * Self::WIDTH) as u64, |v| pieces[i][v]);
                    }
                    piece += TOGETHER * self.threads;
                    from = from.starting_at(TOGETHER * self.apart() * Self::WIDTH);
                    into = into.starting_at((TOGETHER * self.threads * Self::WIDTH) as u64);
                }
                while piece < whole {
                    let wide = from.load_wide(0);
                    into.store_wide(0, |v| wide[v]);
                    (piece, from, into) = self.on(piece, from, into);
                }
                if piece == whole {
                    for i in 0..rest {
                        into.store(i as u64, from.load(i));
                    }
                }
            } else if self.unit > 1 {
                self.for_each(rows, |x, at, left| {
                    if left >= Self::WIDTH {
                        let wide = from.load_wide(place::<T>(x));
                        into.store_wide(at, |i| wide[i]);
                    } else {
                        // A line's end: fewer elements than a piece has.
                        for i in 0..left {
                            into.store(at + i as u64, from.load(place::<T>(x) + i));
                        }
                    }
                });
            } else {
                self.for_each(rows, |x, at, _| into.store(at, from.load(place::<T>(x))));
            }
        }
    }
}

/// Starts copying an element.
///
/// # Safety
/// Both addresses hold one.
#[inline(always)]
unsafe fn copy<T: Scalar>(into: ptx::SharedAddress, from: ptx::GlobalAddress) {
    // SAFETY: both addresses hold an element, aligned to it, as the caller promised.
    unsafe {
        match size_of::<T>() {
            16 => ptx::cp_async_16(into, from, true),
            8 => ptx::cp_async_8(into, from, true),
            _ => ptx::cp_async_4(into, from, true),
        }
    }
}
