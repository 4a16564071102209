//! Nothing is left behind: after the third of many rounds of opening, planning, running, failing and dropping, each of them
//! leaves the memory of the GPU, of the process, its threads and its files as they were.

use crate::compare::equal;
use crate::lab::{Lab, Outcome, ensure};
use crate::real::{Real, integer};
use host::{
    BatchMut, BatchRef, Complex, Device, Error, Matrix, Plan, Scalar, Stream, gemm, gemm_batched, gemv, gram,
    tsmm_in_place,
};
use std::fs;

const ROUNDS: usize = 1000;
/// The same of an emulated GPU.
const FEW: usize = 6;
/// Rounds in which what is kept for good may be made: modules, pinned memory of streams that are kept, pages of the allocator.
const FIRST: usize = 3;
/// Growth of the process that is none, bytes a round: its allocator may keep pages of its own.
const SLACK: u64 = 1 << 10;

/// What the process and the device have.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    /// Free memory of a GPU, bytes; 0 of the CPU.
    free: u64,
    /// Of the process, bytes.
    resident: u64,
    threads: u64,
    files: u64,
}

impl Taken {
    fn now(device: &Device) -> Outcome<Taken> {
        let status = fs::read_to_string("/proc/self/status")?;
        let field = |name: &str| -> Outcome<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or_else(|| format!("no {name}"))?;
            Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
        };
        Ok(Taken {
            free: if device.is_cuda() { device.memory()?.0 } else { 0 },
            resident: 1024 * field("VmRSS:")?,
            threads: field("Threads:")?,
            files: fs::read_dir("/proc/self/fd")?.count() as u64,
        })
    }

    /// Fails if so many rounds after `before` there is less free, or more taken.
    fn as_before(self, before: Taken, rounds: usize) -> Outcome {
        let less = before.free.saturating_sub(self.free);
        ensure(less == 0, || format!("{less} bytes of the GPU's are gone after {rounds} rounds"))?;
        ensure(self.threads <= before.threads, || format!("{} threads, not {}", self.threads, before.threads))?;
        ensure(self.files <= before.files, || format!("{} open files, not {}", self.files, before.files))?;
        let more = self.resident.saturating_sub(before.resident);
        ensure(more <= SLACK * rounds as u64, || format!("{more} bytes of the process are gone after {rounds} rounds"))
    }
}

/// m, n, k.
const SIZE: (usize, usize, usize) = (70, 4, 2400);

/// What is multiplied, and twice its product.
struct Inputs {
    a: Matrix<f64>,
    b: Matrix<f64>,
    /// Of the other operations.
    small: Matrix<f64>,
    expected: Vec<f64>,
}

impl Inputs {
    fn new() -> Outcome<Inputs> {
        let (m, n, k) = SIZE;
        let host = |rows, cols, seed| Matrix::from_fn(rows, cols, |i, j| integer(seed, i, j, 2));
        let sum = |i: usize, j: usize| (0..k).map(|l| integer(1, i, l, 2) * integer(2, l, j, 2)).sum::<f64>();
        let expected = (0..n).flat_map(|j| (0..m).map(move |i| (i, j))).map(|(i, j)| 2.0 * sum(i, j)).collect();
        Ok(Inputs { a: host(m, k, 1)?, b: host(k, n, 2)?, small: host(8, 8, 5)?, expected })
    }
}

/// A small product of complex numbers, n x n, by its call.
fn complex<R: Real>(device: &Device, stream: &Stream, n: usize) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let part = |seed, i, j| R::of(integer(seed, i, j, 2));
    let there =
        device.upload(stream, Matrix::from_fn(n, n, |i, j| Complex::new(part(3, i, j), part(4, i, j)))?.view())?;
    let (one, zero) = (Complex::new(R::of(1.0), R::zero()), Complex::new(R::zero(), R::zero()));
    let mut product = device.zeros::<Complex<R>>(n, n)?;
    gemm(stream, one, there.view().h(), there.view(), zero, product.view_mut())?;
    let found = product.download(stream)?;
    let is_real = (0..n).all(|i| found.get(i, i).is_some_and(|value| value.im == R::zero() && value.re > R::zero()));
    ensure(is_real, || "the diagonal of a complex product is not real".into())
}

