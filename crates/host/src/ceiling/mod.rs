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

impl Ceilings {
    /// What bounds a product of this element type: the fastest units for it count.
    pub fn rates(&self, dtype: Dtype) -> Rates {
        let fma_per_s = match dtype {
            Dtype::F32 => self.fma_f32,
            Dtype::F64 => self.mma_f64.unwrap_or(0.0).max(self.fma_f64),
        };
        Rates { read_bytes_per_s: self.read, write_bytes_per_s: self.write, fma_per_s }
    }
}

/// Bytes/s that are read, the best of all measurements.
pub(crate) fn read(stream: &Stream) -> Result<f64> {
    match stream.queue() {
        Queue::Cpu => cpu::read(stream),
        Queue::Cuda(queue) => gpu::read(stream, queue),
    }
}

/// All of them, each result checked.
pub(crate) fn all(stream: &Stream) -> Result<Ceilings> {
    match stream.queue() {
        Queue::Cpu => cpu::all(stream),
        Queue::Cuda(queue) => gpu::all(stream, queue),
    }
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
        let c = device.ceilings(&device.stream()?)?;
        for rate in [c.read, c.copy, c.write, c.update, c.fma_f32, c.fma_f64] {
            assert!(rate.is_finite() && rate > 1e6, "{c:?}");
        }
        assert_eq!(c.mma_f64, None);
        Ok(())
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
        assert_eq!((rates.read_bytes_per_s, rates.write_bytes_per_s, rates.fma_per_s), (4.0, 2.0, 40.0));
        assert_eq!(Ceilings { mma_f64: None, ..c }.rates(Dtype::F64).fma_per_s, 20.0);
        assert_eq!(c.rates(Dtype::F32).fma_per_s, 80.0);
    }
}
