//! Every bad input ends in one line, the right exit code, and an output that is as it was.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Array, Bench, KIB, await_handlers, exists, limited, npy, skipped, text, with};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.put("good.npy", Array::<f64>::integers(&[2, 2], 1, false).file(1));
    bench.put("c.npy", "as it was");
    bench
}

fn bad_headers() -> Vec<(&'static str, Vec<u8>)> {
    let good = Array::<f64>::integers(&[2, 2], 1, false).file(1);
    let header = |text: &str| npy(1, text, &[0; 32]);
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    vec![
        ("empty", vec![]),
        ("text", b"1 2\n3 4\n".to_vec()),
        ("wrong magic", patched(1, b"X")),
        ("version 0.9", patched(6, &[0, 9])),
        ("version 4.0", patched(6, &[4, 0])),
        ("version 1.1", patched(7, &[1])),
        ("header length 0", patched(8, &[0, 0])),
        ("header past the end", patched(8, &[255, 255])),
        ("header of 4 GB", [b"\x93NUMPY\x02\x00".to_vec(), vec![255; 4], vec![b' '; 100]].concat()),
        ("header of 64 KiB and more", {
            // All but its length is right.
            let fields = "'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)";
            npy(2, &format!("{{{fields}, }}{}", " ".repeat(70_000)), &[0; 32])
        }),
        ("integers", with("'<i8'", "(2, 2)")),
        ("unsigned", with("'|u1'", "(2, 2)")),
        ("booleans", with("'|b1'", "(2, 2)")),
        ("objects", with("'|O'", "(2, 2)")),
        ("objects of 8", with("'|O8'", "(2, 2)")),
        ("big-endian", with("'>f8'", "(2, 2)")),
        ("big-endian f32", with("'>f4'", "(2, 2)")),
        ("half", with("'<f2'", "(2, 2)")),
        ("long double", with("'<f16'", "(2, 2)")),
        ("complex, big-endian", with("'>c16'", "(1, 2)")),
        ("complex, of extended precision", with("'<c32'", "(1, 1)")),
        ("text elements", with("'<U4'", "(2, 2)")),
        ("records", with("[('x', '<f8')]", "(2, 2)")),
        ("a number for a type", with("8", "(2, 2)")),
        ("2^60 elements", with("'<f8'", "(1152921504606846976, 1)")),
        ("2^61 bytes in 2^58 rows", with("'<f8'", "(288230376151711744, 1)")),
        ("product wraps", with("'<f8'", "(4294967296, 4294967296)")),
        ("product wraps to 4", with("'<f8'", "(9223372036854775809, 4)")),
        ("beyond 64 bits", with("'<f8'", "(18446744073709551616, 2)")),
        ("zero hides an overflow", with("'<f8'", "(0, 18446744073709551615)")),
        ("negative", with("'<f8'", "(-1, 2)")),
        ("wildcard", with("'<f8'", "(2, -2)")),
        ("a float for a length", with("'<f8'", "(2e0, 2)")),
        ("a name for a length", with("'<f8'", "(True, 2)")),
        ("three axes", with("'<f8'", "(1, 2, 2)")),
        ("33 axes", with("'<f8'", &format!("({})", "1, ".repeat(33)))),
        ("no axis", with("'<f8'", "()")),
        ("a list", with("'<f8'", "[2, 2]")),
        ("a number for a shape", with("'<f8'", "(4)")),
        ("nested", with("'<f8'", &"(".repeat(60_000))),
        ("no shape", header("{'descr': '<f8', 'fortran_order': False}")),
        ("shape twice", header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), 'shape': (2, 2)}")),
        ("another key", header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), 'x': 1}")),
        ("order 0", header("{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 2)}")),
        ("not closed", header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)")),
        ("string not closed", header("{'descr': '<f8, 'fortran_order'")),
        ("more after it", header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)} x")),
        ("NUL in it", header("{'descr': '<f8',\0 'fortran_order': False, 'shape': (2, 2)}")),
        ("an expression", header("__import__('os').system('true')")),
        ("latin-1", [b"\x93NUMPY\x01\x00\x04\x00".to_vec(), b"{'\xe9\xff".to_vec()].concat()),
        ("a line break in it", header("{'de\nscr': '<f8'}")),
    ]
}

