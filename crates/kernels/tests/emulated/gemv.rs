//! A matrix times a vector, or two: what a product's cases do not meet.

use crate::harness::{Case, check};
use model::launch::tiling;
use model::{Kernel, Layout, VARIANTS, Variant};

/// Lines of whole 16 bytes that start at multiples of them, with full tiles, several rounds and what is left of either; the
/// same an element off, by its base or by its leading dimension; and few rows.
pub fn cases(variant: &Variant) -> Vec<Case> {
    let (rows, step) = (variant.rows, tiling(variant, 1, 1).k_step);
    let by_rows = [variant.layout == Layout::Rows, false, false];
    let of = |m: u32, k: u32| Case { by_rows, alpha: 0.5, ..Case::plain(m, variant.t2, k) };
    let (even, long) = (rows.next_multiple_of(4), 2 * step + 4);
    // Line is what is contiguous of A: a column, or a row.
    let aligned = |case: Case| {
        let line = if by_rows[0] { case.k } else { case.m };
        Case { gap: u64::from(line.next_multiple_of(4) - line), ..case }
    };
    let mut all = vec![
        of(2 * even, long),
        Case { splits: 2, beta: 1.0, ..of(even + 4, long) },
        aligned(Case { splits: 3, conj: 2, ..of(2 * rows + 3, long + 3) }),
        aligned(Case { beta: -1.0, conj: 1, ..of(rows + 5, long + 5) }),
        Case { offset: 1, ..of(2 * even, long) },
        Case { gap: 1, ..of(even + 4, long) },
        aligned(Case { splits: 2, ..of(3, 3 * step + 7) }),
        aligned(of(1, 2 * step + 1)),
        of(7, 5),
        Case { splits: 2, conj: 3, ..of(2, step + 1) },
    ];
    if variant.layout == Layout::Any {
        let turned = |case: Case| Case { by_rows: [true, true, true], ..case };
        all.extend([turned(of(rows + 3, step + 9)), turned(Case { gap: 2, splits: 2, ..of(5, 2 * step + 3) })]);
    }
    if variant.is_gemv_lines() {
        // One run of several stages, and runs by columns of more stages than a ring has; both from anywhere on.
        let low = |offset, splits| Case { offset, splits, ..of(37, 600) };
        all.extend([low(0, 1), low(1, 1), low(0, 3), Case { conj: 1, ..low(3, 2) }]);
        all.extend([Case { gap: 1, offset: 1, ..of(200, 331) }, Case { gap: 2, splits: 2, ..of(99, 400) }]);
        // All of a run but what reaches out of it; a column alone, and a row.
        all.extend([of(1, 1), Case { offset: 1, ..of(2, 1) }, Case { offset: 1, ..of(1, 3) }, of(rows + 1, 1)]);
    }
    // A vector by rows has a stride: its gap, and one.
    all.extend([Case { by_rows: [by_rows[0], true, true], gap: 3, beta: 0.5, ..of(rows + 1, step + 3) }]);
    all
}

fn variant(entry: &str) -> &'static Variant {
    VARIANTS.iter().find(|variant| variant.entry == entry).unwrap_or_else(|| panic!("there is no {entry}"))
}

/// A is read once, by whole sectors, whichever way it lies; and by 16 bytes where lines are multiples of them.
#[test]
fn a_is_read_once_by_whole_sectors() {
    for v in VARIANTS.iter().filter(|v| v.kernel == Kernel::Gemv && v.rows <= 512) {
        let by_rows = [v.layout == Layout::Rows, false, false];
        let (m, k) = (512, 1024);
        let counters = check(v, Case { by_rows, ..Case::plain(m, v.t2, k) });
        let a = counters.operand("A").loads;
        assert_eq!((a.elements, a.efficiency()), (u64::from(m * k), 1.0), "{}", v.entry);
        assert_eq!(counters.fma, u64::from(m * v.t2 * k) * u64::from(v.dtype.fmas()), "{}", v.entry);
        if !v.is_sorensens() && v.name != "gemv_wide" && !v.is_gemv_lines() {
            let width = 16 / v.dtype.bytes();
            assert_eq!(a.instructions, u64::from(m * k) / width / 32, "{}: a warp loads 512 bytes at a time", v.entry);
        }
    }
}

