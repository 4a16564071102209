//! What a GPU can do, in numbers with a unit and a source.

use core::fmt;

/// The name of a device: up to 64 bytes, kept without allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; Name::LONGEST],
    len: usize,
}

impl Name {
    /// Bytes kept of a name; the rest is cut off.
    pub const LONGEST: usize = 64;

    /// Keeps what fits of `name`.
    pub const fn new(name: &str) -> Self {
        let mut len = if name.len() < Name::LONGEST { name.len() } else { Name::LONGEST };
        while !name.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; Name::LONGEST];
        let mut at = 0;
        while at < len {
            bytes[at] = name.as_bytes()[at];
            at += 1;
        }
        Name { bytes, len }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

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
    /// Registers are allotted to a warp in multiples of this.
    pub register_granule: u32,
    /// Shared memory an SM, bytes.
    pub shared_per_sm: u32,
    /// Most shared memory a block, after opting in, bytes.
    pub shared_per_block: u32,
    /// Shared memory that the system keeps of each block, bytes.
    pub shared_reserved: u32,
    /// Most resident threads an SM.
    pub threads_per_sm: u32,
    /// Most resident blocks an SM.
    pub blocks_per_sm: u32,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
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
    /// What a launch costs beyond its kernel's work, s.
    pub launch_s: f64,
}

impl Machine {
    /// NVIDIA H200 SXM. Bandwidths: measured with this project's read kernel (4.65 TB/s) and by gpu-benches (write-only
    /// 3.90 TB/s). Latency: what fits timings of this project's kernels; idle it is 375 ns (gpu-benches). Rates: 64 and
    /// 128 lanes an SM at 1.98 GHz.
    pub const H200: Machine = Machine {
        name: Name::new("NVIDIA H200"),
        compute_capability: (9, 0),
        sms: 132,
        clock_hz: 1.98e9,
        registers_per_sm: 65_536,
        register_granule: 256,
        shared_per_sm: 233_472,
        shared_per_block: 232_448,
        shared_reserved: 1024,
        threads_per_sm: 2048,
        blocks_per_sm: 32,
        l2_bytes: 60 << 20,
        read_bytes_per_s: 4.65e12,
        write_bytes_per_s: 3.90e12,
        memory_latency_s: 580e-9,
        fma_f32_per_s: 132.0 * 128.0 * 1.98e9,
        fma_f64_per_s: 132.0 * 64.0 * 1.98e9,
        fma_latency_cycles: 4.0,
        launch_s: 4e-6,
    };

    /// NVIDIA V100 PCIe 16 GB. Bandwidths: Ernst et al. (read 880, scale 820 GB/s), latency 664 cycles under load there.
    /// Rates: 32 and 64 lanes an SM at 1.38 GHz, which is their 7066 GF.
    pub const V100: Machine = Machine {
        name: Name::new("Tesla V100-PCIE-16GB"),
        compute_capability: (7, 0),
        sms: 80,
        clock_hz: 1.38e9,
        registers_per_sm: 65_536,
        register_granule: 256,
        shared_per_sm: 98_304,
        shared_per_block: 98_304,
        shared_reserved: 0,
        threads_per_sm: 2048,
        blocks_per_sm: 32,
        l2_bytes: 6 << 20,
        read_bytes_per_s: 880e9,
        write_bytes_per_s: 770e9,
        memory_latency_s: 664.0 / 1.38e9,
        fma_f32_per_s: 80.0 * 64.0 * 1.38e9,
        fma_f64_per_s: 80.0 * 32.0 * 1.38e9,
        fma_latency_cycles: 4.0,
        launch_s: 2.5e-6,
    };
}

/// What a driver tells of a device, in its own units.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFacts<'a> {
    /// The device's name.
    pub name: &'a str,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Boost clock, kHz.
    pub clock_khz: u32,
    /// Memory clock, kHz; two transfers a cycle.
    pub memory_clock_khz: u32,
    /// Width of the memory bus, bits.
    pub memory_bus_bits: u32,
    /// 32-bit registers an SM.
    pub registers_per_sm: u32,
    /// Shared memory an SM, bytes.
    pub shared_per_sm: u32,
    /// Most shared memory a block after opting in, bytes.
    pub shared_per_block: u32,
    /// Most resident threads an SM.
    pub threads_per_sm: u32,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
}

