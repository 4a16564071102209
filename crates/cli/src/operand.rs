//! The inputs of a product: which place each has, and whether they fit together.

use std::path::Path;

use lanky::Shape;
use model::Dtype;

use crate::error::Fault;
use crate::npy::{Header, Input};

/// An input with its place in the product.
pub struct Operand {
    letter: &'static str,
    pub input: Input,
    /// As stored, before any transposition.
    pub rows: usize,
    pub cols: usize,
    pub transposed: bool,
}

impl Operand {
    /// `vector` says what one axis is: the shape of so many elements.
    pub fn open(
        letter: &'static str,
        path: &Path,
        transposed: bool,
        vector: fn(u64) -> (u64, u64),
    ) -> Result<Self, Fault> {
        let input = Input::open(path)?;
        let (rows, cols) = match *input.header().shape.as_slice() {
            [rows, cols] => (rows, cols),
            [length] => vector(length),
            _ => return Err(Fault::at(path, "it holds a single number (no axis), not a matrix")),
        };
        let narrow = |length| usize::try_from(length).map_err(|_| Fault::at(path, "it is larger than any memory"));
        Ok(Self { letter, rows: narrow(rows)?, cols: narrow(cols)?, input, transposed })
    }

    pub fn dtype(&self) -> Dtype {
        self.input.header().dtype
    }

    fn is_vector(&self) -> bool {
        self.input.header().shape.len() == 1
    }

    /// Rows and columns as the product sees them.
    pub fn lengths(&self) -> (usize, usize) {
        if self.transposed { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    /// `B is 300 x 4`, or `B transposed is 4 x 300`.
    fn words(&self) -> String {
        let (rows, cols) = self.lengths();
        let transposed = if self.transposed { " transposed" } else { "" };
        format!("{}{transposed} is {rows} x {cols}", self.letter)
    }

    pub fn elements(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// The shape that the plan is made for.
    pub fn shape(&self) -> Shape {
        let shape = Shape::packed(self.rows, self.cols, self.input.header().order.layout(), self.dtype());
        if self.transposed { shape.t() } else { shape }
    }
}

/// C's axes: that of a row A or a column B is dropped, unless it was transposed into the one that is summed over.
pub fn result_shape(a: &Operand, b: &Operand) -> Vec<u64> {
    let wide = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let mut shape = Vec::new();
    if !a.is_vector() || a.transposed {
        shape.push(wide(a.lengths().0));
    }
    if !b.is_vector() || b.transposed {
        shape.push(wide(b.lengths().1));
    }
    shape
}

/// The fault of another element type than A's.
pub fn mixed(input: &Input, letter: &str, a: &Operand) -> Fault {
    let (found, wanted) = (input.header().dtype, a.dtype());
    Fault::at(input.path(), &format!("{letter} is {found}, but A is {wanted}: both must be of one type"))
}

/// The fault of another k than A's.
pub fn mismatch(a: &Operand, b: &Operand) -> Fault {
    let k = a.lengths().1;
    let need = if b.is_vector() {
        format!("B needs {k} elements{}", if b.transposed { " and no --transpose-b" } else { "" })
    } else if b.transposed {
        format!("B needs {k} columns (or no --transpose-b)")
    } else {
        format!("B needs {k} rows (or --transpose-b)")
    };
    Fault::at(b.input.path(), &format!("{}, but {}: {need}", b.words(), a.words()))
}

/// Opens C0, which must be as the result will be.
pub fn open_c(path: &Path, a: &Operand, result: &Header) -> Result<Input, Fault> {
    let input = Input::open(path)?;
    if input.header().dtype != a.dtype() {
        return Err(mixed(&input, "C0", a));
    }
    if input.header().shape != result.shape {
        let (found, wanted) = (axes(&input.header().shape), axes(&result.shape));
        return Err(Fault::at(path, &format!("C0 is {found}, but C is {wanted}: they must be the same")));
    }
    Ok(input)
}

/// `3 x 4`, `a vector of 3`, `a single number`.
fn axes(shape: &[u64]) -> String {
    match shape {
        [] => "a single number".into(),
        [length] => format!("a vector of {length}"),
        lengths => lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}
