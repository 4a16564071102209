//! `lanky plan`: without a GPU, for any GPU that is known or described.

mod common;

use common::{Bench, RESULTS, object, says, text};
use serde_json::Value;

/// A product of each class, as arguments.
const CLASSES: [(&str, &str); 7] = [
    ("gemv", "20480 1 20480"),
    ("tsmm", "1000000 16 16"),
    ("tsmttsm", "16 16 1000000"),
    ("gram", "16 16 1000000 --gram --ops nt"),
    ("tsm2r", "20480 16 20480"),
    ("gemm", "2048 2048 2048"),
    ("gemm_batched", "8 8 8 --batch 10000"),
];

/// Whether no kernel can be told to compute a class there: those of batches are not made for what is older than 8.0, and of a
/// C2050's 63 registers a thread many need more.
fn is_refused(gpu: &str, machine: &model::Machine, class: &str) -> bool {
    match class {
        "gemm_batched" => machine.compute_capability < (8, 0),
        "gemv" | "gram" | "gemm" => gpu == "c2050",
        _ => false,
    }
}

#[test]
fn every_known_gpu_is_planned_for() {
    let bench = Bench::new();
    for (name, machine) in model::machine::TABLE {
        for dtype in ["f32", "f64", "c64", "c128"] {
            for (class, sizes) in CLASSES {
                let args: Vec<&str> = sizes.split(' ').chain(["--dtype", dtype, "--gpu", name]).collect();
                if is_refused(name, &machine, class) {
                    is_refused_with_numbers(&bench, &machine, &args);
                    continue;
                }
                let plan = object(&bench, &args);
                assert_eq!(plan["operation"], class, "{name} {dtype}");
                assert_eq!((plan["gpu"].as_str(), plan["dtype"].as_str()), (Some(machine.name.as_str()), Some(dtype)));
            }
        }
        let args = ["20480", "16", "20480", "--gpu", name];
        assert!(says(&bench, &args).contains(machine.name.as_str()), "{name}");
        let paper = says(&bench, &[&args[..], &["--paper"]].concat());
        assert!(paper.contains("threshold t2* = ") && paper.contains("chosen"), "{paper}");
    }
}

/// A refusal of a GPU that is too old says so first, and beside what is needed what there is.
fn is_refused_with_numbers(bench: &Bench, machine: &model::Machine, args: &[&str]) {
    let error = bench.fail(2, &[&["plan"], args].concat());
    let ((major, minor), name) = (machine.compute_capability, machine.name);
    let first = format!("lanky: the kernels need compute capability 8.0, {name} has {major}.{minor}; ");
    assert!(error.starts_with(&first), "{args:?}: {error}");
    for reason in error.trim_end()[first.len()..].split("; ") {
        let has = [
            (" registers", format!(" registers, a thread has {}", machine.registers_per_thread)),
            (" bytes of shared memory", format!(" bytes of shared memory, a block has {}", machine.shared_per_block)),
            ("compute capability", format!(", {name} has {major}.{minor}")),
        ];
        for (needed, has) in has {
            assert!(!reason.contains(needed) || reason.contains(&has), "{args:?}: {reason}");
        }
    }
}

#[test]
fn the_choice_is_the_first_of_its_candidates() {
    let bench = Bench::new();
    let plan = object(&bench, &["20480", "16", "20480", "--gpu", "h200"]);
    assert_eq!(plan["bound"], "memory");
    assert_eq!(plan["candidates"][0]["entry"], plan["entry"]);
    assert_eq!(plan["candidates"][0]["predicted_seconds"], plan["predicted_seconds"]);
    let bound = plan["bound_seconds"].as_f64().expect("a number");
    assert!((bound - 723e-6).abs() < 2e-6 && plan["predicted_seconds"].as_f64() > Some(bound), "{plan}");
    let words = says(&bench, &["20480", "16", "20480", "--gpu", "h200"]);
    assert!(words.contains(plan["entry"].as_str().expect("text")) && words.contains("limited by"), "{words}");
    let wide = object(&bench, &["16", "20480", "20480", "--gpu", "h200", "--variant", "tsm2r_outer"]);
    assert_eq!((wide["swapped"].as_bool(), wide["chooser"].as_str()), (Some(true), Some("caller")));
    assert_eq!((wide["m"].as_u64(), wide["n"].as_u64()), (Some(16), Some(20_480)));
}

