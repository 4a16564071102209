//! Which kernel serves a batch, and which thread which part of it.

use crate::combine::scale;
use crate::job::Job;
use crate::mode::as_ieee_has_it;
use crate::packed::{MOST_STEPS, Packed, a_vector, may_stream};
use crate::run::{AnySize, Delivery, Kernel, LargeSquare, Run, Square, Supply};
use crate::simd::{Portable, Real, Simd};
use crate::tall::{Output, by_rows};
use crate::threads::threads_are_here;
use crate::tile::{Cuts, Sizes, steps_are_enough};
use crate::{Batch, Element, MOST};
use rayon::prelude::*;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::simd::Avx2;
#[cfg(all(target_arch = "x86_64", has_avx512))]
use crate::simd::Avx512;

/// From this many bytes on C goes past the caches: what fits there is read sooner than it is driven out.
const LEAST_STREAMED_BYTES: usize = 32 << 20;
/// Below this many bytes the calling thread does all: waking others takes about as long.
const LEAST_SHARED_BYTES: usize = 256 << 10;

/// A set of vector instructions.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// What every CPU of the target has.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 (F, VL, DQ, BW); compiled by Rust 1.89 or later.
    Avx512,
}

impl Instructions {
    /// All of them, the best last.
    pub const ALL: [Instructions; 3] = [Instructions::Portable, Instructions::Avx2, Instructions::Avx512];

    /// The best that this CPU has.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|one| one.is_available()).unwrap_or(Instructions::Portable)
    }

    /// Whether this CPU has them, and they were compiled in.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = cfg!(has_avx512)
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            match self {
                Instructions::Portable => true,
                Instructions::Avx2 => avx2,
                Instructions::Avx512 => avx2 && avx512,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Instructions::Portable
        }
    }
}

/// The kernels of a real type. They are compiled here, once, and not by each who calls them.
pub trait Kernels: Real {
    /// A range of the batch, on this thread; `bytes` are those of the whole batch.
    ///
    /// # Safety
    /// As [`gemm_batched_with`].
    unsafe fn products(instructions: Instructions, job: &Job<Self>, range: Range<usize>, parts: usize, bytes: usize);

    /// Products with a narrow side, on this thread.
    ///
    /// # Safety
    /// As [`gemm_tall_with`](crate::gemm_tall_with).
    unsafe fn tall(instructions: Instructions, job: &Job<Self>, parts: usize, output: Output);
}

macro_rules! kernels {
    ($($real:ty: $lanes:literal;)*) => {$(
        impl Kernels for $real {
            unsafe fn products(
                instructions: Instructions,
                job: &Job<$real>,
                range: Range<usize>,
                parts: usize,
                bytes: usize,
            ) {
                // SAFETY: `instructions` are the CPU's and the range's matrices there, as the caller promised; each arm
                // has the vectors of its instructions.
                unsafe {
                    match instructions {
                        #[cfg(target_arch = "x86_64")]
                        Instructions::Avx2 => by_parts::<Avx2<$real>>(job, range, parts, bytes),
                        #[cfg(all(target_arch = "x86_64", has_avx512))]
                        Instructions::Avx512 => by_parts::<Avx512<$real>>(job, range, parts, bytes),
                        _ => by_parts::<Portable<$real, $lanes>>(job, range, parts, bytes),
                    }
                }
            }

            unsafe fn tall(
                instructions: Instructions,
                job: &Job<$real>,
                parts: usize,
                output: Output,
            ) {
                // SAFETY: as in `products`.
                unsafe {
                    match instructions {
                        #[cfg(target_arch = "x86_64")]
                        Instructions::Avx2 => by_rows::<Avx2<$real>>(job, parts, output),
                        #[cfg(all(target_arch = "x86_64", has_avx512))]
                        Instructions::Avx512 => by_rows::<Avx512<$real>>(job, parts, output),
                        _ => by_rows::<Portable<$real, $lanes>>(job, parts, output),
                    }
                }
            }
        }
    )*};
}
kernels! { f32: 4; f64: 2; }

