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
//! | know what an error means, and what to do | [`Error`], and the table there |
//!
//! # In place, and often
//! ```
//! use lanky::prelude::*;
//!
//! fn main() -> lanky::Result<()> {
//!     let device = Device::auto();
//!     let stream = device.stream()?;
//!     let a = device.upload(&stream, Matrix::from_fn(500, 300, |i, l| (i % 3 + l) as f32)?.view())?;
//!     let b = device.upload(&stream, Matrix::from_fn(300, 8, |l, j| (l % 2 + j) as f32)?.view())?;
//!     let mut c = device.zeros::<f32>(500, 8)?;
//!     let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
//!     device.warm_up(&[&plan])?; // loads and allocates: `run` then does neither
//!     for _ in 0..3 {
//!         plan.run(&stream, 1.0, a.view(), b.view(), 1.0, c.view_mut())?; // C <- A B + C
//!     }
//!     let c = c.download(&stream)?;
//!     assert_eq!(c.get(0, 0), Some(3.0 * 22_500.0));
//!     Ok(())
//! }
//! ```
//!
//! # Slices of your own, without a copy
//! ```
//! use lanky::prelude::*;
//!
//! fn main() -> lanky::Result<()> {
//!     let a = [1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0]; // 1 4; 2 5; 3 6 by columns, four elements from one to the next
//!     let a = MatRef::with_strides(&a, 3, 2, 1, 4)?;
//!     let mut c = [f64::NAN; 4];
//!     let stream = Device::cpu().stream()?;
//!     gemm(&stream, 1.0, a.t(), a, 0.0, MatMut::column_major(&mut c, 2, 2)?)?; // C <- A' A; a NaN in C is not read
//!     assert_eq!(c, [14.0, 32.0, 32.0, 77.0]);
//!     Ok(())
//! }
//! ```
//!
//! # Layouts
//! Element (i, j) is at `i * row stride + j * column stride`, in elements:
//! ```text
//! column_major 3 x 2        row_major 3 x 2           with_strides 3 x 2, strides 1 and 4
//!   0 3                       0 1                       0 4
//!   1 4    0 1 2 3 4 5        2 3    0 1 2 3 4 5        1 5    0 1 2 . 4 5 6
//!   2 5    |___| |___|        4 5    |_| |_| |_|        2 6    |___|   |___|
//! ```
//! The last line needs no gap behind it: a view spans rs (rows - 1) + cs (columns - 1) + 1 elements. Strides are not
//! negative; a GPU is fast where one of them is 1.
//!
//! # Operations
//! C is m x n, A m x k, B k x n; the first row that fits names the product ([`model::classify`]). All of them are called
//! alike, by [`gemm`] or a [`Plan`], whose text says which kernel serves it and why.
//!
//! | operation | shape |
//! |---|---|
//! | `gemv` | n = 1 or m = 1 |
//! | `tsmm` | k at most 64, and n or m |
//! | `tsmttsm` | m and n at most 64, k more |
//! | `tsm2r` | n or m at most 64, k more |
//! | `gemm` | everything else |
//!
//! [`model::VARIANTS`] lists the kernels, and [`PlanBuilder::variant`] forces one; those of `tsm2r` are after TSM2X (Rivera et
//! al., J. Parallel Distrib. Comput. 151, 2021). Errors of rounding have the usual bound, see [`gemm`]; the same plan on the
//! same GPU gives the same bits.
//!
//! # When not to use it
//! For large square products and for tensor-core types use cuBLAS; for big problems without a GPU a BLAS, or the crates faer
//! and gemm; for a matrix in the host's memory that is multiplied once the CPU, since sending it takes longer; for sparse
//! matrices and complex numbers something else. Other GPUs than NVIDIA's are not served.
//!
//! # Errors
//! Every fallible call gives an [`Error`], an enumeration to match on; [`Error`] says what to do about each.
//! Nothing panics, and nothing is launched or written after an error was found. Driver errors may stem from earlier work.
//!
//! # Features
//! `host`, the default, is all of the above; without it there is [`model`] alone. `ndarray`, `faer`, `nalgebra` and `dlpack`
//! view others' matrices without a copy. None changes a result.
//!
//! Transposes and sub-matrices are views: `a.t()`, `a.rows(10..20)?`, `a.cols(..4)?`. On a GPU products on a stream return
//! before their work is done; [`Stream::synchronize`] waits. Nothing needs a CUDA toolkit: the driver is loaded when first
//! asked for.

#![cfg_attr(not(feature = "host"), no_std)]

#[cfg(feature = "dlpack")]
pub use host::interop::dlpack;
#[cfg(feature = "host")]
pub use host::{
    CeilingTimes, Ceilings, Device, Dtype, Error, Graph, Layout, Mark, MatMut, MatRef, Matrix, Operand, Plan,
    PlanBuilder, Result, Rule, Scalar, Shape, ShapeError, Stream, Strides, Version, gemm,
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

/// What most programs name: `use lanky::prelude::*`.
#[cfg(feature = "host")]
pub mod prelude {
    pub use crate::{Device, Error, Layout, MatMut, MatRef, Matrix, Plan, Result, Scalar, Stream, gemm};
}

/// Every Rust block of the README is a test.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../README.md")]
struct Readme;
