//! Batches of small products: every entry, strided, shared and listed, with gaps, conjugates and guards; huge ones; the
//! same bits.

mod bits;
mod huge;
mod quick;
mod special;
mod turned;

pub use bits::bits;
pub use huge::run as run_huge;
pub use quick::run as run_quick;
pub use special::run as run_special;
pub use turned::run as run_turned;

use crate::case::{ALPHAS, BETAS};
use crate::compare::bitwise;
use crate::entries::{Entry, tried_of_batches};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::operand::{Operand, Storage};
use crate::real::{Element, conj_if, hash, integer, times, unit};
use host::{BatchMut, BatchRef, Complex, Dtype, Error, MatMut, MatRef, gemm_batched, gemm_batched_by};

const RUNS: usize = 100;
/// m, n, k: one, edges of tiles of 2, 4 and 8, odd and even, all different, the largest, and more than the entries take.
const SIZES: [(usize, usize, usize); 17] = [
    (1, 1, 1),
    (2, 2, 2),
    (2, 3, 4),
    (3, 3, 3),
    (4, 4, 4),
    (5, 7, 3),
    (8, 8, 8),
    (9, 6, 11),
    (13, 17, 10),
    (16, 16, 16),
    (24, 20, 28),
    (31, 29, 30),
    (32, 32, 32),
    (1, 9, 4),
    (17, 1, 5),
    (6, 5, 0),
    (33, 4, 6),
];

/// How the matrices of an operand follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follow {
    /// At equal distances.
    Strided,
    /// All problems have the first.
    Shared,
    /// Listed, the last first, each with a guard of a line behind it.
    Listed,
}

#[derive(Clone, Copy, Debug)]
struct Spec {
    size: (usize, usize, usize),
    count: usize,
    storage: [Storage; 3],
    follow: [Follow; 3],
    conj: [bool; 2],
    alpha: f64,
    beta: f64,
}

impl Spec {
    fn varied(size: (usize, usize, usize), index: usize) -> Spec {
        let bits = hash(17, index, 0) as usize;
        let packed = index % 3 == 0;
        let storage = |at: usize| {
            let bits = bits >> (8 * at);
            let (pad, offset) = if packed { (0, bits >> 3 & 1) } else { (bits >> 1 & 3, bits >> 3 & 3) };
            Storage::new(bits & 1 > 0, pad, offset)
        };
        let follow = |at: usize| match (bits >> (24 + 3 * at)) % 4 {
            _ if packed => Follow::Strided,
            0 if at < 2 => Follow::Shared,
            1 => Follow::Listed,
            _ => Follow::Strided,
        };
        Spec {
            size,
            count: [301, 64, 7, 1][bits >> 40 & 3],
            storage: [storage(0), storage(1), storage(2)],
            follow: [follow(0), follow(1), follow(2)],
            conj: [index & 1 > 0, index & 2 > 0],
            alpha: ALPHAS[(bits >> 44) % 4],
            beta: BETAS[(bits >> 48) % BETAS.len()],
        }
    }

    fn name(&self, dtype: Dtype) -> String {
        let ((m, n, k), [a, b, c]) = (self.size, self.storage.map(Storage::name));
        let (follow, conj) = (self.follow, self.conj);
        format!(
            "{dtype} m={m} n={n} k={k} x{} A {a} B {b} C {c} {follow:?} conj {conj:?} alpha={} beta={}",
            self.count, self.alpha, self.beta
        )
    }
}

/// All matrices of an operand in one guarded matrix, beside or below each other.
pub struct Many<T> {
    pub all: Operand<T>,
    shape: (usize, usize),
    /// Lines from one matrix to the next: one more than it has where they are listed.
    lines: usize,
    follow: Follow,
    row_major: bool,
    count: usize,
}

