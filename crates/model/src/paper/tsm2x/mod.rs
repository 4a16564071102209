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

/// A GPU that the paper names, and its peaks there.
struct Named {
    machine: Machine,
    /// Peak in f32, operations/s.
    f32_per_s: f64,
    /// Peak in f64, operations/s.
    f64_per_s: f64,
    /// Peak bandwidth, bytes/s.
    bytes_per_s: f64,
}

/// Table 2 for the first four and Section 4.2.3 for the A100 (its f32 rate from its data sheet). The H200's are its rates
/// and the bandwidth that a read kernel reached.
static NAMED: [Named; 6] = [
    Named { machine: Machine::K40C, f32_per_s: 5046e9, f64_per_s: 1430e9, bytes_per_s: 288e9 },
    Named { machine: Machine::M40, f32_per_s: 6844e9, f64_per_s: 213e9, bytes_per_s: 288e9 },
    Named { machine: Machine::P100, f32_per_s: 10_600e9, f64_per_s: 4600e9, bytes_per_s: 720e9 },
    Named { machine: Machine::V100, f32_per_s: 15_000e9, f64_per_s: 7500e9, bytes_per_s: 900e9 },
    Named { machine: Machine::A100, f32_per_s: 19_500e9, f64_per_s: 9700e9, bytes_per_s: 1555e9 },
    Named { machine: Machine::H200, f32_per_s: 67_000e9, f64_per_s: 34_000e9, bytes_per_s: 4650e9 },
];

/// How far a GPU's numbers may be from those of one that the paper names, as a share: clocks differ a bit.
const NEAR: f64 = 0.05;

impl Named {
    /// Whether a machine is this one, whatever it is called: of its compute capability, with as many SMs, and with what the
    /// equations take within 5%. A rate may be this machine's or the paper's, or lie between them: the paper's V100 has a
    /// higher clock than ours, its P100 a lower one.
    fn is(&self, machine: &Machine) -> bool {
        let own = &self.machine;
        let lies = |found: f64, a: f64, b: f64| a.min(b) * (1.0 - NEAR) <= found && found <= a.max(b) * (1.0 + NEAR);
        let near = |of: fn(&Machine) -> f64| lies(of(machine), of(own), of(own));
        machine.compute_capability == own.compute_capability
            && machine.sms == own.sms
            && near(|m| m.bus_bytes_per_s)
            && near(|m| f64::from(m.registers_per_sm))
            && near(|m| f64::from(m.shared_per_sm))
            && near(|m| f64::from(m.threads_per_sm))
            && lies(2.0 * machine.fma_f32_per_s, 2.0 * own.fma_f32_per_s, self.f32_per_s)
            && lies(2.0 * machine.fma_f64_per_s, 2.0 * own.fma_f64_per_s, self.f64_per_s)
    }
}

/// The GPU of the paper that a machine is.
fn named(machine: &Machine) -> Option<&'static Named> {
    NAMED.iter().find(|named| named.is(machine))
}

impl Constants {
    /// Of a machine: the paper's peaks for the GPUs that it names, whatever they are called here, else the vector units'
    /// rate and the nominal bandwidth.
    ///
    /// # Source
    /// TSM2X, Table 2 and Section 4.2.3; latencies, which the paper profiles and does not print, are the machine's.
    pub fn of(machine: &Machine, dtype: Dtype) -> Constants {
        let (flops_per_s, bytes_per_s) = match (named(machine), dtype.real()) {
            (Some(known), Dtype::F64) => (known.f64_per_s, known.bytes_per_s),
            (Some(known), _) => (known.f32_per_s, known.bytes_per_s),
            (None, _) => (2.0 * crate::roofline::fma_rate(machine, dtype), machine.bus_bytes_per_s),
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
        assert_eq!((peak(&renamed), Row::of(&renamed, Dtype::F64, 0, 16).map(|row| row.t3)), (7.5e12, Some(16)));
        // Another memory, fewer SMs, another architecture, other rates, registers, shared memory, threads: its own rates.
        for other in [
            Machine { bus_bytes_per_s: 1.134e12, ..Machine::V100 },
            Machine { sms: 72, ..Machine::V100 },
            Machine { compute_capability: (7, 2), ..Machine::V100 },
            Machine { fma_f64_per_s: 1e12, ..Machine::V100 },
            Machine { fma_f32_per_s: 14e12, ..Machine::V100 },
            Machine { registers_per_sm: 32_768, ..Machine::V100 },
            Machine { shared_per_sm: 48 << 10, ..Machine::V100 },
            Machine { threads_per_sm: 1024, ..Machine::V100 },
        ] {
            let other = Machine { name: Machine::V100.name, ..other };
            assert_eq!(peak(&other), 2.0 * other.fma_f64_per_s);
            assert_eq!(Row::of(&other, Dtype::F64, 0, 16), None);
            assert_eq!(Constants::of(&other, Dtype::F64).bytes_per_s, other.bus_bytes_per_s);
        }
    }

    /// Every GPU of the table is known as itself or not at all, also with a driver's clock that is a bit off; and a V100 of
    /// the other form factor, 1.53 instead of 1.38 GHz.
    #[test]
    fn clocks_may_differ_a_bit() {
        let with_clock = |machine: &Machine, share: f64| Machine {
            clock_hz: machine.clock_hz * share,
            fma_f32_per_s: machine.fma_f32_per_s * share,
            fma_f64_per_s: machine.fma_f64_per_s * share,
            ..*machine
        };
        for (_, machine) in crate::machine::TABLE {
            for share in [0.96, 1.0, 1.04] {
                let known = named(&with_clock(&machine, share)).map(|known| known.machine);
                let own = NAMED.iter().map(|named| named.machine).find(|named| *named == machine);
                assert_eq!(known, own, "{} {share}", machine.name);
            }
        }
        let known = |share| named(&with_clock(&Machine::V100, share)).is_some();
        assert!(known(1.53 / 1.38) && !known(1.2) && !known(0.9));
    }
}
