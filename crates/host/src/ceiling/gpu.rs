//! The ceilings of a GPU.

use super::{CeilingTimes, REPEATS, least, to_f64, wrong};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::launch;
use crate::memory::DeviceMemory;
use crate::scalar::Scalar;
use crate::shape::narrow;
use crate::stream::{CudaStream, Stream};
use crate::view::MatRef;
use model::variants::{self, CEILING_THREADS, CEILING_UNROLL, READ_CEILING};

/// Bytes moved in one measurement: 1 ms and more at 4 TB/s, far beyond any cache.
const BYTES: u64 = 4 << 30;
/// Blocks an SM that are tried where memory is measured; where it is written, also as many as there are tiles.
const BLOCKS_PER_SM: [u32; 5] = [4, 8, 16, 32, 64];
/// Blocks an SM that are tried where multipliers are: all resident at once.
const RESIDENT_BLOCKS: [u32; 3] = [2, 4, 8];
/// Rounds of multiply-adds: some milliseconds.
const ROUNDS: u32 = 2000;
/// Elements looked at, at each end and in the middle of what was written.
const LOOKED_AT: usize = 4096;

/// Memory to measure with: `words` of 16 bytes.
fn memory(queue: &CudaStream, words: u64) -> Result<DeviceMemory> {
    let memory = DeviceMemory::new(&queue.gpu, words * 16)?;
    // SAFETY: it was just allocated, with so many bytes; nothing else knows of it, and who frees it waits.
    unsafe { crate::transfer::clear(queue, memory.address(), memory.bytes()) }?;
    Ok(memory)
}

/// Blocks that are tried, of an entry whose blocks move so many words at a time.
fn grids(queue: &CudaStream, words: u64, at_a_time: Option<u64>) -> Vec<u32> {
    let turns = BLOCKS_PER_SM.map(|blocks| queue.gpu.machine.sms * blocks);
    let alone = at_a_time.and_then(|at_a_time| u32::try_from(words / at_a_time).ok());
    turns.into_iter().chain(alone.filter(|blocks| *blocks > 0)).collect()
}

/// Words that `share` of the free memory holds, in whole tiles: what is left over would not be moved.
fn words(queue: &CudaStream, share: u64) -> Result<u64> {
    let (free, _) = queue.gpu.memory()?;
    let tile_words = u64::from(CEILING_UNROLL) * u64::from(CEILING_THREADS);
    Ok(BYTES.min(free / share) / 16 / tile_words * tile_words)
}

pub(super) fn read(stream: &Stream, queue: &CudaStream) -> Result<f64> {
    let words = words(queue, 2)?;
    Ok(read_words(stream, queue, words, &memory(queue, words)?)?.rate())
}

fn read_words(stream: &Stream, queue: &CudaStream, words: u64, data: &DeviceMemory) -> Result<CeilingTimes> {
    let out = memory(queue, 1)?;
    let seconds = best(stream, queue, &grids(queue, words, None), READ_CEILING, |kernel, blocks| {
        // SAFETY: the context is current; `data` has `words` words of zeros and `out` room for one element.
        unsafe { launch::memory_ceiling(queue, kernel, blocks, words, &[data.address(), out.address()]) }
    })?;
    Ok(CeilingTimes::moved("read", to_f64(words * 16), seconds))
}

pub(super) fn all(stream: &Stream, queue: &CudaStream) -> Result<Vec<CeilingTimes>> {
    let words = words(queue, 4)?;
    let bytes = to_f64(words * 16);
    let (x, y) = (memory(queue, words)?, memory(queue, words)?);
    let read = read_words(stream, queue, words, &x)?;
    let [_, copy, write, update, sfma, dfma, dmma] = variants::CEILINGS;
    let tile_words = u64::from(CEILING_UNROLL) * u64::from(CEILING_THREADS) / 2;
    let moved = |entry: &'static str, addresses: &[u64]| {
        let at_a_time = if entry == copy { u64::from(CEILING_THREADS) } else { tile_words };
        best(stream, queue, &grids(queue, words, Some(at_a_time)), entry, |kernel, blocks| {
            // SAFETY: the context is current; each address is of `words` words, of two memories where there are two.
            unsafe { launch::memory_ceiling(queue, kernel, blocks, words, addresses) }
        })
    };
    let write_s = moved(write, &[x.address()])?;
    all_are::<f64>(stream, &x, "write", 1.0)?;
    let copy_s = moved(copy, &[x.address(), y.address()])?;
    all_are::<f64>(stream, &y, "copy", 1.0)?;
    let update_s = moved(update, &[x.address()])?;
    let halvings = REPEATS * grids(queue, words, Some(tile_words)).len();
    all_are::<f64>(stream, &x, "update", (0..halvings).fold(1.0, |x, _| x / 2.0))?;
    drop((x, y));
    let threads = f64::from(CEILING_THREADS);
    let fmas = threads * f64::from(variants::CEILING_FMAS);
    let mmas = threads / 32.0 * f64::from(variants::CEILING_MMAS) * f64::from(variants::MMA_FMAS);
    let has_mma = queue.gpu.machine.compute_capability >= (9, 0);
    let products = 64.0 * f64::from(ROUNDS) * f64::from(variants::CEILING_MMAS);
    let mut times = vec![
        read,
        CeilingTimes::moved("copy", 2.0 * bytes, copy_s),
        CeilingTimes::moved("write", bytes, write_s),
        CeilingTimes::moved("update", 2.0 * bytes, update_s),
        multiplied::<f32>(stream, queue, ("fma", sfma, fmas), 0.5, 16.0)?,
        multiplied::<f64>(stream, queue, ("fma", dfma, fmas), 0.5, 16.0)?,
    ];
    if has_mma {
        times.push(multiplied::<f64>(stream, queue, ("mma", dmma, mmas), 1.0, products)?);
    }
    Ok(times)
}

