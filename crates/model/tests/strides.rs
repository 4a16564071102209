//! Strides along axes of one element, which lead nowhere and may be anything.

use lanky_model::variants::VARIANTS;
use lanky_model::{Dtype, Machine, Problem, Strides, choose};

/// Every shape with an axis of one element, by all entries and by each: no stride along one is multiplied beyond 64 bits.
#[test]
fn a_stride_that_leads_nowhere_may_be_any() {
    for dtype in Dtype::ALL {
        for [m, n, k] in
            [[10_000_000, 1, 8], [10_000_000, 8, 1], [1, 8, 10_000_000], [8, 1, 8], [1, 1, 1], [300, 1, 300]]
        {
            for (reads_c, by_rows) in [(false, false), (true, false), (false, true)] {
                let p = Problem { reads_c, ..Problem::column_major(dtype, m, n, k) };
                let of = |rows, cols| if by_rows { Strides::row_major(cols) } else { Strides::column_major(rows) };
                let p = Problem { a: of(m, k), b: of(k, n), c: of(m, n), ..p };
                for far in [0, u64::MAX / 8 + 1, u64::MAX] {
                    let stray = |strides: Strides, rows, cols| Strides {
                        row: if rows == 1 { far } else { strides.row },
                        col: if cols == 1 { far } else { strides.col },
                    };
                    let p = Problem { a: stray(p.a, m, k), b: stray(p.b, k, n), c: stray(p.c, m, n), ..p };
                    let seconds = |force| choose(&p, &Machine::H200, force).map(|choice| choice.estimate.seconds);
                    let chosen = seconds(None);
                    assert!(chosen.as_ref().is_ok_and(|s| s.is_finite() && *s > 0.0), "{p:?}: {chosen:?}");
                    for variant in VARIANTS.iter().filter(|variant| variant.dtype == dtype) {
                        let named = seconds(Some(variant.entry));
                        assert!(named.is_err() || named.is_ok_and(f64::is_finite), "{} {p:?}", variant.entry);
                    }
                }
            }
        }
    }
}

/// The same of Gram matrices, of one row or one column.
#[test]
fn so_may_those_of_gram_matrices() {
    for dtype in Dtype::ALL {
        for (m, k) in [(1, 10_000_000), (16, 1), (1, 1), (3000, 1), (1, 300)] {
            for far in [0, u64::MAX / 8 + 1, u64::MAX] {
                let a = Strides { row: if m == 1 { far } else { 1 }, col: if k == 1 { far } else { m } };
                let p = Problem::gram(dtype, m, k, a);
                let chosen = choose(&p, &Machine::H200, None).map(|choice| choice.estimate.seconds);
                assert!(chosen.as_ref().is_ok_and(|s| s.is_finite() && *s > 0.0), "{p:?}: {chosen:?}");
                for variant in VARIANTS.iter().filter(|variant| variant.dtype == dtype) {
                    let named = choose(&p, &Machine::H200, Some(variant.entry)).map(|choice| choice.estimate.seconds);
                    assert!(named.is_err() || named.is_ok_and(f64::is_finite), "{} {p:?}", variant.entry);
                }
            }
        }
    }
}
