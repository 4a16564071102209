//! Who takes part: ours, and other crates in a loop over a contiguous range of the batch on each thread.

use crate::case::{Case, Value};
use cpu::{Batch, Instructions, Matrices, Operand, gemm_batched_with};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use gemm::Parallelism;
use matrixmultiply::{CGemmOption::Standard as Plain, cgemm, dgemm, sgemm, zgemm};
use nano_gemm::Plan;
use num_complex::Complex;
use rayon::prelude::*;

/// Multiplies a case.
type Multiplies<T> = Box<dyn Fn(&mut Case<T>)>;

/// One that multiplies a case.
pub struct Entrant<T> {
    pub name: &'static str,
    pub run: Multiplies<T>,
}

pub fn ours<T: Value>(instructions: Instructions) -> Entrant<T> {
    let run = move |case: &mut Case<T>| {
        let (a, b, c) = case.ptrs();
        let n = case.n;
        let operand =
            |first| Operand { matrices: Matrices::Strided { first, stride: n * n }, row: 1, col: n, conj: false };
        let (alpha, beta) = (T::real(1.0), T::real(case.beta));
        let (a, b, c) = (operand(a), operand(b), operand(c.cast_const()));
        let batch = Batch { m: n, n, k: n, count: case.count, alpha, a, b, beta, c };
        // SAFETY: the arrays hold the batch, and `Args` looked whether the CPU has the instructions.
        unsafe { gemm_batched_with(instructions, &batch) }
    };
    Entrant { name: "lanky", run: Box::new(run) }
}

/// The other crates.
#[derive(Clone, Copy)]
pub enum Other {
    NanoGemm,
    Faer,
    Gemm,
    MatrixMultiply,
}

pub const OTHERS: [Other; 4] = [Other::NanoGemm, Other::Faer, Other::Gemm, Other::MatrixMultiply];

/// By the other crates, which have functions for each type.
pub trait Others: Sized {
    fn other(which: Other) -> Entrant<Self>;
}

struct Addresses<T>(*const T, *const T, *mut T);

// SAFETY: each thread takes matrices of its own.
unsafe impl<T> Sync for Addresses<T> {}

impl<T> Addresses<T> {
    /// Those of matrix i.
    #[inline(always)]
    fn at(&self, i: usize, len: usize) -> (*const T, *const T, *mut T) {
        (self.0.wrapping_add(i * len), self.1.wrapping_add(i * len), self.2.wrapping_add(i * len))
    }
}

/// A range of the batch for each thread; `one` is made once for each.
fn each<T: Value, F: FnMut(*const T, *const T, *mut T)>(case: &mut Case<T>, one: impl Fn() -> F + Sync) {
    let (a, b, c) = case.ptrs();
    let (addresses, len, count) = (Addresses(a, b, c), case.n * case.n, case.count);
    let threads = rayon::current_num_threads();
    (0..threads).into_par_iter().with_max_len(1).for_each(|thread| {
        let mut one = one();
        for i in count * thread / threads..count * (thread + 1) / threads {
            let (a, b, c) = addresses.at(i, len);
            one(a, b, c);
        }
    });
}

fn nano<T: Value + 'static>(plan: fn(usize, usize, usize) -> Plan<T>) -> Entrant<T> {
    let run = move |case: &mut Case<T>| {
        let (n, rows, beta, one) = (case.n, case.n as isize, T::real(case.beta), T::real(1.0));
        each(case, || {
            let plan = plan(n, n, n);
            move |a, b, c| {
                // SAFETY: three n x n matrices by columns, as the plan has it. Its alpha is the factor of C.
                unsafe {
                    plan.execute_unchecked(n, n, n, c, 1, rows, a, 1, rows, b, 1, rows, beta, one, false, false);
                }
            }
        });
    };
    Entrant { name: "nano-gemm", run: Box::new(run) }
}

