//! What `common` watches is damaged, one thing at a time: each check sees it.

mod common;

use common::{Buffer, PACKED, Storage, watch};
use std::panic::{AssertUnwindSafe, catch_unwind};

const GAPS: Storage = Storage { row_major: true, step: 2, pad: 3 };

/// Each element of memory that is none of the matrix's is written in turn, before, behind and between, also by another NaN.
#[test]
fn what_is_written_beside_a_matrix_is_seen() {
    for storage in [PACKED, GAPS] {
        let mut buffer = Buffer::<f64>::new(5, 3, storage, |i, j| (i + j) as f64);
        let inside: Vec<usize> = (0..15).map(|e| buffer.at(e / 3, e % 3)).collect();
        assert!(buffer.is_intact());
        for at in 0..buffer.all.len() {
            for written in [0.0, f64::NAN] {
                let was = std::mem::replace(&mut buffer.all[at], written);
                assert_eq!(buffer.is_intact(), inside.contains(&at), "{written} at {at}, {storage:?}");
                buffer.all[at] = was;
            }
        }
    }
}

/// What a product may write is C's elements; anything else of A, B and C is written in turn.
#[test]
fn what_a_product_may_not_write_is_seen() {
    let made = || [(5, 4), (4, 3), (5, 3)].map(|(m, n)| Buffer::<f64>::new(m, n, GAPS, |i, j| (i + j) as f64));
    let [a, b, c] = made();
    let elements: Vec<usize> = (0..15).map(|e| c.at(e / 3, e % 3)).collect();
    for (which, len) in [a.all.len(), b.all.len(), c.all.len()].into_iter().enumerate() {
        for at in 0..len {
            let damaged = || {
                watch(&mut made(), |operands| {
                    operands[which].all[at] = -7.0;
                    Ok(())
                })
            };
            let is_seen = catch_unwind(AssertUnwindSafe(damaged)).is_err();
            assert_eq!(is_seen, which < 2 || !elements.contains(&at), "element {at} of operand {which}");
        }
    }
}
