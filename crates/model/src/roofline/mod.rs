//! Bounds: what no kernel can beat, and what an entry is expected to reach.

mod begin;
mod block;
mod columns;
mod constants;
mod ends;
mod estimate;
mod gemv;
mod issue;
mod norm;
mod reduced;
mod rings;
mod slots;
mod streamed;
mod terms;
mod tsmm;
#[cfg(test)]
pub(crate) mod work;

pub use constants::Constants;
pub(crate) use estimate::MOST_SPLITS;
pub use estimate::{Estimate, Estimator, estimate};
pub(crate) use norm::{root_of_fourths, sum_of_fourths};
pub use terms::Terms;

use crate::{Dtype, Machine, Problem};

/// Threads a warp.
const WARP: f64 = 32.0;

/// The least that a product can cost: every element of A and B read once, every element of C written once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Bytes of A and B.
    pub read_bytes: u64,
    /// Bytes of C.
    pub write_bytes: u64,
    /// 2mnk, of complex elements 8mnk.
    pub flops: f64,
    /// Time to move the bytes, s.
    pub memory_s: f64,
    /// Time to do the arithmetic, s.
    pub arithmetic_s: f64,
}

impl Bound {
    /// The larger of both times, s.
    pub fn seconds(&self) -> f64 {
        self.memory_s.max(self.arithmetic_s)
    }

    /// Bytes of A, B and C.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}

/// What bounds a product on some device: rates, from a table or measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
    /// Bytes read and written a second where as many are read as written, both counted.
    pub copy_bytes_per_s: f64,
    /// Fused multiply-adds a second of real numbers, in the type of the elements' parts, by the fastest units for it.
    pub fma_per_s: f64,
}

impl Rates {
    /// Time to read R bytes and write W: 2·min(R, W)/copy, and what is left over of either at its own rate. s.
    ///
    /// A memory that turns from reading to writing and back does neither meanwhile, so that a copy takes longer than reading alone and
    /// writing alone together: on an H200 4.27 TB/s, where those would give 4.45.
    pub fn memory_s(&self, read_bytes: u64, write_bytes: u64) -> f64 {
        let both = read_bytes.min(write_bytes);
        let left = |bytes: u64| (bytes - both) as f64;
        2.0 * both as f64 / self.copy_bytes_per_s
            + left(read_bytes) / self.read_bytes_per_s
            + left(write_bytes) / self.write_bytes_per_s
    }
}

/// T_bound = max(T_memory, flops/(2·FMA rate)), with 2mnk flops, or 8mnk of complex elements; T_memory is [`Rates::memory_s`] of R, which is A
/// and B, and C where [`Problem::reads_c`], and of W, which is C. Of a [`Machine`], which has no rate of copies, it is R/read + W/write.
///
/// # Source
/// The roofline of Williams et al. with separate rates for reading, writing and both.
pub fn bound(problem: &Problem, machine: &Machine) -> Bound {
    let rates = Rates {
        read_bytes_per_s: machine.read_bytes_per_s,
        write_bytes_per_s: machine.write_bytes_per_s,
        copy_bytes_per_s: 2.0 / (1.0 / machine.read_bytes_per_s + 1.0 / machine.write_bytes_per_s),
        fma_per_s: peak_rate(machine, problem),
    };
    bound_at(problem, &rates, problem.reads_c)
}

/// As [`bound`], at any rates; `reads_c`, which is β ≠ 0, in place of the problem's own.
pub fn bound_at(problem: &Problem, rates: &Rates, reads_c: bool) -> Bound {
    let e = problem.dtype.bytes();
    let (m, n, k) = (problem.m, problem.n, problem.k);
    let write_bytes = e.saturating_mul(m.saturating_mul(n));
    let c_bytes = if reads_c { write_bytes } else { 0 };
    // A Gram matrix's two factors are one.
    let b_elements = if problem.gram { 0 } else { k.saturating_mul(n) };
    let factors_bytes = e.saturating_mul(m.saturating_mul(k).saturating_add(b_elements));
    let read_bytes = factors_bytes.saturating_add(c_bytes);
    // Of a Gram matrix one triangle says all.
    let share = if problem.gram { (m as f64 + 1.0) / (2.0 * m.max(1) as f64) } else { 1.0 };
    let flops = problem.flops() * share;
    Bound {
        read_bytes,
        write_bytes,
        flops,
        memory_s: rates.memory_s(read_bytes, write_bytes),
        arithmetic_s: flops / (2.0 * rates.fma_per_s),
    }
}

