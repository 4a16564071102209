//! Drivers that do not start: `--device auto` computes on the CPU and says why, `--device cuda:0` does neither. Drivers that fail
//! later or never answer, and what `lanky info` says of a slice of a GPU.

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Array, Bench, fake, plus, skipped, text};
use lanky::model::{Dtype, Machine, Problem, Strides};
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// What cuInit answers, and what is said of it.
const CODES: [(i32, &str); 18] = [
    (1, "CUDA_ERROR_INVALID_VALUE (1)"),
    (2, "out of memory"),
    (3, "CUDA_ERROR_NOT_INITIALIZED (3)"),
    (34, "CUDA_ERROR_STUB_LIBRARY (34): the CUDA toolkit's stub was loaded"),
    (36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER (36): the driver is older than its library asks for"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE (46)"),
    (100, "the driver sees no device"),
    (101, "the driver has no device of that number"),
    (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE (216)"),
    (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED (303): one of the driver's libraries does not start"),
    (304, "CUDA_ERROR_OPERATING_SYSTEM (304): the system does not let the driver at its devices"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
    (719, "CUDA_ERROR_LAUNCH_FAILED (719)"),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY (802)"),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): the driver's library and kernel module are of different versions"),
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): a libcuda.so.1 for forward compatibility was loaded"),
    (999, "CUDA_ERROR_UNKNOWN (999)"),
    (4711, "CUDA_ERROR_4711 (4711)"),
];

#[test]
fn a_driver_that_does_not_start_is_said_to_and_the_cpu_computes() {
    let Some(folder) = fake() else {
        return skipped("a_driver_that_does_not_start_is_said_to_and_the_cpu_computes", "no source of the driver");
    };
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    bench.succeed(&["mul", "a.npy", "a.npy", "-o", "right.npy"]);
    for (code, words) in CODES {
        bench.put("c.npy", "as it was");
        let run = |args: &[&str]| {
            let mut command = bench.command(args);
            command.env("LD_LIBRARY_PATH", folder).env("FAKE_CUDA", format!("cuInit={code}"));
            command.env_remove("LANKY_REQUIRE_GPU").output().expect("the program starts")
        };
        let mul = ["mul", "a.npy", "a.npy", "-o", "c.npy"];
        // What is asked for is not replaced by something else.
        for args in [&[&mul[..], &["--device", "cuda:0"]].concat()[..], &["demo", "--device", "cuda:0"]] {
            let refused = run(args);
            let error = text(&refused.stderr);
            assert_eq!((refused.status.code(), error.lines().count()), (Some(3), 1), "{code}: {error}");
            assert!(error.starts_with("lanky: ") && error.contains(words), "{code}: {error}");
            assert!(refused.stdout.is_empty(), "{code}: {}", text(&refused.stdout));
        }
        assert_eq!(bench.get("c.npy"), b"as it was", "{code}");

        for args in [&mul[..], &[&mul[..], &["--device", "auto"]].concat()] {
            bench.put("c.npy", "as it was");
            let output = run(args);
            let said = text(&output.stderr);
            assert!(output.status.success(), "{code}: {}", text(&output.stderr));
            assert!(
                said.starts_with("cpu  ") && said.lines().next().is_some_and(|line| line.contains(words)),
                "{said}"
            );
            assert_eq!(bench.get("c.npy"), bench.get("right.npy"), "{code}");
        }

        let output = run(&["info", "--json"]);
        assert!(output.status.success(), "{code}: {}", text(&output.stderr));
        let info: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert!(info["problem"].as_str().is_some_and(|problem| problem.contains(words)), "{code}: {}", info["problem"]);
        assert_eq!(info["gpus"].as_array().map(Vec::len), Some(0), "{code}");
    }
    assert_eq!(bench.names(), ["a.npy", "c.npy", "right.npy"]);
}

/// The program with a driver that is told these words.
fn with_fake(bench: &Bench, folder: &Path, words: &str, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    command.env("LD_LIBRARY_PATH", folder).env("FAKE_CUDA", words).env_remove("LANKY_REQUIRE_GPU");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What it says; a program that hangs fails the test.
fn ended(mut command: Command, what: &str) -> Output {
    let mut child = command.spawn().expect("the program starts");
    let began = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().expect("it is there");
            panic!("{what}: it hangs");
        }
        sleep(Duration::from_millis(2));
    }
    child.wait_with_output().expect("it ended")
}

/// What became of a run in which something failed, which must be one of three.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// By the GPU, as if nothing had failed.
    Computed,
    /// By the CPU, which is said with the reason.
    Fallen,
    /// One line, the exit code of a device, and the old output.
    Refused,
}

