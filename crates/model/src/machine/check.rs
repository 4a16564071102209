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

impl Machine {
    /// Whether this machine can be: every number in the range that any GPU's is in, so that a number in another unit is
    /// found as well as one that is missing.
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
            count("shared_reserved", self.shared_reserved, 0.0, f64::from(self.shared_per_sm.min(16_384)), "bytes"),
            count("shared_granule", self.shared_granule, 1.0, 65_536.0, "bytes"),
            count("threads_per_sm", self.threads_per_sm, 32.0, 65_536.0, "threads"),
            count("threads_per_block", self.threads_per_block, 32.0, f64::from(self.threads_per_sm), "threads"),
            count("blocks_per_sm", self.blocks_per_sm, 1.0, 1024.0, "blocks"),
            ("l2_bytes", self.l2_bytes as f64, L2_BYTES, 1e12, "bytes"),
            ("bus_bytes_per_s", self.bus_bytes_per_s, 1e10, 1e15, "bytes/s"),
            ("read_bytes_per_s", self.read_bytes_per_s, 1e10, 1e15, "bytes/s"),
            ("write_bytes_per_s", self.write_bytes_per_s, 1e10, 1e15, "bytes/s"),
            ("memory_latency_s", self.memory_latency_s, 1e-8, 1e-4, "s"),
            ("fma_f32_per_s", self.fma_f32_per_s, 1e9, 1e17, "multiply-adds/s"),
            ("fma_f64_per_s", self.fma_f64_per_s, 1e9, 1e17, "multiply-adds/s"),
            ("fma_latency_cycles", self.fma_latency_cycles, 1.0, 1000.0, "cycles"),
            ("launch_s", self.launch_s, 0.0, 1e-4, "s"),
            count("compute_capability", self.compute_capability.0, 1.0, 99.0, "(the first number)"),
        ];
        // What a GPU need not have, or nobody has measured, is 0.
        let optional = [
            ("l2_read_bytes_per_s", self.l2_read_bytes_per_s, 1e10, 1e15, "bytes/s, or 0"),
            ("mma_f64_per_s", self.mma_f64_per_s, 1e9, 1e18, "multiply-adds/s, or 0"),
            ("mma_tf32_per_s", self.mma_tf32_per_s, 1e9, 1e18, "multiply-adds/s, or 0"),
        ];
        let there = optional.into_iter().filter(|(_, found, ..)| *found != 0.0);
        // A NaN is in no range.
        match fields.into_iter().chain(there).find(|(_, found, least, most, _)| !(least..=most).contains(&found)) {
            Some((field, found, least, most, unit)) => Err(MachineError { field, found, least, most, unit }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// Spoils one number of a machine.
    type Spoil = fn(&mut Machine);

    #[test]
    fn an_error_names_the_field() {
        let spoiled: [(&str, Spoil); 19] = [
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
        ];
        for (field, spoil) in spoiled {
            let mut machine = Machine::H200;
            spoil(&mut machine);
            let Err(error) = machine.check() else { panic!("{field} is accepted") };
            assert_eq!(error.field, field);
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let error = Machine { clock_hz: 1.98, ..Machine::H200 }.check();
        assert_eq!(error.map_err(|e| e.to_string()), Err("clock_hz is 1.98: it must be from 1e8 to 1e10 Hz".into()));
        let error = Machine { read_bytes_per_s: f64::NAN, ..Machine::H200 }.check();
        let text = "read_bytes_per_s is NaN: it must be from 1e10 to 1e15 bytes/s";
        assert_eq!(error.map_err(|e| e.to_string()), Err(text.into()));
    }
}
