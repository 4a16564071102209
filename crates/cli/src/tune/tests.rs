//! Whole runs with made-up times.

use super::*;
use model::{Problem, VARIANTS, Variant, choose};
use session::name;

const H200: Machine = Machine::H200;

/// Times as somebody makes them up; its clock is what they add up to.
struct MadeUp<F> {
    /// Of a product, an entry and its parts.
    time_s: F,
    elapsed_s: f64,
    /// Asked to stop after so long.
    stops_s: f64,
    runs: usize,
    raced: Vec<(Problem, Vec<(&'static str, u32)>)>,
    wrong: Option<&'static str>,
    checked: usize,
}

impl<F: Fn(&Problem, &Variant, u32) -> f64> MadeUp<F> {
    fn new(time_s: F) -> Self {
        let (elapsed_s, stops_s) = (0.0, f64::INFINITY);
        Self { time_s, elapsed_s, stops_s, runs: 13, raced: Vec::new(), wrong: None, checked: 0 }
    }
}

impl<F: Fn(&Problem, &Variant, u32) -> f64> session::Timer for MadeUp<F> {
    fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    fn is_stopped(&self) -> bool {
        self.elapsed_s >= self.stops_s
    }

    fn bound_s(&self, problem: &Problem) -> f64 {
        model::roofline::bound(problem, &H200).seconds()
    }

    fn race(&mut self, problem: &Problem, entries: &[(&'static Variant, u32)]) -> Result<Vec<Vec<f64>>, Fault> {
        self.raced.push((*problem, entries.iter().map(|(variant, parts)| (variant.entry, *parts)).collect()));
        let times: Vec<f64> = entries.iter().map(|(variant, parts)| (self.time_s)(problem, variant, *parts)).collect();
        let finite = times.iter().copied().filter(|time| time.is_finite());
        self.elapsed_s += finite.map(|time| time * say::float(self.runs)).sum::<f64>();
        // Of those that fail there are none; others have one that is twice as long.
        let times =
            times.into_iter().map(|time| if time.is_finite() { vec![2.0 * time, time, time] } else { Vec::new() });
        Ok(times.collect())
    }

    fn check(&mut self, _: &Problem, (variant, _): (&'static Variant, u32)) -> Result<Option<String>, Fault> {
        self.checked += 1;
        Ok(self.wrong.filter(|wrong| *wrong == variant.entry).map(|_| "element (0, 0) is 2, not 1".into()))
    }
}

fn expected(problem: &Problem, variant: &Variant, parts: u32) -> f64 {
    let given = model::choose_given(problem, &H200, variant.entry, model::Parts::Exactly(parts));
    given.map_or(f64::INFINITY, |choice| choice.estimate.seconds)
}

fn class(words: &str) -> Class {
    let words: Vec<&str> = words.split(' ').collect();
    Class::parse(words[0], words[1], words[2], words[3]).expect("a class")
}

fn gemv_places() -> Vec<Place> {
    mesh::places(&[class("gemv f64 ccc 0"), class("gemv f64 rcc 0")], 100_000_000, false)
}

fn run<F: Fn(&Problem, &Variant, u32) -> f64>(timer: &mut MadeUp<F>, places: &[Place], budget_s: f64) -> Found {
    let mut tellings = 0;
    let mut standing = |standing: &session::Standing<'_>| {
        tellings += 1;
        assert!(standing.done <= places.len() && standing.left_s >= 0.0 && standing.left_s <= budget_s);
        Ok(())
    };
    let found = Session::new(timer, H200, budget_s, 10, false).run(places, &mut standing).expect("nothing fails");
    assert!(tellings >= found.cells.len());
    found
}

#[test]
fn who_takes_least_wins() {
    // A time that has nothing to do with what the model expects.
    let time_s = |p: &Problem, v: &Variant, parts: u32| {
        let letters: usize = v.entry.bytes().map(usize::from).sum();
        1e-6 * say::float(1 + (letters * 31 + parts as usize * 17 + p.m as usize) % 101)
    };
    let places: Vec<Place> = gemv_places().into_iter().take(60).collect();
    let mut timer = MadeUp::new(time_s);
    let found = run(&mut timer, &places, f64::INFINITY);
    assert_eq!((found.cells.len(), found.end, found.failed.len()), (60, End::Whole, 0));
    let mut by_another = 0;
    for (cell, (problem, raced)) in found.cells.iter().zip(&timer.raced) {
        let times = raced.iter().map(|(entry, parts)| {
            let variant = VARIANTS.iter().find(|v| v.entry == *entry).expect("an entry");
            (time_s(problem, variant, *parts), *entry, *parts)
        });
        let least = times.clone().map(|(time, ..)| time).fold(f64::INFINITY, f64::min);
        let (_, entry, parts) = times.clone().find(|(time, ..)| *time == least).expect("one of them");
        assert_eq!((cell.best.variant.entry, cell.best.parts), (entry, parts), "{cell:?}");
        assert!((cell.best.ns - 1e9 * least).abs() <= 0.1, "{cell:?}");
        let own = choose(problem, &H200, None).expect("it is served");
        assert_eq!((cell.model.variant.entry, cell.model.parts), (own.variant.entry, own.splits));
        assert!((cell.model.ns - 1e9 * time_s(problem, own.variant, own.splits)).abs() <= 0.1, "{cell:?}");
        let bound_s = model::roofline::bound(problem, &H200).seconds();
        assert!((cell.fraction - (bound_s / least).max(1e-4)).abs() <= 1e-4, "{cell:?}");
        // A database gives the product that launch.
        let database = Database::new(Origin::default(), [cell.clone()]);
        let choice = database.choose(problem, &H200, &own).expect("it is tuned");
        assert_eq!((choice.variant.entry, choice.splits), (entry, parts));
        by_another += usize::from(entry != own.variant.entry);
    }
    assert!(by_another > 10 && timer.checked == 60, "{by_another}");
}

#[test]
fn what_fails_does_not_win_and_what_is_wrong_is_no_cell() {
    let places: Vec<Place> = gemv_places().into_iter().take(9).collect();
    let own = |place: &Place| {
        let p = place.class.problem(place.lengths).expect("a product");
        choose(&p, &H200, None).expect("it is served").variant.entry
    };
    // All but the model's own fail.
    let mut timer = MadeUp::new(|p: &Problem, v: &Variant, _| {
        if v.entry == choose(p, &H200, None).expect("served").variant.entry { 1e-5 } else { f64::INFINITY }
    });
    let found = run(&mut timer, &places, f64::INFINITY);
    assert!(found.cells.iter().zip(&places).all(|(cell, place)| cell.best.variant.entry == own(place)));
    // The model's own fails.
    let mut timer = MadeUp::new(|p: &Problem, v: &Variant, _| {
        if v.entry == choose(p, &H200, None).expect("served").variant.entry { f64::INFINITY } else { 1e-5 }
    });
    let found = run(&mut timer, &places, f64::INFINITY);
    assert_eq!((found.cells.len(), found.failed.len()), (0, 9));
    assert!(found.failed[0].starts_with(&name(&places[0])), "{:?}", found.failed);
    assert!(verdict(&found).is_err_and(|fault| matches!(fault, Fault::Device(_))));
    // Some had too little memory: alone, and beside others.
    let mut found = run(&mut MadeUp::new(expected), &places, f64::INFINITY);
    (found.failed, found.without_memory) = (vec!["out of memory".into()], 1);
    assert!(verdict(&found).is_err_and(|fault| matches!(fault, Fault::Memory(_))));
    found.failed.push("it failed".into());
    assert!(verdict(&found).is_err_and(|fault| matches!(fault, Fault::Check(_))));
    let mut timer = MadeUp::new(expected);
    timer.wrong = Some(own(&places[0]));
    let found = run(&mut timer, &places, f64::INFINITY);
    assert!(!found.wrong.is_empty() && found.cells.len() + found.wrong.len() == 9, "{found:?}");
    assert!(found.wrong[0].contains(" parts: element (0, 0) is 2, not 1"), "{:?}", found.wrong);
    assert!(found.cells.iter().all(|cell| Some(cell.best.variant.entry) != timer.wrong));
    assert!(verdict(&found).is_err_and(|fault| matches!(fault, Fault::Check(_))));
}

#[test]
fn the_budget_is_kept() {
    let places = gemv_places();
    let whole = run(&mut MadeUp::new(expected), &places, f64::INFINITY);
    assert_eq!((whole.end, whole.cells.len()), (End::Whole, places.len()));
    let mut before = 0;
    for budget_s in [0.0, 0.02, 0.05, 0.2] {
        let mut timer = MadeUp::new(expected);
        let found = run(&mut timer, &places, budget_s);
        assert!(timer.elapsed_s <= budget_s * 1.000_001, "{} of {budget_s}", timer.elapsed_s);
        let left = places.len() - found.cells.len();
        assert_eq!(found.end, End::Budget { left });
        assert!(found.cells.len() >= before, "{budget_s}");
        before = found.cells.len();
        // The coarse mesh is what there is.
        if budget_s == 0.05 {
            let of = |words: &str| found.cells.iter().filter(|cell| cell.class == class(words)).count();
            assert!(of("gemv f64 ccc 0") > 3 && of("gemv f64 rcc 0") > 3, "{}", found.cells.len());
        }
    }
    assert!(before > 50 && before < places.len(), "{before}");
    // A shape that took long for its own reasons, as the first may, ends nothing.
    let first = places[0].class.problem(places[0].lengths).expect("a product");
    let mut timer =
        MadeUp::new(|p: &Problem, v: &Variant, parts| expected(p, v, parts) + if *p == first { 1e-3 } else { 0.0 });
    let slow_s = 13.0 * 1e-3 * say::float(entrants::entrants(&first, &H200, false).expect("served").len());
    let found = run(&mut timer, &places, slow_s + 0.05);
    assert!(found.cells.len() > 10 && timer.elapsed_s <= slow_s + 0.051, "{} shapes", found.cells.len());
    // Entries that take three times as long as the model thinks: learned, and over by no more than a shape.
    let mut timer = MadeUp::new(|p: &Problem, v: &Variant, parts| 3.0 * expected(p, v, parts));
    let found = run(&mut timer, &places, 0.2);
    let longest = timer.raced.iter().map(|(p, all)| {
        let once = |(entry, parts): &(&str, u32)| {
            3.0 * expected(p, VARIANTS.iter().find(|v| v.entry == *entry).expect("an entry"), *parts)
        };
        13.0 * all.iter().map(once).sum::<f64>()
    });
    assert!(timer.elapsed_s <= 0.2 + longest.fold(0.0, f64::max) && matches!(found.end, End::Budget { .. }));
}

#[test]
fn what_was_found_before_a_stop_is_kept() {
    let places = gemv_places();
    let mut timer = MadeUp::new(expected);
    timer.stops_s = 0.05;
    let found = run(&mut timer, &places, 60.0);
    assert!(!found.cells.is_empty() && found.cells.len() < places.len());
    assert_eq!(found.end, End::Stopped { left: places.len() - found.cells.len() });
    let whole = run(&mut MadeUp::new(expected), &places, f64::INFINITY);
    assert_eq!(found.cells, whole.cells[..found.cells.len()], "as if it had not been stopped");
    assert!(ended(&found, 60.0)[0].contains("shapes measured when it was stopped; "));
}

#[test]
fn nine_shapes_make_one_cell() {
    let places = mesh::places(&[class("gemv f64 ccc 0")], 100_000_000, true);
    let place = places.iter().find(|place| place.lengths == [1420, 1, 819]).expect("a shape").clone();
    // One entry takes twice the bound everywhere, the others three times, but at the shape itself nothing at all.
    let own = |v: &Variant| v.entry == "dgemv_columns_2x1_m64n1_u8_t256";
    let time_s = |p: &Problem, v: &Variant, _: u32| {
        let bound_s = model::roofline::bound(p, &H200).seconds();
        let factor = if own(v) {
            2.0
        } else if p.m == 1420 && p.k == 819 {
            1.0
        } else {
            3.0
        };
        factor * bound_s
    };
    let mut timer = MadeUp::new(time_s);
    let found = Session::new(&mut timer, H200, f64::INFINITY, 10, true).run(&[place], &mut |_| Ok(())).expect("a cell");
    assert_eq!((timer.raced.len(), found.cells.len()), (9, 1));
    let cell = &found.cells[0];
    assert!(own(cell.best.variant), "{cell:?}");
    assert!((cell.fraction - 0.5).abs() < 1e-4, "{cell:?}");
    let p = cell.problem().expect("a product");
    assert!((cell.best.ns - 2e9 * model::roofline::bound(&p, &H200).seconds()).abs() <= 0.1, "{cell:?}");
    assert!(timer.raced[0].1.iter().any(|(entry, _)| entry.contains("versatile")), "the paper's kernels are there");
}

fn timed(entry: &str, ns: f64) -> lanky::tuned::Timed {
    let variant = VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
    lanky::tuned::Timed { variant, parts: 2, expected_parts: 1, ns }
}

/// Of column-major f64 with these lengths: the best took `ns`, the model's choice `model_ns`.
fn cell(words: &str, lengths: [u64; 3], ns: f64, model_ns: f64) -> Cell {
    let class = class(words);
    let entry = match class.family {
        "gemv" => ["dgemv_columns_2x1_m512n1_u8_t256", "dgemv_columns_2x1_m64n1_u8_t256"],
        _ => ["dtsm2r_prefetch_1x4_u16_t128", "dtsm2r_prefetch_1x2_u16_t128"],
    };
    let model = if model_ns == ns { timed(entry[0], ns) } else { timed(entry[1], model_ns) };
    Cell { class, lengths, best: timed(entry[0], ns), model, noise: 0.01, fraction: 0.9 }
}

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

/// Matrices of 320 MB, 800 MB and 80 MB by vectors, and two tsm2r.
fn small() -> Database {
    Database::new(
        origin(),
        [
            cell("gemv f64 ccc 0", [40_000, 1, 1000], 80_000.0, 160_000.0),
            cell("gemv f64 ccc 0", [1000, 1, 100_000], 250_000.0, 250_000.0),
            cell("gemv f64 ccc 0", [1000, 1, 10_000], 100_000.0, 400_000.0),
            cell("tsm2r f64 ccc 0", [20_000, 4, 1000], 50_000.0, 60_000.0),
            cell("tsm2r f64 ccc 0", [1000, 4, 20_000], 50_000.0, 50_000.0),
        ],
    )
}

#[test]
fn losses_are_what_a_hand_finds() {
    let losses = compare::losses(&small());
    let [tsm2r, gemv] = losses.as_slice() else { panic!("{losses:?}") };
    // 2, 1 and 4: the cube root of 8. 1.2 and 1: the root of 1.2.
    assert_eq!((gemv.family, gemv.shapes, gemv.best_by_model, gemv.worst), ("gemv", 3, 1, 4.0));
    assert!((gemv.mean - 2.0).abs() < 1e-12 && gemv.worst_at == "gemv f64 ccc 0, 1000 x 1 x 10000", "{gemv:?}");
    assert!((tsm2r.mean - 1.2_f64.sqrt()).abs() < 1e-12 && (tsm2r.worst - 1.2).abs() < 1e-12, "{tsm2r:?}");
    let words = compare::text(&small(), true);
    assert!(words.contains("took 2.000 times as long as the best of 3 shapes"), "{words}");
    assert!(words.contains("4.000 times at worst (gemv f64 ccc 0, 1000 x 1 x 10000); it was the best in 1"), "{words}");
}

#[test]
fn independence_is_what_a_hand_finds() {
    // 8 (4e7 + 1000 + 40 000) bytes in 80 us, 8 (1e8 + 100 000 + 1000) in 250 us; 80 MB are too few.
    let all = compare::independences(&small());
    let [one] = all.as_slice() else { panic!("{all:?}") };
    let (best, worst) = (320.328e6 / 80e3, 800.808e6 / 250e3);
    assert_eq!((one.class.as_str(), one.shapes), ("gemv f64 ccc 0", 2));
    assert!((one.best_gbs - best).abs() < 1e-9 && (one.worst_gbs - worst).abs() < 1e-9, "{one:?}");
    assert!(
        (one.worst_over_best - worst / best).abs() < 1e-12 && one.worst_at.contains("1000 x 1 x 100000"),
        "{one:?}"
    );
    let words = compare::text(&small(), false);
    assert!(words.contains("2 shapes, the worst bandwidth is 0.800 of the best: 3203 GB/s"), "{words}");
}

/// What the elements of a figure that `is` true of say when they are pointed at, or in words.
fn said_in(svg: &str, is: impl Fn(&roxmltree::Node<'_, '_>) -> bool) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("well-formed");
    let words =
        |node: roxmltree::Node<'_, '_>| node.first_element_child().unwrap_or(node).text().unwrap_or("").to_string();
    document.descendants().filter(is).map(words).collect()
}

fn has_class(node: &roxmltree::Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|one| one == class))
}

#[test]
fn maps_have_a_field_for_each_cell() {
    let figures = map::figures(&small());
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "gemv-f64-ccc-0-winner.svg",
            "gemv-f64-ccc-0-bandwidth.svg",
            "tsm2r-f64-ccc-0-n4-winner.svg",
            "tsm2r-f64-ccc-0-n4-bandwidth.svg"
        ]
    );
    let [(_, winner), (_, bandwidth), (_, other), _] = figures.as_slice() else { panic!("{names:?}") };
    assert!(said_in(other, |node| has_class(node, "title"))[0].starts_with("tsm2r f64 ccc 0, n = 4: "), "{other}");
    let fields = |svg: &str| said_in(svg, |node| node.has_tag_name("rect") && node.has_children());
    assert_eq!(fields(winner), fields(bandwidth));
    assert_eq!(
        fields(winner),
        [
            "1000 x 1 x 10000: dgemv_columns_2x1_m512n1_u8_t256 in 2 parts of k, 100.0 us, 801 GB/s, 90.0% of the bound; \
             the model's choice, dgemv_columns_2x1_m64n1_u8_t256, took 4.000 times as long",
            "1000 x 1 x 100000: dgemv_columns_2x1_m512n1_u8_t256 in 2 parts of k, 250.0 us, 3203 GB/s, 90.0% of the bound; \
             the model chose it",
            "40000 x 1 x 1000: dgemv_columns_2x1_m512n1_u8_t256 in 2 parts of k, 80.0 us, 4004 GB/s, 90.0% of the bound; \
             the model's choice, dgemv_columns_2x1_m64n1_u8_t256, took 2.000 times as long"
        ]
    );
    let keys = |svg: &str| said_in(svg, |node| has_class(node, "key"));
    assert_eq!(keys(winner), ["dgemv_columns_2x1_m512n1_u8_t256 (3)"]);
    assert!(keys(bandwidth).contains(&"worst over best 0.800".to_string()), "{:?}", keys(bandwidth));
    let ticks = said_in(winner, |node| has_class(node, "tick"));
    assert_eq!(ticks, ["1.00k", "10.0k", "100k", "1.00k", "40.0k", "k", "m"]);
    let numbers = bandwidth.split('"').filter_map(|word| word.parse::<f64>().ok());
    assert!(numbers.into_iter().all(|number| (0.0..=960.0).contains(&number)));
}

