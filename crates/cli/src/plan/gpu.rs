//! The GPU to plan for.

use model::Machine;
use model::machine::{self, TABLE};

use super::{ceilings, file};
use crate::args::PlanArgs;
use crate::error::Fault;

/// The GPU that was named, that a file describes, that is here, or the H200; and what to say of it once all else is
/// well: on an error its one line stands alone.
///
/// # Errors
/// [`Fault::Input`]: no GPU of this name is known, the file describes none, or the ceilings are not this GPU's.
pub fn machine(args: &PlanArgs) -> Result<(Machine, Option<String>), Fault> {
    if let Some(machine) = named(args)? {
        return Ok((machine, None));
    }
    let (machine, note) = here();
    Ok((calibrated(machine, args)?, note))
}

/// The GPU that was named, or that a file describes.
///
/// # Errors
/// As [`machine`].
pub fn named(args: &PlanArgs) -> Result<Option<Machine>, Fault> {
    let machine = match (&args.gpu, &args.gpu_file) {
        (Some(name), _) => by_name(name)?,
        (None, Some(path)) => file::read(path)?,
        (None, None) => return Ok(None),
    };
    calibrated(machine, args).map(Some)
}

/// With its measured ceilings, where they are given.
fn calibrated(machine: Machine, args: &PlanArgs) -> Result<Machine, Fault> {
    args.ceilings.as_ref().map_or(Ok(machine), |path| ceilings::calibrate(&machine, path))
}

fn here() -> (Machine, Option<String>) {
    match lanky::Device::cuda(0) {
        Ok(device) => (device.machine().copied().unwrap_or(Machine::H200), None),
        Err(reason) => (Machine::H200, Some(format!("planned for an H200 ({reason})"))),
    }
}

/// The GPU of a name, in letters of either case.
///
/// # Errors
/// [`Fault::Input`]: none has it, and these are known.
pub fn by_name(name: &str) -> Result<Machine, Fault> {
    let known: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    let unknown = || Fault::Input(format!("unknown GPU '{name}'; known are {}", known.join(", ")));
    machine::by_name(&name.to_ascii_lowercase()).ok_or_else(unknown)
}
