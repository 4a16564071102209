//! The ceilings of the CPU: all its threads at once.

use super::{CeilingTimes, to_f64, wrong};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::shape::{narrow, wide};
use crate::stream::Stream;
use ::cpu::threads_are_here;
use model::Dtype;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Bytes moved in one measurement: beyond the largest caches of one socket. An unoptimised build measures itself and not
/// the machine: then less will do.
const BYTES: u64 = if cfg!(debug_assertions) { 8 << 20 } else { 1 << 30 };
/// Measurements of each, the first of which warms up: other processes are in the way of some.
const REPEATS: usize = 10;
/// Elements that a thread moves at a time.
const PIECE: usize = 1 << 16;
/// Rounds of multiply-adds: some milliseconds.
const ROUNDS: u32 = if cfg!(debug_assertions) { 1000 } else { 2_000_000 };
/// Independent chains a thread: more than two units of latency 4 need.
const CHAINS: usize = 10;

/// Refuses a process that has not got the threads.
fn with_threads() -> Result<()> {
    if threads_are_here() {
        return Ok(());
    }
    let what = "ceilings of the CPU in a process that was forked after its parent had used the CPU's threads, which are not in it";
    Err(Error::Unsupported { what: what.into() })
}

pub(super) fn read(stream: &Stream) -> Result<f64> {
    with_threads()?;
    // Written, so that the pages are there; zeros would all be one page.
    Ok(read_data(&filled(stream, 4, 1.0)?).rate())
}

fn read_data(data: &[f64]) -> CeilingTimes {
    let seconds = timed(|| {
        black_box(data.par_chunks(PIECE).map(fold).reduce(|| 0, |a, b| a ^ b));
    });
    CeilingTimes::moved("read", bytes(data), seconds)
}

/// A piece folded into a word: the vector units do that faster than memory delivers.
fn fold(piece: &[f64]) -> u64 {
    piece.iter().fold(0, |folded, value| folded ^ value.to_bits())
}

pub(super) fn all(stream: &Stream) -> Result<Vec<CeilingTimes>> {
    with_threads()?;
    let mut x = filled(stream, 8, 1.0)?;
    let mut y = filled(stream, 8, 0.0)?;
    let read = read_data(&x);
    let copy_s = timed(|| {
        y.par_chunks_mut(PIECE).zip(x.par_chunks(PIECE)).for_each(|(y, x)| y.copy_from_slice(x));
    });
    all_are(&y, "copy", 1.0)?;
    let write_s = timed(|| y.par_chunks_mut(PIECE).for_each(|y| y.fill(black_box(2.0))));
    all_are(&y, "write", 2.0)?;
    let update_s = timed(|| x.par_chunks_mut(PIECE).for_each(|x| x.iter_mut().for_each(|x| *x *= 0.5)));
    all_are(&x, "update", (0..REPEATS).fold(1.0, |x, _| x / 2.0))?;
    Ok(vec![
        read,
        CeilingTimes::moved("copy", 2.0 * bytes(&x), copy_s),
        CeilingTimes::moved("write", bytes(&x), write_s),
        CeilingTimes::moved("update", 2.0 * bytes(&x), update_s),
        multiplied(Dtype::F32, chains_f32)?,
        multiplied(Dtype::F64, chains_f64)?,
    ])
}

/// An array of `value`, of at most `1 / share` of the free memory.
fn filled(stream: &Stream, share: u64, value: f64) -> Result<Vec<f64>> {
    let (free, _) = stream.device().memory().unwrap_or((BYTES, BYTES));
    let len = narrow(BYTES.min(free / share) / 8).max(1);
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| Error::host_memory(wide(len) * 8))?;
    data.resize(len, value);
    Ok(data)
}

fn bytes(data: &[f64]) -> f64 {
    to_f64(wide(data.len()) * 8)
}

/// Seconds of all measurements but the first.
fn timed(mut work: impl FnMut()) -> Vec<f64> {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..REPEATS).map(once).skip(1).collect()
}

fn all_are(data: &[f64], what: &str, expected: f64) -> Result<()> {
    match data.iter().find(|&&value| value != expected) {
        Some(&value) => Err(wrong(what, value, expected)),
        None => Ok(()),
    }
}

