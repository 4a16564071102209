//! What a tuned cell must have in common with a product that it speaks for.

use model::{Dtype, Operation, Problem, Strides};
use std::fmt;

/// The kind of a product: all that a plan depends on but its lengths and leading dimensions.
///
/// Transposition is in the layout: A used transposed and stored by rows is op(A) by columns. Conjugation changes no kernel's
/// launch and is no part of it, nor is where operands begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Class {
    /// What the shape asks for, as [`model::classify`] names it; `gram`.
    pub family: &'static str,
    /// `f32`, `f64`, `c64` or `c128`.
    pub dtype: &'static str,
    /// Of op(A), op(B) and C: whether the unit stride is down a column (`true`) or along a row.
    pub by_columns: [bool; 3],
    /// Whether C is read: β is not 0.
    pub reads_c: bool,
}

/// All families.
pub const FAMILIES: [Operation; 6] =
    [Operation::Tsm2r, Operation::Tsmm, Operation::Tsmttsm, Operation::Gram, Operation::Gemv, Operation::Gemm];

impl Class {
    /// The class of a product, and its m, n and k as cells have them: a wide C as its transpose, which is how it is computed.
    /// `None` where an operand has no unit stride.
    pub fn of(problem: &Problem) -> Option<(Class, [u64; 3])> {
        let (operation, p) = (problem.operation(), upright(problem));
        let by_columns = [by_columns(p.m, p.k, p.a)?, by_columns(p.k, p.n, p.b)?, by_columns(p.m, p.n, p.c)?];
        let class = Class { family: operation.name(), dtype: p.dtype.name(), by_columns, reads_c: p.reads_c };
        Some((class, [p.m, p.n, p.k]))
    }

    /// The product of this class and these lengths without gaps; `None` if these lengths are another family's.
    pub fn problem(&self, [m, n, k]: [u64; 3]) -> Option<Problem> {
        let dtype = Dtype::ALL.into_iter().find(|dtype| dtype.name() == self.dtype)?;
        let strides = |by_columns: bool, rows: u64, cols: u64| {
            if by_columns { Strides::column_major(rows) } else { Strides::row_major(cols) }
        };
        let [a, b, c] = self.by_columns;
        let p = Problem {
            a: strides(a, m, k),
            b: strides(b, k, n),
            c: strides(c, m, n),
            reads_c: self.reads_c,
            gram: self.family == Operation::Gram.name(),
            ..Problem::column_major(dtype, m, n, k)
        };
        let is_whole = m > 0 && n > 0 && k > 0 && (!p.gram || (m == n && a != b));
        (is_whole && Class::of(&p) == Some((*self, [m, n, k]))).then_some(p)
    }

    /// A letter for each of op(A), op(B) and C: `c` by columns, `r` by rows.
    pub fn layout(&self) -> String {
        self.by_columns.iter().map(|by_columns| if *by_columns { 'c' } else { 'r' }).collect()
    }

    /// The class of these words, as it is displayed.
    pub fn parse(family: &str, dtype: &str, layout: &str, beta: &str) -> Option<Class> {
        let family = FAMILIES.into_iter().map(Operation::name).find(|name| *name == family)?;
        let dtype = Dtype::ALL.into_iter().map(Dtype::name).find(|name| *name == dtype)?;
        let by_columns = parse_layout(layout)?;
        let reads_c = match beta {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        Some(Class { family, dtype, by_columns, reads_c })
    }
}

/// A product as cells have it.
fn upright(problem: &Problem) -> Problem {
    let turned = problem.operation() != Operation::Gemm && problem.n > problem.m;
    if turned { problem.transposed() } else { *problem }
}

/// Whether A's and B's lines start at multiples of 16 bytes: kernels copy by these, or by elements, which takes longer. TSM2R's copy B by
/// elements in any case.
pub(super) fn alignment(problem: &Problem) -> [bool; 2] {
    let p = upright(problem);
    let of = |rows: u64, cols: u64, strides: Strides| {
        let bytes = strides.row.max(strides.col).wrapping_mul(p.dtype.bytes());
        rows == 1 || cols == 1 || bytes % 16 == 0
    };
    [of(p.m, p.k, p.a), p.operation() == Operation::Tsm2r || of(p.k, p.n, p.b)]
}

/// Whether the lines of A, B and C follow each other without gaps, as those of cells.
pub(super) fn is_packed(p: &Problem) -> bool {
    let of = |rows: u64, cols: u64, strides: Strides| {
        let (along, across, step) = match strides.row {
            1 => (rows, cols, strides.col),
            _ => (cols, rows, strides.row),
        };
        across == 1 || step == along
    };
    of(p.m, p.k, p.a) && of(p.k, p.n, p.b) && of(p.m, p.n, p.c)
}

/// `ccc`, `rcc`: for op(A), op(B) and C whether it lies by columns.
pub fn parse_layout(text: &str) -> Option<[bool; 3]> {
    let mut letters = text.chars().map(|letter| match letter {
        'c' => Some(true),
        'r' => Some(false),
        _ => None,
    });
    let all = [letters.next()??, letters.next()??, letters.next()??];
    letters.next().is_none().then_some(all)
}

/// `gemv f64 ccc 0`: the family, the element type, how op(A), op(B) and C lie, and whether C is read.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} {} {} {}", self.family, self.dtype, self.layout(), u8::from(self.reads_c));
        f.pad(&text)
    }
}

