//! `lanky plan --against`: what the model predicts and chooses beside what was measured.

mod common;

use common::{Bench, RESULTS, object, says};
use model::variants::batched::BATCHED;
use model::{BatchedProblem, Dtype, Machine, Problem, Strides, choose, choose_batched};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Those of all entries, beside those of the choices.
const VARIANTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/tsm2r-variants.csv");
/// What is off, and why.
const NOTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/NOTES.md");
/// Tall matrices in f64 whose rows have gaps.
const GAPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/gaps.csv");
/// Tall products, two tall matrices and Gram matrices whose bound is below 50 us, in graphs, by all entries that are near the fastest, and by cuBLAS.
const BEGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/begin.csv");
/// The same of few rows.
const FEW_ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/few-rows.csv");
/// The same of two tall matrices of few rows, by a ring too, in several parts of k.
const TWO_TALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/two-tall.csv");
/// Large f32 matrices of many columns and a vector: the fastest of the other entries, and what is chosen.
const LINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/lines.csv");
/// Times of all entries of batches.
const BATCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/batched-variants.csv");
/// Of the entries that take batches by runs, blocks of all sizes that took at most 1.2 times as long as the fastest of a case.
const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/by-runs.csv");
/// Of f32 that may be split: what is chosen where it may not, and every entry that splits.
const SPLIT: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/split.csv"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/split-variants.csv"),
];
/// Of the matrix units' entries for squares in f64.
const SQUARES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/gemm-variants.csv");
/// Of tall matrices by rows times a small B, cases and forced entries, f64 and c128, and f32 and c64 with those of few columns; cases of which the
/// choice and another entry were measured, at least.
const TALL_ROWS: [(&str, &str, usize); 2] = [
    (
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/tall-rows.csv"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/tall-rows-variants.csv"),
        85,
    ),
    (
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/tall-widths.csv"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/tall-widths-variants.csv"),
        130,
    ),
];
const CEILINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/ceilings.csv");

/// Share of the predictions for TSM2R on an H200 that must be within 10% of the measured times.
const WITHIN_10_PERCENT: f64 = 0.93;
/// Share of the choices there whose variant must be at most 3% slower than the best of all variants.
const VARIANTS_WITHIN_3_PERCENT: f64 = 0.95;
/// Share of the choices that must take at most 3% longer than the fastest entry that was measured, be it of another variant or
/// a sibling.
const WITHIN_3_PERCENT: f64 = 0.97;
/// The same by one time of every entry: two times of one entry differ by more than 2% in a third of the cases.
const WITHIN_3_PERCENT_ONE_TIME: f64 = 0.92;
/// Cases that were measured with several entries and whose choice, in its parts of k, is not among them: the more, the less the share says.
const MOST_UNMEASURED: u64 = 5;

/// Cases whose choice was not measured.
fn unmeasured(choices: &Value) -> u64 {
    let picks = choices["not_measured"].as_array().expect("picks");
    assert_eq!(choices["unmeasured"].as_u64(), Some(picks.len() as u64));
    picks.len() as u64
}

/// Results in a file.
fn rows(file: &str) -> u64 {
    std::fs::read_to_string(file).expect("results").lines().count() as u64 - 1
}

/// Entries that were measured and are gone: their rows, and no others, cannot be predicted.
const GONE: [&str; 0] = [];

fn only_the_gone_are_skipped(compared: &Value, files: &[&str]) {
    let count = |name: &str| compared[name].as_u64().expect("a count");
    let gone = |file: &&str| {
        let text = std::fs::read_to_string(file).expect("results");
        text.lines().filter(|row| row.split(',').any(|field| GONE.contains(&field))).count() as u64
    };
    assert_eq!(count("skipped"), files.iter().map(gone).sum::<u64>(), "entries are gone");
    assert_eq!(count("rows") + count("skipped"), files.iter().map(|file| rows(file)).sum::<u64>());
}

