//! How much longer rings take where operands do not lie as they copy them best.

use crate::{Dtype, Kernel, Problem, Variant};

/// How many times as long the products of a ring of complex fragments take where both operands lie along k, so that all of a stage is
/// turned. On an H200 on 2026-11-27, 20480 x 64 x 5120 in c128, A by rows took 1.39 times as long as by columns, by tiles of 64 x 64, and
/// 1.26 by those of 128 x 64.
pub(super) fn turned(variant: &Variant, problem: &Problem) -> f64 {
    let is_turned = variant.kernel == Kernel::GemmRing && variant.dtype.is_complex();
    if is_turned && problem.a.col == 1 && problem.b.row == 1 { 1.3 } else { 1.0 }
}

/// How many times as long the products of a ring of complex fragments take: by tiles of 64 rows, of one column of tiles, as by tiles of 128, on an H200 on
/// 2026-11-27, A by columns, 1.05 to 1.15 times, and more by rows (edges-variants.csv, c128 and 64 columns); by warps of 16 x 16 sums, whose blocks
/// an SM runs hardly faster together than one after another, 1.4 to 2 times as long as counted from 321 cubed on, by those of 16 x 32 1.1. In f64, of one column of
/// tiles by columns, those of 64 rows, which fetch B four times as often as those of 256, took 1.01 to 1.08 times as long on H100s on 2026-11-28 (m = k = 20480 1219 us and 1181 to 1206, 10240
/// 316 and 292), on an H200 that day 0.97 to 1.03 (20480 1328 us and 1364, 10240 314 and 304, 40960 5010 and 5078); by rows, whose stages of 16 steps are copied by 128 bytes of a row, those of 256 took 1.07 times as long (1360 us and 1268).
pub(super) fn short(variant: &Variant, problem: &Problem) -> f64 {
    let is_narrow = problem.n <= u64::from(variant.t2);
    let is_short = variant.rows == 64 && is_narrow;
    let by_rows = problem.a.row != 1 && problem.m > 1;
    match (variant.kernel, variant.mma && variant.dtype.is_complex(), variant.cols) {
        (Kernel::GemmRing, false, _) if variant.is_long() && by_rows => 1.1,
        (Kernel::GemmRing, false, 32) if variant.mma && is_short && !by_rows && !variant.copies_elements() => 1.03,
        (Kernel::GemmRing, true, 16) => 1.7,
        (Kernel::GemmRing, true, 32) if variant.own_rows() == 16 => 1.1,
        (Kernel::GemmRing, true, 32) if is_short => 1.08,
        _ => 1.0,
    }
}

/// How many times as long a ring of f64 takes to read an A by rows, on an H200 on 2026-11-28: m = k = 20480 of 4 to 24 columns 1.00 to 1.05 times what was expected without it
/// (tsm2r-variants.csv), 126 shapes of 200 MB to 1.1 GB of up to 24 columns 1.06 to 1.16 in the middle of each entry (nvidia-h200.tuned). In f32 the former took 0.95 to 1.0 and
/// the latter 1.06 to 1.21, so that it has none. Of complex elements it was not looked at.
const BY_ROWS: f64 = 1.06;

/// How many times as long a ring takes to read an A by columns in f32 by 4 x 4 sums a thread: m = k = 10240 to 40960 of 2 to 8 columns took 1.00 to 1.07 times what was expected without it, 1.04 in the
/// middle, on an H200 on 2026-11-28 (tsm2r.csv).
const FEW_SUMS: f64 = 1.035;

