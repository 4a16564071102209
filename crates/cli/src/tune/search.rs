//! `lanky tune --device cpu`: the loops and blockings of batches on the CPU, searched as MAGMA's authors do.
//!
//! Squares of a size in a batch that comes from memory: each kernel that is worth a try runs a few times, in an order that is drawn, as long as
//! the size's part of the budget lasts; the fastest ones race against the library. The library does not follow what is found: it
//! shows where another order of its loops would be faster.

use std::io::Write;
use std::time::Instant;

use cpu::{Blocking, Searched, Trial};
use lanky::{Device, Scalar};
use serde::Serialize;

use super::TuneArgs;
use crate::args::Element;
use crate::bench::random::Random;
use crate::bench::{data, origin::Origin};
use crate::csv;
use crate::error::Fault;
use crate::interrupt;
use crate::made_up::wide;
use crate::memory;
use crate::output::Output;
use crate::progress::Progress;
use crate::say::{self, float};

/// Sizes, unless others are asked for.
const SIZES: [usize; 12] = [2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 28, 32];
/// What a run reads and writes, bytes: more than caches hold, and few enough for many runs.
const BYTES: usize = 64 << 20;
/// Runs of each kernel, the least of which counts.
const RUNS: usize = 2;
/// Kernels that race.
const RACERS: usize = 5;
/// Of a size's time so much is for the kernels, the rest for the race.
const SHARE: f64 = 0.8;

/// What was found of a size.
#[derive(Debug, Serialize)]
struct Found {
    dtype: &'static str,
    n: usize,
    beta: u8,
    /// Kernels there are, that were worth a try, and that were tried.
    all: usize,
    kept: usize,
    tried: usize,
    /// The fastest, and its and the library's median time of a product, ns; and what it read and wrote, GB/s.
    best: String,
    ns: f64,
    library_ns: f64,
    gbs: f64,
    /// Of every kernel that was tried its least time of a product, ns.
    #[serde(skip)]
    times: Vec<(Blocking, f64)>,
}

/// Runs the search.
///
/// # Errors
/// [`Fault::Input`]: a family or a type that there is nothing of to search; [`Fault::Check`]: a kernel gave other bits than the library;
/// [`Fault::Stopped`] after a signal, when what was found was said.
pub fn run(args: &TuneArgs) -> Result<(), Fault> {
    let dtypes = asked(args)?;
    // Before anything is timed: a place that cannot be written is known at once.
    let output = args.output.as_deref().map(Output::create).transpose()?;
    if cfg!(debug_assertions) {
        say::note("this is an unoptimised build: its kernels take many times as long");
    }
    interrupt::stop_by_asking();
    let sizes = if args.n.is_empty() { &SIZES[..] } else { &args.n };
    let mut places = Vec::new();
    for &dtype in &dtypes {
        let of = |&adds: &bool| sizes.iter().map(move |&n| (dtype, n, adds));
        places.extend(args.beta.iter().flat_map(of));
    }
    let (began, progress) = (Instant::now(), Progress::of_steps("searching", places.len()));
    let mut found = Vec::new();
    for (done, &(dtype, n, adds)) in places.iter().enumerate() {
        let left_s = args.budget - began.elapsed().as_secs_f64();
        if left_s <= 0.0 || interrupt::signalled().is_some() {
            break;
        }
        let until_s = left_s / float(places.len() - done);
        found.push(match dtype {
            Element::F32 => searched::<f32>(args, (n, adds), until_s),
            _ => searched::<f64>(args, (n, adds), until_s),
        }?);
        progress.reached(done + 1, &format!("searching, {}", say::time(left_s.min(86_400.0))));
    }
    drop(progress);
    if let Some(mut output) = output {
        output.write_all(table(&found).as_bytes()).map_err(|error| output.fault(&error))?;
        output.commit()?;
    }
    if args.json {
        say::print_json(&found)?;
    } else {
        say::print(&text(&found, places.len()))?;
    }
    interrupt::signalled().map_or(Ok(()), |signal| Err(Fault::Stopped(signal)))
}

/// The types that are asked for, if all that is asked for can be searched.
fn asked(args: &TuneArgs) -> Result<Vec<Element>, Fault> {
    if let Some(other) = args.family.iter().find(|family| **family != "batched") {
        let why = format!("--family {other} --device cpu: on the CPU there is something to tune of batches alone");
        return Err(Fault::Input(why));
    }
    for (given, name) in [(args.paper, "--paper"), (args.compare, "--compare"), (args.map.is_some(), "--map")] {
        if given {
            return Err(Fault::Input(format!("{name} --device cpu: it is of the databases of GPUs")));
        }
    }
    if let Some(n) = args.n.iter().find(|n| !(1..=cpu::MOST).contains(*n)) {
        return Err(Fault::Input(format!("--n {n}: from 1 to {}", cpu::MOST)));
    }
    match args.dtype.iter().find(|dtype| !matches!(dtype, Element::F32 | Element::F64)) {
        Some(_) => Err(Fault::Input("--dtype: the loops of real numbers are searched, f32 and f64".into())),
        None if args.dtype.is_empty() => Ok(vec![Element::F64]),
        None => Ok(args.dtype.clone()),
    }
}

