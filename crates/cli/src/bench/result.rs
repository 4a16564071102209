//! One row of results, as [`model::results::FIELDS`] names its columns.

use std::path::Path;

use lanky::text::read_text;
use model::results::{CEILING, FIELDS};
use serde::Serialize;

use super::case::{self, Case, Layout, op};
use super::ceiling::Ceiling;
use super::fields::{Fields, GBS_DIGITS, SHARE_DIGITS, ns_text, rounded};
use crate::csv;
use crate::error::Fault;

/// What is added to a variant's name where it was timed in another way than launch by launch on cold data.
pub const GRAPH: &str = "@graph";
pub const CACHED: &str = "@cached";
/// What is added to the name of whoever was faster than the device can be: an error of measurement.
pub const ABOVE: &str = "@above";

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

/// What follows from the times, as a file has it: with so many digits and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Derived {
    pub gbs: Option<f64>,
    pub fraction: Option<f64>,
    pub ratio: Option<f64>,
}

/// One measured case. Its numbers are those of its line in a file, digit for digit.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub case: Case,
    pub device: String,
    pub variant: String,
    /// `model`, or `caller` for a forced variant; empty where nothing was to choose.
    pub chooser: String,
    /// Parts of k; `None` where nobody noted them, or there are none.
    pub splits: Option<u32>,
    pub samples: usize,
    /// `None` where this project computes nothing of the kind yet: then an opponent ran.
    pub ours: Option<Timing>,
    pub bytes: f64,
    pub flops: f64,
    pub bound_ns: f64,
    /// `None` where no opponent ran.
    pub best: Option<Best>,
    pub derived: Derived,
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
        self.derived.gbs
    }

    /// Of the bound: about 0 to 1.
    pub fn fraction(&self) -> Option<f64> {
        self.derived.fraction
    }

    /// `opponent_ns / ns_median`: above 1 this project is faster.
    pub fn ratio(&self) -> Option<f64> {
        self.derived.ratio
    }

    /// With all numbers as a file has them, and what follows from those.
    pub fn derive(mut self) -> Self {
        let ns = |ns: f64| rounded(&ns_text(ns), ns);
        self.bound_ns = ns(self.bound_ns);
        if let Some(best) = &mut self.best {
            best.opponent_ns = ns(best.opponent_ns);
        }
        if let Some(ours) = &mut self.ours {
            let Timing { ns_median, ns_low, ns_high, ns_min } = *ours;
            *ours = Timing { ns_median: ns(ns_median), ns_low: ns(ns_low), ns_high: ns(ns_high), ns_min: ns(ns_min) };
        }
        let by_median = |number: f64, digits: usize| {
            let number = number / self.ns_median()?;
            Some(rounded(&format!("{number:.digits$}"), number))
        };
        self.derived = Derived {
            gbs: by_median(self.bytes, GBS_DIGITS),
            fraction: by_median(self.bound_ns, SHARE_DIGITS),
            ratio: self.best.as_ref().and_then(|best| by_median(best.opponent_ns, SHARE_DIGITS)),
        };
        self
    }

    /// Whether its figure is above the ceiling, so that it says nothing: ours, or where there is none the opponent's.
    pub fn is_error(&self) -> bool {
        let theirs = || self.best.as_ref().is_some_and(|best| best.opponent.ends_with(ABOVE));
        self.variant.contains(ABOVE) || (self.ours.is_none() && theirs())
    }

    /// One row a case, timed launch by launch: of the plan's own choice, or of the others where there is none.
    pub fn is_first(&self) -> bool {
        self.is_of_the_case() && !self.is_error()
    }

    /// The same, whether it says something or is an error of measurement.
    pub fn is_of_the_case(&self) -> bool {
        self.chooser != "caller" && !self.is_in_a_graph() && !self.variant.contains(CACHED)
    }

    /// Timed behind and before its like, in a graph of many launches.
    pub fn is_in_a_graph(&self) -> bool {
        self.variant.contains(GRAPH)
    }

    /// The plan's own choice, timed launch by launch.
    pub fn is_main(&self) -> bool {
        self.ours.is_some() && self.is_first()
    }

    /// Column by column.
    pub fn fields(&self) -> [String; FIELDS.len()] {
        let case = &self.case;
        let best = |field: fn(&Best) -> String| self.best.as_ref().map(field).unwrap_or_default();
        let time = |of: fn(Timing) -> f64| self.ours.map(|ours| ns_text(of(ours))).unwrap_or_default();
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
            self.splits.map(|splits| splits.to_string()).unwrap_or_default(),
            self.samples.to_string(),
            time(|ours| ours.ns_median),
            time(|ours| ours.ns_low),
            time(|ours| ours.ns_high),
            time(|ours| ours.ns_min),
            self.bytes.to_string(),
            self.flops.to_string(),
            derived(self.gbs(), GBS_DIGITS),
            ns_text(self.bound_ns),
            derived(self.fraction(), SHARE_DIGITS),
            best(|best| best.opponent.clone()),
            best(|best| ns_text(best.opponent_ns)),
            derived(self.ratio(), SHARE_DIGITS),
            self.seed.to_string(),
            self.commit.clone(),
            self.driver.clone(),
            self.date.clone(),
        ]
    }

    /// From its columns.
    fn parse(fields: &[String]) -> Result<Self, String> {
        let at = Fields::new(fields);
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
            beta: at.finite("beta")?,
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
            _ => Some(at.timing()?),
        };
        // Blank where it must be, and nowhere else.
        let derived = Derived {
            gbs: at.share("gbs", ours.is_some())?,
            fraction: at.share("fraction", ours.is_some())?,
            ratio: at.share("ratio", ours.is_some() && best.is_some())?,
        };
        Ok(Self {
            case,
            device: at.text("device").into(),
            variant: at.text("variant").into(),
            chooser: at.text("chooser").into(),
            splits: at.parts("splits")?,
            samples: at.number("samples")?,
            ours,
            bytes: at.positive("bytes")?,
            flops: at.positive("flops")?,
            bound_ns: at.positive("bound_ns")?,
            best,
            derived,
            seed: at.number("seed")?,
            commit: at.text("commit").into(),
            driver: at.text("driver").into(),
            date: at.text("date").into(),
        })
    }
}