/// C_i ← α A_i B_i + β C_i with the best instructions that the CPU has.
///
/// # Panics
/// As [`gemm_batched_with`].
///
/// # Safety
/// As [`gemm_batched_with`], but for the instructions.
pub unsafe fn gemm_batched<T: Element>(batch: &Batch<T>) {
    // SAFETY: `detect` found the instructions; the matrices are what the caller promised.
    unsafe { gemm_batched_with(Instructions::detect(), batch) }
}

/// The same with these instructions.
///
/// # Panics
/// If m, n or k is more than [`MOST`], and there is a product to compute.
///
/// # Safety
/// The CPU has the instructions ([`Instructions::is_available`]). The matrices are good:
/// those of A and B for reading, those of C for reading and writing; no two elements of C, of one matrix or of two, share
/// an address with each other, or with one of A or B.
pub unsafe fn gemm_batched_with<T: Element>(instructions: Instructions, batch: &Batch<T>) {
    if batch.m == 0 || batch.n == 0 || batch.count == 0 {
        return;
    }
    // Beyond it rooms on the stack would be too small.
    assert!(batch.m.max(batch.n).max(batch.k) <= MOST, "{} x {} x {}", batch.m, batch.n, batch.k);
    let job = Job::new(batch);
    let bytes = job.bytes(T::PARTS);
    let by_threads = |work: &(dyn Fn(Range<usize>) + Sync)| share(job.count, bytes, work);
    if job.only_scales() {
        // SAFETY: the range is of the batch (`share`), whose matrices the caller promised; each range is one thread's,
        // so C_i is its alone.
        return by_threads(&|range| unsafe { scale(&job, range, T::PARTS) });
    }
    // SAFETY: as of `scale`; the CPU has `instructions`, as the caller promised.
    by_threads(&|range| unsafe { T::Part::products(instructions, &job, range, T::PARTS, bytes) });
}

/// One contiguous range of the batch a thread.
pub fn share(count: usize, bytes: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let work = |range| as_ieee_has_it(|| work(range));
    if count <= 1 || bytes < LEAST_SHARED_BYTES || !threads_are_here() {
        return work(0..count);
    }
    let threads = rayon::current_num_threads().min(count);
    // The first `longer` ranges are one longer.
    let (least, longer) = (count / threads, count % threads);
    let start = |thread: usize| thread * least + thread.min(longer);
    (0..threads).into_par_iter().with_max_len(1).for_each(|thread| work(start(thread)..start(thread + 1)));
}

/// # Safety
/// As [`gemm_batched_with`]; the range is of the batch.
unsafe fn by_parts<S: Simd>(job: &Job<S::Real>, range: Range<usize>, parts: usize, bytes: usize) {
    // SAFETY: what this is promised is what `by_kernel` asks for; PARTS is `parts`, 1 or 2.
    unsafe {
        match parts {
            1 => by_kernel::<S, 1>(job, range, bytes),
            _ => by_kernel::<S, 2>(job, range, bytes),
        }
    }
}

