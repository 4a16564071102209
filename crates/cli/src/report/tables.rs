//! Tables in Markdown, for a page of text that has a place for them: what the model picks against n, every variant against
//! n, and all cases in a few numbers.

use std::collections::{BTreeMap, BTreeSet};

use model::VARIANTS;

use super::bandwidth::{self, Group};
use super::{families, gone, squares};
use crate::bench::result::Row;

/// The lines of a page between which the tables are; the first says by what they are renewed.
const BEGIN: &str = "<!-- begin: lanky report ";
const END: &str = "<!-- end: lanky report -->";

/// The page with these tables in their place.
///
/// # Errors
/// If it has no such place, or several.
pub fn renewed(page: &str, tables: &str) -> Result<String, String> {
    let places = |mark: &str| page.matches(mark).count();
    let counts = (places(BEGIN), places(END));
    let (Some(begin), Some(end), (1, 1)) = (page.find(BEGIN), page.find(END), counts) else {
        return Err(format!("the lines '{BEGIN}.. -->' and '{END}' must be there once each, but are {counts:?} times"));
    };
    let line_end = page[begin..].find('\n').map_or(page.len(), |line| begin + line + 1);
    if line_end > end {
        return Err(format!("'{END}' stands before the place begins"));
    }
    Ok(format!("{}\n{tables}\n{}", &page[..line_end], &page[end..]))
}

/// All tables that there are results for: of several families without TSM2R one each; else what widths have, or those of squares where
/// there is nothing else. `None` without a figure's worth of them.
pub fn all(rows: &[Row]) -> Option<String> {
    let families = || families::markdown(rows);
    if let Some(text) = rows.iter().all(|row| row.case.family != "tsm2r").then(families).flatten() {
        return Some(text);
    }
    let Some(main) = bandwidth::main_group(rows) else { return squares::markdown(rows) };
    let mut tables = vec![picks(rows, &main)];
    tables.extend(ladders(rows));
    tables.push(summary(rows));
    tables.extend(gone(rows).map(|words| in_markdown(&words) + "\n"));
    Some(tables.join("\n"))
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// `NVIDIA H200, driver 580.159.04; commits 8f1de2c, b317354-dirty; 2026-11-22 to 2026-11-25.`
pub fn origins(rows: &[&Row]) -> String {
    let mut names: [Vec<&str>; 4] = Default::default();
    for row in rows {
        for (of, name) in names.iter_mut().zip([row.device.as_str(), &row.driver, &row.commit, &row.date]) {
            if !name.is_empty() && !of.contains(&name) {
                of.push(name);
            }
        }
    }
    let [devices, drivers, commits, mut days] = names;
    days.sort_unstable();
    let days = match days.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        days => days.concat(),
    };
    let text =
        format!("{}, driver {}; commits {}; {days}.", devices.join(", "), drivers.join(", "), commits.join(", "));
    in_markdown(&text)
}

/// Names of results as Markdown shows them: nothing in them ends a cell or a line, or begins a tag.
fn in_markdown(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|");
    text.replace(char::is_control, " ")
}

pub fn line(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| format!(" {} |", in_markdown(&cell))).collect();
    format!("| {} |{cells}\n", in_markdown(first))
}

/// A header over numbers; its first cell is empty.
pub fn header(first: &str, cells: &[String]) -> String {
    line(first, cells.iter().cloned()) + "|---|" + &"---:|".repeat(cells.len()) + "\n"
}

/// `n = 1`, `2`, `4`
fn widths(numbers: &[u64]) -> Vec<String> {
    let name = |(place, n): (usize, &u64)| if place == 0 { format!("n = {n}") } else { n.to_string() };
    numbers.iter().enumerate().map(name).collect()
}

