//! Who chooses; an entry and its parts of k that were given, by measurements or by whoever measures.

use super::splits::best_split;
use super::{Choice, Fit, check, in_question};
use crate::{Machine, Problem, Refusal};

/// Who made a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// The estimates of [`crate::roofline`].
    Model,
    /// The caller named a variant or an entry; the model chose the rest.
    Caller,
    /// The model, for [`Machine::COMMON`](crate::Machine::COMMON) and so for every GPU alike: [`super::choose_across`].
    Common,
    /// Measurements: what took least at the nearest shape that was tried.
    Tuned {
        /// m, n and k of that shape.
        at: [u64; 3],
        /// What it took there, ns.
        ns: u64,
    },
}

/// Parts of k that an entry is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts {
    /// Those that the model expects to take least.
    Best,
    /// So many.
    Exactly(u32),
    /// Those that the model expects to take least, times what was best elsewhere over what the model expected there.
    Scaled {
        /// Best elsewhere.
        measured: u32,
        /// Expected there.
        expected: u32,
    },
}

impl Parts {
    /// As a number, where `best` are expected to take least; at least 1, at most `most`.
    fn among(self, best: u32, most: u32) -> u32 {
        let parts = match self {
            Parts::Best => best,
            Parts::Exactly(parts) => parts,
            Parts::Scaled { measured, expected } => {
                let (measured, expected) = (u64::from(measured), u64::from(expected.max(1)));
                let scaled = (2 * u64::from(best) * measured + expected) / (2 * expected);
                u32::try_from(scaled).unwrap_or(u32::MAX)
            }
        };
        parts.clamp(1, most)
    }
}

/// The launch of the entry or variant of this name with so many parts of k, no more than it can have at this shape; of a variant
/// the entry that is expected to take least so.
///
/// # Errors
/// As [`super::choose`], whose rules for what can run are these as well.
pub fn choose_given(problem: &Problem, machine: &Machine, name: &str, parts: Parts) -> Result<Choice, Refusal> {
    check(problem, Some(name))?;
    let mut best: Result<Choice, Refusal> = Err(Refusal::NoSuchDtype { dtype: problem.dtype });
    for place in in_question(problem, Some(name)) {
        let given = Fit::new(place, problem, machine).map(|fit| fit.given(parts));
        best = match (best, given) {
            (Ok(so_far), Ok(next)) if next.estimate.seconds < so_far.estimate.seconds => Ok(next),
            (Ok(so_far), _) => Ok(so_far),
            (Err(_), next) => next,
        };
    }
    best
}

impl Fit<'_> {
    fn given(mut self, parts: Parts) -> Choice {
        let best = match parts {
            Parts::Exactly(_) => 1,
            Parts::Best | Parts::Scaled { .. } => {
                best_split(&mut self.estimator, f64::INFINITY).map_or(1, |(splits, _)| splits)
            }
        };
        let splits = parts.among(best, self.estimator.most_splits());
        Choice { chooser: Chooser::Caller, ..self.launch(splits) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose;
    use super::*;
    use crate::{Dtype, VARIANTS};

    #[test]
    fn the_best_parts_are_those_that_are_chosen() -> Result<(), Refusal> {
        for (m, n, k) in [(128, 4, 1_000_000), (20_480, 16, 20_480), (1000, 1, 30_000), (16, 16, 10_000_000)] {
            for dtype in [Dtype::F32, Dtype::F64] {
                let p = Problem::column_major(dtype, m, n, k);
                let own = choose(&p, &Machine::H200, None)?;
                let forced = choose(&p, &Machine::H200, Some(own.variant.entry))?;
                let name = own.variant.entry;
                for parts in [
                    Parts::Best,
                    Parts::Exactly(own.splits),
                    Parts::Scaled { measured: 3, expected: 3 },
                    Parts::Scaled { measured: 1, expected: 1 },
                ] {
                    assert_eq!(choose_given(&p, &Machine::H200, name, parts)?, forced, "{parts:?}");
                }
                assert_eq!(
                    choose_given(&p, &Machine::H200, own.variant.name, Parts::Best)?.variant.name,
                    own.variant.name
                );
            }
        }
        Ok(())
    }

    #[test]
    fn parts_are_given_as_far_as_the_shape_has_them() -> Result<(), Refusal> {
        let p = Problem::column_major(Dtype::F64, 128, 4, 1_000_000);
        let own = choose(&p, &Machine::H200, None)?;
        let with = |parts| choose_given(&p, &Machine::H200, own.variant.entry, parts);
        assert_eq!(with(Parts::Exactly(3))?.splits, 3);
        // A slot is of the ring's whole tiles.
        let slot_len = u64::from(own.grid[0] * own.variant.rows * own.variant.t2);
        assert_eq!((with(Parts::Exactly(3))?.grid[1], with(Parts::Exactly(3))?.slots_len), (3, slot_len * 3));
        assert_eq!(with(Parts::Exactly(0))?.splits, 1);
        assert!(with(Parts::Exactly(u32::MAX))?.splits <= crate::roofline::MOST_SPLITS);
        // Half, and one and a half times, what is expected to be best here.
        assert_eq!(with(Parts::Scaled { measured: 4, expected: 8 })?.splits, own.splits.div_ceil(2));
        let more = Parts::Scaled { measured: u32::MAX, expected: 0 };
        assert_eq!(with(more)?.splits, with(Parts::Exactly(u32::MAX))?.splits);
        Ok(())
    }

    /// What cannot run is refused for the same reason, however many parts it is given.
    #[test]
    fn what_cannot_run_is_refused() {
        let shapes = [(1000, 7, 300), (1000, 1, 300), (100_000, 64, 64), (64, 64, 100_000), (500, 500, 500)];
        for (dtype, (m, n, k)) in [Dtype::F32, Dtype::C128].into_iter().flat_map(|d| shapes.map(|shape| (d, shape))) {
            for p in [Problem::column_major(dtype, m, n, k), Problem::gram(dtype, n, k, crate::Strides::row_major(k))] {
                for v in VARIANTS {
                    let parts = Parts::Exactly(5);
                    let (given, forced) =
                        (choose_given(&p, &Machine::A100, v.entry, parts), choose(&p, &Machine::A100, Some(v.entry)));
                    assert_eq!(given.err(), forced.err(), "{} {p:?}", v.entry);
                }
            }
        }
    }
}