/// # Safety
/// As [`by_parts`].
unsafe fn by_kernel<S: Simd, const PARTS: usize>(job: &Job<S::Real>, range: Range<usize>, bytes: usize) {
    let (m, n, k) = (job.m, job.n, job.k);
    let follows = job.c.is_packed(m, n, PARTS) && job.c.row == PARTS;
    let past_caches = follows && !job.reads_c() && bytes >= LEAST_STREAMED_BYTES;
    // SAFETY: the caller promised the instructions and the matrices; `a_vector` found what `Packed` asks for,
    // `is_whole` what `squares` does, and `streams` where lines are whole.
    unsafe {
        if const { size_of::<S::Vector>() > 16 } && a_vector::<S, PARTS>(job) > 0 {
            return match k {
                1 => S::vectorize(Packed::<S, PARTS, 1> { job, range, past_caches }),
                _ => S::vectorize(Packed::<S, PARTS, MOST_STEPS> { job, range, past_caches }),
            };
        }
        let supply = if job.a.row == PARTS { Supply::AsItIs } else { Supply::Copied };
        let c_is_copied = job.c.row != PARTS && !job.combines_later();
        let has_gaps = job.a.col != m * PARTS && supply == Supply::AsItIs;
        let c_has_gaps = job.c.col != m * PARTS && !c_is_copied;
        let b_follows = job.b.row == PARTS && job.b.col == k * PARTS;
        let is_packed_square = m == n && n == k && b_follows && !has_gaps && !c_has_gaps;
        let is_whole = is_packed_square && has_square::<S, PARTS>(n);
        let streams = match Vectors::of::<S, PARTS>(m) {
            Vectors::Half if is_whole => streams::<S::Half, PARTS>(job),
            Vectors::Narrow if is_whole => streams::<S::Narrow, PARTS>(job),
            _ => streams::<S, PARTS>(job),
        };
        let delivery = match (job.combines_later(), c_is_copied, past_caches) {
            (true, ..) => Delivery::Combined,
            (_, true, _) => Delivery::Copied,
            (_, _, false) => Delivery::InPlace,
            (_, _, true) if streams => Delivery::Streamed,
            (_, _, true) => Delivery::Staged,
        };
        let how = How { supply, delivery };
        if is_whole {
            return squares::<S, PARTS>(job, range, how);
        }
        if is_packed_square && has_large_square::<S, PARTS>(n) {
            return large_squares::<S, PARTS>(job, range, how);
        }
        any_size::<S, PARTS>(job, range, how)
    }
}

/// Whether C, whose matrices follow each other, may be sent past the caches as it is computed: all lines are whole when the next
/// block begins.
fn streams<S: Simd, const PARTS: usize>(job: &Job<S::Real>) -> bool {
    let rows = job.m * PARTS;
    // SAFETY: `gemm_batched_with` has left where the count is 0, so there is a matrix 0, whose address is all that is
    // looked at.
    let first = unsafe { job.c.at(0) };
    rows % S::LANES == 0 && Cuts::new::<S, PARTS>(rows, job.n).has_whole_columns() && may_stream::<S>(first)
}

#[derive(Clone, Copy)]
struct How {
    supply: Supply,
    delivery: Delivery,
}

/// # Safety
/// As [`by_parts`].
unsafe fn run<S: Simd, const PARTS: usize, K: Kernel<S>>(job: &Job<S::Real>, range: Range<usize>, how: How, kernel: K) {
    let How { supply, delivery } = how;
    // SAFETY: the caller promised what `Run` asks for: the instructions of S, and the matrices of the range.
    unsafe { S::vectorize(Run { job, range, kernel, supply, delivery, parts: PARTS }) }
}

/// # Safety
/// As [`by_parts`].
unsafe fn any_size<S: Simd, const PARTS: usize>(job: &Job<S::Real>, range: Range<usize>, how: How) {
    let sizes = Sizes { rows: job.m * PARTS, cols: job.n, k: job.k };
    let cuts = Cuts::new::<S, PARTS>(sizes.rows, sizes.cols);
    // SAFETY: what this is promised is what `run` asks for; `sizes` and `cuts` are the job's.
    unsafe { run::<S, PARTS, _>(job, range, how, AnySize::<PARTS> { sizes, cuts }) }
}

/// Vectors for columns of a square: longer ones are wasted on shorter columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vectors {
    Half,
    Narrow,
    Whole,
}

impl Vectors {
    const fn of<S: Simd, const PARTS: usize>(n: usize) -> Vectors {
        match n * PARTS {
            rows if rows <= <S::Half as Simd>::LANES => Vectors::Half,
            rows if PARTS == 2 || rows <= 2 * <S::Narrow as Simd>::LANES => Vectors::Narrow,
            _ => Vectors::Whole,
        }
    }
}

/// Bytes of the largest real matrix whose square is compiled whole, by vectors of 64 bytes and by shorter ones: f64 of 11 and f32 of 16
/// columns, and 15 and 21. Larger ones gain more by what is asked for in the steps of a loop (benches/NOTES.md, 2026-11-30).
const MOST_WHOLE_BYTES: usize = 1100;
const MOST_WHOLE_BYTES_OF_SHORT: usize = 1800;
/// Columns of the largest such complex one: those of 9 take 0.54 to 0.88 of the time by a loop (benches/results/cpu/larger-squares.csv).
const MOST_COMPLEX_SQUARE: usize = 8;

