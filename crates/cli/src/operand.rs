//! The inputs of a product: which place each has, and whether they fit together.

use std::path::Path;

use lanky::{MatRef, Scalar, Shape};
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
    /// Whether the conjugates are meant; of real numbers they are the same.
    pub conj: bool,
}

impl Operand {
    /// `vector` says what one axis is: the shape of so many elements.
    pub fn open(
        letter: &'static str,
        path: &Path,
        (transposed, conj): (bool, bool),
        vector: fn(u64) -> (u64, u64),
    ) -> Result<Self, Fault> {
        let input = Input::open(path)?;
        let (rows, cols) = match *input.header().shape.as_slice() {
            [rows, cols] => (rows, cols),
            [length] => vector(length),
            [] => return Err(Fault::at(path, "it holds a single number (no axis), not a matrix")),
            _ => return Err(Fault::at(path, "it has 3 axes, but a matrix has two at most (lanky batch takes three)")),
        };
        let narrow = |length| usize::try_from(length).map_err(|_| Fault::at(path, "it is larger than any memory"));
        Ok(Self { letter, rows: narrow(rows)?, cols: narrow(cols)?, input, transposed, conj })
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

    /// `B is 300 x 4`, `B transposed is 4 x 300`, or `the adjoint of B is 4 x 300`.
    pub fn words(&self) -> String {
        let (rows, cols) = self.lengths();
        let (before, behind) = match (self.transposed, self.conj) {
            (_, true) => ("the adjoint of ", ""),
            (true, _) => ("", " transposed"),
            _ => ("", ""),
        };
        format!("{before}{}{behind} is {rows} x {cols}", self.letter)
    }

    pub fn elements(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// What the product takes of the stored matrix.
    pub fn of<'m, T: Scalar>(&self, stored: MatRef<'m, T>) -> MatRef<'m, T> {
        let view = if self.transposed { stored.t() } else { stored };
        if self.conj { view.conj() } else { view }
    }

    /// The shape that the plan is made for.
    pub fn shape(&self) -> Shape {
        let shape = Shape::packed(self.rows, self.cols, self.input.header().order.layout(), self.dtype());
        let shape = if self.transposed { shape.t() } else { shape };
        if self.conj { shape.conj() } else { shape }
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
    let option = if b.conj { "--adjoint-b" } else { "--transpose-b" };
    let need = if b.is_vector() {
        format!("B needs {k} elements{}", if b.transposed { format!(" and no {option}") } else { String::new() })
    } else if b.transposed {
        format!("B needs {k} columns (or no {option})")
    } else {
        format!("B needs {k} rows (or --transpose-b)")
    };
    Fault::at(b.input.path(), &format!("{}, but {}: {need}", b.words(), a.words()))
}

/// Opens C0, which must be as the result will be.
pub fn open_c(path: &Path, a: &Operand, result: &Header) -> Result<Input, Fault> {
    debug_assert_eq!(a.dtype(), result.dtype, "C has A's element type");
    open_typed_c(path, result)
}

/// The same, of a result whose element type is A's.
pub fn open_typed_c(path: &Path, result: &Header) -> Result<Input, Fault> {
    let input = Input::open(path)?;
    let (found, wanted) = (input.header().dtype, result.dtype);
    if found != wanted {
        return Err(Fault::at(path, &format!("C0 is {found}, but A is {wanted}: both must be of one type")));
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
