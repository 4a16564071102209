//! OpenBLAS, where it is installed: on the CPU, with its own threads; the members of a batch one after the other.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use libloading::Library;

use super::blas::{Gemm, Gemv};
use super::factors::Factors;
use super::{Opponent, Product, blas, library};
use crate::bench::contest::Run;
use crate::bench::data::Addresses;

/// `cblas_?gemm(order, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)`, addresses as numbers; complex factors
/// by address.
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
    /// c and z.
    complex_gemm: [GemmCall<*const c_void>; 2],
    sgemv: GemvCall<f32>,
    dgemv: GemvCall<f64>,
    complex_gemv: [GemvCall<*const c_void>; 2],
}

/// cblas_?gemm, and cblas_?gemv for vectors.
///
/// # Errors
/// Why there is none.
pub fn open() -> Result<Vec<Box<dyn Opponent>>, String> {
    let library = library::open(VARIABLE, &NAMES, &[], None)?;
    let blas = Rc::new(Blas::new(library).map_err(|missing| missing.to_string())?);
    Ok(vec![Box::new(ByGemm(Rc::clone(&blas))), Box::new(ByGemv(blas))])
}

impl Blas {
    fn new(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: the types are those that cblas.h declares for these names, with 32-bit lengths as these files have them.
        unsafe {
            Ok(Self {
                sgemm: *library.get(b"cblas_sgemm\0")?,
                dgemm: *library.get(b"cblas_dgemm\0")?,
                complex_gemm: [*library.get(b"cblas_cgemm\0")?, *library.get(b"cblas_zgemm\0")?],
                sgemv: *library.get(b"cblas_sgemv\0")?,
                dgemv: *library.get(b"cblas_dgemv\0")?,
                complex_gemv: [*library.get(b"cblas_cgemv\0")?, *library.get(b"cblas_zgemv\0")?],
            })
        }
    }
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
        let call = blas::gemm(&product.job.problem)?;
        Some(Box::new(GemmRun { blas: &self.0, call, product, factors: Factors::of(&product) }))
    }
}

struct GemmRun<'b> {
    blas: &'b Blas,
    call: Gemm,
    product: Product<'b>,
    factors: Factors,
}

impl GemmRun<'_> {
    /// # Safety
    /// As `enqueue`, of one member.
    unsafe fn one(&self, at: Addresses) {
        let Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc } = self.call;
        let (a, b) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let (op_a, op_b) = (operation(transpose_a), operation(transpose_b));
        let Product { alpha, beta, .. } = self.product;
        let (order, c) = (COLUMN_MAJOR, at.c);
        // SAFETY: the member that `call` says in BLAS's words lies at `at`, as the caller promised.
        unsafe {
            match self.factors.place() {
                0 => {
                    let (alpha, beta) = (alpha as f32, beta as f32);
                    (self.blas.sgemm)(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
                }
                1 => (self.blas.dgemm)(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                place => {
                    let (alpha, beta) = (self.factors.alpha(), self.factors.beta());
                    let gemm = self.blas.complex_gemm[place - 2];
                    gemm(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
                }
            }
        }
    }
}

impl Run for GemmRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let [a, b, c] = self.product.job.step_bytes();
        for member in 0..self.product.job.batch {
            let at = Addresses { a: at.a + member * a, b: at.b + member * b, c: at.c + member * c };
            // SAFETY: all members lie at `at`, as `enqueue`'s caller promised, each so many bytes behind the one
            // before.
            unsafe { self.one(at) };
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
        let call = blas::gemv(&product.job.problem).filter(|_| product.job.batch == 1)?;
        Some(Box::new(GemvRun { blas: &self.0, call, product, factors: Factors::of(&product) }))
    }
}

struct GemvRun<'b> {
    blas: &'b Blas,
    call: Gemv,
    product: Product<'b>,
    factors: Factors,
}

impl Run for GemvRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemv { swapped, transpose, rows, cols, lda, incx, incy } = self.call;
        let (a, x) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let op = operation(transpose);
        let Product { alpha, beta, .. } = self.product;
        let (order, y) = (COLUMN_MAJOR, at.c);
        // SAFETY: the problem that `call` says in BLAS's words lies at `at`, as `enqueue`'s caller promised.
        unsafe {
            match self.factors.place() {
                0 => {
                    let (alpha, beta) = (alpha as f32, beta as f32);
                    (self.blas.sgemv)(order, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy);
                }
                1 => (self.blas.dgemv)(order, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy),
                place => {
                    let (alpha, beta) = (self.factors.alpha(), self.factors.beta());
                    let gemv = self.blas.complex_gemv[place - 2];
                    gemv(order, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy);
                }
            }
        }
        Ok(())
    }
}