#[test]
fn choices_are_what_was_fastest_on_an_h200() {
    let bench = Bench::new();
    let compared = object(&bench, &["--against", RESULTS, VARIANTS]);
    only_the_gone_are_skipped(&compared, &[RESULTS, VARIANTS]);
    choices_are_nearly_the_fastest(&compared["choices"]);
}

/// Of the entries, and of the variants: what floors there are for choices among both files.
fn choices_are_nearly_the_fastest(choices: &Value) {
    let count = |name: &str| choices[name].as_u64().expect("a count");
    let within = choices["within_3_percent"].as_f64().expect("a number");
    let losses = choices["losses"].as_array().expect("losses");
    let lost: Vec<&Value> = losses.iter().filter(|loss| loss["loss"].as_f64() > Some(0.03)).collect();
    assert!(within >= WITHIN_3_PERCENT, "{within}: {lost:#?}");
    assert!(unmeasured(choices) <= MOST_UNMEASURED, "{} of {}", unmeasured(choices), count("cases"));
    let variant = |entry: &Value| model::VARIANTS.iter().find(|v| entry == v.entry).map(|v| v.name);
    let to_others = lost.iter().filter(|loss| variant(&loss["picked"]) != variant(&loss["fastest"])).count();
    // A case whose choice was not measured is none that is right.
    let by_variant = (count("cases") - to_others as u64) as f64 / (count("cases") + unmeasured(choices)) as f64;
    assert!(by_variant >= VARIANTS_WITHIN_3_PERCENT, "{by_variant}: {lost:#?}");
    let share = 1.0 - lost.len() as f64 / count("cases") as f64;
    assert!((share - within).abs() <= 1e-9 && count("cases") + count("unmeasured") == rows(RESULTS), "{within}");
}

/// Tall matrices times few steps and many columns, by every entry that took at most 1.12 times as long as the fastest.
const OUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/trials/outer.csv");
/// How many times as long as the fastest entry the choices take there, in the geometric mean, and how many more than 5% longer.
const OUTER_LOSE: (f64, usize) = (1.015, 12);

#[test]
fn choices_of_what_is_mostly_written_are_nearly_the_fastest_on_an_h200() {
    let bench = Bench::new();
    let compared = object(&bench, &["--against", OUTER]);
    let choices = &compared["choices"];
    let losses: Vec<f64> =
        choices["losses"].as_array().expect("losses").iter().filter_map(|loss| loss["loss"].as_f64()).collect();
    let mean = (losses.iter().map(|loss| loss.ln_1p()).sum::<f64>() / losses.len() as f64).exp();
    let slower = losses.iter().filter(|loss| **loss > 0.05).count();
    assert!(losses.len() >= 182 && unmeasured(choices) == 0, "{choices:#}");
    assert!(mean <= OUTER_LOSE.0 && slower <= OUTER_LOSE.1, "{mean}, {slower}: {choices:#}");
}

/// Of tall matrices by rows: how many times as long as the fastest entry the choices take, in the geometric mean, and at most.
const TALL_ROWS_LOSE: (f64, f64) = (1.005, 1.13);

#[test]
fn choices_of_tall_rows_are_nearly_the_fastest_on_an_h200() {
    let bench = Bench::new();
    for (cases, forced, least) in TALL_ROWS {
        let compared = object(&bench, &["--against", cases, forced]);
        let choices = &compared["choices"];
        let losses: Vec<f64> =
            choices["losses"].as_array().expect("losses").iter().filter_map(|l| l["loss"].as_f64()).collect();
        let (measured, unmeasured) = (losses.len(), unmeasured(choices));
        assert!(measured >= least && unmeasured <= MOST_UNMEASURED, "{cases}: {measured}, {unmeasured}");
        let mean = (losses.iter().map(|loss| loss.ln_1p()).sum::<f64>() / losses.len() as f64).exp();
        let worst = 1.0 + losses.iter().copied().fold(0.0, f64::max);
        assert!(mean <= TALL_ROWS_LOSE.0 && worst <= TALL_ROWS_LOSE.1, "{cases}: {mean}, {worst}: {choices:#}");
    }
}

