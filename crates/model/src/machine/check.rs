//! What cannot be: a machine with a number that is missing, no number, or in another unit.

use super::Machine;
use core::fmt;

/// A field of a [`Machine`] that no machine has, or has in another unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub found: f64,
    /// The least it may be.
    pub least: f64,
    /// The most it may be.
    pub most: f64,
    /// Its unit.
    pub unit: &'static str,
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MachineError { field, found, least, most, unit } = self;
        write!(f, "{field} is {}: it must be from {} to {} {unit}", Plain(*found), Plain(*least), Plain(*most))
    }
}

impl core::error::Error for MachineError {}

/// A number as a person writes it: 132, 4.65e12, 5.8e-7.
struct Plain(f64);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 || !self.0.is_finite() || (1e-3..1e7).contains(&self.0.abs()) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

/// The smallest second-level cache, bytes: less than a C2050's 768 KiB, and more than the KiB of any.
pub(super) const L2_BYTES: f64 = 131_072.0;

/// The newest compute capability that is believed: GPUs of today have up to 12.1, and the second number has one digit.
pub(super) const NEWEST: (u32, u32) = (20, 9);

/// How much more of the bus's nominal rate a measurement may find: its clock is not quite what is said.
const MEASURED: f64 = 1.05;

/// Multiply-adds a cycle and SM, of f64 by matrix units too: a quarter of the fewest of any GPU, 2 in f64 on an RTX 4090,
/// since what is measured or taken from another clock may be less; and sixteen times the 256 that an H200's would be with half
/// its SMs: a wrong unit is a thousand times off.
const SLOWEST: f64 = 0.5;
const FASTEST: f64 = 4096.0;

/// The same of matrix units in tf32: an eighth of an RTX 4090's 128, and four times a B200's 2048.
const TF32: [f64; 2] = [16.0, 8192.0];

/// A field, its value, the least and the most that it may be, and its unit.
type Range = (&'static str, f64, f64, f64, &'static str);

impl Machine {
    /// Whether this machine can be: every number in the range that any GPU's is in, and in the one that the others leave it, so
    /// that a number in another unit is found as well as one that is missing.
    ///
    /// # Errors
    /// The first field that cannot be.
    pub fn check(&self) -> Result<(), MachineError> {
        let count = |field, found: u32, least, most, unit| (field, f64::from(found), least, most, unit);
        let fields = [
            count("sms", self.sms, 1.0, 4096.0, "multiprocessors"),
            ("clock_hz", self.clock_hz, 1e8, 1e10, "Hz"),
            count("registers_per_sm", self.registers_per_sm, 1024.0, 1e7, "registers"),
            count("registers_per_block", self.registers_per_block, 1024.0, 1e7, "registers"),
            count("registers_per_thread", self.registers_per_thread, 16.0, 1024.0, "registers"),
            count("register_granule", self.register_granule, 1.0, 4096.0, "registers"),
            count("register_partitions", self.register_partitions, 1.0, 64.0, "partitions"),
            count("shared_per_sm", self.shared_per_sm, 1024.0, 1e8, "bytes"),
            count("shared_per_block", self.shared_per_block, 1024.0, f64::from(self.shared_per_sm), "bytes"),
            count("shared_granule", self.shared_granule, 1.0, 65_536.0, "bytes"),
            count("threads_per_sm", self.threads_per_sm, 32.0, 65_536.0, "threads"),
            count("threads_per_block", self.threads_per_block, 32.0, f64::from(self.threads_per_sm), "threads"),
            count("blocks_per_sm", self.blocks_per_sm, 1.0, 1024.0, "blocks"),
            ("l2_bytes", self.l2_bytes as f64, L2_BYTES, 1e10, "bytes"),
            ("bus_bytes_per_s", self.bus_bytes_per_s, 1e10, 1e15, "bytes/s"),
            ("read_bytes_per_s", self.read_bytes_per_s, 1e10, 1e15, "bytes/s"),
            ("write_bytes_per_s", self.write_bytes_per_s, 1e10, 1e15, "bytes/s"),
            ("memory_latency_s", self.memory_latency_s, 1e-8, 1e-4, "s"),
            ("fma_f32_per_s", self.fma_f32_per_s, 1e9, 1e17, "multiply-adds/s"),
            ("fma_f64_per_s", self.fma_f64_per_s, 1e9, 1e17, "multiply-adds/s"),
            ("fma_latency_cycles", self.fma_latency_cycles, 1.0, 1000.0, "cycles"),
            count("compute_capability", self.compute_capability.0, 1.0, f64::from(NEWEST.0), "(the first number)"),
            count("compute_capability", self.compute_capability.1, 0.0, f64::from(NEWEST.1), "(the second number)"),
        ];
        // What a GPU need not have, or nobody has measured, is 0.
        let most_reserved = f64::from(self.shared_per_sm.min(16_384));
        let optional = [
            count("shared_reserved", self.shared_reserved, 256.0, most_reserved, "bytes, or 0"),
            ("launch_s", self.launch_s, 1e-7, 1e-4, "s, or 0"),
            ("l2_read_bytes_per_s", self.l2_read_bytes_per_s, 1e10, 1e15, "bytes/s, or 0"),
            ("mma_f64_per_s", self.mma_f64_per_s, 1e9, 1e18, "multiply-adds/s, or 0"),
            ("mma_tf32_per_s", self.mma_tf32_per_s, 1e9, 1e18, "multiply-adds/s, or 0"),
        ];
        let there = optional.into_iter().filter(|(_, found, ..)| *found != 0.0);
        // A NaN is in no range.
        let outside = |(_, found, least, most, _): &Range| !(least..=most).contains(&found);
        let related = || self.related().into_iter().find(outside);
        let wrong = fields.into_iter().chain(there).find(outside).or_else(related).or_else(|| self.part_of_a_warp());
        wrong.map_or(Ok(()), |(field, found, least, most, unit)| Err(MachineError { field, found, least, most, unit }))
    }