/// Every entry that could be launched is weighed once, in the parts that suit it, siblings of one variant too; the text
/// lists the fastest and all of the chosen variant.
#[test]
fn siblings_are_candidates() {
    let bench = Bench::new();
    let args = ["20480", "16", "20480", "--dtype", "f32", "--gpu", "h200"];
    let (plan, words) = (object(&bench, &args), says(&bench, &args));
    let candidates = plan["candidates"].as_array().expect("candidates");
    let entry = |candidate: &Value| candidate["entry"].as_str().expect("text").to_string();
    let mut entries: Vec<String> = candidates.iter().map(entry).collect();
    let siblings = candidates.iter().filter(|candidate| candidate["variant"] == plan["variant"]);
    assert!(siblings.clone().count() >= 4, "{plan}");
    for candidate in siblings.chain(candidates.iter().take(6)) {
        let (name, splits) = (entry(candidate), candidate["splits"].as_u64().expect("a number"));
        let parts = if splits == 1 { "one part".to_string() } else { format!("{splits} parts") };
        assert!(words.contains(&format!("  {name} in {parts} of k")), "{name} {splits}: {words}");
    }
    let times: Vec<f64> = candidates.iter().map(|c| c["predicted_seconds"].as_f64().expect("a number")).collect();
    assert!(times.is_sorted());
    entries.sort_unstable();
    let all = entries.len();
    entries.dedup();
    // Those of a tall A serve no such k, those of two tall matrices and of squares are not considered, and nobody allowed f32 to be split.
    let of_squares = |v: &model::Variant| matches!(v.kernel, model::Kernel::Ladder | model::Kernel::GemmRing);
    let others = |v: &model::Variant| {
        model::variants::tsmm::widest(v).is_some() || v.is_reduced() || of_squares(v) || v.splits_f32()
    };
    let takes = |v: &&model::Variant| v.dtype == model::Dtype::F32 && v.layout != model::Layout::Rows && !others(v);
    assert_eq!((entries.len(), all), (all, model::VARIANTS.iter().filter(takes).count()));
}

#[test]
fn nothing_to_multiply_is_an_object_too() {
    let bench = Bench::new();
    for lengths in [["0", "4", "4"], ["4", "4", "0"]] {
        assert_eq!(object(&bench, &[&lengths[..], &["--gpu", "h200"]].concat())["operation"], "none");
        // Of which there is no reasoning, nor keys of one.
        for more in [&[][..], &["--json"]] {
            let error = bench.fail(2, &[&["plan"], &lengths[..], &["--gpu", "v100", "--paper"], more].concat());
            assert!(error.contains("--paper: ") && error.contains("nothing is multiplied"), "{error}");
        }
    }
}

#[test]
fn a_gpu_that_is_not_known_is_named() {
    let bench = Bench::new();
    let error = bench.fail(2, &["plan", "20480", "16", "20480", "--gpu", "rtx5090"]);
    assert!(error.contains("unknown GPU 'rtx5090'") && error.contains("k40c") && error.contains("b200"), "{error}");
    bench.fail(2, &["plan", "4", "4", "4", "--gpu", "h200", "--paper", "--variant", "tsm2r_inner"]);
}

#[test]
fn an_error_stands_alone_wherever_the_machine_is_from() {
    let bench = Bench::new();
    let lengths = ["plan", "5000000000", "2", "3"];
    for more in [&[][..], &["--json"], &["--gpu", "h200"]] {
        bench.fail(2, &[&lengths, more].concat());
    }
    let output = bench.run(&["plan", "20480", "2", "20480"]);
    assert!(output.status.success() && text(&output.stdout).contains("tsm2r"));
    let here = lanky::Device::cuda(0).is_ok();
    assert_eq!(text(&output.stderr).starts_with("planned for an H200 ("), !here, "{}", text(&output.stderr));
}

