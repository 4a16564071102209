//! All of the paper's reasoning for one product.

use super::table3::LARGEST_N;
use super::{
    Bound, Constants, Method, Optimum, Parameters, Row, a_traffic, b_traffic, bound, compute_concurrency, compute_need,
    compute_step_s, compute_utilisation, memory_concurrency, memory_need, memory_step_s, memory_utilisation, occupancy,
    optimise, registers_per_thread, threshold,
};
use crate::{Dtype, Machine};

/// Where parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper used this GPU: Table 3.
    Table3,
    /// It did, but n is more than its 16: t1 and t3 of Table 3, and t2 as [`Row::parameters`] has it.
    BeyondTable3,
    /// It did not: Algorithm 5 by scan, and its usual t1.
    Algorithm5,
}

/// The steps from a product to its parameters, each with its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reasoning {
    /// What is known of the GPU. C0 is the row's where it has one.
    pub constants: Constants,
    /// (13) t2\*, both utilisations 1.
    pub threshold: f64,
    /// (14) What binds the undivided product.
    pub bound: Bound,
    /// Who says t1, t2 and t3.
    pub origin: Origin,
    /// What is used.
    pub parameters: Parameters,
    /// (1) Registers a thread.
    pub registers: u32,
    /// (2) Shared memory a block, bytes.
    pub shared_bytes: u64,
    /// (3) Resident threads an SM, whole ones.
    pub occupancy: u32,
    /// (4) Elements of A in flight an SM.
    pub memory_concurrency: f64,
    /// (5) Elements that must be.
    pub memory_need: f64,
    /// (6) Share of the bandwidth in use.
    pub memory_utilisation: f64,
    /// (7) Multiply-adds in flight an SM.
    pub compute_concurrency: f64,
    /// (8) Multiply-adds that must be.
    pub compute_need: f64,
    /// (9) Share of the multipliers in use.
    pub compute_utilisation: f64,
    /// (10) Time of a step's arithmetic, s.
    pub compute_step_s: f64,
    /// (11) Time of a step's loads, s.
    pub memory_step_s: f64,
    /// (15) Elements of A that are read.
    pub a_traffic: u64,
    /// (15) Elements of B that are read.
    pub b_traffic: u64,
    /// Algorithm 5 by scan.
    pub scan: Optimum,
    /// Algorithm 5 by descent.
    pub descent: Optimum,
}

/// The paper's reasoning for C (m x n) = A (m x k) B (k x n) on a machine, n the skinny side, all at least 1.
///
/// # Source
/// TSM2X, Eqs. (1) to (15) and Algorithm 5, with Table 3's parameters where it has the GPU. t1 = 128 elsewhere is ours: what
/// the paper's profiling found on all GPUs but one.
pub fn reason(machine: &Machine, dtype: Dtype, [m, n, k]: [u64; 3]) -> Reasoning {
    let row = Row::of(machine, dtype, m, n);
    let mut gpu = Constants::of(machine, dtype);
    if let Some(row) = row {
        gpu.fixed_registers = f64::from(row.fixed_registers());
    }
    let scan = optimise(&gpu, [m, n, k], Method::Scan);
    // t1 is not modelled; 128 is what the paper's profiling found on all GPUs but one.
    let modelled = Parameters { t1: 128, t2: scan.t2, t3: scan.t3 };
    let parameters = row.map_or(modelled, |row| row.parameters(n));
    let (t2, t3) = (f64::from(parameters.t2), f64::from(parameters.t3));
    Reasoning {
        threshold: threshold(&gpu),
        bound: bound(&gpu, n),
        origin: match row {
            Some(_) if n > LARGEST_N => Origin::BeyondTable3,
            Some(_) => Origin::Table3,
            None => Origin::Algorithm5,
        },
        parameters,
        // A sum of whole numbers; the cast of the occupancy rounds down.
        registers: registers_per_thread(&gpu, t2, t3) as u32,
        shared_bytes: u64::from(parameters.t1) * u64::from(parameters.t2) * dtype.bytes(),
        occupancy: occupancy(&gpu, t2, t3) as u32,
        memory_concurrency: memory_concurrency(&gpu, t2, t3),
        memory_need: memory_need(&gpu),
        memory_utilisation: memory_utilisation(&gpu, t2, t3),
        compute_concurrency: compute_concurrency(&gpu, t2, t3),
        compute_need: compute_need(&gpu),
        compute_utilisation: compute_utilisation(&gpu, t2, t3),
        compute_step_s: compute_step_s(&gpu, t2, t3),
        memory_step_s: memory_step_s(&gpu, t2, t3),
        a_traffic: a_traffic(m, n, k, parameters.t2),
        b_traffic: b_traffic(m, n, k, parameters.t1),
        scan,
        descent: optimise(&gpu, [m, n, k], Method::Descent),
        constants: gpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_v100_is_reasoned_as_in_the_paper() {
        let r = reason(&Machine::V100, Dtype::F64, [10_240, 16, 10_240]);
        assert_eq!((r.origin, r.bound), (Origin::Table3, Bound::Memory));
        assert_eq!(r.parameters, Parameters { t1: 128, t2: 16, t3: 16 });
        assert_eq!((r.registers, r.shared_bytes, r.occupancy), (180, 16_384, 364));
        assert_eq!((r.memory_utilisation, r.compute_utilisation), (1.0, 1.0));
        let taller = reason(&Machine::V100, Dtype::F64, [20_480, 16, 20_480]);
        assert_eq!((taller.parameters.t3, taller.registers, taller.constants.fixed_registers), (12, 168, 24.0));
    }

    /// More columns than the paper has: 32 of f64 by the authors' kernel, which by (1) needs 24 + 2 (3 x 32 + 2 x 12) registers.
    #[test]
    fn wider_products_are_beyond_the_table() {
        let of = |dtype, n| reason(&Machine::V100, dtype, [4096, n, 4096]);
        for n in [17, 32, 4096] {
            let (double, single) = (of(Dtype::F64, n), of(Dtype::F32, n));
            assert_eq!((double.origin, single.origin), (Origin::BeyondTable3, Origin::BeyondTable3));
            assert_eq!((double.parameters, double.registers), (Parameters { t1: 128, t2: 32, t3: 12 }, 264));
            assert_eq!((single.parameters, single.registers), (Parameters { t1: 128, t2: 16, t3: 32 }, 144));
        }
        assert_eq!(of(Dtype::F64, 16).origin, Origin::Table3);
        assert_eq!(reason(&Machine::H200, Dtype::F64, [4096, 32, 4096]).origin, Origin::Algorithm5);
    }

    /// Every row of Table 3 at the paper's largest n.
    #[test]
    fn registers_are_table_3s() {
        for row in super::super::TABLE3 {
            let r = reason(&row.machine, row.dtype, [row.m_from.max(10_240), 16, 10_240]);
            assert_eq!((r.registers, r.parameters), (row.registers, row.parameters(16)), "{}", row.machine.name);
        }
    }

    #[test]
    fn a_gpu_that_the_paper_has_not_gets_algorithm_5() {
        let r = reason(&Machine::H200, Dtype::F64, [20_480, 16, 20_480]);
        assert_eq!((r.origin, r.parameters.t2, r.parameters.t3), (Origin::Algorithm5, r.scan.t2, r.scan.t3));
        assert_eq!((r.parameters.t2, r.bound), (16, Bound::Memory));
    }
}
