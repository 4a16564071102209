//! Runs GPU kernels written in Rust on the CPU, thread by thread, checks them, and counts what a profiler counts.
//!
//! A kernel on `cuda_std` is an ordinary function off the GPU; here every GPU thread is a coroutine that calls it. Nothing
//! about the kernel changes, and no GPU is needed.
//!
//! ```
//! use cuda_std::prelude::*;
//! use lanky_simt::{FaultKind, Launch, Memory};
//!
//! #[kernel]
//! pub unsafe fn reverse(x: Global<f32>, y: Global<f32>) {
//!     let (tile, t) = (Shared::<f32>::at(0), thread::thread_idx_x());
//!     unsafe { tile.store(t, x.load_if(true, t.into())) };
//!     thread::sync_threads();
//!     unsafe { y.store(t.into(), tile.load(63 - t)) };
//! }
//!
//! let mut memory = Memory::new();
//! let x = memory.input("x", &[1.0f32; 64]); // may be read
//! let y = memory.output::<f32>("y", 64); // may be written, and then read
//! let launch = Launch { kernel: "reverse", block: [64, 1, 1], shared_bytes: 256, ..Launch::default() };
//! let counters = launch.run(&mut memory, |m| unsafe { reverse(m.global(x), m.global(y)) })?;
//! assert_eq!(memory.read(y), [1.0; 64]);
//! assert_eq!(counters.operand("x").loads.efficiency(), 1.0);
//! assert_eq!(counters.shared.bank_conflicts(), 0);
//!
//! // With 65 threads, the last one has nothing to reverse.
//! let wrong = Launch { block: [65, 1, 1], ..launch };
//! let fault = wrong.run(&mut memory, |m| unsafe { reverse(m.global(x), m.global(y)) }).unwrap_err();
//! assert_eq!(fault.kind, FaultKind::OutOfBounds);
//! assert!(fault.to_string().starts_with("out of bounds: an access of element 64 of an operand of 64\n"));
//! println!("{fault}");
//! # Ok::<(), Box<lanky_simt::Fault>>(())
//! ```
//! prints (the place is that of the line of the kernel)
//! ```text
//! out of bounds: an access of element 64 of an operand of 64
//!   kernel: reverse
//!   thread: block (0, 0, 0), thread 64 (warp 2, lane 0), at src/lib.rs:12:37
//!   operand: x, element 64
//!   replay: SIMT_SEED=0
//! ```
//! [`launch()`] is the plain way for handles that were made of other memory.
//!
//! # Debugging a kernel
//! A `println!` in the kernel prints, a breakpoint in it stops, and the debugger shows the thread's own stack and variables;
//! a condition on an index picks the thread. The order of blocks and warps follows from a seed: a fault's
//! message ends with the one that made it, and `SIMT_SEED=7 cargo test name_of_the_test` replays it wherever
//! [`Launch::seed`] is `None`. With gdb: `cargo test --no-run` names the test's binary, and
//! `gdb --args BINARY name_of_the_test --test-threads=1`, `break kernel.rs:12 if t == 3`, `run` stops there; `info locals`
//! and `backtrace` are the thread's. Seed 0 takes blocks and warps in the order of their numbers, every other one shuffles them.
//!
//! # Checks
//! Each ends the launch with a [`Fault`], whose message names kernel, block, thread, source line, operand, index and the
//! other party.
//!
//! | kind | what is found |
//! |---|---|
//! | [`OutOfBounds`](FaultKind::OutOfBounds) | an access outside of its operand (null handles have no elements) or of shared memory |
//! | [`Misaligned`](FaultKind::Misaligned) | an address that is no multiple of the access's 4, 8 or 16 bytes |
//! | [`Uninitialised`](FaultKind::Uninitialised) | a read of shared memory that no thread of the block wrote, or of an output that no thread wrote |
//! | [`SharedRace`](FaultKind::SharedRace) | two threads touch a word of shared memory, one writes, and no barrier, no phase of an mbarrier and, in a warp, no `sync_warp` lies between; two lanes write a word in one instruction |
//! | [`GlobalRace`](FaultKind::GlobalRace) | the same in global memory; between blocks, fence and atomic on one side and atomic and fence on the other order accesses |
//! | [`BarrierMissed`](FaultKind::BarrierMissed) | threads wait at a barrier, others have ended; or for a phase of an mbarrier that lacks arrivals or bytes |
//! | [`BarrierDiverged`](FaultKind::BarrierDiverged) | threads wait at different barriers |
//! | [`WrongLane`](FaultKind::WrongLane) | a shuffle, vote, `sync_warp` or `mma` with a lane that is not there or not in the mask |
//! | [`ReadOnlyWritten`](FaultKind::ReadOnlyWritten) | a write to an input, or to what a load with `.nc` reads in the same launch |
//! | [`AsyncInFlight`](FaultKind::AsyncInFlight) | shared memory touched while a `cp.async` or a bulk load into it is not waited for, or written while a bulk store reads it; what a bulk store is to write, touched; a thread or block that ends before |
//! | [`ProxyUnfenced`](FaultKind::ProxyUnfenced) | a bulk copy that reads or overwrites what a thread wrote to shared memory, or completes on an mbarrier that it made, without that thread's `fence_proxy_async` and a barrier, or an mbarrier's phase, behind |
//! | [`MbarrierMisused`](FaultKind::MbarrierMisused) | an mbarrier that is not initialised, or again; arrivals or bytes that its phase does not take; one used as data |
//! | [`StepLimit`](FaultKind::StepLimit) | no end within [`Launch::step_limit`] |
//! | [`Panicked`](FaultKind::Panicked) | a Rust panic in the kernel, with its message |
//! | [`BadLaunch`](FaultKind::BadLaunch) | a grid, a block or shared memory that no GPU has; `SIMT_SEED` that is no number |
//!
//! # How it runs
//! The lanes of a warp go in lockstep. A lane that touches memory or synchronises leaves a request and suspends itself;
//! once all lanes of the warp wait, those at the same instruction of the same line are one warp instruction, which is
//! checked, executed and counted for all of them. Where lanes wait at different lines, the first line of the file goes
//! first, so that lanes in a loop catch up with those that left it; but stores to global memory go before all, since they
//! mostly stand behind an `if` that the other lanes skipped. Masked lanes of predicated loads take part, so a tail does not
//! break the step. Warps take turns, blocks run one after another. A launch is one OS thread; several may run at
//! once, each in its own.
//!
//! Asynchronous copies take their data when they start and are there as late as can be: when they are waited for. A bulk
//! load is there for the lanes that waited for its phase, and for those that met them since.
//!
//! What each 4-byte word has been through is kept beside it: who wrote and read it last, at which barrier, at which line.
//!
//! # What it does not see
//! - Loops that only compute, without a single special register, fused multiply-add or access, do not end.
//! - Blocks that wait for one another spin until the step limit: they do not run at the same time.
//! - Any atomic updates order blocks, whichever their address; atomics and fences do not order threads of one block, which
//!   takes a barrier or an mbarrier. Shuffles and votes order no memory accesses, as CUDA says of them.
//! - An mbarrier orders what came before an arrival before what comes behind a wait for its phase; not what the arriving warp knows of a
//!   third one by another mbarrier, and in device memory only what one warp read.
//! - Whether a bulk load to where threads read should come behind a fence of the async proxy: a barrier or an mbarrier is taken for enough, as rings of
//!   stages do with it; behind what threads wrote there a fence is asked for.
//! - Whether device memory that a bulk copy touches was fenced for the async proxy, where threads of the launch wrote it.
//! - Of the readers of a word since the last barrier, two are remembered by warp, and all lanes of the last warp; of shared memory, in
//!   blocks with mbarriers, the last read of each warp, of which a lane of that warp is ordered behind by synchronisations of all its lanes, or a phase that all arrived at.
//! - A kernel whose frames need more than its stack of 256 KiB dies of it, without a message of ours.
//! - Memory that is touched other than through `Global`, `Shared` and the functions of `cuda_std::ptx`.
//! - Kernels built with `panic = "abort"` take the process with them where a fault stops their threads.
//!
//! # Cost
//! Measured 2026-11-21, on two cores of an AMD EPYC server (a launch uses one; others were at work on it), release build, all
//! checks on: by `examples/cost.rs`, the least of five runs, and for the kernels by the test
//! `ten_million_multiply_adds_take_less_than_five_seconds` of lanky's kernels.
//!
//! | what | time |
//! |---|---|
//! | starting and ending a thread | 26 ns |
//! | a thread's load of an input | 58 ns; 38 ns where all lanes load the same |
//! | a thread's load or store of memory that may be written | 80 ns |
//! | a thread's load or store of shared memory | 65 ns; 37 ns where all lanes load the same |
//! | a barrier, or a shuffle, for each thread | 36 ns |
//! | a fused multiply-add | 4 ns |
//! | 10⁷ multiply-adds of `dtsm2r_inner`, with 20 million loads | 1.1 s |
//! | 10⁷ multiply-adds of `dtsm2r_prefetch`, 8 columns | 0.37 s |
//!
//! Of memory, a thread takes the pages of its stack that it touches (8 KiB or so, of 256 KiB of address space), a word of
//! shared memory or of an operand that may be written 64 bytes; inputs take none.

mod block;
mod bulk;
mod collective;
mod copies;
mod counters;
mod fault;
mod global;
mod hooks;
mod launch;
mod mbarrier;
mod memory;
mod order;
mod port;
mod proxy;
mod readers;
mod release;
mod shadow;
mod shared;
mod sm;
mod stack;
mod sync;
mod warp;

pub use counters::{Counters, OperandCounters, Pattern, SharedCounters, SharedTraffic, Traffic};
pub use fault::{Fault, FaultKind, Party};
pub use launch::{Launch, launch};
pub use memory::{Buffer, Handles, Memory, null};
