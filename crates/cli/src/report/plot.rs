//! A figure: axes, lines, marks, a legend, drawn as SVG.

use super::axis::Axis;
use super::{escaped, style};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 48.0;

/// Who a line or mark belongs to: the name of its class in the style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Ours,
    Theirs,
    Bound,
}

impl Who {
    const fn class(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
            Self::Bound => "bound",
        }
    }
}

/// A figure that is being drawn.
pub struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    legend: Vec<(Who, String, bool)>,
    body: String,
}

impl Plot {
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, legend: Vec::new(), body: String::new() }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT);
        (across, HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM))
    }

    /// Says in the legend whose line it is.
    pub fn name(&mut self, who: Who, name: &str) {
        self.legend.push((who, name.into(), true));
    }

    /// Says in the legend whose marks they are.
    pub fn name_marks(&mut self, who: Who, name: &str) {
        self.legend.push((who, name.into(), false));
    }

    /// A line through points.
    pub fn line(&mut self, who: Who, points: &[(f64, f64)]) {
        let places: Vec<String> = points
            .iter()
            .map(|&point| {
                let (x, y) = self.at(point);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        self.body += &format!("<polyline class=\"line {}\" points=\"{}\"/>\n", who.class(), places.join(" "));
    }

    /// A word above the end of a line.
    pub fn label(&mut self, who: Who, point: (f64, f64), word: &str) {
        let (x, y) = self.at(point);
        let (class, y) = (who.class(), y - 5.0);
        self.body += &format!("<text class=\"tick up {class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(word));
    }

    /// A mark that says more when it is pointed at.
    pub fn mark(&mut self, who: Who, point: (f64, f64), words: &str) {
        let place = self.at(point);
        self.body += &shape(who, place, &format!("<title>{}</title>", escaped(words)));
    }

    /// The element, to stand in a page.
    pub fn inline(&self) -> String {
        self.svg("")
    }

    /// The file, with its own style.
    pub fn alone(&self) -> String {
        let style = format!(
            "<style>{}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n",
            style::FIGURE_ALONE
        );
        self.svg(&style).replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1)
    }

    fn svg(&self, style: &str) -> String {
        let title = escaped(&self.title);
        format!(
            "<svg class=\"figure\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n{style}\
             <text class=\"title\" x=\"{LEFT}\" y=\"20\">{title}</text>\n{}{}{}{}</svg>\n",
            self.legend(),
            self.horizontal(),
            self.vertical(),
            self.body
        )
    }

    fn legend(&self) -> String {
        let mut across = LEFT;
        let mut text = String::new();
        for (who, name, is_line) in &self.legend {
            let (end, class) = (across + 22.0, who.class());
            if *is_line {
                text +=
                    &format!("<line class=\"line {class}\" x1=\"{across:.1}\" y1=\"41\" x2=\"{end:.1}\" y2=\"41\"/>\n");
            } else {
                text += &shape(*who, (end - 5.0, 41.0), "");
            }
            text += &format!("<text class=\"key\" x=\"{:.1}\" y=\"45\">{}</text>\n", end + 6.0, escaped(name));
            across = end + 26.0 + 6.6 * crate::say::float(name.chars().count());
        }
        text
    }

    fn horizontal(&self) -> String {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let mut text = format!("<line class=\"axis\" x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\n");
        for (number, label) in &self.x.ticks {
            let (x, _) = self.at((*number, self.y.range().0));
            text += &format!(
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\n",
                bottom + 4.0
            );
            text += &format!("<text class=\"tick across\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>\n", bottom + 17.0);
        }
        let middle = f64::midpoint(LEFT, right);
        text + &format!(
            "<text class=\"tick across\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\n",
            HEIGHT - 10.0,
            escaped(&self.x.label)
        )
    }

    fn vertical(&self) -> String {
        let right = WIDTH - RIGHT;
        let mut text = String::new();
        for (number, label) in &self.y.ticks {
            let (_, y) = self.at((self.x.range().0, *number));
            text += &format!("<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\n");
            text += &format!("<text class=\"tick up\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>\n", LEFT - 8.0, y + 4.0);
        }
        let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
        text + &format!(
            "<text class=\"tick across\" transform=\"translate(14 {middle:.1}) rotate(-90)\">{}</text>\n",
            escaped(&self.y.label)
        )
    }
}

/// A mark's shape: round for ours, square for theirs, a dash for a bound.
fn shape(who: Who, (x, y): (f64, f64), content: &str) -> String {
    let rect = |width: f64, height: f64| {
        let (x, y) = (x - width / 2.0, y - height / 2.0);
        let class = who.class();
        let size = format!("width=\"{width}\" height=\"{height}\"");
        format!("<rect class=\"mark {class}\" x=\"{x:.1}\" y=\"{y:.1}\" {size}>{content}</rect>\n")
    };
    match who {
        Who::Ours => format!("<circle class=\"mark ours\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">{content}</circle>\n"),
        Who::Theirs => rect(7.0, 7.0),
        Who::Bound => rect(10.0, 1.5),
    }
}
