//! The operands that are timed: memory at known addresses, so that lanky and cuBLAS get the same.

use super::cublas::{Cublas, Product};
use super::measure::{Times, sample};
use crate::lab::{Lab, Outcome};
use crate::memory::Memory;
use crate::real::{Real, integer};
use host::{Error, MatMut, MatRef, Plan, Shape};
use rayon::prelude::*;

/// Elements that are made and sent at a time.
const CHUNK: usize = 1 << 23;
/// Rows of C that are checked.
const CHECKED: usize = 24;

/// A square A, B and C of m rows. An element is an integer in -2..=2 and depends on its place in memory, whatever the
/// layout: all sums are exact.
pub struct Operands<T> {
    /// m, and k.
    pub m: usize,
    /// n.
    pub n: usize,
    /// Whether A is read by rows.
    pub row_major: bool,
    a: Memory,
    b: Memory,
    c: Memory,
    found: Vec<T>,
}

fn element(seed: u64, at: usize) -> f64 {
    integer(seed, at, 0, 2)
}

fn filled<T: Real>(lab: &Lab, seed: u64, len: usize) -> Outcome<Memory> {
    let mut memory = Memory::new(lab, len * size_of::<T>())?;
    let mut chunk = vec![T::zero(); CHUNK.min(len)];
    for start in (0..len).step_by(CHUNK) {
        let chunk = &mut chunk[..CHUNK.min(len - start)];
        chunk.par_iter_mut().enumerate().for_each(|(at, value)| *value = T::of(element(seed, start + at)));
        memory.write(start * size_of::<T>(), bytemuck::cast_slice(chunk))?;
    }
    Ok(memory)
}

impl<T: Real> Operands<T> {
    /// For products of up to `widest` columns.
    pub fn new(lab: &Lab, m: usize, widest: usize) -> Outcome<Self> {
        Ok(Operands {
            m,
            n: widest,
            row_major: false,
            a: filled::<T>(lab, 1, m * m)?,
            b: filled::<T>(lab, 2, m * widest)?,
            c: Memory::new(lab, m * widest * size_of::<T>())?,
            found: Vec::new(),
        })
    }

    /// From now on A is read by rows or columns, and B and C have n columns.
    pub fn shape(&mut self, row_major: bool, n: usize) {
        (self.row_major, self.n) = (row_major, n);
    }

    /// For a message.
    pub fn name(&self) -> String {
        let layout = if self.row_major { "row" } else { "col" };
        format!("{} A {layout} m=k={} n={}", T::DTYPE, self.m, self.n)
    }

    fn a_strides(&self) -> (usize, usize) {
        if self.row_major { (self.m, 1) } else { (1, self.m) }
    }

    /// By this entry, or the model's choice.
    pub fn plan(&self, lab: &Lab, entry: Option<&str>) -> host::Result<Plan> {
        let shape = |rows, cols, (row, col): (usize, usize)| {
            let strides = model::Strides { row: row as u64, col: col as u64 };
            Shape { rows, cols, strides, dtype: T::DTYPE }
        };
        let (m, n) = (self.m, self.n);
        let (a, b, c) = (shape(m, m, self.a_strides()), shape(m, n, (1, m)), shape(m, n, (1, m)));
        let builder = Plan::gemm(&lab.device, a, b, c);
        entry.into_iter().fold(builder, |builder, name| builder.variant(name)).build()
    }

    /// C ← A B.
    pub fn run(&mut self, lab: &Lab, plan: &Plan) -> host::Result<()> {
        let ((m, n), (row, col)) = ((self.m, self.n), self.a_strides());
        // SAFETY: the memories have at least m m, m n and m n elements; they live until the program has waited for the
        // stream, and nothing else uses them meanwhile.
        let (a, b, c) = unsafe {
            (
                MatRef::<T>::from_raw(&lab.device, self.a.address(), m, m, row, col)?,
                MatRef::<T>::from_raw(&lab.device, self.b.address(), m, n, 1, m)?,
                MatMut::<T>::from_raw(&lab.device, self.c.address(), m, n, 1, m)?,
            )
        };
        plan.run(&lab.stream, T::one(), a, b, T::zero(), c)
    }

    /// Checks cuBLAS's product, then times it.
    pub fn timed_cublas(&mut self, lab: &Lab, cublas: &Cublas, samples: usize) -> Outcome<Times> {
        let product = Product {
            m: self.m,
            n: self.n,
            row_major: self.row_major,
            a: self.a.address(),
            b: self.b.address(),
            c: self.c.address(),
        };
        let run = || {
            // SAFETY: as in `run`.
            unsafe { cublas.gemm::<T>(&product) }.map_err(|fault| Error::Unsupported { what: fault.to_string() })
        };
        cublas.prepare::<T>()?;
        self.spoil()?;
        run()?;
        lab.stream.synchronize()?;
        self.check()?;
        sample(&lab.stream, samples, run)
    }

    /// Makes C NaN.
    pub fn spoil(&mut self) -> Outcome {
        self.found = vec![T::nan(); self.m * self.n];
        self.c.write(0, bytemuck::cast_slice(&self.found))
    }

    /// Checks some rows of C: the first, the last, and others.
    pub fn check(&mut self) -> Outcome {
        let (m, n) = (self.m, self.n);
        self.found.resize(m * n, T::nan());
        self.c.read(0, bytemuck::cast_slice_mut(&mut self.found))?;
        for index in 0..CHECKED.min(m) {
            let i = index * (m - 1) / (CHECKED.min(m) - 1).max(1);
            for j in 0..n {
                let a = |l: usize| element(1, if self.row_major { i * m + l } else { l * m + i });
                let expected: f64 = (0..m).map(|l| a(l) * element(2, l + j * m)).sum();
                let found = self.found[i + j * m];
                if found != T::of(expected) {
                    return Err(format!("element ({i}, {j}): expected {expected}, found {found}").into());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Device;

    #[test]
    fn a_wrong_product_is_not_timed() -> Outcome {
        let lab = Lab::new(Device::cpu(), 8)?;
        let mut operands = Operands::<f32>::new(&lab, 67, 3)?;
        for (row_major, n) in [(false, 3), (true, 2)] {
            operands.shape(row_major, n);
            let plan = operands.plan(&lab, None)?;
            operands.spoil()?;
            assert!(operands.check().is_err(), "C was not computed");
            operands.run(&lab, &plan)?;
            operands.check()?;
            operands.shape(!row_major, n);
            assert!(operands.check().is_err(), "C is of the other layout");
        }
        Ok(())
    }
}
