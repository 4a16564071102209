//! cuBLAS, in this process and on our stream, in its default mode of calculation: f32 is f32. Single products by ?gemm and
//! ?gemv, batches by ?gemmStridedBatched and ?gemmBatched, of all four element types.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr;
use std::rc::Rc;

use libloading::Library;

use batched::{Batched, Strided};

use super::blas::{Gemm, Gemv};
use super::factors::Factors;
use super::{Opponent, Product, blas, failed, library};
use crate::bench::contest::Run;
use crate::bench::data::Addresses;

mod batched;

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

/// `cublas?gemmStridedBatched(handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc,
/// strideC, batchCount)`.
type StridedCall = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_longlong,
    u64,
    c_int,
    c_longlong,
    *const c_void,
    u64,
    c_int,
    c_longlong,
    c_int,
) -> c_int;
/// `cublas?gemmBatched(handle, transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount)`: the
/// arrays of pointers are the device's.
type BatchedCall = unsafe extern "C" fn(
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
    /// Each for s, d, c and z.
    gemm: [GemmCall; 4],
    gemv: [GemvCall; 4],
    strided: [StridedCall; 4],
    batched: [BatchedCall; 4],
}

/// Those for single products, for vectors, and for batches.
///
/// # Errors
/// Why there is none.
pub fn open(stream: *mut c_void) -> Result<Vec<Box<dyn Opponent>>, String> {
    let beside = |name: &str| name.replace("libcublas.", "libcublasLt.");
    let library = library::open(VARIABLE, &NAMES, &library::nvidia_folders(), Some(beside))?;
    let cublas = Rc::new(Cublas::new(library, stream)?);
    Ok(vec![
        Box::new(ByGemm(Rc::clone(&cublas))),
        Box::new(ByGemv(Rc::clone(&cublas))),
        Box::new(Strided(Rc::clone(&cublas))),
        Box::new(Batched(cublas)),
    ])
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
            let gemm = four(library, "gemm_v2").map_err(missing)?;
            let gemv = four(library, "gemv_v2").map_err(missing)?;
            let strided = four(library, "gemmStridedBatched").map_err(missing)?;
            let batched = four(library, "gemmBatched").map_err(missing)?;
            let mut handle = ptr::null_mut();
            match create(&raw mut handle) {
                0 => {}
                code => return Err(format!("cublasCreate gave {code}")),
            }
            let cublas = Self { handle, destroy, gemm, gemv, strided, batched };
            match set_stream(handle, stream) {
                0 => Ok(cublas),
                code => Err(format!("cublasSetStream gave {code}")),
            }
        }
    }
}

/// The function of this name for each of s, d, c and z.
///
/// # Safety
/// All four are of this type.
unsafe fn four<F: Copy>(library: &Library, name: &str) -> Result<[F; 4], libloading::Error> {
    // SAFETY: all four functions are of type F, as the caller promised; the name ends in a zero byte.
    let of = |letter: char| unsafe { library.get::<F>(format!("cublas{letter}{name}\0").as_bytes()).map(|call| *call) };
    Ok([of('S')?, of('D')?, of('C')?, of('Z')?])
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: made by `new`, dropped once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// What an opponent of cuBLAS's calls with: a product in BLAS's words.
struct Call<'c, W> {
    cublas: &'c Cublas,
    words: W,
    factors: Factors,
}

impl<'c, W> Call<'c, W> {
    fn new(cublas: &'c Cublas, words: W, product: &Product<'_>) -> Self {
        Self { cublas, words, factors: Factors::of(product) }
    }
}

fn status(call: &str, code: c_int) -> lanky::Result<()> {
    if code == 0 { Ok(()) } else { Err(failed(call, code)) }
}

struct ByGemm(Rc<Cublas>);

impl Opponent for ByGemm {
    fn name(&self) -> &str {
        "cublas"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let words = blas::gemm(&product.job.problem).filter(|_| product.job.batch == 1)?;
        Some(Box::new(Call::new(&self.0, words, &product)))
    }
}

impl Run for Call<'_, Gemm> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc } = self.words;
        let (a, b) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let (alpha, beta) = (self.factors.alpha(), self.factors.beta());
        let gemm = self.cublas.gemm[self.factors.place()];
        let (op_a, op_b) = (c_int::from(transpose_a), c_int::from(transpose_b));
        // SAFETY: the problem that `words` says lies at `at` until the work is done, as `enqueue`'s caller promised.
        let code = unsafe { gemm(self.cublas.handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, at.c, ldc) };
        status("cublas?gemm", code)
    }
}

struct ByGemv(Rc<Cublas>);

impl Opponent for ByGemv {
    fn name(&self) -> &str {
        "cublas-gemv"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let words = blas::gemv(&product.job.problem).filter(|_| product.job.batch == 1)?;
        Some(Box::new(Call::new(&self.0, words, &product)))
    }
}

impl Run for Call<'_, Gemv> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Gemv { swapped, transpose, rows, cols, lda, incx, incy } = self.words;
        let (a, x) = if swapped { (at.b, at.a) } else { (at.a, at.b) };
        let (alpha, beta) = (self.factors.alpha(), self.factors.beta());
        let gemv = self.cublas.gemv[self.factors.place()];
        let op = c_int::from(transpose);
        // SAFETY: the problem that `words` says lies at `at` until the work is done, as `enqueue`'s caller promised.
        let code = unsafe { gemv(self.cublas.handle, op, rows, cols, alpha, a, lda, x, incx, beta, at.c, incy) };
        status("cublas?gemv", code)
    }
}
