//! cuBLAS, in this process and on our stream, in its default mode of calculation: f32 is f32.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;

use libloading::Library;
use model::Dtype;

use super::blas::{Gemm, Gemv};
use super::{Opponent, Product, blas, failed, library};
use crate::bench::contest::Run;
use crate::bench::data::Addresses;

type Handle = *mut c_void;
/// `cublas?gemm_v2(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)`.
type GemmCall = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    u64,
    c_int,
    *const c_void,
    u64,
    c_int,
) -> c_int;
/// `cublas?gemv_v2(handle, trans, m, n, alpha, A, lda, x, incx, beta, y, incy)`.
type GemvCall = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    u64,
    c_int,
    *const c_void,
    u64,
    c_int,
) -> c_int;

/// Names of the library, newest first.
const NAMES: [&str; 2] = ["libcublas.so.13", "libcublas.so.12"];
/// A library, or the folder of one.
const VARIABLE: &str = "LANKY_CUBLAS";

/// The library with a handle for one stream. Its context is current whenever this is used.
struct Cublas {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    gemm: [GemmCall; 2],
    gemv: [GemvCall; 2],
}

/// cublas?gemm, and cublas?gemv for vectors.
///
/// # Errors
/// Why there is none.
pub fn open(stream: *mut c_void) -> Result<Vec<Box<dyn Opponent>>, String> {
    let beside = |name: &str| name.replace("libcublas.", "libcublasLt.");
    let library = library::open(VARIABLE, &NAMES, &library::nvidia_folders(), Some(beside))?;
    let cublas = Rc::new(Cublas::new(library, stream)?);
    Ok(vec![Box::new(ByGemm(Rc::clone(&cublas))), Box::new(ByGemv(cublas))])
}

impl Cublas {
    fn new(library: &Library, stream: *mut c_void) -> Result<Self, String> {
        let missing = |error: libloading::Error| error.to_string();
        // SAFETY: the types are those that NVIDIA's cublas_api.h declares for these names.
        unsafe {
            let create: unsafe extern "C" fn(*mut Handle) -> c_int =
                *library.get(b"cublasCreate_v2\0").map_err(missing)?;
            let set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> c_int =
                *library.get(b"cublasSetStream_v2\0").map_err(missing)?;
            let destroy = *library.get(b"cublasDestroy_v2\0").map_err(missing)?;
            let gemm = [
                *library.get(b"cublasSgemm_v2\0").map_err(missing)?,
                *library.get(b"cublasDgemm_v2\0").map_err(missing)?,
            ];
            let gemv = [
                *library.get(b"cublasSgemv_v2\0").map_err(missing)?,
                *library.get(b"cublasDgemv_v2\0").map_err(missing)?,
            ];
            let mut handle = ptr::null_mut();
            match create(&raw mut handle) {
                0 => {}
                code => return Err(format!("cublasCreate gave {code}")),
            }
            let cublas = Self { handle, destroy, gemm, gemv };
            match set_stream(handle, stream) {
                0 => Ok(cublas),
                code => Err(format!("cublasSetStream gave {code}")),
            }
        }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: made by `new`, dropped once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// α and β where cuBLAS reads them: on the host, before a call returns.
struct Factors {
    single: [f32; 2],
    double: [f64; 2],
    dtype: Dtype,
}

impl Factors {
    fn of(product: &Product<'_>) -> Self {
        let double = [product.alpha, product.beta];
        Self { single: double.map(|x| x as f32), double, dtype: product.problem.dtype }
    }

    fn address(&self, which: usize) -> *const c_void {
        match self.dtype {
            Dtype::F32 => (&raw const self.single[which]).cast(),
            Dtype::F64 => (&raw const self.double[which]).cast(),
        }
    }

    fn place(&self) -> usize {
        match self.dtype {
            Dtype::F32 => 0,
            Dtype::F64 => 1,
        }
    }
}

struct ByGemm(Rc<Cublas>);

impl Opponent for ByGemm {
    fn name(&self) -> &str {
        "cublas"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let call = blas::gemm(&product.problem)?;
        Some(Box::new(GemmRun { cublas: &self.0, call, factors: Factors::of(&product) }))
    }
}

struct GemmRun<'c> {
    cublas: &'c Cublas,
    call: Gemm,
    factors: Factors,
}

impl Run for GemmRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc } = self.call;
        let (a, b) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let (alpha, beta) = (self.factors.address(0), self.factors.address(1));
        let gemm = self.cublas.gemm[self.factors.place()];
        let (op_a, op_b) = (c_int::from(transpose_a), c_int::from(transpose_b));
        // SAFETY: the caller's memory, of the problem that `call` says in BLAS's words.
        match unsafe { gemm(self.cublas.handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, at.c, ldc) } {
            0 => Ok(()),
            code => Err(failed("cublas?gemm", code)),
        }
    }
}

struct ByGemv(Rc<Cublas>);

impl Opponent for ByGemv {
    fn name(&self) -> &str {
        "cublas-gemv"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let call = blas::gemv(&product.problem)?;
        Some(Box::new(GemvRun { cublas: &self.0, call, factors: Factors::of(&product) }))
    }
}

struct GemvRun<'c> {
    cublas: &'c Cublas,
    call: Gemv,
    factors: Factors,
}

impl Run for GemvRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemv { swapped, transpose, rows, cols, lda, incx, incy } = self.call;
        let (a, x) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let (alpha, beta) = (self.factors.address(0), self.factors.address(1));
        let gemv = self.cublas.gemv[self.factors.place()];
        let op = c_int::from(transpose);
        // SAFETY: as in `GemmRun`.
        match unsafe { gemv(self.cublas.handle, op, rows, cols, alpha, a, lda, x, incx, beta, at.c, incy) } {
            0 => Ok(()),
            code => Err(failed("cublas?gemv", code)),
        }
    }
}
