//! `lanky tune`, and plans that follow what it wrote: without a GPU, by the driver library that the tests of the host compile.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Bench, await_given, await_handlers, fake, skipped, text};
use lanky::tuned::{Cell, Class, Database, Origin, Timed};
use model::{Machine, Problem};
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// The program with that driver; products that no kernel computed are not looked at.
fn with_fake(bench: &Bench, folder: &Path, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    command.env("LD_LIBRARY_PATH", folder).env("FAKE_CUDA", "mmas=4").env("LANKY_PLANT_A_FAULT", "unchecked");
    command.env_remove("LANKY_TUNED").env("LANKY_COMMIT", "6ce0abf");
    command
}

fn done(output: &Output) -> (String, String) {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

const FEW: [&str; 7] = ["tune", "--family", "gemv", "--dtype", "f64", "--largest", "1"];

#[test]
fn a_gpu_is_tuned_and_its_plans_follow() {
    let Some(folder) = fake() else { return skipped("a_gpu_is_tuned_and_its_plans_follow", "no source of the driver") };
    let bench = Bench::new();
    let args = [&FEW[..], &["--budget", "none", "--samples", "3", "--compare", "--map", "maps"]].concat();
    let (said, noted) = done(&with_fake(&bench, folder, &args).output().expect("it starts"));
    let database = Database::read(bench.path("fake.tuned")).expect("a database");
    let count = database.cells().len();
    assert!(
        count > 100 && said.contains(&format!("{count} shapes measured\nfake.tuned: {count} shapes of Fake, ")),
        "{said}"
    );
    assert!(said.contains("\ngemv     the model's choice took 1.000 times as long as the best of"), "{said}{noted}");
    assert_eq!((database.origin().gpu.as_str(), database.origin().commit.as_str()), ("Fake", "6ce0abf"));
    // Every kernel takes as long here, so that the model's choice stays.
    assert!(database.cells().iter().all(|cell| cell.best == cell.model && cell.best.ns == 2.5e5), "{said}");
    let maps: Vec<PathBuf> =
        std::fs::read_dir(bench.path("maps")).expect("a folder").map(|file| file.expect("a file").path()).collect();
    assert_eq!(maps.len(), 4, "two of each layout: {maps:?}");
    for map in maps {
        let svg = std::fs::read_to_string(map).expect("text");
        assert!(roxmltree::Document::parse(&svg).is_ok_and(|document| document.root_element().has_tag_name("svg")));
    }

    // The plan on that GPU says so, and says it no longer where the model alone is asked for.
    let Some(cell) = database.cells().first() else { panic!("a cell") };
    let [m, n, k] = cell.lengths.map(|length| length.to_string());
    let plan = |tuned: &str| {
        let mut command = with_fake(&bench, folder, &["plan", &m, &n, &k]);
        done(&command.env("LANKY_TUNED", tuned).output().expect("it starts"))
    };
    let (words, _) = plan("fake.tuned");
    assert!(words.contains(&format!("chosen    by measurements: 250 us at m = {m}, n = {n}, k = {k}")), "{words}");
    assert!(words.contains("by database fake.tuned (commit 6ce0abf"), "{words}");
    assert!(plan("none").0.contains("chosen    by the model"), "{words}");

    // A second run goes on: what the first left is there.
    let again = [&FEW[..], &["--budget", "0", "--json"]].concat();
    let (said, _) = done(&with_fake(&bench, folder, &again).output().expect("it starts"));
    let object: Value = serde_json::from_str(&said).expect("one JSON value");
    assert_eq!((object["shapes"].as_u64(), object["measured"].as_u64()), (u64::try_from(count).ok(), Some(0)));
    assert_eq!(Database::read(bench.path("fake.tuned")).expect("a database").cells(), database.cells());
}

#[test]
fn products_that_are_wrong_are_found() {
    let Some(folder) = fake() else { return skipped("products_that_are_wrong_are_found", "no source of the driver") };
    let bench = Bench::new();
    let args = [&FEW[..], &["--layout", "ccc", "--samples", "1"]].concat();
    let output = with_fake(&bench, folder, &args).env_remove("LANKY_PLANT_A_FAULT").output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("wrong: gemv f64 ccc 0, "), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains(" of the best were wrong: "), "{}", text(&output.stderr));
    assert!(!bench.path("fake.tuned").exists(), "nothing was right");
}

