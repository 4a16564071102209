//! Builds a crate of GPU kernels to PTX, with the rustc that is there: no codegen plugin, no CUDA toolkit, no linker.
//!
//! For build scripts. The names are those of rust-cuda's `cuda_builder` where it has one; the differences are that
//! [`CudaBuilder::build`] returns the PTX as text, **one module an entry**, and that launch bounds can be given.
//!
//! ```no_run
//! use lanky_cuda_builder::{CudaBuilder, NvvmArch};
//! let built = CudaBuilder::new("../kernels").arch(NvvmArch::Compute90).build()?;
//! built.rerun_if_changed();
//! for module in &built.modules {
//!     println!("{}: {} bytes", module.entry, module.ptx.len());
//! }
//! # Ok::<(), lanky_cuda_builder::CudaBuilderError>(())
//! ```
//!
//! # How
//! A child cargo compiles the crate and `core` for `nvptx64-nvidia-cuda` with `-Zbuild-std`, which needs the component
//! rust-src ([`rust_src`] finds it) and `RUSTC_BOOTSTRAP=1`, set for the child alone. The child has its own target
//! folder and none of the caller's flags, wrappers or profiles, so that its output depends on the sources and the
//! compiler's version only. The kernels are a static library: PTX needs no linking.

mod arch;
mod child;
mod depends;
mod error;
pub mod ptx;
pub mod rust_src;

pub use arch::NvvmArch;
pub use error::CudaBuilderError;
pub use ptx::PtxModule;

use std::path::{Path, PathBuf};

/// What an entry is given: two numbers, where it is given any.
type ByEntry = Box<dyn Fn(&str) -> Option<(u32, u32)>>;

/// Compiles one crate of kernels for one architecture. Nothing happens before [`CudaBuilder::build`].
pub struct CudaBuilder {
    path_to_crate: PathBuf,
    arch: NvvmArch,
    release: bool,
    ptx_file_copy_path: Option<PathBuf>,
    target_dir: Option<PathBuf>,
    rust_src: Option<PathBuf>,
    launch_bounds: ByEntry,
    ptx_version: ByEntry,
}

/// What a build gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// One module for each entry, sorted by entry.
    pub modules: Vec<PtxModule>,
    /// The manifests and source folders of the crate and of all it depends on by path.
    pub depends_on: Vec<PathBuf>,
}

