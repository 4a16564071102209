//! What every product kernel is called with, and how it hands in its sums.

use cuda_std::prelude::*;

/// C (m x n) ← α A (m x k) B (k x n) + β C over one part of k, with any strides, in elements.
///
/// Of complex elements A and B may be the conjugates of what is stored: see [`Product::conj_sum`].
///
/// Where k is cut into parts, C is the scratch: part p writes slot p, `slot_len` elements further on, with α = 1 and
/// β = 0, and [`crate::slots`] adds them in order. Where it is not, or the blocks of a tile join them ([`crate::slots::join`]), `slot_len` is 0 and C
/// is the caller's.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Product<T> {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub a: Global<T>,
    pub a_row: u64,
    pub a_col: u64,
    pub b: Global<T>,
    pub b_row: u64,
    pub b_col: u64,
    pub alpha: T,
    pub beta: T,
    pub c: Global<T>,
    pub c_row: u64,
    pub c_col: u64,
    pub slot_len: u64,
    /// Bit 0: A's conjugates; bit 1: B's.
    pub conj: u32,
    /// Tickets and slots, where the blocks of a tile join its parts of k themselves ([`crate::slots::join`]).
    pub work: Global<T>,
}

impl<T: Scalar> Product<T> {
    /// The same with another β.
    #[inline(always)]
    pub fn with_beta(self, beta: T) -> Self {
        Product { beta, ..self }
    }

    /// This block's part of k: (start, end), cut at multiples of `tile`.
    #[inline(always)]
    pub fn part(&self, tile: u32) -> (u32, u32) {
        self.part_at(tile, thread::block_idx_y())
    }

    /// Part `index` of k of as many as the grid has.
    #[inline(always)]
    pub fn part_at(&self, tile: u32, index: u32) -> (u32, u32) {
        model::launch::part_of_k(self.k, tile, thread::grid_dim_y(), index)
    }

    /// Element (row, l) of A; zero from row m or column `end` on.
    ///
    /// # Safety
    /// `end` <= k, and A spans its m x k elements.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn a(&self, row: u32, l: u32, end: u32) -> T {
        let inside = row < self.m && l < end;
        // SAFETY: inside A wherever the load happens; A is read-only.
        unsafe { self.a.stream_if(inside, row as u64 * self.a_row + l as u64 * self.a_col) }
    }

    /// Element (l, col) of B; zero from row `end` or column n on.
    ///
    /// # Safety
    /// `end` <= k, and B spans its k x n elements.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn b(&self, l: u32, col: u32, end: u32) -> T {
        let inside = l < end && col < self.n;
        // SAFETY: inside B wherever the load happens; B is read-only.
        unsafe { self.b.load_if(inside, l as u64 * self.b_row + col as u64 * self.b_col) }.conj_if(self.conj_b())
    }

    /// Whether a sum multiplies with the conjugates of B's elements: where one of A and B is conjugated and the other is
    /// not.
    #[inline(always)]
    pub fn conj_b(&self) -> bool {
        self.conj == 1 || self.conj == 2
    }

    /// The same for [`Scalar::add_outer`]; no bit but 0 and 1 is ever set, which no compiler knows.
    #[inline(always)]
    pub fn signs(&self) -> Signs {
        Signs { conj_b: (self.conj ^ self.conj >> 1) << 31, never: self.conj >> 2 << 31 }
    }

    /// Whether a sum is conjugated once it is whole: where A is. For Ā B is the conjugate of A B̄, and Ā B̄ that of A B, so
    /// that A is read as it is; signs change and nothing is rounded.
    #[inline(always)]
    pub fn conj_sum(&self) -> bool {
        self.conj & 1 == 1
    }

    /// Where this part's slot starts in C.
    #[inline(always)]
    pub(crate) fn slot(&self) -> u64 {
        thread::block_idx_y() as u64 * self.slot_len
    }

    /// C(row, col) ← α · sum + β · C(row, col), in this part's slot; nothing outside C. C is not read where β = 0.
    ///
    /// # Safety
    /// C spans its m x n elements in each slot, and no other thread writes this one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(&self, row: u32, col: u32, sum: T) {
        if row < self.m && col < self.n {
            let slot = self.slot();
            let at = slot + row as u64 * self.c_row + col as u64 * self.c_col;
            // SAFETY: (row, col) lies in C.
            unsafe { self.c.store(at, scaled(self.alpha, sum.conj_if(self.conj_sum()), self.beta, self.c, at)) };
        }
    }

    /// The same for R x Q sums, whose rows and columns `row` and `col` give.
    ///
    /// # Safety
    /// As for [`Product::write`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_tile<const R: usize, const Q: usize>(
        &self,
        row: impl Fn(usize) -> u32,
        col: impl Fn(usize) -> u32,
        sums: [[T; Q]; R],
    ) {
        let slot = self.slot();
        for i in 0..R {
            let (row, start) = (row(i), slot + row(i) as u64 * self.c_row);
            for j in 0..Q {
                if row < self.m && col(j) < self.n {
                    let at = start + col(j) as u64 * self.c_col;
                    let sum = sums[i][j].conj_if(self.conj_sum());
                    // SAFETY: (row, col) lies in C.
                    unsafe { self.c.store(at, scaled(self.alpha, sum, self.beta, self.c, at)) };
                }
            }
        }
    }
}

/// α · sum + β · C[at], without reading C where β = 0; α and β without imaginary parts are real numbers.
///
/// # Safety
/// C holds element `at`.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn scaled<T: Scalar>(alpha: T, sum: T, beta: T, c: Global<T>, at: u64) -> T {
    if beta.is_zero() {
        alpha.scale(sum)
    } else {
        // SAFETY: C holds element `at`, as the caller promised.
        alpha.scale_onto(sum, beta.scale(unsafe { c.load(at) }))
    }
}

/// The spelling of complex elements in a table row.
#[allow(non_camel_case_types)]
pub(crate) type c64 = Complex<f32>;
#[allow(non_camel_case_types)]
pub(crate) type c128 = Complex<f64>;

/// Stamps an entry: flat parameters in, one [`Product`] to the body.
macro_rules! product_entry {
    ($entry:ident, $elem:ty, $body:expr) => {
        #[cuda_std::kernel]
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]
        pub unsafe fn $entry(
            m: u32,
            n: u32,
            k: u32,
            a: Global<$elem>,
            a_row: u64,
            a_col: u64,
            b: Global<$elem>,
            b_row: u64,
            b_col: u64,
            alpha: $elem,
            beta: $elem,
            c: Global<$elem>,
            c_row: u64,
            c_col: u64,
            slot_len: u64,
            conj: u32,
            work: Global<$elem>,
        ) {
            let x = $crate::product::Product {
                m,
                n,
                k,
                a,
                a_row,
                a_col,
                b,
                b_row,
                b_col,
                alpha,
                beta,
                c,
                c_row,
                c_col,
                slot_len,
                conj,
                work,
            };
            // SAFETY: the launch has the geometry of the entry's row in the table, and the operands span their elements.
            unsafe { $body(x) }
        }
    };
}
pub(crate) use product_entry;
