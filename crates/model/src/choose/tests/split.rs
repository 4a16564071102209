//! f32 in parts on the matrix units: where it is allowed, and faster.

use super::*;

fn of(by_rows: bool, [m, n, k]: [u64; 3]) -> Problem {
    let p = Problem { splits_f32: true, ..Problem::column_major(Dtype::F32, m, n, k) };
    if by_rows {
        Problem { a: Strides::row_major(k), b: Strides::row_major(n), c: Strides::row_major(n), ..p }
    } else {
        p
    }
}

#[test]
fn f32_is_split_where_it_is_allowed_and_faster() -> Result<(), Refusal> {
    for by_rows in [false, true] {
        for n in [17, 24, 32, 40, 48, 64] {
            let p = of(by_rows, [20_480, n, 20_480]);
            assert_eq!(
                choose(&p, &Machine::H200, None)?.variant.name,
                "tsm2r_split",
                "{n} columns, by rows: {by_rows}"
            );
            let whole = Problem { splits_f32: false, ..p };
            assert!(!choose(&whole, &Machine::H200, None)?.variant.splits_f32(), "{n} columns, by rows: {by_rows}");
            assert!(candidates(&whole, &Machine::H200, None)?.all(|c| !c.variant.splits_f32()));
            // Who names it allows it; of other elements, and of GPUs before, there is none.
            assert!(choose(&whole, &Machine::H200, Some("tsm2r_split"))?.variant.splits_f32());
            for (p, machine) in [(Problem { dtype: Dtype::F64, ..p }, Machine::H200), (p, Machine::A100)] {
                assert!(!choose(&p, &machine, None)?.variant.splits_f32(), "{} of {}", p.dtype, machine.name);
            }
        }
        // Of few columns the memory is the bound, and nobody measured other shapes.
        for [m, n, k] in [[64, 64, 100_000], [2_000, 64, 64], [2_000, 100, 2_000], [20_480, 1, 20_480]] {
            assert!(!choose(&of(by_rows, [m, n, k]), &Machine::H200, None)?.variant.splits_f32(), "{m} x {n} x {k}");
        }
        for n in [2, 4, 8, 9, 16] {
            for m in [2_000, 5_000, 20_480] {
                assert!(!choose(&of(by_rows, [m, n, m]), &Machine::H200, None)?.variant.splits_f32(), "{m} x {n}");
            }
        }
    }
    Ok(())
}

/// The bound of what may be split is that of the faster units; the transposed product's is the same.
#[test]
fn the_bound_is_of_the_units_that_may_be_taken() {
    let (p, h200) = (of(false, [20_480, 64, 20_480]), Machine::H200);
    let [split, whole] = [p, Problem { splits_f32: false, ..p }].map(|p| bound(&p, &h200).arithmetic_s);
    let rates = h200.mma_tf32_per_s / 3.0 / h200.fma_f32_per_s;
    assert!((whole / split - rates).abs() <= 1e-9 && rates > 2.0, "{whole} {split}");
    assert_eq!(bound(&p.transposed(), &h200).arithmetic_s, split);
    assert_eq!(
        bound(&Problem { dtype: Dtype::F64, ..p }, &h200),
        bound(&Problem { dtype: Dtype::F64, splits_f32: false, ..p }, &h200)
    );
}

/// GPUs without entries for it have no bound of theirs.
#[test]
fn a_gpu_before_has_the_bound_of_its_vector_units() {
    let p = of(false, [20_480, 64, 20_480]);
    assert_eq!(bound(&p, &Machine::A100), bound(&Problem { splits_f32: false, ..p }, &Machine::A100));
}
