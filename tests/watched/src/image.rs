//! What the memory of an operand holds: whatever is no element of it must keep its bytes.

use crate::{Element, Outcome, Storage};

/// The bytes of an operand and of what lies around it, as they were put there.
///
/// Before and behind it lie guards, signalling NaN and bytes 0xA5 in turn; between its elements NaN.
#[derive(Clone, Debug)]
pub struct Image<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    strides: (usize, usize),
    first: usize,
    span: usize,
    content: Vec<T>,
}

impl<T: Element> Image<T> {
    /// With so many elements of guard on either side of its first and last one, and element (i, j) = `value(i, j)`.
    pub fn new(
        (rows, cols): (usize, usize),
        (row, col): (usize, usize),
        [before, behind]: [usize; 2],
        mut value: impl FnMut(usize, usize) -> T,
    ) -> Self {
        let span = if rows * cols == 0 { 0 } else { row * (rows - 1) + col * (cols - 1) + 1 };
        let guards = |at: usize| if at % 2 == 0 { T::canary() } else { T::filler() };
        let mut content: Vec<T> = (0..before + span + behind).map(guards).collect();
        content[before..before + span].fill(T::canary());
        let mut image = Image { rows, cols, strides: (row, col), first: before, span, content };
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            image.set(i, j, value(i, j));
        }
        image
    }

    /// As much guard on both sides, and lying so.
    pub fn stored(shape: (usize, usize), storage: Storage, guard: usize, value: impl FnMut(usize, usize) -> T) -> Self {
        Self::new(shape, storage.strides(shape.0, shape.1), [guard + storage.offset, guard], value)
    }

    /// Where element (i, j) is in its content.
    pub fn at(&self, i: usize, j: usize) -> usize {
        self.first + i * self.strides.0 + j * self.strides.1
    }

    /// Element (i, j).
    pub fn get(&self, i: usize, j: usize) -> T {
        self.content[self.at(i, j)]
    }

    /// Puts another one there.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        let at = self.at(i, j);
        self.content[at] = value;
    }

    /// Row and column stride.
    pub fn strides(&self) -> (usize, usize) {
        self.strides
    }

    /// Where it begins in its content.
    pub fn first(&self) -> usize {
        self.first
    }

    /// From its first element to its last one.
    pub fn inside(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.span
    }

    /// All that the memory is to hold.
    pub fn content(&self) -> &[T] {
        &self.content
    }

    /// Its elements, down the columns.
    pub fn elements(&self) -> Vec<T> {
        self.gather(&self.content)
    }

    /// Of other content of that memory.
    pub fn gather(&self, all: &[T]) -> Vec<T> {
        (0..self.rows * self.cols).map(|e| all[self.at(e % self.rows, e / self.rows)]).collect()
    }

    /// Fails unless every byte of what the memory holds now, elements and all, is as it was put there.
    pub fn unchanged(&self, name: &str, now: &[T]) -> Outcome {
        self.compare(name, now, &[])
    }

    /// The elements of what the memory holds now, down the columns; fails if anything else has changed.
    pub fn result(&self, name: &str, now: &[T]) -> Outcome<Vec<T>> {
        let mut elements = vec![false; self.content.len()];
        mark(&mut elements[self.inside()], (self.rows, self.cols), self.strides);
        self.compare(name, now, &elements)?;
        Ok(self.gather(now))
    }

    /// Fails if anything is another than before that is not marked.
    fn compare(&self, name: &str, now: &[T], marked: &[bool]) -> Outcome {
        let (old, new): (&[u8], &[u8]) = (bytemuck::cast_slice(&self.content), bytemuck::cast_slice(now));
        if old.len() != new.len() {
            return Err(format!("{name}: {} bytes, not {}", new.len(), old.len()).into());
        }
        let (count, Some(at)) = changes(old, new, size_of::<T>(), marked) else { return Ok(()) };
        let (from, new, old) = (at as i128 - self.first as i128, now[at].bits(), self.content[at].bits());
        let what = "elements that are not to be written were, the first";
        Err(format!("{name}: {count} {what} {from} from its start ({new:#x}, was {old:#x})").into())
    }
}

/// Marks what is an element, from the first one on.
fn mark(all: &mut [bool], (rows, cols): (usize, usize), (row, col): (usize, usize)) {
    (0..rows).for_each(|i| (0..cols).for_each(|j| all[i * row + j * col] = true));
}

/// How many of these elements of so many bytes are others than before, and the first; of those alone that are not marked.
fn changes(old: &[u8], new: &[u8], bytes: usize, marked: &[bool]) -> (usize, Option<usize>) {
    if old == new {
        return (0, None);
    }
    let both = old.chunks_exact(bytes).zip(new.chunks_exact(bytes)).enumerate();
    let mut changed = both.filter(|(at, (old, new))| old != new && !marked.get(*at).copied().unwrap_or(false));
    let first = changed.next().map(|(at, _)| at);
    (changed.count() + usize::from(first.is_some()), first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PACKED;
    use num_complex::Complex;

    const GAPS: Storage = Storage { row_major: true, step: 2, pad: 3, offset: 1 };

    /// Each element of the memory is written in turn, before, behind and between, also by another NaN, and one bit of it flipped.
    fn damaged<T: Element>(value: impl Fn(usize, usize) -> T) {
        for storage in [PACKED, GAPS, Storage { row_major: false, ..GAPS }] {
            let image = Image::stored((5, 3), storage, 16, &value);
            let elements: Vec<usize> = (0..15).map(|e| image.at(e % 5, e / 5)).collect();
            let right = image.elements();
            assert!(image.unchanged("A", image.content()).is_ok());
            assert_eq!(image.result("A", image.content()).ok(), Some(right));
            for at in 0..image.content().len() {
                let mut flipped = image.content().to_vec();
                bytemuck::cast_slice_mut::<T, u8>(&mut flipped)[at * size_of::<T>()] ^= 1;
                let mut written = [T::of_two(0.5, 0.5), T::of_two(f64::NAN, f64::NAN)].map(|with| {
                    let mut now = image.content().to_vec();
                    now[at] = with;
                    now
                });
                for now in written.iter_mut().chain([&mut flipped]) {
                    assert!(image.unchanged("A", now).is_err(), "{at} {storage:?}");
                    let found = image.result("A", now);
                    assert_eq!(found.is_ok(), elements.contains(&at), "{at} {storage:?}: {found:?}");
                }
            }
            assert!(image.unchanged("A", &image.content()[1..]).is_err());
        }
    }

    #[test]
    fn what_is_written_beside_a_matrix_is_seen() {
        damaged::<f32>(|i, j| (i + j) as f32);
        damaged::<f64>(|i, j| (i + j) as f64);
        damaged::<Complex<f64>>(|i, j| Complex::new(i as f64, j as f64));
    }

    #[test]
    fn an_empty_matrix_has_guards_alone() {
        let image = Image::<f64>::stored((0, 3), GAPS, 4, |_, _| 1.0);
        assert_eq!((image.content().len(), image.inside(), image.elements().len()), (9, 5..5, 0));
        assert!(image.result("C", image.content()).is_ok());
    }
}
