//! Who is chosen for two columns, and for 49 to 64.

use super::*;

/// 49 to 64 columns of f64 on the matrix units: tiles of 256 rows where A lies by columns, or of 64, by which 20480 x 64 x 20480 takes 1328 us on an H200 and by the
/// long ones 1364, 10240 x 64 x 10240 314 and 304, 40960 x 64 x 40960 5010 and 5078 (this last choice is 1% off); of 64 where it lies by rows; squares keep theirs.
#[test]
fn many_columns_have_long_tiles_by_columns() {
    let chosen = |a: Strides, m, n, k| {
        let problem = Problem { a, ..Problem::column_major(Dtype::F64, m, n, k) };
        choose(&problem, &Machine::H200, None).expect("a choice").variant.entry
    };
    let (long, short) = ("dgemm_mma_64x32_m256_n64_k16_s3_t256", "dgemm_mma_32x32_m64_n64_k32_s3_t128");
    for (m, n, k, entry) in [
        (10_240, 64, 10_240, long),
        (10_240, 50, 10_240, long),
        (20_480, 64, 20_480, short),
        (40_960, 64, 40_960, long),
    ] {
        assert_eq!(chosen(Strides::column_major(m), m, n, k), entry, "{m} {n} {k}");
        assert_eq!(chosen(Strides::row_major(k), m, n, k), short, "{m} {n} {k}");
    }
    assert!(!chosen(Strides::column_major(2048), 2048, 2048, 2048).contains("m256"));
    // A C by rows is computed transposed: its 64 columns are the launch's rows.
    let by_rows = Problem { c: Strides::row_major(64), ..Problem::column_major(Dtype::F64, 10_240, 64, 10_240) };
    let choice = choose(&by_rows, &Machine::H200, None).expect("a choice");
    assert!(!choice.variant.is_long(), "{choice}");
}

/// Two vectors of f32 by columns are added column by column: 380 us of 20480 x 2 x 20480 on an H200, 388 by the ring of four columns.
#[test]
fn two_columns_of_f32_are_vectors() {
    for (m, k) in [(20_480, 20_480), (10_240, 10_240), (40_960, 40_960)] {
        let choice = choose(&Problem::column_major(Dtype::F32, m, 2, k), &Machine::H200, None).expect("a choice");
        assert_eq!(choice.variant.entry, "sgemv_columns_4x2_m128n2_u8_t256", "{m} {k}: {choice}");
    }
}

/// Two vectors by rows are two dot products a row, one of a block's: memory gives its rows by 4 KiB.
#[test]
fn two_columns_by_rows_are_dot_products() {
    for (dtype, entry) in [(Dtype::F64, "dgemv_dots_8x2_m8n2_u2_t256"), (Dtype::F32, "sgemv_dots_8x2_m8n2_u4_t256")] {
        for (m, k) in [(20_480, 20_480), (10_240, 10_240), (30_000, 8192), (40_960, 40_960)] {
            let problem = Problem { a: Strides::row_major(k), ..Problem::column_major(dtype, m, 2, k) };
            let choice = choose(&problem, &Machine::H200, None).expect("a choice");
            assert_eq!(choice.variant.entry, entry, "{m} {k}: {choice}");
            let three = choose(&Problem { n: 3, ..problem }, &Machine::H200, None).expect("a choice");
            assert_ne!(three.variant.kernel, Kernel::Gemv, "{three}");
        }
    }
}
