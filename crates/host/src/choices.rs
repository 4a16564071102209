//! What is chosen on a GPU, by the model or by measurements, each thought about once.

use crate::ceiling::Ceilings;
use crate::error::{Error, Result};
use crate::gpu::{hold, lock};
use crate::ops::enqueue::{refused, unknown_of_batches};
use crate::tuned::{Database, shipped};
use model::{
    BatchedChoice, BatchedProblem, BatchedRefusals, Choice, Machine, Parts, Problem, Refusal, Refusals, choose_given,
};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock};

/// Choices kept: more shapes than a program has, at some 200 bytes each.
const REMEMBERED: usize = 256;

/// The choices for a machine, by all that a choice depends on: element type, sizes, strides and whether C is read. Where
/// operands begin is no part of it: a kernel looks at that itself.
pub(crate) struct Choices {
    /// As its driver describes it.
    described: Machine,
    /// As it was measured.
    measured: OnceLock<Machine>,
    made: Mutex<Made>,
    batched: Mutex<HashMap<BatchedProblem, BatchedChoice>>,
}

#[derive(Default)]
struct Made {
    choices: HashMap<Problem, Choice>,
    /// Of products whose C is A's first columns.
    in_place: HashMap<Problem, Choice>,
    /// As every GPU computes them.
    across: HashMap<Problem, Choice>,
    follows: Follows,
    /// How often it changed what is chosen: what was begun before is not for now.
    changes: u64,
}

/// What is asked before the model.
#[derive(Clone, Default)]
enum Follows {
    /// The database that the library carries for the machine, if it carries one.
    #[default]
    Shipped,
    /// This one, or none.
    Set(Option<Arc<Database>>),
}

impl Made {
    fn change(&mut self) {
        self.choices.clear();
        self.in_place.clear();
        self.across.clear();
        self.changes += 1;
    }
}

/// Keeps a choice, and no more than [`REMEMBERED`] of its kind.
fn remember<P: Eq + Hash, C>(known: &mut HashMap<P, C>, problem: P, choice: C) {
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(problem, choice);
}

impl Choices {
    pub(crate) fn new(machine: Machine) -> Self {
        Choices { described: machine, measured: OnceLock::new(), made: Mutex::default(), batched: Mutex::default() }
    }

    /// The database that plans follow.
    pub(crate) fn tuned(&self) -> Option<Arc<Database>> {
        let follows = lock(&self.made).follows.clone();
        match follows {
            Follows::Shipped => shipped(&self.described),
            Follows::Set(database) => database,
        }
    }

    /// Follows this database from now on, or none.
    ///
    /// # Errors
    /// What [`Database::check`] says; then all stays as it was.
    pub(crate) fn follow(&self, database: Option<Database>) -> Result<(), String> {
        database.as_ref().map_or(Ok(()), |database| database.check(&self.described))?;
        let mut made = lock(&self.made);
        made.follows = Follows::Set(database.map(Arc::new));
        made.change();
        Ok(())
    }

    /// The machine as it is chosen for.
    pub(crate) fn machine(&self) -> &Machine {
        self.measured.get().unwrap_or(&self.described)
    }

    /// Chooses with measured ceilings from now on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where they cannot be, or the machine has others already.
    pub(crate) fn calibrate(&self, ceilings: &Ceilings) -> Result<()> {
        let measured = self
            .described
            .calibrated(&for_model(ceilings))
            .map_err(|error| Error::Unsupported { what: format!("these ceilings: {error}") })?;
        if *self.measured.get_or_init(|| measured) != measured {
            let what = format!("a second calibration of {}: it was calibrated with other ceilings", measured.name);
            return Err(Error::Unsupported { what });
        }
        lock(&self.made).change();
        lock(&self.batched).clear();
        Ok(())
    }

