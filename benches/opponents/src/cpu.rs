//! gemm, faer and matrixmultiply, each with as many threads as it takes; of a batch each member on one thread.

use crate::{Call, NOT_MINE, Outcome};
use ::faer::linalg::matmul::matmul;
use ::faer::{Accum, MatMut, MatRef, Par};
use ::gemm::Parallelism;
use num_complex::Complex;
use rayon::prelude::*;

/// Lengths and strides as these crates take them.
struct Lengths {
    m: usize,
    n: usize,
    k: usize,
    a: (isize, isize),
    b: (isize, isize),
    c: (isize, isize),
}

impl Lengths {
    fn of(call: &Call) -> Result<Self, i32> {
        let length = |length: u64| usize::try_from(length).map_err(|_| NOT_MINE);
        let stride = |stride: u64| isize::try_from(stride).map_err(|_| NOT_MINE);
        Ok(Self {
            m: length(call.m)?,
            n: length(call.n)?,
            k: length(call.k)?,
            a: (stride(call.a_row)?, stride(call.a_col)?),
            b: (stride(call.b_row)?, stride(call.b_col)?),
            c: (stride(call.c_row)?, stride(call.c_col)?),
        })
    }
}

fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

/// Real factors as elements of a type.
trait Element: Copy {
    fn of(factor: f64) -> Self;
}

impl Element for f32 {
    fn of(factor: f64) -> Self {
        factor as f32
    }
}

impl Element for f64 {
    fn of(factor: f64) -> Self {
        factor
    }
}

impl<T: Element> Element for Complex<T> {
    fn of(factor: f64) -> Self {
        Self::new(T::of(factor), T::of(0.0))
    }
}

/// One product, which `serial` leaves to one thread.
type One = unsafe fn(call: &Call, serial: bool) -> Outcome;

/// By the function for the call's element type, all members of its batch, those on all threads.
///
/// # Safety
/// As `lanky_opponents_run`.
unsafe fn members(call: &Call, by_type: [One; 4]) -> Outcome {
    let dtype = usize::try_from(call.dtype).map_err(|_| NOT_MINE)?;
    let one = *by_type.get(dtype).ok_or(NOT_MINE)?;
    if call.batch == 1 {
        // SAFETY: the caller's promise.
        return unsafe { one(call, false) };
    }
    let bytes = [4, 8, 8, 16][dtype];
    let first = Shared(call);
    (0..call.batch).into_par_iter().try_for_each(|member| {
        let call = first.get();
        let at = |address: u64, step: u64| address + member * step * bytes;
        let (a, b, c) = (at(call.a, call.a_step), at(call.b, call.b_step), at(call.c, call.c_step));
        // SAFETY: the caller's promise, of each member; none overlaps another's C.
        unsafe { one(&Call { a, b, c, batch: 1, ..*call }, true) }
    })
}

/// A call for several threads.
struct Shared<'c>(&'c Call);

// SAFETY: the stream in it, the only pointer, is null on the host and not used here.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    fn get(&self) -> &Call {
        self.0
    }
}

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn gemm(call: &Call) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { members(call, [gemm_of::<f32>, gemm_of::<f64>, gemm_of::<Complex<f32>>, gemm_of::<Complex<f64>>]) }
}

/// # Safety
/// As `lanky_opponents_run`, with elements of T.
unsafe fn gemm_of<T: Element + 'static>(call: &Call, serial: bool) -> Outcome {
    let Lengths { m, n, k, a, b, c } = Lengths::of(call)?;
    let (dst, lhs, rhs) = (pointer::<T>(call.c), pointer::<T>(call.a), pointer::<T>(call.b));
    let (alpha, beta) = (T::of(call.alpha), T::of(call.beta));
    let threads = if serial { Parallelism::None } else { Parallelism::Rayon(0) };
    let (no, reads) = (false, call.beta != 0.0);
    // SAFETY: the caller's promise. This crate's alpha is the factor of C.
    unsafe {
        ::gemm::gemm(m, n, k, dst, c.1, c.0, reads, lhs, a.1, a.0, rhs, b.1, b.0, beta, alpha, no, no, no, threads);
    }
    Ok(())
}

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn faer(call: &Call) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { members(call, [faer_of::<f32>, faer_of::<f64>, faer_of::<Complex<f32>>, faer_of::<Complex<f64>>]) }
}

/// # Safety
/// As `lanky_opponents_run`, with elements of T.
unsafe fn faer_of<T: Element + ::faer::traits::ComplexField + ::faer::traits::Conjugate<Canonical = T>>(
    call: &Call,
    serial: bool,
) -> Outcome {
    let Lengths { m, n, k, a, b, c } = Lengths::of(call)?;
    // Its products replace what is there, or are added to it.
    let accumulate = match call.beta {
        0.0 => Accum::Replace,
        1.0 => Accum::Add,
        _ => return Err(NOT_MINE),
    };
    // SAFETY: the caller's promise.
    let (lhs, rhs, dst) = unsafe {
        (
            MatRef::from_raw_parts(pointer::<T>(call.a).cast_const(), m, k, a.0, a.1),
            MatRef::from_raw_parts(pointer::<T>(call.b).cast_const(), k, n, b.0, b.1),
            MatMut::from_raw_parts_mut(pointer::<T>(call.c), m, n, c.0, c.1),
        )
    };
    matmul(dst, accumulate, lhs, rhs, T::of(call.alpha), if serial { Par::Seq } else { Par::rayon(0) });
    Ok(())
}

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn matrixmultiply(call: &Call) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { members(call, [matrixmultiply_of; 4]) }
}

/// It has no switch for its threads, which it does not use for small products.
///
/// # Safety
/// As `lanky_opponents_run`.
unsafe fn matrixmultiply_of(call: &Call, _serial: bool) -> Outcome {
    use ::matrixmultiply::{CGemmOption::Standard as Plain, cgemm, dgemm, sgemm, zgemm};
    let Lengths { m, n, k, a, b, c } = Lengths::of(call)?;
    let (x, y) = (call.alpha, call.beta);
    // SAFETY: the caller's promise; a complex number of this crate is an array of its parts.
    unsafe {
        match call.dtype {
            0 => {
                let (lhs, rhs, dst) = (pointer(call.a), pointer(call.b), pointer(call.c));
                sgemm(m, k, n, x as f32, lhs, a.0, a.1, rhs, b.0, b.1, y as f32, dst, c.0, c.1);
            }
            1 => {
                let (lhs, rhs, dst) = (pointer(call.a), pointer(call.b), pointer(call.c));
                dgemm(m, k, n, x, lhs, a.0, a.1, rhs, b.0, b.1, y, dst, c.0, c.1);
            }
            2 => {
                let (lhs, rhs, dst) = (pointer(call.a), pointer(call.b), pointer(call.c));
                let (x, y) = ([x as f32, 0.0], [y as f32, 0.0]);
                cgemm(Plain, Plain, m, k, n, x, lhs, a.0, a.1, rhs, b.0, b.1, y, dst, c.0, c.1);
            }
            _ => {
                let (lhs, rhs, dst) = (pointer(call.a), pointer(call.b), pointer(call.c));
                let (x, y) = ([x, 0.0], [y, 0.0]);
                zgemm(Plain, Plain, m, k, n, x, lhs, a.0, a.1, rhs, b.0, b.1, y, dst, c.0, c.1);
            }
        }
    }
    Ok(())
}
