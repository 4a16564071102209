//! Operands with everything around them watched, of any element type; and one case of a product of real ones.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write;

use lanky_host::{Complex, Device, MatMut, MatRef, Scalar, gemm};

/// Says that a test is left out, past the test harness, which keeps what passing tests print, and to the count of `.ci/run`.
pub fn skipped(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("stderr");
    if let Some(count) = std::env::var_os("LANKY_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(count);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes())).expect("a file of lines");
    }
}

/// GPU 0, for this test, which is left out where there is none.
pub fn gpu(test: &str) -> Option<Device> {
    match Device::cuda(0) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("LANKY_REQUIRE_GPU").is_none_or(|value| value != "1"), "{error}");
            skipped(test, &error.to_string());
            None
        }
    }
}

/// Elements before and after each operand: a page of the smallest.
const GUARD: usize = 1024;

/// An element whose memory is watched.
pub trait Watched: Scalar {
    fn bits(self) -> u128;
    /// A NaN that arithmetic does not make: a signalling one, which any arithmetic makes a quiet one.
    fn canary() -> Self;
}

impl Watched for f32 {
    fn bits(self) -> u128 {
        u128::from(self.to_bits())
    }
    fn canary() -> Self {
        f32::from_bits(0x7f85_a5a5)
    }
}

impl Watched for f64 {
    fn bits(self) -> u128 {
        u128::from(self.to_bits())
    }
    fn canary() -> Self {
        f64::from_bits(0x7ff0_a5a5_a5a5_a5a5)
    }
}

impl<R: Watched> Watched for Complex<R>
where
    Complex<R>: Scalar,
{
    fn bits(self) -> u128 {
        self.re.bits() | self.im.bits() << 64
    }
    fn canary() -> Self {
        Complex::new(R::canary(), R::canary())
    }
}

/// A test's view of a real element type.
pub trait Real: Watched + num_traits::Float {
    /// Unit roundoff.
    const U: f64;
    /// Smallest subnormal.
    const ETA: f64;
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
}

impl Real for f32 {
    const U: f64 = 1.0 / (1_u64 << 24) as f64;
    const ETA: f64 = 1.401298464324817e-45;
    fn of(value: f64) -> Self {
        value as f32
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const U: f64 = 1.0 / (1_u64 << 53) as f64;
    const ETA: f64 = 5e-324;
    fn of(value: f64) -> Self {
        value
    }
    fn wide(self) -> f64 {
        self
    }
}

/// splitmix64: the same numbers everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer in -bound..=bound.
    pub fn integer(&mut self, bound: i64) -> f64 {
        (self.next() % (2 * bound as u64 + 1)) as f64 - bound as f64
    }

    /// Uniform in (-1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// How an operand lies in its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    pub row_major: bool,
    /// Stride along a line.
    pub step: usize,
    /// Elements between the lines.
    pub pad: usize,
}

pub const PACKED: Storage = Storage { row_major: false, step: 1, pad: 0 };

impl Storage {
    /// Row and column strides.
    pub fn strides(self, rows: usize, cols: usize) -> (usize, usize) {
        let line = if self.row_major { cols } else { rows };
        let jump = (line * self.step + self.pad).max(1);
        if self.row_major { (jump, self.step) } else { (self.step, jump) }
    }
}

/// A matrix in a buffer of canaries.
pub struct Buffer<T> {
    pub all: Vec<T>,
    rows: usize,
    cols: usize,
    strides: (usize, usize),
    span: usize,
}

impl<T: Watched> Buffer<T> {
    pub fn new(rows: usize, cols: usize, storage: Storage, value: impl FnMut(usize, usize) -> T) -> Self {
        Self::strided((rows, cols), storage.strides(rows, cols), value)
    }

    /// Of these row and column strides.
    pub fn strided(
        (rows, cols): (usize, usize),
        strides: (usize, usize),
        mut value: impl FnMut(usize, usize) -> T,
    ) -> Self {
        let span = match rows == 0 || cols == 0 {
            true => 0,
            false => strides.0 * (rows - 1) + strides.1 * (cols - 1) + 1,
        };
        let mut buffer = Buffer { all: vec![T::canary(); span + 2 * GUARD], rows, cols, strides, span };
        for i in 0..rows {
            for j in 0..cols {
                let at = buffer.at(i, j);
                buffer.all[at] = value(i, j);
            }
        }
        buffer
    }