/// Where a database knows the shape, too.
#[test]
fn f32_is_planned_in_two_parts_if_that_is_allowed() {
    let bench = Bench::new();
    for lengths in [["20480", "48", "20480"], ["10000", "32", "10000"]] {
        let plan = |more: &[&str]| {
            let args = [&["plan"][..], &lengths, &["--dtype", "f32", "--gpu", "h200", "--json"], more].concat();
            let output = bench.run(&args);
            let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
            said["variant"].as_str().expect("a name").to_owned()
        };
        assert_eq!(plan(&["--split-f32"]), "tsm2r_split", "{lengths:?}");
        assert_ne!(plan(&[]), "tsm2r_split", "{lengths:?}");
    }
}

#[test]
fn a_forced_variant_is_refused_with_every_reason() {
    let bench = Bench::new();
    // B is the wider side: it is computed transposed, and A by rows then.
    let lengths = ["plan", "16", "20480", "20480"];
    let entry = ["--variant", "dtsm2r_mma_16x8_n8_k64_s2_t128_rows", "--gpu", "p100"];
    let error = bench.fail(2, &[&["plan", "20480", "16", "20480"], &entry[..]].concat());
    for reason in [
        "variant dtsm2r_mma",
        "compute capability 9.0, Tesla P100-SXM2-16GB has 6.0; ",
        "along the rows of A; ",
        "bytes of shared memory, a block has 49152",
    ] {
        assert!(error.contains(reason), "{reason}: {error}");
    }
    let error = bench.fail(2, &[&lengths[..], &["--variant", "tsm2r_mma", "--gpu", "a100"]].concat());
    assert!(
        error.contains("9.0, NVIDIA A100-SXM4-40GB has 8.0; ") && error.contains(" of ") && error.contains(" entries)"),
        "{error}"
    );
    let error = bench.fail(2, &[&lengths[..], &["--variant", "tsm2r_mma", "--dtype", "f32", "--gpu", "h200"]].concat());
    assert!(error.contains("it has no entry for f32"), "{error}");
    // A thread has the registers, a block of 1024 of them has not.
    let naive = ["plan", "2048", "64", "2048", "--dtype", "f32", "--gpu", "c2050", "--variant", "gemm_naive"];
    let error = bench.fail(2, &naive);
    assert!(error.contains("registers for each of 1024 threads, a block has 32768"), "{error}");
}

#[test]
fn a_gpu_can_come_from_a_file() {
    let bench = Bench::new();
    bench.put("half.toml", "like = \"H200\"\nname = \"half an H200\"\nsms = 66\nread_bytes_per_s = 2.3e12\n");
    let plan = object(&bench, &["20480", "4", "20480", "--gpu-file", "half.toml"]);
    assert_eq!(plan["gpu"], "half an H200");
    let whole = object(&bench, &["20480", "4", "20480", "--gpu", "h200"]);
    assert!(plan["predicted_seconds"].as_f64() > whole["predicted_seconds"].as_f64(), "{plan}");
    assert!(says(&bench, &["20480", "4", "20480", "--gpu-file", "half.toml", "--paper"]).contains("half an H200"));
}

#[test]
fn a_file_that_describes_no_gpu_is_refused_by_its_field() {
    let bench = Bench::new();
    for (content, said) in [
        ("like = \"h200\"\nsms = 0\n", "gpu.toml: sms is 0: "),
        ("like = \"h200\"\nread_bytes_per_s = nan\n", "gpu.toml: read_bytes_per_s is NaN: "),
        ("like = \"h200\"\nclock_hz = 1.98\n", "gpu.toml: clock_hz is 1.98: "),
        ("like = \"h200\"\nsmz = 1\n", "gpu.toml: smz is no field"),
        ("like = \"h201\"\n", "gpu.toml: like: unknown GPU 'h201'"),
        ("like = \"h200\"\nname = \"a\\nb\"\n", "it wants some text without control characters"),
        ("like = \"h200\"\nname = \"\\u001b[2J\"\n", "gpu.toml: name is \"\\u001B[2J\": it wants some text without"),
        ("name = \"x\"\n", "gpu.toml: compute_capability is missing"),
        ("sms = \n", "gpu.toml: line 1: "),
    ] {
        bench.put("gpu.toml", content);
        let error = bench.fail(2, &["plan", "4", "4", "4", "--gpu-file", "gpu.toml"]);
        assert!(error.contains(said), "{content}: {error}");
    }
    bench.fail(2, &["plan", "4", "4", "4", "--gpu-file", "none.toml"]);
    bench.fail(2, &["plan", "4", "4", "4", "--gpu-file", "gpu.toml", "--gpu", "h200"]);
}

