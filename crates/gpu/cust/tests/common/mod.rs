//! What tests leave out.

use std::io::Write;

/// Says that a test is left out, past the test harness, which keeps what passing tests print, and to the count of `.ci/run`.
pub fn skipped(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("stderr");
    if let Some(count) = std::env::var_os("LANKY_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(count);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes())).expect("a file of lines");
    }
}