/// What those of f64 whose rows have gaps choose, and how many times as long as the fastest entry that may take.
#[test]
fn choices_of_rows_with_gaps_are_nearly_the_fastest_on_an_h200() {
    let text = std::fs::read_to_string(GAPS).expect("results");
    let mut rows = text.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("a head");
    let column = |name: &str| names.iter().position(|other| *other == name).expect("a column");
    let [m, n, k, lda, now, now_us, fastest_us] = ["m", "n", "k", "lda", "now", "now_us", "fastest_us"].map(column);
    let mut compared = 0;
    for row in rows {
        let size = |at: usize| row[at].parse::<u64>().expect("a size");
        let time = |at: usize| row[at].parse::<f64>().expect("a time");
        let by_rows = |ld: u64| Strides { row: ld, col: 1 };
        let (a, b, c) = (by_rows(size(lda)), by_rows(size(n)), by_rows(size(n)));
        let p = Problem { a, b, c, ..Problem::column_major(Dtype::F64, size(m), size(n), size(k)) };
        let choice = choose(&p, &Machine::H200, None).expect("an entry");
        assert_eq!(choice.variant.entry, row[now], "{row:?}");
        assert!(time(now_us) / time(fastest_us) <= 1.05, "{row:?}");
        compared += 1;
    }
    assert_eq!(compared, 83);
}

/// How many times as long as the fastest entry what is chosen takes where launches count, in the geometric mean; where cuBLAS is faster; and what was not timed.
#[test]
fn choices_of_short_launches_are_nearly_the_fastest_on_an_h200() {
    let texts = [BEGIN, FEW_ROWS, TWO_TALL].map(|file| std::fs::read_to_string(file).expect("results"));
    let [begin, few_rows, two_tall] = texts.each_ref().map(|text| {
        let mut cases: BTreeMap<[&str; 7], BTreeMap<(&str, u32), f64>> = BTreeMap::new();
        for row in text.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>()) {
            let [family, dtype, layout, beta, m, n, k, entry, parts, us] = row[..] else { panic!("{row:?}") };
            let times = cases.entry([family, dtype, layout, beta, m, n, k]).or_default();
            let us: f64 = us.parse().expect("a time");
            let of = (entry, parts.parse().unwrap_or(1));
            times.entry(of).and_modify(|least| *least = least.min(us)).or_insert(us);
        }
        cases
    });
    for (cases, family, count, loss, slower, untimed) in [
        (&begin, "tsm2l", 92, 1.034, 2, 0),
        (&begin, "tsmm", 82, 1.025, 3, 0),
        // Rings were not timed of two tall matrices there, and in the next file.
        (&begin, "tsmttsm", 105, 1.03, 5, 11),
        (&begin, "gram", 24, 1.035, 1, 0),
        (&few_rows, "tsmm", 488, 1.023, 94, 5),
        (&few_rows, "tsmttsm", 136, 1.035, 2, 11),
        (&few_rows, "gram", 96, 1.025, 3, 21),
        (&two_tall, "tsmttsm", 101, 1.03, 14, 0),
        (&two_tall, "gram", 62, 1.025, 15, 0),
    ] {
        let of_family: Vec<_> = cases.iter().filter(|(case, _)| case[0] == family).collect();
        let (mut losses, mut behind, mut newer) = (Vec::new(), 0, 0);
        for (case, times) in &of_family {
            let least = |of_cublas: bool| {
                let those = times.iter().filter(|((entry, _), _)| entry.starts_with("cublas") == of_cublas);
                those.map(|(_, us)| *us).fold(f64::INFINITY, f64::min)
            };
            // In as many parts of k, or the next to that.
            let chosen = choose(&short(case), &Machine::H200, None).expect("an entry");
            let its = times.iter().filter(|((entry, _), _)| *entry == chosen.variant.entry);
            let far = |parts: u32| (f64::from(parts) / f64::from(chosen.splits)).ln().abs();
            if let Some((_, us)) = its.min_by(|((_, one), _), ((_, other), _)| far(*one).total_cmp(&far(*other))) {
                losses.push((us / least(false)).ln());
                behind += usize::from(least(true) < us * 0.985);
            } else {
                newer += usize::from(chosen.variant.name == "tsmm_outer");
            }
        }
        // Of few-rows.csv one case, c64 100000 x 64 x 4, is of an entry that is newer than the file.
        assert!(newer <= usize::from(count == 488), "{family}: {newer}");
        let mean = (losses.iter().sum::<f64>() / losses.len() as f64).exp();
        assert!(
            of_family.len() == count && count - losses.len() - newer <= untimed,
            "{family}: {} of {count}",
            losses.len()
        );
        assert!(mean <= loss && behind <= slower, "{family}: {mean}, cuBLAS is faster in {behind}");
    }
}