/// Multiply-adds of an entry, which is of this kind and does so many a block and round, is handed `x`, and leaves `expected`
/// in every element.
fn multiplied<T: Scalar + num_traits::ToPrimitive>(
    stream: &Stream,
    queue: &CudaStream,
    (what, entry, fmas): (&'static str, &'static str, f64),
    x: T,
    expected: f64,
) -> Result<CeilingTimes> {
    let sms = queue.gpu.machine.sms;
    let mut most: Option<CeilingTimes> = None;
    for blocks in RESIDENT_BLOCKS {
        let elements = u64::from(sms * blocks) * u64::from(CEILING_THREADS);
        let out = memory(queue, (elements * T::DTYPE.bytes()).div_ceil(16))?;
        let seconds = best(stream, queue, &[sms * blocks], entry, |kernel, blocks| {
            // SAFETY: the context is current; `out` has an element a thread.
            unsafe { launch::arithmetic_ceiling(queue, kernel, blocks, ROUNDS, x, out.address()) }
        })?;
        all_are::<T>(stream, &out, entry, expected)?;
        let done = fmas * f64::from(sms * blocks) * f64::from(ROUNDS);
        let times = CeilingTimes::multiplied(what, T::DTYPE, done, seconds);
        if most.as_ref().is_none_or(|most| times.rate() > most.rate()) {
            most = Some(times);
        }
    }
    most.ok_or_else(|| Error::Unsupported { what: format!("timing of {entry}: no launch shape was tried") })
}

/// The times of a launch, s, but the first, by the number of blocks that has the least of them.
fn best(
    stream: &Stream,
    queue: &CudaStream,
    grids: &[u32],
    entry: &'static str,
    launch: impl Fn(&Kernel, u32) -> Result<()>,
) -> Result<Vec<f64>> {
    let _current = queue.gpu.enter()?;
    let kernel = queue.gpu.kernel(entry)?;
    let mut best = Vec::new();
    for &blocks in grids {
        let timed = (0..REPEATS).map(|_| stream.timed(|| launch(&kernel, blocks)));
        let mut seconds = timed.collect::<Result<Vec<f64>>>()?;
        seconds.remove(0);
        if least(&seconds) < least(&best) {
            best = seconds;
        }
    }
    if !best.is_empty() && least(&best) > 0.0 {
        Ok(best)
    } else {
        Err(Error::Unsupported { what: format!("timing of {entry}: it took no time") })
    }
}

/// Whether the first, the middle and the last elements are all `expected`.
fn all_are<T: Scalar + num_traits::ToPrimitive>(
    stream: &Stream,
    memory: &DeviceMemory,
    what: &str,
    expected: f64,
) -> Result<()> {
    let len = narrow(memory.bytes() / T::DTYPE.bytes());
    let count = LOOKED_AT.min(len);
    for first in [0, (len - count) / 2, len - count] {
        let address = memory.address() + crate::shape::wide(first) * T::DTYPE.bytes();
        // SAFETY: the elements are within the memory, which work on this stream alone uses.
        let view = unsafe { MatRef::<T>::from_raw(stream.device(), address, count, 1, 1, count) }?;
        let found = stream.device().download(stream, view)?;
        for value in found.as_slice().unwrap_or_default() {
            let value = value.to_f64().unwrap_or(f64::NAN);
            if value != expected {
                return Err(wrong(what, value, expected));
            }
        }
    }
    Ok(())
}
