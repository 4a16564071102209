//! What was measured, as a table, as CSV and as JSON.

use super::measure::Times;
use host::{Device, Dtype};
use std::fmt::Write;

/// One measurement.
pub struct Row {
    /// Element type.
    pub dtype: Dtype,
    /// Whether A is.
    pub row_major: bool,
    /// m, n, k.
    pub size: (usize, usize, usize),
    /// `tsm2r_prefetch`, or `cublas`.
    pub variant: &'static str,
    /// The entry, or cuBLAS's function.
    pub entry: String,
    /// Parts of k; 0 where nobody says.
    pub splits: u32,
    /// Seconds.
    pub times: Times,
    /// 10^9 bytes of A, B and C a second, of the median.
    pub gbs: f64,
    /// Whether the model chooses it.
    pub chosen: bool,
}

impl Row {
    fn layout(&self) -> &'static str {
        if self.row_major { "row" } else { "col" }
    }
}

/// All measurements of one run.
pub struct Report {
    device: String,
    driver: String,
    ceiling_gbs: f64,
    /// In the order of measuring.
    pub rows: Vec<Row>,
}

/// The fields of a line.
const HEADER: &str =
    "device,driver,dtype,layout,m,n,k,variant,entry,splits,median_s,min_s,max_s,gbs,ceiling_gbs,percent";
/// What cuBLAS's rows are called.
const CUBLAS: &str = "cublas";

impl Report {
    /// Of this device, with its read ceiling.
    pub fn new(device: &Device, ceiling_gbs: f64) -> Report {
        let driver = match device.is_cuda() {
            true => host::env::gpu_report().driver_release.unwrap_or_default(),
            false => String::new(),
        };
        Report { device: device.name().to_owned(), driver, ceiling_gbs, rows: Vec::new() }
    }

    fn percent(&self, gbs: f64) -> f64 {
        100.0 * gbs / self.ceiling_gbs
    }

    /// The rows from `first` on, which are of one element type and layout: the best entry of each variant, then the best
    /// of all beside the model's choice and cuBLAS.
    pub fn table(&self, first: usize) -> String {
        let rows = &self.rows[first..];
        let Some(head) = rows.first() else { return String::new() };
        let mut text = format!(
            "\n{}, A {}-major, m = k = {}; read ceiling {:.0} GB/s; GB/s and percent of it\n{:<24}",
            head.dtype,
            head.layout(),
            head.size.0,
            self.ceiling_gbs,
            "best entry of"
        );
        let widths = unique(rows.iter().map(|row| row.size.1));
        // Writing to a String cannot fail, here and below.
        for n in &widths {
            let _ = write!(text, "{:>14}", format!("n = {n}"));
        }
        for variant in unique(rows.iter().map(|row| row.variant)) {
            let _ = write!(text, "\n{variant:<24}");
            for &n in &widths {
                let best = best(rows.iter().filter(|row| row.variant == variant && row.size.1 == n));
                let cell = best.map_or(String::new(), |row| format!("{:.0} {:5.1}%", row.gbs, self.percent(row.gbs)));
                let _ = write!(text, "{cell:>14}");
            }
        }
        widths.iter().for_each(|&n| text.push_str(&self.summary(rows, n)));
        text
    }

    fn summary(&self, rows: &[Row], n: usize) -> String {
        let ours = || rows.iter().filter(|row| row.size.1 == n && row.variant != CUBLAS);
        let Some(best) = best(ours()) else { return String::new() };
        let mut text = format!(
            "\nn = {n:<3} best {} in {} parts, {:.1}% ({:.4} to {:.4} ms)",
            best.entry,
            best.splits,
            self.percent(best.gbs),
            best.times.min * 1e3,
            best.times.max * 1e3
        );
        match ours().find(|row| row.chosen) {
            Some(row) if row.entry == best.entry => text.push_str("; the model chooses it"),
            Some(row) => {
                let behind = 100.0 * (row.times.median / best.times.median - 1.0);
                let _ = write!(text, "; the model chooses {} in {} parts, {behind:.1}% slower", row.entry, row.splits);
            }
            None => text.push_str("; the model's choice was not measured"),
        }
        match rows.iter().find(|row| row.size.1 == n && row.variant == CUBLAS) {
            Some(row) => {
                let _ = write!(text, "; {:.2} times as fast as cuBLAS", row.times.median / best.times.median);
            }
            None => text.push_str("; no cuBLAS"),
        }
        text
    }