impl Built {
    /// Tells cargo, from a build script, to run it again only when the kernels or what they depend on changed: a line
    /// `cargo:rerun-if-changed=` on standard output for each path.
    pub fn rerun_if_changed(&self) {
        for path in &self.depends_on {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}

impl CudaBuilder {
    /// A builder for the crate in this folder (relative to the current one, which for a build script is its package).
    pub fn new(path_to_crate: impl AsRef<Path>) -> Self {
        Self {
            path_to_crate: path_to_crate.as_ref().to_path_buf(),
            arch: NvvmArch::Compute80,
            release: true,
            ptx_file_copy_path: None,
            target_dir: None,
            rust_src: None,
            launch_bounds: Box::new(|_| None),
            ptx_version: Box::new(|_| None),
        }
    }

    /// The architecture to compile for; [`NvvmArch::Compute80`] unless told.
    #[must_use]
    pub fn arch(mut self, arch: NvvmArch) -> Self {
        self.arch = arch;
        self
    }

    /// Whether debug assertions and overflow checks are left out (the default). Code is optimised either way: without,
    /// kernels keep their registers in local memory.
    #[must_use]
    pub fn release(mut self, release: bool) -> Self {
        self.release = release;
        self
    }

    /// Also writes the whole PTX, as the compiler gave it (all entries, no launch bounds), to this file.
    #[must_use]
    pub fn copy_to(mut self, path: impl AsRef<Path>) -> Self {
        self.ptx_file_copy_path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Where the child cargo keeps what it compiled, a folder for each architecture in it. `core` is compiled once for
    /// each such folder, so it should stay. Default: `$OUT_DIR/cuda_builder`, outside of a build script
    /// `target/cuda_builder` of the crate's workspace.
    #[must_use]
    pub fn target_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.target_dir = Some(path.as_ref().to_path_buf());
        self
    }

    /// A folder that contains `library/`, in place of the one that `LANKY_RUST_SRC` names; looked at, as that is, after the
    /// sysroot. See [`rust_src`].
    #[must_use]
    pub fn rust_src(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        self.rust_src = Some(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
        self
    }

    /// Threads a block at most and blocks an SM at least, for each entry: written into the PTX, where they bound the
    /// registers that a thread gets (`.maxntid`, `.minnctapersm`). `None`, the default, writes nothing. 0 blocks make
    /// no demand, which is not the same as 1: with a demand of 1 or 2 ptxas spreads over all registers there are, and
    /// then spills some. Entries that have bounds already keep them.
    #[must_use]
    pub fn launch_bounds(mut self, bounds: impl Fn(&str) -> Option<(u32, u32)> + 'static) -> Self {
        self.launch_bounds = Box::new(bounds);
        self
    }

    /// The PTX version (major, minor) that each entry needs, where its instructions are newer than
    /// [`NvvmArch::ptx_feature`]: written into its module alone. `None`, the default, and older ones change nothing. A
    /// version needs a driver that knows it (8.0: of CUDA 12.0), which the other entries do not.
    #[must_use]
    pub fn ptx_version(mut self, version: impl Fn(&str) -> Option<(u32, u32)> + 'static) -> Self {
        self.ptx_version = Box::new(version);
        self
    }

    /// Compiles, and splits the PTX into one module an entry.
    ///
    /// Cost: a cargo of its own, which compiles `core` once for each target folder, compiler and set of flags, and the
    /// kernels when they changed. It writes to the target folder, and a Cargo.lock where the kernels' workspace has
    /// none.
    ///
    /// # Errors
    /// In this order: [`CratePathDoesntExist`](CudaBuilderError::CratePathDoesntExist);
    /// [`Program`](CudaBuilderError::Program) if rustc or cargo cannot be run; [`RustSrc`](CudaBuilderError::RustSrc)
    /// if rust-src of rustc's own version is not to be found; [`Io`](CudaBuilderError::Io) for a file of the target
    /// folder; [`BuildFailed`](CudaBuilderError::BuildFailed) if the crate does not compile (the compiler's messages
    /// have been written to stderr, and are in the error); [`NoPtx`](CudaBuilderError::NoPtx);
    /// [`FailedToCopyPtxFile`](CudaBuilderError::FailedToCopyPtxFile); [`Ptx`](CudaBuilderError::Ptx) if the PTX calls
    /// what nobody defines.
    pub fn build(&self) -> Result<Built, CudaBuilderError> {
        let folder = self
            .path_to_crate
            .canonicalize()
            .ok()
            .filter(|folder| folder.join("Cargo.toml").is_file())
            .ok_or_else(|| CudaBuilderError::CratePathDoesntExist(self.path_to_crate.clone()))?;
        let workspace = depends::workspace_root(&folder);
        let compiler = rust_src::Compiler::ask(&workspace)?;
        let library = match &self.rust_src {
            Some(_) => rust_src::find_with(&compiler, &workspace, self.rust_src.clone()),
            None => rust_src::find(&compiler, &workspace),
        }?;
        let target = self.target_dir.clone().unwrap_or_else(|| default_target(&workspace)).join(self.arch.target_cpu());
        let child =
            child::Child { folder, workspace, target, library, compiler, arch: self.arch, release: self.release };
        let output = child.run()?;
        if let Some(path) = &self.ptx_file_copy_path {
            std::fs::write(path, &output.ptx).map_err(CudaBuilderError::FailedToCopyPtxFile)?;
        }
        let mut modules = ptx::split(&output.ptx, &*self.launch_bounds)?;
        for module in &mut modules {
            if let Some(version) = (self.ptx_version)(&module.entry) {
                module.raise_version(version);
            }
        }
        Ok(Built { modules, depends_on: output.depends_on })
    }
}

fn default_target(workspace: &Path) -> PathBuf {
    let parent = std::env::var_os("OUT_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    parent.join("cuda_builder")
}
