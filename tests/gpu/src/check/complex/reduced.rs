//! Two tall complex matrices over their long side, and Gram matrices: every entry, with every conjugate.

use super::product::{ALPHAS, BETAS, Spec};
use super::{dtype, integers};
use crate::check::repeat;
use crate::check::tsmttsm::{SIDES, asked_for, has_few_tiles, named, serves, specs};
use crate::compare::equal_parts;
use crate::entries::tried;
use crate::lab::{Lab, Outcome, ensure};
use crate::operand::{Operand, Storage};
use crate::real::{Real, integer, unit};
use host::{Complex, MatRef, Plan, PlanBuilder, Scalar, Shape, Triangle};
use model::{Kernel, Variant};
use rayon::prelude::*;

/// From one part of k to more than one block adds.
const STEPS: [usize; 3] = [65, 4099, 70_001];

/// Both complex types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab, &STEPS)?;
    sweep::<f64>(lab, &STEPS)?;
    same_bits::<f32>(lab)?;
    same_bits::<f64>(lab)
}

/// A little of it, for a tool that is slow.
pub fn small(lab: &Lab) -> Outcome {
    sweep::<f32>(lab, &[lab.few_rows(1031)])?;
    sweep::<f64>(lab, &[lab.few_rows(1031)])
}

/// Entries of an element type; the model's choice alone on the CPU.
fn entries<R: Real>(lab: &Lab, kernel: Kernel) -> Vec<Option<&'static Variant>>
where
    Complex<R>: Scalar,
{
    let forced = tried().filter(|v| lab.device.is_cuda() && v.dtype == dtype::<R>() && v.kernel == kernel);
    [None].into_iter().chain(forced.map(Some)).collect()
}

fn sweep<R: Real>(lab: &Lab, steps: &[usize]) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let cases = SIDES.iter().flat_map(|sides| steps.iter().map(move |&k| (*sides, k)));
    for (index, (sides, k)) in cases.enumerate() {
        for (at, plain) in specs(sides, k, index).into_iter().enumerate() {
            // Long ones in one layout each: they take the time.
            if k > 10_000 && at != index % 4 || !lab.takes(index + at, 4) {
                continue;
            }
            let turn = index + at;
            let spec = Spec {
                size: plain.size,
                storage: plain.storage,
                conj: [turn & 1 > 0, turn & 2 > 0],
                alpha: ALPHAS[turn % ALPHAS.len()],
                beta: BETAS[turn % BETAS.len()],
            };
            let suits = |entry: &Option<&'static Variant>| serves(*entry, sides) && has_few_tiles(lab, *entry, sides);
            let forced = entries::<R>(lab, Kernel::Tsmttsm).into_iter().filter(suits);
            let forced = forced.map(|entry| entry.map(|v| v.entry));
            integers::<R>(lab, "complex-tsmttsm", &spec, forced.collect())?;
            if sides.0 == sides.1 {
                grams::<R>(lab, spec, index)?;
            }
        }
    }
    Ok(())
}

/// A, C and what is asked of C.
pub struct Gram<R> {
    pub spec: Spec,
    pub a: Operand<Complex<R>>,
    pub c: Operand<Complex<R>>,
    triangle: Triangle,
}

