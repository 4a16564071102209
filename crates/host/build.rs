//! Gives the library its kernels, as an archive of PTX in OUT_DIR.
//!
//! | LANKY_BUILD_KERNELS | the kernels are |
//! |---|---|
//! | not set, `0` | the committed ones, ptx/kernels.lpx: what every dependent gets |
//! | `auto` (in this workspace, by .cargo/config.toml) | compiled from ../kernels where that can be done, else the committed ones, with a warning |
//! | `1` | compiled, or the build fails |
//!
//! Besides, every tuned/*.tuned, as a list of names and texts.
//!
//! Nothing outside of OUT_DIR is written; `.ci/run ptx --update` renews the committed archive.

#[path = "src/ptx"]
mod ptx {
    pub(crate) mod archive;
    pub(crate) mod registers;
    pub(crate) mod writer;
}

use cuda_builder::{Built, CudaBuilder, CudaBuilderError, NvvmArch, rust_src};
use ptx::archive;
use ptx::writer::{self, Module};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

const KERNELS: &str = "../kernels";
const COMMITTED: &str = "ptx/kernels.lpx";
const TUNED: &str = "tuned";
const ARCHITECTURES: [NvvmArch; 2] = [NvvmArch::Compute80, NvvmArch::Compute90];

fn main() -> ExitCode {
    for name in ["LANKY_BUILD_KERNELS", "LANKY_RUST_SRC", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    match archive().and_then(|(archive, origin)| {
        archive::check(&archive).map_err(|damaged| format!("kernels, {origin}: {damaged}"))?;
        Ok((write("kernels.lpx", &archive)?, write("tuned.rs", tuned()?.as_bytes())?, origin))
    }) {
        Ok(((), (), origin)) => {
            println!("cargo:rustc-env=LANKY_PTX_ORIGIN={origin}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn write(name: &str, bytes: &[u8]) -> Result<(), String> {
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: not run by cargo")?;
    let path = PathBuf::from(folder).join(name);
    fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// The databases of measurements as an array of (name, text), by name.
fn tuned() -> Result<String, String> {
    if Path::new(TUNED).exists() {
        println!("cargo:rerun-if-changed={TUNED}");
    }
    let mut databases = Vec::new();
    for file in fs::read_dir(TUNED).into_iter().flatten() {
        let path = file.map_err(|error| format!("{TUNED}: {error}"))?.path();
        if path.extension().is_some_and(|extension| extension == "tuned") {
            println!("cargo:rerun-if-changed={}", path.display());
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            databases.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    databases.sort();
    Ok(format!("&{databases:?}"))
}

/// The archive, and where it is from.
fn archive() -> Result<(Vec<u8>, &'static str), String> {
    let wish = env::var("LANKY_BUILD_KERNELS").unwrap_or_default();
    let must = match wish.as_str() {
        _ if env::var_os("DOCS_RS").is_some() => return committed(),
        "" | "0" => return committed(),
        "auto" => false,
        "1" => true,
        other => return Err(format!("LANKY_BUILD_KERNELS is `{other}`; it can be 0, 1 or auto")),
    };
    match ready() {
        Err(reason) if must => Err(format!("the kernels cannot be compiled: {reason}")),
        Err(reason) => {
            println!("cargo:warning=using the committed PTX: {reason}");
            committed()
        }
        Ok(()) => Ok((compile()?, "built from source")),
    }
}

/// Whether the kernels can be compiled here, by the compiler that the committed ones were compiled by.
fn ready() -> Result<(), String> {
    let toolchain = "../../rust-toolchain.toml";
    let kernels = Path::new(KERNELS).canonicalize().map_err(|_| format!("there is no {KERNELS}"))?;
    println!("cargo:rerun-if-changed={toolchain}");
    let pinned = fs::read_to_string(toolchain).map_err(|error| format!("{toolchain}: {error}"))?;
    let workspace = kernels.ancestors().nth(2).unwrap_or(&kernels);
    let compiler = rust_src::Compiler::ask(workspace).map_err(|error| error.to_string())?;
    if !pinned.contains(&format!("\"{}\"", compiler.release)) {
        return Err(format!("this is rustc {}, not the one that rust-toolchain.toml names", compiler.release));
    }
    rust_src::find(&compiler, workspace).map_err(|error| error.to_string())?;
    Ok(())
}

fn compile() -> Result<Vec<u8>, String> {
    // One thread each: a kernel crate is one unit, on which a compiler works alone.
    let threads = ARCHITECTURES.map(|arch| std::thread::spawn(move || build(arch)));
    let mut modules = Vec::new();
    for (arch, thread) in ARCHITECTURES.into_iter().zip(threads) {
        let built = thread.join().map_err(|_| "the build of the kernels was cut short")?;
        let built = built.map_err(|error| error.to_string())?;
        built.rerun_if_changed();
        modules.extend(built.modules.iter().map(|module| Module::new(&module.entry, arch.target_cpu(), &module.ptx)));
    }
    modules.sort_by(|one, other| (&one.entry, &one.arch).cmp(&(&other.entry, &other.arch)));
    packed(&modules)
}

fn packed(modules: &[Module]) -> Result<Vec<u8>, String> {
    writer::pack(modules).map_err(|error| format!("the kernels cannot be packed: {error}"))
}

fn build(arch: NvvmArch) -> Result<Built, CudaBuilderError> {
    let bounds = |entry: &str| model::launch_bounds(entry).map(|bounds| (bounds.threads, bounds.min_blocks));
    CudaBuilder::new(KERNELS).arch(arch).launch_bounds(bounds).ptx_version(move |_| version(arch)).build()
}

/// Bulk copies are of PTX 8.0. All of sm_90's modules are: a driver takes all of them or none.
fn version(arch: NvvmArch) -> Option<(u32, u32)> {
    (arch == NvvmArch::Compute90).then_some((8, 0))
}

fn committed() -> Result<(Vec<u8>, &'static str), String> {
    let archive = match fs::read(COMMITTED) {
        Ok(archive) => archive,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("cargo:warning=there is no {COMMITTED}: the library has no kernels");
            packed(&[])?
        }
        Err(error) => return Err(format!("{COMMITTED}: {error}")),
    };
    if Path::new(COMMITTED).exists() {
        println!("cargo:rerun-if-changed={COMMITTED}");
    }
    Ok((archive, "committed"))
}