#[test]
fn what_was_measured_before_ctrl_c_is_kept() {
    let Some(folder) = fake() else {
        return skipped("what_was_measured_before_ctrl_c_is_kept", "no source of the driver");
    };
    let bench = Bench::new();
    let mut command = with_fake(
        &bench,
        folder,
        &["tune", "--dtype", "f64", "--budget", "none", "--samples", "300", "--largest", "10"],
    );
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // The file is written every other second.
    let began = Instant::now();
    while !bench.path("fake.tuned").exists() && began.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let database = Database::read(bench.path("fake.tuned")).expect("whole");
    assert!(!database.cells().is_empty());
    assert!(said.starts_with(&format!("{} shapes measured when it was stopped; ", database.cells().len())), "{said}");
    assert_eq!(bench.names(), ["fake.tuned"], "no unfinished file");
}

/// On the CPU the loops and blockings of batches are searched: within the budget, whatever is asked for, and all is in the file.
#[test]
fn loops_are_searched_on_the_cpu() {
    let bench = Bench::new();
    let search = |budget: &str| -> Vec<Value> {
        let asked = ["--dtype", "f64,f32", "--n", "3,8", "--beta", "1", "--samples", "2", "--budget", budget];
        let said = done(&bench.run(&[&["tune", "--device", "cpu", "--json", "-o", "all.csv"], &asked[..]].concat())).0;
        serde_json::from_str(&said).expect("a list")
    };
    assert!(search("0").is_empty(), "no size begins behind the budget");
    let expected = ["f64", "f32"].into_iter().flat_map(|dtype| [3, 8].map(|n| (Some(dtype), Some(n), Some(1))));
    let expected: Vec<_> = expected.collect();
    let mut found = Vec::new();
    // The first is enough for all where nothing else is done. Sizes come in order, and those that it has no time for do not.
    for budget in ["4s", "40s", "400s"] {
        found = search(budget);
        let places = found.iter().map(|one| (one["dtype"].as_str(), one["n"].as_u64(), one["beta"].as_u64()));
        assert_eq!(places.collect::<Vec<_>>(), expected[..found.len()], "{budget}");
        if found.len() == expected.len() {
            break;
        }
    }
    assert_eq!(found.len(), expected.len(), "sizes in 400 s");
    let csv = text(&bench.get("all.csv"));
    for one in &found {
        let count = |name: &str| one[name].as_u64().expect("a count");
        assert!(count("tried") >= 1 && count("tried") <= count("kept") && count("kept") < count("all"), "{one}");
        assert!(one["ns"].as_f64() > Some(0.0) && one["library_ns"].as_f64() > Some(0.0), "{one}");
        let row = format!(
            ",{},{},1,{},",
            one["dtype"].as_str().expect("a type"),
            one["n"],
            one["best"].as_str().expect("a name")
        );
        assert!(csv.contains(&row), "{row}: {csv}");
    }
    let tried: u64 = found.iter().filter_map(|one| one["tried"].as_u64()).sum();
    assert_eq!(
        csv.lines().count() as u64,
        1 + found.len() as u64 + tried,
        "a heading, the library, and each that was tried"
    );

    for (args, reason) in [
        (
            &["--family", "gemv"][..],
            "--family gemv --device cpu: on the CPU there is something to tune of batches alone",
        ),
        (&["--n", "33"], "--n 33: from 1 to 32"),
        (&["--n", "0"], "--n 0: from 1 to 32"),
        (&["--dtype", "c64"], "f32 and f64"),
        (&["--compare"], "--compare --device cpu: it is of the databases of GPUs"),
    ] {
        let error = bench.fail(2, &[&["tune", "--device", "cpu"], args].concat());
        assert!(error.contains(reason), "{args:?}: {error}");
    }
}

/// Before the search, which takes as long as its budget, says anything.
#[test]
fn a_search_that_cannot_be_written_does_not_begin() {
    let error = Bench::new().fail(2, &["tune", "--device", "cpu", "--budget", "1h", "-o", "nowhere/x.csv"]);
    assert_eq!(error, "lanky: nowhere/x.csv: no such file or directory\n");
}

