//! What the kernels of batches and their launches agree on: where matrices lie in shared memory, and how they get there.
//!
//! A tile is several whole problems. Each operand has its part of a stage, in which the matrices follow one another as
//! they lie in device memory: by lines, which are columns or rows. So a tile of a packed batch is one run of bytes on both
//! sides. Where that would put what lanes read together into few banks, lines or matrices are spaced ([`SharedSide`]).

use crate::Strides;

/// Threads of one product from which the lines of a matrix are spaced, and not the matrices: a warp then reads few
/// matrices at a time, but many lines.
pub const SPACED_LINES: u32 = 16;

/// A matrix in shared memory, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSide {
    /// Its lines: columns, or rows.
    pub lines: u32,
    /// Elements a line.
    pub len: u32,
    /// From a line to the next.
    pub pitch: u32,
    /// From a matrix to the next: 0 where all problems have the same.
    pub each: u32,
}

/// The same number of elements, or as many as make an odd number of 16-byte pieces where they are whole pieces: lanes that
/// are so far apart meet in no bank before they have passed all.
const fn odd(len: u32, width: u32) -> u32 {
    if len % width == 0 && len > 0 { ((len / width) | 1) * width } else { len }
}

impl SharedSide {
    /// Of a rows x cols matrix, `width` elements being 16 bytes; `owners` threads compute a product.
    pub const fn new(rows: u32, cols: u32, code: Code, width: u32, owners: u32) -> SharedSide {
        let (len, lines) = if code.by_columns { (rows, cols) } else { (cols, rows) };
        let (pitch, each) = if owners >= SPACED_LINES {
            let pitch = odd(len, width);
            (pitch, pitch * lines)
        } else {
            (len, odd(len * lines, width))
        };
        SharedSide { lines, len, pitch, each: if code.single { 0 } else { each } }
    }

    /// The runs of a matrix that are runs in device memory too, `ld` elements from line to line and `step` along a line:
    /// their number and their length. The whole matrix where neither side has gaps.
    pub const fn runs(&self, ld: u64, step: u64) -> (u32, u32) {
        if self.pitch == self.len && ld == self.len as u64 * step {
            (1, self.len * self.lines)
        } else {
            (self.lines, self.len)
        }
    }

    /// Whether a tile is a single run, the matrices being `stride` elements apart.
    pub const fn is_whole(&self, ld: u64, step: u64, stride: u64) -> bool {
        let matrix = self.len * self.lines;
        step == 1 && ld == self.len as u64 && stride == matrix as u64 && self.each == matrix
    }

    /// Elements of a stage for `problems` matrices: whole pieces, and one more since a tile need not start at one.
    pub const fn region_len(&self, problems: u32, width: u32) -> u32 {
        (problems.saturating_sub(1) * self.each + self.lines * self.pitch + width).next_multiple_of(width)
    }
}

/// How an operand lies in device memory, as kernels are told: a byte of the entry's `codes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Whether its lines are its columns.
    pub by_columns: bool,
    /// Whether all its runs start at multiples of 16 bytes and are whole pieces.
    pub wide: bool,
    /// Whether the matrices are listed: element offsets, 64 bits each.
    pub listed: bool,
    /// Whether all problems have the same matrix.
    pub single: bool,
    /// Elements by which the first matrix starts past a multiple of 16 bytes.
    pub skew: u32,
}

impl Code {
    /// As a byte.
    pub const fn pack(self) -> u32 {
        self.by_columns as u32
            | (self.wide as u32) << 1
            | (self.listed as u32) << 2
            | (self.single as u32) << 3
            | (self.skew & 3) << 4
    }

    /// From a byte.
    pub const fn unpack(code: u32) -> Code {
        Code {
            by_columns: code & 1 != 0,
            wide: code & 2 != 0,
            listed: code & 4 != 0,
            single: code & 8 != 0,
            skew: code >> 4 & 3,
        }
    }
}

/// Bit of an entry's `codes` from which on those of conjugates are: A's, then B's. A's byte is the first, then B's, C's.
pub const CONJ_BIT: u32 = 24;

/// The most problems of a launch: their number counts in 32 bits, with room for tiles that hang over.
pub const MOST_PROBLEMS: u64 = 1 << 30;

