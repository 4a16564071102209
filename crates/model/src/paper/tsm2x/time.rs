//! Eqs. (10) to (14): what a step takes, what binds it, and where that changes.

use super::{Constants, compute_utilisation, memory_utilisation, occupancy};
use core::fmt;

/// What binds a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The memory.
    Memory,
    /// The multipliers.
    Compute,
}

impl Bound {
    /// `memory` or `compute`.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Memory => "memory",
            Bound::Compute => "compute",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// (10) Time of the arithmetic of one inner step on the whole device, s: 2·t2·t3·occupancy·SMs / (P · utilisation).
///
/// # Source
/// TSM2X, Section 3.1.8, of the loop that overlaps loads and arithmetic. Reconstructed.
pub fn compute_step_s(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    let flops = 2.0 * t2 * t3 * occupancy(gpu, t2, t3) * gpu.sms;
    flops / (gpu.flops_per_s * compute_utilisation(gpu, t2, t3))
}

/// (11) Time of the loads of the same step, s: e·t3·occupancy·SMs / (BW · utilisation).
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed.
pub fn memory_step_s(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    let bytes = gpu.elem_bytes * t3 * occupancy(gpu, t2, t3) * gpu.sms;
    bytes / (gpu.bytes_per_s * memory_utilisation(gpu, t2, t3))
}

/// (12) Ratio of (10) to (11): (2·t2/e)(BW/P)(utilisation of memory / of compute). Above 1 the multipliers bind.
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed.
pub fn ratio(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    compute_step_s(gpu, t2, t3) / memory_step_s(gpu, t2, t3)
}

/// (13) The threshold t2\*, where (12) is 1, with both utilisations 1: e·P / (2·BW).
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed. The paper's own rates count a multiply-add once (m·n·k / time); were P so too,
/// the threshold would be twice this. All that the paper claims holds with either.
pub fn threshold(gpu: &Constants) -> f64 {
    gpu.elem_bytes * gpu.flops_per_s / (2.0 * gpu.bytes_per_s)
}

/// (13) with the utilisations that t2 and t3 reach, columns: t2\* · (utilisation of compute (9) / of memory (6)).
///
/// # Source
/// TSM2X, Section 3.1.8. Reconstructed: (12) solved for t2.
pub fn threshold_at(gpu: &Constants, t2: f64, t3: f64) -> f64 {
    threshold(gpu) * compute_utilisation(gpu, t2, t3) / memory_utilisation(gpu, t2, t3)
}

/// (14) What binds the undivided product: compute where n exceeds t2\*, else memory.
///
/// # Source
/// TSM2X, Section 3.1.8: t2 is then n.
pub fn bound(gpu: &Constants, n: u64) -> Bound {
    if n as f64 > threshold(gpu) { Bound::Compute } else { Bound::Memory }
}

/// Algorithm 5's objective where memory binds, s: m·k·e·(n/t2) / (BW · utilisation). B's traffic is not counted.
///
/// # Source
/// TSM2X, Algorithm 5 and Section 3.1.9. Reconstructed; n/t2 is not rounded up, so that it can be descended.
pub fn total_memory_s(gpu: &Constants, [m, n, k]: [f64; 3], t2: f64, t3: f64) -> f64 {
    m * k * gpu.elem_bytes * (n / t2) / (gpu.bytes_per_s * memory_utilisation(gpu, t2, t3))
}

/// Algorithm 5's objective where the multipliers bind, s: 2·m·n·k / (P · utilisation).
///
/// # Source
/// TSM2X, Algorithm 5 and Section 3.1.9. Reconstructed.
pub fn total_compute_s(gpu: &Constants, [m, n, k]: [f64; 3], t2: f64, t3: f64) -> f64 {
    2.0 * m * n * k / (gpu.flops_per_s * compute_utilisation(gpu, t2, t3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Machine};

    /// Every claim of Sections 4.2.1 and 4.2.3: all n up to 16, but on an M40 in f64, whose few multipliers bind 8 and 16.
    #[test]
    fn every_claim_of_what_binds_holds() {
        for (machine, threshold_f64) in [
            (Machine::K40C, 19.9),
            (Machine::M40, 3.0),
            (Machine::P100, 25.6),
            (Machine::V100, 33.3),
            (Machine::A100, 24.9),
        ] {
            let at = threshold(&Constants::of(&machine, Dtype::F64));
            assert!((at - threshold_f64).abs() <= 0.06, "{}: {at}", machine.name);
            for (dtype, n) in [Dtype::F32, Dtype::F64].into_iter().flat_map(|dtype| [2, 4, 8, 16].map(|n| (dtype, n))) {
                let gpu = Constants::of(&machine, dtype);
                let multipliers = machine == Machine::M40 && dtype == Dtype::F64;
                // A multiply-add counted once doubles the threshold, and changes no claim: of 4 columns there is none.
                for threshold in [threshold(&gpu), 2.0 * threshold(&gpu)] {
                    let is_claimed = !multipliers || n != 4;
                    assert!(
                        !is_claimed || (n as f64 > threshold) == (multipliers && n >= 8),
                        "{} {dtype} {n}",
                        machine.name
                    );
                }
                assert_eq!(bound(&gpu, n), if multipliers && n >= 4 { Bound::Compute } else { Bound::Memory });
            }
        }
    }

    #[test]
    fn columns_up_to_the_threshold_are_memory_bound() {
        let gpu = Constants::of(&Machine::V100, Dtype::F64);
        assert_eq!((bound(&gpu, 33), bound(&gpu, 34)), (Bound::Memory, Bound::Compute));
        assert!((ratio(&gpu, threshold(&gpu), 4.0) - 1.0).abs() <= 1e-12);
        assert_eq!(threshold_at(&gpu, 16.0, 16.0), threshold(&gpu));
    }

    /// Section 4.2.3: 1.73 times the bandwidth, of which more than 90% is in use, should give 1.7 times the speed.
    #[test]
    fn an_a100_is_predicted_1_7_times_a_v100() {
        let time = |machine: &Machine| {
            let gpu = Constants::of(machine, Dtype::F64);
            [2.0, 4.0, 8.0, 16.0].map(|n| {
                assert_eq!(bound(&gpu, n as u64), Bound::Memory, "{} {n}", machine.name);
                total_memory_s(&gpu, [20480.0, n, 20480.0], n, 16.0)
            })
        };
        for (v100, a100) in time(&Machine::V100).iter().zip(time(&Machine::A100)) {
            assert!((v100 / a100 - 1555.0 / 900.0).abs() <= 1e-9 && (v100 / a100 - 1.7).abs() <= 0.05);
        }
    }

    /// 8·34e12 / (2·4.65e12) and 4·67e12 / (2·4.65e12).
    #[test]
    fn an_h200_turns_at_29_columns() {
        let at = |dtype| threshold(&Constants::of(&Machine::H200, dtype));
        assert!((at(Dtype::F64) - 29.2).abs() <= 0.06 && (at(Dtype::F32) - 28.8).abs() <= 0.06);
    }

    /// The same by the matrix units, 67 TF in f64, and of complex elements, whose products are four multiply-adds:
    /// 8·67e12 / (2·4.65e12), 8·67e12 / (8·4.65e12), 16·34e12 / (8·4.65e12), 16·67e12 / (8·4.65e12).
    #[test]
    fn an_h200s_matrix_units_and_complex_elements_turn_elsewhere() {
        let vector = |dtype| Constants::of(&Machine::H200, dtype);
        let matrix = |dtype: Dtype| {
            let flops_per_s = 2.0 * Machine::H200.mma_f64_per_s / f64::from(dtype.fmas());
            Constants { flops_per_s, ..vector(dtype) }
        };
        for (gpu, columns) in [
            (matrix(Dtype::F64), 57.6),
            (vector(Dtype::C64), 14.4),
            (vector(Dtype::C128), 14.6),
            (matrix(Dtype::C128), 28.8),
        ] {
            assert!((threshold(&gpu) - columns).abs() <= 0.06, "{} for {columns}", threshold(&gpu));
        }
    }

    #[test]
    fn a_step_takes_what_its_totals_do() {
        let gpu = Constants::of(&Machine::V100, Dtype::F64);
        // Steps of the whole product: m·k·(n/t2) elements of A, t3·occupancy·SMs a step.
        let steps = 1e4 * 1e4 * 2.0 / (12.0 * occupancy(&gpu, 8.0, 12.0) * gpu.sms);
        let totals = [1e4, 16.0, 1e4];
        let memory = total_memory_s(&gpu, totals, 8.0, 12.0) / (steps * memory_step_s(&gpu, 8.0, 12.0));
        let compute = total_compute_s(&gpu, totals, 8.0, 12.0) / (steps * compute_step_s(&gpu, 8.0, 12.0));
        assert!((memory - 1.0).abs() <= 1e-12 && (compute - 1.0).abs() <= 1e-12, "{memory} {compute}");
    }
}
