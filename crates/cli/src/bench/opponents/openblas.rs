//! OpenBLAS, where it is installed: on the CPU, with its own threads.

use std::ffi::c_int;
use std::rc::Rc;

use model::Dtype;

use super::blas::{Gemm, Gemv};
use super::{Opponent, Product, blas, library};
use crate::bench::contest::Run;
use crate::bench::data::Addresses;

/// `cblas_?gemm(order, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)`, addresses as numbers.
type GemmCall<T> =
    unsafe extern "C" fn(c_int, c_int, c_int, c_int, c_int, c_int, T, u64, c_int, u64, c_int, T, u64, c_int);
/// `cblas_?gemv(order, trans, m, n, alpha, A, lda, x, incx, beta, y, incy)`.
type GemvCall<T> = unsafe extern "C" fn(c_int, c_int, c_int, c_int, T, u64, c_int, u64, c_int, T, u64, c_int);

const NAMES: [&str; 2] = ["libopenblas.so.0", "libopenblas.so"];
/// A library, or the folder of one.
const VARIABLE: &str = "LANKY_OPENBLAS";
/// CblasColMajor, CblasNoTrans; CblasTrans is the next number.
const COLUMN_MAJOR: c_int = 102;
const NO_TRANSPOSE: c_int = 111;

struct Blas {
    sgemm: GemmCall<f32>,
    dgemm: GemmCall<f64>,
    sgemv: GemvCall<f32>,
    dgemv: GemvCall<f64>,
}

/// cblas_?gemm, and cblas_?gemv for vectors.
///
/// # Errors
/// Why there is none.
pub fn open() -> Result<Vec<Box<dyn Opponent>>, String> {
    let library = library::open(VARIABLE, &NAMES, &[], None)?;
    let missing = |error: libloading::Error| error.to_string();
    // SAFETY: the types are those that cblas.h declares for these names, with 32-bit lengths as these files have them.
    let blas = unsafe {
        Blas {
            sgemm: *library.get(b"cblas_sgemm\0").map_err(missing)?,
            dgemm: *library.get(b"cblas_dgemm\0").map_err(missing)?,
            sgemv: *library.get(b"cblas_sgemv\0").map_err(missing)?,
            dgemv: *library.get(b"cblas_dgemv\0").map_err(missing)?,
        }
    };
    let blas = Rc::new(blas);
    Ok(vec![Box::new(ByGemm(Rc::clone(&blas))), Box::new(ByGemv(blas))])
}

const fn operation(transposed: bool) -> c_int {
    if transposed { NO_TRANSPOSE + 1 } else { NO_TRANSPOSE }
}

struct ByGemm(Rc<Blas>);

impl Opponent for ByGemm {
    fn name(&self) -> &str {
        "openblas"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let call = blas::gemm(&product.problem)?;
        Some(Box::new(GemmRun { blas: &self.0, call, product }))
    }
}

struct GemmRun<'b> {
    blas: &'b Blas,
    call: Gemm,
    product: Product<'b>,
}

impl Run for GemmRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc } = self.call;
        let (a, b) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let (op_a, op_b) = (operation(transpose_a), operation(transpose_b));
        let Product { alpha, beta, .. } = self.product;
        let (order, c) = (COLUMN_MAJOR, at.c);
        // SAFETY: the caller's memory, of the problem that `call` says in BLAS's words.
        unsafe {
            match self.product.problem.dtype {
                Dtype::F32 => {
                    let (alpha, beta) = (alpha as f32, beta as f32);
                    (self.blas.sgemm)(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
                }
                Dtype::F64 => (self.blas.dgemm)(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
            }
        }
        Ok(())
    }
}

struct ByGemv(Rc<Blas>);

impl Opponent for ByGemv {
    fn name(&self) -> &str {
        "openblas-gemv"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let call = blas::gemv(&product.problem)?;
        Some(Box::new(GemvRun { blas: &self.0, call, product }))
    }
}

struct GemvRun<'b> {
    blas: &'b Blas,
    call: Gemv,
    product: Product<'b>,
}

impl Run for GemvRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemv { swapped, transpose, rows, cols, lda, incx, incy } = self.call;
        let (a, x) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let op = operation(transpose);
        let Product { alpha, beta, .. } = self.product;
        let (order, y) = (COLUMN_MAJOR, at.c);
        // SAFETY: as in `GemmRun`.
        unsafe {
            match self.product.problem.dtype {
                Dtype::F32 => {
                    let (alpha, beta) = (alpha as f32, beta as f32);
                    (self.blas.sgemv)(order, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy);
                }
                Dtype::F64 => (self.blas.dgemv)(order, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy),
            }
        }
        Ok(())
    }
}
