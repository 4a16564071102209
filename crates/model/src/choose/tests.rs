//! What is chosen, and that nothing better was passed over.

use super::splits::ALIKE;
use super::*;
use crate::{Dtype, Operation, Strides};

mod columns;
mod exhaustive;
mod short;
mod split;

#[test]
fn every_variant_can_be_forced_by_name_and_by_entry() -> Result<(), Refusal> {
    for v in VARIANTS {
        // As wide as it can be, if it serves no more than that.
        let (n, k) = widest(v).map_or((7, 300), |(columns, steps)| (columns.into(), steps.into()));
        let n = if v.kernel == Kernel::Gemv { 1 } else { n };
        let mut p = Problem::column_major(v.dtype, 1000, n, k);
        if let Some((columns, steps)) = widest(v) {
            let wider = Problem::column_major(v.dtype, 1000, n + 1, k);
            assert_eq!(
                choose(&wider, &Machine::H200, Some(v.entry)),
                Err(Refusal::TooWide { columns, steps: Some(steps) })
            );
        }
        if let (Kernel::Tsmttsm, Some(columns)) = (v.kernel, v.most_columns()) {
            let across = v.most_across().unwrap_or(columns);
            for (m, n, columns) in
                [(columns + 1, 1, columns), (1, columns + 1, columns), (across + 1, across + 1, across)]
            {
                let p = Problem::column_major(v.dtype, m.into(), n.into(), k);
                let too_wide = Err(Refusal::TooWide { columns, steps: None });
                assert_eq!(choose(&p, &Machine::H200, Some(v.entry)), too_wide, "{} {m} x {n}", v.entry);
            }
            p = Problem::column_major(v.dtype, columns.into(), across.into(), k);
        }
        if v.kernel == Kernel::Gram {
            assert_eq!(choose(&p, &Machine::H200, Some(v.entry)), Err(Refusal::OtherOperation { gram: false }));
            p = Problem::gram(v.dtype, 1, 300, p.a);
        }
        if v.layout == Layout::Rows {
            assert_eq!(choose(&p, &Machine::H200, Some(v.entry)), Err(Refusal::Layout { wanted: Layout::Rows }));
            p.a = Strides::row_major(301);
        }
        if let Some(of) = v.multiples() {
            assert_eq!(choose(&p, &Machine::H200, Some(v.entry)), Err(Refusal::NotWhole { of }));
            p = Problem::column_major(v.dtype, 1024, 64, 320);
        }
        assert_eq!(choose(&p, &Machine::H200, Some(v.name))?.variant.name, v.name);
        let choice = choose(&p, &Machine::H200, Some(v.entry))?;
        assert_eq!((choice.variant.entry, choice.chooser), (v.entry, Chooser::Caller));
    }
    Ok(())
}

/// What timings on an H200 found within 2% of the fastest is thought to be within 3% of what is chosen, but for the launch that rings took then to
/// add their parts.
#[test]
fn an_h200_gets_its_fastest_entries() -> Result<(), Refusal> {
    for (dtype, n, entry, splits) in [
        (Dtype::F64, 1, "dtsm2r_prefetch_1x1_u16_t128", 4),
        (Dtype::F64, 2, "dtsm2r_prefetch_1x2_u16_t128", 4),
        (Dtype::F64, 4, "dtsm2r_prefetch_1x4_u16_t128", 4),
        (Dtype::F32, 2, "stsm2r_prefetch_1x2_u32_t128", 4),
        (Dtype::F32, 4, "stsm2r_prefetch_1x4_u32_t128", 4),
    ] {
        let p = Problem::column_major(dtype, 20480, n, 20480);
        let choice = choose(&p, &Machine::H200, None)?;
        let Some(fast) = VARIANTS.iter().find(|v| v.entry == entry) else { panic!("{entry}") };
        let timed = crate::roofline::estimate(fast, &tiling(fast, p.m, p.n), splits, &p, &Machine::H200);
        let saved_s = if choice.finish == Finish::LastBlock { Machine::H200.launch_s } else { 0.0 };
        assert!(timed.seconds <= (choice.estimate.seconds + saved_s) * 1.03, "{splits} parts: {timed:?}, {choice}");
    }
    Ok(())
}

