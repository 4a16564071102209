//! The checks on an emulated GPU: what the host gives to a kernel, and what the kernel does with it, without a GPU.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The folder with the emulated GPU's driver, which is optimised: unoptimised it takes ten times as long.
fn driver() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = ["build", "--release", "--locked", "--package", "lanky-emulated-gpu", "--message-format", "json"];
        let output =
            Command::new(cargo).args(build).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let library = said.split('"').find(|word| word.ends_with("/libcuda.so")).expect("a library was built");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulated-gpu");
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let made = folder.join(format!("made-{}", std::process::id()));
        std::fs::copy(library, &made).expect("the target folder can be written");
        std::fs::rename(made, folder.join("libcuda.so.1")).expect("the target folder can be written");
        folder
    })
}

/// Runs the program there; all passes, nothing is skipped, and there is so much of it at least.
fn passes(command: &str, only: &[&str], least: usize) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_lanky-gpu-tests"));
    program.arg(command).args(only.iter().flat_map(|name| ["--only", name]));
    program.env("LD_LIBRARY_PATH", driver()).env_remove("FAKE_CUDA").env_remove("LANKY_SKIPPED");
    let output = program.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && last.ends_with(" passed, 0 failed, 0 skipped"), "{said}{why}");
    assert!(why.contains("Emulated"), "{why}");
    let passed: usize = last.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!(passed >= least, "{last}, but there should be {least}");
}

/// lanky-host's own tests of GPUs, which are left out where there is none.
#[test]
fn what_the_library_does_on_a_gpu() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tests =
        ["test", "--locked", "--package", "lanky-host", "--test", "gpu", "--test", "in_place", "--test", "batched"];
    let mut program = Command::new(cargo);
    program.args(tests).current_dir(env!("CARGO_MANIFEST_DIR")).env("LANKY_REQUIRE_GPU", "1");
    let output = program.env("LD_LIBRARY_PATH", driver()).env_remove("FAKE_CUDA").output().expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !why.contains("SKIPPED"), "{said}{why}");
    for name in
        ["every_variant_agrees_with_the_cpu", "the_first_columns_become_the_product", "a_gpu_gives_what_the_cpu_does"]
    {
        assert!(said.contains(&format!("test {name} ... ok")), "{said}");
    }
}

#[test]
fn real_products() {
    passes("small", &["f32", "f64"], 5000);
}

#[test]
fn two_tall_matrices_and_vectors() {
    passes("small", &["reduced"], 1200);
}

#[test]
fn complex_numbers() {
    passes("small", &["complex"], 1600);
}

#[test]
fn batches() {
    passes("small", &["batched"], 900);
    passes("check", &["batched-special"], 1400);
}

/// Sizes and factors of 0, what is not read, subnormal numbers, wrong arguments, no memory, graphs.
#[test]
fn what_calls_promise() {
    passes("check", &["guards", "quick", "subnormal", "refusals", "memory", "capture"], 26_000);
}

/// Random data within the bound of each plan's chain; NaN and infinities where zeros are on the other side.
#[test]
fn numbers_that_round_and_that_are_none() {
    passes("check", &["rounding", "special"], 2000);
}

/// No part of it, but in the same way: without a GPU there is the CPU.
#[test]
fn rounds_on_the_cpu_leave_nothing_behind() {
    let check = ["check", "--device", "cpu", "--only", "cycles"];
    let output = Command::new(env!("CARGO_BIN_EXE_lanky-gpu-tests")).args(check).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.ends_with("1 passed, 0 failed, 0 skipped\n"), "{said}");
}
