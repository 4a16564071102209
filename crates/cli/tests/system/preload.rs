//! Three functions of the C library as the tests want them, put before the system's by LD_PRELOAD. SYSTEM in the environment has words:
//!
//! | word | meaning |
//! |---|---|
//! | `log=PATH` | `fsync` and `rename` add their names to this file |
//! | `fsync=5` | it fails with this code |
//! | `read` | a read of more than 4096 bytes makes the file `PATH.reads` of the log's PATH, and does not return |

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
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
    // SAFETY: the type of the system's function.
    let system: extern "C" fn(c_int) -> c_int = unsafe { std::mem::transmute(next(c"fsync")) };
    system(file)
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
