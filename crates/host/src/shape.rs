//! Shapes, and the checks of them that are the same wherever the memory is.

use crate::error::{Operand, Rule, ShapeError};
use model::{Dtype, Strides, span};

/// How a packed matrix is stored. `Default` is column-major.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Unit stride down a column, as BLAS and Fortran have it.
    #[default]
    ColumnMajor,
    /// Unit stride along a row, as C has it.
    RowMajor,
}

impl Layout {
    /// The layout of the transposed matrix in the same memory.
    pub const fn transposed(self) -> Self {
        match self {
            Layout::ColumnMajor => Layout::RowMajor,
            Layout::RowMajor => Layout::ColumnMajor,
        }
    }
}

/// A matrix without its memory: what a plan is made from.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Distances between neighbours, in elements.
    pub strides: Strides,
    /// Element type.
    pub dtype: Dtype,
    /// Whether the elements are the conjugates of what is stored; never of a real type.
    pub conj: bool,
}

impl Shape {
    /// A packed matrix: no gaps between its lines. Strides are 1 and rows, or cols and 1; where that would be 0, 1.
    pub fn packed(rows: usize, cols: usize, layout: Layout, dtype: Dtype) -> Self {
        Shape { rows, cols, strides: packed_strides(rows, cols, layout), dtype, conj: false }
    }

    /// A matrix with any strides; whoever is given it checks them.
    pub const fn with_strides(rows: usize, cols: usize, strides: Strides, dtype: Dtype) -> Self {
        Shape { rows, cols, strides, dtype, conj: false }
    }

    /// The same memory with rows and columns exchanged.
    pub const fn t(self) -> Self {
        Shape { rows: self.cols, cols: self.rows, strides: self.strides.transposed(), ..self }
    }

    /// The conjugates of its elements: the same where they are real.
    pub const fn conj(self) -> Self {
        Shape { conj: self.conj != self.dtype.is_complex(), ..self }
    }

    /// The conjugate transpose: of real elements [`Shape::t`].
    pub const fn h(self) -> Self {
        self.t().conj()
    }

    /// Whether there is no element.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }
}

/// Strides of a packed matrix; at least 1, so that they are legal where it is empty.
pub(crate) fn packed_strides(rows: usize, cols: usize, layout: Layout) -> Strides {
    match layout {
        Layout::ColumnMajor => Strides::column_major(wide(rows.max(1))),
        Layout::RowMajor => Strides::row_major(wide(cols.max(1))),
    }
}