/// Multiply-adds a round, and the mean of all chains, each x ← x / 2 + 1 from 2 on, where it stays.
type Chains = fn(half: f64) -> (u64, f64);

/// Multiply-adds of all threads, in a loop of nothing else.
fn multiplied(dtype: Dtype, chains: Chains) -> Result<CeilingTimes> {
    let mut means = vec![0.0; rayon::current_num_threads()];
    let mut fmas = 0;
    let seconds = timed(|| {
        let done = means.par_iter_mut().with_max_len(1).map(|mean| {
            let (count, value) = chains(black_box(0.5));
            *mean = value;
            count
        });
        fmas = done.sum::<u64>();
    });
    all_are(&means, "multiply-add", 2.0)?;
    Ok(CeilingTimes::multiplied("fma", dtype, to_f64(fmas) * f64::from(ROUNDS), seconds))
}

fn chains_f32(half: f64) -> (u64, f64) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has AVX2 and FMA, as was just asked.
        return unsafe { x86::chains_f32(half as f32) };
    }
    arrays::<f32, 4>(half as f32)
}

fn chains_f64(half: f64) -> (u64, f64) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has AVX2 and FMA, as was just asked.
        return unsafe { x86::chains_f64(half) };
    }
    arrays::<f64, 2>(half)
}

/// Vectors as arrays, of which the compiler makes what the CPU has.
fn arrays<T: Scalar + num_traits::Float, const LANES: usize>(half: T) -> (u64, f64) {
    let two = T::one() + T::one();
    let mut x = [[black_box(two); LANES]; CHAINS];
    for _ in 0..ROUNDS {
        for chain in &mut x {
            for lane in chain {
                *lane = lane.mul_add(half, T::one());
            }
        }
    }
    let sum = x.iter().flatten().fold(T::zero(), |sum, &lane| sum + lane);
    mean(CHAINS * LANES, sum.to_f64())
}

fn mean(count: usize, sum: Option<f64>) -> (u64, f64) {
    (wide(count), sum.unwrap_or(f64::NAN) / to_f64(wide(count)))
}

/// The same in 256-bit vectors: compilers do not find them in the arrays.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CHAINS, ROUNDS, mean};
    use std::arch::x86_64::{
        _mm256_add_pd, _mm256_add_ps, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_set1_pd, _mm256_set1_ps,
        _mm256_storeu_pd, _mm256_storeu_ps,
    };

    /// # Safety
    /// The CPU has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn chains_f32(half: f32) -> (u64, f64) {
        let mut lanes = [0.0_f32; 8];
        // SAFETY: the CPU has AVX2 and FMA, as the caller promised; `lanes` has the eight elements that are written.
        unsafe {
            let (half, one) = (_mm256_set1_ps(half), _mm256_set1_ps(1.0));
            let mut x = [_mm256_set1_ps(2.0); CHAINS];
            for _ in 0..ROUNDS {
                for chain in &mut x {
                    *chain = _mm256_fmadd_ps(*chain, half, one);
                }
            }
            let sum = x.into_iter().fold(_mm256_set1_ps(0.0), |sum, chain| _mm256_add_ps(sum, chain));
            _mm256_storeu_ps(lanes.as_mut_ptr(), sum);
        }
        mean(8 * CHAINS, Some(lanes.iter().copied().map(f64::from).sum()))
    }

    /// # Safety
    /// The CPU has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn chains_f64(half: f64) -> (u64, f64) {
        let mut lanes = [0.0_f64; 4];
        // SAFETY: the CPU has AVX2 and FMA, as the caller promised; `lanes` has the four elements that are written.
        unsafe {
            let (half, one) = (_mm256_set1_pd(half), _mm256_set1_pd(1.0));
            let mut x = [_mm256_set1_pd(2.0); CHAINS];
            for _ in 0..ROUNDS {
                for chain in &mut x {
                    *chain = _mm256_fmadd_pd(*chain, half, one);
                }
            }
            let sum = x.into_iter().fold(_mm256_set1_pd(0.0), |sum, chain| _mm256_add_pd(sum, chain));
            _mm256_storeu_pd(lanes.as_mut_ptr(), sum);
        }
        mean(4 * CHAINS, Some(lanes.iter().sum()))
    }
}
