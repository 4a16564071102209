//! What ends the program, and with which exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why the program stops before it is done. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A result was computed and is wrong.
    #[error("{0}")]
    Check(String),
    /// Bad usage, input or output.
    #[error("{0}")]
    Input(String),
    /// No usable device, or it failed.
    #[error("{0}")]
    Device(String),
    /// The device, or the host, has less memory than was wanted.
    #[error("{0}")]
    Memory(String),
    /// This signal asked to stop; all has been said.
    #[error("stopped by signal {0}")]
    Stopped(i32),
    /// Whoever read standard output has seen enough: nothing to report.
    #[error("standard output was closed")]
    Closed,
}

impl Fault {
    /// A fault of the file `path`: `B.npy: it is a directory`.
    pub fn at(path: &Path, reason: &str) -> Self {
        Self::Input(format!("{}: {reason}", path.display()))
    }

    /// What the system said about the file `path`.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::OutOfMemory => Self::Memory(format!("{}: {}", path.display(), plain(error))),
            _ => Self::at(path, &plain(error)),
        }
    }

    /// A failed write to standard output.
    pub fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Input(format!("standard output: {}", plain(error))),
        }
    }

    /// Writes the one line to standard error.
    pub fn report(&self) -> ExitCode {
        let code = match self {
            Self::Closed => return ExitCode::SUCCESS,
            Self::Stopped(signal) => return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
            Self::Check(_) => 1,
            Self::Input(_) => 2,
            Self::Device(_) | Self::Memory(_) => 3,
        };
        // Standard error may be closed as well: then the exit code has to do.
        let red = anstyle::AnsiColor::Red.on_default().bold();
        let line = format!("{red}lanky:{red:#} {}\n", one_line(&self.to_string()));
        let _ = io::Write::write_all(&mut anstream::stderr(), line.as_bytes());
        ExitCode::from(code)
    }
}

impl From<lanky::Error> for Fault {
    fn from(error: lanky::Error) -> Self {
        let text = error.to_string();
        match error {
            lanky::Error::OutOfMemory { .. } => Self::Memory(text),
            lanky::Error::Io { kind: io::ErrorKind::OutOfMemory, .. } => Self::Memory(text),
            error if error.is_device() => Self::Device(text),
            _ => Self::Input(text),
        }
    }
}

/// The system's text without Rust's `(os error 2)`, with a small first letter.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// File names and drivers' texts may hold line breaks; a message does not.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_line_break_stays_on_the_line() {
        let fault = Fault::at(Path::new("a\nb.npy"), "it is a directory");
        assert_eq!(one_line(&fault.to_string()), "a b.npy: it is a directory");
    }

    #[test]
    fn the_system_speaks_plainly() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(Fault::file(Path::new("x"), &error).to_string(), "x: no such file or directory");
    }
}
