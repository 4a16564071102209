//! A vector's product of few rows, k in parts: the rows alone would leave all but one thread idle.

use super::{LEAST_WORK, block};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::view::{MatMut, MatRef};
use rayon::prelude::*;

/// At most this many parts.
const MOST_PARTS: usize = 64;

/// Parts that k is in, and steps of each: a function of the shape alone; one part where there is too little to share.
pub(crate) fn parts(m: usize, k: usize) -> (usize, usize) {
    let worth = m.saturating_mul(k) / LEAST_WORK;
    let steps = k.div_ceil(worth.clamp(1, MOST_PARTS)).next_multiple_of(64);
    (k.div_ceil(steps).max(1), steps.min(k))
}

/// y ← α A x + β y: a part's sums are one thread's, and the parts' are added in order.
pub(super) fn product<T: Scalar>(
    alpha: T,
    a: MatRef<'_, T>,
    x: MatRef<'_, T>,
    beta: T,
    mut y: MatMut<'_, T>,
) -> Result<()> {
    let (m, k) = (a.nrows(), a.ncols());
    let (parts, steps) = parts(m, k);
    let mut sums = vec![T::zero(); m * parts];
    sums.par_chunks_mut(m).enumerate().try_for_each(|(part, sums)| {
        let range = part * steps..k.min((part + 1) * steps);
        block(T::one(), a.cols(range.clone())?, x.rows(range)?, T::zero(), MatMut::column_major(sums, m, 1)?);
        Ok::<(), crate::Error>(())
    })?;
    for i in 0..m {
        let sum = (0..parts).filter_map(|part| sums.get(part * m + i)).fold(T::zero(), |all, sum| all + *sum);
        // β = 0 reads nothing.
        let old = if beta == T::zero() { None } else { y.get(i, 0).map(|old| beta * old) };
        y.set(i, 0, old.map_or(alpha * sum, |old| alpha * sum + old));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_and_worth_it() {
        assert_eq!([(1, 1), (1, 100_000), (64, 4096)].map(|(m, k)| parts(m, k).0), [1, 1, 1]);
        for (m, k) in [(1, 1 << 19), (1, 30_000_001), (7, 1_000_003), (64, 1 << 20), (3, 600_000)] {
            let (parts, steps) = parts(m, k);
            assert!((2..=MOST_PARTS).contains(&parts) && steps * m >= LEAST_WORK / 2, "{m} {k}: {parts} of {steps}");
            assert!(steps * (parts - 1) < k && steps * parts >= k, "{m} {k}: {parts} of {steps}");
        }
    }
}
