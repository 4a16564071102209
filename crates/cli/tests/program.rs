//! `lanky demo`, `info` and `plan`.

mod common;

use std::process::Command;

use common::{Bench, text};
use serde_json::Value;

#[test]
fn the_demo_checks_itself() {
    let bench = Bench::new();
    for dtype in ["f32", "f64"] {
        let size = ["demo", "--m", "700", "--k", "300", "--n", "5", "--dtype", dtype];
        let words = text(&bench.succeed(&size).stdout);
        assert!(words.contains("checked: 64 rows, error ") && words.contains("of the ceiling"), "{words}");
        let output = bench.succeed(&[&size[..], &["--json"]].concat());
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert_eq!(object["passed"], true);
        assert_eq!(object["checked_rows"], 64);
        assert_eq!(object["dtype"], dtype);
        assert!(object["variant"].is_string() && object["gbs"].as_f64().is_some_and(|gbs| gbs > 0.0), "{object}");
        assert!(object["error_of_bound"].as_f64().is_some_and(|error| error <= 1.0), "{object}");
    }
}

#[test]
fn the_demo_takes_any_size() {
    let bench = Bench::new();
    let words = text(&bench.succeed(&["demo", "--m", "64"]).stdout);
    assert!(words.contains("all 64 rows of C in one block") && !words.contains("1 blocks"), "{words}");
    for (m, n, k) in [("1", "1", "1"), ("3", "100", "2"), ("65", "1", "129")] {
        bench.succeed(&["demo", "--m", m, "--n", n, "--k", k]);
    }
}

#[test]
fn info_lists_every_entry() {
    let bench = Bench::new();
    let words = text(&bench.run(&["info"]).stdout);
    let object: Value = serde_json::from_slice(&bench.run(&["info", "--json"]).stdout).expect("one JSON value");
    let listed: Vec<&str> = object["variants"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|variant| variant["entries"].as_array().into_iter().flatten())
        .filter_map(|entry| entry["entry"].as_str())
        .collect();
    assert!(!listed.is_empty());
    for variant in model::VARIANTS {
        assert!(listed.contains(&variant.entry) && words.contains(variant.entry), "{}", variant.entry);
    }
}

#[test]
fn info_writes_the_modules_it_counts() {
    let bench = Bench::new();
    let output = bench.run(&["info", "--json", "--ptx", "new/folder"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let names: Vec<String> = std::fs::read_dir(bench.path("new/folder"))
        .expect("the folder was made")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(object["ptx"]["modules"], names.len());
    assert!(names.iter().all(|name| name.ends_with(".ptx") && !name.starts_with('.')), "{names:?}");
    bench.put("file", "");
    bench.fail(2, &["info", "--ptx", "file"]);
}

#[test]
fn plan_explains_itself() {
    let bench = Bench::new();
    for gpu in ["h200", "v100"] {
        let output = bench.run(&["plan", "20480", "16", "20480", "--dtype", "f64", "--gpu", gpu]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("tsm2r") && output.stderr.is_empty(), "{}", text(&output.stdout));
    }
    let forced = bench.run(&["plan", "20480", "4", "20480", "--gpu", "h200", "--variant", "tsm2r_inner"]);
    assert!(text(&forced.stdout).contains("tsm2r_inner"), "{}", text(&forced.stderr));
    for lengths in [["0", "4", "4"], ["4", "0", "4"], ["4", "4", "0"]] {
        assert!(bench.run(&[&["plan"], &lengths[..], &["--gpu", "h200"]].concat()).status.success());
    }
    bench.fail(2, &["plan", "20480", "4", "20480", "--variant", "nonsense"]);
    // Names that there are, of another operation.
    for (args, of) in [
        (
            &["4000", "4", "4000", "--variant", "batched_any"][..],
            "variant batched_any: it is of another operation, batches",
        ),
        (
            &["4", "4", "4", "--batch", "9", "--variant", "tsm2r_inner"],
            "tsm2r_inner: it is of another operation, one product",
        ),
    ] {
        let error = bench.fail(2, &[&["plan", "--gpu", "h200"], args].concat());
        assert!(error.contains(of), "{error}");
    }
    bench.fail(2, &["plan", "18446744073709551615", "18446744073709551615", "2", "--gpu", "h200"]);
}

#[test]
fn help_and_version_are_results() {
    let bench = Bench::new();
    for args in [&["--help"][..], &["--version"], &["mul", "--help"]] {
        let output = bench.run(args);
        assert!(output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty());
    }
    for (command, words) in [
        ("bench", "Without a suite the cases are those of"),
        ("bench", "Environment: LANKY_SUITE names"),
        ("batch", "with m, n or k above 32 a GPU computes one by one"),
        ("tune", "in place of what is there"),
    ] {
        let help = text(&bench.run(&[command, "--help"]).stdout);
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{command}: {help}");
    }
}

#[test]
fn shells_and_man_get_what_they_read() {
    let bench = Bench::new();
    for (shell, word) in [("bash", "complete -F _lanky"), ("zsh", "#compdef lanky"), ("fish", "complete -c lanky")] {
        let output = bench.run(&["completions", shell]);
        let script = text(&output.stdout);
        assert!(
            output.status.success() && script.contains(word) && script.contains("transpose-a"),
            "{shell}: {script}"
        );
    }
    let page = text(&bench.run(&["man"]).stdout);
    assert!(page.contains(".TH lanky 1") && page.contains("Exit codes"), "{page}");
    assert!(bench.run(&["man", "--out", "man1"]).status.success());
    for command in ["mul", "plan", "bench", "trace", "man"] {
        assert!(bench.path(&format!("man1/lanky-{command}.1")).is_file(), "{command}");
    }
    // A page that cannot be written whole is not there.
    let line = format!("ulimit -f 1; exec {} man --out man2", env!("CARGO_BIN_EXE_lanky"));
    let output = Command::new("sh").args(["-c", &line]).current_dir(bench.path("")).output().expect("a shell");
    assert_eq!((output.status.code(), text(&output.stderr).lines().count()), (Some(2), 1), "{}", text(&output.stderr));
    for page in std::fs::read_dir(bench.path("man2")).expect("a folder").map(|page| page.expect("an entry").file_name())
    {
        let [cut, whole] = ["man2", "man1"].map(|folder| std::fs::read(bench.path(folder).join(&page)));
        assert_eq!(cut.ok(), whole.ok(), "{page:?}");
    }
    bench.put("file", b"");
    bench.fail(2, &["man", "--out", "file"]);
    bench.fail(2, &["completions", "nonsense"]);
}
