//! Tables of several families: a line for each element type and range of widths.
//!
//! What is skinny has a width: of m, n and k the one in the middle, which is the larger side of what is small. A vector has none.

use std::collections::BTreeMap;

use super::tables::{COLUMNS, header, in_numbers, line, origins};
use crate::bench::result::Row;

/// Below that a time is mostly what a launch takes: such cases have a line of their own.
const SHORT_NS: f64 = 50e3;
/// The last width of each range but the last.
const WIDTHS: [u64; 7] = [1, 4, 8, 16, 32, 48, 64];

/// A table for each family; `None` if there are not several.
pub fn markdown(rows: &[Row]) -> Option<String> {
    let mut families: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_main()) {
        match families.iter_mut().find(|(family, _)| *family == row.case.family) {
            Some((_, of)) => of.push(row),
            None => families.push((row.case.family, vec![row])),
        }
    }
    let tables: Vec<String> = families.iter().map(|(family, rows)| table(family, rows)).collect();
    (tables.len() > 1).then(|| tables.join("\n"))
}

fn table(family: &str, rows: &[&Row]) -> String {
    let mut text = format!("### {family}\n\n{}\n\n", origins(rows));
    text += &header("", &COLUMNS.map(String::from));
    for dtype in ["f64", "f32", "c128", "c64"] {
        let mut ranges: BTreeMap<Range, Vec<&Row>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.case.dtype == dtype) {
            ranges.entry(Range::of(row)).or_default().push(row);
        }
        for (range, rows) in ranges {
            text += &line(&format!("{dtype}, {}", range.name()), in_numbers(&rows).into_iter());
        }
    }
    text
}

/// Which cases share a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Range {
    /// Widths from the one to the other.
    Widths(u64, Option<u64>),
    /// Of any shape, of a bound from [`SHORT_NS`] on.
    Long,
    /// Of any width, of a bound below that.
    Short,
}

impl Range {
    fn of(row: &Row) -> Self {
        if row.bound_ns < SHORT_NS {
            return Range::Short;
        }
        if row.case.family == "gemv" {
            return Range::Long;
        }
        let mut sides = [row.case.m, row.case.n, row.case.k];
        sides.sort_unstable();
        let at = WIDTHS.iter().position(|&last| sides[1] <= last).unwrap_or(WIDTHS.len());
        Range::Widths(at.checked_sub(1).map_or(1, |before| WIDTHS[before] + 1), WIDTHS.get(at).copied())
    }

    fn name(self) -> String {
        match self {
            Range::Widths(first, Some(last)) if first == last => format!("width {first}"),
            Range::Widths(first, Some(last)) => format!("{first} to {last}"),
            Range::Widths(first, None) => format!("{first} and more"),
            Range::Long => "bound of 50 us and more".to_string(),
            Range::Short => "bound below 50 us".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::tests::row;

    fn of(family: &'static str, sides: (u64, u64, u64), theirs: Option<f64>) -> Row {
        let mut row = row(2, theirs);
        row.case.family = family;
        (row.case.m, row.case.n, row.case.k) = sides;
        row.bound_ns *= 1000.0;
        row
    }

    #[test]
    fn one_family_has_other_tables() {
        assert_eq!(markdown(&[of("tsmm", (1000, 4, 3), None), of("tsmm", (1000, 2, 2), None)]), None);
        assert_eq!(markdown(&[]), None);
    }

    #[test]
    fn each_width_is_in_its_line() {
        let mut short = of("tsmm", (1000, 4, 3), Some(500.0));
        short.bound_ns = SHORT_NS - 1.0;
        let mut rows = vec![short, of("gemv", (1000, 1, 300), None)];
        rows.extend([1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 48, 49, 64, 65].map(|n| of("tsmm", (1000, n, 1), Some(900.0))));
        let text = markdown(&rows).expect("two families");
        assert!(
            text.starts_with("### tsmm\n\na \"GPU\", &lt;b>, driver 580; commits abc; 2026-01-02.\n\n|  | cases |"),
            "{text}"
        );
        for (name, count) in [
            ("width 1", 1),
            ("2 to 4", 2),
            ("5 to 8", 2),
            ("9 to 16", 2),
            ("17 to 32", 2),
            ("33 to 48", 2),
            ("49 to 64", 2),
            ("65 and more", 1),
            ("bound below 50 us", 1),
            ("bound of 50 us and more", 1),
        ] {
            assert!(text.contains(&format!("| f64, {name} | {count} |")), "{name}: {text}");
        }
        let slower = text.lines().find(|line| line.starts_with("| f64, 49 to 64 |")).expect("a line");
        assert!(slower.ends_with("| 0.90 | 0.90 | 2 |"), "{slower}");
    }
}
