use super::*;
use model::{Dtype, Strides, VARIANTS, choose};
use proptest::prelude::*;

const H200: Machine = Machine::H200;

fn origin() -> Origin {
    Origin {
        gpu: "NVIDIA H200".into(),
        compute_capability: (9, 0),
        sms: 132,
        driver: "580.159".into(),
        commit: "6ce0abf".into(),
        date: "2026-11-22".into(),
    }
}

/// A cell of a column-major product whose best is this entry.
fn cell(p: &Problem, entry: &str, parts: u32) -> Cell {
    let (class, lengths) = Class::of(p).expect("unit strides");
    let own = choose(p, &H200, None).expect("it is served");
    let of = |variant: &'static Variant, parts, ns| {
        let best = choose_given(p, &H200, variant.entry, Parts::Best).expect("it is served");
        Timed { variant, parts, expected_parts: best.splits, ns }
    };
    let variant = VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
    let (best, model) = (of(variant, parts, 12_310.5), of(own.variant, own.splits, 14_000.0));
    Cell { class, lengths, best, model, noise: 0.0123, fraction: 0.9312 }
}

/// The entries that the model weighs for a product, the best first.
fn weighed(p: &Problem) -> Vec<Choice> {
    let mut all: Vec<Choice> = model::candidates(p, &H200, None).expect("it is served").collect();
    all.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    all
}

/// gemv and tsm2r at some shapes, by what the model thinks second best.
fn database() -> Database {
    let shapes = [(1000, 1, 1000), (30_000, 1, 1000), (1000, 1, 30_000), (20_480, 16, 20_480), (100_000, 16, 16)];
    let cells = shapes.map(|(m, n, k)| {
        let p = Problem::column_major(Dtype::F64, m, n, k);
        let second = weighed(&p)[1];
        cell(&p, second.variant.entry, second.splits)
    });
    Database::new(origin(), cells)
}

#[test]
fn what_is_written_is_what_a_reader_sees() {
    let text = database().to_string();
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.by_ref().take(8).collect();
    assert_eq!(
        heads,
        [
            "lanky tuned 1",
            "gpu NVIDIA H200",
            "compute-capability 9.0",
            "sms 132",
            "driver 580.159",
            "commit 6ce0abf",
            "date 2026-11-22",
            "cells 5"
        ]
    );
    assert!(lines.next().is_some_and(|columns| columns.starts_with("family dtype layout reads_c m n k entry parts ")));
    let cells: Vec<&str> = lines.by_ref().take(5).collect();
    assert!(
        cells[0].starts_with("gemv f64 ccc 0 1000 1 1000 d") && cells[0].contains(" 12310.5 0.0123 0.9312 d"),
        "{text}"
    );
    assert!(lines.next().is_some_and(|last| last.starts_with("end ") && last.len() == 20), "{text}");
    assert_eq!(lines.next(), None);
    assert_eq!(Database::parse(&text), Ok(database()));
    let empty = Database::new(Origin { driver: String::new(), ..origin() }, []);
    assert_eq!(Database::parse(&empty.to_string()), Ok(empty));
}

#[test]
fn a_damaged_line_is_named() {
    let text = database().to_string();
    let line = |number: usize| text.lines().nth(number - 1).expect("a line").to_string();
    let damaged = |number: usize, from: &str, to: &str| {
        assert!(line(number).contains(from), "{}", line(number));
        let lines: Vec<String> = text
            .lines()
            .zip(1..)
            .map(|(line, at)| if at == number { line.replacen(from, to, 1) } else { line.into() })
            .collect();
        Database::parse(&(lines.join("\n") + "\n")).expect_err("damaged")
    };
    for (number, from, to, reason) in [
        (1, "lanky", "lonky", "line 1: no database of lanky tune, which begins with 'lanky tuned '"),
        (1, "1", "2", "line 1: it is of version 2, but required is 1: tune again"),
        (2, "gpu", "cpu", "line 2: 'cpu NVIDIA H200', but required is 'gpu'"),
        (3, "9.0", "nine", "line 3: compute-capability is 'nine', not a whole number"),
        (4, "132", "-1", "line 4: sms is '-1', not a whole number"),
        (5, "driver ", "river ", "line 5: 'river 580.159', but required is 'driver'"),
        (8, "5", "6", "line 8: 5 cells were found, but 6 are required"),
        (9, "parts", "pieces", "line 9: other columns than those of version 1"),
        (10, "gemv", "gemw", "line 10: 'gemw f64 ccc 0' is no kind of product"),
        (10, "1000 1 1000", "0 1 1000", "line 10: m is '0', not a whole number of 1 or more"),
        (10, "1000 1 1000", "1000 2 1000", "line 10: 1000 x 2 x 1000 is no product of family gemv"),
        (10, "12310.5", "NaN", "line 10: ns is 'NaN', not a number above 0"),
        (10, "0.0123", "-1", "line 10: noise is no number of 0 or more"),
        (10, " 0.9312", "", "line 10: 16 words, but required are 17"),
        (11, "gemv f64", "gemv f32", "line 11: entry"),
    ] {
        assert!(damaged(number, from, to).starts_with(reason), "{}", damaged(number, from, to));
    }
    let entry = cell_entry(&text);
    assert_eq!(damaged(10, &entry, "dgemv_best"), "line 10: entry dgemv_best is none of this version's: tune again");
    // A number that could be another is known by the check alone.
    assert!(damaged(10, "12310.5", "12310.6").starts_with("it was changed or damaged: its check is "));
    assert!(damaged(15, "end ", "fin ").starts_with("it was cut off"));
    let swapped = text.replace(&format!("{}\n{}", line(10), line(11)), &format!("{}\n{}", line(11), line(10)));
    assert_eq!(Database::parse(&swapped), Err("line 11: out of order".into()));
}

