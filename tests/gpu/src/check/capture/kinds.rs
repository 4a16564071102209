//! What is recorded, each kind with its operands: integers, so that the result is exact.

use crate::case::Case;
use crate::check::batched;
use crate::check::complex::{self, Product, exact as exact_complex};
use crate::check::tsmttsm::Gram;
use crate::compare::{equal, equal_parts};
use crate::lab::{Lab, Outcome};
use crate::operand::Operand;
use crate::oracle::exact;
use crate::real::{Element, Real, integer};
use host::{Complex, Plan, Scalar};

/// Work that a stream can record.
pub trait Recorded {
    /// Of C.
    type Element: Element;
    /// For a message.
    fn kind(&self) -> &'static str;
    /// Gives it to the lab's stream by this plan, and does nothing else; a batch has none.
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()>;
    /// Other integers where A is.
    fn renew(&mut self, seed: u64) -> Outcome;
    /// C as it was.
    fn clear(&mut self) -> Outcome;
    /// C; fails if what is around it has changed.
    fn found(&self) -> Outcome<Vec<Self::Element>>;
    /// Fails unless C is right.
    fn look(&self) -> Outcome;
}

/// What a product, whose plan is there, is asked for without one.
fn with(plan: Option<&Plan>) -> host::Result<&Plan> {
    plan.ok_or_else(|| host::Error::Unsupported { what: "without a plan".into() })
}

/// Other integers in an operand.
fn renew<T: Element>(operand: &mut Operand<T>, seed: u64) -> Outcome {
    let rows = operand.rows;
    for (i, j) in (0..rows * operand.cols).map(|e| (e % rows, e / rows)) {
        operand.set(i, j, T::of_two(integer(seed, i, j, 3), integer(seed + 1000, i, j, 3)));
    }
    operand.reset()
}

impl<T: Real> Recorded for Case<T> {
    type Element = T;
    fn kind(&self) -> &'static str {
        "of a product"
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        let (alpha, beta) = (T::of(self.spec.alpha), T::of(self.spec.beta));
        with(plan)?.run(&lab.stream, alpha, self.a.view(lab)?, self.b.view(lab)?, beta, self.c.view_mut(lab)?)
    }
    fn renew(&mut self, seed: u64) -> Outcome {
        renew(&mut self.a, seed)
    }
    fn clear(&mut self) -> Outcome {
        self.c.reset()
    }
    fn found(&self) -> Outcome<Vec<T>> {
        self.c.result("C")
    }
    fn look(&self) -> Outcome {
        equal(&self.found()?, &exact(self), self.spec.size.0)
    }
}

impl<R: Real> Recorded for Product<R>
where
    Complex<R>: Scalar<Real = R>,
{
    type Element = Complex<R>;
    fn kind(&self) -> &'static str {
        "of a product"
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, with(plan)?)
    }
    fn renew(&mut self, seed: u64) -> Outcome {
        renew(&mut self.a, seed)
    }
    fn clear(&mut self) -> Outcome {
        self.c.reset()
    }
    fn found(&self) -> Outcome<Vec<Complex<R>>> {
        self.c.result("C")
    }
    fn look(&self) -> Outcome {
        equal_parts(&self.found()?, &exact_complex(self), self.spec.size.0)
    }
}

impl<T: Real> Recorded for Gram<T> {
    type Element = T;
    fn kind(&self) -> &'static str {
        "of a Gram matrix"
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, with(plan)?)
    }
    fn renew(&mut self, seed: u64) -> Outcome {
        renew(&mut self.a, seed)
    }
    fn clear(&mut self) -> Outcome {
        self.c.reset()
    }
    fn found(&self) -> Outcome<Vec<T>> {
        self.c.result("C")
    }
    fn look(&self) -> Outcome {
        equal(&self.found()?, &self.exact(), self.spec.size.1)
    }
}

impl<R: Real> Recorded for complex::Gram<R>
where
    Complex<R>: Scalar<Real = R>,
{
    type Element = Complex<R>;
    fn kind(&self) -> &'static str {
        "of a Gram matrix"
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, with(plan)?)
    }
    fn renew(&mut self, seed: u64) -> Outcome {
        renew(&mut self.a, seed)
    }
    fn clear(&mut self) -> Outcome {
        self.c.reset()
    }
    fn found(&self) -> Outcome<Vec<Complex<R>>> {
        self.c.result("C")
    }
    fn look(&self) -> Outcome {
        equal_parts(&self.found()?, &self.expected(), self.spec.size.1)
    }
}

impl<T: Element> Recorded for batched::Case<T> {
    type Element = T;
    fn kind(&self) -> &'static str {
        "of a batch"
    }
    fn enqueue(&mut self, lab: &Lab, _plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, None)
    }
    fn renew(&mut self, seed: u64) -> Outcome {
        renew(&mut self.a.all, seed)
    }
    fn clear(&mut self) -> Outcome {
        self.c.all.reset()
    }
    fn found(&self) -> Outcome<Vec<T>> {
        self.c.all.result("C")
    }
    fn look(&self) -> Outcome {
        self.right(&self.found()?)
    }
}