/// The search of one size, in so many seconds.
fn searched<T: Searched + Scalar + cpu::Element>(
    args: &TuneArgs,
    (n, adds): (usize, bool),
    budget_s: f64,
) -> Result<Found, Fault> {
    let began = Instant::now();
    let each = n * n * size_of::<T>() * if adds { 4 } else { 3 };
    let count = BYTES.div_ceil(each);
    // A, B and C, and of C two results that are compared.
    memory::ask(wide(5 * count * n * n * size_of::<T>()))?;
    let mut operand = 0;
    let mut trial = Trial::<T>::new(n, count, adds, |elements| {
        data::source(args.seed, operand).fill(0, elements);
        operand += 1;
    });
    let (mut kernels, all) = trial.kernels();
    let kept = kernels.len();
    Random::of(args.seed, T::DTYPE.name()).shuffle(&mut kernels);
    let mut times: Vec<(Blocking, f64)> = Vec::new();
    for blocking in kernels {
        // One at least, so that there is an answer.
        let is_over = began.elapsed().as_secs_f64() > SHARE * budget_s || interrupt::signalled().is_some();
        if is_over && !times.is_empty() {
            break;
        }
        let least = (0..RUNS).map(|_| timed(&mut trial, Some(blocking))).fold(f64::INFINITY, f64::min);
        times.push((blocking, least / float(count) * 1e9));
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let racers: Vec<Blocking> = times.iter().take(RACERS).map(|(blocking, _)| *blocking).collect();
    same_bits(&mut trial, &racers)?;

    let mut race = vec![Vec::new(); racers.len() + 1];
    for round in 0..args.samples {
        if round > 0 && interrupt::signalled().is_some() {
            break;
        }
        for (by, seconds) in racers.iter().copied().map(Some).chain([None]).zip(&mut race) {
            seconds.push(timed(&mut trial, by));
        }
    }
    let medians: Vec<f64> = race.iter_mut().map(|seconds| median(seconds)).collect();
    let (library, raced) = medians.split_last().ok_or_else(|| Fault::Input("nobody raced".into()))?;
    let least = (0..raced.len()).fold(0, |least, at| if raced[at] < raced[least] { at } else { least });
    Ok(Found {
        dtype: T::DTYPE.name(),
        n,
        beta: u8::from(adds),
        all,
        kept,
        tried: times.len(),
        best: racers[least].to_string(),
        ns: raced[least] / float(count) * 1e9,
        library_ns: library / float(count) * 1e9,
        gbs: say::gbs(float(trial.bytes()), raced[least]),
        times,
    })
}

/// Seconds of one run.
fn timed<T: Searched + cpu::Element>(trial: &mut Trial<T>, by: Option<Blocking>) -> f64 {
    let start = Instant::now();
    trial.run(by);
    start.elapsed().as_secs_f64()
}

/// The order of the loops changes no bit.
fn same_bits<T: Searched + Scalar + cpu::Element>(trial: &mut Trial<T>, racers: &[Blocking]) -> Result<(), Fault> {
    let mut result = |by| {
        trial.clear();
        trial.run(by);
        trial.c().to_vec()
    };
    let library = result(None);
    match racers.iter().find(|racer| result(Some(**racer)) != library) {
        Some(racer) => Err(Fault::Check(format!("{racer} gives other bits than the library"))),
        None => Ok(()),
    }
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// What was found, a line a size.
fn text(found: &[Found], asked: usize) -> String {
    let mut lines = Vec::new();
    for one in found {
        let Found { dtype, n, beta, all, kept, tried, best, ns, library_ns, gbs, .. } = one;
        lines.push(format!(
            "{dtype} n = {n:<2} beta = {beta}: {best} {ns:.1} ns ({}), the library {library_ns:.1} ns; {tried} tried of the {kept} that are \
             worth it, of {all}",
            say::rate(*gbs)
        ));
    }
    if found.len() < asked {
        lines.push(format!("{} of {asked} sizes: a larger --budget has time for all", found.len()));
    }
    lines.join("\n")
}

/// Every time, as CSV.
fn table(found: &[Found]) -> String {
    let Origin { device, commit, date, .. } = Origin::new(&Device::cpu());
    let mut text = csv::line(["device", "commit", "date", "dtype", "n", "beta", "kernel", "ns"]);
    for one in found {
        let mut row = |kernel: &str, ns: f64| {
            let (n, beta, ns) = (one.n.to_string(), one.beta.to_string(), format!("{ns:.2}"));
            text += &csv::line([&device, &commit, &date, one.dtype, &n, &beta, kernel, &ns]);
        };
        row("library", one.library_ns);
        one.times.iter().for_each(|(blocking, ns)| row(&blocking.to_string(), *ns));
    }
    text
}