/// The first signal asks a search to stop, which says what it found; the second one ends it at once.
#[test]
fn a_second_signal_does_not_wait() {
    let bench = Bench::new();
    let twos = [[Signal::INT; 2], [Signal::INT, Signal::TERM], [Signal::TERM, Signal::INT], [Signal::INT, Signal::HUP]];
    for signals in [&[Signal::INT][..], &twos[0], &twos[1], &twos[2], &twos[3]] {
        let args = ["tune", "--device", "cpu", "--n", "32", "--budget", "none", "--samples", "3"];
        let child = bench.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        await_handlers(child.id());
        std::thread::sleep(Duration::from_millis(1500));
        for signal in signals {
            rustix::process::kill_process(Pid::from_child(&child), *signal).expect("it is there");
            await_given(child.id());
            std::thread::sleep(Duration::from_millis(3));
        }
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), signals.last().map(|signal| 128 + signal.as_raw()), "{signals:?}");
        // What is in order is compared with the library, which takes longer than 5 ms.
        let said = text(&output.stdout);
        assert_eq!(said.contains("of the 1"), signals.len() == 1, "{signals:?}: {said}");
    }
}

#[test]
fn without_a_gpu_there_is_nothing_to_tune() {
    let bench = Bench::new();
    if lanky::Device::auto().is_cuda() {
        return skipped("without_a_gpu_there_is_nothing_to_tune", "there is a GPU");
    }
    assert!(bench.fail(3, &["tune"]).contains("no GPU to tune: "));
    assert!(bench.fail(3, &["tune", "--gpu"]).contains("no GPU to tune: "));
    assert_eq!(bench.names(), [""; 0]);
    for (args, reason) in [
        (["tune", "--family", "tsm2l"], "tuned as those of tsmm"),
        (["tune", "--family", "batched"], "--device cpu searches those of the CPU"),
        (["tune", "--n", "8"], "--n is of --device cpu"),
        (["tune", "--budget", "soon"], "60s, 5m or 1.5h, or none"),
        (["tune", "--layout", "cc"], "three letters c or r"),
    ] {
        assert!(text(&bench.run(&args).stderr).contains(reason), "{args:?}");
    }
}

/// An H200's database with one cell, whose best is not what the model would choose.
fn database() -> (Database, Cell) {
    let p = Problem::column_major(model::Dtype::F64, 20_480, 4, 20_480);
    let mut weighed: Vec<model::Choice> = model::candidates(&p, &Machine::H200, None).expect("served").collect();
    weighed.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    let timed = |choice: &model::Choice, ns| Timed {
        variant: choice.variant,
        parts: choice.splits,
        expected_parts: choice.splits,
        ns,
    };
    let (class, lengths) = Class::of(&p).expect("unit strides");
    let (best, model) = (timed(&weighed[1], 770_000.0), timed(&weighed[0], 790_000.0));
    let cell = Cell { class, lengths, best, model, noise: 0.002, fraction: 0.95 };
    let origin = Origin {
        gpu: "NVIDIA H200".into(),
        compute_capability: (9, 0),
        sms: 132,
        driver: "580.159".into(),
        commit: "6ce0abf".into(),
        date: "2026-11-22".into(),
    };
    (Database::new(origin, [cell.clone()]), cell)
}

fn plan(bench: &Bench, args: &[&str], tuned: &str) -> (String, String) {
    done(&bench.command(&[&["plan"], args].concat()).env("LANKY_TUNED", tuned).output().expect("it starts"))
}