/// Whether a square is compiled whole: loops and branches are a good part of the time of so small a product. For smaller ones, and
/// those of 2 that a vector holds, there is [`crate::packed`].
const fn has_square<S: Simd, const PARTS: usize>(n: usize) -> bool {
    let is_small = match PARTS {
        1 if size_of::<S::Vector>() == 64 => n * n * size_of::<S::Real>() <= MOST_WHOLE_BYTES,
        1 => n * n * size_of::<S::Real>() <= MOST_WHOLE_BYTES_OF_SHORT,
        _ => n <= MOST_COMPLEX_SQUARE,
    };
    if size_of::<S::Vector>() == 16 || n < 2 || !is_small {
        return false;
    }
    match Vectors::of::<S, PARTS>(n) {
        Vectors::Half => steps_are_enough::<S::Half, PARTS>(n),
        Vectors::Narrow => steps_are_enough::<S::Narrow, PARTS>(n),
        Vectors::Whole => steps_are_enough::<S, PARTS>(n),
    }
}

/// By the shortest vectors that are long enough for their columns.
///
/// # Safety
/// As [`by_parts`]; the sizes are equal and [`has_square`], all matrices by columns without gaps.
unsafe fn squares<S: Simd, const PARTS: usize>(job: &Job<S::Real>, range: Range<usize>, how: How) {
    macro_rules! of_size {
        ($($vectors:ident by $simd:ty: $($n:literal)*;)*) => {$($(
            // Not by a match on what is constant, whose arms are compiled even where it is another one.
            if const { has_square::<S, PARTS>($n) && matches!(Vectors::of::<S, PARTS>($n), Vectors::$vectors) } {
                if job.n == $n {
                    // SAFETY: what this is promised is what `run` asks for; Half and Narrow are of instructions that come with S's
                    // (`Simd::Narrow`).
                    return unsafe { run::<$simd, PARTS, _>(job, range, how, Square::<PARTS, $n>) };
                }
            }
        )*)*};
    }
    of_size! {
        Half by S::Half: 2 3 4;
        Narrow by S::Narrow: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16;
        Whole by S: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21;
    }
    // All of them: what is missing would not be computed.
    const {
        let (half, narrow) = (<S::Half as Simd>::LANES, 2 * <S::Narrow as Simd>::LANES);
        assert!(half <= 4 && narrow <= 16 && MOST_COMPLEX_SQUARE <= 16);
        assert!(MOST_WHOLE_BYTES < 22 * 22 * 4 && MOST_WHOLE_BYTES_OF_SHORT < 22 * 22 * 4);
    }
    unreachable!("no square of {}", job.n);
}

/// Whether a square is one of [`LargeSquare`]: what is larger than [`has_square`] has, where vectors are not the portable ones.
const fn has_large_square<S: Simd, const PARTS: usize>(n: usize) -> bool {
    size_of::<S::Vector>() > 16 && n * PARTS > S::LANES && n <= MOST && !has_square::<S, PARTS>(n)
}

/// # Safety
/// As [`by_parts`]; the sizes are equal and [`has_large_square`], all matrices by columns without gaps.
unsafe fn large_squares<S: Simd, const PARTS: usize>(job: &Job<S::Real>, range: Range<usize>, how: How) {
    let mut kernel = None;
    macro_rules! of_size {
        ($($n:literal)*) => {$(
            // Not as a guard of a match, whose arms are compiled even where it is false.
            if const { has_large_square::<S, PARTS>($n) } {
                if job.n == $n {
                    kernel = Some(LargeSquare::of_size::<PARTS, $n>());
                }
            }
        )*};
    }
    of_size!(5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    // All of them: what is missing would not be computed.
    const { assert!(!has_large_square::<S, PARTS>(3) && !has_large_square::<S, PARTS>(4) && MOST == 32) };
    let Some(kernel) = kernel else { unreachable!("no square of {}", job.n) };
    // SAFETY: what this is promised is what `run` asks for.
    unsafe { run::<S, PARTS, _>(job, range, how, kernel) }
}
