//! Adds slots: C ← α (S₀ + S₁ + ...) + β C, or C ← β C where there are none; and [`join`], by which a kernel's own blocks do.
//!
//! | operand | shape | stored as                                        |
//! |---------|-------|--------------------------------------------------|
//! | S       | m x n | `count` slots behind one another, column-major, m |
//! | C       | m x n | any strides                                      |
//!
//! # Thread mapping
//! One thread an element of C, down the columns.
//! # Zero β
//! β = 0 never reads C; with no slots it writes zeros.
//! # Determinism
//! Slots are added in order, from the first.
//! # Cost
//! Reads `count` · m · n elements, and C unless β = 0; writes m · n.

mod join;

pub use join::join;

use crate::product::scaled;
use cuda_std::prelude::*;
use model::variants::SUM_SLOTS_THREADS;

/// Slots whose loads are in flight together.
const UNROLL: usize = 4;

/// # Safety
/// Launched with at least m · n threads in blocks of `SUM_SLOTS_THREADS`; S and C span their elements.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn body<T: Scalar>(
    m: u32,
    n: u32,
    slots: Global<T>,
    count: u32,
    alpha: T,
    beta: T,
    c: Global<T>,
    c_row: u64,
    c_col: u64,
) {
    let at = thread::block_idx_x() as u64 * SUM_SLOTS_THREADS as u64 + thread::thread_idx_x() as u64;
    let len = m as u64 * n as u64;
    if at < len {
        let mut sum = T::ZERO;
        for first in (0..count).step_by(UNROLL) {
            let next: [T; UNROLL] = core::array::from_fn(|u| {
                let s = first + u as u32;
                // SAFETY: inside slot s, and nobody writes the slots any more.
                unsafe { slots.load_if(s < count, s as u64 * len + at) }
            });
            for s in 0..UNROLL {
                sum = sum.add(next[s]);
            }
        }
        let rows = (m as u64).max(1); // m > 0 here, which the compiler cannot know: no division can panic
        let to = at % rows * c_row + at / rows * c_col;
        // SAFETY: (at % m, at / m) lies in C, and this thread owns it.
        unsafe {
            let value = match count {
                0 if beta.is_zero() => T::ZERO,
                0 => beta.scale(c.load(to)),
                _ => scaled(alpha, sum, beta, c, to),
            };
            c.store(to, value);
        }
    }
}

macro_rules! entry {
    ($entry:ident, $elem:ty) => {
        #[kernel]
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]
        pub unsafe fn $entry(
            m: u32,
            n: u32,
            slots: Global<$elem>,
            count: u32,
            alpha: $elem,
            beta: $elem,
            c: Global<$elem>,
            c_row: u64,
            c_col: u64,
        ) {
            // SAFETY: the launch covers C, and the operands span their elements.
            unsafe { body(m, n, slots, count, alpha, beta, c, c_row, c_col) }
        }
    };
}
entry!(ssum_slots_t256, f32);
entry!(dsum_slots_t256, f64);
entry!(csum_slots_t256, Complex<f32>);
entry!(zsum_slots_t256, Complex<f64>);