/// Share of a bus's nominal rate that reads reach: 4.65 of 4.92 TB/s on an H200 (3201 MHz, 6144 bits).
const READ_SHARE: f64 = 0.945;
/// Share of a bus's nominal rate that writes reach: 3.90 of 4.92 TB/s on an H200.
const WRITE_SHARE: f64 = 0.79;

impl Machine {
    /// A machine from what its driver says; what no driver says (latencies, lanes an SM) follows its architecture.
    pub fn from_device(facts: &DeviceFacts<'_>) -> Machine {
        let cc = facts.compute_capability;
        let clock_hz = f64::from(facts.clock_khz) * 1e3;
        let bus = 2.0 * f64::from(facts.memory_clock_khz) * 1e3 * f64::from(facts.memory_bus_bits) / 8.0;
        let (f32_lanes, f64_lanes) = lanes(cc);
        let fma = |lanes: f64| f64::from(facts.sms) * lanes * clock_hz;
        Machine {
            name: Name::new(facts.name),
            compute_capability: cc,
            sms: facts.sms,
            clock_hz,
            registers_per_sm: facts.registers_per_sm,
            shared_per_sm: facts.shared_per_sm,
            shared_per_block: facts.shared_per_block,
            shared_reserved: if cc >= (8, 0) { 1024 } else { 0 },
            threads_per_sm: facts.threads_per_sm,
            blocks_per_sm: blocks_per_sm(cc),
            l2_bytes: facts.l2_bytes,
            read_bytes_per_s: bus * READ_SHARE,
            write_bytes_per_s: bus * WRITE_SHARE,
            fma_f32_per_s: fma(f32_lanes),
            fma_f64_per_s: fma(f64_lanes),
            ..Machine::H200
        }
    }
}

/// f32 and f64 lanes an SM: CUDA C Programming Guide, throughput of native arithmetic instructions.
const fn lanes(compute_capability: (u32, u32)) -> (f64, f64) {
    match compute_capability {
        (7, 0) => (64.0, 32.0),
        (7, _) => (64.0, 2.0),
        (8, 0) => (64.0, 32.0),
        (8, _) => (128.0, 2.0),
        (9, 0) => (128.0, 64.0),
        (10, 0) => (128.0, 64.0),
        _ => (128.0, 2.0),
    }
}

/// Most resident blocks an SM: CUDA C Programming Guide, technical specifications by compute capability.
const fn blocks_per_sm(compute_capability: (u32, u32)) -> u32 {
    match compute_capability {
        (7, 5) | (8, 6) | (8, 7) => 16,
        (8, 9) => 24,
        _ => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(Name::new("NVIDIA H200").as_str(), "NVIDIA H200");
        let long = "\u{e9}".repeat(40);
        assert_eq!(Name::new(&long).as_str().len(), 64);
        let odd = ["x", &long].concat();
        assert_eq!(Name::new(&odd).as_str().len(), 63);
    }

    #[test]
    fn an_h200_read_from_its_driver_is_the_tables() {
        let facts = DeviceFacts {
            name: "NVIDIA H200",
            compute_capability: (9, 0),
            sms: 132,
            clock_khz: 1_980_000,
            memory_clock_khz: 3_201_000,
            memory_bus_bits: 6144,
            registers_per_sm: 65_536,
            shared_per_sm: 233_472,
            shared_per_block: 232_448,
            threads_per_sm: 2048,
            l2_bytes: 60 << 20,
        };
        let read = Machine::from_device(&facts);
        assert!((read.read_bytes_per_s / Machine::H200.read_bytes_per_s - 1.0).abs() <= 0.01);
        assert!((read.write_bytes_per_s / Machine::H200.write_bytes_per_s - 1.0).abs() <= 0.01);
        let same = Machine {
            read_bytes_per_s: Machine::H200.read_bytes_per_s,
            write_bytes_per_s: Machine::H200.write_bytes_per_s,
            ..read
        };
        assert_eq!(same, Machine::H200);
    }
}
