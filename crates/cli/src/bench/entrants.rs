//! Who takes part in a case: our plans and the opponents, each checked before anything is timed.

use lanky::Scalar;
use model::{Dtype, VARIANTS};

use super::case::Case;
use super::check::Oracle;
use super::contest::Run;
use super::data::Data;
use super::measure::Bench;
use super::opponents::{self, Product};
use super::ours::Ours;
use crate::error::Fault;
use crate::say;

/// One who takes turns.
pub struct Contestant<'b> {
    /// Of ours the entry, of opponents the name.
    pub name: String,
    /// Who chose it; `None` for opponents.
    pub chooser: Option<&'static str>,
    pub run: Box<dyn Run + 'b>,
}

impl<'b> Bench<'b> {
    /// Our plans for a case, the model's choice first, as far as they are right; the others are put on record.
    pub fn ours<T: Scalar>(
        &mut self,
        case: &Case,
        data: &mut Data<'_, T>,
        oracle: &Oracle,
    ) -> Result<Vec<Contestant<'b>>, Fault> {
        let mut right = Vec::new();
        for variant in self.variants(data.job.problem.dtype) {
            let mut ours = match Ours::<T>::new(self.stream, &data.job.problem, case.beta, variant)? {
                Ok(ours) => ours,
                // A variant that cannot serve a case is no fault, unless it was the only one that was asked for.
                Err(refused) if variant.is_some() => {
                    self.outcome.not_run(format!("{}: {refused}", variant.unwrap_or_default()));
                    continue;
                }
                Err(refused) => return Err(refused.into()),
            };
            let name = ours.variant().to_string();
            let chooser = Some(ours.chooser());
            match oracle.check(self.stream, data, &mut ours)? {
                Ok(()) => right.push(Contestant { name, chooser, run: Box::new(ours) }),
                Err(why) => {
                    let words = format!("{} by {name}: {why}", case.name());
                    say::note(&format!("WRONG: {words}"));
                    self.outcome.wrong.push(words);
                }
            }
        }
        Ok(right)
    }

    /// The model's choice, and what is forced besides.
    fn variants(&self, dtype: Dtype) -> Vec<Option<&'b str>> {
        let mut all = vec![None];
        match self.args.variant.as_deref() {
            Some("all") if self.stream.device().is_cuda() => {
                let mut names: Vec<&str> = VARIANTS.iter().filter(|v| v.dtype == dtype).map(|v| v.name).collect();
                names.sort_unstable();
                names.dedup();
                all.extend(names.into_iter().map(Some));
            }
            Some("all") | None => {}
            forced => all.push(forced),
        }
        all
    }

    /// The opponents that compute the case, and are right; the others are put on record.
    pub fn others<T: Scalar>(
        &mut self,
        case: &Case,
        data: &mut Data<'_, T>,
        oracle: &Oracle,
    ) -> Result<Vec<Contestant<'b>>, Fault> {
        let product = Product { job: data.job, alpha: opponents::alpha(), beta: case.beta, stream: self.stream };
        let mut right = Vec::new();
        for opponent in self.opponents {
            let Some(mut run) = opponent.prepare(product) else { continue };
            match oracle.check(self.stream, data, run.as_mut())? {
                Ok(()) => right.push(Contestant { name: opponent.name().into(), chooser: None, run }),
                Err(why) => self.outcome.opponents_out.push(format!("{}: {}: {why}", opponent.name(), case.name())),
            }
        }
        Ok(right)
    }
}
