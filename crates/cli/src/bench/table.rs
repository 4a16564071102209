//! Results on a terminal, a line as soon as it is there; and as the fields of JSON objects.

use std::collections::BTreeMap;

use lanky::Device;
use model::results::FIELDS;
use serde::Serializer;
use serde_json::Value;

use super::ceiling::Ceiling;
use super::outcome::{Measured, Rates};
use super::result::Row;
use crate::{device, say};

/// The device, its ceilings, and the columns' names.
pub fn header(on: &Device, c: &Rates, opponents: &[&str]) -> String {
    let against = if opponents.is_empty() { "nobody".to_string() } else { opponents.join(", ") };
    let rate = say::rate;
    let matrix_units =
        c.mma_f64_gflops.map_or(String::new(), |gflops| format!("   f64 mma {}", say::flop_rate(gflops)));
    format!(
        "{}\nceilings  read {}   copy {}   write {}   update {}\n          f32 {}   f64 {}{matrix_units}\n\
         against {against}\n\n{}",
        device::line(on),
        rate(c.read_gbs),
        rate(c.copy_gbs),
        rate(c.write_gbs),
        rate(c.update_gbs),
        say::flop_rate(c.fma_f32_gflops),
        say::flop_rate(c.fma_f64_gflops),
        columns([
            "case (m x n x k)",
            "ours",
            "of bound",
            "GB/s",
            "cublas",
            "ratio",
            "best opponent",
            "ratio",
            "by",
            "variant"
        ]),
    )
}

/// One line.
pub fn row(measured: &Measured) -> String {
    let row = &measured.row;
    let time = |ns: f64| say::time(ns / 1e9);
    let opponent = row.best.as_ref().map_or("-".into(), |best| format!("{} {}", best.opponent, time(best.opponent_ns)));
    let or_none = |words: Option<String>| words.unwrap_or_else(|| "-".into());
    let ratio = |ratio: Option<f64>| or_none(ratio.map(|ratio| format!("{ratio:.2}")));
    let cublas = measured.cublas();
    let gbs = row.gbs().map(|gbs| if gbs >= 100.0 { format!("{gbs:.0}") } else { format!("{gbs:.2}") });
    let line = columns([
        &row.case.name(),
        &or_none(row.ns_median().map(time)),
        &or_none(row.fraction().map(|share| format!("{:.1}%", 100.0 * share))),
        &or_none(gbs),
        &or_none(cublas.map(|(ns, _)| time(ns))),
        &ratio(cublas.and_then(|(_, ratio)| ratio)),
        &opponent,
        &ratio(row.ratio()),
        &row.chooser,
        &row.variant,
    ]);
    if measured.error_of_measurement { line + "  ERROR OF MEASUREMENT: above the ceiling" } else { line }
}

fn columns([case, ours, bound, gbs, cublas, to_cublas, opponent, ratio, by, variant]: [&str; 10]) -> String {
    format!(
        "{case:<36} {ours:>10} {bound:>8} {gbs:>6}  {cublas:>10} {to_cublas:>5}  {opponent:<24} {ratio:>5}  {by:<6} \
         {variant}"
    )
}

/// Columns that are words, also where they look like a number.
const WORDS: [&str; 11] =
    ["family", "dtype", "layout", "op_a", "op_b", "device", "variant", "chooser", "commit", "driver", "date"];

/// A row under the names of its columns: numbers as numbers, what is missing as null.
pub fn as_object<S: Serializer>(row: &Row, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(FIELDS.into_iter().zip(row.fields()).map(|(name, text)| (name, value(name, text))))
}

/// The same of ceilings.
pub fn as_objects<S: Serializer>(ceilings: &[Ceiling], serializer: S) -> Result<S::Ok, S::Error> {
    let object = |ceiling: &Ceiling| -> BTreeMap<&str, Value> {
        FIELDS.into_iter().zip(ceiling.fields()).map(|(name, text)| (name, value(name, text))).collect()
    };
    serializer.collect_seq(ceilings.iter().map(object))
}

fn value(name: &str, text: String) -> Value {
    if WORDS.contains(&name) {
        return text.into();
    }
    match (text.parse::<u64>(), text.parse::<f64>()) {
        _ if text.is_empty() => Value::Null,
        (Ok(whole), _) => whole.into(),
        (Err(_), Ok(number)) => number.into(),
        // The opponent's name.
        (Err(_), Err(_)) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ours::Launch;
    use super::super::outcome::Time;
    use super::super::result::tests;
    use super::*;

    fn measured(opponents: &[(&str, f64)]) -> Measured {
        let fastest = opponents.iter().map(|(_, ns)| *ns).reduce(f64::min);
        let opponents = opponents.iter().map(|&(name, ns)| Time { name: name.into(), ns }).collect();
        Measured { row: tests::row(4, fastest), error_of_measurement: false, launch: None, opponents }
    }

    #[test]
    fn a_line_says_what_the_row_says() {
        let line = row(&measured(&[("cublas", 1100.0)]));
        for word in ["tsm2r f64 1000 x 4 x 500", "1.0 us", "80.0%", "4.00", "cublas 1.1 us", "1.10", "model"] {
            assert!(line.contains(word), "{word} in {line}");
        }
        let alone = row(&measured(&[]));
        assert!(alone.contains(" -  ") && !alone.contains("cublas"), "{alone}");
    }

    /// Whoever is the fastest, cuBLAS has a column, by its fastest call.
    #[test]
    fn cublas_has_a_column_of_its_own() {
        let line = row(&measured(&[("oxicuda-blas", 900.0), ("cublas", 1300.0), ("cublas-gemv", 1200.0)]));
        assert!(line.contains("1.2 us  1.20  cublas 0.9 us             0.90"), "{line}");
        let without = row(&measured(&[("openblas", 900.0)]));
        assert!(without.contains("4.00           -     -  "), "a blank, not a zero: {without}");
        let unserved = Measured {
            row: Row { ours: None, ..tests::row(4, Some(1.0)) }.derive(),
            ..measured(&[("cublas", 1200.0)])
        };
        assert!(row(&unserved).contains("1.2 us     -  "), "a time, and nothing to divide by");
    }

    #[test]
    fn an_error_of_measurement_is_marked() {
        let above = Measured { error_of_measurement: true, ..measured(&[]) };
        assert!(row(&above).ends_with("dtsm2r_prefetch  ERROR OF MEASUREMENT: above the ceiling"));
        assert_eq!(serde_json::to_value(above).expect("it can")["error_of_measurement"], true);
    }

    #[test]
    fn numbers_are_numbers_in_json() {
        let launch = Launch { splits: 7, grid: [160, 7, 1], threads: 128, shared_bytes: 4096, swapped: false };
        let with = Measured { launch: Some(launch), row: tests::row(4, None), ..measured(&[("cublas", 1100.0)]) };
        let json = serde_json::to_value(with).expect("it can");
        assert_eq!((&json["m"], &json["ns_median"], &json["fraction"]), (&1000.into(), &1000.0.into(), &0.8.into()));
        assert_eq!((&json["driver"], &json["seed"], &json["opponent"]), (&"580".into(), &1.into(), &().into()));
        assert_eq!((&json["opponents"][0]["name"], &json["launch"]["splits"]), (&"cublas".into(), &7.into()));
    }
}
