//! Algorithm 5: t2 and t3 by the model, t1 by profiling.

use super::{Bound, Constants, bound, threshold, total_compute_s, total_memory_s};

/// How an objective is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As the paper does: gradient descent from (1, 1) in steps of 0.1 until the change is below 1e-4, then rounding.
    Descent,
    /// Every pair of whole numbers. The paper's authors went over to this on a V100.
    Scan,
}

/// What Algorithm 5 ends with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    /// Columns of C a thread works on at a time.
    pub t2: u32,
    /// Elements of A a thread fetches at a time.
    pub t3: u32,
    /// What the objective predicts, s.
    pub seconds: f64,
    /// Which objective it is: of the memory or of the multipliers.
    pub aim: Bound,
}

/// Most columns and elements a thread that are tried.
const MOST: u32 = 64;

/// Algorithm 5 for an m x n x k product.
///
/// Memory bound (n ≤ t2\*): the time of the memory is minimised over t2 ≤ t2\*. Compute bound: the time of the
/// multipliers over t2 > t2\*, and the time of the memory over t2 ≤ t2\*; the smaller of both wins.
///
/// # Source
/// TSM2X, Algorithm 5 and Section 3.1.9. Reconstructed from the prose. Ours: t2 ≤ n; neither parameter above 64; of equal
/// times the smallest t2 and then t3, so that a scan does not take registers for nothing.
///
/// # Weakness
/// Utilisations are minima: past their edges the objective is flat and a descent stops. The scan costs microseconds. And
/// an objective knows one resource only: where the multipliers are to bind, one element of A at a time is as good to it
/// as many, even if the loads then take longer than the arithmetic.
pub fn optimise(gpu: &Constants, [m, n, k]: [u64; 3], method: Method) -> Optimum {
    let sizes = [m as f64, n as f64, k as f64];
    let widest = u32::try_from(n).unwrap_or(MOST).clamp(1, MOST);
    // The cast rounds down and saturates.
    let below = (threshold(gpu) as u32).clamp(1, widest);
    let memory = || {
        let objective = |t2, t3| total_memory_s(gpu, sizes, t2, t3);
        minimise(&objective, [1, below], method, Bound::Memory)
    };
    if bound(gpu, n) == Bound::Memory || below == widest {
        return memory();
    }
    let objective = |t2, t3| total_compute_s(gpu, sizes, t2, t3);
    let compute = minimise(&objective, [below + 1, widest], method, Bound::Compute);
    let memory = memory();
    if memory.seconds < compute.seconds { memory } else { compute }
}

fn minimise(objective: &impl Fn(f64, f64) -> f64, t2: [u32; 2], method: Method, aim: Bound) -> Optimum {
    let (t2, t3) = match method {
        Method::Descent => descend(objective, t2),
        Method::Scan => scan(objective, t2),
    };
    Optimum { t2, t3, seconds: objective(f64::from(t2), f64::from(t3)), aim }
}

/// The least of all pairs; the first of equals.
fn scan(objective: &impl Fn(f64, f64) -> f64, [from, to]: [u32; 2]) -> (u32, u32) {
    let mut best = (from, 1, f64::INFINITY);
    for t2 in from..=to {
        for t3 in 1..=MOST {
            let seconds = objective(f64::from(t2), f64::from(t3));
            if seconds < best.2 {
                best = (t2, t3, seconds);
            }
        }
    }
    (best.0, best.1)
}

/// Gradient descent from (1, 1), or the nearest that may be.
///
/// The paper says where it starts, its step and when it stops, and not in which unit: here times are those of the start,
/// the gradient is that of central differences, the change is that of the parameters, and a parameter that leaves its
/// range is put back to its edge. All four are ours.
fn descend(objective: &impl Fn(f64, f64) -> f64, [from, to]: [u32; 2]) -> (u32, u32) {
    const STEP: f64 = 0.1;
    const STOP: f64 = 1e-4;
    const DIFFERENCE: f64 = 1e-3;
    // A descent that swings around an edge never stops by itself.
    const MOST_STEPS: u32 = 20_000;
    let (low, high) = (f64::from(from), f64::from(to));
    let (mut t2, mut t3) = (low, 1.0);
    let unit = objective(t2, t3);
    for _ in 0..MOST_STEPS {
        let slope = |up: f64, down: f64| (up - down) / (2.0 * DIFFERENCE * unit);
        let slope_t2 = slope(objective(t2 + DIFFERENCE, t3), objective(t2 - DIFFERENCE, t3));
        let slope_t3 = slope(objective(t2, t3 + DIFFERENCE), objective(t2, t3 - DIFFERENCE));
        let next_t2 = (t2 - STEP * slope_t2).clamp(low, high);
        let next_t3 = (t3 - STEP * slope_t3).clamp(1.0, f64::from(MOST));
        let change = (next_t2 - t2).abs().max((next_t3 - t3).abs());
        (t2, t3) = (next_t2, next_t3);
        if change < STOP {
            break;
        }
    }
    // Casts round down.
    ((t2 + 0.5) as u32, (t3 + 0.5) as u32)
}

