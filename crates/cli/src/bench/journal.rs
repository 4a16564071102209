//! Results written as they come: whatever ends the run, each row that was measured is whole in its file.
//!
//! A file that is there is replaced by the first row, and not before. What is no regular file (standard output, a pipe) gets
//! everything at the end, rows of all kinds in one text.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::ceiling::Ceiling;
use super::result::{self, Row};
use crate::csv;
use crate::error::Fault;
use crate::output::{self, Output};

/// The files of a run.
pub enum Journal {
    /// Nothing is to be written.
    Nowhere,
    /// One file for the rows of the cases, one for those in graphs and one for all others, beside it.
    Files { cases: Lines, graphs: Lines, others: Lines, ceilings: PathBuf },
    /// One text, written when it is whole.
    Stream(Output, String),
}

impl Journal {
    /// Makes sure that the file can be written, and that none replaces what the run reads; what is there stays as it is.
    ///
    /// # Errors
    /// [`Fault::Input`] if it cannot, or one does.
    pub fn new(path: Option<&Path>, read: &[&Path]) -> Result<Self, Fault> {
        let Some(path) = path else { return Ok(Self::Nowhere) };
        let output = Output::create(path)?;
        if output.is_direct() {
            return Ok(Self::Stream(output, result::header()));
        }
        drop(output);
        let [graphs, others, ceilings] = ["graphs", "variants", "ceilings"].map(|what| beside(path, what));
        output::refuse_to_replace(read, &[path, &graphs, &others, &ceilings])?;
        let lines = |path: PathBuf| Lines { path, file: None };
        Ok(Self::Files { cases: lines(path.into()), graphs: lines(graphs), others: lines(others), ceilings })
    }

    /// Writes what the device does at most.
    ///
    /// # Errors
    /// [`Fault::Input`] if the file cannot be written, as of all that follow.
    pub fn ceilings(&mut self, ceilings: &[Ceiling]) -> Result<(), Fault> {
        let text: String = ceilings.iter().map(|ceiling| csv::line(ceiling.fields())).collect();
        match self {
            Self::Nowhere => Ok(()),
            Self::Files { ceilings: path, .. } => output::write(path, &(result::header() + &text)),
            Self::Stream(_, whole) => {
                whole.push_str(&text);
                Ok(())
            }
        }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// As above; what was written before it stays.
    pub fn row(&mut self, row: &Row) -> Result<(), Fault> {
        let line = csv::line(row.fields());
        match self {
            Self::Nowhere => Ok(()),
            Self::Files { cases, graphs, others, .. } => {
                let lines = if row.is_in_a_graph() {
                    graphs
                } else if row.is_of_the_case() {
                    cases
                } else {
                    others
                };
                lines.add(&line)
            }
            Self::Stream(_, whole) => {
                whole.push_str(&line);
                Ok(())
            }
        }
    }

    /// The end of a run: a file without a row has its header, and all of it is safe on disk.
    ///
    /// # Errors
    /// As above.
    pub fn finish(self) -> Result<(), Fault> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Files { mut cases, graphs, others, .. } => {
                cases.add("")?;
                [cases, graphs, others].into_iter().try_for_each(Lines::finish)
            }
            Self::Stream(mut output, whole) => {
                output.write_all(whole.as_bytes()).map_err(|error| output.fault(&error))?;
                output.commit()
            }
        }
    }
}

/// A file that grows line by line.
pub struct Lines {
    path: PathBuf,
    /// Once it has its first line, with its length.
    file: Option<(File, u64)>,
}

impl Lines {
    /// The line is there whole, or not at all.
    fn add(&mut self, line: &str) -> Result<(), Fault> {
        let fault = |error: std::io::Error| Fault::file(&self.path, &error);
        let Some((file, length)) = &mut self.file else {
            let text = result::header() + line;
            output::write(&self.path, &text)?;
            let file = OpenOptions::new().append(true).open(&self.path).map_err(fault)?;
            let length = file.metadata().map_err(fault)?.len();
            self.file = Some((file, length));
            return Ok(());
        };
        if let Err(error) = file.write_all(line.as_bytes()) {
            // The part of it that was written, as on a full disk.
            let _ = file.set_len(*length);
            return Err(fault(error));
        }
        *length += crate::made_up::wide(line.len());
        Ok(())
    }

    fn finish(self) -> Result<(), Fault> {
        let Some((file, _)) = self.file else { return Ok(()) };
        file.sync_all().map_err(|error| Fault::file(&self.path, &error))
    }
}

/// `x/tsm2r.csv` -> `x/tsm2r-variants.csv`
pub fn beside(path: &Path, what: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{what}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::super::ceiling::tests::ceiling;
    use super::super::result::tests::row;
    use super::*;
    use std::fs::read_to_string;

    #[test]
    fn others_lie_beside_the_cases() {
        assert_eq!(beside(Path::new("a/tsm2r.csv"), "variants"), Path::new("a/tsm2r-variants.csv"));
        assert_eq!(beside(Path::new("x"), "ceilings"), Path::new("x-ceilings"));
    }

    #[test]
    fn every_row_is_in_its_file_at_once() -> Result<(), Fault> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("r.csv"), "as it was").expect("written");
        let mut journal = Journal::new(Some(&at("r.csv")), &[])?;
        let read = |name: &str| read_to_string(at(name)).unwrap_or_default();
        assert_eq!((read("r.csv").as_str(), at("r-variants.csv").exists()), ("as it was", false));
        journal.ceilings(&[ceiling("read", "f64", 5.0)])?;
        assert_eq!(result::read_all(&at("r-ceilings.csv"))?.ceilings, [ceiling("read", "f64", 5.0)]);
        assert_eq!(read("r.csv"), "as it was");
        let forced = Row { chooser: "caller".into(), ..row(2, None) };
        let above = Row { variant: "x@above".into(), ..row(4, None) };
        let graph = Row { variant: "x@graph".into(), ..row(4, None) };
        let count = |name: &str| result::read(&at(name)).map_or(0, |rows| rows.len());
        for (row, counts) in [
            (&row(2, None), [1, 0, 0]),
            (&forced, [1, 0, 1]),
            (&above, [2, 0, 1]),
            (&graph, [2, 1, 1]),
            (&forced, [2, 1, 2]),
        ] {
            journal.row(row)?;
            assert_eq!(["r.csv", "r-graphs.csv", "r-variants.csv"].map(count), counts);
        }
        journal.finish()?;
        assert_eq!(result::read(&at("r.csv"))?, [row(2, None), above]);
        Ok(())
    }

    #[test]
    fn a_run_without_rows_leaves_a_header() -> Result<(), Fault> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.csv");
        Journal::new(Some(&path), &[])?.finish()?;
        assert_eq!(read_to_string(&path).ok(), Some(result::header()));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
        Ok(())
    }
}
