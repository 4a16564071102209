//! `lanky demo`: a product of made-up matrices, timed, checked, and compared with what the memory can do.

use std::io;

use lanky::{Complex, Device, Layout, Matrix, Plan, Scalar, Stream};
use model::Dtype;
use num_traits::ToPrimitive;
use rayon::prelude::*;
use serde::Serialize;

use crate::args::{DemoArgs, check_variant};
use crate::device;
use crate::error::Fault;
use crate::made_up::{Dot, MadeUp, gamma, spread, wide};
use crate::progress::Progress;
use crate::say::{self, Product, float};

const A: MadeUp = MadeUp { seed: 0xa << 56 };
const B: MadeUp = MadeUp { seed: 0xb << 56 };

/// Rows of A that show a modern GPU at its limit, and that a CPU gets through in a moment.
const GPU_ROWS: usize = 20480;
const CPU_ROWS: usize = 8192;
/// A smaller problem is a multiple of this.
const ROWS_STEP: usize = 256;

/// Rows and columns of C that are checked, at most.
const CHECKED: u64 = 64;

/// What is smaller may stay in a cache between runs; the ceiling is that of the memory.
const CACHED_BYTES: f64 = 256e6;

/// Timed runs: as many as fit into this, within bounds.
const TIMED_SECONDS: f64 = 1.0;
const MIN_RUNS: usize = 3;
const MAX_RUNS: usize = 30;

/// Runs the command.
pub fn run(args: &DemoArgs) -> Result<(), Fault> {
    check_variant(args.how.variant.as_deref())?;
    let device = device::open(args.how.device)?;
    device::check_variant(&device, args.how.device, args.how.variant.as_deref())?;
    match args.dtype.into() {
        Dtype::F32 => demo::<f32>(args, &device),
        Dtype::F64 => demo::<f64>(args, &device),
        Dtype::C64 => demo::<Complex<f32>>(args, &device),
        Dtype::C128 => demo::<Complex<f64>>(args, &device),
    }
}

/// The object of `demo --json`.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    product: Product,
    reason: String,
    ceiling_gbs: f64,
    percent_of_ceiling: f64,
    runs: usize,
    #[serde(flatten)]
    check: Check,
}

/// How far the sampled rows are from the reference.
#[derive(Serialize)]
struct Check {
    checked_rows: usize,
    checked_cols: usize,
    /// Largest error in units of its bound; `None` is a NaN.
    error_of_bound: Option<f64>,
    passed: bool,
}

impl Check {
    /// The error with two digits that say something: `0.3` of a bound is usual for few terms, `0.0004` for many.
    fn error(&self) -> String {
        match self.error_of_bound {
            None => "NaN".into(),
            Some(error) if error >= 0.1 => format!("{error:.2}"),
            Some(error) if error >= 1e-3 => format!("{error:.4}"),
            Some(error) => format!("{error:.1e}"),
        }
    }
}

fn demo<T: Scalar>(args: &DemoArgs, device: &Device) -> Result<(), Fault> {
    let (m, n, k) = lengths::<T>(args, device)?;
    let stream = device.stream()?;
    let made = wide(k).saturating_mul(wide(m).saturating_add(wide(n)));
    let progress = Progress::new("making A and B", made.saturating_mul(T::DTYPE.bytes()));
    let a = make::<T>(&stream, A, m, k, &progress)?;
    let b = make::<T>(&stream, B, k, n, &progress)?;
    let mut c = device.zeros::<T>(m, n)?;
    let plan = args.how.plan(Plan::gemm(device, a.shape(), b.shape(), c.shape()))?;
    progress.compute("multiplying");
    plan.warm_up()?;
    let ceiling = device.read_ceiling(&stream)?;
    let (runs, seconds) = time(&stream, &plan, &a, &b, &mut c)?;
    progress.compute("checking");
    let check = check(&stream, &c, k)?;
    drop(progress);
    let bytes = (float(m) * float(k) + float(k) * float(n) + float(m) * float(n)) * float(size_of::<T>());
    let product = Product {
        device: device::name(device),
        operation: plan.operation().to_string(),
        variant: plan.variant().to_string(),
        dtype: T::DTYPE.name(),
        m,
        n,
        k,
        seconds,
        gbs: say::gbs(bytes, seconds),
    };
    let ceiling_gbs = ceiling / 1e9;
    let percent_of_ceiling = if ceiling > 0.0 { 100.0 * product.gbs / ceiling_gbs } else { 0.0 };
    let reason = device.reason().to_string();
    let outcome = Outcome { product, reason, ceiling_gbs, percent_of_ceiling, runs, check };
    if args.how.json {
        say::print_json(&outcome)?
    } else {
        say::print(&text(&outcome, device, &plan, float(size_of::<T>())))?
    }
    if outcome.check.passed {
        return Ok(());
    }
    let error = outcome.check.error();
    Err(Fault::Check(format!("the product is wrong: the error of a checked row is {error} times its bound")))
}

