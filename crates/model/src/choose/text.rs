//! A choice in words.

use super::{Choice, Chooser};
use crate::launch::reduced::Finish;
use core::fmt;

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.problem;
        let [x, y, z] = self.grid;
        let what = if self.swapped { ", computed transposed" } else { "" };
        writeln!(f, "{}  {}  m = {}, n = {}, k = {}{what}", self.operation, p.dtype, p.m, p.n, p.k)?;
        let limit = if self.bound.memory_s >= self.bound.arithmetic_s { "memory" } else { "compute" };
        writeln!(f, "  bound     {} us, {limit}", Three(self.bound.seconds() * 1e6))?;
        writeln!(f, "  entry     {}", self.variant.entry)?;
        writeln!(
            f,
            "  launch    {x} x {y} x {z} blocks of {} threads, {} bytes of shared memory, {} blocks an SM",
            self.threads, self.shared_bytes, self.estimate.resident
        )?;
        let added = match self.finish {
            _ if self.variant.adds_atomically() => ", added atomically, in any order",
            Finish::LastBlock if self.variant.joins() => ", added by the last block of each tile",
            Finish::LastBlock => ", added by the last block",
            Finish::SecondLaunch => ", added by a second launch",
            Finish::Direct => "",
        };
        writeln!(f, "  splits    {} of k, {} elements of scratch{added}", self.splits, self.slots_len)?;
        writeln!(
            f,
            "  expected  {} us, {:.0}% of the bandwidth in flight",
            Three(self.estimate.seconds * 1e6),
            self.estimate.memory_utilisation * 100.0
        )?;
        match self.chooser {
            Chooser::Model => f.write_str("  chosen    by the model: least expected time of all eligible entries"),
            Chooser::Caller => f.write_str("  chosen    by the caller; entry and splits by least expected time"),
            Chooser::Common => {
                f.write_str("  chosen    for all GPUs from compute capability 8.0 on alike: the same bits on each")
            }
            Chooser::Tuned { at: [m, n, k], ns } => {
                write!(f, "  chosen    by measurements: {} us at m = {m}, n = {n}, k = {k}", Three(ns as f64 / 1e3))
            }
        }
    }
}

/// A number of at least three digits that count.
struct Three(f64);

impl fmt::Display for Three {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut left, mut decimals) = (self.0, 2_usize);
        while left >= 9.995 && decimals > 0 {
            (left, decimals) = (left / 10.0, decimals - 1);
        }
        while left > 0.0 && left < 0.9995 && decimals < 12 {
            (left, decimals) = (left * 10.0, decimals + 1);
        }
        write!(f, "{:.decimals$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Machine, Problem, choose};
    use std::string::ToString;

    #[test]
    fn times_have_three_digits() {
        for (number, said) in [
            (0.0, "0.00"),
            (0.000_123_4, "0.000123"),
            (0.0456, "0.0456"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (45.67, "45.7"),
            (723.4, "723"),
            (12_345.6, "12346"),
        ] {
            assert_eq!(Three(number).to_string(), said);
        }
        let small = choose(&Problem::column_major(Dtype::F64, 16, 4, 100), &Machine::H200, None);
        let words = small.map(|choice| choice.to_string()).unwrap_or_default();
        assert!(words.contains("  bound     0.0") && !words.contains("  bound     0.0 us"), "{words}");
    }
}
