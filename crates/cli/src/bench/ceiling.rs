//! What the device does at most, as rows of the results' schema: family `ceiling`, a row for each kind of work and element
//! type. A ceiling is the best of its measurements: bytes, or flops, by `ns_min`.

use lanky::{CeilingTimes, Dtype};
use model::results::{CEILING, FIELDS};

use super::case;
use super::fields::{Fields, ns_text};
use super::origin::Origin;
use super::result::Timing;
use super::stats::Summary;

/// The kinds of work, and whether they move memory.
const KINDS: [(&str, bool); 6] =
    [("read", true), ("copy", true), ("write", true), ("update", true), ("fma", false), ("mma", false)];

/// One of the ceilings.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// `read`, `copy`, `write`, `update`, `fma` or `mma`.
    pub what: &'static str,
    /// Of the elements that were moved or multiplied.
    pub dtype: &'static str,
    pub device: String,
    pub samples: usize,
    pub times: Timing,
    /// Moved in a measurement; 0 where multipliers were measured.
    pub bytes: f64,
    /// Done in a measurement; 0 where memory was measured.
    pub flops: f64,
    pub seed: u64,
    pub commit: String,
    pub driver: String,
    pub date: String,
}

impl Ceiling {
    /// `None` if the clock showed no time.
    pub fn new(times: &CeilingTimes, origin: &Origin, seed: u64) -> Option<Self> {
        let summary = Summary::of(&times.seconds, seed).filter(|summary| summary.min > 0.0)?;
        let ns = |seconds: f64| ns_text(seconds * 1e9).parse().unwrap_or(seconds * 1e9);
        let Summary { median, low, high, min, samples } = summary;
        Some(Self {
            what: kind(times.what).ok()?,
            dtype: if times.dtype == Dtype::F32 { "f32" } else { "f64" },
            device: origin.device.clone(),
            samples,
            times: Timing { ns_median: ns(median), ns_low: ns(low), ns_high: ns(high), ns_min: ns(min) },
            bytes: times.bytes,
            flops: 2.0 * times.fmas,
            seed,
            commit: origin.commit.clone(),
            driver: origin.driver.clone(),
            date: origin.date.clone(),
        })
    }

    /// Whether it is the memory's: then its rate is in GB/s, else in GFLOP/s.
    pub fn is_memory(&self) -> bool {
        self.bytes > 0.0
    }

    /// GB/s or GFLOP/s of the best measurement.
    pub fn rate(&self) -> f64 {
        (self.bytes + self.flops) / self.times.ns_min
    }

    /// Elements that a measurement reads, or where it reads none writes; multiply-adds where it does those.
    fn elements(&self) -> f64 {
        let element = if self.dtype == "f32" { 4.0 } else { 8.0 };
        let ways = if matches!(self.what, "copy" | "update") { 2.0 } else { 1.0 };
        if self.is_memory() { self.bytes / element / ways } else { self.flops / 2.0 }
    }

    /// Column by column; what a ceiling has not is blank.
    pub fn fields(&self) -> [String; FIELDS.len()] {
        FIELDS.map(|name| match name {
            "family" => CEILING.into(),
            "dtype" => self.dtype.into(),
            "layout" => "ccc".into(),
            "op_a" | "op_b" => "n".into(),
            "beta" => "0".into(),
            "m" | "lda" | "ldc" => self.elements().to_string(),
            "n" | "k" | "ldb" | "batch" => "1".into(),
            "device" => self.device.clone(),
            "variant" => self.what.into(),
            "samples" => self.samples.to_string(),
            "ns_median" => ns_text(self.times.ns_median),
            "ns_low" => ns_text(self.times.ns_low),
            "ns_high" => ns_text(self.times.ns_high),
            "ns_min" => ns_text(self.times.ns_min),
            "bytes" => self.bytes.to_string(),
            "flops" => self.flops.to_string(),
            "gbs" if self.is_memory() => format!("{:.3}", self.bytes / self.times.ns_median),
            "seed" => self.seed.to_string(),
            "commit" => self.commit.clone(),
            "driver" => self.driver.clone(),
            "date" => self.date.clone(),
            _ => String::new(),
        })
    }

    /// From its columns.
    pub fn parse(fields: &[String]) -> Result<Self, String> {
        let at = Fields::new(fields);
        let what = kind(at.text("variant"))?;
        let is_memory = KINDS.contains(&(what, true));
        let of = |name: &str, is_there: bool| if is_there { at.positive(name) } else { Ok(0.0) };
        Ok(Self {
            what,
            dtype: case::dtype(at.text("dtype"))?,
            device: at.text("device").into(),
            samples: at.number("samples")?,
            times: at.timing()?,
            bytes: of("bytes", is_memory)?,
            flops: of("flops", !is_memory)?,
            seed: at.number("seed")?,
            commit: at.text("commit").into(),
            driver: at.text("driver").into(),
            date: at.text("date").into(),
        })
    }
}

fn kind(name: &str) -> Result<&'static str, String> {
    let known = KINDS.iter().find(|(kind, _)| *kind == name);
    known.map(|(kind, _)| *kind).ok_or_else(|| {
        let names = KINDS.map(|(kind, _)| kind).join(", ");
        format!("variant is '{name}', but the ceilings are {names}")
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Measured at 990, 1000 and 1010 ns.
    pub fn ceiling(what: &'static str, dtype: &'static str, per_ns: f64) -> Ceiling {
        let origin = Origin {
            device: "a \"GPU\", <b>".into(),
            driver: "580".into(),
            commit: "abc".into(),
            date: "2026-01-02".into(),
        };
        let is_memory = KINDS.contains(&(what, true));
        let amount = 990.0 * per_ns;
        let times = CeilingTimes {
            what,
            dtype: if dtype == "f32" { Dtype::F32 } else { Dtype::F64 },
            bytes: if is_memory { amount } else { 0.0 },
            fmas: if is_memory { 0.0 } else { amount / 2.0 },
            seconds: vec![1.01e-6, 0.99e-6, 1e-6],
        };
        Ceiling::new(&times, &origin, 1).expect("times")
    }

    #[test]
    fn a_ceiling_is_its_best_measurement() {
        let copy = ceiling("copy", "f64", 16.0);
        assert_eq!((copy.rate(), copy.elements(), copy.samples), (16.0, 990.0, 3));
        let line = crate::csv::line(copy.fields());
        let begin = "ceiling,f64,ccc,n,n,0,990,1,1,990,1,990,1,\"a \"\"GPU\"\", <b>\",copy,,,3,1000.0,990.0,1010.0,990.0,15840,0,";
        assert!(line.starts_with(begin) && line.ends_with(",15.840,,,,,,1,abc,580,2026-01-02\n"), "{line}");
        let mma = ceiling("mma", "f64", 60.0);
        assert_eq!((mma.rate(), mma.elements(), mma.is_memory()), (60.0, 29_700.0, false));
        assert!(crate::csv::line(mma.fields()).contains(",0,59400,,,,,,,1,abc,"), "multipliers have no GB/s");
    }

    #[test]
    fn what_is_written_is_read() {
        for (what, dtype) in [("read", "f64"), ("update", "f64"), ("fma", "f32"), ("mma", "f64")] {
            let ceiling = ceiling(what, dtype, 5.0);
            assert_eq!(Ceiling::parse(&ceiling.fields()), Ok(ceiling));
        }
        let mut fields = ceiling("read", "f64", 5.0).fields();
        fields[14] = "reed".into();
        assert!(Ceiling::parse(&fields).is_err_and(|why| why.contains("'reed'") && why.contains("read, copy")));
    }
}