/// Both tall matrices by rows, or both by columns, and k as in Ernst et al.
fn tall(dtype: Dtype, m: u64, n: u64, by_rows: bool) -> Problem {
    let k = (1 << 29) / m.max(n);
    let p = Problem::column_major(dtype, m, n, k);
    let (a, b) = (Strides::row_major(k), Strides::column_major(k));
    if by_rows { Problem { b: Strides::row_major(n), ..p } } else { Problem { a, b, ..p } }
}

#[test]
fn two_tall_matrices_get_kernels_of_their_own() -> Result<(), Refusal> {
    for dtype in Dtype::ALL {
        for (m, n) in
            [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (48, 48), (64, 64), (64, 1), (3, 17), (48, 16)]
        {
            for by_rows in [false, true] {
                let p = tall(dtype, m, n, by_rows);
                let choice = choose(&p, &Machine::H200, None)?;
                assert!(choice.variant.is_reduced(), "{choice}");
                // What is finished by a second launch has the slots for it.
                assert_eq!(
                    choice.slots_len,
                    choice.problem.m * choice.problem.n * u64::from(choice.splits),
                    "{choice}"
                );
                let gram = choose(&Problem::gram(dtype, m, p.k, p.a), &Machine::H200, None)?;
                assert!(gram.variant.kernel == Kernel::Gram && gram.operation == Operation::Gram, "{gram}");
            }
        }
    }
    Ok(())
}

/// Where they do not lie alike TSM2R's are asked too.
#[test]
fn tall_matrices_that_lie_otherwise_have_more_to_choose_from() -> Result<(), Refusal> {
    let asked = |p: &Problem| -> Result<bool, Refusal> {
        Ok(candidates(p, &Machine::H200, None)?
            .any(|choice| matches!(choice.variant.kernel, Kernel::Tsm2r | Kernel::Ring)))
    };
    for by_rows in [false, true] {
        let p = tall(Dtype::F64, 33, 17, by_rows);
        let turned = Problem { b: tall(Dtype::F64, 33, 17, !by_rows).b, ..p };
        assert_eq!((asked(&p)?, asked(&turned)?), (false, true));
    }
    Ok(())
}

/// A block of four warps an SM leaves the matrix units idle half of the time: 349 us, where two take 266.
#[test]
fn two_blocks_an_sm_multiply_two_tall_matrices() -> Result<(), Refusal> {
    for (dtype, columns, k) in [(Dtype::F64, 64, 1 << 20), (Dtype::F64, 48, 1 << 20), (Dtype::C128, 64, 1 << 19)] {
        let p = Problem { k, ..tall(dtype, columns, columns, true) };
        let choice = choose(&p, &Machine::H200, None)?;
        assert!(choice.grid.into_iter().product::<u32>() >= 2 * Machine::H200.sms, "{choice}");
    }
    Ok(())
}

/// c128 from 5 columns on, on an H200; before sm_90 never.
#[test]
fn complex_tall_matrices_go_to_the_matrix_units() -> Result<(), Refusal> {
    for n in [5, 8, 9, 16, 17, 24, 25, 32, 33, 48, 49, 64] {
        for by_rows in [false, true] {
            let p = tall(Dtype::C128, n, n, by_rows);
            for p in [p, Problem::gram(Dtype::C128, n, p.k, p.a)] {
                let choice = choose(&p, &Machine::H200, None)?;
                assert!(choice.variant.mma && (choice.variant.is_staged() || n <= 32), "{choice}");
                assert!(!choose(&p, &Machine::A100, None)?.variant.mma);
            }
        }
    }
    Ok(())
}

#[test]
fn gram_matrices_of_any_width_are_served() -> Result<(), Refusal> {
    for n in [1, 63, 64, 65, 1000, 20_000] {
        for dtype in Dtype::ALL {
            let p = Problem::gram(dtype, n, 100_000, Strides::column_major(n));
            assert!(u64::from(choose(&p, &Machine::H200, None)?.variant.rows) >= n.min(4));
        }
    }
    let p = Problem::gram(Dtype::F64, 17, 1000, Strides::column_major(17));
    let entry = Some("dgram_mma_16x16_m16n16_d8_t256");
    assert_eq!(choose(&p, &Machine::H200, entry), Err(Refusal::TooWide { columns: 16, steps: None }));
    assert_eq!(choose(&p, &Machine::H200, Some("tsm2r_inner")), Err(Refusal::OtherOperation { gram: true }));
    Ok(())
}

