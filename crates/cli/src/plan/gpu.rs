//! The GPU to plan for.

use model::Machine;
use model::machine::{TABLE, by_name};

use super::file;
use crate::args::PlanArgs;
use crate::error::Fault;

/// The GPU that was named, that a file describes, that is here, or the H200; and what to say of it once all else is
/// well: on an error its one line stands alone.
///
/// # Errors
/// [`Fault::Input`]: no GPU of this name is known, or the file describes none.
pub fn machine(args: &PlanArgs) -> Result<(Machine, Option<String>), Fault> {
    Ok(named(args)?.map_or_else(here, |machine| (machine, None)))
}

/// The GPU that was named, or that a file describes.
///
/// # Errors
/// As [`machine`].
pub fn named(args: &PlanArgs) -> Result<Option<Machine>, Fault> {
    match (&args.gpu, &args.gpu_file) {
        (Some(name), _) => Ok(Some(by_name(&name.to_ascii_lowercase()).ok_or_else(|| unknown(name))?)),
        (None, Some(path)) => Ok(Some(file::read(path)?)),
        (None, None) => Ok(None),
    }
}

fn here() -> (Machine, Option<String>) {
    match lanky::Device::cuda(0) {
        Ok(device) => (device.machine().copied().unwrap_or(Machine::H200), None),
        Err(reason) => (Machine::H200, Some(format!("planned for an H200 ({reason})"))),
    }
}

/// What is wrong with a name that no GPU has.
pub fn unknown(name: &str) -> Fault {
    let known: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    Fault::Input(format!("unknown GPU '{name}'; known are {}", known.join(", ")))
}
