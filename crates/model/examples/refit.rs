//! Fits the constants of the estimate to measured results:
//! `cargo run --release -p lanky-model --example refit -- [--hold NAME,..] benches/results/h200/tsm2r*.csv`.
//!
//! Results that do not say in how many parts k was are taken to be of what the estimate chooses by the present constants.
//! Each constant in turn, but those that are held, is moved as long as that lessens the error: the mean over the rows of weight times
//! min(|ln(predicted / measured)|, 0.25), a variant that takes r times as long as the fastest of its case weighing 1 / r²,
//! and the mean over the cases of what the entry with the least prediction loses against the fastest, 0.1 at most.
//! Times of one number of parts say little of `read_again`, `slot_cost` and `crowded`: hold those.
//! Prints the error before and after, and the constants for `src/roofline/constants.rs`.

use lanky_model::launch::tiling;
use lanky_model::results::FIELDS;
use lanky_model::roofline::{Constants, Estimator};
use lanky_model::{Choice, Dtype, Machine, Problem, Strides, choose, machine};
use std::collections::HashMap;

/// A choice is good that loses no more; what another one costs, and one whose parts of k nobody timed.
const GOOD: f64 = 0.03;
const BAD: f64 = 0.5;
const UNTIMED: f64 = 0.1;

/// A constant, and its place.
type Constant = (&'static str, fn(&mut Constants) -> &mut f64);

const CONSTANTS: [Constant; 18] = [
    ("mma_share", |c| &mut c.mma_share),
    ("ring_latencies", |c| &mut c.ring_latencies),
    ("ring_reads", |c| &mut c.ring_reads),
    ("strayed", |c| &mut c.strayed),
    ("read_again", |c| &mut c.read_again),
    ("slot_cost", |c| &mut c.slot_cost),
    ("crowded", |c| &mut c.crowded),
    ("drained", |c| &mut c.drained),
    ("stage_slots", |c| &mut c.stage_slots),
    ("lone_warp", |c| &mut c.lone_warp),
    ("step_slots", |c| &mut c.step_slots),
    ("gemm_step_slots", |c| &mut c.gemm_step_slots),
    ("wide_bytes_per_cycle", |c| &mut c.wide_bytes_per_cycle),
    ("ring_bytes_per_cycle", |c| &mut c.ring_bytes_per_cycle),
    ("narrow_bytes_per_cycle", |c| &mut c.narrow_bytes_per_cycle),
    ("stored_bytes_per_cycle", |c| &mut c.stored_bytes_per_cycle),
    ("by_rows_f32", |c| &mut c.by_rows_f32),
    ("by_rows_f64", |c| &mut c.by_rows_f64),
];

/// A measured time of an entry, and the parts of k that it was taken in.
struct Row {
    machine: Machine,
    choice: Choice,
    splits: u32,
    seconds: f64,
    weight: f64,
}

impl Row {
    fn predicted(&self, constants: &Constants) -> f64 {
        self.estimator(constants).seconds(self.splits)
    }

    fn estimator<'a>(&'a self, constants: &'a Constants) -> Estimator<'a> {
        let Choice { variant, problem, .. } = &self.choice;
        Estimator::with(constants, variant, &tiling(variant, problem.m, problem.n), problem, &self.machine)
    }

    /// The parts of k that would be chosen, and their time: the fewest that take what the best do, within 1%.
    fn chosen(&self, constants: &Constants) -> (u32, f64) {
        const ALIKE: f64 = 1.01;
        let estimator = self.estimator(constants);
        let limit =
            estimator.splits().fold(f64::INFINITY, |least, s| least.min(estimator.seconds_within(s, least))) * ALIKE;
        let chosen = estimator.splits().map(|s| (s, estimator.seconds_within(s, limit))).find(|(_, s)| *s <= limit);
        chosen.unwrap_or((1, f64::INFINITY))
    }

    /// |ln(predicted / measured)|.
    fn error(&self, constants: &Constants) -> f64 {
        (self.predicted(constants) / self.seconds).ln().abs()
    }
}

fn main() -> Result<(), String> {
    let text = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let mut rows = Vec::new();
    let mut free = CONSTANTS.to_vec();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--hold" {
            for held in args.next().ok_or("--hold: the names are missing")?.split(',') {
                let place = free.iter().position(|(name, _)| *name == held);
                free.remove(place.ok_or(format!("--hold: {held} is no constant, or is held already"))?);
            }
        } else {
            rows.extend(read(&text(&arg)?).ok_or(format!("{arg}: no results of lanky bench"))?);
        }
    }
    if rows.is_empty() {
        return Err("no rows to fit: name results of a GPU that the machines' table has".into());
    }
    weigh(&mut rows);
    let mut constants = Constants::FITTED;
    println!("{} rows, before: {}", rows.len(), summary(&rows, &constants));
    fit(&rows, &free, &mut constants);
    println!("after: {}", summary(&rows, &constants));
    for (name, place) in CONSTANTS {
        println!("{name}: {:.4},", place(&mut constants));
    }
    Ok(())
}

