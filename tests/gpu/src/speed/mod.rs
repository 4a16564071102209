//! Every entry of TSM2R against the read ceiling of this moment, the model's choice, and cuBLAS on the same memory.
//!
//! A product is checked before it is timed. Bytes are those of A, B and C, once each; a second means 10^9 of them in
//! GB/s.

mod cublas;
mod data;
mod measure;
mod table;

use crate::args::Args;
use crate::lab::{Lab, Outcome, named};
use crate::real::Real;
use cublas::Cublas;
use data::Operands;
use host::Dtype;
use measure::Times;
use model::{Kernel, VARIANTS, Variant};
use table::{Report, Row};

/// Everything that the options ask for.
pub fn run(lab: &Lab, args: &Args) -> Outcome {
    let ceiling = lab.device.read_ceiling(&lab.stream)?;
    let cublas = match lab.stream.as_raw() {
        Some(stream) => Cublas::open(stream),
        None => Err("the CPU has none".into()),
    };
    let cublas = match cublas {
        Ok(cublas) => Some(cublas),
        Err(why) => {
            eprintln!("no cuBLAS to compare with: {why}");
            None
        }
    };
    let mut report = Report::new(&lab.device, ceiling / 1e9);
    for dtype in &args.dtypes {
        match dtype {
            Dtype::F32 => of_type::<f32>(lab, args, cublas.as_ref(), &mut report)?,
            Dtype::F64 => of_type::<f64>(lab, args, cublas.as_ref(), &mut report)?,
        }
    }
    if let Some(path) = &args.csv {
        std::fs::write(path, report.csv())?;
    }
    if args.json {
        println!("{}", report.json());
    }
    Ok(())
}

fn of_type<T: Real>(lab: &Lab, args: &Args, cublas: Option<&Cublas>, report: &mut Report) -> Outcome {
    let widest = args.widths.iter().copied().max().unwrap_or(1);
    let mut operands = Operands::<T>::new(lab, args.size, widest)?;
    for &row_major in &args.layouts {
        let first = report.rows.len();
        for &n in &args.widths {
            operands.shape(row_major, n);
            one_width(lab, args, cublas, &mut operands, report)?;
        }
        let text = report.table(first);
        // With --json the standard output is one object.
        if args.json { eprintln!("{text}") } else { println!("{text}") }
    }
    Ok(())
}

/// Entries for n columns: none that would be idle for most of them, unless its variant has no narrower one.
fn entries(dtype: Dtype, n: usize, part: &str) -> Vec<&'static Variant> {
    let tsm2r = || VARIANTS.iter().filter(|v| v.dtype == dtype && v.kernel == Kernel::Tsm2r);
    let narrowest = |name: &str| tsm2r().filter(|v| v.name == name).map(|v| v.t2).min().unwrap_or(0);
    tsm2r().filter(|v| v.entry.contains(part)).filter(|v| v.t2 as usize <= 2 * n || v.t2 == narrowest(v.name)).collect()
}

fn one_width<T: Real>(
    lab: &Lab,
    args: &Args,
    cublas: Option<&Cublas>,
    operands: &mut Operands<T>,
    report: &mut Report,
) -> Outcome {
    let chosen = operands.plan(lab, None)?.entry();
    let mut wanted: Vec<Option<&'static str>> = Vec::new();
    if lab.device.is_cuda() {
        wanted.extend(entries(T::DTYPE, operands.n, &args.entry).into_iter().map(|v| Some(v.entry)));
    }
    if !wanted.contains(&chosen) {
        wanted.push(chosen);
    }
    for entry in wanted {
        let result = timed(lab, args, operands, entry).map(|(times, splits)| {
            let variant = entry.map_or("cpu", |entry| entry_variant(entry));
            report.rows.push(row(operands, variant, named(entry), splits, times, entry == chosen));
        });
        lab.record(|| format!("speed {} {}", named(entry), operands.name()), result)?;
    }
    if let Some(cublas) = cublas {
        let result = operands.timed_cublas(lab, cublas, args.samples).map(|times| {
            report.rows.push(row(operands, "cublas", Cublas::function::<T>(), 0, times, false));
        });
        lab.record(|| format!("speed cuBLAS {}", operands.name()), result)?;
    }
    Ok(())
}

fn entry_variant(entry: &str) -> &'static str {
    VARIANTS.iter().find(|v| v.entry == entry).map_or("unknown", |v| v.name)
}

/// Checks a product, then times it.
fn timed<T: Real>(lab: &Lab, args: &Args, operands: &mut Operands<T>, entry: Option<&str>) -> Outcome<(Times, u32)> {
    let plan = operands.plan(lab, entry)?;
    plan.warm_up_on(&lab.stream)?;
    operands.spoil()?;
    operands.run(lab, &plan)?;
    lab.stream.synchronize()?;
    operands.check()?;
    let times = measure::sample(&lab.stream, args.samples, || operands.run(lab, &plan))?;
    Ok((times, plan.choice().map_or(1, |choice| choice.splits)))
}

fn row<T: Real>(
    operands: &Operands<T>,
    variant: &'static str,
    entry: &str,
    splits: u32,
    times: Times,
    chosen: bool,
) -> Row {
    let (m, n, k) = (operands.m as f64, operands.n as f64, operands.m as f64);
    let bytes = (m * k + k * n + m * n) * T::DTYPE.bytes() as f64;
    Row {
        dtype: T::DTYPE,
        row_major: operands.row_major,
        size: (operands.m, operands.n, operands.m),
        variant,
        entry: entry.to_owned(),
        splits,
        gbs: bytes / times.median / 1e9,
        times,
        chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_entries_are_left_out_and_no_variant_is() {
        for dtype in [Dtype::F32, Dtype::F64] {
            for n in [1, 2, 4, 8, 16] {
                let found = entries(dtype, n, "");
                for v in VARIANTS.iter().filter(|v| v.dtype == dtype && v.kernel == Kernel::Tsm2r) {
                    assert!(found.iter().any(|f| f.name == v.name), "{} for n = {n}", v.name);
                    assert!(v.t2 as usize > 2 * n || found.contains(&v), "{} for n = {n}", v.entry);
                }
            }
            assert!(!entries(dtype, 1, "").iter().any(|v| v.t2 == 16));
        }
        assert!(entries(Dtype::F64, 8, "prefetch").iter().all(|v| v.name == "tsm2r_prefetch"));
    }
}
