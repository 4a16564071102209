//! What came of a run: rows, and everything that has none.

use lanky::{CeilingTimes, Ceilings};
use serde::Serialize;

use super::ceiling::Ceiling;
use super::origin::Origin;
use super::ours::Launch;
use super::result::Row;
use super::table;
use crate::error::Fault;
use crate::say;

/// What came of a run.
#[derive(Serialize)]
pub struct Outcome {
    pub origin: Origin,
    pub ceilings: Rates,
    /// The same as rows under the columns' names.
    #[serde(serialize_with = "table::as_objects")]
    pub ceiling_rows: Vec<Ceiling>,
    pub seed: u64,
    pub rows: Vec<Measured>,
    /// Products of ours that are wrong, in words.
    pub wrong: Vec<String>,
    /// Plans of ours that failed, and cases that could not be measured, in words.
    pub failed: Vec<String>,
    /// How many of them had too little memory.
    #[serde(skip)]
    pub without_memory: usize,
    /// Figures above the ceiling, in words.
    pub errors_of_measurement: Vec<String>,
    /// Opponents that failed or were wrong, in words.
    pub opponents_out: Vec<String>,
    /// Why cases were run by the others alone, and how many for each reason.
    pub without_ours: Vec<(String, usize)>,
    /// Why cases were not run, and how many for each reason.
    pub not_run: Vec<(String, usize)>,
}

/// The ceilings, for those who read JSON.
#[derive(Serialize)]
pub struct Rates {
    pub read_gbs: f64,
    pub copy_gbs: f64,
    pub write_gbs: f64,
    pub update_gbs: f64,
    pub fma_f32_gflops: f64,
    pub fma_f64_gflops: f64,
    pub mma_f64_gflops: Option<f64>,
}

impl Rates {
    pub fn new(c: &Ceilings) -> Self {
        let gflops = |fmas: f64| 2.0 * fmas / 1e9;
        Self {
            read_gbs: c.read / 1e9,
            copy_gbs: c.copy / 1e9,
            write_gbs: c.write / 1e9,
            update_gbs: c.update / 1e9,
            fma_f32_gflops: gflops(c.fma_f32),
            fma_f64_gflops: gflops(c.fma_f64),
            mma_f64_gflops: c.mma_f64.map(gflops),
        }
    }
}

/// A row with the times of all opponents.
#[derive(Serialize)]
pub struct Measured {
    #[serde(flatten, serialize_with = "table::as_object")]
    pub row: Row,
    /// Whether our figure, or where there is none the opponent's, is above the ceiling.
    pub error_of_measurement: bool,
    /// How our kernel is launched; `None` on the CPU, and where nothing is ours.
    pub launch: Option<Launch>,
    pub opponents: Vec<Time>,
}

impl Measured {
    /// cuBLAS's time, by whichever of its calls was the fastest, and that by ours. `None` where it did not run.
    pub fn cublas(&self) -> Option<(f64, Option<f64>)> {
        let of_it = self.opponents.iter().filter(|time| time.name.starts_with("cublas"));
        let ns = of_it.map(|time| time.ns).min_by(f64::total_cmp)?;
        Some((ns, self.row.ns_median().map(|ours| ns / ours)))
    }
}

/// An opponent's median.
#[derive(Clone, Serialize)]
pub struct Time {
    pub name: String,
    pub ns: f64,
}

impl Outcome {
    /// With nothing in it yet.
    pub fn new(origin: Origin, (ceilings, times): &(Ceilings, Vec<CeilingTimes>), seed: u64) -> Self {
        let ceiling_rows = times.iter().filter_map(|times| Ceiling::new(times, &origin, seed)).collect();
        Self {
            origin,
            ceilings: Rates::new(ceilings),
            ceiling_rows,
            seed,
            rows: Vec::new(),
            wrong: Vec::new(),
            failed: Vec::new(),
            without_memory: 0,
            errors_of_measurement: Vec::new(),
            opponents_out: Vec::new(),
            without_ours: Vec::new(),
            not_run: Vec::new(),
        }
    }

    /// Puts a wrong product on record.
    pub fn wrong(&mut self, words: String) {
        say::note(&format!("WRONG: {words}"));
        self.wrong.push(words);
    }

    /// Puts on record what failed, and why.
    pub fn failed(&mut self, what: &str, fault: &Fault) {
        let words = format!("{what}: {fault}");
        say::note(&format!("FAILED: {words}"));
        self.failed.push(words);
        self.without_memory += usize::from(matches!(fault, Fault::Memory(_)));
    }

    /// Puts a figure above the ceiling on record.
    pub fn above(&mut self, words: String) {
        say::note(&format!("ERROR OF MEASUREMENT: {words}"));
        self.errors_of_measurement.push(words);
    }

    /// Whether all went as it should.
    ///
    /// # Errors
    /// [`Fault::Check`], in a line, if a product was wrong, a plan failed, or a figure is above the ceiling; [`Fault::Memory`] if
    /// memory that was not there is all that went wrong.
    pub fn verdict(&self) -> Result<(), Fault> {
        let kinds = [
            ("product is wrong", "products are wrong", &self.wrong),
            ("plan or case failed", "plans or cases failed", &self.failed),
            ("figure is above the ceiling", "figures are above the ceiling", &self.errors_of_measurement),
        ];
        let faults: Vec<String> = kinds.into_iter().filter_map(|(one, many, all)| counted(one, many, all)).collect();
        match faults.as_slice() {
            [] => Ok(()),
            [lacking] if self.without_memory > 0 && self.without_memory == self.failed.len() => {
                Err(Fault::Memory(lacking.clone()))
            }
            faults => Err(Fault::Check(faults.join("; "))),
        }
    }

    /// Counts a case that is not run.
    pub fn not_run(&mut self, reason: String) {
        add(&mut self.not_run, reason);
    }

    /// Counts a case that only others compute.
    pub fn without_ours(&mut self, reason: String) {
        add(&mut self.without_ours, reason);
    }

    /// What there is to say at the end.
    pub fn summary(&self) -> String {
        let count = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let mut lines = vec![count(self.rows.len(), "row", "rows")];
        let parts = [
            ("wrong", &self.wrong),
            ("failed", &self.failed),
            ("error of measurement, above the ceiling", &self.errors_of_measurement),
            ("opponent left out", &self.opponents_out),
        ];
        for (what, entries) in parts {
            lines.extend(entries.iter().map(|words| format!("{what}: {words}")));
        }
        let without =
            |(why, cases): &(String, usize)| format!("{} without lanky: {why}", count(*cases, "case", "cases"));
        lines.extend(self.without_ours.iter().map(without));
        lines.extend(
            self.not_run.iter().map(|(why, cases)| format!("{} not run: {why}", count(*cases, "case", "cases"))),
        );
        lines.join("\n")
    }
}

/// `2 products are wrong, the first: ..`
fn counted(one: &str, many: &str, all: &[String]) -> Option<String> {
    match all {
        [] => None,
        [only] => Some(format!("1 {one}: {only}")),
        [first, ..] => Some(format!("{} {many}, the first: {first}", all.len())),
    }
}

fn add(reasons: &mut Vec<(String, usize)>, reason: String) {
    match reasons.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => reasons.push((reason, 1)),
    }
}
