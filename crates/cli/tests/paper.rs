//! `lanky plan --paper`: TSM2X's own reasoning, in words and as an object.

mod common;

use common::{Bench, object, says};

/// GPU, dtype, m, n: t1, t2, t3, registers (Table 3 where n = 16, elsewhere its constant and Eq. 1), threshold. Table 3 has no
/// A100: t2 and t3 are Algorithm 5's there, and the constant is a V100's.
#[test]
fn the_papers_reasoning_has_the_papers_numbers() {
    let bench = Bench::new();
    for (gpu, dtype, m, n, [t1, t2, t3, registers], threshold, bound) in [
        ("k40c", "f32", "10240", "16", [128_u64, 16, 4, 64], 35.0, "memory"),
        ("k40c", "f64", "10240", "16", [128, 16, 4, 128], 19.9, "memory"),
        ("m40", "f32", "10240", "16", [256, 8, 4, 40], 47.5, "memory"),
        ("m40", "f64", "10240", "16", [256, 8, 4, 70], 3.0, "compute"),
        ("p100", "f32", "10240", "16", [128, 4, 4, 32], 29.4, "memory"),
        ("p100", "f64", "10240", "16", [128, 4, 4, 56], 25.6, "memory"),
        ("v100", "f32", "10240", "16", [128, 16, 32, 144], 33.3, "memory"),
        ("v100", "f64", "10240", "16", [128, 16, 16, 180], 33.3, "memory"),
        ("v100", "f64", "40960", "16", [128, 16, 12, 168], 33.3, "memory"),
        ("k40c", "f32", "10240", "2", [128, 2, 4, 22], 35.0, "memory"),
        ("k40c", "f64", "10240", "8", [128, 8, 4, 80], 19.9, "memory"),
        ("m40", "f64", "10240", "2", [256, 8, 4, 70], 3.0, "memory"),
        ("m40", "f64", "10240", "8", [256, 8, 4, 70], 3.0, "compute"),
        ("p100", "f64", "10240", "4", [128, 4, 4, 56], 25.6, "memory"),
        ("v100", "f64", "10240", "2", [128, 2, 16, 96], 33.3, "memory"),
        ("v100", "f64", "10240", "4", [128, 4, 16, 108], 33.3, "memory"),
        ("v100", "f64", "40960", "8", [128, 8, 12, 120], 33.3, "memory"),
        ("a100", "f32", "10240", "2", [128, 2, 2, 42], 25.08, "memory"),
        ("a100", "f32", "10240", "16", [128, 16, 3, 86], 25.08, "memory"),
        ("a100", "f64", "10240", "2", [128, 2, 1, 36], 24.95, "memory"),
        ("a100", "f64", "10240", "8", [128, 8, 2, 76], 24.95, "memory"),
        ("a100", "f64", "10240", "16", [128, 16, 3, 128], 24.95, "memory"),
    ] {
        let paper = object(&bench, &[m, n, m, "--dtype", dtype, "--gpu", gpu, "--paper"]);
        for (key, value) in [("t1", t1), ("t2", t2), ("t3", t3), ("registers", registers)] {
            assert_eq!(paper[key], value, "{gpu} {dtype} {m} {n}: {key}");
        }
        assert_eq!(paper["bound"], bound, "{gpu} {dtype} {n}");
        assert!((paper["t2_threshold"].as_f64().expect("a number") - threshold).abs() < 0.06, "{gpu} {dtype}: {paper}");
        let shared = t1 * t2 * if dtype == "f64" { 8 } else { 4 };
        assert_eq!(paper["shared_bytes"], shared, "{gpu} {dtype}");
        for key in ["utilisation_memory", "utilisation_compute"] {
            assert!(paper[key].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0), "{gpu} {dtype}: {key}");
        }
        for key in ["occupancy", "algorithm5_t2", "algorithm5_t3", "descent_t2", "descent_t3"] {
            assert!(paper[key].as_u64().is_some_and(|value| value >= 1), "{gpu} {dtype}: {key}");
        }
    }
}

