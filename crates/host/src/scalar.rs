//! The element types.

use model::Dtype;
use std::fmt;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// An element of a matrix: `f32` or `f64`. Sealed: the kernels exist for these. All arithmetic is in the type itself:
/// sums of f32 are f32.
pub trait Scalar:
    sealed::Sealed
    + bytemuck::Pod
    + cust::memory::DeviceCopy
    + num_traits::Float
    + num_traits::NumAssign
    + fmt::Debug
    + fmt::Display
    + Send
    + Sync
    + 'static
{
    /// Its name at run time.
    const DTYPE: Dtype;
}

impl Scalar for f32 {
    const DTYPE: Dtype = Dtype::F32;
}

impl Scalar for f64 {
    const DTYPE: Dtype = Dtype::F64;
}