/// A warp brings a stage at a time: of a matrix without gaps that is no higher than a tile by one copy, of another by one for each column's piece;
/// threads load what a piece of 16 bytes has in A that reaches out of it.
#[test]
fn bulk_copies_bring_columns_that_start_anywhere() {
    let v = variant("sgemv_lines_2x1_m512n1_u4_t288");
    for (case, stages) in [
        // Of a run 128 columns a stage, else one a lane; two tiles of 304 rows, of which a stage has 8448 / (320 + 32) columns.
        (Case::plain(37, 1, 1000), 1000_u64.div_ceil(128)),
        (Case { gap: 1, ..Case::plain(37, 1, 1000) }, 1000_u64.div_ceil(32)),
        (Case { offset: 1, ..Case::plain(600, 1, 50) }, 2 * 50_u64.div_ceil(24)),
    ] {
        let a = check(v, case).operand("A").loads;
        assert!((stages..stages + 7).contains(&a.instructions), "{case:?}: {stages}, {a:?}");
        assert!(a.elements < u64::from(case.m * case.k) * 11 / 10, "{case:?}: {a:?}");
    }
}

/// An element of x is loaded for all rows of a thread.
#[test]
fn x_is_read_for_several_rows() {
    for (entry, times) in [
        ("dgemv_columns_2x1_m64n1_u8_t256", 512 / 2),
        ("dgemv_columns_2x2_m64n2_u8_t256", 512 / 2),
        ("dgemv_dots_8x1_m8n1_u2_t256", 512 / 8),
        ("dgemv_dots_8x2_m8n2_u2_t256", 512 / 8),
        ("dgemv_dots_8x1_m64n1_u2_t256", 512 / 8),
        // By a block, once for all of its rows.
        ("dgemv_one_thread_1x1_m128n1_u8_t128", 512 / 128),
        ("dgemv_several_rows_4x1_m512n1_u4_t128", 1),
    ] {
        let v = variant(entry);
        let by_rows = [v.layout == Layout::Rows, false, false];
        let counters = check(v, Case { by_rows, ..Case::plain(512, v.t2, 512) });
        assert_eq!(counters.operand("B").loads.elements, 512 * u64::from(v.t2) * times, "{entry}");
    }
}

/// Of a low matrix a warp of the wide kernel loads neighbours: whole sectors, where a thread a row leaves most lanes of one warp idle, and all of the others.
#[test]
fn threads_run_along_the_columns_of_a_low_matrix() {
    let case = Case::plain(8, 1, 1024);
    let (wide, plain) = (variant("sgemv_wide_4x1_m128n1_u4_t256"), variant("sgemv_one_thread_1x1_m128n1_u8_t128"));
    let [wide, plain] = [wide, plain].map(|v| check(v, case).operand("A").loads);
    assert_eq!((wide.elements, wide.efficiency()), (8 * 1024, 1.0));
    assert_eq!((plain.elements, plain.efficiency()), (8 * 1024, 1.0));
    assert_eq!((wide.instructions, plain.instructions), (8 * 1024 / 128, 1024));
}

/// 1030 tiles in two parts of k, of which one has nothing: six tickets are of two tiles each, whose slots one block adds.
#[test]
fn a_last_block_adds_all_tiles_of_its_ticket() {
    let by_rows = [true, false, false];
    check(
        variant("dgemv_dots_8x1_m8n1_u2_t256"),
        Case { by_rows, splits: 2, beta: 1.0, ..Case::plain(8 * 1030, 1, 5) },
    );
}
