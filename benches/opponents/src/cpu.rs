//! gemm, faer and matrixmultiply, each with as many threads as it takes.

use crate::{Call, NOT_MINE, Outcome};
use ::faer::linalg::matmul::matmul;
use ::faer::{Accum, MatMut, MatRef, Par};
use ::gemm::Parallelism;

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

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn gemm(call: &Call) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        match call.dtype {
            0 => gemm_of::<f32>(call, call.alpha as f32, call.beta as f32),
            _ => gemm_of::<f64>(call, call.alpha, call.beta),
        }
    }
}

/// # Safety
/// As `lanky_opponents_run`, with elements of T.
unsafe fn gemm_of<T: 'static>(call: &Call, alpha: T, beta: T) -> Outcome {
    let Lengths { m, n, k, a, b, c } = Lengths::of(call)?;
    let (dst, lhs, rhs) = (pointer::<T>(call.c), pointer::<T>(call.a), pointer::<T>(call.b));
    // SAFETY: the caller's promise. This crate's alpha is the factor of C.
    unsafe {
        ::gemm::gemm(
            m,
            n,
            k,
            dst,
            c.1,
            c.0,
            call.beta != 0.0,
            lhs,
            a.1,
            a.0,
            rhs,
            b.1,
            b.0,
            beta,
            alpha,
            false,
            false,
            false,
            Parallelism::Rayon(0),
        );
    }
    Ok(())
}

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn faer(call: &Call) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        match call.dtype {
            0 => faer_of::<f32>(call, call.alpha as f32),
            _ => faer_of::<f64>(call, call.alpha),
        }
    }
}

/// # Safety
/// As `lanky_opponents_run`, with elements of T.
unsafe fn faer_of<T: ::faer::traits::ComplexField + ::faer::traits::Conjugate<Canonical = T>>(
    call: &Call,
    alpha: T,
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
    matmul(dst, accumulate, lhs, rhs, alpha, Par::rayon(0));
    Ok(())
}

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn matrixmultiply(call: &Call) -> Outcome {
    let Lengths { m, n, k, a, b, c } = Lengths::of(call)?;
    let (x, y) = (call.alpha, call.beta);
    // SAFETY: the caller's promise.
    unsafe {
        match call.dtype {
            0 => {
                let (lhs, rhs, dst) = (pointer::<f32>(call.a), pointer::<f32>(call.b), pointer::<f32>(call.c));
                ::matrixmultiply::sgemm(m, k, n, x as f32, lhs, a.0, a.1, rhs, b.0, b.1, y as f32, dst, c.0, c.1);
            }
            _ => {
                let (lhs, rhs, dst) = (pointer::<f64>(call.a), pointer::<f64>(call.b), pointer::<f64>(call.c));
                ::matrixmultiply::dgemm(m, k, n, x, lhs, a.0, a.1, rhs, b.0, b.1, y, dst, c.0, c.1);
            }
        }
    }
    Ok(())
}
