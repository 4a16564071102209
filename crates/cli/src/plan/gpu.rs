//! The GPU to plan for.

use model::Machine;
use model::machine::{TABLE, by_name};

use super::file;
use crate::args::PlanArgs;
use crate::error::Fault;
use crate::say;

/// The GPU that was named, that a file describes, that is here, or the H200.
///
/// # Errors
/// [`Fault::Input`]: no GPU of this name is known, or the file describes none.
pub fn machine(args: &PlanArgs) -> Result<Machine, Fault> {
    match (&args.gpu, &args.gpu_file) {
        (Some(name), _) => by_name(&name.to_ascii_lowercase()).ok_or_else(|| unknown(name)),
        (None, Some(path)) => file::read(path),
        (None, None) => Ok(here()),
    }
}

fn here() -> Machine {
    match lanky::Device::cuda(0) {
        Ok(device) => device.machine().copied().unwrap_or(Machine::H200),
        Err(reason) => {
            say::note(&format!("planned for an H200 ({reason})"));
            Machine::H200
        }
    }
}

/// What is wrong with a name that no GPU has.
pub fn unknown(name: &str) -> Fault {
    let known: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    Fault::Input(format!("unknown GPU '{name}'; known are {}", known.join(", ")))
}