/// A file of ceilings of an H200: 4.0 TB/s read, 2.5 TB/s written, 60 TFLOP/s by the matrix units.
fn put_ceilings(bench: &Bench, name: &str) {
    let row = |what: &str, bytes: &str, flops: &str, gbs: &str| {
        let fields = model::results::FIELDS.map(|column| match column {
            "family" => "ceiling",
            "dtype" => "f64",
            "device" => "NVIDIA H200",
            "variant" => what,
            "ns_median" => "1000000.0",
            "bytes" => bytes,
            "flops" => flops,
            "gbs" => gbs,
            _ => "",
        });
        fields.join(",") + "\n"
    };
    let header = model::results::FIELDS.join(",") + "\n";
    let rows = [row("read", "4000000000", "0", "4000.000"), row("write", "2500000000", "0", "2500.000")];
    bench.put(name, &(header + &rows.concat() + &row("mma", "0", "60000000000", "")));
}

/// A: 20480², B: 20480 x 4 and C: 20480 x 4 elements of 8 bytes; with beta = 1 C is read as well.
#[test]
fn measured_ceilings_are_planned_with() {
    let bench = Bench::new();
    put_ceilings(&bench, "h200-ceilings.csv");
    let args = ["20480", "4", "20480", "--gpu", "h200", "--ceilings", "h200-ceilings.csv"];
    let (plan, table) = (object(&bench, &args), object(&bench, &args[..5]));
    let bound = |plan: &Value| plan["bound_seconds"].as_f64().expect("a number");
    let (a, b) = (20_480.0 * 20_480.0 * 8.0, 20_480.0 * 4.0 * 8.0);
    assert!((bound(&plan) / ((a + b) / 4.0e12 + b / 2.5e12) - 1.0).abs() <= 1e-9, "{plan}");
    assert!(plan["predicted_seconds"].as_f64() > table["predicted_seconds"].as_f64(), "{plan}");
    let added = object(&bench, &[&args[..], &["--beta", "-1"]].concat());
    assert!((bound(&added) - bound(&plan) - b / 4.0e12).abs() <= 1e-12, "{added}");
    assert!(added["predicted_seconds"].as_f64() > plan["predicted_seconds"].as_f64(), "{added}");
    let words = says(&bench, &args);
    assert!(words.contains("4000 GB/s read, 2500 GB/s written, 60.0 TFLOP/s in f64"), "{words}");
}

#[test]
fn ceilings_of_another_gpu_or_none_are_refused_by_name() {
    let bench = Bench::new();
    put_ceilings(&bench, "c.csv");
    let text = text(&bench.get("c.csv"));
    bench.put("damaged.csv", text.replace("2500.000", "2700.000"));
    bench.put("units.csv", text.replace("4000000000", "400000").replace("4000.000", "0.400"));
    for (gpu, file, said) in [
        ("a100", "c.csv", "c.csv: line 2: device is 'NVIDIA H200', but the plan is for NVIDIA A100-SXM4-40GB"),
        ("h200", "damaged.csv", "damaged.csv: line 3: gbs is 2700, but bytes by ns_median are 2500.000"),
        ("h200", "units.csv", "units.csv: with these ceilings read_bytes_per_s is 4e8: it must be from"),
        ("h200", "none.csv", "none.csv: no such file"),
        ("h200", RESULTS, "line 2: family is 'tsm2r', not ceiling"),
    ] {
        let error = bench.fail(2, &["plan", "20480", "4", "20480", "--gpu", gpu, "--ceilings", file]);
        assert!(error.contains(said), "{gpu} {file}: {error}");
    }
    bench.fail(2, &["plan", "4", "4", "4", "--gpu", "h200", "--ceilings", "c.csv", "--paper"]);
    bench.fail(2, &["plan", "4", "4", "4", "--gpu", "h200", "--beta", "x"]);
}

