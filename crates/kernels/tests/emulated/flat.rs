//! `batched_flat`: every size, in every order of A, B and C, with the bits of the other entries; of sizes that are multiples of 8 at most
//! half of what shared memory does are bank conflicts, of f64 at odd ones from 17 on three tenths of what is loaded there, at 15 six.

use crate::batched::{Case, Follow, LARGE, bits, check, plain};
use model::variants::batched::{BATCHED, Batched};
use model::{BatchedProblem, Dtype, Machine, choose_batched};
use std::collections::BTreeSet;
use watched::Share;

fn entries() -> impl Iterator<Item = &'static Batched> {
    BATCHED.iter().filter(|variant| variant.name == "batched_flat")
}

/// Sizes that an entry takes: m each up to its most, n and k spread over theirs, all three different.
fn sizes(variant: &Batched) -> impl Iterator<Item = [u32; 3]> {
    let (most, steps) = (variant.tm, variant.tn);
    let other = |first: u32, most: u32, taken: &[u32]| {
        let mut next = (0..most).map(|on| (first + on) % most + 1);
        next.find(|size| !taken.contains(size)).unwrap_or(first)
    };
    (1..=most).map(move |m| {
        let n = other(7 * m + 3, most, &[m]);
        [m, n, other(11 * m + 5, steps, &[m, n])]
    })
}

