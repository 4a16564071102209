//! The parameters of a launch, as the driver gets them.

use crate::mapped::mapping;
use cuda_std::{Global, Scalar};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

/// Addresses of values, in the order of the entry's parameters.
pub struct Parameters<'d> {
    at: *const *mut c_void,
    /// The allocation of device memory that an address lies in; empty where none does.
    allocation: &'d dyn Fn(u64) -> Range<u64>,
}

impl<'d> Parameters<'d> {
    /// # Safety
    /// Whoever reads them asks for as many as there are, each by its type.
    pub unsafe fn new(at: *const *mut c_void, allocation: &'d dyn Fn(u64) -> Range<u64>) -> Self {
        Parameters { at, allocation }
    }

    /// The next one.
    pub fn value<V: Copy>(&mut self) -> V {
        // SAFETY: promised when this was made.
        unsafe {
            let value = self.at.read().cast::<V>().read_unaligned();
            self.at = self.at.add(1);
            value
        }
    }

    /// What an address lies in: an allocation, or what is mapped by itself.
    fn range(&self, address: u64) -> Range<u64> {
        Some((self.allocation)(address)).filter(|found| !found.is_empty()).unwrap_or_else(|| mapping(address))
    }

    /// The next one, an address, as an operand that may be used as far as its allocation goes.
    pub fn operand<T: Scalar>(&mut self, name: &'static str) -> Global<T> {
        let address = self.value();
        of_range(name, address, self.range(address))
    }

    /// The next two: the first of `count` matrices, and the list of where all are, in elements from there, which may be in other
    /// allocations; 0 in place of a list where there is none.
    pub fn listed<T: Scalar>(&mut self, names: [&'static str; 2], count: u32) -> (Global<T>, Global<f64>) {
        let [first, list]: [u64; 2] = [self.value(), self.value()];
        let mut range = self.range(first);
        for index in 0..if list == 0 { 0 } else { count as usize } {
            // SAFETY: a list has as many elements.
            let elements = unsafe { ptr::with_exposed_provenance::<u64>(list as usize).add(index).read() };
            let at = self.range(first.wrapping_add(elements.wrapping_mul(size_of::<T>() as u64)));
            range = range.start.min(at.start)..range.end.max(at.end);
        }
        (of_range(names[0], first, range), of_range(names[1], list, self.range(list)))
    }
}

/// The operand that begins at an address and may be used within a range.
fn of_range<T: Scalar>(name: &'static str, address: u64, range: Range<u64>) -> Global<T> {
    let bytes = size_of::<T>() as u64;
    let elements = (range.end - range.start) / bytes;
    let whole = Global::on_host(name, ptr::with_exposed_provenance_mut(range.start as usize), elements);
    whole.starting_at((address - range.start) / bytes)
}