    /// What measurements or the model choose for a product; remembered, unless a variant is forced.
    pub(crate) fn choose(&self, problem: &Problem, force: Option<&str>) -> Result<Choice> {
        let machine = self.machine();
        let of = |refusal: Refusal| refused(&Refusals { refusal, problem, machine, force });
        if force.is_some() {
            return model::choose(problem, machine, force).map_err(of);
        }
        let changes = match &*hold(&self.made)? {
            Made { choices, .. } if choices.contains_key(problem) => return Ok(choices[problem]),
            Made { changes, .. } => *changes,
        };
        let own = model::choose(problem, machine, None).map_err(of)?;
        let choice = self.tuned().and_then(|tuned| tuned.choose(problem, machine, &own)).unwrap_or(own);
        let mut made = lock(&self.made);
        // What was chosen while the machine was calibrated, or another database set, is not for now.
        if changes == made.changes {
            remember(&mut made.choices, *problem, choice);
        }
        Ok(choice)
    }

    /// An entry or variant with so many parts of k.
    pub(crate) fn choose_given(&self, problem: &Problem, name: &str, parts: u32) -> Result<Choice> {
        let (machine, force) = (self.machine(), Some(name));
        choose_given(problem, machine, name, Parts::Exactly(parts))
            .map_err(|refusal| refused(&Refusals { refusal, problem, machine, force }))
    }

    /// What every GPU is given alike; measurements, also calibrations, are of one and not looked at. Remembered, unless a variant
    /// is forced.
    pub(crate) fn choose_across(&self, problem: &Problem, force: Option<&str>, parts: Option<u32>) -> Result<Choice> {
        let changes = match &*hold(&self.made)? {
            Made { across, .. } if force.is_none() && across.contains_key(problem) => return Ok(across[problem]),
            Made { changes, .. } => *changes,
        };
        let machine = &Machine::COMMON;
        let choice = model::choose_across(problem, self.machine(), force, parts)
            .map_err(|refusal| refused(&Refusals { refusal, problem, machine, force }))?;
        let mut made = lock(&self.made);
        if force.is_none() && changes == made.changes {
            remember(&mut made.across, *problem, choice);
        }
        Ok(choice)
    }

    /// What the model chooses for a product whose C is A's first columns; remembered.
    pub(crate) fn choose_in_place(&self, problem: &Problem) -> Result<Choice> {
        let changes = match &*hold(&self.made)? {
            Made { in_place, .. } if in_place.contains_key(problem) => return Ok(in_place[problem]),
            Made { changes, .. } => *changes,
        };
        let choice = model::choose_in_place(problem, self.machine())
            .map_err(|refusal| Error::Unsupported { what: format!("in place on a GPU: {refusal}") })?;
        let mut made = lock(&self.made);
        if changes == made.changes {
            remember(&mut made.in_place, *problem, choice);
        }
        Ok(choice)
    }

    /// What the model chooses for a batch; remembered, unless a variant is forced.
    pub(crate) fn choose_batched(&self, problem: &BatchedProblem, force: Option<&str>) -> Result<BatchedChoice> {
        let known = hold(&self.batched)?.get(problem).copied();
        if let Some(choice) = known.filter(|_| force.is_none()) {
            return Ok(choice);
        }
        let machine = self.machine();
        let choice = model::choose_batched(problem, machine, force).map_err(|refusal| match (refusal, force) {
            (Refusal::UnknownVariant, name) => unknown_of_batches(name.unwrap_or_default()),
            (refusal, force) => {
                let of = force.map_or("a batch on a GPU".to_owned(), |name| format!("variant {name}"));
                let reasons = BatchedRefusals { refusal, problem, machine, force };
                Error::Unsupported { what: format!("{of}: {reasons}") }
            }
        })?;
        let mut made = lock(&self.batched);
        if force.is_none() && machine == self.machine() {
            remember(&mut made, *problem, choice);
        }
        Ok(choice)
    }

    /// What was chosen before.
    #[cfg(test)]
    fn known(&self, problem: &Problem) -> Option<Choice> {
        lock(&self.made).choices.get(problem).copied()
    }
}

