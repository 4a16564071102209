//! How an operand lies.

/// How an operand lies in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Unit stride along a row, not down a column.
    pub row_major: bool,
    /// Stride along a line.
    pub step: usize,
    /// Elements between the lines: the leading dimension is the length of a line and this.
    pub pad: usize,
    /// Elements by which its first one misses an address that is a multiple of 256 bytes.
    pub offset: usize,
}

/// By columns, without a gap, from an aligned address on.
pub const PACKED: Storage = Storage { row_major: false, step: 1, pad: 0, offset: 0 };

impl Default for Storage {
    fn default() -> Storage {
        PACKED
    }
}

impl Storage {
    /// By rows or by columns, elements of a line side by side.
    pub fn new(row_major: bool, pad: usize, offset: usize) -> Storage {
        Storage { row_major, pad, offset, ..PACKED }
    }

    /// `c+1@3`: column-major, one element between the columns, three beside the aligned address.
    pub fn name(self) -> String {
        format!("{}+{}@{}", if self.row_major { 'r' } else { 'c' }, self.pad, self.offset)
    }

    /// Row and column stride.
    pub fn strides(self, rows: usize, cols: usize) -> (usize, usize) {
        let line = if self.row_major { cols } else { rows };
        let jump = (line * self.step + self.pad).max(1);
        if self.row_major { (jump, self.step) } else { (self.step, jump) }
    }
}