/// The first line of every file.
pub fn header() -> String {
    csv::line(FIELDS)
}

/// What a file holds: products, and the ceilings that they are held against.
#[derive(Debug, Default, PartialEq)]
pub struct Results {
    pub rows: Vec<Row>,
    pub ceilings: Vec<Ceiling>,
}

/// The rows of a results file that are of products.
///
/// # Errors
/// [`Fault::Input`], one line that names the file, the line and what is wrong.
pub fn read(path: &Path) -> Result<Vec<Row>, Fault> {
    Ok(read_all(path)?.rows)
}

/// All rows of a results file.
///
/// # Errors
/// As [`read`].
pub fn read_all(path: &Path) -> Result<Results, Fault> {
    let text = read_text(path).map_err(|error| Fault::file(path, &error))?;
    from_csv(&text).map_err(|reason| Fault::at(path, &reason))
}

fn from_csv(text: &str) -> Result<Results, String> {
    let mut records = csv::records(text)?.into_iter();
    let (_, header) = records.next().ok_or("it is empty, not results of lanky bench")?;
    if header != FIELDS {
        let differing = header.iter().zip(FIELDS).find(|(found, wanted)| found != wanted);
        return Err(match differing {
            Some((found, wanted)) => format!("no results of lanky bench: a column is '{found}', not '{wanted}'"),
            None => format!("no results of lanky bench: it has {} columns, not {}", header.len(), FIELDS.len()),
        });
    }
    let mut results = Results::default();
    for (line, fields) in records {
        let at = |reason: String| format!("line {line}: {reason}");
        match fields.first() {
            _ if fields.len() != FIELDS.len() => {
                return Err(format!("line {line} has {} fields, not {}", fields.len(), FIELDS.len()));
            }
            Some(family) if family == CEILING => results.ceilings.push(Ceiling::parse(&fields).map_err(at)?),
            _ => results.rows.push(Row::parse(&fields).map_err(at)?),
        }
    }
    Ok(results)
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
            splits: Some(3),
            samples: 30,
            ours: Some(Timing { ns_median: 1000.0, ns_low: 990.0, ns_high: 1010.0, ns_min: 980.0 }),
            bytes: 4000.0,
            flops: 1e6,
            bound_ns: 800.0,
            best,
            derived: Derived::default(),
            seed: 1,
            commit: "abc".into(),
            driver: "580".into(),
            date: "2026-01-02".into(),
        }
        .derive()
    }

    fn to_csv(rows: &[Row]) -> String {
        rows.iter().fold(header(), |text, row| text + &csv::line(row.fields()))
    }

    #[test]
    fn what_is_written_is_read() {
        let unserved =
            Row { ours: None, variant: "".into(), chooser: "".into(), splits: None, ..row(8, Some(900.0)) }.derive();
        let rows = [row(2, Some(1100.0)), row(4, None), unserved];
        let text = to_csv(&rows);
        assert_eq!(from_csv(&text), Ok(Results { rows: rows.to_vec(), ceilings: Vec::new() }));
        let line = text.lines().nth(1).expect("a row");
        assert!(line.contains(",1000.0,990.0,1010.0,980.0,4000,1000000,4.000,800.0,0.8000,cublas,1100.0,1.1000,"));
        assert!(text.lines().nth(2).expect("a row").contains(",0.8000,,,,1,abc,"), "a missing opponent is blank");
        let unserved = text.lines().nth(3).expect("a row");
        assert!(unserved.contains(",,,,30,,,,,4000,1000000,,800.0,,cublas,900.0,,1,abc,"), "so are we: {unserved}");
    }

    #[test]
    fn the_header_is_the_schema() {
        let schema = "family,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,device,variant,chooser,splits,samples,ns_median,\
            ns_low,ns_high,ns_min,bytes,flops,gbs,bound_ns,fraction,opponent,opponent_ns,ratio,seed,commit,driver,date\n";
        assert_eq!(header(), schema);
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        assert!(from_csv("").unwrap_err().contains("empty"));
        assert!(from_csv("a,b\n1,2\n").unwrap_err().contains("'a', not 'family'"));
        let text = to_csv(&[row(2, None)]);
        let of = |from: &str, to: &str| from_csv(&text.replace(from, to)).unwrap_err();
        assert_eq!(of(",0.8000,", ",,"), "line 2: fraction is '', not a number as it must be");
        assert_eq!(of(",0.8000,,,,", ",0.8000,,,1.5,"), "line 2: ratio is '1.5', but must be blank here");
        assert_eq!(of("ccc,n,n,0,", "ccc,n,n,NaN,"), "line 2: beta is NaN, not a finite number");
        assert_eq!(of(",1000.0,", ",NaN,"), "line 2: ns_median is NaN, not above 0");
        assert_eq!(of(",1000.0,990.0,1010.0,980.0,", ",,,,,"), "line 2: neither ns_median nor an opponent is there");
        assert_eq!(of(",model,3,", ",model,0,"), "line 2: splits is '0', not a number of parts above 0");
        assert_eq!(of(",500,", ",5OO,"), "line 2: k is '5OO', not a number as it must be");
        assert!(of("tsm2r,f64", "tsm9r,f64").starts_with("line 2: known are tsm2r"));
        assert!(from_csv(&(text + "x,y\n")).unwrap_err().contains("line 3 has 2 fields"));
    }

    /// A reader takes the numbers of the file, and what a row says is what its line says.
    #[test]
    fn the_numbers_are_those_of_the_file() {
        let exact = Row {
            ours: Some(Timing { ns_median: 1234.5678, ns_low: 1230.04, ns_high: 1240.06, ns_min: 1229.999 }),
            bound_ns: 3.000_000_4,
            ..row(2, Some(987.6543))
        };
        let row = exact.derive();
        assert_eq!(row.ns_median(), Some(1234.6));
        assert_eq!((row.gbs(), row.fraction(), row.ratio()), (Some(3.24), Some(0.0024), Some(0.8)));
        let text = to_csv(std::slice::from_ref(&row));
        assert!(
            text.contains(",1234.6,1230.0,1240.1,1230.0,4000,1000000,3.240,3.000000,0.0024,cublas,987.7,0.8000,"),
            "{text}"
        );
        assert_eq!(from_csv(&text).map(|read| read.rows), Ok(vec![row]));
        // Also where somebody else rounded.
        let other = text.replace(",0.0024,", ",0.0025,");
        assert_eq!(from_csv(&other).map(|read| read.rows[0].fraction()), Ok(Some(0.0025)));
    }

    /// What the program would derive from the committed files' times is what stands there, but for the last digit, which it
    /// once derived from more digits than it wrote.
    #[test]
    fn committed_numbers_follow_from_their_times() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/results/h200");
        let Ok(files) = std::fs::read_dir(&folder) else { return };
        let mut rows = 0;
        for file in files.map(|file| file.expect("an entry").path()) {
            for row in read(&file).expect("results") {
                let derived = row.clone().derive().derived;
                for (found, wanted, digit) in [
                    (row.gbs(), derived.gbs, 0.001),
                    (row.fraction(), derived.fraction, 0.0001),
                    (row.ratio(), derived.ratio, 0.0001),
                ] {
                    assert_eq!(found.is_some(), wanted.is_some(), "{}", row.case.name());
                    // 0.05 ns of some microseconds are more than a digit of four.
                    let slack = 1.01 * digit + 2e-5 * wanted.unwrap_or(0.0);
                    let near = (found.unwrap_or(0.0) - wanted.unwrap_or(0.0)).abs() <= slack;
                    assert!(near, "{found:?} {wanted:?} {}", row.case.name());
                }
                rows += 1;
            }
        }
        assert!(rows > 1000, "{rows}");
    }

    #[test]
    fn errors_of_measurement_are_no_results() {
        let above = Row { variant: format!("x{ABOVE}"), ..row(2, None) };
        assert!(above.is_of_the_case() && above.is_error() && !above.is_first() && !above.is_main());
        let theirs = Row { ours: None, variant: String::new(), chooser: String::new(), ..row(2, Some(1.0)) };
        assert!(theirs.is_first() && !theirs.is_main());
        let best = Some(Best { opponent: format!("cublas{ABOVE}"), opponent_ns: 1.0 });
        assert!(!Row { best: best.clone(), ..theirs }.is_first());
        // Ours is right, whatever theirs is.
        assert!(Row { best, ..row(2, None) }.is_main());
    }
}