impl<T: Element> Many<T> {
    fn new(
        lab: &Lab,
        spec: &Spec,
        which: usize,
        shape: (usize, usize),
        value: impl Fn(usize, usize, usize) -> T,
    ) -> Outcome<Self> {
        let (storage, follow) = (spec.storage[which], spec.follow[which]);
        let own = if storage.row_major { shape.0 } else { shape.1 };
        let lines = own + usize::from(follow == Follow::Listed);
        let matrices = if follow == Follow::Shared { 1 } else { spec.count };
        let (rows, cols) = if storage.row_major { (lines * matrices, shape.1) } else { (shape.0, lines * matrices) };
        let all = Operand::new(lab, rows, cols, storage, |i, j| {
            let line = if storage.row_major { i } else { j };
            let (matrix, line_at) = (line / lines.max(1), line % lines.max(1));
            match (line_at < own, storage.row_major) {
                (false, _) => T::canary(),
                (true, true) => value(matrix, line_at, j),
                (true, false) => value(matrix, i, line_at),
            }
        })?;
        Ok(Many { all, shape, lines, follow, row_major: storage.row_major, count: spec.count })
    }

    /// Which matrix of the memory problem `p` has.
    fn matrix(&self, p: usize) -> usize {
        match self.follow {
            Follow::Strided => p,
            Follow::Shared => 0,
            Follow::Listed => self.count - 1 - p,
        }
    }

    /// The place of an element in the memory's matrix.
    fn place(&self, p: usize, i: usize, j: usize) -> (usize, usize) {
        let first = self.matrix(p) * self.lines;
        if self.row_major { (first + i, j) } else { (i, first + j) }
    }

    fn get(&self, p: usize, i: usize, j: usize) -> [f64; 2] {
        let (i, j) = self.place(p, i, j);
        self.all.get(i, j).two()
    }

    /// Of a problem's matrix, for what only reads it and for what may write it.
    fn addresses(&self, p: usize) -> [u64; 2] {
        let ((i, j), (row, col)) = (self.place(p, 0, 0), self.all.strides());
        self.all.addresses().map(|address| address + ((i * row + j * col) * size_of::<T>()) as u64)
    }

    fn batch_stride(&self) -> usize {
        let (row, col) = self.all.strides();
        if self.follow == Follow::Shared { 0 } else { self.lines * if self.row_major { row } else { col } }
    }

    fn read<'a>(&'a self, lab: &Lab) -> host::Result<BatchRef<'a, T>> {
        let ((rows, cols), (row, col)) = (self.shape, self.all.strides());
        // SAFETY: the memory has all matrices, and lives as long as the borrow.
        unsafe {
            if self.follow == Follow::Listed {
                let one = |p| MatRef::from_raw(&lab.device, self.addresses(p)[0], rows, cols, row, col);
                let views: Vec<MatRef<'a, T>> = (0..self.count).map(one).collect::<host::Result<_>>()?;
                return BatchRef::listed(&views);
            }
            let at = self.all.address();
            BatchRef::from_raw(&lab.device, at, self.count, self.batch_stride(), (rows, cols), (row, col))
        }
    }

    /// Calls with the matrices to be written.
    fn write(&mut self, lab: &Lab, call: impl FnOnce(BatchMut<'_, T>) -> host::Result<()>) -> host::Result<()> {
        let ((rows, cols), (row, col)) = (self.shape, self.all.strides());
        // SAFETY: as for `read`, and the borrow is exclusive.
        unsafe {
            if self.follow == Follow::Listed {
                let one = |p| MatMut::from_raw(&lab.device, self.addresses(p)[1], rows, cols, row, col);
                let mut views: Vec<MatMut<'_, T>> = (0..self.count).map(one).collect::<Result<_, _>>()?;
                return call(BatchMut::listed(&mut views)?);
            }
            let [_, at] = self.all.addresses();
            call(BatchMut::from_raw(&lab.device, at, self.count, self.batch_stride(), (rows, cols), (row, col))?)
        }
    }
}

/// A batch and what it must become.
pub struct Case<T> {
    spec: Spec,
    pub a: Many<T>,
    b: Many<T>,
    pub c: Many<T>,
}

impl<T: Element> Case<T> {
    fn new(lab: &Lab, spec: Spec, value: impl Fn(u64, usize, usize, usize) -> T) -> Outcome<Self> {
        let (m, n, k) = spec.size;
        let a = Many::new(lab, &spec, 0, (m, k), |p, i, j| value(1, p, i, j))?;
        let b = Many::new(lab, &spec, 1, (k, n), |p, i, j| value(2, p, i, j))?;
        let c =
            Many::new(lab, &spec, 2, (m, n), |p, i, j| if spec.beta == 0.0 { T::canary() } else { value(3, p, i, j) })?;
        Ok(Case { spec, a, b, c })
    }

