//! Whether the compiler has the AVX-512 intrinsics: they are stable since Rust 1.89, and the workspace promises 1.85.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    autocfg::emit_possibility("has_avx512");
    if autocfg::new().probe_rustc_version(1, 89) {
        autocfg::emit("has_avx512");
    }
}
