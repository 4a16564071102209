//! What README.md says of batches on an H200 is what the committed results hold of the entries that the model chooses today.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use model::results::FIELDS;
use model::{BatchedProblem, Dtype, Machine, choose_batched};

/// Rows of the squares of a batch.
type Side = u64;

/// Of some sides, the fraction of the bound, and how many times as long cuBLAS took where it was timed.
type Figures = BTreeMap<Side, (f64, Option<f64>)>;

const SIDES: RangeInclusive<Side> = 1..=32;
/// What a batch moves at least that is not over before the memory is at its rate.
const LEAST_BYTES: f64 = 1.9e9;
/// Of `batched_flat` before it copied matrices as they lie: rows of an entry that is there still, but was another.
const OLDER: &str = "a3709da";

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).expect(name)
}

/// The entry that is chosen for packed squares, C read.
fn chosen(dtype: Dtype, side: Side, count: u64) -> &'static str {
    let p = BatchedProblem { reads_c: true, ..BatchedProblem::column_major(dtype, (side, side, side), count) };
    choose_batched(&p, &Machine::H200, None).expect("an entry").variant.entry
}

/// Of packed squares, β = 1, the rows of today's choice. Of two of one side the larger batch's.
fn figures(csv: &str, dtype: Dtype) -> Figures {
    let mut found = Figures::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let text = |name: &str| fields[FIELDS.iter().position(|known| *known == name).expect("a column")];
        let number = |name: &str| text(name).parse::<f64>().ok();
        let whole = |name: &str| text(name).parse::<u64>().expect("a whole number");
        let side = whole("m");
        let is_square = ["n", "k", "lda", "ldb", "ldc"].iter().all(|name| whole(name) == side);
        let is_plain = [text("layout"), text("op_a"), text("op_b"), text("beta")] == ["ccc", "n", "n", "1"];
        if text("dtype") != dtype.name() || !is_square || !is_plain || !SIDES.contains(&side) {
            continue;
        }
        let is_long = number("bytes").is_some_and(|bytes| bytes >= LEAST_BYTES);
        if is_long && !text("commit").starts_with(OLDER) && text("variant") == chosen(dtype, side, whole("batch")) {
            let fraction = number("fraction").expect("a fraction");
            assert!(found.insert(side, (fraction, number("ratio"))).is_none(), "two rows: {line}");
        }
    }
    found
}

/// `5`, or `5 to 13`.
fn from_to<T: PartialEq + std::fmt::Display>(first: T, last: T) -> String {
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

/// The least and the most of some numbers, as they are written.
fn least_to_most(numbers: &[f64], written: fn(f64) -> String) -> String {
    assert!(!numbers.is_empty() && numbers.iter().all(|number| number.is_finite()), "{numbers:?}");
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    from_to(written(least), written(most))
}

/// `11, 13 to 20 and 22 to 32`.
fn listed(sides: &[Side]) -> String {
    let runs: Vec<String> =
        sides.chunk_by(|one, next| one + 1 == *next).map(|run| from_to(run[0], run[run.len() - 1])).collect();
    match runs.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => "none".to_owned(),
    }
}

/// `f64 68 to 88% at 1 to 13, 61 to 86% at 14 to 32`: of groups of the sides that have a number, all of them.
fn by_groups(
    dtype: Dtype,
    numbers: &BTreeMap<Side, f64>,
    groups: &[RangeInclusive<Side>],
    (written, unit): (fn(f64) -> String, &str),
) -> String {
    let of = |group: &RangeInclusive<Side>| {
        let inside: Vec<f64> = numbers.range(group.clone()).map(|(_, number)| *number).collect();
        assert_eq!(inside.len(), group.clone().count(), "{} {group:?}", dtype.name());
        format!("{}{unit} at {}", least_to_most(&inside, written), from_to(*group.start(), *group.end()))
    };
    let all: usize = groups.iter().map(|group| group.clone().count()).sum();
    assert_eq!(numbers.len(), all, "{} has others than {groups:?}", dtype.name());
    format!("{} {}", dtype.name(), groups.iter().map(of).collect::<Vec<_>>().join(", "))
}

