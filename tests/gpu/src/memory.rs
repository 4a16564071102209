//! Memory of the device under test that belongs to the checks: everything around an operand is theirs to watch.

use crate::lab::{Lab, Outcome};
use crate::mapped::{At, Lent};
use cust::memory::{AsyncCopyDestination, DeviceBuffer, DevicePointer, DeviceSlice};
use cust::stream::Stream;
use std::mem::ManuallyDrop;

/// Bytes to which both kinds are aligned, as a GPU's driver does.
const ALIGNMENT: usize = 256;

/// Bytes on the device, or on the host where the device is the CPU.
pub enum Memory {
    /// Words, the first of which is `skip` words in.
    Host {
        /// More than asked for, so that an aligned part is inside.
        words: Vec<u64>,
        /// Words before the aligned part.
        skip: usize,
    },
    /// A GPU's.
    Cuda {
        /// Where its first byte is to be read, and where it is to be written: of mapped memory that differs.
        addresses: [u64; 2],
        /// How many there are.
        bytes: usize,
        /// The lab's stream, which copies behind the work that it was given.
        stream: ManuallyDrop<Stream>,
        /// Frees it.
        _owner: Owner,
    },
}

/// Whose a GPU's memory is.
pub enum Owner {
    /// The driver's, as programs usually ask for it.
    Driver(#[expect(dead_code, reason = "it is dropped")] DeviceBuffer<u8>),
    /// A pool's, with nothing mapped beside it.
    Pool(#[expect(dead_code, reason = "it is dropped")] Lent),
}

impl Memory {
    /// Uninitialised on a GPU, zeros on the CPU; mapped memory while the lab's operands are placed there.
    pub fn new(lab: &Lab, bytes: usize) -> Outcome<Memory> {
        if let Some(raw) = lab.stream.as_raw() {
            let (addresses, owner) = match lab.placed() {
                Some((pool, at)) => {
                    let lent = pool.lend(bytes)?;
                    let skip = if at == At::End { (lent.bytes() - bytes) as u64 } else { 0 };
                    (lent.addresses().map(|address| address + skip), Owner::Pool(lent))
                }
                None => {
                    // SAFETY: any byte is a u8, and what is not written first is not read by the checks.
                    let buffer = unsafe { DeviceBuffer::uninitialized(bytes) }?;
                    ([buffer.as_device_ptr().as_raw(); 2], Owner::Driver(buffer))
                }
            };
            // SAFETY: a check ends, and its memory with it, before the lab and its stream do.
            let stream = unsafe { cust::extra::borrow_stream(raw) };
            return Ok(Memory::Cuda { addresses, bytes, stream, _owner: owner });
        }
        let mut words = vec![0_u64; (bytes + ALIGNMENT).div_ceil(8)];
        // Kernels of the CPU reach it by the address alone.
        let address = words.as_mut_ptr().expose_provenance();
        Ok(Memory::Host { words, skip: (address.next_multiple_of(ALIGNMENT) - address) / 8 })
    }

    /// Its address on the device, where it may be written.
    pub fn address(&self) -> u64 {
        self.addresses()[1]
    }

    /// The address for what only reads it, and that where it may be written.
    pub fn addresses(&self) -> [u64; 2] {
        match self {
            Memory::Host { words, skip } => [words[*skip..].as_ptr().addr() as u64; 2],
            Memory::Cuda { addresses, .. } => *addresses,
        }
    }

    /// Overwrites the bytes from `at` on, after the stream's earlier work.
    pub fn write(&mut self, at: usize, data: &[u8]) -> Outcome {
        match self {
            Memory::Host { words, skip } => {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words[*skip..]);
                bytes[at..at + data.len()].copy_from_slice(data);
            }
            Memory::Cuda { addresses, bytes, stream, .. } => {
                // SAFETY: waited for below, before either side can be used.
                let copied = unsafe { part(addresses[1], *bytes, at, data.len())?.async_copy_from(data, stream) };
                stream.synchronize()?;
                copied?;
            }
        }
        Ok(())
    }

    /// Makes every byte this one, after the stream's earlier work.
    pub fn fill(&mut self, byte: u8) -> Outcome {
        match self {
            Memory::Host { words, .. } => words.fill(u64::from_ne_bytes([byte; 8])),
            Memory::Cuda { addresses, bytes, stream, .. } => {
                // SAFETY: waited for below, before anything else can use it.
                let set = unsafe { part(addresses[1], *bytes, 0, *bytes)?.set_8_async(byte, stream) };
                stream.synchronize()?;
                set?;
            }
        }
        Ok(())
    }

    /// Reads the bytes from `at` on, after the stream's earlier work.
    pub fn read(&self, at: usize, data: &mut [u8]) -> Outcome {
        match self {
            Memory::Host { words, skip } => {
                let bytes: &[u8] = bytemuck::cast_slice(&words[*skip..]);
                data.copy_from_slice(&bytes[at..at + data.len()]);
            }
            Memory::Cuda { addresses, bytes, stream, .. } => {
                // SAFETY: as in `write`.
                let copied = unsafe { part(addresses[1], *bytes, at, data.len())?.async_copy_to(data, stream) };
                stream.synchronize()?;
                copied?;
            }
        }
        Ok(())
    }
}

/// Bytes `at .. at + len` of those from an address on.
fn part(address: u64, bytes: usize, at: usize, len: usize) -> Outcome<DeviceSlice<u8>> {
    if at.checked_add(len).is_none_or(|end| end > bytes) {
        return Err(format!("bytes {at} + {len} of {bytes}").into());
    }
    // SAFETY: inside the memory, which the caller borrows for as long as the slice is used.
    Ok(unsafe { DeviceSlice::from_raw_parts(DevicePointer::from_raw(address + at as u64), len) })
}
