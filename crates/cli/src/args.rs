//! The command line.

use model::variants::batched::BATCHED;
use std::ffi::OsString;
use std::fmt;
use std::num::ParseFloatError;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use model::Dtype;
use num_traits::{Float, Zero};

use crate::bench::BenchArgs;
use crate::error::Fault;
use crate::examples;
use crate::plan::lies::LiesArgs;
use crate::progress::When;
use crate::real::Real;
use crate::report::ReportArgs;
use crate::trace::TraceArgs;
use crate::tune::TuneArgs;

/// Multiplies large matrices by skinny ones, on an NVIDIA GPU or the CPU.
#[derive(Debug, Parser)]
#[command(
    name = "lanky",
    version,
    disable_help_subcommand = true,
    after_help = "Results go to standard output, progress and reasons to standard error.\n\
        Exit codes: 0 done; 1 a check failed; 2 bad usage, input or output; 3 no usable device, or it failed; 130 Ctrl-C."
)]
pub struct Cli {
    /// Colours: auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
    /// Bars of progress: auto is on a terminal
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    pub progress: When,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Multiply two .npy files: C = alpha A B + beta C0
    #[command(after_help = examples::MUL)]
    Mul(MulArgs),
    /// Multiply a .npy matrix by a .npy vector: C = alpha op(A) x + beta C0, a vector
    #[command(after_help = examples::GEMV)]
    Gemv(GemvArgs),
    /// Multiply a .npy file by itself: C = alpha A^H A + beta C0
    #[command(after_help = examples::GRAM)]
    Gram(GramArgs),
    /// Multiply many small matrices, those of two .npy files of three axes: C_i = alpha A_i B_i + beta C0_i
    #[command(after_help = examples::BATCH)]
    Batch(BatchArgs),
    /// Multiply made-up matrices, check the result, and compare the speed with that of the memory
    #[command(after_help = examples::DEMO)]
    Demo(DemoArgs),
    /// Show the devices, the driver and the kernels
    #[command(after_help = examples::INFO)]
    Info(InfoArgs),
    /// Show which kernel would be chosen for a product, and why
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Check and time products, as fractions of what the device does at most, beside cuBLAS and others
    #[command(after_help = examples::BENCH)]
    Bench(Box<BenchArgs>),
    /// Make a page with figures of the results of lanky bench
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Run a kernel on the CPU, thread by thread, and count what a profiler counts
    #[command(after_help = examples::TRACE)]
    Trace(TraceArgs),
    /// Time what could compute products over a mesh of shapes, and write what took least into a database that plans follow
    #[command(after_help = examples::TUNE)]
    Tune(Box<TuneArgs>),
    /// Write the completions of a shell to standard output
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Write the man page to standard output, or all pages into a folder
    #[command(after_help = examples::MAN)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Make DIR and write a page for each command into it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct MulArgs {
    /// A, m x k: f32, f64, c64 or c128 (complex numbers), C or Fortran order; one axis is a row, which C then lacks
    #[arg(value_name = "A.npy")]
    pub a: PathBuf,
    /// B, k x n, of A's element type; one axis is a column, which C then lacks
    #[arg(value_name = "B.npy")]
    pub b: PathBuf,
    #[command(flatten)]
    pub result: ResultArgs,
    #[command(flatten)]
    pub op_a: OpA,
    #[command(flatten)]
    pub op_b: OpB,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
pub struct GemvArgs {
    /// A, m x k: f32, f64, c64 or c128 (complex numbers), C or Fortran order; one axis is a row
    #[arg(value_name = "A.npy")]
    pub a: PathBuf,
    /// x, of k elements and A's element type: one axis, one column or one row
    #[arg(value_name = "x.npy")]
    pub x: PathBuf,
    #[command(flatten)]
    pub result: ResultArgs,
    #[command(flatten)]
    pub op_a: OpA,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
pub struct GramArgs {
    /// A, k x n: f32, f64, c64 or c128 (complex numbers), C or Fortran order; one axis is a column
    #[arg(value_name = "A.npy")]
    pub a: PathBuf,
    #[command(flatten)]
    pub result: ResultArgs,
    /// A A^H in place of A^H A
    #[arg(long)]
    pub transpose_a: bool,
    /// A^T A of complex numbers, in place of A^H A; of real ones they are the same
    #[arg(long)]
    pub no_conj: bool,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
pub struct BatchArgs {
    /// A, batch x m x k: f32, f64, c64 or c128 (complex numbers), C or Fortran order; two axes are one A for all products
    #[arg(value_name = "A.npy")]
    pub a: PathBuf,
    /// B, batch x k x n, of A's element type; two axes are one B for all products
    #[arg(value_name = "B.npy")]
    pub b: PathBuf,
    #[command(flatten)]
    pub result: ResultArgs,
    #[command(flatten)]
    pub op_a: OpA,
    #[command(flatten)]
    pub op_b: OpB,
    /// Where to compute: cpu, auto or cuda:N; products with m, n or k above 32 a GPU computes one by one
    #[arg(long, default_value = "cpu")]
    pub device: Place,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What is done with A, or with each A of a batch, before it is multiplied.
#[derive(Clone, Copy, Debug, Args)]
pub struct OpA {
    /// Use A transposed: it is then stored k x m
    #[arg(long)]
    pub transpose_a: bool,
    /// Use the conjugate transpose of A; of real numbers it is the transpose
    #[arg(long, conflicts_with = "transpose_a")]
    pub adjoint_a: bool,
}

impl OpA {
    /// Whether A is transposed, and whether it is conjugated.
    pub const fn both(self) -> (bool, bool) {
        (self.transpose_a || self.adjoint_a, self.adjoint_a)
    }
}

/// The same of B.
#[derive(Clone, Copy, Debug, Args)]
pub struct OpB {
    /// Use B transposed: it is then stored n x k
    #[arg(long)]
    pub transpose_b: bool,
    /// Use the conjugate transpose of B; of real numbers it is the transpose
    #[arg(long, conflicts_with = "transpose_b")]
    pub adjoint_b: bool,
}

impl OpB {
    /// Whether B is transposed, and whether it is conjugated.
    pub const fn both(self) -> (bool, bool) {
        (self.transpose_b || self.adjoint_b, self.adjoint_b)
    }
}

/// C of `mul`, `gram` and `batch`, y of `gemv`.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// Where C goes ("-": standard output), in the order of C0 or else of A (of a batch always in C order); may be an input
    #[arg(short, long, value_name = "C.npy")]
    pub output: PathBuf,
    /// Factor of the product; a complex one is written re,im
    #[arg(long, default_value = "1", allow_hyphen_values = true, value_name = "X")]
    pub alpha: Coefficient,
    /// Factor of C0 [default: 1 with --c, else 0]
    #[arg(long, allow_hyphen_values = true, value_name = "X")]
    pub beta: Option<Coefficient>,
    /// C0, of C's shape and element type
    #[arg(long, visible_alias = "y", value_name = "C0.npy")]
    pub c: Option<PathBuf>,
}

/// What `mul`, `gemv`, `gram` and `demo` have in common.
#[derive(Debug, Args)]
pub struct HowArgs {
    /// Where to compute: auto, cuda:N or cpu
    #[arg(long, default_value = "auto")]
    pub device: Place,
    /// Force a kernel, by the name of its variant or of its entry (see lanky info)
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Plan for the same bits on every GPU of compute capability 8.0 or later, fast or not
    #[arg(long)]
    pub across_gpus: bool,
    /// Allow f32 of a large matrix and 17 to 64 columns to be multiplied in two parts by the matrix units, where that is faster: about as exact, but NaN for infinities and what is next to them
    #[arg(long, conflicts_with = "across_gpus")]
    pub split_f32: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Rows of A [default: 20480, smaller where memory or a CPU asks for it]
    #[arg(long, value_parser = length)]
    pub m: Option<usize>,
    /// Columns of B
    #[arg(long, default_value = "16", value_parser = length)]
    pub n: usize,
    /// Columns of A [default: as m]
    #[arg(long, value_parser = length)]
    pub k: Option<usize>,
    /// Element type
    #[arg(long, default_value = "f64")]
    pub dtype: Element,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Make DIR and write the PTX of the kernels into it, one file a module
    #[arg(long, value_name = "DIR")]
    pub ptx: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// C is M x N, A is M x K, B is K x N
    #[arg(value_names = ["M", "N", "K"], num_args = 3, required_unless_present = "against")]
    pub lengths: Vec<u64>,
    /// So many products of this size, M, N and K up to 32: packed, one after the other
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["against", "cached", "paper", "svg"])]
    pub batch: Option<u64>,
    /// Element type
    #[arg(long, default_value = "f64")]
    pub dtype: Element,
    /// The GPU to plan for, whether it is here or not: h200, a100, v100, rtx4090 .. [default: the one here, else h200]
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
    /// The GPU to plan for, from a TOML file: the fields of model::Machine by name, or like = "h200" and what differs
    #[arg(long, value_name = "X.toml", conflicts_with = "gpu")]
    pub gpu_file: Option<PathBuf>,
    /// Plan with what the GPU reached: the file with -ceilings that lanky bench writes beside its results
    #[arg(long, value_name = "X-ceilings.csv", conflicts_with = "paper")]
    pub ceilings: Option<PathBuf>,
    /// C is read too: a plan for beta other than 0
    #[arg(long, value_name = "BETA", default_value = "0", conflicts_with = "paper", allow_hyphen_values = true)]
    pub beta: f64,
    /// Force a kernel, by the name of its variant or of its entry
    #[arg(long, value_name = "NAME", conflicts_with = "paper")]
    pub variant: Option<String>,
    /// Allow f32 to be multiplied in two parts by the matrix units
    #[arg(long, conflicts_with = "paper")]
    pub split_f32: bool,
    #[command(flatten)]
    pub lies: LiesArgs,
    /// Plan for A, B and C that are in the GPU's second-level cache already, as those of a solver's loop are
    #[arg(long, conflicts_with = "paper")]
    pub cached: bool,
    /// Show the TSM2X paper's own reasoning, step by step
    #[arg(long)]
    pub paper: bool,
    /// Draw the roofline with the choice and what it was chosen from
    #[arg(long, value_name = "FIGURE.svg", conflicts_with = "paper")]
    pub svg: Option<PathBuf>,
    /// Compare the predictions with results of lanky bench; with -variants.csv, also the choices with the best of all
    #[arg(long, value_name = "RESULTS.csv", num_args = 1.., conflicts_with_all = ["lengths", "dtype", "variant", "beta", "cached", "paper", "svg"])]
    pub against: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// An element type on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Element {
    F32,
    F64,
    C64,
    C128,
}

impl From<Element> for Dtype {
    fn from(element: Element) -> Self {
        match element {
            Element::F32 => Self::F32,
            Element::F64 => Self::F64,
            Element::C64 => Self::C64,
            Element::C128 => Self::C128,
        }
    }
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

impl From<Color> for clap::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Auto,
    Cuda(u32),
    Cpu,
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ordinal = |digits: &str| digits.parse().map(Self::Cuda).map_err(|_| "cuda: wants a number, as in cuda:0");
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => text.strip_prefix("cuda:").map_or(Err("auto, cuda:N or cpu"), ordinal),
        }
    }
}