impl<R: Real> Gram<R>
where
    Complex<R>: Scalar<Real = R>,
{
    /// A is B of the product; of the spec's conjugates the first says whether A is a matrix of conjugates, the second whether
    /// Aᵀ stands in place of Aᴴ.
    pub fn new(lab: &Lab, spec: Spec, triangle: Triangle, a: impl Fn(usize, usize, u64) -> f64) -> Outcome<Self> {
        let ((_, n, k), [_, sb, sc]) = (spec.size, spec.storage);
        let whole = |part: &dyn Fn(u64) -> f64| Complex::new(R::of(part(0)), R::of(part(1)));
        let unread = |i, j| spec.beta == (0.0, 0.0) && asked_for(triangle, i, j);
        let before =
            |i, j| if unread(i, j) { watched::Element::canary() } else { whole(&|im| integer(3 + 10 * im, i, j, 3)) };
        let a = Operand::new(lab, k, n, sb, |l, j| whole(&|im| a(l, j, im)))?;
        Ok(Gram { spec, a, c: Operand::new(lab, n, n, sc, before)?, triangle })
    }

    fn factor(&self, lab: &Lab) -> host::Result<MatRef<'_, Complex<R>>> {
        let a = self.a.view(lab)?;
        Ok(if self.spec.conj[0] { a.conj() } else { a })
    }

    fn plan(&self, lab: &Lab, entry: Option<&Variant>) -> host::Result<Plan> {
        entry.into_iter().fold(self.builder(lab)?, |builder, v| builder.variant(v.entry)).build()
    }

    pub fn builder(&self, lab: &Lab) -> host::Result<PlanBuilder> {
        let n = self.spec.size.1;
        let (row, col) = self.spec.storage[2].strides(n, n);
        let strides = model::Strides { row: row as u64, col: col as u64 };
        let c = Shape::with_strides(n, n, strides, dtype::<R>());
        let builder = Plan::gram(&lab.device, self.factor(lab)?.shape(), c).triangle(self.triangle);
        Ok(if self.spec.conj[1] { builder.no_conj() } else { builder })
    }

    fn run(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<Complex<R>>> {
        let found = self.run_unwatched(lab, plan);
        self.a.unchanged("A")?;
        found
    }

    /// Gives it to the stream, and does nothing else.
    pub fn enqueue(&mut self, lab: &Lab, plan: &Plan) -> host::Result<()> {
        let factor = |(re, im)| Complex::new(R::of(re), R::of(im));
        let (alpha, beta) = (factor(self.spec.alpha), factor(self.spec.beta));
        // C is another field than A, which a method of both cannot tell.
        let a = self.a.view(lab)?;
        let a = if self.spec.conj[0] { a.conj() } else { a };
        plan.run_gram(&lab.stream, alpha, a, beta, self.c.view_mut(lab)?)
    }

    /// The same, without a look at A.
    fn run_unwatched(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<Complex<R>>> {
        self.c.reset()?;
        self.enqueue(lab, plan)?;
        lab.stream.synchronize()?;
        self.c.result("C")
    }

    /// What C must be, of integers.
    pub fn expected(&self) -> Vec<[f64; 2]> {
        let (_, n, k) = self.spec.size;
        let wide = |x: Complex<R>| Complex::new(x.re.wide(), x.im.wide());
        let of = |conj: bool, x: Complex<f64>| if conj { x.conj() } else { x };
        let [conj, no_conj] = self.spec.conj;
        let columns: Vec<Vec<_>> = (0..n).map(|j| (0..k).map(|l| of(conj, wide(self.a.get(l, j)))).collect()).collect();
        let factor = |(re, im)| Complex::new(re, im);
        let (alpha, beta): (Complex<f64>, Complex<f64>) = (factor(self.spec.alpha), factor(self.spec.beta));
        let one = |e: usize| {
            let (i, j) = (e % n, e / n);
            let old = wide(self.c.get(i, j));
            if !asked_for(self.triangle, i, j) {
                return [old.re, old.im];
            }
            let products = columns[i].iter().zip(&columns[j]).map(|(&a, &b)| of(!no_conj, a) * b);
            let sum = alpha * products.fold(Complex::new(0.0, 0.0), |sum, product| sum + product);
            let sum = if self.spec.beta == (0.0, 0.0) { sum } else { sum + beta * old };
            [sum.re, sum.im]
        };
        (0..n * n).into_par_iter().map(one).collect()
    }
}

fn grams<R: Real>(lab: &Lab, spec: Spec, index: usize) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let n = spec.size.1;
    let triangle = [Triangle::Full, Triangle::Lower, Triangle::Upper][index % 3];
    let mut gram = Gram::<R>::new(lab, spec, triangle, |l, j, im| integer(2 + 10 * im, l, j, 3))?;
    let expected = gram.expected();
    let suits = |entry: &Option<&'static Variant>| serves(*entry, (n, n)) && has_few_tiles(lab, *entry, (n, n));
    for entry in entries::<R>(lab, Kernel::Gram).into_iter().filter(suits) {
        let result = gram.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            // Twice: the second finds the ticket that the first has left.
            gram.run(lab, &plan)?;
            equal_parts(&gram.run(lab, &plan)?, &expected, n)
        });
        lab.record(|| format!("complex-gram {} {triangle:?} {}", named(entry), spec.name::<R>()), result)?;
    }
    Ok(())
}

/// Random numbers: the bits of the first run again, and those of a Gram matrix Hermitian, its diagonal real.
fn same_bits<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (index, n) in [16, 64, 5, 1].into_iter().enumerate() {
        for (at, plain) in specs((n, n), 50_021, 5 * index).into_iter().enumerate() {
            let conj = [at & 1 > 0, at & 2 > 0];
            let storage: [Storage; 3] = plain.storage;
            let spec = Spec { size: plain.size, storage, conj, alpha: (-0.7, 0.0), beta: (0.0, 0.0) };
            let mut gram = Gram::<R>::new(lab, spec, Triangle::Full, |l, j, im| unit(2 + 10 * im, l, j))?;
            let mut poison = Gram::<R>::new(lab, spec, Triangle::Full, |_, _, _| f64::NAN)?;
            for entry in entries::<R>(lab, Kernel::Gram).into_iter().filter(|entry| serves(*entry, (n, n))) {
                let result = gram.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let first = gram.run(lab, &plan)?;
                    let mirrored = |x: Complex<R>| if conj[1] { x } else { x.conj() };
                    let fits = |e: usize| {
                        let (x, y) = (first[e], mirrored(first[e % n * n + e / n]));
                        x.re.bits() == y.re.bits()
                            && (x.im.bits() == y.im.bits() || (x.im, y.im) == (R::zero(), R::zero()))
                    };
                    ensure((0..n * n).all(fits), || "it is not Hermitian to the bit".into())?;
                    let is_real = |i: usize| first[i * n + i].im == R::zero();
                    ensure(conj[1] || (0..n).all(is_real), || "its diagonal is not real".into())?;
                    let again = || gram.run_unwatched(lab, &plan);
                    repeat::again(&first, n, repeat::RUNS, again, || poison.run_unwatched(lab, &plan))
                });
                lab.record(|| format!("complex-gram, bits of {} {}", named(entry), spec.name::<R>()), result)?;
            }
        }
    }
    Ok(())
}
