//! Text files.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Longest text, bytes: a results file of a day has one.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a regular file of at most 64 MiB. What else has a path may give no end, or never begin: a device, a FIFO that nobody
/// writes to.
pub fn read_text(path: &Path) -> Result<String> {
    let refused = |reason: &str| Err(Error::new(ErrorKind::InvalidInput, reason));
    // Asked before it is opened, which waits for whoever writes to a FIFO.
    let facts = std::fs::metadata(path)?;
    if facts.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !facts.is_file() {
        return refused("it is no regular file");
    }
    let mut text = String::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES { refused("it has more than 64 MiB") } else { Ok(text) }
}
