//! `lanky trace`: kernels on the CPU, counted; no GPU.

mod common;

use common::{Bench, text};
use serde_json::Value;

/// The one value that a run prints.
fn traced(bench: &Bench, args: &[&str]) -> Value {
    let output = bench.run(&[&["trace"], args, &["--json"]].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).expect("one JSON value")
}

/// TSM2X's claims about memory, at a shape with a full tile each way: m = k = 256, n = 4.
#[test]
fn the_papers_claims_can_be_seen() {
    let bench = Bench::new();
    let (m, n, k, t1) = (256, 4, 256, 128);
    let ladder = ["tsm2r_inner", "tsm2r_outer", "tsm2r_shared", "tsm2r_shared_rowmajor", "tsm2r_prefetch"];
    for (step, variant) in ladder.into_iter().enumerate() {
        let args = ["tsm2r", "--variant", variant, "--m", "256", "--n", "4", "--k", "256", "--dtype", "f64"];
        let trace = traced(&bench, &args);
        let operand = |name: &str, key: &str| trace["operands"][name][key].as_f64().expect("a number");
        assert_eq!(trace["fma"], m * n * k, "{variant}");
        assert_eq!(trace["barriers"], if step < 2 { 0 } else { (m / t1) * (k / t1) * 2 }, "{variant}");
        assert_eq!(trace["operands"]["A"]["elements_loaded"], m * k * if step == 0 { n } else { 1 }, "{variant}");
        assert_eq!(trace["operands"]["B"]["elements_loaded"], k * n * if step < 2 { m } else { m / t1 }, "{variant}");
        assert_eq!(trace["operands"]["C"]["elements_loaded"], 0, "{variant}");
        assert_eq!((operand("A", "efficiency"), operand("C", "efficiency")), (1.0, 1.0), "{variant}");
        assert_eq!(operand("B", "efficiency"), if step < 2 { 0.25 } else { 1.0 }, "{variant}");
        assert_eq!(operand("B", "bytes_used") / operand("B", "bytes_moved"), operand("B", "efficiency"), "{variant}");
        let stores = trace["shared"]["stores"].as_u64().expect("a count");
        // Two wavefronts for 32 lanes of 8 bytes; four times as many where four lanes meet in a bank.
        let conflicts = if variant == "tsm2r_shared_rowmajor" { stores * 2 * 3 } else { 0 };
        assert_eq!(trace["shared"]["bank_conflicts"], conflicts, "{variant}");
        assert_eq!(trace["shared"]["loads"].as_u64() > Some(0), step >= 2, "{variant}");
    }
}

#[test]
fn an_entry_is_chosen_by_its_columns_or_named() {
    let bench = Bench::new();
    let entry = |args: &[&str]| traced(&bench, &[&["tsm2r", "--m", "130", "--k", "9"], args].concat())["entry"].clone();
    assert_eq!(entry(&["--n", "5", "--variant", "tsm2r_shared"]), "dtsm2r_shared_1x8_u4_t128");
    assert_eq!(entry(&["--n", "40", "--variant", "tsm2r_outer", "--dtype", "f32"]), "stsm2r_outer_1x16_u1_t128");
    let named = "dtsm2r_prefetch_1x8_u4_t256";
    assert_eq!(entry(&["--n", "3", "--variant", named]), named);
}

#[test]
fn parts_and_factors_are_counted_too() {
    let bench = Bench::new();
    let shape = ["tsm2r", "--variant", "tsm2r_outer", "--m", "33", "--n", "3", "--k", "300"];
    let plain = traced(&bench, &shape);
    assert_eq!((&plain["operands"]["slots"], &plain["grid"][1]), (&Value::Null, &1.into()));
    let split = traced(&bench, &[&shape[..], &["--splits", "2", "--beta", "-1"]].concat());
    assert_eq!((&split["grid"][1], &split["operands"]["C"]["elements_loaded"]), (&2.into(), &(33 * 3).into()));
    assert_eq!(split["operands"]["slots"]["elements_stored"], 2 * 33 * 3);
    assert_eq!(split["operands"]["slots"]["elements_loaded"], 2 * 33 * 3);
    // Where a tile's last block joins its parts, slots are of whole tiles.
    for (operation, variant, tiles_len) in [
        ("gemm", "dgemm_mma_32x32_m64_n64_k32_s3_t128", 2 * 64 * 64),
        ("tsm2r", "dtsm2r_mma_16x16_n16_k32_s3_t128", 2 * 3 * 64 * 16),
    ] {
        let shape = [operation, "--variant", variant, "--m", "65", "--n", "33", "--k", "100"];
        let joined = traced(&bench, &[&shape[..], &["--splits", "3", "--beta", "-1"]].concat());
        assert_eq!((&joined["grid"][1], &joined["operands"]["C"]["elements_stored"]), (&3.into(), &(65 * 33).into()));
        let slots = &joined["operands"]["slots"];
        let moved = (&slots["elements_stored"], &slots["elements_loaded"]);
        assert_eq!(moved, (&(3 * tiles_len).into(), &(3 * tiles_len).into()), "{variant}");
    }
    // By rows, neighbouring threads load from far apart.
    let by_rows = traced(&bench, &[&shape[..], &["--layout", "rcc"]].concat());
    assert!(by_rows["operands"]["A"]["efficiency"].as_f64() <= Some(0.25), "{by_rows}");
}