/// A shape that is not there is no field, and of many winners the rarest share a colour.
#[test]
fn a_map_of_many_winners_has_room_for_them() {
    let entries: Vec<&'static Variant> =
        VARIANTS.iter().filter(|v| v.dtype == Dtype::F64 && v.kernel == model::Kernel::Tsm2r).take(20).collect();
    assert_eq!(entries.len(), 20);
    let cells = entries.iter().zip(0_u64..).map(|(variant, at)| {
        let mut cell = cell("tsm2r f64 ccc 0", [1000 + at, 4, 1000 + 7 * at % 20], 1e4, 1e4);
        cell.best.variant = variant;
        cell
    });
    let database = Database::new(origin(), cells);
    let [(_, winner), _] = map::figures(&database).try_into().expect("two figures");
    let fields = said_in(&winner, |node| node.has_tag_name("rect") && node.has_children());
    let keys = said_in(&winner, |node| has_class(node, "key"));
    assert_eq!((fields.len(), keys.len(), keys.last().map(String::as_str)), (20, 12, Some("others (9)")));
}

#[test]
fn a_journal_keeps_what_there_was() -> Result<(), Fault> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.tuned");
    let read = || Database::read(&path).map_err(|error| error.to_string());
    let mut journal = Journal::new(&path, &H200, origin())?;
    let first = small();
    journal.add(&first.cells()[..2], 1.0)?;
    assert!(!path.exists(), "not before its time");
    journal.add(&first.cells()[..2], 2.5)?;
    assert_eq!(read().map(|database| database.cells().len()), Ok(2));
    journal.take(first.cells());
    journal.save()?;
    assert_eq!(read(), Ok(first.clone()));

    // Another run: what is missing comes first, what is measured anew is replaced, all else stays.
    let later = Origin { commit: "1f0af67".into(), ..origin() };
    let mut journal = Journal::new(&path, &H200, later)?;
    let mut places: Vec<Place> = [[40_000, 1, 1000], [7, 1, 7], [1000, 1, 10_000], [9, 1, 9]]
        .map(|lengths| mesh::alone(class("gemv f64 ccc 0"), lengths))
        .into();
    journal.missing_first(&mut places);
    let order: Vec<u64> = places.iter().map(|place| place.lengths[0]).collect();
    assert_eq!(order, [7, 9, 40_000, 1000]);
    journal.take(&[cell("gemv f64 ccc 0", [40_000, 1, 1000], 70_000.0, 160_000.0)]);
    journal.save()?;
    let found = read().expect("whole");
    assert_eq!((found.cells().len(), found.origin().commit.as_str()), (5, "6ce0abf, 1f0af67"));
    assert_eq!(found.origin().date, "2026-11-22");
    let of = |lengths| found.cells().iter().find(|cell| cell.lengths == lengths).map(|cell| cell.best.ns);
    assert_eq!((of([40_000, 1, 1000]), of([1000, 1, 100_000])), (Some(70_000.0), Some(250_000.0)));
    Ok(())
}

