//! The measurements that plans follow: LANKY_TUNED, or what the library carries.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use lanky::Device;
use lanky::text::read_text;
use lanky::tuned::{Database, shipped};
use model::Machine;

use crate::error::Fault;
use crate::say;

/// A file of `lanky tune`, or `none`: then the model alone decides.
const VARIABLE: &str = "LANKY_TUNED";

/// What the variable asks for.
enum Asked {
    Nothing,
    TheModel,
    File(PathBuf),
}

fn asked() -> Asked {
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        None => Asked::Nothing,
        Some(value) if value == "none" => Asked::TheModel,
        Some(value) => Asked::File(value.into()),
    }
}

/// The file that the variable names, if it does.
pub fn file() -> Option<PathBuf> {
    if let Asked::File(path) = asked() { Some(path) } else { None }
}

/// The database that plans for a GPU follow, and its name; of one that is refused, the reason is said once.
pub fn of(machine: &Machine) -> Option<(String, Arc<Database>)> {
    match asked() {
        Asked::TheModel => None,
        Asked::Nothing => shipped(machine).map(|database| ("of the library".into(), database)),
        Asked::File(path) => {
            let read = read(&path).map_err(|fault| fault.to_string());
            let name = path.display().to_string();
            let checked = read.and_then(|database| match database.check(machine) {
                Ok(()) => Ok(database),
                Err(reason) => Err(format!("{name}: {reason}")),
            });
            checked.map_err(|reason| refused(&reason)).ok().map(|database| (name, Arc::new(database)))
        }
    }
}

/// A database from a file, whose faults are told as those of all other files.
///
/// # Errors
/// [`Fault::Input`], one line that starts with the path.
pub fn read(path: &Path) -> Result<Database, Fault> {
    let text = read_text(path).map_err(|error| Fault::file(path, &error))?;
    Database::parse(&text).map_err(|reason| Fault::at(path, &reason))
}

fn refused(reason: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| say::note(&format!("{VARIABLE}: {reason}; the model decides")));
}

/// Has plans on a device follow what the variable asks for; the CPU has none.
pub fn follow(device: &Device) {
    let Some(machine) = device.machine() else { return };
    let database = match asked() {
        Asked::Nothing => return,
        Asked::TheModel | Asked::File(_) => of(machine).map(|(_, database)| Database::clone(&database)),
    };
    if let Err(error) = device.set_tuned(database) {
        refused(&error.to_string());
    }
}