/// One of so many, by a number and by what it is of: as good as independent of what else is drawn.
fn drawn(turn: usize, of: u64, many: usize) -> usize {
    let mut random = (turn as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ of.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    random = (random ^ random >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
    (random >> 33) as usize % many
}

/// An order of A, B and C by a number's lowest bits, and all else as it is drawn: in half of the cases all matrices are one run.
fn case(sizes: [u32; 3], turn: usize) -> Case {
    let is_run = drawn(turn, 1, 2) == 0;
    let follow = |which: u64| match if is_run { 0 } else { drawn(turn, 2 + which, 4) } {
        0 => Follow::Gap(0),
        1 => Follow::Gap(3),
        2 => Follow::Listed(1),
        _ if which == 2 => Follow::Listed(2),
        _ => Follow::Shared,
    };
    Case {
        count: [5, 9, 1, 20][drawn(turn, 5, 4)],
        problems: 1 + drawn(turn, 6, 8) as u32,
        stages: 2 + drawn(turn, 7, 3) as u32,
        blocks: 1 + drawn(turn, 8, 2) as u32,
        by_rows: [turn & 1 == 1, turn & 2 == 2, turn & 4 == 4],
        follow: [follow(0), follow(1), follow(2)],
        offset: drawn(turn, 9, 4),
        alpha: [1.0, -1.0, 0.5][drawn(turn, 10, 3)],
        beta: [1.0, 0.0, 0.5, -1.0][drawn(turn, 11, 4)],
        // Every order meets all conjugates.
        conj: (turn / 8 + drawn(turn % 8, 12, 4)) as u32 % 4,
        ..plain(sizes)
    }
}

/// The cases are what they claim to be.
#[test]
fn cases_differ_in_all_that_they_have() {
    let mut without_room = false;
    for variant in entries() {
        assert!(sizes(variant).all(|[m, n, k]| m != n && m != k && n != k), "{}", variant.entry);
        for most in [|[_, n, _]: [u32; 3]| n, |[_, _, k]: [u32; 3]| k] {
            assert!(sizes(variant).map(most).max() >= Some(variant.tm - 1), "{}", variant.entry);
        }
        let cases: Vec<Case> = sizes(variant)
            .enumerate()
            .flat_map(|(at, sizes)| (0..8).map(move |order| case(sizes, 8 * at + order)))
            .collect();
        let has = |what: &dyn Fn(&Case) -> bool| assert!(cases.iter().any(what), "{}", variant.entry);
        for (conj, order) in (0..4).flat_map(|conj| (0..8).map(move |order| (conj, order))) {
            has(&|case| case.conj == conj && case.by_rows == [order & 1 == 1, order & 2 == 2, order & 4 == 4]);
        }
        for (count, by_rows) in [5, 9, 1, 20].into_iter().flat_map(|count| [(count, false), (count, true)]) {
            (0..3).for_each(|which| has(&|case| case.count == count && case.by_rows[which] == by_rows));
        }
        let is_run = |case: &Case| case.follow == [Follow::Gap(0); 3] && case.count > case.problems;
        for problems in 1..=8 {
            has(&|case| is_run(case) && case.problems == problems);
        }
        for reads_c in [false, true] {
            has(&|case| is_run(case) && case.problems > 4 && (case.beta != 0.0) == reads_c);
        }
        // C over A and B, with steps two by two or one left, and where these have no room for it.
        let is_alone = |case: &Case| (case.problems == 1 || !is_run(case)) && case.beta == 0.0;
        let has_room = |[m, n, k]: [u32; 3]| m * n <= (m + n) * k;
        for odd in [0, 1] {
            has(&|case| is_alone(case) && has_room(case.sizes) && case.sizes[2] % 2 == odd);
        }
        // A C that may come late, in rings of any length, strided and listed.
        for (stages, is_listed) in (2..=4).flat_map(|stages| [(stages, false), (stages, true)]) {
            has(&|case| {
                let alone = (case.problems == 1 || !is_run(case)) && case.beta != 0.0;
                alone && case.stages == stages && matches!(case.follow[2], Follow::Listed(_)) == is_listed
            });
        }
        without_room |= cases.iter().any(|case| is_alone(case) && !has_room(case.sizes));
        for alpha in [1.0, -1.0, 0.5] {
            for beta in [1.0, 0.0, 0.5, -1.0] {
                has(&|case| case.alpha == alpha && case.beta == beta);
            }
        }
    }
    assert!(without_room);
}

/// The result is right, each matrix is read once, one that problems share once for each, C only where β is not 0, and each C written once.
pub fn moves_each_once(variant: &Batched, case: Case) {
    let counters = check(variant, case);
    let [m, n, k] = case.sizes;
    let reads = [("A", m * k), ("B", k * n), ("C", if case.beta == 0.0 { 0 } else { m * n })];
    for (name, elements) in reads {
        let loads = counters.operand(name).loads.elements;
        assert_eq!(loads, u64::from(case.count * elements), "{} {name} {case:?}", variant.entry);
    }
    let stores = counters.operand("C").stores.elements;
    assert_eq!(stores, u64::from(case.count * m * n), "{} {case:?}", variant.entry);
}

/// Whatever lies before and behind a matrix is NaN or another's, and nothing of it is read or written.
#[test]
fn every_size_is_taken_in_every_order() {
    let (share, mut checked) = (Share::whose_turn_it_is(), 0);
    for variant in entries() {
        for (at, sizes) in sizes(variant).enumerate().filter(|(at, _)| share.has(*at)) {
            for order in 0..8 {
                let case = case(sizes, 8 * at + order);
                moves_each_once(variant, case);
                checked += 1;
            }
        }
    }
    assert!(checked >= 8 * entries().count(), "{checked} cases");
}

/// What the model launches for large batches of small matrices, several at a time.
#[test]
fn several_are_taken_together_as_the_model_says() {
    let mut taken = BTreeSet::new();
    for variant in entries() {
        for (n, reads_c) in (1..=12).flat_map(|n| [(n, false), (n, true)]) {
            let sizes = [n, n, n];
            let size = u64::from(n);
            let p = BatchedProblem::column_major(variant.dtype, (size, size, size), LARGE);
            let p = BatchedProblem { reads_c, ..p };
            let Ok(choice) = choose_batched(&p, &Machine::H200, Some(variant.entry)) else { panic!("{n}") };
            let (problems, stages) = (choice.problems, choice.stages);
            assert!(problems <= 8, "{choice:?}");
            let beta = if reads_c { 0.5 } else { 0.0 };
            // One block in turn, the last time with fewer problems.
            let case = Case { count: 3 * problems + 1, problems, stages, blocks: 1, beta, ..plain(sizes) };
            taken.insert(problems);
            check(variant, case);
        }
    }
    assert!((5..=8).all(|many| taken.contains(&many)), "{taken:?}");
}

/// The bits are those of the entries that take everything; of c128 those of `batched_fragments`.
fn same_bits(dtype: Dtype) {
    for variant in entries().filter(|variant| variant.dtype == dtype) {
        let (is_complex, most) = (dtype == Dtype::C128, variant.tm);
        let name = if is_complex { "batched_fragments" } else { "batched_any" };
        for (at, sizes) in sizes(variant).step_by(5).enumerate() {
            let [m, n, k] = sizes;
            let has_room = |v: &Batched| v.owners(m, n, k) <= v.threads && (!is_complex || v.tm >= most && v.tn >= k);
            let other = BATCHED.iter().find(|v| v.name == name && v.dtype == dtype && has_room(v));
            let Some(other) = other else { panic!("no {name} of {dtype}") };
            for turn in 4 * at..4 * at + 4 {
                let rounded = Case { is_rounded: true, stages: 2, problems: 1, ..case(sizes, turn) };
                assert!(bits(variant, rounded) == bits(other, rounded), "{} {rounded:?}", variant.entry);
            }
        }
    }
}

#[test]
fn f32_has_the_bits_of_the_others() {
    same_bits(Dtype::F32);
}

#[test]
fn c64_has_the_bits_of_the_others() {
    same_bits(Dtype::C64);
}

#[test]
fn f64_has_the_bits_of_the_others() {
    same_bits(Dtype::F64);
}

#[test]
fn c128_has_the_bits_of_the_others() {
    same_bits(Dtype::C128);
}

/// Of f64, columns of an odd number of elements lie as in device memory: lanes would load from the same banks, if rows were next to each other.
#[test]
fn odd_sizes_meet_in_few_banks() {
    let mut checked = 0;
    // By two octets of rows half of those of 15 meet less.
    let sizes = [(15, 6), (17, 3), (25, 3), (27, 3), (29, 3), (31, 3)];
    for (variant, (n, tenths)) in sizes.into_iter().flat_map(|size| entries().map(move |variant| (variant, size))) {
        if variant.dtype != Dtype::F64 || variant.tm != u32::next_multiple_of(n, 8) {
            continue;
        }
        for order in 0..4 {
            let by_rows = [order & 1 == 1, order & 2 == 2, false];
            let counters = check(variant, Case { count: 4, stages: 2, by_rows, ..plain([n, n, n]) });
            let (conflicts, all) = (counters.shared.loads.bank_conflicts, counters.shared.loads.wavefronts);
            assert!(10 * conflicts <= tenths * all, "{} {n} {by_rows:?}: {conflicts} of {all}", variant.entry);
            checked += 1;
        }
    }
    assert_eq!(checked, 4 * (2 + 5), "two entries for 15, and one for each other size");
}

/// Columns of 16 or 32 elements would begin in one bank each, if lines were not spaced.
#[test]
fn multiples_of_eight_meet_in_few_banks() {
    for variant in entries() {
        for (n, order) in
            [8, 16, 24, 32].into_iter().filter(|n| *n <= variant.tm).flat_map(|n| (0..8).map(move |o| (n, o)))
        {
            let by_rows = [order & 1 == 1, order & 2 == 2, order & 4 == 4];
            let counters = check(variant, Case { beta: 1.0, count: 4, stages: 2, by_rows, ..plain([n, n, n]) });
            let (conflicts, all) = (counters.shared.bank_conflicts(), counters.shared.wavefronts());
            println!("{} {n} {by_rows:?}: {conflicts} of {all}", variant.entry);
            assert!(2 * conflicts <= all, "{} {n} {by_rows:?}: {conflicts} of {all}", variant.entry);
        }
    }
}
