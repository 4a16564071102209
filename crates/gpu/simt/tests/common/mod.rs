//! What the tests share.
#![allow(dead_code, reason = "each test file uses its part")]

use lanky_simt::{Counters, Fault, FaultKind, Launch};

/// A launch of `blocks` blocks of `threads` threads, from a fixed seed.
pub fn launch(kernel: &str, blocks: u32, threads: u32, shared_bytes: u32) -> Launch<'_> {
    Launch { kernel, grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes, seed: Some(0), ..Launch::default() }
}

/// The number of the line of `source` that ends with the comment `// <marker>`.
pub fn line(source: &str, marker: &str) -> u32 {
    let comment = format!("// {marker}");
    let Some(at) = source.lines().position(|line| line.ends_with(&comment)) else { panic!("no line {marker}") };
    at as u32 + 1
}

/// The outcome is a fault of this kind whose message holds all the parts.
#[track_caller]
pub fn expect(outcome: Result<Counters, Box<Fault>>, kind: FaultKind, parts: &[&str]) -> Fault {
    let Err(fault) = outcome else { panic!("no fault, where {} was due", kind.name()) };
    let text = fault.to_string();
    assert_eq!(fault.kind, kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    *fault
}

/// The outcome is no fault.
#[track_caller]
pub fn fine(outcome: Result<Counters, Box<Fault>>) -> Counters {
    outcome.unwrap_or_else(|fault| panic!("{fault}"))
}
