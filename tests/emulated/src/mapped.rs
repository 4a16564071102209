//! Memory that is reserved, made and mapped by itself: the host's own, so that what touches more of it ends the process where the
//! emulator does not see it.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ops::Range;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// A page, so that operands have blocks of about their size.
const GRANULARITY: usize = 4096;
const INVALID: c_int = 1;

/// First and last address of what may be used, the last one past the end.
static MAPPED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// What is mapped where an address lies; empty where nothing is.
pub fn mapping(address: u64) -> Range<u64> {
    let mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = mapped.range(..=address).next_back().filter(|(_, end)| address < **end);
    found.map_or(address..address, |(start, end)| *start..*end)
}

fn at(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

fn code<T, E>(result: Result<T, E>, then: impl FnOnce(T)) -> c_int {
    result.map_or(INVALID, |value| {
        then(value);
        0
    })
}

/// The driver's functions of these names.
///
/// # Safety
/// Places for the answers, and addresses and handles that they gave.
mod functions {
    use super::*;

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemGetAllocationGranularity(
        to: *mut usize,
        _of: *const c_void,
        _kind: c_uint,
    ) -> c_int {
        // SAFETY: a place for the answer.
        unsafe { to.write(GRANULARITY) };
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemAddressReserve(
        to: *mut u64,
        bytes: usize,
        _: usize,
        _: u64,
        _: c_ulonglong,
    ) -> c_int {
        // SAFETY: new addresses; a place for the answer.
        unsafe {
            let made = mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE);
            code(made, |made| to.write(made.expose_provenance() as u64))
        }
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemCreate(
        to: *mut c_ulonglong,
        bytes: usize,
        _: *const c_void,
        _: c_ulonglong,
    ) -> c_int {
        let made =
            memfd_create("memory", MemfdFlags::CLOEXEC).and_then(|file| ftruncate(&file, bytes as u64).map(|()| file));
        // SAFETY: a place for the answer.
        code(made, |file| unsafe { to.write(file.into_raw_fd() as c_ulonglong) })
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemMap(
        to: u64,
        bytes: usize,
        from: usize,
        handle: c_ulonglong,
        _: c_ulonglong,
    ) -> c_int {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: a file that is open, and addresses that are reserved.
        let mapped = unsafe {
            mmap(at(to), bytes, ProtFlags::empty(), flags, BorrowedFd::borrow_raw(handle as c_int), from as u64)
        };
        code(mapped, drop)
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemSetAccess(
        to: u64,
        bytes: usize,
        access: *const [c_uint; 3],
        _count: usize,
    ) -> c_int {
        // SAFETY: one description, whose last word is what may be done.
        let flags = match unsafe { (*access)[2] } {
            1 => MprotectFlags::READ,
            _ => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        // SAFETY: addresses that are mapped.
        code(unsafe { mprotect(at(to), bytes, flags) }, |()| {
            MAPPED.lock().unwrap_or_else(PoisonError::into_inner).insert(to, to + bytes as u64);
        })
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemRelease(handle: c_ulonglong) -> c_int {
        // SAFETY: a file that `cuMemCreate` opened.
        drop(unsafe { OwnedFd::from_raw_fd(handle as c_int) });
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemUnmap(from: u64, bytes: usize) -> c_int {
        MAPPED.lock().unwrap_or_else(PoisonError::into_inner).remove(&from);
        // SAFETY: addresses that are mapped, and stay reserved.
        let gone = unsafe { mmap_anonymous(at(from), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::FIXED) };
        code(gone, drop)
    }

    #[unsafe(no_mangle)]
    unsafe extern "system" fn cuMemAddressFree(from: u64, bytes: usize) -> c_int {
        // SAFETY: addresses that are reserved.
        code(unsafe { munmap(at(from), bytes) }, drop)
    }
}