/// The product of one of the short cases: the first factor of two tall matrices, and a Gram matrix's, is stored transposed.
fn short([family, dtype, layout, beta, m, n, k]: &[&str; 7]) -> Problem {
    let dtype = [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128].into_iter().find(|one| one.name() == *dtype);
    let dtype = dtype.expect("a type");
    let [m, n, k] = [m, n, k].map(|size| size.parse::<u64>().expect("a size"));
    let of = |at: usize, rows: u64, cols: u64| match &layout[at..=at] {
        "c" => Strides::column_major(rows),
        _ => Strides::row_major(cols),
    };
    let a = if matches!(*family, "tsmttsm" | "gram") { of(0, k, m).transposed() } else { of(0, m, k) };
    if *family == "gram" {
        return Problem::gram(dtype, m, k, a);
    }
    Problem { a, b: of(1, k, n), c: of(2, m, n), reads_c: *beta != "0", ..Problem::column_major(dtype, m, n, k) }
}

/// What large matrices of many columns choose whose columns come by bulk copies, and by how much the fastest of the other entries may have
/// been faster.
#[test]
fn columns_by_bulk_copies_are_chosen_where_they_are_faster_on_an_h200() {
    let text = std::fs::read_to_string(LINES).expect("results");
    let mut rows = text.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("a head");
    let column = |name: &str| names.iter().position(|other| *other == name).expect("a column");
    let [run, m, k, entry, splits, time, bound] =
        ["run", "m", "k", "entry", "splits", "ns_median", "bound_ns"].map(column);
    let (mut before, mut gains) = (BTreeMap::new(), Vec::new());
    for row in rows {
        let slowness = row[time].parse::<f64>().expect("a time") / row[bound].parse::<f64>().expect("a bound");
        match row[run] {
            "before" => drop(before.insert((row[m].to_owned(), row[k].to_owned()), slowness)),
            "now" => {
                let size = |at: usize| row[at].parse::<u64>().expect("a size");
                let p = Problem::column_major(Dtype::F32, size(m), 1, size(k));
                let choice = choose(&p, &Machine::H200, None).expect("an entry");
                assert_eq!(
                    (choice.variant.entry, choice.splits.to_string().as_str()),
                    (row[entry], row[splits]),
                    "{row:?}"
                );
                gains.push(before[&(row[m].to_owned(), row[k].to_owned())] / slowness);
            }
            _ => {}
        }
    }
    assert_eq!(gains.len(), 63);
    assert!(gains.iter().all(|gain| *gain >= 0.96), "{gains:?}");
    let mean = (gains.iter().map(|gain| gain.ln()).sum::<f64>() / 63.0).exp();
    assert!(mean >= 1.048, "{mean}");
}

/// Of batches, those that take long enough: how many times as long as the fastest entry the choices take, in the geometric mean.
const BATCHES_LOSE: f64 = 1.006;
/// The same of the one that loses most.
const A_BATCH_LOSES: f64 = 1.12;

