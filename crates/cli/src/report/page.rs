//! The page: figures, then every number.

use model::results::FIELDS;

use super::bandwidth::{self, Group};
use super::plot::Plot;
use super::{ceilings, escaped, gone, roofline, speedup, squares, style};
use crate::bench::ceiling::Ceiling;
use crate::bench::result::Row;

/// More figures or bars than this are folded away.
const SHOWN: usize = 6;
const BARS_SHOWN: usize = 60;

/// Columns that are words and stand on the left.
const WORDS: [&str; 11] =
    ["family", "dtype", "layout", "op_a", "op_b", "device", "variant", "chooser", "opponent", "commit", "date"];

/// The whole page; well-formed XML but for its first line, so that it can be tested.
pub fn page(rows: &[Row], ceilings: &[Ceiling]) -> String {
    let mut body = heading(rows) + &stated(rows, ceilings);
    body += &gone(rows).map_or(String::new(), |words| format!("<p class=\"soft\">{}</p>\n", escaped(&words)));
    let groups = Group::all(rows);
    if let Some(figure) = bandwidth::main_figure(rows) {
        body += "<h2>Bandwidth against n</h2>\n<p class=\"soft\">Bytes of A, B and C by the time of the product. The dashed \
                 line is the bound: what this device's measured ceilings of reading, writing and multiplying allow.</p>\n";
        body += &format!("<div class=\"main\">\n{}</div>\n", figure.inline());
        let figures: Vec<Plot> = groups.iter().map(Group::figure).collect();
        body += &gallery("All of them", &figures);
    }
    body += &squares::section(rows).unwrap_or_default();
    let roofs = roofline::figures(rows, ceilings);
    if !roofs.is_empty() {
        body += "<h2>Roofline</h2>\n<p class=\"soft\">A mark a case, and a dash at what bounds it.</p>\n";
        body += &format!("<div class=\"figures\">\n{}</div>\n", roofs.iter().map(Plot::inline).collect::<String>());
    }
    body += &speedups(rows);
    body += "<h2>Every number</h2>\n";
    body += &numbers(rows);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escaped(&title(rows)),
        style::PAGE
    )
}

fn title(rows: &[Row]) -> String {
    format!("lanky on {}", distinct(rows, |row| &row.device).join(", "))
}

/// Different values, in order of their first places; those that are empty left out.
fn distinct<'r>(rows: &'r [Row], of: impl Fn(&'r Row) -> &'r str) -> Vec<&'r str> {
    let mut values = Vec::new();
    for value in rows.iter().map(of).filter(|value| !value.is_empty()) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn heading(rows: &[Row]) -> String {
    let mut facts = vec![format!("{} rows", rows.len())];
    for (name, values) in [
        ("driver", distinct(rows, |row| &row.driver)),
        ("commit", distinct(rows, |row| &row.commit)),
        ("measured", distinct(rows, |row| &row.date)),
    ] {
        if !values.is_empty() {
            facts.push(format!("{name} {}", values.join(", ")));
        }
    }
    format!("<h1>{}</h1>\n<p class=\"soft\">{}</p>\n", escaped(&title(rows)), escaped(&facts.join(" · ")))
}

/// The ceilings of every device of the rows, in words.
fn stated(rows: &[Row], ceilings: &[Ceiling]) -> String {
    let devices = distinct(rows, |row| &row.device);
    let of = |device: &&str| {
        let of_it: Vec<&Ceiling> = ceilings.iter().filter(|ceiling| ceiling.device == *device).collect();
        let first = of_it.first()?;
        let name = if devices.len() > 1 { format!(" of {device}") } else { String::new() };
        let words = format!("Ceilings{name}, measured {}: {}.", first.date, ceilings::words(&of_it));
        Some(format!("<p class=\"soft\">{}</p>\n", escaped(&words)))
    };
    devices.iter().filter_map(of).collect()
}

/// A grid of figures, folded away if there are many.
fn gallery(summary: &str, figures: &[Plot]) -> String {
    if figures.len() < 2 {
        return String::new();
    }
    let grid = format!("<div class=\"figures\">\n{}</div>\n", figures.iter().map(Plot::inline).collect::<String>());
    folded(figures.len() > SHOWN, &format!("{summary}: {} figures", figures.len()), &grid)
}

fn folded(fold: bool, summary: &str, content: &str) -> String {
    if fold {
        format!("<details>\n<summary>{}</summary>\n{content}</details>\n", escaped(summary))
    } else {
        content.into()
    }
}

/// Bars for the rows with an opponent, by family and element type.
fn speedups(rows: &[Row]) -> String {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_main() && row.best.is_some()) {
        let kind = (row.case.family, row.case.dtype);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        return String::new();
    }
    let mut text =
        "<h2>Against the fastest of the others</h2>\n<p class=\"soft\">Their time by ours: a longer bar than \
                    \"equal\" is a faster lanky.</p>\n"
            .to_string();
    let ratios = rows.iter().filter(|row| row.is_main()).filter_map(Row::ratio);
    let most = ratios.fold(0.0, f64::max);
    for (family, dtype) in kinds {
        let of_kind = |row: &&Row| row.is_main() && (row.case.family, row.case.dtype) == (family, dtype);
        let rows: Vec<&Row> = rows.iter().filter(of_kind).collect();
        let title = format!("{family} {dtype}");
        let bars = speedup::bars(&title, &rows, most).unwrap_or_default();
        text += &folded(rows.len() > BARS_SHOWN, &format!("{title}: {} cases", rows.len()), &bars);
    }
    text
}

