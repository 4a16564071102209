//! Batches with gaps and guards, and what they should become.
#![allow(dead_code, reason = "each test uses its part")]

use lanky_cpu::{Batch, Instructions, Matrices, Operand, gemm_batched_with};
use std::ops::{Add, Mul};
use watched::{Outcome, compare};

/// An element that is multiplied, and whose memory is watched.
pub trait Value: lanky_cpu::Element + watched::Element + Add<Output = Self> + Mul<Output = Self> {
    fn conj(self) -> Self {
        let [re, im] = self.two();
        Self::of_two(re, -im)
    }
    fn is_nan(self) -> bool {
        self.two().into_iter().any(f64::is_nan)
    }
}

impl<T: lanky_cpu::Element + watched::Element + Add<Output = T> + Mul<Output = T>> Value for T {}

/// A generator of test numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    pub fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
    /// An integer in −2..=2, so that all sums are exact.
    pub fn integer<T: Value>(&mut self) -> T {
        T::of_two(self.below(5) as f64 - 2.0, self.below(5) as f64 - 2.0)
    }
    /// A number in −1..1 with all its digits.
    pub fn fraction<T: Value>(&mut self) -> T {
        let mut part = || self.next() as f64 / f64::from(1_u32 << 30) - 1.0;
        T::of_two(part(), part())
    }
}

/// How the matrices of an operand are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    ByCols,
    ByRows,
    /// By columns, with gaps after each column and each matrix.
    ColGaps,
    RowGaps,
    /// Neither stride is 1.
    NoUnit,
    /// One for all; never C.
    Shared,
    /// By columns with gaps, each by its address, the last one first.
    Listed,
}

pub const STORES: [Store; 7] =
    [Store::ByCols, Store::ByRows, Store::ColGaps, Store::RowGaps, Store::NoUnit, Store::Shared, Store::Listed];

/// Matrices in a buffer that is [`watched::Element::canary`] wherever no element is between them, and that and
/// [`watched::Element::filler`] in turn before and behind them.
pub struct Matrix<T> {
    pub data: Vec<T>,
    pub rows: usize,
    pub cols: usize,
    pub row: usize,
    pub col: usize,
    pub stride: usize,
    pub count: usize,
    /// Elements that are nobody's before the first and after the last matrix.
    guard: usize,
    is_listed: bool,
    pub conj: bool,
}

/// Of a matrix that does not begin at a multiple of 16 bytes, nor end at one.
pub const GUARD: usize = 67;
/// Of one that begins at such a multiple.
pub const ALIGNED: usize = 64;

impl<T: Value> Matrix<T> {
    pub fn new(store: Store, rows: usize, cols: usize, count: usize, value: impl FnMut() -> T) -> Self {
        Self::behind(GUARD, store, (rows, cols), count, value)
    }

    /// The same behind so many elements that are nobody's.
    pub fn behind(
        guard: usize,
        store: Store,
        (rows, cols): (usize, usize),
        count: usize,
        mut value: impl FnMut() -> T,
    ) -> Self {
        let (row, col, len) = match store {
            Store::ByCols | Store::Shared => (1, rows, rows * cols),
            Store::ByRows => (cols, 1, rows * cols),
            Store::ColGaps | Store::Listed => (1, rows + 3, (rows + 3) * cols + 5),
            Store::RowGaps => (cols + 2, 1, rows * (cols + 2) + 1),
            Store::NoUnit => (3, 3 * rows + 1, (3 * rows + 1) * cols),
        };
        let stride = if store == Store::Shared { 0 } else { len };
        let guards = |at: usize| if at % 2 == 0 { T::canary() } else { T::filler() };
        let mut data: Vec<T> = (0..len * count.max(1) + 2 * guard).map(guards).collect();
        data[guard..][..len * count.max(1)].fill(T::canary());
        let is_listed = store == Store::Listed;
        let mut made = Matrix { data, rows, cols, row, col, stride, count, guard, is_listed, conj: false };
        let places: Vec<usize> = made.places().collect();
        places.into_iter().for_each(|at| made.data[at] = value());
        made
    }

