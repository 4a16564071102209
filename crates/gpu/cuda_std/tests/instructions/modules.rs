//! The kernels' PTX: compiled here, or brought along.

use cuda_builder::{CudaBuilder, NvvmArch, PtxModule, rust_src};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The PTX version that has bulk copies.
const BULK_VERSION: (u32, u32) = (8, 0);

/// Where the PTX is left and looked for.
const FOLDER: &str = "LANKY_INSTRUCTIONS_PTX";

pub fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions/kernels")
}

/// The modules for sm_80 and for sm_90.
pub struct Modules {
    pub sm_80: Vec<PtxModule>,
    pub sm_90: Vec<PtxModule>,
}

impl Modules {
    pub fn by_arch(&self) -> [(&'static str, &[PtxModule]); 2] {
        [("sm_80", &self.sm_80), ("sm_90", &self.sm_90)]
    }
}

/// Compiles the kernels, once a process; without rust-src there is a reason instead.
pub fn compiled() -> Result<&'static Modules, &'static str> {
    static COMPILED: OnceLock<Result<Modules, String>> = OnceLock::new();
    COMPILED.get_or_init(compile).as_ref().map_err(String::as_str)
}

fn compile() -> Result<Modules, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    if !kernels().join("Cargo.toml").is_file() {
        return Err("the kernels are not beside this test".into());
    }
    let compiler = rust_src::Compiler::ask(&workspace).map_err(|error| error.to_string())?;
    let library = rust_src::find(&compiler, &workspace).map_err(|error| error.to_string())?;
    let build = |arch| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("instructions");
        let version = |entry: &str| entry.starts_with("bulk_").then_some(BULK_VERSION);
        let mut builder = CudaBuilder::new(kernels()).arch(arch).target_dir(target).ptx_version(version);
        if !library.in_sysroot {
            builder = builder.rust_src(library.path.parent().expect("it is a folder's `library`"));
        }
        builder.build().unwrap_or_else(|error| panic!("{error}")).modules
    };
    let modules = Modules { sm_80: build(NvvmArch::Compute80), sm_90: build(NvvmArch::Compute90) };
    if let Some(folder) = std::env::var_os(FOLDER) {
        write(&modules, Path::new(&folder)).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    }
    Ok(modules)
}

fn write(modules: &Modules, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (arch, modules) in modules.by_arch() {
        for module in modules {
            std::fs::write(folder.join(format!("{}.{arch}.ptx", module.entry)), &module.ptx)?;
        }
    }
    Ok(())
}

/// The modules of the folder that the environment names.
pub fn brought() -> Result<Modules, String> {
    let folder = std::env::var_os(FOLDER).ok_or(format!("{FOLDER} names no folder with PTX"))?;
    read(Path::new(&folder)).map_err(|error| format!("{folder:?}: {error}"))
}

fn read(folder: &Path) -> std::io::Result<Modules> {
    let mut modules = Modules { sm_80: Vec::new(), sm_90: Vec::new() };
    for item in std::fs::read_dir(folder)? {
        let path = item?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for (ending, of_arch) in [(".sm_80.ptx", &mut modules.sm_80), (".sm_90.ptx", &mut modules.sm_90)] {
            if let Some(entry) = name.strip_suffix(ending) {
                of_arch.push(PtxModule { entry: entry.into(), ptx: std::fs::read_to_string(&path)? });
            }
        }
    }
    modules.sm_80.sort_by(|one, other| one.entry.cmp(&other.entry));
    modules.sm_90.sort_by(|one, other| one.entry.cmp(&other.entry));
    Ok(modules)
}

#[test]
fn what_is_left_in_a_folder_is_read_again() {
    let module = |entry: &str, ptx: &str| PtxModule { entry: entry.into(), ptx: ptx.into() };
    let modules =
        Modules { sm_80: vec![module("a", "1"), module("b", "2")], sm_90: vec![module("b", "3"), module("c", "4")] };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("brought");
    write(&modules, &folder).expect("the folder can be written");
    let again = read(&folder).expect("it was written just now");
    assert_eq!((again.sm_80, again.sm_90), (modules.sm_80, modules.sm_90));
}
