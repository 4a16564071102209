//! `batched_bulk` and `batched_over`: every size, by columns and by rows, with the bits of the other entries.

use crate::batched::{Case, LARGE, bits, plain};
use crate::flat::moves_each_once;
use model::launch::batched::BulkTile;
use model::variants::batched::{BATCHED, Batched, Design};
use model::{BatchedChoice, BatchedProblem, Machine, choose_batched};
use std::collections::BTreeSet;
use watched::Share;

fn entries() -> impl Iterator<Item = &'static Batched> {
    BATCHED.iter().filter(|variant| variant.design().is_by_runs())
}

/// The fewest problems whose matrices are all whole pieces of 16 bytes.
fn least_of_runs([m, n, k]: [u32; 3], bytes: u32) -> u32 {
    let is_whole = |problems: &u32| [m * k, k * n, m * n].iter().all(|len| len * bytes * problems % 16 == 0);
    [1, 2, 4].into_iter().find(is_whole).expect("four elements are 16 bytes or more")
}

/// Whether an entry that takes problems by runs takes these sizes, by columns or by rows.
pub fn takes_runs(variant: &Batched, [m, n, k]: [u32; 3], by_rows: bool) -> bool {
    let (m, n) = if by_rows { (n, m) } else { (m, n) };
    let bytes = variant.dtype.bytes() as u32;
    let width = 16 / bytes;
    let is_whole = variant.tm % width != 0 || m % width == 0 && k % width == 0;
    let fits = least_of_runs([m, n, k], bytes) * variant.owners(m, n, k) <= variant.threads;
    // One row, or one column, lies by rows as well as by columns, and is taken for the transposed product's.
    m.min(n) > 1 && m >= variant.tm && n >= variant.tn && is_whole && fits
}

/// Problems a stage, threads and bytes of shared memory of a block: a case's stages, and about as many problems, if they fit; a thread for each of
/// their units. What the model launches so, for this batch or a large one, is the same.
pub fn block_of_runs(
    variant: &Batched,
    case: &Case,
    choice: &BatchedChoice,
    problem: &BatchedProblem,
) -> (u32, u32, u32) {
    let ([m, n, k], bytes) = (case.sizes, variant.dtype.bytes() as u32);
    let sizes = if choice.swapped { [n, m, k] } else { case.sizes };
    let (units, least) = (variant.owners(sizes[0], sizes[1], k), least_of_runs(sizes, bytes));
    let block = |problems: u32| {
        let shared_bytes = match variant.design() {
            Design::Over => BulkTile::over(sizes, problems, 16 / bytes).shared_bytes(1, bytes),
            _ => BulkTile::new(sizes, problems, 16 / bytes).shared_bytes(case.stages, bytes),
        };
        (problems, (problems * units).next_multiple_of(32), shared_bytes)
    };
    let fits = |(_, threads, shared): &(u32, u32, u32)| {
        *threads <= variant.threads && *shared <= Machine::H200.shared_per_block
    };
    let found = (1..=case.problems.div_ceil(least)).rev().map(|each| block(each * least)).find(fits);
    let large = choose_batched(&BatchedProblem { count: LARGE, ..*problem }, &Machine::H200, Some(variant.entry));
    for choice in [choice, &large.expect("it takes this batch")] {
        let (_, threads, shared_bytes) = block(choice.problems);
        assert!(choice.problems % least == 0 && choice.threads == threads, "{}", variant.entry);
        let is_over = variant.design() == Design::Over;
        assert!(!is_over && choice.stages != case.stages || choice.shared_bytes == shared_bytes, "{}", variant.entry);
    }
    found.expect("the fewest problems fit")
}

/// Sizes and orders that an entry takes, of each number of rows up to 32: a square, and ones whose columns and steps are others; and as few rows and
/// columns as a unit has.
fn sizes(variant: &Batched) -> impl Iterator<Item = ([u32; 3], bool)> {
    let (tm, tn) = (variant.tm, variant.tn);
    let all = (1..=32).flat_map(|m| [[m, m, m], [m, (5 * m + 3) % 32 + 1, (11 * m + 7) % 32 + 1]]);
    let even = (2..=32).step_by(2).flat_map(|m| [[m, (m + 6) % 32 + 2, (3 * m + 4) % 32], [m, 4 + m / 4 * 2, 8]]);
    let few = [[tm, tn, 8], [tm, tn + 1, 4], [2 * tm, tn, 12], [tn, tm, 8], [tn + 3, tm, 4], [tn, 2 * tm, 16]];
    let sizes = all.chain(even).chain(few);
    sizes
        .flat_map(|sizes| [(sizes, false), (sizes, true)])
        .filter(|(sizes, by_rows)| takes_runs(variant, *sizes, *by_rows))
}

/// In one block or three, and all else by other digits of a number.
fn case((sizes, by_rows): ([u32; 3], bool), turn: usize) -> Case {
    Case {
        by_rows: [by_rows; 3],
        count: [9, 16, 1, 23][turn % 4],
        problems: 1 + turn as u32 % 5,
        stages: 2 + turn as u32 / 3 % 2,
        blocks: [1, 3][turn / 5 % 2],
        alpha: [1.0, -1.0, 0.5][turn % 3],
        beta: [0.0, 1.0, 0.5, -1.0][turn / 7 % 4],
        conj: turn as u32 / 2 % 4,
        ..plain(sizes)
    }
}

/// Whatever units have too.
#[test]
fn every_size_is_taken_in_both_orders() {
    let (share, mut checked) = (Share::whose_turn_it_is(), BTreeSet::new());
    for variant in entries() {
        for (at, sizes) in sizes(variant).enumerate().filter(|(at, _)| share.has(*at)) {
            for turn in [3 * at, 3 * at + 17] {
                moves_each_once(variant, case(sizes, turn));
                checked.insert(variant.entry);
            }
        }
    }
    assert_eq!(checked.len(), entries().count());
}

/// Of real elements in both orders; of complex ones by rows another product is rounded first.
#[test]
fn bits_are_those_of_the_entries_that_take_everything() {
    for variant in entries() {
        let others: Vec<&Batched> =
            BATCHED.iter().filter(|v| v.name == "batched_any" && v.dtype == variant.dtype).collect();
        let mut compared = 0;
        for (at, (sizes, by_rows)) in sizes(variant).step_by(7).enumerate() {
            let has_room = |v: &&&Batched| v.owners(sizes[0], sizes[1], sizes[2]) <= v.threads;
            let Some(other) = others.iter().find(has_room) else { continue };
            if by_rows && variant.dtype.is_complex() {
                continue;
            }
            let rounded = Case { is_rounded: true, problems: 1, stages: 2, ..case((sizes, by_rows), at) };
            assert!(bits(variant, rounded) == bits(other, rounded), "{} {rounded:?}", variant.entry);
            compared += 1;
        }
        assert!(compared >= 3, "{}: {compared}", variant.entry);
    }
}
