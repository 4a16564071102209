//! What can go wrong.

use crate::{ptx::PtxError, rust_src::MissingRustSrc};
use std::path::PathBuf;

/// Why there is no PTX.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// No crate in the folder given.
    #[error("there is no crate in {}", .0.display())]
    CratePathDoesntExist(PathBuf),
    /// The copy that was asked for could not be written.
    #[error("cannot write the copy of the PTX: {0}")]
    FailedToCopyPtxFile(std::io::Error),
    /// The kernels did not compile. The messages have been written to stderr already.
    #[error("the kernels in {} did not compile for {arch}; the compiler's messages are above", folder.display())]
    BuildFailed {
        /// The crate.
        folder: PathBuf,
        /// `sm_90`
        arch: &'static str,
        /// What the compiler said.
        messages: String,
    },
    /// A program that is needed could not be run, or answered in a way that is not understood.
    #[error("cannot run {program}: {reason}")]
    Program {
        /// `rustc`
        program: String,
        /// Why not.
        reason: String,
    },
    /// The compiler reported success, but its output is not where it should be.
    #[error("the compiler left no PTX in {}", .0.display())]
    NoPtx(PathBuf),
    /// `core` cannot be compiled.
    #[error(transparent)]
    RustSrc(#[from] MissingRustSrc),
    /// The PTX is not what it should be.
    #[error(transparent)]
    Ptx(#[from] PtxError),
    /// A file of the build's own.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
}
