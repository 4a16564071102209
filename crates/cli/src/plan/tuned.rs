//! A choice by measurements, beside the model's own.

use lanky::tuned::Cell;
use model::{Choice, Problem};
use serde::Serialize;

use super::choice::Plan;
use crate::{say, tuned};

/// What was measured, and what the model alone would choose.
pub struct Tuned {
    /// The database, as it was named.
    database: String,
    driver: String,
    commit: String,
    date: String,
    cell: Cell,
    own: Choice,
}

/// The plan as the measurements that the program follows have it, or as it is.
pub fn followed(plan: Plan, problem: &Problem) -> Plan {
    let Some((name, database)) = tuned::of(&plan.machine) else { return plan };
    let Some(cell) = database.nearest(problem).cloned() else { return plan };
    let Some(choice) = database.choose(problem, &plan.machine, &plan.choice) else { return plan };
    let (origin, own) = (database.origin().clone(), plan.choice);
    let tuned = Tuned { database: name, driver: origin.driver, commit: origin.commit, date: origin.date, cell, own };
    Plan { choice, tuned: Some(tuned), ..plan }
}

impl Tuned {
    /// What was measured, and by what.
    pub fn by(&self) -> String {
        let Self { database, driver, commit, date, cell, .. } = self;
        let [m, n, k] = cell.lengths;
        let of: Vec<String> = [(commit, "commit "), (driver, "driver "), (date, "")]
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .map(|(text, name)| format!("{name}{text}"))
            .collect();
        format!(
            "measured {} in {} at m = {m}, n = {n}, k = {k} by database {database} ({})",
            say::time(cell.best.ns / 1e9),
            parts(cell.best.parts),
            of.join(", ")
        )
    }

    /// What the model alone would choose here, and what was measured of its choice there.
    pub fn alone(&self) -> String {
        let Self { cell, own, .. } = self;
        format!(
            "{} in {} by the model alone, expected {}; its choice there, {}, was measured to take {}",
            own.variant.entry,
            parts(own.splits),
            say::time(own.estimate.seconds),
            cell.model.variant.entry,
            say::time(cell.model.ns / 1e9)
        )
    }

    pub fn object(&self) -> TunedObject {
        let Self { database, driver, commit, date, cell, own } = self;
        TunedObject {
            database: database.clone(),
            driver: driver.clone(),
            commit: commit.clone(),
            date: date.clone(),
            at: cell.lengths,
            seconds: cell.best.ns / 1e9,
            noise: cell.noise,
            model_seconds: cell.model.ns / 1e9,
            model_entry: own.variant.entry,
            model_splits: own.splits,
            model_predicted_seconds: own.estimate.seconds,
        }
    }
}

fn parts(parts: u32) -> String {
    if parts == 1 { "one part of k".into() } else { format!("{parts} parts of k") }
}

/// The same as an object.
#[derive(Serialize)]
pub struct TunedObject {
    database: String,
    driver: String,
    commit: String,
    date: String,
    /// m, n and k of the shape that was measured.
    at: [u64; 3],
    /// What the choice took there.
    seconds: f64,
    noise: f64,
    /// What the model's choice there took.
    model_seconds: f64,
    /// What the model alone would choose here.
    model_entry: &'static str,
    model_splits: u32,
    model_predicted_seconds: f64,
}
