//! Files that are none, disks that are full, and processes that end early: the output is the old one or whole.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Array, Bench, await_handlers, npy, skipped, text};
use rustix::process::{Pid, Signal};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.put("good.npy", Array::<f64>::integers(&[2, 2], 1, false).file(1));
    bench
}

/// What is no file, as an input of any place, as an output and as both.
#[test]
fn what_is_no_file_is_said_to_be_none() {
    let bench = bench();
    let _listener = UnixListener::bind(bench.path("socket")).unwrap();
    symlink("loop.npy", bench.path("loop.npy")).unwrap();
    fs::create_dir(bench.path("folder")).unwrap();
    for odd in ["socket", "loop.npy", "folder", "/dev/full", "/dev/zero", "/dev/tty", "good.npy/x", "/proc/self/mem"] {
        for inputs in [[odd, "good.npy"], ["good.npy", odd]] {
            let began = Instant::now();
            let error = bench.fail(2, &["mul", inputs[0], inputs[1], "-o", "c.npy", "--device", "cpu"]);
            assert!(error.starts_with(&format!("lanky: {odd}: ")), "{error}");
            assert!(began.elapsed() < Duration::from_secs(2), "{odd}");
        }
        let error = bench.fail(2, &["mul", "good.npy", "good.npy", "--c", odd, "-o", "c.npy", "--device", "cpu"]);
        assert!(error.starts_with(&format!("lanky: {odd}: ")), "{error}");
        let error = bench.fail(2, &["gram", odd, "-o", "c.npy", "--device", "cpu"]);
        assert!(error.starts_with(&format!("lanky: {odd}: ")), "{error}");
    }
    for odd in ["socket", "loop.npy", "folder", "/dev/full", "good.npy/x"] {
        let error = bench.fail(2, &["mul", "good.npy", "good.npy", "-o", odd, "--device", "cpu"]);
        assert!(error.starts_with(&format!("lanky: {odd}: ")), "{error}");
    }
    assert_eq!(bench.names(), ["folder", "good.npy", "loop.npy", "socket"]);
}

/// A disk of 64 KiB that C does not fit on.
/// By whatever name: nothing is written then, and both are named.
#[test]
fn an_output_that_would_replace_an_input_or_another_output_is_refused() {
    let bench = Bench::new();
    for name in ["r.csv", "r-ceilings.csv", "x.toml", "h200.tuned", "r-graphs.csv"] {
        bench.put(name, "as it was");
    }
    let suite = "family,source,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,note\ntsm2r,mine,f64,ccc,n,n,0,9,3,7,,,,1,\n";
    bench.put("s.csv", suite);
    bench.put("s-variants.csv", suite);
    fs::create_dir(bench.path("folder")).expect("made");
    symlink("../r.csv", bench.path("folder/link.csv")).expect("a link");
    let before = bench.names();
    let plan = ["plan", "300", "4", "300", "--gpu", "h200"];
    let bench_s = ["bench", "--device", "cpu", "--samples", "1", "--against", "none"];
    for (args, more, both) in [
        (&["report", "r.csv"][..], &["-o", "r.csv"][..], ["r.csv", "r.csv, which is read"]),
        (&["report", "r.csv"], &["-o", "./folder/../r.csv"], ["./folder/../r.csv", "r.csv, which is read"]),
        (&["report", "r.csv"], &["--svg", "r.csv"], ["r.csv", "r.csv, which is read"]),
        (&["report", "folder/link.csv"], &["-o", "r.csv"], ["r.csv", "folder/link.csv, which is read"]),
        (&["report", "r.csv"], &["-o", "r-ceilings.csv"], ["r-ceilings.csv", "r-ceilings.csv, which is read"]),
        (&["report", "r.csv"], &["-o", "p.html", "--svg", "p.html"], ["p.html", "p.html, which is written too"]),
        (&["report", "r.csv"], &["-o", "folder/../p", "--into", "p"], ["folder/../p", "p, which is written too"]),
        (&plan[..4], &["--gpu-file", "x.toml", "--svg", "x.toml"], ["x.toml", "x.toml, which is read"]),
        (&plan, &["--ceilings", "r.csv", "--svg", "r.csv"], ["r.csv", "r.csv, which is read"]),
        (&bench_s, &["--suite", "s.csv", "--csv", "s.csv"], ["s.csv", "s.csv, which is read"]),
        (
            &bench_s,
            &["--suite", "s-variants.csv", "--csv", "s.csv"],
            ["s-variants.csv", "s-variants.csv, which is read"],
        ),
    ] {
        let error = bench.fail(2, &[args, more].concat());
        assert!(error.starts_with(&format!("lanky: {}: it would replace {}", both[0], both[1])), "{error}");
    }
    let tuned =
        bench.command(&[&plan[..], &["--svg", "h200.tuned"]].concat()).env("LANKY_TUNED", "h200.tuned").output();
    assert_eq!(tuned.expect("it starts").status.code(), Some(2));
    assert_eq!(bench.names(), before);
    for name in ["r.csv", "r-ceilings.csv", "x.toml", "h200.tuned", "r-graphs.csv"] {
        assert_eq!(text(&bench.get(name)), "as it was", "{name}");
    }
    // What replaces nothing: standard output and devices, as often as one likes, and other files.
    for more in [&["--svg", "f.svg"][..], &["--svg", "/dev/null"]] {
        assert!(bench.run(&[&plan[..], more].concat()).status.success(), "{more:?}");
    }
}

