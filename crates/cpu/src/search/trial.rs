//! A batch to time kernels with.

use super::{Blocking, Searched, gemm_batched_by};
use crate::route::Instructions;
use crate::{Batch, Element, MOST, Matrices, Operand, gemm_batched_with};

/// C_i ← A_i B_i, or C_i ← A_i B_i + C_i, of n x n matrices by columns, each after the other: all that a search needs, with nothing that
/// could go wrong.
#[derive(Debug)]
pub struct Trial<T> {
    n: usize,
    count: usize,
    adds: bool,
    instructions: Instructions,
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
}

impl<T: Searched + Element> Trial<T> {
    /// With the best instructions of this CPU; the elements of A, then those of B, are `fill`'s, C is 0.
    ///
    /// # Panics
    /// If n is 0 or more than [`MOST`].
    pub fn new(n: usize, count: usize, adds: bool, mut fill: impl FnMut(&mut [T])) -> Self {
        assert!((1..=MOST).contains(&n), "{n}");
        let zeros = vec![T::ZERO; count * n * n];
        let (mut a, mut b) = (zeros.clone(), zeros.clone());
        fill(&mut a);
        fill(&mut b);
        Trial { n, count, adds, instructions: Instructions::detect(), a, b, c: zeros }
    }

    /// Bytes that a run reads and writes, each matrix once.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.c[..]) * if self.adds { 4 } else { 3 }
    }

    /// The kernels that are worth a try, and how many there are.
    pub fn kernels(&self) -> (Vec<Blocking>, usize) {
        let all = Blocking::all(self.instructions.vectors(size_of::<T>()).0).count();
        (Blocking::kept(self.instructions, size_of::<T>(), (self.n, self.n, self.n)), all)
    }

    /// Computes all products by that kernel; by none, as the library does it.
    pub fn run(&mut self, by: Option<Blocking>) {
        let (n, count, instructions) = (self.n, self.count, self.instructions);
        let of = |first| Operand { matrices: Matrices::Strided { first, stride: n * n }, row: 1, col: n, conj: false };
        let batch = Batch {
            m: n,
            n,
            k: n,
            count,
            alpha: T::ONE,
            a: of(self.a.as_ptr()),
            b: of(self.b.as_ptr()),
            beta: if self.adds { T::ONE } else { T::ZERO },
            c: of(self.c.as_mut_ptr().cast_const()),
        };
        // SAFETY: `detect` found the instructions; each array has count · n · n elements (`new`), and C is another than
        // A and B.
        unsafe {
            match by {
                Some(blocking) => gemm_batched_by(instructions, blocking, &batch),
                None => gemm_batched_with(instructions, &batch),
            }
        }
    }

    /// C, as the runs since it was 0 have left it.
    pub fn c(&self) -> &[T] {
        &self.c
    }

    /// C becomes 0.
    pub fn clear(&mut self) {
        self.c.fill(T::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_computes_products() {
        for adds in [false, true] {
            let mut next = 0;
            let mut trial = Trial::new(3, 5, adds, |elements: &mut [f64]| {
                for element in elements {
                    next += 1;
                    *element = f64::from(next % 7 - 3);
                }
            });
            let by_hand = |matrix: usize, i: usize, j: usize| -> f64 {
                (0..3).map(|l| trial.a[9 * matrix + 3 * l + i] * trial.b[9 * matrix + 3 * j + l]).sum()
            };
            let product: Vec<f64> = (0..45).map(|at| by_hand(at / 9, at % 3, at / 3 % 3)).collect();
            let twice: Vec<f64> = product.iter().map(|x| if adds { 2.0 * x } else { *x }).collect();
            let (kernels, all) = trial.kernels();
            assert!(!kernels.is_empty() && kernels.len() < all);
            for by in kernels.into_iter().map(Some).chain([None]) {
                trial.clear();
                trial.run(by);
                assert_eq!(trial.c(), product, "{by:?}");
                trial.run(by);
                assert_eq!(trial.c(), twice, "{by:?}");
            }
        }
    }
}