/// Whether a matrix lies by columns; `None` if it lies neither so nor by rows. A column or a row lies so if its elements stand
/// together.
fn by_columns(rows: u64, cols: u64, strides: Strides) -> Option<bool> {
    if strides.row == 1 || rows == 1 && cols == 1 {
        Some(true)
    } else if strides.col == 1 && cols > 1 {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_result_is_of_the_class_of_its_transpose() {
        for (m, n, k) in [(1000, 4, 300), (1000, 1, 300), (100_000, 16, 8), (40, 3, 100_000)] {
            let p = Problem::column_major(Dtype::F64, m, n, k);
            let (class, lengths) = Class::of(&p).expect("unit strides");
            assert_eq!(lengths, [m, n, k]);
            assert_eq!(Class::of(&p.transposed()), Some((class, lengths)), "{class}");
            assert_eq!(class.problem(lengths), Some(p));
            assert_eq!(class.layout(), "ccc");
        }
        let square = Problem::column_major(Dtype::F32, 100, 200, 300);
        assert_eq!(
            Class::of(&square).map(|(class, lengths)| (class.layout(), lengths)),
            Some(("ccc".into(), [100, 200, 300]))
        );
    }

    #[test]
    fn steps_over_elements_have_no_class() {
        let p = Problem::column_major(Dtype::F64, 1000, 4, 300);
        assert_eq!(Class::of(&Problem { a: Strides { row: 2, col: 2000 }, ..p }), None);
        let vector = Problem::column_major(Dtype::F64, 1000, 1, 300);
        assert_eq!(Class::of(&Problem { b: Strides { row: 3, col: 1 }, ..vector }), None, "x with a step");
        // A leading dimension beyond the lines changes nothing.
        assert_eq!(Class::of(&Problem { a: Strides::column_major(1024), ..p }), Class::of(&p));
    }

    #[test]
    fn lines_are_aligned_where_there_are_several() {
        let p = Problem::column_major(Dtype::F32, 1000, 100, 300);
        assert_eq!(alignment(&p), [true, true]);
        assert_eq!(alignment(&Problem { a: Strides::column_major(1001), ..p }), [false, true]);
        assert_eq!(alignment(&Problem { b: Strides::row_major(102), ..p }), [true, false]);
        assert_eq!(alignment(&Problem { dtype: Dtype::C64, b: Strides::row_major(102), ..p }), [true, true]);
        // One line has no next one; of TSM2R's B nobody asks; a wide product is its transpose.
        assert_eq!(alignment(&Problem::column_major(Dtype::F32, 1001, 1, 1)), [true, true]);
        let skinny = Problem::column_major(Dtype::F32, 1000, 4, 303);
        assert_eq!((alignment(&skinny), alignment(&skinny.transposed())), ([true, true], [true, true]));
        let odd = Problem::column_major(Dtype::F32, 1001, 4, 304);
        assert_eq!((alignment(&odd), alignment(&odd.transposed())), ([false, true], [false, true]));
    }

    #[test]
    fn gaps_are_seen_where_there_are_several_lines() {
        let p = Problem::column_major(Dtype::F64, 1000, 4, 300);
        assert!(is_packed(&p) && is_packed(&p.transposed()));
        for gaps in [
            Problem { a: Strides::column_major(1002), ..p },
            Problem { b: Strides::row_major(6), ..p },
            Problem { c: Strides::column_major(1002), ..p },
        ] {
            assert!(!is_packed(&gaps), "{gaps:?}");
        }
        let vector = Problem::column_major(Dtype::F64, 1000, 1, 300);
        assert!(is_packed(&Problem { b: Strides { row: 1, col: 7 }, c: Strides { row: 1, col: 7 }, ..vector }));
    }

    #[test]
    fn words_are_read_back() {
        let words = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            Class::parse(words[0], words[1], words[2], words[3])
        };
        for text in ["gemv f64 ccc 0", "gram c128 crc 1", "tsm2r f32 rcr 0"] {
            assert_eq!(words(text).map(|class| class.to_string()).as_deref(), Some(text));
        }
        for text in
            ["gemw f64 ccc 0", "gemv f63 ccc 0", "gemv f64 cc 0", "gemv f64 cccc 0", "gemv f64 ccx 0", "gemv f64 ccc 2"]
        {
            assert_eq!(words(text), None, "{text}");
        }
        let gram = words("gram f64 crc 0").expect("a class");
        assert!(gram.problem([5, 5, 700]).is_some_and(|p| p.gram && p.b == p.a.transposed()));
        assert_eq!((gram.problem([5, 4, 700]), gram.problem([5, 5, 0])), (None, None));
        assert_eq!(words("gram f64 ccc 0").and_then(|class| class.problem([5, 5, 700])), None, "one matrix");
        assert_eq!(words("gemv f64 ccc 0").and_then(|class| class.problem([100, 2, 700])), None, "no vector");
    }
}
