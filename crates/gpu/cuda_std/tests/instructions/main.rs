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

/// Past the test harness, which keeps what passing tests print.
fn skip(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIP {test}: {reason}").expect("stderr");
}