#[test]
fn bad_files_leave_one_line_and_the_old_output() {
    let bench = bench();
    for (what, bytes) in bad_headers() {
        bench.put("bad.npy", bytes);
        for inputs in [["bad.npy", "good.npy"], ["good.npy", "bad.npy"]] {
            let began = Instant::now();
            let error = bench.fail(2, &["mul", inputs[0], inputs[1], "-o", "c.npy", "--device", "cpu", "--json"]);
            assert!(error.starts_with("lanky: bad.npy: "), "{what}: {error}");
            assert!(began.elapsed() < Duration::from_secs(1), "{what}");
        }
        let error = bench.fail(2, &["mul", "good.npy", "good.npy", "--c", "bad.npy", "-o", "c.npy"]);
        assert!(error.starts_with("lanky: bad.npy: "), "{what}: {error}");
        assert_eq!(bench.get("c.npy"), b"as it was", "{what}");
    }
    assert_eq!(bench.names(), ["bad.npy", "c.npy", "good.npy"]);
}

/// The same files where there is hardly any memory: the same line, so that nothing was asked for that a header named.
#[test]
fn bad_files_take_no_memory() {
    let bench = bench();
    let limited = |args: &[&str]| limited(&bench, KIB, args);
    let good = limited(&["mul", "good.npy", "good.npy", "-o", "d.npy", "--device", "cpu"]);
    assert!(good.status.success(), "{}", text(&good.stderr));
    // The limit is one: a matrix that is really there does not fit.
    let header = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 1)}", &[]);
    let whole = u64::try_from(header.len()).expect("a length") + 800_000_000;
    bench.put("large.npy", header);
    fs::OpenOptions::new().write(true).open(bench.path("large.npy")).expect("a file").set_len(whole).expect("holes");
    let large = limited(&["gram", "large.npy", "-o", "e.npy", "--device", "cpu"]);
    assert_eq!(text(&large.stderr), "lanky: out of memory: 800000000 bytes wanted\n");
    for (what, bytes) in bad_headers() {
        bench.put("bad.npy", bytes);
        let args = ["mul", "bad.npy", "good.npy", "-o", "c.npy", "--device", "cpu"];
        let output = limited(&args);
        assert_eq!(text(&output.stderr), bench.fail(2, &args), "{what}");
        assert_eq!(output.status.code(), Some(2), "{what}");
    }
    assert_eq!(bench.get("c.npy"), b"as it was");
}