/// Nobody allows f32 to be split by following a database.
#[test]
fn entries_in_two_parts_are_refused() {
    let p = Problem::column_major(Dtype::F32, 20_480, 64, 20_480);
    let text = Database::new(origin(), [cell(&p, "stsm2r_split_32x64_n64_k32_s3_t256", 8)]).to_string();
    let refused = "line 10: entry stsm2r_split_32x64_n64_k32_s3_t256 does not compute this product";
    assert_eq!(Database::parse(&text), Err(refused.into()));
}

fn cell_entry(text: &str) -> String {
    text.lines().nth(9).and_then(|line| line.split(' ').nth(7)).expect("an entry").into()
}

/// Every line, and every letter of it, is one that counts.
#[test]
fn whatever_is_damaged_is_refused() {
    let text = database().to_string();
    for at in 0..text.len() {
        for letter in ['7', ' '] {
            let mut damaged = text.clone();
            damaged.replace_range(at..=at, &letter.to_string());
            assert!(damaged == text || Database::parse(&damaged).is_err(), "{at}: {letter:?}");
        }
        assert!(Database::parse(&text[..at]).is_err(), "cut off at {at}");
    }
    for gone in 0..text.lines().count() {
        let lines = text.lines().enumerate().filter(|(at, _)| *at != gone).map(|(_, line)| format!("{line}\n"));
        assert!(Database::parse(&lines.collect::<String>()).is_err(), "without line {}", gone + 1);
    }
}

#[test]
fn another_gpu_is_refused_by_name() {
    assert_eq!(database().check(&H200), Ok(()));
    let of = |change: &dyn Fn(&mut Origin)| {
        let mut origin = origin();
        change(&mut origin);
        Database::new(origin, []).check(&H200).expect_err("another GPU")
    };
    let required = "but required is NVIDIA H200 of compute capability 9.0 with 132 SMs";
    let found = of(&|origin| origin.gpu = "NVIDIA H100 PCIe".into());
    assert_eq!(found, format!("it is of NVIDIA H100 PCIe of compute capability 9.0 with 132 SMs, {required}"));
    assert!(of(&|origin| origin.sms = 114).contains("with 114 SMs, but"));
    assert!(of(&|origin| origin.compute_capability = (9, 1)).contains("compute capability 9.1 with"));
}

#[test]
fn at_a_cell_its_launch_is_taken_and_said() {
    for cell in database().cells() {
        let p = cell.problem().expect("a product");
        let own = choose(&p, &H200, None).expect("it is served");
        let choice = database().choose(&p, &H200, &own).expect("it is tuned");
        assert_eq!((choice.variant.entry, choice.splits), (cell.best.variant.entry, cell.best.parts));
        assert_ne!(choice.variant.entry, own.variant.entry);
        assert_eq!(choice.chooser, Chooser::Tuned { at: cell.lengths, ns: 12_310 });
        let [m, n, k] = cell.lengths;
        let said = format!("chosen    by measurements: 12.3 us at m = {m}, n = {n}, k = {k}");
        assert!(choice.to_string().contains(&said), "{choice}");
        // The same product transposed.
        let wide = p.transposed();
        let own = choose(&wide, &H200, None).expect("it is served");
        let turned = database().choose(&wide, &H200, &own).expect("it is tuned");
        assert_eq!((turned.variant.entry, turned.splits), (choice.variant.entry, choice.splits));
        assert_eq!(turned.swapped, !choice.swapped);
        let gaps = Problem { a: Strides::column_major(m + 7), ..p };
        assert!(database().choose(&gaps, &H200, &own).is_none(), "lines that are not aligned were not timed");
    }
}

