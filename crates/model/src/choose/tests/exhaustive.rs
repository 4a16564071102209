//! What is chosen is what trying everything would choose, at little cost.

use super::super::*;
use crate::machine::TABLE;
use crate::roofline::work;
use crate::{Dtype, Strides};
use proptest::prelude::*;

/// By columns; by rows; A along rows with the other two along columns; both tall matrices along their rows; a Gram matrix.
fn laid(dtype: Dtype, (m, n, k): (u64, u64, u64), layout: usize, reads_c: bool) -> Problem {
    let p = Problem { reads_c, ..Problem::column_major(dtype, m, n, k) };
    let (a, b, c) = (Strides::row_major(k), Strides::row_major(n), Strides::row_major(n));
    match layout {
        0 => p,
        1 => Problem { a, b, c, ..p },
        2 => Problem { a, ..p },
        3 => Problem { b, ..p },
        _ => Problem { reads_c, ..Problem::gram(dtype, n, k, Strides::row_major(n)) },
    }
}

fn machine(at: usize) -> Machine {
    TABLE.get(at).map_or(Machine::COMMON, |(_, machine)| *machine)
}

/// Every entry in every number of parts: of each the fewest parts that are like its least, of these the first of the fastest.
fn by_trying_all(problem: &Problem, machine: &Machine) -> Option<(&'static str, u32, f64)> {
    let mut best: Option<(&str, u32, f64)> = None;
    for place in in_question(problem, None) {
        let Ok(fit) = Fit::new(place, problem, machine) else { continue };
        let times: std::vec::Vec<_> =
            fit.estimator.splits().map(|splits| (splits, fit.estimator.seconds(splits))).collect();
        let least = times.iter().fold(f64::INFINITY, |least, (_, seconds)| least.min(*seconds));
        let (splits, seconds) = *times.iter().find(|(_, seconds)| *seconds <= splits::ALIKE * least)?;
        if best.is_none_or(|(.., so_far)| seconds < so_far) {
            best = Some((fit.laid.variant.entry, splits, seconds));
        }
    }
    best
}

/// Lengths whose logarithms are alike.
fn length(most_log: u32) -> impl Strategy<Value = u64> {
    (0..most_log).prop_flat_map(|log| 1_u64 << log..2 << log)
}

proptest! {
    #[test]
    fn a_choice_is_that_of_trying_all(
        at in 0..=TABLE.len(),
        dtype in 0..4_usize,
        layout in 0..5_usize,
        reads_c in any::<bool>(),
        long in length(28),
        short in length(9),
        k in length(28),
        is_wide in any::<bool>(),
    ) {
        let (m, n) = if is_wide { (short, long) } else { (long, short) };
        let (machine, problem) = (machine(at), laid(Dtype::ALL[dtype], (m, n, k), layout, reads_c));
        let chosen = choose(&problem, &machine, None).ok();
        let bound_s = chosen.map_or(0.0, |choice| choice.bound.seconds());
        let chosen = chosen.map(|choice| (choice.variant.entry, choice.splits, choice.estimate.seconds));
        let wanted = by_trying_all(&problem, &machine);
        // Nothing is said to be faster than what is possible.
        let wanted = wanted.map(|(entry, splits, seconds)| (entry, splits, seconds.max(bound_s)));
        prop_assert_eq!(chosen, wanted, "{} {:?}", machine.name, problem);
    }
}

/// Where many entries and parts are alike, and a mesh: no choice works out what takes long. Times are left to benches, computers
/// of tests have other work.
#[test]
fn a_choice_works_out_little() {
    let dear = [
        ("rtx4090", Dtype::F32, (1000, 2, 20_480)),
        ("rtx4090", Dtype::F64, (2769, 7, 59_028_017)),
        ("b200", Dtype::F64, (8, 16, 20_480)),
        ("a100", Dtype::F64, (1000, 2, 20_480)),
        ("gk210", Dtype::F32, (2, 1000, 300_000_000)),
        ("m40", Dtype::F64, (125, 49, 9_273_768)),
        ("p100", Dtype::F64, (3346, 2, 139_156_481)),
    ];
    for (name, dtype, size) in dear {
        let machine = crate::machine::by_name(name).expect("a machine");
        little_is_worked_out(&laid(dtype, size, 0, false), &machine);
    }
    const LENGTHS: [u64; 9] = [1, 2, 8, 33, 64, 300, 4096, 20_480, 10_000_000];
    for at in 0..=TABLE.len() {
        for dtype in Dtype::ALL {
            for (m, n) in LENGTHS.into_iter().flat_map(|m| LENGTHS.map(|n| (m, n))) {
                for k in LENGTHS {
                    let layout = (m + n + k) as usize % 5;
                    little_is_worked_out(&laid(dtype, (m, n, k), layout, k % 2 == 0), &machine(at));
                }
            }
        }
    }
}

fn little_is_worked_out(problem: &Problem, machine: &Machine) {
    work::forget();
    let choice = choose(problem, machine, None);
    let (estimators, times) = work::done();
    assert!(estimators <= 90 && times <= 600, "{estimators} entries, {times} times: {choice:?}");
}