/// A tile of several problems in shared memory, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Where B's part of a stage begins; A's is the first.
    pub b_at: u32,
    /// Where C's begins, if C is read; else it is behind the last stage.
    pub c_at: u32,
    /// Elements a stage.
    pub stage_len: u32,
    /// Of what is behind the last stage.
    out_len: u32,
}

impl Tile {
    /// Of `problems` problems whose A, B and C lie so.
    pub const fn new(sides: [SharedSide; 3], problems: u32, reads_c: bool, width: u32) -> Tile {
        let [a, b, c] = sides;
        let (b_at, out_len) = (a.region_len(problems, width), c.region_len(problems, width));
        let c_at = b_at + b.region_len(problems, width);
        let (stage_len, out_len) = if reads_c { (c_at + out_len, 0) } else { (c_at, out_len) };
        Tile { b_at, c_at, stage_len, out_len }
    }

    /// Elements of all stages, and what is behind them.
    pub const fn shared_len(&self, stages: u32) -> u32 {
        stages * self.stage_len + self.out_len
    }
}

/// The two stages of a warp that has a problem of its own in shared memory, A and B by columns, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpTile {
    /// From a column to the next: room for 8·TM rows, and 16 bytes more, so that eight columns meet in no bank.
    pub pitch: u32,
    /// Where B begins.
    pub b_at: u32,
    /// Elements a stage.
    pub stage_len: u32,
}

impl WarpTile {
    /// Of n columns of B and k of A, rounded up to whole pieces of `width` elements; of lanes with `tm` rows.
    pub const fn new(n: u32, k: u32, tm: u32, width: u32) -> WarpTile {
        let pitch = 8 * tm + width;
        let b_at = k.next_multiple_of(width) * pitch;
        WarpTile { pitch, b_at, stage_len: b_at + n * pitch }
    }

    /// Elements of both stages.
    pub const fn shared_len(&self) -> u32 {
        2 * self.stage_len
    }
}

/// A whole matrix in shared memory as it lies in device memory, in elements.
///
/// Lines of whole pieces of 16 bytes are spaced, so that what lanes load together meets in few banks: rows or columns that are an odd number
/// of pieces apart, of elements of 8 and 16 bytes twice an odd number. What is not whole pieces keeps its place: it begins as far past a
/// piece as in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatSide {
    /// Its lines: columns, or rows.
    pub lines: u32,
    /// Elements a line.
    pub len: u32,
    /// From a line to the next.
    pub pitch: u32,
    /// Whether lines are whole pieces, which move one by one.
    pub by_lines: bool,
}

impl FlatSide {
    /// Of a rows x cols matrix, `width` elements being 16 bytes.
    pub const fn new(rows: u32, cols: u32, code: Code, width: u32) -> FlatSide {
        let (len, lines) = if code.by_columns { (rows, cols) } else { (cols, rows) };
        let by_lines = code.wide && len % width == 0;
        let pieces = len / width;
        let spaced = if width == 4 { pieces | 1 } else { (pieces + 1) / 4 * 4 + 2 };
        FlatSide { lines, len, pitch: if by_lines { spaced * width } else { len }, by_lines }
    }

    /// Elements of a matrix and the room behind its lines: as far is the next one behind.
    pub const fn each(&self) -> u32 {
        self.lines * self.pitch
    }

    /// Elements that so many matrices take, whole pieces, wherever the first begins within one.
    const fn region_len(&self, problems: u32, width: u32) -> u32 {
        (problems * self.each()).next_multiple_of(width) + if self.by_lines || width == 1 { 0 } else { width }
    }
}

/// The stages of warps that have whole matrices in shared memory, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatTile {
    /// A, B and C.
    pub sides: [FlatSide; 3],
    /// Where they begin in a stage; of a C behind the last one without meaning.
    pub places: [u32; 3],
    /// Whether C is read with A and B, in their stage.
    pub c_is_staged: bool,
    /// Whether it is read while they are multiplied, behind the last stage: an SM holds more blocks.
    pub c_is_late: bool,
    /// Whether it is not read, and lies over them once they are multiplied; else it is written behind the last stage.
    pub c_is_over: bool,
    /// Elements a stage.
    pub stage_len: u32,
    /// Of what is behind the last stage.
    out_len: u32,
}

