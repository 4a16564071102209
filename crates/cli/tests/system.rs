//! What only the system sees: who may read an unfinished output, that it is on disk before it has its name, a disk that fails, a
//! signal while a file is read or written.

mod common;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Array, Bench, skipped, text};
use rustix::process::{Pid, Signal};

/// The functions of system/preload.rs, as a library; `None` where it cannot be put before the system's.
fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<&'static Path>> = OnceLock::new();
    *LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/preload.rs");
        let library: &Path = Box::leak(Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload.so").into_boxed_path());
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024", "--crate-type", "cdylib", "-Cdebuginfo=0", "-o"])
            .args([library, &source])
            .output()
            .expect("rustc starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        cfg!(target_env = "gnu").then_some(library)
    })
}

/// A folder with a matrix of 16 kB and an old output, and its square's command with these words for the library.
fn squares(words: &str) -> Option<(Bench, Command)> {
    let library = library()?;
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[45, 45], 1, false).file(1));
    bench.put("c.npy", "as it was");
    let mut command = bench.command(&["mul", "a.npy", "a.npy", "-o", "c.npy", "--device", "cpu"]);
    command.env("LD_PRELOAD", library).env("SYSTEM", words).stdout(Stdio::null()).stderr(Stdio::piped());
    Some((bench, command))
}

/// A file that has its name before its bytes are on disk is empty after a power failure; one that is open to more than the one
/// that it replaces shows them what they may not see.
#[test]
fn the_output_is_on_disk_before_it_has_its_name() {
    let Some((bench, mut command)) = squares("log=log") else {
        return skipped("the_output_is_on_disk_before_it_has_its_name", "no GNU C library");
    };
    std::fs::set_permissions(bench.path("c.npy"), Permissions::from_mode(0o640)).expect("it is there");
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&bench.get("log")), "open 640\nfsync\nrename\nfsync\n", "the file, its name, the folder");
}

#[test]
fn a_disk_that_fails_leaves_the_old_output() {
    let Some((bench, mut command)) = squares("fsync=5") else {
        return skipped("a_disk_that_fails_leaves_the_old_output", "no GNU C library");
    };
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("lanky: c.npy: input/output error"), "{}", text(&output.stderr));
    assert_eq!((bench.names(), bench.get("c.npy")), (vec!["a.npy".into(), "c.npy".into()], b"as it was".into()));
}

#[test]
fn a_signal_while_a_file_is_read_ends_it() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let Some((bench, mut command)) = squares("log=log read") else {
            return skipped("a_signal_while_a_file_is_read_ends_it", "no GNU C library");
        };
        let mut child = command.spawn().expect("it starts");
        let began = Instant::now();
        while !bench.path("log.reads").exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not read");
            sleep(Duration::from_millis(1));
        }
        rustix::process::kill_process(Pid::from_child(&child), signal).expect("it is there");
        let began = Instant::now();
        assert_eq!(child.wait().expect("a child").code(), Some(code));
        assert!(began.elapsed() < Duration::from_secs(2), "{signal:?}");
        assert_eq!(
            (bench.names(), bench.get("c.npy")),
            (["a.npy", "c.npy", "log", "log.reads"].map(Into::into).into(), b"as it was".into())
        );
    }
}

/// Between the removal of the unfinished output and the end nothing else is said, nor another output made.
#[test]
fn a_signal_while_the_output_is_written_ends_it() {
    let Some((bench, mut command)) = squares("log=log late") else {
        return skipped("a_signal_while_the_output_is_written_ends_it", "no GNU C library");
    };
    let child = command.spawn().expect("it starts");
    await_log(&bench, "fsync\n");
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).expect("it is there");
    let output = child.wait_with_output().expect("a child");
    assert_eq!((output.status.code(), text(&output.stderr).as_ref()), (Some(130), ""));
    assert_eq!(
        (bench.names(), bench.get("c.npy")),
        (["a.npy", "c.npy", "log"].map(Into::into).into(), b"as it was".into())
    );
}

/// A second signal, of any kind, while the first one's removal of the unfinished output takes for ever: the file is removed all the same.
#[test]
fn a_second_signal_leaves_nothing_either() {
    for [first, second] in
        [[Signal::INT; 2], [Signal::INT, Signal::TERM], [Signal::TERM, Signal::INT], [Signal::INT, Signal::HUP]]
    {
        let Some((bench, mut command)) = squares("log=log late stuck") else {
            return skipped("a_second_signal_leaves_nothing_either", "no GNU C library");
        };
        let child = command.spawn().expect("it starts");
        await_log(&bench, "fsync\n");
        let kill = |signal| rustix::process::kill_process(Pid::from_child(&child), signal).expect("it is there");
        kill(first);
        await_log(&bench, "unlink\n");
        kill(second);
        assert_eq!(ends_soon(child), Some(128 + second.as_raw()), "{first:?} {second:?}");
        assert_eq!(
            (bench.names(), bench.get("c.npy")),
            (["a.npy", "c.npy", "log"].map(Into::into).into(), b"as it was".into()),
            "{first:?} {second:?}"
        );
    }
}

fn await_log(bench: &Bench, end: &str) {
    let began = Instant::now();
    while !std::fs::read_to_string(bench.path("log")).is_ok_and(|log| log.ends_with(end)) {
        assert!(began.elapsed() < Duration::from_secs(60), "no {end}");
        sleep(Duration::from_millis(1));
    }
}

/// The exit code of what ends within seconds.
fn ends_soon(mut child: Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if began.elapsed() > Duration::from_secs(10) {
            child.kill().expect("it is there");
            return None;
        }
        sleep(Duration::from_millis(5));
    }
}
