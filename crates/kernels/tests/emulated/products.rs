//! Every product entry round the edges of its tile.

use crate::harness::{Case, check};
use crate::numbers::tried;
use model::launch::tiling;
use model::{Kernel, Layout, VARIANTS, Variant};

/// What α and β are.
const FACTORS: [f64; 4] = [1.0, 0.0, -1.0, 0.5];

/// Rows and columns of C that a block owns, and steps of k that it stages: its tile.
fn tile(variant: &Variant) -> [u32; 3] {
    // The largest product that still takes a single block along each axis.
    let edge = |fits: &dyn Fn(u64) -> bool| (1..=4096).take_while(|&len| fits(len)).count() as u32;
    let step = tiling(variant, 1, 1).k_step;
    if variant.is_fitted() {
        return [variant.rows, variant.t2, tiling(variant, variant.rows.into(), variant.t2.into()).k_step];
    }
    let alone = |m, n| tiling(variant, m, n).x * tiling(variant, m, n).z == 1;
    let rows = edge(&|m| alone(m, 1));
    let cols = edge(&|n| alone(1, n));
    // Algorithm 1 owns all columns.
    [rows, if cols == 4096 { 4 } else { cols }, step]
}

/// Sixteen cases in which every two of m, n, k, α and β meet in all of their combinations: an orthogonal array over the
/// field of four elements. m, n and k are one less than the tile, the tile, one more, and far from both. Layouts come in
/// all eight combinations, or those that the entry takes, with gaps and without, k in one to three parts, some of which
/// are empty.
fn around([rows, cols, step]: [u32; 3], layout: Layout) -> Vec<Case> {
    let near = |edge: u32, far: u32| [edge + 1, edge.saturating_sub(1).max(1), edge, far];
    let (ms, ns, ks) = (near(rows, 5), near(cols, 2 * cols + 3), near(step, 2 * step + 5));
    let times2 = [0, 2, 3, 1]; // x · 2 in that field; + is ^
    let cases = (0..16).map(|run| {
        let (x, y) = (run / 4, run % 4);
        Case {
            m: ms[x],
            n: ns[y],
            k: ks[x ^ y],
            by_rows: [x & 1 == 1, y & 1 == 1, (x >> 1) ^ (y >> 1) == 1],
            gap: (run % 3) as u64,
            c_gap: 0,
            offset: run % 2,
            alpha: FACTORS[x ^ times2[y]],
            beta: FACTORS[x ^ times2[times2[y]]],
            splits: 1 + (run * 2 + x) as u32 % 3,
            conj: (x ^ times2[times2[y]]) as u32,
        }
    });
    let small = [Case::plain(1, 1, 1), Case { beta: 0.5, ..Case::plain(3, 2, 0) }, Case::plain(2, 1, 0)];
    cases.chain(small).map(|case| lying(case, layout)).collect()
}

/// The case with A as the entry wants it.
fn lying(mut case: Case, layout: Layout) -> Case {
    match layout {
        Layout::Any => {}
        Layout::Columns => case.by_rows[0] = false,
        Layout::Rows => case.by_rows[0] = true,
    }
    case
}

/// Four cases for a ring: whole stages that are aligned to 16 bytes, more of them than the ring has, between a block and a
/// stage that are not whole, which end within 16 bytes or behind them; columns that are not all there; and more parts of k than blocks join.
fn aligned(variant: &Variant) -> [Case; 4] {
    let [rows, cols, step] = tile(variant);
    let ends = [3, 4].map(|over| Case::plain(rows + over, cols, (variant.stages + 1) * step + over));
    let few = Case { n: cols + 1, splits: 2, beta: 0.5, ..Case::plain(rows, 1, 4 * step) };
    let many = Case { splits: 13, beta: -1.0, ..Case::plain(rows + 4, cols, 13 * step + 4) };
    [ends[0], ends[1], few, many].map(|case| {
        let case = lying(case, variant.layout);
        let line = if case.by_rows[0] { case.k } else { case.m };
        Case { gap: u64::from(line.next_multiple_of(4) - line), ..case }
    })
}

