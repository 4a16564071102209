//! Transfers between the host and a GPU, through pinned memory of our own.
//!
//! The driver never sees a caller's memory: a piece is copied to a pinned chunk, and sent from there while the next one
//! is filled. So a call may return with copies under way, and nothing that the caller then does can reach them.

use crate::driver;
use crate::error::Result;
use crate::gpu::{Gpu, hold, lock};
use crate::scalar::Scalar;
use crate::shape::{narrow, wide};
use crate::stream::CudaStream;
use cust::error::CudaResult;
use cust::event::{Event, EventFlags};
use cust::memory::{AsyncCopyDestination, DevicePointer, DeviceSlice, LockedBuffer};
use cust::stream::Stream;
use std::collections::VecDeque;
use std::sync::Arc;

/// Largest chunk, bytes: 0.3 ms of PCIe 5, long against the 5 us that a copy costs to start.
pub(crate) const CHUNK_BYTES: usize = 16 << 20;
/// Smallest chunk, bytes.
const LEAST_BYTES: usize = 64 << 10;
/// Chunks: one is filled while another is sent, and one absorbs the difference.
const CHUNKS: usize = 3;

/// Elements of the largest chunk.
pub(crate) fn chunk_len<T>() -> usize {
    CHUNK_BYTES / size_of::<T>()
}

/// Chunks of pinned memory, used in turn.
pub(crate) struct Ring {
    gpu: Arc<Gpu>,
    chunks: Vec<Chunk>,
    next: usize,
}

struct Chunk {
    /// Words, so that any element type is aligned.
    memory: LockedBuffer<u64>,
    /// Recorded behind the last copy from or to the chunk.
    copied: Event,
}

impl Chunk {
    fn new(bytes: usize) -> Result<Self> {
        let words = bytes.clamp(LEAST_BYTES, CHUNK_BYTES).next_power_of_two() / size_of::<u64>();
        let memory = LockedBuffer::new(&0, words)
            .map_err(|error| driver::allocation_failed(error, wide(words * size_of::<u64>()), || None))?;
        Ok(Chunk { memory, copied: Event::new(EventFlags::DISABLE_TIMING).map_err(driver::failed)? })
    }

    fn elements<T: Scalar>(&mut self, len: usize) -> &mut [T] {
        let all = bytemuck::cast_slice_mut(&mut self.memory);
        let len = len.min(all.len());
        &mut all[..len]
    }
}

impl Ring {
    fn new(gpu: &Arc<Gpu>) -> Self {
        Ring { gpu: Arc::clone(gpu), chunks: Vec::new(), next: 0 }
    }

    /// The next chunk in turn, of at least `bytes`, once no copy uses it any more. The context must be current.
    fn next(&mut self, bytes: usize) -> Result<usize> {
        let index = self.next;
        match self.chunks.get(index) {
            None => self.chunks.push(Chunk::new(bytes)?),
            Some(chunk) => {
                chunk.copied.synchronize().map_err(driver::failed)?;
                if chunk.memory.len() * size_of::<u64>() < bytes {
                    self.chunks[index] = Chunk::new(bytes)?;
                }
            }
        }
        self.next = (index + 1) % CHUNKS;
        Ok(index)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let chunks = std::mem::take(&mut self.chunks);
        if !chunks.is_empty() {
            let wait = |chunks: &Vec<Chunk>| chunks.iter().try_for_each(|chunk| chunk.copied.synchronize());
            self.gpu.free_after(wait, chunks);
        }
    }
}

/// The stream's ring for the length of one transfer.
struct Borrowed<'s> {
    stream: &'s CudaStream,
    ring: Option<Ring>,
}

impl<'s> Borrowed<'s> {
    fn new(stream: &'s CudaStream) -> Result<Self> {
        Ok(Borrowed { stream, ring: hold(&stream.ring)?.take() })
    }

    fn ring(&mut self) -> &mut Ring {
        let gpu = &self.stream.gpu;
        self.ring.get_or_insert_with(|| Ring::new(gpu))
    }

    /// The next chunk in turn, free to be written.
    fn next(&mut self, bytes: usize) -> Result<usize> {
        let _current = self.stream.gpu.enter()?;
        self.ring().next(bytes)
    }

    fn elements<T: Scalar>(&mut self, chunk: usize, len: usize) -> &mut [T] {
        self.ring().chunks[chunk].elements(len)
    }

    /// Enqueues one copy between a chunk and device memory, and records its end.
    fn copy<T: Scalar>(
        &mut self,
        chunk: usize,
        len: usize,
        copy: impl FnOnce(&mut [T], &Stream) -> CudaResult<()>,
    ) -> Result<()> {
        let (gpu, raw) = (&self.stream.gpu, &self.stream.raw);
        let _current = gpu.enter()?;
        let chunk = &mut self.ring.get_or_insert_with(|| Ring::new(gpu)).chunks[chunk];
        copy(chunk.elements(len), raw).map_err(driver::failed)?;
        chunk.copied.record(raw).map_err(|error| {
            let error = driver::failed(error);
            // Without the event nothing would tell when the chunk is free.
            let _ = raw.synchronize();
            error
        })
    }

