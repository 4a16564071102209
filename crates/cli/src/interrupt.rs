//! Ctrl-C and its kin: the unfinished file is removed, what a benchmark has not measured is named, and the process ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::{bench, output};

/// From now on SIGINT, SIGTERM and SIGHUP leave no unfinished file; exit code 128 + the signal's number, so 130 for Ctrl-C.
///
/// # Errors
/// The system refused a handler or a thread.
pub fn install() -> io::Result<()> {
    let mut ending = vec![SIGINT, SIGTERM];
    // `nohup` asks for SIGHUP to stay ignored.
    if !is_ignored(SIGHUP) {
        ending.push(SIGHUP);
    }
    for &signal in &ending {
        // The second one does not wait for anything.
        let again = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
        flag::register(signal, again)?;
    }
    // A file that grows past its limit is then a failed write with its one line, not a death that leaves the file.
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new(&ending)?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            output::abandon();
            bench::say_missing();
            // Not `process::exit`: handlers of the GPU's driver would wait for work under way.
            low_level::exit(128 + signal);
        }
    })?;
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}
