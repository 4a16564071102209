//! Tells the program which commit it is built from: LANKY_COMMIT, or what git says of this repository, with -dirty if tracked
//! files differ from it; `unknown` where there is no git, and in a package, whatever repository it was unpacked in.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=LANKY_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let told = std::env::var("LANKY_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = told.or_else(commit).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=LANKY_BUILT_FROM={}", commit.trim());
}

/// What git says, if this folder is where it is in the repository.
fn commit() -> Option<String> {
    let prefix = git(&["rev-parse", "--show-prefix"])?;
    if prefix != "crates/cli/" {
        return None;
    }
    // Whatever changes the commit, or a file of the program.
    let root = Path::new(&git(&["rev-parse", "--show-toplevel"])?).to_path_buf();
    for name in ["HEAD", "logs/HEAD"] {
        watch(Path::new(&git(&["rev-parse", "--git-path", name])?));
    }
    for name in ["Cargo.lock", "Cargo.toml", "crates", "src"] {
        watch(&root.join(name));
    }
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if changed { commit + "-dirty" } else { commit })
}

/// Has cargo build anew when the file or folder changes; one that is not there would have it build anew each time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// What git prints, if it does; a repository of somebody else's, which it refuses, is none.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}
