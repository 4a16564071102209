//! `lanky bench` on the CPU.

mod common;

use common::{Bench, HEADER, SMALL, alone, plus, text};
use serde_json::Value;

#[test]
fn a_run_has_a_table_a_file_and_json() {
    let bench = Bench::new();
    let output = alone(&bench, &plus(&SMALL, &["--beta", "1", "--layout", "ccc,rcr", "--csv", "r.csv"]));
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
    assert!(csv.lines().skip(1).all(|line| line.contains(",cpu,model,,5,")), "{csv}");
    assert_eq!(bench.names(), ["r-ceilings.csv", "r.csv"], "nothing was forced");
    let ceilings = text(&bench.get("r-ceilings.csv"));
    let kinds: Vec<&str> = ceilings.lines().skip(1).filter_map(|line| line.rsplit(',').nth(19)).collect();
    assert_eq!(kinds, ["read", "copy", "write", "update", "fma", "fma"], "{ceilings}");
    assert_eq!(ceilings.lines().next(), Some(HEADER));

    let output = alone(&bench, &plus(&SMALL, &["--json"]));
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
    let read = &object["ceiling_rows"][0];
    let rate = read["bytes"].as_f64().zip(read["ns_min"].as_f64()).map(|(bytes, ns)| bytes / ns);
    let near = rate.zip(object["ceilings"]["read_gbs"].as_f64()).map(|(rate, gbs)| (rate / gbs - 1.0).abs());
    assert!(near.is_some_and(|near| near <= 1e-4) && read["family"] == "ceiling" && read["gbs"].is_number(), "{read}");
    assert!(rows.iter().all(|row| row["launch"].is_null() && row["error_of_measurement"] == false), "{object}");
}

/// What the table prints, what the file holds, and what JSON says are the same numbers.
#[test]
fn table_file_and_json_have_the_same_numbers() {
    let bench = Bench::new();
    let args = plus(&SMALL, &["--against", "none", "--json", "--csv", "r.csv"]);
    let object: Value = serde_json::from_slice(&bench.run(&args).stdout).expect("one JSON value");
    let csv = text(&bench.get("r.csv"));
    let names: Vec<&str> = HEADER.split(',').collect();
    for (row, line) in object["rows"].as_array().expect("rows").iter().zip(csv.lines().skip(1)) {
        // Names of devices have commas.
        let quoted: Vec<&str> = line.split('"').collect();
        let line = if quoted.len() == 3 { [quoted[0], "device", quoted[2]].concat() } else { line.into() };
        let fields: Vec<&str> = line.split(',').collect();
        for name in ["ns_median", "ns_low", "ns_high", "ns_min", "bytes", "flops", "gbs", "bound_ns", "fraction"] {
            let field = fields[names.iter().position(|known| *known == name).expect("a column")];
            assert_eq!(field.parse::<f64>().ok(), row[name].as_f64(), "{name} of {line}");
        }
        let number = |name: &str| row[name].as_f64().expect(name);
        assert_eq!(format!("{:.4}", number("bound_ns") / number("ns_median")), format!("{:.4}", number("fraction")));
        assert_eq!(format!("{:.3}", number("bytes") / number("ns_median")), format!("{:.3}", number("gbs")));
    }
}

#[test]
fn the_seed_is_recorded() {
    let bench = Bench::new();
    let args = plus(&SMALL, &["--against", "none", "--dtype", "f32", "--seed", "77", "--csv", "r.csv"]);
    assert!(bench.run(&args).status.success());
    for name in ["r.csv", "r-ceilings.csv"] {
        let csv = text(&bench.get(name));
        let seeds: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.rsplit(',').nth(3)).collect();
        assert!(!seeds.is_empty() && seeds.iter().all(|seed| *seed == "77"), "{csv}");
    }
}

#[test]
fn a_quick_run_leaves_large_data_out() {
    let bench = Bench::new();
    let args = ["--device", "cpu", "--quick", "--dtype", "f64", "--beta", "0", "--samples", "3"];
    // 8 (5000 x 5000 + ..) bytes fit into 256 MiB, 8 (6000 x 6000 + ..) do not.
    let args = plus(&["bench", "--m", "90,6000", "--k", "70,6000", "--n", "2"], &args);
    let words = text(&alone(&bench, &args).stdout);
    assert!(words.contains("3 rows\n1 case not run: it is larger than --quick takes"), "{words}");
    let late = text(&alone(&bench, &plus(&args, &["--time-limit", "0"])).stdout);
    assert!(late.contains("0 rows") && late.contains("3 cases not run: the time was up"), "{late}");
}

