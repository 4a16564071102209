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

/// Where gradient descent ends, rounded to the nearest whole numbers.
fn descend(objective: &impl Fn(f64, f64) -> f64, range: [u32; 2]) -> (u32, u32) {
    let [t2, t3] = Descent::new(objective, range).last().unwrap_or([f64::from(range[0]), 1.0]);
    // Casts round down.
    ((t2 + 0.5) as u32, (t3 + 0.5) as u32)
}

/// Gradient descent from (1, 1), or the nearest that may be: its steps, (t2, t3) after each, up to the one that is
/// shorter than the stop.
///
/// The paper says where it starts, its step and when it stops, and not in which unit: here times are those of the start,
/// the gradient is that of central differences, the change is the larger one of the parameters', and a parameter that
/// leaves its range is put back to its edge. Where an edge of the utilisations makes it swing between two places, it stops
/// too. All five are ours.
struct Descent<'f, F> {
    objective: &'f F,
    t2: [f64; 2],
    /// The objective at the start.
    unit: f64,
    /// Where it is, and where it was a step before; `None` once it has stopped.
    at: Option<([f64; 2], [f64; 2])>,
}

impl<'f, F: Fn(f64, f64) -> f64> Descent<'f, F> {
    const STEP: f64 = 0.1;
    const STOP: f64 = 1e-4;
    const DIFFERENCE: f64 = 1e-3;

    fn new(objective: &'f F, [from, to]: [u32; 2]) -> Self {
        let (start, to) = ([f64::from(from), 1.0], f64::from(to));
        let unit = objective(start[0], start[1]);
        Descent { objective, t2: [start[0], to], unit, at: Some((start, [f64::NAN; 2])) }
    }
}

impl<F: Fn(f64, f64) -> f64> Iterator for Descent<'_, F> {
    type Item = [f64; 2];

    fn next(&mut self) -> Option<[f64; 2]> {
        let ([t2, t3], before) = self.at?;
        let slope = |up: f64, down: f64| (up - down) / (2.0 * Self::DIFFERENCE * self.unit);
        let (f, by) = (self.objective, Self::DIFFERENCE);
        let slopes = [slope(f(t2 + by, t3), f(t2 - by, t3)), slope(f(t2, t3 + by), f(t2, t3 - by))];
        let next = [
            (t2 - Self::STEP * slopes[0]).clamp(self.t2[0], self.t2[1]),
            (t3 - Self::STEP * slopes[1]).clamp(1.0, f64::from(MOST)),
        ];
        let change = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).abs().max((a[1] - b[1]).abs());
        let stops = change(next, [t2, t3]) < Self::STOP || change(next, before) < Self::STOP;
        self.at = (!stops).then_some((next, [t2, t3]));
        Some(next)
    }
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

    /// Where shared memory and registers last for all threads and few elements are in flight, the time is 1 / (t2·t3) of
    /// that at the start, and its slopes are those of a hand: 0.1 / (t2²·t3) further, from 1 on.
    #[test]
    fn a_descents_steps_are_a_hands() {
        let gpu = Constants {
            registers_per_sm: 1e9,
            shared_per_sm: 1e9,
            memory_latency_s: 1e-3,
            ..Constants::of(&Machine::V100, Dtype::F64)
        };
        let objective = |t2, t3| total_memory_s(&gpu, [20_480.0, 16.0, 20_480.0], t2, t3);
        let near = |found: [f64; 2], hand: [f64; 2]| {
            assert!((found[0] - hand[0]).abs() <= 1e-5 && (found[1] - hand[1]).abs() <= 1e-5, "{found:?} {hand:?}");
        };
        let mut steps = Descent::new(&objective, [1, 16]);
        // 1 + 0.1; 1.1 + 0.1 / 1.1³; ..
        for hand in [1.1, 1.175_131, 1.236_750, 1.289_613] {
            near(steps.next().expect("a step"), [hand, hand]);
        }
        // From t2 = 2: 0.1 · 1/4 · 2 and 0.1 · 1/2 · 2, in units of the time there.
        near(Descent::new(&objective, [2, 16]).next().expect("a step"), [2.05, 1.1]);
        // At the edge t2 stays.
        near(Descent::new(&objective, [16, 16]).next().expect("a step"), [16.0, 1.1]);
    }

    /// With all bytes in flight that there need be, the time is 1 / t2: steps of 0.1 / t2², the first of which below 1e-4 is
    /// from 31.63 on, after some 31.63³ / 0.3 of them, and it is rounded to 32. With 16 columns the edge is reached sooner.
    #[test]
    fn a_descent_stops_at_a_short_step_and_rounds() {
        let gpu = Constants {
            registers_per_sm: 1e9,
            shared_per_sm: 1e9,
            memory_latency_s: 1e-12,
            ..Constants::of(&Machine::V100, Dtype::F64)
        };
        let objective = |t2, t3| total_memory_s(&gpu, [20_480.0, 64.0, 20_480.0], t2, t3);
        let steps: Vec<[f64; 2]> = Descent::new(&objective, [1, 64]).collect();
        for (found, hand) in steps.iter().zip([1.1, 1.182_645, 1.254_143, 1.317_722]) {
            assert!((found[0] - hand).abs() <= 1e-5 && found[1] == 1.0, "{found:?} {hand}");
        }
        let [.., before, last] = steps.as_slice() else { panic!("{} steps", steps.len()) };
        assert!(last[0] - before[0] < 1e-4 && (last[0] - 31.623).abs() <= 1e-3, "{before:?} {last:?}");
        assert!((steps.len() as f64 / (31.623_f64.powi(3) / 0.3) - 1.0).abs() <= 1e-3, "{}", steps.len());
        assert_eq!(descend(&objective, [1, 64]), (32, 1));
        let to_edge: Vec<[f64; 2]> = Descent::new(&objective, [1, 16]).collect();
        assert!((to_edge.len() as f64 / (16.0_f64.powi(3) / 0.3) - 1.0).abs() <= 1e-2, "{}", to_edge.len());
        assert_eq!((to_edge.last(), descend(&objective, [1, 16])), (Some(&[16.0, 1.0]), (16, 1)));
    }

    /// Down a slope of 5 from 1 on to an edge at 3.2, from which the way back is as steep: steps of 0.5 over it and back.
    #[test]
    fn a_descent_that_swings_stops() {
        let edge = |t2: f64, _: f64| 1.0 + 5.0 * (t2 - 3.2).abs() - 5.0 * 2.2;
        // The unit is the objective at the start, which is 1.
        let steps: Vec<[f64; 2]> = Descent::new(&edge, [1, 16]).collect();
        let t2: Vec<f64> = steps.iter().map(|step| (step[0] * 1e6).round() / 1e6).collect();
        assert_eq!(t2, [1.5, 2.0, 2.5, 3.0, 3.5, 3.0]);
        assert_eq!(descend(&edge, [1, 16]), (3, 1));
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
