//! What is timed at a shape: what the model thinks of, and none that it thinks far behind.

use model::{Choice, Machine, Parts, Problem, Refusal, VARIANTS, Variant, candidates, choose, choose_given};

/// An entry that the model expects to take so many times as long as its own choice is not timed.
const FAR: f64 = 2.0;
/// Entries at most.
const ENTRIES: usize = 12;
/// Entries that are expected to take no more than so many times as long as the model's choice are also timed with half and with
/// twice the parts of k.
const NEAR: f64 = 1.25;

/// One that takes turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entrant {
    pub variant: &'static Variant,
    /// Parts of k.
    pub parts: u32,
    /// Parts of k that the model expects to be best for it.
    pub expected_parts: u32,
    /// What the model expects it to take.
    pub expected_s: f64,
}

impl Entrant {
    fn of(choice: &Choice, expected_parts: u32) -> Self {
        let Choice { variant, splits, .. } = *choice;
        Self { variant, parts: splits, expected_parts, expected_s: choice.estimate.seconds }
    }

    /// The parts of k that it gets at a shape nearby; `None` where it cannot run.
    pub fn parts_at(&self, problem: &Problem, machine: &Machine) -> Option<u32> {
        let parts = Parts::Scaled { measured: self.parts, expected: self.expected_parts };
        choose_given(problem, machine, self.variant.entry, parts).ok().map(|choice| choice.splits)
    }

    fn is(&self, other: &Self) -> bool {
        self.variant.entry == other.variant.entry && self.parts == other.parts
    }
}

/// Those of a product, the model's own choice first. With `all_of_paper` also Sørensen's, which the model never takes.
///
/// # Errors
/// Why the product is not served.
pub fn entrants(problem: &Problem, machine: &Machine, all_of_paper: bool) -> Result<Vec<Entrant>, Refusal> {
    let own = choose(problem, machine, None)?;
    let mut weighed: Vec<Choice> =
        candidates(problem, machine, None)?.filter(|c| c.estimate.seconds <= FAR * own.estimate.seconds).collect();
    weighed.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    weighed.truncate(ENTRIES);
    let mut entrants = vec![Entrant::of(&own, own.splits)];
    let mut add = |entrant: Entrant| {
        if !entrants.iter().any(|there| there.is(&entrant)) {
            entrants.push(entrant);
        }
    };
    for choice in &weighed {
        add(Entrant::of(choice, choice.splits));
        if choice.estimate.seconds > NEAR * own.estimate.seconds {
            continue;
        }
        for parts in [choice.splits / 2, choice.splits.saturating_mul(2)] {
            let given = choose_given(problem, machine, choice.variant.entry, Parts::Exactly(parts));
            let fits = |given: &Choice| given.splits == parts && given.estimate.seconds <= FAR * own.estimate.seconds;
            if let Some(given) = given.ok().filter(fits) {
                add(Entrant::of(&given, choice.splits));
            }
        }
    }
    if all_of_paper {
        for variant in VARIANTS.iter().filter(|v| v.is_sorensens() && v.dtype == problem.dtype) {
            if let Ok(choice) = choose_given(problem, machine, variant.entry, Parts::Best) {
                add(Entrant::of(&choice, choice.splits));
            }
        }
    }
    Ok(entrants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Dtype;

    const H200: Machine = Machine::H200;

    #[test]
    fn the_models_choice_is_first_and_nobody_comes_twice() -> Result<(), Refusal> {
        for (m, n, k) in
            [(20_480, 16, 20_480), (1000, 1, 30_000), (100_000, 16, 16), (16, 16, 1_000_000), (500, 500, 500)]
        {
            for dtype in Dtype::ALL {
                let p = Problem::column_major(dtype, m, n, k);
                let own = choose(&p, &H200, None)?;
                let all = entrants(&p, &H200, false)?;
                assert_eq!((all[0].variant.entry, all[0].parts), (own.variant.entry, own.splits));
                assert!(all.len() <= 3 * ENTRIES, "{}", all.len());
                for (at, one) in all.iter().enumerate() {
                    assert!(one.expected_s <= FAR * own.estimate.seconds, "{one:?}");
                    assert!(!one.variant.adds_atomically() && !all[..at].iter().any(|other| other.is(one)), "{one:?}");
                    assert_eq!(one.parts_at(&p, &H200), Some(one.parts), "{one:?}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn near_the_best_half_and_twice_the_parts_are_tried() -> Result<(), Refusal> {
        let p = Problem::column_major(Dtype::F64, 128, 4, 1_000_000);
        let all = entrants(&p, &H200, false)?;
        let parts: Vec<u32> =
            all.iter().filter(|e| e.variant.entry == all[0].variant.entry).map(|entrant| entrant.parts).collect();
        assert!(parts[0] > 1 && parts.contains(&(parts[0] / 2)), "{parts:?}");
        Ok(())
    }

    #[test]
    fn sorensens_are_tried_where_they_are_asked_for() -> Result<(), Refusal> {
        let p = Problem::column_major(Dtype::F64, 30_000, 1, 1000);
        let papers = |all: bool| Ok(entrants(&p, &H200, all)?.iter().filter(|e| e.variant.is_sorensens()).count());
        assert_eq!((papers(false)?, papers(true)?), (0, 4));
        Ok(())
    }
}
