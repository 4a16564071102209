//! What a product must be, and how long its plan's chains are.

use crate::case::Case;
use crate::real::Real;
use model::Choice;

pub use watched::oracle::{Near, dot_of_integers};

/// C for operands and C of integers.
pub fn exact<T: Real>(case: &Case<T>) -> Vec<f64> {
    case.terms().exact()
}

/// C by the definition, for data with NaN or infinities among small integers.
pub fn by_definition<T: Real>(case: &Case<T>) -> Vec<f64> {
    case.terms().by_definition()
}

/// C to twice the precision of f64.
pub fn near<T: Real>(case: &Case<T>) -> Vec<Near> {
    case.terms().near()
}

/// The longest chain of roundings of a sum over k; of the CPU's, that of one part.
pub fn chain(choice: Option<&Choice>, k: usize) -> f64 {
    let long = |choice: &Choice| {
        let (m, n) = (choice.problem.m, choice.problem.n);
        watched::oracle::chain(choice.variant, (m, n, u32::try_from(k).unwrap_or(u32::MAX)), choice.splits)
    };
    choice.map_or(k as f64, long)
}
