//! Each fault its own error, without a GPU: `libcuda.rs` is compiled and found in the place of the driver's library, by a
//! child process for each case, since a process loads its driver once. The process lives on after every one of them.
#![cfg(all(target_os = "linux", target_env = "gnu", not(published_cust)))]

mod absent;
mod arguments;
mod asked;
mod elsewhere;
mod every;
mod failing;
mod flight;
mod forks;
mod lacking;
mod later;
mod leaks;
mod memory;
mod programs;
mod slice;
mod split;
mod threads;
mod tuned;

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
        .args(["--edition", "2024", "--crate-type", "cdylib", "-Copt-level=1", "-Cdebuginfo=0", "-Dwarnings", "-o"])
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
    // SAFETY: the fake, as the child's LD_LIBRARY_PATH has it; nothing runs when it is loaded.
    let library = unsafe { libloading::Library::new("libcuda.so.1") }.expect("the fake driver");
    // SAFETY: `F` is the type of that name in `libcuda.rs`, as each caller says.
    let symbol = *unsafe { library.get::<F>(name.as_bytes()) }.expect("a function of the fake");
    std::mem::forget(library); // it stays, and keeps what it was told
    symbol
}

/// What the fake has to say: `fake_asked` in `libcuda.rs` has the numbers.
fn asked(what: i32) -> Vec<String> {
    let asked: unsafe extern "C" fn(i32, *mut u8, usize) = symbol("fake_asked");
    let mut text = vec![0_u8; 1 << 20];
    // SAFETY: there is so much room.
    unsafe { asked(what, text.as_mut_ptr(), text.len()) };
    let text: Vec<u8> = text.into_iter().take_while(|&byte| byte != 0).collect();
    String::from_utf8(text).expect("names").split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The driver's functions that were called since the last time this was asked.
fn calls() -> Vec<String> {
    asked(0)
}

/// What was freed, destroyed or unloaded while a stream had work.
fn freed_in_use() -> Vec<String> {
    asked(1)
}

/// How many there are of each kind: `memory=2`.
fn living() -> Vec<String> {
    asked(2)
}

/// What no caller of the driver may do, and was done.
fn misused() -> Vec<String> {
    asked(3)
}

/// The kernels launched since the last time this was asked: entry, grid, threads a block, shared memory.
fn launches() -> Vec<String> {
    asked(4)
}

/// Tells the fake other words than the process was started with.
fn tell(words: &str) {
    let tell: unsafe extern "C" fn(*const std::ffi::c_char) = symbol("fake_tell");
    let words = std::ffi::CString::new(words).expect("no zero in it");
    // SAFETY: text that ends with a zero.
    unsafe { tell(words.as_ptr()) };
}

/// Unpacks the kernels, once for all forks.
fn unpacked() {
    assert!(lanky_host::ptx::module(lanky_host::model::variants::READ_CEILING, (9, 0)).is_some());
}

/// Does `work` in a fork of this process and waits for its end; what is wrong with it. It may use no thread of this process,
/// and has so many seconds.
fn in_a_fork(seconds: u32, work: impl FnOnce()) -> Result<(), String> {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn alarm(seconds: u32) -> u32;
        fn _exit(code: i32) -> !;
    }
    // SAFETY: the child ends by `_exit`, and takes no lock but the allocator's, which a fork leaves free.
    let pid = unsafe { fork() };
    if pid == 0 {
        // SAFETY: the signal ends a child that hangs.
        unsafe { alarm(seconds) };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: the end of the child.
        unsafe { _exit(if done.is_ok() { 0 } else { 1 }) }
    }
    let mut status = -1;
    // SAFETY: a place for the answer.
    let waited = unsafe { waitpid(pid, &raw mut status, 0) };
    match (waited == pid, status) {
        (true, 0) => Ok(()),
        (true, 14) => Err(format!("not done after {seconds} s")),
        _ => Err(format!("the child ended with status {status:#x}")),
    }
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
