//! One product by a [`Blocking`].

use super::{Blocking, MOST_COLUMNS, MOST_VECTORS, Order};
use crate::MOST;
use crate::ahead::Ahead;
use crate::epilogue::Epilogue;
use crate::job::Job;
use crate::simd::{MOST_LANES, Real, Simd, Work};
use std::mem::MaybeUninit;
use std::ops::Range;

/// A range of the batch.
///
/// # Safety
/// As [`super::gemm_batched_by`]: the CPU has the instructions of S, and the matrices are there.
pub unsafe fn products<S: Simd>(blocking: &Blocking, job: &Job<S::Real>, range: Range<usize>) {
    // SAFETY: the caller promised what `Search` asks for: the instructions of S, and the matrices of the range.
    unsafe { S::vectorize(Search { blocking, job, range, vectors: std::marker::PhantomData::<S> }) }
}

struct Search<'a, S: Simd> {
    blocking: &'a Blocking,
    job: &'a Job<S::Real>,
    range: Range<usize>,
    vectors: std::marker::PhantomData<S>,
}

impl<S: Simd> Work for Search<'_, S> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `Simd::vectorize` runs this, whose caller, `products`, was promised the instructions and the
        // matrices.
        unsafe { self.products() }
    }
}

/// Sums that were put by: rows in whole vectors.
#[repr(C, align(64))]
struct Sums<R>([MaybeUninit<R>; MOST * (MOST + MOST_LANES)]);

/// Lengths of the three loops: blocks of rows, blocks of columns, windows.
type Counts = [usize; 3];

impl<S: Simd> Search<'_, S> {
    /// # Safety
    /// As [`products`].
    #[inline(always)]
    unsafe fn products(self) {
        let Search { blocking, job, range, .. } = self;
        let (m, n, k) = (job.m, job.n, job.k);
        let vectors = (blocking.rows / S::LANES).clamp(1, MOST_VECTORS);
        let steps = if blocking.order.keeps_sums() { k } else { blocking.steps.max(1) };
        let cols = blocking.cols.clamp(1, MOST_COLUMNS);
        let counts: Counts = [m.div_ceil(vectors * S::LANES), n.div_ceil(cols), k.div_ceil(steps)];
        let mut sums = Sums::<S::Real>([const { MaybeUninit::uninit() }; MOST * (MOST + MOST_LANES)]);
        // SAFETY: the caller promised the instructions and the matrices; `i`, `j` and `l` are below `counts`, so
        // windows are inside the product; `sums` has a column of whole vectors for each of at most MOST.
        unsafe {
            let epilogue = Epilogue::<S>::new(job);
            let windows = counts[0] * counts[1] * counts[2];
            let mut ahead = Ahead::by_blocks(job, 1, if blocking.asks { range.end } else { 0 }, windows);
            for i in range {
                ahead.begin(job, i);
                let of = Product {
                    a: job.a.at(i),
                    a_col: job.a.col,
                    b: job.b.at(i),
                    b_by: (job.b.row, job.b.col),
                    c: job.c.at(i).cast_mut(),
                    c_col: job.c.col,
                    sums: (&raw mut sums.0).cast(),
                    sums_col: m.next_multiple_of(S::LANES),
                    by_rows: blocking.by_rows,
                };
                for_each(blocking.order, counts, |[i, j, l]| {
                    let (row, col, first) = (i * vectors * S::LANES, j * cols, l * steps);
                    let window = Window {
                        at: (row, col),
                        rows: (m - row).min(vectors * S::LANES),
                        range: first..(first + steps).min(k),
                        is_last: first + steps >= k,
                    };
                    any_window::<S>((window.rows.div_ceil(S::LANES), (n - col).min(cols)), &of, &window, &epilogue);
                    ahead.block::<S>();
                });
            }
        }
    }
}

/// Calls `visit` with the places of all loops, in that order.
#[inline(always)]
fn for_each(order: Order, counts: Counts, mut visit: impl FnMut([usize; 3])) {
    // Which loop is the outermost, the one in it, and the innermost.
    let loops = match order {
        Order::Ijl => [0, 1, 2],
        Order::Jil => [1, 0, 2],
        Order::Ilj => [0, 2, 1],
        Order::Jli => [1, 2, 0],
        Order::Lij => [2, 0, 1],
        Order::Lji => [2, 1, 0],
    };
    let mut at = [0; 3];
    for outer in 0..counts[loops[0]] {
        at[loops[0]] = outer;
        for middle in 0..counts[loops[1]] {
            at[loops[1]] = middle;
            for inner in 0..counts[loops[2]] {
                at[loops[2]] = inner;
                visit(at);
            }
        }
    }
}

/// One product of the batch, and where its sums are put by.
struct Product<R> {
    a: *const R,
    a_col: usize,
    b: *const R,
    b_by: (usize, usize),
    c: *mut R,
    c_col: usize,
    sums: *mut R,
    sums_col: usize,
    by_rows: bool,
}

/// A block, and steps of its sums.
struct Window {
    at: (usize, usize),
    rows: usize,
    range: Range<usize>,
    is_last: bool,
}

