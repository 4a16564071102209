//! Eqs. (1) to (3): what a thread holds, and how many an SM then holds.

use super::Constants;

/// (1) Registers a thread: C0 + (e/4)(3·t2 + 2·t3).
///
/// Two sets of t2 for B (the current tile's are read from shared memory into registers), t2 sums, two sets of t3 for A.
/// The most that a compiler would need; it may reuse some.
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed: the sum from its prose; e/4, since a 64-bit value takes two registers, is ours.
pub fn registers_per_thread(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    gpu.fixed_registers + gpu.elem_bytes / 4.0 * (3.0 * t2 + 2.0 * t3)
}

/// (2) Shared memory a thread, bytes: t1·t2·e / t1 = t2·e, whatever t1.
///
/// # Source
/// TSM2X, Section 3.1.8: a tile of B is t1 x t2 and a block has t1 threads.
pub fn shared_per_thread(gpu: &Constants, t2: f64) -> f64 {
    t2 * gpu.elem_bytes
}

/// (3) Occupancy, threads an SM: min(most threads, registers / (1), shared memory / (2)).
///
/// Not whole threads, let alone whole blocks: a smooth function for the descent. [`crate::occupancy::residency`] has
/// the granules.
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed: the minimum and its three terms from the prose.
pub fn occupancy(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    let by_registers = gpu.registers_per_sm / registers_per_thread(gpu, t2, t3);
    let by_shared = gpu.shared_per_sm / shared_per_thread(gpu, t2);
    gpu.threads_per_sm.min(by_registers).min(by_shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Machine};

    #[test]
    fn a_v100s_180_registers_leave_364_threads() {
        let gpu = Constants { fixed_registers: 20.0, ..Constants::of(&Machine::V100, Dtype::F64) };
        assert_eq!(registers_per_thread(&gpu, 16.0, 16.0), 180.0);
        assert_eq!(shared_per_thread(&gpu, 16.0), 128.0);
        assert_eq!(occupancy(&gpu, 16.0, 16.0), 65_536.0 / 180.0);
        assert_eq!(occupancy(&gpu, 1.0, 1.0), 2048.0);
    }

    #[test]
    fn a_k40cs_shared_memory_leaves_384_threads() {
        let gpu = Constants::of(&Machine::K40C, Dtype::F64);
        assert_eq!(occupancy(&gpu, 16.0, 4.0), 49_152.0 / 128.0);
    }
}
