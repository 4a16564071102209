//! What `lanky bench` leaves where something goes wrong, and where.

mod common;

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Bench, HEADER, SMALL, alone, plus, text};
use serde_json::Value;

#[test]
fn a_wrong_product_is_a_failure_and_no_number() {
    let bench = Bench::new();
    let args = plus(&SMALL, &["--against", "none", "--csv", "r.csv"]);
    let output = bench.command(&args).env("LANKY_PLANT_A_FAULT", "wrong").output().expect("the program starts");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("lanky: 2 products are wrong, the first: tsm2r f64 90 x 3 x 70 by cpu: element ("),
        "{error}"
    );
    assert_eq!(text(&bench.get("r.csv")).lines().count(), 1, "only the header");
}

/// Whatever is wrong with a figure, everything runs and is written; then it is said.
#[test]
fn a_figure_above_the_ceiling_is_an_error_of_measurement() {
    let bench = Bench::new();
    let run = |more: &[&str]| {
        let args = [&SMALL[..], &["--against", "none"], more].concat();
        bench.command(&args).env("LANKY_PLANT_A_FAULT", "too-fast").output().expect("the program starts")
    };
    let output = run(&["--csv", "r.csv"]);
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output.stdout);
    assert!(
        words.contains("error of measurement, above the ceiling: tsm2r f64") && words.contains("2 rows"),
        "{words}"
    );
    assert_eq!(words.matches("cpu@above  ERROR OF MEASUREMENT: above the ceiling\n").count(), 2, "{words}");
    let error = text(&output.stderr);
    assert!(
        error.contains("lanky: 2 figures are above the ceiling, the first: tsm2r f64 90 x 3 x 70 by cpu: "),
        "{error}"
    );
    let csv = text(&bench.get("r.csv"));
    assert!(csv.lines().count() == 3 && csv.lines().skip(1).all(|line| line.contains(",cpu@above,model,,5,")), "{csv}");
    // It is no result: no figure has it, and it has vanished.
    assert!(run(&["--csv", "r.csv", "--json"]).status.code() == Some(1) && bench.names().len() == 2);
    let fine = alone(&bench, &plus(&SMALL, &["--csv", "fine.csv"]));
    assert!(fine.status.success());
    let compared = bench.run(&["bench", "--compare", "fine.csv", "r.csv"]);
    assert!(text(&compared.stderr).contains("no case in common"), "{}", text(&compared.stderr));
    // Data that a cache holds may be faster than memory, and is labelled; the cases' file is empty then.
    let cached = run(&["--cached", "--csv", "cached.csv"]);
    let words = text(&cached.stdout);
    assert!(cached.status.success() && words.contains("2 rows") && words.contains("cpu@cached"), "{words}");
    assert_eq!(text(&bench.get("cached.csv")).lines().count(), 1);
    let variants = text(&bench.get("cached-variants.csv"));
    assert_eq!((variants.lines().next(), variants.matches(",cpu@cached,model,,5,").count()), (Some(HEADER), 2));
}

/// One plan that fails does not end the run.
#[test]
fn a_failing_plan_is_named_and_the_rest_is_measured() {
    let bench = Bench::new();
    let args = plus(&SMALL, &["--n", "4", "--against", "none", "--json", "--csv", "r.csv"]);
    let output = bench.command(&args).env("LANKY_PLANT_A_FAULT", "failing").output().expect("the program starts");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("FAILED: tsm2r f64 90 x 3 x 70 by cpu: "), "{error}");
    assert!(error.contains("lanky: 1 plan or case failed: tsm2r f64 90 x 3 x 70 by cpu: "), "{error}");
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(
        (object["rows"].as_array().map(Vec::len), object["failed"].as_array().map(Vec::len)),
        (Some(3), Some(1))
    );
    let csv = text(&bench.get("r.csv"));
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(!csv.contains("tsm2r,f64,ccc,n,n,0,90,3,70"), "what failed has no row: {csv}");
}