#[test]
fn choices_of_batches_are_nearly_the_fastest_on_an_h200() {
    let text = std::fs::read_to_string(BATCHES).expect("results");
    let (names, rows) = text.split_once('\n').expect("a head");
    let column = |name: &str| names.split(',').position(|other| other == name).expect("a column");
    let [dtype, n, beta, batch, variant, time, bound] =
        ["dtype", "n", "beta", "batch", "variant", "ns_median", "bound_ns"].map(column);
    let mut cases: BTreeMap<[&str; 4], BTreeMap<&str, f64>> = BTreeMap::new();
    for row in rows.lines().map(|row| row.split(',').collect::<Vec<_>>()) {
        let number = |at: usize| row[at].parse::<f64>().expect("a number");
        if number(bound) >= 50e3 {
            let took = cases.entry([row[dtype], row[n], row[beta], row[batch]]).or_default();
            let least = took.entry(row[variant]).or_insert(f64::INFINITY);
            *least = least.min(number(time));
        }
    }
    assert!(cases.len() >= 240, "{}", cases.len());
    let mut losses = Vec::new();
    for ([dtype, n, beta, batch], took) in &cases {
        let dtype = Dtype::ALL.into_iter().find(|other| other.to_string() == *dtype).expect("a type");
        let (n, count) = (n.parse().expect("a size"), batch.parse().expect("a count"));
        let p = BatchedProblem { reads_c: *beta != "0", ..BatchedProblem::column_major(dtype, (n, n, n), count) };
        let choice = choose_batched(&p, &Machine::H200, None).expect("an entry");
        let fastest = took.values().copied().fold(f64::INFINITY, f64::min);
        let chosen = took.get(choice.variant.entry).copied().unwrap_or(f64::NAN);
        assert!(chosen / fastest <= A_BATCH_LOSES, "{dtype} {n} {beta}: {} {}", choice.variant.entry, chosen / fastest);
        losses.push((chosen / fastest).ln());
    }
    let mean = (losses.iter().sum::<f64>() / losses.len() as f64).exp();
    assert!(mean <= BATCHES_LOSE, "{mean}");
}

/// How many times as long as the fastest block the one takes that is chosen for the entries that were timed, of 2 GB and of half a gigabyte, in the geometric
/// mean; and what one counts as that took more than 1.2 times as long.
const BLOCKS_LOSE: [f64; 2] = [1.011, 1.026];
const NOT_KEPT: f64 = 1.25;

/// An entry, and problems, threads and stages of its blocks.
type Block<'a> = (&'a str, [u32; 3]);

#[test]
fn blocks_of_batches_by_runs_are_nearly_the_fastest_on_an_h200() {
    let text = std::fs::read_to_string(RUNS).expect("results");
    let mut cases: HashMap<(Dtype, u64, bool, u64), BTreeMap<Block<'_>, f64>> = HashMap::new();
    for row in text.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>()) {
        // The others are of trials.
        let Some(variant) = BATCHED.iter().find(|variant| variant.entry == row[0]) else { continue };
        let number = |at: usize| row[at].parse::<u64>().expect("a number");
        let case = (variant.dtype, number(1), number(2) == 1, number(3));
        let block = [4, 5, 6].map(|at| u32::try_from(number(at)).expect("problems, threads or stages"));
        cases.entry(case).or_default().insert((variant.entry, block), row[10].parse().expect("a time"));
    }
    let mut losses = [Vec::new(), Vec::new()];
    for (&(dtype, n, reads_c, count), took) in &cases {
        let p = BatchedProblem { reads_c, ..BatchedProblem::column_major(dtype, (n, n, n), count) };
        let entries: BTreeSet<&str> = took.keys().map(|(entry, _)| *entry).collect();
        let chosen = entries.into_iter().map(|entry| choose_batched(&p, &Machine::H200, Some(entry)).expect("a block"));
        let choice = chosen.min_by(|one, other| one.estimate.seconds.total_cmp(&other.estimate.seconds));
        let choice = choice.expect("an entry");
        let time = took.get(&(choice.variant.entry, [choice.problems, choice.threads, choice.stages]));
        let fastest = took.values().copied().fold(f64::INFINITY, f64::min);
        let is_half = p.bound(&Machine::H200).memory_s < 200e-6;
        losses[usize::from(is_half)].push(time.map_or(NOT_KEPT, |time| time / fastest).ln());
    }
    for (losses, most) in losses.iter().zip(BLOCKS_LOSE) {
        let mean = (losses.iter().sum::<f64>() / losses.len() as f64).exp();
        assert!(losses.len() >= 150 && mean <= most, "{} cases: {mean}", losses.len());
    }
}

