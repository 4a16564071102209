//! Wherever operands lie, at multiples of 16 bytes or between them, with or without gaps: the same bits, by every entry. Those of products
//! are checked beside their cases.

use crate::batched;
use crate::harness::{Case, Element, Layout, run_product};
use crate::tsmttsm;
use crate::turns::rounding;
use bytemuck::{bytes_of, cast_slice};
use lanky_kernels::table::{self, BatchedFn, Product, ProductFn, Reduced, ReducedFn};
use model::launch::reduced::{Finish, Triangle};
use model::launch::tiling;
use model::variants::batched::{BATCHED, Batched};
use model::variants::tsmm::widest;
use model::{Kernel, Variant};

/// Elements past 256 bytes, and between lines: lines of 20 begin at multiples of 16 bytes without a gap, those of k with one of 3.
const PLACES: [(usize, u64); 3] = [(1, 0), (3, 5), (0, 3)];

/// Sizes with more than one round of k and a step that 16 bytes leave, in one part and in two.
pub fn cases(variant: &Variant) -> Vec<Case> {
    let (columns, steps) = widest(variant).unwrap_or((12, 1 << 20));
    let m = if variant.is_reduced() { variant.most_columns().unwrap_or(8).min(12) } else { 20 };
    let n = match variant.kernel {
        Kernel::Gemv => variant.t2,
        Kernel::Gram => m,
        _ => columns.min(12).min(variant.most_across().unwrap_or(12)),
    };
    let k = (2 * tiling(variant, m.into(), n.into()).k_step + 20).next_multiple_of(4).min(steps - 1) + 1;
    let is_whole = variant.has_all_of_k() || widest(variant).is_some();
    let orders = (0..4).map(|order| [order & 1 > 0, order & 2 > 0, false]);
    let suits = |by_rows: &[bool; 3]| match variant.layout {
        model::Layout::Any => variant.kernel != Kernel::Gram || by_rows[0] != by_rows[1],
        model::Layout::Columns => !by_rows[0],
        model::Layout::Rows => by_rows[0],
    };
    let splits = |at: usize| if is_whole { 1 } else { 1 + at as u32 % 2 };
    let of = |(at, by_rows)| Case { by_rows, splits: splits(at), ..Case::plain(m, n, k) };
    orders.filter(suits).enumerate().map(of).collect()
}

/// C's elements down its columns.
fn elements<T: Element>(c: &[T], layout: Layout) -> Vec<u8> {
    layout.places().flat_map(|(i, j)| bytes_of(&c[layout.at(i, j)]).to_vec()).collect()
}

/// Numbers in place of those of a packed matrix, the same wherever they lie.
fn laid<T: Element>(layout: Layout, by_rows: bool, seed: u64) -> Vec<T> {
    let packed = Layout::new(layout.rows, layout.cols, by_rows, 0);
    let numbers = rounding::<T>(&packed, seed);
    layout.laid(|i, j| numbers[packed.at(i, j)])
}

fn of_product<T: Element>(variant: &Variant, entry: ProductFn<T>, case: Case) -> Vec<u8> {
    let layouts = case.layouts();
    let [a, b, c] = [0, 1, 2].map(|i| laid::<T>(layouts[i], case.by_rows[i], 3 + i as u64));
    let (_, memory, buffer) = run_product(variant, entry, case, u32::MAX, [&a, &b, &c]);
    elements(&memory.read(buffer), layouts[2])
}

fn of_reduced<T: Element>(variant: &Variant, entry: ReducedFn<T>, case: Case) -> Vec<u8> {
    let layouts = tsmttsm::layouts(variant, case);
    let [a, b, c] = [0, 1, 2].map(|i| laid::<T>(layouts[i], case.by_rows[i], 3 + i as u64));
    let finish = if case.splits > 1 && !variant.adds_atomically() { Finish::LastBlock } else { Finish::Direct };
    let b = if variant.kernel == Kernel::Gram { a.clone() } else { b };
    let (_, c, _) = tsmttsm::run(variant, entry, case, (finish, Triangle::Full), [&a, &b, &c]);
    elements(&c, layouts[2])
}

fn bits(variant: &Variant, case: Case) -> Vec<u8> {
    match (table::product(variant.entry), table::reduced(variant.entry)) {
        (Some(Product::F32(entry)), _) => of_product(variant, entry, case),
        (Some(Product::F64(entry)), _) => of_product(variant, entry, case),
        (Some(Product::C64(entry)), _) => of_product(variant, entry, case),
        (Some(Product::C128(entry)), _) => of_product(variant, entry, case),
        (_, Some(Reduced::F32(entry))) => of_reduced(variant, entry, case),
        (_, Some(Reduced::F64(entry))) => of_reduced(variant, entry, case),
        (_, Some(Reduced::C64(entry))) => of_reduced(variant, entry, case),
        (_, Some(Reduced::C128(entry))) => of_reduced(variant, entry, case),
        _ => panic!("{} is in the model's table only", variant.entry),
    }
}

/// A product's entry; sums of atomics are in any order.
pub fn check(variant: &Variant) {
    if variant.adds_atomically() {
        return;
    }
    let cases: Vec<Case> = cases(variant).into_iter().filter(|case| takes(variant, *case)).collect();
    // Those of whole tiles alone, which teach, load by elements however they lie.
    assert!(!cases.is_empty() || variant.multiples().is_some(), "{}", variant.entry);
    for case in cases {
        let whole = bits(variant, case);
        for (offset, gap) in PLACES {
            let moved = Case { offset, gap, ..case };
            assert!(bits(variant, moved) == whole, "{} {moved:?}", variant.entry);
        }
    }
}

/// Whether sizes are the multiples that an entry wants, if it wants any.
pub fn takes(variant: &Variant, Case { m, n, k, .. }: Case) -> bool {
    variant.multiples().is_none_or(|of| [m, n, k].iter().zip(of).all(|(size, of)| size % of == 0))
}

fn of_batch<T: Element>(variant: &Batched, entry: BatchedFn<T>, sizes: [u32; 3]) {
    let of = |offset| {
        let case = batched::Case { offset, is_rounded: true, ..batched::plain(sizes) };
        cast_slice::<T, u8>(&batched::run(variant, entry, case).1).to_vec()
    };
    assert!(of(0) == of(1), "{} {sizes:?}", variant.entry);
}

#[test]
fn batches_have_the_same_bits_anywhere() {
    // Those that are packed are at multiples of 16 bytes, or are refused.
    for variant in BATCHED.iter().filter(|variant| !variant.is_packed()) {
        let sizes = [4, 4, 4];
        match table::batched(variant.entry) {
            Some(table::Batched::F32(entry)) => of_batch(variant, entry, sizes),
            Some(table::Batched::F64(entry)) => of_batch(variant, entry, sizes),
            Some(table::Batched::C64(entry)) => of_batch(variant, entry, sizes),
            Some(table::Batched::C128(entry)) => of_batch(variant, entry, sizes),
            None => panic!("{} is in the model's table only", variant.entry),
        }
    }
}