#[test]
fn the_nearest_of_the_same_kind_is_asked() {
    let at = |m, n, k| Problem::column_major(Dtype::F64, m, n, k);
    let lengths = |p: &Problem| database().nearest(p).map(|cell| cell.lengths);
    assert_eq!(lengths(&at(1100, 1, 900)), Some([1000, 1, 1000]));
    // The middle between 1000 and 30 000 is 5477.
    assert_eq!(lengths(&at(5470, 1, 1000)), Some([1000, 1, 1000]));
    assert_eq!(lengths(&at(5480, 1, 1000)), Some([30_000, 1, 1000]));
    assert_eq!(lengths(&at(1000, 1, 5480)), Some([1000, 1, 30_000]));
    assert_eq!(lengths(&at(8000, 1, 1000)), Some([30_000, 1, 1000]));
    // Eight times a length is the end of a cell's reach.
    assert_eq!(lengths(&at(240_000, 1, 1000)), Some([30_000, 1, 1000]));
    assert_eq!((lengths(&at(240_001, 1, 1000)), lengths(&at(124, 1, 124))), (None, None));
    for other in [
        Problem { dtype: Dtype::F32, ..at(1000, 1, 1000) },
        Problem { a: Strides::row_major(1000), ..at(1000, 1, 1000) },
        Problem { reads_c: true, ..at(1000, 1, 1000) },
        Problem { b: Strides { row: 2, col: 2000 }, ..at(1000, 1, 1000) },
        at(20_480, 16, 64),
        at(1000, 100, 1000),
    ] {
        assert_ne!(lengths(&other), Some([1000, 1, 1000]), "{other:?}");
    }
}

/// The cell of a product, whose best is this choice and took so many times less than the model's, and by how much it may differ.
fn won(p: &Problem, best: &Choice, times: f64, noise: f64) -> Database {
    let cell = cell(p, best.variant.entry, best.splits);
    let best = Timed { ns: cell.model.ns / times, expected_parts: best.splits, ..cell.best };
    Database::new(origin(), [Cell { best, noise, ..cell }])
}

/// At its own lengths a cell is followed whatever it says; at others where it won by more than it is sure of.
#[test]
fn what_won_by_little_says_nothing_of_others() {
    let p = Problem::column_major(Dtype::F64, 20_480, 4, 20_480);
    let near = Problem::column_major(Dtype::F64, 20_000, 4, 20_480);
    let own = [p, near].map(|p| choose(&p, &H200, None).expect("it is served"));
    assert_eq!(own[0].variant, own[1].variant);
    let follows = |times, noise| {
        let tuned = won(&p, &weighed(&p)[1], times, noise);
        [(p, own[0]), (near, own[1])].map(|(p, own)| tuned.choose(&p, &H200, &own).is_some())
    };
    assert_eq!(follows(1.005, 0.0), [true, false]);
    assert_eq!(follows(1.1, 0.0), [true, true]);
    assert_eq!(follows(1.1, 0.05), [true, false], "within three times its noise");
    // Gaps between lines were not timed either.
    let gaps = Problem { a: Strides::column_major(20_488), ..p };
    let own_of_gaps = choose(&gaps, &H200, None).expect("it is served");
    let follows = |times| won(&p, &weighed(&p)[1], times, 0.0).choose(&gaps, &H200, &own_of_gaps).is_some();
    assert!(!follows(1.005) && follows(1.4));
    // Nor is the cell asked where the model comes to its entry by itself.
    let mut same = own[1];
    same.variant = weighed(&p)[1].variant;
    assert!(won(&p, &weighed(&p)[1], 3.0, 0.0).choose(&near, &H200, &same).is_none());
    // Where the model's choice is one of which nothing was timed, a cell must promise more.
    let tuned = won(&p, &weighed(&p)[1], 1.15, 0.0);
    let mut other = own[1];
    other.variant = weighed(&p)[2].variant;
    assert!(tuned.choose(&near, &H200, &own[1]).is_some() && tuned.choose(&near, &H200, &other).is_none());
    assert!(won(&p, &weighed(&p)[1], 1.4, 0.0).choose(&near, &H200, &other).is_some());
}

/// The same expectations as at the cell, corrected by what was timed there.
#[test]
fn what_is_expected_is_corrected_by_what_was_timed() {
    let p = Problem::column_major(Dtype::F64, 20_480, 2, 20_480);
    let (own, all) = (choose(&p, &H200, None).expect("it is served"), weighed(&p));
    let slowest = all.last().expect("candidates");
    let tuned = won(&p, slowest, 1.5, 0.0);
    let cell = &tuned.cells()[0];
    let gain = |choice: &Choice| cell.gain(&H200, choice, &own).expect("both are served");
    assert!((gain(slowest) - 1.5).abs() < 1e-9, "{}", gain(slowest));
    // One that is expected to take twice as long as that one does here has lost it.
    let mut slower = *slowest;
    slower.estimate.seconds *= 2.0;
    assert!((gain(&slower) - 0.75).abs() < 1e-9, "{}", gain(&slower));
}