    /// Waits until the last copy from or to a chunk is done.
    fn wait(&mut self, chunk: usize) -> Result<()> {
        let _current = self.stream.gpu.enter()?;
        self.ring().chunks[chunk].copied.synchronize().map_err(driver::failed)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        // Where another transfer of this stream has put one back meanwhile, this one is dropped (outside the lock).
        let surplus = {
            let mut place = lock(&self.stream.ring);
            if place.is_none() {
                *place = self.ring.take();
            }
            self.ring.take()
        };
        drop(surplus);
    }
}

/// Sends `len` elements to device memory at `address`; `fill` is asked for them piece by piece, from the first on. When
/// this returns the copies may be under way.
///
/// # Safety
/// From `address` on `len` elements are device memory of the stream's context that only work behind these copies uses,
/// and that stays until they are done.
pub(crate) unsafe fn send<T: Scalar>(
    stream: &CudaStream,
    address: u64,
    len: usize,
    fill: &mut dyn FnMut(usize, &mut [T]) -> Result<()>,
) -> Result<()> {
    let mut ring = Borrowed::new(stream)?;
    let mut sent = 0;
    while sent < len {
        let count = chunk_len::<T>().min(len - sent);
        let chunk = ring.next(count * size_of::<T>())?;
        fill(sent, ring.elements(chunk, count))?;
        ring.copy::<T>(chunk, count, |data, raw| {
            // SAFETY: the caller's memory holds `len` elements from `address` on. The chunk is pinned, stays in the ring,
            // and is not touched again before the event recorded behind this copy has passed.
            unsafe { slice::<T>(address, sent, count).async_copy_from(bytemuck::cast_slice_mut(data), raw) }
        })?;
        sent += count;
    }
    Ok(())
}

/// Receives pieces of device memory: for each (offset, length) of `pieces`, in elements from `address`, in order, calls
/// `take` with the piece's index and its elements. No piece is longer than [`chunk_len`].
///
/// # Safety
/// The pieces are device memory of the stream's context.
pub(crate) unsafe fn receive<T: Scalar>(
    stream: &CudaStream,
    address: u64,
    pieces: &mut dyn Iterator<Item = (usize, usize)>,
    take: &mut dyn FnMut(usize, &[T]) -> Result<()>,
) -> Result<()> {
    let mut ring = Borrowed::new(stream)?;
    let mut underway = VecDeque::with_capacity(CHUNKS);
    let mut finish = |ring: &mut Borrowed<'_>, (piece, chunk, len): (usize, usize, usize)| {
        ring.wait(chunk)?;
        take(piece, ring.elements(chunk, len))
    };
    for (piece, (offset, len)) in pieces.enumerate() {
        let chunk = ring.next(len * size_of::<T>())?;
        ring.copy::<T>(chunk, len, |data, raw| {
            // SAFETY: the piece is device memory, by the caller's promise; the chunk is pinned, stays in the ring, and is
            // not touched before the event recorded behind this copy has passed.
            unsafe { slice::<T>(address, offset, len).async_copy_to(bytemuck::cast_slice_mut(data), raw) }
        })?;
        underway.push_back((piece, chunk, len));
        // One fewer than there are chunks, so that the next in turn is never one that is still to be read.
        if underway.len() == CHUNKS - 1 {
            underway.pop_front().map_or(Ok(()), |oldest| finish(&mut ring, oldest))?;
        }
    }
    underway.into_iter().try_for_each(|left| finish(&mut ring, left))
}

/// The bytes of elements `from..from + len` of device memory at `address`.
///
/// # Safety
/// They exist.
unsafe fn slice<T: Scalar>(address: u64, from: usize, len: usize) -> DeviceSlice<u8> {
    let start = DevicePointer::from_raw(address + wide(from) * T::DTYPE.bytes());
    // SAFETY: the elements from `from` on exist, as the caller promised; DTYPE's bytes are `size_of::<T>()`.
    unsafe { DeviceSlice::from_raw_parts(start, len * size_of::<T>()) }
}

/// Sets bytes at `address` to zero, behind the stream's earlier work.
///
/// # Safety
/// As [`send`], for `bytes` bytes.
pub(crate) unsafe fn clear(stream: &CudaStream, address: u64, bytes: u64) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let _current = stream.gpu.enter()?;
    let start = DevicePointer::<u8>::from_raw(address);
    // SAFETY: `bytes` bytes from `address` on are the context's and only work behind this uses them, as the caller
    // promised.
    unsafe { DeviceSlice::from_raw_parts_mut(start, narrow(bytes)).set_8_async(0, &stream.raw) }.map_err(driver::failed)
}
