//! Where the lanes of the first warp access memory, drawn as SVG: sectors of global memory, banks of shared memory.

use simt::Pattern;

use super::emulate::Outcome;
use crate::report::escaped;
use crate::say::float;

/// Accesses to record: enough to see one of each instruction of the shapes that are looked at.
pub const RECORD: usize = 1 << 16;

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;
const LANES: usize = 32;
const SECTOR_BYTES: u64 = 32;
const BANKS: u64 = 32;
/// Between neighbouring sectors that are no neighbours in memory.
const GAP: f64 = 8.0;
const STYLE: &str = concat!(
    "svg{--paper:#ffffff;--ink:#1f2328;--soft:#59636e;--rule:#d0d7de;--used:#0a66c2;--line:#0a66c2}",
    "@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--rule:#3d444d;",
    "--used:#58a6ff;--line:#58a6ff}}",
    "svg{font-family:system-ui,sans-serif}.paper{fill:var(--paper)}",
    ".title{font-size:15px;font-weight:600;fill:var(--ink)}.soft{font-size:12px;fill:var(--soft)}",
    ".lane{fill:none;stroke:var(--soft)}.lane.off{stroke:var(--rule)}",
    ".box{fill:none;stroke:var(--soft)}.word{fill:none;stroke:var(--rule);stroke-width:.5}.word.used{fill:var(--used)}",
    ".reach{stroke:var(--line);stroke-width:.7;stroke-opacity:.6}"
);

/// A panel for each instruction that accesses memory, as it is executed first.
pub fn drawing(outcome: &Outcome) -> String {
    let variant = outcome.request.variant;
    let mut top = 64.0;
    let mut body = String::new();
    for pattern in distinct(&outcome.counters.patterns) {
        let (panel, height) = panel(pattern, top);
        body += &panel;
        top += height + 34.0;
    }
    let title = format!("{}: where the first warp accesses memory", variant.entry);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top:.0}\" role=\"img\" aria-label=\"{title}\">\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{top:.0}\"/>\n{}{body}</svg>\n",
        text("title", MARGIN, 32.0, &title)
    )
}

/// The first of each instruction in which a lane takes part.
fn distinct(patterns: &[Pattern]) -> Vec<&Pattern> {
    let mut found: Vec<&Pattern> = Vec::new();
    let same = |a: &Pattern, b: &Pattern| (a.operand, a.store, a.location) == (b.operand, b.store, b.location);
    for pattern in patterns.iter().filter(|pattern| pattern.offsets.iter().any(Option::is_some)) {
        if !found.iter().any(|other| same(other, pattern)) {
            found.push(pattern);
        }
    }
    found
}

/// One instruction, `top` down the page, and its height.
fn panel(pattern: &Pattern, top: f64) -> (String, f64) {
    let shared = pattern.operand == "shared memory";
    let what = if pattern.store { "store to" } else { "load from" };
    let file = pattern.location.file().rsplit('/').take(2).collect::<Vec<_>>();
    let place = format!("{}:{}", file.into_iter().rev().collect::<Vec<_>>().join("/"), pattern.location.line());
    let lanes = pattern.offsets.iter().flatten().count();
    let heading = format!("{what} {}, {} bytes a lane, {lanes} lanes", pattern.operand, pattern.bytes);
    let cells = if shared { banks(pattern) } else { sectors(pattern) };
    let mut body = text("title", MARGIN, top + 12.0, &heading);
    body += &text("soft", MARGIN, top + 30.0, &format!("{place}: {}", cells.summary));
    let (lanes_at, cells_at) = (top + 40.0, top + 92.0);
    let lane_width = (WIDTH - 2.0 * MARGIN) / float(LANES);
    for (lane, offset) in pattern.offsets.iter().enumerate() {
        let left = MARGIN + float(lane) * lane_width;
        let class = if offset.is_some() { "lane" } else { "lane off" };
        body += &rect(class, [left + 1.0, lanes_at, lane_width - 2.0, 14.0], &format!("lane {lane}"));
        if let Some((x, y)) = offset.and_then(|offset| cells.place(offset)) {
            let (from, under) = (left + lane_width / 2.0, lanes_at + 14.0);
            let to = cells_at + y;
            body +=
                &format!("<line class=\"reach\" x1=\"{from:.1}\" y1=\"{under:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\"/>\n");
        }
    }
    for cell in &cells.words {
        let class = if cell.used { "word used" } else { "word" };
        body += &rect(class, [cell.x, cells_at + cell.y, cell.width, cells.height], &format!("byte {}", cell.offset));
    }
    for &(x, width) in &cells.boxes {
        body += &rect("box", [x, cells_at, width, cells.height], "a sector of 32 bytes");
    }
    (body, 92.0 + cells.bottom)
}

