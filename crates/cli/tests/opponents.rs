//! `lanky bench` against those whom this machine has: on the CPU, and cuBLAS where there is a GPU.

mod common;

use common::{Bench, SMALL, plus, text};
use serde_json::Value;

/// The opponents that this machine has, once; `None`, and a word of it, where it has none for such products.
fn with_opponents(test: &str, args: &[&str], fault: &str) -> Option<Value> {
    let bench = Bench::new();
    let command = [args, &["--device", "cpu", "--samples", "3", "--json", "--csv", "r.csv"]].concat();
    let output = bench.command(&command).env("LANKY_PLANT_A_FAULT", fault).output().expect("the program starts");
    let expected = i32::from(fault == "too-fast");
    assert_eq!(output.status.code(), Some(expected), "{}", text(&output.stderr));
    let mut object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    // Those that were wrong are named, though they have no rows.
    let has = |list: &str| object[list].as_array().is_some_and(|list| !list.is_empty());
    if !text(&output.stderr).contains("no OpenBLAS") || has("rows") || has("opponents_out") {
        object["csv"] = text(&bench.get("r.csv")).into();
        return Some(object);
    }
    skip(test);
    None
}

/// The opponents that failed or were wrong; one that took too long, as they may where they are not optimised, is neither.
fn wrong(object: &Value) -> Vec<&str> {
    let out = object["opponents_out"].as_array().expect("a list").iter().filter_map(Value::as_str);
    out.filter(|why| !why.contains("more runs of")).collect()
}

/// Whoever names a library of opponents wants no test left out.
fn skip(test: &str) {
    assert!(std::env::var_os("LANKY_OPPONENTS").is_none(), "LANKY_OPPONENTS has no opponent");
    common::skipped(test, "there is no opponent");
}

/// What this project does not compute yet is run by the others, and our columns are blank.
#[test]
fn others_are_raced_where_we_have_no_kernel() {
    let name = "others_are_raced_where_we_have_no_kernel";
    let batch = ["bench", "--family", "gemm", "--dtype", "f32,f64,c64,c128", "--m", "5", "--n", "3", "--k", "7"];
    let args = plus(&batch, &["--batch", "40", "--beta", "0,1", "--layout", "ccc,rcr", "--ops", "tn"]);
    let Some(object) = with_opponents(name, &args, "") else { return };
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 16, "{object}");
    for row in rows {
        let ours = ["ns_median", "ns_low", "ns_high", "ns_min", "gbs", "fraction", "ratio"];
        assert!(ours.iter().all(|name| row[*name].is_null()) && row["variant"] == "" && row["chooser"] == "", "{row}");
        assert!(row["opponent_ns"].as_f64().is_some_and(|ns| ns > 0.0) && row["batch"] == 40, "{row}");
        let (bytes, flops) = match row["dtype"].as_str() {
            Some("f32") => (4, 2),
            Some("f64") => (8, 2),
            Some("c64") => (8, 8),
            _ => (16, 8),
        };
        let read_c = if row["beta"] == 1 { 15 } else { 0 };
        assert_eq!(row["bytes"], 40 * bytes * (35 + 21 + 15 + read_c), "{row}");
        assert_eq!(row["flops"], 40 * flops * 105, "{row}");
    }
    let without: Vec<(&str, u64)> = object["without_ours"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| Some((entry[0].as_str()?, entry[1].as_u64()?)))
        .collect();
    assert!(without.contains(&("gemm of many at once is not there", 16)), "{without:?}");
    assert_eq!(wrong(&object), [""; 0]);
    let csv = object["csv"].as_str().expect("text");
    assert!(csv.lines().skip(1).all(|line| line.contains(",,,3,,,,,")), "{csv}");
    // Results like these are a page, and nothing to compare.
    let bench = Bench::new();
    bench.put("r.csv", csv);
    assert!(bench.run(&["report", "r.csv", "-o", "p.html"]).status.success());
    assert_eq!(text(&bench.get("p.html")).matches("<tr>").count(), 17, "the table has them");
    assert!(bench.fail(2, &["bench", "--compare", "r.csv", "r.csv"]).contains("no case in common"));
    // A wrong product of theirs is no time, here as elsewhere.
    let wrong = with_opponents(name, &args, "wrong-opponents").expect("they are there");
    assert!(wrong["rows"].as_array().is_some_and(Vec::is_empty), "{wrong}");
    assert!(wrong["opponents_out"].as_array().is_some_and(|out| out.len() >= 16), "{wrong}");
    let not_run: u64 = wrong["not_run"].as_array().expect("a list").iter().filter_map(|entry| entry[1].as_u64()).sum();
    assert_eq!(not_run, 16, "{wrong}");
    // And one above the ceiling is an error, and marked.
    let fast = with_opponents(name, &args, "too-fast").expect("they are there");
    for row in fast["rows"].as_array().expect("rows") {
        let marked = row["opponent"].as_str().is_some_and(|name| name.ends_with("@above"));
        assert!(marked && row["error_of_measurement"] == true, "{row}");
    }
    assert!(fast["errors_of_measurement"].as_array().is_some_and(|errors| errors.len() >= 16), "{fast}");
}