    /// What can be alone, against other fields: of registers what must hold at least a warp's granule in each partition, of
    /// bandwidths the bus, and of rates what SMs do in a cycle.
    fn related(&self) -> [Range; 8] {
        let registers = f64::from(self.registers_per_sm);
        let granule = registers / f64::from(self.register_partitions);
        // A bus that is another machine's bounds nothing.
        let is_own = !self.assumed.names().any(|name| name == "bus_bytes_per_s");
        let bus = if is_own { MEASURED * self.bus_bytes_per_s } else { f64::INFINITY };
        let (bus_unit, cycle_unit) =
            ("bytes/s, 1.05 of bus_bytes_per_s", "multiply-adds/s, 0.5 to 4096 a cycle of an SM");
        let cycle = f64::from(self.sms) * self.clock_hz;
        let (slow, fast) = (SLOWEST * cycle, FASTEST * cycle);
        let [slow_tf32, fast_tf32] = TF32.map(|fmas| fmas * cycle);
        let f64_unit = "multiply-adds/s, 0.5 to 4096 a cycle of an SM, or 0";
        let tf32_unit = "multiply-adds/s, 16 to 8192 a cycle of an SM, or 0";
        let or_none = |least: f64, rate: f64| if rate == 0.0 { 0.0 } else { least };
        let block = f64::from(self.registers_per_block);
        [
            ("registers_per_block", block, 1024.0, registers, "registers, those of an SM"),
            ("register_granule", f64::from(self.register_granule), 1.0, granule, "registers, those of a partition"),
            ("read_bytes_per_s", self.read_bytes_per_s, 1e10, bus, bus_unit),
            ("write_bytes_per_s", self.write_bytes_per_s, 1e10, bus, bus_unit),
            ("fma_f32_per_s", self.fma_f32_per_s, slow, fast, cycle_unit),
            ("fma_f64_per_s", self.fma_f64_per_s, slow, fast, cycle_unit),
            ("mma_f64_per_s", self.mma_f64_per_s, or_none(slow, self.mma_f64_per_s), fast, f64_unit),
            ("mma_tf32_per_s", self.mma_tf32_per_s, or_none(slow_tf32, self.mma_tf32_per_s), fast_tf32, tf32_unit),
        ]
    }

