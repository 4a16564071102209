//! Names without allocation.

use core::fmt;

/// The name of a device: up to 64 bytes, kept without allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; Name::LONGEST],
    len: usize,
}

impl Name {
    /// Bytes kept of a name; the rest is cut off.
    pub const LONGEST: usize = 64;

    /// Keeps what fits of `name`.
    pub const fn new(name: &str) -> Self {
        let mut len = if name.len() < Name::LONGEST { name.len() } else { Name::LONGEST };
        // Within a character: the first byte left out continues one.
        while len < name.len() && name.as_bytes()[len] & 0xC0 == 0x80 {
            len -= 1;
        }
        let mut bytes = [0; Name::LONGEST];
        let mut at = 0;
        while at < len {
            bytes[at] = name.as_bytes()[at];
            at += 1;
        }
        Name { bytes, len }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(Name::new("NVIDIA H200").as_str(), "NVIDIA H200");
        let long = "\u{e9}".repeat(40);
        assert_eq!(Name::new(&long).as_str().len(), 64);
        let odd = ["x", &long].concat();
        assert_eq!(Name::new(&odd).as_str().len(), 63);
    }
}
