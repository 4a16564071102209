//! A product with a narrow side, C ← α op(A) op(B) + β C with m or n of a few dozen, of any length of the other sides.
//!
//! Such a product is as fast as memory delivers its long operand, if that is read once, in the order in which it lies, and C's sums
//! stay near. So hardly anything of it is copied: vectors lie along the long side where its elements are next to each other, and
//! a block of C, a few KiB of each column, takes a few steps of k at a time ([`Cuts`]), which are as many columns of A as the CPU
//! follows at once; else vectors lie along the narrow side, and the rows of A are followed, an element of each in a step.
//! Transposition is an exchange of both ([`Job::transposed`]): below, A is the operand that is loaded by vectors, and B the one whose
//! elements are multiplied by them.
//!
//! | module | what is in it |
//! |---|---|
//! | `cuts` | blocks of C, and steps of k |
//! | `tile` | a part of a block whose sums are in registers |
//! | `panel` | what of A cannot be loaded by whole vectors as it lies: copied |
//! | `product` | piece after piece |
//! | `ahead`, `ask` | what is asked for meanwhile, and how |
//! | `finish` | C from the sums: α, β, and where C lies |
//!
//! Each element is one chain of multiply-adds over l, as in a batch: blocks leave no trace in its bits, nor do layouts.

mod ahead;
mod ask;
mod cuts;
mod finish;
mod panel;
mod product;
mod tile;

use crate::job::Job;
use crate::route::{Instructions, Kernels};
use crate::simd::{Real, Simd};
use crate::{Batch, Element};
use cuts::{Cuts, LEAST_BYTES, MOST_VECTOR_BYTES};
use panel::Rows;
use product::Product;
use std::mem::MaybeUninit;

/// Which elements of C are computed, and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Elements (i, j) with j <= i alone are asked for: each of the others is computed too, or stays what it was. It is faster where B is Aᵀ or Aᴴ.
    /// Where C is only scaled all of it is.
    pub lower: bool,
    /// C is so large that it should not go through the caches.
    pub past_caches: bool,
}

/// C_i ← α A_i B_i + β C_i, one after the other, on this thread, with the best instructions that the CPU has: meant for one
/// product of which m or n is small, and computed as the thread is told to ([`as_ieee_has_it`](crate::as_ieee_has_it)).
///
/// A block's sums, a MiB at the most, are where there is memory; where there is none, blocks are as small as can be, and the bits the same.
///
/// # Safety
/// As [`gemm_tall_with`], but for the instructions.
pub unsafe fn gemm_tall<T: Element>(batch: &Batch<T>, output: Output) {
    // SAFETY: `detect` found the instructions; the matrices are what the caller promised.
    unsafe { gemm_tall_with(Instructions::detect(), batch, output) }
}

/// The same with these instructions.
///
/// # Safety
/// The CPU has the instructions ([`Instructions::is_available`]). The matrices are good, as of [`gemm_batched_with`](crate::gemm_batched_with).
pub unsafe fn gemm_tall_with<T: Element>(instructions: Instructions, batch: &Batch<T>, output: Output) {
    if batch.m == 0 || batch.n == 0 || batch.count == 0 {
        return;
    }
    let job = Job::as_given(batch);
    if job.only_scales() {
        // SAFETY: the matrices are there, and this call's alone, as the caller promised.
        unsafe { crate::combine::scale(&job, 0..job.count, T::PARTS) };
        return;
    }
    // What is below the diagonal is above it in Cᵀ.
    let job = if output.lower || lies_along_rows(&job, T::PARTS) { job } else { job.transposed() };
    // SAFETY: as of `scale`; the CPU has `instructions`, as the caller promised.
    unsafe { T::Part::tall(instructions, &job, T::PARTS, output) }
}

/// Whether vectors are to lie along the rows of C, and not its columns: along the longer side, if the operand that has it can be loaded by
/// vectors as it lies, else along the other.
fn lies_along_rows<R: Real>(job: &Job<R>, parts: usize) -> bool {
    if job.m >= job.n { job.a.row == parts && job.m > 1 } else { !(job.b.col == parts && job.n > 1) }
}

/// The products of a job by the vectors that suit its rows: of longer ones more is wasted.
///
/// # Safety
/// As [`gemm_tall_with`].
pub unsafe fn by_rows<S: Simd>(job: &Job<S::Real>, parts: usize, output: Output) {
    // SAFETY: what this is promised is what `products` asks for; Half and Narrow are of instructions that come with S's
    // (`Simd::Narrow`), and PARTS is `parts`, 1 or 2.
    unsafe {
        match (job.m * parts, parts) {
            (rows, 1) if rows <= S::Half::LANES => products::<S::Half, 1>(job, output),
            (rows, 1) if rows <= S::Narrow::LANES => products::<S::Narrow, 1>(job, output),
            (_, 1) => products::<S, 1>(job, output),
            (rows, _) if rows <= S::Half::LANES => products::<S::Half, 2>(job, output),
            (rows, _) if rows <= S::Narrow::LANES => products::<S::Narrow, 2>(job, output),
            _ => products::<S, 2>(job, output),
        }
    }
}

