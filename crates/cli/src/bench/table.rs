//! Results on a terminal, a line as soon as it is there; and as the fields of JSON objects.

use lanky::Device;
use model::results::FIELDS;
use serde::Serializer;
use serde::ser::SerializeMap;

use super::outcome::{Measured, Rates};
use super::result::Row;
use crate::{device, say};

/// The device, its ceilings, and the columns' names.
pub fn header(on: &Device, c: &Rates, opponents: &[&str]) -> String {
    let against = if opponents.is_empty() { "nobody".to_string() } else { opponents.join(", ") };
    let rate = say::rate;
    let matrix_units = c.mma_f64_gflops.map_or(String::new(), |gflops| format!("   f64 mma {}", tflops(gflops)));
    format!(
        "{}\nceilings  read {}   copy {}   write {}   update {}\n          f32 {}   f64 {}{matrix_units}\n\
         against {against}\n\n{}",
        device::line(on),
        rate(c.read_gbs),
        rate(c.copy_gbs),
        rate(c.write_gbs),
        rate(c.update_gbs),
        tflops(c.fma_f32_gflops),
        tflops(c.fma_f64_gflops),
        columns(["case (m x n x k)", "ours", "of bound", "GB/s", "best opponent", "ratio", "by", "variant"]),
    )
}

/// `66.9 TFLOP/s`
fn tflops(gflops: f64) -> String {
    if gflops >= 1000.0 { format!("{:.1} TFLOP/s", gflops / 1e3) } else { format!("{gflops:.1} GFLOP/s") }
}

/// One line.
pub fn row(measured: &Measured) -> String {
    let row = &measured.row;
    let time = |ns: f64| say::time(ns / 1e9);
    let opponent = row.best.as_ref().map_or("-".into(), |best| format!("{} {}", best.opponent, time(best.opponent_ns)));
    let or_none = |words: Option<String>| words.unwrap_or_else(|| "-".into());
    let ratio = or_none(row.ratio().map(|ratio| format!("{ratio:.2}")));
    let gbs = row.gbs().map(|gbs| if gbs >= 100.0 { format!("{gbs:.0}") } else { format!("{gbs:.2}") });
    columns([
        &row.case.name(),
        &or_none(row.ns_median().map(time)),
        &or_none(row.fraction().map(|share| format!("{:.1}%", 100.0 * share))),
        &or_none(gbs),
        &opponent,
        &ratio,
        &row.chooser,
        &row.variant,
    ])
}

fn columns([case, ours, bound, gbs, opponent, ratio, by, variant]: [&str; 8]) -> String {
    format!("{case:<36} {ours:>10} {bound:>8} {gbs:>6}  {opponent:<24} {ratio:>5}  {by:<6} {variant}")
}

/// A row under the names of its columns: numbers as numbers, what is missing as null.
pub fn as_object<S: Serializer>(row: &Row, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, text) in FIELDS.into_iter().zip(row.fields()) {
        let is_text = matches!(
            name,
            "family"
                | "dtype"
                | "layout"
                | "op_a"
                | "op_b"
                | "device"
                | "variant"
                | "chooser"
                | "commit"
                | "driver"
                | "date"
        );
        match (text.parse::<f64>(), text.is_empty()) {
            (_, true) if !is_text => map.serialize_entry(name, &())?,
            (Ok(number), _) if !is_text => match text.parse::<u64>() {
                Ok(whole) => map.serialize_entry(name, &whole)?,
                Err(_) => map.serialize_entry(name, &number)?,
            },
            _ => map.serialize_entry(name, &text)?,
        }
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Time;
    use super::super::result::tests;
    use super::*;

    #[test]
    fn a_line_says_what_the_row_says() {
        let measured = Measured { row: tests::row(4, Some(1100.0)), opponents: Vec::new() };
        let line = row(&measured);
        for word in ["tsm2r f64 1000 x 4 x 500", "1.0 us", "80.0%", "4.00", "cublas 1.1 us", "1.10", "model"] {
            assert!(line.contains(word), "{word} in {line}");
        }
        let alone = row(&Measured { row: tests::row(4, None), opponents: Vec::new() });
        assert!(alone.contains(" -  ") && !alone.contains("cublas"), "{alone}");
    }

    #[test]
    fn numbers_are_numbers_in_json() {
        let opponents = vec![Time { name: "cublas".into(), ns: 1100.0 }];
        let json = serde_json::to_value(Measured { row: tests::row(4, None), opponents }).expect("it can");
        assert_eq!((&json["m"], &json["ns_median"], &json["fraction"]), (&1000.into(), &1000.0.into(), &0.8.into()));
        assert_eq!((&json["driver"], &json["seed"], &json["opponent"]), (&"580".into(), &1.into(), &().into()));
        assert_eq!(json["opponents"][0]["name"], "cublas");
    }
}