/// m, n and k: as given, or as large as memory allows and a CPU can bear.
fn lengths<T: Scalar>(args: &DemoArgs, device: &Device) -> Result<(usize, usize, usize), Fault> {
    let (free, _) = device.memory()?;
    let fits = |rows: usize| {
        let cols = args.k.unwrap_or(rows);
        let m = args.m.unwrap_or(rows);
        let elements = float(m) * float(cols) + float(args.n) * (float(m) + float(cols));
        // Half is left to B's copies, workspaces and everybody else.
        elements * float(size_of::<T>()) <= float(usize::try_from(free).unwrap_or(usize::MAX)) / 2.0
    };
    let most = if device.is_cuda() { GPU_ROWS } else { CPU_ROWS };
    let rows = (1..=most / ROWS_STEP).rev().map(|steps| steps * ROWS_STEP).find(|&rows| fits(rows));
    let rows = rows.unwrap_or(ROWS_STEP);
    let m = args.m.unwrap_or(args.k.map_or(rows, |_| rows));
    Ok((m, args.n, args.k.unwrap_or(m)))
}

/// A column-major matrix of the source's elements, made in the buffers that are sent.
fn make<T: Scalar>(
    stream: &Stream,
    source: MadeUp,
    rows: usize,
    cols: usize,
    progress: &Progress,
) -> Result<Matrix<T>, Fault> {
    let mut first = 0;
    let mut fill = |elements: &mut [T]| {
        source.fill(first, elements);
        first += wide(elements.len());
        progress.advance(size_of_val(elements));
        Ok::<(), io::Error>(())
    };
    Ok(stream.device().upload_with(stream, rows, cols, Layout::ColumnMajor, &mut fill)?)
}

/// The number of timed runs and the median of their times, after one that is not counted.
fn time<T: Scalar>(
    stream: &Stream,
    plan: &Plan,
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &mut Matrix<T>,
) -> Result<(usize, f64), Fault> {
    let mut once = || stream.timed(|| plan.run(stream, T::one(), a.view(), b.view(), T::zero(), c.view_mut()));
    let warm_up = once()?;
    let mut seconds = Vec::with_capacity(MAX_RUNS);
    let mut total = warm_up;
    while seconds.len() < MIN_RUNS || (seconds.len() < MAX_RUNS && total < TIMED_SECONDS) {
        let run = once()?;
        total += run;
        seconds.push(run);
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds.len(), seconds[seconds.len() / 2]))
}

/// At most [`CHECKED`] indices below `length`, spread over it.
fn sample(length: usize) -> Vec<usize> {
    spread(wide(length), CHECKED).into_iter().filter_map(|index| usize::try_from(index).ok()).collect()
}