#[test]
fn a_full_disk_is_said_to_be_full() {
    let bench = bench();
    bench.put("tall.npy", Array::<f64>::integers(&[10_000, 2], 1, false).file(1));
    fs::create_dir(bench.path("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=64k none disk";
    let small = |line: &str| {
        let line = format!("{mount} || exit 77; {line}");
        Command::new("unshare").args(["-rm", "sh", "-c", &line]).current_dir(bench.path("")).output()
    };
    if !small("true").is_ok_and(|output| output.status.success()) {
        skipped("a_full_disk_is_said_to_be_full", "no file system may be mounted here");
        return;
    }
    let program = env!("CARGO_BIN_EXE_lanky");
    let line = format!(
        "printf old >disk/c.npy; {program} mul tall.npy good.npy -o disk/c.npy --device cpu; echo $?; cat disk/c.npy; ls -A disk"
    );
    let output = small(&line).unwrap();
    assert_eq!(text(&output.stderr), "lanky: disk/c.npy: no space left on device\n");
    assert_eq!(text(&output.stdout), "2\noldc.npy\n", "the old output is there, and nothing beside it");
}

/// A file system that may only be read, as even root finds it: the old output is as it was, and no new one is begun.
#[test]
fn where_nothing_may_be_written_nothing_changes() {
    let bench = bench();
    fs::create_dir(bench.path("disk")).unwrap();
    let mount = "mount -t tmpfs none disk && printf old >disk/c.npy && mount -o remount,ro none disk || exit 77";
    let on_it = |line: &str| {
        let line = format!("{mount}; {line}");
        Command::new("unshare").args(["-rm", "sh", "-c", &line]).current_dir(bench.path("")).output()
    };
    if !on_it("true").is_ok_and(|output| output.status.success()) {
        skipped("where_nothing_may_be_written_nothing_changes", "no file system may be mounted here");
        return;
    }
    let program = env!("CARGO_BIN_EXE_lanky");
    for (name, args) in
        [("c.npy", "mul good.npy good.npy"), ("new.npy", "mul good.npy good.npy"), ("c.npy", "gram good.npy")]
    {
        let line = format!("{program} {args} -o disk/{name} --device cpu; echo $?; cat disk/c.npy; ls -A disk");
        let output = on_it(&line).unwrap();
        assert_eq!(text(&output.stderr), format!("lanky: disk/{name}: read-only file system\n"));
        assert_eq!(text(&output.stdout), "2\noldc.npy\n", "{name}: the old output is there, and nothing beside it");
    }
}

/// Killed at any time there is the old output, or the new one, whole. What was being written may lie beside it.
#[test]
fn killed_at_any_time_the_output_is_old_or_whole() {
    let bench = bench();
    bench.put("tall.npy", Array::<f64>::integers(&[20_000, 2], 1, false).file(1));
    let args = ["mul", "tall.npy", "good.npy", "-o", "c.npy", "--device", "cpu"];
    let began = Instant::now();
    bench.run(&args);
    let (whole, takes) = (bench.get("c.npy"), began.elapsed());
    let old = vec![7_u8; 1000];
    let (mut olds, mut wholes, mut state) = (0, 0, 88_172_645_463_325_252_u64);
    for round in 0..50 {
        bench.put("c.npy", &old);
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // The first one at once, the last one when it is done.
        let share = if round == 49 { 40.0 } else { (state % 1000) as f64 / 800.0 };
        let mut child = bench.command(&args).stderr(Stdio::null()).spawn().unwrap();
        let pause = if round == 0 { Duration::ZERO } else { takes.mul_f64(share).min(Duration::from_secs(5)) };
        let end = Instant::now() + pause;
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        match bench.get("c.npy") {
            found if found == old => olds += 1,
            found if found == whole => wholes += 1,
            found => panic!("round {round}: neither old nor whole: {} bytes", found.len()),
        }
    }
    assert!(olds > 0 && wholes > 0, "{olds} old, {wholes} whole: no kill met it at work");
}

/// The signals that end a program: each with its own exit code, at once when it comes twice, with nothing left behind.
#[test]
fn signals_leave_nothing_beside_the_output() {
    let bench = bench();
    if !Command::new("mkfifo").arg(bench.path("fifo")).status().is_ok_and(|status| status.success()) {
        skipped("signals_leave_nothing_beside_the_output", "no mkfifo");
        return;
    }
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        for times in [1, 2] {
            // It waits for a reader of the FIFO.
            let args = ["mul", "good.npy", "good.npy", "-o", "fifo", "--device", "cpu"];
            let mut child = bench.command(&args).stderr(Stdio::piped()).spawn().unwrap();
            await_handlers(child.id());
            sleep(Duration::from_millis(100));
            let began = Instant::now();
            for _ in 0..times {
                Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            }
            let status = child.wait().unwrap();
            assert_eq!((status.code(), status.signal()), (Some(code), None), "{signal}");
            assert!(began.elapsed() < Duration::from_secs(2), "{signal}");
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert!(!said.contains("panicked"), "{said}");
        }
    }
    assert_eq!(bench.names(), ["fifo", "good.npy"]);
}

/// `nohup` has SIGHUP ignored, and it stays so: the program goes on until another signal comes.
#[test]
fn an_ignored_sighup_stays_ignored() {
    let bench = bench();
    if !Command::new("mkfifo").arg(bench.path("fifo")).status().is_ok_and(|status| status.success()) {
        return skipped("an_ignored_sighup_stays_ignored", "no mkfifo");
    }
    let program = env!("CARGO_BIN_EXE_lanky");
    let script = format!("trap '' HUP; exec {program} mul good.npy good.npy -o fifo --device cpu");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(bench.path(".")).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    await_handlers(child.id());
    let signal = |name: &str| Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(signal("-HUP").success());
    sleep(Duration::from_millis(500));
    assert!(signal("-TERM").success(), "it is there");
    assert_eq!(child.wait().unwrap().code(), Some(143), "SIGHUP did not end it");
}

/// A signal while the output is being made, whose unfinished file is there: it goes, and the old output stays.
#[test]
fn a_signal_at_work_leaves_the_old_output_alone() {
    let bench = bench();
    // Zeros that take no room, and seconds to multiply.
    let header = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3000, 3000)}", &[]);
    let whole = header.len() as u64 + 8 * 3000 * 3000;
    bench.put("large.npy", header);
    fs::OpenOptions::new().write(true).open(bench.path("large.npy")).expect("a file").set_len(whole).expect("holes");
    let bursts = [vec![Signal::INT], vec![Signal::TERM], vec![Signal::INT; 20], vec![Signal::TERM, Signal::INT]];
    for signals in bursts {
        bench.put("c.npy", "as it was");
        let args = ["mul", "large.npy", "large.npy", "-o", "c.npy", "--device", "cpu"];
        let mut child = bench.command(&args).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while bench.names() == ["c.npy", "good.npy", "large.npy"] {
            assert!(
                began.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none(),
                "no file is begun"
            );
            sleep(Duration::from_millis(1));
        }
        // A second signal in the moment in which the file is made can leave it.
        sleep(Duration::from_millis(50));
        for signal in &signals {
            rustix::process::kill_process(Pid::from_child(&child), *signal).expect("it is there, or not waited for");
        }
        // Which of two comes first is the system's choice.
        let code = child.wait().unwrap().code();
        assert!(signals.iter().any(|signal| code == Some(128 + signal.as_raw())), "{signals:?}: {code:?}");
        assert_eq!(bench.names(), ["c.npy", "good.npy", "large.npy"], "{signals:?}: what was begun is left");
        assert_eq!(bench.get("c.npy"), b"as it was", "{signals:?}");
    }
}

