//! C where A lies.

use super::{Choice, Fit, Laid, check};
use crate::variants::tsmm::WIDEST;
use crate::{Machine, Problem, Refusal, VARIANTS};

/// The entry and launch for a product whose C is the first n columns of A: those entries are weighed that read all rows of a
/// tile before they write any of them, on a grid that may have any number of blocks; never transposed.
///
/// # Errors
/// A [`Refusal`]: [`Refusal::TooWide`] if k exceeds 64 or C has more columns than A.
pub fn choose_in_place(problem: &Problem, machine: &Machine) -> Result<Choice, Refusal> {
    check(problem, None)?;
    if problem.n > problem.k {
        let columns = u32::try_from(problem.k).unwrap_or(u32::MAX);
        return Err(Refusal::TooWide { columns, steps: Some(WIDEST) });
    }
    let mut best: Result<Choice, Refusal> = Err(Refusal::NoSuchDtype { dtype: problem.dtype });
    let fits = |place: &usize| VARIANTS[*place].dtype == problem.dtype && VARIANTS[*place].may_be_in_place();
    for place in (0..VARIANTS.len()).filter(fits) {
        let candidate =
            Laid::lying(place, machine, (false, *problem)).map(|laid| Fit::of(laid, problem, machine).choice());
        best = match (best, candidate) {
            (Ok(so_far), Ok(next)) if next.estimate.seconds < so_far.estimate.seconds => Ok(next),
            (Ok(so_far), _) => Ok(so_far),
            (Err(_), next) => next,
        };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Kernel};

    #[test]
    fn in_place_only_tiles_that_are_read_first() -> Result<(), Refusal> {
        for dtype in Dtype::ALL {
            for (m, n, k) in [(10_000_000, 16, 16), (3, 7, 8), (1, 64, 64), (1000, 1, 64)] {
                let p = Problem::column_major(dtype, m, n, k);
                let choice = choose_in_place(&p, &Machine::H200)?;
                assert!(choice.variant.kernel == Kernel::Tsmm && !choice.swapped && choice.splits == 1, "{choice}");
                assert!(choose_in_place(&p, &Machine::A100).is_ok_and(|choice| !choice.variant.mma));
            }
            let wide = Problem::column_major(dtype, 100, 9, 8);
            assert_eq!(choose_in_place(&wide, &Machine::H200), Err(Refusal::TooWide { columns: 8, steps: Some(64) }));
            let deep = Problem::column_major(dtype, 100, 9, 65);
            assert!(matches!(choose_in_place(&deep, &Machine::H200), Err(Refusal::TooWide { .. })));
        }
        Ok(())
    }
}