fn end_of(bench: &Bench, folder: &Path, words: &str, device: &str) -> (End, String) {
    bench.put("c.npy", "as it was");
    let args = ["mul", "a.npy", "a.npy", "-o", "c.npy", "--device", device];
    let output = ended(with_fake(bench, folder, words, &args), words);
    let said = text(&output.stderr);
    assert!(output.stdout.is_empty() && !said.contains("panicked"), "{words}: {said}");
    assert_eq!(bench.names(), ["a.npy", "c.npy", "right.npy"], "{words}");
    let end = match output.status.code() {
        // Its kernels do nothing, so that C is of the right size alone.
        Some(0) if said.starts_with("cuda:0  Fake") => {
            assert_eq!(bench.get("c.npy").len(), bench.get("right.npy").len(), "{words}");
            End::Computed
        }
        Some(0) => {
            assert!(said.starts_with("cpu  ") && device == "auto", "{words}: {said}");
            assert_eq!(bench.get("c.npy"), bench.get("right.npy"), "{words}");
            End::Fallen
        }
        code => {
            assert_eq!((code, said.lines().count()), (Some(3), 1), "{words}: {said}");
            assert!(said.starts_with("lanky: "), "{words}: {said}");
            assert_eq!(bench.get("c.npy"), b"as it was", "{words}");
            End::Refused
        }
    };
    (end, said)
}

/// No memory, no reason, a code that nobody knows, a lost context.
const ENDS: [i32; 4] = [2, 999, 12_345, 700];

/// The first call fails, then the second, and so on, until it changes nothing any more; and all from some on.
#[test]
fn whichever_call_fails_it_is_said_and_the_old_output_stays() {
    let Some(folder) = fake() else {
        return skipped("whichever_call_fails_it_is_said_and_the_old_output_stays", "no source of the driver");
    };
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    bench.succeed(&["mul", "a.npy", "a.npy", "-o", "right.npy"]);
    for (word, step, least) in [("call", 1, 15), ("from", 7, 2)] {
        let mut ends = Vec::new();
        // What is asked for at the end, when C is there, may fail.
        while !ends.ends_with(&[const { End::Computed }; 12]) {
            let call = step * ends.len() + 1;
            ends.push(end_of(&bench, folder, &format!("{word}={call}:{}", ENDS[call % 4]), "auto").0);
            assert!(ends.len() < 500, "{word}: no run is left alone");
        }
        // The CPU takes over until there is a device; then what fails is an error.
        let fallen = ends.iter().take_while(|&end| *end == End::Fallen).count();
        assert!(fallen >= least && !ends[fallen..].contains(&End::Fallen), "{word}: {ends:?}");
        assert!(ends.iter().filter(|&end| *end == End::Refused).count() >= least, "{word}: {ends:?}");
    }
}

/// What a product cannot do without, by name, before there is a device and after.
#[test]
fn the_function_that_fails_is_named() {
    let Some(folder) = fake() else {
        return skipped("the_function_that_fails_is_named", "no source of the driver");
    };
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    bench.succeed(&["mul", "a.npy", "a.npy", "-o", "right.npy"]);
    let of_a_device = ["cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"];
    let of_work = [
        "cuCtxPushCurrent_v2",
        "cuStreamCreateWithPriority",
        "cuMemAlloc_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuModuleLoadDataEx",
        "cuModuleGetFunction",
        "cuEventRecord",
        "cuLaunchKernel",
        "cuMemcpyDtoHAsync_v2",
        "cuStreamSynchronize",
    ];
    let both =
        of_a_device.iter().map(|name| (name, End::Fallen)).chain(of_work.iter().map(|name| (name, End::Refused)));
    for (index, (name, auto)) in both.enumerate() {
        let words = format!("{name}={}", ENDS[index % 4]);
        for (device, expected) in [("cuda:0", End::Refused), ("auto", auto)] {
            let (end, said) = end_of(&bench, folder, &words, device);
            assert_eq!(end, expected, "{words} {device}: {said}");
            let name = name.trim_end_matches("_v2");
            assert!(said.contains(&format!("{name} ")), "{words} {device}: {said}");
        }
    }
}

