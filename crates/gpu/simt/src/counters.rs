//! What a profiler counts.

use crate::port::Place;

/// Loads, or stores, of one operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Warp instructions with at least one lane that takes part.
    pub instructions: u64,
    /// Elements, by every thread that takes part.
    pub elements: u64,
    /// Distinct bytes of each warp instruction, added up.
    pub bytes_used: u64,
    /// Distinct 32-byte sectors of each warp instruction, times 32, added up.
    pub bytes_moved: u64,
}

impl Traffic {
    /// Bytes used of bytes moved: 1 is a coalesced access, 0.25 a single f64 of each sector; 1 where nothing moved.
    pub fn efficiency(&self) -> f64 {
        if self.bytes_moved == 0 { 1.0 } else { self.bytes_used as f64 / self.bytes_moved as f64 }
    }
}

/// What was done to one operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperandCounters {
    /// Its name.
    pub name: &'static str,
    /// Loads; the global side of asynchronous copies and of bulk loads too.
    pub loads: Traffic,
    /// Stores, bulk ones too; atomic updates are not among them.
    pub stores: Traffic,
    /// Atomic updates, by every thread.
    pub atomics: u64,
}

/// Loads, or stores, of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedTraffic {
    /// Warp instructions.
    pub instructions: u64,
    /// Passes over the 32 banks: of each warp instruction, the most distinct 4-byte words that lie in one bank; two at
    /// least where a lane accesses 16 bytes.
    pub wavefronts: u64,
    /// Wavefronts beyond the fewest that the distinct bytes need, which is one for every 128 of them, and two at least
    /// where a lane accesses 16 bytes.
    pub bank_conflicts: u64,
}

/// What was done to shared memory by loads and stores. Asynchronous and bulk copies, mbarriers and atomic updates are not
/// among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCounters {
    /// Loads.
    pub loads: SharedTraffic,
    /// Stores.
    pub stores: SharedTraffic,
}

impl SharedCounters {
    /// Passes over the banks, of loads and stores.
    pub fn wavefronts(&self) -> u64 {
        self.loads.wavefronts + self.stores.wavefronts
    }

    /// Bank conflicts, of loads and stores.
    pub fn bank_conflicts(&self) -> u64 {
        self.loads.bank_conflicts + self.stores.bank_conflicts
    }
}

/// One warp instruction that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The operand, or `shared memory`.
    pub operand: &'static str,
    /// Whether it writes.
    pub store: bool,
    /// The line of the kernel.
    pub location: Place,
    /// Bytes each lane accesses.
    pub bytes: u32,
    /// Where, in bytes from the operand's start; `None` for lanes that take no part.
    pub offsets: [Option<u64>; 32],
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Every operand that was touched, in the order in which they were added to the memory.
    pub operands: Vec<OperandCounters>,
    /// Shared memory.
    pub shared: SharedCounters,
    /// Warp instructions of all kinds that the emulator sees: accesses, barriers, fences, warp operations; not arithmetic.
    pub warp_instructions: u64,
    /// Barriers that blocks passed: one for each barrier and block.
    pub barriers: u64,
    /// Fused multiply-adds, by every thread; those within an `mma` are not among them.
    pub fma: u64,
    /// Matrix multiply-adds, by warps.
    pub mma: u64,
    /// Asynchronous copies, as warp instructions.
    pub cp_async: u64,
    /// Bulk loads, by every thread.
    pub bulk_loads: u64,
    /// Bulk stores, by every thread.
    pub bulk_stores: u64,
    /// The first accesses of warp 0 of block (0, 0, 0), as many as [`crate::Launch::record`] asked for; no bulk copies.
    pub patterns: Vec<Pattern>,
}

impl Counters {
    /// The counters of an operand; zeros if nothing touched it.
    pub fn operand(&self, name: &str) -> OperandCounters {
        self.operands.iter().find(|operand| operand.name == name).copied().unwrap_or_default()
    }

    /// Atomic updates of all operands, by every thread.
    pub fn atomics(&self) -> u64 {
        self.operands.iter().map(|operand| operand.atomics).sum()
    }
}

/// Where the lanes of one warp instruction access global memory.
pub(crate) struct Footprint {
    ranges: [(u64, u64); 32],
    len: usize,
    ascending: bool,
}

impl Footprint {
    pub(crate) fn new() -> Self {
        Footprint { ranges: [(0, 0); 32], len: 0, ascending: true }
    }

    /// A lane accesses `bytes` from `address` on.
    pub(crate) fn add(&mut self, address: u64, bytes: u32) {
        if self.len > 0 {
            let (last, end) = self.ranges[self.len - 1];
            if last == address && end == address + u64::from(bytes) {
                return;
            }
            self.ascending &= last <= address;
        }
        self.ranges[self.len] = (address, address + u64::from(bytes));
        self.len += 1;
    }

    /// (distinct bytes, bytes of distinct sectors).
    pub(crate) fn sum(mut self) -> (u64, u64) {
        let ranges = &mut self.ranges[..self.len];
        if !self.ascending {
            ranges.sort_unstable();
        }
        let (mut used, mut sectors, mut end, mut sector_end) = (0, 0, 0, 0);
        for &(from, to) in ranges.iter() {
            used += to.saturating_sub(from.max(end));
            end = end.max(to);
            let (first, last) = (from / 32, (to - 1) / 32 + 1);
            sectors += last.saturating_sub(first.max(sector_end));
            sector_end = sector_end.max(last);
        }
        (used, sectors * 32)
    }
}

#[cfg(test)]
mod tests {
    use super::Footprint;

    fn sum(addresses: impl IntoIterator<Item = u64>, bytes: u32) -> (u64, u64) {
        let mut footprint = Footprint::new();
        for address in addresses {
            footprint.add(address, bytes);
        }
        footprint.sum()
    }

    #[test]
    fn distinct_bytes_and_sectors() {
        assert_eq!(sum((0..32).map(|i| 8 * i), 8), (256, 256));
        assert_eq!(sum((0..32).rev().map(|i| 8 * i), 8), (256, 256));
        assert_eq!(sum((0..32).map(|i| 64 * i), 8), (256, 1024));
        assert_eq!(sum((0..32).map(|_| 96), 8), (8, 32));
        assert_eq!(sum((0..32).map(|i| 96 + 8 * (i % 2)), 8), (16, 32));
        assert_eq!(sum((0..32).map(|i| 16 + 4 * i), 4), (128, 160));
        assert_eq!(sum((0..32).map(|i| 16 * (i / 2)), 16), (256, 256));
    }
}