/// Two tall matrices of few rows go to TSM2R's ring of small tiles in f64, in parts that are joined, and so does the whole of their Gram matrix; a triangle, more rows, lines
/// along k and other types go to entries of their own.
#[test]
fn few_rows_of_two_tall_matrices_go_to_a_ring() -> Result<(), Refusal> {
    let by_rows = |dtype, k| Problem::gram(dtype, 64, k, Strides::row_major(64).transposed());
    let name = |p: &Problem| choose(p, &Machine::H200, None).map(|choice| choice.variant.name);
    for k in [1000, 2000, 5000] {
        let gram = by_rows(Dtype::F64, k);
        for p in [gram, Problem { gram: false, ..gram }] {
            let choice = choose(&p, &Machine::H200, None)?;
            let entry = "dtsm2r_mma_16x8_n8_k32_s3_t128";
            assert_eq!((choice.variant.entry, choice.finish), (entry, Finish::LastBlock), "{choice}");
        }
        assert!(name(&Problem { triangle: true, ..gram })?.starts_with("gram_"));
        assert!(name(&Problem::gram(Dtype::F64, 64, k, Strides::row_major(k)))?.starts_with("gram_"));
        for dtype in [Dtype::F32, Dtype::C64, Dtype::C128] {
            assert!(name(&by_rows(dtype, k))?.starts_with("gram_"), "{dtype} {k}");
        }
    }
    assert!(name(&by_rows(Dtype::F64, 1_000_000))?.starts_with("gram_"));
    // Nor do those go to what is made for no shape, which took 35 us for 23.
    assert!(name(&Problem { gram: false, ..by_rows(Dtype::C64, 10_000) })?.starts_with("tsmttsm_"));
    let triangle = Problem { triangle: true, ..by_rows(Dtype::F64, 1000) };
    let forced = |p: &Problem| choose(p, &Machine::H200, Some("tsm2r_mma")).map(|choice| choice.operation);
    assert_eq!(forced(&Problem { triangle: false, ..triangle }), Ok(Operation::Gram));
    assert_eq!(forced(&triangle), Err(Refusal::OtherOperation { gram: true }));
    Ok(())
}

/// Of all splits the first whose time is like the least.
fn has_its_best_splits(choice: &Choice, machine: &Machine) {
    let tiles = tiling(choice.variant, choice.problem.m, choice.problem.n);
    let estimator = Estimator::new(choice.variant, &tiles, &choice.problem, machine);
    let all = || estimator.splits().map(|splits| (splits, estimator.seconds(splits)));
    let least = all().fold(f64::INFINITY, |least, (_, seconds)| least.min(seconds));
    let first = all().find(|(_, seconds)| *seconds <= least * ALIKE).map(|(splits, _)| splits);
    assert_eq!(first, Some(choice.splits), "{choice}");
}

/// What [`choose`] leaves out cannot be the least, and of each entry all splits count.
#[test]
fn nothing_that_is_left_out_is_better() -> Result<(), Refusal> {
    for machine in [Machine::H200, Machine::V100, Machine::RTX4090, Machine::A100] {
        for dtype in [Dtype::F32, Dtype::F64] {
            for (m, n, k) in [
                (128, 16, 3000),
                (1000, 1, 30_000),
                (20_480, 1, 20_480),
                (20_480, 16, 20_480),
                (10_240, 64, 1280),
                (128, 4, 1_000_000),
                (16, 16, 10_000_000),
                (1_000_000, 7, 300),
                (5000, 5000, 5000),
                (1, 1, 4_000_000_000),
            ] {
                let p = Problem::column_major(dtype, m, n, k);
                let choice = choose(&p, &machine, None)?;
                let of_all = candidates(&p, &machine, None)?
                    .reduce(|best, next| if next.estimate.seconds < best.estimate.seconds { next } else { best });
                assert_eq!(of_all, Some(choice));
                candidates(&p, &machine, None)?.for_each(|candidate| has_its_best_splits(&candidate, &machine));
            }
        }
    }
    Ok(())
}

