//! Opponents that are Rust crates: in a library of their own (benches/opponents), which this program loads if
//! LANKY_OPPONENTS names it. So the program itself is built and installed without any of them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::Library;
use model::Dtype;

use super::{Opponent, Product, failed};
use crate::bench::contest::Run;
use crate::bench::data::Addresses;

/// The library's file.
const VARIABLE: &str = "LANKY_OPPONENTS";
/// What this file and the library must agree on: functions, and the fields of [`Call`].
const VERSION: u32 = 2;

/// A product as the library is handed it; `#[repr(C)]` there too. Strides count elements.
#[repr(C)]
struct Call {
    /// 0 for f32, 1 for f64, 2 and 3 for complex numbers of them.
    dtype: u32,
    /// Whether the addresses are a GPU's.
    cuda: u32,
    m: u64,
    n: u64,
    k: u64,
    a: u64,
    a_row: u64,
    a_col: u64,
    b: u64,
    b_row: u64,
    b_col: u64,
    c: u64,
    c_row: u64,
    c_col: u64,
    alpha: f64,
    beta: f64,
    batch: u64,
    a_step: u64,
    b_step: u64,
    c_step: u64,
    stream: *mut c_void,
}

/// Computes by the opponent of this number; 0 where it did.
type RunCall = unsafe extern "C" fn(u32, *const Call) -> c_int;

/// Those for the kind of device; `None` if no library is named.
///
/// # Errors
/// Why the one that is named cannot be used.
pub fn open(cuda: bool) -> Result<Option<Vec<Box<dyn Opponent>>>, String> {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return Ok(None) };
    let fault = |reason: String| format!("{VARIABLE}: {}: {reason}", Path::new(&path).display());
    // SAFETY: the user's word that this is benches/opponents, whose initialisation does nothing.
    // It stays loaded: there are threads in it.
    let library = unsafe { Library::new(&path) }.map_err(|error| fault(error.to_string()))?;
    let library: &'static Library = Box::leak(Box::new(library));
    let missing = |error: libloading::Error| fault(error.to_string());
    // SAFETY: the types are those of benches/opponents, whose version is compared before anything else is called; names
    // are texts that end with a zero and live as long as the library, which is never unloaded.
    unsafe {
        let version: unsafe extern "C" fn() -> u32 = *library.get(b"lanky_opponents_version\0").map_err(missing)?;
        let found = version();
        if found != VERSION {
            return Err(fault(format!("it is of version {found}, this program of {VERSION}")));
        }
        let name: unsafe extern "C" fn(u32, u32) -> *const c_char =
            *library.get(b"lanky_opponents_name\0").map_err(missing)?;
        let run: RunCall = *library.get(b"lanky_opponents_run\0").map_err(missing)?;
        let mut all: Vec<Box<dyn Opponent>> = Vec::new();
        for index in 0.. {
            let text = name(u32::from(cuda), index);
            if text.is_null() {
                break;
            }
            let name = CStr::from_ptr(text).to_string_lossy().into_owned();
            all.push(Box::new(Peer { name, index, run }));
        }
        Ok(Some(all))
    }
}

struct Peer {
    name: String,
    index: u32,
    run: RunCall,
}

impl Opponent for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        // Those of a GPU multiply real matrices one by one.
        let can = product.stream.as_raw().is_none() || product.job.is_single_real();
        can.then(|| Box::new(PeerRun { peer: self, product }) as Box<dyn Run + 's>)
    }
}

struct PeerRun<'p> {
    peer: &'p Peer,
    product: Product<'p>,
}

impl Run for PeerRun<'_> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let Product { job, alpha, beta, stream } = self.product;
        let (p, [a_step, b_step, c_step]) = (job.problem, job.steps);
        let complex = if job.reals == 2 { 2 } else { 0 };
        let raw = stream.as_raw();
        let call = Call {
            dtype: complex + u32::from(p.dtype == Dtype::F64),
            cuda: u32::from(raw.is_some()),
            m: p.m,
            n: p.n,
            k: p.k,
            a: at.a,
            a_row: p.a.row,
            a_col: p.a.col,
            b: at.b,
            b_row: p.b.row,
            b_col: p.b.col,
            c: at.c,
            c_row: p.c.row,
            c_col: p.c.col,
            alpha,
            beta,
            batch: job.batch,
            a_step,
            b_step,
            c_step,
            stream: raw.unwrap_or(std::ptr::null_mut()),
        };
        // SAFETY: the problem that the call says lies at `at`, as `enqueue`'s caller promised.
        match unsafe { (self.peer.run)(self.peer.index, &raw const call) } {
            0 => Ok(()),
            code => Err(failed(&self.peer.name, code)),
        }
    }
}