impl FlatTile {
    /// Of so many m x n x k problems whose matrices lie so, `width` elements being 16 bytes, in an entry that reads the C of a single problem
    /// `late` or not.
    pub const fn new(
        [m, n, k]: [u32; 3],
        codes: [Code; 3],
        problems: u32,
        reads_c: bool,
        width: u32,
        late: bool,
    ) -> FlatTile {
        let [a, b, c] = codes;
        let sides = [FlatSide::new(m, k, a, width), FlatSide::new(k, n, b, width), FlatSide::new(m, n, c, width)];
        let b_at = sides[0].region_len(problems, width);
        let c_at = b_at + sides[1].region_len(problems, width);
        let c_len = sides[2].region_len(problems, width);
        let c_is_late = late && reads_c && problems == 1;
        let c_is_staged = reads_c && !c_is_late;
        // Of several problems the next one's A and B are there yet.
        let c_is_over = !reads_c && problems == 1 && c_len <= c_at;
        let (stage_len, out_len) = match (c_is_staged, c_is_over) {
            (true, _) => (c_at + c_len, 0),
            (false, true) => (c_at, 0),
            (false, false) => (c_at, c_len),
        };
        let places = [0, b_at, if c_is_staged { c_at } else { 0 }];
        FlatTile { sides, places, c_is_staged, c_is_late, c_is_over, stage_len, out_len }
    }

    /// Elements of all stages, and what is behind them.
    pub const fn shared_len(&self, stages: u32) -> u32 {
        stages * self.stage_len + self.out_len
    }
}

/// A stage of problems that come by bulk copies, in elements: A's, B's and C's, each from whole pieces of 16 bytes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkTile {
    /// Where B's begin.
    pub b_at: u32,
    /// Where C's begin.
    pub c_at: u32,
    /// Elements a stage.
    pub stage_len: u32,
}

impl BulkTile {
    /// Of so many m x n x k problems, `width` elements being 16 bytes.
    pub const fn new([m, n, k]: [u32; 3], problems: u32, width: u32) -> BulkTile {
        let b_at = (problems * m * k).next_multiple_of(width);
        let c_at = b_at + (problems * k * n).next_multiple_of(width);
        BulkTile { b_at, c_at, stage_len: c_at + (problems * m * n).next_multiple_of(width) }
    }

    /// The same where C lies over A and B.
    pub const fn over([m, n, k]: [u32; 3], problems: u32, width: u32) -> BulkTile {
        let BulkTile { b_at, c_at: factors_len, .. } = BulkTile::new([m, n, k], problems, width);
        let c_len = (problems * m * n).next_multiple_of(width);
        BulkTile { b_at, c_at: 0, stage_len: if c_len > factors_len { c_len } else { factors_len } }
    }

    /// Bytes of so many stages, and of their mbarriers, of elements of so many bytes.
    pub const fn shared_bytes(&self, stages: u32, bytes: u32) -> u32 {
        stages * (self.stage_len * bytes + 8)
    }
}

/// An operand of a batch as the caller has it, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lie {
    /// Of each matrix.
    pub strides: Strides,
    /// From a matrix to the next; of listed ones without meaning.
    pub stride: u64,
    /// Whether the matrices are listed.
    pub listed: bool,
    /// Elements by which the first matrix starts past a multiple of 16 bytes; of listed ones 0 if all start at one.
    pub skew: u32,
}

impl Lie {
    /// Packed column-major matrices, one after the other, from a multiple of 16 bytes on.
    pub const fn packed(rows: u64, cols: u64) -> Lie {
        Lie { strides: Strides::column_major(rows), stride: rows * cols, listed: false, skew: 0 }
    }

    /// Each transposed.
    pub const fn t(self) -> Lie {
        Lie { strides: self.strides.transposed(), ..self }
    }

    /// The same with strides that lead nowhere as if the matrices were packed.
    const fn plain(self, rows: u32, cols: u32, count: u64) -> Lie {
        let (m, n) = (rows as u64, cols as u64);
        let Strides { mut row, mut col } = self.strides;
        let mut stride = self.stride;
        if m <= 1 {
            // One row: as a column or as a row, whichever has its elements next to each other.
            row = if col == 1 { n } else { 1 };
        } else if n <= 1 {
            col = if row == 1 { m } else { 1 };
        }
        if count <= 1 {
            stride = m * n;
        }
        Lie { strides: Strides { row, col }, stride, ..self }
    }
}