/// What nobody has measured of an H100 is named; of an H200 little is left.
#[test]
fn what_is_assumed_is_said() {
    let bench = Bench::new();
    let assumed = |gpu: &str| object(&bench, &["20480", "4", "20480", "--gpu", gpu])["assumed"].clone();
    assert_eq!(assumed("h200"), Value::Array(vec!["fma_latency_cycles".into()]));
    assert!(assumed("h100").as_array().is_some_and(|names| names.contains(&"l2_read_bytes_per_s".into())));
    let words = says(&bench, &["20480", "4", "20480", "--gpu", "h100"]);
    assert!(words.contains("assumed   of a GPU that is like it: l2_read_bytes_per_s, read_bytes_per_s"), "{words}");
    bench.put("own.toml", "like = \"h200\"\nfma_latency_cycles = 4\n");
    assert!(!says(&bench, &["20480", "4", "20480", "--gpu-file", "own.toml"]).contains("assumed"));
}

/// A, B and C of 8.65 MB: what a hand finds of the bound at 5.6976 TB/s is 1.518 us, and at the memory's rates 1.866 us.
#[test]
fn a_hot_product_is_planned_for_the_cache() {
    let bench = Bench::new();
    let args = ["1024", "16", "1024", "--gpu", "h200"];
    let (hot, cold) = (object(&bench, &[&args[..], &["--cached"]].concat()), object(&bench, &args));
    let seconds = |plan: &Value, name: &str| plan[name].as_f64().expect("a number");
    assert_eq!((hot["cached"].as_bool(), cold["cached"].as_bool()), (Some(true), Some(false)));
    assert!((seconds(&hot, "bound_seconds") - 1.518e-6).abs() <= 1e-9, "{hot}");
    assert!((seconds(&cold, "bound_seconds") - 1.866e-6).abs() <= 1e-9, "{cold}");
    assert!(seconds(&hot, "predicted_seconds") < seconds(&cold, "predicted_seconds"), "{hot}");
    assert_eq!(hot["candidates"][0]["predicted_seconds"], hot["predicted_seconds"]);
    let words = says(&bench, &[&args[..], &["--cached", "--svg", "hot.svg"]].concat());
    assert!(words.contains("A, B and C, 8.65 MB, stay in the second-level cache, which keeps 41.94 MB"), "{words}");
    assert!(words.contains("5698 GB/s read") && !says(&bench, &args).contains("cache"), "{words}");
    let svg = text(&bench.get("hot.svg"));
    assert!(svg.contains("cache and multipliers") && svg.contains("NVIDIA H200, cached"), "{svg}");
}

#[test]
fn what_the_cache_does_not_keep_is_not_planned_for_it() {
    let bench = Bench::new();
    for (args, said) in [
        (&["20480", "16", "20480", "--gpu", "h200"][..], "3360686080 bytes, of which"),
        (&["64", "16", "100", "--gpu", "v100"], "V100-PCIE-16GB: the rate of its second-level cache is not known"),
        (&["64", "16", "100", "--gpu", "h200", "--paper"], "cannot be used with"),
        (&["--against", RESULTS], "cannot be used with"),
    ] {
        let error = bench.fail(2, &[&["plan"], args, &["--cached"]].concat());
        assert!(error.contains(said), "{args:?}: {error}");
    }
    // A file can say what somebody has measured.
    bench.put("gpu.toml", "like = \"v100\"\nl2_read_bytes_per_s = 2e12\n");
    let words = says(&bench, &["64", "16", "100", "--gpu-file", "gpu.toml", "--cached"]);
    assert!(words.contains("2000 GB/s read"), "{words}");
}