#[test]
fn a_plan_says_what_it_follows_and_what_the_model_would_do() {
    let bench = Bench::new();
    let (database, cell) = database();
    bench.put("h200.tuned", database.to_string());
    let args = ["20480", "4", "20480", "--gpu", "h200"];
    let (words, noted) = plan(&bench, &args, "h200.tuned");
    assert!(noted.is_empty() && words.contains(&format!("entry     {}\n", cell.best.variant.entry)), "{words}{noted}");
    let measured = "tuned     measured 770.0 us in ";
    let by = " at m = 20480, n = 4, k = 20480 by database h200.tuned (commit 6ce0abf, driver 580.159, 2026-11-22)";
    assert!(words.contains(measured) && words.contains(by), "{words}");
    let own = cell.model.variant.entry;
    assert!(
        words.contains(&format!("model     {own} in ")) && words.contains("was measured to take 790.0 us"),
        "{words}"
    );
    let object: Value = serde_json::from_str(&plan(&bench, &[&args[..], &["--json"]].concat(), "h200.tuned").0)
        .expect("one JSON value");
    assert_eq!((object["chooser"].as_str(), object["entry"].as_str()), (Some("tuned"), Some(cell.best.variant.entry)));
    let tuned = &object["tuned"];
    assert_eq!((tuned["seconds"].as_f64(), tuned["model_seconds"].as_f64()), (Some(770e-6), Some(790e-6)));
    assert_eq!((tuned["model_entry"].as_str(), &tuned["at"][0]), (Some(own), &Value::from(20_480)));
    // Nobody asks it where the caller names a variant, the data is in the cache, or the model alone is to decide.
    for (more, by) in
        [(vec!["--variant", "tsm2r_inner"], "h200.tuned"), (vec!["--beta", "1"], "h200.tuned"), (vec![], "none")]
    {
        let (words, noted) = plan(&bench, &[&args[..], &more].concat(), by);
        assert!(noted.is_empty() && !words.contains("by measurements"), "{more:?} {by}: {words}");
    }
    let cached = plan(&bench, &["100", "4", "1000", "--gpu", "h200", "--cached"], "h200.tuned").0;
    assert!(cached.contains("by the model"), "{cached}");
}

#[test]
fn a_refused_database_is_named_once_and_the_model_decides() {
    let bench = Bench::new();
    let (database, _) = database();
    let whole = database.to_string();
    bench.put("h200.tuned", &whole);
    bench.put("damaged.tuned", whole.replace("770000.0", "570000.0"));
    bench.put("version.tuned", whole.replacen("tuned 1", "tuned 2", 1));
    let args = |gpu| ["20480", "4", "20480", "--gpu", gpu];
    for (gpu, file, reason) in [
        ("h200", "damaged.tuned", "damaged.tuned: it was changed or damaged: its check is "),
        ("h200", "version.tuned", "version.tuned: line 1: it is of version 2, but required is 1: tune again"),
        ("h200", "absent.tuned", "absent.tuned: no such file or directory"),
        (
            "a100",
            "h200.tuned",
            "h200.tuned: it is of NVIDIA H200 of compute capability 9.0 with 132 SMs, but required is NVIDIA A100",
        ),
    ] {
        let (words, noted) = plan(&bench, &args(gpu), file);
        assert!(words.contains("chosen    by the model") && !words.contains("measured"), "{words}");
        assert!(
            noted.starts_with(&format!("LANKY_TUNED: {reason}")) && noted.ends_with("; the model decides\n"),
            "{noted}"
        );
        assert_eq!(noted.lines().count(), 1, "{noted}");
        assert!(!noted.contains("os error"), "{noted}");
        if file != "h200.tuned" {
            assert!(bench.fail(2, &["tune", "--from", file]).contains(reason));
        }
    }
}

#[test]
fn a_database_is_compared_and_drawn_without_a_gpu() {
    let bench = Bench::new();
    bench.put("h200.tuned", database().0.to_string());
    let output = bench.run(&["tune", "--from", "h200.tuned", "--compare", "--map", "maps"]);
    let (said, _) = done(&output);
    assert!(said.starts_with("h200.tuned: 1 shape of NVIDIA H200, 2026-11-22; "), "{said}");
    assert!(said.contains("tsm2r    the model's choice took 1.026 times as long as the best of 1 shape in"), "{said}");
    let (json, _) = done(&bench.run(&["tune", "--from", "h200.tuned", "--json"]));
    let object: Value = serde_json::from_str(&json).expect("one JSON value");
    assert_eq!((object["losses"][0]["family"].as_str(), object["measured"].is_null()), (Some("tsm2r"), true));
}