#[test]
fn choices_of_what_may_be_split_are_nearly_the_fastest_on_an_h200() {
    let args = [&["--split-f32", "--against"][..], &SPLIT].concat();
    let compared = object(&Bench::new(), &args);
    only_the_gone_are_skipped(&compared, &SPLIT);
    let choices = &compared["choices"];
    assert_eq!((choices["cases"].as_u64(), choices["unmeasured"].as_u64()), (Some(100), Some(0)));
    let losses: Vec<f64> =
        choices["losses"].as_array().expect("losses").iter().filter_map(|loss| loss["loss"].as_f64()).collect();
    let mean = losses.iter().map(|loss| (1.0 + loss).ln()).sum::<f64>() / losses.len() as f64;
    assert!(losses.len() == 100 && losses.iter().all(|loss| *loss <= 0.05) && mean.exp() <= 1.004, "{losses:?}");
    let picks = choices["losses"].as_array().expect("losses").iter().filter_map(|loss| loss["picked"].as_str());
    assert!(picks.filter(|picked| picked.contains("_split_")).count() >= 95, "{choices}");
}

#[test]
fn choices_of_squares_are_nearly_the_fastest_on_an_h200() {
    let compared = object(&Bench::new(), &["--against", SQUARES]);
    only_the_gone_are_skipped(&compared, &[SQUARES]);
    let choices = &compared["choices"];
    let (cases, unmeasured) = (choices["cases"].as_u64(), choices["unmeasured"].as_u64());
    assert!(cases >= Some(200) && unmeasured == Some(0), "{cases:?} {unmeasured:?}");
    let losses: Vec<f64> =
        choices["losses"].as_array().expect("losses").iter().filter_map(|loss| loss["loss"].as_f64()).collect();
    assert!(choices["within_3_percent"].as_f64() >= Some(WITHIN_3_PERCENT), "{choices}");
    assert!(losses.len() >= 200 && losses.iter().all(|loss| *loss <= 0.06), "{losses:?}");
}

/// Every prediction that is more than 10% off and every choice that loses more than 3% has a row of a table in the notes: the case,
/// and of a choice both entries.
#[test]
fn every_miss_and_every_lost_choice_is_in_the_notes() {
    let (bench, notes) = (Bench::new(), std::fs::read_to_string(NOTES).expect("notes"));
    let has_row = |words: &[&Value]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_str().expect("text"))).collect();
        let is_row = |line: &str| line.trim_start().starts_with(&format!("| {} |", quoted[0]));
        notes.lines().any(|line| is_row(line) && quoted.iter().all(|word| line.contains(word)))
    };
    let compared = object(&bench, &["--against", RESULTS]);
    let misses = compared["predictions"].as_array().expect("predictions").iter();
    let mut misses =
        misses.filter(|row| row["ratio"].as_f64().is_none_or(|ratio| (ratio - 1.0).abs() > 0.1)).peekable();
    assert!(misses.peek().is_some());
    for miss in misses {
        assert!(has_row(&[&miss["case"]]), "{miss}");
    }
    for files in [&[RESULTS, VARIANTS][..], &[VARIANTS]] {
        let compared = object(&bench, &[&["--against"], files].concat());
        for loss in compared["choices"]["losses"].as_array().expect("losses") {
            let is_lost = loss["loss"].as_f64().is_none_or(|loss| loss > 0.03);
            assert!(!is_lost || has_row(&[&loss["case"], &loss["picked"], &loss["fastest"]]), "{loss}");
        }
    }
    assert!(!has_row(&[&"tsm2r f64 20480 x 16 x 20480".into()]));
}

