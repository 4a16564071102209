//! `batched_flat`: every size, in every order of A, B and C, with the bits of the other entries, without bank conflicts to speak of.

use crate::batched::{Case, Follow, check, plain, run};
use crate::harness::Element;
use cuda_std::Complex;
use lanky_kernels::table;
use model::variants::batched::{BATCHED, Batched};

fn entries() -> impl Iterator<Item = &'static Batched> {
    BATCHED.iter().filter(|variant| variant.name == "batched_flat")
}

/// Sizes of which an entry takes the first, and all others that it takes: each up to its most, odd and even, all three different.
fn sizes(variant: &Batched) -> impl Iterator<Item = [u32; 3]> {
    let (most, steps) = (variant.tm, variant.tn);
    (1..=most).map(move |m| [m, (7 * m + 3) % most + 1, (11 * m + 5) % steps + 1])
}

/// A way to follow one another of each operand, and α, β, conjugates and stages, by a number.
fn case(sizes: [u32; 3], turn: usize) -> Case {
    let follow = |which: usize| match if turn % 3 == 0 { 0 } else { (turn + which) % 4 } {
        0 => Follow::Gap(0),
        1 => Follow::Gap(3),
        2 => Follow::Listed(1),
        _ if which == 2 => Follow::Listed(2),
        _ => Follow::Shared,
    };
    Case {
        count: [5, 9, 1, 12][turn % 4],
        problems: 1 + turn as u32 / 2 % 3,
        stages: 2 + turn as u32 % 3,
        blocks: 1 + turn as u32 % 2,
        by_rows: [turn & 1 == 1, turn & 2 == 2, turn & 4 == 4],
        follow: [follow(0), follow(1), follow(2)],
        offset: turn / 3 % 4,
        alpha: [1.0, -1.0, 0.5][turn % 3],
        beta: [1.0, 0.0, 0.5, -1.0, 1.0][turn % 5],
        conj: turn as u32 / 2 % 4,
        ..plain(sizes)
    }
}

/// Whatever lies before and behind a matrix is NaN or another's, and nothing of it is read or written.
#[test]
fn every_size_is_taken_in_every_order() {
    for variant in entries() {
        let every = if cfg!(debug_assertions) { 9 } else { 1 };
        for (at, sizes) in sizes(variant).enumerate().step_by(every) {
            for order in 0..8 {
                check(variant, case(sizes, 8 * at + order));
            }
        }
    }
}

/// The bits are those of the entries that take everything; of c128 those of `batched_fragments`.
fn same_bits<T: Element>(of: fn(table::Batched) -> Option<table::BatchedFn<T>>) {
    let function = |variant: &Batched| table::batched(variant.entry).and_then(of);
    for variant in entries().filter(|variant| variant.dtype == T::DTYPE) {
        let (is_complex, most) = (T::DTYPE == model::Dtype::C128, variant.tm);
        let name = if is_complex { "batched_fragments" } else { "batched_any" };
        for (at, sizes) in sizes(variant).enumerate().step_by(5) {
            let [m, n, k] = sizes;
            let has_room = |v: &Batched| v.owners(m, n, k) <= v.threads && (!is_complex || v.tm >= most && v.tn >= k);
            let other = BATCHED.iter().find(|v| v.name == name && v.dtype == T::DTYPE && has_room(v));
            let Some(other) = other else { panic!("no {name} of {}", T::DTYPE) };
            let rounded = Case { is_rounded: true, stages: 2, problems: 1, ..case(sizes, 3 * at) };
            let bits = |variant| {
                let Some(entry) = function(variant) else { panic!("{} is of another type", variant.entry) };
                let (_, c) = run(variant, entry, rounded);
                c.iter().flat_map(|value| bytemuck::bytes_of(value).to_vec()).collect::<Vec<u8>>()
            };
            assert!(bits(variant) == bits(other), "{} {rounded:?}", variant.entry);
        }
    }
}

#[test]
fn f64_has_the_bits_of_the_others() {
    same_bits::<f64>(|entry| if let table::Batched::F64(entry) = entry { Some(entry) } else { None });
}

#[test]
fn c128_has_the_bits_of_the_others() {
    same_bits::<Complex<f64>>(|entry| if let table::Batched::C128(entry) = entry { Some(entry) } else { None });
}

/// Columns of 32 elements would begin in one bank each, if no piece were left out.
#[test]
fn large_powers_of_two_meet_in_few_banks() {
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