/// A word of memory on the page.
struct Word {
    offset: u64,
    x: f64,
    y: f64,
    width: f64,
    used: bool,
}

/// The memory that an instruction touches.
struct Cells {
    words: Vec<Word>,
    /// Left edges and widths of sectors.
    boxes: Vec<(f64, f64)>,
    height: f64,
    bottom: f64,
    summary: String,
}

impl Cells {
    /// The middle of the upper edge of the word at `offset`.
    fn place(&self, offset: u64) -> Option<(f64, f64)> {
        let word = self.words.iter().find(|word| word.offset == offset / 4 * 4)?;
        Some((word.x + word.width / 2.0, word.y))
    }
}

/// The words that lanes access, each once, ascending.
fn touched(pattern: &Pattern) -> Vec<u64> {
    let words = |&from: &u64| (0..u64::from(pattern.bytes) / 4).map(move |word| from + 4 * word);
    let mut touched: Vec<u64> = pattern.offsets.iter().flatten().flat_map(words).collect();
    touched.sort_unstable();
    touched.dedup();
    touched
}

fn sectors(pattern: &Pattern) -> Cells {
    let touched = touched(pattern);
    let mut sectors: Vec<u64> = touched.iter().map(|word| word / SECTOR_BYTES).collect();
    sectors.dedup();
    let gaps = sectors.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let width = (WIDTH - 2.0 * MARGIN - GAP * float(gaps)) / float(sectors.len().max(8));
    let (mut words, mut boxes, mut x) = (Vec::new(), Vec::new(), MARGIN);
    for (at, &sector) in sectors.iter().enumerate() {
        if at > 0 && sector != sectors[at - 1] + 1 {
            x += GAP;
        }
        boxes.push((x, width));
        for word in 0..8_u8 {
            let offset = sector * SECTOR_BYTES + u64::from(word) * 4;
            let used = touched.binary_search(&offset).is_ok();
            words.push(Word { offset, x: x + f64::from(word) * width / 8.0, y: 0.0, width: width / 8.0, used });
        }
        x += width;
    }
    let (used, moved) = (4 * touched.len(), 32 * sectors.len());
    let percent = 100.0 * float(used) / float(moved.max(1));
    let summary = format!("{} sectors of 32 bytes, {used} of {moved} bytes used, {percent:.0}%", sectors.len());
    Cells { words, boxes, height: 18.0, bottom: 18.0, summary }
}

/// Each bank a column, 4 bytes wide; words of one bank come one after another.
fn banks(pattern: &Pattern) -> Cells {
    const HEIGHT: f64 = 8.0;
    let width = (WIDTH - 2.0 * MARGIN) / 32.0;
    let mut depth = [0_usize; BANKS as usize];
    let touched = touched(pattern);
    let mut words = Vec::new();
    for &offset in &touched {
        let bank = usize::try_from(offset / 4 % BANKS).unwrap_or(0);
        let (x, y) = (MARGIN + float(bank) * width, float(depth[bank]) * HEIGHT);
        words.push(Word { offset, x: x + 1.0, y, width: width - 2.0, used: true });
        depth[bank] += 1;
    }
    let most = depth.into_iter().max().unwrap_or(0);
    let fewest = touched.len().div_ceil(depth.len());
    let summary = format!("at most {most} words in one of 32 banks, {fewest} would do for {} bytes", 4 * touched.len());
    Cells { words, boxes: Vec::new(), height: HEIGHT - 1.0, bottom: HEIGHT * float(most), summary }
}

fn text(class: &str, x: f64, y: f64, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(words))
}

fn rect(class: &str, [x, y, width, height]: [f64; 4], title: &str) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"><title>{}</title></rect>\n",
        escaped(title)
    )
}
