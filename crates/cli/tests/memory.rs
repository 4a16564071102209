//! Memory that is not there, and threads that the system does not start.

mod common;

use std::process::{Command, Stdio};

use common::{Array, Bench, KIB, await_handlers, limited, skipped, text};

/// Kernels are neither searched nor emulated where their operands have no room: one line, and no abort.
#[test]
fn what_is_searched_or_emulated_needs_its_memory() {
    let bench = Bench::new();
    for args in [
        &["tune", "--device", "cpu", "--n", "4", "--budget", "1s"][..],
        &["trace", "tsm2r", "--variant", "tsm2r_shared", "--m", "2000", "--k", "2000"],
        &["trace", "tsm2r", "--variant", "tsm2r_shared", "--m", "2000", "--n", "300", "--k", "2"],
        &["trace", "gemv", "--variant", "gemv_lines", "--m", "300", "--k", "20000"],
    ] {
        let output = limited(&bench, KIB, args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with("lanky: out of memory: ") && last.ends_with(" bytes wanted"), "{args:?}: {said}");
    }
    // The stacks of a block of 128 threads are 32 MiB of addresses.
    let small =
        limited(&bench, KIB + 60_000, &["trace", "tsm2r", "--variant", "tsm2r_shared", "--m", "200", "--k", "20"]);
    assert!(small.status.success(), "{}", text(&small.stderr));
}

/// A case that there is no memory for costs itself alone its rows, and the run ends with 3.
#[test]
fn a_case_without_memory_is_named_and_the_rest_is_measured() {
    const NAME: &str = "a_case_without_memory_is_named_and_the_rest_is_measured";
    let bench = Bench::new();
    let args = ["bench", "--k", "10000", "--n", "2", "--family", "tsm2r", "--beta", "0", "--device", "cpu"];
    let more = ["--samples", "1", "--against", "none", "--dtype", "f64,f32", "--m"];
    let run = |m: &str| limited(&bench, KIB + 600_000, &[&args[..], &more, &[m]].concat());
    let large = run("10000");
    if text(&large.stdout).contains("larger than the device's memory") {
        return skipped(NAME, "less than 800 MB are free");
    }
    let said = text(&large.stderr);
    assert_eq!(large.status.code(), Some(3), "{said}");
    assert!(said.contains("lanky: 1 plan or case failed: tsm2r f64 10000 x 2 x 10000: out of memory: "), "{said}");
    assert!(text(&large.stdout).contains("tsm2r f32"), "f32 is half as large: {}", text(&large.stdout));
    let small = run("100");
    assert!(small.status.success(), "{}", text(&small.stderr));
}

/// A stack that no system has room for: the bar is left out, and Ctrl-C heeded by its handler.
#[test]
fn without_threads_the_work_is_done_and_ctrl_c_ends_it() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    let lone = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("RUST_MIN_STACK", (1_u64 << 60).to_string()).stderr(Stdio::piped());
        command
    };
    for args in [
        &["info"][..],
        &["plan", "300", "4", "300", "--gpu", "h200"],
        &["mul", "a.npy", "a.npy", "-o", "c.npy", "--device", "cpu", "--progress", "always"],
    ] {
        let output = lone(args).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("panicked"), "{args:?}: {}", text(&output.stderr));
    }
    assert!(bench.path("c.npy").is_file());
    if !Command::new("mkfifo").arg(bench.path("fifo")).status().is_ok_and(|status| status.success()) {
        return skipped("without_threads_the_work_is_done_and_ctrl_c_ends_it", "no mkfifo");
    }
    // It waits for a reader.
    let mut child = lone(&["mul", "a.npy", "a.npy", "-o", "fifo", "--device", "cpu"]).spawn().expect("it starts");
    await_handlers(child.id());
    // The handlers are there before it is known that there is no thread.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

/// A product in many blocks is computed by the one thread that there is, to the same bits.
#[test]
fn without_threads_products_are_the_same() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3001, 40], 1, true).file(1));
    bench.put("b.npy", Array::<f64>::integers(&[40, 3], 2, false).file(1));
    for (file, is_alone) in [("alone.npy", true), ("together.npy", false)] {
        let mut command = bench.command(&["mul", "a.npy", "b.npy", "-o", file, "--device", "cpu"]);
        if is_alone {
            command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
        }
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{file}: {}", text(&output.stderr));
    }
    assert!(bench.get("alone.npy") == bench.get("together.npy"));
}
