//! Who takes part in a case: our plans and the opponents, each checked before anything is timed.

use lanky::Scalar;
use model::shape::SKINNY;
use model::variants::batched::BATCHED;
use model::{Kernel, Operation, Problem, VARIANTS, Variant};

use super::args::Beside;
use super::case::Case;
use super::check::{Oracle, Verdict};
use super::contest::{Role, Run};
use super::data::Data;
use super::measure::Bench;
use super::opponents::{self, Product};
use super::ours::{Launch, Ours};
use super::ours_batched::OursBatched;
use crate::error::Fault;
use crate::real::Real;

/// One who takes turns.
pub struct Contestant<'b> {
    /// Of ours the entry, of opponents the name.
    pub name: String,
    pub role: Role,
    /// Who chose it; nobody an opponent.
    pub chooser: &'static str,
    /// How a kernel of ours is launched.
    pub launch: Option<Launch>,
    pub run: Box<dyn Run + 'b>,
}

/// What is ours in a case.
pub enum Served<'b> {
    /// Those that are right, the plan's own choice first; none where all are wrong or failed.
    By(Vec<Contestant<'b>>),
    /// No kernel of ours computes it, and why.
    Not(String),
}

impl<'b> Bench<'b> {
    /// Our plans for a case, as far as they are right; the others are put on record.
    pub fn ours<T: Real>(&mut self, case: &Case, data: &mut Data<'_, T>, oracle: &Oracle) -> Result<Served<'b>, Fault> {
        if data.job.reals == 1 {
            self.plans::<T, T>(case, data, oracle)
        } else {
            self.plans::<T, T::Complex>(case, data, oracle)
        }
    }

    /// The same, of elements of type E, whose parts are of T.
    fn plans<T: Real, E: Scalar<Real = T>>(
        &mut self,
        case: &Case,
        data: &mut Data<'_, T>,
        oracle: &Oracle,
    ) -> Result<Served<'b>, Fault> {
        if data.job.batch != 1 {
            return self.batches::<T, E>(case, data, oracle);
        }
        let problem = data.job.of_elements();
        let mut right = Vec::new();
        for (variant, role) in self.with_beside(entries(&problem)) {
            let by = variant.unwrap_or("the plan's choice");
            let mut ours = match Ours::<E>::new(self.stream, &problem, case.beta, variant, None) {
                Ok(ours) => ours,
                Err(error) if error.is_device() => {
                    self.outcome.failed(&format!("{} by {by}", case.name()), &error.into());
                    continue;
                }
                Err(refused) => match (variant, role) {
                    (None, _) => return Ok(Served::Not(refused.to_string())),
                    // One of all entries that cannot serve the case is no fault.
                    (_, Role::Entry) => continue,
                    (Some(name), _) => {
                        self.outcome.not_run(format!("{name}: {refused}"));
                        continue;
                    }
                },
            };
            let (name, chooser, launch) = (ours.variant().to_string(), ours.chooser(), ours.launch());
            match oracle.check(self.stream, data, &mut ours)? {
                Verdict::Right => right.push(Contestant { name, role, chooser, launch, run: Box::new(ours) }),
                Verdict::Wrong(why) => self.outcome.wrong(format!("{} by {name}: {why}", case.name())),
                Verdict::Failed(error) => {
                    self.outcome.failed(&format!("{} by {name}", case.name()), &error.into());
                }
            }
        }
        Ok(Served::By(right))
    }

    /// The same of batches.
    fn batches<T: Real, E: Scalar<Real = T>>(
        &mut self,
        case: &Case,
        data: &mut Data<'_, T>,
        oracle: &Oracle,
    ) -> Result<Served<'b>, Fault> {
        let dtype = data.job.of_elements().dtype;
        let batched = BATCHED.iter().filter(|v| v.dtype == dtype).map(|v| (v.name, v.entry));
        let mut right = Vec::new();
        for (variant, role) in self.with_beside(batched) {
            let mut ours = match OursBatched::<E>::new(self.stream, &data.job, case.beta, variant) {
                Ok(ours) => ours,
                Err(refused) => match (variant, role) {
                    (None, _) => return Ok(Served::Not(refused.to_string())),
                    (_, Role::Entry) => continue,
                    (Some(name), _) => {
                        self.outcome.not_run(format!("{name}: {refused}"));
                        continue;
                    }
                },
            };
            let (name, launch) = (ours.entry().to_string(), ours.launch());
            let chooser = if variant.is_some() { "caller" } else { "model" };
            match oracle.check(self.stream, data, &mut ours)? {
                Verdict::Right => right.push(Contestant { name, role, chooser, launch, run: Box::new(ours) }),
                Verdict::Wrong(why) => self.outcome.wrong(format!("{} by {name}: {why}", case.name())),
                Verdict::Failed(error) => {
                    self.outcome.failed(&format!("{} by {name}", case.name()), &error.into());
                }
            }
        }
        Ok(Served::By(right))
    }

    /// The plan's choice, and what is forced besides, of entries by the names of their variants and their own.
    fn with_beside(&self, entries: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<(Option<&'b str>, Role)> {
        let mut all = vec![(None, Role::Ours)];
        match self.args.beside() {
            Beside::One(name) => all.push((Some(name), Role::Ours)),
            every if self.stream.device().is_cuda() => {
                let asked = entries.filter(|(variant, entry)| every.has(variant, entry));
                all.extend(asked.map(|(_, entry)| (Some(entry), Role::Entry)));
            }
            _ => {}
        }
        all
    }

    /// The opponents that compute the case, and are right; the others are put on record.
    pub fn others<T: Real>(
        &mut self,
        case: &Case,
        data: &mut Data<'_, T>,
        oracle: &Oracle,
    ) -> Result<Vec<Contestant<'b>>, Fault> {
        let product = Product { job: data.job, alpha: opponents::alpha(), beta: case.beta, stream: self.stream };
        let mut right = Vec::new();
        for opponent in self.opponents {
            let Some(mut run) = opponent.prepare(product) else { continue };
            let name = opponent.name();
            let why = match oracle.check(self.stream, data, run.as_mut())? {
                Verdict::Right => {
                    let (name, role) = (name.to_string(), Role::Other);
                    right.push(Contestant { name, role, chooser: "", launch: None, run });
                    continue;
                }
                Verdict::Wrong(why) => why,
                Verdict::Failed(error) => error.to_string(),
            };
            self.outcome.opponents_out.push(format!("{name}: {}: {why}", case.name()));
        }
        Ok(right)
    }
}

