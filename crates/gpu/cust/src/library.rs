//! The driver library: found, opened and looked into at the first call, and never unloaded.

use crate::error::{Cause, Status};
use crate::sys::{CUresult, Table};
use libloading::Library;
use std::fmt;
use std::sync::OnceLock;

/// Where the driver library may be; a bare name is looked up as the system's loader does.
#[cfg(windows)]
const PLACES: &[&str] = &["nvcuda.dll"];
#[cfg(target_os = "linux")]
const PLACES: &[&str] = &[
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",       /* WSL 2 */
    "/run/opengl-driver/lib/libcuda.so.1", /* NixOS */
];
#[cfg(not(any(windows, target_os = "linux")))]
const PLACES: &[&str] = &["libcuda.so.1"];

/// The driver library of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryInfo {
    /// Its file; only its name where the system does not tell.
    pub path: String,
}

/// The driver library could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDriver {
    /// The names and paths that were tried, in order.
    pub tried: Vec<String>,
    /// What the system's loader said.
    pub reason: String,
}

impl fmt::Display for NoDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no CUDA driver library (tried {}): {}", self.tried.join(", "), self.reason)
    }
}

impl std::error::Error for NoDriver {}

struct Loaded {
    table: Table,
    info: LibraryInfo,
    /// Never unloaded: threads of the driver's own may run in it until the process ends.
    _library: Library,
}

static LOADED: OnceLock<Result<Loaded, NoDriver>> = OnceLock::new();

fn loaded() -> Result<&'static Loaded, &'static NoDriver> {
    LOADED.get_or_init(|| open(PLACES)).as_ref()
}

/// Opens the driver library, once in a process; later calls give the same answer.
pub(crate) fn load() -> Result<LibraryInfo, NoDriver> {
    loaded().map(|loaded| loaded.info.clone()).map_err(Clone::clone)
}

fn open(places: &[&str]) -> Result<Loaded, NoDriver> {
    let mut reason = None;
    for &place in places {
        // SAFETY: what runs is the initialisation of NVIDIA's driver library, which the user has installed for this.
        match unsafe { Library::new(place) } {
            Ok(library) => {
                let table = Table::new(&library);
                let address = table.cuInit.map(|function| function as usize);
                let path = address.and_then(file_at).unwrap_or_else(|| place.to_owned());
                return Ok(Loaded { table, info: LibraryInfo { path }, _library: library });
            }
            // The first place is the usual one, so what was said about that says most.
            Err(error) => drop(reason.get_or_insert_with(|| error.to_string())),
        }
    }
    let tried = places.iter().map(|&place| place.to_owned()).collect();
    Err(NoDriver { tried, reason: reason.unwrap_or_default() })
}

/// The file that is mapped at an address of this process.
fn file_at(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let range = usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?;
        let path = line.find('/').map(|start| line[start..].to_owned())?;
        range.contains(&address).then_some(path)
    })
}

/// The function of that name (which ends in a zero byte), if the library has it.
///
/// # Safety
/// `F` is the function's type.
pub(crate) unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: `F` is the type of the function of that name, as the caller promised; `name` ends in a zero byte.
    unsafe { library.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
}

/// Calls a function of the driver, if there is a driver and it has that function.
pub(crate) fn call<F>(
    function: &'static str,
    field: impl FnOnce(&Table) -> Option<F>,
    with: impl FnOnce(F) -> CUresult,
) -> Status {
    let (code, cause) = match table().map(field) {
        Ok(Some(found)) => (with(found), Cause::Driver),
        Ok(None) => (302, Cause::NoSymbol),
        Err(_) => (303, Cause::NoLibrary),
    };
    Status { function, code, cause }
}

fn table() -> Result<&'static Table, &'static NoDriver> {
    #[cfg(test)]
    if let Some(fake) = crate::fake::installed() {
        return Ok(fake);
    }
    loaded().map(|loaded| &loaded.table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let none = open(&["libno-such-driver.so.1", "/nowhere/libcuda.so.1"]).map(|_| ()).expect_err("there is none");
        assert_eq!(none.tried, ["libno-such-driver.so.1", "/nowhere/libcuda.so.1"]);
        assert!(none.reason.contains("libno-such-driver"), "{none}");
        assert!(none.to_string().contains("/nowhere/libcuda.so.1"), "{none}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_file_at_an_address_is_the_one_mapped_there() {
        let here = file_at(file_at as fn(usize) -> Option<String> as usize).expect("this program is a file");
        let program = std::env::current_exe().expect("a path");
        assert_eq!(std::path::Path::new(&here), program);
        assert_eq!(file_at(1), None);
    }

    /// A library that has none of the driver's functions loads, and each call says which is missing.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_without_the_functions_is_an_empty_table() {
        let Ok(loaded) = open(&["libc.so.6"]) else { return };
        assert!(loaded.table.cuInit.is_none() && loaded.table.cuMemAlloc_v2.is_none());
        assert_eq!(loaded.info.path, "libc.so.6");
    }
}
