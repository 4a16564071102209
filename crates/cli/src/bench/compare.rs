//! What moved between two results files: by more than the noise, and by more than is tolerated.

use std::path::Path;

use super::result::{self, Row, Timing};
use crate::error::Fault;
use crate::say;

/// Prints what moved.
///
/// # Errors
/// [`Fault::Check`] if anything became slower by more than `tolerance` percent; [`Fault::Input`] for files that are not
/// results, or have no case in common.
pub fn run(old: &Path, new: &Path, tolerance: f64) -> Result<(), Fault> {
    let moves = Moves::new(&result::read(old)?, &result::read(new)?, tolerance);
    if moves.common == 0 {
        return Err(Fault::Input(format!("{} and {} have no case in common", old.display(), new.display())));
    }
    say::print(&moves.text(tolerance))?;
    match moves.slower.len() {
        0 => Ok(()),
        1 => Err(Fault::Check(format!("1 case became slower by more than {tolerance}%"))),
        count => Err(Fault::Check(format!("{count} cases became slower by more than {tolerance}%"))),
    }
}

/// What moved by more than the noise, in words.
#[derive(Debug, Default)]
struct Moves {
    common: usize,
    /// Beyond the tolerance.
    slower: Vec<String>,
    /// Within it.
    bit_slower: Vec<String>,
    faster: Vec<String>,
    only_old: usize,
    only_new: usize,
}

impl Moves {
    fn new(old: &[Row], new: &[Row], tolerance: f64) -> Self {
        let mut moves = Self::default();
        // What this project does not compute cannot become slower.
        let timed = |rows: &'_ [Row]| -> Vec<(Row, Timing)> {
            rows.iter().filter_map(|row| Some((row.clone(), row.ours?))).collect()
        };
        let (old, new) = (timed(old), timed(new));
        for (row, after) in &new {
            let Some((from, before)) = old.iter().find(|(from, _)| same(from, row)) else {
                moves.only_new += 1;
                continue;
            };
            moves.common += 1;
            let percent = 100.0 * (after.ns_median / before.ns_median - 1.0);
            let words = words((from, before), (row, after), percent);
            if after.ns_low > before.ns_high {
                if percent > tolerance { moves.slower.push(words) } else { moves.bit_slower.push(words) }
            } else if after.ns_high < before.ns_low {
                moves.faster.push(words);
            }
        }
        moves.only_old = old.iter().filter(|(from, _)| !new.iter().any(|(row, _)| same(from, row))).count();
        moves
    }

    fn text(&self, tolerance: f64) -> String {
        let mut lines = Vec::new();
        let slower = format!("slower by more than {tolerance}%");
        for (title, moved) in [(slower.as_str(), &self.slower), ("slower", &self.bit_slower), ("faster", &self.faster)]
        {
            if !moved.is_empty() {
                lines.push(format!("{title}:"));
                lines.extend(moved.iter().map(|words| format!("  {words}")));
            }
        }
        let still = self.common - self.slower.len() - self.bit_slower.len() - self.faster.len();
        let moved = [
            (self.common, "in both"),
            (still, "within the noise"),
            (self.faster.len(), "faster"),
            (self.bit_slower.len(), "slower"),
            (self.slower.len(), slower.as_str()),
            (self.only_old, "only in the old"),
            (self.only_new, "only in the new"),
        ];
        lines.push(moved.iter().map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", "));
        lines.join("\n")
    }
}

/// Whether two rows time the same thing: a chosen variant may be another one, a forced one may not.
fn same(a: &Row, b: &Row) -> bool {
    let how = |row: &Row| {
        if row.chooser == "caller" {
            row.variant.clone()
        } else {
            row.variant.split_once('@').map_or(String::new(), |(_, how)| how.into())
        }
    };
    a.case == b.case && a.device == b.device && (a.chooser == "caller") == (b.chooser == "caller") && how(a) == how(b)
}

fn words((from, before): (&Row, &Timing), (row, after): (&Row, &Timing), percent: f64) -> String {
    let variant =
        if from.variant == row.variant { row.variant.clone() } else { format!("{} -> {}", from.variant, row.variant) };
    let (from, to) = (say::time(before.ns_median / 1e9), say::time(after.ns_median / 1e9));
    format!("{percent:+.1}%  {from} -> {to}  {}  {variant}", row.case.name())
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::row;
    use super::*;

    fn timed(n: u64, ns: f64, half: f64) -> Row {
        let ours = Timing { ns_median: ns, ns_low: ns - half, ns_high: ns + half, ns_min: ns - half };
        Row { ours: Some(ours), ..row(n, None) }
    }

    #[test]
    fn only_what_exceeds_noise_and_tolerance_counts() {
        let old: Vec<Row> = (1..=6).map(|n| timed(n, 1000.0, 10.0)).collect();
        let new = [
            timed(1, 1100.0, 10.0),
            timed(2, 1040.0, 10.0),
            timed(3, 1100.0, 95.0),
            timed(4, 900.0, 10.0),
            timed(5, 1000.0, 10.0),
            timed(9, 1000.0, 10.0),
        ];
        let unserved = [Row { ours: None, ..row(7, Some(1.0)) }];
        assert_eq!(Moves::new(&unserved, &unserved, 5.0).common, 0);
        let moves = Moves::new(&old, &new, 5.0);
        assert_eq!((moves.common, moves.only_old, moves.only_new), (5, 1, 1));
        assert_eq!(moves.slower.len(), 1, "{moves:?}");
        assert!(moves.slower[0].starts_with("+10.0%  1.0 us -> 1.1 us  tsm2r f64 1000 x 1 x 500"), "{moves:?}");
        assert!(moves.bit_slower[0].starts_with("+4.0%") && moves.faster[0].starts_with("-10.0%"), "{moves:?}");
        let text = moves.text(5.0);
        assert!(text.ends_with(
            "5 in both, 2 within the noise, 1 faster, 1 slower, 1 slower by more than 5%, 1 only in the old, 1 only in the new"
        ));
        assert!(Moves::new(&old, &new, 12.0).slower.is_empty());
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
