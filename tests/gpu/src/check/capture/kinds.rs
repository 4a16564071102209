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
use watched::Element as _;

/// Work that a stream can record.
pub trait Recorded {
    /// Of C.
    type Element: Element;
    /// For a message.
    const KIND: &'static str;
    /// A and C, of a batch the memory of all of them.
    fn operands(&mut self) -> [&mut Operand<Self::Element>; 2];
    /// Gives it to the lab's stream by this plan, and does nothing else; a batch has none.
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()>;
    /// Fails unless this is what C must be.
    fn compare(&self, found: &[Self::Element]) -> Outcome;

    /// Other integers where A is.
    fn renew(&mut self, seed: u64) -> Outcome {
        let [a, _] = self.operands();
        let rows = a.rows;
        for (i, j) in (0..rows * a.cols).map(|e| (e % rows, e / rows)) {
            a.set(i, j, Self::Element::of_two(integer(seed, i, j, 3), integer(seed + 1000, i, j, 3)));
        }
        a.reset()
    }
    /// C as it was.
    fn clear(&mut self) -> Outcome {
        let [_, c] = self.operands();
        c.reset()
    }
    /// C; fails if what is around it has changed.
    fn found(&mut self) -> Outcome<Vec<Self::Element>> {
        let [_, c] = self.operands();
        c.result("C")
    }
    /// Fails unless C is right.
    fn look(&mut self) -> Outcome {
        let found = self.found()?;
        self.compare(&found)
    }
}

/// What a product, whose plan is there, is asked for without one.
fn with(plan: Option<&Plan>) -> host::Result<&Plan> {
    plan.ok_or_else(|| host::Error::Unsupported { what: "without a plan".into() })
}

impl<T: Real> Recorded for Case<T> {
    type Element = T;
    const KIND: &'static str = "of a product";
    fn operands(&mut self) -> [&mut Operand<Self::Element>; 2] {
        [&mut self.a, &mut self.c]
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        let (alpha, beta) = (T::of(self.spec.alpha), T::of(self.spec.beta));
        with(plan)?.run(&lab.stream, alpha, self.a.view(lab)?, self.b.view(lab)?, beta, self.c.view_mut(lab)?)
    }
    fn compare(&self, found: &[Self::Element]) -> Outcome {
        equal(found, &exact(self), self.spec.size.0)
    }
}

impl<R: Real> Recorded for Product<R>
where
    Complex<R>: Scalar<Real = R>,
{
    type Element = Complex<R>;
    const KIND: &'static str = "of a product";
    fn operands(&mut self) -> [&mut Operand<Self::Element>; 2] {
        [&mut self.a, &mut self.c]
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, with(plan)?)
    }
    fn compare(&self, found: &[Self::Element]) -> Outcome {
        equal_parts(found, &exact_complex(self), self.spec.size.0)
    }
}

impl<T: Real> Recorded for Gram<T> {
    type Element = T;
    const KIND: &'static str = "of a Gram matrix";
    fn operands(&mut self) -> [&mut Operand<Self::Element>; 2] {
        [&mut self.a, &mut self.c]
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, with(plan)?)
    }
    fn compare(&self, found: &[Self::Element]) -> Outcome {
        equal(found, &self.exact(), self.spec.size.1)
    }
}

impl<R: Real> Recorded for complex::Gram<R>
where
    Complex<R>: Scalar<Real = R>,
{
    type Element = Complex<R>;
    const KIND: &'static str = "of a Gram matrix";
    fn operands(&mut self) -> [&mut Operand<Self::Element>; 2] {
        [&mut self.a, &mut self.c]
    }
    fn enqueue(&mut self, lab: &Lab, plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, with(plan)?)
    }
    fn compare(&self, found: &[Self::Element]) -> Outcome {
        equal_parts(found, &self.expected(), self.spec.size.1)
    }
}

impl<T: Element> Recorded for batched::Case<T> {
    type Element = T;
    const KIND: &'static str = "of a batch";
    fn operands(&mut self) -> [&mut Operand<Self::Element>; 2] {
        [&mut self.a.all, &mut self.c.all]
    }
    fn enqueue(&mut self, lab: &Lab, _plan: Option<&Plan>) -> host::Result<()> {
        self.enqueue(lab, None)
    }
    fn compare(&self, found: &[Self::Element]) -> Outcome {
        self.right(found)
    }
}