/// t1, the threads a block, by profiling: of all that divide m and a block can have, the one whose run takes the least.
/// `None` where no run gave a time.
///
/// # Source
/// TSM2X, Section 3.1.9: t1 is not modelled; every divisor of m is tried once t2 and t3 are known.
pub fn t1_by_profile(m: u64, most_threads: u32, mut seconds: impl FnMut(u32) -> f64) -> Option<u32> {
    let mut best: Option<(u32, f64)> = None;
    for t1 in (1..=most_threads).filter(|&t1| m % u64::from(t1) == 0) {
        let took = seconds(t1);
        if !took.is_nan() && best.is_none_or(|(_, least)| took < least) {
            best = Some((t1, took));
        }
    }
    best.map(|(t1, _)| t1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Machine};
    use std::vec::Vec;

    fn found(machine: &Machine, dtype: Dtype, n: u64, method: Method) -> (u32, u32, Bound) {
        let found = optimise(&Constants::of(machine, dtype), [20_480, n, 20_480], method);
        (found.t2, found.t3, found.aim)
    }

    /// Section 4.2.1 and Table 3: t2 = n, t3 = 4. It takes the 400 cycles of the programming guide.
    #[test]
    fn a_k40c_gets_the_papers_parameters() {
        for dtype in [Dtype::F32, Dtype::F64] {
            assert_eq!(found(&Machine::K40C, dtype, 16, Method::Scan), (16, 4, Bound::Memory), "{dtype}");
        }
    }

    /// Section 4.2.3: the optimiser takes a t2 above t2\* = 3 and computes at full rate. That it is 8 is not to be had:
    /// from t2 = 3 on all are alike.
    #[test]
    fn an_m40_computes_in_f64() {
        let (t2, _, aim) = found(&Machine::M40, Dtype::F64, 16, Method::Scan);
        assert!(f64::from(t2) > threshold(&Constants::of(&Machine::M40, Dtype::F64)));
        assert_eq!((t2, aim), (3, Bound::Compute));
        let gpu = Constants::of(&Machine::M40, Dtype::F64);
        assert_eq!(total_compute_s(&gpu, [1e4; 3], 3.0, 1.0), total_compute_s(&gpu, [1e4; 3], 8.0, 4.0));
    }

    /// What the reconstruction cannot yield: the paper prints t2 = 4 for a P100 and t2 = 8 for an M40 in f32. By Eqs. (1)
    /// to (15) both are memory bound at n = 16 and use the whole bandwidth with t2 = n, where A is read once.
    #[test]
    fn the_printed_t2_of_p100_and_m40_does_not_follow() {
        for (machine, dtype) in [(Machine::P100, Dtype::F64), (Machine::P100, Dtype::F32), (Machine::M40, Dtype::F32)] {
            let (t2, t3, aim) = found(&machine, dtype, 16, Method::Scan);
            let gpu = Constants::of(&machine, dtype);
            assert_eq!((t2, aim), (16, Bound::Memory), "{}", machine.name);
            assert_eq!(super::super::memory_utilisation(&gpu, 16.0, f64::from(t3)), 1.0, "{}", machine.name);
        }
    }

    #[test]
    fn all_columns_are_taken_where_memory_binds() {
        for machine in [Machine::K40C, Machine::V100, Machine::A100, Machine::H200] {
            for n in [1, 2, 4, 8, 16] {
                let (t2, _, aim) = found(&machine, Dtype::F64, n, Method::Scan);
                assert_eq!((u64::from(t2), aim), (n, Bound::Memory), "{}", machine.name);
            }
        }
    }

    /// The descent gets as far as its stop lets it, and never below what the scan finds.
    #[test]
    fn a_descent_is_no_better_than_a_scan() {
        for (_, machine) in crate::machine::TABLE {
            for dtype in [Dtype::F32, Dtype::F64] {
                for n in [1, 2, 4, 8, 16, 32, 64] {
                    let gpu = Constants::of(&machine, dtype);
                    let [descent, scan] =
                        [Method::Descent, Method::Scan].map(|method| optimise(&gpu, [20_480, n, 20_480], method));
                    assert!(scan.seconds <= descent.seconds, "{} {dtype} {n}: {scan:?} {descent:?}", machine.name);
                    assert!(u64::from(descent.t2) <= n && descent.t3 >= 1, "{} {dtype} {n}", machine.name);
                }
            }
        }
    }

    /// The weakness in numbers: on a C2050 a step's loads take three times as long as its arithmetic.
    #[test]
    fn an_objective_knows_one_resource_only() {
        let gpu = Constants::of(&Machine::C2050, Dtype::F64);
        let found = optimise(&gpu, [20_480, 16, 20_480], Method::Scan);
        let ratio = super::super::ratio(&gpu, f64::from(found.t2), f64::from(found.t3));
        assert!(found.aim == Bound::Compute && (0.3..0.4).contains(&ratio), "{found:?} {ratio}");
    }

    #[test]
    fn t1_is_the_fastest_divisor_that_was_timed() {
        let mut tried = Vec::new();
        let t1 = t1_by_profile(384, 256, |t1| {
            tried.push(t1);
            if t1 == 48 { f64::NAN } else { (f64::from(t1) - 100.0).abs() }
        });
        assert_eq!(t1, Some(96));
        assert_eq!(tried, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192]);
        assert_eq!(t1_by_profile(7, 1024, |_| f64::NAN), None);
    }
}
