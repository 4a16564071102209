//! One row of results, as [`model::results::FIELDS`] names its columns.

use std::path::Path;

use model::results::FIELDS;
use serde::Serialize;

use super::case::{self, Case, Layout, op};
use crate::csv;
use crate::error::Fault;

/// What is added to a variant's name where it was timed in another way than launch by launch on cold data.
pub const GRAPH: &str = "@graph";
pub const CACHED: &str = "@cached";

/// The fastest of the opponents that ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    pub opponent: String,
    pub opponent_ns: f64,
}

/// Times of this project's product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    pub ns_median: f64,
    pub ns_low: f64,
    pub ns_high: f64,
    pub ns_min: f64,
}

/// One measured case.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub case: Case,
    pub device: String,
    pub variant: String,
    /// `model`, or `caller` for a forced variant; empty where nothing was to choose.
    pub chooser: String,
    pub samples: usize,
    /// `None` where this project computes nothing of the kind yet: then an opponent ran.
    pub ours: Option<Timing>,
    pub bytes: f64,
    pub flops: f64,
    pub bound_ns: f64,
    /// `None` where no opponent ran.
    pub best: Option<Best>,
    pub seed: u64,
    pub commit: String,
    pub driver: String,
    pub date: String,
}

impl Row {
    /// Of ours.
    pub fn ns_median(&self) -> Option<f64> {
        self.ours.map(|ours| ours.ns_median)
    }

    /// 10^9 bytes a second: bytes by nanoseconds.
    pub fn gbs(&self) -> Option<f64> {
        Some(self.bytes / self.ns_median()?)
    }

    /// Of the bound: about 0 to 1.
    pub fn fraction(&self) -> Option<f64> {
        Some(self.bound_ns / self.ns_median()?)
    }

    /// `opponent_ns / ns_median`: above 1 this project is faster.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.best.as_ref()?.opponent_ns / self.ns_median()?)
    }

    /// One row a case, timed launch by launch: of the plan's own choice, or of the others where there is none.
    pub fn is_first(&self) -> bool {
        self.chooser != "caller" && !self.variant.contains('@')
    }

    /// The plan's own choice, timed launch by launch.
    pub fn is_main(&self) -> bool {
        self.ours.is_some() && self.is_first()
    }

    /// Column by column.
    pub fn fields(&self) -> [String; FIELDS.len()] {
        let case = &self.case;
        let best = |field: fn(&Best) -> String| self.best.as_ref().map(field).unwrap_or_default();
        let time = |of: fn(Timing) -> f64| self.ours.map(|ours| format!("{:.1}", of(ours))).unwrap_or_default();
        let derived = |number: Option<f64>, digits: usize| number.map(|x| format!("{x:.digits$}")).unwrap_or_default();
        [
            case.family.into(),
            case.dtype.into(),
            case.layout.to_string(),
            op(case.transpose_a).into(),
            op(case.transpose_b).into(),
            case.beta.to_string(),
            case.m.to_string(),
            case.n.to_string(),
            case.k.to_string(),
            case.lda.to_string(),
            case.ldb.to_string(),
            case.ldc.to_string(),
            case.batch.to_string(),
            self.device.clone(),
            self.variant.clone(),
            self.chooser.clone(),
            self.samples.to_string(),
            time(|ours| ours.ns_median),
            time(|ours| ours.ns_low),
            time(|ours| ours.ns_high),
            time(|ours| ours.ns_min),
            self.bytes.to_string(),
            self.flops.to_string(),
            derived(self.gbs(), 3),
            format!("{:.1}", self.bound_ns),
            derived(self.fraction(), 4),
            best(|best| best.opponent.clone()),
            best(|best| format!("{:.1}", best.opponent_ns)),
            derived(self.ratio(), 4),
            self.seed.to_string(),
            self.commit.clone(),
            self.driver.clone(),
            self.date.clone(),
        ]
    }

    /// From its columns; the derived ones (`gbs`, `fraction`, `ratio`) follow from the others.
    fn parse(fields: &[String]) -> Result<Self, String> {
        let at = Fields { fields };
        let operation = |name: &str| {
            let text = at.text(name);
            case::parse_op(text).ok_or_else(|| format!("{name} is '{text}', not n or t"))
        };
        let case = Case {
            family: case::family(at.text("family"))?,
            dtype: case::dtype(at.text("dtype"))?,
            layout: Layout::parse(at.text("layout")).ok_or_else(|| format!("layout is '{}'", at.text("layout")))?,
            transpose_a: operation("op_a")?,
            transpose_b: operation("op_b")?,
            beta: at.number("beta")?,
            m: at.number("m")?,
            n: at.number("n")?,
            k: at.number("k")?,
            lda: at.number("lda")?,
            ldb: at.number("ldb")?,
            ldc: at.number("ldc")?,
            batch: at.number("batch")?,
        };
        let best = match at.text("opponent") {
            "" => None,
            opponent => Some(Best { opponent: opponent.into(), opponent_ns: at.positive("opponent_ns")? }),
        };
        let ours = match at.text("ns_median") {
            "" if best.is_some() => None,
            "" => return Err("neither ns_median nor an opponent is there".into()),
            _ => Some(Timing {
                ns_median: at.positive("ns_median")?,
                ns_low: at.positive("ns_low")?,
                ns_high: at.positive("ns_high")?,
                ns_min: at.positive("ns_min")?,
            }),
        };
        Ok(Self {
            case,
            device: at.text("device").into(),
            variant: at.text("variant").into(),
            chooser: at.text("chooser").into(),
            samples: at.number("samples")?,
            ours,
            bytes: at.positive("bytes")?,
            flops: at.positive("flops")?,
            bound_ns: at.positive("bound_ns")?,
            best,
            seed: at.number("seed")?,
            commit: at.text("commit").into(),
            driver: at.text("driver").into(),
            date: at.text("date").into(),
        })
    }
}

