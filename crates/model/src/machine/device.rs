//! A GPU as its driver describes it.

use super::check::{L2_BYTES, NEWEST};
use super::{Assumed, Machine, Name, TABLE};
use core::ops::RangeInclusive;

/// What a driver tells of a device, in its own units; 0 where it tells nothing.
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

impl Machine {
    /// A machine from what its driver says; what no driver says (latencies, lanes an SM, shares of the bandwidth) is that of
    /// the table's nearest machine, and so is what this driver leaves out or says wrongly.
    ///
    /// The nearest is of the same compute capability, or else of the same kind (with or without f64 units) and the nearest
    /// capability; of several the one with this name, or the nearest cache. What another capability's machine gives is
    /// [`Machine::assumed`], and so is what stands in for a wrong fact.
    ///
    /// ```
    /// use lanky_model::{DeviceFacts, Machine};
    /// let facts = DeviceFacts {
    ///     name: "NVIDIA L40", compute_capability: (8, 9), sms: 142, clock_khz: 2_490_000, memory_clock_khz: 0,
    ///     memory_bus_bits: 384, registers_per_sm: 65_536, shared_per_sm: 100 << 10, shared_per_block: 99 << 10,
    ///     threads_per_sm: 1536, l2_bytes: 96 << 20,
    /// };
    /// let machine = Machine::from_device(&facts);
    /// assert_eq!((machine.sms, machine.bus_bytes_per_s), (142, Machine::RTX4090.bus_bytes_per_s));
    /// assert!(machine.assumed.names().any(|name| name == "bus_bytes_per_s"));
    /// ```
    pub fn from_device(facts: &DeviceFacts<'_>) -> Machine {
        let cc = facts.compute_capability;
        let like = nearest(facts);
        let mut filled = Filled { assumed: like.assumed };
        let sms = filled.count("sms", facts.sms, 1..=4096, like.sms);
        let clock_hz = filled.number("clock_hz", f64::from(facts.clock_khz) * 1e3, 1e8..=1e10, like.clock_hz);
        let bus = 2.0 * f64::from(facts.memory_clock_khz) * 1e3 * f64::from(facts.memory_bus_bits) / 8.0;
        // Of less, reads or writes may be too few for a machine.
        let bus = filled.number("bus_bytes_per_s", bus, 1.6e10..=1e14, like.bus_bytes_per_s);
        let shared_per_sm = filled.count("shared_per_sm", facts.shared_per_sm, 16_384..=1 << 22, like.shared_per_sm);
        let shared_per_block =
            filled.count("shared_per_block", facts.shared_per_block, 16_384..=shared_per_sm, like.shared_per_block);
        let registers_per_sm =
            filled.count("registers_per_sm", facts.registers_per_sm, 1024..=1 << 22, like.registers_per_sm);
        // Parts of a warp are no threads that an SM could have.
        let threads = if facts.threads_per_sm % 32 == 0 { facts.threads_per_sm } else { 0 };
        let l2_bytes = filled.number("l2_bytes", facts.l2_bytes as f64, L2_BYTES..=1e12, like.l2_bytes as f64);
        if like.compute_capability != cc {
            filled.assumed = filled.assumed.and(OTHERS);
        }
        let of_bus = |rate: f64| rate / like.bus_bytes_per_s * bus;
        // A cycle and SM.
        let all = |rate: f64| rate / (f64::from(like.sms) * like.clock_hz) * (f64::from(sms) * clock_hz);
        Machine {
            name: Name::new(facts.name),
            // What is beyond all that is believed is the newest.
            compute_capability: (cc.0.clamp(1, NEWEST.0), cc.1.min(NEWEST.1)),
            sms,
            clock_hz,
            registers_per_sm,
            registers_per_block: like.registers_per_block.min(registers_per_sm),
            shared_per_sm,
            shared_per_block: shared_per_block.min(shared_per_sm),
            threads_per_sm: filled.count("threads_per_sm", threads, 1024..=65_536, like.threads_per_sm),
            blocks_per_sm: if like.compute_capability == cc { like.blocks_per_sm } else { blocks_per_sm(cc) },
            l2_bytes: l2_bytes as u64,
            l2_read_bytes_per_s: all(like.l2_read_bytes_per_s),
            bus_bytes_per_s: bus,
            read_bytes_per_s: of_bus(like.read_bytes_per_s),
            write_bytes_per_s: of_bus(like.write_bytes_per_s),
            fma_f32_per_s: all(like.fma_f32_per_s),
            fma_f64_per_s: all(like.fma_f64_per_s),
            mma_f64_per_s: all(like.mma_f64_per_s),
            mma_tf32_per_s: all(like.mma_tf32_per_s),
            assumed: filled.assumed,
            ..*like
        }
    }
}

/// What follows an architecture that is not the machine's own.
const OTHERS: Assumed = Assumed::of(&[
    "l2_read_bytes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "memory_latency_s",
    "fma_latency_cycles",
    "launch_s",
    "rates of multiply-adds",
]);

