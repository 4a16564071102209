//! The databases that the library carries: every file of crates/host/tuned.

use super::Database;
use model::Machine;
use std::sync::{Arc, OnceLock};

/// (file, its text), by build.rs.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// The database that this library carries for a GPU: of its name, compute capability and number of multiprocessors.
pub fn shipped(machine: &Machine) -> Option<Arc<Database>> {
    static READ: OnceLock<Vec<Arc<Database>>> = OnceLock::new();
    let all = READ.get_or_init(|| {
        let whole = SHIPPED.iter().filter_map(|(_, text)| Database::parse(text).ok());
        whole.map(Arc::new).collect()
    });
    all.iter().find(|database| database.check(machine).is_ok()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