/// Compares sampled rows with sums of products computed from the elements' formula.
fn check<T: Scalar>(stream: &Stream, c: &Matrix<T>, k: usize) -> Result<Check, Fault> {
    let (m, n) = (c.nrows(), c.ncols());
    let (rows, cols) = (sample(m), sample(n));
    let computed = sampled(stream, c, &rows, &cols)?;
    let places: Vec<(usize, usize)> = cols.iter().flat_map(|&j| rows.iter().map(move |&i| (i, j))).collect();
    // Each part of a complex sum is of 2k products of reals.
    let parts = if T::DTYPE.is_complex() { 2 } else { 1 };
    let bound = gamma::<T>(parts * k);
    let worst = places
        .par_iter()
        .zip(computed.par_iter())
        .map(|(&(i, j), &value)| {
            let [mut re, mut im] = [Dot::default(); 2];
            for l in 0..k {
                let a = A.parts::<T>(wide(i) + wide(l) * wide(m));
                let b = B.parts::<T>(wide(l) + wide(j) * wide(k));
                re.add(a[0], b[0]);
                if T::DTYPE.is_complex() {
                    re.add(-a[1], b[1]);
                    im.add(a[0], b[1]);
                    im.add(a[1], b[0]);
                }
            }
            let (value_re, value_im) = value.parts();
            [(value_re, re), (value_im, im)].map(|(value, dot)| {
                let error = (value.to_f64().unwrap_or(f64::NAN) - dot.value()).abs();
                if error == 0.0 { 0.0 } else { error / (bound * dot.magnitude()) }
            })
        })
        .flatten_iter()
        // A NaN must win: `f64::max` would lose it.
        .reduce(|| 0.0, |x: f64, y: f64| if x >= y || x.is_nan() { x } else { y });
    Ok(Check {
        checked_rows: rows.len(),
        checked_cols: cols.len(),
        error_of_bound: Some(worst).filter(|worst| !worst.is_nan()),
        passed: worst <= 1.0,
    })
}

/// The elements of C in the sampled rows and columns, column by column.
fn sampled<T: Scalar>(stream: &Stream, c: &Matrix<T>, rows: &[usize], cols: &[usize]) -> Result<Vec<T>, Fault> {
    let m = c.nrows();
    let wanted: Vec<usize> = cols.iter().flat_map(|&j| rows.iter().map(move |&i| i + j * m)).collect();
    let mut found = Vec::with_capacity(wanted.len());
    let mut first = 0;
    let mut sink = |elements: &[T]| {
        let end = first + elements.len();
        let here = wanted.iter().skip(found.len()).take_while(|&&index| index < end);
        let here: Vec<T> = here.map(|&index| elements[index - first]).collect();
        found.extend(here);
        first = end;
        Ok::<(), io::Error>(())
    };
    c.download_with(stream, Layout::ColumnMajor, &mut sink)?;
    Ok(found)
}

fn text(outcome: &Outcome, device: &Device, plan: &Plan, element_bytes: f64) -> String {
    let Outcome { product, ceiling_gbs, percent_of_ceiling, runs, check, .. } = outcome;
    let Product { dtype, m, n, k, .. } = product;
    let size = say::bytes(float(*m) * float(*k) * element_bytes);
    let error = check.error();
    format!(
        "{}\nread ceiling {}   C = A B   {dtype}   A {m} x {k} ({size})   B {k} x {n}\n{plan}\n  \
         {}   {}   {percent_of_ceiling:.1}% of the ceiling{}   {}   median of {runs}\n  checked: {} rows, error {error} of the bound",
        device::line(device),
        say::rate(*ceiling_gbs),
        say::time(product.seconds),
        say::rate(product.gbs),
        if *percent_of_ceiling > 100.0 && product.gbs * 1e9 * product.seconds < CACHED_BYTES {
            ": in cache"
        } else {
            ""
        },
        bar(*percent_of_ceiling),
        check.checked_rows,
    )
}

/// Twenty letters wide, an eighth of a letter fine.
fn bar(percent: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let mut filled = String::new();
    let mut left = percent.clamp(0.0, 100.0) / 5.0;
    while left >= 1.0 {
        filled.push('█');
        left -= 1.0;
    }
    let part = EIGHTHS.iter().zip(1_u8..).find(|(_, next)| left * 8.0 < f64::from(*next));
    filled.push_str(part.map_or("", |(letter, _)| letter));
    format!("▕{filled:<20}▏")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_always_as_wide() {
        for percent in [-1.0, 0.0, 4.9, 50.0, 94.5, 100.0, 120.0] {
            assert_eq!(bar(percent).chars().count(), 22, "{percent}");
        }
    }
}