/// Both files together have two times of a choice, of which the lesser counts, and one of every rival: here each has one.
#[test]
fn choices_are_nearly_as_good_where_all_have_one_time() {
    let choices = &object(&Bench::new(), &["--against", VARIANTS])["choices"];
    let within = choices["within_3_percent"].as_f64().expect("a number");
    assert!(within >= WITHIN_3_PERCENT_ONE_TIME, "{within}");
    assert!(choices["cases"].as_u64() > Some(280), "{choices}");
}

#[test]
fn predictions_are_what_an_h200_took() {
    let bench = Bench::new();
    let compared = object(&bench, &["--against", RESULTS]);
    only_the_gone_are_skipped(&compared, &[RESULTS]);
    let within = compared["within_10_percent"].as_f64().expect("a number");
    let words = says(&bench, &["--against", RESULTS]);
    assert!(within >= WITHIN_10_PERCENT, "{words}");
    assert!(words.contains(&format!("within 10%  {:.1}% of the predictions", 100.0 * within)), "{words}");
}

/// Rows of the results are of what the model of their commit chose: what is chosen today has a time in the other file, but where
/// it is chosen in other parts of k.
#[test]
fn predictions_of_todays_choices_are_what_an_h200_took() {
    let compared = object(&Bench::new(), &["--against", VARIANTS]);
    let list = |of: &Value| of.as_array().expect("a list").clone();
    let losses = list(&compared["choices"]["losses"]);
    let is_picked = |row: &Value| losses.iter().any(|l| (&l["case"], &l["picked"]) == (&row["case"], &row["entry"]));
    let picks: Vec<Value> = list(&compared["predictions"]).into_iter().filter(|row| is_picked(row)).collect();
    let all = compared["choices"]["unmeasured"].as_u64().expect("a count");
    let unmeasured = unmeasured(&compared["choices"]);
    assert!(picks.len() as u64 + all == rows(RESULTS) && unmeasured <= MOST_UNMEASURED, "{unmeasured}");
    let near = picks.iter().filter(|row| row["ratio"].as_f64().is_some_and(|ratio| (ratio - 1.0).abs() <= 0.1)).count();
    assert!(near as f64 >= WITHIN_10_PERCENT * picks.len() as f64, "{near} of {}", picks.len());
}

/// The same with the ceilings that were measured on it instead of the table's.
#[test]
fn choices_and_predictions_are_as_good_with_measured_ceilings() {
    let bench = Bench::new();
    let args = ["--gpu", "h200", "--ceilings", CEILINGS, "--against"];
    let compared = object(&bench, &[&args[..], &[RESULTS, VARIANTS]].concat());
    only_the_gone_are_skipped(&compared, &[RESULTS, VARIANTS]);
    choices_are_nearly_the_fastest(&compared["choices"]);
    let within = object(&bench, &[&args[..], &[RESULTS]].concat())["within_10_percent"].as_f64().expect("a number");
    assert!(within >= WITHIN_10_PERCENT, "{within}");
    // They are not those of the table.
    assert!(compared["predictions"] != object(&bench, &["--against", RESULTS, VARIANTS])["predictions"]);
}

#[test]
fn predictions_are_compared_with_results_alone() {
    let bench = Bench::new();
    bench.put("other.csv", "a,b\n1,2\n");
    for (args, said) in [
        (&["plan", "--against", "none.csv"][..], "none.csv: no such file"),
        (&["plan", "--against", "other.csv"], "other.csv: no results of lanky bench"),
        (&["plan", "--against", RESULTS, "--gpu", "h201"], "unknown GPU 'h201'"),
        (&["plan", "--against", RESULTS, "--ceilings", "other.csv"], "name the GPU that they are of with --gpu"),
        (&["plan"], "required"),
        (&["plan", "4", "4"], "3 values required"),
        (&["plan", "4", "4", "4", "--against", RESULTS], "cannot be used with"),
    ] {
        let error = bench.fail(2, args);
        assert!(error.contains(said), "{args:?}: {error}");
    }
}
