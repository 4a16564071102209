//! The child cargo that compiles the kernels.

use crate::rust_src::{Compiler, Library};
use crate::{CudaBuilderError, NvvmArch, depends};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const TRIPLE: &str = "nvptx64-nvidia-cuda";

/// Variables of the caller that the child must not see, by their beginnings: flags, wrappers and profiles of the outer
/// build, what cargo tells a build script, and cargo's and this project's own switches.
const SCRUBBED: &[&str] = &[
    "RUSTFLAGS",
    "RUSTDOC",
    "RUSTC",
    "CLIPPY_",
    "LANKY_",
    "__CARGO",
    "CARGO_ENCODED_",
    "CARGO_BUILD_",
    "CARGO_TARGET_",
    "CARGO_PROFILE_",
    "CARGO_UNSTABLE_",
    "CARGO_INCREMENTAL",
    "CARGO_ALIAS_",
    "CARGO_FEATURE_",
    "CARGO_CFG_",
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_",
    "CARGO_LOG",
    "DEP_",
    "OUT_DIR",
    "TARGET",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "DEBUG",
    "PROFILE",
];

pub(crate) struct Child {
    pub(crate) folder: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) library: Library,
    pub(crate) compiler: Compiler,
    pub(crate) arch: NvvmArch,
    pub(crate) release: bool,
}

pub(crate) struct Output {
    pub(crate) ptx: String,
    pub(crate) depends_on: Vec<PathBuf>,
}

impl Child {
    pub(crate) fn run(&self) -> Result<Output, CudaBuilderError> {
        self.prepare_target()?;
        let mut command = self.command();
        let output = command.output().map_err(|error| CudaBuilderError::Program {
            program: command.get_program().to_string_lossy().into_owned(),
            reason: error.to_string(),
        })?;
        let messages = without_noise(&String::from_utf8_lossy(&output.stderr));
        if !messages.is_empty() {
            eprintln!("{messages}");
        }
        if !output.status.success() {
            let arch = self.arch.target_cpu();
            return Err(CudaBuilderError::BuildFailed { folder: self.folder.clone(), arch, messages });
        }
        self.collect()
    }

