//! Maps of a database: of each kind of product and width which entry was best where, and how near to the bound it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lanky::tuned::{Cell, Class, Database};

use super::compare::{self, gbs};
use crate::report::{escaped, short, style};
use crate::say::{self, float};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 40.0;
/// Of the field of cells.
const ACROSS: f64 = 560.0;
const DOWN: f64 = 450.0;
const LEGEND: f64 = LEFT + ACROSS + 24.0;
/// Colours of entries, the most frequent first; of others the last.
const COLOURS: [&str; 12] = [
    "#0a66c2", "#e8a33d", "#2a9d6f", "#c2410c", "#8e6bbf", "#56b4e9", "#b5485d", "#7a8b2f", "#d58fb8", "#9c6b3f",
    "#3c8d93", "#8b949e",
];
/// Labels along a side, at most.
const LABELS: usize = 8;

/// A file's name and its text.
pub type Figure = (String, String);

/// Two figures for each kind of product and each of its widths that has more than one shape.
pub fn figures(database: &Database) -> Vec<Figure> {
    let mut slices: BTreeMap<(Class, Option<u64>), Vec<&Cell>> = BTreeMap::new();
    for cell in database.cells() {
        let [_, _, width] = sides(cell.class.family);
        slices.entry((cell.class, width.map(|side| cell.lengths[side]))).or_default().push(cell);
    }
    let mut figures = Vec::new();
    for ((class, width), cells) in slices.into_iter().filter(|(_, cells)| cells.len() > 1) {
        let map = Map::new(class, width, &cells);
        let stem = map.stem();
        figures.push((format!("{stem}-winner.svg"), map.winners()));
        figures.push((format!("{stem}-bandwidth.svg"), map.fractions()));
    }
    figures
}

/// Of m, n and k (0, 1, 2) the one that runs across, the one that runs down, and the one that has a figure for each value.
fn sides(family: &str) -> [Option<usize>; 3] {
    match family {
        "gemv" => [Some(2), Some(0), None],
        "tsmm" => [Some(0), Some(1), Some(2)],
        "tsmttsm" => [Some(2), Some(1), Some(0)],
        "gram" => [Some(2), Some(1), None],
        _ => [Some(2), Some(0), Some(1)],
    }
}

struct Map<'c> {
    class: Class,
    width: Option<u64>,
    cells: &'c [&'c Cell],
    /// Lengths across and down.
    across: Vec<u64>,
    down: Vec<u64>,
}

