//! The ceilings of the devices that results are of: from the results, or from the files that lie beside them.

use std::path::PathBuf;

use crate::bench::ceiling::Ceiling;
use crate::bench::journal::beside;
use crate::bench::result::{self, Results};
use crate::error::Fault;
use crate::say;

/// The file of a folder, for all results in it that have none of their own.
const OF_A_FOLDER: &str = "ceilings.csv";

/// The files of ceilings that lie beside results: `x-ceilings.csv` beside `x.csv`, and `ceilings.csv`.
pub fn beside_all(paths: &[PathBuf]) -> Vec<PathBuf> {
    let of = |path: &PathBuf| [beside(path, "ceilings"), path.with_file_name(OF_A_FOLDER)];
    paths.iter().flat_map(of).filter(|beside| beside.exists() && !paths.contains(beside)).collect()
}

/// The results of all files, and the ceilings of those and of what lies beside them. Of several for a device the first counts.
///
/// # Errors
/// [`Fault::Input`] if a file is no results.
pub fn read(paths: &[PathBuf], beside: &[PathBuf]) -> Result<Results, Fault> {
    let mut all = Results::default();
    for path in paths {
        let Results { rows, ceilings } = result::read_all(path)?;
        all.rows.extend(rows);
        add(&mut all.ceilings, ceilings);
    }
    for path in beside {
        add(&mut all.ceilings, result::read_all(path)?.ceilings);
    }
    Ok(all)
}

/// Adds those of a kind, type and device that there is none of yet.
fn add(all: &mut Vec<Ceiling>, more: Vec<Ceiling>) {
    for ceiling in more {
        let is_there = |known: &Ceiling| {
            (known.what, known.dtype, &known.device) == (ceiling.what, ceiling.dtype, &ceiling.device)
        };
        if !all.iter().any(is_there) {
            all.push(ceiling);
        }
    }
}

/// What bounds the products of a device and an element type.
#[derive(Debug, Default, PartialEq)]
pub struct Roofs<'c> {
    /// GB/s of reading alone.
    pub read_gbs: Option<f64>,
    /// GFLOP/s of the units that there are for the type, the fastest first.
    pub compute: Vec<(&'c str, f64)>,
}

impl<'c> Roofs<'c> {
    /// Complex numbers are multiplied by the units of their parts.
    pub fn of(ceilings: &'c [Ceiling], device: &str, dtype: &str) -> Self {
        let reals = match dtype {
            "c64" => "f32",
            "c128" => "f64",
            dtype => dtype,
        };
        let of_it = || ceilings.iter().filter(|ceiling| ceiling.device == device);
        let units = of_it().filter(|ceiling| !ceiling.is_memory() && ceiling.dtype == reals);
        let mut compute: Vec<(&str, f64)> = units.map(|ceiling| (ceiling.what, ceiling.rate())).collect();
        compute.sort_by(|a, b| b.1.total_cmp(&a.1));
        Self { read_gbs: of_it().find(|ceiling| ceiling.what == "read").map(Ceiling::rate), compute }
    }
}

/// `read 4374 GB/s, .., f64 fma 33.4 TFLOP/s`.
pub fn words(ceilings: &[&Ceiling]) -> String {
    let one = |ceiling: &&Ceiling| {
        let (rate, what, dtype) = (ceiling.rate(), ceiling.what, ceiling.dtype);
        if ceiling.is_memory() {
            format!("{what} {}", say::rate(rate))
        } else {
            format!("{dtype} {what} {}", say::flop_rate(rate))
        }
    };
    ceilings.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ceiling::tests::ceiling;
    use crate::bench::result::header;
    use crate::bench::result::tests::row;
    use crate::csv;
    use std::path::Path;

    fn put(path: &Path, ceilings: &[Ceiling]) {
        let is_of_rows = path.file_name().is_some_and(|name| name == "r.csv");
        let rows = if is_of_rows { csv::line(row(2, None).fields()) } else { String::new() };
        let text: String = ceilings.iter().map(|ceiling| csv::line(ceiling.fields())).collect();
        std::fs::write(path, header() + &rows + &text).expect("written");
    }

    #[test]
    fn the_nearest_ceilings_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let read_beside = |paths: &[PathBuf]| read(paths, &beside_all(paths));
        put(&at("r.csv"), &[]);
        let rate = || read_beside(&[at("r.csv")]).expect("results").ceilings.first().map(Ceiling::rate);
        assert_eq!(rate(), None);
        put(&at("ceilings.csv"), &[ceiling("read", "f64", 3.0)]);
        assert_eq!(rate(), Some(3.0));
        put(&at("r-ceilings.csv"), &[ceiling("read", "f64", 4.0)]);
        assert_eq!(rate(), Some(4.0));
        put(&at("r.csv"), &[ceiling("read", "f64", 5.0)]);
        assert_eq!(rate(), Some(5.0));
        // Named, and beside another: it is read once, and rows are rows still.
        let all = read_beside(&[at("r.csv"), at("ceilings.csv")]).expect("results");
        assert_eq!((all.rows.len(), all.ceilings.len()), (1, 1));
        std::fs::write(at("r-ceilings.csv"), "no results").expect("written");
        assert!(read_beside(&[at("r.csv")]).is_err());
    }

    #[test]
    fn every_type_has_its_units() {
        let all = [
            ceiling("read", "f64", 4.0),
            ceiling("fma", "f32", 60.0),
            ceiling("fma", "f64", 30.0),
            ceiling("mma", "f64", 50.0),
        ];
        let device = all[0].device.clone();
        let compute = |dtype| Roofs::of(&all, &device, dtype).compute;
        assert_eq!((compute("f64"), compute("c64")), (vec![("mma", 50.0), ("fma", 30.0)], vec![("fma", 60.0)]));
        assert_eq!(Roofs::of(&all, &device, "c128").read_gbs, Some(4.0));
        assert_eq!(Roofs::of(&all, "another", "f64"), Roofs::default());
        assert_eq!(words(&[&all[0], &all[3]]), "read 4.00 GB/s, f64 mma 50.0 GFLOP/s");
    }
}
