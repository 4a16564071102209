//! Every entry for a tall A: round the edges of its tile and of the widths that it serves, in every layout, in one turn and
//! in several.

use crate::harness::{Case, Element, Layout, check_in_turn, order};
use crate::numbers::tried;
use cuda_std::Complex;
use lanky_kernels::table::{self, Product, ProductFn};
use model::launch::tiling;
use model::variants::tsmm::widest;
use model::{Kernel, VARIANTS, Variant};
use simt::{Launch, Memory};

/// What α and β are.
const FACTORS: [f64; 4] = [1.0, 0.0, -1.0, 0.5];

/// Rows of a whole tile of this many columns.
fn rows(variant: &Variant, n: u32) -> u32 {
    let one = |m: &u32| tiling(variant, u64::from(*m), u64::from(n)).x == 1;
    (1..=4096).take_while(one).count() as u32
}

/// A, B and C by rows or by columns, A as the entry takes it; what takes A by columns alone has C so too where all three would be by rows.
fn laid(variant: &Variant, by_rows: [bool; 3]) -> [bool; 3] {
    match (variant.layout, by_rows) {
        (model::Layout::Columns, [true, true, true]) => [false; 3],
        (model::Layout::Columns, [_, b, c]) => [false, b, c],
        _ => by_rows,
    }
}

/// Widths at the edges of what an entry serves, each with one of k, rows around those of its tiles, layouts in all eight
/// combinations, with gaps and offsets and without, all pairs of α and β, and a grid of one block, of two and of all. Two at the end
/// have rings of stages go round twice and more.
fn cases(variant: &Variant) -> Vec<(Case, u32)> {
    let Some((columns, steps)) = widest(variant) else { panic!("{} serves any width", variant.entry) };
    let near = |most: u32| {
        let mut widths =
            vec![most, most - 1, most.div_ceil(2), most / 2 + 1, most.saturating_sub(2), most.div_ceil(4), 3, 1];
        widths.retain(|width| (1..=most).contains(width));
        widths
    };
    let (ns, ks) = (near(columns), near(steps));
    (0..28_usize)
        .map(|run| {
            let (n, k) = (ns[run % ns.len()], ks[(run + run / 7) % ks.len()]);
            let tile = rows(variant, n);
            // The last group of four: packed and aligned, by rows and by columns, over several whole tiles.
            let plain = run >= 24;
            let m = if plain {
                2 * tile + 32
            } else {
                [tile - 1, tile, tile + 1, 2 * tile + 7, 5, 3 * tile, tile / 2 + 3][(run / 4) % 7]
            };
            let bits = run * 5 / 2;
            let case = Case {
                m: m.max(1),
                n,
                k,
                by_rows: laid(
                    variant,
                    if plain { [run % 2 == 0; 3] } else { [bits & 1 == 1, bits & 2 == 2, bits & 4 == 4] },
                ),
                gap: if plain { 0 } else { [0, 1, 4][run % 3] },
                c_gap: 0,
                offset: if plain { 0 } else { run / 2 % 2 },
                alpha: FACTORS[run % 4],
                beta: FACTORS[(run / 4 + 1) % 4],
                splits: 1,
                conj: run as u32 % 4,
            };
            (case, [u32::MAX, 1, 2][run % 3])
        })
        .chain([(Case { beta: 0.5, ..Case::plain(37, 1, 0) }, 1), (Case::plain(1, 1, 1), 1)])
        .chain([0.0, 0.5].map(|beta| {
            let m = (2 * variant.stages + 1) * rows(variant, columns) + 5;
            (Case { by_rows: laid(variant, [true; 3]), beta, ..Case::plain(m, columns, steps) }, 1)
        }))
        .chain([(0, 0), (0, 1), (1, 3), (1, 0)].map(|(gap, c_gap)| {
            // By columns, of which A's, C's, both or none are whole pieces of 16 bytes, whatever the type.
            let m = rows(variant, columns) + 5;
            let gap = u64::from(m.next_multiple_of(4) - m) + gap;
            (Case { gap, c_gap, beta: 0.5, ..Case::plain(m, columns, steps) }, 1)
        }))
        .collect()
}

fn check_variant(name: &str) {
    assert!(VARIANTS.iter().any(|variant| variant.name == name), "there is no variant {name}");
    // Of one or two entries a turn may have none; the next one has them.
    for variant in tried().filter(|variant| variant.name == name) {
        for (case, blocks) in cases(variant) {
            check_in_turn(variant, case, blocks);
        }
    }
}