/// Neither overwritten nor measured for: before anything is measured.
#[test]
fn what_is_no_database_of_this_gpu_is_left_as_it_is() -> Result<(), Fault> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.tuned");
    let fault = || Journal::new(&path, &H200, origin()).err().map(|fault| fault.to_string()).unwrap_or_default();
    let other = Database::new(Origin { gpu: "NVIDIA H100 PCIe".into(), ..origin() }, []).to_string();
    let version = small().to_string().replacen("tuned 1", "tuned 9", 1);
    for (text, reason) in [
        (other, "it is of NVIDIA H100 PCIe of compute capability 9.0 with 132 SMs, but required is NVIDIA H200"),
        (version, "line 1: it is of version 9, but required is 1"),
        (
            "m,n,k
"
            .into(),
            "line 1: no database of lanky tune",
        ),
        (small().to_string().replace("80000.0", "80000.1"), "it was changed or damaged"),
    ] {
        std::fs::write(&path, &text).expect("written");
        assert!(fault().starts_with(&format!("{}: {reason}", path.display())), "{}", fault());
        assert_eq!(std::fs::read_to_string(&path).ok(), Some(text));
    }
    Ok(())
}

#[test]
fn files_are_named_after_gpus() {
    assert_eq!(file_name("NVIDIA H200"), "nvidia-h200.tuned");
    assert_eq!(file_name("NVIDIA GeForce RTX 4090 (x)"), "nvidia-geforce-rtx-4090-x.tuned");
    assert_eq!([41.4, 250.0].map(left), ["41 s", "4 min"]);
}
