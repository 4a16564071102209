//! A GPU as it was measured.

use super::{Machine, MachineError};

/// What kernels that do nothing else reach on a device: bytes and fused multiply-adds a second. `None` was not measured.
///
/// A copy's and an update's bytes count twice, read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Bytes read a second, nothing being written.
    pub read: Option<f64>,
    /// Bytes read and written a second, from one place to another.
    pub copy: Option<f64>,
    /// Bytes written a second, nothing being read.
    pub write: Option<f64>,
    /// Multiply-adds a second in f32.
    pub fma_f32: Option<f64>,
    /// Multiply-adds a second in f64 by the vector units.
    pub fma_f64: Option<f64>,
    /// Multiply-adds a second in f64 by the matrix units.
    pub mma_f64: Option<f64>,
}

impl Machine {
    /// The machine with measured ceilings in place of the table's or the driver's; what was not measured stays.
    ///
    /// Where writing was not measured but a copy was, a byte written takes what a copy leaves of its two bytes:
    /// 1/write = 2/copy - 1/read. The estimate knows no other use of a copy, C being read and written apart.
    ///
    /// ```
    /// # use lanky_model::machine::{Ceilings, Machine};
    /// let measured = Machine::H200.calibrated(&Ceilings { read: Some(4.7e12), ..Ceilings::default() })?;
    /// assert_eq!((measured.read_bytes_per_s, measured.write_bytes_per_s), (4.7e12, 3.9e12));
    /// # Ok::<(), lanky_model::MachineError>(())
    /// ```
    ///
    /// # Errors
    /// The first field that cannot be, as of [`Machine::check`].
    pub fn calibrated(&self, ceilings: &Ceilings) -> Result<Machine, MachineError> {
        let Ceilings { read, copy, write, fma_f32, fma_f64, mma_f64 } = *ceilings;
        let read_bytes_per_s = read.unwrap_or(self.read_bytes_per_s);
        let left = copy.map(|copy| 1.0 / (2.0 / copy - 1.0 / read_bytes_per_s));
        let written = write.or(left);
        let known = [("read_bytes_per_s", read), ("write_bytes_per_s", written)];
        let assumed =
            known.iter().filter(|(_, rate)| rate.is_some()).fold(self.assumed, |a, (name, _)| a.without(&[name]));
        let machine = Machine {
            read_bytes_per_s,
            write_bytes_per_s: written.unwrap_or(self.write_bytes_per_s),
            fma_f32_per_s: fma_f32.unwrap_or(self.fma_f32_per_s),
            fma_f64_per_s: fma_f64.unwrap_or(self.fma_f64_per_s),
            mma_f64_per_s: mma_f64.unwrap_or(self.mma_f64_per_s),
            assumed,
            ..*self
        };
        machine.check().map(|()| machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::bound;
    use crate::{Dtype, Problem, choose};

    /// 8 x (1e8 + 1600) bytes read at 3.4 TB/s, 80 000 written at 2.0 TB/s.
    #[test]
    fn what_is_measured_is_planned_with() -> Result<(), MachineError> {
        let ceilings =
            Ceilings { read: Some(3.4e12), write: Some(2.0e12), fma_f64: Some(20e12), ..Ceilings::default() };
        let measured = Machine::H100.calibrated(&ceilings)?;
        let problem = Problem::column_major(Dtype::F64, 10_000, 1, 10_000);
        let seconds = 800_080_000.0 / 3.4e12 + 80_000.0 / 2.0e12;
        assert!((bound(&problem, &measured).seconds() / seconds - 1.0).abs() <= 1e-12);
        assert_eq!((measured.fma_f64_per_s, measured.mma_f64_per_s), (20e12, Machine::H100.mma_f64_per_s));
        assert_eq!(measured.assumed, Machine::H100.assumed.without(&["read_bytes_per_s", "write_bytes_per_s"]));
        let expected = |machine| choose(&problem, machine, None).map_or(f64::NAN, |choice| choice.estimate.seconds);
        assert!(expected(&measured) < expected(&Machine::H100));
        Ok(())
    }

    /// A byte read takes 1/4, a byte read and one written 2/3: 5/12 are left for the one written.
    #[test]
    fn a_copy_stands_in_for_a_write() -> Result<(), MachineError> {
        let copied = Ceilings { read: Some(4e12), copy: Some(3e12), ..Ceilings::default() };
        assert!((Machine::H200.calibrated(&copied)?.write_bytes_per_s / 2.4e12 - 1.0).abs() <= 1e-12);
        let written = Ceilings { write: Some(3.5e12), ..copied };
        assert_eq!(Machine::H200.calibrated(&written)?.write_bytes_per_s, 3.5e12);
        assert_eq!(Machine::H200.calibrated(&Ceilings::default())?, Machine::H200);
        Ok(())
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        for (field, ceilings) in [
            ("read_bytes_per_s", Ceilings { read: Some(4650.0), ..Ceilings::default() }),
            ("read_bytes_per_s", Ceilings { read: Some(f64::NAN), ..Ceilings::default() }),
            // More than the bus has.
            ("read_bytes_per_s", Ceilings { read: Some(5.2e12), ..Ceilings::default() }),
            ("write_bytes_per_s", Ceilings { write: Some(-1.0), ..Ceilings::default() }),
            // A copy that is faster than twice its reads.
            ("write_bytes_per_s", Ceilings { read: Some(1e12), copy: Some(3e12), ..Ceilings::default() }),
            ("fma_f32_per_s", Ceilings { fma_f32: Some(0.0), ..Ceilings::default() }),
            ("mma_f64_per_s", Ceilings { mma_f64: Some(33.5), ..Ceilings::default() }),
        ] {
            let refused = Machine::H200.calibrated(&ceilings).map_err(|error| error.field);
            assert_eq!(refused.err(), Some(field), "{ceilings:?}");
        }
    }
}
