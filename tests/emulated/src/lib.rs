//! A libcuda.so.1 whose GPU is the emulator: what a call of lanky launches is run, thread by thread, and checked.
//!
//! The driver is the one that the host's tests compile, where kernels do nothing. Here a launch finds its entry by name among the
//! kernels, takes the parameters as a GPU would, from the addresses that it gets, and runs before it returns. A fault of a kernel
//! is printed and ends the context, as an illegal address does on a GPU.
//!
//! ```text
//! cargo build -p lanky-emulated-gpu
//! ln -s libcuda.so target/debug/libcuda.so.1
//! LD_LIBRARY_PATH=target/debug lanky mul A.npy B.npy -o C.npy --device cuda:0
//! ```

#![allow(unexpected_cfgs, reason = "the host's tests compile the driver without cargo")]

#[path = "../../../crates/host/tests/driver/libcuda.rs"]
mod libcuda;

mod mapped;
mod parameters;
mod run;
