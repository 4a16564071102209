//! Builds a small crate of kernels, in two folders, with a hostile environment and with an error in it.
//!
//! What is compiled stays in cargo's folder for tests, so that only the first run compiles `core` (10 s a folder).

use lanky_cuda_builder::{Built, CudaBuilder, CudaBuilderError, NvvmArch, rust_src};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const MANIFEST: &str = r#"[workspace]
[package]
name = "fixture"
version = "0.1.0"
edition = "2024"
"#;

const LOCK: &str = r#"version = 4

[[package]]
name = "fixture"
version = "0.1.0"
"#;

const SOURCE: &str = r#"#![no_std]
#![feature(abi_ptx)]

static SCALES: [f32; 64] = { let mut s = [0.5; 64]; s[7] = 3.0; s };

#[inline(never)]
fn scale(x: f32, index: u32) -> f32 { x * SCALES[index as usize] }

/// Calls a function, reads a constant, and may panic with a place in this file.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn scaled(x: *mut f32, index: u32) { unsafe { *x = scale(*x, index) } }

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn doubled(x: *mut f32) { unsafe { *x = *x + *x } }

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }
"#;

/// Where `core` cannot be compiled there is nothing to test here; `./setup` makes it so that it can.
fn no_rust_src(test: &str) -> bool {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let found = rust_src::Compiler::ask(&workspace).is_ok_and(|compiler| rust_src::find(&compiler, &workspace).is_ok());
    if !found {
        skipped(test, "no rust-src");
    }
    !found
}

/// Says that a test is left out, past the test harness, which keeps what passing tests print, and to the count of `.ci/run`.
fn skipped(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("stderr");
    if let Some(count) = std::env::var_os("LANKY_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(count);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes())).expect("a file of lines");
    }
}

/// One writer at a time: the folders are shared.
static FOLDERS: Mutex<()> = Mutex::new(());

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda_builder").join(name)
}

/// Writes the fixture, touching only what differs.
fn write(folder: &Path, source: &str) {
    std::fs::create_dir_all(folder.join("src")).unwrap();
    for (path, text) in [("Cargo.toml", MANIFEST), ("Cargo.lock", LOCK), ("src/lib.rs", source)] {
        let path = folder.join(path);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(text) {
            std::fs::write(&path, text).unwrap();
        }
    }
    let (ours, theirs) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/rust-src"), folder.join("target"));
    if let Ok(ours) = ours.canonicalize() {
        std::fs::create_dir_all(&theirs).unwrap();
        let _ = std::os::unix::fs::symlink(ours, theirs.join("rust-src"));
    }
}

fn build(folder: &Path, target: &str) -> Result<Built, CudaBuilderError> {
    CudaBuilder::new(folder)
        .arch(NvvmArch::Compute90)
        .target_dir(folder.join("target").join(target))
        .launch_bounds(|entry| (entry == "doubled").then_some((256, 2)))
        .ptx_version(|entry| (entry == "scaled").then_some((8, 0)))
        .copy_to(folder.join("whole.ptx"))
        .build()
}

#[test]
fn the_same_bytes_from_two_folders_and_errors_that_can_be_read() {
    if no_rust_src("the_same_bytes_from_two_folders_and_errors_that_can_be_read") {
        return;
    }
    let _alone = FOLDERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (one, other) = (folder("one"), folder("some/other folder"));
    write(&one, SOURCE);
    write(&other, SOURCE);
    let built = build(&one, "ptx").unwrap();
    assert_eq!(built.modules, build(&other, "ptx").unwrap().modules);

    let names: Vec<_> = built.modules.iter().map(|module| module.entry.as_str()).collect();
    assert_eq!(names, ["doubled", "scaled"]);
    let (doubled, scaled) = (&built.modules[0].ptx, &built.modules[1].ptx);
    assert!(doubled.contains(".version 7.8\n.target sm_90\n.address_size 64\n"), "{doubled}");
    assert!(scaled.contains(".version 8.0\n.target sm_90\n.address_size 64\n"), "{scaled}");
    assert!(doubled.contains(")\n.maxntid 256, 1, 1\n.minnctapersm 2\n{\n"), "{doubled}");
    assert!(!doubled.contains("SCALES") && scaled.contains("SCALES"), "{scaled}");
    assert!(scaled.contains("call") && scaled.matches(".func").count() >= 1, "{scaled}");
    let whole = std::fs::read_to_string(one.join("whole.ptx")).unwrap();
    for path in ["lib.rs", "/library", "/workspace", env!("CARGO_TARGET_TMPDIR")] {
        assert!(!whole.contains(path), "{path} is in the PTX");
    }
    let one = one.canonicalize().unwrap();
    assert_eq!(built.depends_on, [one.join("Cargo.toml"), one.join("src")]);

    write(&one, &SOURCE.replace("*x + *x", "\"twice\""));
    let error = build(&one, "ptx").unwrap_err();
    assert!(error.to_string().contains("did not compile for sm_90"), "{error}");
    let CudaBuilderError::BuildFailed { messages, .. } = error else { panic!("{error}") };
    assert!(messages.starts_with("error[E0308]: mismatched types\n"), "{messages}");
    assert!(messages.contains("src/lib.rs:14:") && messages.contains("expected `f32`, found `&str`"), "{messages}");
    write(&one, SOURCE);
    assert_eq!(build(&one, "ptx").unwrap(), built);
}

#[test]
fn the_callers_environment_does_not_matter() {
    if no_rust_src("the_callers_environment_does_not_matter") {
        return;
    }
    let _alone = FOLDERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let hostile = [
        ("RUSTFLAGS", "-Cno-such-flag"),
        ("CARGO_ENCODED_RUSTFLAGS", "-Cno-such-flag"),
        ("CARGO_BUILD_TARGET", "no-such-target"),
        ("CARGO_BUILD_RUSTFLAGS", "-Cno-such-flag"),
        ("CARGO_TARGET_DIR", "/proc/no-such-folder"),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "true"),
        ("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS", "-Cno-such-flag"),
        ("RUSTC_WRAPPER", "/no/such/wrapper"),
        ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
        ("CLIPPY_ARGS", "-Dclippy::all"),
    ];
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "builds_in_this_environment", "--nocapture"])
        .envs(hostile)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by another test, in an environment of its own"]
fn builds_in_this_environment() {
    let folder = folder("one");
    write(&folder, SOURCE);
    let before = std::fs::read_to_string(folder.join("whole.ptx"));
    build(&folder, "ptx").unwrap();
    if let Ok(before) = before {
        assert_eq!(std::fs::read_to_string(folder.join("whole.ptx")).unwrap(), before);
    }
}

#[test]
fn a_folder_without_a_crate_is_an_error() {
    let error = CudaBuilder::new("no/such/crate").build().unwrap_err();
    assert_eq!(error.to_string(), "there is no crate in no/such/crate");
}
