//! The data of cases: pools of random elements of which every A and B is a part, and a C of its own.
//!
//! An element follows from its place in the pool, whatever matrix it is then part of: the pools are made once for all
//! cases, and every element of a product can be computed again for the check. Where a case's data, or a part of it, might
//! stay in a cache, turns take different parts: none comes again before four times the cache has been touched.

use std::io;
use std::ops::Range;

use lanky::{Device, Layout, Matrix, Stream};

use super::job::Job;
use super::looked::Lines;
use super::target::Target;
use crate::error::Fault;
use crate::made_up::{MadeUp, wide};
use crate::real::Real;
use crate::say::float;

/// Parts begin at multiples of so many elements: 256 bytes and more, as the driver itself aligns.
const GRAIN: u64 = 64;
/// Of a C, or of a member's, of more bytes than these only a part is looked at.
const WHOLE_BYTES: u64 = 64 << 20;

/// The source of an operand's elements: of another seed they have little to do with each other.
pub fn source(seed: u64, operand: u64) -> MadeUp {
    let mixed = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4) & !0xffff_ffff;
    MadeUp { seed: (operand << 60) ^ mixed }
}

/// Where the first elements of a turn's A, B and C are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addresses {
    pub a: u64,
    pub b: u64,
    pub c: u64,
}

/// How the data of a case lies in the pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Reals from one part to the next, of A, B and C.
    steps: [u64; 3],
    /// Parts of each.
    pub count: u64,
    /// Whether turns find their data in a cache.
    pub cached: bool,
}

impl Parts {
    /// Of a job: one part if that is eight times the cache and more, or is to be `cached`.
    pub fn new(job: &Job, cache_bytes: u64, cached: bool) -> Option<Self> {
        let mut steps = job.all_reals()?;
        if job.shares_a {
            steps[1] = 0;
        }
        for step in &mut steps {
            *step = step.checked_next_multiple_of(GRAIN)?;
        }
        let sum = steps.iter().try_fold(0_u64, |sum, step| sum.checked_add(*step))?;
        let bytes = sum.checked_mul(job.problem.dtype.bytes())?;
        let wanted = cache_bytes.saturating_mul(4);
        let stays = cached || bytes >= wanted.saturating_mul(2);
        let count = if stays { 1 } else { 1 + wanted.div_ceil(bytes.max(1)) };
        Some(Self { steps, count, cached: cached && bytes < wanted })
    }

    /// Reals of A's pool, B's pool and C.
    pub fn lengths(&self) -> Option<[u64; 3]> {
        let [a, b, c] = self.steps.map(|step| step.checked_mul(self.count));
        Some([a?, b?, c?])
    }

    /// Reals of A, B and C before a turn's part.
    pub fn offsets(&self, turn: u64) -> [u64; 3] {
        self.steps.map(|step| step * (turn % self.count))
    }
}

/// Random reals on a device.
pub struct Pool<T> {
    matrix: Matrix<T>,
    pub source: MadeUp,
}

impl<T: Real> Pool<T> {
    /// `len` elements in [-1, 1).
    pub fn new(stream: &Stream, source: MadeUp, len: u64) -> Result<Self, Fault> {
        let mut first = 0;
        let matrix = filled(stream, len, &mut |elements| {
            source.fill(first, elements);
            first += wide(elements.len());
        })?;
        Ok(Self { matrix, source })
    }
}

/// A column of reals on the device, which `fill` makes piece by piece.
pub fn filled<T: Real>(stream: &Stream, len: u64, fill: &mut dyn FnMut(&mut [T])) -> Result<Matrix<T>, Fault> {
    let len = usize::try_from(len).map_err(|_| Fault::Input("the case is larger than any memory".into()))?;
    let mut fill = |elements: &mut [T]| {
        fill(elements);
        Ok::<(), io::Error>(())
    };
    Ok(stream.device().upload_with(stream, len, 1, Layout::ColumnMajor, &mut fill)?)
}

/// The data of one case.
pub struct Data<'p, T> {
    pub job: Job,
    pub beta: f64,
    pub parts: Parts,
    pub a: &'p Pool<T>,
    pub b: &'p Pool<T>,
    /// What C holds before a product, if β is not 0.
    pub c_source: MadeUp,
    /// Of a C, or a member's, that is no larger all is looked at.
    pub whole_bytes: u64,
    c: Target<T>,
}

