//! Memory of a GPU with addresses on both sides that are nobody's: what reads or writes beyond it ends the context.
//!
//! Each block is mapped twice: where it is to be read it may not be written, where the driver knows such a thing.

use crate::lab::{Lab, Outcome};
use libloading::Library;
use std::ffi::{c_int, c_uint, c_ulonglong, c_ushort, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// Which end of its block memory touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Its first byte is the block's.
    Start,
    /// Its last byte is the block's.
    End,
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_uint,
    id: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
    windows: *mut c_void,
    compression: u8,
    remote: u8,
    usage: c_ushort,
    reserved: [u8; 4],
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: c_uint,
}

const _: () = assert!(size_of::<Properties>() == 32 && size_of::<Access>() == 12, "as cuda.h has them");

/// CU_MEM_LOCATION_TYPE_DEVICE, and CU_MEM_ALLOCATION_TYPE_PINNED.
const DEVICE: c_uint = 1;
const PINNED: c_uint = 1;
/// CU_MEM_ACCESS_FLAGS_PROT_READ, and _READWRITE.
const READ: c_uint = 1;
const READ_WRITE: c_uint = 3;

/// The driver's calls for such memory.
struct Driver {
    granularity: unsafe extern "system" fn(*mut usize, *const Properties, c_uint) -> c_int,
    reserve: unsafe extern "system" fn(*mut u64, usize, usize, u64, c_ulonglong) -> c_int,
    create: unsafe extern "system" fn(*mut c_ulonglong, usize, *const Properties, c_ulonglong) -> c_int,
    map: unsafe extern "system" fn(u64, usize, usize, c_ulonglong, c_ulonglong) -> c_int,
    allow: unsafe extern "system" fn(u64, usize, *const Access, usize) -> c_int,
    release: unsafe extern "system" fn(c_ulonglong) -> c_int,
    unmap: unsafe extern "system" fn(u64, usize) -> c_int,
    free: unsafe extern "system" fn(u64, usize) -> c_int,
    /// The functions are in it.
    _library: Library,
}

impl Driver {
    fn open() -> Outcome<Driver> {
        // SAFETY: the driver, which is loaded already: no code of it runs now.
        let library = unsafe { Library::new("libcuda.so.1") }?;
        // SAFETY: the types are those that NVIDIA's cuda.h declares for these names.
        unsafe {
            Ok(Driver {
                granularity: *library.get(b"cuMemGetAllocationGranularity\0")?,
                reserve: *library.get(b"cuMemAddressReserve\0")?,
                create: *library.get(b"cuMemCreate\0")?,
                map: *library.get(b"cuMemMap\0")?,
                allow: *library.get(b"cuMemSetAccess\0")?,
                release: *library.get(b"cuMemRelease\0")?,
                unmap: *library.get(b"cuMemUnmap\0")?,
                free: *library.get(b"cuMemAddressFree\0")?,
                _library: library,
            })
        }
    }
}

fn done(call: &str, code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(format!("{call} failed: {code}").into()) }
}

/// Memory between unmapped addresses, as much on each side.
struct Block {
    bytes: usize,
    /// Where it is to be read, and where it is to be written.
    addresses: [u64; 2],
}

/// Blocks of a GPU, each used again and again.
pub struct Pool {
    driver: Driver,
    location: Location,
    /// Bytes of which all are multiples.
    granularity: usize,
    /// What may be done where blocks are to be read.
    flags: c_uint,
    unused: Mutex<Vec<Block>>,
}

/// A block until it is dropped.
pub struct Lent {
    block: Option<Block>,
    pool: Arc<Pool>,
}

