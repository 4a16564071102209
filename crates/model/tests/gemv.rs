//! What the model picks for a matrix times a vector: every shape has an entry that reads A once with enough of it in flight.

use lanky_model::launch::tiling;
use lanky_model::variants::Kernel;
use lanky_model::{Choice, Dtype, Machine, Problem, Strides, choose};

/// m and k in steps of 4 from 10 to 3 million, no more than 8 GB of f64.
fn mesh() -> impl Iterator<Item = (u64, u64)> {
    let side = |step: u32| 10 * 4_u64.pow(step) + u64::from(step);
    let all = (0..=9).flat_map(move |a| (0..=9).map(move |b| (side(a), side(b))));
    all.filter(|(m, k)| m * k <= 1 << 30)
}

/// A by columns or by rows, packed or with a leading dimension that is odd; the same transposed.
fn problems(dtype: Dtype, (m, k): (u64, u64)) -> Vec<Problem> {
    let plain = Problem::column_major(dtype, m, 1, k);
    let layouts = [m, m | 1].map(Strides::column_major).into_iter().chain([k, k | 1].map(Strides::row_major));
    let both = |a| [Problem { a, ..plain }, Problem { a, ..plain }.transposed()];
    layouts.flat_map(both).collect()
}

fn chosen(problem: &Problem) -> Choice {
    choose(problem, &Machine::H200, None).unwrap_or_else(|why| panic!("{problem:?}: {why}"))
}

#[test]
fn every_shape_reads_a_once_with_enough_in_flight() {
    for dtype in Dtype::ALL {
        for (shape, p) in mesh().flat_map(|shape| problems(dtype, shape).into_iter().map(move |p| (shape, p))) {
            let choice = chosen(&p);
            let launched = &choice.problem;
            assert_eq!(tiling(choice.variant, launched.m, launched.n).a_reads, 1, "{choice}");
            assert!(!choice.variant.is_sorensens() && !choice.variant.adds_atomically(), "{choice}");
            // Not the plain product, which has neither.
            assert!(choice.variant.kernel != Kernel::Gemm, "{choice}");
            let bytes = shape.0 * shape.1 * dtype.bytes();
            if bytes >= 64 << 20 {
                // There is no entry yet for which a few columns by rows are one long line: measured, f32 of 41 by the entry that is chosen 1.5 times
                // the bound, f64 1.2, by `gemv_dots`, which was predicted to take 1.1, 2.5 and 1.5; of 10 in f64 by `tsmm_fragments` 1.1 to 1.3,
                // predicted 1.9 where they have gaps, by `gemv_dots` 4.7. By columns, f32, 3162278 rows of 10 take 1.4 times the bound: a wave of
                // short blocks begins anew.
                let few = launched.k <= if launched.a.col == 1 { 64 } else { 10 };
                let enough = if few && launched.k <= 10 { 0.66 } else { 0.9 };
                assert!(choice.estimate.memory_utilisation >= enough, "{choice}");
                // A launch, or another one to add slots.
                let launches_s = 2.0 * Machine::H200.launch_s;
                // Columns of few rows with gaps between them are loaded by elements: measured, 1.3 to 1.4 times the bound.
                let low = launched.m <= 128 && launched.a.row == 1 && launched.a.col != launched.m;
                // Without gaps, by the entry for few rows: measured, at 40 1.15 times the bound, at 30 and 52 1.16 to 1.24.
                let most = if few && launched.k <= 10 && launched.a.col == 1 {
                    2.0
                } else if few || low {
                    1.5
                } else if choice.variant.name == "gemv_wide" {
                    1.2
                } else {
                    1.1
                };
                assert!(choice.estimate.seconds <= choice.bound.seconds() * most + launches_s, "{choice}");
            }
        }
    }
}

/// By rows of 10 to 50 columns neither a thread a row, nor, of few rows, blocks that begin late.
#[test]
fn a_few_columns_by_rows_go_to_lanes_along_them() {
    for dtype in [Dtype::F32, Dtype::F64] {
        for (m, k, bulk_may) in [(1000, 10, false), (5000, 50, false), (1_000_000, 17, true), (10_000_000, 30, true)] {
            let a = Strides::row_major(k);
            let variant = chosen(&Problem { a, ..Problem::column_major(dtype, m, 1, k) }).variant;
            assert!(
                variant.name != "tsmm_element" && (bulk_may || !variant.name.starts_with("tsmm_bulk")),
                "{dtype} {m} {k} {}",
                variant.entry
            );
        }
    }
}

