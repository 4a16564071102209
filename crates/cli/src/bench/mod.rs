//! `lanky bench`: every case checked, then timed in turns with whoever computes the same, as fractions of what the device
//! does at most. How each number comes about: benches/README.md.

use std::path::Path;

use crate::args::check_variant;
use crate::device;
use crate::error::Fault;
use crate::say;
use crate::tuned;

pub mod args;
pub mod case;
pub mod ceiling;
pub mod check;
mod compare;
pub mod contest;
pub mod data;
mod entrants;
pub mod fault;
mod fields;
pub mod job;
pub mod journal;
mod looked;
mod measure;
mod opponents;
pub mod origin;
pub mod ours;
mod ours_batched;
mod outcome;
mod pending;
pub mod random;
mod record;
pub mod result;
pub mod stats;
mod suite;
mod table;
mod target;

use args::Beside;

pub use args::BenchArgs;
use journal::Journal;
pub use pending::say_missing;

/// Runs the command.
///
/// # Errors
/// [`Fault::Check`] after everything has run and been written, if a product was wrong, a plan failed, or a figure is above the
/// ceiling, [`Fault::Memory`] then, if that alone was not there; the others before anything is measured, or where results cannot be written.
pub fn run(args: &BenchArgs) -> Result<(), Fault> {
    if let Some([old, new]) = args.compare.as_deref() {
        return compare::run(old, new, args.tolerance, args.json);
    }
    let forced = if let Beside::One(name) = args.beside() { Some(name) } else { None };
    check_variant(forced)?;
    entrants::check(args.beside())?;
    let device = device::open(args.device)?;
    device::check_variant(&device, args.device, forced)?;
    let cases = suite::cases(args, &device)?;
    if cases.distinct.is_empty() {
        return Err(Fault::Input("no case is of these families, element types and layouts".into()));
    }
    // Before anything is measured: a place that cannot be written is known at once.
    let (suite, tuned) = (suite::file(args), tuned::file());
    let read: Vec<&Path> = [&suite, &tuned].into_iter().filter_map(Option::as_deref).collect();
    let journal = Journal::new(args.csv.as_deref(), &read)?;
    if cfg!(debug_assertions) {
        say::note("this is an unoptimised build: its numbers are its own, not the machine's");
    }
    let stream = device.stream()?;
    let outcome = device.entered(|| measure::all(args, &stream, cases, journal))?.inspect_err(|fault| {
        // Whoever closed standard output has seen enough.
        if !matches!(fault, Fault::Closed) {
            say_missing();
        }
    })?;
    if args.json {
        say::print_json(&outcome)?;
    } else {
        say::print(&outcome.summary())?;
    }
    outcome.verdict()
}
