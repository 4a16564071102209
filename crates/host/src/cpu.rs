//! Products on the CPU, serially on blocks of rows that rayon hands out, and on parts of k where C is small: with a narrow side by the
//! kernels of lanky-cpu, others, and those that it was measured to be faster for, by the `gemm` crate.
//!
//! Blocks and parts depend on the shape only, kernels also on how A lies; each is computed by one thread, and parts are added in order: the bits of the
//! result are the same for any number of threads, also for the one that a forked process has, and whatever a caller has told its own about subnormal numbers and rounding.

mod block;

use crate::error::Result;
use crate::matrix::Matrix;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::view::{MatMut, MatRef, offset};
use ::cpu::{Instructions, Output, as_ieee_has_it, threads_are_here};
use block::{Kernels, block};
use rayon::prelude::*;
use std::ops::Range;

/// A block is at least this many rows, so that the kernels of `gemm` (up to 48 rows) are not all edge.
const LEAST_ROWS: usize = 64;
/// Most rows or columns of C that are narrow: of more, `gemm` is as fast.
const NARROW: usize = 64;
/// Most elements of a row of A, and of C, that are short.
const SHORT: usize = 16;
/// Fewer rows are few, more columns many.
const FEW: usize = 4;
const MANY: usize = 48;
/// Fewer columns of a Gram matrix's factor, by columns, are few.
const FEW_OF_GRAM: usize = 8;
/// Rows of a block where the other side is narrow: runs of A's columns that memory delivers as fast as whole ones.
const NARROW_ROWS: usize = 512;
/// So many of those are parts enough; of fewer each part of k has so many times the work.
const ENOUGH_BLOCKS: usize = 16;
/// From this many bytes on a C that is not read goes past the caches.
const LEAST_STREAMED_BYTES: usize = 32 << 20;
/// At most this many blocks: each packs its own copy of B.
const MOST_BLOCKS: usize = 128;
/// A block, of a part of k, is at least this many multiplications, 10 us and more: handing it out costs about one.
const LEAST_WORK: usize = 1 << 18;
/// The sums of all parts are at most one in so many elements of A and B.
const PART_SHARE: usize = 16;

/// Does work for each, on rayon's threads where they are in this process.
pub(crate) fn each<I, R, C>(
    items: impl IntoParallelIterator<Item = I> + IntoIterator<Item = I>,
    work: impl Fn(I) -> R + Send + Sync,
) -> C
where
    I: Send,
    R: Send,
    C: FromParallelIterator<R> + FromIterator<R>,
{
    match threads_are_here() {
        true => items.into_par_iter().map(work).collect(),
        false => items.into_iter().map(work).collect(),
    }
}

/// C ← α A B + β C; the shapes agree, all three are in the host's memory, C is not empty.
pub(crate) fn product<T: Scalar>(
    alpha: T,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    beta: T,
    c: MatMut<'_, T>,
) -> Result<()> {
    as_ieee_has_it(|| {
        if alpha == T::zero() || a.ncols() == 0 {
            scale(beta, c);
            return Ok(());
        }
        match parts(a.nrows(), b.ncols(), a.ncols()) {
            1 => product_by_blocks(alpha, a, b, beta, c),
            parts => {
                product_by_parts(parts, (a, b), |a, b, sums| product_by_blocks(alpha, a, b, T::zero(), sums), beta, c)
            }
        }
    })
}

/// C ← A B on the diagonal and below, in a C of zeros; above it anything. C is square, and not empty.
pub(crate) fn lower<T: Scalar>(a: MatRef<'_, T>, b: MatRef<'_, T>, c: MatMut<'_, T>) -> Result<()> {
    as_ieee_has_it(|| match parts(a.nrows(), b.ncols(), a.ncols()) {
        1 => lower_by_rows(a, b, c),
        parts => product_by_parts(parts, (a, b), lower_by_rows, T::zero(), c),
    })
}

/// Whether a side is narrow, for the kernels of lanky-cpu. `gemm` has other kernels for vectors whose elements lie side by side than for those
/// with gaps, which would change bits: so no product with a vector goes to it.
fn is_narrow(m: usize, n: usize) -> bool {
    m.min(n) <= NARROW
}