    pub fn at(&self, i: usize, j: usize) -> usize {
        GUARD + i * self.strides.0 + j * self.strides.1
    }

    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    pub fn get(&self, i: usize, j: usize) -> T {
        self.all[self.at(i, j)]
    }

    /// Exactly the span: the last line has no padding.
    pub fn data(&self) -> &[T] {
        &self.all[GUARD..GUARD + self.span]
    }

    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.all[GUARD..GUARD + self.span]
    }

    pub fn view(&self) -> lanky_host::Result<MatRef<'_, T>> {
        MatRef::with_strides(self.data(), self.rows, self.cols, self.strides.0, self.strides.1)
    }

    pub fn view_mut(&mut self) -> lanky_host::Result<MatMut<'_, T>> {
        let (rows, cols, strides) = (self.rows, self.cols, self.strides);
        MatMut::with_strides(self.data_mut(), rows, cols, strides.0, strides.1)
    }

    /// Its elements by rows.
    pub fn elements(&self) -> Vec<T> {
        (0..self.rows * self.cols).map(|e| self.get(e / self.cols, e % self.cols)).collect()
    }

    /// Whether everything that is no element is still the canary.
    pub fn is_intact(&self) -> bool {
        let mut inside = vec![false; self.all.len()];
        for i in 0..self.rows {
            for j in 0..self.cols {
                inside[self.at(i, j)] = true;
            }
        }
        self.all.iter().zip(inside).all(|(value, inside)| inside || value.bits() == T::canary().bits())
    }
}

/// The matrix, or its conjugate.
pub fn conj_if<T: Scalar>(view: MatRef<'_, T>, conj: bool) -> MatRef<'_, T> {
    if conj { view.conj() } else { view }
}

/// Runs a product of A, B and C. Panics if anything but C's elements has changed.
pub fn watch<T: Watched>(
    operands: &mut [Buffer<T>; 3],
    product: impl FnOnce(&mut [Buffer<T>; 3]) -> lanky_host::Result<()>,
) -> lanky_host::Result<()> {
    let before = [bits(&operands[0].all), bits(&operands[1].all)];
    product(operands)?;
    let [a, b, c] = operands;
    assert!([bits(&a.all), bits(&b.all)] == before, "A or B was written");
    assert!(c.is_intact(), "something beside C was written");
    Ok(())
}

/// C ← α A B + β C on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub size: (usize, usize, usize),
    pub storage: [Storage; 3],
    pub alpha: f64,
    pub beta: f64,
    pub seed: u64,
}

/// The operands before, and C after.
pub struct Outcome<T> {
    pub a: Buffer<T>,
    pub b: Buffer<T>,
    pub before: Vec<T>,
    pub c: Buffer<T>,
}

impl Case {
    /// Runs it with elements from `value`; C is NaN where β = 0. Panics if anything but C's elements has changed.
    pub fn run<T: Real>(&self, value: impl Fn(&mut Random) -> f64) -> lanky_host::Result<Outcome<T>> {
        let (m, n, k) = self.size;
        println!("{self:?}"); // shown if what follows fails
        let mut random = Random(self.seed);
        let mut next = || T::of(value(&mut random));
        let a = Buffer::new(m, k, self.storage[0], |_, _| next());
        let b = Buffer::new(k, n, self.storage[1], |_, _| next());
        let c = Buffer::new(m, n, self.storage[2], |_, _| if self.beta == 0.0 { T::canary() } else { next() });
        let before = c.elements();
        let mut operands = [a, b, c];
        watch(&mut operands, |[a, b, c]| {
            let stream = Device::cpu().stream()?;
            gemm(&stream, T::of(self.alpha), a.view()?, b.view()?, T::of(self.beta), c.view_mut()?)
        })?;
        let [a, b, c] = operands;
        Ok(Outcome { a, b, before, c })
    }
}

pub fn bits<T: Watched>(data: &[T]) -> Vec<u128> {
    data.iter().map(|value| value.bits()).collect()
}
