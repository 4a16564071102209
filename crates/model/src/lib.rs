//! Decides which kernel computes a product, with which tile sizes and which grid, and can say why.
//!
//! Pure functions of numbers: no GPU, no allocation, no unsafe. Whatever launches a kernel asks here, and whatever
//! a kernel and its launch must agree on (tile sizes, spans, grids, shared memory, scratch) is written down here once.
//!
//! | module | question it answers |
//! |---|---|
//! | [`dtype`], [`shape`] | what is multiplied: element types, strides, spans, problems, [`classify`] |
//! | [`variants`] | which kernels exist |
//! | [`machine`] | what the GPU can do |
//! | [`occupancy`], [`roofline`] | how much of it a kernel can use: residency, Little's law, bounds |
//! | [`launch`] | grid, shared memory, parts of k, scratch |
//! | [`mod@choose`], [`refusal`] | which of all that is the fastest, or why none is |
//! | [`mod@batched`] | the same of a batch of small products |
//! | [`paper`] | what the papers would do, and why |
//! | [`results`] | what a measured result consists of |
//!
//! ```
//! use lanky_model::{Dtype, Machine, Problem, choose};
//! let problem = Problem::column_major(Dtype::F64, 20480, 16, 20480);
//! let choice = choose(&problem, &Machine::H200, None)?;
//! assert_eq!(choice.variant.name, "tsm2r_mma");
//! # Ok::<(), lanky_model::Refusal>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod batched;
pub mod choose;
pub mod dtype;
pub mod generated {
    //! Measured, written by scripts.
    pub mod registers;
}
pub mod launch;
pub mod machine;
pub mod occupancy;
pub mod paper;
pub mod refusal;
pub mod results;
pub mod roofline;
pub mod shape;
pub mod variants;

pub use batched::{BatchedChoice, BatchedEstimate, BatchedProblem, choose_batched};
pub use choose::{Choice, Chooser, Parts, candidates, choose, choose_across, choose_given, choose_in_place};
pub use dtype::Dtype;
pub use machine::{DeviceFacts, Machine, MachineError, Name};
pub use refusal::{BatchedRefusals, Refusal, Refusals};
pub use shape::{Operand, Operation, Problem, Strides, classify, span};
pub use variants::{Kernel, LaunchBounds, Layout, VARIANTS, Variant, entries, launch_bounds, sum_slots};