#[test]
fn complex_products_are_checked_in_every_layout() {
    for (ops, layout) in [("nn", "ccc,rrr"), ("tn", "rcc,crc"), ("nt", "ccr,rcr"), ("tt", "ccc,rrr")] {
        let args = ["bench", "--dtype", "c64,c128", "--m", "40", "--n", "1,5", "--k", "70", "--beta", "0,1"];
        let args = plus(&args, &["--ops", ops, "--layout", layout]);
        let name = "complex_products_are_checked_in_every_layout";
        let Some(object) = with_opponents(name, &args, "") else { return };
        assert_eq!(object["rows"].as_array().map(Vec::len), Some(16), "{ops}: {object}");
        assert_eq!(wrong(&object), [""; 0], "{ops}");
        assert_eq!(object["without_ours"].as_array().map(Vec::len), Some(0), "{ops}: {object}");
    }
}

/// cuBLAS's calls are declared by hand: each must compute what they say, in every layout and type.
#[test]
fn cublas_computes_batches_and_complex_numbers() {
    let name = "cublas_computes_batches_and_complex_numbers";
    let run = |more: &[&str]| {
        let args = ["bench", "--device", "cuda:0", "--dtype", "f32,f64,c64,c128", "--samples", "5", "--json"];
        let args = [&args, more, &["--k", "70", "--beta", "0,0.5", "--against", "cublas"]].concat();
        let output = Bench::new().run(&args);
        let error = text(&output.stderr);
        if output.status.code() == Some(3) || error.contains("no cuBLAS") {
            assert!(std::env::var_os("LANKY_REQUIRE_GPU").is_none_or(|value| value != "1"), "{error}");
            common::skipped(name, error.lines().next().unwrap_or_default());
            return None;
        }
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert_eq!(wrong(&object), [""; 0]);
        assert!(output.status.success(), "{error}{} {}", object["failed"], object["errors_of_measurement"]);
        Some(object)
    };
    let raced = |object: &Value, wanted: &[&str]| {
        for row in object["rows"].as_array().expect("rows") {
            let opponents = row["opponents"].as_array().expect("a list");
            let has = |name: &&str| opponents.iter().any(|opponent| opponent["name"] == *name);
            assert!(wanted.iter().all(has) && opponents.len() == wanted.len(), "{wanted:?}: {row}");
        }
    };
    for (ops, layout) in [("nn", "ccc,rrr"), ("tn", "rcc,crc"), ("nt", "ccr,rcr"), ("tt", "ccc,rrr")] {
        let shape = ["--m", "33", "--ops", ops, "--layout", layout];
        let batch = [&["--family", "batched", "--n", "1,5", "--batch", "2,300"][..], &shape].concat();
        let Some(object) = run(&batch) else { return };
        raced(&object, &["cublas-strided", "cublas-batched"]);
        assert_eq!(object["without_ours"][0][1], 64, "{ops}");
        let Some(object) = run(&[&["--n", "5"][..], &shape].concat()) else { return };
        raced(&object, &["cublas"]);
        let Some(object) = run(&[&["--n", "1"][..], &shape].concat()) else { return };
        raced(&object, &["cublas", "cublas-gemv"]);
    }
}

/// Whoever is there races Gram matrices too, on the one factor.
#[test]
fn opponents_compute_gram_matrices() {
    let args = ["bench", "--family", "gram", "--n", "3,17", "--k", "400", "--dtype", "f32,f64", "--beta", "0"];
    let Some(object) = with_opponents("opponents_compute_gram_matrices", &args, "") else { return };
    assert_eq!(object["rows"].as_array().map(Vec::len), Some(4), "{object}");
    assert_eq!(wrong(&object), [""; 0]);
}

/// Loaded only where this machine has it: then it computes the same products.
#[test]
fn an_opponent_that_is_wrong_has_no_time() {
    let bench = Bench::new();
    let args = plus(&SMALL, &["--json"]);
    let run = |fault: &str| {
        let output = bench.command(&args).env("LANKY_PLANT_A_FAULT", fault).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("one JSON value")
    };
    let right = run("");
    let opponents = right["rows"][0]["opponents"].as_array().expect("a list").len();
    if opponents == 0 {
        return skip("an_opponent_that_is_wrong_has_no_time");
    }
    let wrong = run("wrong-opponents");
    assert!(wrong["rows"][0]["opponents"].as_array().is_some_and(Vec::is_empty));
    assert!(wrong["rows"][0]["opponent"].is_null());
    assert_eq!(wrong["opponents_out"].as_array().map(Vec::len), Some(2 * opponents));
}

#[test]
fn a_library_that_is_named_and_missing_is_said() {
    let bench = Bench::new();
    let mut command = bench.command(&plus(&SMALL, &["--dtype", "f32"]));
    let output = command
        .env("LANKY_OPENBLAS", "/nowhere/libopenblas.so")
        .env("LANKY_OPPONENTS", "/nowhere/libopponents.so")
        .output()
        .expect("the program starts");
    assert!(output.status.success());
    let error = text(&output.stderr);
    assert!(error.contains("no OpenBLAS: ") && error.contains("/nowhere/libopenblas.so"), "{error}");
    assert!(error.contains("LANKY_OPPONENTS: /nowhere/libopponents.so: "), "{error}");
    assert!(text(&output.stdout).contains(" -  "), "a blank, not a zero");
}