/// Every family is planned for as its operands lie, and the plan says how.
#[test]
fn operands_may_lie_otherwise() {
    let bench = Bench::new();
    let of = |args: &str| object(&bench, &args.split(' ').chain(["--gpu", "h200"]).collect::<Vec<_>>());
    for (args, operation, lies) in [
        ("64 64 8388608 --layout rrr --ops tn", "tsmttsm", "rrr tn"),
        ("64 64 8388608 --layout row --gram", "gram", "A by itself rrr tn"),
        ("64 64 8388608 --gram --ops nt --lda 70", "gram", "A by itself nt lda 70 ldb 70"),
        ("1000000 8 8 --layout rrr --ldc 9 --beta 1", "tsmm", "rrr ldc 9"),
        ("300 1 20000 --ops tn", "gemv", "tn"),
        ("20480 16 20480", "tsm2r", ""),
    ] {
        let object = of(args);
        assert_eq!((&object["operation"], &object["lies"]), (&operation.into(), &lies.into()), "{args}");
    }
    // Rows of A have entries of their own.
    let plan = |more: &str| of(&format!("20480 16 20480{more}"));
    assert!(plan(" --layout rcc")["entry"].as_str().is_some_and(|entry| entry.ends_with("_rows")));
    assert!(!plan("")["entry"].as_str().is_some_and(|entry| entry.ends_with("_rows")));
    let words = says(&bench, &["64", "64", "8388608", "--gpu", "h200", "--ops", "tn"]);
    assert!(words.contains("\n  lies      tn\n"), "{words}");
    for (args, said) in [
        (&["9", "4", "5", "--lda", "8"][..], "lda is 8, but a line has 9 elements"),
        (&["9", "4", "5", "--gram"], "a Gram matrix is of one matrix"),
        (&["9", "4", "5", "--layout", "cc"], "three letters c or r"),
        (&["9", "4", "5", "--ops", "nx"], "--ops"),
        (&["9", "4", "5", "--batch", "3", "--layout", "rrr"], "cannot be used with"),
        (&["9", "4", "5", "--paper", "--gram"], "cannot be used with"),
        (&["9", "4000000000000", "5000000000000"], "64 bits"),
    ] {
        let error = bench.fail(2, &[&["plan"], args].concat());
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

#[test]
fn the_roofline_has_the_choice_on_it() {
    let bench = Bench::new();
    let args = ["20480", "16", "20480", "--gpu", "h200", "--svg", "roof.svg"];
    let plan = object(&bench, &args);
    let svg = text(&bench.get("roof.svg"));
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let marks = |class: &str| -> Vec<(f64, f64, String)> {
        let of_class = document.descendants().filter(|node| node.attribute("class") == Some(class));
        let number = |node: &roxmltree::Node, names: [&str; 2]| {
            names.iter().find_map(|name| node.attribute(*name)).expect("a place").parse::<f64>().expect("a number")
        };
        let title =
            |node: &roxmltree::Node| node.first_element_child().and_then(|child| child.text()).map(str::to_string);
        of_class
            .filter_map(|node| Some((number(&node, ["cx", "x"]), number(&node, ["cy", "y"]), title(&node)?)))
            .collect()
    };
    let (ours, others, bound) = (marks("mark ours"), marks("mark theirs"), marks("mark bound"));
    let candidates = plan["candidates"].as_array().expect("candidates").len();
    assert_eq!((ours.len(), others.len(), bound.len()), (1, candidates - 1, 1), "{svg}");
    assert!(ours[0].2.starts_with(&format!("{}: ", plan["entry"].as_str().expect("text"))), "{ours:?}");
    // Down the page is less: the choice is below the bound, and the others are below the choice.
    assert!(bound[0].1 < ours[0].1 && others.iter().all(|other| other.1 + 3.5 >= ours[0].1 - 0.06), "{svg}");
    assert!(document.descendants().filter(|node| node.attribute("class") == Some("line bound")).count() >= 2);
    // A vector's roof is the memory's slope; one without a GPU's name is drawn as well.
    assert!(
        says(&bench, &["20480", "1", "20480", "--dtype", "f32", "--gpu", "k40c", "--svg", "roof.svg"]).contains("K40c")
    );
    for args in [
        &["plan", "0", "4", "4", "--svg", "none.svg"][..],
        &["plan", "4", "4", "4", "--gpu", "h200", "--paper", "--svg", "none.svg"],
        &["plan", "4", "4", "4", "--gpu", "h200", "--svg", "none/none.svg"],
    ] {
        bench.fail(2, args);
    }
    assert_eq!(bench.names(), ["roof.svg"]);
}

#[test]
fn the_limiting_resource_is_named_with_its_time() {
    let bench = Bench::new();
    for (n, dtype, gpu, limit) in [
        ("16", "f64", "h200", "the bandwidth"),
        ("64", "f32", "h200", "issuing instructions"),
        ("16", "f64", "rtx4090", "the multiply-adds"),
    ] {
        let args = ["20480", n, "20480", "--dtype", dtype, "--gpu", gpu];
        let plan = object(&bench, &args);
        assert_eq!(plan["terms"]["limit"], limit, "{plan}");
        let words = says(&bench, &args);
        assert!(words.contains(&format!("limit     {limit}, which alone would take ")), "{words}");
        let expected = plan["predicted_seconds"].as_f64().expect("a number");
        let terms = ["bandwidth", "latency", "delivery", "arithmetic", "issue", "overhead"];
        let seconds = terms.map(|term| plan["terms"][format!("{term}_seconds")].as_f64().expect("a number"));
        assert!(seconds.iter().all(|term| *term > 0.0 && *term < expected), "{plan}");
        assert!(seconds.iter().sum::<f64>() >= expected, "{plan}");
    }
}

/// A batch's plan says its tile, what limits it, and what the paper would do; as JSON the same; and refuses what no entry takes.
#[test]
fn a_batch_explains_itself() {
    let bench = Bench::new();
    let plan = ["--gpu", "h200", "--batch", "100000", "8", "8", "8"];
    let chosen = says(&bench, &["--gpu", "h200", "--batch", "100000", "32", "32", "32"]);
    assert!(chosen.contains("batched_flat") && chosen.contains("whose warps take problems in turn"), "{chosen}");
    let over = says(&bench, &["--gpu", "h200", "--dtype", "c64", "--batch", "100000", "20", "20", "20"]);
    for line in ["batched_over", "problems, C over A and B", "which take tiles in turn"] {
        assert!(over.contains(line), "{line}: {over}");
    }
    let words = says(&bench, &plan);
    for line in [
        "100000 products   f64   A 8 x 8",
        "batched_bulk",
        "each with tiles that follow one another",
        "problems, ",
        "limited by ",
        "bound ",
        "2 products a block",
        "out of ",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let object = object(&bench, &[&plan[..], &["--beta", "1"]].concat());
    assert_eq!((&object["batch"], &object["variant"]), (&100_000.into(), &"batched_bulk".into()));
    // 32 n^2 bytes a product, at 4.6 TB/s and more slowly where they are written.
    let bound = object["bound_seconds"].as_f64().expect("a number");
    assert!((40e-6..60e-6).contains(&bound), "{bound}");
    assert!(says(&bench, &[&plan[..], &["--variant", "batched_blocked"]].concat()).contains("dbatched_blocked_t256"));
    let output = bench.run(&["plan", "--gpu", "h200", "--batch", "10", "33", "8", "8"]);
    let refused = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(refused.contains("m is 33, the kernels of batches take up to 32"), "{refused}");
    let old = ["plan", "--batch", "1000", "40", "40", "8", "--gpu", "v100", "--variant", "batched_packed"];
    let refused = bench.fail(2, &old);
    for reason in
        ["variant batched_packed: the kernels need", " m is 40, ", "; n is 40, ", "; it needs compute capability 8.0"]
    {
        assert!(refused.contains(reason), "{reason}: {refused}");
    }
    let none = says(&bench, &["--gpu", "h200", "--batch", "0", "8", "8", "8"]);
    assert!(none.contains("nothing is multiplied"), "{none}");
}
