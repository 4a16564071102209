//! What batches of small products are expected to take, by every entry.

use std::collections::BTreeSet;

use lanky_model::variants::batched::BATCHED;
use lanky_model::{BatchedChoice, BatchedProblem, Machine, Refusal, choose_batched};

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
