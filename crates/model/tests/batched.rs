//! What batches of small products are expected to take, by every entry.

use std::collections::BTreeSet;

use lanky_model::launch::batched::Lie;
use lanky_model::variants::batched::BATCHED;
use lanky_model::{BatchedChoice, BatchedProblem, Dtype, Machine, Refusal, Strides, choose_batched};

/// Of sums of no steps too, for which nothing is loaded where β is 0: so it is where α is 0.
#[test]
fn every_design_takes_at_least_the_time_in_which_c_is_written() {
    let mut designs = BTreeSet::new();
    for variant in BATCHED {
        for (m, n, k) in [(7, 5, 0), (1, 1, 0), (8, 8, 0), (16, 13, 0), (7, 5, 1), (16, 13, 12)] {
            for (reads_c, count) in [(false, 100_000), (true, 100_000), (false, 3)] {
                let p = BatchedProblem::column_major(variant.dtype, (m, n, k), count);
                let p = BatchedProblem { reads_c, ..p };
                let BatchedChoice { bound, estimate, .. } =
                    match choose_batched(&p, &Machine::H200, Some(variant.entry)) {
                        Ok(choice) => choice,
                        // Of a B of no rows the columns are not told apart.
                        Err(Refusal::NotPacked) if k == 0 => continue,
                        // Threads may compute more rows and columns than there are, or whole pieces of rows.
                        Err(Refusal::SmallerThanTile { .. } | Refusal::NotWhole { .. }) => continue,
                        Err(refusal) => panic!("{} {m} {n} {k}: {refusal}", variant.entry),
                    };
                designs.insert(variant.entry);
                let write_s = bound.write_bytes as f64 / Machine::H200.write_bytes_per_s;
                let is_enough = |s: f64| s.is_finite() && s >= write_s;
                assert!(
                    is_enough(estimate.memory_s) && is_enough(estimate.seconds),
                    "{} {m} {n} {k} {reads_c}: {estimate:?}",
                    variant.entry
                );
            }
        }
    }
    assert_eq!(designs.len(), BATCHED.len());
}

/// By every entry and by none, of batches of none too: a launch, or why there is none.
#[test]
fn a_c_without_elements_is_refused() {
    for force in BATCHED.iter().map(|variant| Some(variant.entry)).chain([None]) {
        for (m, n, k) in [(0, 5, 3), (5, 0, 3), (0, 0, 3), (0, 5, 0), (0, 0, 0), (0, 33, 1)] {
            for (reads_c, count) in [(false, 100_000), (true, 1), (false, 0)] {
                let dtype = BATCHED.iter().find(|v| Some(v.entry) == force).map_or(Dtype::F64, |v| v.dtype);
                let p = BatchedProblem { reads_c, ..BatchedProblem::column_major(dtype, (m, n, k), count) };
                let refusal = choose_batched(&p, &Machine::H200, force).map(|choice| choice.variant.entry);
                let expected = match (m, n) {
                    (0, _) => Refusal::SmallerThanTile { name: "m", value: 0, least: 1 },
                    _ => Refusal::SmallerThanTile { name: "n", value: 0, least: 1 },
                };
                assert_eq!(refusal, Err(expected), "{force:?} {m} {n} {k}");
            }
        }
    }
}

/// Strides along axes of one element, and of a batch of one or no problem, may be any.
#[test]
fn what_is_not_walked_is_no_reason() {
    for dtype in Dtype::ALL {
        for (m, n, k) in [(5, 1, 3), (1, 5, 3), (5, 3, 1), (1, 1, 1), (16, 1, 16)] {
            let p = BatchedProblem::column_major(dtype, (m, n, k), 1);
            for far in [0, 1 << 60, u64::MAX] {
                let stray = |lie: Lie, rows, cols| {
                    let Strides { row, col } = lie.strides;
                    let strides =
                        Strides { row: if rows == 1 { far } else { row }, col: if cols == 1 { far } else { col } };
                    Lie { strides, stride: far, ..lie }
                };
                let (a, b, c) = (stray(p.a, m, k), stray(p.b, k, n), stray(p.c, m, n));
                for count in [0, 1] {
                    let strayed = BatchedProblem { a, b, c, count, ..p };
                    let found = choose_batched(&strayed, &Machine::H200, None);
                    assert!(found.is_ok_and(|choice| choice.estimate.seconds.is_finite()), "{strayed:?}");
                }
            }
        }
    }
}