/// A number that becomes an element once the element type is known: `0.1` is then the nearest f32, not the nearest f32
/// to the nearest f64. A complex one is written with a comma: `0.5,-1`.
#[derive(Clone, Debug)]
pub struct Coefficient(String);

impl FromStr for Coefficient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 2 {
            return Err("it has more parts than a real and an imaginary one".into());
        }
        for part in parts {
            let value: f64 = part.parse().map_err(|error: ParseFloatError| error.to_string())?;
            // What is written in digits is a number, which rounding must not turn into infinity.
            if value.is_infinite() && part.contains(|letter: char| letter.is_ascii_digit()) {
                return Err("it is larger than any f64; infinity is inf".into());
            }
        }
        Ok(Self(text.into()))
    }
}

impl Coefficient {
    /// The number as an element; `option` names it in the error.
    pub fn get<T: lanky::Scalar<Real: Real>>(&self, option: &str) -> Result<T, Fault> {
        let wrong = || Fault::Input(format!("{option} {self} does not fit into {}", T::DTYPE));
        let part = |text: &str| {
            let value: T::Real = text.parse().map_err(|_| wrong())?;
            let overflowed = value.is_infinite() && text.parse().is_ok_and(f64::is_finite);
            if overflowed { Err(wrong()) } else { Ok(value) }
        };
        match self.0.split_once(',') {
            None => Ok(T::of_parts(part(&self.0)?, T::Real::zero())),
            Some((re, im)) if T::DTYPE.is_complex() => Ok(T::of_parts(part(re)?, part(im)?)),
            Some(_) => Err(Fault::Input(format!("{option} {self} is complex, but the elements are {}", T::DTYPE))),
        }
    }