/// # Safety
/// As [`gemm_tall_with`]; PARTS is of the job's elements.
unsafe fn products<S: Simd, const PARTS: usize>(job: &Job<S::Real>, output: Output) {
    let cuts = Cuts::new::<S, PARTS>(job.m * PARTS, job.n, job.k);
    let cuts = cuts.for_small::<S>(job.a.row == PARTS, if output.lower { 1 } else { 2 });
    let cuts = if job.b.col != PARTS { cuts.with_b() } else { cuts };
    let mut room = Vec::<S::Real>::new();
    // SAFETY: the caller promised the instructions and the matrices; the room is as long as the cuts say.
    unsafe {
        match room.try_reserve_exact(cuts.len()) {
            Ok(()) => by_cuts::<S, PARTS>(job, &cuts, room.as_mut_ptr(), output),
            Err(_) => in_little_room::<S, PARTS>(job, output),
        }
    }
}

/// The same without memory but what is here.
///
/// # Safety
/// As [`products`].
unsafe fn in_little_room<S: Simd, const PARTS: usize>(job: &Job<S::Real>, output: Output) {
    const { assert!(S::LANES * size_of::<S::Real>() <= MOST_VECTOR_BYTES && PARTS <= 2) };
    let cuts = Cuts::least::<S, PARTS>(job.m * PARTS, job.n, job.k);
    debug_assert!(cuts.len() * size_of::<S::Real>() <= LEAST_BYTES);
    let mut room = Room([const { MaybeUninit::uninit() }; LEAST_BYTES]);
    // SAFETY: as of `products`; the least cuts have no more bytes.
    unsafe { by_cuts::<S, PARTS>(job, &cuts, (&raw mut room).cast(), output) }
}

/// What the least cuts need.
#[repr(C, align(64))]
struct Room([MaybeUninit<u8>; LEAST_BYTES]);

/// # Safety
/// As [`products`]; the room is good for as many elements as the cuts say.
unsafe fn by_cuts<S: Simd, const PARTS: usize>(job: &Job<S::Real>, cuts: &Cuts, room: *mut S::Real, output: Output) {
    let panels = room.wrapping_add(cuts.sums_len());
    for index in 0..job.count {
        // SAFETY: as the caller promised.
        unsafe {
            let a = Rows { first: job.a.at(index), row: job.a.row, col: job.a.col, count: job.m * PARTS, steps: job.k };
            let b = Rows { first: job.b.at(index), row: job.b.col, col: job.b.row, count: job.n * PARTS, steps: job.k };
            S::vectorize(Product::<S, PARTS> { job, index, cuts, a, b, sums: room, panels, output });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Portable;
    use crate::{Matrices, Operand};
    use num_complex::Complex;

    const OUTPUT: Output = Output { lower: false, past_caches: false };

    /// By the least cuts, the bits are those of the others, at sizes of several blocks and steps, and a C with gaps stays whole.
    #[test]
    fn little_room_is_enough() {
        fn check<T: Element<Part = f64>, const PARTS: usize>(
            number: impl Fn(usize) -> T,
            bits: impl Fn(&T) -> [u64; 2],
        ) {
            for (m, n, k) in [(531, 5, 21), (37, 19, 67), (1, 3, 9), (3, 1, 2), (9, 2100, 3)] {
                let [a, b, c] = [m * k, k * n, (m + 1) * n].map(|len| (0..len).map(&number).collect::<Vec<T>>());
                let mut by = [c.clone(), c];
                for (little, c) in [true, false].into_iter().zip(&mut by) {
                    let operand = |first: *const T, col| Operand {
                        matrices: Matrices::Strided { first, stride: 0 },
                        row: 1,
                        col,
                        conj: false,
                    };
                    let (alpha, beta) = (number(5), number(7));
                    let batch = Batch {
                        m,
                        n,
                        k,
                        count: 1,
                        alpha,
                        a: operand(a.as_ptr(), m),
                        b: operand(b.as_ptr(), k),
                        beta,
                        c: operand(c.as_mut_ptr(), m + 1),
                    };
                    let job = Job::as_given(&batch);
                    // SAFETY: every CPU has what portable vectors need; the operands are as long as their sizes say.
                    unsafe {
                        match little {
                            true => in_little_room::<Portable<f64, 4>, PARTS>(&job, OUTPUT),
                            false => products::<Portable<f64, 4>, PARTS>(&job, OUTPUT),
                        }
                    }
                }
                let [little, much] = by.map(|c| c.iter().map(&bits).collect::<Vec<_>>());
                assert!(little == much, "{m} x {n} x {k}");
            }
        }
        let real = |at: usize| (at * 37 % 101) as f64 / 53.0 - 0.9;
        check::<f64, 1>(real, |x| [x.to_bits(), 0]);
        check::<Complex<f64>, 2>(|at| Complex::new(real(at), real(at + 11)), |x| [x.re.to_bits(), x.im.to_bits()]);
    }
}
