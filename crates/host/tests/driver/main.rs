//! Each fault its own error, without a GPU: `libcuda.rs` is compiled and found in the place of the driver's library, by a
//! child process for each case, since a process loads its driver once. The process lives on after every one of them.
#![cfg(all(target_os = "linux", not(published_cust)))]

mod absent;
mod elsewhere;
mod failing;
mod flight;

use lanky_host::{Device, Matrix, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What a child does: the name of a test and what the driver is told.
const CHILD: &str = "LANKY_TEST_DRIVER";

/// Does `work` in a process of its own whose driver library is the fake, told `words`. `test` is the calling test's name.
fn with_driver(test: &str, words: &str, work: impl FnOnce() -> Result<()>) {
    in_a_child(test, words, fake(), work);
}

/// The same with any folder in which the driver library is looked for first.
fn in_a_child(test: &str, words: &str, folder: &Path, work: impl FnOnce() -> Result<()>) {
    let case = format!("{test} {words}");
    match std::env::var(CHILD) {
        Ok(mine) if mine == case => work().unwrap_or_else(|error| panic!("{case}: {error:?}")),
        Ok(_) => {} // another case of the same test
        Err(_) => {
            let output = Command::new(std::env::current_exe().expect("a path"))
                .args(["--exact", test, "--nocapture"])
                .envs([(CHILD, case.as_str()), ("FAKE_CUDA", words)])
                .env("LD_LIBRARY_PATH", folder)
                .env_remove("LANKY_REQUIRE_GPU")
                .env_remove("LANKY_SYNC")
                .output()
                .expect("this program starts");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (said, error) = (text(&output.stdout), text(&output.stderr));
            assert!(output.status.success() && said.contains("1 passed"), "{case}: {said}{error}");
        }
    }
}

/// The folder of the fake driver library, compiled at the first call.
fn fake() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| compile("whole", &[]))
}

/// Compiles `libcuda.rs`, with these options besides.
fn compile(name: &str, options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{name}"));
    // A child has been given the folder already.
    if std::env::var_os(CHILD).is_some() {
        return folder;
    }
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let made = folder.join(format!("made-{}", std::process::id()));
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--crate-type", "cdylib", "-Cdebuginfo=0", "-Dwarnings", "-o"])
        .arg(&made)
        .args(options)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver/libcuda.rs"))
        .output()
        .expect("rustc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Whole at once: another run of the tests may load it now.
    std::fs::rename(made, folder.join("libcuda.so.1")).expect("the target folder can be written");
    folder
}

/// A function of the fake driver that the library here does not call itself.
fn symbol<F: Copy>(name: &str) -> F {
    // SAFETY: the fake, which is loaded already, as the child's LD_LIBRARY_PATH has it.
    let library = unsafe { libloading::Library::new("libcuda.so.1") }.expect("the fake driver");
    // SAFETY: `F` is the type of that name in `libcuda.rs`, as each caller says.
    *unsafe { library.get::<F>(name.as_bytes()) }.expect("a function of the fake")
}

fn asked(what: i32) -> Vec<String> {
    let calls: unsafe extern "C" fn(i32, *mut u8, usize) = symbol("fake_calls");
    let mut text = vec![0_u8; 1 << 16];
    // SAFETY: there is so much room.
    unsafe { calls(what, text.as_mut_ptr(), text.len()) };
    let text: Vec<u8> = text.into_iter().take_while(|&byte| byte != 0).collect();
    String::from_utf8(text).expect("names").split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The driver's functions that were called since the last time this was asked.
fn calls() -> Vec<String> {
    asked(0)
}

/// What was freed, destroyed or unloaded while a stream had work.
fn freed_in_use() -> Vec<String> {
    asked(1)
}

/// A 300 x 500 matrix and a 500 x 4 one, as a product that is split along k.
fn hosts() -> Result<(Matrix<f64>, Matrix<f64>)> {
    Ok((Matrix::from_fn(300, 500, |i, l| ((i + l) % 3) as f64)?, Matrix::from_fn(500, 4, |l, j| ((l + j) % 5) as f64)?))
}

/// The process lives on: the CPU multiplies.
fn the_cpu_multiplies() -> Result<()> {
    let (a, b) = hosts()?;
    let c = Device::cpu().matmul(a.view(), b.view())?;
    let by_hand: usize = (0..500).map(|l| (7 + l) % 3 * ((l + 2) % 5)).sum();
    assert_eq!(c.get(7, 2), Some(by_hand as f64));
    Ok(())
}

#[test]
fn the_fake_is_a_gpu_whose_kernels_do_nothing() {
    with_driver("the_fake_is_a_gpu_whose_kernels_do_nothing", "", || {
        let device = Device::auto();
        assert!(device.is_cuda() && device.name() == "Fake", "{device}");
        assert!(device.to_string().starts_with("cuda:0  Fake, 132 SMs, driver "), "{device}");
        let (a, b) = hosts()?;
        let stream = device.stream()?;
        let there = device.upload(&stream, a.view())?;
        assert_eq!(there.download(&stream)?.as_slice(), a.as_slice());
        assert_eq!(device.matmul(a.view(), b.view())?.nrows(), 300);
        assert!(calls().iter().any(|call| call == "cuLaunchKernel"));
        the_cpu_multiplies()
    });
}
