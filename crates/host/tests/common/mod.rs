//! Operands of the CPU with everything around them watched, of any element type; and one case of a product of real ones.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::io::Write;

use lanky_host::{Device, MatMut, MatRef, Scalar, gemm};
use watched::{Element, Image, Terms};

pub use watched::{PACKED, Storage};

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

/// An element that the library multiplies, and whose memory is watched.
pub trait Watched: Element + Scalar {}

impl<T: Element + Scalar> Watched for T {}

/// A real one.
pub trait Real: watched::Real + Scalar {}

impl<T: watched::Real + Scalar> Real for T {}

/// A matrix in guarded memory of the host.
pub struct Buffer<T> {
    /// What the memory held first.
    pub image: Image<T>,
    /// What it holds.
    pub all: Vec<T>,
}

impl<T: Watched> Buffer<T> {
    pub fn new(rows: usize, cols: usize, storage: Storage, value: impl FnMut(usize, usize) -> T) -> Self {
        Self::of(Image::stored((rows, cols), storage, GUARD, value))
    }

    /// Of these row and column strides.
    pub fn strided(shape: (usize, usize), strides: (usize, usize), value: impl FnMut(usize, usize) -> T) -> Self {
        Self::of(Image::new(shape, strides, [GUARD; 2], value))
    }

    pub fn of(image: Image<T>) -> Self {
        Buffer { all: image.content().to_vec(), image }
    }

    pub fn get(&self, i: usize, j: usize) -> T {
        self.all[self.image.at(i, j)]
    }

    /// Exactly the span: the last line has no padding.
    pub fn data(&self) -> &[T] {
        &self.all[self.image.inside()]
    }

    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.all[self.image.inside()]
    }

    pub fn view(&self) -> lanky_host::Result<MatRef<'_, T>> {
        let (Image { rows, cols, .. }, (row, col)) = (&self.image, self.image.strides());
        MatRef::with_strides(self.data(), *rows, *cols, row, col)
    }

    pub fn view_mut(&mut self) -> lanky_host::Result<MatMut<'_, T>> {
        let ((rows, cols), (row, col)) = ((self.image.rows, self.image.cols), self.image.strides());
        MatMut::with_strides(self.data_mut(), rows, cols, row, col)
    }

    /// Panics if anything of it was written.
    pub fn unchanged(&self) {
        right(self.image.unchanged("what is read", &self.all));
    }

    /// Its elements down the columns. Panics if anything but them was written.
    pub fn result(&self) -> Vec<T> {
        right(self.image.result("what is written", &self.all))
    }
}

/// What a check gives. Panics with what it found instead.
pub fn right<V>(outcome: watched::Outcome<V>) -> V {
    outcome.unwrap_or_else(|fault| panic!("{fault}"))
}

/// The matrix, or its conjugate.
pub fn conj_if<T: Scalar>(view: MatRef<'_, T>, conj: bool) -> MatRef<'_, T> {
    if conj { view.conj() } else { view }
}

/// Runs a product of A, B and C: C's elements down the columns. Panics if anything else has changed.
pub fn watch<T: Watched>(
    operands: &mut [Buffer<T>; 3],
    product: impl FnOnce(&mut [Buffer<T>; 3]) -> lanky_host::Result<()>,
) -> lanky_host::Result<Vec<T>> {
    product(operands)?;
    let [a, b, c] = operands;
    a.unchanged();
    b.unchanged();
    Ok(c.result())
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

/// A case's operands as they were, and C's elements after it, down the columns.
pub struct Done<T> {
    pub case: Case,
    pub operands: [Buffer<T>; 3],
    pub c: Vec<T>,
}

impl Case {
    /// Runs it with elements that are `value` of a seed, a row and a column; A and B are NaN where α = 0, C where β = 0. Panics if
    /// anything but C's elements has changed.
    pub fn run<T: Real>(&self, value: impl Fn(u64, usize, usize) -> f64) -> lanky_host::Result<Done<T>> {
        let ((m, n, k), [of_a, of_b, of_c]) = (self.size, self.storage);
        println!("{self:?}"); // shown if what follows fails
        let number = |operand, factor: f64, i, j| match factor == 0.0 {
            true => T::canary(),
            false => T::of(value(self.seed.wrapping_add(operand), i, j)),
        };
        let a = Buffer::new(m, k, of_a, |i, l| number(0, self.alpha, i, l));
        let b = Buffer::new(k, n, of_b, |l, j| number(1, self.alpha, l, j));
        let c = Buffer::new(m, n, of_c, |i, j| number(2, self.beta, i, j));
        let mut operands = [a, b, c];
        let c = watch(&mut operands, |[a, b, c]| {
            let stream = Device::cpu().stream()?;
            gemm(&stream, T::of(self.alpha), a.view()?, b.view()?, T::of(self.beta), c.view_mut()?)
        })?;
        Ok(Done { case: *self, operands, c })
    }
}

impl<T: Real> Done<T> {
    pub fn terms(&self) -> Terms<'_, T> {
        let [a, b, c] = &self.operands;
        Terms::new([&a.image, &b.image, &c.image], [self.case.alpha, self.case.beta])
    }
}

pub fn bits<T: Watched>(data: &[T]) -> Vec<u128> {
    data.iter().map(|value| value.bits()).collect()
}
