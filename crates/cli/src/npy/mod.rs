//! .npy files: the header's text, reading in bulk, writing.
//!
//! Format versions 1.0 to 3.0 are read, f32, f64 and complex numbers of them in little-endian order, C and Fortran order, up to three axes.
//! Version 1.0 is written. The body is never held here: it goes to and from the buffers that the device sends.
//!
//! The header is a Python dict. It is scanned by a loop over its bytes and not by a parser of Python literals, because
//! such parsers recurse (64 KiB of `(` overflow the stack) and accept what must be refused here.

#[cfg(test)]
mod fuzz;
mod header;
mod read;
mod write;

pub use header::{Header, Order};
pub use read::Input;
pub use write::{as_bytes, header_bytes};
