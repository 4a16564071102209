//! What moved between two results files: by more than the noise, and by more than is tolerated; what vanished, what is new.

use std::path::Path;

use serde::Serialize;

use super::result::{self, CACHED, GRAPH, Row, Timing};
use crate::error::Fault;
use crate::say;

/// Prints what moved.
///
/// # Errors
/// [`Fault::Check`] if anything became slower by more than `tolerance` percent, or vanished; [`Fault::Input`] for files that
/// are not results, or have no case in common.
pub fn run(old: &Path, new: &Path, tolerance: f64, json: bool) -> Result<(), Fault> {
    let moves = Moves::new(&result::read(old)?, &result::read(new)?, tolerance);
    if moves.in_both == 0 {
        return Err(Fault::Input(format!("{} and {} have no case in common", old.display(), new.display())));
    }
    if json {
        say::print_json(&moves)?;
    } else {
        say::print(&moves.text())?;
    }
    moves.verdict()
}

/// The object of `bench --compare --json`.
#[derive(Debug, Default, Serialize)]
struct Moves {
    /// Percent by which something may become slower.
    tolerance: f64,
    /// Rows of both files.
    in_both: usize,
    /// Rows that were timed too seldom, in one file or both, to know how much is noise.
    timed_once: usize,
    /// By more than the noise and the tolerance.
    slower: Vec<Move>,
    /// By more than the noise, within the tolerance.
    slower_within_tolerance: Vec<Move>,
    faster: Vec<Move>,
    /// Rows of the old file alone, by name: what is no longer computed, or no longer measured.
    vanished: Vec<String>,
    /// Of those that vanished, times in a graph of cases that are still timed: launches do not bound them any more.
    no_longer_in_a_graph: Vec<String>,
    /// Rows of the new file alone.
    new: Vec<String>,
}

/// A row that moved.
#[derive(Debug, Serialize)]
struct Move {
    case: String,
    old_variant: String,
    new_variant: String,
    old_ns: f64,
    new_ns: f64,
    /// Above 0 where it became slower.
    percent: f64,
}

impl Moves {
    fn new(old: &[Row], new: &[Row], tolerance: f64) -> Self {
        let mut moves = Self { tolerance, ..Self::default() };
        let (old, new) = (timed(old), timed(new));
        for (row, after) in &new {
            let Some((from, before)) = old.iter().find(|(from, _)| same(from, row)) else {
                moves.new.push(name(row));
                continue;
            };
            moves.in_both += 1;
            if from.samples < 2 || row.samples < 2 {
                moves.timed_once += 1;
                continue;
            }
            let moved = Move::new((from, before), (row, after));
            if after.ns_low > before.ns_high {
                let beyond = moved.percent > tolerance;
                if beyond { &mut moves.slower } else { &mut moves.slower_within_tolerance }.push(moved);
            } else if after.ns_high < before.ns_low {
                moves.faster.push(moved);
            }
        }
        for (row, _) in old.iter().filter(|(from, _)| !new.iter().any(|(row, _)| same(from, row))) {
            let launched = row.variant.replace(GRAPH, "");
            let plain = Row { variant: launched, ..(*row).clone() };
            let only_the_graph = row.variant.contains(GRAPH) && new.iter().any(|(row, _)| same(&plain, row));
            if only_the_graph { &mut moves.no_longer_in_a_graph } else { &mut moves.vanished }.push(name(row));
        }
        moves
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        let slower = format!("slower by more than {}%", self.tolerance);
        for (title, moved) in
            [(slower.as_str(), &self.slower), ("slower", &self.slower_within_tolerance), ("faster", &self.faster)]
        {
            lines.extend(section(title, moved.iter().map(Move::words)));
        }
        for (title, names) in
            [("vanished", &self.vanished), ("no longer in a graph", &self.no_longer_in_a_graph), ("new", &self.new)]
        {
            lines.extend(section(title, names.iter().cloned()));
        }
        let (far, near, faster) = (self.slower.len(), self.slower_within_tolerance.len(), self.faster.len());
        let counts = [
            (self.in_both, "in both"),
            (self.in_both - self.timed_once - far - near - faster, "within the noise"),
            (faster, "faster"),
            (near, "slower"),
            (far, slower.as_str()),
            (self.vanished.len(), "vanished"),
            (self.new.len(), "new"),
        ];
        let mut words: Vec<String> = counts.iter().map(|(count, what)| format!("{count} {what}")).collect();
        if self.timed_once > 0 {
            words.push(format!("{} timed once, which nothing is said of", self.timed_once));
        }
        lines.push(words.join(", "));
        lines.join("\n")
    }

