//! `lanky trace`: a kernel on the CPU, thread by thread, and what a profiler would count of it. No GPU is needed.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use kernels::table::Complex;
use lanky::Scalar;
use model::{Dtype, Kernel, VARIANTS, Variant};

use crate::args::{Coefficient, Element};
use crate::error::Fault;
use crate::output::Output;
use crate::real::Real;
use crate::say;

mod counted;
mod drawing;
mod emulate;
mod finished;

use counted::Counted;
use emulate::{Layouts, Request};

/// Rows that a block has where several entries would do: what TSM2X uses on most GPUs.
const T1: u32 = 128;

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The operation whose kernels are traced: tsm2r, tsmm, gemv or gemm
    #[arg(value_name = "OPERATION")]
    pub operation: String,
    /// The kernel, by the name of its variant or of its entry [default: every variant of the operation]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Rows of A and C
    #[arg(long, default_value = "768", value_parser = dimension)]
    pub m: u32,
    /// Columns of B and C [default: 4, of gemv 1]
    #[arg(long, value_parser = dimension)]
    pub n: Option<u32>,
    /// Columns of A, rows of B
    #[arg(long, default_value = "768", value_parser = dimension)]
    pub k: u32,
    /// Element type
    #[arg(long, default_value = "f64")]
    pub dtype: Element,
    /// How A, B and C lie: column-major, row-major, or a letter each, as in rcc
    #[arg(long, default_value = "column-major", value_name = "LAYOUT")]
    pub layout: Layouts,
    /// Parts that k is cut into, whose sums another kernel adds
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=65535))]
    pub splits: u32,
    /// Factor of A B
    #[arg(long, default_value = "1", allow_hyphen_values = true, value_name = "X")]
    pub alpha: Coefficient,
    /// Factor of C; 0 does not read it
    #[arg(long, default_value = "0", allow_hyphen_values = true, value_name = "X")]
    pub beta: Coefficient,
    /// Draw where the first warp accesses memory
    #[arg(long, value_name = "FILE.svg", requires = "variant")]
    pub svg: Option<PathBuf>,
    /// Print one JSON object, or without --variant an array of them
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &TraceArgs) -> Result<(), Fault> {
    let (variants, n) = (variants(args)?, columns(args)?);
    let mut traces = Vec::new();
    for variant in variants {
        let request = Request {
            variant,
            m: args.m,
            n,
            k: args.k,
            layouts: args.layout,
            splits: args.splits,
            patterns: if args.svg.is_some() { drawing::RECORD } else { 0 },
        };
        request.check()?;
        let outcome = match variant.dtype {
            Dtype::F32 => request.run::<f32>(args.alpha.get("--alpha")?, args.beta.get("--beta")?)?,
            Dtype::F64 => request.run::<f64>(args.alpha.get("--alpha")?, args.beta.get("--beta")?)?,
            Dtype::C64 => request.run(complex::<f32>(&args.alpha, "--alpha")?, complex(&args.beta, "--beta")?)?,
            Dtype::C128 => request.run(complex::<f64>(&args.alpha, "--alpha")?, complex(&args.beta, "--beta")?)?,
        };
        if let Some(path) = &args.svg {
            write(path, &drawing::drawing(&outcome))?;
        }
        traces.push(Counted::of(&outcome));
    }
    match (args.json, traces.as_slice()) {
        (true, [trace]) if args.variant.is_some() => say::print_json(trace),
        (true, traces) => say::print_json(&traces),
        (false, traces) => say::print(&counted::text(traces)),
    }
}

/// The factor as kernels take it.
fn complex<T: Real>(factor: &Coefficient, option: &str) -> Result<Complex<T>, Fault> {
    let (re, im) = factor.get::<T::Complex>(option)?.parts();
    Ok(Complex::new(re, im))
}

/// Columns of B and C: of a vector one.
fn columns(args: &TraceArgs) -> Result<u32, Fault> {
    match (args.operation.as_str(), args.n) {
        ("gemv", Some(n)) if n != 1 => Err(Fault::Input(format!("--n {n}: gemv multiplies by a vector, n is 1"))),
        ("gemv", _) => Ok(1),
        (_, n) => Ok(n.unwrap_or(4)),
    }
}

/// The entries to trace: the one that is named, or one of the variant or of each.
fn variants(args: &TraceArgs) -> Result<Vec<&'static Variant>, Fault> {
    let operation = args.operation.as_str();
    // Those of two tall matrices are not traced yet.
    let traced = || VARIANTS.iter().filter(|variant| !matches!(variant.kernel, Kernel::Tsmttsm | Kernel::Gram));
    let of_operation = |variant: &&Variant| variant.name.split('_').next() == Some(operation);
    let all: Vec<&'static Variant> = traced().filter(of_operation).collect();
    if all.is_empty() {
        let known = names(traced().filter_map(|variant| variant.name.split('_').next())).join(", ");
        return Err(Fault::Input(format!("no kernels of '{operation}'; there are some of {known}")));
    }
    let dtype: Dtype = args.dtype.into();
    let fits = |variant: &&&'static Variant| variant.dtype == dtype && args.layout.suits(variant.layout);
    let n = columns(args)?;
    let Some(name) = args.variant.as_deref() else {
        // Those of whole tiles alone are traced by name.
        let any_tile = |variant: &&&'static Variant| variant.multiples().is_none();
        let entry = |name| entry(all.iter().filter(|variant| variant.name == name).filter(fits).filter(any_tile), n);
        return Ok(names(all.iter().map(|variant| variant.name)).into_iter().filter_map(entry).collect());
    };
    let named: Vec<&'static Variant> =
        all.iter().copied().filter(|variant| variant.name == name || variant.entry == name).collect();
    if named.is_empty() {
        let known = names(all.iter().map(|variant| variant.name)).join(", ");
        return Err(Fault::Input(format!("unknown variant '{name}' of {operation}; known are {known}")));
    }
    let why = if named.iter().any(|variant| variant.dtype == dtype) { "A in this layout" } else { dtype.name() };
    let none = || Fault::Input(format!("{name} has no entry for {why}"));
    Ok(vec![entry(named.iter().filter(fits), n).ok_or_else(none)?])
}

/// Of a variant's entries the one for n columns: of [`T1`] threads if there is one, of the least columns a thread that n
/// fits in, or else the most, and of the fewest elements of A a step.
fn entry<'a>(entries: impl Iterator<Item = &'a &'static Variant>, n: u32) -> Option<&'static Variant> {
    let columns = |t2: u32| if t2 >= n { t2 } else { u32::MAX - t2 };
    entries.min_by_key(|v| (v.threads != T1, columns(v.t2), v.t3)).copied()
}

/// Each once, in the order of their first.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    all.for_each(|name| {
        if !names.contains(&name) {
            names.push(name)
        }
    });
    names
}

fn dimension(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("at least 1".into()),
        Ok(len) => Ok(len),
        Err(error) => Err(error.to_string()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let mut output = Output::create(path)?;
    output.write_all(text.as_bytes()).map_err(|error| Fault::file(path, &error))?;
    output.commit()
}