/// An operand as a launch passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laid {
    /// What the entry is told.
    pub code: Code,
    /// Strides of a matrix.
    pub strides: Strides,
    /// From a matrix to the next.
    pub stride: u64,
    /// In shared memory.
    pub shared: SharedSide,
}

impl Laid {
    /// Whether a tile of it is one run of device memory that moves by pieces, or nothing: what entries for packed batches take.
    pub fn is_packed(&self) -> bool {
        let Strides { row, col } = self.strides;
        let (step, ld) = if self.code.by_columns { (row, col) } else { (col, row) };
        let SharedSide { len, lines, .. } = self.shared;
        if len * lines == 0 {
            return true;
        }
        let linear = step == 1 && ld == u64::from(len) && self.stride == u64::from(len * lines);
        let whole = self.shared.is_whole(ld, step, self.stride);
        !self.code.listed && !self.code.single && linear && (whole || self.code.wide)
    }
}

impl Laid {
    /// Whether each matrix is one run of device memory.
    pub fn is_flat(&self) -> bool {
        let Strides { row, col } = self.strides;
        let (step, ld) = if self.code.by_columns { (row, col) } else { (col, row) };
        let SharedSide { len, lines, .. } = self.shared;
        len * lines == 0 || (step == 1 || len == 1) && (ld == u64::from(len) || lines == 1)
    }

    /// Whether all matrices together are one run.
    pub fn is_seamless(&self) -> bool {
        let SharedSide { len, lines, .. } = self.shared;
        self.is_flat() && !self.code.listed && !self.code.single && self.stride == u64::from(len * lines)
    }
}