/// Ctrl-C: what was measured is there, line by line, and the rest is named.
#[test]
fn an_interrupted_run_keeps_its_rows() {
    let bench = Bench::new();
    bench.put("r.csv", "as it was");
    let widths = (1..=64).map(|n: u32| n.to_string()).collect::<Vec<_>>().join(",");
    let args = ["bench", "--device", "cpu", "--against", "none", "--m", "400", "--k", "300", "--n", &widths, "--csv"];
    let args = plus(&args, &["r.csv", "--samples", "200", "--dtype", "f64", "--beta", "0"]);
    let mut command = bench.command(&args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let began = Instant::now();
    while text(&bench.get("r.csv")).lines().count() < 3 {
        assert!(began.elapsed() < Duration::from_secs(60) && child.try_wait().expect("its state").is_none());
        sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let csv = text(&bench.get("r.csv"));
    let rows = csv.lines().count() - 1;
    assert!((2..64).contains(&rows) && csv.starts_with(HEADER) && csv.ends_with('\n'), "{csv}");
    let fields = HEADER.split(',').count();
    // The device's name may have one more.
    assert!(csv.lines().all(|line| [fields, fields + 1].contains(&line.split(',').count())), "{csv}");
    let error = text(&output.stderr);
    // A row may have been written when the case was not yet done.
    let missing = error.lines().filter(|line| line.starts_with("  tsm2r f64 400 x ")).count();
    assert!(missing + rows == 64 || missing + rows == 65, "{rows} rows, {missing} missing: {error}");
    assert!(error.contains(&format!("{missing} cases are missing:")) && error.contains("400 x 64 x 300"), "{error}");
    assert_eq!(bench.names(), ["r-ceilings.csv", "r.csv"], "nothing unfinished is left");
}

/// A full disk, in effect: the rows that fit are whole, and the others' cases are named.
#[test]
fn a_file_that_cannot_grow_keeps_whole_rows() {
    let bench = Bench::new();
    let widths = (1..=40).map(|n: u32| n.to_string()).collect::<Vec<_>>().join(",");
    let args = format!("bench --device cpu --against none --dtype f64 --m 90 --k 70 --n {widths} --samples 3");
    // Blocks of 512 bytes, or of 1024: the ceilings fit, and not all rows.
    let line = format!("ulimit -f 3; exec {} {args} --beta 0 --csv r.csv >/dev/null", env!("CARGO_BIN_EXE_lanky"));
    let output = Command::new("bash").args(["-c", &line]).current_dir(bench.path("")).output().expect("a shell");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let csv = text(&bench.get("r.csv"));
    let rows = csv.lines().count() - 1;
    assert!((1..40).contains(&rows) && csv.starts_with(HEADER) && csv.ends_with('\n'), "{csv}");
    assert!(
        csv.lines().skip(1).all(|line| line.starts_with("tsm2r,f64,ccc") && line.contains(",cpu,model,,3,")),
        "{csv}"
    );
    let missing = 40 - rows;
    assert!(error.contains(&format!("{missing} cases are missing:\n  tsm2r f64 90 x {} x 70\n", rows + 1)), "{error}");
    assert!(error.lines().last().is_some_and(|line| line.starts_with("lanky: r.csv: file too large")), "{error}");
}

/// A place that is no file gets everything in one text.
#[test]
fn results_go_to_standard_output_whole() {
    let bench = Bench::new();
    let output = alone(&bench, &plus(&SMALL, &["--cached", "--csv", "-"]));
    let words = text(&output.stdout);
    let csv = &words[words.find(HEADER).expect("a header")..];
    let lines = csv.lines().take_while(|line| !line.ends_with("rows")).count();
    assert!(output.status.success() && lines == 1 + 6 + 2, "{words}");
    assert!(bench.names().is_empty());
}

/// On the CPU there are no kernels to force; on a GPU every entry that can compute the case has a row of its own name.
#[test]
fn all_variants_have_rows_beside_the_cases() {
    let bench = Bench::new();
    let output = alone(&bench, &plus(&SMALL, &["--variant", "all", "--csv", "r.csv"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(bench.names(), ["r-ceilings.csv", "r.csv"]);
    let args =
        ["bench", "--device", "cuda:0", "--dtype", "f64", "--m", "20480", "--k", "2048", "--n", "8", "--beta", "0"];
    let args = plus(&args, &["--against", "none", "--variant", "all", "--csv", "gpu.csv", "--json"]);
    let output = bench.run(&args);
    if output.status.code() == Some(3) {
        let why = text(&output.stderr);
        assert!(std::env::var_os("LANKY_REQUIRE_GPU").is_none_or(|value| value != "1"), "{why}");
        return common::skipped("all_variants_have_rows_beside_the_cases", why.lines().next().unwrap_or_default());
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let rows = object["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["launch"]["splits"].as_u64().is_some_and(|splits| splits > 0)), "{object}");
    let forced: Vec<&Value> = rows.iter().filter(|row| row["chooser"] == "caller").collect();
    let names: std::collections::BTreeSet<&str> = forced.iter().filter_map(|row| row["variant"].as_str()).collect();
    // Block shapes of one variant too.
    assert!(
        names.len() == forced.len() && names.iter().filter(|name| name.contains("prefetch")).count() > 4,
        "{names:?}"
    );
    assert!(names.contains(rows[0]["variant"].as_str().expect("a name")), "the chosen one is one of them: {names:?}");
    let fastest = rows.iter().filter_map(|row| row["ns_min"].as_f64()).fold(f64::INFINITY, f64::min);
    for row in forced {
        let (samples, ns) = (row["samples"].as_u64(), row["ns_median"].as_f64().expect("a time"));
        assert!(samples == Some(30) || (samples == Some(1) && ns > 1.4 * fastest), "{row}");
    }
    assert_eq!(text(&bench.get("gpu-variants.csv")).lines().count(), 1 + names.len());
    assert_eq!(text(&bench.get("gpu.csv")).lines().count(), 2);
}

/// What is over in less than a millisecond is timed once more, many launches in one; of many entries what is in a few microseconds.
#[test]
fn short_cases_have_rows_of_graphs() {
    let bench = Bench::new();
    let args = ["bench", "--device", "cuda:0", "--dtype", "f64", "--m", "128", "--k", "128", "--n", "2", "--beta", "0"];
    let output = bench.run(&plus(&args, &["--against", "none", "--variant", "all", "--csv", "r.csv", "--json"]));
    if output.status.code() == Some(3) {
        let why = text(&output.stderr);
        assert!(std::env::var_os("LANKY_REQUIRE_GPU").is_none_or(|value| value != "1"), "{why}");
        return common::skipped("short_cases_have_rows_of_graphs", why.lines().next().unwrap_or_default());
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let rows = object["rows"].as_array().expect("rows");
    let is_graph = |row: &&Value| row["variant"].as_str().is_some_and(|name| name.contains("@graph"));
    let graphs: Vec<&Value> = rows.iter().filter(is_graph).collect();
    assert!(graphs.iter().any(|row| row["chooser"] == "model"), "{object}");
    // Those that were far behind are not timed in a graph.
    let is_timed = |row: &&Value| row["samples"].as_u64().is_some_and(|samples| (5..=30).contains(&samples));
    assert!(graphs.iter().all(is_timed), "{object}");
    let full = rows.iter().filter(|row| !is_graph(row) && row["samples"] == 30).count();
    assert_eq!(graphs.len(), full, "{object}");
    assert_eq!(text(&bench.get("r-graphs.csv")).matches("@graph").count(), graphs.len());
    assert_eq!(text(&bench.get("r.csv")).lines().count(), 2);
}
