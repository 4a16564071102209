//! What every test of a kernel has, wherever the kernel runs: on the CPU (the tests of lanky-host and lanky-cpu), on a GPU or an
//! emulated one (the program `lanky-gpu-tests`), or thread by thread (the emulator's suite of lanky-kernels).
//!
//! | | |
//! |---|---|
//! | [`Element`], [`Real`] | element types by their bits and their parts |
//! | [`numbers`] | elements from a position: integers, numbers that round, a matrix of rank one |
//! | [`Storage`], [`Image`] | how an operand lies, and what its memory holds: guards before and behind it, NaN in all gaps |
//! | [`compare`] | comparators, none of which takes a NaN for a number |
//! | [`Share`] | which entries are tried where not all are in one run |
//! | [`oracle`], [`parts`] | what a product must be: exactly, by kind, or within the bound of its rounding errors |
//!
//! Each has a test that damages what it looks at.

#![allow(clippy::missing_errors_doc, reason = "a fault is what every check is for")]

pub mod compare;
mod element;
mod image;
pub mod numbers;
pub mod oracle;
pub mod parts;
mod share;
mod storage;

pub use element::{Element, Real};
pub use image::Image;
pub use oracle::Terms;
pub use share::Share;
pub use storage::{PACKED, Storage};

/// What stops a check: a wrong result, or an error of a call.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
/// The result of a check.
pub type Outcome<T = ()> = Result<T, Fault>;
