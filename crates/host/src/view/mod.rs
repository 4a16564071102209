//! Views: (rows, columns, strides, pointer, device) of memory that somebody else owns.
//!
//! Element (i, j) of a view is `pointer[i * row stride + j * column stride]`. Strides count elements and are not
//! negative; transposing and slicing cost nothing. A constructor checks the span against the buffer, so that every
//! element of a view that exists is inside it.

use crate::error::Result;
use crate::shape::{Shape, check_range, narrow, wide};
use model::Strides;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// Stamps what both views tell of themselves.
macro_rules! facts {
    ($view:ident) => {
        impl<T> $view<'_, T> {
            /// Number of rows.
            pub fn nrows(&self) -> usize {
                self.shape.rows
            }
            /// Number of columns.
            pub fn ncols(&self) -> usize {
                self.shape.cols
            }
            /// Rows, columns, strides and element type.
            pub fn shape(&self) -> Shape {
                self.shape
            }
            /// Whether the memory is the host's; else it is a GPU's, and its elements cannot be looked at from here.
            pub fn is_host(&self) -> bool {
                self.place == Place::Host
            }
            /// Address of element (0, 0): for a GPU a CUdeviceptr, for the CPU a pointer.
            pub fn as_raw(&self) -> u64 {
                wide(self.ptr.expose_provenance())
            }
            pub(crate) fn place(&self) -> Place {
                self.place
            }
        }
    };
}

pub(crate) mod batch;
pub(crate) mod overlap;
mod read;
mod write;

pub use batch::{BatchMut, BatchRef};
pub use read::MatRef;
pub use write::MatMut;

/// Where the memory of a view is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Cuda(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host => f.write_str("the host"),
            Place::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

pub(super) fn describe(f: &mut fmt::Formatter<'_>, name: &str, shape: &Shape, place: Place) -> fmt::Result {
    let Strides { row, col } = shape.strides;
    let conj = if shape.conj { ", conjugated" } else { "" };
    write!(f, "{name}({} x {} {}, strides {row} and {col}{conj}, on {place})", shape.rows, shape.cols, shape.dtype)
}

/// Offset of an element; no product overflows for one inside a checked view.
pub(crate) fn offset(shape: &Shape, i: usize, j: usize) -> usize {
    i * narrow(shape.strides.row) + j * narrow(shape.strides.col)
}

/// The shape of the rows in `range`, and the offset of its first element (0 if it has none).
pub(super) fn row_range(shape: &Shape, range: impl RangeBounds<usize>) -> Result<(usize, Shape)> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => shape.rows,
    };
    check_range("rows or columns", start, end, shape.rows)?;
    let part = Shape { rows: end - start, ..*shape };
    Ok((if part.is_empty() { 0 } else { offset(shape, start, 0) }, part))
}

pub(super) fn extent(address: u64, shape: &Shape) -> (u64, u64) {
    let len = model::span(wide(shape.rows), wide(shape.cols), shape.strides).unwrap_or(u64::MAX);
    (address, len.saturating_mul(shape.dtype.bytes()))
}
