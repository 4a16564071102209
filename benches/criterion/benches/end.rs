//! What every benchmark does with a failure: it says so and ends, exit code 1. A time of what was not done is no time.

use std::fmt::Display;
use std::process::exit;

/// The value, or the end.
pub fn or_end<T, E: Display>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("{what} failed: {error}");
        exit(1)
    })
}