/// The rows of a results file that a product of one entry on a known GPU took; `None` for another file.
fn read(text: &str) -> Option<Vec<Row>> {
    let mut lines = text.lines();
    let place = |name: &str| FIELDS.iter().position(|field| *field == name);
    if lines.next()? != FIELDS.join(",") {
        return None;
    }
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields.get(place(name)?).copied();
        let number = |name: &str| field(name)?.parse::<u64>().ok();
        let strides = |at: usize, ld: &str, op: &str| {
            let by_columns = field("layout")?.as_bytes().get(at)? == &b'c';
            let stored = if by_columns { Strides::column_major } else { Strides::row_major }(number(ld)?);
            Some(if field(op) == Some("t") { stored.transposed() } else { stored })
        };
        let dtype = [Dtype::F32, Dtype::F64].into_iter().find(|dtype| field("dtype") == Some(dtype.name()))?;
        let problem = Problem {
            a: strides(0, "lda", "op_a")?,
            b: strides(1, "ldb", "op_b")?,
            c: strides(2, "ldc", "")?,
            reads_c: field("beta")? != "0",
            ..Problem::column_major(dtype, number("m")?, number("n")?, number("k")?)
        };
        let (_, machine) = machine::TABLE.iter().find(|(_, machine)| Some(machine.name.as_str()) == field("device"))?;
        let choice = choose(&problem, machine, field("variant")).ok()?;
        let seconds = field("ns_median")?.parse::<f64>().ok()? / 1e9;
        let splits = match field("splits")? {
            "" => choice.splits,
            splits => splits.parse().ok()?,
        };
        Some(Row { machine: *machine, splits, choice, seconds, weight: 1.0 })
    };
    Some(lines.filter_map(row).collect())
}

/// What is far from the fastest of its case counts little: it is not chosen whatever is thought of it.
fn weigh(rows: &mut [Row]) {
    let mut fastest: HashMap<Problem, f64> = HashMap::new();
    for row in rows.iter() {
        let least = fastest.entry(row.choice.problem).or_insert(f64::INFINITY);
        *least = least.min(row.seconds);
    }
    for row in rows {
        row.weight = (fastest[&row.choice.problem] / row.seconds).powi(2);
    }
}

/// What is minimised.
fn error(rows: &[Row], constants: &Constants) -> f64 {
    const MOST: f64 = 0.25;
    const MOST_LOST: f64 = 0.1;
    const IN_QUESTION: f64 = 0.5;
    let mut picks: HashMap<Problem, (f64, f64)> = HashMap::new();
    let (mut sum, mut weights) = (0.0, 0.0);
    for row in rows {
        sum += row.weight * row.error(constants).min(MOST);
        weights += row.weight;
        if row.weight >= IN_QUESTION {
            let (splits, seconds) = row.chosen(constants);
            let pick = picks.entry(row.choice.problem).or_insert((f64::INFINITY, 0.0));
            if seconds < pick.0 {
                let lost = row.weight.sqrt().recip() - 1.0;
                *pick = (seconds, if splits == row.splits { lost.min(MOST_LOST) } else { UNTIMED });
            }
        }
    }
    let lost: f64 = picks.values().map(|(_, lost)| lost + if *lost > GOOD { BAD } else { 0.0 }).sum();
    sum / weights + lost / picks.len() as f64
}

/// Moves each constant in turn, by less and less.
fn fit(rows: &[Row], free: &[Constant], constants: &mut Constants) {
    let mut least = error(rows, constants);
    for by in [1.2, 1.05, 1.01] {
        for _ in 0..6 {
            let before = least;
            for ((_, place), factor) in free.iter().flat_map(|constant| [(constant, by), (constant, 1.0 / by)]) {
                loop {
                    let mut moved = *constants;
                    *place(&mut moved) *= factor;
                    let found = error(rows, &moved);
                    if found >= least * (1.0 - 1e-6) {
                        break;
                    }
                    (least, *constants) = (found, moved);
                }
            }
            if least >= before * (1.0 - 1e-4) {
                break;
            }
        }
    }
}

fn summary(rows: &[Row], constants: &Constants) -> String {
    let near = |rows: &mut dyn Iterator<Item = &Row>| {
        let errors: Vec<f64> = rows.map(|row| row.error(constants)).collect();
        let near = errors.iter().filter(|error| **error <= 0.1).count();
        format!("{:.1}% of {}", 100.0 * near as f64 / errors.len() as f64, errors.len())
    };
    format!(
        "error {:.4}; within 10%: {} rows, {} that take at most 3% longer than the fastest of their case",
        error(rows, constants),
        near(&mut rows.iter()),
        near(&mut rows.iter().filter(|row| row.weight >= 1.03_f64.powi(-2)))
    )
}
