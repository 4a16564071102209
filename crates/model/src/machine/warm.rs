//! A GPU as a product sees it whose operands are still in the second-level cache: those of a solver's loop.

use super::Machine;
use core::fmt;

/// Share of a second-level cache that stays for data that comes again and again.
///
/// # Source
/// An H200 (driver 580.159, 2026-11-21) read 40 MB, launch after launch, at the rate of its cache of 62.9 MB, and 48 MB at
/// that of its memory.
const STAYS: f64 = 2.0 / 3.0;

/// Latency of a second-level cache, against that of its memory.
///
/// # Source
/// gpu-benches, an H100 PCIe, alone: 265 cycles to the near part and 470 to the far one, of 654 to memory. That they take
/// longer under load alike is assumed.
const LATENCY: f64 = (265.0 + 470.0) / 2.0 / 654.0;

/// Why operands come from the memory, or at a rate that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cold {
    /// They do not all stay in the cache.
    TooLarge {
        /// Theirs.
        bytes: u64,
        /// What stays at most.
        most: u64,
    },
    /// Nobody has measured the cache: [`Machine::l2_read_bytes_per_s`] is 0.
    Unmeasured,
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cold::TooLarge { bytes, most } => {
                write!(f, "A, B and C are {bytes} bytes, of which the second-level cache keeps at most {most}")
            }
            Cold::Unmeasured => {
                f.write_str("the rate of its second-level cache is not known: l2_read_bytes_per_s is 0")
            }
        }
    }
}

impl core::error::Error for Cold {}

impl Machine {
    /// Bytes that stay in the second-level cache where they are used again and again.
    pub fn l2_stays_bytes(&self) -> u64 {
        // Below 2^53.
        (self.l2_bytes as f64 * STAYS) as u64
    }

    /// The machine as a product of `bytes`, those of A, B and C together, sees it that runs again and again.
    ///
    /// Reads are as fast as the cache's. So are writes, which nobody has measured: a bound stays one. Latency is 0.56 of the
    /// memory's, as it is alone.
    ///
    /// ```
    /// # use lanky_model::Machine;
    /// let hot = Machine::H200.warm(8_000_000)?;
    /// assert_eq!(hot.read_bytes_per_s, Machine::H200.l2_read_bytes_per_s);
    /// assert!(Machine::H200.warm(48_000_000).is_err() && Machine::V100.warm(8).is_err());
    /// # Ok::<(), lanky_model::machine::Cold>(())
    /// ```
    ///
    /// # Errors
    /// [`Cold`]: the bytes do not stay in the cache, or its rate is not known.
    pub fn warm(&self, bytes: u64) -> Result<Machine, Cold> {
        let most = self.l2_stays_bytes();
        if self.l2_read_bytes_per_s == 0.0 {
            return Err(Cold::Unmeasured);
        }
        if bytes > most {
            return Err(Cold::TooLarge { bytes, most });
        }
        let read_bytes_per_s = self.read_bytes_per_s.max(self.l2_read_bytes_per_s);
        let write_bytes_per_s = self.write_bytes_per_s.max(self.l2_read_bytes_per_s);
        let memory_latency_s = self.memory_latency_s * LATENCY;
        Ok(Machine { read_bytes_per_s, write_bytes_per_s, memory_latency_s, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::bound;
    use crate::{Dtype, Problem, choose};
    use std::string::ToString;

    /// A reader's seconds a launch, one launch after another over the same bytes: an H200, driver 580.159, 2026-11-21.
    const READ: [(u64, f64); 4] =
        [(32_000_000, 6.0e-6), (40_000_000, 7.45e-6), (48_000_000, 11.8e-6), (64_000_000, 16.0e-6)];

    #[test]
    fn a_reader_takes_what_an_h200_took() {
        for (bytes, measured) in READ {
            let machine = Machine::H200.warm(bytes).unwrap_or(Machine::H200);
            let expected = bytes as f64 / machine.read_bytes_per_s;
            // What begins and ends a launch hides in part behind its neighbours.
            assert!((0.85..=1.0).contains(&(expected / measured)), "{bytes}: {expected} for {measured}");
        }
        assert_eq!(Machine::H200.warm(40_000_000).map(|m| m.l2_bytes), Ok(60 << 20));
        // Two thirds of 60 MiB.
        let (bytes, most) = (48_000_000, 41_943_040);
        assert_eq!(Machine::H200.warm(bytes), Err(Cold::TooLarge { bytes, most }));
        assert_eq!(Machine::H200.warm(most).is_ok(), Machine::H200.warm(most + 1).is_err());
    }

    /// A and B are 8 388 608 + 131 072 bytes and C 131 072: in all 8 650 752 at 5.6976 TB/s; the arithmetic is 1024 x 1024 x
    /// 16 multiply-adds of 33.45e12 a second, 0.50 us.
    #[test]
    fn a_hot_product_is_bound_by_the_cache() -> Result<(), Cold> {
        let problem = Problem::column_major(Dtype::F64, 1024, 16, 1024);
        let hot = Machine::H200.warm(bound(&problem, &Machine::H200).bytes())?;
        let (hot_bound, cold_bound) = (bound(&problem, &hot), bound(&problem, &Machine::H200));
        assert_eq!((hot_bound.bytes(), cold_bound.bytes()), (8_650_752, 8_650_752));
        assert!((hot_bound.seconds() - 1.5183e-6).abs() <= 1e-10, "{hot_bound:?}");
        assert!((cold_bound.seconds() - 1.8658e-6).abs() <= 1e-10, "{cold_bound:?}");
        let expected = |machine| choose(&problem, machine, None).map(|choice| choice.estimate.seconds);
        let (Ok(hot_s), Ok(cold_s)) = (expected(&hot), expected(&Machine::H200)) else { panic!("both are computed") };
        assert!(hot_s < cold_s && hot_s > hot_bound.seconds() + hot.launch_s * 0.999, "{hot_s} {cold_s}");
        Ok(())
    }

    #[test]
    fn a_cache_that_nobody_measured_has_no_rate() {
        assert_eq!(Machine::A100.warm(8), Err(Cold::Unmeasured));
        assert_eq!(Cold::Unmeasured.to_string().split(": ").nth(1), Some("l2_read_bytes_per_s is 0"));
        let error = Cold::TooLarge { bytes: 48_000_000, most: 41_943_040 }.to_string();
        assert!(error.contains("48000000 bytes") && error.contains("at most 41943040"), "{error}");
        // A cache that is slower than its memory does not slow it down.
        let slow = Machine { l2_read_bytes_per_s: 1e12, ..Machine::H200 };
        let as_slow = Machine { memory_latency_s: slow.memory_latency_s * LATENCY, ..slow };
        assert_eq!(slow.warm(8), Ok(as_slow));
        assert!((Machine::H200.warm(8).map_or(0.0, |hot| hot.memory_latency_s) - 326e-9).abs() <= 1e-9);
    }
}