impl<'p, T: Real> Data<'p, T> {
    /// The pools hold what the parts ask for.
    pub fn new(
        stream: &Stream,
        job: Job,
        beta: f64,
        parts: Parts,
        [a, b]: [&'p Pool<T>; 2],
        c_source: MadeUp,
    ) -> Result<Self, Fault> {
        let [_, _, len] = parts.lengths().unwrap_or([u64::MAX; 3]);
        let c = Target::new(stream, len, (beta != 0.0).then_some(c_source))?;
        Ok(Self { job, beta, parts, a, b, c_source, whole_bytes: WHOLE_BYTES, c })
    }

    /// Makes C NaN or, where β is not 0, what it was at first.
    pub fn spoil(&mut self, stream: &Stream) -> Result<(), Fault> {
        self.c.spoil(stream)
    }

    /// Where the data of a turn is.
    pub fn addresses(&mut self, turn: u64) -> Addresses {
        let [a, b, c] = self.parts.offsets(turn).map(|offset| offset * T::DTYPE.bytes());
        let a = self.a.matrix.view().as_raw() + a;
        let b = if self.job.shares_a { a } else { self.b.matrix.view().as_raw() + b };
        Addresses { a, b, c: self.c.address() + c }
    }

    /// Where the data of every part is.
    pub fn all_addresses(&mut self) -> Vec<Addresses> {
        (0..self.parts.count).map(|turn| self.addresses(turn)).collect()
    }

    /// Elements (member, i, j) of a turn's C, real and imaginary part; those of a member stand together. What lies between the
    /// members' lines and behind them is looked at as well: all of it, or in a large C what is beside these elements' lines.
    ///
    /// # Errors
    /// The inner one where something was written that is not C's.
    pub fn fetch(
        &mut self,
        stream: &Stream,
        turn: u64,
        places: &[Place],
    ) -> Result<Result<Vec<[T; 2]>, String>, Fault> {
        let job = self.job;
        let mut found = Vec::with_capacity(places.len());
        for of_one in places.chunk_by(|x, y| x.0 == y.0) {
            let Some(&(member, ..)) = of_one.first() else { continue };
            let first = job.place(2, member, 0, 0);
            // To the next member, or to the end of this turn's part.
            let behind = if member + 1 < job.batch { job.place(2, member + 1, 0, 0) } else { self.parts.steps[2] };
            let end = behind.saturating_sub(first);
            let lines = Lines::new(&job, end);
            let looked = if end.saturating_mul(T::DTYPE.bytes()) <= self.whole_bytes {
                std::iter::once(0..end).collect()
            } else {
                lines.stretches(of_one.iter().map(|&(_, i, j)| job.place(2, 0, i, j)))
            };
            let pieces = self.pieces(stream, turn, first, &looked)?;
            if let Some(wrong) = pieces.iter().find_map(|piece| self.written_gap(turn, first, &lines, piece)) {
                return Ok(Err(wrong));
            }
            found.extend(of_one.iter().map(|&(_, i, j)| {
                let at = job.place(2, 0, i, j);
                [at, at + job.reals - 1].map(|at| real_at(&pieces, at).unwrap_or_else(T::nan))
            }));
        }
        Ok(Ok(found))
    }

    /// Stretches of a member's C, downloaded, each with its place.
    fn pieces(
        &mut self,
        stream: &Stream,
        turn: u64,
        first: u64,
        looked: &[Range<u64>],
    ) -> Result<Vec<(u64, Vec<T>)>, Fault> {
        let c = self.addresses(turn).c;
        let mut pieces = Vec::with_capacity(looked.len());
        for stretch in looked {
            let [reals] = narrow([stretch.end.saturating_sub(stretch.start)])?;
            let address = c + (first + stretch.start) * T::DTYPE.bytes();
            // SAFETY: from the member's first element to what is no longer its own or the gap's behind it, all of it within the
            // turn's part of C, which is this one's own; the work on it was given to this stream.
            let view = unsafe { lanky::MatRef::<T>::from_raw(stream.device(), address, reals, 1, 1, reals) }?;
            let piece = stream.device().download(stream, view)?.into_vec().unwrap_or_default();
            pieces.push((stretch.start, piece));
        }
        Ok(pieces)
    }

    /// What is in a piece of a member's C, but not an element of it, and not what it was; in words.
    fn written_gap(&self, turn: u64, first: u64, lines: &Lines, (start, reals): &(u64, Vec<T>)) -> Option<String> {
        let before = self.parts.offsets(turn)[2] + first;
        let [elements] = narrow([lines.first_gap().saturating_sub(*start)]).ok()?;
        reals.iter().zip(*start..).skip(elements).find_map(|(&found, at)| {
            if !lines.is_gap(at) {
                return None;
            }
            let was = if self.beta == 0.0 { f64::NAN } else { self.c_source.element::<T>(before + at) };
            let found = found.to_f64().unwrap_or(f64::NAN);
            // Poison is not equal to itself.
            let same = found == was || (found.is_nan() && was.is_nan());
            let element = at / self.job.reals;
            (!same).then(|| {
                format!("element {element} of C in memory, which is not the product's, is {found:e}, not {was:e}")
            })
        })
    }

    /// Real and imaginary part of element (member, i, j) of an operand in a turn's part of a pool.
    pub fn element(&self, operand: usize, turn: u64, (member, i, j): Place) -> [f64; 2] {
        let pool = if self.job.shares_a && operand == 1 { 0 } else { operand };
        let source = [self.a.source, self.b.source, self.c_source][pool];
        let at = self.parts.offsets(turn)[pool] + self.job.place(operand, member, i, j);
        let imaginary = if self.job.reals == 1 { 0.0 } else { source.element::<T>(at + 1) };
        [source.element::<T>(at), imaginary]
    }
}

/// The real at this place, if a piece has it; the pieces are in order.
fn real_at<T: Copy>(pieces: &[(u64, Vec<T>)], at: u64) -> Option<T> {
    let behind = pieces.partition_point(|(start, _)| *start <= at);
    let (start, piece) = pieces.get(behind.checked_sub(1)?)?;
    piece.get(usize::try_from(at - start).ok()?).copied()
}

/// A member of a batch, a row and a column.
pub type Place = (u64, u64, u64);

/// Lengths that index memory.
pub fn narrow<const N: usize>(lengths: [u64; N]) -> Result<[usize; N], Fault> {
    let mut narrow = [0; N];
    for (narrow, length) in narrow.iter_mut().zip(lengths) {
        *narrow = usize::try_from(length).map_err(|_| Fault::Input("the case is larger than any memory".into()))?;
    }
    Ok(narrow)
}

/// Bytes of the device's last cache.
pub fn cache_bytes(device: &Device) -> u64 {
    match device.machine() {
        Some(machine) => machine.l2_bytes,
        // An unoptimised build measures itself and not the machine: it need not make data beyond its caches.
        None if cfg!(debug_assertions) => 1 << 20,
        None => last_cpu_cache().unwrap_or(32 << 20),
    }
}

/// The largest cache of the first core, where the system says.
fn last_cpu_cache() -> Option<u64> {
    let sizes = (0..8).filter_map(|index| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().strip_suffix('K')?.parse::<u64>().ok()
    });
    Some(sizes.max()? << 10)
}