/// All families are computed by what there is, each checked, but for batches.
#[test]
fn every_family_is_served() {
    let bench = Bench::new();
    let tall = ["--family", "tsmm,tsm2l", "--m", "300", "--n", "3,5"];
    let wide = ["--family", "tsmttsm,gram", "--k", "300", "--n", "3,5"];
    let vector = ["--family", "gemv,gemm", "--m", "90", "--k", "70", "--n", "1"];
    for (family, count) in [(&tall[..], 16), (&wide, 16), (&vector, 8)] {
        let args = [&["bench", "--device", "cpu", "--samples", "3", "--layout", "rrr", "--json"][..], family].concat();
        let output = alone(&bench, &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        let rows = object["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), count, "{object}");
        for row in rows {
            assert!(row["variant"] == "cpu" && row["ns_median"].is_number(), "{row}");
            let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row}"));
            let (m, n, k) = (number("m"), number("n"), number("k"));
            match row["family"].as_str() {
                // k x n twice of what is one matrix, and one triangle of C.
                Some("gram") => {
                    assert_eq!((m, row["op_a"].as_str(), row["op_b"].as_str()), (n, Some("t"), Some("n")), "{row}");
                    let element = if row["dtype"] == "f32" { 4 } else { 8 };
                    let read_c = if row["beta"] == 1 { n * n } else { 0 };
                    assert_eq!(
                        (number("bytes"), number("flops")),
                        (element * (k * n + n * n + read_c), n * (n + 1) * k)
                    );
                }
                Some("tsmttsm") => assert_eq!((m, k, number("flops")), (n, 300, 2 * m * n * k), "{row}"),
                Some("tsmm" | "tsm2l") => assert_eq!((m, k), (300, n), "{row}"),
                _ => assert_eq!((m, n, k), (90, 1, 70), "{row}"),
            }
        }
    }
    let error = bench.fail(2, &["bench", "--family", "gram", "--n", "3", "--ops", "nn", "--device", "cpu"]);
    assert!(error.contains("a Gram matrix is of one matrix"), "{error}");
}

#[test]
fn what_is_not_run_is_counted() {
    let bench = Bench::new();
    let suite = ["bench", "--device", "cpu", "--time-limit", "0", "--suite", "default", "--family"];
    let words = text(&alone(&bench, &plus(&suite, &["batched"])).stdout);
    assert!(words.contains("0 rows\n"), "{words}");
    assert!(words.contains("cases not run: the time was up"), "{words}");
    let many = ["bench", "--device", "cpu", "--time-limit", "0", "--family", "gemm", "--batch", "7", "--m", "5"];
    let words = text(&alone(&bench, &many).stdout);
    assert!(words.contains("not run: gemm of many at once is not there"), "{words}");
    let words = text(&alone(&bench, &plus(&suite, &["gram,gemv", "--dtype", "f32,f64"])).stdout);
    assert!(words.contains("0 rows\n") && words.contains("cases not run: the time was up"), "{words}");
    assert!(!words.contains("kernels of its own"), "{words}");
    let words = text(&alone(&bench, &plus(&suite, &["gemm"])).stdout);
    assert!(words.contains("189 cases not run: the time was up"), "{words}");
    let args =
        ["bench", "--device", "cpu", "--n", "3,3", "--m", "60,60", "--k", "70", "--dtype", "f32", "--time-limit", "0"];
    let words = text(&alone(&bench, &args).stdout);
    assert!(words.contains("6 cases not run: it is there twice\n2 cases not run: the time was up"), "{words}");
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
    assert!(words.contains("tsm2r c64 8 x 4 x 6") && words.contains("2 rows\n"), "{words}");
    assert_eq!(
        text(&alone(&bench, &plus(&args[..5], &["--suite", "s.csv"])).stdout).lines().count(),
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
        &["--beta", "nan"],
        &["--family", "gemm", "--suite", "default", "--layout", "rrr"],
    ] {
        bench.fail(2, &plus(&["bench", "--device", "cpu"], args));
    }
}

/// Numbers that are none, or that no time or share can be, are refused with the name of the flag.
#[test]
fn numbers_that_are_none_are_refused() {
    let bench = Bench::new();
    for (flag, value) in [
        ("--beta", "nan"),
        ("--beta", "inf"),
        ("--beta", "-inf"),
        ("--beta", "1,NaN"),
        ("--time-limit", "nan"),
        ("--time-limit", "inf"),
        ("--time-limit", "-1"),
        ("--time-limit", "-inf"),
        ("--tolerance", "nan"),
        ("--tolerance", "inf"),
        ("--tolerance", "-1"),
        ("--samples", "-1"),
        ("--seed", "nan"),
    ] {
        let error = bench.fail(2, &["bench", "--device", "cpu", flag, value]);
        assert!(error.contains(flag), "{flag} {value}: {error}");
    }
    bench.put(
        "s.csv",
        "family,source,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,note\ngemm,x,f32,ccc,n,n,nan,4,5,6,,,,1,\n",
    );
    let error = bench.fail(2, &["bench", "--device", "cpu", "--suite", "s.csv"]);
    assert!(error.contains("s.csv: line 2: beta is 'nan', not a finite number"), "{error}");
    // A negative one is a number as others are.
    let output = alone(&bench, &plus(&SMALL, &["--beta", "-0.5", "--dtype", "f32"]));
    assert!(text(&output.stdout).contains("beta -0.5"), "{}", text(&output.stderr));
}

#[test]
fn comparing_finds_what_became_slower() {
    let bench = Bench::new();
    let row = |n: u32, ns: u32| {
        format!(
            "tsm2r,f64,ccc,n,n,0,100,{n},50,100,50,100,1,gpu,v,model,,30,{ns},{},{},{},1000,1000,{:.3},500,{:.4},,,,1,,,\n",
            ns - 9,
            ns + 9,
            ns - 20,
            1000.0 / f64::from(ns),
            500.0 / f64::from(ns)
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
    let json = bench.run(&["bench", "--compare", "old.csv", "new.csv", "--json"]);
    let object: Value = serde_json::from_slice(&json.stdout).expect("one JSON value");
    assert_eq!((json.status.code(), &object["in_both"], &object["tolerance"]), (Some(1), &2.into(), &5.0.into()));
    let slower = &object["slower"][0];
    assert_eq!((&slower["case"], &slower["old_ns"]), (&"tsm2r f64 100 x 2 x 50".into(), &1000.0.into()));
    assert!(slower["percent"].as_f64().is_some_and(|percent| (percent - 10.0).abs() <= 1e-9), "{object}");
    assert_eq!(
        (object["faster"].as_array().map(Vec::len), object["vanished"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
    // What is no longer there is a failure, and what is new is listed.
    bench.put("less.csv", format!("{HEADER}\n{}{}", row(2, 1000), row(8, 1000)));
    let less = bench.run(&["bench", "--compare", "old.csv", "less.csv"]);
    assert_eq!(less.status.code(), Some(1));
    assert_eq!(text(&less.stderr), "lanky: 1 case vanished: tsm2r f64 100 x 4 x 50\n");
    let words = text(&less.stdout);
    assert!(words.contains("vanished:\n  tsm2r f64 100 x 4 x 50\nnew:\n  tsm2r f64 100 x 8 x 50\n"), "{words}");
    bench.put("other.csv", format!("{HEADER}\n{}", row(8, 1000)));
    assert!(bench.fail(2, &["bench", "--compare", "old.csv", "other.csv"]).contains("no case in common"));
    bench.put("broken.csv", "a,b\n");
    assert!(bench.fail(2, &["bench", "--compare", "old.csv", "broken.csv"]).contains("broken.csv: no results"));
}

#[test]
fn the_commit_may_be_told() {
    let bench = Bench::new();
    let args = plus(&SMALL, &["--against", "none", "--dtype", "f32", "--csv", "r.csv"]);
    let output = bench.command(&args).env("LANKY_COMMIT", "abc,1").output().expect("the program starts");
    assert!(output.status.success());
    let csv = text(&bench.get("r.csv"));
    assert!(csv.lines().nth(1).is_some_and(|row| row.contains(",\"abc,1\",,20")), "{csv}");
    // Else it is the one that the program was built from, wherever it is run.
    let output = bench.command(&args).env_remove("LANKY_COMMIT").output().expect("the program starts");
    assert!(output.status.success());
    let csv = text(&bench.get("r.csv"));
    let commit = csv.lines().nth(1).and_then(|row| row.rsplit(',').nth(2)).expect("a commit");
    let hash = commit.strip_suffix("-dirty").unwrap_or(commit);
    let is_hash = hash.len() >= 7 && hash.bytes().all(|letter| letter.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{commit}");
}
