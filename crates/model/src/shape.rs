//! What is multiplied: strides, spans, problems and the operation that a shape asks for.

use crate::Dtype;
use core::fmt;

/// Distances, in elements, between neighbours of a column (`row`) and of a row (`col`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strides {
    /// From element (i, j) to (i + 1, j).
    pub row: u64,
    /// From element (i, j) to (i, j + 1).
    pub col: u64,
}

impl Strides {
    /// Unit stride down a column; `ld` elements between columns.
    pub const fn column_major(ld: u64) -> Self {
        Strides { row: 1, col: ld }
    }

    /// Unit stride along a row; `ld` elements between rows.
    pub const fn row_major(ld: u64) -> Self {
        Strides { row: ld, col: 1 }
    }

    /// The strides of the transposed matrix.
    pub const fn transposed(self) -> Self {
        Strides { row: self.col, col: self.row }
    }
}

/// Elements that a `rows` x `cols` matrix spans, from its first to its last: row·(rows−1) + col·(cols−1) + 1; 0 where
/// it is empty. `None` where that exceeds 64 bits.
pub const fn span(rows: u64, cols: u64, strides: Strides) -> Option<u64> {
    if rows == 0 || cols == 0 {
        return Some(0);
    }
    let (Some(down), Some(along)) = (strides.row.checked_mul(rows - 1), strides.col.checked_mul(cols - 1)) else {
        return None;
    };
    match down.checked_add(along) {
        Some(last) => last.checked_add(1),
        None => None,
    }
}

/// One of the three matrices of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The left factor, m x k.
    A,
    /// The right factor, k x n.
    B,
    /// The result, m x n.
    C,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Operand::A => "A",
            Operand::B => "B",
            Operand::C => "C",
        })
    }
}

/// C (m x n) ← α A (m x k) B (k x n) + β C. Transposition is in the strides: op(A) is m x k whatever A is stored as;
/// conjugation is a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Element type of A, B and C.
    pub dtype: Dtype,
    /// Rows of op(A) and C.
    pub m: u64,
    /// Columns of op(B) and C.
    pub n: u64,
    /// Columns of op(A), rows of op(B).
    pub k: u64,
    /// Strides of op(A).
    pub a: Strides,
    /// Strides of op(B).
    pub b: Strides,
    /// Strides of C.
    pub c: Strides,
    /// Whether C is read: β is not 0.
    pub reads_c: bool,
    /// Whether B is Aᵀ or Aᴴ, in the same memory: C is a Gram matrix.
    pub gram: bool,
    /// Whether of a Gram matrix a triangle alone is computed.
    pub triangle: bool,
    /// Whether op(A) has the conjugates of what is stored; of real elements they are the same.
    pub conj_a: bool,
    /// The same of op(B).
    pub conj_b: bool,
    /// Whether f32 may be multiplied in two parts on the matrix units ([`Variant::splits_f32`](crate::Variant::splits_f32)).
    pub splits_f32: bool,
}

impl Problem {
    /// All three matrices column-major and packed, β = 0.
    pub const fn column_major(dtype: Dtype, m: u64, n: u64, k: u64) -> Self {
        let (a, b, c) = (Strides::column_major(m), Strides::column_major(k), Strides::column_major(m));
        let (reads_c, conj_a, conj_b, splits_f32) = (false, false, false, false);
        Problem { dtype, m, n, k, a, b, c, reads_c, conj_a, conj_b, splits_f32, gram: false, triangle: false }
    }

    /// The same product transposed: Cᵀ ← α Bᵀ Aᵀ + β Cᵀ.
    pub const fn transposed(self) -> Self {
        Problem {
            dtype: self.dtype,
            m: self.n,
            n: self.m,
            k: self.k,
            a: self.b.transposed(),
            b: self.a.transposed(),
            c: self.c.transposed(),
            reads_c: self.reads_c,
            conj_a: self.conj_b,
            conj_b: self.conj_a,
            gram: self.gram,
            triangle: self.triangle,
            splits_f32: self.splits_f32,
        }
    }

    /// C (m x m) ← α A Aᵀ + β C, where A is m x k of these strides.
    pub const fn gram(dtype: Dtype, m: u64, k: u64, a: Strides) -> Self {
        Problem { a, b: a.transposed(), gram: true, ..Problem::column_major(dtype, m, m, k) }
    }

    /// What the shape asks for.
    pub const fn operation(&self) -> Operation {
        if self.gram { Operation::Gram } else { classify(self.m, self.n, self.k) }
    }

