//! What the program prints on standard output.

use std::io::{self, Write};

use serde::Serialize;

use crate::error::Fault;

/// The object of `mul --json`, and the first part of `demo --json`.
#[derive(Debug, Serialize)]
pub struct Product {
    /// `cuda:0` or `cpu`.
    pub device: String,
    pub operation: String,
    /// `cpu` on the CPU; on a GPU `none` where nothing is multiplied.
    pub variant: String,
    pub dtype: &'static str,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Of the product alone, without transfers.
    pub seconds: f64,
    /// 10^9 bytes of A, B and C a second.
    pub gbs: f64,
}

impl Product {
    /// The name, shape and type: `tsm2r  C = A B   f64   A 3 x 4   B 4 x 2`.
    pub fn headline(&self) -> String {
        let Self { operation, dtype, m, n, k, .. } = self;
        format!("{operation}   {dtype}   A {m} x {k}   B {k} x {n}   C {m} x {n}")
    }

    /// The time and the rate: `0.767 ms   4374 GB/s`.
    pub fn speed(&self) -> String {
        format!("{}   {}", time(self.seconds), rate(self.gbs))
    }
}

/// Rate of moving `bytes` in `seconds`, in GB/s; 0 where nothing was measured.
pub fn gbs(bytes: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes / seconds / 1e9 } else { 0.0 }
}

/// `0.767 ms`.
pub fn time(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.1} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.3} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// `4374 GB/s`.
pub fn rate(gbs: f64) -> String {
    if gbs >= 100.0 { format!("{gbs:.0} GB/s") } else { format!("{gbs:.2} GB/s") }
}

/// `66.9 TFLOP/s`.
pub fn flop_rate(gflops: f64) -> String {
    if gflops >= 1000.0 { format!("{:.1} TFLOP/s", gflops / 1e3) } else { format!("{gflops:.1} GFLOP/s") }
}

/// `3.36 GB`.
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        _ if bytes >= 1e9 => (bytes / 1e9, "GB"),
        _ if bytes >= 1e6 => (bytes / 1e6, "MB"),
        _ if bytes >= 1e3 => (bytes / 1e3, "kB"),
        _ => return format!("{bytes} bytes"),
    };
    format!("{value:.2} {unit}")
}

/// A count as a number to calculate with; counts here are far below 2^53.
pub fn float(count: usize) -> f64 {
    count as f64
}

/// Writes `text` and a line break to standard output.
pub fn print(text: &str) -> Result<(), Fault> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    written.and_then(|()| stdout.flush()).map_err(|error| Fault::stdout(&error))
}

/// `object` as one line of JSON.
pub fn json(object: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(object).map_err(|error| Fault::Input(error.to_string()))
}

/// Writes `object` as one line of JSON.
pub fn print_json(object: &impl Serialize) -> Result<(), Fault> {
    print(&json(object)?)
}

/// Writes a line to standard error: a reason, no result. A closed standard error is nobody's fault.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_chosen_by_size() {
        assert_eq!(time(0.000_767), "767.0 us");
        assert_eq!(time(0.012_345), "12.345 ms");
        assert_eq!(time(3.0), "3.00 s");
        assert_eq!(rate(4374.4), "4374 GB/s");
        assert_eq!(rate(8.251), "8.25 GB/s");
        assert_eq!([999.94, 66_850.0].map(flop_rate), ["999.9 GFLOP/s", "66.8 TFLOP/s"]);
        assert_eq!(bytes(3.36e9), "3.36 GB");
        assert_eq!(bytes(12.0), "12 bytes");
        assert_eq!(gbs(1e9, 0.0), 0.0);
    }
}