/// A window whose block has a size that is known when it runs.
///
/// # Safety
/// As [`products`]; the window is inside the product.
#[inline(always)]
unsafe fn any_window<S: Simd>(
    (vectors, cols): (usize, usize),
    of: &Product<S::Real>,
    window: &Window,
    epilogue: &Epilogue<S>,
) {
    macro_rules! choose {
        ($($v:literal: $($n:literal)*;)*) => {
            // SAFETY: the caller promised the instructions and that the window is inside the product; so are its
            // halves.
            unsafe {
                match (vectors, cols, of.by_rows) {
                    $($(
                        ($v, $n, true) if const { fits::<S>($v, $n) } => {
                            S::vectorize(Block::<S, $v, $n, true> { of, window, epilogue })
                        }
                        ($v, $n, false) if const { fits::<S>($v, $n) } => {
                            S::vectorize(Block::<S, $v, $n, false> { of, window, epilogue })
                        }
                    )*)*
                    (1, ..) => unreachable!("no block has {vectors} vectors and {cols} columns"),
                    // No CPU of these instructions has the registers for it.
                    _ => halves::<S>((vectors, cols), of, window, epilogue),
                }
            }
        };
    }
    choose! {
        1: 1 2 3 4 5 6 7 8;
        2: 1 2 3 4 5 6 7 8;
        3: 1 2 3 4 5 6 7 8;
        4: 1 2 3 4 5 6 7 8;
    }
}

/// Whether the sums fit into the registers, whatever else does.
const fn fits<S: Simd>(vectors: usize, cols: usize) -> bool {
    vectors == 1 || vectors * cols < S::REGISTERS
}

/// # Safety
/// As [`any_window`], of more than one vector.
#[inline(never)]
unsafe fn halves<S: Simd>(
    (vectors, cols): (usize, usize),
    of: &Product<S::Real>,
    window: &Window,
    epilogue: &Epilogue<S>,
) {
    let upper = vectors / 2;
    let (row, col) = window.at;
    let parts = [(0, upper), (upper, vectors - upper)];
    for (first, count) in parts {
        let rows = (window.rows - first * S::LANES).min(count * S::LANES);
        let part =
            Window { at: (row + first * S::LANES, col), rows, range: window.range.clone(), is_last: window.is_last };
        // SAFETY: `part` is some whole vectors of the rows of `window`, which the caller promised to be inside.
        unsafe { any_window::<S>((count, cols), of, &part, epilogue) }
    }
}

struct Block<'a, S: Simd, const V: usize, const N: usize, const BY_ROWS: bool> {
    of: &'a Product<S::Real>,
    window: &'a Window,
    epilogue: &'a Epilogue<S>,
}

impl<S: Simd, const V: usize, const N: usize, const BY_ROWS: bool> Work for Block<'_, S, V, N, BY_ROWS> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `Simd::vectorize` runs this, whose caller, `any_window`, was promised the instructions and the
        // window.
        unsafe { self.window() }
    }
}

impl<S: Simd, const V: usize, const N: usize, const BY_ROWS: bool> Block<'_, S, V, N, BY_ROWS> {
    /// # Safety
    /// As [`any_window`].
    #[inline(always)]
    unsafe fn window(self) {
        let Block { of, window, epilogue } = self;
        let (row, col) = window.at;
        // Of the last vector.
        let len = window.rows - (V - 1) * S::LANES;
        // SAFETY: the caller promised the instructions and that the window is inside the product; the sums have whole
        // vectors for all rows.
        unsafe {
            let put_by = of.sums.add(row + col * of.sums_col);
            let mut sums = [[S::splat(S::Real::ZERO); V]; N]; // (N, V)
            if window.range.start > 0 {
                for (j, column) in sums.iter_mut().enumerate() {
                    for (v, sum) in column.iter_mut().enumerate() {
                        *sum = S::load(put_by.add(j * of.sums_col + v * S::LANES));
                    }
                }
            }
            for l in window.range.clone() {
                let (a, b) = (of.a.add(row + l * of.a_col), of.b.add(l * of.b_by.0 + col * of.b_by.1));
                let vector = |v: usize| {
                    let from = a.add(v * S::LANES);
                    if v + 1 < V || len == S::LANES { S::load(from) } else { S::load_first(from, len) }
                };
                if BY_ROWS {
                    let mut rb = [S::splat(S::Real::ZERO); N];
                    for (j, rb) in rb.iter_mut().enumerate() {
                        *rb = S::splat(*b.add(j * of.b_by.1));
                    }
                    for v in 0..V {
                        let ra = vector(v);
                        for (column, rb) in sums.iter_mut().zip(rb) {
                            column[v] = S::mul_add(ra, rb, column[v]);
                        }
                    }
                } else {
                    let mut ra = [S::splat(S::Real::ZERO); V];
                    for (v, ra) in ra.iter_mut().enumerate() {
                        *ra = vector(v);
                    }
                    for (j, column) in sums.iter_mut().enumerate() {
                        let rb = S::splat(*b.add(j * of.b_by.1));
                        for (sum, ra) in column.iter_mut().zip(ra) {
                            *sum = S::mul_add(ra, rb, *sum);
                        }
                    }
                }
            }
            if !window.is_last {
                for (j, column) in sums.iter().enumerate() {
                    for (v, &sum) in column.iter().enumerate() {
                        S::store(put_by.add(j * of.sums_col + v * S::LANES), sum);
                    }
                }
                return;
            }
            for (j, column) in sums.iter().enumerate() {
                for (v, &sum) in column.iter().enumerate() {
                    let to = of.c.add(row + v * S::LANES + (col + j) * of.c_col);
                    let lanes = if v + 1 < V { S::LANES } else { len };
                    let product = epilogue.product([sum]);
                    let old = || if lanes == S::LANES { S::load(to) } else { S::load_first(to, lanes) };
                    let result = if epilogue.reads_c { epilogue.plus_old(product, old()) } else { product };
                    if lanes == S::LANES { S::store(to, result) } else { S::store_first(to, lanes, result) }
                }
            }
        }
    }
}
