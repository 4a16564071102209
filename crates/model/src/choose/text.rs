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
        let limit = if self.bound.memory_s >= self.bound.arithmetic_s { "memory" } else { "arithmetic" };
        writeln!(f, "  bound     {:.1} us, {limit}", self.bound.seconds() * 1e6)?;
        writeln!(f, "  entry     {}", self.variant.entry)?;
        writeln!(
            f,
            "  launch    {x} x {y} x {z} blocks of {} threads, {} bytes of shared memory, {} blocks an SM",
            self.threads, self.shared_bytes, self.estimate.resident
        )?;
        let added = match (self.variant.adds_atomically(), self.variant.is_reduced(), self.finish) {
            (true, ..) => ", added atomically, in any order",
            (_, true, Finish::LastBlock) => ", added by the last block",
            (_, true, Finish::SecondLaunch) => ", added by a second launch",
            _ => "",
        };
        writeln!(f, "  splits    {} of k, {} elements of scratch{added}", self.splits, self.slots_len)?;
        writeln!(
            f,
            "  expected  {:.1} us, {:.0}% of the bandwidth in flight",
            self.estimate.seconds * 1e6,
            self.estimate.memory_utilisation * 100.0
        )?;
        match self.chooser {
            Chooser::Model => f.write_str("  chosen    by the model: least expected time of all eligible entries"),
            Chooser::Caller => f.write_str("  chosen    by the caller; entry and splits by least expected time"),
            Chooser::Common => {
                f.write_str("  chosen    for all GPUs from compute capability 8.0 on alike: the same bits on each")
            }
            Chooser::Tuned { at: [m, n, k], ns } => {
                write!(f, "  chosen    by measurements: {:.1} us at m = {m}, n = {n}, k = {k}", ns as f64 / 1e3)
            }
        }
    }
}
