//! The databases that the library carries: every file of crates/host/tuned.

use super::Database;
use super::text::origin;
use model::Machine;
use std::sync::{Arc, OnceLock};

/// (file, its text), by build.rs.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// Each as it was read, once a plan for its GPU asked: thousands of lines. Nothing where this version reads no such file; a test has it
/// read all.
static READ: [OnceLock<Option<Arc<Database>>>; SHIPPED.len()] = [const { OnceLock::new() }; SHIPPED.len()];

/// The database that this library carries for a GPU: of its name, compute capability and number of multiprocessors.
pub fn shipped(machine: &Machine) -> Option<Arc<Database>> {
    let at = place(SHIPPED, machine)?;
    READ[at].get_or_init(|| Database::parse(SHIPPED[at].1).ok().map(Arc::new)).clone()
}

/// Which of the files is of a GPU, by their heads.
fn place(files: &[(&str, &str)], machine: &Machine) -> Option<usize> {
    files.iter().position(|(_, text)| origin(text).is_ok_and(|origin| origin.check(machine).is_ok()))
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
        let all = [("h100.tuned", h100.as_str()), ("damaged.tuned", "lanky"), ("h200.tuned", h200.as_str())];
        assert_eq!(place(&all, &Machine::H200), Some(2));
        // A slice of one, or another of the same name, is another GPU.
        assert_eq!(place(&all, &Machine { sms: 16, ..Machine::H200 }), None);
        assert_eq!(place(&all, &Machine::A100), None);
    }

    #[test]
    fn an_h200_has_one_and_gets_the_same_twice() {
        let [first, second] = [shipped(&Machine::H200), shipped(&Machine::H200)].map(|read| read.expect("it is whole"));
        assert!(Arc::ptr_eq(&first, &second) && first.check(&Machine::H200).is_ok());
        assert!(shipped(&Machine::A100).is_none());
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
