//! Where the checks are run, and how many passed.

use crate::case::Spec;
use crate::entries::{self, Entry};
use crate::mapped::{At, Pool};
use crate::real::Real;
use cust::context::Context;
use host::{Device, Dtype, Error, Scalar, Stream};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::Arc;

pub use watched::{Fault, Outcome};

/// Failures that are printed; beyond them they are counted only.
const PRINTED: usize = 200;

/// A device, a stream of it, and the count.
pub struct Lab {
    /// Where the products are computed.
    pub device: Device,
    /// A stream of it.
    pub stream: Stream,
    /// Elements of guard on each side of an operand.
    pub guard: usize,
    /// Where operands are placed, if not anywhere.
    place: RefCell<Option<(Arc<Pool>, At)>>,
    passed: Cell<usize>,
    failed: Cell<usize>,
    skipped: Cell<usize>,
    /// The GPU's primary context, current on this thread for the checks' own memory.
    _context: Option<Context>,
}

/// Whether a device is the emulator, which takes a thousand times as long as a GPU.
pub fn is_emulated(device: &Device) -> bool {
    device.name() == "Emulated"
}

/// Elements of guard on each side of an operand, where there is time for as many as rocBLAS's tests have.
pub const GUARD: usize = 4096;

impl Lab {
    /// On this device.
    pub fn new(device: Device, guard: usize) -> Outcome<Lab> {
        let stream = device.stream()?;
        let context = match device.ordinal() {
            Some(ordinal) => {
                cust::init(cust::CudaFlags::empty())?;
                Some(Context::new(cust::device::Device::get_device(ordinal)?)?)
            }
            None => None,
        };
        let zero = || Cell::new(0);
        let place = RefCell::new(None);
        Ok(Lab { device, stream, guard, place, passed: zero(), failed: zero(), skipped: zero(), _context: context })
    }

    /// Whether the GPU is the emulator.
    pub fn is_emulated(&self) -> bool {
        is_emulated(&self.device)
    }

    /// Checks with operands that touch the ends of what is mapped, where it ends or where it starts.
    ///
    /// # Errors
    /// As the checks have.
    pub fn placed_at(&self, pool: &Arc<Pool>, at: At, checks: impl FnOnce(&Lab) -> Outcome) -> Outcome {
        self.place.replace(Some((Arc::clone(pool), at)));
        let result = checks(self);
        self.place.take();
        result
    }

    /// Where operands are placed now, if not anywhere.
    pub fn placed(&self) -> Option<(Arc<Pool>, At)> {
        self.place.borrow().clone()
    }

    /// Elements of guard before and behind an operand that begins so far beside an aligned address: none where it touches an end.
    pub fn guards(&self, offset: usize) -> [usize; 2] {
        match self.placed() {
            None => [self.guard + offset, self.guard],
            Some((_, At::Start)) => [0, self.guard],
            Some((_, At::End)) => [self.guard, 0],
        }
    }

    /// Rows of two tall matrices where each entry is to be tried in little time.
    pub fn few_rows(&self, on_a_gpu: usize) -> usize {
        if self.is_emulated() { 131 } else { on_a_gpu }
    }

    /// Whether the case of this number is tried: one of so many where the GPU is emulated, else each.
    pub fn takes(&self, case: usize, of: usize) -> bool {
        !self.is_emulated() || case % of == 0
    }

    /// How often something is done: a few times where the GPU is emulated.
    pub fn times(&self, on_a_gpu: usize) -> usize {
        if self.is_emulated() { on_a_gpu.min(2) } else { on_a_gpu }
    }

    /// What to ask a plan for: nothing, and on a GPU each entry of the element type.
    pub fn entries<T: Real>(&self) -> Vec<Entry> {
        entries::all(T::DTYPE, self.device.is_cuda())
    }

    /// A product with the entries that take it, and with the others as those want it.
    pub fn groups<T: Real>(&self, spec: Spec) -> Vec<(Spec, Vec<Entry>)> {
        spec.groups(self.entries::<T>())
    }

    /// The same with the entries of two tall matrices and of vectors too.
    pub fn groups_of_all<T: Real>(&self, spec: Spec) -> Vec<(Spec, Vec<Entry>)> {
        spec.groups_of_all(T::DTYPE, self.device.is_cuda())
    }

    /// Counts a result; prints the one line of a failure. A lost device stops everything.
    ///
    /// # Errors
    /// The result's, if no later check can succeed.
    pub fn record(&self, name: impl Fn() -> String, result: Outcome) -> Outcome {
        let Err(fault) = result else {
            self.passed.set(self.passed.get() + 1);
            return Ok(());
        };
        self.failed.set(self.failed.get() + 1);
        if self.failed.get() <= PRINTED {
            let place =
                self.placed().map_or_else(String::new, |(_, at)| format!("where mapped memory has its {at:?}, "));
            println!("FAILED {place}{}: {fault}", name());
        }
        match fault.downcast_ref::<Error>() {
            Some(Error::ContextLost { .. }) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Counts a check that is not run, and says why; in a test of the checks also past the test harness, to the count of `.ci/run`.
    pub fn skip(&self, name: &str, why: &str) {
        self.skipped.set(self.skipped.get() + 1);
        println!("SKIPPED {name}: {why}");
        if let Some(count) = std::env::var_os("LANKY_SKIPPED") {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(count);
            let line = format!("{name}: {why}\n");
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a file of lines");
        }
    }

    /// A line that is no verdict.
    pub fn note(&self, text: &str) {
        println!("note    {text}");
    }

    /// How many passed.
    #[cfg(test)]
    pub fn passed(&self) -> usize {
        self.passed.get()
    }

    /// Prints the count; whether nothing failed, and on a GPU nothing was skipped.
    pub fn finish(&self) -> bool {
        if self.failed.get() > PRINTED {
            println!("{} more failures are not printed", self.failed.get() - PRINTED);
        }
        let (passed, failed, skipped) = (self.passed.get(), self.failed.get(), self.skipped.get());
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        // A GPU has all that the checks need.
        failed == 0 && passed > 0 && (skipped == 0 || !self.device.is_cuda())
    }
}

/// An entry for a message: `dtsm2r_..`, or `chosen` where the model decides.
pub fn named(entry: Option<&str>) -> &str {
    entry.unwrap_or("chosen")
}

/// `f32`, `c128`.
pub fn dtype_name<T: Scalar>() -> &'static str {
    let dtype: Dtype = T::DTYPE;
    dtype.name()
}

/// Fails with a text unless it holds.
pub fn ensure(holds: bool, text: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(text().into()) }
}
