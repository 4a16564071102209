//! A product in the words of BLAS: column-major, with operations and leading dimensions of 32 bits.

use std::ffi::c_int;

use model::Problem;

/// C (m x n, column-major) <- op(A) op(B) + beta C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Whether it is the transposed product: then A and B have changed places.
    pub swapped: bool,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub m: c_int,
    pub n: c_int,
    pub k: c_int,
    pub lda: c_int,
    pub ldb: c_int,
    pub ldc: c_int,
}

/// y <- op(A) x + beta y, of the same product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemv {
    /// Whether the matrix is the product's B.
    pub swapped: bool,
    pub transpose: bool,
    /// Rows and columns of A as stored.
    pub rows: c_int,
    pub cols: c_int,
    pub lda: c_int,
    pub incx: c_int,
    pub incy: c_int,
}

/// `None` where strides or lengths are beyond BLAS.
pub fn gemm(p: &Problem) -> Option<Gemm> {
    let (p, swapped) = if is_columns(p.c.row, p.c.col, p.m, p.n) { (*p, false) } else { (p.transposed(), true) };
    if !is_columns(p.c.row, p.c.col, p.m, p.n) {
        return None;
    }
    let (transpose_a, lda) = operation(p.a.row, p.a.col, p.m, p.k)?;
    let (transpose_b, ldb) = operation(p.b.row, p.b.col, p.k, p.n)?;
    let [m, n, k, ldc] = ints([p.m, p.n, p.k, p.c.col.max(p.m)])?;
    let [lda, ldb] = ints([lda, ldb])?;
    Some(Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc })
}

/// Where one of the factors is a vector.
pub fn gemv(p: &Problem) -> Option<Gemv> {
    let (p, swapped) = if p.n == 1 { (*p, false) } else { (p.transposed(), true) };
    if p.n != 1 {
        return None;
    }
    let (transpose, lda) = operation(p.a.row, p.a.col, p.m, p.k)?;
    let (rows, cols) = if transpose { (p.k, p.m) } else { (p.m, p.k) };
    let [rows, cols, lda] = ints([rows, cols, lda])?;
    let [incx, incy] = ints([p.b.row, p.c.row])?;
    (incx > 0 && incy > 0).then_some(Gemv { swapped, transpose, rows, cols, lda, incx, incy })
}

/// Whether a rows x cols matrix lies column by column; a stride along an axis of one element is anything.
fn is_columns(row: u64, col: u64, rows: u64, cols: u64) -> bool {
    (rows <= 1 || row == 1) && (cols <= 1 || col >= rows)
}

/// Whether BLAS has to transpose what is stored to get the matrix, and the leading dimension.
fn operation(row: u64, col: u64, rows: u64, cols: u64) -> Option<(bool, u64)> {
    if is_columns(row, col, rows, cols) {
        Some((false, if cols <= 1 { rows } else { col }))
    } else if is_columns(col, row, cols, rows) {
        Some((true, if rows <= 1 { cols } else { row }))
    } else {
        None
    }
}

fn ints<const N: usize>(lengths: [u64; N]) -> Option<[c_int; N]> {
    let mut ints = [0; N];
    for (int, length) in ints.iter_mut().zip(lengths) {
        *int = c_int::try_from(length).ok()?;
    }
    Some(ints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Dtype, Strides};

    fn problem(a: Strides, b: Strides, c: Strides) -> Problem {
        Problem { a, b, c, ..Problem::column_major(Dtype::F64, 5, 3, 7) }
    }

    #[test]
    fn every_layout_has_its_words() {
        let (col, row) = (Strides::column_major, Strides::row_major);
        let of = |a, b, c| gemm(&problem(a, b, c)).map(|g| (g.swapped, g.transpose_a, g.transpose_b));
        assert_eq!(of(col(5), col(7), col(5)), Some((false, false, false)));
        assert_eq!(of(row(7), col(7), col(5)), Some((false, true, false)));
        assert_eq!(of(row(7), row(3), row(3)), Some((true, false, false)));
        assert_eq!(of(col(5), col(7), row(3)), Some((true, true, true)));
        assert_eq!(of(Strides { row: 2, col: 10 }, col(7), col(5)), None);
        let g = gemm(&problem(row(8), col(9), row(4))).expect("it has");
        // Cᵀ (3 x 5) = Bᵀ Aᵀ: B, by columns of 9, is read transposed.
        assert_eq!((g.m, g.n, g.k, g.lda, g.ldb, g.ldc), (3, 5, 7, 9, 8, 4));
        assert_eq!((g.transpose_a, g.transpose_b), (true, false));
    }

    #[test]
    fn vectors_may_be_rows_or_columns() {
        let one =
            Problem { n: 1, ..problem(Strides::column_major(6), Strides::column_major(7), Strides::column_major(5)) };
        let v = gemv(&one).expect("it has");
        assert_eq!((v.swapped, v.transpose, v.rows, v.cols, v.lda, v.incx, v.incy), (false, false, 5, 7, 6, 1, 1));
        // A row times a matrix: cᵀ = Bᵀ aᵀ.
        let row =
            Problem { m: 1, ..problem(Strides::column_major(2), Strides::column_major(8), Strides::column_major(4)) };
        let v = gemv(&row).expect("it has");
        assert_eq!((v.swapped, v.transpose, v.rows, v.cols, v.lda, v.incx, v.incy), (true, true, 7, 3, 8, 2, 4));
        assert_eq!(gemv(&problem(Strides::column_major(5), Strides::column_major(7), Strides::column_major(5))), None);
    }

    #[test]
    fn lengths_beyond_31_bits_have_none() {
        let long = Problem::column_major(Dtype::F32, 1 << 31, 2, 2);
        assert_eq!(gemm(&long), None);
    }
}
