//! Squares: arithmetic against the side, and what a side costs that is one off a multiple of the tiles.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::plot::{Plot, Who};
use super::tables::{self, median, variant_name};
use super::{escaped, short};
use crate::bench::case::Case;
use crate::bench::result::Row;

/// Sides that are compared with those beside them are multiples of this, the smallest tile's side.
const TILE: u64 = 8;

/// GFLOP/s by side.
type Rates = BTreeMap<u64, f64>;

/// Packed products of two squares that differ in their side alone.
struct Squares<'r> {
    of: &'r Row,
    rows: Vec<&'r Row>,
}

/// What a side of one less and of one more loses against a multiple of the tiles, as shares of its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge {
    side: u64,
    less: f64,
    more: f64,
}

/// Figures and tables of all squares; `None` if there are no two of one kind.
pub fn section(rows: &[Row]) -> Option<String> {
    let all: Vec<Squares<'_>> = Squares::all(rows).into_iter().filter(|squares| squares.ours().len() > 1).collect();
    if all.is_empty() {
        return None;
    }
    let mut text = "<h2>Squares</h2>\n<p class=\"soft\">m = n = k. The dashed line is the bound.</p>\n".to_string();
    text += "<div class=\"figures\">\n";
    all.iter().for_each(|squares| text += &squares.figure().inline());
    text += "</div>\n";
    all.iter().for_each(|squares| text += &squares.tables());
    Some(text)
}

/// The figure of the squares with the most sides, of f64 where there are as many of others.
pub fn main_figure(rows: &[Row]) -> Option<Plot> {
    let all = Squares::all(rows).into_iter().filter(|squares| squares.ours().len() > 1);
    all.max_by_key(|squares| (squares.ours().len(), squares.of.case.dtype == "f64")).map(|squares| squares.figure())
}

/// Tables of the squares with as many sides as any: the powers of two, and what sides beside multiples of the tiles cost.
pub fn markdown(rows: &[Row]) -> Option<String> {
    let all = Squares::all(rows);
    let most = all.iter().map(|squares| squares.ours().len()).max().filter(|most| *most > 1)?;
    let texts = all.iter().filter(|squares| squares.ours().len() == most).map(Squares::markdown);
    Some(texts.collect::<Vec<String>>().join("\n"))
}

