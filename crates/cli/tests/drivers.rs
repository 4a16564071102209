//! Drivers that do not start: `--device auto` computes on the CPU and says why, `--device cuda:0` does neither.

mod common;

use common::{Array, Bench, fake, skipped, text};
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
