//! A complex product with everything around its operands watched.

use crate::case;
use crate::entries::Entry;
use crate::lab::{Lab, Outcome};
use crate::operand::{Operand, Storage};
use crate::real::{Real, hash};
use host::{Complex, Dtype, MatRef, Plan, PlanBuilder, Scalar, Shape};
use watched::Terms;

/// C ← α op(A) op(B) + β C, before its elements are made.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// m, n, k.
    pub size: (usize, usize, usize),
    /// Of A, B and C.
    pub storage: [Storage; 3],
    /// Whether the conjugates of A, and of B, are multiplied.
    pub conj: [bool; 2],
    /// Real and imaginary part of α.
    pub alpha: (f64, f64),
    /// Of β.
    pub beta: (f64, f64),
}

/// The factors that are tried: integers, so that products of integers stay exact.
pub const ALPHAS: [(f64, f64); 4] = [(1.0, 0.0), (1.0, -2.0), (0.0, 1.0), (-1.0, 0.0)];
/// And those of C.
pub const BETAS: [(f64, f64); 5] = [(0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (2.0, 1.0), (-0.0, 0.0)];

impl Spec {
    /// Layouts, gaps, offsets, conjugates, α ≠ 0 and β that differ from one `index` to the next.
    pub fn varied(size: (usize, usize, usize), index: usize) -> Spec {
        let bits = hash(93, index, 0) as usize;
        Spec {
            size,
            storage: case::Spec::varied(size, index).storage,
            conj: [bits & 1 > 0, bits & 2 > 0],
            alpha: ALPHAS[(bits >> 8) % ALPHAS.len()],
            beta: BETAS[(bits >> 16) % BETAS.len()],
        }
    }

    /// What of it decides which entries take it.
    pub fn plain(&self) -> case::Spec {
        case::Spec { storage: self.storage, ..case::Spec::plain(self.size) }
    }

    /// Whether an entry takes its operands as they lie.
    pub fn suits(&self, entry: Entry) -> bool {
        self.plain().suits(entry)
    }

    /// [`Spec::groups`] of the entries of an element type, and those of two tall matrices and of vectors, at their sizes.
    pub fn groups_of_all(self, dtype: Dtype, forced: bool) -> Vec<(Spec, Vec<Entry>)> {
        let groups = self.plain().groups_of_all(dtype, forced).into_iter();
        groups.map(|(plain, entries)| (Spec { size: plain.size, storage: plain.storage, ..self }, entries)).collect()
    }

    /// The product with those that take it, and with the others as those want it.
    pub fn groups(self, entries: Vec<Entry>) -> Vec<(Spec, Vec<Entry>)> {
        let groups = self.plain().groups(entries).into_iter();
        groups.map(|(spec, entries)| (Spec { storage: spec.storage, ..self }, entries)).collect()
    }

    /// For a message.
    pub fn name<R: Real>(&self) -> String
    where
        Complex<R>: Scalar,
    {
        let (m, n, k) = self.size;
        let [a, b, c] = self.storage.map(Storage::name);
        let [bar_a, bar_b] = self.conj.map(|conj| if conj { "conj " } else { "" });
        let (dtype, alpha, beta) = (Complex::<R>::DTYPE, self.alpha, self.beta);
        format!("{dtype} m={m} n={n} k={k} {bar_a}A {a} {bar_b}B {b} C {c} alpha={alpha:?} beta={beta:?}")
    }
}

/// The view, or that of the conjugates.
fn op<T: Scalar>(view: MatRef<'_, T>, conj: bool) -> MatRef<'_, T> {
    if conj { view.conj() } else { view }
}

/// What it must be of integers, whose sums are exact in any order.
pub fn exact<R: Real>(product: &Product<R>) -> Vec<[f64; 2]>
where
    Complex<R>: Scalar<Real = R>,
{
    product.terms().parts()
}

/// A product with its operands.
pub struct Product<R> {
    /// What it is.
    pub spec: Spec,
    /// A, as stored.
    pub a: Operand<Complex<R>>,
    /// B, as stored.
    pub b: Operand<Complex<R>>,
    /// C.
    pub c: Operand<Complex<R>>,
}

impl<R: Real> Product<R>
where
    Complex<R>: Scalar<Real = R>,
{
    /// With parts from these functions of row, column, and 0 for the real or 1 for the imaginary one; C is NaN where β = 0.
    pub fn new(
        lab: &Lab,
        spec: Spec,
        a: impl Fn(usize, usize, u64) -> f64,
        b: impl Fn(usize, usize, u64) -> f64,
        c: impl Fn(usize, usize, u64) -> f64,
    ) -> Outcome<Self> {
        let ((m, n, k), [sa, sb, sc]) = (spec.size, spec.storage);
        let nan = spec.beta == (0.0, 0.0);
        let whole = |part: &dyn Fn(u64) -> f64| Complex::new(R::of(part(0)), R::of(part(1)));
        Ok(Product {
            spec,
            a: Operand::new(lab, m, k, sa, |i, l| whole(&|im| a(i, l, im)))?,
            b: Operand::new(lab, k, n, sb, |l, j| whole(&|im| b(l, j, im)))?,
            c: Operand::new(lab, m, n, sc, |i, j| whole(&|im| if nan { f64::NAN } else { c(i, j, im) }))?,
        })
    }

    /// What it is made of, as it was before.
    pub fn terms(&self) -> Terms<'_, Complex<R>> {
        let factors = [self.spec.alpha, self.spec.beta].map(<[f64; 2]>::from);
        Terms { operands: [&self.a, &self.b, &self.c], conj: self.spec.conj, factors }
    }

    /// op(A) and op(B).
    fn factors(&self, lab: &Lab) -> host::Result<[MatRef<'_, Complex<R>>; 2]> {
        let [conj_a, conj_b] = self.spec.conj;
        Ok([op(self.a.view(lab)?, conj_a), op(self.b.view(lab)?, conj_b)])
    }

    /// Its plan, by this entry or the model's choice.
    pub fn plan(&self, lab: &Lab, entry: Entry) -> host::Result<Plan> {
        entry.into_iter().fold(self.builder(lab)?, |builder, name| builder.variant(name)).build()
    }

    /// What plans of it are built with.
    pub fn builder(&self, lab: &Lab) -> host::Result<PlanBuilder> {
        let [a, b] = self.factors(lab)?;
        let (row, col) = self.c.strides();
        let strides = model::Strides { row: row as u64, col: col as u64 };
        let c = Shape::with_strides(self.c.rows, self.c.cols, strides, Complex::<R>::DTYPE);
        Ok(Plan::gemm(&lab.device, a.shape(), b.shape(), c))
    }

    /// Gives it to the stream, and does nothing else.
    pub fn enqueue(&mut self, lab: &Lab, plan: &Plan) -> host::Result<()> {
        let factor = |(re, im)| Complex::new(R::of(re), R::of(im));
        let (alpha, beta) = (factor(self.spec.alpha), factor(self.spec.beta));
        // C is another field than A and B, which a method of all cannot tell.
        let (conj, a, b) = (self.spec.conj, &self.a, &self.b);
        let (a, b) = (op(a.view(lab)?, conj[0]), op(b.view(lab)?, conj[1]));
        plan.run(&lab.stream, alpha, a, b, beta, self.c.view_mut(lab)?)
    }

    /// C as the plan computes it, down the columns. Fails if a byte changed that is no element of C.
    pub fn run(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<Complex<R>>> {
        let found = self.run_unwatched(lab, plan);
        self.a.unchanged("A")?;
        self.b.unchanged("B")?;
        found
    }

    /// The same, without a look at A and B.
    pub fn run_unwatched(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<Complex<R>>> {
        self.c.reset()?;
        self.enqueue(lab, plan)?;
        lab.stream.synchronize()?;
        self.c.result("C")
    }
}
