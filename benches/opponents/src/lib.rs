//! The crates that lanky is compared with, behind three functions that `lanky bench` looks up by name.
//!
//! `LANKY_OPPONENTS` names this library's file; what both must agree on has a version.

use std::ffi::{c_char, c_int, c_void};
use std::panic::catch_unwind;

mod cpu;
mod oxicuda;
#[cfg(test)]
mod tests;

/// C (m x n) <- alpha A (m x k) B (k x n) + beta C, of each member of a batch; strides and steps count elements, addresses are the host's or a GPU's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// 0 for f32, 1 for f64, 2 and 3 for complex numbers of them.
    pub dtype: u32,
    /// Whether the addresses are a GPU's, whose context is current.
    pub cuda: u32,
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
    /// Address of A's first element.
    pub a: u64,
    /// From a row of A to the next.
    pub a_row: u64,
    /// From a column of A to the next.
    pub a_col: u64,
    /// Address of B's first element.
    pub b: u64,
    /// From a row of B to the next.
    pub b_row: u64,
    /// From a column of B to the next.
    pub b_col: u64,
    /// Address of C's first element.
    pub c: u64,
    /// From a row of C to the next.
    pub c_row: u64,
    /// From a column of C to the next.
    pub c_col: u64,
    /// Factor of the product.
    pub alpha: f64,
    /// Factor of C; if 0, C is not read.
    pub beta: f64,
    /// How many products.
    pub batch: u64,
    /// From a member's A to the next one's.
    pub a_step: u64,
    /// From a member's B to the next one's.
    pub b_step: u64,
    /// From a member's C to the next one's.
    pub c_step: u64,
    /// The CUstream behind whose work the product comes, and before whose later work; null on the host.
    pub stream: *mut c_void,
}

/// Of the functions here and the fields of [`Call`].
const VERSION: u32 = 2;
/// What a function gives that does not compute this product.
const NOT_MINE: c_int = 1;
/// What a function gives that failed.
const FAILED: c_int = 2;

/// Whether it computed the product; if not, why, as one of the numbers above.
type Outcome = Result<(), c_int>;
/// One of the opponents: its name, ending with a zero, and what computes.
type Opponent = (&'static [u8], unsafe fn(&Call) -> Outcome);

/// On the host.
const CPU: [Opponent; 3] = [(b"gemm\0", cpu::gemm), (b"faer\0", cpu::faer), (b"matrixmultiply\0", cpu::matrixmultiply)];
/// On a GPU.
const CUDA: [Opponent; 1] = [(b"oxicuda-blas\0", oxicuda::gemm)];

const fn all(cuda: bool) -> &'static [Opponent] {
    if cuda { &CUDA } else { &CPU }
}

/// The version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn lanky_opponents_version() -> u32 {
    VERSION
}

/// The name of an opponent, ending with a zero; null behind the last.
#[unsafe(no_mangle)]
pub extern "C" fn lanky_opponents_name(cuda: u32, index: u32) -> *const c_char {
    let found = usize::try_from(index).ok().and_then(|index| all(cuda != 0).get(index));
    found.map_or(std::ptr::null(), |(name, _)| name.as_ptr().cast())
}

/// Computes a product; 0 if that was done, or given to a GPU in the order of the call's stream.
///
/// # Safety
/// `call` points to a call whose operands are memory of the device, C overlapping neither A nor B, until the work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanky_opponents_run(index: u32, call: *const Call) -> c_int {
    // SAFETY: the caller's promise.
    let call = unsafe { *call };
    let Some((_, run)) = usize::try_from(index).ok().and_then(|index| all(call.cuda != 0).get(index)) else {
        return NOT_MINE;
    };
    // SAFETY: the caller's promise.
    match catch_unwind(|| unsafe { run(&call) }) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code,
        Err(_) => FAILED,
    }
}
