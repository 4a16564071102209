//! Eqs. (4) to (9): what is in flight, what must be by Little's law, and what share of the machine that uses.

use super::{Constants, occupancy};

/// (4) Elements of A in flight an SM: occupancy · t3. Those of B are few and not counted.
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed from its prose.
pub fn memory_concurrency(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    occupancy(gpu, t2, t3) * t3
}

/// (5) Elements that must be in flight an SM: latency · BW / (SMs · e).
///
/// # Source
/// TSM2X, Section 3.1.8, by Little's law. Reconstructed; the unit, elements, is the one in which (4) counts.
pub fn memory_need(gpu: &Constants) -> f64 {
    gpu.memory_latency_s * gpu.bytes_per_s / (gpu.sms * gpu.elem_bytes)
}

/// (6) Share of the bandwidth that is used: min(1, (4) / (5)).
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed.
pub fn memory_utilisation(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    (memory_concurrency(gpu, t2, t3) / memory_need(gpu)).min(1.0)
}

/// (7) Multiply-adds in flight an SM: occupancy · t2.
///
/// # Source
/// TSM2X, Section 3.1.8. Its prose may count all t2·t3 of the inner step. The t3 that go into one sum wait for each
/// other, so that hardware sees t2 chains: that is our reading.
pub fn compute_concurrency(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    occupancy(gpu, t2, t3) * t2
}

/// (8) Multiply-adds that must be in flight an SM: latency · P / (2 · SMs).
///
/// # Source
/// TSM2X, Section 3.1.8, by Little's law. Reconstructed; the 2 since P counts a multiply-add twice.
pub fn compute_need(gpu: &Constants) -> f64 {
    gpu.fma_latency_s * gpu.flops_per_s / (2.0 * gpu.sms)
}

/// (9) Share of the multipliers that is used: min(1, (7) / (8)).
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed.
pub fn compute_utilisation(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    (compute_concurrency(gpu, t2, t3) / compute_need(gpu)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Machine};

    #[test]
    fn needs_are_littles() {
        let gpu = Constants::of(&Machine::V100, Dtype::F64);
        // 664 cycles at 1.38 GHz, 900 GB/s, 80 SMs.
        assert!((memory_need(&gpu) - 676.6).abs() <= 0.1, "{}", memory_need(&gpu));
        // 4 cycles of 34 lanes: the paper's 7500 GFLOP/s are more than 32 lanes do at this clock.
        assert!((compute_need(&gpu) - 135.9).abs() <= 0.1, "{}", compute_need(&gpu));
        // In bytes it is what the estimates need, at the bandwidth that kernels reach instead of the nominal.
        let ours = crate::occupancy::bytes_needed_in_flight(&Machine::V100);
        assert!((memory_need(&gpu) * 8.0 * 880.0 / 900.0 / ours - 1.0).abs() <= 1e-12);
    }

    #[test]
    fn few_elements_in_flight_use_their_share() {
        // Registers for 364 threads of one element each, of 677.
        let gpu = Constants { fixed_registers: 20.0, ..Constants::of(&Machine::V100, Dtype::F64) };
        assert_eq!(memory_utilisation(&gpu, 16.0, 16.0), 1.0);
        let alone = Constants { registers_per_sm: gpu.registers_per_sm / 16.0, ..gpu };
        let share = memory_utilisation(&alone, 16.0, 16.0);
        assert!((share - 65_536.0 / 180.0 / memory_need(&gpu)).abs() <= 1e-12, "{share}");
        assert_eq!(compute_utilisation(&gpu, 16.0, 16.0), 1.0);
    }
}
