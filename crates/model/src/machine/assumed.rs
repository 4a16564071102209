//! What nobody measured or documented of a machine.

use core::fmt;

/// The fields of a [`Machine`](super::Machine) that may be assumed.
const FIELDS: [&str; 16] = [
    "sms",
    "clock_hz",
    "registers_per_sm",
    "shared_per_sm",
    "shared_per_block",
    "threads_per_sm",
    "blocks_per_sm",
    "l2_bytes",
    "l2_read_bytes_per_s",
    "bus_bytes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "memory_latency_s",
    "fma_latency_cycles",
    "launch_s",
    "rates of multiply-adds",
];

/// Fields of a machine whose values are another's, since nobody has measured or documented its own.
///
/// ```
/// use lanky_model::Machine;
/// assert_eq!(Machine::H200.assumed.to_string(), "fma_latency_cycles");
/// assert_eq!(Machine::H100.assumed.names().next(), Some("l2_read_bytes_per_s"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Assumed(u32);

impl Assumed {
    /// Everything is known.
    pub const NONE: Assumed = Assumed(0);

    /// These fields, by name; in a constant a name that is none does not compile.
    pub(super) const fn of(names: &[&str]) -> Assumed {
        let assumed = Assumed::known(names);
        assert!(assumed.0.count_ones() as usize == names.len(), "a field that is none, or one twice");
        assumed
    }

    /// Those of the names that are fields'.
    pub(super) const fn known(names: &[&str]) -> Assumed {
        let (mut bits, mut name) = (0, 0);
        while name < names.len() {
            let mut at = 0;
            while at < FIELDS.len() {
                if same(FIELDS[at].as_bytes(), names[name].as_bytes()) {
                    bits |= 1 << at;
                }
                at += 1;
            }
            name += 1;
        }
        Assumed(bits)
    }

    /// What either assumes.
    pub const fn and(self, other: Assumed) -> Assumed {
        Assumed(self.0 | other.0)
    }

    /// What is left once these are known.
    pub fn without(self, names: &[&str]) -> Assumed {
        Assumed(self.0 & !Self::known(names).0)
    }

    /// Whether nothing is.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The fields' names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        FIELDS.into_iter().enumerate().filter(move |(at, _)| self.0 & (1 << at) != 0).map(|(_, name)| name)
    }
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.names() {
            write!(f, "{separator}{name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Assumed({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::TABLE;
    use std::string::ToString;

    #[test]
    fn sets_are_added_and_taken_apart() {
        let some = Assumed::of(&["launch_s", "clock_hz", "sms"]);
        assert_eq!(some.to_string(), "sms, clock_hz, launch_s");
        assert_eq!(some.without(&["clock_hz", "l2_bytes"]).to_string(), "sms, launch_s");
        assert_eq!(Assumed::of(&["l2_bytes"]).and(some).names().count(), 4);
        assert!(
            Assumed::NONE.is_empty() && !some.is_empty() && some.without(&["sms", "clock_hz", "launch_s"]).is_empty()
        );
        for name in FIELDS {
            assert_eq!(Assumed::of(&[name]).names().collect::<std::vec::Vec<_>>(), [name]);
        }
    }

    /// A name that is misspelt in the table would be left out.
    #[test]
    fn the_tables_assumptions_are_there() {
        let said = |name: &str| TABLE.iter().find(|(known, _)| *known == name).map(|(_, m)| m.assumed.to_string());
        assert_eq!(said("h200").as_deref(), Some("fma_latency_cycles"));
        assert_eq!(
            said("h100").as_deref(),
            Some(
                "l2_read_bytes_per_s, read_bytes_per_s, write_bytes_per_s, memory_latency_s, fma_latency_cycles, launch_s"
            )
        );
        assert_eq!(
            said("b200").as_deref(),
            Some("read_bytes_per_s, write_bytes_per_s, memory_latency_s, fma_latency_cycles, launch_s")
        );
        assert_eq!(said("a100").as_deref(), Some("memory_latency_s, fma_latency_cycles, launch_s"));
        assert_eq!(said("v100").as_deref(), Some("launch_s"));
        assert_eq!(said("p100").as_deref(), Some("memory_latency_s, launch_s"));
        assert_eq!(
            said("rtx4090").as_deref(),
            Some("read_bytes_per_s, write_bytes_per_s, memory_latency_s, fma_latency_cycles, launch_s")
        );
    }
}