fn for_model(ceilings: &Ceilings) -> model::machine::Ceilings {
    model::machine::Ceilings {
        read: Some(ceilings.read),
        copy: Some(ceilings.copy),
        write: Some(ceilings.write),
        fma_f32: Some(ceilings.fma_f32),
        fma_f64: Some(ceilings.fma_f64),
        mma_f64: ceilings.mma_f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Dtype, Strides};

    const H200: Machine = Machine::H200;
    /// Of a slower one.
    const CEILINGS: Ceilings = Ceilings {
        read: 2.0e12,
        copy: 2.0e12,
        write: 1.5e12,
        update: 2.0e12,
        fma_f32: 30e12,
        fma_f64: 15e12,
        mma_f64: Some(30e12),
    };

    /// Of the model alone: a machine that has a name in a database follows that.
    fn alone() -> Choices {
        let choices = Choices::new(H200);
        choices.follow(None).expect("no database is of no GPU");
        choices
    }

    fn product() -> Problem {
        Problem::column_major(Dtype::F64, 20_480, 4, 20_480)
    }

    #[test]
    fn a_product_is_thought_about_once() -> Result<()> {
        let choices = alone();
        assert_eq!(choices.known(&product()), None);
        let first = choices.choose(&product(), None)?;
        assert_eq!((choices.known(&product()), choices.choose(&product(), None)?), (Some(first), first));
        // What is remembered is what is given: another one in its place is found again.
        let other = model::choose(&product(), &H200, Some("tsm2r_inner")).expect("an entry");
        lock(&choices.made).choices.insert(product(), other);
        assert_eq!(choices.choose(&product(), None)?, other);
        Ok(())
    }

    #[test]
    fn a_forced_variant_is_not_what_the_next_call_gets() -> Result<()> {
        let choices = alone();
        let forced = choices.choose(&product(), Some("tsm2r_inner"))?;
        assert_eq!((forced.variant.name, choices.known(&product())), ("tsm2r_inner", None));
        let chosen = choices.choose(&product(), None)?;
        assert!(chosen.variant.name != "tsm2r_inner");
        assert_eq!(choices.choose(&product(), Some("tsm2r_inner"))?, forced);
        Ok(())
    }

    /// Each is a product of its own: none is given what another one was.
    #[test]
    fn products_that_differ_do_not_collide() -> Result<()> {
        let p = product();
        let all = [
            p,
            Problem { dtype: Dtype::F32, ..p },
            Problem { m: 20_481, ..p },
            Problem { n: 5, ..p },
            Problem { k: 20_479, ..p },
            Problem { a: Strides::row_major(20_480), ..p },
            Problem { a: Strides::column_major(20_481), ..p },
            Problem { b: Strides::row_major(4), ..p },
            Problem { b: Strides::column_major(20_488), ..p },
            Problem { c: Strides::row_major(4), ..p },
            Problem { c: Strides::column_major(20_481), ..p },
            Problem { reads_c: true, ..p },
            Problem { splits_f32: true, ..p },
        ];
        let choices = alone();
        for p in &all {
            assert_eq!(choices.known(p), None, "{p:?}");
            choices.choose(p, None)?;
        }
        for p in &all {
            let alone = model::choose(p, &H200, None).expect("an entry");
            assert_eq!((choices.choose(p, None)?, alone.problem.reads_c), (alone, p.reads_c), "{p:?}");
        }
        Ok(())
    }

    #[test]
    fn no_database_speaks_of_products_in_parts() -> Result<()> {
        let choices = Choices::new(H200); // which follows the library's
        let mut tuned = 0;
        for [m, n, k] in [[10_000, 64, 21_544], [215_443, 64, 1_000], [464_159, 32, 464]] {
            let whole = Problem::column_major(Dtype::F32, m, n, k);
            let p = Problem { splits_f32: true, ..whole };
            let own = model::choose(&p, &H200, None).expect("an entry");
            assert!(own.variant.splits_f32() && choices.choose(&p, None)? == own, "{n} columns: {own}");
            tuned += u32::from(matches!(choices.choose(&whole, None)?.chooser, model::Chooser::Tuned { .. }));
        }
        assert!(tuned > 0, "or this test sees nothing");
        Ok(())
    }

    #[test]
    fn no_more_are_kept_than_a_program_has() -> Result<()> {
        let choices = alone();
        let at =
            |m: usize| Problem { m: 100 + model::shape::span(1, 1, product().a).unwrap_or(1) * m as u64, ..product() };
        for m in 0..=REMEMBERED {
            choices.choose(&at(m), None)?;
            assert!(lock(&choices.made).choices.len() <= REMEMBERED);
        }
        assert!(choices.known(&at(REMEMBERED)).is_some() && choices.known(&at(0)).is_none());
        Ok(())
    }

    #[test]
    fn a_product_in_place_is_thought_about_once() -> Result<()> {
        let choices = alone();
        let at = |m: usize| Problem::column_major(Dtype::F64, 10_000 + m as u64, 16, 16);
        let first = choices.choose_in_place(&at(0))?;
        assert_eq!(Some(first), model::choose_in_place(&at(0), &H200).ok());
        // What is remembered is what is given; it is not what a product with a C of its own gets.
        let other = choices.choose_in_place(&at(1))?;
        lock(&choices.made).in_place.insert(at(0), other);
        assert_eq!((choices.choose_in_place(&at(0))?, choices.known(&at(0))), (other, None));
        for m in 1..=REMEMBERED {
            choices.choose_in_place(&at(m))?;
            assert!(lock(&choices.made).in_place.len() <= REMEMBERED);
        }
        assert_eq!(choices.choose_in_place(&at(0))?, first);
        choices.calibrate(&CEILINGS)?;
        assert!(choices.choose_in_place(&at(0))?.estimate.seconds > first.estimate.seconds);
        Ok(())
    }

    #[test]
    fn a_batch_is_thought_about_once() -> Result<()> {
        let choices = alone();
        let at = |count: usize| BatchedProblem::column_major(Dtype::F64, (8, 8, 8), 1000 + count as u64);
        let known = |p: &BatchedProblem| lock(&choices.batched).get(p).copied();
        let forced = choices.choose_batched(&at(0), Some("batched_blocked"))?;
        assert_eq!((forced.variant.name, known(&at(0))), ("batched_blocked", None));
        let first = choices.choose_batched(&at(0), None)?;
        assert_eq!((known(&at(0)), Some(first)), (Some(first), model::choose_batched(&at(0), &H200, None).ok()));
        lock(&choices.batched).insert(at(0), forced);
        assert_eq!(choices.choose_batched(&at(0), None)?, forced);
        for count in 1..=REMEMBERED {
            choices.choose_batched(&at(count), None)?;
            assert!(lock(&choices.batched).len() <= REMEMBERED);
        }
        assert_eq!(choices.choose_batched(&at(0), None)?, first);
        choices.calibrate(&CEILINGS)?;
        assert!(known(&at(0)).is_none());
        assert!(choices.choose_batched(&at(0), None)?.estimate.seconds > first.estimate.seconds);
        let wide = BatchedProblem { m: 40, n: 40, ..at(0) };
        let refused = choices.choose_batched(&wide, Some("batched_packed")).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|why| why.contains("m is 40, ") && why.contains("; n is 40, ")));
        Ok(())
    }

    #[test]
    fn a_calibrated_machine_is_chosen_for() -> Result<()> {
        let choices = alone();
        let before = choices.choose(&product(), None)?;
        choices.calibrate(&CEILINGS)?;
        assert_eq!((choices.machine().read_bytes_per_s, choices.machine().mma_f64_per_s), (2.0e12, 30e12));
        let after = choices.choose(&product(), None)?;
        assert!(after.estimate.seconds > 2.0 * before.estimate.seconds, "{after}");
        // The same once more is nothing new; other ones are refused, and so is what cannot be.
        choices.calibrate(&CEILINGS)?;
        let second = choices.calibrate(&Ceilings { read: 2.5e12, ..CEILINGS });
        assert!(second.is_err_and(|error| error.to_string().contains("a second calibration of NVIDIA H200")));
        let damaged = Choices::new(H200).calibrate(&Ceilings { read: f64::NAN, ..CEILINGS });
        assert!(damaged.is_err_and(|error| error.to_string().contains("read_bytes_per_s is NaN")));
        Ok(())
    }
}