/// Facts that are taken as they are, and those that cannot be and are taken from elsewhere.
struct Filled {
    assumed: Assumed,
}

impl Filled {
    fn count(&mut self, field: &str, fact: u32, range: RangeInclusive<u32>, known: u32) -> u32 {
        if range.contains(&fact) { fact } else { self.fill(field, known) }
    }

    fn number(&mut self, field: &str, fact: f64, range: RangeInclusive<f64>, known: f64) -> f64 {
        if range.contains(&fact) { fact } else { self.fill(field, known) }
    }

    fn fill<T>(&mut self, field: &str, known: T) -> T {
        self.assumed = self.assumed.and(Assumed::known(&[field]));
        known
    }
}

/// The table's machine that is most like a device.
fn nearest(facts: &DeviceFacts<'_>) -> &'static Machine {
    let number = |(major, minor): (u32, u32)| major.saturating_mul(100).saturating_add(minor.min(99));
    let far = |machine: &Machine| {
        let cc = machine.compute_capability;
        (
            has_f64_units(cc) != has_f64_units(facts.compute_capability),
            number(cc).abs_diff(number(facts.compute_capability)),
            machine.name.as_str() != facts.name,
            machine.l2_bytes.abs_diff(facts.l2_bytes),
        )
    };
    let machines = TABLE.iter().map(|(_, machine)| machine);
    machines.fold(&Machine::H200, |least, machine| if far(machine) < far(least) { machine } else { least })
}

/// Whether an architecture's f64 units are half as many as its f32 units, not a 32nd or 64th: those that are made to
/// compute. CUDA C Programming Guide, throughput of native arithmetic instructions.
const fn has_f64_units(compute_capability: (u32, u32)) -> bool {
    matches!(compute_capability, (2, 0) | (3, 5) | (3, 7) | (6, 0) | (7, 0) | (8, 0) | (9, 0) | (10, 0))
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
    use std::string::{String, ToString};

    const BUS_BITS: u32 = 4096;

    /// What the driver of a table's machine would say.
    fn facts(machine: &Machine) -> DeviceFacts<'_> {
        DeviceFacts {
            name: machine.name.as_str(),
            compute_capability: machine.compute_capability,
            sms: machine.sms,
            clock_khz: (machine.clock_hz / 1e3).round() as u32,
            memory_clock_khz: (machine.bus_bytes_per_s * 8.0 / f64::from(BUS_BITS) / 2.0 / 1e3).round() as u32,
            memory_bus_bits: BUS_BITS,
            registers_per_sm: machine.registers_per_sm,
            shared_per_sm: machine.shared_per_sm,
            shared_per_block: machine.shared_per_block,
            threads_per_sm: machine.threads_per_sm,
            l2_bytes: machine.l2_bytes,
        }
    }

    /// All numbers that a driver does not say.
    fn rest(m: &Machine) -> [f64; 19] {
        let counts = [
            m.registers_per_block,
            m.registers_per_thread,
            m.register_granule,
            m.register_partitions,
            m.shared_reserved,
            m.shared_granule,
            m.threads_per_block,
            m.blocks_per_sm,
        ]
        .map(f64::from);
        let rates = [
            m.l2_read_bytes_per_s,
            m.bus_bytes_per_s,
            m.read_bytes_per_s,
            m.write_bytes_per_s,
            m.memory_latency_s,
            m.fma_f32_per_s,
            m.fma_f64_per_s,
            m.fma_latency_cycles,
            m.mma_f64_per_s,
            m.mma_tf32_per_s,
            m.launch_s,
        ];
        let mut all = [0.0; 19];
        all[..8].copy_from_slice(&counts);
        all[8..].copy_from_slice(&rates);
        all
    }

    /// Latencies, shares of the bandwidth, rates and limits follow the architecture, of every machine of the table, also
    /// under a name that the table has not.
    #[test]
    fn a_machine_read_from_its_driver_is_the_tables() {
        for (name, machine) in &TABLE {
            for called in [machine.name.as_str(), "another of its kind"] {
                let read = Machine::from_device(&DeviceFacts { name: called, ..facts(machine) });
                for (at, (read, known)) in rest(&read).into_iter().zip(rest(machine)).enumerate() {
                    assert!((read - known).abs() <= 1e-5 * known, "{name}, number {at}: {read} for {known}");
                }
                assert_eq!((read.check(), read.name.as_str()), (Ok(()), called), "{name}");
                assert_eq!(read.assumed, machine.assumed, "{name}");
            }
        }
    }

    #[test]
    fn an_a100s_latency_is_not_an_h200s() {
        let a100 = Machine::from_device(&DeviceFacts { name: "NVIDIA A100 80GB PCIe", ..facts(&Machine::A100) });
        assert_eq!(a100.memory_latency_s, Machine::A100.memory_latency_s);
        assert!(a100.memory_latency_s != Machine::H200.memory_latency_s);
        let share = |m: &Machine| m.write_bytes_per_s / m.bus_bytes_per_s;
        assert!((share(&a100) - 1503.0 / 1555.0).abs() <= 1e-6 && share(&a100) - share(&Machine::H200) > 0.1);
    }

    /// Whatever a driver leaves out or says wrongly, there is a machine that can be, and it says what it has from where.
    #[test]
    fn what_a_driver_does_not_say_is_filled_and_named() {
        type Spoil = fn(&mut DeviceFacts<'_>);
        let spoiled: [(&str, Spoil); 13] = [
            ("bus_bytes_per_s", |f| f.memory_clock_khz = 0),
            ("bus_bytes_per_s", |f| f.memory_bus_bits = 0),
            ("bus_bytes_per_s", |f| (f.memory_clock_khz, f.memory_bus_bits) = (u32::MAX, u32::MAX)),
            ("clock_hz", |f| f.clock_khz = 0),
            ("clock_hz", |f| f.clock_khz = 1),
            ("sms", |f| f.sms = 0),
            ("registers_per_sm", |f| f.registers_per_sm = 0),
            ("shared_per_sm", |f| f.shared_per_sm = u32::MAX),
            ("shared_per_block", |f| f.shared_per_block = 300 << 10),
            ("threads_per_sm", |f| f.threads_per_sm = 0),
            ("threads_per_sm", |f| f.threads_per_sm = 2047),
            ("l2_bytes", |f| f.l2_bytes = 0),
            ("l2_bytes", |f| f.l2_bytes = u64::MAX),
        ];
        for (field, spoil) in spoiled {
            let mut facts = facts(&Machine::H200);
            spoil(&mut facts);
            let machine = Machine::from_device(&facts);
            assert_eq!(machine.assumed.without(&["fma_latency_cycles"]).to_string(), field);
            assert_eq!(machine.check(), Ok(()), "{field}");
            let near = |a: f64, b: f64| (a / b - 1.0).abs() <= 1e-5;
            assert!(near(machine.read_bytes_per_s, Machine::H200.read_bytes_per_s), "{field}: {machine:?}");
            assert!(near(machine.fma_f64_per_s, Machine::H200.fma_f64_per_s), "{field}: {machine:?}");
        }
        let nothing = DeviceFacts {
            name: "",
            compute_capability: (0, 0),
            sms: 0,
            clock_khz: 0,
            memory_clock_khz: 0,
            memory_bus_bits: 0,
            registers_per_sm: 0,
            shared_per_sm: 0,
            shared_per_block: 0,
            threads_per_sm: 0,
            l2_bytes: 0,
        };
        for cc in [(0, 0), (8, 0), (9, 0), (12, 0), (99, 9), (9, 99)] {
            let machine = Machine::from_device(&DeviceFacts { compute_capability: cc, ..nothing });
            assert_eq!(machine.check(), Ok(()), "{cc:?}");
            assert!(machine.assumed.names().count() >= 8, "{cc:?}: {:?}", machine.assumed);
        }
    }

    /// A block has no more registers than its SM.
    #[test]
    fn an_sm_of_few_registers_has_no_block_of_more() {
        let few = Machine::from_device(&DeviceFacts { registers_per_sm: 32_768, ..facts(&Machine::H200) });
        assert_eq!((few.check(), few.registers_per_block), (Ok(()), 32_768));
    }

    /// Compute capability, whose machine is nearest.
    #[test]
    fn the_nearest_is_of_the_same_kind() {
        let like = |cc, l2_bytes| -> String {
            let facts = DeviceFacts { name: "new", compute_capability: cc, l2_bytes, ..facts(&Machine::H200) };
            nearest(&facts).name.to_string()
        };
        for (cc, l2_bytes, name) in [
            ((9, 0), 50 << 20, Machine::H100.name),
            ((9, 0), 60 << 20, Machine::H200.name),
            ((8, 0), 80 << 20, Machine::A100.name),
            ((8, 6), 6 << 20, Machine::RTX4090.name),
            ((8, 9), 96 << 20, Machine::RTX4090.name),
            ((10, 0), 126 << 20, Machine::B200.name),
            ((12, 0), 96 << 20, Machine::RTX4090.name),
        ] {
            assert_eq!(like(cc, l2_bytes), name.to_string(), "{cc:?}");
        }
        // What another architecture gives is assumed, and what the driver says is not.
        let blackwell = Machine::from_device(&DeviceFacts { compute_capability: (12, 0), ..facts(&Machine::RTX4090) });
        assert!(blackwell.assumed.names().any(|name| name == "rates of multiply-adds"));
        assert!(!blackwell.assumed.names().any(|name| name == "sms"));
        assert_eq!(blackwell.blocks_per_sm, 24);
        let ampere = Machine::from_device(&DeviceFacts { compute_capability: (8, 6), ..facts(&Machine::RTX4090) });
        assert_eq!(ampere.blocks_per_sm, 16);
    }
}
