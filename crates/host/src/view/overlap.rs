//! Whether batches share memory.

use super::batch::{Batch, Spots};
use super::extent;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::scalar::Scalar;
use crate::shape::{Shape, wide};

/// Refuses listed matrices that are written and two of which share an element. Strided ones are their constructors' affair. Of a list
/// whose addresses are not all the same modulo the element's size, lines that are in each other's way are refused too.
pub(super) fn check_apart<T: Scalar>(batch: &Batch<T>) -> Result<()> {
    let Spots::Listed(spots) = &batch.spots else { return Ok(()) };
    let (_, bytes) = extent(0, &batch.shape);
    let address = |index: usize| wide(spots[index].addr());
    let refusal = |first: usize, second: usize, shared: u64, how: &str| {
        let (first, second) = (first.min(second), first.max(second));
        let text =
            format!("matrices {first} and {second} of the batch are written, but overlap: {how} share {shared} bytes");
        Err(ShapeError::new(Operand::View, Rule::Overlap, 0, shared, text).into())
    };
    if bytes == 0 || meeting(spots.len(), bytes, |index| (0, address(index)))?.is_none() {
        return Ok(());
    }
    // Those at one address need no look at their lines, which may be many.
    if let Some((first, second, _)) = meeting(spots.len(), 1, |index| (0, address(index)))? {
        return refusal(first, second, bytes, "they");
    }
    // Between each other's lines: of what lies in steps, only lines that are whole steps apart can meet.
    let Lines { count, jump, step, bytes } = Lines::of(&batch.shape);
    let element = T::DTYPE.bytes();
    let together = spots.iter().all(|spot| (wide(spot.addr()) ^ wide(spots[0].addr())) % element == 0);
    let class = if together { step } else { 1 };
    // The first lines of all, then the second: so those of matrices beside each other are in order, and nothing is sorted.
    let line = |index: usize| {
        let (line, matrix) = (index / spots.len(), index % spots.len());
        let start = address(matrix).saturating_add(wide(line).saturating_mul(jump));
        (start % class, start)
    };
    let Some((one, other, shared)) = meeting(spots.len().saturating_mul(count), bytes, line)? else { return Ok(()) };
    refusal(one % spots.len(), other % spots.len(), shared, "lines of theirs")
}

/// The lines of a matrix, along the smaller stride; in bytes.
struct Lines {
    count: usize,
    /// From one to the next.
    jump: u64,
    /// From one element of a line to the next.
    step: u64,
    /// From the first to the end of the last element of a line.
    bytes: u64,
}

impl Lines {
    fn of(shape: &Shape) -> Self {
        let (row, col, element) = (shape.strides.row, shape.strides.col, shape.dtype.bytes());
        let by_columns = shape.cols == 1 || (shape.rows > 1 && row <= col);
        let (len, step, count, jump) =
            if by_columns { (shape.rows, row, shape.cols, col) } else { (shape.cols, col, shape.rows, row) };
        let step = if len > 1 { step.max(1).saturating_mul(element) } else { element };
        let bytes = wide(len - 1).saturating_mul(step).saturating_add(element);
        Lines { count, jump: jump.saturating_mul(element), step, bytes }
    }
}

/// Two of `count` ranges, all of so many bytes, that meet, and the bytes that they share; `at` is the class of one, beyond which
/// it meets none, and where it begins.
///
/// # Errors
/// [`Error::OutOfMemory`], of the host, where they cannot be put in order.
fn meeting(count: usize, bytes: u64, at: impl Fn(usize) -> (u64, u64)) -> Result<Option<(usize, usize, u64)>> {
    let shared = |one: usize, next: usize| {
        let ((class, start), (other, next)) = (at(one), at(next));
        if class == other { bytes.saturating_sub(next - start) } else { 0 }
    };
    if (1..count).all(|next| at(next - 1) <= at(next) && shared(next - 1, next) == 0) {
        return Ok(None);
    }
    let mut order: Vec<usize> = Vec::new();
    reserve(&mut order, count)?;
    order.extend(0..count);
    order.sort_unstable_by_key(|&index| (at(index), index));
    let pair = order.windows(2).find(|pair| shared(pair[0], pair[1]) > 0);
    Ok(pair.map(|pair| (pair[0], pair[1], shared(pair[0], pair[1]))))
}

/// Room for so many, or the error that the host has none.
pub(crate) fn reserve<T>(list: &mut Vec<T>, count: usize) -> Result<()> {
    let wanted = wide(count).saturating_mul(wide(size_of::<T>()));
    list.try_reserve_exact(count).map_err(|_| Error::host_memory(wanted))
}

