//! Whether rayon's threads are in this process.

use std::sync::atomic::{AtomicU32, Ordering};

/// The process that first asked; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether work may be handed to rayon's threads: not in a process that was forked after its parent had asked here. A fork has
/// none of its parent's threads, and would wait for them forever. To be asked before rayon is; what others hand it is not seen.
pub fn threads_are_here() -> bool {
    let here = std::process::id();
    PROCESS.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|first| first == here, |_| true)
}