/// How many times as long the copies of a ring take where A's lines, as its shape has them, are not whole sectors, so that a
/// block's part of a column draws 64 bytes more, or not even whole 16 bytes, so that elements are copied: on the matrix units the longer,
/// the more of them a warp has for each of its products. The leading dimension does
/// not matter: parts of k, and so bits, follow from the shape. On an H200 on 2026-11-27, A by columns, 20479 x 4 x 10240 took 1.45 times
/// as long as 20480 rows by 16 x 8 sums a warp, 1.18 by 16 x 16, 1.04 by 32 x 16, 1.23 by 2 x 4 sums a thread; by rows 10000 x 48 x 10001 1.70 times as long as
/// 10000 steps by 16 x 48. In c64 20479 rows took 1.36, 1.21 and 1.03 times as long as 20480 by 2 x 4, 4 x 4 and 8 x 4 sums a thread.
pub(super) fn ragged(variant: &Variant, problem: &Problem) -> f64 {
    let by_rows = problem.a.row != 1 && problem.m > 1;
    let line = if by_rows { problem.k } else { problem.m };
    let own = f64::from(variant.own_rows() * variant.cols);
    match problem.dtype {
        Dtype::F64 => {}
        Dtype::F32 if variant.splits_f32() => return by_elements_in_parts(variant, problem),
        Dtype::F32 if !by_rows && own <= 16.0 => return FEW_SUMS,
        Dtype::C64 if !by_rows && line % 2 != 0 => return if own < 32.0 { 1.0 + 2.9 / own } else { 1.03 },
        _ => return 1.0,
    }
    let drawn = match by_rows {
        true => BY_ROWS,
        false if line % 4 != 0 => 1.0 + 8.0 / f64::from(variant.rows),
        false => 1.0,
    };
    let sums = own / 128.0;
    let elements = match variant.mma {
        true if by_rows && variant.cols == 48 => 0.7,
        true => 0.33 / (sums * sums),
        false => 0.2,
    };
    drawn * if line % 2 == 0 { 1.0 } else { 1.0 + elements }
}

/// How many times as long a ring that splits f32 takes where A's lines, as its shape has them, are not whole 16 bytes, and it has several tiles of columns, for each of which it
/// copies A by elements. On an H200 on 2026-11-30, m = k = 10001 and 64 columns (benches/results/h200/split-variants.csv), measured by what was expected without it 1.3 to 1.4 for two
/// tiles and 1.1 for one; of 24 columns 1.3 to 1.5, as much as on the vector units, of which nothing is said either.
pub(super) fn by_elements_in_parts(variant: &Variant, problem: &Problem) -> f64 {
    let line = if problem.a.row != 1 && problem.m > 1 { problem.k } else { problem.m };
    if line % 4 != 0 && problem.n > u64::from(variant.t2) { 1.23 } else { 1.0 }
}

