//! Finds the source of `core`: the component rust-src, of exactly rustc's version.
//!
//! In this order: the compiler's own sysroot (where `rustup component add rust-src` puts it); the environment variable
//! `LANKY_RUST_SRC`, the absolute path of a folder that contains `library/`; `target/rust-src/<version>/` of the
//! workspace, where the project's `./setup` unpacks a distribution's package.

use crate::CudaBuilderError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler that will be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// `1.95.0`
    pub release: String,
    /// All that `rustc -vV` says.
    pub version: String,
    /// `rustc --print sysroot`.
    pub sysroot: PathBuf,
}

impl Compiler {
    /// Asks the rustc that a cargo in this folder would use.
    ///
    /// # Errors
    /// [`CudaBuilderError::Program`]: there is none, it cannot be started, or it fails.
    pub fn ask(folder: &Path) -> Result<Self, CudaBuilderError> {
        let version = rustc(folder, &["-vV"])?;
        let release = version.lines().find_map(|line| line.strip_prefix("release: ")).unwrap_or_default().to_string();
        let sysroot = PathBuf::from(rustc(folder, &["--print", "sysroot"])?.trim());
        Ok(Self { release, version, sysroot })
    }
}

fn rustc(folder: &Path, arguments: &[&str]) -> Result<String, CudaBuilderError> {
    let failed = |reason| CudaBuilderError::Program { program: "rustc".into(), reason };
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())) }
}

/// rust-src is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rust-src {release} not found ({}): `rustup component add rust-src` gets it, or name a folder with its `library` in LANKY_RUST_SRC", tried.join("; "))]
pub struct MissingRustSrc {
    /// The version that is needed.
    pub release: String,
    /// Where it was looked for, and what was wrong there.
    pub tried: Vec<String>,
}

/// Where `core` is to be compiled from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The folder `library`.
    pub path: PathBuf,
    /// Whether it is where cargo looks by itself.
    pub in_sysroot: bool,
}

/// Finds the source of `core` for this compiler and a workspace.
///
/// Reads the environment variable LANKY_RUST_SRC; nothing is fetched or written.
///
/// # Errors
/// [`MissingRustSrc`], with the places that were looked at, and what was wrong at each.
pub fn find(compiler: &Compiler, workspace: &Path) -> Result<Library, MissingRustSrc> {
    find_with(compiler, workspace, std::env::var_os("LANKY_RUST_SRC").map(PathBuf::from))
}

pub(crate) fn find_with(
    compiler: &Compiler,
    workspace: &Path,
    given: Option<PathBuf>,
) -> Result<Library, MissingRustSrc> {
    let release = &compiler.release;
    let mut tried = Vec::new();
    let mut look = |folder: PathBuf, in_sysroot: bool| {
        // Cargo runs build scripts in their package's folder: from there it would be another one than its author meant.
        if folder.is_relative() {
            tried.push(format!("{} is no absolute path", folder.display()));
            return None;
        }
        let path = folder.join("library");
        // What building core reads first: an empty or half unpacked folder is none.
        if !(path.join("Cargo.lock").is_file() && path.join("core/src/lib.rs").is_file()) {
            tried.push(format!("nothing in {}", path.display()));
            return None;
        }
        // Sysroot and compiler came together.
        match if in_sysroot { None } else { version_of(&folder) } {
            Some(version) if !same_version(&version, release) => {
                tried.push(format!("{} is of version {version}", path.display()));
                None
            }
            _ => Some(Library { path, in_sysroot }),
        }
    };
    look(compiler.sysroot.join("lib/rustlib/src/rust"), true)
        .or_else(|| given.filter(|folder| !folder.as_os_str().is_empty()).and_then(|folder| look(folder, false)))
        .or_else(|| look(workspace.join("target/rust-src").join(release), false))
        .ok_or_else(|| MissingRustSrc { release: release.clone(), tried })
}

/// A version read off a source tree names no patch release.
fn same_version(version: &str, release: &str) -> bool {
    let minor = |text: &str| text.split(['.', '-']).take(2).map(str::to_string).collect::<Vec<_>>();
    version == release || (version.split('.').count() == 2 && minor(version) == minor(release))
}

/// The version of the source in a folder: the file `src/version` of Rust's source archive, else the newest `stable(.. since = ..)`
/// in core, which is the release that the source became.
fn version_of(folder: &Path) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(folder.join("src/version")) {
        return text.split_whitespace().next().map(str::to_string);
    }
    let mut newest: u32 = 0;
    let mut folders = vec![folder.join("library/core/src")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).ok()?.flatten().map(|item| item.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                // Not `deprecated(since = ..)`, which may name a release to come.
                let attributes = text.split("stable(feature = \"").skip(1).filter_map(|rest| rest.split(')').next());
                let minors = attributes.filter_map(|text| text.split("since = \"1.").nth(1)?.split('.').next());
                newest = minors.filter_map(|minor| minor.parse().ok()).fold(newest, u32::max);
            }
        }
    }
    (newest > 0).then(|| format!("1.{newest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(folder: &Path, since: &str) {
        std::fs::create_dir_all(folder.join("library/core/src")).unwrap();
        std::fs::write(folder.join("library/Cargo.lock"), "").unwrap();
        let text =
            format!("#[stable(feature = \"x\", since = \"1.0.0\")] #[stable(feature = \"y\", since = \"{since}\")]");
        std::fs::write(folder.join("library/core/src/lib.rs"), text).unwrap();
    }

    #[test]
    fn every_place_is_looked_at_in_order_and_versions_are_compared() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let compiler = Compiler { release: "1.95.0".into(), version: String::new(), sysroot: at("sysroot") };
        let find = |given: Option<PathBuf>| find_with(&compiler, &at("workspace"), given);

        let missing = find(None).unwrap_err();
        assert_eq!(missing.tried.len(), 2, "{missing}");
        assert!(missing.to_string().contains("rust-src 1.95.0 not found"), "{missing}");
        // What anybody can do, who may have nothing of this repository but the crate.
        assert!(missing.to_string().contains("rustup component add rust-src"), "{missing}");
        assert!(!missing.to_string().contains("setup"), "{missing}");

        let relative = find(Some("source".into())).unwrap_err();
        assert!(relative.to_string().contains("source is no absolute path"), "{relative}");

        let workspace = at("workspace/target/rust-src/1.95.0");
        source(&workspace, "1.95.0");
        assert_eq!(find(None).unwrap(), Library { path: workspace.join("library"), in_sysroot: false });

        source(&at("given"), "1.94.0");
        assert_eq!(find(Some(at("given"))).unwrap().path, workspace.join("library"));
        source(&at("given"), "1.95.0");
        assert_eq!(find(Some(at("given"))).unwrap().path, at("given/library"));
        std::fs::create_dir_all(at("given/src")).unwrap();
        std::fs::write(at("given/src/version"), "1.95.1\n").unwrap();
        assert_eq!(find(Some(at("given"))).unwrap().path, workspace.join("library"));

        source(&at("sysroot/lib/rustlib/src/rust"), "1.95.0");
        assert!(find(Some(at("given"))).unwrap().in_sysroot);
    }
}
