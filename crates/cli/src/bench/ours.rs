//! This project's own plans as contestants.

use lanky::{Device, MatMut, MatRef, Plan, Scalar, Shape, Stream};
use model::{Chooser, Problem, Strides};

use super::contest::Run;
use super::data::{Addresses, narrow};
use crate::error::Fault;

/// A plan, warm on the stream.
pub struct Ours<'s, T> {
    stream: &'s Stream,
    plan: Plan,
    shapes: [Shape; 3],
    alpha: T,
    beta: T,
}

impl<'s, T: Scalar> Ours<'s, T> {
    /// The model's choice, or of one variant.
    ///
    /// # Errors
    /// The inner one where the variant cannot serve the problem.
    pub fn new(
        stream: &'s Stream,
        p: &Problem,
        beta: f64,
        variant: Option<&str>,
    ) -> Result<lanky::Result<Self>, Fault> {
        let [m, n, k] = narrow([p.m, p.n, p.k])?;
        let shape = |rows, cols, strides: Strides| Shape::with_strides(rows, cols, strides, p.dtype);
        let shapes = [shape(m, k, p.a), shape(k, n, p.b), shape(m, n, p.c)];
        let [a, b, c] = shapes;
        let builder = Plan::gemm(stream.device(), a, b, c);
        let plan = match variant.into_iter().fold(builder, |builder, name| builder.variant(name)).build() {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(refused)),
        };
        plan.warm_up_on(stream)?;
        let alpha = if super::fault::planted(super::fault::WRONG) { T::one() + T::one() } else { T::one() };
        Ok(Ok(Self { stream, plan, shapes, alpha, beta: T::from(beta).unwrap_or_else(T::nan) }))
    }

    /// The entry that computes it; `cpu` on the CPU.
    pub fn variant(&self) -> &'static str {
        self.plan.entry().unwrap_or_else(|| self.plan.variant())
    }

    /// Who chose it.
    pub fn chooser(&self) -> &'static str {
        match self.plan.choice().map(|choice| choice.chooser) {
            Some(Chooser::Caller) => "caller",
            Some(Chooser::Model) | None => "model",
        }
    }

    fn device(&self) -> &Device {
        self.plan.device()
    }
}

impl<T: Scalar> Run for Ours<'_, T> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        // Strides were narrowed with the shapes that fit into memory; one that is never taken may be anything.
        let step = |stride: u64| usize::try_from(stride).unwrap_or(1);
        let [a, b, c] = self.shapes.map(|s| (s.rows, s.cols, step(s.strides.row), step(s.strides.col)));
        // SAFETY: the caller's promise: the case's data is at these addresses until the work is done.
        let (a, b, c) = unsafe {
            (
                MatRef::<T>::from_raw(self.device(), at.a, a.0, a.1, a.2, a.3)?,
                MatRef::<T>::from_raw(self.device(), at.b, b.0, b.1, b.2, b.3)?,
                MatMut::<T>::from_raw(self.device(), at.c, c.0, c.1, c.2, c.3)?,
            )
        };
        self.plan.run(self.stream, self.alpha, a, b, self.beta, c)
    }
}
