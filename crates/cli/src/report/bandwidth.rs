//! Bandwidth against n: a figure for every family, element type and A.

use super::axis::Axis;
use super::plot::{Plot, Who};
use super::short;
use crate::bench::case::Case;
use crate::bench::result::Row;

/// Rows that differ in n alone, in order of n.
pub struct Group<'r> {
    rows: Vec<&'r Row>,
}

impl<'r> Group<'r> {
    /// All groups of two values of n and more; within each of a family, the largest first.
    pub fn all(rows: &'r [Row]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for row in rows.iter().filter(|row| row.is_main()) {
            match groups.iter_mut().find(|group| alike(group.rows[0], row)) {
                Some(group) => group.rows.push(row),
                None => groups.push(Self { rows: vec![row] }),
            }
        }
        for group in &mut groups {
            group.rows.sort_by_key(|row| row.case.n);
            group.rows.dedup_by_key(|row| row.case.n);
        }
        groups.retain(|group| group.rows.len() > 1);
        // A stable sort: what is alike stays in the order of the results.
        groups.sort_by(|a, b| b.size().total_cmp(&a.size()));
        groups
    }

    pub fn rows(&self) -> &[&'r Row] {
        &self.rows
    }

    /// The row of an element type and n that is like these in all else.
    pub fn alike_of<'s>(&self, rows: &'s [Row], dtype: &str, n: u64) -> Option<&'s Row> {
        let mut of = self.rows[0].clone();
        let at = |row: &&Row| row.is_main() && row.case.dtype == dtype && row.case.n == n;
        rows.iter().filter(at).find(|row| {
            of.case.dtype = row.case.dtype;
            alike(&of, row)
        })
    }

    fn size(&self) -> f64 {
        let case = &self.rows[0].case;
        case.m as f64 * case.k as f64
    }

    /// `tsm2r f64, A 20480 x 20480`
    pub fn title(&self) -> String {
        let case = &self.rows[0].case;
        let (family, dtype) = (case.family, case.dtype);
        let batch = if case.batch == 1 { String::new() } else { format!(", {} at once", case.batch) };
        format!("{family} {dtype}, {}{batch}, {}", name_of_a(case), self.rows[0].device)
    }

    pub fn figure(&self) -> Plot {
        let numbers: Vec<f64> = self.rows.iter().map(|row| row.case.n as f64).collect();
        let ours = |row: &Row| row.gbs();
        let bound = |row: &Row| row.bytes / row.bound_ns;
        let theirs = |row: &Row| row.best.as_ref().map(|best| row.bytes / best.opponent_ns);
        let most = self.rows.iter().map(|row| ours(row).unwrap_or(0.0).max(bound(row)).max(theirs(row).unwrap_or(0.0)));
        let y = Axis::linear("GB/s", most.fold(0.0, f64::max));
        let mut plot = Plot::new(&self.title(), Axis::of_numbers("n, columns of B and C", &numbers), y);
        let through = |value: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            self.rows.iter().filter_map(|row| Some((row.case.n as f64, value(row)?))).collect()
        };
        let ceiling = through(&|row| Some(bound(row)));
        plot.name(Who::Bound, "the bound");
        plot.line(Who::Bound, &ceiling);
        let opponents = through(&theirs);
        if !opponents.is_empty() {
            plot.name(Who::Theirs, &self.opponents());
            plot.line(Who::Theirs, &opponents);
        }
        plot.name(Who::Ours, "lanky");
        plot.line(Who::Ours, &through(&ours));
        for row in &self.rows {
            let n = row.case.n as f64;
            if let (Some(best), Some(gbs)) = (&row.best, theirs(row)) {
                plot.mark(
                    Who::Theirs,
                    (n, gbs),
                    &format!("{}, n = {}: {} GB/s", best.opponent, row.case.n, short(gbs)),
                );
            }
            if let (Some(share), Some(gbs)) = (row.fraction(), row.gbs()) {
                let (at, percent) = (row.case.n, 100.0 * share);
                let words = format!("lanky, n = {at}: {} GB/s, {percent:.1}% of the bound", short(gbs));
                plot.mark(Who::Ours, (n, gbs), &words);
            }
        }
        plot
    }

    /// `cublas`, or all that were the fastest of the others.
    fn opponents(&self) -> String {
        let mut names: Vec<&str> =
            self.rows.iter().filter_map(|row| Some(row.best.as_ref()?.opponent.as_str())).collect();
        names.sort_unstable();
        names.dedup();
        names.join(" or ")
    }
}

/// The figure with the most values of n; of those the largest A, f64, β = 0.
pub fn main_figure(rows: &[Row]) -> Option<Plot> {
    main_group(rows).map(|group| group.figure())
}

/// The rows of [`main_figure`].
pub fn main_group(rows: &[Row]) -> Option<Group<'_>> {
    let usual = |group: &Group<'_>| {
        let case = &group.rows[0].case;
        (case.dtype == "f64", case.beta == 0.0)
    };
    Group::all(rows).into_iter().max_by(|a, b| {
        let by_count = a.rows.len().cmp(&b.rows.len());
        by_count.then(a.size().total_cmp(&b.size())).then(usual(a).cmp(&usual(b)))
    })
}

