//! Products on the CPU: the `gemm` crate, serially, on blocks of rows that rayon hands out, and on parts of k where C is small.
//!
//! Blocks and parts depend on the shape only, each is computed by one thread, and parts are added in order: the bits of the
//! result are the same for any number of threads, also for the one that a forked process has, and whatever a caller has told its own about subnormal numbers and rounding.

use crate::error::Result;
use crate::matrix::Matrix;
use crate::scalar::Scalar;
use crate::shape::{Layout, Shape, packed_strides};
use crate::view::{MatMut, MatRef, offset};
use ::cpu::{as_ieee_has_it, threads_are_here};
use rayon::prelude::*;

/// A block is at least this many rows, so that the kernels of `gemm` (up to 48 rows) are not all edge.
const LEAST_ROWS: usize = 64;
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
        let (mut a_copy, mut b_copy) = (None, None);
        let (a, b) = (without_gaps(a, &mut a_copy)?, without_gaps(b, &mut b_copy)?);
        product_without_gaps(alpha, a, b, beta, c)
    })
}

/// The `gemm` crate has kernels of their own for vectors whose elements lie side by side, and looks at the stride of an axis of one
/// element. So that neither changes bits a vector is given as a packed column or row, in a copy where it has gaps; others as they lie.
fn without_gaps<'a, T: Scalar>(view: MatRef<'a, T>, copy: &'a mut Option<Matrix<T>>) -> Result<MatRef<'a, T>> {
    let shape = view.shape();
    let Some(packed) = packed_vector(&shape) else { return Ok(view) };
    if !has_gaps(&shape) {
        return Ok(MatRef::of_parts(view.as_ptr(), packed, view.place()));
    }
    // What is stored: conjugates are taken as of a vector without gaps.
    let stored = if shape.conj { view.conj() } else { view };
    let copy = copy.insert(Matrix::to_contiguous(stored)?);
    Ok(MatRef::of_parts(copy.view().as_ptr(), packed, view.place()))
}

/// The same of C, to which a copy is written back.
fn product_without_gaps<T: Scalar>(
    alpha: T,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    beta: T,
    mut c: MatMut<'_, T>,
) -> Result<()> {
    let (m, n, k, shape, place) = (a.nrows(), b.ncols(), a.ncols(), c.shape(), c.as_ref().place());
    if packed_vector(&shape).is_some() && has_gaps(&shape) {
        let mut copy = match beta == T::zero() {
            true => Matrix::zeros(m, n)?,
            false => Matrix::to_contiguous(c.as_ref())?,
        };
        product_without_gaps(alpha, a, b, beta, copy.view_mut())?;
        for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
            copy.get(i, j).into_iter().for_each(|element| _ = c.set(i, j, element));
        }
        return Ok(());
    }
    let c = match packed_vector(&shape) {
        Some(packed) => MatMut::of_parts(c.as_mut_ptr(), packed, place),
        None => c,
    };
    match parts(m, n, k) {
        1 => product_by_blocks(alpha, a, b, beta, c),
        parts => product_by_parts(parts, alpha, a, b, beta, c),
    }
}

/// How a vector without gaps lies; `None` for other matrices.
fn packed_vector(shape: &Shape) -> Option<Shape> {
    let strides = packed_strides(shape.rows, shape.cols, Layout::ColumnMajor);
    (shape.rows == 1 || shape.cols == 1).then_some(Shape { strides, ..*shape })
}

/// Whether the elements of a vector do not lie side by side.
fn has_gaps(shape: &Shape) -> bool {
    (shape.rows > 1 && shape.strides.row != 1) || (shape.cols > 1 && shape.strides.col != 1)
}

/// The same with k in parts, whose sums are added in order.
fn product_by_parts<T: Scalar>(
    parts: usize,
    alpha: T,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    beta: T,
    mut c: MatMut<'_, T>,
) -> Result<()> {
    let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
    let part_of_k = |part: usize| {
        let range = k * part / parts..k * (part + 1) / parts;
        let (a, b) = (a.cols(range.clone())?, b.rows(range)?);
        let mut sums = Matrix::zeros(m, n)?;
        as_ieee_has_it(|| product_by_blocks(alpha, a, b, T::zero(), sums.view_mut()))?;
        Ok(sums)
    };
    let sums = each::<_, _, Result<Vec<Matrix<T>>>>(0..parts, part_of_k)?;
    for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
        let parts = sums.iter().filter_map(|part| part.view().get(i, j)).fold(T::zero(), |sum, part| sum + part);
        let old = if beta == T::zero() { None } else { c.get(i, j) };
        c.set(i, j, old.map_or(parts, |old| parts + beta * old));
    }
    Ok(())
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

