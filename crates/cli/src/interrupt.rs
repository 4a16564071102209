//! Ctrl-C and its kin: the unfinished file is removed, what a benchmark has not measured is named, and the process ends. Whoever
//! can stop by himself is asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::{bench, output};

/// The signal that came last; 0 is none.
static LAST: AtomicI32 = AtomicI32::new(0);
/// In its place where no thread heeds a first one.
const NOBODY_WAITS: i32 = -1;
/// Whether somebody asks whether he should stop.
static STOPS: AtomicBool = AtomicBool::new(false);
/// The signal that asks him to; 0 is none.
static SIGNALLED: AtomicI32 = AtomicI32::new(0);

/// From now on the first signal only asks to stop: [`signalled`].
pub fn stop_by_asking() {
    STOPS.store(true, Ordering::SeqCst);
}

/// The signal that asks to stop, if there was one.
pub fn signalled() -> Option<i32> {
    Some(SIGNALLED.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// From now on SIGINT, SIGTERM and SIGHUP leave no unfinished file; exit code 128 + the signal's number, so 130 for Ctrl-C. A SIGHUP
/// that is ignored stays so.
///
/// Where the system starts no thread, or has no pipe for one, the first signal is taken as a second one: it ends the process at once,
/// and nothing unfinished is left either.
pub fn install() {
    let mut ending = vec![SIGINT, SIGTERM];
    // `nohup` asks for SIGHUP to stay ignored.
    if !is_ignored(SIGHUP) {
        ending.insert(0, SIGHUP);
    }
    // First: one that comes from now on is kept for the thread.
    let signals = Signals::new(&ending);
    for &signal in &ending {
        // A signal that has no handler ends the process as it does others, which is no reason to do nothing.
        // SAFETY: what a handler does here may be done at any moment: an atomic exchange, and the system's unlink and exit.
        let _ = unsafe { low_level::register(signal, move || end_if_again(signal)) };
    }
    // A file that grows past its limit is then a failed write with its one line, not a death that leaves the file.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    if signals.and_then(wait).is_err() {
        LAST.store(NOBODY_WAITS, Ordering::SeqCst);
    }
}

/// Starts the thread that heeds the first signal.
fn wait(mut signals: Signals) -> io::Result<()> {
    thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            if STOPS.load(Ordering::SeqCst) {
                // The next one ends the process, whatever this one is heeded by.
                SIGNALLED.store(signal, Ordering::SeqCst);
                return;
            }
            output::abandon();
            bench::say_missing();
            // Not `process::exit`: handlers of the GPU's driver would wait for work under way.
            low_level::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// The second signal, also one of another kind, waits for nobody: neither for a lock nor for the thread of the first one.
fn end_if_again(signal: i32) {
    if LAST.swap(signal, Ordering::SeqCst) != 0 {
        output::remove_at_once();
        low_level::exit(128 + signal);
    }
}

fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}
