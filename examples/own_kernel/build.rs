//! Compiles the kernels to PTX with the rustc that is there, a file an entry in OUT_DIR. Needs the component rust-src.
use cuda_builder::{CudaBuilder, NvvmArch};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("not run by cargo")?);
    let built = CudaBuilder::new("kernels").arch(NvvmArch::Compute80).build()?;
    built.rerun_if_changed();
    for module in &built.modules {
        std::fs::write(folder.join(format!("{}.ptx", module.entry)), &module.ptx)?;
    }
    Ok(())
}
