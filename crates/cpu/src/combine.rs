//! What is done element by element: C ← β C, and α and β that are not real.

use crate::job::Job;
use crate::simd::Real;
use std::ops::Range;

/// C ← β C of matrices; β = 0 does not read C.
///
/// # Safety
/// The matrices of the range are there, and only this call has them.
pub unsafe fn scale<R: Real>(job: &Job<R>, range: Range<usize>, parts: usize) {
    if job.beta == [R::ONE, R::ZERO] {
        return;
    }
    for i in range {
        // SAFETY: `i` is of the range, whose matrices C the caller promised to be there and this call's alone.
        unsafe { each_of_c(job, i, parts, |_, _, old| old.unwrap_or([R::ZERO; 2])) }
    }
}

/// C_i ← α products + β C_i, the products by columns without gaps.
///
/// # Safety
/// C_i is there, and only this call has it; so are the products.
#[inline(never)] // the same for all kernels
pub unsafe fn combine<R: Real>(job: &Job<R>, i: usize, products: *const R, parts: usize) {
    // SAFETY: `row < m` and `col < n` (`each_of_c`): one of the m · n products, which the caller promised as it did
    // C_i.
    unsafe {
        each_of_c(job, i, parts, |row, col, old| {
            let product = times(job.alpha, load(products.add((col * job.m + row) * parts), parts));
            old.map_or(product, |old| [old[0] + product[0], old[1] + product[1]])
        });
    }
}

/// Each element of C_i becomes what `new` makes of its row, its column and β times it: `None` where β is 0.
///
/// # Safety
/// C_i is there, and only this call has it.
#[inline(always)]
unsafe fn each_of_c<R: Real>(
    job: &Job<R>,
    i: usize,
    parts: usize,
    new: impl Fn(usize, usize, Option<[R; 2]>) -> [R; 2],
) {
    for (row, col) in (0..job.n).flat_map(|col| (0..job.m).map(move |row| (row, col))) {
        // SAFETY: `row < m` and `col < n`, so inside C_i, which the caller promised to be there and this call's alone.
        unsafe {
            let c = job.c.at(i).cast_mut().add(row * job.c.row + col * job.c.col);
            let old = job.reads_c().then(|| times(job.beta, load(c, parts)));
            let [re, im] = new(row, col, old);
            *c = re;
            if parts == 2 {
                *c.add(1) = im;
            }
        }
    }
}

/// An element; of a real one the second part is 0.
///
/// # Safety
/// `from` is good for `parts` numbers.
#[inline(always)]
unsafe fn load<R: Real>(from: *const R, parts: usize) -> [R; 2] {
    // SAFETY: `from` is good for `parts` numbers, as the caller promised; the second is read where there are two.
    unsafe { [*from, if parts == 2 { *from.add(1) } else { R::ZERO }] }
}

/// factor · value; a factor without an imaginary part is a real number.
#[inline(always)]
fn times<R: Real>([re, im]: [R; 2], value: [R; 2]) -> [R; 2] {
    if im == R::ZERO {
        return [re * value[0], re * value[1]];
    }
    [re * value[0] + -(im * value[1]), re * value[1] + im * value[0]]
}
