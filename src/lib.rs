//! C ← α A B + β C for tall, skinny and small matrices, on an NVIDIA GPU if there is one, else on the CPU.
//!
//! ```
//! use lanky::prelude::*;
//!
//! fn main() -> lanky::Result<()> {
//!     let a = Matrix::from_fn(1000, 200, |i, l| (i + l) as f64)?;
//!     let b = Matrix::from_fn(200, 4, |l, j| (l * j) as f64)?;
//!     let device = Device::auto();
//!     eprintln!("{device}: {}", device.reason());
//!     let c = device.matmul(a.view(), b.view())?;
//!     assert_eq!(c.get(0, 1), Some(2_646_700.0));
//!     Ok(())
//! }
//! ```
//!
//! | to | use |
//! |---|---|
//! | multiply once | [`Device::matmul`] |
//! | multiply in place, with BLAS's meaning of α and β | [`gemm`] on a [`Stream`] |
//! | decide once and run often, or to force a variant | [`Plan`] |
//! | use memory and streams of others | [`MatRef::from_raw`], [`MatMut::from_raw`], [`Stream::from_raw`] |
//! | stream data that is not in memory | [`Device::upload_with`], [`Matrix::download_with`] |
//! | know what there is | [`env::gpu_report`], [`ptx`], [`model`] |
//!
//! Transposes and sub-matrices are views: `a.t()`, `a.rows(10..20)?`, `a.cols(..4)?`. On a GPU calls return before their
//! work is done; [`Stream::synchronize`] waits. Nothing needs a CUDA toolkit: the driver is loaded when first asked for.

#![cfg_attr(not(feature = "host"), no_std)]

#[cfg(feature = "dlpack")]
pub use host::interop::dlpack;
#[cfg(feature = "host")]
pub use host::{
    Ceilings, Device, Dtype, Error, Graph, Layout, Mark, MatMut, MatRef, Matrix, Operand, Plan, PlanBuilder, Result,
    Rule, Scalar, Shape, ShapeError, Stream, Strides, Version, gemm,
};
#[cfg(feature = "host")]
pub use host::{env, ptx};
pub use model;

// The versions that the views are of: a dependent needs no other.
#[cfg(feature = "faer")]
pub use host::faer;
#[cfg(feature = "nalgebra")]
pub use host::nalgebra;
#[cfg(feature = "ndarray")]
pub use host::ndarray;

/// What most programs name.
#[cfg(feature = "host")]
pub mod prelude {
    pub use crate::{Device, Error, Layout, MatMut, MatRef, Matrix, Plan, Result, Scalar, Stream, gemm};
}

/// Every Rust block of the README is a test.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../README.md")]
struct Readme;