/// A driver that never answers: the signal ends the program all the same, and what was begun is gone.
#[test]
fn a_driver_that_never_answers_does_not_keep_a_signal() {
    let Some(folder) = fake() else {
        return skipped("a_driver_that_never_answers_does_not_keep_a_signal", "no source of the driver");
    };
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    for function in ["cuMemcpyHtoDAsync_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2"] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
            bench.put("c.npy", "as it was");
            let args = ["mul", "a.npy", "a.npy", "-o", "c.npy", "--device", "cuda:0"];
            let mut child = with_fake(&bench, folder, &format!("{function}=-1"), &args).spawn().expect("it starts");
            let began = Instant::now();
            while bench.names() == ["a.npy", "c.npy"] {
                assert!(began.elapsed() < Duration::from_secs(60), "no file is begun");
                sleep(Duration::from_millis(1));
            }
            // It gets to the call meanwhile.
            sleep(Duration::from_millis(300));
            assert_eq!(child.try_wait().expect("a child"), None, "{function} answers");
            rustix::process::kill_process(Pid::from_child(&child), signal).expect("it is there");
            let began = Instant::now();
            assert_eq!(child.wait().expect("a child").code(), Some(code), "{function}");
            assert!(began.elapsed() < Duration::from_secs(2), "{function}");
            assert_eq!(
                (bench.names(), bench.get("c.npy")),
                (vec!["a.npy".into(), "c.npy".into()], b"as it was".into())
            );
        }
    }
}

/// A slice of a GPU is what its driver says that it is.
#[test]
fn a_slice_of_a_gpu_is_shown_as_what_it_is() {
    let Some(folder) = fake() else {
        return skipped("a_slice_of_a_gpu_is_shown_as_what_it_is", "no source of the driver");
    };
    let bench = Bench::new();
    let words = "sms=16 memory=17000000000";
    let output = ended(with_fake(&bench, folder, words, &["info", "--json"]), words);
    let info: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let gpu = &info["gpus"][0];
    assert_eq!((gpu["sms"].as_u64(), gpu["memory_bytes"].as_u64()), (Some(16), Some(17_000_000_000)), "{info}");
    assert_eq!((gpu["device"].as_str(), gpu["architecture"].as_str()), (Some("cuda:0"), Some("sm_90")), "{info}");
    assert!(gpu["problem"].is_null() && info["problem"].is_null(), "{info}");
    let said = text(&ended(with_fake(&bench, folder, words, &["info"]), words).stdout);
    assert!(said.contains("\ncuda:0  Fake, compute capability 9.0, 16 SMs, 17.00 GB, runs the PTX of sm_90"), "{said}");
    // And its plan is not that of the whole.
    let plan =
        |words: &str| text(&ended(with_fake(&bench, folder, words, &["plan", "300", "4", "20000"]), words).stdout);
    assert_ne!(plan(words), plan("sms=132 memory=17000000000"));
}

/// Which kernel a command says that it ran, by a driver that is told these words.
fn kernel(bench: &Bench, folder: &Path, words: &str, args: &[&str]) -> String {
    let args = [args, &["-o", "c.npy", "--device", "cuda:0", "--json"]].concat();
    let output = ended(with_fake(bench, folder, words, &args), words);
    assert!(output.status.success(), "{words}: {args:?}: {}", text(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    said["variant"].as_str().expect("a name").to_owned()
}

/// Whichever command multiplies, with --across-gpus it takes the kernel that every GPU takes; without, that of its own.
#[test]
fn every_product_is_the_same_across_gpus_if_asked() {
    let Some(folder) = fake() else {
        return skipped("every_product_is_the_same_across_gpus_if_asked", "no source of the driver");
    };
    let bench = Bench::new();
    for (name, shape) in [("a.npy", &[20_000, 16][..]), ("x.npy", &[16])] {
        bench.put(name, Array::<f64>::integers(shape, 1, false).file(1));
    }
    for args in [&["mul", "a.npy", "x.npy"][..], &["gemv", "a.npy", "x.npy"], &["gram", "a.npy"]] {
        let problem = match args[0] {
            // Of A by rows A^T is by columns.
            "gram" => Problem::gram(Dtype::F64, 16, 20_000, Strides::column_major(16)),
            _ => Problem { a: Strides::row_major(16), ..Problem::column_major(Dtype::F64, 20_000, 1, 16) },
        };
        let common = lanky::model::choose(&problem, &Machine::COMMON, None).expect("a kernel").variant.name;
        let machines = ["sms=132", "sms=16", "sms=108 capability=80"];
        for words in machines {
            assert_eq!(kernel(&bench, folder, words, &plus(args, &["--across-gpus"])), common, "{words}: {args:?}");
        }
        let own = machines.map(|words| kernel(&bench, folder, words, args));
        assert!(own.iter().any(|own| own != common), "{args:?}: {own:?} without it too, or this test sees nothing");
    }
}