    /// Whether a product is tall and of so few rows that it is done when its slowest block is: what comes before the first product is most of its time, and who cuts C into more blocks is the
    /// fastest where k is not small.
    ///
    /// # Source
    /// An H200 on 2026-11-29 (benches/results/trials/few-rows.csv), 488 cases of 4 to 100000 rows, 2 to 64 columns and 3 to 64 steps of all types: of all entries a
    /// ring was the fastest in 241, of f64 and 64 x 64 by up to 5.8 times as fast as what was chosen without them.
    pub(crate) fn is_short(&self) -> bool {
        self.operation() == Operation::Tsmm && self.m.max(self.n) <= FEW_ROWS
    }

    /// 2mnk, of complex elements 8mnk.
    pub fn flops(&self) -> f64 {
        2.0 * f64::from(self.dtype.fmas()) * self.m as f64 * self.n as f64 * self.k as f64
    }
}

/// Widths up to this are skinny.
pub const SKINNY: u64 = 64;

/// Most rows of a tall product that are few.
const FEW_ROWS: u64 = 32_768;

/// The operation that a shape asks for. Its Display is the name used everywhere: `tsm2r`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A matrix times a vector: n = 1 or m = 1.
    Gemv,
    /// A tall matrix times a small one: k, n <= 64. TSM2L in TSM2X, TSMM in Ernst et al.
    Tsmm,
    /// The product of two tall matrices over their long side: m, n <= 64 < k.
    Tsmttsm,
    /// A tall matrix transposed times itself.
    Gram,
    /// A large matrix times a skinny one: n <= 64 < k, or m <= 64 < k, which is the same transposed.
    Tsm2r,
    /// Everything else.
    Gemm,
}

impl Operation {
    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Gemv => "gemv",
            Operation::Tsmm => "tsmm",
            Operation::Tsmttsm => "tsmttsm",
            Operation::Gram => "gram",
            Operation::Tsm2r => "tsm2r",
            Operation::Gemm => "gemm",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The operation of C (m x n) = op(A) (m x k) op(B) (k x n): total, and the one place that decides. The first that fits.
pub const fn classify(m: u64, n: u64, k: u64) -> Operation {
    if n == 1 || m == 1 {
        Operation::Gemv
    } else if k <= SKINNY && (n <= SKINNY || m <= SKINNY) {
        Operation::Tsmm
    } else if m <= SKINNY && n <= SKINNY {
        Operation::Tsmttsm
    } else if (n <= SKINNY || m <= SKINNY) && k > SKINNY {
        Operation::Tsm2r
    } else {
        Operation::Gemm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_of_a_span_has_no_padding() {
        assert_eq!(span(3, 5, Strides::column_major(7)), Some(7 * 4 + 3));
        assert_eq!(span(3, 5, Strides::row_major(7)), Some(7 * 2 + 5));
        assert_eq!(span(0, 5, Strides::column_major(7)), Some(0));
        assert_eq!(span(1, 1, Strides { row: u64::MAX, col: u64::MAX }), Some(1));
    }

    #[test]
    fn spans_beyond_64_bits_are_none() {
        assert_eq!(span(3, 1, Strides { row: u64::MAX, col: 1 }), None);
        assert_eq!(span(2, 2, Strides { row: u64::MAX / 2, col: u64::MAX / 2 + 2 }), None);
        assert_eq!(span(2, 1, Strides { row: u64::MAX, col: 0 }), None);
        assert_eq!(span(2, 1, Strides { row: u64::MAX - 1, col: 0 }), Some(u64::MAX));
    }

    #[test]
    fn the_first_row_of_the_table_that_fits_wins() {
        use Operation::*;
        for ((m, n, k), operation) in [
            ((1000, 1, 1000), Gemv),
            ((1, 64, 3), Gemv),
            ((1000, 64, 64), Tsmm),
            ((64, 1000, 64), Tsmm),
            ((64, 64, 65), Tsmttsm),
            ((65, 64, 65), Tsm2r),
            ((64, 65, 65), Tsm2r),
            ((65, 65, 65), Gemm),
            ((65, 65, 1), Gemm),
            ((0, 0, 0), Tsmm),
        ] {
            assert_eq!(classify(m, n, k), operation, "{m} x {n} x {k}");
        }
    }

    #[test]
    fn transposing_twice_is_nothing() {
        let p = Problem::column_major(Dtype::F32, 3, 5, 7);
        assert_ne!(p.transposed(), p);
        assert_eq!(p.transposed().transposed(), p);
        let p = Problem { conj_a: true, ..p };
        assert!(p.transposed().conj_b && !p.transposed().conj_a);
        assert_eq!(classify(p.m, p.n, p.k), classify(p.n, p.m, p.k));
    }
}