    fn integers(lab: &Lab, spec: Spec) -> Outcome<Self> {
        let part = |seed, p, i, j| integer(seed, 31 * p + i, j, 3);
        Self::new(lab, spec, |seed, p, i, j| T::of_two(part(seed, p, i, j), part(seed + 7, p, i, j)))
    }

    /// α and β: of complex elements, but for 0 and 1, with an imaginary part.
    fn factor(value: f64) -> T {
        T::of_two(value, if value == 0.0 || value == 1.0 { 0.0 } else { value })
    }

    fn run(&mut self, lab: &Lab, entry: Entry) -> Outcome<Vec<T>> {
        self.c.all.reset()?;
        self.enqueue(lab, entry)?;
        lab.stream.synchronize()?;
        self.c.all.result("C")
    }

    /// Gives it to the stream, and does nothing else.
    pub fn enqueue(&mut self, lab: &Lab, entry: Entry) -> host::Result<()> {
        let [conj_a, conj_b] = self.spec.conj;
        let (alpha, beta) = (Self::factor(self.spec.alpha), Self::factor(self.spec.beta));
        let (a, b) = (self.a.read(lab)?, self.b.read(lab)?);
        let (a, b) = (if conj_a { a.conj() } else { a }, if conj_b { b.conj() } else { b });
        self.c.write(lab, |c| match entry {
            None => gemm_batched(&lab.stream, alpha, a, b, beta, c),
            Some(name) => gemm_batched_by(&lab.stream, name, alpha, a, b, beta, c),
        })
    }

    /// All elements of C's memory, those between listed matrices as they were.
    fn expected(&self) -> Vec<[f64; 2]> {
        let ((m, n, k), [conj_a, conj_b]) = (self.spec.size, self.spec.conj);
        let (alpha, beta) = (Self::factor(self.spec.alpha).two(), Self::factor(self.spec.beta).two());
        let mut all: Vec<[f64; 2]> = self.c.all.elements().into_iter().map(T::two).collect();
        for p in 0..self.spec.count {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let sum = (0..k).fold([0.0; 2], |[re, im], l| {
                    let [x, y] = times(conj_if(self.a.get(p, i, l), conj_a), conj_if(self.b.get(p, l, j), conj_b));
                    [re + x, im + y]
                });
                let old = if beta == [0.0; 2] { [0.0; 2] } else { times(beta, self.c.get(p, i, j)) };
                let new = times(alpha, sum);
                let (row, col) = self.c.place(p, i, j);
                all[row + col * self.c.all.rows] = [new[0] + old[0], new[1] + old[1]];
            }
        }
        all
    }

    /// Fails with the first element of C's memory that is not as expected; canaries are those that nothing may write.
    pub fn right(&self, found: &[T]) -> Outcome {
        let before = self.c.all.elements();
        for (at, (found, expected)) in found.iter().zip(self.expected()).enumerate() {
            let fine = match expected.iter().any(|part| part.is_nan()) {
                true => found.bits() == before[at].bits(),
                false => found.two() == expected,
            };
            ensure(fine, || format!("element {at} of C's memory: expected {expected:?}, found {found:?}"))?;
        }
        ensure(found.len() == before.len(), || format!("{} elements", found.len()))
    }
}

/// Integers at equal distances, and by lists of which none is in order.
pub fn recordable<T: Element>(lab: &Lab, size: (usize, usize, usize)) -> Outcome<[Case<T>; 2]> {
    let of = |follow| {
        let storage = [Storage { pad: 1, ..Storage::default() }; 3];
        let count = if lab.is_emulated() { 7 } else { 301 };
        Case::integers(
            lab,
            Spec { size, count, storage, follow: [follow; 3], conj: [true, false], alpha: 0.5, beta: -1.0 },
        )
    };
    Ok([of(Follow::Strided)?, of(Follow::Listed)?])
}

/// The model's choice, and on a GPU each entry of an element type.
fn entries(lab: &Lab, dtype: Dtype) -> Vec<Entry> {
    let forced = tried_of_batches().filter(|v| lab.device.is_cuda() && v.dtype == dtype).map(|v| Some(v.entry));
    [None].into_iter().chain(forced).collect()
}

