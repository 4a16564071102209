//! A plan in words.

use super::Plan;
use crate::cpu;
use std::fmt;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(choice) = &self.choice {
            return write!(f, "{choice}");
        }
        let (m, n, k) = (self.a.rows, self.b.cols, self.a.cols);
        writeln!(f, "{}  {}  m = {m}, n = {n}, k = {k}", self.operation, self.c.dtype)?;
        if m == 0 || n == 0 {
            return f.write_str("  nothing to do: C is empty");
        }
        if k == 0 {
            return f.write_str("  C <- beta C: nothing is multiplied");
        }
        let (blocks, rows) = cpu::blocks(m, n, k);
        let side = if n > m { "columns" } else { "rows" };
        let plural = if blocks == 1 { "" } else { "s" };
        let parts = match cpu::parts(m, n, k) {
            1 => String::new(),
            parts => format!(" and {parts} parts of k"),
        };
        if blocks == 1 && parts.is_empty() {
            return write!(f, "  on the CPU: all {} {side} of C in one block, by one thread", m.max(n));
        }
        write!(
            f,
            "  on the CPU: {blocks} block{plural} of {rows} {side} of C{parts}, in parallel; the same bits for any number of threads"
        )
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({} by {} on {})", self.operation, self.entry().unwrap_or(self.variant()), self.device)
    }
}