/// Cases for a ring that takes its operands either way: all lines are aligned to 16 bytes, more stages than the ring has,
/// more blocks than one; what hangs over is whole pieces of 16 bytes or is not.
fn either_way(variant: &Variant) -> Vec<Case> {
    let [rows, cols, step] = tile(variant);
    let k = (variant.stages + 1) * step;
    let ways = [[false, true, false], [true, false, true], [false, false, true], [true, true, false]];
    let case = |at: usize| {
        let (over, gap) = if at % 2 == 0 { (1, 3) } else { (4, 0) };
        let plain = Case::plain(rows + over, 2 * cols + over, k + over);
        Case { by_rows: ways[at / 2], gap, splits: 1 + at as u32 / 4, beta: [0.0, 0.5][at % 2], ..plain }
    };
    // More tiles side by side than a band has.
    let wide = Case::plain(rows + 1, (model::launch::GEMM_BAND + 1) * cols - 3, 3);
    // C by columns that is read, whose last rows are no whole pieces.
    let read = Case { by_rows: ways[0], gap: 3, beta: -1.0, ..Case::plain(rows + 1, cols + 1, step) };
    (0..8).map(case).chain([wide, read]).collect()
}

/// Cases of whole tiles alone, of each operand either way.
fn whole([m, n, k]: [u32; 3]) -> Vec<Case> {
    let case = |run: u32| Case {
        by_rows: [run & 1 == 1, run & 2 == 2, run & 4 == 4],
        gap: u64::from(run % 3),
        beta: FACTORS[run as usize % 4],
        splits: 1 + run % 2,
        ..Case::plain((1 + run % 2) * m, (1 + run / 4) * n, (1 + run % 3) * k)
    };
    (0..8).map(case).collect()
}

/// Checks every entry of a variant.
fn check_variant(name: &str) {
    assert!(VARIANTS.iter().any(|variant| variant.name == name), "there is no variant {name}");
    // Of one or two entries a turn may have none; the next one has them.
    for variant in tried().filter(|variant| variant.name == name) {
        let mut cases = around(tile(variant), variant.layout);
        match variant.kernel {
            Kernel::Ring => cases.extend(aligned(variant)),
            Kernel::GemmRing => cases.extend(either_way(variant)),
            _ => {}
        }
        if variant.kernel == Kernel::Gemv {
            cases.extend(crate::gemv::cases(variant));
        } else if variant.is_fitted() {
            cases.extend(crate::tsmttsm::fitted(variant));
        } else if variant.is_reduced() {
            cases.extend(crate::tsmttsm::streams(tile(variant)));
        }
        if let Some(of) = variant.multiples() {
            cases = whole(of);
        }
        for case in cases {
            check(variant, case);
        }
        crate::places::check(variant);
    }
}