/// Fused multiply-adds of real numbers a second, of the vector units.
pub fn fma_rate(machine: &Machine, dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 | Dtype::C64 => machine.fma_f32_per_s,
        Dtype::F64 | Dtype::C128 => machine.fma_f64_per_s,
    }
}

/// Fused multiply-adds of real numbers a second, of the fastest units for an element type: of f64 and c128 the matrix units where they are faster.
pub fn peak_fma_rate(machine: &Machine, dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 | Dtype::C64 => machine.fma_f32_per_s,
        Dtype::F64 | Dtype::C128 => machine.fma_f64_per_s.max(machine.mma_f64_per_s),
    }
}

/// [`peak_fma_rate`] for a product: of f32 that may be split also that of the matrix units, which multiply thrice then, on GPUs that have entries for it.
pub fn peak_rate(machine: &Machine, problem: &Problem) -> f64 {
    let split = if problem.splits_f32 && problem.dtype == Dtype::F32 && machine.compute_capability >= (9, 0) {
        machine.mma_tf32_per_s / SPLIT_PRODUCTS
    } else {
        0.0
    };
    peak_fma_rate(machine, problem.dtype).max(split)
}

/// Products of parts for one of whole elements.
const SPLIT_PRODUCTS: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_the_main_problem_is_723_microseconds() {
        let b = bound(&Problem::column_major(Dtype::F64, 20480, 16, 20480), &Machine::H200);
        assert!((b.seconds() - 723e-6).abs() <= 1.5e-6, "{}", b.seconds());
        assert!(b.memory_s > b.arithmetic_s);
    }

    #[test]
    fn a_bound_is_what_a_hand_finds() {
        // A 4 x 3, B 3 x 2, C 4 x 2 of f32: 72 bytes read, 32 written, 24 multiply-adds.
        let problem = Problem::column_major(Dtype::F32, 4, 2, 3);
        let rates = Rates { read_bytes_per_s: 20.0, write_bytes_per_s: 16.0, copy_bytes_per_s: 32.0, fma_per_s: 4.0 };
        let b = bound_at(&problem, &rates, false);
        assert_eq!((b.read_bytes, b.write_bytes, b.flops), (72, 32, 48.0));
        assert_eq!((b.memory_s, b.arithmetic_s, b.seconds()), (4.0, 6.0, 6.0));
        let b = bound_at(&problem, &rates, true);
        assert_eq!((b.read_bytes, b.memory_s), (104, 2.0 + 72.0 / 20.0));
        // More written than read, as much, and nothing.
        assert_eq!((rates.memory_s(32, 64), rates.memory_s(32, 32), rates.memory_s(0, 0)), (4.0, 2.0, 0.0));
        let scarce = Rates { fma_per_s: 24.0, ..rates };
        assert_eq!(bound_at(&problem, &scarce, false).seconds(), 4.0);
    }

    /// By the matrix units in f64, by the vector units in f32 and on a V100.
    #[test]
    fn the_fastest_units_bind() {
        for (machine, dtype, memory, arithmetic) in [
            (Machine::H200, Dtype::F64, 56, 60),
            (Machine::H200, Dtype::F32, 28, 30),
            (Machine::V100, Dtype::F64, 32, 34),
            // Twice the bytes, four times the arithmetic.
            (Machine::H200, Dtype::C128, 28, 30),
            (Machine::H200, Dtype::C64, 14, 15),
        ] {
            let at = |n| bound(&Problem::column_major(dtype, 20480, n, 20480), &machine);
            assert!(at(memory).memory_s > at(memory).arithmetic_s, "{} {dtype}", machine.name);
            assert!(at(arithmetic).memory_s < at(arithmetic).arithmetic_s, "{} {dtype}", machine.name);
        }
    }
}
