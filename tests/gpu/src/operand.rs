//! An operand in the middle of guarded memory of the device.

use crate::lab::{Lab, Outcome};
use crate::memory::Memory;
use crate::real::Element;
use host::{MatMut, MatRef, Result};
use std::ops::{Deref, DerefMut};
use watched::Image;

pub use watched::Storage;

/// A matrix in guarded memory of the device: as many elements on either side as the lab says, none where that has it touch an end of
/// mapped memory.
pub struct Operand<T> {
    /// What the memory holds after [`Operand::reset`].
    image: Image<T>,
    memory: Memory,
}

impl<T> Deref for Operand<T> {
    type Target = Image<T>;
    fn deref(&self) -> &Image<T> {
        &self.image
    }
}

impl<T> DerefMut for Operand<T> {
    fn deref_mut(&mut self) -> &mut Image<T> {
        &mut self.image
    }
}

impl<T: Element> Operand<T> {
    /// With element (i, j) = `value(i, j)`.
    pub fn new(
        lab: &Lab,
        rows: usize,
        cols: usize,
        storage: Storage,
        value: impl FnMut(usize, usize) -> T,
    ) -> Outcome<Self> {
        let image = Image::new((rows, cols), storage.strides(rows, cols), lab.guards(storage.offset), value);
        let memory = Memory::new(lab, size_of_val(image.content()))?;
        let mut operand = Operand { image, memory };
        operand.reset()?;
        Ok(operand)
    }

    /// Puts everything back, and brings to the device what was set.
    pub fn reset(&mut self) -> Outcome {
        self.memory.write(0, bytemuck::cast_slice(self.image.content()))
    }

    /// Of its first element, for what only reads it.
    pub fn address(&self) -> u64 {
        self.addresses()[0]
    }

    /// Of its first element, for what only reads it and for what may write it.
    pub fn addresses(&self) -> [u64; 2] {
        self.memory.addresses().map(|address| address + (self.inside().start * size_of::<T>()) as u64)
    }

    /// To be read.
    pub fn view(&self, lab: &Lab) -> Result<MatRef<'_, T>> {
        let (row, col) = self.strides();
        // SAFETY: the memory holds the span of these strides from there on, and lives as long as the borrow; the checks
        // write to it only when the device's work is done.
        unsafe { MatRef::from_raw(&lab.device, self.address(), self.rows, self.cols, row, col) }
    }

    /// To be written.
    pub fn view_mut(&mut self, lab: &Lab) -> Result<MatMut<'_, T>> {
        let (row, col) = self.strides();
        // SAFETY: as for `view`, and the borrow is exclusive.
        unsafe { MatMut::from_raw(&lab.device, self.addresses()[1], self.rows, self.cols, row, col) }
    }

    fn download(&self) -> Outcome<Vec<T>> {
        let mut now = vec![T::zero(); self.content().len()];
        self.memory.read(0, bytemuck::cast_slice_mut(&mut now))?;
        Ok(now)
    }

    /// Fails unless every byte, elements and all, is as it was put there.
    pub fn unchanged(&self, name: &str) -> Outcome {
        self.image.unchanged(name, &self.download()?)
    }

    /// The elements as they are now, down the columns; fails if anything else has changed.
    pub fn result(&self, name: &str) -> Outcome<Vec<T>> {
        self.image.result(name, &self.download()?)
    }

    /// Plants a fault for the checks' own check: one bit, `from` elements from the first one.
    pub fn damage(&mut self, from: isize) -> Outcome {
        let at = self.inside().start.checked_add_signed(from).filter(|&at| at < self.content().len());
        let at = at.ok_or_else(|| format!("element {from} is outside the guards"))? * size_of::<T>();
        let mut byte = [0_u8];
        self.memory.read(at, &mut byte)?;
        self.memory.write(at, &[byte[0] ^ 1])
    }
}
