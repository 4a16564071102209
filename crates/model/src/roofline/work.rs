//! What this thread has worked out, for the test of what a choice costs.

use core::cell::Cell;

std::thread_local! {
    static ESTIMATORS: Cell<u32> = const { Cell::new(0) };
    static TIMES: Cell<u32> = const { Cell::new(0) };
}

pub(super) fn count_estimator() {
    ESTIMATORS.set(ESTIMATORS.get() + 1);
}

pub(super) fn count_time() {
    TIMES.set(TIMES.get() + 1);
}

pub(crate) fn forget() {
    ESTIMATORS.set(0);
    TIMES.set(0);
}

/// Estimators, and times that they were asked for.
pub(crate) fn done() -> (u32, u32) {
    (ESTIMATORS.get(), TIMES.get())
}