/// How an operand of rows x cols matrices is passed to an entry of which `owners` threads compute a product.
pub const fn laid(lie: Lie, (rows, cols): (u32, u32), count: u64, width: u32, owners: u32) -> Laid {
    let Lie { strides, stride, listed, skew } = lie.plain(rows, cols, count);
    let by_columns = strides.row <= strides.col;
    let (step, ld) = if by_columns { (strides.row, strides.col) } else { (strides.col, strides.row) };
    let single = !listed && stride == 0 && rows * cols > 0;
    let code = Code { by_columns, wide: false, listed, single, skew: skew % width };
    let shared = SharedSide::new(rows, cols, code, width, owners);
    let (runs, run_len) = shared.runs(ld, step);
    let w = width as u64;
    let starts = skew == 0 && (runs == 1 || ld % w == 0) && (listed || single || stride % w == 0);
    let wide = starts && step == 1 && run_len % width == 0 && shared.pitch % width == 0 && shared.each % width == 0;
    Laid { code: Code { wide, ..code }, strides, stride, shared }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for bits in 0..64 {
            assert_eq!(Code::unpack(bits).pack(), bits);
        }
    }

    /// Lanes that read neighbouring lines, or matrices, meet in no bank before eight pieces have passed.
    #[test]
    fn what_lanes_read_together_is_an_odd_number_of_pieces_apart() {
        let code = Code { by_columns: true, wide: false, listed: false, single: false, skew: 0 };
        for n in 1..=32 {
            for (width, owners) in [(4, 1), (4, 64), (2, 15), (2, 16), (1, 4), (1, 128)] {
                let side = SharedSide::new(n, n, code, width, owners);
                let apart = if owners >= SPACED_LINES { side.pitch } else { side.each };
                assert!(apart % width != 0 || apart / width % 2 == 1, "{n} {width} {owners}: {apart}");
                assert!(side.pitch >= n && side.each >= side.pitch * (n - 1) + n);
                assert_eq!(SharedSide::new(n, n, Code { single: true, ..code }, width, owners).each, 0);
                assert!(side.region_len(3, width) >= 2 * side.each + n * n + width - 1);
            }
        }
    }

    /// What matrices take, wherever they begin; lines of whole pieces are spaced by an odd number, or twice an odd number, of them.
    #[test]
    fn flat_matrices_have_room() {
        let code = |wide| Code { by_columns: true, wide, listed: false, single: false, skew: 0 };
        for (width, len) in [1, 2, 4].into_iter().flat_map(|width| (1..=32).map(move |len| (width, len))) {
            let apart = FlatSide::new(len, 3, code(false), width);
            assert_eq!((apart.pitch, apart.each()), (len, 3 * len));
            assert!(apart.region_len(2, width) >= 6 * len + width - 1 && apart.region_len(2, width) % width == 0);
            let side = FlatSide::new(len, 3, code(true), width);
            assert_eq!(side.by_lines, len % width == 0);
            let pieces = side.pitch / width;
            assert!(side.pitch >= len && side.pitch < len + 4 * width);
            assert!(!side.by_lines || if width == 4 { pieces % 2 == 1 } else { pieces % 4 == 2 }, "{width} {len}");
        }
        let tile = |reads_c| FlatTile::new([5, 3, 7], [code(false); 3], 2, reads_c, 2, true);
        let (reads, writes) = (tile(true), tile(false));
        assert_eq!(reads.shared_len(2), 2 * reads.stage_len);
        assert_eq!(writes.shared_len(3), 3 * writes.stage_len + reads.stage_len - reads.places[2]);
        // Over A and B of a single problem, where it has room.
        let alone = |k| FlatTile::new([5, 3, k], [code(false); 3], 1, false, 2, true);
        assert!(alone(7).c_is_over && alone(7).shared_len(2) == 2 * alone(7).stage_len);
        assert!(!alone(1).c_is_over && !writes.c_is_over && !reads.c_is_over && reads.c_is_staged);
        // What is read late is there once, and not in each stage.
        let [late, staged] = [true, false].map(|late| FlatTile::new([5, 3, 7], [code(false); 3], 1, true, 2, late));
        assert!(late.c_is_late && !late.c_is_staged && staged.c_is_staged && !staged.c_is_late);
        assert_eq!(staged.shared_len(3) - late.shared_len(3), 2 * (staged.stage_len - late.stage_len));
    }

    #[test]
    fn flat_matrices_are_told_from_others() {
        let is_flat = |lie, shape| laid(lie, shape, 7, 2, 1).is_flat();
        let packed = Lie::packed(5, 3);
        for lie in [packed, Lie { stride: 99, ..packed }, Lie { listed: true, skew: 1, ..packed }] {
            assert!(is_flat(lie, (5, 3)) && is_flat(lie.t(), (3, 5)));
        }
        assert!(!is_flat(Lie { strides: Strides::column_major(6), ..packed }, (5, 3)));
        assert!(!is_flat(Lie { strides: Strides { row: 2, col: 10 }, ..packed }, (5, 3)));
        // Strides that are never taken do no harm.
        let far = |row, col| Lie { strides: Strides { row, col }, ..packed };
        assert!(is_flat(far(9, 9), (1, 1)) && is_flat(far(9, 1), (1, 3)) && is_flat(far(1, 9), (3, 1)));
        assert!(!is_flat(far(1, 9), (1, 3)) && is_flat(far(7, 7), (0, 3)));
    }

    #[test]
    fn packed_batches_are_told_from_others() {
        let laid = |lie, owners| laid(lie, (5, 3), 7, 2, owners);
        let packed = Lie::packed(5, 3);
        assert!(laid(packed, 4).is_packed() && laid(packed.t(), 4).shared.len == 3);
        // Odd sizes are one run, wherever they start.
        assert!(laid(Lie { skew: 1, ..packed }, 4).is_packed());
        assert!(
            !laid(Lie { stride: 16, ..packed }, 4).is_packed() && !laid(Lie { listed: true, ..packed }, 4).is_packed()
        );
        let shared = laid(Lie { stride: 0, ..packed }, 4);
        assert!(shared.code.single && !shared.is_packed() && shared.shared.each == 0);
        // Even ones are spaced, so that they move by pieces, which must be aligned.
        let even = |skew| super::laid(Lie { skew, ..Lie::packed(4, 4) }, (4, 4), 7, 2, 4);
        assert!(even(0).is_packed() && even(0).code.wide && !even(1).is_packed());
        // Strides that are never taken do no harm.
        let row = Lie { strides: Strides { row: 99, col: 1 }, ..Lie::packed(1, 6) };
        assert!(super::laid(row, (1, 6), 7, 2, 4).is_packed());
        assert!(super::laid(Lie { stride: 0, ..packed }, (5, 3), 1, 2, 4).is_packed());
        // Nothing of it is multiplied where α = 0: an operand of no elements lies anyhow.
        assert!(
            super::laid(packed, (5, 0), 7, 2, 4).is_packed() && super::laid(packed.t(), (0, 3), 7, 2, 4).is_packed()
        );
    }
}
