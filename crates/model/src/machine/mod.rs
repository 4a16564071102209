//! What a GPU can do, in numbers with a unit and a source.
//!
//! | file | holds |
//! |---|---|
//! | `table` | GPUs known by heart: [`by_name`] |
//! | `device` | a GPU as its driver describes it: [`Machine::from_device`] |
//! | `assumed` | which numbers are another machine's: [`Machine::assumed`] |
//! | `ceilings` | a GPU as it was measured: [`Machine::calibrated`] |
//! | `check` | what cannot be: [`Machine::check`] |
//! | `warm` | a GPU as data in its cache sees it: [`Machine::warm`] |

mod assumed;
mod ceilings;
mod check;
mod device;
mod name;
mod table;
mod warm;

pub use assumed::Assumed;
pub use ceilings::Ceilings;
pub use check::MachineError;
pub use device::DeviceFacts;
pub use name::Name;
pub use table::{TABLE, by_name};
pub use warm::Cold;

/// A GPU as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// What it calls itself.
    pub name: Name,
    /// Compute capability: (9, 0) on an H200.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Boost clock of the SMs, Hz.
    pub clock_hz: f64,
    /// 32-bit registers an SM.
    pub registers_per_sm: u32,
    /// Most 32-bit registers a block.
    pub registers_per_block: u32,
    /// Most 32-bit registers a thread.
    pub registers_per_thread: u32,
    /// Registers are allotted to a warp in multiples of this.
    pub register_granule: u32,
    /// Parts of an SM with registers of their own; a warp lives in one.
    pub register_partitions: u32,
    /// Shared memory an SM, bytes.
    pub shared_per_sm: u32,
    /// Most shared memory a block, after opting in, bytes.
    pub shared_per_block: u32,
    /// Shared memory that the system keeps of each block, bytes.
    pub shared_reserved: u32,
    /// Shared memory is allotted to a block in multiples of this, bytes.
    pub shared_granule: u32,
    /// Most resident threads an SM.
    pub threads_per_sm: u32,
    /// Most threads a block.
    pub threads_per_block: u32,
    /// Most resident blocks an SM.
    pub blocks_per_sm: u32,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
    /// Read-only bandwidth of the second-level cache that kernels reach, bytes/s; 0 where nobody has measured it.
    pub l2_read_bytes_per_s: f64,
    /// Nominal bandwidth of the memory, bytes/s.
    pub bus_bytes_per_s: f64,
    /// Read-only bandwidth of the memory that kernels reach, bytes/s.
    pub read_bytes_per_s: f64,
    /// Write-only bandwidth that kernels reach, bytes/s.
    pub write_bytes_per_s: f64,
    /// Latency of a load from memory under load, s.
    pub memory_latency_s: f64,
    /// Fused multiply-adds of the f32 vector units, 1/s.
    pub fma_f32_per_s: f64,
    /// Fused multiply-adds of the f64 vector units, 1/s.
    pub fma_f64_per_s: f64,
    /// Cycles from one fused multiply-add to one that needs its result.
    pub fma_latency_cycles: f64,
    /// Fused multiply-adds of the matrix units on f64, 1/s; 0 where they have none.
    pub mma_f64_per_s: f64,
    /// Fused multiply-adds of the matrix units on tf32, dense, 1/s; 0 where they have none.
    pub mma_tf32_per_s: f64,
    /// What a launch costs beyond its kernel's work, s.
    pub launch_s: f64,
    /// Which of these are another machine's.
    pub assumed: Assumed,
}