/// Refuses a C that lies where something is read: of a batch at equal distances all from its first to its last element counts, as
/// of a single matrix; of a list each matrix by itself.
///
/// # Errors
/// [`Error::OutOfMemory`], of the host, where lists cannot be put in order.
pub(crate) fn refuse_overlap<T: Scalar>(operand: Operand, read: &Batch<T>, c: &Batch<T>) -> Result<()> {
    let shared = match shared(whole(read), whole(c)) {
        0 => 0,
        bytes if matches!((&read.spots, &c.spots), (Spots::Strided { .. }, Spots::Strided { .. })) => bytes,
        _ => shared_by_some(&ranges(read)?, &ranges(c)?),
    };
    if shared == 0 {
        return Ok(());
    }
    let text = format!("C overlaps {operand}: their address ranges share {shared} bytes; multiply into other memory");
    Err(ShapeError::new(operand, Rule::Overlap, 0, shared, text).into())
}

/// Bytes that two ranges share, each a first address and a number of bytes.
fn shared((one, one_bytes): (u64, u64), (other, other_bytes): (u64, u64)) -> u64 {
    one.saturating_add(one_bytes).min(other.saturating_add(other_bytes)).saturating_sub(one.max(other))
}

/// Bytes that the first two ranges that meet share; both are in order, and each has ranges of one length.
fn shared_by_some(read: &[(u64, u64)], written: &[(u64, u64)]) -> u64 {
    let mut rest = read.iter().peekable();
    for &range in written {
        while rest.next_if(|(start, bytes)| start.saturating_add(*bytes) <= range.0).is_some() {}
        let bytes = rest.peek().map_or(0, |next| shared(**next, range));
        if bytes > 0 {
            return bytes;
        }
    }
    0
}

/// From the first to the last address of a batch.
fn whole<T: Scalar>(batch: &Batch<T>) -> (u64, u64) {
    let (_, bytes) = extent(0, &batch.shape);
    if batch.count == 0 || bytes == 0 {
        return (0, 0);
    }
    match &batch.spots {
        Spots::Strided { first, stride } => {
            let steps = wide(batch.count - 1).saturating_mul(*stride).saturating_mul(T::DTYPE.bytes());
            (wide(first.addr()), bytes.saturating_add(steps))
        }
        Spots::Listed(spots) => {
            let ends = spots.iter().map(|spot| wide(spot.addr()));
            let (first, last) = ends.fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
            (first, bytes.saturating_add(last - first))
        }
    }
}

/// What is to lie apart, in order: each matrix of a list, or all of a batch at equal distances.
fn ranges<T: Scalar>(batch: &Batch<T>) -> Result<Vec<(u64, u64)>> {
    let Spots::Listed(spots) = &batch.spots else { return Ok(vec![whole(batch)]) };
    let (_, bytes) = extent(0, &batch.shape);
    let mut ranges = Vec::new();
    reserve(&mut ranges, spots.len())?;
    ranges.extend(spots.iter().map(|spot| (wide(spot.addr()), bytes)));
    ranges.sort_unstable();
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::BatchRef;

    #[test]
    fn ranges_are_those_of_whole_batches() -> Result<()> {
        let data = [0.0_f64; 40];
        let first = wide(data.as_ptr().addr());
        let whole = |stride| {
            whole(&BatchRef::with_strides(&data, 3, stride, (2, 3), (1, 2)).unwrap_or_else(|e| panic!("{e}")).batch)
        };
        assert_eq!(whole(10), (first, 26 * 8));
        assert_eq!(whole(0), (first, 6 * 8));
        Ok(())
    }

    /// More lines than an address space has room to put in order: the bytes for that are what was wanted.
    #[test]
    fn lines_that_cannot_be_put_in_order_are_memory_that_is_not_there() {
        let backwards = |index: usize| (0, if index == 0 { 8 } else { 0 });
        for (count, bytes) in [(1 << 50, 1 << 53), (usize::MAX, u64::MAX)] {
            let error = meeting(count, 8, backwards).expect_err("there is not so much memory");
            assert!(
                matches!(error, Error::OutOfMemory { wanted, free: 0, total: 0, .. } if wanted == bytes),
                "{error:?}"
            );
        }
        assert_eq!(meeting(2, 8, backwards).ok(), Some(None));
        assert_eq!(meeting(2, 9, backwards).ok(), Some(Some((1, 0, 1))));
    }

    /// Ranges of 4 and of 6 at all places, against all pairs.
    #[test]
    fn ranges_that_meet_are_found_among_others() {
        for place in 0..60 {
            for other in [0, 7, 45] {
                let mut read = [(10, 4), (20, 4), (30, 4)];
                let mut written = [(place, 6), (other, 6)];
                read.sort_unstable();
                written.sort_unstable();
                let meet = read.iter().any(|one| written.iter().any(|two| shared(*one, *two) > 0));
                assert_eq!(shared_by_some(&read, &written) > 0, meet, "{written:?}");
            }
        }
    }
}
