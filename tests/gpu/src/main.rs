//! Checks every kernel on the GPU of this machine.
//!
//! A program and not tests, since the machine with the GPU may have nothing but a driver. It prints one line for each
//! failure, and the count at the end. The reference for all results is on the host: [`watched::oracle`]. Whatever
//! surrounds an operand is watched: [`watched::Image`].
//!
//! | command | what it does |
//! |---|---|
//! | `small` | every entry on small shapes, quick enough for compute-sanitizer |
//! | `check` | the checks of [`check`] |
//! | `large` | matrices of more than 2^32 elements |
//! | `occupancy` | the blocks an SM holds of every entry: the driver's count against the model's |
//! | `busy` | multiplies until its input ends: the load of the check `load` |
//! | `beyond` | touches what is not mapped, which must end its use of the GPU: a process of the check `mapped` |
//! | `cold` | what the first call of a process costs, with the driver's cache empty and filled: [`cold`] |
//! | `first` | the same of this process |

mod args;
mod case;
mod check;
mod cold;
mod driver;
mod entries;
mod lab;
mod large;
mod mapped;
mod memory;
mod occupancy;
mod operand;
mod oracle;
mod real;
mod shapes;
mod small;

use args::{Args, USAGE};
use check::poison::in_nan;
use lab::{GUARD, Lab, Outcome};
use std::process::ExitCode;
use watched::compare;

const FAILED: u8 = 1;
const USAGE_ERROR: u8 = 2;
const NO_DEVICE: u8 = 3;

fn main() -> ExitCode {
    let (args, ordinal) = match Args::parse(std::env::args().skip(1)).and_then(|args| Ok((args.ordinal()?, args))) {
        Ok((ordinal, args)) => (args, ordinal),
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    entries::choose(args.share, args.entries.clone());
    let result = match args.command.as_str() {
        "cold" => cold::run(&args.device),
        "busy" => check::company::busy(ordinal),
        "beyond" => with_lab(ordinal, GUARD, |lab| check::mapped::beyond(lab, &args.only)),
        // It opens the device itself: that is what it times.
        "first" => cold::first(ordinal, args.limit),
        "small" => with_lab(ordinal, small::GUARD, |lab| in_nan(lab, |lab| small::run_these(lab, &args.only))),
        "check" => with_lab(ordinal, GUARD, |lab| in_nan(lab, |lab| check::run(lab, &args.only))),
        "large" => with_lab(ordinal, GUARD, |lab| in_nan(lab, |lab| large::run(lab, args.log2))),
        "occupancy" => with_lab(ordinal, GUARD, |lab| occupancy::run(lab, args.csv.as_deref())),
        other => {
            eprintln!("there is no command {other}\n{USAGE}");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(if no_device(&fault) { NO_DEVICE } else { FAILED })
        }
    }
}

/// Runs the checks on the device; whether all passed.
fn with_lab(ordinal: Option<u32>, guard: usize, checks: impl FnOnce(&Lab) -> Outcome) -> Outcome<bool> {
    let device = args::open(ordinal)?;
    eprintln!("{device}");
    let lab = Lab::new(device, guard)?;
    if let Err(fault) = checks(&lab) {
        // What stops everything is a failure, whatever was counted before.
        println!("stopped: {fault}");
        lab.finish();
        return Ok(false);
    }
    Ok(lab.finish())
}

/// Whether there was no GPU to begin with.
fn no_device(fault: &lab::Fault) -> bool {
    use host::Error;
    matches!(fault.downcast_ref(), Some(Error::NoDriver { .. } | Error::NoDevice { .. } | Error::DriverTooOld { .. }))
}
