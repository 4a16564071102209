//! What the objects of all plans begin with.

use model::{Machine, Operation, Problem};
use serde::Serialize;

/// The product and the GPU.
#[derive(Serialize)]
pub struct Head {
    operation: &'static str,
    dtype: &'static str,
    m: u64,
    n: u64,
    k: u64,
    /// What the GPU calls itself.
    gpu: String,
    /// Whether Cᵀ = Bᵀ Aᵀ is meant: n is then m.
    swapped: bool,
    /// `memory` or `compute`.
    bound: &'static str,
}

impl Head {
    /// Of a product as it was asked for.
    pub fn of(p: &Problem, machine: &Machine, operation: Operation, swapped: bool, bound: &'static str) -> Self {
        let (operation, dtype, gpu) = (operation.name(), p.dtype.name(), machine.name.to_string());
        Self { operation, dtype, m: p.m, n: p.n, k: p.k, gpu, swapped, bound }
    }
}