fn by_gemm<T: Value + 'static>() -> Entrant<T> {
    let run = |case: &mut Case<T>| {
        let (n, rows, beta, one) = (case.n, case.n as isize, T::real(case.beta), T::real(1.0));
        let reads = case.beta != 0.0;
        each(case, || {
            move |a, b, c| {
                let (no, serial) = (false, Parallelism::None);
                // SAFETY: three n x n matrices by columns. This crate's alpha is the factor of C.
                unsafe {
                    gemm::gemm(n, n, n, c, rows, 1, reads, a, rows, 1, b, rows, 1, beta, one, no, no, no, serial);
                }
            }
        });
    };
    Entrant { name: "gemm", run: Box::new(run) }
}

fn by_faer<T: Value + faer::traits::ComplexField + faer::traits::Conjugate<Canonical = T>>() -> Entrant<T> {
    let run = |case: &mut Case<T>| {
        let (n, rows, one) = (case.n, case.n as isize, T::real(1.0));
        let accumulate = if case.beta == 0.0 { Accum::Replace } else { Accum::Add };
        each(case, || {
            move |a, b, c| {
                // SAFETY: three n x n matrices by columns.
                let (a, b, c) = unsafe {
                    (
                        MatRef::from_raw_parts(a, n, n, 1, rows),
                        MatRef::from_raw_parts(b, n, n, 1, rows),
                        MatMut::from_raw_parts_mut(c, n, n, 1, rows),
                    )
                };
                matmul(c, accumulate, a, b, one, Par::Seq);
            }
        });
    };
    Entrant { name: "faer", run: Box::new(run) }
}

/// A call of matrixmultiply for n x n matrices by columns.
type Call<T> = unsafe fn(usize, *const T, *const T, f64, *mut T);

fn by_matrixmultiply<T: Value + 'static>(call: Call<T>) -> Entrant<T> {
    let run = move |case: &mut Case<T>| {
        let (n, beta) = (case.n, case.beta);
        // SAFETY: three n x n matrices by columns.
        each(case, || move |a, b, c| unsafe { call(n, a, b, beta, c) });
    };
    Entrant { name: "matrixmultiply", run: Box::new(run) }
}

/// Stamps the functions of each type.
macro_rules! others {
    ($($type:ty: $plan:ident, |$n:ident, $rows:ident, $a:ident, $b:ident, $beta:ident, $c:ident| $call:expr;)*) => {$(
        impl Others for $type {
            fn other(which: Other) -> Entrant<Self> {
                unsafe fn call($n: usize, $a: *const $type, $b: *const $type, $beta: f64, $c: *mut $type) {
                    let $rows = $n as isize;
                    // SAFETY: by the caller's promise.
                    unsafe { $call }
                }
                match which {
                    Other::NanoGemm => nano(Plan::<$type>::$plan),
                    Other::Faer => by_faer(),
                    Other::Gemm => by_gemm(),
                    Other::MatrixMultiply => by_matrixmultiply(call),
                }
            }
        }
    )*};
}
others! {
    f32: new_colmajor_lhs_and_dst_f32, |n, rows, a, b, beta, c|
        sgemm(n, n, n, 1.0, a, 1, rows, b, 1, rows, beta as f32, c, 1, rows);
    f64: new_colmajor_lhs_and_dst_f64, |n, rows, a, b, beta, c|
        dgemm(n, n, n, 1.0, a, 1, rows, b, 1, rows, beta, c, 1, rows);
    Complex<f32>: new_colmajor_lhs_and_dst_c32, |n, rows, a, b, beta, c|
        cgemm(Plain, Plain, n, n, n, [1.0, 0.0], a.cast(), 1, rows, b.cast(), 1, rows, [beta as f32, 0.0], c.cast(), 1, rows);
    Complex<f64>: new_colmajor_lhs_and_dst_c64, |n, rows, a, b, beta, c|
        zgemm(Plain, Plain, n, n, n, [1.0, 0.0], a.cast(), 1, rows, b.cast(), 1, rows, [beta, 0.0], c.cast(), 1, rows);
}
