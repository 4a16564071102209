//! `lanky bench` on the CPU.

mod common;

use common::{Bench, text};
use serde_json::Value;

/// A run of a moment: one small case of each element type.
const SMALL: [&str; 13] =
    ["bench", "--m", "90", "--k", "70", "--n", "3", "--samples", "5", "--device", "cpu", "--beta", "0"];

const HEADER: &str = "family,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,device,variant,chooser,samples,ns_median,\
    ns_low,ns_high,ns_min,bytes,flops,gbs,bound_ns,fraction,opponent,opponent_ns,ratio,seed,commit,driver,date";

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

/// Runs it without opponents that this machine may have.
fn alone(bench: &Bench, args: &[&str]) -> std::process::Output {
    bench.command(args).args(["--against", "none"]).output().expect("the program starts")
}

#[test]
fn a_run_has_a_table_a_file_and_json() {
    let bench = Bench::new();
    let output = alone(&bench, &with(&SMALL, &["--beta", "1", "--layout", "ccc,rcr", "--csv", "r.csv"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let words = text(&output.stdout);
    assert!(
        words.contains("ceilings  read ") && words.contains("against nobody") && words.contains("8 rows"),
        "{words}"
    );
    assert!(words.contains("tsm2r f32 90 x 3 x 70 rcr beta 1"), "{words}");
    let csv = text(&bench.get("r.csv"));
    assert_eq!(csv.lines().next(), Some(HEADER));
    assert_eq!(csv.lines().count(), 9, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",cpu,model,5,")), "{csv}");
    assert_eq!(bench.names(), ["r.csv"], "nothing was forced");

    let output = alone(&bench, &with(&SMALL, &["--json"]));
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{object}");
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"));
        // A 90 x 70, B 70 x 3, C 90 x 3.
        let element = if row["dtype"] == "f32" { 4.0 } else { 8.0 };
        assert_eq!(number("bytes"), element * (6300.0 + 210.0 + 270.0));
        assert_eq!(number("flops"), 37800.0);
        assert!((number("gbs") - number("bytes") / number("ns_median")).abs() <= 0.001 * number("gbs") + 0.001);
        assert!(number("ns_min") <= number("ns_low") && number("ns_low") <= number("ns_median"), "{row}");
        assert!(number("ns_median") <= number("ns_high"), "{row}");
        assert!(row["ratio"].is_null() && row["opponent"].is_null(), "a missing opponent is nothing: {row}");
    }
    assert!(object["ceilings"]["read_gbs"].as_f64().is_some_and(|gbs| gbs > 0.0));
}

#[test]
fn a_wrong_product_is_a_failure_and_no_number() {
    let bench = Bench::new();
    let args = with(&SMALL, &["--against", "none", "--csv", "r.csv"]);
    let output = bench.command(&args).env("LANKY_PLANT_A_FAULT", "wrong").output().expect("the program starts");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("lanky: 2 products are wrong, the first: tsm2r f64 90 x 3 x 70 by cpu: element ("),
        "{error}"
    );
    assert_eq!(text(&bench.get("r.csv")).lines().count(), 1, "only the header");
}

#[test]
fn a_figure_above_the_ceiling_is_an_error_of_measurement() {
    let bench = Bench::new();
    let run = |more: &[&str]| {
        let args = [&SMALL[..], &["--against", "none"], more].concat();
        bench.command(&args).env("LANKY_PLANT_A_FAULT", "too-fast").output().expect("the program starts")
    };
    let output = run(&["--csv", "r.csv"]);
    assert_eq!(output.status.code(), Some(0));
    let words = text(&output.stdout);
    assert!(
        words.contains("error of measurement, above the ceiling: tsm2r f64") && words.contains("0 rows"),
        "{words}"
    );
    assert_eq!(text(&bench.get("r.csv")).lines().count(), 1);
    // Data that a cache holds may be faster than memory, and is labelled.
    let cached = text(&run(&["--cached", "--csv", "cached.csv"]).stdout);
    assert!(cached.contains("2 rows") && cached.contains("cpu@cached"), "{cached}");
}

/// The opponents that this machine has, once; `None`, and a word of it, where it has none for such products.
fn with_opponents(test: &str, args: &[&str], fault: &str) -> Option<Value> {
    let bench = Bench::new();
    let command = [args, &["--device", "cpu", "--samples", "3", "--json", "--csv", "r.csv"]].concat();
    let output = bench.command(&command).env("LANKY_PLANT_A_FAULT", fault).output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    if !text(&output.stderr).contains("no OpenBLAS") || object["rows"].as_array().is_some_and(|rows| !rows.is_empty()) {
        object["csv"] = text(&bench.get("r.csv")).into();
        return Some(object);
    }
    common::skipped(test, "there is no opponent");
    None
}

