//! Whether rayon's threads are in this process.

use rayon::ThreadPoolBuilder;
use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that first asked; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether its threads could be started.
static STARTED: OnceLock<bool> = OnceLock::new();

/// Whether work may be handed to rayon's threads: not where the system starts none, nor in a process that was forked after its parent had
/// asked here. A fork has none of its parent's threads, and would wait for them forever. To be asked before rayon is; what others
/// hand it is not seen.
pub fn threads_are_here() -> bool {
    let here = std::process::id();
    let first = PROCESS.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed);
    first.map_or_else(|first| first == here, |_| true) && *STARTED.get_or_init(start)
}

/// Starts them, unless they are there.
fn start() -> bool {
    // What the system refuses has a source; that there are some already has none.
    ThreadPoolBuilder::new().build_global().map_or_else(|error| error.source().is_none(), |()| true)
}