/// Standard streams that are closed from the start.
#[test]
fn closed_streams_are_no_panic() {
    let bench = bench();
    let program = env!("CARGO_BIN_EXE_lanky");
    bench.succeed(&["mul", "good.npy", "good.npy", "-o", "d.npy"]);
    // Before `main` Rust puts /dev/null where a standard stream is closed: what is said there is lost, and no fault.
    for (line, code) in [
        ("mul good.npy good.npy -o c.npy --device cpu --json >&-", 0),
        ("mul good.npy good.npy -o c.npy --device cpu 2>&-", 0),
        ("mul good.npy good.npy -o c.npy --device cpu <&-", 0),
        ("mul none.npy good.npy -o c.npy --device cpu 2>&-", 2),
        ("info >&-", 0),
        ("info >/dev/full", 2),
        ("mul good.npy good.npy -o - --device cpu >/dev/full", 2),
        ("plan 100 4 100 --gpu h200 --json >/dev/full", 2),
        ("mul good.npy good.npy -o - --device cpu | head -c 3 >/dev/null", 0),
    ] {
        let line = format!("{program} {line}");
        let output = Command::new("sh").args(["-c", &line]).current_dir(bench.path("")).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(!said.contains("panicked") && (output.status.success() || said.lines().count() <= 1), "{line}: {said}");
        if line.contains("-o c.npy") && output.status.success() {
            assert_eq!(bench.get("c.npy"), bench.get("d.npy"), "{line}: what was said is in the file");
        }
        let _ = fs::remove_file(bench.path("c.npy"));
    }
}

/// Whoever may not read or write is told so; root may.
#[test]
fn what_may_not_be_read_or_written_is_said() {
    let bench = bench();
    bench.put("shut.npy", Array::<f64>::integers(&[2, 2], 1, false).file(1));
    fs::set_permissions(bench.path("shut.npy"), PermissionsExt::from_mode(0o000)).unwrap();
    if fs::File::open(bench.path("shut.npy")).is_ok() {
        skipped("what_may_not_be_read_or_written_is_said", "this user may read everything");
        return;
    }
    let error = bench.fail(2, &["mul", "shut.npy", "good.npy", "-o", "c.npy", "--device", "cpu"]);
    assert_eq!(error, "lanky: shut.npy: permission denied\n");
    let error = bench.fail(2, &["mul", "good.npy", "good.npy", "-o", "shut.npy", "--device", "cpu"]);
    assert_eq!(error, "lanky: shut.npy: permission denied\n");
}