/// The same with k in parts, whose `products` are added in order.
fn product_by_parts<'a, T: Scalar>(
    parts: usize,
    (a, b): (MatRef<'a, T>, MatRef<'a, T>),
    product: impl Fn(MatRef<'a, T>, MatRef<'a, T>, MatMut<'_, T>) -> Result<()> + Send + Sync,
    beta: T,
    c: MatMut<'_, T>,
) -> Result<()> {
    let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
    let part_of_k = |part: usize| {
        let range = start(part, parts, k)..start(part + 1, parts, k);
        let (a, b) = (a.cols(range.clone())?, b.rows(range)?);
        let mut sums = Matrix::zeros(m, n)?;
        as_ieee_has_it(|| product(a, b, sums.view_mut()))?;
        Ok(sums)
    };
    let sums = each::<_, _, Result<Vec<Matrix<T>>>>(0..parts, part_of_k)?;
    let add = |rows: Range<usize>, mut c: MatMut<'_, T>| {
        for (i, j) in (0..n).flat_map(|j| rows.clone().map(move |i| (i, j))) {
            let parts = sums.iter().filter_map(|part| part.view().get(i, j)).fold(T::zero(), |sum, part| sum + part);
            let (at, zero) = (i - rows.start, beta == T::zero());
            let old = if zero { None } else { c.get(at, j) };
            c.set(at, j, old.map_or(parts, |old| parts + beta * old));
        }
    };
    each::<_, _, ()>(in_rows(NARROW_ROWS, c), |(rows, c)| as_ieee_has_it(|| add(rows, c)));
    Ok(())
}

/// Where a part of k begins: k · part / parts, without a product that no number holds.
fn start(part: usize, parts: usize, k: usize) -> usize {
    k / parts * part + k % parts * part / parts
}

/// C in blocks of so many rows, but for the last.
fn in_rows<T: Scalar>(count: usize, c: MatMut<'_, T>) -> Vec<(Range<usize>, MatMut<'_, T>)> {
    let m = c.shape().rows;
    let mut blocks = Vec::with_capacity(m.div_ceil(count));
    let mut rest = c;
    for start in (0..m).step_by(count) {
        let end = m.min(start + count);
        let (head, tail) = rest.split_rows(end - start);
        blocks.push((start..end, head));
        rest = tail;
    }
    blocks
}

/// Blocks are cut from the longer side of C: Cᵀ ← α Bᵀ Aᵀ + β Cᵀ is the same product.
fn product_by_blocks<T: Scalar>(alpha: T, a: MatRef<'_, T>, b: MatRef<'_, T>, beta: T, c: MatMut<'_, T>) -> Result<()> {
    if b.ncols() > a.nrows() {
        return product_by_rows(alpha, b.t(), a.t(), beta, c.t());
    }
    product_by_rows(alpha, a, b, beta, c)
}

/// C ← β C; β = 0 does not read C.
fn scale<T: Scalar>(beta: T, mut c: MatMut<'_, T>) {
    if beta == T::one() {
        return;
    }
    let (shape, pointer) = (c.shape(), c.as_mut_ptr());
    for j in 0..shape.cols {
        for i in 0..shape.rows {
            // SAFETY: (i, j) is inside the view, which is borrowed mutably.
            let element = unsafe { &mut *pointer.add(offset(&shape, i, j)) };
            *element = if beta == T::zero() { T::zero() } else { beta * *element };
        }
    }
}

/// Whether `gemm` is faster all the same, as measured: where C has very few rows and A's are long and whole, and for a long A by rows with very
/// short ones or a C of many columns. Not of vectors (see `is_narrow`).
fn suits_gemm(a: &Shape, n: usize) -> bool {
    let (m, k) = (a.rows, a.cols);
    if m.min(n).min(k) < 2 {
        return false;
    }
    match m <= NARROW {
        true => a.strides.col == 1 && m < FEW && k > NARROW,
        false => a.strides.col == 1 && (n.max(k) <= SHORT || (n > MANY && k > NARROW)),
    }
}

/// Number of blocks, and rows of C in each (columns, where those are more).
pub(crate) fn blocks(m: usize, n: usize, k: usize) -> (usize, usize) {
    let side = m.max(n);
    let rows = block_rows(side, m.min(n), k).min(side);
    (side.div_ceil(rows), rows)
}

