//! `lanky bench`: every case checked, then timed in turns with whoever computes the same, as fractions of what the device
//! does at most. How each number comes about: benches/README.md.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::args::check_variant;
use crate::device;
use crate::error::Fault;
use crate::output::Output;
use crate::say;

mod args;
mod case;
mod check;
mod compare;
mod contest;
mod data;
mod entrants;
mod fault;
mod job;
mod measure;
mod opponents;
mod origin;
mod ours;
mod outcome;
mod record;
pub mod result;
mod stats;
mod suite;
mod table;

pub use args::BenchArgs;
use outcome::Outcome;
use result::Row;

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<(), Fault> {
    if let Some([old, new]) = args.compare.as_deref() {
        return compare::run(old, new, args.tolerance);
    }
    let forced = args.variant.as_deref().filter(|name| *name != "all");
    check_variant(forced)?;
    let device = device::open(args.device)?;
    device::check_variant(&device, args.device, forced)?;
    let cases = suite::cases(args, &device)?;
    if cases.distinct.is_empty() {
        return Err(Fault::Input("no case is of these families, element types and layouts".into()));
    }
    // Before anything is measured: a place that cannot be written is known at once.
    let csv = args.csv.as_deref().map(Output::create).transpose()?;
    if cfg!(debug_assertions) {
        say::note("this is an unoptimised build: its numbers are its own, not the machine's");
    }
    let stream = device.stream()?;
    let outcome = device.entered(|| measure::all(args, &stream, cases))??;
    if args.json {
        say::print_json(&outcome)?;
    } else {
        say::print(&outcome.summary())?;
    }
    if let (Some(csv), Some(path)) = (csv, &args.csv) {
        save(&outcome, csv, path)?;
    }
    failed(&outcome)
}

/// Writes the results: one row a case into the file, all others beside it.
fn save(outcome: &Outcome, main: Output, path: &Path) -> Result<(), Fault> {
    let (chosen, others): (Vec<&Row>, Vec<&Row>) = outcome.rows().partition(|row| row.is_first());
    write(main, &chosen)?;
    if others.is_empty() {
        return Ok(());
    }
    write(Output::create(&variants_path(path))?, &others)
}

fn write(mut output: Output, rows: &[&Row]) -> Result<(), Fault> {
    let text = result::to_csv(rows.iter().copied());
    output.write_all(text.as_bytes()).map_err(|error| output.fault(&error))?;
    output.commit()
}

/// `x/tsm2r.csv` -> `x/tsm2r-variants.csv`
fn variants_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-variants{extension}"))
}

fn failed(outcome: &Outcome) -> Result<(), Fault> {
    match outcome.wrong.as_slice() {
        [] => Ok(()),
        [wrong] => Err(Fault::Check(format!("a product is wrong: {wrong}"))),
        [first, ..] => Err(Fault::Check(format!("{} products are wrong, the first: {first}", outcome.wrong.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_lie_beside_the_choices() {
        assert_eq!(variants_path(Path::new("a/tsm2r.csv")), Path::new("a/tsm2r-variants.csv"));
        assert_eq!(variants_path(Path::new("x")), Path::new("x-variants"));
    }
}