/// Whether two rows differ in n alone: also leading dimensions may only where they follow it.
pub fn alike(a: &Row, b: &Row) -> bool {
    let (x, y) = (&a.case, &b.case);
    let same_shape = (shape(x), x.batch) == (shape(y), y.batch);
    let same_kind = (x.family, x.dtype, x.layout) == (y.family, y.dtype, y.layout);
    let same_call = (x.transpose_a, x.transpose_b, x.beta) == (y.transpose_a, y.transpose_b, y.beta);
    same_kind && same_call && same_shape && same_gaps(x, y) && a.device == b.device
}

/// `A 20480 x 20480`, `A n x 900`, and what is not by columns, packed, plain.
pub fn name_of_a(case: &Case) -> String {
    let [m, k] = shape(case).map(|length| length.map_or("n".into(), |length| length.to_string()));
    format!("A {m} x {k}{}", case.unusual())
}

/// m and k of A; `None` for the one that is n as well, in families where both change together: C is square, or B is.
fn shape(case: &Case) -> [Option<u64>; 2] {
    let (m, n, k) = (case.m, case.n, case.k);
    match case.family {
        "tsmttsm" | "gram" if m == n => [None, Some(k)],
        "tsmm" | "tsm2l" if k == n => [Some(m), None],
        _ => [Some(m), Some(k)],
    }
}

/// Whether each of A, B and C is without gaps in both, or has the same leading dimension in both.
fn same_gaps(x: &Case, y: &Case) -> bool {
    let lds = |case: &Case| [case.lda, case.ldb, case.ldc];
    let (of_x, of_y) =
        (lds(x).into_iter().zip(lds(&x.clone().packed())), lds(y).into_iter().zip(lds(&y.clone().packed())));
    of_x.zip(of_y).all(|((x, least_x), (y, least_y))| match (x == least_x, y == least_y) {
        (true, true) => true,
        (false, false) => x == y,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::tests::row;

    #[test]
    fn rows_that_differ_in_n_alone_are_one_figure() {
        let forced = Row { chooser: "caller".into(), ..row(32, None) };
        let graph = Row { variant: "x@graph".into(), ..row(64, None) };
        let mut single = row(2, None);
        single.case.dtype = "f32";
        let rows = [row(8, Some(1100.0)), row(2, None), row(4, Some(900.0)), forced, graph, single];
        let groups = Group::all(&rows);
        assert_eq!(groups.len(), 1);
        let of: Vec<u64> = groups[0].rows.iter().map(|row| row.case.n).collect();
        assert_eq!(of, [2, 4, 8]);
        let svg = groups[0].figure().inline();
        assert_eq!((svg.matches("mark ours").count(), svg.matches("mark theirs").count()), (3, 2));
        assert!(svg.contains("lanky, n = 8: 4.00 GB/s, 80.0% of the bound"));
        assert!(svg.contains("A 1000 x 500, a &quot;GPU&quot;, &lt;b&gt;") && !svg.contains("<b>"));
        assert!(main_figure(&rows).is_some() && main_figure(&rows[..1]).is_none());
    }

    #[test]
    fn what_differs_in_more_than_n_is_not_alike() {
        let packed = row(4, None);
        let other = |change: &dyn Fn(&mut Case)| {
            let mut row = row(8, None);
            change(&mut row.case);
            row
        };
        assert!(alike(&packed, &other(&|_| ())));
        let changes: [&dyn Fn(&mut Case); 9] = [
            &|case| case.lda += 8,
            &|case| case.ldb += 8,
            &|case| case.ldc += 8,
            &|case| case.beta = 1.0,
            &|case| case.batch = 2,
            &|case| case.transpose_b = true,
            &|case| case.dtype = "f32",
            &|case| case.m += 1,
            &|case| case.family = "tsmm",
        ];
        for (place, change) in changes.iter().enumerate() {
            assert!(!alike(&packed, &other(change)), "change {place}");
        }
        // The same gap is alike; a line along n grows with it.
        let padded = |n: u64, ldb| {
            let mut row = row(n, None);
            row.case.ldb = ldb;
            row
        };
        assert!(alike(&padded(4, 512), &padded(8, 512)) && !alike(&padded(4, 512), &padded(8, 520)));
        let by_rows = |n: u64, ldc| {
            let mut row = row(n, None);
            row.case.layout = crate::bench::case::Layout::parse("ccr").expect("a layout");
            row.case.ldc = ldc;
            row
        };
        assert!(alike(&by_rows(4, 4), &by_rows(8, 8)) && !alike(&by_rows(4, 4), &by_rows(8, 9)));
    }

    #[test]
    fn where_two_lengths_change_together_they_are_one_figure() {
        let of = |family, lengths: (u64, u64, u64)| {
            let mut row = row(2, None);
            row.case = Case { transpose_a: family == "gram", ..Case::plain(family, "f64", lengths) }.packed();
            row
        };
        let rows = [
            of("gram", (4, 4, 900)),
            of("gram", (8, 8, 900)),
            of("tsmttsm", (4, 8, 900)),
            of("tsmttsm", (8, 8, 900)),
            of("tsmttsm", (16, 16, 900)),
            of("tsmm", (900, 4, 4)),
            of("tsmm", (900, 8, 8)),
            of("tsm2r", (8, 8, 900)),
            of("tsm2r", (16, 16, 900)),
        ];
        let groups = Group::all(&rows);
        let mut titles: Vec<String> = groups.iter().map(Group::title).collect();
        titles.sort();
        let device = ", a \"GPU\", <b>";
        let expected = ["gram f64, A n x 900 tn", "tsmm f64, A 900 x n", "tsmttsm f64, A n x 900"];
        assert_eq!(titles, expected.map(|title| format!("{title}{device}")));
    }
}