/// Large matrices go to the kernels of vectors, or to those of skinny matrices that were measured at n = 1.
#[test]
fn the_family_follows_from_the_shape() {
    for dtype in Dtype::ALL {
        let name = |m: u64, k: u64, by_rows: bool| {
            let a = if by_rows { Strides::row_major(k) } else { Strides::column_major(m) };
            chosen(&Problem { a, ..Problem::column_major(dtype, m, 1, k) }).variant.name
        };
        for (m, k) in [(1000, 1000), (20_480, 20_480), (300, 1_000_000), (1_000_000, 300)] {
            let (along, down) = (name(m, k, true), name(m, k, false));
            // By rows in f64 the matrix units' ring does as well.
            assert!(along == "gemv_dots" || along == "tsm2r_mma", "{dtype} {m} x {k}: {along}");
            // Long columns of f32, of f64 too many bytes.
            let is_tall = m == 1_000_000 && dtype == Dtype::F32;
            let wanted = if is_tall { "gemv_tall" } else { "gemv_columns" };
            assert!(down == wanted || down.starts_with("tsm2r_"), "{dtype} {m} x {k}: {down}");
        }
        for (m, k) in [(5, 20_000_000), (10, 3_000_000), (63, 1_000_000)] {
            let (along, down) = (name(m, k, true), name(m, k, false));
            let other = |name: &str| name.starts_with("tsmttsm_") || name == "tsm2r_mma" || name == "gemv_columns";
            assert!(along == "gemv_dots" || other(along), "{dtype} {m} x {k}: {along}");
            let is_brought = m == 63 && dtype != Dtype::C128;
            assert!(
                if is_brought { down == "gemv_lines" } else { down == "gemv_wide" || other(down) },
                "{dtype} {m} x {k}: {down}"
            );
        }
        // Of longer elements four, or two, are a sector, which one thread loads.
        assert!(dtype != Dtype::F32 || name(10, 3_000_000, false) == "gemv_wide");
    }
}

/// Each load is multiplied before the next where columns are long, and as much was measured as faster: 128 KiB and more, up to 1.2 GB, in f32 and f64.
#[test]
fn long_columns_are_not_cut() {
    let choice = |dtype, m: u64, k: u64| {
        let p = Problem::column_major(dtype, m, 1, k);
        let [upright, turned] = [p, p.transposed()].map(|p| chosen(&p));
        assert_eq!((upright.variant.entry, upright.splits), (turned.variant.entry, turned.splits), "{dtype} {m} x {k}");
        upright
    };
    for (dtype, m, k) in [
        (Dtype::F32, 38_633, 10),
        (Dtype::F32, 38_633, 2462),
        (Dtype::F32, 349_525, 272),
        (Dtype::F32, 606_190, 472),
        (Dtype::F32, 3_162_278, 17),
        (Dtype::F64, 20_000, 200),
        (Dtype::F64, 100_000, 1000),
    ] {
        let choice = choice(dtype, m, k);
        assert!(choice.variant.name == "gemv_tall" && choice.splits == 1, "{dtype} {m} x {k}: {choice}");
    }
    // Columns too short, bytes too many, types without entries.
    for (dtype, m, k) in [
        (Dtype::F32, 32_000, 472),
        (Dtype::F32, 38_656, 12_844),
        (Dtype::F32, 1_051_330, 819),
        (Dtype::F64, 16_000, 200),
        (Dtype::C64, 38_633, 272),
    ] {
        assert_eq!(choice(dtype, m, k).variant.name, "gemv_columns", "{dtype} {m} x {k}");
    }
}

/// Columns come by bulk copies where that was measured to be faster: many of few rows without gaps, and many that start anywhere; not before sm_90.
#[test]
fn columns_come_by_bulk_copies_of_large_matrices() {
    let name = |dtype, m: u64, k: u64, lda: u64, machine: &Machine| {
        let p = Problem { a: Strides::column_major(lda), ..Problem::column_major(dtype, m, 1, k) };
        let [upright, turned] = [p, p.transposed()].map(|p| choose(&p, machine, None).expect("an entry").variant.name);
        assert_eq!(upright, turned, "{dtype} {m} x {k}");
        upright
    };
    let f32_on_h200 = |m, k| name(Dtype::F32, m, k, m, &Machine::H200);
    for (m, k) in
        [(157, 1_823_348), (52, 349_525), (819, 1_051_330), (2462, 349_525), (67_002, 67_002), (272, 3_162_278)]
    {
        assert_eq!(f32_on_h200(m, k), "gemv_lines", "{m} x {k}");
        assert_ne!(name(Dtype::F32, m, k, m, &Machine::A100), "gemv_lines", "{m} x {k}");
    }
    // Less than 64 MiB, gaps between few rows, columns that are whole pieces of 16 bytes, few columns, fewer bytes than were measured.
    assert_eq!(f32_on_h200(157, 67_002), "gemv_columns");
    assert_eq!(name(Dtype::F32, 157, 1_823_348, 160, &Machine::H200), "gemv_columns");
    for (m, k) in [(67_004, 67_004), (3_162_278, 272), (819, 67_002), (64, 4_000_000)] {
        assert_eq!(f32_on_h200(m, k), "gemv_columns", "{m} x {k}");
    }
}