    /// Where its elements are, matrix after matrix down the columns; of one that all share once.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let matrices = if self.stride == 0 { 1 } else { self.count };
        let columns = (0..matrices).flat_map(|index| (0..self.cols).map(move |j| (index, j)));
        columns.flat_map(move |(index, j)| (0..self.rows).map(move |i| self.index(index, i, j)))
    }

    pub fn index(&self, matrix: usize, i: usize, j: usize) -> usize {
        let matrix = if self.is_listed { self.count - 1 - matrix } else { matrix };
        self.guard + matrix * self.stride + i * self.row + j * self.col
    }

    pub fn get(&self, matrix: usize, i: usize, j: usize) -> T {
        let value = self.data[self.index(matrix, i, j)];
        if self.conj { value.conj() } else { value }
    }

    /// `list` is filled where the addresses are listed.
    fn operand(&mut self, list: &mut Vec<*const T>) -> Operand<T> {
        let first = self.data.as_mut_ptr();
        let matrices = if self.is_listed {
            let order = (0..self.count).map(|i| first.wrapping_add(self.index(i, 0, 0)).cast_const());
            *list = order.collect();
            Matrices::Listed(list.as_ptr())
        } else {
            Matrices::Strided { first: first.wrapping_add(self.guard), stride: self.stride }
        };
        Operand { matrices, row: self.row, col: self.col, conj: self.conj }
    }
}

/// A batch and its operands.
pub struct Case<T> {
    pub a: Matrix<T>,
    pub b: Matrix<T>,
    pub c: Matrix<T>,
    pub alpha: T,
    pub beta: T,
}

impl<T: Value> Case<T> {
    pub fn new(
        (m, n, k): (usize, usize, usize),
        count: usize,
        [a, b, c]: [Store; 3],
        mut value: impl FnMut() -> T,
    ) -> Self {
        Case {
            a: Matrix::new(a, m, k, count, &mut value),
            b: Matrix::new(b, k, n, count, &mut value),
            c: Matrix::new(c, m, n, count, &mut value),
            alpha: T::of_two(1.0, 0.0),
            beta: T::of_two(0.0, 0.0),
        }
    }

    pub fn run(&mut self, instructions: Instructions) {
        assert!(instructions.is_available());
        // SAFETY: the CPU has the instructions, and the buffers were made for these sizes and strides.
        self.run_by(|batch| unsafe { gemm_batched_with(instructions, batch) });
    }

    /// Gives the batch to `run`. Panics if anything but C's elements has changed.
    pub fn run_by(&mut self, run: impl FnOnce(&Batch<T>)) {
        if let Err(fault) = self.watch(run) {
            panic!("{fault}");
        }
    }

    /// The same; fails with the first byte that has changed.
    pub fn watch(&mut self, run: impl FnOnce(&Batch<T>)) -> Outcome {
        let mut before = [&self.a, &self.b, &self.c].map(|matrix| matrix.data.clone());
        let mut lists = [const { Vec::new() }; 3];
        let [of_a, of_b, of_c] = &mut lists;
        let (a, b, c) = (self.a.operand(of_a), self.b.operand(of_b), self.c.operand(of_c));
        let (m, n, k, count) = (self.c.rows, self.c.cols, self.a.cols, self.c.count);
        run(&Batch { m, n, k, count, alpha: self.alpha, a, b, beta: self.beta, c });
        // What C's elements are is looked at elsewhere.
        self.c.places().for_each(|at| before[2][at] = self.c.data[at]);
        for (name, now, old) in [("A", &self.a, &before[0]), ("B", &self.b, &before[1]), ("C", &self.c, &before[2])] {
            compare::bitwise(&now.data, old, now.data.len())
                .map_err(|fault| format!("beside what is written, {name}: {fault}"))?;
        }
        Ok(())
    }

    /// C, gaps and guards and all, as it should become; of numbers with which arithmetic is exact.
    pub fn expected(&self) -> Vec<T> {
        let mut data = self.c.data.clone();
        let zero = T::of_two(0.0, 0.0);
        let (m, n, k) = (self.c.rows, self.c.cols, self.a.cols);
        for index in 0..self.c.count {
            for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                let mut sum = zero;
                for l in 0..if self.alpha == zero { 0 } else { k } {
                    sum = sum + self.a.get(index, i, l) * self.b.get(index, l, j);
                }
                let at = self.c.index(index, i, j);
                let product = if self.alpha == zero { zero } else { self.alpha * sum };
                data[at] = if self.beta == zero { product } else { product + self.beta * data[at] };
            }
        }
        data
    }
}

/// The instructions that this CPU has.
pub fn available() -> Vec<Instructions> {
    Instructions::ALL.into_iter().filter(|one| one.is_available()).collect()
}

/// Whether all is the same; NaN where NaN is expected, and nowhere else.
pub fn same<T: Value>(given: &[T], expected: &[T]) -> bool {
    let is_same = |(x, y): (&T, &T)| x == y || (x.is_nan() && y.is_nan() && x.bits() == y.bits());
    given.len() == expected.len() && given.iter().zip(expected).all(is_same)
}