impl<'r> Squares<'r> {
    fn all(rows: &'r [Row]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for row in rows.iter().filter(|row| is_square(&row.case) && !row.is_error() && !row.variant.contains('@')) {
            match all.iter_mut().find(|squares| alike(squares.of, row)) {
                Some(squares) => squares.rows.push(row),
                None => all.push(Self { of: row, rows: vec![row] }),
            }
        }
        all
    }

    /// The fastest of each side, of the rows that count and by the time that counts.
    fn rates(&self, counts: impl Fn(&Row) -> bool, ns: impl Fn(&Row) -> Option<f64>) -> Rates {
        let mut rates = Rates::new();
        for row in self.rows.iter().filter(|row| counts(row)) {
            if let Some(ns) = ns(row) {
                let rate = rates.entry(row.case.n).or_insert(0.0_f64);
                *rate = rate.max(row.flops / ns);
            }
        }
        rates
    }

    fn ours(&self) -> Rates {
        self.rates(Row::is_main, Row::ns_median)
    }

    /// In the process of the model's picks, which they are compared with, where these are there: forced rows may be of another run.
    fn theirs(&self) -> Rates {
        let has_picks = self.rows.iter().any(|row| row.is_main());
        self.rates(|row| row.is_main() || !has_picks, |row| row.best.as_ref().map(|best| best.opponent_ns))
    }

    /// The model's picks, each variant that was forced, and the fastest of the others.
    fn contestants(&self) -> Vec<(String, Rates)> {
        let mut forced: Vec<&str> = Vec::new();
        for row in self.rows.iter().filter(|row| row.chooser == "caller") {
            if !forced.contains(&variant_name(&row.variant)) {
                forced.push(variant_name(&row.variant));
            }
        }
        let by_name = |name: &str| {
            self.rates(|row| row.chooser == "caller" && variant_name(&row.variant) == name, Row::ns_median)
        };
        let mut all = vec![("the model's pick".to_string(), self.ours())];
        all.extend(forced.into_iter().map(|name| (name.to_string(), by_name(name))));
        all.push(("the fastest of the others".to_string(), self.theirs()));
        all.retain(|(_, rates)| !rates.is_empty());
        all
    }

    /// `gemm f64, squares tn`
    fn title(&self) -> String {
        let case = &self.of.case;
        format!("{} {}, squares{}, {}", case.family, case.dtype, case.unusual(), self.of.device)
    }

    fn figure(&self) -> Plot {
        let bound = self.rates(|_| true, |row| Some(row.bound_ns));
        let (ours, theirs) = (self.ours(), self.theirs());
        let sides: Vec<f64> = ours.keys().map(|side| *side as f64).collect();
        let most =
            [&bound, &ours, &theirs].into_iter().flat_map(Rates::values).fold(0.0_f64, |most, rate| most.max(*rate));
        let mut plot = Plot::new(&self.title(), Axis::of_numbers("m = n = k", &sides), Axis::linear("GFLOP/s", most));
        let mut through = |who: Who, name: &str, rates: &Rates| {
            let points: Vec<(f64, f64)> = rates.iter().map(|(side, rate)| (*side as f64, *rate)).collect();
            if !points.is_empty() {
                plot.name(who, name);
                plot.line(who, &points);
            }
        };
        through(Who::Bound, "the bound", &bound);
        through(Who::Theirs, "the fastest of the others", &theirs);
        through(Who::Ours, "lanky", &ours);
        for (side, rate) in &ours {
            plot.mark(Who::Ours, (*side as f64, *rate), &format!("lanky, {side}: {} GFLOP/s", short(*rate)));
        }
        plot
    }

    /// Each contestant with its rates, and what sides beside multiples of the tiles cost it; of those that have such sides.
    fn with_edges(&self) -> Vec<(String, Rates, Vec<Edge>)> {
        let all = self.contestants().into_iter().map(|(name, rates)| (name, edges(&rates), rates));
        all.filter(|(_, edges, _)| !edges.is_empty()).map(|(name, edges, rates)| (name, rates, edges)).collect()
    }

    /// For a page of text: GFLOP/s of each contestant at powers of two, and the medians and worst of the edges.
    fn markdown(&self) -> String {
        let (contestants, ours, theirs) = (self.contestants(), self.ours(), self.theirs());
        let sides: Vec<u64> = ours.keys().copied().filter(|side| side.is_power_of_two()).collect();
        let names: Vec<String> = sides.iter().map(u64::to_string).collect();
        let case = &self.of.case;
        let named = format!("{} {}{}, m = n = k", case.family, case.dtype, case.unusual());
        let mut text = format!("{named}: GFLOP/s. {}\n\n", tables::origins(&[self.of]));
        text += &tables::header("", &names);
        for (name, rates) in &contestants {
            let cell = |side: &u64| rates.get(side).map(|rate| short(*rate)).unwrap_or_default();
            text += &tables::line(name, sides.iter().map(cell));
        }
        let ratio = |side: &u64| Some(format!("{:.2}", ours.get(side)? / theirs.get(side)?));
        if !theirs.is_empty() {
            text += &tables::line("the pick by the others", sides.iter().map(|side| ratio(side).unwrap_or_default()));
        }
        let with = self.with_edges();
        if with.is_empty() {
            return text;
        }
        text += &format!("\nWhat a side one beside N loses, a multiple of {TILE}, in percent of N's GFLOP/s:\n\n");
        text += &tables::header(EDGE_HEADER[0], &EDGE_HEADER.map(String::from)[1..]);
        for contestant in &with {
            let cells = edge_cells(contestant);
            text += &tables::line(&cells[0], cells[1..].iter().cloned());
        }
        text
    }

    /// What sides beside multiples of the tiles cost: the median and the worst of each contestant, and each side of the
    /// picks.
    fn tables(&self) -> String {
        let with = self.with_edges();
        let Some((_, ours, each)) = with.first() else { return String::new() };
        let title = escaped(&self.title());
        let mut text = format!(
            "<p class=\"soft\">{title}: what GFLOP/s a side one beside N loses, a multiple of {TILE}, in percent of N's.</p>\n"
        );
        text += &table(&EDGE_HEADER, with.iter().map(edge_cells));
        let rate = |side: u64| ours.get(&side).map(|rate| short(*rate)).unwrap_or_default();
        let each_side = |edge: &Edge| {
            let rates = [edge.side - 1, edge.side, edge.side + 1].map(rate);
            [vec![edge.side.to_string()], rates.to_vec(), vec![percent(edge.less), percent(edge.more)]].concat()
        };
        let header = ["N", "GFLOP/s at N - 1", "at N", "at N + 1", "N - 1 loses", "N + 1 loses"];
        let rows = table(&header, each.iter().map(each_side));
        text + &format!("<details>\n<summary>Each side: {} of them</summary>\n{rows}</details>\n", each.len())
    }
}

/// Over [`edge_cells`].
const EDGE_HEADER: [&str; 6] = ["", "sides N", "N - 1: median loss", "worst", "N + 1: median loss", "worst"];

/// The median and the worst of a contestant's edges.
fn edge_cells((name, _, edges): &(String, Rates, Vec<Edge>)) -> Vec<String> {
    let of = |of: fn(&Edge) -> f64| {
        let losses: Vec<f64> = edges.iter().map(of).collect();
        let worst = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        [median(&losses).map(percent).unwrap_or_default(), percent(worst)]
    };
    let (less, more) = (of(|edge| edge.less), of(|edge| edge.more));
    [vec![name.clone(), edges.len().to_string()], less.to_vec(), more.to_vec()].concat()
}

fn is_square(case: &Case) -> bool {
    case.m == case.n && case.n == case.k && case.batch == 1 && *case == case.clone().packed()
}

