// What the crate's page shows is what there is: with the host's part and without it.
#![cfg_attr(feature = "host", doc = include_str!("with_host.md"))]
#![cfg_attr(not(feature = "host"), doc = include_str!("model_alone.md"))]
#![cfg_attr(not(feature = "host"), no_std)]

#[cfg(feature = "dlpack")]
pub use host::interop::dlpack;
#[cfg(feature = "host")]
#[doc(hidden)]
pub use host::text;
#[cfg(feature = "host")]
pub use host::{
    BatchMut, BatchRef, CeilingTimes, Ceilings, Complex, Determinism, Device, Dtype, Error, Graph, Layout, Mark,
    MatMut, MatRef, Matrix, Operand, Plan, PlanBuilder, Result, Rule, Scalar, Shape, ShapeError, Stream, Strides,
    Triangle, Version, gemm, gemm_batched, gemm_batched_by, gemv, gram, gram_triangle, tsmm_in_place,
};
#[cfg(feature = "host")]
pub use host::{env, ptx, tuned};
pub use model;

// The versions that the views are of: a dependent needs no other.
#[cfg(feature = "faer")]
pub use host::faer;
#[cfg(feature = "nalgebra")]
pub use host::nalgebra;
#[cfg(feature = "ndarray")]
pub use host::ndarray;

/// What most programs name: `use lanky::prelude::*`.
#[cfg(feature = "host")]
pub mod prelude {
    pub use crate::{
        Complex, Device, Error, Layout, MatMut, MatRef, Matrix, Plan, Result, Scalar, Stream, gemm, gemv, gram,
    };
}

/// Every Rust block of the README is a test.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../README.md")]
struct Readme;