/// What this project does not compute yet is run by the others, and our columns are blank.
#[test]
fn others_are_raced_where_we_have_no_kernel() {
    let name = "others_are_raced_where_we_have_no_kernel";
    let batch = ["bench", "--family", "batched", "--dtype", "f32,f64,c64,c128", "--m", "5", "--n", "3", "--k", "7"];
    let args = with(&batch, &["--batch", "40", "--beta", "0,1", "--layout", "ccc,rcr", "--ops", "tn"]);
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
    assert_eq!(object["without_ours"][0][0], "batched has no kernels of its own yet");
    assert_eq!(object["without_ours"][0][1], 16);
    assert!(object["opponents_out"].as_array().is_some_and(Vec::is_empty), "{}", object["opponents_out"]);
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
    assert_eq!(wrong["not_run"][0][1], 16, "{wrong}");
    // And one above the ceiling is an error.
    let fast = with_opponents(name, &args, "too-fast").expect("they are there");
    assert!(fast["rows"].as_array().is_some_and(Vec::is_empty), "{fast}");
    assert!(fast["errors_of_measurement"].as_array().is_some_and(|errors| errors.len() >= 16), "{fast}");
}

#[test]
fn complex_products_are_checked_in_every_layout() {
    for (ops, layout) in [("nn", "ccc,rrr"), ("tn", "rcc,crc"), ("nt", "ccr,rcr"), ("tt", "ccc,rrr")] {
        let args = ["bench", "--dtype", "c64,c128", "--m", "40", "--n", "1,5", "--k", "70", "--beta", "0,1"];
        let args = with(&args, &["--ops", ops, "--layout", layout]);
        let name = "complex_products_are_checked_in_every_layout";
        let Some(object) = with_opponents(name, &args, "") else { return };
        assert_eq!(object["rows"].as_array().map(Vec::len), Some(16), "{ops}: {object}");
        assert!(object["opponents_out"].as_array().is_some_and(Vec::is_empty), "{ops}: {}", object["opponents_out"]);
        assert_eq!(object["without_ours"][0][0], "tsm2r in c128 is not there yet");
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
        assert!(output.status.success(), "{error}");
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert!(object["opponents_out"].as_array().is_some_and(Vec::is_empty), "{}", object["opponents_out"]);
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

#[test]
fn what_is_not_there_yet_is_counted() {
    let bench = Bench::new();
    let args = ["bench", "--suite", "default", "--family", "gram,gemv", "--device", "cpu"];
    let words = text(&alone(&bench, &args).stdout);
    assert!(words.contains("0 rows\n184 cases not run: gram has no kernels of its own yet"), "{words}");
    assert!(words.contains("643 cases not run: gemv has no kernels of its own yet"), "{words}");
    // Whoever is there to race: both factors of a Gram matrix are one.
    let words = text(&bench.run(&["bench", "--family", "gram", "--n", "3", "--m", "3", "--device", "cpu"]).stdout);
    assert!(words.contains("0 rows\n4 cases not run: gram has no kernels of its own yet"), "{words}");
    let args =
        ["bench", "--device", "cpu", "--n", "3,3", "--m", "60,60", "--k", "70", "--dtype", "f32", "--time-limit", "0"];
    let words = text(&alone(&bench, &args).stdout);
    assert!(words.contains("6 cases not run: it is there twice\n2 cases not run: the time was up"), "{words}");
    let args = with(&["bench", "--device", "cpu", "--time-limit", "0"], &["--suite", "default", "--family", "gemm"]);
    let words = text(&alone(&bench, &args).stdout);
    assert!(words.contains("189 cases not run: the time was up"), "{words}");
}

#[test]
fn suites_are_files_too() {
    let bench = Bench::new();
    let header = "family,source,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,note\n";
    bench.put(
        "s.csv",
        format!("{header}tsm2r,mine,f64,ccc,t,n,0.5,80,4,66,70,,90,1,\ntsm2r,mine,c64,ccc,n,n,0,8,4,6,,,,1,\n"),
    );
    let args = ["bench", "--samples", "3", "--device", "cpu", "--against", "none"];
    let output = bench.command(&args).env("LANKY_SUITE", "s.csv").output().expect("the program starts");
    let words = text(&output.stdout);
    assert!(words.contains("tsm2r f64 80 x 4 x 66 tn beta 0.5 lda 70 ldc 90"), "{words}");
    assert!(words.contains("1 row\n1 case not run: tsm2r in c64 is not there yet"), "{words}");
    assert_eq!(
        text(&alone(&bench, &with(&args[..5], &["--suite", "s.csv"])).stdout).lines().count(),
        words.lines().count()
    );
    bench.put("bad.csv", format!("{header}tsm2r,mine,f64,ccc,t,n,0,80,4,sixty,,,,1,\n"));
    let error = bench.fail(2, &["bench", "--suite", "bad.csv", "--device", "cpu"]);
    assert!(error.contains("bad.csv: line 2: k is 'sixty', not a whole number"), "{error}");
}

#[test]
fn bad_usage_is_one_line() {
    let bench = Bench::new();
    for args in [
        &["--n", "0"][..],
        &["--dtype", "f16"],
        &["--family", "tsm9"],
        &["--layout", "cc"],
        &["--samples", "0"],
        &["--tolerance", "-1"],
        &["--variant", "nonsense"],
        &["--variant", "tsm2r_prefetch"],
        &["--m", "10", "--lda", "9"],
        &["--m", "10", "--suite", "default"],
        &["--batch", "0"],
        &["--suite", "nowhere.csv"],
        &["--csv", "no/such/folder.csv"],
        &["--compare", "a.csv"],
        &["--family", "gemm", "--suite", "default", "--layout", "rrr"],
    ] {
        bench.fail(2, &with(&["bench", "--device", "cpu"], args));
    }
}

#[test]
fn comparing_finds_what_became_slower() {
    let bench = Bench::new();
    let row = |n: u32, ns: u32| {
        format!(
            "tsm2r,f64,ccc,n,n,0,100,{n},50,100,50,100,1,gpu,v,model,30,{ns},{},{},{},1000,1000,1,500,0.5,,,,1,,,\n",
            ns - 9,
            ns + 9,
            ns - 20
        )
    };
    bench.put("old.csv", format!("{HEADER}\n{}{}", row(2, 1000), row(4, 1000)));
    bench.put("new.csv", format!("{HEADER}\n{}{}", row(2, 1100), row(4, 900)));
    let compare = |tolerance: &str| bench.run(&["bench", "--compare", "old.csv", "new.csv", "--tolerance", tolerance]);
    let output = compare("5");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("lanky: 1 case became slower by more than 5%"));
    let words = text(&output.stdout);
    assert!(words.contains("+10.0%  1.0 us -> 1.1 us  tsm2r f64 100 x 2 x 50"), "{words}");
    assert!(words.contains("faster:\n  -10.0%") && words.contains("2 in both, 0 within the noise"), "{words}");
    assert_eq!(compare("15").status.code(), Some(0));
    bench.put("other.csv", format!("{HEADER}\n{}", row(8, 1000)));
    assert!(bench.fail(2, &["bench", "--compare", "old.csv", "other.csv"]).contains("no case in common"));
    bench.put("broken.csv", "a,b\n");
    assert!(bench.fail(2, &["bench", "--compare", "old.csv", "broken.csv"]).contains("broken.csv: no results"));
}

#[test]
fn the_commit_may_be_told() {
    let bench = Bench::new();
    let args = with(&SMALL, &["--against", "none", "--dtype", "f32", "--csv", "r.csv"]);
    let output = bench.command(&args).env("LANKY_COMMIT", "abc,1").output().expect("the program starts");
    assert!(output.status.success());
    let csv = text(&bench.get("r.csv"));
    assert!(csv.lines().nth(1).is_some_and(|row| row.contains(",\"abc,1\",,20")), "{csv}");
}

/// Loaded only where this machine has it: then it computes the same products.
#[test]
fn an_opponent_that_is_wrong_has_no_time() {
    let bench = Bench::new();
    let args = with(&SMALL, &["--json"]);
    let run = |fault: &str| {
        let output = bench.command(&args).env("LANKY_PLANT_A_FAULT", fault).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("one JSON value")
    };
    let right = run("");
    let opponents = right["rows"][0]["opponents"].as_array().expect("a list").len();
    if opponents == 0 {
        return common::skipped("an_opponent_that_is_wrong_has_no_time", "there is no opponent");
    }
    let wrong = run("wrong-opponents");
    assert!(wrong["rows"][0]["opponents"].as_array().is_some_and(Vec::is_empty));
    assert!(wrong["rows"][0]["opponent"].is_null());
    assert_eq!(wrong["opponents_out"].as_array().map(Vec::len), Some(2 * opponents));
}

#[test]
fn a_library_that_is_named_and_missing_is_said() {
    let bench = Bench::new();
    let mut command = bench.command(&with(&SMALL, &["--dtype", "f32"]));
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
