//! The roofline: every case by its flops a byte, below what bounds it.

use super::axis::Axis;
use super::ceilings::Roofs;
use super::plot::{Plot, Who};
use super::{intensity, short};
use crate::bench::ceiling::Ceiling;
use crate::bench::result::Row;

/// A figure for each device and element type.
pub fn figures(rows: &[Row], ceilings: &[Ceiling]) -> Vec<Plot> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_first()) {
        let kind = (row.device.as_str(), row.case.dtype);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let of = |(device, dtype): (&str, &str)| {
        let of_kind = |row: &&Row| row.is_first() && row.device == device && row.case.dtype == dtype;
        let roofs = Roofs::of(ceilings, device, dtype);
        figure(&format!("{dtype}, {device}"), &rows.iter().filter(of_kind).collect::<Vec<_>>(), &roofs)
    };
    kinds.into_iter().map(of).collect()
}

/// GFLOP/s: 10^9 flops a second are flops by nanoseconds; by ours, or else by the others.
fn reached(row: &Row) -> f64 {
    let theirs = row.best.as_ref().map_or(f64::INFINITY, |best| best.opponent_ns);
    row.flops / row.ns_median().unwrap_or(theirs)
}

fn figure(title: &str, rows: &[&Row], roofs: &Roofs<'_>) -> Plot {
    let range = |value: &dyn Fn(&Row) -> f64| {
        let values = || rows.iter().map(|row| value(row));
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let bound = |row: &Row| row.flops / row.bound_ns;
    let (x, lowest, reached_most) = (range(&intensity), range(&reached).0, range(&reached).1);
    let highest = roofs.compute.first().map_or(0.0, |(_, gflops)| *gflops).max(range(&bound).1).max(reached_most);
    // Where the ceiling of the memory is not known, the bounds say it: no case is bound by more.
    let memory = roofs.read_gbs.unwrap_or_else(|| range(&|row: &Row| row.bytes / row.bound_ns).1);
    // Beyond where the roofs meet, so that all of them are seen.
    let ridge = roofs.compute.first().map_or(0.0, |(_, gflops)| 1.5 * gflops / memory);
    let across = Axis::logarithmic("flops a byte of A, B and C", x.0, x.1.max(ridge));
    let up = Axis::logarithmic("GFLOP/s", lowest, highest);
    let mut plot = Plot::new(title, across.clone(), up.clone());
    plot.name(Who::Bound, if roofs.compute.is_empty() { "what the memory allows" } else { "the device's ceilings" });
    plot.name_marks(Who::Bound, "each case's bound");
    plot.name_marks(Who::Ours, "lanky");
    if rows.iter().any(|row| row.ours.is_none()) {
        plot.name_marks(Who::Theirs, "others, where lanky has no kernel");
    }
    // A line begins where it enters the figure, also from below.
    let (left, right) = across.range();
    let left = left.max(up.range().0 / memory);
    draw(&mut plot, memory, &roofs.compute, (left, right), highest);
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

/// The memory's roof up to the highest of the multipliers', and theirs from where they meet it, each with its name; where
/// those are not known, the memory's up to the highest place.
fn draw(plot: &mut Plot, memory_gbs: f64, compute: &[(&str, f64)], (left, right): (f64, f64), highest: f64) {
    let top = compute.first().map_or(highest, |(_, gflops)| *gflops);
    let end = right.min(top / memory_gbs);
    if end > left {
        plot.line(Who::Bound, &[(left, left * memory_gbs), (end, end * memory_gbs)]);
    }
    for (name, gflops) in compute {
        let from = left.max(gflops / memory_gbs);
        if from < right {
            plot.line(Who::Bound, &[(from, *gflops), (right, *gflops)]);
            plot.label(Who::Bound, (right, *gflops), name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ceiling::tests::ceiling;
    use crate::bench::result::tests::row;

    #[test]
    fn every_case_is_on_the_roofline_of_its_kind() {
        let mut single = row(2, None);
        single.case.dtype = "f32";
        let unserved = Row { ours: None, ..row(8, Some(2000.0)) }.derive();
        let rows = [row(2, None), row(4, Some(900.0)), single, unserved];
        let figures: Vec<String> = figures(&rows, &[]).iter().map(Plot::inline).collect();
        assert!(figures[0].contains("x 8 x 500 by cublas: 500 GFLOP/s, 40.0% of the bound"), "{}", figures[0]);
        assert_eq!(figures.iter().map(|svg| svg.matches(": 1000 GFLOP").count()).collect::<Vec<_>>(), [2, 1]);
        // 10^6 flops in 1000 ns, bound 800 ns.
        assert!(figures[0].contains("1000 GFLOP/s, 80.0% of the bound") && figures[0].contains("bound 1250 GFLOP/s"));
    }

    /// The roof of the memory passes through the bounds that it makes, wherever the figure begins.
    #[test]
    fn the_roof_has_its_slope() {
        // 250 flops a byte and 5 GB/s are 1250 GFLOP/s, the bound; 2.5 flops a byte are far below what the figure shows.
        let mut few = row(2, None);
        few.flops = 1e4;
        few.ours = few.ours.map(|ours| crate::bench::result::Timing { ns_median: 10.0, ..ours });
        let svg = figures(&[row(2, None), few.derive()], &[]).iter().map(Plot::inline).collect::<String>();
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        let first: Vec<f64> =
            points.split([',', ' ']).take(2).map(|number| number.parse().expect("a number")).collect();
        // From 2 to 500 flops a byte: 64 to 620; 1000 GFLOP/s, the least that is shown, are 200 flops a byte.
        let across = 64.0 + 556.0 * (200.0_f64 / 2.0).ln() / (500.0_f64 / 2.0).ln();
        assert!((first[0] - across).abs() <= 0.1 && first[1] == 312.0, "{points} {across}");
    }

    #[test]
    fn the_ceilings_are_the_roofs() {
        // 10^6 flops by 4000 bytes: 250 flops a byte, less than where the roofs meet, which are shown all the same.
        let of = |ceilings: &[Ceiling]| figures(&[row(2, None)], ceilings).iter().map(Plot::inline).collect::<String>();
        let alone = of(&[]);
        assert_eq!(alone.matches("<polyline class=\"line bound\"").count(), 1, "{alone}");
        assert!(alone.contains("what the memory allows"));
        let all = [
            ceiling("read", "f64", 12.0),
            ceiling("fma", "f32", 9999.0),
            ceiling("fma", "f64", 3000.0),
            ceiling("mma", "f64", 5000.0),
        ];
        let roofed = of(&all);
        assert_eq!(roofed.matches("<polyline class=\"line bound\"").count(), 3, "{roofed}");
        assert!(roofed.contains(">mma</text>") && roofed.contains(">fma</text>"), "{roofed}");
        assert!(roofed.contains("the device's ceilings") || roofed.contains("the device&#39;s ceilings"));
        // Of another device they say nothing.
        let other = all.map(|ceiling| Ceiling { device: "another".into(), ..ceiling });
        assert_eq!(of(&other), alone);
    }
}