fn alike(a: &Row, b: &Row) -> bool {
    let kind = |case: &Case| (case.dtype, case.layout, case.transpose_a, case.transpose_b, case.beta.to_bits());
    kind(&a.case) == kind(&b.case) && a.device == b.device
}

/// Of each multiple of the tiles with both sides beside it.
fn edges(rates: &Rates) -> Vec<Edge> {
    let of = |(&side, &rate): (&u64, &f64)| {
        let loss = |beside: u64| Some(1.0 - rates.get(&beside)? / rate);
        (side % TILE == 0).then_some(())?;
        Some(Edge { side, less: loss(side.checked_sub(1)?)?, more: loss(side + 1)? })
    };
    rates.iter().filter_map(of).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |tag: &str, cells: &mut dyn Iterator<Item = String>| -> String {
        cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(&cell))).collect()
    };
    let head = line("th", &mut header.iter().map(ToString::to_string));
    let body: String = rows.map(|row| format!("<tr>{}</tr>\n", line("td", &mut row.into_iter()))).collect();
    format!(
        "<div class=\"table\">\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::Timing;
    use crate::bench::result::tests::row;

    /// A square that takes so many nanoseconds.
    fn square(side: u64, ns: f64, opponent_ns: Option<f64>) -> Row {
        let ours = Timing { ns_median: ns, ns_low: ns, ns_high: ns, ns_min: ns };
        let flops = 2.0 * (side as f64).powi(3);
        let case = Case::plain("gemm", "f64", (side, side, side));
        Row { case, ours: Some(ours), flops, ..row(1, opponent_ns) }.derive()
    }

    #[test]
    fn what_an_edge_costs_is_found_by_rate() {
        let flops = |side: f64| 2.0 * side.powi(3);
        // 100, 200 and 150 GFLOP/s: half and a quarter are lost.
        let of = |side: u64, rate: f64| square(side, flops(side as f64) / rate, Some(1000.0));
        let forced = Row { chooser: "caller".into(), variant: "dgemm_tiled_4x4_t256".into(), ..of(64, 50.0) };
        let rows = [of(63, 100.0), of(64, 200.0), of(65, 150.0), of(95, 100.0), of(97, 100.0), forced];
        let squares = Squares::all(&rows);
        let [squares] = squares.as_slice() else { panic!("{} kinds", squares.len()) };
        let found = edges(&squares.ours());
        let [Edge { side: 64, less, more }] = found.as_slice() else { panic!("{found:?}") };
        assert!((less - 0.5).abs() <= 1e-3 && (more - 0.25).abs() <= 1e-3, "{found:?}");
        let names: Vec<String> = squares.contestants().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["the model's pick", "gemm_tiled", "the fastest of the others"]);
        // A forced row of another run, where the others were faster.
        let again = square(64, 10_000.0, Some(1.0));
        let again = Row { chooser: "caller".into(), variant: "dgemm_tiled_4x4_t256".into(), ..again };
        let both = Squares::all(&[&rows[..], &[again]].concat()).pop().map(|both| both.theirs());
        assert_eq!(both, Some(squares.theirs()));
        let text = section(&rows).expect("squares");
        assert!(text.contains("<td>50.0</td><td>50.0</td><td>25.0</td><td>25.0</td>"), "{text}");
        assert!(text.contains("<td>64</td><td>100</td><td>200</td><td>150</td><td>50.0</td><td>25.0</td>"), "{text}");
        assert!(text.contains("lanky, 95: 100 GFLOP/s") && text.contains("Each side: 1 of them"), "{text}");
    }

    #[test]
    fn a_page_of_text_has_the_powers_of_two_and_the_edges() {
        let of = |side: u64, rate: f64| square(side, 2.0 * (side as f64).powi(3) / rate, Some(1000.0));
        // cuBLAS: 524.288 GFLOP/s at 64, 8 times as many at 128.
        let rows = [of(63, 100.0), of(64, 200.0), of(65, 150.0), of(128, 1000.0)];
        let text = markdown(&rows).expect("squares");
        for line in [
            "|  | 64 | 128 |\n",
            "| the model's pick | 200 | 1000 |\n",
            "| the fastest of the others | 524 | 4194 |\n",
            "| the pick by the others | 0.38 | 0.24 |\n",
            "| the model's pick | 1 | 50.0 | 50.0 | 25.0 | 25.0 |\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(main_figure(&rows).is_some() && main_figure(&rows[..1]).is_none());
        assert!(markdown(&rows[..1]).is_none() && markdown(&[]).is_none());
    }

    #[test]
    fn what_is_no_square_has_no_figure() {
        assert_eq!(section(&[row(2, None), row(4, None)]), None);
        assert_eq!(section(&[square(64, 10.0, None)]), None);
        let mut gap = square(65, 10.0, None);
        gap.case.lda += 1;
        assert_eq!(section(&[square(64, 10.0, None), gap]), None);
        // Two sides that are not beside each other are a figure without a table.
        let text = section(&[square(64, 10.0, None), square(128, 10.0, None)]).expect("a figure");
        assert!(text.contains("<svg") && !text.contains("<table"));
    }
}
