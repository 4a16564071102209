//! Faults that tests plant, to see that they are caught. A program built for use has none: they need an unoptimised build,
//! or the feature `plant-a-fault`.

use std::sync::atomic::{AtomicBool, Ordering};

/// Our product is twice what it should be.
pub const WRONG: &str = "wrong";
/// The opponents' products are.
pub const WRONG_OPPONENTS: &str = "wrong-opponents";
/// Times are a thousandth of what was measured.
pub const TOO_FAST: &str = "too-fast";
/// What is wrong is not looked for: of a driver whose kernels do nothing.
pub const UNCHECKED: &str = "unchecked";
/// The first plan of the run fails when it is timed.
pub const FAILING: &str = "failing";

/// Whether LANKY_PLANT_A_FAULT names this one.
pub fn planted(fault: &str) -> bool {
    let possible = cfg!(any(debug_assertions, feature = "plant-a-fault"));
    possible && std::env::var_os("LANKY_PLANT_A_FAULT").is_some_and(|name| name == fault)
}

/// Whether a test has the plan fail that asks first.
pub fn fails_first() -> bool {
    static DONE: AtomicBool = AtomicBool::new(false);
    planted(FAILING) && !DONE.swap(true, Ordering::Relaxed)
}
