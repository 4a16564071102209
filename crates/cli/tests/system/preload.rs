//! Functions of the C library as the tests want them, put before the system's by LD_PRELOAD. SYSTEM in the environment has words:
//!
//! | word | meaning |
//! |---|---|
//! | `log=PATH` | `fsync` and `rename` add their names to this file, and `open` of an unfinished output with what it is open to |
//! | `fsync=5` | it fails with this code |
//! | `late` | `fsync` ends when the file is removed, and `_exit` takes a second |
//! | `stuck` | `unlink` adds its name to the log and does not return |
//! | `read` | a read of more than 4096 bytes makes the file `PATH.reads` of the log's PATH, and does not return |

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
}

/// RTLD_NEXT: the function that stands behind this one.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends with a zero; -1 stands for the libraries behind this one.
    unsafe { dlsym(-1_isize as *mut c_void, name.as_ptr()) }
}

fn word(name: &str) -> Option<String> {
    let words = std::env::var("SYSTEM").unwrap_or_default();
    words.split(' ').find_map(|word| word.strip_prefix(name)).map(Into::into)
}

fn log(name: &str) {
    let file = word("log=").map(|path| std::fs::OpenOptions::new().create(true).append(true).open(path));
    if let Some(Ok(mut file)) = file {
        let _ = writeln!(file, "{name}");
    }
}

/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(file: c_int) -> c_int {
    log("fsync");
    if let Some(code) = word("fsync=").and_then(|code| code.parse().ok()) {
        // SAFETY: this thread's.
        unsafe { __errno_location().write(code) };
        return -1;
    }
    let is_there = || !std::fs::read_link(format!("/proc/self/fd/{file}")).is_ok_and(|path| is_removed(&path));
    while word("late").is_some() && is_there() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the type of the system's function.
    let system: extern "C" fn(c_int) -> c_int = unsafe { std::mem::transmute(next(c"fsync")) };
    system(file)
}

fn is_removed(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
}

/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(code: c_int) -> ! {
    if word("late").is_some() {
        std::thread::sleep(Duration::from_secs(1));
    }
    // SAFETY: the type of the system's function.
    let system: extern "C" fn(c_int) -> ! = unsafe { std::mem::transmute(next(c"_exit")) };
    system(code)
}

/// The system's takes a mode where a file is made, as these three do.
///
/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's path.
    if unsafe { CStr::from_ptr(path) }.to_bytes().windows(8).any(|part| part == b"/.lanky-") {
        log(&format!("open {mode:o}"));
    }
    // SAFETY: what the system's function reads of its arguments.
    let system: extern "C" fn(*const c_char, c_int, c_uint) -> c_int = unsafe { std::mem::transmute(next(c"open64")) };
    system(path, flags, mode)
}

/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    log("rename");
    // SAFETY: the type of the system's function.
    let system: extern "C" fn(*const c_char, *const c_char) -> c_int = unsafe { std::mem::transmute(next(c"rename")) };
    system(from, to)
}

/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    if word("stuck").is_some() {
        log("unlink");
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    // SAFETY: the type of the system's function.
    let system: extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(next(c"unlink")) };
    system(path)
}

/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(file: c_int, to: *mut c_void, bytes: usize) -> isize {
    if bytes > 4096 && word("read").is_some() {
        let _ = std::fs::write(word("log=").unwrap_or_default() + ".reads", "");
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    // SAFETY: the type of the system's function.
    let system: extern "C" fn(c_int, *mut c_void, usize) -> isize = unsafe { std::mem::transmute(next(c"read")) };
    system(file, to, bytes)
}
