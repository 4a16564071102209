//! The host crate type-checks against the published `cust` 0.3.2 too, so that ours and that one stay interchangeable.
//!
//! A workspace of the host crate's sources alone, in which `cust` is the published crate, is put under the target
//! folder and checked. A check links nothing, so a folder with an empty `libcuda.so` is toolkit enough.

#![cfg(unix)]

mod common;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PUBLISHED: &str = r#"cust = "=0.3.2""#;

/// Something that only our crate has: where this compiles, the workspace has not got the published one.
const ONLY_OURS: &str = "//! Must not compile.\npub use cust::extra::last_failure;\n";

#[test]
fn host_type_checks_against_the_published_cust() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    if !root.join("crates/host/Cargo.toml").is_file() {
        return skip("the host crate is not beside this one");
    }
    let root = root.canonicalize()?;
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("published-cust");
    lay_out(&root, &place)?;

    let fetched = cargo(&place, &["fetch"])?;
    if !fetched.status.success() {
        let said = String::from_utf8_lossy(&fetched.stderr);
        let offline = ["download", "resolve host", "offline", "spurious network", "network failure", "timed out"];
        assert!(offline.iter().any(|word| said.contains(word)), "{said}");
        return skip("cust 0.3.2 is not cached, and crates.io cannot be reached");
    }
    let host = cargo(&place, &["check", "--package", "lanky-host"])?;
    assert!(host.status.success(), "{}", String::from_utf8_lossy(&host.stderr));

    let guard = cargo(&place, &["check", "--package", "only-ours"])?;
    let said = String::from_utf8_lossy(&guard.stderr);
    assert!(!guard.status.success() && said.contains("could not find `extra` in `cust`"), "{said}");
    Ok(())
}

fn skip(reason: &str) -> io::Result<()> {
    common::skipped("host_type_checks_against_the_published_cust", reason);
    Ok(())
}

fn cargo(place: &Path, arguments: &[&str]) -> io::Result<Output> {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        // What cargo has set for this test is about this package.
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_BUILD_")) {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .current_dir(place)
        .env("CARGO_TARGET_DIR", place.join("target"))
        .env("CUDA_LIBRARY_PATH", place.join("toolkit"))
        .env("LANKY_BUILD_KERNELS", "0")
        .env("RUSTFLAGS", "--cfg published_cust")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER") // clippy's, where that runs the tests
        .env_remove("DOCS_RS")
        .output()
}

fn lay_out(root: &Path, place: &Path) -> io::Result<()> {
    mirror(&root.join("crates/host"), &place.join("host"))?;
    write(&place.join("Cargo.toml"), workspace(root)?.as_bytes())?;
    // The versions that the workspace itself uses, which are those likely to be cached; cargo adds cust's own.
    let lock = root.join("Cargo.lock");
    if lock.is_file() {
        let (lock, seed) = (fs::read(lock)?, place.join("Cargo.lock.seed"));
        if fs::read(&seed).ok().as_ref() != Some(&lock) {
            write(&place.join("Cargo.lock"), &lock)?;
            write(&seed, &lock)?;
        }
    }
    let guard = "[package]\nname = \"only-ours\"\nedition = \"2024\"\n\n[dependencies]\ncust = { workspace = true }\n";
    write(&place.join("only-ours/Cargo.toml"), guard.as_bytes())?;
    write(&place.join("only-ours/src/lib.rs"), ONLY_OURS.as_bytes())?;
    write(&place.join("toolkit/include/cuda.h"), b"")?;
    write(&place.join("toolkit/lib64/libcuda.so"), b"/* an empty linker script */\n")
}

/// The workspace's manifest with only `host` in it, all else by its full path, and the published `cust`.
fn workspace(root: &Path) -> io::Result<String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let mut lines = vec!["[workspace]".to_owned(), "resolver = \"3\"".to_owned()];
    lines.push("members = [\"host\", \"only-ours\"]".to_owned());
    let (mut shared, mut replaced) = (false, false);
    for line in manifest.lines() {
        if line.starts_with('[') {
            shared = line.starts_with("[workspace.");
        }
        if !shared {
            continue;
        }
        if line.starts_with("cust = ") {
            replaced = true;
            lines.push(PUBLISHED.to_owned());
        } else {
            lines.push(line.replace("path = \"", &format!("path = \"{}/", root.display())));
        }
    }
    assert!(replaced, "the workspace has no dependency `cust` to be replaced");
    Ok(lines.join("\n") + "\n")
}

/// Makes `to` what `from` is.
fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    let names = |folder: &Path| -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect()
    };
    fs::create_dir_all(to)?;
    for name in names(to)? {
        if !from.join(&name).exists() {
            let stale = to.join(&name);
            if stale.is_dir() { fs::remove_dir_all(stale)? } else { fs::remove_file(stale)? }
        }
    }
    for name in names(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() { mirror(&from, &to)? } else { write(&to, &fs::read(from)?)? }
    }
    Ok(())
}

/// Writes a file, unless that is what it holds: cargo goes by the time of the last change.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|held| held == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}