/// Parts of k, 1 where C has blocks enough: a function of the shape alone.
pub(crate) fn parts(m: usize, n: usize, k: usize) -> usize {
    let (blocks, _) = blocks(m, n, k);
    if is_narrow(m, n) && blocks >= ENOUGH_BLOCKS {
        return 1;
    }
    let work = m.saturating_mul(n).saturating_mul(k) / blocks;
    let share = (m + n).saturating_mul(k) / PART_SHARE / m.saturating_mul(n).max(1);
    // The sums of several blocks are many.
    let work = if is_narrow(m, n) && blocks > 1 { work / ENOUGH_BLOCKS } else { work };
    (MOST_BLOCKS / blocks).min(work / LEAST_WORK).min(share).max(1)
}

/// Rows a block: a function of the shape alone.
fn block_rows(m: usize, n: usize, k: usize) -> usize {
    let work = n.saturating_mul(k).max(1);
    let least = if is_narrow(m, n) { NARROW_ROWS } else { LEAST_ROWS };
    let enough = LEAST_WORK.div_ceil(work).max(least).max(m.div_ceil(MOST_BLOCKS));
    enough.next_multiple_of(LEAST_ROWS)
}

fn product_by_rows<T: Scalar>(alpha: T, a: MatRef<'_, T>, b: MatRef<'_, T>, beta: T, c: MatMut<'_, T>) -> Result<()> {
    let m = a.nrows();
    let rows = block_rows(m, b.ncols(), a.ncols());
    let past_caches = c.shape().rows * c.shape().cols * size_of::<T>() >= LEAST_STREAMED_BYTES;
    let kernels = kernels(&a.shape(), b.ncols(), past_caches);
    if m <= rows {
        block(kernels, alpha, a, b, beta, c);
        return Ok(());
    }
    let blocks = in_rows(rows, c);
    // Each thread of rayon's has a setting of its own, which was that of the thread that first asked for them.
    each(blocks, |(rows, c)| {
        let a = a.rows(rows)?;
        as_ieee_has_it(|| block(kernels, alpha, a, b, beta, c));
        Ok(())
    })
}

/// [`lower`] in blocks of rows, each with the columns before its end; of a narrow C what is above the diagonal is left out by the kernels.
fn lower_by_rows<T: Scalar>(a: MatRef<'_, T>, b: MatRef<'_, T>, c: MatMut<'_, T>) -> Result<()> {
    let (m, k) = (a.nrows(), a.ncols());
    let (one, zero, rows) = (T::one(), T::zero(), block_rows(m, m, k));
    let is_gemms = m.min(k) > 1 && m < FEW_OF_GRAM && a.shape().strides.col == 1;
    if is_narrow(m, m) && !is_gemms {
        block(Kernels::Narrow(Output { lower: true, past_caches: false }), one, a, b, zero, c);
        return Ok(());
    }
    if m <= rows {
        block(Kernels::Wide, one, a, b, zero, c);
        return Ok(());
    }
    each(in_rows(rows, c), |(rows, c)| {
        let (a, b, c) = (a.rows(rows.clone())?, b.cols(..rows.end)?, c.cols(..rows.end)?);
        as_ieee_has_it(|| block(Kernels::Wide, one, a, b, zero, c));
        Ok(())
    })
}

/// Who computes a block.
fn kernels(a: &Shape, n: usize, past_caches: bool) -> Kernels {
    match is_narrow(a.rows, n) && !suits_gemm(a, n) {
        true => Kernels::Narrow(Output { lower: false, past_caches }),
        false => Kernels::Wide,
    }
}

/// `2 cores, AVX2`.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let plural = if cores == 1 { "" } else { "s" };
    match simd() {
        Some(simd) => format!("{cores} core{plural}, {simd}"),
        None => format!("{cores} core{plural}"),
    }
}

/// The widest vector instructions that are used.
fn simd() -> Option<&'static str> {
    match Instructions::detect() {
        Instructions::Avx512 => Some("AVX-512"),
        Instructions::Avx2 => Some("AVX2"),
        _ if cfg!(target_arch = "x86_64") => Some("SSE2"),
        _ if cfg!(target_arch = "aarch64") => Some("NEON"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_k_follow_each_other() {
        for (k, parts) in (0..300).flat_map(|k| (1..=MOST_BLOCKS).map(move |parts| (k, parts))) {
            assert!((0..=parts).all(|part| start(part, parts, k) == k * part / parts), "{k} in {parts} parts");
        }
        for parts in 1..=MOST_BLOCKS {
            let starts: Vec<usize> = (0..=parts).map(|part| start(part, parts, usize::MAX)).collect();
            assert!(starts.is_sorted() && starts[0] == 0 && starts[parts] == usize::MAX, "{parts} parts");
        }
    }
}
