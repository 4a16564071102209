//! Packed copies of strided views of the host's memory.

use crate::cpu::each;
use crate::scalar::Scalar;
use crate::shape::Layout;
use crate::view::{MatRef, offset};

/// Pieces that one thread copies at once: 256 KiB of f64, enough to hide the cost of handing them out.
const PIECE: usize = 1 << 15;

/// Copies elements `start..start + out.len()` of the view, counted in `layout`'s order, to `out`; of a conjugated view
/// the conjugates.
pub(crate) fn pack<T: Scalar>(view: MatRef<'_, T>, layout: Layout, start: usize, out: &mut [T]) {
    let view = columns(view, layout);
    if out.len() <= PIECE {
        return pack_piece(view, start, out);
    }
    let pieces: Vec<_> = out.chunks_mut(PIECE).enumerate().collect();
    each::<_, _, ()>(pieces, |(index, piece)| pack_piece(view, start + index * PIECE, piece));
}

/// The view whose column-major order is `layout`'s order of this one.
fn columns<T>(view: MatRef<'_, T>, layout: Layout) -> MatRef<'_, T> {
    match layout {
        Layout::ColumnMajor => view,
        Layout::RowMajor => view.t(),
    }
}

fn pack_piece<T: Scalar>(view: MatRef<'_, T>, start: usize, mut out: &mut [T]) {
    let (shape, rows) = (view.shape(), view.nrows());
    let mut at = start;
    while !out.is_empty() {
        let (i, j) = (at % rows, at / rows);
        let len = out.len().min(rows - i);
        let (line, rest) = out.split_at_mut(len);
        if shape.strides.row == 1 {
            // SAFETY: elements (i, j) to (i + len - 1, j) are inside the view, so in its buffer, and adjacent.
            line.copy_from_slice(unsafe { std::slice::from_raw_parts(view.as_ptr().add(offset(&shape, i, j)), len) });
        } else {
            for (step, value) in line.iter_mut().enumerate() {
                // SAFETY: i + step < rows and j < cols, as the caller's range is inside the view.
                *value = unsafe { *view.as_ptr().add(offset(&shape, i + step, j)) };
            }
        }
        if shape.conj {
            line.iter_mut().for_each(|value| *value = value.conj());
        }
        at += len;
        out = rest;
    }
}
