//! TSM2X: how many columns and elements a thread takes, reasoned from the machine.
//!
//! # Source
//! C. Rivera, J. Chen, N. Xiong, J. Zhang, S. L. Song, D. Tao, TSM2X: high-performance tall-and-skinny matrix-matrix
//! multiplication on GPUs, J. Parallel Distrib. Comput. 151 (2021), Section 3.1. The text that we have lost its
//! formulas: all equations are reconstructed from its prose and from the authors' code, and numbered here in the order
//! in which the prose has them. What checks them: Table 3, and every claim of Section 4 about what binds.
//!
//! | symbol | here | meaning |
//! |---|---|---|
//! | t1 | [`Parameters::t1`] | threads a block, and rows of a tile of B |
//! | t2 | [`Parameters::t2`] | columns of C that a thread works on at a time |
//! | t3 | [`Parameters::t3`] | elements of A that a thread fetches at a time |
//! | tcf | [`tcf`] | how many times fewer threads than rows TSM2L launches |
//! | e | [`Constants::elem_bytes`] | bytes an element |
//! | C0 | [`Constants::fixed_registers`] | registers that CUDA sets up, profiled |
//! | P, BW | [`Constants::flops_per_s`], [`Constants::bytes_per_s`] | peaks, a multiply-add being two operations |
//!
//! | file | equations |
//! |---|---|
//! | `resources` | (1) registers, (2) shared memory, (3) occupancy |
//! | `concurrency` | (4) to (9): what is in flight, what must be, utilisations |
//! | `time` | (10) to (14): times, their ratio, the threshold t2\*, what binds |
//! | `traffic` | (15) what is read; sectors and banks |
//! | `algorithm5` | the optimiser, by descent and by scan; t1 by profiling |
//! | `table3` | what the paper used, and what it leaves for C0 |
//! | `tsm2l` | Algorithms 6 and 7, where k is small too |
//! | `reasoning` | all of it for one product |

mod algorithm5;
mod concurrency;
mod reasoning;
mod resources;
mod table3;
mod time;
mod traffic;
mod tsm2l;

pub use algorithm5::{Method, Optimum, optimise, t1_by_profile};
pub use concurrency::{
    compute_concurrency, compute_need, compute_utilisation, memory_concurrency, memory_need, memory_utilisation,
};
pub use reasoning::{Origin, Reasoning, reason};
pub use resources::{occupancy, registers_per_thread, shared_per_thread};
pub use table3::{Row, TABLE3, TSM2L_INTERLEAVED, tcf};
pub use time::{
    Bound, bound, compute_step_s, memory_step_s, ratio, threshold, threshold_at, total_compute_s, total_memory_s,
};
pub use traffic::{Storage, a_traffic, a_traffic_inner, b_traffic, bank_conflict, broadcast_efficiency};
pub use tsm2l::{Algorithm, Tsm2l, is_tsm2l, tsm2l};

use crate::{Dtype, Machine};

/// The parameters that the paper chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Threads a block; rows of a tile of B.
    pub t1: u32,
    /// Columns of C a thread works on at a time.
    pub t2: u32,
    /// Elements of A a thread fetches at a time.
    pub t3: u32,
}

/// What the equations know of a GPU and an element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// e: bytes an element.
    pub elem_bytes: f64,
    /// C0: registers a thread that CUDA sets up. Profiled in the paper; here what Table 3 leaves, a V100's elsewhere.
    pub fixed_registers: f64,
    /// 32-bit registers an SM.
    pub registers_per_sm: f64,
    /// Shared memory an SM, bytes.
    pub shared_per_sm: f64,
    /// Most resident threads an SM.
    pub threads_per_sm: f64,
    /// SMs.
    pub sms: f64,
    /// BW: peak bandwidth, bytes/s.
    pub bytes_per_s: f64,
    /// P: peak rate, operations/s, a multiply-add being two.
    pub flops_per_s: f64,
    /// Latency of a load from memory, s. Profiled and not printed in the paper; here the machine's.
    pub memory_latency_s: f64,
    /// Latency of a multiply-add, s. As above.
    pub fma_latency_s: f64,
}