/// The rows of the cases; the others, of which there may be many a case, are folded away behind them.
fn numbers(rows: &[Row]) -> String {
    let (cases, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.is_of_the_case());
    let mut text = if cases.is_empty() { String::new() } else { table(&cases) };
    if !others.is_empty() {
        let summary = format!("Forced variants, graphs and cached data: {} rows", others.len());
        text += &folded(!cases.is_empty(), &summary, &table(&others));
    }
    text
}

/// All columns that differ somewhere; those that do not are said once.
fn table(rows: &[&Row]) -> String {
    let all: Vec<[String; FIELDS.len()]> = rows.iter().map(|row| row.fields()).collect();
    let differs = |column: usize| all.iter().any(|fields| fields[column] != all[0][column]);
    let columns: Vec<usize> = (0..FIELDS.len()).filter(|&column| differs(column) || all.len() < 2).collect();
    let constant: Vec<String> = (0..FIELDS.len())
        .filter(|column| !columns.contains(column) && !all[0][*column].is_empty())
        .map(|column| format!("{} {}", FIELDS[column], all[0][column]))
        .collect();
    let mut text = String::new();
    if !constant.is_empty() {
        text += &format!("<p class=\"soft\">The same in all rows: {}.</p>\n", escaped(&constant.join(", ")));
    }
    let class = |column: usize| if WORDS.contains(&FIELDS[column]) { " class=\"word\"" } else { "" };
    let cells = |tag: &str, of: &dyn Fn(usize) -> String| -> String {
        columns.iter().map(|&column| format!("<{tag}{}>{}</{tag}>", class(column), escaped(&of(column)))).collect()
    };
    text += &format!(
        "<div class=\"table\">\n<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        cells("th", &|c| FIELDS[c].into())
    );
    for fields in &all {
        text += &format!("<tr>{}</tr>\n", cells("td", &|column| fields[column].clone()));
    }
    text + "</tbody>\n</table>\n</div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ceiling::tests::ceiling;
    use crate::bench::result::tests::row;

    #[test]
    fn what_is_the_same_everywhere_is_said_once() {
        let rows = [row(2, Some(1100.0)), row(4, None)];
        let table = table(&rows.iter().collect::<Vec<_>>());
        assert!(table.contains("The same in all rows: family tsm2r, dtype f64,"));
        assert!(table.contains("<th>n</th>") && !table.contains("<th>m</th>"));
        assert!(table.contains("<td>2</td>") && table.contains("<td>1100.0</td>") && table.contains("<td></td>"));
    }

    #[test]
    fn cases_come_before_the_many_others() {
        let forced = Row { chooser: "caller".into(), variant: "forced".into(), ..row(4, None) };
        let graph = Row { variant: "x@graph".into(), ..row(4, None) };
        let page = |rows: &[Row]| page(rows, &[]);
        let both = page(&[forced.clone(), row(2, None), graph, row(8, None)]);
        let fold = both.find("<summary>Forced variants, graphs and cached data: 2 rows</summary>").expect("a fold");
        let place = |text: &str| both.find(text).expect("a cell");
        assert!(place("<td>2</td>") < fold && place("<td>8</td>") < fold && both.matches("<table>").count() == 2);
        assert!(place("<td class=\"word\">forced</td>") > fold && place("<td class=\"word\">x@graph</td>") > fold);
        // Alone they are not folded.
        let alone = page(&[forced]);
        assert!(alone.contains(">forced<") && !alone.contains("<details>") && alone.matches("<table>").count() == 1);
    }

    #[test]
    fn no_rows_are_a_page_as_well() {
        assert!(page(&[], &[]).contains("0 rows"));
    }

    #[test]
    fn entries_that_are_gone_are_said() {
        let of = |variant: &str| page(&[Row { variant: variant.into(), ..row(2, None) }], &[]);
        assert!(
            of("<x>").contains("1 of 1 cases were computed by entries that lanky no longer has: &lt;x&gt; (1).</p>")
        );
        assert!(!of("cpu").contains("no longer has"));
    }

    #[test]
    fn the_ceilings_are_stated() {
        let of_it = [ceiling("read", "f64", 4.0), ceiling("mma", "f64", 50.0)];
        let other = Ceiling { device: "another".into(), ..ceiling("write", "f64", 9.0) };
        let page = page(&[row(2, None)], &[&of_it[..], &[other]].concat());
        let words = "Ceilings, measured 2026-01-02: read 4.00 GB/s, f64 mma 50.0 GFLOP/s.";
        assert!(page.contains(words) && !page.contains("9.00 GB/s"), "{page}");
    }
}
