//! Every kernel under the emulator: no fault, the exact result, nothing written outside of it, nothing read that the
//! contract leaves out, and counters that are what a profiler counts.
//!
//! `cargo test -p lanky-kernels --test emulated` runs all of it. Each case takes its blocks and warps in an order of
//! its own, the same every time. A fault's message ends with the seed that replays it, in all cases:
//! `SIMT_SEED=7 cargo test -p lanky-kernels --test emulated tsm2r_shared`.

mod batched;
mod ceilings;
mod counted;
mod far;
mod flat;
mod gemv;
mod harness;
mod numbers;
mod places;
mod products;
mod profiler;
mod rounding;
mod runs;
mod slots;
mod special;
mod tsmm;
mod tsmttsm;
mod turns;
