//! `lanky plan --against RESULTS.csv`: what the model predicts beside what was measured, and how much its choices lose.

use std::fmt::Write;
use std::path::PathBuf;

use model::machine::{Cold, TABLE};
use model::roofline::bound;
use model::variants::splits_f32;
use model::{Machine, Parts, Problem, VARIANTS, choose, choose_given};
use serde::Serialize;

use super::choice::terms;
use crate::bench::result::{self, CACHED, Row};
use crate::error::Fault;
use crate::say;

/// A prediction is good if it is this near to the measured time.
const NEAR: f64 = 0.10;
/// A choice is good if it loses no more than this against the best entry.
const LOSS: f64 = 0.03;
/// Misses that the text lists.
const LISTED: usize = 12;

/// The object of `plan --against --json`.
#[derive(Debug, Serialize)]
pub struct Object {
    /// Rows compared.
    rows: usize,
    /// Rows that no prediction is for: of a device or entry that is not known, timed in a graph, or on
    /// data in a cache whose rate is not known.
    skipped: usize,
    /// Share of the rows whose prediction is within 10% of the measured time.
    within_10_percent: f64,
    /// Predicted by measured, in the middle of the rows.
    median_ratio: f64,
    /// The same by kind of row.
    kinds: Vec<Kind>,
    /// The model's choices against the fastest of the entries that were measured; `None` where no case has several.
    choices: Option<Choices>,
    /// Every row, the farthest off first.
    predictions: Vec<Prediction>,
}

/// The rows of an element type and a layout of A, with operands in memory or in the cache.
#[derive(Debug, Serialize)]
struct Kind {
    name: String,
    rows: usize,
    within_10_percent: f64,
    median_ratio: f64,
}

/// A row and what the model says of its entry.
#[derive(Clone, Debug, Serialize)]
struct Prediction {
    case: String,
    kind: String,
    entry: &'static str,
    splits: u32,
    measured_seconds: f64,
    predicted_seconds: f64,
    /// Predicted by measured.
    ratio: f64,
    /// The resource that alone would take longest, as predicted.
    limit: &'static str,
}

/// What the model picks where several entries were measured.
#[derive(Debug, Serialize)]
struct Choices {
    /// Cases of which the picked entry and another were measured.
    cases: usize,
    /// Cases whose picked entry was not measured, or in another number of parts of k than is picked.
    unmeasured: usize,
    /// What is picked in those.
    not_measured: Vec<Pick>,
    /// Share of the cases in which the pick takes at most 3% longer than the fastest.
    within_3_percent: f64,
    /// Every case, the largest loss first.
    losses: Vec<Loss>,
}

#[derive(Debug, Serialize)]
struct Pick {
    case: String,
    picked: &'static str,
    /// Parts of k.
    splits: u32,
}

#[derive(Debug, Serialize)]
struct Loss {
    case: String,
    picked: &'static str,
    fastest: &'static str,
    /// Time of the pick by that of the fastest, less 1.
    loss: f64,
}

/// Compares the rows of all files with the model: of `machine`, or of each row's own device.
///
/// # Errors
/// [`Fault::Input`] for a file that is not results, and where no row can be compared.
pub fn compare(files: &[PathBuf], machine: Option<&Machine>, splits: bool) -> Result<Object, Fault> {
    let mut rows = Vec::new();
    for file in files {
        rows.extend(result::read(file)?);
    }
    let timed: Vec<Timed<'_>> = rows.iter().filter_map(|row| Timed::of(row, machine, splits)).collect();
    if timed.is_empty() {
        return Err(Fault::Input(format!("none of {} rows can be predicted: see --gpu", rows.len())));
    }
    Ok(Object::of(&timed, rows.len() - timed.len()))
}

/// A row of a machine that is known, by an entry that there is.
struct Timed<'r> {
    row: &'r Row,
    ns: f64,
    problem: Problem,
    /// As the row's operands see it.
    machine: Machine,
    cached: bool,
    entry: &'static str,
}