/// Whether an entry does not take what it was asked for, and says so.
fn is_refused(entry: Entry, fault: &crate::lab::Fault) -> bool {
    let reasons = [
        "packed batches alone",
        "batches alone whose",
        "without gaps alone",
        "whole tiles alone",
        "its threads compute",
        "threads",
        "take up to",
        "take 32 at most",
    ];
    let refused = |what: &str| reasons.iter().any(|reason| what.contains(reason));
    entry.is_some() && matches!(fault.downcast_ref::<Error>(), Some(Error::Unsupported { what }) if refused(what))
}

fn sweep<T: Element>(lab: &Lab, sizes: &[(usize, usize, usize)], turns: usize) -> Outcome {
    let mut taken = vec![0; entries(lab, T::DTYPE).len()];
    for (at, &size) in sizes.iter().enumerate() {
        for turn in 0..turns {
            let spec = Spec::varied(size, at * turns + turn);
            let mut case = Case::<T>::integers(lab, spec)?;
            for (place, entry) in entries(lab, T::DTYPE).into_iter().enumerate() {
                let result = case.run(lab, entry).and_then(|found| case.right(&found));
                if result.as_ref().is_err_and(|fault| is_refused(entry, fault)) {
                    continue;
                }
                taken[place] += 1;
                lab.record(|| format!("batched {} {}", named(entry), spec.name(T::DTYPE)), result)?;
            }
            lab.record(|| "batched A".into(), case.a.all.unchanged("A"))?;
            lab.record(|| "batched B".into(), case.b.all.unchanged("B"))?;
        }
    }
    for (taken, entry) in taken.into_iter().zip(entries(lab, T::DTYPE)) {
        let ran = ensure(taken > 0, || "it was refused in every case".into());
        lab.record(|| format!("batched {} {}", T::DTYPE, named(entry)), ran)?;
    }
    Ok(())
}

/// Integers, in every way to lie.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab, &SIZES, 6)?;
    sweep::<f64>(lab, &SIZES, 6)?;
    sweep::<Complex<f32>>(lab, &SIZES, 6)?;
    sweep::<Complex<f64>>(lab, &SIZES, 6)
}

/// A little of it, for a tool that is slow.
pub fn small(lab: &Lab) -> Outcome {
    const FEW: [(usize, usize, usize); 4] = [(3, 2, 5), (4, 4, 4), (8, 7, 9), (16, 16, 16)];
    sweep::<f32>(lab, &FEW, 5)?;
    sweep::<f64>(lab, &FEW, 5)?;
    sweep::<Complex<f32>>(lab, &FEW, 5)?;
    sweep::<Complex<f64>>(lab, &FEW, 5)
}

/// 100 runs of random numbers have the bits of the first, and so has the product alone, or elsewhere in the batch.
pub fn run_repeat(lab: &Lab) -> Outcome {
    repeat::<f32>(lab)?;
    repeat::<f64>(lab)?;
    repeat::<Complex<f32>>(lab)?;
    repeat::<Complex<f64>>(lab)
}

fn repeat<T: Element>(lab: &Lab) -> Outcome {
    for size in [(3, 3, 3), (8, 8, 8), (19, 23, 31)] {
        let storage = [Storage::default(); 3];
        let spec =
            Spec { size, count: 3001, storage, follow: [Follow::Strided; 3], conj: [false; 2], alpha: 1.0, beta: 0.0 };
        let value =
            |seed, p: usize, i: usize, j| T::of_two(unit(seed, p % 7 * 40 + i, j), unit(seed + 9, i, p % 7 * 40 + j));
        let mut case = Case::<T>::new(lab, spec, value)?;
        for entry in entries(lab, T::DTYPE) {
            let each = size.0 * size.1;
            let result = case.run(lab, entry).and_then(|first| {
                // The problems repeat after seven of them.
                for p in 7..spec.count {
                    bitwise(&first[p * each..][..each], &first[p % 7 * each..][..each], size.0)?;
                }
                (1..RUNS).try_for_each(|_| bitwise(&case.run(lab, entry)?, &first, size.0))
            });
            if !result.as_ref().is_err_and(|fault| is_refused(entry, fault)) {
                lab.record(|| format!("batched, bits of {} {}", named(entry), spec.name(T::DTYPE)), result)?;
            }
        }
    }
    Ok(())
}
