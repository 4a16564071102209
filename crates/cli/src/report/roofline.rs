//! The roofline: every case by its flops a byte, below what bounds it.

use super::axis::Axis;
use super::plot::{Plot, Who};
use super::{intensity, short};
use crate::bench::result::Row;

/// A figure for each device and element type.
pub fn figures(rows: &[Row]) -> Vec<Plot> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_first()) {
        let kind = (row.device.as_str(), row.case.dtype);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let of = |(device, dtype): (&str, &str)| {
        let of_kind = |row: &&Row| row.is_first() && row.device == device && row.case.dtype == dtype;
        figure(&format!("{dtype}, {device}"), &rows.iter().filter(of_kind).collect::<Vec<_>>())
    };
    kinds.into_iter().map(of).collect()
}

/// GFLOP/s: 10^9 flops a second are flops by nanoseconds; by ours, or else by the others.
fn reached(row: &Row) -> f64 {
    let theirs = row.best.as_ref().map_or(f64::INFINITY, |best| best.opponent_ns);
    row.flops / row.ns_median().unwrap_or(theirs)
}

fn figure(title: &str, rows: &[&Row]) -> Plot {
    let range = |value: &dyn Fn(&Row) -> f64| {
        let values = || rows.iter().map(|row| value(row));
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let bound = |row: &Row| row.flops / row.bound_ns;
    let (x, lowest, highest) = (range(&intensity), range(&reached).0, range(&bound).1.max(range(&reached).1));
    let across = Axis::logarithmic("flops a byte of A, B and C", x.0, x.1);
    let mut plot = Plot::new(title, across.clone(), Axis::logarithmic("GFLOP/s", lowest, highest));
    plot.name(Who::Bound, "what the memory allows");
    plot.name_marks(Who::Bound, "each case's bound");
    plot.name_marks(Who::Ours, "lanky");
    if rows.iter().any(|row| row.ours.is_none()) {
        plot.name_marks(Who::Theirs, "others, where lanky has no kernel");
    }
    let (left, right) = across.range();
    let memory = range(&|row: &Row| row.bytes / row.bound_ns).1;
    let end = right.min(highest / memory);
    if end > left {
        plot.line(Who::Bound, &[(left, left * memory), (end, end * memory)]);
    }
    for row in rows {
        plot.mark(
            Who::Bound,
            (intensity(row), bound(row)),
            &format!("{}: bound {} GFLOP/s", row.case.name(), short(bound(row))),
        );
    }
    for row in rows {
        let who = if row.ours.is_some() { Who::Ours } else { Who::Theirs };
        let by = row.best.as_ref().filter(|_| who == Who::Theirs).map(|best| format!(" by {}", best.opponent));
        let percent = 100.0 * reached(row) / bound(row);
        let (name, gflops) = (row.case.name(), short(reached(row)));
        let words = format!("{name}{}: {gflops} GFLOP/s, {percent:.1}% of the bound", by.unwrap_or_default());
        plot.mark(who, (intensity(row), reached(row)), &words);
    }
    plot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::tests::row;

    #[test]
    fn every_case_is_on_the_roofline_of_its_kind() {
        let mut single = row(2, None);
        single.case.dtype = "f32";
        let unserved = Row { ours: None, ..row(8, Some(2000.0)) };
        let rows = [row(2, None), row(4, Some(900.0)), single, unserved];
        let figures: Vec<String> = figures(&rows).iter().map(Plot::inline).collect();
        assert!(figures[0].contains("x 8 x 500 by cublas: 500 GFLOP/s, 40.0% of the bound"), "{}", figures[0]);
        assert_eq!(figures.iter().map(|svg| svg.matches(": 1000 GFLOP").count()).collect::<Vec<_>>(), [2, 1]);
        // 10^6 flops in 1000 ns, bound 800 ns.
        assert!(figures[0].contains("1000 GFLOP/s, 80.0% of the bound") && figures[0].contains("bound 1250 GFLOP/s"));
    }
}