impl<'r> Timed<'r> {
    /// A row that is predicted: what is chosen beside it may be split, or not.
    fn of(row: &'r Row, machine: Option<&Machine>, splits: bool) -> Option<Self> {
        let own = || TABLE.iter().map(|(_, machine)| machine).find(|machine| machine.name.as_str() == row.device);
        let uncached = row.variant.strip_suffix(CACHED);
        let (cached, name) = (uncached.is_some(), uncached.unwrap_or(&row.variant));
        let entry = VARIANTS.iter().find(|variant| variant.entry == name)?.entry;
        let (ns, problem) = (row.ns_median()?, row.case.job()?.split(splits).of_elements());
        let mut machine = *machine.or_else(own)?;
        if cached {
            machine = match machine.warm(bound(&problem, &machine).bytes()) {
                Ok(warm) => warm,
                // Runs one after another over more than stays there find nothing of it again.
                Err(Cold::TooLarge { .. }) => machine,
                Err(Cold::Unmeasured) => return None,
            };
        }
        Some(Self { row, ns, problem, machine, cached, entry })
    }

    /// What was computed, and where its operands were.
    fn case(&self) -> String {
        self.row.case.name() + self.how()
    }

    fn how(&self) -> &'static str {
        if self.cached { ", cached" } else { "" }
    }

    /// Whether both have the same choice.
    fn is_like(&self, other: &Timed<'_>) -> bool {
        self.row.case == other.row.case && self.cached == other.cached && self.machine == other.machine
    }

    /// Whether it is one of those that are chosen from: what splits f32 only where that is allowed.
    fn may_be_chosen(&self) -> bool {
        self.problem.splits_f32 || !splits_f32(self.entry)
    }

    /// `None` where the entry no longer takes such a product.
    fn predict(&self) -> Option<Prediction> {
        let choice = match self.row.splits {
            Some(splits) => choose_given(&self.problem, &self.machine, self.entry, Parts::Exactly(splits)),
            None => choose(&self.problem, &self.machine, Some(self.entry)),
        };
        let choice = choice.ok()?;
        let (measured, predicted) = (self.ns / 1e9, choice.estimate.seconds);
        let by_rows = self.problem.a.row != 1;
        Some(Prediction {
            case: self.case(),
            kind: format!("{}, A by {}{}", self.problem.dtype, if by_rows { "rows" } else { "columns" }, self.how()),
            entry: self.entry,
            splits: choice.splits,
            measured_seconds: measured,
            predicted_seconds: predicted,
            ratio: predicted / measured,
            limit: terms(&choice, &self.machine).largest().0,
        })
    }
}

impl Object {
    fn of(timed: &[Timed<'_>], skipped: usize) -> Self {
        let mut predictions: Vec<Prediction> = timed.iter().filter_map(Timed::predict).collect();
        predictions.sort_by(|a, b| off(b).total_cmp(&off(a)));
        let mut names: Vec<&String> = predictions.iter().map(|prediction| &prediction.kind).collect();
        names.sort_unstable();
        names.dedup();
        let kind = |name: &String| {
            let of_kind: Vec<&Prediction> = predictions.iter().filter(|prediction| prediction.kind == *name).collect();
            Kind {
                name: name.clone(),
                rows: of_kind.len(),
                within_10_percent: share(&of_kind),
                median_ratio: median(&of_kind),
            }
        };
        let kinds = names.into_iter().map(kind).collect();
        let all: Vec<&Prediction> = predictions.iter().collect();
        Self {
            rows: all.len(),
            skipped: skipped + timed.len() - all.len(),
            within_10_percent: share(&all),
            median_ratio: median(&all),
            kinds,
            choices: Choices::of(timed),
            predictions,
        }
    }

    /// The same in words.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} rows, {} others cannot be predicted\n  within 10%  {}",
            self.rows,
            self.skipped,
            summary(self.within_10_percent, self.median_ratio)
        );
        for Kind { name, rows, within_10_percent, median_ratio } in &self.kinds {
            // Writing to a string does not fail.
            let _ = write!(text, "\n    {name}, {rows} rows: {}", summary(*within_10_percent, *median_ratio));
        }
        let misses: Vec<&Prediction> = self.predictions.iter().filter(|p| off(p) > NEAR).take(LISTED).collect();
        if !misses.is_empty() {
            text += "\n  farthest off, predicted / measured, and what is predicted to limit it:";
        }
        for miss in misses {
            let (predicted, measured) = (say::time(miss.predicted_seconds), say::time(miss.measured_seconds));
            let _ = write!(
                text,
                "\n    {:.2}  {predicted} / {measured}  {}  {}: {}",
                miss.ratio, miss.case, miss.entry, miss.limit
            );
        }
        if let Some(choices) = &self.choices {
            text += &choices.text();
        }
        text
    }
}

