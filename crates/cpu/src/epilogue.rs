//! C ← α sums + β C, a vector of C at a time, with real α and β.

use crate::job::Job;
use crate::simd::{MOST_LANES, Real, Simd};

/// The factors, as vectors. Complex numbers lie as pairs (re, im).
pub struct Epilogue<S: Simd> {
    alpha: S::Vector,
    beta: S::Vector,
    pub reads_c: bool,
    /// Whether α is not 1.
    pub scales: bool,
    /// Of complex sums: see [`Epilogue::product`].
    signs: [S::Vector; 2],
}

impl<S: Simd> Epilogue<S> {
    /// Of α = 1 and β = 0 for a job whose factors are not real: [`crate::combine`] sees to them.
    ///
    /// # Safety
    /// The CPU has the instructions of S; of all functions here.
    #[inline(always)]
    pub unsafe fn new(job: &Job<S::Real>) -> Self {
        let (one, minus) = (S::Real::ONE, -S::Real::ONE);
        let (own, crossed) = match (job.conj_a, job.conj_b) {
            (false, false) => ((one, one), (minus, one)),
            (true, false) => ((one, minus), (one, one)),
            (false, true) => ((one, one), (one, minus)),
            (true, true) => ((one, minus), (minus, minus)),
        };
        let (alpha, beta) = if job.combines_later() { (one, S::Real::ZERO) } else { (job.alpha[0], job.beta[0]) };
        // SAFETY: the CPU has the instructions of S, as the caller promised; no address is followed.
        unsafe {
            Epilogue {
                alpha: S::splat(alpha),
                beta: S::splat(beta),
                reads_c: beta != S::Real::ZERO,
                scales: alpha != one,
                signs: [pairs::<S>(own.0, own.1), pairs::<S>(crossed.0, crossed.1)],
            }
        }
    }

    /// A vector of α op(A) op(B) from its sums. Those of complex numbers are Σ a · re b and Σ a · im b: the second, its
    /// parts exchanged, belongs to the first, with signs that make the conjugates of A and B free.
    #[inline(always)]
    pub unsafe fn product<const PARTS: usize>(&self, sums: [S::Vector; PARTS]) -> S::Vector {
        // SAFETY: the CPU has the instructions of S, which `new` was promised; vectors alone, no address.
        unsafe {
            if PARTS == 1 {
                return S::mul(sums[0], self.alpha);
            }
            let own = S::mul(sums[0], self.signs[0]);
            S::mul(S::mul_add(S::swap_pairs(sums[PARTS - 1]), self.signs[1], own), self.alpha)
        }
    }

    /// product + β old.
    #[inline(always)]
    pub unsafe fn plus_old(&self, product: S::Vector, old: S::Vector) -> S::Vector {
        // SAFETY: as in `product`.
        unsafe { S::mul_add(old, self.beta, product) }
    }
}

/// even, odd, even and so on.
///
/// # Safety
/// The CPU has the instructions of S.
#[inline(always)]
pub unsafe fn pairs<S: Simd>(even: S::Real, odd: S::Real) -> S::Vector {
    let lanes: [S::Real; MOST_LANES] = std::array::from_fn(|lane| if lane % 2 == 0 { even } else { odd });
    // SAFETY: the array has MOST_LANES elements, at least S's LANES; the CPU has the instructions, as the caller
    // promised.
    unsafe { S::load(lanes.as_ptr()) }
}
