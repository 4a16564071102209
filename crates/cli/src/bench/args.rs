//! The command line of `lanky bench`.

use std::path::PathBuf;

use clap::Args;

use super::case::{self, Layout};
use crate::args::Place;

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Families of cases: tsm2r, gemm, .. [default: tsm2r and a gemm, or all of the suite]
    #[arg(long, value_delimiter = ',', value_parser = case::family)]
    pub family: Vec<&'static str>,
    /// Element types: f32, f64, c64, c128 [default: f32, f64, or all of the suite]
    #[arg(long, value_delimiter = ',', value_parser = case::dtype)]
    pub dtype: Vec<&'static str>,
    /// Rows of A and C
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = length)]
    pub m: Vec<u64>,
    /// Columns of A, rows of B
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = length)]
    pub k: Vec<u64>,
    /// Columns of B and C
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = length)]
    pub n: Vec<u64>,
    /// Products at once [default: 1, of family batched 10000]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = length)]
    pub batch: Vec<u64>,
    /// Factors of C before it is added to [default: 0 and 1, or the suite's]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = finite)]
    pub beta: Vec<f64>,
    /// How A, B and C lie: a letter each, c (by columns) or r (by rows); col and row are ccc and rrr
    #[arg(long, value_delimiter = ',', value_parser = layout, value_name = "ccc")]
    pub layout: Vec<Layout>,
    /// Whether A and B are used transposed: nn, tn, nt, tt [default: nn, of family gram tn]
    #[arg(long, value_parser = ops, value_name = "nn")]
    pub ops: Option<(bool, bool)>,
    /// Leading dimension of A as stored [default: no gaps]
    #[arg(long)]
    pub lda: Option<u64>,
    /// Leading dimension of B as stored [default: no gaps]
    #[arg(long)]
    pub ldb: Option<u64>,
    /// Leading dimension of C [default: no gaps]
    #[arg(long)]
    pub ldc: Option<u64>,
    /// Cases from a file, or `default`: those that the program carries
    #[arg(long, value_name = "FILE", conflicts_with_all = ["m", "n", "k", "batch", "lda", "ldb", "ldc", "ops"])]
    pub suite: Option<PathBuf>,
    /// Done in a minute: begin no case after 40 seconds, and none with more data than 256 MiB, on a GPU 8 GiB
    #[arg(long)]
    pub quick: bool,
    /// Begin no case after so many seconds
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true, value_parser = seconds)]
    pub time_limit: Option<f64>,
    /// Also time a forced variant (the model's entry of it), an entry, all entries whose variant or own name begins so, or all
    /// that can compute a case; of several, those that take 1.5 times as long as the fastest are timed once
    #[arg(long, value_name = "NAME|NAME*|all")]
    pub variant: Option<String>,
    /// Allow f32 to be multiplied in two parts by the matrix units
    #[arg(long)]
    pub split_f32: bool,
    /// Whom to compare with, by the first letters of their names, or none [default: all that are found]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub against: Vec<String>,
    /// Where to compute: auto, cuda:N or cpu
    #[arg(long, default_value = "auto")]
    pub device: Place,
    /// Times taken of each
    #[arg(long, default_value = "30", allow_hyphen_values = true, value_parser = samples)]
    pub samples: usize,
    /// Of the data, of the orders in which contestants run, and of the intervals
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    pub seed: u64,
    /// Let data that fits into the cache stay there; such rows are labelled
    #[arg(long)]
    pub cached: bool,
    /// Write the results into a file, row by row; those of forced variants and cached data into one with -variants in its
    /// name, those in graphs into one with -graphs, the ceilings into one with -ceilings
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Measure nothing: say what moved from one results file to another; exit code 1 if a case became slower or vanished
    #[arg(long, num_args = 2, value_names = ["OLD.csv", "NEW.csv"], conflicts_with_all = ["suite", "m", "n", "k", "batch"])]
    pub compare: Option<Vec<PathBuf>>,
    /// Percent by which something may become slower
    #[arg(long, default_value = "5", value_name = "PERCENT", allow_hyphen_values = true, value_parser = percent)]
    pub tolerance: f64,
}

/// What is timed beside the plan's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside<'a> {
    /// Nothing.
    Nothing,
    /// An entry, or the model's of a variant.
    One(&'a str),
    /// Every entry whose variant or own name begins so.
    Every(&'a str),
}

impl Beside<'_> {
    /// Whether an entry of a variant is one of [`Beside::Every`].
    pub fn has(self, variant: &str, entry: &str) -> bool {
        matches!(self, Beside::Every(start) if variant.starts_with(start) || entry.starts_with(start))
    }
}

impl BenchArgs {
    /// What `--variant` says.
    pub fn beside(&self) -> Beside<'_> {
        match self.variant.as_deref() {
            None => Beside::Nothing,
            Some("all") => Beside::Every(""),
            Some(name) => name.strip_suffix('*').map_or(Beside::One(name), Beside::Every),
        }
    }
}

fn length(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".into()),
        Ok(length) => Ok(length),
        Err(error) => Err(format!("{error}")),
    }
}

fn samples(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".into()),
        Ok(count) if count <= 100_000 => Ok(count),
        Ok(_) => Err("at most 100000".into()),
        Err(error) => Err(format!("{error}")),
    }
}

fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err("a finite number".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match finite(text) {
        Ok(seconds) if seconds >= 0.0 => Ok(seconds),
        Ok(_) => Err("0 or more".into()),
        Err(error) => Err(error),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent),
        Ok(_) => Err("a percentage of 0 or more".into()),
        Err(error) => Err(error.to_string()),
    }
}

pub fn layout(text: &str) -> Result<Layout, String> {
    Layout::parse(text).ok_or_else(|| "three letters c or r, or col, or row".into())
}

pub fn ops(text: &str) -> Result<(bool, bool), String> {
    match text {
        "nn" => Ok((false, false)),
        "tn" => Ok((true, false)),
        "nt" => Ok((false, true)),
        "tt" => Ok((true, true)),
        _ => Err("nn, tn, nt or tt".into()),
    }
}
