//! An operand in the middle of guarded memory: whatever is no element of it must keep its bytes.

use crate::lab::{Lab, Outcome};
use crate::memory::Memory;
use crate::real::Element;
use host::{MatMut, MatRef, Result};

/// How an operand lies in its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Unit stride along a row, not down a column.
    pub row_major: bool,
    /// Elements between the lines: the leading dimension is the length of a line and this.
    pub pad: usize,
    /// Elements by which its first one misses an address that is a multiple of 256 bytes.
    pub offset: usize,
}

impl Storage {
    /// `c+1@3`: column-major, one element between the columns, three beside the aligned address.
    pub fn name(self) -> String {
        format!("{}+{}@{}", if self.row_major { 'r' } else { 'c' }, self.pad, self.offset)
    }

    /// Row and column stride.
    pub fn strides(self, rows: usize, cols: usize) -> (usize, usize) {
        let line = if self.row_major { cols } else { rows };
        let ld = (line + self.pad).max(1);
        if self.row_major { (ld, 1) } else { (1, ld) }
    }
}

/// A matrix in guarded memory of the device.
///
/// Before and behind it lie `guard` elements, signalling NaN and bytes 0xA5 in turn; between its lines NaN. Where the lab has it touch an
/// end of mapped memory, there are none on that side.
pub struct Operand<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    strides: (usize, usize),
    first: usize,
    /// What the memory holds after [`Operand::reset`].
    content: Vec<T>,
    memory: Memory,
}

impl<T: Element> Operand<T> {
    /// With element (i, j) = `value(i, j)`.
    pub fn new(
        lab: &Lab,
        rows: usize,
        cols: usize,
        storage: Storage,
        mut value: impl FnMut(usize, usize) -> T,
    ) -> Outcome<Self> {
        let strides = storage.strides(rows, cols);
        let span = match rows == 0 || cols == 0 {
            true => 0,
            false => strides.0 * (rows - 1) + strides.1 * (cols - 1) + 1,
        };
        let [first, behind] = lab.guards(storage.offset);
        let guards = |at: usize| if at % 2 == 0 { T::canary() } else { T::filler() };
        let mut content: Vec<T> = (0..first + span + behind).map(guards).collect();
        content[first..first + span].fill(T::canary());
        for i in 0..rows {
            for j in 0..cols {
                content[first + i * strides.0 + j * strides.1] = value(i, j);
            }
        }
        let memory = Memory::new(lab, size_of_val(&content[..]))?;
        let mut operand = Operand { rows, cols, strides, first, content, memory };
        operand.reset()?;
        Ok(operand)
    }

    fn at(&self, i: usize, j: usize) -> usize {
        self.first + i * self.strides.0 + j * self.strides.1
    }

    /// Element (i, j) as it was put there.
    pub fn get(&self, i: usize, j: usize) -> T {
        self.content[self.at(i, j)]
    }

    /// Row and column stride.
    pub fn strides(&self) -> (usize, usize) {
        self.strides
    }

    /// All elements as they were put there, down the columns.
    pub fn elements(&self) -> Vec<T> {
        self.gather(&self.content)
    }

    fn gather(&self, all: &[T]) -> Vec<T> {
        (0..self.rows * self.cols).map(|e| all[self.at(e % self.rows, e / self.rows)]).collect()
    }

    /// Changes elements; [`Operand::reset`] brings them to the device.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        let at = self.at(i, j);
        self.content[at] = value;
    }

    /// Puts everything back.
    pub fn reset(&mut self) -> Outcome {
        self.memory.write(0, bytemuck::cast_slice(&self.content))
    }

    /// Of its first element, for what only reads it.
    pub fn address(&self) -> u64 {
        self.addresses()[0]
    }

    /// Of its first element, for what only reads it and for what may write it.
    pub fn addresses(&self) -> [u64; 2] {
        self.memory.addresses().map(|address| address + (self.first * size_of::<T>()) as u64)
    }

    /// To be read.
    pub fn view(&self, lab: &Lab) -> Result<MatRef<'_, T>> {
        let (row, col) = self.strides;
        // SAFETY: the memory holds `first` elements and then the span of these strides, and lives as long as the borrow;
        // the checks write to it only when the device's work is done.
        unsafe { MatRef::from_raw(&lab.device, self.address(), self.rows, self.cols, row, col) }
    }

    /// To be written.
    pub fn view_mut(&mut self, lab: &Lab) -> Result<MatMut<'_, T>> {
        let (row, col) = self.strides;
        // SAFETY: as for `view`, and the borrow is exclusive.
        unsafe { MatMut::from_raw(&lab.device, self.addresses()[1], self.rows, self.cols, row, col) }
    }

    fn download(&self) -> Outcome<Vec<T>> {
        let mut now = vec![T::zero(); self.content.len()];
        self.memory.read(0, bytemuck::cast_slice_mut(&mut now))?;
        Ok(now)
    }

    /// Fails unless every byte, elements and all, is as it was put there.
    pub fn unchanged(&self, name: &str) -> Outcome {
        let now = self.download()?;
        let (old, new): (&[u8], &[u8]) = (bytemuck::cast_slice(&self.content), bytemuck::cast_slice(&now));
        if old == new {
            return Ok(());
        }
        self.compare(name, &now, |_| true)
    }

    /// The elements as they are now, down the columns; fails if anything else has changed.
    pub fn result(&self, name: &str) -> Outcome<Vec<T>> {
        let now = self.download()?;
        let mut element = vec![false; now.len()];
        for i in 0..self.rows {
            for j in 0..self.cols {
                element[self.at(i, j)] = true;
            }
        }
        self.compare(name, &now, |at| !element[at])?;
        Ok(self.gather(&now))
    }

    fn compare(&self, name: &str, now: &[T], watched: impl Fn(usize) -> bool) -> Outcome {
        let changed = |&at: &usize| watched(at) && self.content[at].bits() != now[at].bits();
        let Some(at) = (0..now.len()).find(changed) else { return Ok(()) };
        let count = (at..now.len()).filter(changed).count();
        Err(format!(
            "{name}: {count} elements that are not to be written were, the first {} from its start ({:#x}, was {:#x})",
            at as i128 - self.first as i128,
            now[at].bits(),
            self.content[at].bits()
        )
        .into())
    }

    /// Plants a fault for the checks' own check: one bit, `from` elements from the first one.
    pub fn damage(&mut self, from: isize) -> Outcome {
        let Some(at) = self.first.checked_add_signed(from).filter(|&at| at < self.content.len()) else {
            return Err(format!("element {from} is outside the guards").into());
        };
        let mut byte = [0_u8];
        self.memory.read(at * size_of::<T>(), &mut byte)?;
        self.memory.write(at * size_of::<T>(), &[byte[0] ^ 1])
    }
}
