//! cuBLAS, if this machine has it: the product that lanky is compared with, in the same process.

use crate::lab::{Fault, Outcome};
use crate::real::Real;
use libloading::Library;
use model::Dtype;
use std::ffi::{c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

type Handle = *mut c_void;
/// `cublas?gemm_v2(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)`.
type Gemm = unsafe extern "C" fn(
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

/// CUBLAS_OP_N and CUBLAS_OP_T.
const NO_TRANSPOSE: c_int = 0;
const TRANSPOSE: c_int = 1;
/// CUBLAS_DEFAULT_MATH, and CUBLAS_PEDANTIC_MATH: no TF32 for f32.
const DEFAULT: c_uint = 0;
const PEDANTIC: c_uint = 2;

/// Names of the library, newest first.
const NAMES: [&str; 2] = ["libcublas.so.13", "libcublas.so.12"];
/// A library in its own words, or the folder of one.
const PATH_VARIABLE: &str = "LANKY_CUBLAS";

/// C (m x n) ← A (m x m) B, B and C column-major and packed.
pub struct Product {
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Whether A is.
    pub row_major: bool,
    /// Device addresses.
    pub a: u64,
    /// Of B.
    pub b: u64,
    /// Of C.
    pub c: u64,
}

/// The library with a handle for one stream.
pub struct Cublas {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    set_mode: unsafe extern "C" fn(Handle, c_uint) -> c_int,
    sgemm: Gemm,
    dgemm: Gemm,
    /// The functions are in it.
    _library: Library,
}

impl Cublas {
    /// On this stream, whose context must be current whenever the result is used.
    ///
    /// # Errors
    /// If no library is found, with the places, or it fails.
    pub fn open(stream: Handle) -> Outcome<Cublas> {
        let library = load()?;
        // SAFETY: the types are those that NVIDIA's cublas_api.h declares for these names.
        unsafe {
            let create: unsafe extern "C" fn(*mut Handle) -> c_int = *library.get(b"cublasCreate_v2\0")?;
            let set_stream: unsafe extern "C" fn(Handle, Handle) -> c_int = *library.get(b"cublasSetStream_v2\0")?;
            let set_mode = *library.get(b"cublasSetMathMode\0")?;
            let destroy = *library.get(b"cublasDestroy_v2\0")?;
            let (sgemm, dgemm) = (*library.get(b"cublasSgemm_v2\0")?, *library.get(b"cublasDgemm_v2\0")?);
            let mut handle = ptr::null_mut();
            done("cublasCreate", create(&raw mut handle))?;
            let cublas = Cublas { handle, destroy, set_mode, sgemm, dgemm, _library: library };
            done("cublasSetStream", set_stream(handle, stream))?;
            Ok(cublas)
        }
    }

    /// The function that is timed.
    pub fn function<T: Real>() -> &'static str {
        match T::DTYPE {
            Dtype::F32 => "cublasSgemm",
            Dtype::F64 => "cublasDgemm",
        }
    }

    /// From now on it computes in this element type.
    ///
    /// # Errors
    /// If it cannot.
    pub fn prepare<T: Real>(&self) -> Outcome {
        let mode = if T::DTYPE == Dtype::F32 { PEDANTIC } else { DEFAULT };
        // SAFETY: the handle is alive.
        done("cublasSetMathMode", unsafe { (self.set_mode)(self.handle, mode) })
    }

    /// Enqueues the product.
    ///
    /// # Safety
    /// The addresses are memory of the stream's context of m m, m n and m n elements, which stays until the work is done.
    ///
    /// # Errors
    /// If a size exceeds cuBLAS's 31 bits, or it fails.
    pub unsafe fn gemm<T: Real>(&self, p: &Product) -> Outcome {
        let (m, n) = (c_int::try_from(p.m)?, c_int::try_from(p.n)?);
        let (one, zero) = (T::one(), T::zero());
        let (alpha, beta) = ((&raw const one).cast(), (&raw const zero).cast());
        let op = if p.row_major { TRANSPOSE } else { NO_TRANSPOSE };
        let gemm = if T::DTYPE == Dtype::F32 { self.sgemm } else { self.dgemm };
        // SAFETY: the caller's memory; α and β are the host's, read before the call returns, as cuBLAS's default pointer
        // mode has it.
        let code = unsafe { gemm(self.handle, op, NO_TRANSPOSE, m, n, m, alpha, p.a, m, p.b, m, beta, p.c, m) };
        done(Self::function::<T>(), code)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: made by `open`, dropped once.
        unsafe { (self.destroy)(self.handle) };
    }
}

fn done(call: &str, code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(format!("{call} failed: {code}").into()) }
}

/// Where the variable says, else by the loader's own search, else in the folders of Python packages.
fn load() -> Outcome<Library> {
    let mut tried = Vec::new();
    for path in candidates() {
        if path.is_absolute() {
            if !path.exists() {
                continue;
            }
            // Its companion is needed first where the loader does not look beside it; if it fails, so does the next line.
            let beside = path.to_string_lossy().replace("libcublas.", "libcublasLt.");
            // SAFETY: NVIDIA's library, whose initialisation asks nothing of the process. It stays loaded.
            if let Ok(library) = unsafe { Library::new(beside) } {
                std::mem::forget(library);
            }
        }
        // SAFETY: as above.
        match unsafe { Library::new(&path) } {
            Ok(library) => {
                eprintln!("cuBLAS: {}", path.display());
                return Ok(library);
            }
            Err(why) => tried.push(format!("{}: {why}", path.display())),
        }
    }
    Err(Fault::from(tried.join("; ")))
}

fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(path) = std::env::var_os(PATH_VARIABLE).map(PathBuf::from) {
        found.extend(NAMES.map(|name| path.join(name)));
        found.push(path);
    }
    found.extend(NAMES.map(PathBuf::from));
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/lib"));
    let roots = [Some("/usr/lib".into()), Some("/usr/local/lib".into()), Some("/opt/conda/lib".into()), home];
    for python in roots.into_iter().flatten().flat_map(|root: PathBuf| folders(&root, "python3")) {
        for packages in ["site-packages", "dist-packages"] {
            for inside in ["nvidia/cu13/lib", "nvidia/cublas/lib"] {
                found.extend(NAMES.map(|name| python.join(packages).join(inside).join(name)));
            }
        }
    }
    for toolkit in folders(Path::new("/usr/local"), "cuda") {
        found.extend(NAMES.map(|name| toolkit.join("lib64").join(name)));
    }
    found
}

/// Folders in `root` whose names begin so.
fn folders(root: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