/// The descent moves from its start, (1, 1), and ends short of the scan, whose time is the less.
#[test]
fn the_descent_and_the_scan_end_where_they_did() {
    let paper = object(&Bench::new(), &["20480", "16", "20480", "--dtype", "f64", "--gpu", "v100", "--paper"]);
    let ends = ["descent_t2", "descent_t3", "algorithm5_t2", "algorithm5_t3"].map(|key| paper[key].as_u64());
    assert_eq!(ends, [16, 1, 16, 2].map(Some), "{paper}");
}

#[test]
fn the_papers_steps_can_be_read() {
    let bench = Bench::new();
    let words = says(&bench, &["10240", "16", "10240", "--dtype", "f64", "--gpu", "v100", "--paper"]);
    for step in [
        "16 columns <= threshold t2* = e P / (2 BW) = 8 x 7500 / (2 x 900) = 33.3: memory bound",
        "20 + 2 (3 x 16 + 2 x 16) = 180 a thread",
        "128 x 16 x 8 = 16384 bytes a block",
        "min(2048, 65536 / 180, 98304 / 128) = 364 threads an SM",
        "t1 = 128, t2 = 16, t3 = 16: what the paper used (Table 3)",
    ] {
        assert!(words.contains(step), "{step}\n{words}");
    }
    // A GPU that the paper has not, and a product that is computed transposed.
    let words = says(&bench, &["16", "20480", "20480", "--gpu", "H200", "--paper"]);
    assert!(words.contains("= 29.2: memory bound") && words.contains("transposed"), "{words}");
    assert!(words.contains("Table 3 does not have NVIDIA H200: C0 = 20, a V100's"), "{words}");
    // Table 3 has f32 and f64 alone: 32 registers of a V100 in f32 are there in c64 too.
    for (gpu, known) in [("v100", "C0 = 32, that in f32,"), ("h200", "C0 = 32, that in f32 of a V100,")] {
        let args = ["10240", "16", "10240", "--dtype", "c64", "--gpu", gpu, "--paper"];
        let words = says(&bench, &args);
        assert!(words.contains(&format!("Table 3 has no complex types: {known}")), "{words}");
        let rate = if gpu == "v100" { 15_000 } else { 67_000 };
        let quarter =
            format!("P is a quarter of the {rate} GFLOP/s in f32, a complex product being four multiply-adds");
        assert!(words.contains(&quarter) && words.contains(&format!(" = 8 x {} / (2 x ", rate / 4)), "{words}");
        let paper = object(&bench, &args);
        let [t2, t3, registers] = ["t2", "t3", "registers"].map(|key| paper[key].as_u64().expect("a number"));
        assert_eq!(registers, 32 + 2 * (3 * t2 + 2 * t3), "{paper}");
    }
}

/// More than the paper's 16 columns: t2 is that of the authors' kernels, and nobody says that the paper used it.
#[test]
fn wider_products_are_not_the_papers() {
    let bench = Bench::new();
    for (gpu, dtype, sizes, [t2, t3, registers], said) in [
        (
            "v100",
            "f64",
            ["4096", "4096", "4096"],
            [32_u64, 12, 264],
            "t2 of the authors' widest kernel; the paper has n up to 16",
        ),
        (
            "v100",
            "f64",
            ["20480", "64", "20480"],
            [32, 12, 264],
            "t2 of the authors' widest kernel; the paper has n up to 16",
        ),
        ("v100", "f32", ["20480", "64", "20480"], [16, 32, 144], "Table 3's t1, t2 and t3; the paper has n up to 16"),
        ("k40c", "f64", ["20480", "64", "20480"], [16, 4, 128], "Table 3's t1, t2 and t3; the paper has n up to 16"),
        ("m40", "f64", ["20480", "17", "20480"], [8, 4, 70], "Table 3's t1, t2 and t3; the paper has n up to 16"),
    ] {
        let args = [&sizes[..], &["--dtype", dtype, "--gpu", gpu, "--paper"]].concat();
        let paper = object(&bench, &args);
        assert_eq!(["t2", "t3", "registers"].map(|key| paper[key].as_u64()), [t2, t3, registers].map(Some), "{paper}");
        assert_eq!(paper["origin"], "beyond_table3", "{paper}");
        let words = says(&bench, &args);
        assert!(words.contains(said) && !words.contains("what the paper used"), "{words}");
    }
    assert_eq!(object(&bench, &["20480", "16", "20480", "--gpu", "v100", "--paper"])["origin"], "table3");
}