macro_rules! tests {
    ($($variant:ident),*) => {
        $(#[test] fn $variant() { check_variant(stringify!($variant)) })*
        const NAMED: [&str; [$(stringify!($variant)),*].len()] = [$(stringify!($variant)),*];
    };
}
tests!(
    tsm2l_tiled,
    tsm2l_interleaved,
    tsm2l_columns,
    tsmm_row,
    tsmm_group,
    tsmm_element,
    tsmm_registers,
    tsmm_packed,
    tsmm_outer,
    tsmm_staged,
    tsmm_mma,
    tsmm_fragments,
    tsmm_bulk,
    tsmm_bulk_registers,
    tsmm_bulk_shared,
    tsmm_bulk_rows,
    tsmm_lines,
    tsmm_lines_mma
);

fn is_tall(variant: &&Variant) -> bool {
    matches!(variant.kernel, Kernel::Tsmm | Kernel::Tall)
}

#[test]
fn every_variant_has_its_test() {
    for variant in VARIANTS.iter().filter(is_tall) {
        assert!(NAMED.contains(&variant.name), "{}", variant.name);
    }
}

/// The cases are what they claim to be.
#[test]
fn cases_cover_widths_layouts_factors_and_turns() {
    for variant in VARIANTS.iter().filter(is_tall) {
        let cases = cases(variant);
        let Some((columns, steps)) = widest(variant) else { continue };
        let has = |what: &dyn Fn(&Case, u32) -> bool| cases.iter().any(|(case, blocks)| what(case, *blocks));
        for most in [columns, columns.saturating_sub(1).max(1)] {
            assert!(has(&|case, _| case.n == most), "{} n = {most}", variant.entry);
        }
        assert!(has(&|case, _| case.k == steps) && has(&|case, _| case.k == 1), "{}", variant.entry);
        for layout in 0..8 {
            let by_rows = [layout & 1 == 1, layout & 2 == 2, layout & 4 == 4];
            if by_rows[0] && variant.layout == model::Layout::Columns {
                continue;
            }
            assert!(has(&|case, _| case.by_rows == by_rows), "{} {by_rows:?}", variant.entry);
        }
        for beta in FACTORS {
            assert!(has(&|case, _| case.beta == beta), "{} β = {beta}", variant.entry);
        }
        // Turns: a block that takes three tiles, and one whose ring goes round more than twice.
        assert!(has(&|case, blocks| blocks == 1 && case.m > 2 * rows(variant, case.n)), "{}", variant.entry);
        let round = 2 * variant.stages * rows(variant, columns);
        assert!(has(&|case, blocks| blocks == 1 && case.n == columns && case.m > round), "{}", variant.entry);
        assert!(has(&|case, _| case.m % 16 != 0) && has(&|case, _| case.gap == 4 && case.offset == 0));
    }
}

/// Not a number in a row of A, and infinities in the next: no other row of C has any, whatever a row's elements are loaded with.
#[test]
fn nan_and_infinity_stay_in_their_rows() {
    for variant in tried().filter(is_tall) {
        let Some((n, steps)) = widest(variant) else { continue };
        for k in (steps.saturating_sub(3)..=steps).filter(|k| *k > 0) {
            match table::product(variant.entry) {
                Some(Product::F32(entry)) => run_with_nan(variant, entry, [n, k], f32::INFINITY),
                Some(Product::F64(entry)) => run_with_nan(variant, entry, [n, k], f64::INFINITY),
                Some(Product::C64(entry)) => run_with_nan(variant, entry, [n, k], Complex::new(f32::INFINITY, 0.0)),
                Some(Product::C128(entry)) => run_with_nan(variant, entry, [n, k], Complex::new(f64::INFINITY, 0.0)),
                None => panic!("{}", variant.entry),
            }
        }
    }
}

fn run_with_nan<T: Element>(variant: &Variant, entry: ProductFn<T>, [n, k]: [u32; 2], infinity: T) {
    let m = 2 * rows(variant, n) + 3;
    let by_rows = variant.layout != model::Layout::Columns;
    let layouts @ [at, at_b, at_c] = [(m, k), (k, n), (m, n)].map(|(rows, cols)| Layout::new(rows, cols, by_rows, 0));
    let (mut a, b) = (at.filled::<T>(1), at_b.filled::<T>(2));
    let wild = m / 2;
    for l in 0..k {
        (a[at.at(wild, l)], a[at.at(wild + 1, l)]) = (T::canary(), infinity);
    }
    let mut memory = Memory::new();
    let buffers = [memory.input("A", &a), memory.input("B", &b), memory.inout("C", &vec![T::canary(); at_c.len])];
    let launch = Launch {
        kernel: variant.entry,
        grid: [2, 1, 1],
        block: [variant.threads, 1, 1],
        shared_bytes: tiling(variant, m.into(), n.into()).shared_bytes,
        ..Launch::default()
    };
    let outcome = launch.run(&mut memory, |operands| {
        let [a, b, c] = buffers.map(|buffer| operands.global(buffer));
        let [s, sb, sc] = layouts.map(|layout| layout.strides);
        // SAFETY: the operands span their elements, and C is not A or B. The emulator checks.
        unsafe { entry(m, n, k, a, s.row, s.col, b, sb.row, sb.col, T::ONE, T::ZERO, c, sc.row, sc.col, 0, 0, c) };
    });
    if let Err(fault) = outcome {
        panic!("{} n = {n}, k = {k}: {fault}", variant.entry);
    }
    let got = memory.read(buffers[2]);
    for i in (0..m).filter(|i| *i != wild && *i != wild + 1) {
        for j in 0..n {
            let sum = (0..k).fold(T::ZERO, |sum, l| sum.add(a[at.at(i, l)].mul(b[at_b.at(l, j)])));
            assert!(got[at_c.at(i, j)] == sum, "{} n = {n}, k = {k}: ({i}, {j})", variant.entry);
        }
    }
}

/// C as the first n columns of A's memory: every row is read whole before any of it is written, by whichever entry claims it.
#[test]
fn in_place() {
    for variant in VARIANTS.iter().filter(|variant| variant.may_be_in_place()) {
        for (run, by_rows) in [true, false].into_iter().enumerate() {
            for (n, k, gap) in [(variant.t2.min(variant.t3), variant.t3, 0), (1, variant.t3, 0), (1, 1, 3)] {
                match table::product(variant.entry) {
                    Some(Product::F32(entry)) => run_in_place(variant, entry, [n, k], by_rows, gap, run),
                    Some(Product::F64(entry)) => run_in_place(variant, entry, [n, k], by_rows, gap, run),
                    Some(Product::C64(entry)) => run_in_place(variant, entry, [n, k], by_rows, gap, run),
                    Some(Product::C128(entry)) => run_in_place(variant, entry, [n, k], by_rows, gap, run),
                    None => panic!("{}", variant.entry),
                }
            }
        }
    }
}

fn run_in_place<T: Element>(
    variant: &Variant,
    entry: ProductFn<T>,
    [n, k]: [u32; 2],
    by_rows: bool,
    gap: u64,
    offset: usize,
) {
    let m = 2 * variant.rows + 5;
    let (at, at_b) = (Layout::new(m, k, by_rows, gap), Layout::new(k, n, !by_rows, 1));
    let (a, b) = (at.filled::<T>(1), at_b.filled::<T>(2));
    let mut memory = Memory::new();
    memory.offset(offset);
    let (buffer, buffer_b) = (memory.inout("A and C", &a), memory.input("B", &b));
    let tiling = tiling(variant, m.into(), n.into());
    let launch = Launch {
        kernel: variant.entry,
        grid: [2, 1, 1],
        block: [variant.threads, 1, 1],
        shared_bytes: tiling.shared_bytes,
        seed: order(format_args!("{} {n} {k} {at:?}", variant.entry)),
        ..Launch::default()
    };
    let outcome = launch.run(&mut memory, |operands| {
        let (a, b) = (operands.global(buffer), operands.global(buffer_b));
        let (s, sb) = (at.strides, at_b.strides);
        // SAFETY: the operands span their elements; the kernel reads a tile before it writes it. The emulator checks.
        unsafe { entry(m, n, k, a, s.row, s.col, b, sb.row, sb.col, T::ONE, T::ZERO, a, s.row, s.col, 0, 0, a) };
    });
    if let Err(fault) = outcome {
        panic!("{} n = {n}, k = {k}, by rows {by_rows}: {fault}", variant.entry);
    }
    let got = memory.read(buffer);
    for i in 0..m {
        for j in 0..k {
            let sum = (0..k).fold(T::ZERO, |sum, l| sum.add(a[at.at(i, l)].mul(b[at_b.at(l, j % n)])));
            let expected = if j < n { sum } else { a[at.at(i, j)] };
            assert!(got[at.at(i, j)] == expected, "{} ({i}, {j})", variant.entry);
        }
    }
}
