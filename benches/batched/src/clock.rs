//! Two clocks. On a machine that has other work, a wall clock measures that too: processor time by the number of threads is
//! what the work would have taken, but for the caches and the bandwidth that the others took.

use std::sync::OnceLock;
use std::time::Instant;

static BY_PROCESSOR: OnceLock<bool> = OnceLock::new();
static START: OnceLock<Instant> = OnceLock::new();

/// Which clock it is from now on.
pub fn choose(by_processor: bool) {
    BY_PROCESSOR.get_or_init(|| by_processor);
}

/// Seconds since some time.
pub fn now() -> f64 {
    if BY_PROCESSOR.get() != Some(&true) {
        return START.get_or_init(Instant::now).elapsed().as_secs_f64();
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    (time.tv_sec as f64 + time.tv_nsec as f64 / 1e9) / rayon::current_num_threads() as f64
}
