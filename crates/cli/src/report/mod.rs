//! `lanky report`: results as one page that needs nothing else, its first figure alone, or tables in a page of text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use lanky::text::read_text;
use model::VARIANTS;

use crate::bench::result::{Results, Row};
use crate::error::Fault;
use crate::output::{refuse_to_replace, write};

pub mod axis;
mod bandwidth;
mod ceilings;
mod families;
mod page;
pub mod plot;
mod roofline;
mod speedup;
mod squares;
pub mod style;
mod tables;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Results of lanky bench; several are shown together. The ceilings of x.csv are those of x-ceilings.csv or of ceilings.csv
    /// beside it, if there are such files
    #[arg(value_name = "RESULTS.csv", required = true)]
    pub results: Vec<PathBuf>,
    /// Where the page goes ("-": standard output)
    #[arg(short, long, value_name = "PAGE.html", required_unless_present_any = ["svg", "into"])]
    pub output: Option<PathBuf>,
    /// Write the figure of bandwidth against n alone, of the most values of n; of results without one, that of squares
    #[arg(long, value_name = "FIGURE.svg")]
    pub svg: Option<PathBuf>,
    /// Renew the tables in a Markdown file, between its lines that say where they begin and end
    #[arg(long, value_name = "PAGE.md")]
    pub into: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Fault> {
    let beside = ceilings::beside_all(&args.results);
    let read: Vec<&Path> = args.results.iter().chain(&beside).map(PathBuf::as_path).collect();
    // The page that is renewed is read for that alone.
    let written: Vec<&Path> = [&args.svg, &args.into, &args.output].into_iter().filter_map(Option::as_deref).collect();
    refuse_to_replace(&read, &written)?;
    let Results { rows, ceilings } = ceilings::read(&args.results, &beside)?;
    if let Some(path) = &args.svg {
        let figure = bandwidth::main_figure(&rows).or_else(|| squares::main_figure(&rows));
        let none =
            || Fault::at(path, "no figure: no results for two values of n, all else being equal, nor two squares");
        write(path, &figure.ok_or_else(none)?.alone())?;
    }
    if let Some(path) = &args.into {
        let page = read_text(path).map_err(|error| Fault::file(path, &error))?;
        let none = || Fault::at(path, "no tables: no results for two values of n, all else being equal");
        let tables = tables::all(&rows).ok_or_else(none)?;
        write(path, &tables::renewed(&page, &tables).map_err(|reason| Fault::at(path, &reason))?)?;
    }
    match &args.output {
        Some(path) => write(path, &page::page(&rows, &ceilings)),
        None => Ok(()),
    }
}

/// Text as it may stand between tags and in attributes.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Not allowed in any form.
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// How many cases were computed by entries that there are no longer, and which; `None` if there are all of them. Results
/// are of the commit that they name, and the kernels may have changed since.
fn gone(rows: &[Row]) -> Option<String> {
    let is_there = |name: &str| name == "cpu" || VARIANTS.iter().any(|variant| variant.entry == name);
    let cases: Vec<&Row> = rows.iter().filter(|row| row.is_main()).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in cases.iter().filter(|row| !is_there(&row.variant)) {
        *counts.entry(row.variant.as_str()).or_default() += 1;
    }
    let (count, of): (usize, usize) = (counts.values().sum(), cases.len());
    let names: Vec<String> = counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let words =
        || format!("{count} of {of} cases were computed by entries that lanky no longer has: {}.", names.join(", "));
    (count > 0).then(words)
}

/// Flops by bytes.
fn intensity(row: &Row) -> f64 {
    row.flops / row.bytes
}

/// `4374`, `12.6`, `0.832`: three digits that say something, or all before the point.
pub fn short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(escaped("a<b & \"c\" 'd'>\u{1}\n"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;  ");
    }

    #[test]
    fn numbers_are_as_long_as_they_say_something() {
        assert_eq!([4374.4, 12.64, 1.0, 0.8319].map(short), ["4374", "12.6", "1.00", "0.832"]);
    }
}
