//! How fast a device reads its memory, measured.

use crate::error::Result;
use crate::launch;
use crate::memory::DeviceMemory;
use crate::shape::{narrow, wide};
use crate::stream::{CudaStream, Queue, Stream};
use rayon::prelude::*;
use std::time::Instant;

/// Bytes read in one measurement: 1 ms and more at 4 TB/s, far beyond any cache.
const GPU_BYTES: u64 = 4 << 30;
/// Blocks an SM that are tried.
const BLOCKS_PER_SM: [u32; 5] = [4, 8, 16, 32, 64];
/// Measurements of each shape, the first of which warms up.
const REPEATS: usize = 5;
/// Bytes read in one measurement on the CPU: beyond the largest caches of one socket.
const CPU_BYTES: u64 = 1 << 30;

/// Bytes/s of the best of all measurements.
pub(crate) fn measure(stream: &Stream) -> Result<f64> {
    match stream.queue() {
        Queue::Cpu => on_cpu(stream),
        Queue::Cuda(queue) => on_gpu(stream, queue),
    }
}

fn on_gpu(stream: &Stream, queue: &CudaStream) -> Result<f64> {
    let (free, _) = queue.gpu.memory()?;
    // A block reads 8 words a thread at a time; what is left over would not be read.
    let tile_words = 8 * u64::from(model::variants::CEILING_THREADS);
    let words = GPU_BYTES.min(free / 2) / 16 / tile_words * tile_words;
    let data = DeviceMemory::new(&queue.gpu, words * 16)?;
    let sms = queue.gpu.machine.sms;
    let out = DeviceMemory::new(&queue.gpu, 8)?;
    // SAFETY: both were just allocated, with so many bytes; nothing else knows of them, and who frees them waits.
    unsafe {
        crate::transfer::clear(queue, data.address(), data.bytes())?;
        crate::transfer::clear(queue, out.address(), out.bytes())?;
    }
    let _current = queue.gpu.enter()?;
    let module = queue.gpu.module(model::variants::READ_CEILING)?;
    let mut best = f64::INFINITY;
    for blocks in BLOCKS_PER_SM {
        for _ in 0..REPEATS {
            let seconds = stream.timed(|| {
                // SAFETY: the context is current; `data` has `words` words and `out` room for one.
                unsafe { launch::read_ceiling(queue, &module, sms * blocks, words, data.address(), out.address()) }
            })?;
            best = best.min(seconds);
        }
    }
    Ok(to_f64(words * 16) / best)
}

fn on_cpu(stream: &Stream) -> Result<f64> {
    let (free, _) = stream.device().memory().unwrap_or((CPU_BYTES, CPU_BYTES));
    let len = narrow(CPU_BYTES.min(free / 4) / 8).max(1);
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| crate::Error::OutOfMemory { wanted: wide(len) * 8, free: 0, total: 0 })?;
    // Written, so that the pages are there; zeros would all be one page.
    data.resize(len, 1_u64);
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = Instant::now();
        let sum = data.par_chunks(1 << 16).map(sum).reduce(|| 0, u64::wrapping_add);
        std::hint::black_box(sum);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(to_f64(wide(len) * 8) / best)
}

/// The sum of a piece: the vector units add faster than memory delivers.
fn sum(piece: &[u64]) -> u64 {
    piece.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// Bytes as a real number: exact to 2^53.
fn to_f64(bytes: u64) -> f64 {
    num_traits::ToPrimitive::to_f64(&bytes).unwrap_or(f64::INFINITY)
}