/// How many times as long a ring to the matrix units of f64 takes whose tiles fetch more of B from the cache than an eighth of A's bytes. On an H200 on 2026-11-28, A of 10240 to
/// 40960 rows and columns, by columns (tsm2r-variants.csv), measured by what was expected without it 1.04 for 16 columns by 64 rows a tile and 1.02 by 128, 1.02 for 24 by 128,
/// 1.03 for 32 by 128 and 1.02 by 256; by rows what BY_ROWS says is beside it.
pub(super) fn fetched_again(variant: &Variant) -> f64 {
    match (variant.dtype, variant.mma) {
        (Dtype::F64, true) => 1.0 + 0.1 * (f64::from(variant.cols) / f64::from(variant.rows) - 0.125).max(0.0),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Strides, VARIANTS};

    fn variant(entry: &str) -> &'static Variant {
        VARIANTS.iter().find(|v| v.entry == entry).expect("an entry")
    }

    /// Whole sectors, halves of them, elements; by columns and by rows.
    #[test]
    fn what_is_not_whole_takes_longer() {
        let by_rows = |dtype, k| Problem { a: Strides::row_major(k), ..Problem::column_major(dtype, 1000, 4, k) };
        let by_columns = |dtype, m| Problem::column_major(dtype, m, 4, 1000);
        for (entry, problem, wanted) in [
            ("dtsm2r_mma_16x8_n8_k32_s3_t128", by_columns(Dtype::F64, 20480), 1.0),
            ("dtsm2r_mma_16x8_n8_k32_s3_t128", by_columns(Dtype::F64, 20478), 1.125),
            ("dtsm2r_mma_16x8_n8_k32_s3_t128", by_columns(Dtype::F64, 20479), 1.125 * 1.33),
            ("dtsm2r_mma_32x16_n16_k32_s2_t128", by_columns(Dtype::F64, 20479), 1.0625 * (1.0 + 0.33 / 16.0)),
            ("dtsm2r_staged_2x4_n4_k16_s3_t128", by_columns(Dtype::F64, 20480), 1.0),
            ("dtsm2r_mma_16x8_n8_k32_s2_t128_rows", by_rows(Dtype::F64, 10000), BY_ROWS),
            ("dtsm2r_mma_16x16_n16_k32_s3_t128_rows", by_rows(Dtype::F64, 10000), BY_ROWS),
            ("dtsm2r_mma_16x16_n16_k32_s3_t128_rows", by_rows(Dtype::F64, 10001), 1.0825 * BY_ROWS),
            ("dtsm2r_mma_16x48_n48_k16_s3_t256_rows", by_rows(Dtype::F64, 10001), 1.7 * BY_ROWS),
            ("stsm2r_staged_4x4_n8_k16_s3_t128", by_columns(Dtype::F32, 20479), FEW_SUMS),
            ("stsm2r_staged_8x8_n16_k16_s2_t256", by_columns(Dtype::F32, 20480), 1.0),
            ("stsm2r_staged_2x4_n8_k64_s2_t128_rows", by_rows(Dtype::F32, 10000), 1.0),
            ("ctsm2r_staged_4x4_n16_k16_s3_t128", by_columns(Dtype::C64, 20480), 1.0),
            ("ctsm2r_staged_4x4_n16_k16_s3_t128", by_columns(Dtype::C64, 20479), 1.0 + 2.9 / 16.0),
            ("ctsm2r_staged_8x4_n32_k16_s3_t128", by_columns(Dtype::C64, 20479), 1.03),
            ("ctsm2r_staged_4x4_n16_k16_s3_t128_rows", by_rows(Dtype::C64, 10001), 1.0),
        ] {
            let found = ragged(variant(entry), &problem);
            assert!((found - wanted).abs() <= 1e-9, "{entry}: {found}, not {wanted}");
        }
    }

    #[test]
    fn tiles_of_few_rows_fetch_b_more_often() {
        let of = |entry| fetched_again(variant(entry));
        assert!((of("dtsm2r_mma_16x32_n32_k16_s3_t256") - 1.0125).abs() <= 1e-9);
        assert!((of("dtsm2r_mma_16x24_n24_k32_s3_t256") - 1.00625).abs() <= 1e-9);
        let without = [
            "dtsm2r_mma_32x32_n32_k16_s3_t256",
            "dtsm2r_mma_32x16_n16_k32_s2_t128",
            "dtsm2r_mma_16x8_n8_k64_s2_t128_rows",
        ];
        assert_eq!(without.map(of), [1.0; 3]);
        assert_eq!([of("ztsm2r_mma_16x16_n16_k16_s3_t128"), of("dtsm2r_staged_2x4_n4_k16_s3_t128")], [1.0; 2]);
    }

    /// Of complex fragments, where both lie along k; and of tiles of 64 rows, where there is one column of them.
    #[test]
    fn two_operands_along_k_are_turned() {
        let of = |n, a, b| Problem { a, b, ..Problem::column_major(Dtype::C128, 100, n, 50) };
        let along = |a, b| of(65, a, b);
        let entry = variant("zgemm_mma_32x32_m64_n64_k8_s3_t128");
        let (by_rows, by_columns) = (Strides::row_major(50), Strides::column_major(100));
        assert!(turned(entry, &along(by_rows, Strides::column_major(50))) > 1.0);
        assert_eq!(turned(entry, &along(by_columns, Strides::column_major(50))), 1.0);
        assert_eq!(turned(entry, &along(by_rows, Strides::row_major(65))), 1.0);
        let narrow = of(64, by_columns, Strides::column_major(50));
        assert_eq!(turned(entry, &narrow), 1.0);
        assert_eq!(short(entry, &narrow), 1.08);
        assert_eq!(short(entry, &along(by_columns, Strides::column_major(50))), 1.0);
        assert_eq!(short(variant("zgemm_mma_32x32_m128_n64_k8_s3_t256"), &narrow), 1.0);
        let real = variant("dgemm_mma_32x32_m64_n64_k32_s3_t128");
        assert_eq!(turned(real, &along(by_rows, Strides::column_major(50))), 1.0);
        let (long, elements) =
            (variant("dgemm_mma_64x32_m256_n64_k16_s3_t256"), variant("dgemm_mma_elements_32x32_m64_n64_k16_s3_t128"));
        let narrow_by_rows = of(64, by_rows, Strides::column_major(50));
        assert_eq!([real, long, elements].map(|v| short(v, &narrow)), [1.03, 1.0, 1.0]);
        assert_eq!([real, long, elements].map(|v| short(v, &narrow_by_rows)), [1.0, 1.1, 1.0]);
        assert_eq!(short(real, &along(by_columns, Strides::column_major(50))), 1.0);
    }
}