fn entries(p: &Problem) -> Vec<&'static Variant> {
    let can = |v: &&'static Variant| {
        !(v.adds_atomically() || v.splits_f32())
            && choose_given(p, &H200, v.entry, Parts::Best).is_ok_and(|choice| choice.variant.entry == v.entry)
    };
    VARIANTS.iter().filter(can).collect()
}

prop_compose! {
    /// A shape of any family, with any layout.
    fn a_product()(
        dtype in prop::sample::select(Dtype::ALL.to_vec()),
        [m, n, k] in prop::array::uniform3((0.0_f64..16.0).prop_map(|log| log.exp2().round())),
        [a, b, c] in prop::array::uniform3(any::<bool>()),
        reads_c in any::<bool>(),
        gram in prop::bool::weighted(0.2),
        gap in 0_u64..3,
    ) -> Problem {
        let [m, n, k] = [m, n, k].map(|length| num_traits::ToPrimitive::to_u64(&length).unwrap_or(1).max(1));
        let of = |by_columns: bool, rows: u64, cols: u64| {
            if by_columns { Strides::column_major(rows + gap) } else { Strides::row_major(cols + gap) }
        };
        if gram {
            Problem { reads_c, ..Problem::gram(dtype, n.min(500), k, of(a, n.min(500), k)) }
        } else {
            Problem { a: of(a, m, k), b: of(b, k, n), c: of(c, m, n), reads_c, ..Problem::column_major(dtype, m, n, k) }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_database_is_read_as_it_was_written(
        shapes in prop::collection::vec((a_product(), any::<prop::sample::Index>(), 1_u32..2000, 1_u64..10_000_000_000, 0_u64..9999), 0..12),
        driver in "[0-9.]{0,9}",
        sms in any::<u32>(),
    ) {
        let cells = shapes.into_iter().filter_map(|(p, which, parts, tenths, share)| {
            let (class, lengths) = Class::of(&p)?;
            let all = entries(&class.problem(lengths)?);
            let timed = |index: usize, parts| Timed {
                variant: all[index], parts, expected_parts: parts / 2 + 1, ns: tenths as f64 / 10.0,
            };
            let (best, model) = (timed(which.index(all.len()), parts), timed(0, 1));
            Some(Cell { class, lengths, best, model, noise: share as f64 / 1e4, fraction: (share + 1) as f64 / 1e4 })
        });
        let database = Database::new(Origin { driver, sms, ..origin() }, cells);
        prop_assert_eq!(Database::parse(&database.to_string()), Ok(database));
    }

    /// Whatever was best at whatever cell: what a product nearby gets is what the model's rules let run there.
    #[test]
    fn nothing_is_taken_that_cannot_run(
        there in a_product(),
        which in any::<prop::sample::Index>(),
        parts in 1_u32..2000,
        factors in prop::array::uniform3(0.1_f64..10.0),
        machine in prop::sample::select(vec![Machine::H200, Machine::A100, Machine::RTX4090]),
    ) {
        let Some((class, lengths)) = Class::of(&there) else { return Ok(()) };
        let Some(packed) = class.problem(lengths) else { return Ok(()) };
        let all = entries(&packed);
        let best = Timed { variant: all[which.index(all.len())], parts, expected_parts: 1 + parts / 3, ns: 1e4 };
        // It won by so much that it is followed wherever it can run.
        let model = Timed { ns: 1e9, ..best };
        let database = Database::new(origin(), [Cell { class, lengths, best, model, noise: 0.0, fraction: 1.0 }]);
        let mut near = lengths;
        for (length, factor) in near.iter_mut().zip(factors) {
            *length = num_traits::ToPrimitive::to_u64(&(*length as f64 * factor)).unwrap_or(1).max(1);
        }
        let Some(here) = class.problem(near).or(class.problem(lengths)) else { return Ok(()) };
        let Ok(own) = choose(&here, &machine, None) else { return Ok(()) };
        let Some(choice) = database.choose(&here, &machine, &own) else { return Ok(()) };
        let forced = choose(&here, &machine, Some(best.variant.entry));
        prop_assert!(forced.is_ok(), "{:?}", forced);
        let forced = forced.expect("it is ok");
        prop_assert_eq!(choice.variant.entry, best.variant.entry);
        prop_assert!(!choice.variant.adds_atomically());
        prop_assert_eq!((choice.swapped, choice.shared_bytes), (forced.swapped, forced.shared_bytes));
        // Slots for all parts, and parts for which there are steps.
        let given = choose_given(&here, &machine, best.variant.entry, Parts::Exactly(choice.splits)).expect("it is ok");
        prop_assert_eq!((choice.grid, choice.slots_len, choice.splits), (given.grid, given.slots_len, given.splits));
    }
}
