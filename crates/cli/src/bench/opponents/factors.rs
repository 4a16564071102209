//! α and β where C libraries read them: behind pointers on the host, before a call returns.

use std::ffi::c_void;

use model::Dtype;

use super::Product;

/// Both, as complex numbers, whose first half is the real number.
pub struct Factors {
    single: [[f32; 2]; 2],
    double: [[f64; 2]; 2],
    dtype: Dtype,
    is_complex: bool,
}

impl Factors {
    pub fn of(product: &Product<'_>) -> Self {
        let double = [[product.alpha, 0.0], [product.beta, 0.0]];
        Self {
            single: double.map(|x| x.map(|part| part as f32)),
            double,
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