/// A tall product is served by its own kernels, on a grid of no more blocks than the machine holds but where blocks are short on purpose;
/// a vector's by those of vectors.
#[test]
fn tall_products_have_kernels_of_their_own() -> Result<(), Refusal> {
    for dtype in [Dtype::F32, Dtype::F64] {
        for (n, k) in [(1, 1), (3, 5), (2, 64), (17, 3), (48, 16), (16, 16), (33, 33), (64, 64), (64, 1)] {
            let by_columns = Problem::column_major(dtype, 10_000_000, n, k);
            let (a, c) = (Strides::row_major(k), Strides::row_major(n));
            for p in [by_columns, Problem { a, c, ..by_columns }, Problem { a, ..by_columns }] {
                for p in [p, p.transposed()] {
                    let choice = choose(&p, &Machine::H200, None)?;
                    assert!(matches!(choice.variant.kernel, Kernel::Tsmm | Kernel::Tall), "{choice}");
                    assert!(choice.splits == 1 && choice.slots_len == 0, "{choice}");
                    let places = u64::from(choice.estimate.resident) * u64::from(Machine::H200.sms);
                    let name = choice.variant.name;
                    let are_short = ["tsm2l_", "tsmm_bulk", "tsmm_outer", "tsmm_packed"]
                        .iter()
                        .any(|start| name.starts_with(start));
                    assert!(u64::from(choice.grid[0]) <= places || are_short, "{choice}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_tall_matrix_times_a_vector_is_a_vectors_product() -> Result<(), Refusal> {
    for dtype in [Dtype::F32, Dtype::F64] {
        for k in [9, 30, 64] {
            let p = Problem::column_major(dtype, 10_000_000, 1, k);
            assert_eq!(choose(&p, &Machine::H200, None)?.variant.kernel, Kernel::Gemv, "{dtype} {k}");
        }
    }
    Ok(())
}

/// Sums are added in the same order wherever lines begin; of two tall matrices and of vectors the model weighs that.
#[test]
fn an_entry_has_the_same_parts_of_k_with_any_leading_dimension() {
    let mut cut = 0;
    for variant in VARIANTS.iter().filter(|variant| !variant.is_reduced()) {
        for (m, n, k) in [
            (5, 5, 1028),
            (17, 3, 40_001),
            (64, 48, 3_000_000),
            (20_480, 8, 20_480),
            (700, 13, 9001),
            (876, 360, 136),
            (1616, 744, 1292),
        ] {
            for by_rows in [false, true] {
                let of = |lines: u64| if by_rows { Strides::row_major(lines) } else { Strides::column_major(lines) };
                let laid = |gap: u64| {
                    let (along_a, along_b) = if by_rows { (m, n) } else { (k, k) };
                    let (a, b) = (of(along_a + gap).transposed(), of(along_b + gap));
                    let p = Problem { a, b, ..Problem::column_major(variant.dtype, m, n, k) };
                    choose(&p, &Machine::H200, Some(variant.entry)).ok().map(|choice| choice.splits)
                };
                let packed = laid(0);
                cut += u32::from(packed > Some(1));
                for gap in [1, 4, 1000] {
                    assert_eq!(laid(gap), packed, "{} {m} {n} {k}, by rows {by_rows}, gaps of {gap}", variant.entry);
                }
            }
        }
    }
    assert!(cut > 1000, "{cut}");
}

#[test]
fn refusals_name_their_reason() {
    let p = Problem::column_major(Dtype::F64, 1 << 32, 2, 2);
    let refused = choose(&p, &Machine::H200, None);
    assert_eq!(refused, Err(Refusal::DimensionTooLarge { name: "m", value: 1 << 32 }));
    let p = Problem::column_major(Dtype::F64, 10, 10, 10);
    assert_eq!(choose(&p, &Machine::H200, Some("tsm3r")), Err(Refusal::UnknownVariant));
    let entry = Some("stsm2r_inner_1x1_u1_t128");
    assert_eq!(choose(&p, &Machine::H200, entry), Err(Refusal::NoSuchDtype { dtype: Dtype::F64 }));
}

#[test]
fn few_rows_are_split_until_the_chip_is_full() -> Result<(), Refusal> {
    let p = Problem::column_major(Dtype::F64, 128, 4, 1_000_000);
    let choice = choose(&p, &Machine::H200, None)?;
    assert!(choice.estimate.memory_utilisation >= 0.95, "{choice}");
    // So many parts are added by another launch.
    assert_eq!(
        (choice.slots_len, choice.finish),
        (128 * 4 * u64::from(choice.splits), Finish::SecondLaunch),
        "{choice}"
    );
    Ok(())
}

/// Of every entry that is asked for by name: too many columns are refused, and none gets a grid that does not exist.
#[test]
fn a_grid_that_does_not_exist_is_refused() {
    let (mut refused, mut cut) = (0, 0);
    for v in VARIANTS {
        for (m, n, k) in
            [(300, 1 << 23, 70), (1 << 23, 300, 70), (1 << 23, (1 << 23) + 1, 70), (LARGEST_DIMENSION, 70, 1)]
        {
            match choose(&Problem::column_major(v.dtype, m, n, k), &Machine::H200, Some(v.entry)) {
                Ok(choice) => {
                    let [x, y, z] = choice.grid;
                    assert!(u64::from(x) <= GRID_X && y <= GRID_YZ && z <= GRID_YZ, "{m} x {n} x {k}: {choice}");
                }
                Err(Refusal::GridTooLarge { columns }) => {
                    let across = if v.wants_rows() { m.min(n) } else { m.max(n) };
                    assert!(across > columns, "{} {m} x {n} x {k}: {columns}", v.entry);
                    refused += 1;
                }
                Err(Refusal::TooManyTiles { tiles }) => {
                    assert!(tiles > GRID_X, "{} {m} x {n} x {k}: {tiles}", v.entry);
                    cut += 1;
                }
                Err(_) => {}
            }
        }
    }
    assert!(refused > 0 && cut > 0, "no entry is refused for its grid: {refused} and {cut}");
}

/// Of every entry that cuts C's columns along z: 65535 groups of them are taken, 65536 and 65537 refused, whole or with one column.
#[test]
fn as_many_blocks_along_z_as_there_are_and_no_more() {
    let mut tried = 0;
    for v in VARIANTS.iter().filter(|v| matches!(v.kernel, Kernel::Tsm2r | Kernel::Ring)) {
        for (blocks, short) in (65_535..=65_537_u64).flat_map(|blocks| [(blocks, 0), (blocks, v.t2 - 1)]) {
            let n = blocks * u64::from(v.t2) - u64::from(short);
            if tiling(v, n, n).z != blocks {
                continue;
            }
            let by_rows = Problem { a: Strides::row_major(3), ..Problem::column_major(v.dtype, n, n, 3) };
            let problem =
                if v.layout == Layout::Rows { by_rows } else { Problem { a: Strides::column_major(n), ..by_rows } };
            let found = choose(&problem, &Machine::H200, Some(v.entry)).map(|choice| choice.grid[2]);
            let columns = 65_535 * u64::from(v.t2);
            let expected = if blocks == 65_535 { Ok(65_535) } else { Err(Refusal::GridTooLarge { columns }) };
            assert_eq!(found, expected, "{} of {n} columns", v.entry);
            tried += 1;
        }
    }
    assert!(tried > 800, "{tried}");
}

/// On the matrix units f64 of any shape goes by elements where no 16 bytes along a line of A or of B are whole, whichever way it lies.
#[test]
fn lines_that_are_not_aligned_go_by_elements() -> Result<(), Refusal> {
    let by_elements = |p: &Problem| choose(p, &Machine::H200, None).map(|choice| choice.variant.copies_elements());
    let (even, odd) = (1000, 1001);
    // Rows and columns of op(A), or of op(B), and how it lies.
    let lying = |by_rows: bool, rows: u64, cols: u64, gap: u64| match by_rows {
        true => Strides { row: cols + gap, col: 1 },
        false => Strides { row: 1, col: rows + gap },
    };
    for order in 0..4 {
        let [a_by_rows, b_by_rows] = [order & 1 > 0, order & 2 > 0];
        let of = |[m, n, k]: [u64; 3], [a_gap, b_gap]: [u64; 2]| Problem {
            a: lying(a_by_rows, m, k, a_gap),
            b: lying(b_by_rows, k, n, b_gap),
            ..Problem::column_major(Dtype::F64, m, n, k)
        };
        assert!(!by_elements(&of([even; 3], [0, 2]))?, "{order}");
        assert!(by_elements(&of([even; 3], [1, 0]))? && by_elements(&of([even; 3], [0, 1]))?, "{order}");
        // Along A's line lies m or k, along B's k or n.
        for (at, lies_along) in [!a_by_rows, b_by_rows, a_by_rows || !b_by_rows].into_iter().enumerate() {
            let mut sizes = [even; 3];
            sizes[at] = odd;
            // What is even in memory all the same.
            let gap = |by_rows: bool, rows: u64, cols: u64| if by_rows { cols % 2 } else { rows % 2 };
            let [m, n, k] = sizes;
            let found = by_elements(&of(sizes, [gap(a_by_rows, m, k), gap(b_by_rows, k, n)]))?;
            assert_eq!(found, lies_along, "{order} {sizes:?}");
        }
    }
    Ok(())
}

/// Of every entry whose tiles of C all lie along x: 2^31 of them are refused, and two less taken. One less is a prime, and so of no C
/// that has so few rows and columns; of that number, which a grid has, no entry is refused either.
#[test]
fn as_many_blocks_along_x_as_there_are_and_no_more() -> Result<(), Refusal> {
    let mut tried = 0;
    for v in VARIANTS.iter().filter(|v| matches!(v.kernel, Kernel::Gemm | Kernel::Ladder | Kernel::GemmRing)) {
        let side = |of: &dyn Fn(u64) -> u64| (1..).find(|&len| of(len + 1) == 2).unwrap_or(0);
        let (bm, bn) = (side(&|m| tiling(v, m, 1).x), side(&|n| tiling(v, 1, n).x));
        let problem = |rows: u64, cols: u64| Problem::column_major(v.dtype, rows * bm, cols * bn, 64);
        let taken = choose(&problem(3_098_822, 693), &Machine::H200, Some(v.entry))?;
        assert_eq!(taken.grid[0], (1 << 31) - 2, "{}", v.entry);
        let too_many = choose(&problem(1 << 22, 1 << 9), &Machine::H200, Some(v.entry));
        assert_eq!(too_many.err(), Some(Refusal::TooManyTiles { tiles: 1 << 31 }), "{}", v.entry);
        let (few, laid) = (problem(1, 1), tiling(v, bm, bn));
        let held = residency(&Machine::H200, v.threads, 32, laid.shared_bytes);
        for (x, is_refused) in [((1 << 31) - 1, false), (1 << 31, true)] {
            let tiles = Tiling { x, ..laid };
            let found = refusals(v, (32, &held), &few, &tiles, &Machine::H200, |_| ControlFlow::Break(()));
            assert_eq!(found.is_break(), is_refused, "{} of {x} tiles", v.entry);
        }
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
    Ok(())
}

#[test]
fn grids_fit_at_every_edge() -> Result<(), Refusal> {
    for (m, n, k) in [(1, 1, 1), (LARGEST_DIMENSION, 1, 65), (65, 65, LARGEST_DIMENSION), (65, 1 << 30, 1)] {
        for dtype in [Dtype::F32, Dtype::F64] {
            let choice = choose(&Problem::column_major(dtype, m, n, k), &Machine::H200, None)?;
            assert!(choice.grid[1] <= GRID_YZ && choice.grid[2] <= GRID_YZ && u64::from(choice.grid[0]) <= GRID_X);
            assert!(choice.estimate.seconds >= choice.bound.seconds() * 0.99, "{choice}");
        }
    }
    Ok(())
}

/// The entries for an A and a B along k are considered there alone, and taken.
#[test]
fn what_lies_along_k_has_entries_of_its_own() -> Result<(), Refusal> {
    let considered = |dtype, a, b| -> Result<usize, Refusal> {
        let p = Problem { a, b, ..Problem::column_major(dtype, 1000, 900, 800) };
        Ok(candidates(&p, &Machine::H200, None)?.filter(|c| c.variant.is_along_k()).count())
    };
    let (a_along, a_across) = (Strides::row_major(800), Strides::column_major(1000));
    let (b_along, b_across) = (Strides::column_major(800), Strides::row_major(900));
    for (dtype, entries) in [(Dtype::F32, 2), (Dtype::C64, 1), (Dtype::F64, 0)] {
        assert_eq!(considered(dtype, a_along, b_along)?, entries, "{dtype}");
        for (a, b) in [(a_along, b_across), (a_across, b_along), (a_across, b_across)] {
            assert_eq!(considered(dtype, a, b)?, 0, "{dtype}");
        }
        if entries > 0 {
            let p = Problem { a: Strides::row_major(10_000), ..Problem::column_major(dtype, 10_000, 64, 10_000) };
            assert_eq!(choose(&p, &Machine::H200, None)?.variant.name, "gemm_along", "{dtype}");
        }
    }
    Ok(())
}

/// Of 49 columns on, where k is large and not both are tall, entries of squares are considered.
#[test]
fn squares_entries_serve_what_is_nearly_as_wide_as_their_tiles() -> Result<(), Refusal> {
    let rings = |m, n, k, dtype| -> Result<usize, Refusal> {
        let p = Problem::column_major(dtype, m, n, k);
        Ok(candidates(&p, &Machine::H200, None)?.filter(|c| c.variant.kernel == Kernel::GemmRing).count())
    };
    for dtype in [Dtype::F32, Dtype::F64] {
        for (m, n) in [(40_960, 48), (48, 40_960)] {
            assert_eq!((rings(m, n, 40_960, dtype)?, rings(m, n, 64, dtype)?), (0, 0), "{m} {n}");
        }
        for (m, n) in [(40_960, 49), (49, 40_960), (64, 40_960)] {
            assert!(rings(m, n, 65, dtype)? > 0 && rings(m, n, 64, dtype)? == 0, "{dtype} {m} {n}");
        }
    }
    for (m, name) in [(20_480, "gemm_mma"), (20_481, "gemm_mma_elements")] {
        let chosen = choose(&Problem::column_major(Dtype::F64, m, 64, 20_480), &Machine::H200, None)?;
        assert_eq!(chosen.variant.name, name);
    }
    Ok(())
}

/// An element of c128 is 16 bytes: however A and B lie, with gaps or with no two elements side by side.
#[test]
fn complex_squares_go_to_the_matrix_units_however_they_lie() -> Result<(), Refusal> {
    let p = Problem::column_major(Dtype::C128, 1001, 1003, 1005);
    for a in [Strides::column_major(1001), Strides::row_major(1007), Strides { row: 2, col: 2003 }] {
        let choice = choose(&Problem { a, ..p }, &Machine::H200, None)?;
        assert!(choice.variant.name == "gemm_mma", "{choice}");
        assert!(choose(&Problem { a, ..p }, &Machine::A100, None).is_ok_and(|choice| !choice.variant.mma));
    }
    Ok(())
}

/// A GPU later than an H200 without matrix units for f64: their entries take as long as others' arithmetic does there.
#[test]
fn units_that_are_not_there_take_no_less() -> Result<(), Refusal> {
    let machine = Machine { compute_capability: (12, 0), ..Machine::RTX4090 };
    for (m, n, k) in [(20_000, 16, 3000), (16, 16, 10_000_000), (1001, 1001, 1001), (10_000_000, 16, 16)] {
        let p = Problem::column_major(Dtype::F64, m, n, k);
        let least_s = bound(&p, &machine).seconds();
        let mut seen = 0;
        for choice in candidates(&p, &machine, None)?.filter(|choice| choice.variant.mma) {
            let seconds = choice.estimate.seconds;
            assert!(seconds >= 0.99 * least_s && seconds < 1.0, "{choice}");
            seen += 1;
        }
        assert!(seen > 0, "{p:?}");
    }
    Ok(())
}

/// 48 columns of f64, A by rows: TSM2R's entry, but where A's lines are no whole 16 bytes.
#[test]
fn lines_of_elements_go_to_the_ring_of_any_shape_from_33_columns_on() {
    let chosen = |n, k| {
        let problem = Problem { a: Strides::row_major(k), ..Problem::column_major(Dtype::F64, 10_000, n, k) };
        choose(&problem, &Machine::H200, None).expect("a choice").variant.entry
    };
    assert_eq!(chosen(48, 10_000), "dtsm2r_mma_16x48_n48_k16_s3_t256_rows");
    for n in [33, 48] {
        assert_eq!(chosen(n, 10_001), "dgemm_mma_elements_32x32_m64_n64_k16_s3_t128");
    }
    assert!(chosen(32, 10_001).starts_with("dtsm2r"), "{}", chosen(32, 10_001));
    // What lies behind the lines does not matter.
    let apart = Problem { a: Strides::row_major(10_001), ..Problem::column_major(Dtype::F64, 10_000, 48, 10_000) };
    assert_eq!(choose(&apart, &Machine::H200, None).expect("a choice").variant.entry, chosen(48, 10_000));
}

/// 32 x 32 tiles have a ticket each, 33 x 33 have not, nor 513 x 2 of TSM2R's, whose slots another launch adds then, or where parts are many, as those of what
/// has no ring.
#[test]
fn parts_of_a_tile_are_joined_where_each_tile_has_a_ticket() -> Result<(), Refusal> {
    let square = |side| Problem::column_major(Dtype::F64, side, side, side);
    let skinny = |m| Problem::column_major(Dtype::F64, m, 64, 100_000);
    let (of_squares, of_rows) = ("dgemm_mma_32x32_m64_n64_k32_s3_t128", "dtsm2r_mma_16x32_n32_k16_s3_t256");
    let variant = VARIANTS.iter().find(|v| v.entry == of_squares).expect("an entry");
    let most = [2048, 2049].map(|side| {
        let tiles = tiling(variant, side, side);
        Estimator::new(variant, &tiles, &square(side), &Machine::H200).most_splits()
    });
    assert!(most[0] > 1 && most[1] == 1, "{most:?}");
    // Who asks for parts is given one.
    let asked = |p: Problem, entry, parts| choose_given(&p, &Machine::H200, entry, Parts::Exactly(parts));
    assert!(asked(square(2048), of_squares, 8)?.splits > 1 && asked(square(2049), of_squares, 8)?.splits == 1);
    let of_ring =
        |m, n, parts| asked(Problem { n, ..skinny(m) }, of_rows, parts).map(|c| (c.splits, c.finish, c.slots_len));
    assert_eq!(of_ring(65_536, 64, 2)?, (2, Finish::LastBlock, 2 * 65_536 * 64));
    assert_eq!(of_ring(65_537, 64, 2)?, (2, Finish::SecondLaunch, 2 * 65_537 * 64));
    assert_eq!(of_ring(1000, 40, 12)?, (12, Finish::LastBlock, 12 * 1024 * 64));
    assert_eq!(of_ring(1000, 40, 13)?, (13, Finish::SecondLaunch, 13 * 1000 * 40));
    for (entry, p, slot_len) in
        [(of_squares, square(768), 768 * 768), (of_rows, Problem { n: 40, k: 1000, ..skinny(1000) }, 1024 * 64)]
    {
        let joined = choose(&p, &Machine::H200, Some(entry))?;
        assert!(joined.splits > 1 && joined.finish == Finish::LastBlock, "{joined}");
        assert_eq!(joined.slots_len, slot_len * u64::from(joined.splits));
        assert!(std::format!("{joined}").contains("added by the last block of each tile"), "{joined}");
    }
    let p = Problem::column_major(Dtype::F64, 2154, 8, 100_000);
    for name in ["tsm2r_prefetch", "gemm_tiled"] {
        let added = choose(&p, &Machine::H200, Some(name))?;
        assert!(added.splits > 1 && added.finish == Finish::SecondLaunch, "{added}");
        assert_eq!(added.slots_len, 2154 * 8 * u64::from(added.splits));
        assert!(std::format!("{added}").contains("added by a second launch"), "{added}");
    }
    Ok(())
}
