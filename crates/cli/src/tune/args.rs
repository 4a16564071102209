//! The command line of `lanky tune`.

use std::path::PathBuf;

use clap::Args;
use lanky::tuned::{FAMILIES, parse_layout};

use crate::args::{Element, Place};

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Families of products: tsm2r, tsmm, tsmttsm, gram, gemv, gemm [default: all]; with --device cpu batched
    #[arg(long, value_delimiter = ',', value_parser = family)]
    pub family: Vec<&'static str>,
    /// Element types [default: f32, f64; with --device cpu f64]
    #[arg(long, value_delimiter = ',')]
    pub dtype: Vec<Element>,
    /// How op(A), op(B) and C lie: a letter each, c (by columns) or r (by rows) [default: two of each family]
    #[arg(long, value_delimiter = ',', value_parser = layout, value_name = "ccc")]
    pub layout: Vec<[bool; 3]>,
    /// Whether C is read: 0, 1 or both
    #[arg(long, value_delimiter = ',', default_value = "0", value_parser = beta, value_name = "0,1")]
    pub beta: Vec<bool>,
    /// Begin no shape that is expected to end after so long: 60s, 5m, 1.5h, or none
    #[arg(long, default_value = "60s", value_parser = seconds)]
    pub budget: f64,
    /// A GPU, or an error: as --device auto
    #[arg(long, conflicts_with = "device")]
    pub gpu: bool,
    /// Where to measure: auto (the first usable GPU), cuda:N, or cpu: there the loops and blockings of batches of squares are searched, to see
    /// what the library leaves
    #[arg(long, default_value = "auto")]
    pub device: Place,
    /// Where the database goes; what is there of other shapes is kept, and shapes that it lacks come first [default: after the GPU, as
    /// nvidia-h200.tuned]. With --device cpu a CSV of all times of this run, in place of what is there [default: none]
    #[arg(short, long, value_name = "GPU.tuned")]
    pub output: Option<PathBuf>,
    /// With --device cpu, the sizes of squares
    #[arg(long, value_delimiter = ',', value_name = "2,4,..")]
    pub n: Vec<usize>,
    /// As Sorensen does: each shape the mean of nine around it, and with the kernels of his paper
    #[arg(long)]
    pub paper: bool,
    /// Times taken of each entry
    #[arg(long, default_value = "10", value_parser = samples)]
    pub samples: usize,
    /// No shape whose A, B and C have more bytes together, in MB of 10^6
    #[arg(long, default_value = "1100", value_name = "MB", value_parser = samples)]
    pub largest: usize,
    /// Of the data and of the orders in which entries run
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// Measure nothing: read this database, for --compare and --map
    #[arg(long, value_name = "GPU.tuned", conflicts_with_all = ["output", "paper", "gpu", "device"])]
    pub from: Option<PathBuf>,
    /// Say what the model loses: its choice's time over the best one's, of each family the geometric mean and the worst
    #[arg(long)]
    pub compare: bool,
    /// Make DIR and draw into it, of each kind of product, which entry was best where and how near to the bound it was
    #[arg(long, value_name = "DIR")]
    pub map: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A family by its name.
fn family(name: &str) -> Result<&'static str, String> {
    let known = FAMILIES.map(|family| family.name());
    match name {
        "tsm2l" => Err("shapes of tsm2l are tuned as those of tsmm".into()),
        "batched" => Ok("batched"),
        _ => known.into_iter().find(|family| *family == name).ok_or_else(|| format!("known are {}", known.join(", "))),
    }
}

fn layout(text: &str) -> Result<[bool; 3], String> {
    parse_layout(text).ok_or_else(|| "three letters c or r".into())
}

fn beta(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("0 or 1".into()),
    }
}

fn samples(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| "a whole number from 1 to 100000".into())
}

/// `60s`, `5m`, `1.5h`, `90`; `none` is infinite.
fn seconds(text: &str) -> Result<f64, String> {
    if text == "none" {
        return Ok(f64::INFINITY);
    }
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    let seconds = number.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
    seconds.map(|number| number * unit).ok_or_else(|| "a time as 60s, 5m or 1.5h, or none".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_have_units() {
        assert_eq!(["60s", "90", "5m", "1.5h"].map(seconds), [60.0, 90.0, 300.0, 5400.0].map(Ok));
        assert_eq!(seconds("none"), Ok(f64::INFINITY));
        for wrong in ["", "s", "-1s", "soon", "inf", "nan", "1d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert!(family("tsm2l").is_err_and(|why| why.contains("tsmm")) && family("gemv") == Ok("gemv"));
    }
}
