//! The checks on an emulated GPU: what the host gives to a kernel, and what the kernel does with it, without a GPU.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use watched::Share;

/// The folder with the emulated GPU's driver.
fn driver() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Of the whole workspace and with examples, by whose features its tests were compiled: by fewer all kernels would be once more.
        let build = ["build", "--locked", "--workspace", "--lib", "--examples", "--message-format", "json"];
        let output =
            Command::new(cargo).args(build).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        // Asked of CI, which has compiled all tests by now; elsewhere fewer crates, by other features, may have been.
        let compiles_kernels = |line: &str| line.contains("crates/kernels#") && line.contains(r#""fresh":false"#);
        let once = std::env::var_os("LANKY_COMPILED_ONCE").is_some();
        assert!(
            !once || !said.lines().any(compiles_kernels),
            "the kernels were compiled again, by other features than the tests'"
        );
        let library = said.split('"').find(|word| word.ends_with("/libcuda.so")).expect("a library was built");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulated-gpu");
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let made = folder.join(format!("made-{}", std::process::id()));
        std::fs::copy(library, &made).expect("the target folder can be written");
        std::fs::rename(made, folder.join("libcuda.so.1")).expect("the target folder can be written");
        folder
    })
}

/// A GPU where plans have fewer blocks.
const SLICE: &str = "sms=16";

/// Runs the program there; all passes, nothing is skipped, and there is so much of it at least. By all entries, or those whose
/// turn it is.
fn passes(command: &str, only: &[&str], least: usize) {
    let Share { at, of } = Share::whose_turn_it_is();
    said_on("", command, &["--share", &format!("{at}/{of}")], only, least / of);
}

/// The same on the GPU that these words describe, with more options; what the program said.
fn said_on(words: &str, command: &str, options: &[&str], only: &[&str], least: usize) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_lanky-gpu-tests"));
    program.arg(command).args(options).args(only.iter().flat_map(|name| ["--only", name]));
    program.env("LD_LIBRARY_PATH", driver()).env("FAKE_CUDA", words).env_remove("LANKY_SKIPPED");
    let output = program.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && last.ends_with(" passed, 0 failed, 0 skipped"), "{words}: {said}{why}");
    assert!(why.contains("Emulated"), "{why}");
    let passed: usize = last.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!(passed >= least, "{last}, but there should be {least}");
    said.into_owned()
}

/// lanky-host's own tests of GPUs, which are left out where there is none.
#[test]
fn what_the_library_does_on_a_gpu() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Of the whole workspace, as the test that calls it.
    let tests = ["test", "--locked", "--workspace", "--test", "gpu", "--test", "in_place", "--test", "batched"];
    let mut program = Command::new(cargo);
    program.args(tests).current_dir(env!("CARGO_MANIFEST_DIR")).env("LANKY_REQUIRE_GPU", "1");
    program.env("LD_LIBRARY_PATH", driver()).env_remove("FAKE_CUDA");
    let output = program.output().expect("cargo starts");
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
    passes("small", &["reduced"], 1215);
}

#[test]
fn complex_numbers() {
    passes("small", &["complex"], 1540);
    passes("check", &["complex-parts", "complex-special"], 572);
}

#[test]
fn batches() {
    passes("small", &["batched"], 900);
    passes("check", &["batched-special", "batched-huge"], 1800);
}

/// Sizes and factors of 0, what is not read, subnormal numbers, wrong arguments, no memory.
#[test]
fn what_calls_promise() {
    passes("check", &["guards", "quick", "subnormal", "refusals", "memory"], 29_000);
}

/// By every entry, one size; what is planted is an element before, one behind, and one written where all is read.
#[test]
fn operands_end_where_mapped_memory_does() {
    passes("check", &["mapped"], 2600);
}

#[test]
fn rounds_leave_nothing_behind() {
    said_on("", "check", &[], &["cycles"], 1);
}

/// Every 50th entry, three replays each.
#[test]
fn graphs() {
    said_on(SLICE, "check", &[], &["capture"], 134);
}

/// Every 50th entry, and plans with slots and with tickets, on two streams; threads that make all and drop it.
#[test]
fn streams_and_threads() {
    said_on(SLICE, "check", &[], &["streams", "threads"], 39);
}

/// Which computes for itself here: the bits of all that is compared, and that the other one is there to the end.
#[test]
fn beside_another_process() {
    said_on("", "check", &[], &["load"], 2);
}

/// A slice, a whole GPU, and one of another kind, which has fewer kernels: plans for all of them, and what they compute, whose bits are
/// those that the check knows.
#[test]
fn three_gpus_give_the_same_bits() {
    let bits = |words: &str| {
        let said = said_on(words, "check", &[], &["across"], 57);
        let line = said.lines().find(|line| line.starts_with("note    across: all bits of small")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{words}: {said}"))
    };
    let [slice, whole, other] = [SLICE, "sms=132", "sms=108 capability=80"].map(bits);
    assert_eq!(slice, whole, "a GPU of 16 SMs, and one of 132");
    assert_eq!(other, whole, "a GPU of compute capability 8.0, and one of 9.0");
}

/// Every fifth entry: a column by itself, others of NaN; columns and rows in another order.
#[test]
fn columns_depend_on_themselves() {
    said_on("", "check", &[], &["columns"], 279);
}

/// Random data within the bound of each plan's chain; NaN and infinities where zeros are on the other side.
#[test]
fn numbers_that_round_and_that_are_none() {
    passes("check", &["rounding", "special"], 1995);
}

/// No part of it, but in the same way: without a GPU there is the CPU.
#[test]
fn rounds_on_the_cpu_leave_nothing_behind() {
    let check = ["check", "--device", "cpu", "--only", "cycles"];
    let output = Command::new(env!("CARGO_BIN_EXE_lanky-gpu-tests")).args(check).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.ends_with("1 passed, 0 failed, 0 skipped\n"), "{said}");
}