/// The rows of the main figure, and those of the other element types that are like them in all else.
fn picks(rows: &[Row], main: &Group<'_>) -> String {
    let of = main.rows()[0];
    let numbers: Vec<u64> = main.rows().iter().map(|row| row.case.n).collect();
    const DTYPES: [&str; 4] = ["f64", "f32", "c128", "c64"];
    let all: Vec<&Row> =
        DTYPES.iter().flat_map(|dtype| numbers.iter().filter_map(|n| main.alike_of(rows, dtype, *n))).collect();
    let mut text =
        format!("{} {}: what the model picked. {}\n\n", of.case.family, bandwidth::name_of_a(&of.case), origins(&all));
    text += &header("", &widths(&numbers));
    for dtype in DTYPES {
        let at = |n: &u64| main.alike_of(rows, dtype, *n);
        let name = |row: &Row| row.best.as_ref().map(|best| best.opponent.clone());
        let names: BTreeSet<String> = numbers.iter().filter_map(|n| name(at(n)?)).collect();
        let cells =
            |of: fn(&Row) -> Option<String>| numbers.iter().map(move |n| at(n).and_then(of).unwrap_or_default());
        if numbers.iter().any(|n| at(n).is_some()) {
            text += &line(&format!("{dtype}, % of the bound"), cells(|row| row.fraction().map(percent)));
        }
        if !names.is_empty() {
            let names = names.into_iter().collect::<Vec<_>>().join(" or ");
            let ratios = cells(|row| row.ratio().map(|ratio| format!("{ratio:.2}")));
            text += &line(&format!("{dtype}, time of {names} / ours"), ratios);
        }
    }
    text
}

/// What forced rows have in common, so that they differ in n and the variant alone: for each element type the kind with the
/// most values of n, and of those the largest.
fn ladders(rows: &[Row]) -> Vec<String> {
    let forced: Vec<&Row> = rows.iter().filter(|row| row.chooser == "caller" && !row.variant.contains('@')).collect();
    let mut tables = Vec::new();
    for dtype in ["f64", "f32", "c128", "c64"] {
        let of_type = || forced.iter().copied().filter(|row| row.case.dtype == dtype);
        let widths = |of: &Row| -> BTreeSet<u64> {
            of_type().filter(|row| bandwidth::alike(of, row)).map(|row| row.case.n).collect()
        };
        let weight = |row: &Row| (widths(row).len(), row.case.m.saturating_mul(row.case.k), row.case.beta == 0.0);
        if let Some(of) = of_type().max_by_key(|row| weight(row)) {
            let numbers: Vec<u64> = widths(of).into_iter().collect();
            let like: Vec<&Row> = of_type().filter(|row| bandwidth::alike(of, row)).collect();
            let chosen: Vec<&Row> = rows.iter().filter(|row| row.is_main() && bandwidth::alike(of, row)).collect();
            tables.push(ladder(of, &numbers, &like, &chosen));
        }
    }
    tables
}

/// A line a variant, by the fastest of its entries; then the model's picks and the fastest of the others.
fn ladder(of: &Row, numbers: &[u64], forced: &[&Row], chosen: &[&Row]) -> String {
    let all: Vec<&Row> = forced.iter().chain(chosen).copied().collect();
    let mut text = format!(
        "{} {}, {}: % of the bound by the fastest entry of each variant that was timed. {}\n\n",
        of.case.family,
        of.case.dtype,
        bandwidth::name_of_a(&of.case),
        origins(&all)
    );
    text += &header("", &widths(numbers));
    let most = |rows: &[&Row], n: u64, share: &dyn Fn(&Row) -> Option<f64>| -> String {
        let shares = rows.iter().filter(|row| row.case.n == n).filter_map(|row| share(row));
        shares.reduce(f64::max).map(percent).unwrap_or_default()
    };
    // In the table's order, the steps of the ladder.
    let mut names: Vec<&str> = Vec::new();
    for variant in VARIANTS.iter().filter(|variant| variant.dtype.name() == of.case.dtype) {
        if !names.contains(&variant.name) {
            names.push(variant.name);
        }
    }
    for name in names {
        let mine: Vec<&Row> = forced.iter().copied().filter(|row| variant_name(&row.variant) == name).collect();
        if !mine.is_empty() {
            let cell = |n: &u64| most(&mine, *n, &Row::fraction);
            text += &line(&format!("`{name}`"), numbers.iter().map(cell));
        }
    }
    if !chosen.is_empty() {
        text += &line("the model's pick", numbers.iter().map(|n| most(chosen, *n, &Row::fraction)));
    }
    let opponents: BTreeSet<&str> = all.iter().filter_map(|row| Some(row.best.as_ref()?.opponent.as_str())).collect();
    if !opponents.is_empty() {
        let name = opponents.into_iter().collect::<Vec<_>>().join(" or ");
        let theirs = |row: &Row| row.best.as_ref().map(|best| row.bound_ns / best.opponent_ns);
        text += &line(&format!("{name}, in the same process"), numbers.iter().map(|n| most(&all, *n, &theirs)));
    }
    text
}