    fn verdict(&self) -> Result<(), Fault> {
        let cases = |count: usize| format!("{count} {}", if count == 1 { "case" } else { "cases" });
        let mut faults = Vec::new();
        if !self.slower.is_empty() {
            faults.push(format!("{} became slower by more than {}%", cases(self.slower.len()), self.tolerance));
        }
        if let Some(first) = self.vanished.first() {
            faults.push(match self.vanished.len() {
                1 => format!("1 case vanished: {first}"),
                count => format!("{count} cases vanished, the first: {first}"),
            });
        }
        if faults.is_empty() { Ok(()) } else { Err(Fault::Check(faults.join("; "))) }
    }
}

impl Move {
    fn new((from, before): (&Row, &Timing), (row, after): (&Row, &Timing)) -> Self {
        Self {
            case: row.case.name(),
            old_variant: from.variant.clone(),
            new_variant: row.variant.clone(),
            old_ns: before.ns_median,
            new_ns: after.ns_median,
            percent: 100.0 * (after.ns_median / before.ns_median - 1.0),
        }
    }

    fn words(&self) -> String {
        let Self { case, old_variant, new_variant, old_ns, new_ns, percent } = self;
        let changed = old_variant != new_variant;
        let variant = if changed { format!("{old_variant} -> {new_variant}") } else { new_variant.clone() };
        let (from, to) = (say::time(old_ns / 1e9), say::time(new_ns / 1e9));
        format!("{percent:+.1}%  {from} -> {to}  {case}  {variant}")
    }
}

fn section(title: &str, words: impl Iterator<Item = String>) -> Vec<String> {
    let words: Vec<String> = words.map(|words| format!("  {words}")).collect();
    if words.is_empty() { words } else { [vec![format!("{title}:")], words].concat() }
}

/// What this project does not compute cannot become slower, and an error of measurement is no time.
fn timed(rows: &[Row]) -> Vec<(&Row, Timing)> {
    rows.iter().filter(|row| !row.is_error()).filter_map(|row| Some((row, row.ours?))).collect()
}

/// `tsm2r f64 1000 x 4 x 500`, and how, where it is not the plan's choice launch by launch.
fn name(row: &Row) -> String {
    match how(row).as_str() {
        "" => row.case.name(),
        how => format!("{} {how}", row.case.name()),
    }
}

/// What tells rows of a case apart: a forced entry by its name, others by how they were timed.
fn how(row: &Row) -> String {
    if row.chooser == "caller" {
        return row.variant.clone();
    }
    [GRAPH, CACHED].into_iter().filter(|how| row.variant.contains(how)).collect()
}