impl Pool {
    /// On the lab's GPU, whose context must be current as long as the result and what it lends is there.
    ///
    /// # Errors
    /// If the driver has no such memory.
    pub fn new(lab: &Lab) -> Outcome<Arc<Pool>> {
        let ordinal = lab.device.ordinal().ok_or("the CPU's memory is mapped by its own test")?;
        let location = Location { kind: DEVICE, id: ordinal.try_into()? };
        let mut pool =
            Pool { driver: Driver::open()?, location, granularity: 0, flags: READ, unused: Mutex::default() };
        let asked = pool.properties();
        // SAFETY: a place for the answer, and what is asked for; 0 is CU_MEM_ALLOC_GRANULARITY_MINIMUM.
        let code = unsafe { (pool.driver.granularity)(&raw mut pool.granularity, &raw const asked, 0) };
        done("cuMemGetAllocationGranularity", code)?;
        let block = match pool.block(pool.granularity) {
            Ok(block) => block,
            // The driver has no memory that may only be read.
            Err(_) => {
                pool.flags = READ_WRITE;
                pool.block(pool.granularity)?
            }
        };
        pool.give(block);
        Ok(Arc::new(pool))
    }

    /// Whether what is to be read cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.flags == READ
    }

    /// Bytes of the smallest block.
    pub fn granularity(&self) -> usize {
        self.granularity
    }

    fn properties(&self) -> Properties {
        let (location, windows) = (self.location, std::ptr::null_mut());
        let (compression, remote, usage, reserved) = (0, 0, 0, [0; 4]);
        Properties { kind: PINNED, handle_types: 0, location, windows, compression, remote, usage, reserved }
    }

    fn block(&self, bytes: usize) -> Outcome<Block> {
        let (mut handle, asked) = (0, self.properties());
        // SAFETY: a place for the answer, and what is asked for.
        done("cuMemCreate", unsafe { (self.driver.create)(&raw mut handle, bytes, &raw const asked, 0) })?;
        let addresses = self.view(handle, bytes, self.flags).and_then(|read| {
            Ok([read, self.view(handle, bytes, READ_WRITE).inspect_err(|_| self.forget(read, bytes))?])
        });
        // SAFETY: what was just made; it lives as long as it is mapped.
        done("cuMemRelease", unsafe { (self.driver.release)(handle) })?;
        Ok(Block { bytes, addresses: addresses? })
    }

    /// Where what was made is mapped, in the middle of three times as many addresses.
    fn view(&self, handle: c_ulonglong, bytes: usize, flags: c_uint) -> Outcome<u64> {
        let mut start = 0;
        // SAFETY: a place for the answer.
        done("cuMemAddressReserve", unsafe { (self.driver.reserve)(&raw mut start, 3 * bytes, 0, 0, 0) })?;
        let address = start + bytes as u64;
        let access = Access { location: self.location, flags };
        // SAFETY: addresses that were just reserved.
        let mapped = done("cuMemMap", unsafe { (self.driver.map)(address, bytes, 0, handle, 0) });
        mapped
            // SAFETY: addresses that were just mapped, and one description.
            .and_then(|()| done("cuMemSetAccess", unsafe { (self.driver.allow)(address, bytes, &raw const access, 1) }))
            .inspect_err(|_| self.forget(address, bytes))?;
        Ok(address)
    }

    fn forget(&self, address: u64, bytes: usize) {
        // SAFETY: what `view` mapped and reserved; nobody uses it any more.
        unsafe {
            (self.driver.unmap)(address, bytes);
            (self.driver.free)(address - bytes as u64, 3 * bytes);
        }
    }

    fn give(&self, block: Block) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    }

    /// A block of as many bytes at least.
    ///
    /// # Errors
    /// If there is none, and none can be made.
    pub fn lend(self: &Arc<Pool>, bytes: usize) -> Outcome<Lent> {
        let bytes = bytes.max(1).next_multiple_of(self.granularity);
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let block = match unused.iter().position(|block| block.bytes == bytes) {
            Some(at) => unused.swap_remove(at),
            None => self.block(bytes)?,
        };
        Ok(Lent { block: Some(block), pool: Arc::clone(self) })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        std::mem::take(self.unused.get_mut().unwrap_or_else(PoisonError::into_inner)).into_iter().for_each(
            |Block { bytes, addresses }| {
                addresses.into_iter().for_each(|address| self.forget(address, bytes));
            },
        );
    }
}

impl Lent {
    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.bytes)
    }

    /// Where its first byte is to be read, and where it is to be written.
    pub fn addresses(&self) -> [u64; 2] {
        self.block.as_ref().map_or([0; 2], |block| block.addresses)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.block.take().into_iter().for_each(|block| self.pool.give(block));
    }
}
