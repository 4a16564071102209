//! A product or a Gram matrix of any element type whose memory is lanky's, so that any thread gives it to any stream.

use crate::lab::{Lab, Outcome};
use crate::real::{Element, times};
use host::{Layout, MatMut, MatRef, Matrix, Plan, PlanBuilder, Shape, Stream, gemm, gemv, gram};
use rayon::prelude::*;

/// Which operation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A B.
    Product,
    /// A times a vector.
    Vector,
    /// Bᴴ B.
    Gram,
}

/// A or B, as it is on the host and on the device.
struct Factor<T> {
    host: Matrix<T>,
    there: Matrix<T>,
    /// Then both are its transpose.
    by_rows: bool,
}

impl<T: Element> Factor<T> {
    fn new(lab: &Lab, (rows, cols): (usize, usize), by_rows: bool, value: impl Fn(usize, usize) -> T) -> Outcome<Self> {
        let host = match by_rows {
            true => Matrix::from_fn(cols, rows, |j, i| value(i, j)),
            false => Matrix::from_fn(rows, cols, value),
        }?;
        let there = lab.device.upload(&lab.stream, host.view())?;
        lab.stream.synchronize()?;
        Ok(Factor { host, there, by_rows })
    }

    fn view(&self) -> MatRef<'_, T> {
        if self.by_rows { self.there.view().t() } else { self.there.view() }
    }

    fn get(&self, i: usize, j: usize) -> [f64; 2] {
        let (i, j) = if self.by_rows { (j, i) } else { (i, j) };
        self.host.get(i, j).map_or([f64::NAN; 2], T::two)
    }
}

/// C ← α A B + β C, whose C is the caller's, down the columns.
pub struct Task<T> {
    what: What,
    /// m, n and k.
    pub size: (usize, usize, usize),
    /// None of a Gram matrix.
    a: Option<Factor<T>>,
    b: Factor<T>,
}

impl<T: Element> Task<T> {
    /// With parts that are this function's of a seed and a position; A and B by rows or by columns.
    pub fn new(
        lab: &Lab,
        what: What,
        size: (usize, usize, usize),
        by_rows: [bool; 2],
        part: impl Fn(u64, usize, usize) -> f64,
    ) -> Outcome<Self> {
        let (m, n, k) = size;
        let value = |seed: u64| {
            let part = &part;
            move |i, j| T::of_two(part(seed, i, j), part(seed + 10, i, j))
        };
        let a = match what {
            What::Gram => None,
            What::Product | What::Vector => Some(Factor::new(lab, (m, k), by_rows[0], value(1))?),
        };
        Ok(Task { what, size, a, b: Factor::new(lab, (k, n), by_rows[1], value(2))? })
    }

    fn factors(&self) -> [MatRef<'_, T>; 2] {
        let b = self.b.view();
        [self.a.as_ref().map_or_else(|| self.b.view().h(), Factor::view), b]
    }

    /// What plans of it are built with.
    pub fn builder(&self, lab: &Lab) -> PlanBuilder {
        let ([a, b], c) = (self.factors(), Shape::packed(self.size.0, self.size.1, Layout::ColumnMajor, T::DTYPE));
        match self.what {
            What::Product => Plan::gemm(&lab.device, a.shape(), b.shape(), c),
            What::Vector => Plan::gemv(&lab.device, a.shape(), b.shape(), c),
            What::Gram => Plan::gram(&lab.device, b.shape(), c),
        }
    }

    /// Gives it to a stream.
    pub fn run(&self, stream: &Stream, plan: &Plan, [alpha, beta]: [f64; 2], c: MatMut<'_, T>) -> host::Result<()> {
        let ([a, b], [alpha, beta]) = (self.factors(), [alpha, beta].map(|factor| T::of_two(factor, 0.0)));
        match self.what {
            What::Product => plan.run(stream, alpha, a, b, beta, c),
            What::Vector => plan.run_gemv(stream, alpha, a, b, beta, c),
            What::Gram => plan.run_gram(stream, alpha, b, beta, c),
        }
    }

    /// The same with α = β = 1 and without a plan: by the stream's own workspace.
    pub fn run_planless(&self, stream: &Stream, c: MatMut<'_, T>) -> host::Result<()> {
        let ([a, b], one) = (self.factors(), T::of_two(1.0, 0.0));
        match self.what {
            What::Product => gemm(stream, one, a, b, one, c),
            What::Vector => gemv(stream, one, a, b, one, c),
            What::Gram => gram(stream, one, b, one, c),
        }
    }

    /// Makes C NaN, so that what a run leaves out is not the last one's.
    pub fn spoil(&self, stream: &Stream, c: MatMut<'_, T>) -> host::Result<()> {
        let [a, b] = self.factors();
        gemm(stream, T::of_two(0.0, 0.0), a, b, T::of_two(f64::NAN, f64::NAN), c)
    }

    /// C down the columns, of integers and of factors and a C that are multiples of 1/2.
    pub fn exact(&self, [alpha, beta]: [f64; 2], old: impl Fn(usize, usize) -> [f64; 2] + Sync) -> Vec<[f64; 2]> {
        let (m, n, k) = self.size;
        let conjugate = |[re, im]: [f64; 2]| [re, -im];
        let a = |i, l| self.a.as_ref().map_or_else(|| conjugate(self.b.get(l, i)), |a| a.get(i, l));
        let columns: Vec<Vec<[f64; 2]>> = (0..n).map(|j| (0..k).map(|l| self.b.get(l, j)).collect()).collect();
        let row = |i: usize| {
            let row: Vec<[f64; 2]> = (0..k).map(|l| a(i, l)).collect();
            let of = |j: usize| {
                let sum = row.iter().zip(&columns[j]).map(|(a, b)| times(*a, *b));
                let [re, im] = sum.fold([0.0; 2], |[re, im], [x, y]| [re + x, im + y]);
                let old = if beta == 0.0 { [0.0; 2] } else { old(i, j) };
                [alpha * re + beta * old[0], alpha * im + beta * old[1]]
            };
            (0..n).map(of).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<[f64; 2]>> = (0..m).into_par_iter().map(row).collect();
        (0..m * n).map(|e| rows[e % m][e / m]).collect()
    }
}