    /// Threads that are no whole warps.
    fn part_of_a_warp(&self) -> Option<Range> {
        let unit = "threads, in whole warps of 32";
        let most = f64::from(self.threads_per_sm);
        [
            ("threads_per_sm", self.threads_per_sm, 32.0, 65_536.0, unit),
            ("threads_per_block", self.threads_per_block, 32.0, most, unit),
        ]
        .into_iter()
        .find(|(_, found, ..)| found % 32 != 0)
        .map(|(field, found, least, most, unit)| (field, f64::from(found), least, most, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Assumed;
    use super::*;
    use std::string::ToString;

    /// Spoils one number of a machine.
    type Spoil = fn(&mut Machine);

    #[test]
    fn an_error_names_the_field() {
        let spoiled: [(&str, Spoil); 40] = [
            ("shared_reserved", |m| m.shared_reserved = 1),
            ("l2_bytes", |m| m.l2_bytes *= 1000),
            ("launch_s", |m| m.launch_s = 2.5e-9),
            ("sms", |m| m.sms = 0),
            ("clock_hz", |m| m.clock_hz = 1.98),
            ("register_granule", |m| m.register_granule = 0),
            ("shared_per_block", |m| m.shared_per_block = m.shared_per_sm + 1),
            ("read_bytes_per_s", |m| m.read_bytes_per_s = f64::NAN),
            ("read_bytes_per_s", |m| m.read_bytes_per_s = 4650.0),
            ("l2_read_bytes_per_s", |m| m.l2_read_bytes_per_s = -1.0),
            ("memory_latency_s", |m| m.memory_latency_s = 580.0),
            ("fma_f64_per_s", |m| m.fma_f64_per_s = f64::INFINITY),
            ("launch_s", |m| m.launch_s = -1e-6),
            ("launch_s", |m| m.launch_s = 0.004),
            ("l2_bytes", |m| m.l2_bytes = 61_440),
            ("l2_bytes", |m| m.l2_bytes = 73_728),
            ("read_bytes_per_s", |m| m.read_bytes_per_s = 4.65e9),
            ("write_bytes_per_s", |m| m.write_bytes_per_s = 3.9e9),
            ("shared_reserved", |m| m.shared_reserved = m.shared_per_sm),
            ("l2_read_bytes_per_s", |m| m.l2_read_bytes_per_s = 5700.0),
            ("mma_f64_per_s", |m| m.mma_f64_per_s = 33.5),
            ("compute_capability", |m| m.compute_capability = (900, 0)),
            ("compute_capability", |m| m.compute_capability = (90, 0)),
            ("compute_capability", |m| m.compute_capability = (21, 0)),
            ("compute_capability", |m| m.compute_capability = (9, 99_999)),
            ("compute_capability", |m| m.compute_capability = (9, 10)),
            ("registers_per_block", |m| m.registers_per_block = m.registers_per_sm + 1),
            ("register_granule", |m| {
                (m.registers_per_sm, m.registers_per_block, m.register_granule) = (1024, 1024, 300)
            }),
            ("register_granule", |m| (m.register_granule, m.register_partitions) = (4096, 64)),
            ("threads_per_block", |m| m.threads_per_block = 33),
            ("threads_per_sm", |m| m.threads_per_sm = 2047),
            ("read_bytes_per_s", |m| m.read_bytes_per_s = 4.65e13),
            ("read_bytes_per_s", |m| m.bus_bytes_per_s = 1e11),
            ("write_bytes_per_s", |m| m.write_bytes_per_s = 1.06 * m.bus_bytes_per_s),
            ("fma_f64_per_s", |m| m.fma_f64_per_s = 67e9),
            ("fma_f32_per_s", |m| m.fma_f32_per_s = 67e9),
            ("fma_f32_per_s", |m| m.fma_f32_per_s = 67e15),
            ("mma_f64_per_s", |m| m.mma_f64_per_s = 67e9),
            ("mma_tf32_per_s", |m| m.mma_tf32_per_s = 247e9),
            ("mma_tf32_per_s", |m| m.mma_tf32_per_s = 247e15),
        ];
        for (field, spoil) in spoiled {
            let mut machine = Machine::H200;
            spoil(&mut machine);
            let Err(error) = machine.check() else { panic!("{field} is accepted") };
            assert_eq!(error.field, field);
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }

    /// What is just inside: the bounds themselves, and half a machine with all of its rates.
    #[test]
    fn what_can_be_is_accepted() {
        let can: [Spoil; 6] = [
            |m| m.compute_capability = NEWEST,
            |m| (m.register_granule, m.register_partitions) = (4096, 16),
            |m| m.read_bytes_per_s = 1.049 * m.bus_bytes_per_s,
            |m| m.fma_f64_per_s = 0.51 * f64::from(m.sms) * m.clock_hz,
            |m| m.sms /= 2,
            // A bus that its driver does not say, and what was measured.
            |m| (m.bus_bytes_per_s, m.assumed) = (1e12, Assumed::of(&["bus_bytes_per_s"])),
        ];
        for (at, change) in can.into_iter().enumerate() {
            let mut machine = Machine::H200;
            change(&mut machine);
            assert_eq!(machine.check(), Ok(()), "change {at}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let error = Machine { clock_hz: 1.98, ..Machine::H200 }.check();
        assert_eq!(error.map_err(|e| e.to_string()), Err("clock_hz is 1.98: it must be from 1e8 to 1e10 Hz".into()));
        let error = Machine { read_bytes_per_s: f64::NAN, ..Machine::H200 }.check();
        let text = "read_bytes_per_s is NaN: it must be from 1e10 to 1e15 bytes/s";
        assert_eq!(error.map_err(|e| e.to_string()), Err(text.into()));
        let error = Machine { bus_bytes_per_s: 2e12, ..Machine::H200 }.check();
        let text = "read_bytes_per_s is 4.65e12: it must be from 1e10 to 2.1e12 bytes/s, 1.05 of bus_bytes_per_s";
        assert_eq!(error.map_err(|e| e.to_string()), Err(text.into()));
        let error = Machine { threads_per_block: 33, ..Machine::H200 }.check();
        let text = "threads_per_block is 33: it must be from 32 to 2048 threads, in whole warps of 32";
        assert_eq!(error.map_err(|e| e.to_string()), Err(text.into()));
    }
}