    fn fields(&self, row: &Row) -> [(&'static str, String, bool); 16] {
        let (m, n, k) = row.size;
        let word = |name, value: &str| (name, value.to_owned(), true);
        let number = |name, value: String| (name, value, false);
        [
            word("device", &self.device),
            word("driver", &self.driver),
            word("dtype", row.dtype.name()),
            word("layout", row.layout()),
            number("m", m.to_string()),
            number("n", n.to_string()),
            number("k", k.to_string()),
            word("variant", row.variant),
            word("entry", &row.entry),
            number("splits", row.splits.to_string()),
            number("median_s", format!("{:.9}", row.times.median)),
            number("min_s", format!("{:.9}", row.times.min)),
            number("max_s", format!("{:.9}", row.times.max)),
            number("gbs", format!("{:.2}", row.gbs)),
            number("ceiling_gbs", format!("{:.2}", self.ceiling_gbs)),
            number("percent", format!("{:.3}", self.percent(row.gbs))),
        ]
    }

    /// A header and a line for each measurement. No name has a comma or a quote.
    pub fn csv(&self) -> String {
        let line = |row: &Row| self.fields(row).map(|(_, value, _)| value).join(",");
        let lines: Vec<String> = self.rows.iter().map(line).collect();
        format!("{HEADER}\n{}\n", lines.join("\n"))
    }

    /// One array of objects with the same fields, and whether the model chooses that entry.
    pub fn json(&self) -> String {
        let object = |row: &Row| {
            let field = |(name, value, word): (&str, String, bool)| match word {
                true => format!("\"{name}\":\"{value}\""),
                false => format!("\"{name}\":{value}"),
            };
            format!("{{{},\"chosen\":{}}}", self.fields(row).map(field).join(","), row.chosen)
        };
        let objects: Vec<String> = self.rows.iter().map(object).collect();
        format!("[{}]", objects.join(","))
    }
}

/// The quickest.
fn best<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<&'r Row> {
    rows.min_by(|x, y| x.times.median.total_cmp(&y.times.median))
}

/// Each value once, in the order of its first time.
fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize, variant: &'static str, entry: &str, median: f64, chosen: bool) -> Row {
        let times = Times { median, min: median, max: median };
        let (dtype, row_major, size) = (Dtype::F64, false, (100, n, 100));
        Row { dtype, row_major, size, variant, entry: entry.into(), splits: 2, times, gbs: 1.0 / median, chosen }
    }

    #[test]
    fn tables_show_the_best_and_lines_have_every_field() {
        let mut report = Report::new(&Device::cpu(), 1000.0);
        report.rows = vec![
            row(2, "x", "x_slow", 0.004, true),
            row(2, "x", "x_fast", 0.002, false),
            row(2, "cublas", "f", 0.003, false),
        ];
        let table = report.table(0);
        assert!(table.contains("500  50.0%") && table.contains("best x_fast"), "{table}");
        assert!(table.contains("the model chooses x_slow in 2 parts, 100.0% slower"), "{table}");
        assert!(table.contains("1.50 times as fast as cuBLAS"), "{table}");
        let csv = report.csv();
        assert!(csv.lines().all(|line| line.split(',').count() == HEADER.split(',').count()), "{csv}");
        let names: Vec<&str> = report.fields(&report.rows[0]).map(|field| field.0).into();
        assert_eq!(names.join(","), HEADER);
        assert!(report.json().starts_with("[{\"device\":\"cpu\"") && report.json().contains("\"chosen\":true"));
    }
}