    pub fn is_zero(&self) -> bool {
        self.0.split(',').all(|part| part.parse() == Ok(0.0_f64))
    }
}

impl fmt::Display for Coefficient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn length(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1".into()),
        Ok(length) => Ok(length),
        Err(error) => Err(error.to_string()),
    }
}

/// The command line, and its colours for all that is written; help and the version are printed here, which leaves nothing
/// to do.
pub fn parse() -> Result<Option<Cli>, Fault> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let arguments: Vec<_> = std::env::args_os().collect();
    // Help, and what is wrong with the line, are coloured as it asks before the rest of it is understood.
    let color = color_in(&arguments).unwrap_or(Color::Auto);
    anstream::ColorChoice::write_global(color.into());
    let parsed = Cli::command().color(color.into()).try_get_matches_from(&arguments);
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if matches!(error.kind(), DisplayHelp | DisplayVersion) => {
            error.print().map_err(|error| Fault::stdout(&error))?;
            Ok(None)
        }
        Err(error) => Err(usage(&error.to_string())),
    }
}

fn color_in(arguments: &[OsString]) -> Option<Color> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let apart = words.windows(2).find(|pair| pair[0] == "--color").map(|pair| pair[1]);
    let joined = words.iter().find_map(|word| word.strip_prefix("--color="));
    <Color as ValueEnum>::from_str(apart.or(joined)?, true).ok()
}

/// clap's explanation on one line, without its pages of advice.
fn usage(text: &str) -> Fault {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let words: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    let text = words.join(" ");
    Fault::Input(format!("{} (see lanky --help)", text.strip_prefix("error: ").unwrap_or(&text)))
}

/// Refuses a variant that does not exist before anything is read; `None` is the model's choice.
pub fn check_variant(variant: Option<&str>) -> Result<(), Fault> {
    let batched = |name: &str| BATCHED.iter().any(|variant| variant.name == name || variant.entry == name);
    let known = |name: &str| {
        model::VARIANTS.iter().any(|variant| variant.name == name || variant.entry == name) || batched(name)
    };
    match variant {
        Some(name) if !known(name) => {
            let batched = BATCHED.iter().map(|variant| variant.name);
            let mut names: Vec<&str> = model::VARIANTS.iter().map(|variant| variant.name).chain(batched).collect();
            names.sort_unstable();
            names.dedup();
            Err(Fault::Input(format!("unknown variant '{name}'; known are {}", names.join(", "))))
        }
        _ => Ok(()),
    }
}
