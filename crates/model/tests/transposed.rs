//! Which products are computed transposed.

use lanky_model::{Dtype, Kernel, Machine, Problem, Refusal, Strides, choose};

#[test]
fn a_wide_result_is_computed_transposed() -> Result<(), Refusal> {
    let p = Problem::column_major(Dtype::F64, 7, 10_000, 5000);
    let choice = choose(&p, &Machine::H200, None)?;
    assert!(choice.swapped && choice.variant.kernel != Kernel::Gemm);
    assert_eq!((choice.problem.m, choice.problem.n), (10_000, 7));
    assert_eq!(choice.problem.c, p.c.transposed());
    Ok(())
}

#[test]
fn a_square_by_rows_is_computed_transposed() -> Result<(), Refusal> {
    let by_columns = Problem::column_major(Dtype::F64, 700, 900, 800);
    let by_rows = Problem { c: Strides::row_major(900), ..by_columns };
    let (plain, turned) = (choose(&by_columns, &Machine::H200, None)?, choose(&by_rows, &Machine::H200, None)?);
    assert!(plain.variant.kernel == Kernel::GemmRing && turned.variant.kernel == Kernel::GemmRing);
    assert_eq!((plain.swapped, turned.swapped), (false, true));
    assert_eq!((turned.problem.m, turned.problem.c), (900, Strides::column_major(900)));
    Ok(())
}
