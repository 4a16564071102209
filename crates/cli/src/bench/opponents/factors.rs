//! α and β where C libraries read them: behind pointers on the host, before a call returns.

use std::ffi::c_void;

use model::Dtype;

use super::Product;

/// A complex number, aligned as CUDA's are: cuBLAS reads one of doubles by an instruction that faults elsewhere.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Aligned<T>([T; 2]);

/// Both, as complex numbers, whose first half is the real number.
pub struct Factors {
    single: [Aligned<f32>; 2],
    double: [Aligned<f64>; 2],
    dtype: Dtype,
    is_complex: bool,
}

impl Factors {
    pub fn of(product: &Product<'_>) -> Self {
        let double = [[product.alpha, 0.0], [product.beta, 0.0]];
        Self {
            single: double.map(|x| Aligned(x.map(|part| part as f32))),
            double: double.map(Aligned),
            dtype: product.job.problem.dtype,
            is_complex: product.job.reals == 2,
        }
    }

    pub fn alpha(&self) -> *const c_void {
        self.address(0)
    }

    pub fn beta(&self) -> *const c_void {
        self.address(1)
    }

    fn address(&self, which: usize) -> *const c_void {
        match self.dtype {
            Dtype::F32 | Dtype::C64 => (&raw const self.single[which]).cast(),
            Dtype::F64 | Dtype::C128 => (&raw const self.double[which]).cast(),
        }
    }

    /// The place of the element type's function among those for s, d, c and z.
    pub fn place(&self) -> usize {
        usize::from(self.dtype == Dtype::F64) + if self.is_complex { 2 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_aligned_as_cudas_complex_numbers() {
        let double = [Aligned([1.0, 0.0]), Aligned([2.0, 0.0])];
        let single = [Aligned([1.0, 0.0]), Aligned([2.0, 0.0])];
        for dtype in [Dtype::F32, Dtype::F64] {
            let factors = Factors { single, double, dtype, is_complex: true };
            for address in [factors.alpha(), factors.beta()] {
                assert_eq!(address.addr() % 16, 0, "{dtype}");
            }
        }
    }
}
