//! Products of few rows.

use super::*;

/// Where no size is large, rows are shared out to blocks as a ring's are if there are steps enough; f64 goes to the matrix units where there are some.
#[test]
fn small_products_have_many_blocks() -> Result<(), Refusal> {
    let is_ring = |choice: &Choice| matches!(choice.variant.kernel, Kernel::Ring | Kernel::GemmRing);
    for dtype in Dtype::ALL {
        for (m, n, k) in
            [(64, 64, 64), (64, 64, 45), (48, 48, 48), (33, 64, 64), (65, 64, 64), (64, 65, 64), (3000, 64, 64)]
        {
            let choice = choose(&Problem::column_major(dtype, m, n, k), &Machine::H200, None)?;
            let is_double = matches!(dtype, Dtype::F64 | Dtype::C128);
            assert!(is_ring(&choice) || choice.variant.kernel == Kernel::Tsm2r && dtype == Dtype::F32, "{choice}");
            assert_eq!(choice.variant.mma, is_double, "{choice}");
            let p = Problem::column_major(dtype, m, n, k);
            assert!(choose(&p, &Machine::A100, None).is_ok_and(|choice| !choice.variant.mma));
        }
        // Far more rows, few steps, a vector, and two tall matrices: others are.
        let two_tall = Problem { a: Strides::row_major(65), ..Problem::column_major(dtype, 64, 64, 65) };
        let of_sizes = |m, n, k| Problem::column_major(dtype, m, n, k);
        for p in [of_sizes(100_000, 64, 64), of_sizes(64, 64, 1), of_sizes(64, 1, 64), two_tall] {
            let choice = choose(&p, &Machine::H200, None)?;
            assert!(!is_ring(&choice), "{choice}");
        }
    }
    Ok(())
}

/// Of few rows and steps, in f32 by columns, blocks of two columns a thread that have no stages.
#[test]
fn what_has_no_stages_serves_few_rows() -> Result<(), Refusal> {
    let by_columns = |dtype, m, k| Problem::column_major(dtype, m, 32, k);
    let rows = Strides::row_major;
    let by_rows = Problem { a: rows(8), b: rows(32), c: rows(32), ..by_columns(Dtype::F32, 1000, 8) };
    for (p, is_plain) in [
        (by_columns(Dtype::F32, 1000, 8), true),
        (by_columns(Dtype::F32, 1000, 8).transposed(), true),
        (by_columns(Dtype::F64, 1000, 8), false),
        (by_columns(Dtype::F32, 100_000, 8), false),
        (by_rows, false),
    ] {
        let mut entries = candidates(&p, &Machine::H200, None)?.map(|choice| choice.variant);
        assert_eq!(entries.any(|v| v.kernel == Kernel::Tsm2r), is_plain, "{p:?}");
        let chosen = choose(&p, &Machine::H200, None)?;
        assert_eq!(chosen.variant.entry == "stsm2r_outer_1x2_u1_t128", is_plain, "{chosen}");
    }
    Ok(())
}