fn shares(dtype: Dtype, figures: &Figures, groups: &[RangeInclusive<Side>]) -> String {
    let shares = figures.iter().map(|(side, (fraction, _))| (*side, 100.0 * fraction)).collect();
    by_groups(dtype, &shares, groups, (|share| format!("{share:.0}"), "%"))
}

/// Of cuBLAS, where it was timed.
fn times(dtype: Dtype, figures: &Figures, groups: &[RangeInclusive<Side>]) -> String {
    let times = figures.iter().filter_map(|(side, (_, ratio))| Some((*side, (*ratio)?))).collect();
    let written = |ratio: f64| if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    by_groups(dtype, &times, groups, (written, ""))
}

/// What is to be said of the figures, a piece of a sentence each.
fn words(csv: &str) -> [String; 8] {
    let [f32s, f64s, c64s, c128s] = [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128].map(|dtype| figures(csv, dtype));
    [
        shares(Dtype::F64, &f64s, &[1..=13, 14..=32]),
        shares(Dtype::C128, &c128s, &[1..=11, 12..=32]),
        shares(Dtype::F32, &f32s, &[1..=16, 17..=22]),
        shares(Dtype::C64, &c64s, &[1..=10, 12..=12, 21..=21]),
        times(Dtype::F64, &f64s, &[5..=24, 25..=32]),
        times(Dtype::C128, &c128s, &[4..=26, 27..=32]),
        times(Dtype::F32, &f32s, &[8..=21, 22..=22]),
        times(Dtype::C64, &c64s, &[5..=10, 12..=12, 21..=21]),
    ]
}

/// What is to be said of which kernel computes what, of which sizes nothing was measured, and how large what was measured is.
fn choices(csv: &str) -> [String; 4] {
    let by = |dtype: Dtype, variant: &str| {
        listed(&SIDES.filter(|&side| chosen(dtype, side, 100_000).contains(variant)).collect::<Vec<_>>())
    };
    let missing = |dtype: Dtype| {
        let found = figures(csv, dtype);
        listed(&SIDES.filter(|side| !found.contains_key(side)).collect::<Vec<_>>())
    };
    [
        format!("squares of f64 of {} and c128 of {} rows", by(Dtype::F64, "_flat_"), by(Dtype::C128, "_flat_")),
        format!("f32 of {} and c64 of {} rows", by(Dtype::F32, "_warps_"), by(Dtype::C64, "_warps_")),
        format!("f32 of {} and c64 of {} rows", missing(Dtype::F32), missing(Dtype::C64)),
        format!("{} GB and more", LEAST_BYTES / 1e9),
    ]
}

/// The same rows with other figures: what they would have been of kernels that take longer.
fn slower(csv: &str) -> String {
    let columns = ["fraction", "ratio"].map(|name| FIELDS.iter().position(|known| *known == name).expect("a column"));
    let row = |line: &str| {
        let mut fields: Vec<String> = line.split(',').map(String::from).collect();
        for column in columns {
            if let Ok(number) = fields[column].parse::<f64>() {
                fields[column] = (0.9 * number).to_string();
            }
        }
        fields.join(",") + "\n"
    };
    csv.lines().map(row).collect()
}

#[test]
fn what_is_said_of_batches_is_in_the_results() {
    let csv = file("benches/results/h200/batched.csv");
    let said = file("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let figures = words(&csv);
    for words in figures.iter().chain(&choices(&csv)) {
        assert!(said.contains(words), "README.md does not say '{words}'");
    }
    for words in words(&slower(&csv)) {
        assert!(!said.contains(&words), "README.md says '{words}' whatever was measured");
    }
}