/// Files without elements whose product is large: memory runs out, or was never there, by one exit code and one text.
#[test]
fn a_result_that_is_too_large_is_one_fault() {
    let bench = bench();
    let put = |name: &str, shape: &str| bench.put(name, npy(1, &with_shape(shape), &[]));
    put("col.npy", "(30000, 0)");
    put("row.npy", "(0, 30000)");
    put("cols.npy", "(1, 30000, 0)");
    put("rows.npy", "(1, 0, 30000)");
    for args in [&["mul", "col.npy", "row.npy"][..], &["gram", "row.npy"], &["batch", "cols.npy", "rows.npy"]] {
        let output = limited(&bench, KIB, &[args, &["-o", "c.npy", "--device", "cpu"]].concat());
        assert_eq!(text(&output.stderr), "lanky: out of memory: 7200000000 bytes wanted\n", "{args:?}");
        assert_eq!(output.status.code(), Some(3), "{args:?}");
    }
    // More elements than 64 bits count are no lack of this machine's, but an input that no memory serves.
    put("col.npy", "(4294967296, 0)");
    put("row.npy", "(0, 4294967296)");
    put("cols.npy", "(4294967296, 1, 0)");
    put("rows.npy", "(4294967296, 0, 4294967296)");
    put("one_col.npy", "(1, 4294967296, 0)");
    put("one_row.npy", "(1, 0, 4294967296)");
    let wanted = "c.npy: C would be 4294967296 x 4294967296, larger than any memory";
    let one = "c.npy: C would be 1 x 4294967296 x 4294967296, larger than any memory";
    let claimed = "rows.npy: its .npy header claims 4294967296 x 0 x 4294967296, beyond any memory";
    for (args, why) in [
        (&["mul", "col.npy", "row.npy"][..], wanted),
        (&["gram", "row.npy"], wanted),
        (&["batch", "cols.npy", "rows.npy"], claimed),
        (&["batch", "one_col.npy", "one_row.npy"], one),
    ] {
        let output = limited(&bench, KIB, &[args, &["-o", "c.npy", "--device", "cpu"]].concat());
        assert_eq!(text(&output.stderr), format!("lanky: {why}\n"), "{args:?}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    assert_eq!(bench.get("c.npy"), b"as it was");
}

fn with_shape(shape: &str) -> String {
    format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}")
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bench = bench();
    let whole = bench.get("good.npy");
    for length in 0..whole.len() {
        bench.put("bad.npy", &whole[..length]);
        bench.fail(2, &["mul", "bad.npy", "good.npy", "-o", "c.npy", "--device", "cpu"]);
    }
    bench.put("bad.npy", [&whole[..], b"more"].concat());
    bench.succeed(&["mul", "bad.npy", "good.npy", "-o", "d.npy"]);
    assert_eq!(bench.get("c.npy"), b"as it was");
}

#[test]
fn headers_as_others_write_them_are_read() {
    let bench = bench();
    for header in [
        "{'descr': '=f8', 'fortran_order': False, 'shape': (2, 2)}",
        "{\"shape\": (2L, 2L), \"descr\": \"<f8\", \"fortran_order\": False,}",
        "  {  'fortran_order'  :True,'descr':'<f8','shape':(2,2,),  }  \n\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
    ] {
        for version in [1, 2, 3] {
            bench.put("odd.npy", npy(version, header, &[0; 32]));
            bench.succeed(&["mul", "odd.npy", "good.npy", "-o", "d.npy"]);
        }
    }
}

#[test]
fn inputs_that_do_not_fit() {
    let bench = bench();
    bench.put("A.npy", Array::<f64>::integers(&[200, 299], 1, false).file(1));
    bench.put("B.npy", Array::<f64>::integers(&[300, 4], 1, false).file(1));
    bench.put("single.npy", Array::<f32>::integers(&[2, 2], 1, false).file(1));
    bench.put("row.npy", Array::<f64>::integers(&[2], 1, false).file(1));
    bench.put("huge.npy", with("'<f8'", "(2305843009213693952,)"));
    let table: [(&[&str], &str); 15] = [
        (&["A.npy", "B.npy"], "B.npy: B is 300 x 4, but A is 200 x 299: B needs 299 rows (or --transpose-b)"),
        (
            &["A.npy", "B.npy", "--transpose-b"],
            "B.npy: B transposed is 4 x 300, but A is 200 x 299: B needs 299 columns (or no --transpose-b)",
        ),
        (
            &["A.npy", "B.npy", "--transpose-a"],
            "B.npy: B is 300 x 4, but A transposed is 299 x 200: B needs 200 rows (or --transpose-b)",
        ),
        (&["good.npy", "single.npy"], "single.npy: B is f32, but A is f64: both must be of one type"),
        (
            &["good.npy", "good.npy", "--c", "single.npy"],
            "single.npy: C0 is f32, but A is f64: both must be of one type",
        ),
        (&["good.npy", "good.npy", "--c", "A.npy"], "A.npy: C0 is 200 x 299, but C is 2 x 2: they must be the same"),
        (
            &["good.npy", "good.npy", "--c", "row.npy"],
            "row.npy: C0 is a vector of 2, but C is 2 x 2: they must be the same",
        ),
        (&["good.npy", "good.npy", "--beta", "2"], "--beta 2 needs the matrix that it multiplies: --c C0.npy"),
        (&["single.npy", "single.npy", "--alpha", "1e300"], "--alpha 1e300 does not fit into f32"),
        (
            &["good.npy", "good.npy", "--alpha", "1e500"],
            "invalid value '1e500' for '--alpha <X>': it is larger than any f64; infinity is inf (see lanky --help)",
        ),
        (
            &["good.npy", "good.npy", "--beta", "-1e500", "--c", "good.npy"],
            "invalid value '-1e500' for '--beta <X>': it is larger than any f64; infinity is inf (see lanky --help)",
        ),
        (&["A.npy", "row.npy"], "row.npy: B is 2 x 1, but A is 200 x 299: B needs 299 elements"),
        (
            &["A.npy", "row.npy", "--transpose-b"],
            "row.npy: B transposed is 1 x 2, but A is 200 x 299: B needs 299 elements and no --transpose-b",
        ),
        (&["huge.npy", "good.npy"], "huge.npy: its .npy header claims 2305843009213693952 elements, beyond any memory"),
        (&["none.npy", "good.npy"], "none.npy: no such file or directory"),
    ];
    for (args, expected) in table {
        let error = bench.fail(2, &[&["mul"], args, &["-o", "c.npy", "--device", "cpu"]].concat());
        assert_eq!(error, format!("lanky: {expected}\n"));
        assert_eq!(bench.get("c.npy"), b"as it was");
    }
    assert!(!bench.names().iter().any(|name| name.starts_with('.')));
}

#[test]
fn bad_usage_is_one_line_too() {
    let bench = bench();
    let mul = ["mul", "good.npy", "good.npy", "-o", "c.npy"];
    let table: [&[&str]; 14] = [
        &["--device", "gpu"],
        &["--device", "cuda:"],
        &["--device", "cuda:-1"],
        &["--device", "cuda:99999999999999999999"],
        &["--alpha", "one"],
        &["--alpha", "--json"],
        &["--alpha"],
        &["--beta", ""],
        &["--variant", "no_such_kernel"],
        &["--unknown"],
        &["a third one"],
        &["--json", "--json"],
        &["--device", "cpu", "--json", "-o", "-"],
        &["-o", "d.npy"],
    ];
    for more in table {
        bench.fail(2, &[&mul, more].concat());
    }
    let known = bench.fail(2, &[&mul[..], &["--variant", "no_such_kernel"]].concat());
    assert!(known.contains("tsm2r_prefetch") && known.contains("gemm"), "{known}");
    for args in
        [&[][..], &["mul"], &["nonsense"], &["plan", "1", "2"], &["plan", "-1", "2", "3"], &["demo", "--m", "0"]]
    {
        bench.fail(2, args);
    }
    assert_eq!(bench.get("c.npy"), b"as it was");
}

#[test]
fn outputs_that_cannot_be_written_are_found_first() {
    let bench = bench();
    fs::create_dir(bench.path("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere.npy", bench.path("dangling.npy")).unwrap();
    let long = "x".repeat(300);
    for output in ["folder", "none/c.npy", "new/", "good.npy/c.npy", "dangling.npy", "/proc/c.npy", "", &long] {
        bench.fail(2, &["mul", "good.npy", "good.npy", "-o", output, "--device", "cpu"]);
    }
    bench.fail(2, &["mul", "good.npy", "good.npy", "-o", "/dev/full", "--device", "cpu"]);
    assert_eq!(bench.names(), ["c.npy", "dangling.npy", "folder", "good.npy"]);
}

#[test]
fn a_limit_on_file_size_is_a_failed_write() {
    let bench = bench();
    bench.put("tall.npy", Array::<f64>::integers(&[5000, 2], 1, false).file(1));
    let line = format!("ulimit -f 1; exec {} mul tall.npy good.npy -o c.npy --device cpu", env!("CARGO_BIN_EXE_lanky"));
    let output = Command::new("sh").args(["-c", &line]).current_dir(bench.path("")).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).lines().count()), (Some(2), 1), "{}", text(&output.stderr));
    assert_eq!(bench.get("c.npy"), b"as it was");
    assert_eq!(bench.names(), ["c.npy", "good.npy", "tall.npy"]);
}

