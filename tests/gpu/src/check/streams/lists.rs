//! Batches by lists on two streams at once. A stream keeps its lists on the GPU, where each call overwrites the last one's.

use super::join;
use crate::compare::equal_parts;
use crate::lab::{Lab, Outcome, dtype_name};
use crate::real::{Element, integer, times};
use host::{BatchMut, BatchRef, Complex, MatMut, MatRef, Matrix, Stream, gemm_batched};

/// m, n, k.
const SIZE: (usize, usize, usize) = (6, 5, 7);
const STREAMS: usize = 2;
const RUNS: usize = 100;

/// All element types.
pub fn run(lab: &Lab) -> Outcome {
    each::<f32>(lab)?;
    each::<f64>(lab)?;
    each::<Complex<f32>>(lab)?;
    each::<Complex<f64>>(lab)
}

fn each<T: Element>(lab: &Lab) -> Outcome {
    let lists = Lists::<T>::new(lab)?;
    let result = lists.at_once(lab);
    lab.record(|| format!("streams, batches by lists, {}", dtype_name::<T>()), result)
}

/// The matrices of A and of B, beside each other.
struct Lists<T> {
    count: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    /// With A in order, and the last first: C beside each other.
    expected: [Vec<[f64; 2]>; 2],
}

fn value(seed: u64, i: usize, j: usize) -> [f64; 2] {
    [integer(seed, i, j, 3), integer(seed + 10, i, j, 3)]
}

impl<T: Element> Lists<T> {
    fn new(lab: &Lab) -> Outcome<Self> {
        let ((m, n, k), count) = (SIZE, if lab.is_emulated() { 11 } else { 2003 });
        let number = |seed| {
            move |i, j| {
                let [re, im] = value(seed, i, j);
                T::of_two(re, im)
            }
        };
        let (a, b) = (Matrix::from_fn(m, k * count, number(1))?, Matrix::from_fn(k, n * count, number(2))?);
        let (of_a, of_b) = (a.view(), b.view());
        let two = |of: MatRef<'_, T>, i, j| of.get(i, j).map_or([f64::NAN; 2], T::two);
        let element = |backwards: bool, e: usize| {
            let (p, i, j) = (e / (m * n), e % m, e / m % n);
            let of = if backwards { count - 1 - p } else { p };
            let product = |l| times(two(of_a, i, of * k + l), two(of_b, l, p * n + j));
            (0..k).map(product).fold([0.0; 2], |[re, im], [x, y]| [re + x, im + y])
        };
        let expected = [false, true].map(|backwards| (0..m * n * count).map(|e| element(backwards, e)).collect());
        let there = |host: &Matrix<T>| lab.device.upload(&lab.stream, host.view());
        let lists = Lists { count, a: there(&a)?, b: there(&b)?, expected };
        lab.stream.synchronize()?;
        Ok(lists)
    }

    /// Four threads, whose runs go to both streams in turn.
    fn at_once(&self, lab: &Lab) -> Outcome {
        let (device, runs) = (&lab.device, lab.times(RUNS));
        let streams = (0..STREAMS).map(|_| device.stream()).collect::<host::Result<Vec<_>>>()?;
        let streams = &streams;
        let work = move |thread: usize| -> Outcome {
            let ((m, n, _), count) = (SIZE, self.count);
            let mut both = [device.zeros::<T>(m, n * count)?, device.zeros::<T>(m, n * count)?];
            for run in 0..runs {
                let stream = &streams[(thread + run) % STREAMS];
                // Both are in the stream before either is waited for: the second's lists come over the first's.
                for (at, c) in both.iter_mut().enumerate() {
                    self.spoil(stream, c)?;
                    self.multiply(stream, at > 0, c)?;
                }
                for (c, expected) in both.iter().zip(&self.expected) {
                    let found = c.download(stream)?.into_vec().ok_or("the copy is not on the host")?;
                    equal_parts(&found, expected, m).map_err(|fault| format!("thread {thread}, run {run}: {fault}"))?;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| join((0..2 * STREAMS).map(|thread| scope.spawn(move || work(thread))).collect()))
    }

    fn multiply(&self, stream: &Stream, backwards: bool, c: &mut Matrix<T>) -> Outcome {
        let ((_, n, k), device) = (SIZE, stream.device());
        let part = |p: usize, width: usize| p * width..(p + 1) * width;
        let of_a = |p| self.a.view().cols(part(if backwards { self.count - 1 - p } else { p }, k));
        let a = (0..self.count).map(of_a).collect::<host::Result<Vec<_>>>()?;
        let b = (0..self.count).map(|p| self.b.view().cols(part(p, n))).collect::<host::Result<Vec<_>>>()?;
        let (m, address) = (self.a.nrows(), c.view_mut().as_ref().as_raw());
        let at = |p: usize| address + (p * m * n * size_of::<T>()) as u64;
        // SAFETY: parts of C, none of which is another's; it is borrowed until the views are gone, and used till the stream is waited for.
        let one_of = |p| unsafe { MatMut::from_raw(device, at(p), m, n, 1, m) };
        let mut views = (0..self.count).map(one_of).collect::<host::Result<Vec<MatMut<'_, T>>>>()?;
        let (one, zero) = (T::of_two(1.0, 0.0), T::of_two(0.0, 0.0));
        let c = BatchMut::listed(&mut views)?;
        Ok(gemm_batched(stream, one, BatchRef::listed(&a)?, BatchRef::listed(&b)?, zero, c)?)
    }

    /// C of NaN.
    fn spoil(&self, stream: &Stream, c: &mut Matrix<T>) -> Outcome {
        let (a, b) =
            (BatchRef::parts_beside(self.a.view(), self.count)?, BatchRef::parts_beside(self.b.view(), self.count)?);
        let (zero, nan) = (T::of_two(0.0, 0.0), T::of_two(f64::NAN, f64::NAN));
        Ok(gemm_batched(stream, zero, a, b, nan, BatchMut::parts_beside(c.view_mut(), self.count)?)?)
    }
}