/// Whether two are one GPU to the paper: of one compute capability, with as many SMs, and nominal bandwidths within 5%.
fn is_like(a: &Machine, b: &Machine) -> bool {
    let near = (a.bus_bytes_per_s / b.bus_bytes_per_s - 1.0).abs() <= 0.05;
    a.compute_capability == b.compute_capability && a.sms == b.sms && near
}

/// GPU, peak in f32 and f64, GFLOP/s, bandwidth, GB/s: Table 2 for the first four and Section 4.2.3 for the A100 (its
/// f32 rate from its data sheet). The H200's are its rates and the bandwidth that a read kernel reached.
const PEAKS: [(Machine, f64, f64, f64); 6] = [
    (Machine::K40C, 5046.0, 1430.0, 288.0),
    (Machine::M40, 6844.0, 213.0, 288.0),
    (Machine::P100, 10_600.0, 4600.0, 720.0),
    (Machine::V100, 15_000.0, 7500.0, 900.0),
    (Machine::A100, 19_500.0, 9700.0, 1555.0),
    (Machine::H200, 67_000.0, 34_000.0, 4650.0),
];

impl Constants {
    /// Of a machine: the paper's peaks for the GPUs that it names, whatever they are called here, else the vector units'
    /// rate and the nominal bandwidth.
    ///
    /// # Source
    /// TSM2X, Table 2 and Section 4.2.3; latencies, which the paper profiles and does not print, are the machine's.
    pub fn of(machine: &Machine, dtype: Dtype) -> Constants {
        let known = PEAKS.iter().find(|(named, ..)| is_like(named, machine));
        let fma = crate::roofline::fma_rate(machine, dtype);
        let (flops_per_s, bytes_per_s) = match (known, dtype.real()) {
            (Some((_, _, gflops, gbs)), Dtype::F64) | (Some((_, gflops, _, gbs)), _) => (gflops * 1e9, gbs * 1e9),
            (None, _) => (2.0 * fma, machine.bus_bytes_per_s),
        };
        // The paper counts two a product of two elements; its elements are real.
        let flops_per_s = flops_per_s / f64::from(dtype.fmas());
        Constants {
            elem_bytes: dtype.bytes() as f64,
            fixed_registers: f64::from(table3::fixed_registers(machine, dtype)),
            registers_per_sm: f64::from(machine.registers_per_sm),
            shared_per_sm: f64::from(machine.shared_per_sm),
            threads_per_sm: f64::from(machine.threads_per_sm),
            sms: f64::from(machine.sms),
            bytes_per_s,
            flops_per_s,
            memory_latency_s: machine.memory_latency_s,
            fma_latency_s: machine.fma_latency_cycles / machine.clock_hz,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn a_gpu_is_known_by_what_it_is() {
        let peak = |machine: &Machine| Constants::of(machine, Dtype::F64).flops_per_s;
        let renamed = Machine { name: Name::new("Tesla V100-SXM2-16GB"), ..Machine::V100 };
        assert_eq!((peak(&renamed), Row::of(&renamed, Dtype::F64, 0).map(|row| row.t3)), (7.5e12, Some(16)));
        // Another memory, fewer SMs, another architecture: its own rates.
        for other in [
            Machine { bus_bytes_per_s: 1.134e12, ..Machine::V100 },
            Machine { sms: 72, ..Machine::V100 },
            Machine { compute_capability: (7, 2), ..Machine::V100 },
        ] {
            let other = Machine { name: Machine::V100.name, ..other };
            assert_eq!(peak(&other), 2.0 * other.fma_f64_per_s);
            assert_eq!(Row::of(&other, Dtype::F64, 0), None);
            assert_eq!(Constants::of(&other, Dtype::F64).bytes_per_s, other.bus_bytes_per_s);
        }
    }
}