/// Without a variant each of the operation has its turn; without `--json` they are tables.
#[test]
fn a_whole_operation_is_traced() {
    let bench = Bench::new();
    let shape = ["--m", "20", "--n", "2", "--k", "20"];
    let ladder = traced(&bench, &[&["tsm2r"], &shape[..]].concat());
    let mut names: Vec<&str> =
        ladder.as_array().expect("an array").iter().filter_map(|t| t["variant"].as_str()).collect();
    assert!(names.starts_with(&["tsm2r_inner", "tsm2r_outer", "tsm2r_shared"]), "{names:?}");
    let len = names.len();
    names.dedup();
    assert_eq!(names.len(), len);
    let output = bench.run(&[&["trace", "gemm"], &shape[..]].concat());
    let table = text(&output.stdout);
    for word in ["dgemm_tiled", "efficiency", "bank conflicts", "barriers"] {
        assert!(table.contains(word), "{table}");
    }
}

#[test]
fn a_drawing_is_svg_with_a_panel_for_each_instruction() {
    let bench = Bench::new();
    let path = bench.path("warp.svg");
    let file = path.to_str().expect("a path in UTF-8");
    let shape = ["tsm2r", "--variant", "tsm2r_shared_rowmajor", "--m", "128", "--n", "4", "--k", "128"];
    traced(&bench, &[&shape[..], &["--svg", file]].concat());
    let drawing = std::fs::read_to_string(&path).expect("a file");
    let document = roxmltree::Document::parse(&drawing).expect("well-formed");
    let titles: Vec<&str> = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("title"))
        .filter_map(|node| node.text())
        .collect();
    for panel in ["load from A", "load from B", "store to shared memory", "load from shared memory", "store to C"] {
        assert!(titles.iter().any(|title| title.starts_with(panel)), "{panel}: {titles:?}");
    }
    let used = document.descendants().filter(|node| node.attribute("class") == Some("word used")).count();
    // A, B and C: 32 lanes of two words; the tile's rows: 32 of two words; a broadcast of 16 bytes.
    assert_eq!(used, 4 * 64 + 4);
}