/// Whether two rows time the same thing: a chosen variant may be another one, a forced one may not.
fn same(a: &Row, b: &Row) -> bool {
    a.case == b.case && a.device == b.device && (a.chooser == "caller") == (b.chooser == "caller") && how(a) == how(b)
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::row;
    use super::*;

    fn timed(n: u64, ns: f64, half: f64) -> Row {
        let ours = Timing { ns_median: ns, ns_low: ns - half, ns_high: ns + half, ns_min: ns - half };
        Row { ours: Some(ours), ..row(n, None) }.derive()
    }

    #[test]
    fn only_what_exceeds_noise_and_tolerance_counts() {
        let old: Vec<Row> = (1..=5).map(|n| timed(n, 1000.0, 10.0)).collect();
        let new = [
            timed(1, 1100.0, 10.0),
            timed(2, 1040.0, 10.0),
            timed(3, 1100.0, 95.0),
            timed(4, 900.0, 10.0),
            timed(5, 1000.0, 10.0),
            timed(9, 1000.0, 10.0),
        ];
        let unserved = [Row { ours: None, ..row(7, Some(1.0)) }];
        assert_eq!(Moves::new(&unserved, &unserved, 5.0).in_both, 0);
        let moves = Moves::new(&old, &new, 5.0);
        assert_eq!((moves.in_both, moves.slower.len()), (5, 1), "{moves:?}");
        assert!(moves.slower[0].words().starts_with("+10.0%  1.0 us -> 1.1 us  tsm2r f64 1000 x 1 x 500"), "{moves:?}");
        assert!(moves.slower_within_tolerance[0].words().starts_with("+4.0%"), "{moves:?}");
        assert!(moves.faster[0].words().starts_with("-10.0%"), "{moves:?}");
        let text = moves.text();
        let counts = "5 in both, 2 within the noise, 1 faster, 1 slower, 1 slower by more than 5%, 0 vanished, 1 new";
        assert!(text.ends_with(counts) && text.contains("new:\n  tsm2r f64 1000 x 9 x 500\n"), "{text}");
        let Err(Fault::Check(why)) = moves.verdict() else { panic!("{text}") };
        assert_eq!(why, "1 case became slower by more than 5%");
        // What is new is no fault.
        assert!(Moves::new(&old, &new, 12.0).verdict().is_ok());
    }

    #[test]
    fn what_vanished_is_a_fault_with_a_name() {
        let old = [timed(1, 1000.0, 1.0), timed(2, 1000.0, 1.0), timed(4, 1000.0, 1.0)];
        let moves = Moves::new(&old, &old[..1], 5.0);
        assert!(moves.text().contains("vanished:\n  tsm2r f64 1000 x 2 x 500\n  tsm2r f64 1000 x 4 x 500\n"));
        let Err(Fault::Check(why)) = moves.verdict() else { panic!("{moves:?}") };
        assert_eq!(why, "2 cases vanished, the first: tsm2r f64 1000 x 2 x 500");
        // So is what is there, but no longer ours or no longer a measurement.
        let unserved = Row { ours: None, ..row(2, Some(1.0)) };
        let above = Row { variant: "x@above".into(), ..timed(2, 1.0, 0.0) };
        for lost in [unserved, above] {
            assert_eq!(Moves::new(&old[..2], &[old[0].clone(), lost], 5.0).vanished, ["tsm2r f64 1000 x 2 x 500"]);
        }
        let forced = Row { chooser: "caller".into(), variant: "dtsm2r_y".into(), ..timed(1, 1.0, 0.0) };
        let moves = Moves::new(&[old[0].clone(), forced], &old[..1], 5.0);
        assert_eq!(moves.vanished, ["tsm2r f64 1000 x 1 x 500 dtsm2r_y"]);
    }

    #[test]
    fn a_graph_that_is_no_longer_needed_is_no_fault() {
        let plain = timed(1, 1000.0, 1.0);
        let graph = Row { variant: format!("x{GRAPH}"), ..plain.clone() };
        let moves = Moves::new(&[plain.clone(), graph.clone()], std::slice::from_ref(&plain), 5.0);
        assert_eq!((moves.vanished.len(), moves.no_longer_in_a_graph.len()), (0, 1), "{moves:?}");
        assert!(moves.verdict().is_ok());
        // Without the case itself it is.
        let other = timed(2, 1000.0, 1.0);
        let moves = Moves::new(&[other.clone(), graph], &[other], 5.0);
        assert_eq!(moves.vanished, ["tsm2r f64 1000 x 1 x 500 @graph"]);
    }

    /// Nobody knows the noise of one time.
    #[test]
    fn what_was_timed_once_is_not_held_against_anything() {
        let once = |ns| Row { samples: 1, chooser: "caller".into(), ..timed(1, ns, 0.0) };
        let moves = Moves::new(&[once(1000.0)], &[once(2000.0)], 5.0);
        assert_eq!((moves.in_both, moves.timed_once, moves.slower.len()), (1, 1, 0));
        assert!(
            moves.text().ends_with(
                "1 in both, 0 within the noise, 0 faster, 0 slower, 0 slower by more than 5%, \
            0 vanished, 0 new, 1 timed once, which nothing is said of"
            ),
            "{}",
            moves.text()
        );
    }

    #[test]
    fn chosen_variants_may_change_and_forced_ones_may_not() {
        let chosen = timed(1, 1000.0, 1.0);
        let other = Row { variant: "another".into(), ..chosen.clone() };
        assert!(same(&chosen, &other));
        let forced = |row: &Row| Row { chooser: "caller".into(), ..row.clone() };
        assert!(!same(&forced(&chosen), &forced(&other)) && same(&forced(&chosen), &forced(&chosen)));
        assert!(!same(&chosen, &forced(&chosen)));
        let graph = Row { variant: "another@graph".into(), ..chosen.clone() };
        assert!(!same(&chosen, &graph) && same(&graph, &Row { variant: "x@graph".into(), ..graph.clone() }));
        let elsewhere = Row { device: "another".into(), ..chosen.clone() };
        assert!(!same(&chosen, &elsewhere));
    }
}
