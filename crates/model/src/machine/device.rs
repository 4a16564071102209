//! A GPU as its driver describes it.

use super::{Machine, Name};

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
pub(super) const READ_SHARE: f64 = 0.945;
/// Share of a bus's nominal rate that writes reach: 3.90 of 4.92 TB/s on an H200.
pub(super) const WRITE_SHARE: f64 = 0.79;

impl Machine {
    /// A machine from what its driver says; what no driver says (latencies, lanes an SM) follows its architecture.
    pub fn from_device(facts: &DeviceFacts<'_>) -> Machine {
        let cc = facts.compute_capability;
        let clock_hz = f64::from(facts.clock_khz) * 1e3;
        let bus = 2.0 * f64::from(facts.memory_clock_khz) * 1e3 * f64::from(facts.memory_bus_bits) / 8.0;
        let lanes = lanes(cc);
        let all = |a_cycle: f64| f64::from(facts.sms) * a_cycle * clock_hz;
        Machine {
            name: Name::new(facts.name),
            compute_capability: cc,
            sms: facts.sms,
            clock_hz,
            registers_per_sm: facts.registers_per_sm,
            shared_per_sm: facts.shared_per_sm,
            shared_per_block: facts.shared_per_block,
            shared_reserved: if cc >= (8, 0) { 1024 } else { 0 },
            shared_granule: if cc >= (8, 0) { 128 } else { 256 },
            threads_per_sm: facts.threads_per_sm,
            blocks_per_sm: blocks_per_sm(cc),
            l2_bytes: facts.l2_bytes,
            l2_read_bytes_per_s: all(l2_bytes_per_cycle(cc)),
            bus_bytes_per_s: bus,
            read_bytes_per_s: bus * READ_SHARE,
            write_bytes_per_s: bus * WRITE_SHARE,
            fma_f32_per_s: all(lanes.f32),
            fma_f64_per_s: all(lanes.f64),
            mma_f64_per_s: all(lanes.mma_f64),
            mma_tf32_per_s: all(lanes.mma_tf32),
            ..Machine::H200
        }
    }
}

/// Fused multiply-adds a cycle and SM.
struct Lanes {
    f32: f64,
    f64: f64,
    mma_f64: f64,
    mma_tf32: f64,
}

/// Vector units: CUDA C Programming Guide, throughput of native arithmetic instructions. Matrix units: the data sheets'
/// dense rates over SMs and clock, see the machines of the table.
const fn lanes(compute_capability: (u32, u32)) -> Lanes {
    let (f32, f64, mma_f64, mma_tf32) = match compute_capability {
        (7, 0) => (64.0, 32.0, 0.0, 0.0),
        (7, _) => (64.0, 2.0, 0.0, 0.0),
        (8, 0) => (64.0, 32.0, 64.0, 512.0),
        (8, _) => (128.0, 2.0, 0.0, 128.0),
        (9, 0) => (128.0, 64.0, 128.0, 1024.0),
        (10, 0) => (128.0, 64.0, 64.0, 2048.0),
        _ => (128.0, 2.0, 0.0, 128.0),
    };
    Lanes { f32, f64, mma_f64, mma_tf32 }
}

/// Bytes a cycle and SM that the second-level cache hands out; 0 where nobody has measured it.
///
/// # Source
/// An H200 (driver 580.159, 2026-11-21), this project's read kernel over the same 8 to 40 MB, launch after launch: 5.7 TB/s.
const fn l2_bytes_per_cycle(compute_capability: (u32, u32)) -> f64 {
    match compute_capability {
        (9, 0) => 21.8,
        _ => 0.0,
    }
}

/// Most resident blocks an SM: CUDA C Programming Guide, technical specifications by compute capability.
const fn blocks_per_sm(compute_capability: (u32, u32)) -> u32 {
    match compute_capability {
        (7, 5) | (8, 6) | (8, 7) => 16,
        (8, 9) | (12, _) => 24,
        _ => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the driver of a table's machine would say.
    fn facts(machine: &Machine, memory_clock_khz: u32, memory_bus_bits: u32) -> DeviceFacts<'_> {
        DeviceFacts {
            name: machine.name.as_str(),
            compute_capability: machine.compute_capability,
            sms: machine.sms,
            clock_khz: (machine.clock_hz / 1e3) as u32,
            memory_clock_khz,
            memory_bus_bits,
            registers_per_sm: machine.registers_per_sm,
            shared_per_sm: machine.shared_per_sm,
            shared_per_block: machine.shared_per_block,
            threads_per_sm: machine.threads_per_sm,
            l2_bytes: machine.l2_bytes,
        }
    }

    #[test]
    fn an_h200_read_from_its_driver_is_the_tables() {
        let read = Machine::from_device(&facts(&Machine::H200, 3_201_000, 6144));
        assert!((read.read_bytes_per_s / Machine::H200.read_bytes_per_s - 1.0).abs() <= 0.01);
        assert!((read.write_bytes_per_s / Machine::H200.write_bytes_per_s - 1.0).abs() <= 0.01);
        let same = Machine {
            read_bytes_per_s: Machine::H200.read_bytes_per_s,
            write_bytes_per_s: Machine::H200.write_bytes_per_s,
            ..read
        };
        assert_eq!(same, Machine::H200);
    }

    /// What follows from an architecture is what the table says of it.
    #[test]
    fn rates_and_limits_of_an_architecture_are_the_tables() {
        for machine in [Machine::V100, Machine::A100, Machine::H100, Machine::B200, Machine::RTX4090] {
            let read = Machine::from_device(&facts(&machine, 1_000_000, 4096));
            let rates = |m: &Machine| {
                [m.fma_f32_per_s, m.fma_f64_per_s, m.mma_f64_per_s, m.mma_tf32_per_s, m.l2_read_bytes_per_s]
            };
            assert_eq!(rates(&read), rates(&machine), "{}", machine.name);
            let limits = |m: &Machine| (m.blocks_per_sm, m.shared_reserved, m.shared_granule, m.register_partitions);
            assert_eq!(limits(&read), limits(&machine), "{}", machine.name);
            assert_eq!(read.check(), Ok(()), "{}", machine.name);
        }
    }
}