/// Small products of the other operations, each by its call: batches at equal distances and by lists, a vector, complex numbers,
/// and one in place. A is n x n, of integers.
fn others(device: &Device, stream: &Stream, a: &Matrix<f64>) -> Outcome {
    let n = a.nrows();
    let there = device.upload(stream, a.view())?;
    let (mut c, mut y) = (device.zeros::<f64>(n, n)?, device.zeros::<f64>(n, 1)?);
    let halves = BatchRef::parts_beside(there.view(), 2)?;
    let small = BatchRef::shared(there.view().rows(..n / 2)?.cols(..n / 2)?, 2);
    gemm_batched(stream, 1.0, halves.clone(), small.clone(), 0.0, BatchMut::parts_beside(c.view_mut(), 2)?)?;
    let listed = [there.view().cols(n / 2..)?, there.view().cols(..n / 2)?];
    gemm_batched(stream, 1.0, BatchRef::listed(&listed)?, small, 1.0, BatchMut::parts_beside(c.view_mut(), 2)?)?;
    gemv(stream, 1.0, there.view(), there.view().cols(..1)?, 0.0, y.view_mut())?;
    complex::<f32>(device, stream, n)?;
    complex::<f64>(device, stream, n)?;
    let mut place = device.upload(stream, a.view())?;
    tsmm_in_place(stream, 1.0, place.view_mut(), there.view())?;
    let get = |i, j| a.get(i, j).unwrap_or(f64::NAN);
    let dot = |i: usize, j: usize, k: usize| (0..k).map(|l| get(i, l) * get(l, j)).sum::<f64>();
    let of = |matrix: &Matrix<f64>| -> Outcome<Vec<f64>> {
        Ok(matrix.download(stream)?.into_vec().ok_or("the copy is not on the host")?)
    };
    let all = |cols: usize, value: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..n * cols).map(|e| value(e % n, e / n)).collect()
    };
    // Both halves times the same corner, and the halves change places.
    let half = |i, j: usize| (0..n / 2).map(|l| (get(i, l) + get(i, n / 2 + l)) * get(l, j % (n / 2))).sum::<f64>();
    equal(&of(&c)?, &all(n, &half), n)?;
    equal(&of(&y)?, &all(1, &|i, j| dot(i, j, n)), n)?;
    equal(&of(&place)?, &all(n, &|i, j| dot(i, j, n)), n)
}

/// Opens, plans, runs, fails in several ways, and drops.
fn round(ordinal: Option<u32>, Inputs { a, b, small, expected }: &Inputs) -> Outcome {
    let (m, n, _) = SIZE;
    let device = crate::args::open(ordinal)?;
    let stream = device.stream()?;
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(m, n)?;
    let mut square = device.zeros::<f64>(n, n)?;
    let plan = Plan::gemm(&device, there_a.shape(), there_b.shape(), c.shape()).build()?;
    plan.warm_up_on(&stream)?;
    plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
    gemm(&stream, 1.0, there_a.view(), there_b.view(), 1.0, c.view_mut())?;
    gram(&stream, 1.0, there_b.view(), 0.0, square.view_mut())?;
    let graph = match device.is_cuda() {
        true => Some(stream.record(|| plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut()))?),
        false => None,
    };
    let refused = gemm(&stream, 1.0, there_b.view(), there_a.view(), 0.0, c.view_mut());
    ensure(matches!(refused, Err(Error::Shape(_))), || format!("expected a refusal, found {refused:?}"))?;
    let none = device.zeros::<f64>(1 << 24, 1 << 24).map(drop);
    ensure(matches!(none, Err(Error::OutOfMemory { .. })), || format!("expected OutOfMemory, found {none:?}"))?;
    others(&device, &stream, small)?;
    let found = c.download(&stream)?.into_vec().ok_or("the copy is not on the host")?;
    drop((graph, plan, device));
    equal(&found, expected, m)
}

/// On the GPU's own memory too, which nothing else may use meanwhile.
pub fn run(lab: &Lab) -> Outcome {
    let inputs = Inputs::new()?;
    let rounds = if lab.is_emulated() { FEW } else { ROUNDS };
    let mut before = Taken::now(&lab.device)?;
    for done in 1..=rounds {
        round(lab.device.ordinal(), &inputs)?;
        if done == FIRST {
            before = Taken::now(&lab.device)?;
        }
    }
    let mut after = Taken::now(&lab.device)?;
    if lab.is_emulated() {
        // It notes every call.
        after.resident = before.resident;
    }
    lab.note(&format!("cycles: {before:?} after {FIRST} rounds, {after:?} after {rounds}"));
    lab.record(|| "cycles".into(), after.as_before(before, rounds - FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_leak_is_one() {
        let before = Taken { free: 1 << 30, resident: 1 << 26, threads: 9, files: 12 };
        assert!(before.as_before(before, 997).is_ok());
        let leaks = [
            Taken { free: before.free - 512, ..before },
            Taken { resident: before.resident + 997 * SLACK + 1, ..before },
            Taken { threads: 10, ..before },
            Taken { files: 13, ..before },
        ];
        for leak in leaks {
            assert!(leak.as_before(before, 997).is_err(), "{leak:?}");
        }
    }

    #[test]
    fn a_process_sees_what_it_takes() -> Outcome {
        let before = Taken::now(&Device::cpu())?;
        let (held, mut bytes) = (fs::File::open("/proc/self/status")?, vec![1_u8; 64 << 20]);
        std::hint::black_box(&mut bytes);
        let after = Taken::now(&Device::cpu())?;
        drop(held);
        assert!(after.resident > before.resident + (32 << 20), "{before:?} {after:?}");
        assert!(after.threads > 0 && after.files > 2);
        Ok(())
    }
}
