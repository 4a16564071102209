//! Every instruction of `cuda_std`: what PTX it is, that an assembler takes it, and on a GPU what it computes.
//!
//! `kernels` has a kernel for each, `table` what is expected of it. With a folder in `LANKY_INSTRUCTIONS_PTX` the PTX
//! is left there, where this test, copied to a machine with a GPU and no compiler, reads it:
//! `LANKY_INSTRUCTIONS_PTX=DIR LANKY_REQUIRE_GPU=1 ./instructions-HASH on_a_gpu`.

mod gpu;
mod modules;
mod table;
mod text;

use std::io::Write;

/// Says that a test is left out, past the test harness, which keeps what passing tests print, and to the count of `.ci/run`.
fn skip(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("stderr");
    if let Some(count) = std::env::var_os("LANKY_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(count);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes())).expect("a file of lines");
    }
}