/// usize to u64: no target that Rust has makes this fail.
pub(crate) fn wide(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Strides in the machine's size; those of a checked view fit, or are those of a single line and never used.
pub(crate) fn narrow(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Elements that a view spans, refused where their bytes exceed what a pointer difference holds (2^63 - 1).
pub(crate) fn checked_span(operand: Operand, shape: &Shape) -> Result<usize, ShapeError> {
    let (rows, cols) = (wide(shape.rows), wide(shape.cols));
    let limit = wide(isize::MAX.unsigned_abs()) / shape.dtype.bytes();
    match span(rows, cols, shape.strides) {
        Some(len) if len <= limit => Ok(narrow(len)),
        found => Err(ShapeError::new(
            operand,
            Rule::Span,
            limit,
            found.unwrap_or(u64::MAX),
            format!(
                "{operand} is {rows} x {cols} with strides {} and {}: it spans more than {limit} elements",
                shape.strides.row, shape.strides.col
            ),
        )),
    }
}

/// Whether `len` elements hold the view; its last line needs no padding.
pub(crate) fn check_span(operand: Operand, shape: &Shape, len: usize) -> Result<(), ShapeError> {
    let needed = checked_span(operand, shape)?;
    if needed <= len {
        return Ok(());
    }
    Err(ShapeError::new(
        operand,
        Rule::Span,
        wide(needed),
        wide(len),
        format!(
            "{operand} is {} x {} with strides {} and {}: it spans {needed} elements, but the buffer has {len}",
            shape.rows, shape.cols, shape.strides.row, shape.strides.col
        ),
    ))
}

/// Refuses what has elements at an address where no device has memory.
pub(crate) fn check_address(address: u64, has_elements: bool) -> Result<(), ShapeError> {
    if address > 0 || !has_elements {
        return Ok(());
    }
    let text = "the matrix has elements, but its address is 0, where nothing is".to_owned();
    Err(ShapeError::new(Operand::View, Rule::Address, 1, address, text))
}

/// Whether `len` elements hold a batch; nothing follows the last element of the last matrix.
pub(crate) fn check_batch_span(shape: &Shape, count: u64, stride: u64, len: usize) -> Result<(), ShapeError> {
    let one = wide(checked_span(Operand::View, shape)?);
    let limit = wide(isize::MAX.unsigned_abs()) / shape.dtype.bytes();
    let needed = match (count, one) {
        (0, _) | (_, 0) => Some(0),
        _ => (count - 1).checked_mul(stride).and_then(|steps| steps.checked_add(one)),
    };
    let (required, actual, but) = match needed {
        Some(needed) if needed <= limit && needed <= wide(len) => return Ok(()),
        Some(needed) if needed <= limit => (needed, wide(len), format!("{needed} elements, but the buffer has {len}")),
        // As of a single matrix, whatever the buffer.
        beyond => (limit, beyond.unwrap_or(u64::MAX), format!("more than {limit} elements")),
    };
    let (rows, cols, Strides { row, col }) = (shape.rows, shape.cols, shape.strides);
    let text = format!(
        "the batch is {count} matrices of {rows} x {cols} with strides {stride}, {row} and {col}: it spans {but}"
    );
    Err(ShapeError::new(Operand::View, Rule::Span, required, actual, text))
}

/// Whether no two elements of a batch that is written share an address: as [`check_distinct`], each stride, from the
/// smallest on, must step over all that the smaller ones reach.
pub(crate) fn check_batch_distinct(operand: Operand, shape: &Shape, count: u64, stride: u64) -> Result<(), ShapeError> {
    let Strides { row, col } = shape.strides;
    let mut axes = [(row, wide(shape.rows)), (col, wide(shape.cols)), (stride, count)];
    if axes.iter().any(|(_, len)| *len == 0) {
        return Ok(());
    }
    axes.sort_unstable();
    let mut reach = 0_u64;
    for (step, len) in axes.into_iter().filter(|(_, len)| *len > 1) {
        if step <= reach {
            let (rows, cols, required) = (shape.rows, shape.cols, reach.saturating_add(1));
            let text = format!(
                "{operand} is written, but its elements overlap: {count} matrices of {rows} x {cols} with strides \
                 {stride}, {row} and {col}: {step} would have to be {required}"
            );
            return Err(ShapeError::new(operand, Rule::Strides, required, step, text));
        }
        reach = reach.saturating_add((len - 1).saturating_mul(step));
    }
    Ok(())
}

/// Whether no two elements of a matrix that is written share an address: the larger stride must step over the whole
/// line of the smaller. (That is sufficient; the rare layouts that it refuses though they do not overlap are no matrices
/// anyone stores.)
pub(crate) fn check_distinct(operand: Operand, shape: &Shape) -> Result<(), ShapeError> {
    let (rows, cols) = (wide(shape.rows), wide(shape.cols));
    if rows == 0 || cols == 0 || (rows == 1 && cols == 1) {
        return Ok(());
    }
    let Strides { row, col } = shape.strides;
    // A stride along an axis of one element is never taken.
    let (required, actual) = if cols <= 1 {
        (1, row)
    } else if rows <= 1 {
        (1, col)
    } else if row <= col {
        (line(rows, row), col)
    } else {
        (line(cols, col), row)
    };
    if actual >= required && (rows <= 1 || row > 0) && (cols <= 1 || col > 0) {
        return Ok(());
    }
    Err(ShapeError::new(
        operand,
        Rule::Strides,
        required,
        actual,
        format!("{operand} is written, but its elements overlap: {rows} x {cols} with strides {row} and {col}"),
    ))
}

/// The least distance from one line of `len` elements to the next.
fn line(len: u64, stride: u64) -> u64 {
    (len - 1).saturating_mul(stride).saturating_add(1)
}

/// Refuses a range that leaves the axis.
pub(crate) fn check_range(axis: &str, start: usize, end: usize, len: usize) -> Result<(), ShapeError> {
    if start <= end && end <= len {
        return Ok(());
    }
    if start > end {
        let text = format!("{axis} {start}..{end} were asked for: the range ends before it begins");
        return Err(ShapeError::new(Operand::View, Rule::Range, wide(start), wide(end), text));
    }
    let text = format!("{axis} {start}..{end} were asked for, but the matrix has {len}");
    Err(ShapeError::new(Operand::View, Rule::Range, wide(len), wide(end), text))
}

/// m, n, k of C (m x n) = A (m x k) B (k x n), or the operand that does not agree with the others.
pub(crate) fn agree(a: &Shape, b: &Shape, c: &Shape) -> Result<(usize, usize, usize), ShapeError> {
    let refuse = |operand: Operand, rule, required: usize, actual: usize, shape: &Shape, other: String, unit: &str| {
        let text = format!(
            "{operand} is {} x {}, but {other}: {operand} needs {required} {unit}{}",
            shape.rows,
            shape.cols,
            if required == 1 { "" } else { "s" }
        );
        Err(ShapeError::new(operand, rule, wide(required), wide(actual), text))
    };
    if b.rows != a.cols {
        let other = format!("A is {} x {}", a.rows, a.cols);
        return refuse(Operand::B, Rule::Rows, a.cols, b.rows, b, other, "row");
    }
    if c.rows != a.rows {
        let other = format!("A is {} x {}", a.rows, a.cols);
        return refuse(Operand::C, Rule::Rows, a.rows, c.rows, c, other, "row");
    }
    if c.cols != b.cols {
        let other = format!("B is {} x {}", b.rows, b.cols);
        return refuse(Operand::C, Rule::Cols, b.cols, c.cols, c, other, "column");
    }
    Ok((a.rows, b.cols, a.cols))
}

/// Refuses a result that would have to be stored conjugated.
pub(crate) fn check_not_conjugated(operand: Operand, shape: &Shape) -> Result<(), ShapeError> {
    if !shape.conj {
        return Ok(());
    }
    let text = format!("{operand} is conjugated: a result is stored as it is, conjugate A, B, alpha and beta instead");
    Err(ShapeError::new(operand, Rule::Conjugate, 0, 1, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rows: usize, cols: usize, row: u64, col: u64) -> Shape {
        Shape::with_strides(rows, cols, Strides { row, col }, Dtype::F64)
    }

    #[test]
    fn written_elements_must_be_distinct() {
        for (shape, fine) in [
            (shape(3, 4, 1, 3), true),
            (shape(3, 4, 1, 2), false),
            (shape(3, 4, 4, 1), true),
            (shape(3, 4, 3, 1), false),
            (shape(3, 4, 2, 5), true),
            (shape(3, 4, 2, 4), false),
            (shape(3, 4, 0, 1), false),
            (shape(3, 4, 1, 0), false),
            (shape(3, 1, 0, 9), false),
            (shape(1, 4, 9, 0), false),
            (shape(3, 1, 1, 0), true),
            (shape(1, 4, 0, 1), true),
            (shape(1, 1, 0, 0), true),
            (shape(0, 4, 1, 1), true),
            (shape(0, 1, 0, 0), true),
        ] {
            assert_eq!(check_distinct(Operand::C, &shape).is_ok(), fine, "{shape:?}");
        }
    }

    /// A buffer of any length, as memory of others is, has no part in what is beyond 2^63 bytes.
    #[test]
    fn batches_beyond_what_a_pointer_difference_holds_name_that() {
        let limit = (1 << 60) - 1;
        for (count, stride, spans, len) in [
            (1 << 60, 6, 6 << 60, usize::MAX),
            (2, u64::MAX, u64::MAX, usize::MAX),
            (2, (1 << 60) - 6, 1 << 60, usize::MAX),
            (1 << 60, 6, 6 << 60, 5),
        ] {
            let error = check_batch_span(&shape(3, 2, 1, 3), count, stride, len).expect_err("too long");
            let text = format!(
                "the batch is {count} matrices of 3 x 2 with strides {stride}, 1 and 3: it spans more than {limit} elements"
            );
            assert_eq!((error.rule, error.required, error.actual), (Rule::Span, limit, spans));
            assert_eq!(error.to_string(), text);
        }
        assert!(check_batch_span(&shape(3, 2, 1, 3), 2, limit - 6, usize::MAX).is_ok());
        let error = check_batch_span(&shape(3, 2, 1, 3), 2, 6, 11).expect_err("too short");
        let text =
            "the batch is 2 matrices of 3 x 2 with strides 6, 1 and 3: it spans 12 elements, but the buffer has 11";
        assert_eq!((error.required, error.actual, error.to_string().as_str()), (12, 11, text));
    }

    #[test]
    fn the_texts_say_what_to_do() {
        let error = agree(&shape(200, 299, 1, 200), &shape(300, 4, 1, 300), &shape(200, 4, 1, 200));
        assert_eq!(error.map_err(|e| e.to_string()), Err("B is 300 x 4, but A is 200 x 299: B needs 299 rows".into()));
        let error = agree(&shape(2, 3, 1, 2), &shape(3, 1, 1, 3), &shape(2, 4, 1, 2));
        assert_eq!(error.map_err(|e| e.to_string()), Err("C is 2 x 4, but B is 3 x 1: C needs 1 column".into()));
        let error = check_range("rows", 5, 3, 10).map_err(|e| (e.required, e.actual, e.to_string()));
        assert_eq!(error, Err((5, 3, "rows 5..3 were asked for: the range ends before it begins".into())));
        let error = check_range("rows", 5, 13, 10).map_err(|e| (e.required, e.actual, e.to_string()));
        assert_eq!(error, Err((10, 13, "rows 5..13 were asked for, but the matrix has 10".into())));
        let error = check_span(Operand::A, &shape(3, 2, 1, 3), 5);
        let text = "A is 3 x 2 with strides 1 and 3: it spans 6 elements, but the buffer has 5";
        assert_eq!(error.map_err(|e| e.to_string()), Err(text.into()));
    }
}