/// All entries of an element type that are made for the shape: where both sides of C are skinny those of two tall matrices,
/// else those of any shape, for squares with the ladder's and for others with those of a tall A, and for vectors, as many as they take, those of GEMV. What is left out would run for minutes: a thread a row has few rows here, and long ones.
fn entries(problem: &Problem) -> impl Iterator<Item = (&'static str, &'static str)> {
    let tall = problem.gram || (problem.m.max(problem.n) <= SKINNY && problem.k > SKINNY);
    let (dtype, vectors) = (problem.dtype, problem.m.min(problem.n));
    let square = problem.operation() == Operation::Gemm;
    let suits = move |v: &&Variant| match v.kernel {
        Kernel::Gemv => vectors == u64::from(v.t2) && !problem.gram,
        Kernel::Gemm | Kernel::GemmRing => !tall,
        Kernel::Ring if tall => v.computes_gram(false),
        Kernel::Ladder => square,
        _ if square => false,
        _ => v.is_reduced() == tall,
    };
    VARIANTS.iter().filter(move |v| v.dtype == dtype && suits(v)).map(|variant| (variant.name, variant.entry))
}

/// Refuses names of which no entry's begins so.
///
/// # Errors
/// [`Fault::Input`].
pub fn check(beside: Beside<'_>) -> Result<(), Fault> {
    let products = VARIANTS.iter().map(|v| (v.name, v.entry));
    let mut names = products.chain(BATCHED.iter().map(|v| (v.name, v.entry)));
    match beside {
        Beside::Every(start) if !names.any(|(variant, entry)| beside.has(variant, entry)) => {
            Err(Fault::Input(format!("no entry and no variant begins with '{start}'")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Dtype;
    use std::collections::BTreeSet;

    #[test]
    fn all_entries_have_names_of_their_own() {
        for dtype in [Dtype::F32, Dtype::F64] {
            let of =
                |(m, n, k)| entries(&Problem::column_major(dtype, m, n, k)).map(|(_, entry)| entry).collect::<Vec<_>>();
            let (large, tall) = (of((1000, 4, 1000)), of((64, 64, 65)));
            let (vector, two) = (of((1000, 1, 1000)), of((1000, 2, 1000)));
            let square = of((100, 100, 100));
            let names: BTreeSet<&str> =
                large.iter().chain(&tall).chain(&vector).chain(&two).chain(&square).copied().collect();
            // A vector's are those of a skinny matrix, and its own.
            let own_of = |vectors| {
                let is_own = |v: &&model::Variant| v.dtype == dtype && v.kernel == Kernel::Gemv && v.t2 == vectors;
                VARIANTS.iter().filter(is_own).count()
            };
            let own = own_of(1) + own_of(2);
            // Those of any shape are a square's too, and rings those of two tall matrices.
            let of_any = |v: &&Variant| v.dtype == dtype && matches!(v.kernel, Kernel::Gemm | Kernel::GemmRing);
            let plain = VARIANTS.iter().filter(of_any).count();
            let rings = tall.iter().filter(|entry| large.contains(entry)).count();
            assert_eq!(rings > 0, dtype == Dtype::F64);
            let distinct = large.len() + tall.len() - rings + own + square.len() - plain;
            assert_eq!((names.len(), vector.len()), (distinct, large.len() + own_of(1)));
            assert!(two.len() == large.len() + own_of(2) && own_of(2) > 0);
            // More than one of a variant: its block shapes.
            let of = |name: &str| VARIANTS.iter().filter(|v| v.dtype == dtype && v.name == name).count();
            assert!(of("tsm2r_prefetch") > 1 && large.len() > of("tsm2r_prefetch"));
            assert!(VARIANTS.iter().filter(|v| v.dtype == dtype).all(|v| names.contains(v.entry)));
        }
    }
}