impl Choices {
    fn of(timed: &[Timed<'_>]) -> Option<Self> {
        let mut cases: Vec<Vec<&Timed<'_>>> = Vec::new();
        for one in timed.iter().filter(|one| one.may_be_chosen()) {
            match cases.iter_mut().find(|case| case[0].is_like(one)) {
                Some(case) => case.push(one),
                None => cases.push(vec![one]),
            }
        }
        cases.retain(|case| case.iter().any(|one| one.entry != case[0].entry));
        let (mut losses, mut not_measured) = (Vec::new(), Vec::new());
        for case in &cases {
            match Loss::of(case) {
                Ok(loss) => losses.push(loss),
                Err(pick) => not_measured.extend(pick),
            }
        }
        losses.sort_by(|a: &Loss, b| b.loss.total_cmp(&a.loss));
        let good = losses.iter().filter(|loss| loss.loss <= LOSS).count();
        (!cases.is_empty()).then(|| Self {
            cases: losses.len(),
            unmeasured: cases.len() - losses.len(),
            not_measured,
            within_3_percent: say::float(good) / say::float(losses.len()),
            losses,
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "\n  the choice within 3% of the fastest entry measured: {:.1}% of {} cases; of {} others the choice was not measured, or in other parts of k",
            100.0 * self.within_3_percent,
            self.cases,
            self.unmeasured
        );
        for loss in self.losses.iter().filter(|loss| loss.loss > LOSS).take(LISTED) {
            let Loss { case, picked, fastest, loss } = loss;
            let _ = write!(text, "\n    {:+.1}%  {case}  {picked}, fastest {fastest}", 100.0 * loss);
        }
        text
    }
}

impl Loss {
    /// Of rows of one case; the pick where it is none of them, if there is one.
    fn of(case: &[&Timed<'_>]) -> Result<Self, Option<Pick>> {
        let pick = choose(&case[0].problem, &case[0].machine, None).map_err(|_| None)?;
        let (picked, splits) = (pick.variant.entry, pick.splits);
        let is_picked = |one: &&&Timed<'_>| one.entry == picked && one.row.splits.is_none_or(|s| s == splits);
        let ns = |one: &&&Timed<'_>| one.ns;
        let fastest = case.iter().min_by(|a, b| ns(a).total_cmp(&ns(b))).ok_or(None)?;
        let case_name = case[0].case();
        match case.iter().filter(is_picked).min_by(|a, b| ns(a).total_cmp(&ns(b))) {
            Some(pick) => {
                let loss = ns(&pick) / ns(&fastest) - 1.0;
                Ok(Self { case: case_name, picked, fastest: fastest.entry, loss })
            }
            None => Err(Some(Pick { case: case_name, picked, splits })),
        }
    }
}

/// How far a prediction is off, as a share of the measured time.
fn off(prediction: &Prediction) -> f64 {
    (prediction.ratio - 1.0).abs()
}

fn share(predictions: &[&Prediction]) -> f64 {
    let near = predictions.iter().filter(|prediction| off(prediction) <= NEAR).count();
    say::float(near) / say::float(predictions.len())
}

fn median(predictions: &[&Prediction]) -> f64 {
    let mut ratios: Vec<f64> = predictions.iter().map(|prediction| prediction.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

fn summary(within: f64, median: f64) -> String {
    format!("{:.1}% of the predictions, {median:.3} of the measured time in the middle", 100.0 * within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::Case;
    use crate::bench::result::Timing;
    use crate::bench::result::tests::row;

    /// A row of an H200 that took `factor` times what the model says of the entry, in parts that nobody noted.
    fn measured(n: u64, entry: &str, factor: f64) -> Row {
        let row = Row { device: "NVIDIA H200".into(), variant: entry.into(), splits: None, ..row(n, None) };
        let problem = row.case.job().expect("a product").problem;
        let predicted = choose(&problem, &Machine::H200, Some(entry)).expect("an entry").estimate.seconds;
        taking(predicted * 1e9 * factor, row)
    }

    fn taking(ns_median: f64, row: Row) -> Row {
        let ours = row.ours.expect("a time");
        Row { ours: Some(Timing { ns_median, ..ours }), ..row }
    }

    fn of(rows: &[Row]) -> Object {
        let timed: Vec<Timed<'_>> = rows.iter().filter_map(|row| Timed::of(row, None, false)).collect();
        Object::of(&timed, rows.len() - timed.len())
    }

    /// What splits f32 is compared with the choice where it may be chosen.
    #[test]
    fn who_allows_f32_to_be_split_is_told_of_it() {
        let entries = ["stsm2r_staged_16x8_n32_k16_s2_t128", "stsm2r_split_32x64_n64_k32_s3_t256"];
        let rows = entries.map(|entry| {
            let case = Case { dtype: "f32", m: 20_480, k: 20_480, ..row(64, None).case };
            let row = Row { device: "NVIDIA H200".into(), variant: entry.into(), splits: None, case, ..row(64, None) };
            taking(1e6, row)
        });
        let choices = |splits| {
            let timed: Vec<Timed<'_>> = rows.iter().filter_map(|row| Timed::of(row, None, splits)).collect();
            Object::of(&timed, 0).choices
        };
        assert!(choices(false).is_none(), "one of them is none that could be chosen");
        let split = choices(true).expect("two entries");
        assert_eq!((split.cases, split.losses[0].picked), (1, entries[1]));
    }

    /// The results of tall products, of two tall matrices and of Gram matrices are of entries that the model chose; what it chooses otherwise
    /// by now is said in benches/README.md.
    #[test]
    fn what_was_measured_is_chosen_still() {
        let benches = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
        let counted = |name: &str| {
            let rows = result::read(&benches.join("results/h200").join(name)).expect("results");
            let timed: Vec<Timed<'_>> = rows.iter().filter_map(|row| Timed::of(row, None, false)).collect();
            let gone = rows.len() - timed.len();
            let least = if name == "tall.csv" || name == "tsm2l.csv" { 120 } else { 150 };
            assert!(rows.len() >= least && gone == 0, "{name}: {gone} of {} name entries that are gone", rows.len());
            let chosen = |one: &&Timed<'_>| choose(&one.problem, &one.machine, None).map(|choice| choice.variant.entry);
            let others = timed.iter().filter(|one| chosen(one) != Ok(one.entry)).count();
            assert!(others * 5 <= rows.len(), "{name}: {others} of {}", rows.len());
            format!("{others} of {name}'s {}", rows.len())
        };
        let said = std::fs::read_to_string(benches.join("README.md")).expect("README.md");
        let words: Vec<&str> = said.split_whitespace().collect();
        let files = ["tsmm.csv", "tsmttsm.csv", "gram.csv", "tall.csv", "tsm2l.csv"];
        let [tsmm, tsmttsm, gram, tall, tsm2l] = files.map(counted);
        let sentence = format!("chooses another entry in {tsmm} rows, {tsmttsm} and {gram}");
        assert!(words.join(" ").contains(&sentence), "benches/README.md does not say '{sentence}'");
        let columns = format!("chooses another entry in {tall} rows, and in {tsm2l}");
        assert!(words.join(" ").contains(&columns), "benches/README.md does not say '{columns}'");
    }

    #[test]
    fn near_predictions_count() {
        const ENTRY: &str = "dtsm2r_prefetch_1x2_u16_t128";
        let rows = [
            measured(2, ENTRY, 1.05),
            measured(3, ENTRY, 0.95),
            measured(4, ENTRY, 1.2),
            measured(5, ENTRY, 0.85),
            Row { variant: format!("{ENTRY}@graph"), ..measured(6, ENTRY, 1.0) },
            Row { device: "NVIDIA H300".into(), ..measured(7, ENTRY, 1.0) },
        ];
        let object = of(&rows);
        assert_eq!((object.rows, object.skipped, object.within_10_percent), (4, 2, 0.5));
        assert!(object.choices.is_none());
        let farthest = &object.predictions[0];
        assert!(
            (farthest.ratio - 1.0 / 0.85).abs() <= 1e-9 && farthest.case.contains("1000 x 5 x 500"),
            "{farthest:?}"
        );
        let text = object.text();
        assert!(text.contains("50.0% of the predictions") && text.contains("f64, A by columns, 4 rows"), "{text}");
    }

    /// f64, 1000 x n x 500: 4.05 MB where n is 4, and 364 MB where it is 30 000; an H200 keeps 41.9.
    #[test]
    fn cached_rows_are_predicted_as_the_cache_serves_them() {
        const ENTRY: &str = "dtsm2r_prefetch_1x4_u16_t128";
        const OTHER: &str = "dgemm_tiled_4x4_t256";
        let cached = |n, entry: &str| {
            let row = measured(n, entry, 1.0);
            Row { variant: format!("{entry}{CACHED}"), ..row }
        };
        let (hot, cold) = ([cached(4, ENTRY), cached(4, OTHER)], [measured(4, ENTRY, 1.0), measured(4, OTHER, 1.0)]);
        let rows = [&hot[..], &cold, &[cached(30_000, ENTRY)]].concat();
        let object = of(&rows);
        let ratio = |name: &str| {
            let of_case = |p: &&Prediction| p.entry == ENTRY && p.case.ends_with(name);
            object.predictions.iter().find(of_case).expect("a prediction").ratio
        };
        assert_eq!((object.rows, object.skipped), (5, 0));
        // The cache is faster than what the row is said to have taken; more than it keeps comes from the memory.
        assert!((ratio("1000 x 4 x 500") - 1.0).abs() <= 1e-9);
        assert!((0.5..0.999).contains(&ratio("1000 x 4 x 500, cached")), "{:?}", object.predictions);
        assert!((ratio("1000 x 30000 x 500, cached") - 1.0).abs() <= 1e-9, "{:?}", object.predictions);
        let kinds: Vec<(&str, usize)> = object.kinds.iter().map(|kind| (kind.name.as_str(), kind.rows)).collect();
        assert_eq!(kinds, [("f64, A by columns", 2), ("f64, A by columns, cached", 3)]);
        // The entries of a case compete where its operands are: in the cache, and in the memory.
        assert_eq!(object.choices.map(|choices| choices.cases + choices.unmeasured), Some(2));
        // Of a cache that nobody has measured, no time is known.
        let on_v100 = |row: Row| Timed::of(&row, Some(&Machine::V100), false).is_some();
        assert!(on_v100(measured(4, ENTRY, 1.0)) && !on_v100(cached(4, ENTRY)));
    }

    #[test]
    fn a_miss_says_what_was_taken_to_limit_it() {
        let object = of(&[measured(2, "dtsm2r_prefetch_1x2_u16_t128", 2.0)]);
        let limit = object.predictions[0].limit;
        assert!(object.text().contains(&format!("dtsm2r_prefetch_1x2_u16_t128: {limit}")), "{}", object.text());
        let problem = row(2, None).case.job().expect("a product").problem;
        let choice = choose(&problem, &Machine::H200, Some(object.predictions[0].entry)).expect("an entry");
        assert_eq!(limit, terms(&choice, &Machine::H200).largest().0);
    }

    #[test]
    fn a_choice_loses_what_it_takes_longer() {
        let problem = row(2, None).case.job().expect("a product").problem;
        let picked = choose(&problem, &Machine::H200, None).expect("an entry").variant.entry;
        let other = VARIANTS.iter().find(|v| v.entry != picked && v.name == "tsm2r_shared" && v.entry.starts_with('d'));
        let other = other.expect("another entry").entry;
        let row = |entry: &str, ns: f64| taking(ns, measured(2, entry, 1.0));
        let loss = |pick_ns| {
            let choices = of(&[row(picked, pick_ns), row(other, 1000.0)]).choices.expect("several entries");
            (choices.losses[0].loss, choices.within_3_percent)
        };
        assert_eq!((loss(900.0), loss(1029.0).1), ((0.0, 1.0), 1.0));
        assert!((loss(1100.0).0 - 0.1).abs() <= 1e-9 && loss(1100.0).1 == 0.0);
    }

    /// A time counts for the parts of k in which it was taken, and for no others.
    #[test]
    fn times_are_of_their_parts() {
        let problem = row(2, None).case.job().expect("a product").problem;
        let pick = choose(&problem, &Machine::H200, None).expect("an entry");
        let of_parts = |splits| Row { splits: Some(splits), ..measured(2, pick.variant.entry, 1.0) };
        let other = measured(2, "dtsm2r_shared_1x2_u4_t128", 1.0);
        for (splits, counted) in [(pick.splits, (1, 0)), (pick.splits + 1, (0, 1))] {
            let object = of(&[of_parts(splits), other.clone()]);
            let choices = object.choices.as_ref().expect("two entries");
            assert_eq!((choices.cases, choices.unmeasured), counted, "{splits}");
            let named: Vec<(&str, u32)> = choices.not_measured.iter().map(|p| (p.picked, p.splits)).collect();
            assert_eq!(named, vec![(pick.variant.entry, pick.splits); counted.1], "{splits}");
            let given = choose_given(&problem, &Machine::H200, pick.variant.entry, Parts::Exactly(splits));
            let own = |p: &&Prediction| p.entry == pick.variant.entry;
            let found = object.predictions.iter().find(own).expect("a prediction");
            assert_eq!(
                (found.splits, found.predicted_seconds),
                (splits, given.expect("an entry").estimate.seconds),
                "{splits}"
            );
        }
    }
}