    /// Empties the target folder if it is of other flags or another compiler: there is one output in it then.
    fn prepare_target(&self) -> Result<(), CudaBuilderError> {
        let stamp = self.target.join("lanky-stamp");
        let now = format!("{}\n{}\n{}", self.flags().join("\n"), self.folder.display(), self.compiler.version);
        if std::fs::read_to_string(&stamp).is_ok_and(|before| before == now) {
            return Ok(());
        }
        let io = |source| CudaBuilderError::Io { path: self.target.clone(), source };
        if stamp.exists() {
            std::fs::remove_dir_all(&self.target).map_err(io)?;
        }
        std::fs::create_dir_all(&self.target).map_err(io)?;
        std::fs::write(&stamp, now).map_err(io)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_scrubbed(name)) {
            command.env_remove(name);
        }
        command.current_dir(&self.workspace);
        command.args(["rustc", "--lib", "--release", "--crate-type", "staticlib", "-Zbuild-std=core"]);
        command.args(["--target", TRIPLE, "--target-dir"]).arg(&self.target);
        command.arg("--manifest-path").arg(self.folder.join("Cargo.toml"));
        if self.workspace.join("Cargo.lock").is_file() {
            command.arg("--locked");
        }
        command.args(["--quiet", "--", "--emit=asm"]);
        command.env("RUSTC_BOOTSTRAP", "1");
        // Empty ones also turn off what a configuration file says.
        command.env("RUSTC_WRAPPER", "").env("RUSTC_WORKSPACE_WRAPPER", "");
        command.env("CARGO_BUILD_BUILD_DIR", &self.target);
        command.env("CARGO_ENCODED_RUSTFLAGS", self.flags().join("\u{1f}"));
        if !self.library.in_sysroot {
            command.env("__CARGO_TESTS_ONLY_SRC_ROOT", &self.library.path);
        }
        let checks = if self.release { "false" } else { "true" };
        let profile = [
            ("OPT_LEVEL", "3"),
            ("LTO", "fat"),
            ("CODEGEN_UNITS", "1"),
            ("PANIC", "abort"),
            ("DEBUG", "false"),
            ("STRIP", "none"),
            ("INCREMENTAL", "false"),
            ("DEBUG_ASSERTIONS", checks),
            ("OVERFLOW_CHECKS", checks),
        ];
        command.envs(profile.map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value)));
        command
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("-Ctarget-cpu={}", self.arch.target_cpu()),
            format!("-Ctarget-feature=+{}", self.arch.ptx_feature()),
            // Loops over tiles must go: an array in a loop that stays is in local memory.
            "-Cllvm-args=-unroll-threshold=2000".to_string(),
            // The same bytes wherever things lie: no file, line or column in panics, and no folder of this machine.
            "-Zlocation-detail=none".to_string(),
        ];
        let homes = [
            (Some(self.workspace.clone()), "/workspace"),
            (Some(self.library.path.clone()), "/library"),
            (cargo_home(), "/cargo"),
        ];
        for (from, to) in homes {
            flags.extend(from.map(|from| format!("--remap-path-prefix={}={to}", from.display())));
        }
        flags
    }

    /// Reads the output that the child left.
    fn collect(&self) -> Result<Output, CudaBuilderError> {
        let folder = self.target.join(TRIPLE).join("release");
        let deps = folder.join("deps");
        let missing = || CudaBuilderError::NoPtx(deps.clone());
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|source| CudaBuilderError::Io { path: path.to_path_buf(), source })
        };
        // A crate whose version changed leaves two; what was made last is this build's.
        let made = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
        let assembly = files(&deps, "s").into_iter().max_by_key(made).ok_or_else(missing)?;
        let dep_info = files(&folder, "d").into_iter().max_by_key(made).ok_or_else(missing)?;
        let homes = cargo_home();
        let mut foreign: Vec<&Path> = vec![&self.target, &self.library.path];
        foreign.extend(homes.as_deref());
        Ok(Output { ptx: read(&assembly)?, depends_on: depends::watched(&read(&dep_info)?, &foreign) })
    }
}

fn is_scrubbed(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    SCRUBBED.iter().any(|beginning| name.starts_with(beginning))
}

fn cargo_home() -> Option<PathBuf> {
    let given = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    given.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|item| item.path()).filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Leaves out rustc's remark that the PTX version is an unstable feature, once for each crate, which nobody can heed.
fn without_noise(messages: &str) -> String {
    let is_noise = |paragraph: &&str| {
        let text = paragraph.trim_start();
        text.starts_with("warning: unstable feature specified for `-Ctarget-feature`")
            || (text.starts_with("warning: `") && text.lines().count() == 1 && text.contains("generated 1 warning"))
    };
    let kept: Vec<&str> = messages.split("\n\n").filter(|paragraph| !is_noise(paragraph)).collect();
    kept.join("\n\n").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_flags_are_scrubbed_and_his_homes_kept() {
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CLIPPY_ARGS", "CARGO_BUILD_RUSTFLAGS"]
        {
            assert!(is_scrubbed(OsStr::new(name)), "{name}");
        }
        for name in ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_MAKEFLAGS", "CARGO_NET_OFFLINE", "PATH"] {
            assert!(!is_scrubbed(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn only_the_noise_is_left_out_of_messages() {
        let noise =
            "warning: unstable feature specified for `-Ctarget-feature`: `ptx78`\n  |\n  = note: may change\n\n";
        let text =
            format!("{noise}warning: `k` (lib) generated 1 warning\n\nerror[E0308]: mismatched types\n --> k.rs\n\n");
        assert_eq!(without_noise(&text), "error[E0308]: mismatched types\n --> k.rs");
    }
}