/// The variant of an entry, also of one that there is no longer: behind the letter of its type, as names are made. What is
/// of none of ours is its own.
pub(super) fn variant_name(entry: &str) -> &str {
    let behind = |name: &str| entry.get(1..).and_then(|rest| rest.strip_prefix(name));
    let names = VARIANTS.iter().map(|variant| variant.name);
    // One variant's name may begin another's.
    let longest =
        names.filter(|name| behind(name).is_some_and(|rest| rest.starts_with('_'))).max_by_key(|name| name.len());
    longest.unwrap_or(entry)
}

/// All chosen rows by family, element type and layout of A.
fn summary(rows: &[Row]) -> String {
    let mut kinds: BTreeMap<(&str, &str, &str), Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_main()) {
        // As the product uses it: a transposed A by rows lies like one by columns.
        let by_rows = row.case.layout.to_string().starts_with('r') != row.case.transpose_a;
        let a = if by_rows { "rows" } else { "columns" };
        kinds.entry((row.case.family, row.case.dtype, a)).or_default().push(row);
    }
    let mut text =
        "All cases, by the layout of A; \"theirs\" is the fastest of the others in each case.\n\n".to_string();
    text += &header("", &COLUMNS.map(String::from));
    for ((family, dtype, a), rows) in kinds {
        text += &line(&format!("{family} {dtype}, A by {a}"), in_numbers(&rows).into_iter());
    }
    text
}

/// What [`in_numbers`] says.
pub(super) const COLUMNS: [&str; 6] = [
    "cases",
    "% of the bound, median",
    "least of it",
    "their time / ours, median",
    "least of it",
    "cases slower than theirs",
];

/// Some cases in a few numbers; empty where there are none.
pub(super) fn in_numbers(rows: &[&Row]) -> [String; 6] {
    let fractions: Vec<f64> = rows.iter().filter_map(|row| row.fraction()).collect();
    let ratios: Vec<f64> = rows.iter().filter_map(|row| row.ratio()).collect();
    let slower = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let two = |number: f64| format!("{number:.2}");
    let least = |numbers: &[f64]| numbers.iter().copied().reduce(f64::min);
    let cells = [
        Some(rows.len().to_string()),
        median(&fractions).map(percent),
        least(&fractions).map(percent),
        median(&ratios).map(two),
        least(&ratios).map(two),
        (!ratios.is_empty()).then(|| slower.to_string()),
    ];
    cells.map(Option::unwrap_or_default)
}