/// Number of blocks, and rows of C in each (columns, where those are more).
pub(crate) fn blocks(m: usize, n: usize, k: usize) -> (usize, usize) {
    let side = m.max(n);
    let rows = block_rows(side, m.min(n), k).min(side);
    (side.div_ceil(rows), rows)
}

/// Parts of k, 1 where C has blocks enough: a function of the shape alone.
pub(crate) fn parts(m: usize, n: usize, k: usize) -> usize {
    let (blocks, _) = blocks(m, n, k);
    let work = m.saturating_mul(n).saturating_mul(k) / blocks;
    let share = (m + n).saturating_mul(k) / PART_SHARE / m.saturating_mul(n).max(1);
    (MOST_BLOCKS / blocks).min(work / LEAST_WORK).min(share).max(1)
}

/// Rows a block: a function of the shape alone.
fn block_rows(m: usize, n: usize, k: usize) -> usize {
    let work = n.saturating_mul(k).max(1);
    let enough = LEAST_WORK.div_ceil(work).max(LEAST_ROWS).max(m.div_ceil(MOST_BLOCKS));
    enough.next_multiple_of(LEAST_ROWS)
}

fn product_by_rows<T: Scalar>(alpha: T, a: MatRef<'_, T>, b: MatRef<'_, T>, beta: T, c: MatMut<'_, T>) -> Result<()> {
    let m = a.nrows();
    let rows = block_rows(m, b.ncols(), a.ncols());
    if m <= rows {
        block(alpha, a, b, beta, c);
        return Ok(());
    }
    let mut blocks = Vec::with_capacity(m.div_ceil(rows));
    let mut rest = c;
    for start in (0..m).step_by(rows) {
        let count = rows.min(m - start);
        let (head, tail) = rest.split_rows(count);
        blocks.push((a.rows(start..start + count)?, head));
        rest = tail;
    }
    // Each thread of rayon's has a setting of its own, which was that of the thread that first asked for them.
    each::<_, _, ()>(blocks, |(a, c)| as_ieee_has_it(|| block(alpha, a, b, beta, c)));
    Ok(())
}

/// One block, on this thread.
fn block<T: Scalar>(alpha: T, a: MatRef<'_, T>, b: MatRef<'_, T>, beta: T, mut c: MatMut<'_, T>) {
    let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
    let (a_row, a_col) = strides(&a);
    let (b_row, b_col) = strides(&b);
    let (c_row, c_col) = strides(&c.as_ref());
    // SAFETY: the shapes agree (`agree`), and the constructors of the views checked that every element of each is inside
    // its memory, and of C distinct; C is borrowed mutably, so overlaps neither A nor B (raw views: `refuse_overlap`).
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            c_col,
            c_row,
            // C is read if and only if β is not 0.
            beta != T::zero(),
            a.as_ptr(),
            a_col,
            a_row,
            b.as_ptr(),
            b_col,
            b_row,
            // This crate computes C ← alpha C + beta A B: the names are the other way round.
            beta,
            alpha,
            false,
            a.shape().conj,
            b.shape().conj,
            gemm::Parallelism::None,
        );
    }
}

/// Row and column strides; one that does not fit is of an axis of one element, and never taken.
fn strides<T>(view: &MatRef<'_, T>) -> (isize, isize) {
    let strides = view.shape().strides;
    let signed = |stride: u64| isize::try_from(stride).unwrap_or(0);
    (signed(strides.row), signed(strides.col))
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
    #[cfg(target_arch = "x86_64")]
    {
        let fma = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
        Some(if fma { "AVX2" } else { "SSE2" })
    }
    #[cfg(target_arch = "aarch64")]
    {
        Some("NEON")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        None
    }
}
