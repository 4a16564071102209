//! What came of a run: rows, and everything that has none.

use lanky::Ceilings;
use serde::Serialize;

use super::origin::Origin;
use super::result::Row;
use super::table;

/// What came of a run.
#[derive(Serialize)]
pub struct Outcome {
    pub origin: Origin,
    pub ceilings: Rates,
    pub seed: u64,
    pub rows: Vec<Measured>,
    /// Products of ours that are wrong, in words.
    pub wrong: Vec<String>,
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
    pub opponents: Vec<Time>,
}

/// An opponent's median.
#[derive(Clone, Serialize)]
pub struct Time {
    pub name: String,
    pub ns: f64,
}

impl Outcome {
    /// With nothing in it yet.
    pub fn new(origin: Origin, ceilings: &Ceilings, seed: u64) -> Self {
        Self {
            origin,
            ceilings: Rates::new(ceilings),
            seed,
            rows: Vec::new(),
            wrong: Vec::new(),
            errors_of_measurement: Vec::new(),
            opponents_out: Vec::new(),
            without_ours: Vec::new(),
            not_run: Vec::new(),
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().map(|measured| &measured.row)
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

fn add(reasons: &mut Vec<(String, usize)>, reason: String) {
    match reasons.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => reasons.push((reason, 1)),
    }
}