#[test]
fn what_cannot_be_traced_is_refused_in_a_line() {
    let bench = Bench::new();
    let joined = "dgemm_mma_32x32_m64_n64_k32_s3_t128";
    for (args, words) in [
        (&["tsm3r"][..], "no kernels of 'tsm3r'"),
        (&["tsm2r", "--variant", "tsm2r_faster"], "unknown variant 'tsm2r_faster'"),
        (&["tsm2r", "--variant", "stsm2r_inner_1x1_u1_t128"], "no entry for f64"),
        (&["gemm", "--variant", "gemm_four_fixed", "--n", "65"], "multiples of 64, 64 and 32"),
        (&["tsm2r", "--m", "0"], "at least 1"),
        (&["tsm2r", "--m", "100000", "--k", "100000"], "too long"),
        (&["tsm2r", "--m", "1", "--n", "1", "--k", "4000000000"], "too long"),
        (&["tsm2r", "--m", "5000000", "--n", "4", "--k", "4"], "C: 20000000 elements are too many"),
        (&["tsm2r", "--layout", "sideways"], "column-major"),
        (&["tsm2r", "--splits", "0"], "--splits"),
        (
            &["gemm", "--variant", joined, "--m", "65", "--n", "65537", "--k", "8", "--splits", "2"],
            "1024 tiles of C, not for 2050",
        ),
        (&["tsm2r", "--beta", "some"], "--beta"),
        (&["tsm2r", "--svg", "x.svg"], "--variant"),
    ] {
        let said = bench.fail(2, &[&["trace"], args].concat());
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

/// What each rung of the ladder for squares is for, in what a profiler would count: m = n = k = 64, f32, all by columns.
#[test]
fn rungs_of_squares_do_what_they_are_for() {
    let bench = Bench::new();
    let side = 64_u64;
    let of = |entry: &str| {
        let entry = format!("s{entry}");
        traced(&bench, &["gemm", "--variant", &entry, "--m", "64", "--n", "64", "--k", "64", "--dtype", "f32"])
    };
    let number = |trace: &Value, path: &[&str]| {
        path.iter()
            .fold(trace.clone(), |at, key| at[*key].clone())
            .as_u64()
            .unwrap_or_else(|| panic!("{path:?}: {trace}"))
    };
    let loads = |trace: &Value, name: &str| number(trace, &["operands", name, "elements_loaded"]);
    let naive = of("gemm_naive_1x1_k32_t1024");
    assert_eq!((loads(&naive, "A"), loads(&naive, "B")), (side.pow(3), side.pow(3)));
    let (against, along) = (of("gemm_uncoalesced_1x1_k32_t1024"), of("gemm_coalesced_1x1_k32_t1024"));
    // Tiles are read once for each 32 columns or rows; against the grain an eighth of each sector is used, and a bank at a time.
    for trace in [&against, &along] {
        assert_eq!((loads(trace, "A"), loads(trace, "B")), (side.pow(3) / 32, side.pow(3) / 32));
    }
    let efficiency = |trace: &Value| trace["operands"]["A"]["efficiency"].as_f64().expect("a number");
    assert_eq!((efficiency(&against), efficiency(&along)), (0.125, 1.0));
    let conflicts = |trace: &Value| number(trace, &["shared", "store_bank_conflicts"]);
    assert!(conflicts(&against) > 0 && conflicts(&along) == 0, "{against}");
    // Smaller tiles are read more often.
    assert_eq!(loads(&of("gemm_coalesced_1x1_k8_t64"), "A"), side.pow(3) / 8);
    let barriers = |trace: &Value| number(trace, &["barriers"]);
    let (plain, both) = (barriers(&along), barriers(&of("gemm_unrolled_1x1_k64_t1024")));
    assert_eq!((plain, 2 * barriers(&of("gemm_interleaved_1x1_k32_t1024"))), (2 * both, plain));
    // Four elements a thread: half the elements of shared memory.
    let shared = |trace: &Value| number(trace, &["shared", "loads"]);
    assert_eq!(shared(&along), 2 * shared(&of("gemm_four_2x2_k32_t1024")));
}

/// The rings for squares take their operands either way: each element is copied once, and whole sectors; nobody meets in a bank, but where
/// the matrix units' A lies along k, whose fragments come by elements, of which a load has every second one.
#[test]
fn stages_of_squares_are_filled_by_whole_sectors_and_read_without_conflicts() {
    let bench = Bench::new();
    for (entry, dtype, side) in
        [("dgemm_mma_32x32_m64_n64_k32_s3_t128", "f64", 64), ("sgemm_staged_8x16_m128_n128_k8_s3_t128", "f32", 128)]
    {
        for layout in ["ccc", "rcc", "crc", "rrc"] {
            let sides = side.to_string();
            let shape = ["gemm", "--variant", entry, "--dtype", dtype, "--m", &sides, "--n", &sides, "--k", "160"];
            let trace = traced(&bench, &[&shape[..], &["--layout", layout]].concat());
            for name in ["A", "B"] {
                let operand = &trace["operands"][name];
                assert_eq!(
                    (&operand["elements_loaded"], &operand["efficiency"]),
                    (&(160 * side).into(), &1.0.into()),
                    "{layout}"
                );
            }
            let conflicts = trace["shared"]["bank_conflicts"].as_u64().expect("a number") > 0;
            let by_elements = dtype == "f64" && layout.starts_with('r');
            assert_eq!((&trace["operands"]["C"]["efficiency"], conflicts), (&1.0.into(), by_elements), "{layout}");
        }
    }
}

/// A matrix and a vector: n is 1, k is added by the last block or another launch, and (e) of Sørensen's paper keeps its lanes
/// busy where there are few rows.
#[test]
fn vectors_are_traced() {
    let bench = Bench::new();
    let low = |variant: &str| {
        traced(&bench, &["gemv", "--variant", variant, "--m", "8", "--k", "1024", "--dtype", "f32"])["operands"]["A"]
            .clone()
    };
    let (wide, plain) = (low("gemv_wide"), low("gemv_one_thread"));
    assert_eq!((&wide["elements_loaded"], &plain["elements_loaded"]), (&8192.into(), &8192.into()));
    // Sixteen bytes for each lane of a packed matrix, and no lane idle: a sixteenth of the requests of eight lanes with four.
    assert_eq!((&wide["requests"], &plain["requests"]), (&64.into(), &1024.into()), "{wide} {plain}");
    // Few slots are added by the last block, at two barriers more a block and two of its own, many by a launch of two blocks; each is written and read once.
    for (rows, steps, parts, barriers) in [(64, 300, 2, 2 * (2 + 2) + 2), (64, 12_800, 200_u64, 2 * 200 + 2)] {
        let [m, k, splits] = [rows, steps, parts].map(|x: u64| x.to_string());
        let shape = ["gemv", "--variant", "gemv_columns", "--m", &m, "--k", &k, "--splits", &splits, "--beta", "1"];
        let trace = traced(&bench, &shape);
        let operands = &trace["operands"];
        assert_eq!((&operands["A"]["elements_loaded"], &trace["grid"][1]), (&(steps * rows).into(), &parts.into()));
        assert_eq!(trace["barriers"], barriers);
        assert!(operands["slots"]["elements_loaded"].as_u64() >= Some(parts * rows), "{trace}");
        assert_eq!(
            (&operands["C"]["elements_loaded"], &operands["C"]["elements_stored"]),
            (&rows.into(), &rows.into())
        );
    }
    // Dot products want rows.
    let by_rows = traced(&bench, &["gemv", "--variant", "gemv_dots", "--m", "32", "--k", "512", "--layout", "rcc"]);
    assert_eq!(by_rows["operands"]["A"]["efficiency"], 1.0);
    let said = bench.fail(2, &["trace", "gemv", "--n", "2"]);
    assert!(said.contains("--n 2: gemv multiplies by a vector"), "{said}");
}
