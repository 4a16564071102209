//! Moves and launches: devices, streams, matrices, plans and products, on a GPU or the CPU.
//!
//! | module | what is in it |
//! |---|---|
//! | [`device`], [`stream`] | where and in which order work is done |
//! | [`view`], [`matrix`], [`shape`], [`scalar`] | what is multiplied |
//! | [`ops`], [`plan`] | products, at once or planned |
//! | `launch` | the only kernel launches |
//! | `cpu` | the same products without a GPU |
//! | `driver`, `gpu`, `memory`, `transfer` | the driver's part of all that |
//! | [`ptx`] | the kernels that are carried |
//! | [`tuned`] | measurements that plans follow |
//! | `interop` | matrices of ndarray, faer, nalgebra and DLPack, by their features |
//!
//! The facade `lanky` re-exports all of it.
//!
//! # Errors of every GPU call
//! What reaches the driver can also fail for reasons that are not the call's own. Where a page names "those of every GPU
//! call", they are:
//!
//! | error | when |
//! |---|---|
//! | [`Error::Driver`] | the driver failed, or work that was given to the GPU before did |
//! | [`Error::ContextLost`] | such a fault ended the context, in this call or earlier in this process; or other code of the process destroyed it |
//! | [`Error::Forked`] | a parent of this process opened the GPU |
//! | [`Error::DeviceBusy`], [`Error::DriverSetup`], [`Error::NoDevice`], [`Error::OutOfMemory`] with `wanted` = 0 | the driver says so, whatever it was asked for |
//!
//! On the CPU none of them comes. Where LANKY_REQUIRE_GPU=1 left [`Device::auto`] without a device, what is made, copied or
//! computed on it fails with the reason. No function panics; a caller's own function that does is the caller's affair.

pub mod device;
pub mod env;
pub mod error;
#[cfg(any(feature = "dlpack", feature = "faer", feature = "nalgebra", feature = "ndarray"))]
pub mod interop;
pub mod matrix;
pub mod ops;
pub mod plan;
pub mod ptx;
pub mod scalar;
pub mod shape;
pub mod stream;
#[doc(hidden)] // lanky's program reads its files so too
pub mod text;
pub mod tuned;
pub mod view;

mod ceiling;
mod choices;
mod cpu;
mod driver;
mod gpu;
mod kernel;
mod launch;
mod left;
mod memory;
mod pack;
mod placement;
mod transfer;

#[cfg(feature = "faer")]
pub use ::faer;
#[cfg(feature = "nalgebra")]
pub use ::nalgebra;
#[cfg(feature = "ndarray")]
pub use ::ndarray;

pub use ceiling::{CeilingTimes, Ceilings};
pub use device::Device;
pub use error::{Error, Operand, Result, Rule, ShapeError, Version};
pub use matrix::Matrix;
pub use model;
pub use model::launch::reduced::Triangle;
pub use model::{Dtype, Strides};
pub use num_complex::Complex;
pub use ops::batched::{gemm_batched, gemm_batched_by};
pub use ops::gemm::gemm;
pub use ops::gemv::gemv;
pub use ops::gram::{gram, gram_triangle};
pub use ops::tsmm::tsmm_in_place;
pub use plan::{Determinism, Plan, PlanBuilder};
pub use scalar::Scalar;
pub use shape::{Layout, Shape};
pub use stream::{Graph, Mark, Stream};
pub use view::{BatchMut, BatchRef, MatMut, MatRef};
