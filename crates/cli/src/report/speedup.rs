//! Speed-up: a bar a case, against the fastest of the others.

use super::{escaped, short};
use crate::bench::result::{Best, Row};
use crate::say::float;

const WIDTH: f64 = 960.0;
const NAMES: f64 = 330.0;
const BAR: f64 = 18.0;
const TOP: f64 = 30.0;
/// Longer bars end here.
const LONGEST: f64 = 8.0;

/// The bars of all rows with an opponent, below a title; `None` if there are none. The longest bar of the page is `most`.
pub fn bars(title: &str, rows: &[&Row], most: f64) -> Option<String> {
    let with: Vec<(&Row, &Best, f64)> =
        rows.iter().filter_map(|row| Some((*row, row.best.as_ref()?, row.ratio()?))).collect();
    if with.is_empty() {
        return None;
    }
    let end = most.clamp(1.25, LONGEST);
    let scale = (WIDTH - NAMES - 190.0) / end;
    let height = TOP + BAR * float(with.len()) + 8.0;
    let (one, title) = (NAMES + scale, escaped(title));
    let mut text = format!(
        "<svg class=\"figure bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"speed-up, {title}\">\n\
         <text class=\"title\" x=\"0\" y=\"16\">{title}</text>\n\
         <text class=\"tick across\" x=\"{one:.1}\" y=\"16\">equal</text>\n"
    );
    for (place, (row, best, ratio)) in with.iter().enumerate() {
        text += &bar(row, best, *ratio, TOP + BAR * float(place), scale, end);
    }
    let top = TOP - 6.0;
    text +=
        &format!("<line class=\"axis\" x1=\"{one:.1}\" y1=\"{top:.1}\" x2=\"{one:.1}\" y2=\"{height}\"/>\n</svg>\n");
    Some(text)
}

/// The case's name, its bar, and its number: behind the bar and the line at 1, which would cross it.
fn bar(row: &Row, best: &Best, ratio: f64, y: f64, scale: f64, end: f64) -> String {
    let length = ratio.min(end) * scale;
    let class = if ratio < 1.0 { "bar slower" } else { "bar" };
    let words = format!("{} x as fast as {}", short(ratio), best.opponent);
    let (name_end, baseline) = (NAMES - 8.0, y + 13.0);
    format!(
        "<text class=\"name up\" x=\"{name_end:.1}\" y=\"{baseline:.1}\">{}</text>\n\
         <rect class=\"{class}\" x=\"{NAMES}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\"/>\n\
         <text class=\"name\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>\n",
        escaped(&row.case.name()),
        y + 2.0,
        BAR - 4.0,
        NAMES + length.max(scale) + 6.0,
        escaped(&words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::tests::row;

    #[test]
    fn a_missing_opponent_has_no_bar() {
        let rows = [row(2, Some(2000.0)), row(4, None), row(8, Some(500.0))];
        let rows: Vec<&Row> = rows.iter().collect();
        let svg = bars("f<64>", &rows, 2.0).expect("two bars");
        assert_eq!((svg.matches("class=\"bar\"").count(), svg.matches("class=\"bar slower\"").count()), (1, 1));
        assert!(svg.contains("2.00 x as fast as cublas") && svg.contains("0.500 x as fast as cublas"));
        assert!(svg.contains(">f&lt;64&gt;</text>"));
        assert_eq!(bars("", &rows[1..2], 2.0), None);
    }
}
