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
//! | `product` | piece after piece, and what is asked for meanwhile (`ask`) |
//! | `finish` | C from the sums: α, β, and where C lies |
//!
//! Each element is one chain of multiply-adds over l, as in a batch: blocks leave no trace in its bits, nor do layouts.

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
use cuts::Cuts;
use product::Product;

/// No memory for the sums of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// So much was asked for.
    pub bytes: usize,
}

/// C_i ← α A_i B_i + β C_i, one after the other, on this thread, with the best instructions that the CPU has: meant for one
/// product of which m or n is small, and computed as the thread is told to ([`as_ieee_has_it`](crate::as_ieee_has_it)). `past_caches`: C is so large that it
/// should not go through the caches.
///
/// # Errors
/// [`OutOfMemory`]: a block's sums, a MiB at the most, found no memory; C is as it was.
///
/// # Safety
/// As [`gemm_tall_with`], but for the instructions.
pub unsafe fn gemm_tall<T: Element>(batch: &Batch<T>, past_caches: bool) -> Result<(), OutOfMemory> {
    // SAFETY: `detect` found the instructions; the matrices are what the caller promised.
    unsafe { gemm_tall_with(Instructions::detect(), batch, past_caches) }
}

/// The same with these instructions.
///
/// # Errors
/// As [`gemm_tall`].
///
/// # Safety
/// The CPU has the instructions ([`Instructions::is_available`]). The matrices are good, as of [`gemm_batched_with`](crate::gemm_batched_with).
pub unsafe fn gemm_tall_with<T: Element>(
    instructions: Instructions,
    batch: &Batch<T>,
    past_caches: bool,
) -> Result<(), OutOfMemory> {
    if batch.m == 0 || batch.n == 0 || batch.count == 0 {
        return Ok(());
    }
    let job = Job::as_given(batch);
    if job.only_scales() {
        // SAFETY: the matrices are there, and this call's alone, as the caller promised.
        unsafe { crate::combine::scale(&job, 0..job.count, T::PARTS) };
        return Ok(());
    }
    let job = if lies_along_rows(&job, T::PARTS) { job } else { job.transposed() };
    // SAFETY: as of `scale`; the CPU has `instructions`, as the caller promised.
    unsafe { T::Part::tall(instructions, &job, T::PARTS, past_caches) }
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
pub unsafe fn by_rows<S: Simd>(job: &Job<S::Real>, parts: usize, past_caches: bool) -> Result<(), OutOfMemory> {
    // SAFETY: what this is promised is what `products` asks for; Half and Narrow are of instructions that come with S's
    // (`Simd::Narrow`), and PARTS is `parts`, 1 or 2.
    unsafe {
        match (job.m * parts, parts) {
            (rows, 1) if rows <= S::Half::LANES => products::<S::Half, 1>(job, past_caches),
            (rows, 1) if rows <= S::Narrow::LANES => products::<S::Narrow, 1>(job, past_caches),
            (_, 1) => products::<S, 1>(job, past_caches),
            (rows, _) if rows <= S::Half::LANES => products::<S::Half, 2>(job, past_caches),
            (rows, _) if rows <= S::Narrow::LANES => products::<S::Narrow, 2>(job, past_caches),
            _ => products::<S, 2>(job, past_caches),
        }
    }
}

/// # Safety
/// As [`gemm_tall_with`]; PARTS is of the job's elements.
unsafe fn products<S: Simd, const PARTS: usize>(job: &Job<S::Real>, past_caches: bool) -> Result<(), OutOfMemory> {
    let cuts = Cuts::new::<S, PARTS>(job.m * PARTS, job.n, job.k);
    let mut room = Vec::<S::Real>::new();
    let len = cuts.sums_len() + cuts.panel_len() + S::LANES;
    room.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes: len * size_of::<S::Real>() })?;
    let sums = room.as_mut_ptr();
    let panels = sums.wrapping_add(cuts.sums_len());
    for index in 0..job.count {
        // SAFETY: the caller promised the instructions and the matrices; the room is as long as the cuts say.
        unsafe { S::vectorize(Product::<S, PARTS> { job, index, cuts: &cuts, sums, panels, past_caches }) };
    }
    Ok(())
}
