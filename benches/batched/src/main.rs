//! C_i <- A_i B_i + beta C_i of many n x n matrices, as a fraction of what the memory of this machine gives.
//!
//! `lanky-bench-batched [--csv FILE] [--dtype f64] [--beta 0] [--n 1,2,3] [--mib 128] [--rounds 15] [--ours-only]
//! [--instructions avx2]
//! [--processor-time]`: of every case the memory's bound (the same traffic without arithmetic), ours and the other crates take
//! turns, `rounds` times; what counts is the best of each, since other work of the machine only ever makes a time longer.

mod args;
mod case;
mod clock;
mod entrants;
mod fma;
mod memory;
mod record;

use args::Args;
use case::{Case, Value};
use num_complex::Complex;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let args = Args::parse()?;
    clock::choose(args.processor_time);
    let mut record = record::Record::new(&args)?;
    for rates in memory::of_all(&args) {
        record.rate(&rates)?;
    }
    let fmas = fma::of_f64(args.instructions);
    record.fmas(fmas)?;
    for dtype in &args.dtypes {
        match dtype.as_str() {
            "f32" => cases::<f32>(&args, &mut record, 2.0 * fmas)?,
            "f64" => cases::<f64>(&args, &mut record, fmas)?,
            "c64" => cases::<Complex<f32>>(&args, &mut record, 2.0 * fmas / 4.0)?,
            "c128" => cases::<Complex<f64>>(&args, &mut record, fmas / 4.0)?,
            other => return Err(format!("--dtype {other}: f32, f64, c64 or c128")),
        }
    }
    record.end()
}

/// `products`: multiplications with addition, of T, in a second.
fn cases<T: Value>(args: &Args, record: &mut record::Record, products: f64) -> Result<(), String> {
    for &beta in &args.betas {
        for &n in &args.sizes {
            let mut case = Case::<T>::new(args, n, beta);
            record.case(&case.race(args)?, products)?;
        }
    }
    Ok(())
}