#[test]
fn odd_inputs_do_not_hang() {
    let bench = bench();
    let fifo = Command::new("mkfifo").arg(bench.path("fifo")).status();
    let mut inputs = vec!["/dev/zero", "/dev/null", ".", "/proc/self/status"];
    if fifo.is_ok_and(|status| status.success()) {
        inputs.push("fifo");
    }
    for input in inputs {
        for args in [["mul", input, "good.npy"], ["mul", "good.npy", input], ["batch", input, "good.npy"]] {
            let (code, said) = soon(bench.command(&args).args(["-o", "c.npy", "--device", "cpu"]));
            assert!(code == Some(2) && said.starts_with(&format!("lanky: {input}: ")), "{args:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        }
    }
    // Nor where a text is wanted: a suite, results, a description, ceilings, a database.
    for input in ["/dev/zero", ".", "/dev/null", "fifo"] {
        for args in [
            &["report", input, "-o", "p.html"][..],
            &["bench", "--suite", input],
            &["bench", "--compare", input, input],
            &["plan", "100", "4", "100", "--gpu", input],
            &["plan", "100", "4", "100", "--gpu", "h200", "--ceilings", input],
            &["plan", "--gpu", "h200", "--against", input],
            &["tune", "--from", input, "--compare"],
        ] {
            let (code, said) = soon(&mut bench.command(args));
            assert!(code == Some(2) && said.contains(input), "{args:?}: {said}");
        }
        let plan = ["plan", "100", "4", "100", "--gpu", "h200"];
        let (code, said) = soon(bench.command(&plan).env("LANKY_TUNED", input));
        assert!(code == Some(0) && said.contains("the model decides"), "LANKY_TUNED={input}: {said}");
    }
}

/// The exit code and the errors of what ends within seconds.
fn soon(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(5) {
            child.kill().unwrap();
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A link that somebody left under the name of an unfinished file is not followed.
#[test]
fn a_link_in_the_way_is_not_followed() {
    let bench = bench();
    std::fs::write(bench.path("victim"), "as it was").unwrap();
    // The shell's number becomes lanky's.
    let script = format!(
        "ln -s victim .lanky-$$-0; exec {} mul good.npy good.npy -o d.npy --device cpu",
        env!("CARGO_BIN_EXE_lanky")
    );
    let status = Command::new("sh").args(["-c", &script]).current_dir(bench.path(".")).status().unwrap();
    assert!(status.success());
    assert_eq!(bench.get("victim"), b"as it was");
    assert_eq!(bench.get("d.npy").get(..6), Some(&b"\x93NUMPY"[..]));
}

#[test]
fn a_pipe_as_output_gets_the_bytes() {
    let bench = bench();
    if !Command::new("mkfifo").arg(bench.path("fifo")).status().is_ok_and(|status| status.success()) {
        skipped("a_pipe_as_output_gets_the_bytes", "no mkfifo");
        return;
    }
    bench.succeed(&["mul", "good.npy", "good.npy", "-o", "d.npy"]);
    let mut reader = Command::new("cat").arg(bench.path("fifo")).stdout(Stdio::piped()).spawn().unwrap();
    bench.succeed(&["mul", "good.npy", "good.npy", "-o", "fifo"]);
    let mut bytes = Vec::new();
    reader.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    reader.wait().unwrap();
    assert_eq!(bytes, bench.get("d.npy"));
}

#[test]
fn no_gpu_is_exit_code_3() {
    let bench = bench();
    // Another device than any machine has, so that this holds with a GPU too.
    let error = bench.fail(3, &["mul", "good.npy", "good.npy", "-o", "c.npy", "--device", "cuda:4000"]);
    assert!(error.len() > "lanky: \n".len(), "{error}");
    bench.fail(3, &["demo", "--device", "cuda:4000"]);
    assert_eq!(bench.get("c.npy"), b"as it was");
    assert_eq!(bench.names(), ["c.npy", "good.npy"]);
}

#[test]
fn a_forced_kernel_does_not_go_with_the_cpu() {
    let bench = bench();
    let mul = ["mul", "good.npy", "good.npy", "-o", "c.npy", "--variant", "gemm_tiled"];
    for args in [&mul[..], &["demo", "--variant", "gemm_tiled"]] {
        let error = bench.fail(2, &[args, &["--device", "cpu"]].concat());
        assert!(error.contains("does not go with --device cpu"), "{error}");
    }
    assert_eq!(bench.get("c.npy"), b"as it was");
    assert_eq!(bench.names(), ["c.npy", "good.npy"]);
}

#[test]
fn a_forced_kernel_needs_a_gpu_to_be_found() {
    if lanky::Device::cuda(0).is_ok() {
        skipped("a_forced_kernel_needs_a_gpu_to_be_found", "there is a GPU");
        return;
    }
    let bench = bench();
    let mul = ["mul", "good.npy", "good.npy", "-o", "c.npy", "--variant", "gemm_tiled"];
    for args in [&mul[..], &["demo", "--variant", "gemm_tiled"]] {
        bench.fail(3, &[args, &["--device", "auto"]].concat());
    }
    assert_eq!(bench.get("c.npy"), b"as it was");
    assert_eq!(bench.names(), ["c.npy", "good.npy"]);
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let bench = bench();
    for args in [&["info"][..], &["--help"], &["plan", "20480", "16", "20480", "--gpu", "h200"]] {
        let mut child = bench.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
        assert_eq!(output.status.signal(), None);
    }
}

#[test]
fn a_reader_of_c_that_has_seen_enough_is_no_fault() {
    let bench = Bench::new();
    // More than a pipe holds, so that the writer meets its end.
    bench.put("tall.npy", Array::<f64>::integers(&[50_000, 2], 1, false).file(1));
    bench.put("good.npy", Array::<f64>::integers(&[2, 2], 1, false).file(1));
    let args = ["mul", "tall.npy", "good.npy", "-o", "-", "--device", "cpu"];
    let mut child = bench.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert_eq!(&start, b"\x93NUMP");
}

#[test]
fn ctrl_c_leaves_nothing() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[600, 600], 1, false).file(1));
    bench.put("c.npy", "as it was");
    if !Command::new("mkfifo").arg(bench.path("fifo")).status().is_ok_and(|status| status.success()) {
        skipped("ctrl_c_leaves_nothing", "no mkfifo");
        return;
    }
    let kill = |id: u32, signal: &str| Command::new("kill").args([signal, &id.to_string()]).status().unwrap();
    let run = |output: &str| {
        let args = ["mul", "a.npy", "a.npy", "-o", output, "--device", "cpu"];
        bench.command(&args).stderr(Stdio::piped()).spawn().unwrap()
    };
    // At several moments of a run, each of which ends in one of the two ways that are allowed.
    for pause in [0, 5, 10, 20, 40, 80] {
        let mut child = run("c.npy");
        sleep(Duration::from_millis(pause));
        kill(child.id(), "-INT");
        let status = child.wait().unwrap();
        // Before the handler is there, the signal itself ends the process.
        assert!(matches!(status.code(), Some(0 | 130)) || status.signal() == Some(2), "{status:?}");
        let whole = bench.get("c.npy").starts_with(b"\x93NUMPY");
        assert!(whole || bench.get("c.npy") == b"as it was");
        assert_eq!(bench.names(), ["a.npy", "c.npy", "fifo"]);
    }
    // While it waits for the reader of a FIFO it can be met for certain.
    let mut child = run("fifo");
    await_handlers(child.id());
    kill(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(exists(&bench.path("fifo")));
}