/// What a file changes counts: a V100 with other multipliers and half the registers is none of the paper's.
#[test]
fn a_file_that_is_like_a_gpu_of_the_paper_has_its_own_numbers() {
    let bench = Bench::new();
    let args = ["10240", "16", "10240", "--gpu-file", "gpu.toml", "--paper"];
    bench.put(
        "gpu.toml",
        "like = \"v100\"\nfma_f64_per_s = 1e12\nregisters_per_sm = 32768\nregisters_per_block = 32768\n",
    );
    let paper = object(&bench, &args);
    // 8 x 2000 / (2 x 900) columns.
    assert!((paper["t2_threshold"].as_f64().expect("a number") - 80.0 / 9.0).abs() <= 1e-9, "{paper}");
    assert_eq!((&paper["origin"], &paper["bound"]), (&"algorithm5".into(), &"compute".into()), "{paper}");
    let words = says(&bench, &args);
    assert!(words.contains("8 x 2000 / (2 x 900) = 8.9: compute bound") && words.contains(", 32768 / "), "{words}");
    // One that only is called otherwise is still the paper's.
    bench.put("gpu.toml", "like = \"v100\"\nname = \"mine\"\nlaunch_s = 3e-6\n");
    assert_eq!(object(&bench, &args)["origin"], "table3");
}

/// TSM2L: 1e7 rows, k = n = 16, on the paper's V100 (Section 4.3, Table 4).
#[test]
fn a_tall_products_steps_are_tsm2ls() {
    let bench = Bench::new();
    let args = ["10000000", "16", "16", "--gpu", "v100", "--paper"];
    let paper = object(&bench, &args);
    assert_eq!((paper["operation"].as_str(), paper["launched"].as_str()), (Some("tsmm"), Some("algorithm7")));
    let numbers =
        ["tcf", "threads", "fetches", "t3", "algorithm6_registers", "algorithm7_registers", "algorithm7_c_passes"];
    assert_eq!(numbers.map(|key| paper[key].as_u64()), [4, 2_500_000, 2, 12, 168, 252, 1].map(Some), "{paper}");
    assert_eq!(paper["algorithm6_b_elements"].as_u64(), Some(256 * 78_125));
    assert_eq!(paper["algorithm7_b_elements"].as_u64(), Some(256 * 19_532));
    let words = says(&bench, &args);
    for step in [
        "TSM2L, m = 10000000, n = 16, k = 16, f64",
        "k = 16 leaves a thread 2 fetches of up to t3 = 12",
        "4: 2500000 threads in 19532 blocks for 10000000 rows",
        "5000192 elements of B read, C loaded and stored once, 252 registers",
        "algorithm 7 in f64",
    ] {
        assert!(words.contains(step), "{step}\n{words}");
    }
    // The other way round, in f32; and where k is long there is nothing of it.
    let wide = object(&bench, &["16", "1000000", "16", "--dtype", "f32", "--gpu", "v100", "--paper"]);
    assert_eq!((wide["tcf"].as_u64(), wide["launched"].as_str()), (Some(2), Some("algorithm6")));
    assert_eq!((wide["operation"].as_str(), wide["swapped"].as_bool()), (Some("tsmm"), Some(true)));
    let long = ["20480", "16", "20480", "--gpu", "v100", "--paper"];
    let paper = object(&bench, &long);
    assert_eq!((paper["operation"].as_str(), paper["tcf"].as_u64()), (Some("tsm2r"), None));
    assert!(says(&bench, &long).starts_with("TSM2R") && !says(&bench, &long).contains("algorithm 6"));
}

/// What is neither of the paper's products is not called one.
#[test]
fn a_square_is_not_headed_tsm2r() {
    let bench = Bench::new();
    for (lengths, name) in [(["4096", "4096", "4096"], "gemm"), (["20480", "1", "20480"], "gemv")] {
        let args = [&lengths[..], &["--gpu", "v100", "--paper"]].concat();
        let words = says(&bench, &args);
        assert!(words.starts_with(&format!("{name}, m = ")) && words.contains("as if this were TSM2R"), "{words}");
        assert_eq!(object(&bench, &args)["operation"], name);
    }
}