/// Whether a case of these lengths leaves some of the memory free for workspaces.
pub fn fits(lengths: [u64; 3], element_bytes: u64, free: u64) -> bool {
    bytes(lengths, element_bytes) <= 0.9 * f(free)
}

/// Bytes of all three.
pub fn bytes(lengths: [u64; 3], element_bytes: u64) -> f64 {
    lengths.iter().map(|&len| f(len)).sum::<f64>() * f(element_bytes)
}

pub fn f(count: u64) -> f64 {
    float(usize::try_from(count).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Dtype, Problem};

    #[test]
    fn small_data_takes_turns_over_four_times_the_cache() {
        // 1000 x 10 f64: A 64 KB (10048 elements with its grain), B 10 x 2, C 1000 x 2: 12 160 elements, 97 280 bytes.
        let p = Job::single(Problem::column_major(Dtype::F64, 1000, 2, 10));
        let parts = Parts::new(&p, 1 << 20, false).expect("it fits");
        assert_eq!(parts.steps, [10_048, 64, 2048]);
        // 4 194 304 / 97 280 = 43.1: 44 others between two turns of one.
        assert_eq!((parts.count, parts.cached), (45, false));
        assert_eq!(parts.lengths(), Some([45 * 10_048, 45 * 64, 45 * 2048]));
        assert_eq!((parts.offsets(0), parts.offsets(46)), ([0, 0, 0], [10_048, 64, 2048]));
        let cached = Parts::new(&p, 1 << 20, true).expect("it fits");
        assert_eq!((cached.count, cached.cached), (1, true));
    }

    #[test]
    fn large_data_stays_where_it_is() {
        let p = Job::single(Problem::column_major(Dtype::F64, 1000, 2, 10));
        for (cache, cached, count) in [(12_160, false, 1), (12_161, false, 2), (20_000, false, 2), (20_000, true, 1)] {
            let parts = Parts::new(&p, cache, cached).expect("it fits");
            assert_eq!((parts.count, parts.cached), (count, false), "97 280 bytes are more than 4 x {cache}");
        }
        let huge = Job::single(Problem::column_major(Dtype::F64, u64::MAX / 2, 2, 10));
        assert_eq!(Parts::new(&huge, 1 << 20, false), None);
    }

    #[test]
    fn a_tenth_of_the_memory_stays_free() {
        assert!(fits([80, 5, 5], 8, 800));
        assert!(!fits([80, 6, 5], 8, 800));
    }
}
