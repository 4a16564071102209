//! The databases that the library carries: every file of crates/host/tuned.

use super::Database;
use model::Machine;
use std::sync::{Arc, OnceLock};

/// (file, its text), by build.rs.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// The database that this library carries for a GPU: of its name, compute capability and number of multiprocessors.
pub fn shipped(machine: &Machine) -> Option<Arc<Database>> {
    static READ: OnceLock<Vec<Arc<Database>>> = OnceLock::new();
    among(READ.get_or_init(|| whole(SHIPPED)), machine)
}

/// Those that this version reads: a test has it read all.
fn whole(files: &[(&str, &str)]) -> Vec<Arc<Database>> {
    files.iter().filter_map(|(_, text)| Database::parse(text).ok()).map(Arc::new).collect()
}

/// The one of a GPU.
fn among(all: &[Arc<Database>], machine: &Machine) -> Option<Arc<Database>> {
    all.iter().find(|database| database.check(machine).is_ok()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuned::Origin;

    #[test]
    fn a_gpu_gets_its_own() {
        let of = |gpu: &str, sms| {
            let origin = Origin { gpu: gpu.into(), compute_capability: (9, 0), sms, ..Origin::default() };
            Database::new(origin, []).to_string()
        };
        let (h100, h200) = (of("NVIDIA H100 PCIe", 114), of("NVIDIA H200", 132));
        let all = whole(&[("h100.tuned", &h100), ("damaged.tuned", "lanky"), ("h200.tuned", &h200)]);
        assert_eq!(all.len(), 2);
        assert_eq!(among(&all, &Machine::H200).map(|database| database.origin().sms), Some(132));
        // A slice of one, or another of the same name, is another GPU.
        assert_eq!(among(&all, &Machine { sms: 16, ..Machine::H200 }), None);
        assert_eq!(among(&all, &Machine::A100), None);
    }

    /// A file that this version cannot read would be left out without a word.
    #[test]
    fn everything_that_is_carried_is_whole() {
        for (file, text) in SHIPPED {
            let database = Database::parse(text);
            assert!(database.as_ref().is_ok_and(|database| !database.cells().is_empty()), "{file}: {database:?}");
            assert_eq!(database.map(|database| database.to_string()).as_deref(), Ok(*text), "{file}");
        }
        let mut gpus: Vec<String> = SHIPPED
            .iter()
            .flat_map(|(_, text)| Database::parse(text))
            .map(|d| format!("{:?}", d.origin().gpu))
            .collect();
        gpus.sort();
        gpus.dedup();
        assert_eq!(gpus.len(), SHIPPED.len(), "one file a GPU");
    }
}