pub(super) fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::tests::row;
    use crate::bench::result::{Best, Timing};

    fn forced(n: u64, variant: &str, ns: f64) -> Row {
        let ours = Timing { ns_median: ns, ns_low: ns, ns_high: ns, ns_min: ns };
        Row { chooser: "caller".into(), variant: variant.into(), ours: Some(ours), ..row(n, Some(1600.0)) }.derive()
    }

    #[test]
    fn numbers_are_those_of_the_rows() {
        let mut single = row(2, None);
        single.case.dtype = "f32";
        let rows = [row(4, Some(900.0)), row(2, Some(1100.0)), single, forced(2, "unknown", 1000.0)];
        let text = all(&rows).expect("tables");
        for line in [
            "tsm2r A 1000 x 500: what the model picked. a \"GPU\", &lt;b>, driver 580; commits abc; 2026-01-02.\n\n|  | n = 2 | 4 |\n|---|---:|---:|",
            "| f64, % of the bound | 80.0 | 80.0 |\n| f64, time of cublas / ours | 1.10 | 0.90 |",
            "| f32, % of the bound | 80.0 |  |\n",
            "| tsm2r f64, A by columns | 2 | 80.0 | 80.0 | 1.00 | 0.90 | 1 |",
            "| tsm2r f32, A by columns | 1 | 80.0 | 80.0 |  |  |  |",
        ] {
            assert!(text.contains(line), "{line}\nin\n{text}");
        }
        assert_eq!(all(&rows[..1]), None);
    }

    #[test]
    fn every_entry_is_of_its_variant() {
        for variant in VARIANTS {
            assert_eq!(variant_name(variant.entry), variant.name);
        }
        // An entry that was removed: its time is its variant's all the same.
        assert_eq!(variant_name("dtsm2r_shared_rowmajor_9x9_t9"), "tsm2r_shared_rowmajor");
        for other in ["", "v", "cpu", "tsm2r_inner", "dtsm2r_innermost_1x1", "\u{e9}tsm2r_inner_1"] {
            assert_eq!(variant_name(other), other);
        }
    }

    #[test]
    fn entries_that_are_gone_are_said() {
        let entry = VARIANTS[0].entry;
        let by = |n: u64, variant: &str| Row { variant: variant.into(), ..row(n, None) };
        let there = [by(2, entry), by(4, "cpu")];
        assert!(!all(&there).expect("tables").contains("no longer"));
        let rows = [by(2, entry), by(4, "dtsm2r_mma_9x9"), by(8, "dtsm2r_mma_9x9"), by(16, "x"), forced(16, "y", 1.0)];
        let words = "3 of 4 cases were computed by entries that lanky no longer has: dtsm2r_mma_9x9 (2), x (1).\n";
        assert!(all(&rows).expect("tables").ends_with(words), "{:?}", all(&rows));
    }

    #[test]
    fn ladders_have_the_best_entry_of_each_variant() {
        let entries: Vec<&str> =
            VARIANTS.iter().filter(|v| v.name == "tsm2r_prefetch").map(|v| v.entry).take(2).collect();
        assert!(ladders(&[row(2, None)]).is_empty());
        let graph = forced(2, "dtsm2r_inner@graph", 10.0);
        let rows = [
            forced(2, entries[0], 1000.0),
            forced(2, entries[1], 2000.0),
            forced(4, entries[0], 1600.0),
            graph,
            row(2, None),
        ];
        let found = ladders(&rows);
        let [table] = found.as_slice() else { panic!("{found:?}") };
        assert!(table.contains("| `tsm2r_prefetch` | 80.0 | 50.0 |"), "{table}");
        assert!(table.contains("| the model's pick | 80.0 |  |"), "{table}");
        assert!(table.contains("| cublas, in the same process | 50.0 | 50.0 |"), "{table}");
        assert_eq!(table.matches('`').count(), 2, "{table}");
    }

    #[test]
    fn names_stay_in_their_cells() {
        let mut named = row(4, Some(900.0));
        named.best = named.best.map(|best| Best { opponent: "a|b<c&\n".into(), ..best });
        let text = all(&[named, row(2, None)]).expect("tables");
        assert!(text.contains("| f64, time of a\\|b&lt;c&amp;  / ours |  | 0.90 |\n"), "{text}");
        let gone = Row { variant: "x|<y".into(), ..row(8, None) };
        let text = all(&[gone, row(2, None)]).expect("tables");
        assert!(text.contains(", x\\|&lt;y (1)"), "{text}");
    }

    #[test]
    fn a_page_is_renewed_in_its_place_alone() {
        let page = |inner: &str| format!("before\n{BEGIN}x.csv -->\n{inner}{END}\nafter\n");
        let renewed_once = renewed(&page("old\n"), "| 1 |\n").expect("a place");
        assert_eq!(renewed_once, page("\n| 1 |\n\n"));
        assert_eq!(renewed(&renewed_once, "| 1 |\n"), Ok(renewed_once.clone()));
        for wrong in ["", BEGIN, &page(&page("")), &format!("{END}\n{BEGIN}-->\n")] {
            assert!(renewed(wrong, "").is_err(), "{wrong}");
        }
    }
}