impl<'c> Map<'c> {
    fn new(class: Class, width: Option<u64>, cells: &'c [&'c Cell]) -> Self {
        let [x, y, _] = sides(class.family);
        let lengths = |side: Option<usize>| -> Vec<u64> {
            let all: BTreeSet<u64> = cells.iter().filter_map(|cell| side.map(|side| cell.lengths[side])).collect();
            all.into_iter().collect()
        };
        Self { class, width, cells, across: lengths(x), down: lengths(y) }
    }

    /// The letter of a side.
    fn letter(&self, which: usize) -> &'static str {
        sides(self.class.family)[which].map_or("", |side| ["m", "n", "k"][side])
    }

    /// `gemv-f64-ccc-0`, and the width where there are several.
    fn stem(&self) -> String {
        let class = self.class.to_string().replace(' ', "-");
        self.width.map_or(class.clone(), |width| format!("{class}-{}{width}", self.letter(2)))
    }

    fn title(&self, what: &str) -> String {
        let width = self.width.map_or(String::new(), |width| format!(", {} = {width}", self.letter(2)));
        format!("{}{width}: {what}", self.class)
    }

    /// Which entry was best.
    fn winners(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for cell in self.cells {
            *counts.entry(cell.best.variant.entry).or_default() += 1;
        }
        let mut names: Vec<(&str, usize)> = counts.into_iter().collect();
        names.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        let last = COLOURS.len() - 1;
        let colour = |name: &str| names.iter().position(|(entry, _)| *entry == name).unwrap_or(last).min(last);
        let body = self.field(|cell| format!("fill=\"{}\"", COLOURS[colour(cell.best.variant.entry)]));
        let mut legend = String::new();
        for (place, (name, count)) in names.iter().take(last).enumerate() {
            legend += &key(place, COLOURS[place], "1", &format!("{name} ({count})"));
        }
        let others: usize = names.iter().skip(last).map(|(_, count)| count).sum();
        if others > 0 {
            legend += &key(last, COLOURS[last], "1", &format!("others ({others})"));
        }
        self.svg(&self.title("the entry that took least"), &body, &legend)
    }

    /// How near to the bound it was.
    fn fractions(&self) -> String {
        let body = self.field(|cell| format!("class=\"share\" fill-opacity=\"{:.3}\"", opacity(cell.fraction)));
        let mut legend = String::new();
        for (place, share) in [1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0].into_iter().enumerate() {
            let opacity = format!("{:.3}", opacity(share));
            legend += &key(place, "var(--ours)", &opacity, &format!("{:.0}% of the bound", share * 100.0));
        }
        if let Some(one) = compare::independence(self.class, &self.cells.iter().map(|&c| c.clone()).collect::<Vec<_>>())
        {
            for (line, words) in [
                format!("from 256 MB of matrix on, {} shapes:", one.shapes),
                format!("worst {}, best {}", say::rate(one.worst_gbs), say::rate(one.best_gbs)),
                format!("worst over best {:.3}", one.worst_over_best),
            ]
            .iter()
            .enumerate()
            {
                legend += &words_at(LEGEND, TOP + 190.0 + 20.0 * float(line), words);
            }
        }
        self.svg(&self.title("the share of the bound"), &body, &legend)
    }

    /// A rectangle for each cell, which says more when it is pointed at.
    fn field(&self, paint: impl Fn(&Cell) -> String) -> String {
        let [x, y, _] = sides(self.class.family);
        let (wide, high) = (ACROSS / float(self.across.len().max(1)), DOWN / float(self.down.len().max(1)));
        let mut text = String::new();
        for cell in self.cells {
            let place = |lengths: &[u64], side: Option<usize>| {
                side.and_then(|side| lengths.iter().position(|&length| length == cell.lengths[side])).unwrap_or(0)
            };
            let left = LEFT + wide * float(place(&self.across, x));
            let top = TOP + DOWN - high * float(place(&self.down, y) + 1);
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "<rect {} x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                paint(cell),
                wide - 1.0,
                high - 1.0,
                escaped(&words(cell))
            );
        }
        text
    }

    fn svg(&self, title: &str, body: &str, legend: &str) -> String {
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{title}\">\n<style>{}.share{{fill:var(--ours);stroke:var(--rule);stroke-width:.5}}</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"22\">{title}</text>\n{body}{}{legend}</svg>\n",
            style::FIGURE_ALONE,
            self.labels()
        )
    }

    /// The lengths along both sides, as far as they have room.
    fn labels(&self) -> String {
        let mut text = String::new();
        let (wide, high) = (ACROSS / float(self.across.len().max(1)), DOWN / float(self.down.len().max(1)));
        let (bottom, middle) = (TOP + DOWN, TOP + DOWN / 2.0);
        let mut label = |class: &str, x: f64, y: f64, words: &str| {
            text += &format!("<text class=\"tick {class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(words));
        };
        for (at, length) in self.across.iter().enumerate().step_by(self.across.len().div_ceil(LABELS).max(1)) {
            label("across", LEFT + wide * (float(at) + 0.5), bottom + 18.0, &count(*length));
        }
        for (at, length) in self.down.iter().enumerate().step_by(self.down.len().div_ceil(LABELS).max(1)) {
            label("up", LEFT - 8.0, bottom - high * (float(at) + 0.5) + 4.0, &count(*length));
        }
        label("across", LEFT + ACROSS / 2.0, bottom + 42.0, self.letter(0));
        text + &format!(
            "<text class=\"tick across\" transform=\"translate(16 {middle:.1}) rotate(-90)\">{}</text>\n",
            self.letter(1)
        )
    }
}

/// Darker where it is nearer; what is far off still shows that it was timed.
fn opacity(share: f64) -> f64 {
    0.04 + 0.96 * share.clamp(0.0, 1.0).powi(2)
}

fn key(place: usize, colour: &str, opacity: &str, words: &str) -> String {
    let y = TOP + 22.0 * float(place);
    format!(
        "<rect x=\"{LEGEND}\" y=\"{y:.1}\" width=\"14\" height=\"14\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>\n"
    ) + &words_at(LEGEND + 20.0, y + 11.0, words)
}

fn words_at(x: f64, y: f64, words: &str) -> String {
    format!("<text class=\"key\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(words))
}

/// `1000 x 1 x 3000: dgemv.. in 4 parts of k, 12.3 us, 4100 GB/s, 93.1% of the bound; the model's choice took 1.04 times as long`
fn words(cell: &Cell) -> String {
    let [m, n, k] = cell.lengths;
    let model = match cell.loss() {
        loss if loss <= 1.0 => "the model chose it".into(),
        loss => format!("the model's choice, {}, took {loss:.3} times as long", cell.model.variant.entry),
    };
    format!(
        "{m} x {n} x {k}: {} in {} of k, {}, {}, {:.1}% of the bound; {model}",
        cell.best.variant.entry,
        if cell.best.parts == 1 { "1 part".into() } else { format!("{} parts", cell.best.parts) },
        say::time(cell.best.ns / 1e9),
        say::rate(gbs(cell)),
        cell.fraction * 100.0
    )
}

/// `472`, `1.42k`, `3.16M`.
fn count(length: u64) -> String {
    let number: f64 = num_traits::cast(length).unwrap_or(0.0);
    match number {
        _ if number >= 1e6 => format!("{}M", short(number / 1e6)),
        _ if number >= 1e3 => format!("{}k", short(number / 1e3)),
        _ => length.to_string(),
    }
}
