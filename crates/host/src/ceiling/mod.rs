//! What a device does at most, measured: its memory and its multipliers, with kernels of our own.

use crate::error::{Error, Result};
use crate::stream::{Queue, Stream};
use model::Dtype;
use model::roofline::Rates;

mod cpu;
mod gpu;

/// Measurements of each launch shape, the first of which warms up.
const REPEATS: usize = 5;

/// What a device reached in a moment: each the best of several launch shapes.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    /// Bytes read a second, nothing being written.
    pub read: f64,
    /// Bytes read and written a second, both counted, by a copy.
    pub copy: f64,
    /// Bytes written a second, nothing being read.
    pub write: f64,
    /// Bytes read and written a second, both counted, in place.
    pub update: f64,
    /// Fused multiply-adds a second in f32.
    pub fma_f32: f64,
    /// Fused multiply-adds a second in f64, by the vector units.
    pub fma_f64: f64,
    /// Fused multiply-adds a second in f64, by the matrix units; `None` where there are none.
    pub mma_f64: Option<f64>,
}

/// How one of the ceilings was measured: the launch shape that did best.
#[derive(Clone, Debug, PartialEq)]
pub struct CeilingTimes {
    /// `read`, `copy`, `write`, `update`, `fma` or `mma`.
    pub what: &'static str,
    /// Of the elements that were moved or multiplied.
    pub dtype: Dtype,
    /// Bytes that each measurement moved, reads and writes both counted; 0 of multiply-adds.
    pub bytes: f64,
    /// Fused multiply-adds of each measurement; 0 where memory was measured.
    pub fmas: f64,
    /// Seconds of each measurement of that shape but the first, which warmed up.
    pub seconds: Vec<f64>,
}

impl CeilingTimes {
    fn moved(what: &'static str, bytes: f64, seconds: Vec<f64>) -> Self {
        Self { what, dtype: Dtype::F64, bytes, fmas: 0.0, seconds }
    }

    fn multiplied(what: &'static str, dtype: Dtype, fmas: f64, seconds: Vec<f64>) -> Self {
        Self { what, dtype, bytes: 0.0, fmas, seconds }
    }

    /// Bytes or multiply-adds a second of the best measurement.
    pub fn rate(&self) -> f64 {
        (self.bytes + self.fmas) / least(&self.seconds)
    }
}

/// The least of some times, s.
fn least(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

impl Ceilings {
    /// Of everything that was measured; what was not is 0.
    fn of(times: &[CeilingTimes]) -> Self {
        let find = |what: &str, dtype: Dtype| times.iter().find(|t| t.what == what && t.dtype == dtype);
        let rate = |what: &str, dtype: Dtype| find(what, dtype).map_or(0.0, CeilingTimes::rate);
        Self {
            read: rate("read", Dtype::F64),
            copy: rate("copy", Dtype::F64),
            write: rate("write", Dtype::F64),
            update: rate("update", Dtype::F64),
            fma_f32: rate("fma", Dtype::F32),
            fma_f64: rate("fma", Dtype::F64),
            mma_f64: find("mma", Dtype::F64).map(CeilingTimes::rate),
        }
    }

    /// What bounds a product of this element type: the fastest units for it count.
    pub fn rates(&self, dtype: Dtype) -> Rates {
        let fma_per_s = match dtype {
            Dtype::F32 | Dtype::C64 => self.fma_f32,
            Dtype::F64 | Dtype::C128 => self.mma_f64.unwrap_or(0.0).max(self.fma_f64),
        };
        Rates { read_bytes_per_s: self.read, write_bytes_per_s: self.write, copy_bytes_per_s: self.copy, fma_per_s }
    }
}

/// Bytes/s that are read, the best of all measurements.
pub(crate) fn read(stream: &Stream) -> Result<f64> {
    match stream.queue() {
        Queue::Cpu => cpu::read(stream),
        Queue::Cuda(queue) => gpu::read(stream, queue),
    }
}

/// All of them, each result checked, and how each was measured.
pub(crate) fn all(stream: &Stream) -> Result<(Ceilings, Vec<CeilingTimes>)> {
    let times = match stream.queue() {
        Queue::Cpu => cpu::all(stream),
        Queue::Cuda(queue) => gpu::all(stream, queue),
    }?;
    Ok((Ceilings::of(&times), times))
}

/// What a kernel that measures a ceiling left is not what it must leave.
fn wrong(what: &str, found: f64, expected: f64) -> Error {
    Error::Unsupported { what: format!("this device: the {what} ceiling left {found}, not {expected}") }
}

/// Bytes as a real number: exact to 2^53.
fn to_f64(bytes: u64) -> f64 {
    num_traits::ToPrimitive::to_f64(&bytes).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn a_cpu_has_all_but_matrix_units() -> Result<()> {
        let device = Device::cpu();
        let (c, times) = device.measured_ceilings(&device.stream()?)?;
        for rate in [c.read, c.copy, c.write, c.update, c.fma_f32, c.fma_f64] {
            assert!(rate.is_finite() && rate > 1e6, "{c:?}");
        }
        assert_eq!(c.mma_f64, None);
        let names: Vec<(&str, Dtype)> = times.iter().map(|t| (t.what, t.dtype)).collect();
        let moved = ["read", "copy", "write", "update"].map(|what| (what, Dtype::F64));
        assert_eq!(names, [&moved[..], &[("fma", Dtype::F32), ("fma", Dtype::F64)]].concat());
        for t in &times {
            assert!(t.seconds.len() >= 4 && t.seconds.iter().all(|&s| s > 0.0), "{t:?}");
            assert_eq!((t.bytes > 0.0, t.fmas > 0.0), (t.what != "fma", t.what == "fma"), "{t:?}");
        }
        assert_eq!((times[1].rate(), times[5].rate()), (c.copy, c.fma_f64));
        Ok(())
    }

    #[test]
    fn a_rate_is_that_of_the_best_measurement() {
        let moved = |what, bytes| CeilingTimes::moved(what, bytes, vec![4.0, 2.0, 8.0]);
        let mma = CeilingTimes::multiplied("mma", Dtype::F64, 60.0, vec![3.0]);
        let c = Ceilings::of(&[moved("read", 10.0), moved("copy", 8.0), mma]);
        assert_eq!((c.read, c.copy, c.write, c.fma_f64, c.mma_f64), (5.0, 4.0, 0.0, 0.0, Some(20.0)));
    }

    #[test]
    fn the_fastest_units_of_a_type_bound_it() {
        let c = Ceilings {
            read: 4.0,
            copy: 3.0,
            write: 2.0,
            update: 3.0,
            fma_f32: 80.0,
            fma_f64: 20.0,
            mma_f64: Some(40.0),
        };
        let rates = c.rates(Dtype::F64);
        assert_eq!((rates.read_bytes_per_s, rates.write_bytes_per_s, rates.copy_bytes_per_s), (4.0, 2.0, 3.0));
        assert_eq!(rates.fma_per_s, 40.0);
        assert_eq!(Ceilings { mma_f64: None, ..c }.rates(Dtype::F64).fma_per_s, 20.0);
        assert_eq!(c.rates(Dtype::F32).fma_per_s, 80.0);
    }
}