macro_rules! tests {
    ($($variant:ident),*) => {
        $(#[test] fn $variant() { check_variant(stringify!($variant)) })*
        const NAMED: [&str; [$(stringify!($variant)),*].len()] = [$(stringify!($variant)),*];
    };
}
tests!(
    tsm2r_inner,
    tsm2r_outer,
    tsm2r_shared,
    tsm2r_shared_rowmajor,
    tsm2r_prefetch,
    tsm2r_staged,
    tsm2r_mma,
    tsm2r_split,
    gemm_naive,
    gemm_uncoalesced,
    gemm_coalesced,
    gemm_coalesced_fixed,
    gemm_unrolled,
    gemm_interleaved,
    gemm_four,
    gemm_four_fixed,
    gemm_tiled,
    gemm_staged,
    gemm_along,
    gemm_mma,
    gemm_mma_elements,
    tsmttsm_whole,
    tsmttsm_columns,
    tsmttsm_tiled,
    tsmttsm_interleaved,
    tsmttsm_leapfrog,
    tsmttsm_atomic,
    tsmttsm_along,
    tsmttsm_mma,
    tsmttsm_folded,
    tsmttsm_staged,
    tsmttsm_fitted,
    tsmttsm_lines,
    tsmttsm_ring,
    gram_ring,
    tsmttsm_packed,
    gram_packed,
    tsmttsm_eights,
    gram_eights,
    gram_staged,
    gram_fitted,
    gram_lines,
    gram_whole,
    gram_leapfrog,
    gram_along,
    gram_mma,
    gram_folded,
    gemv_columns,
    gemv_tall,
    gemv_lines,
    gemv_dots,
    gemv_one_thread,
    gemv_several_threads,
    gemv_several_rows,
    gemv_versatile,
    gemv_wide
);

/// Those that have no test of their own above.
#[test]
fn every_other_variant() {
    // Those of a tall A serve narrow products alone: they have cases of their own, in `tsmm`.
    let elsewhere = |v: &&Variant| matches!(v.kernel, Kernel::Tsmm | Kernel::Tall);
    let rest = VARIANTS.iter().filter(|v| !elsewhere(v)).map(|v| v.name);
    let mut others: Vec<&str> = rest.filter(|name| !NAMED.contains(name)).collect();
    others.dedup();
    others.into_iter().for_each(check_variant);
}

/// The cases are what they claim to be.
#[test]
fn cases_cover_edges_layouts_factors_and_parts() {
    let cases = around([128, 4, 120], Layout::Any);
    for m in [127, 128, 129] {
        for n in [3, 4, 5] {
            assert!(cases.iter().any(|case| (case.m, case.n) == (m, n)));
        }
        for k in [119, 120, 121] {
            assert!(cases.iter().any(|case| (case.m, case.k) == (m, k)));
        }
    }
    for alpha in FACTORS {
        for beta in FACTORS {
            assert!(cases.iter().any(|case| (case.alpha, case.beta) == (alpha, beta)));
        }
    }
    for layout in 0..8 {
        let by_rows = [layout & 1 == 1, layout & 2 == 2, layout & 4 == 4];
        assert!(cases.iter().any(|case| case.by_rows == by_rows), "{by_rows:?}");
    }
    for conj in 0..4 {
        assert!(cases.iter().filter(|case| case.conj == conj && case.k > 0).count() >= 4);
    }
    for splits in 1..=3 {
        assert!(cases.iter().filter(|case| case.splits == splits && case.k > 0).count() >= 4);
        assert!(cases.iter().any(|case| case.splits == splits && case.beta == 0.0));
    }
}

/// Of a ring's own cases the first has stages that are copied by pieces, and others that are not, in each layout.
#[test]
fn rings_meet_whole_stages() {
    for variant in VARIANTS.iter().filter(|variant| variant.kernel == Kernel::Ring) {
        let (case, [rows, cols, step]) = (aligned(variant)[0], tile(variant));
        let ld = u64::from(if case.by_rows[0] { case.k } else { case.m }) + case.gap;
        assert_eq!((ld * variant.dtype.bytes() % 16, case.offset, case.n), (0, 0, cols), "{}", variant.entry);
        assert!(case.m > rows && case.m % rows != 0 && case.k > variant.stages * step && case.k % step != 0);
        assert_eq!(case.by_rows[0], variant.layout == Layout::Rows);
    }
}

/// Of the cases for a ring that takes its operands either way each operand lies either way, with aligned lines.
#[test]
fn rings_meet_operands_either_way() {
    for variant in VARIANTS.iter().filter(|variant| variant.kernel == Kernel::GemmRing) {
        let cases = either_way(variant);
        assert!([false, true].iter().all(|way| cases.iter().any(|case| case.by_rows[2] == *way)));
        // Each of the loops for whole pieces of 16 bytes.
        let whole = |case: &Case| [case.m, case.n, case.k].iter().all(|length| length % 4 == 0) && case.gap == 0;
        for by_rows in [[false, false], [false, true], [true, false], [true, true]] {
            assert!(cases.iter().any(|case| whole(case) && case.by_rows[..2] == by_rows), "{}", variant.entry);
        }
        for Case { m, n, k, gap, offset, .. } in cases.into_iter().take(8) {
            let lines = [m, n, k].map(|line| (u64::from(line) + gap) * variant.dtype.bytes() % 16);
            assert_eq!((lines, offset), ([0; 3], 0), "{}", variant.entry);
            assert!(m > variant.rows && n > variant.t2 && k > variant.stages * variant.t3);
        }
    }
}

/// The tile of each kind of kernel is the one that its table says.
#[test]
fn tiles_are_those_of_the_table() {
    for variant in VARIANTS {
        match (variant.kernel, variant.name) {
            (Kernel::Tsm2r, "tsm2r_inner") => assert_eq!(tile(variant), [variant.threads, 4, variant.threads]),
            (Kernel::Tsm2r, "tsm2r_outer" | "tsm2r_shared" | "tsm2r_shared_rowmajor" | "tsm2r_prefetch") => {
                assert_eq!(tile(variant)[..2], [variant.threads, variant.t2]);
            }
            (Kernel::GemmRing | Kernel::Ladder, _) => assert_eq!(tile(variant), [variant.rows, variant.t2, variant.t3]),
            (Kernel::Gemm, _) => assert_eq!(tile(variant), [16 * variant.t3, 16 * variant.t2, 8]),
            (Kernel::Tsmttsm | Kernel::Gram | Kernel::Gemv, _) => {
                assert_eq!(tile(variant)[..2], [variant.rows, variant.t2])
            }
            _ => {}
        }
    }
}
