//! One case: a batch, checked, then timed in turns.

use crate::args::Args;
use crate::clock;
use crate::entrants::{Entrant, OTHERS, Others, ours};
use crate::memory::{Mix, PAGE, Page, pages};
use cpu::Element;
use num_complex::Complex;
use std::fmt::Debug;

/// An element that the entrants multiply.
pub trait Value: Element + Debug + PartialEq + Others {
    const NAME: &'static str;
    /// A small integer, or two: all sums are exact.
    fn of(seed: usize) -> Self;
    fn real(x: f64) -> Self;
    fn plus_product(self, a: Self, b: Self) -> Self;
}

macro_rules! values {
    ($($real:ident: $name:literal, $complex:literal;)*) => {$(
        impl Value for $real {
            const NAME: &'static str = $name;
            fn of(seed: usize) -> Self { (seed % 5) as $real - 2.0 }
            fn real(x: f64) -> Self { x as $real }
            fn plus_product(self, a: Self, b: Self) -> Self { self + a * b }
        }
        impl Value for Complex<$real> {
            const NAME: &'static str = $complex;
            fn of(seed: usize) -> Self { Complex::new($real::of(seed), $real::of(seed / 5)) }
            fn real(x: f64) -> Self { Complex::new(x as $real, 0.0) }
            fn plus_product(self, a: Self, b: Self) -> Self { self + a * b }
        }
    )*};
}
values! { f32: "f32", "c64"; f64: "f64", "c128"; }

/// Matrices by columns, each after the other.
pub struct Case<T> {
    pub n: usize,
    pub count: usize,
    pub beta: f64,
    pub a: Vec<Page>,
    pub b: Vec<Page>,
    pub c: Vec<Page>,
    element: std::marker::PhantomData<T>,
}

/// Seconds of the bound and of each entrant, round by round.
pub struct Raced {
    pub dtype: &'static str,
    pub n: usize,
    pub count: usize,
    pub beta: f64,
    pub bytes: usize,
    pub bound: Vec<f64>,
    pub entrants: Vec<(&'static str, Vec<f64>)>,
}

impl<T: Value> Case<T> {
    pub fn new(args: &Args, n: usize, beta: f64) -> Self {
        let moved = n * n * size_of::<T>() * if beta == 0.0 { 3 } else { 4 };
        let count = (args.mib << 20) / moved;
        let bytes = count * n * n * size_of::<T>();
        let mut case = Case {
            n,
            count,
            beta,
            a: pages(bytes, 0.0),
            b: pages(bytes, 0.0),
            c: pages(bytes, 0.0),
            element: Default::default(),
        };
        for (seed, pages) in [(1, &mut case.a), (3, &mut case.b)] {
            for (at, value) in elements_mut::<T>(pages).iter_mut().enumerate() {
                *value = T::of(at.wrapping_mul(2654435761) / 7 + seed * at / 3 + seed);
            }
        }
        case
    }

    pub fn ptrs(&mut self) -> (*const T, *const T, *mut T) {
        (self.a.as_ptr().cast(), self.b.as_ptr().cast(), self.c.as_mut_ptr().cast())
    }

    /// Whether C is A B + beta, of the first, the last and some other matrices; all of C was 1.
    fn is_right(&self) -> bool {
        let (a, b, c) = (elements::<T>(&self.a), elements::<T>(&self.b), elements::<T>(&self.c));
        let (n, step) = (self.n, (self.count / 500).max(1));
        (0..self.count).step_by(step).chain([self.count - 1]).all(|matrix| {
            (0..n * n).all(|e| {
                let (i, j, first) = (e % n, e / n, matrix * n * n);
                let product = |sum: T, l| sum.plus_product(a[first + l * n + i], b[first + j * n + l]);
                c[first + e] == (0..n).fold(T::real(self.beta), product)
            })
        })
    }

    pub fn race(&mut self, args: &Args) -> Result<Raced, String> {
        let mut entrants: Vec<Entrant<T>> = vec![ours::<T>(args.instructions)];
        if !args.ours_only {
            entrants.extend(OTHERS.map(T::other));
        }
        let parts = if self.beta == 0.0 { 3 } else { 4 };
        let bytes = parts * self.n * self.n * self.count * size_of::<T>();
        for entrant in &entrants {
            elements_mut::<T>(&mut self.c).fill(T::real(1.0));
            (entrant.run)(self);
            if !self.is_right() {
                return Err(format!("{} computes something else: {} n = {}", entrant.name, T::NAME, self.n));
            }
        }
        let names = entrants.iter().map(|entrant| (entrant.name, Vec::new()));
        let mut result = Raced {
            dtype: T::NAME,
            n: self.n,
            count: self.count,
            beta: self.beta,
            bytes,
            bound: Vec::new(),
            entrants: names.collect(),
        };
        for _ in 0..args.rounds {
            let whole = parts * self.c.len() * PAGE;
            // Zeros: sums of what was computed would grow without end.
            elements_mut::<T>(&mut self.c).fill(T::real(0.0));
            let mut mix = Mix { a: &self.a, b: &self.b, c: &mut self.c, reads_c: self.beta != 0.0 };
            result.bound.push(mix.run() * bytes as f64 / whole as f64);
            elements_mut::<T>(&mut self.c).fill(T::real(0.0));
            for (entrant, (_, seconds)) in entrants.iter().zip(&mut result.entrants) {
                let start = clock::now();
                (entrant.run)(self);
                seconds.push(clock::now() - start);
            }
        }
        Ok(result)
    }
}

fn elements<T: Value>(pages: &[Page]) -> &[T] {
    // SAFETY: numbers without padding, any bits of which are some; the page's alignment is larger.
    unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), size_of_val(pages) / size_of::<T>()) }
}

fn elements_mut<T: Value>(pages: &mut [Page]) -> &mut [T] {
    // SAFETY: as above, and borrowed mutably.
    unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), size_of_val(pages) / size_of::<T>()) }
}