/// A record's fields by name.
struct Fields<'a> {
    fields: &'a [String],
}

impl Fields<'_> {
    fn text(&self, name: &str) -> &str {
        let place = FIELDS.iter().position(|field| *field == name);
        place.and_then(|place| self.fields.get(place)).map_or("", String::as_str)
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<N, String> {
        let text = self.text(name);
        text.parse().map_err(|_| format!("{name} is '{text}', not a number as it must be"))
    }

    fn positive(&self, name: &str) -> Result<f64, String> {
        let value: f64 = self.number(name)?;
        if value > 0.0 && value.is_finite() { Ok(value) } else { Err(format!("{name} is {value}, not above 0")) }
    }
}

/// The whole file's text.
pub fn to_csv<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let header = csv::line(FIELDS);
    rows.into_iter().fold(header, |text, row| text + &csv::line(row.fields()))
}

/// The rows of a results file.
///
/// # Errors
/// [`Fault::Input`], one line that names the file, the line and what is wrong.
pub fn read(path: &Path) -> Result<Vec<Row>, Fault> {
    let text = std::fs::read_to_string(path).map_err(|error| Fault::file(path, &error))?;
    from_csv(&text).map_err(|reason| Fault::at(path, &reason))
}

fn from_csv(text: &str) -> Result<Vec<Row>, String> {
    let mut records = csv::records(text)?.into_iter();
    let (_, header) = records.next().ok_or("it is empty, not results of lanky bench")?;
    if header != FIELDS {
        let differing = header.iter().zip(FIELDS).find(|(found, wanted)| found != wanted);
        return Err(match differing {
            Some((found, wanted)) => format!("no results of lanky bench: a column is '{found}', not '{wanted}'"),
            None => format!("no results of lanky bench: it has {} columns, not {}", header.len(), FIELDS.len()),
        });
    }
    records
        .map(|(line, fields)| match fields.len() {
            count if count != FIELDS.len() => Err(format!("line {line} has {count} fields, not {}", FIELDS.len())),
            _ => Row::parse(&fields).map_err(|reason| format!("line {line}: {reason}")),
        })
        .collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A row with round numbers: 1 us, 4000 bytes, a bound of 0.8 us.
    pub fn row(n: u64, opponent_ns: Option<f64>) -> Row {
        let best = opponent_ns.map(|ns| Best { opponent: "cublas".into(), opponent_ns: ns });
        Row {
            case: Case::plain("tsm2r", "f64", (1000, n, 500)),
            device: "a \"GPU\", <b>".into(),
            variant: "dtsm2r_prefetch".into(),
            chooser: "model".into(),
            samples: 30,
            ours: Some(Timing { ns_median: 1000.0, ns_low: 990.0, ns_high: 1010.0, ns_min: 980.0 }),
            bytes: 4000.0,
            flops: 1e6,
            bound_ns: 800.0,
            best,
            seed: 1,
            commit: "abc".into(),
            driver: "580".into(),
            date: "2026-01-02".into(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let unserved = Row { ours: None, variant: "".into(), chooser: "".into(), ..row(8, Some(900.0)) };
        let rows = [row(2, Some(1100.0)), row(4, None), unserved];
        let text = to_csv(&rows);
        assert_eq!(from_csv(&text), Ok(rows.to_vec()));
        let line = text.lines().nth(1).expect("a row");
        assert!(line.contains(",1000.0,990.0,1010.0,980.0,4000,1000000,4.000,800.0,0.8000,cublas,1100.0,1.1000,"));
        assert!(text.lines().nth(2).expect("a row").contains(",0.8000,,,,1,abc,"), "a missing opponent is blank");
        let unserved = text.lines().nth(3).expect("a row");
        assert!(unserved.contains(",,,30,,,,,4000,1000000,,800.0,,cublas,900.0,,1,abc,"), "so are we: {unserved}");
    }

    #[test]
    fn the_header_is_the_schema() {
        let schema = "family,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,device,variant,chooser,samples,ns_median,\
            ns_low,ns_high,ns_min,bytes,flops,gbs,bound_ns,fraction,opponent,opponent_ns,ratio,seed,commit,driver,date\n";
        assert_eq!(to_csv(&[]), schema);
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        assert!(from_csv("").unwrap_err().contains("empty"));
        assert!(from_csv("a,b\n1,2\n").unwrap_err().contains("'a', not 'family'"));
        let text = to_csv(&[row(2, None)]);
        let of = |from: &str, to: &str| from_csv(&text.replace(from, to)).unwrap_err();
        assert_eq!(of(",1000.0,", ",NaN,"), "line 2: ns_median is NaN, not above 0");
        assert_eq!(of(",1000.0,990.0,1010.0,980.0,", ",,,,,"), "line 2: neither ns_median nor an opponent is there");
        assert_eq!(of(",500,", ",5OO,"), "line 2: k is '5OO', not a number as it must be");
        assert!(of("tsm2r,f64", "tsm9r,f64").starts_with("line 2: known are tsm2r"));
        assert!(from_csv(&(text + "x,y\n")).unwrap_err().contains("line 3 has 2 fields"));
    }
}
