//! One product with everything around its operands watched.

use crate::lab::{Lab, Outcome, dtype_name};
use crate::operand::{Operand, Storage};
use crate::real::{Real, hash, integer};
use host::{Plan, PlanBuilder, Result, Scalar, gemm};
use watched::Terms;

/// C ← α A B + β C with C m x n, before its elements are made.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// m, n, k.
    pub size: (usize, usize, usize),
    /// Of A, B and C.
    pub storage: [Storage; 3],
    /// α.
    pub alpha: f64,
    /// β.
    pub beta: f64,
}

/// The factors that are tried.
pub const ALPHAS: [f64; 4] = [1.0, -1.0, 0.5, 0.0];
/// And those of C.
pub const BETAS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, -0.0];

impl Spec {
    /// Packed and column-major, α = 1, β = 0.
    pub fn plain(size: (usize, usize, usize)) -> Spec {
        Spec { size, storage: [Storage::default(); 3], alpha: 1.0, beta: 0.0 }
    }

    /// Layouts, gaps, offsets, α ≠ 0 and β that differ from one `index` to the next.
    pub fn varied(size: (usize, usize, usize), index: usize) -> Spec {
        let bits = hash(91, index, 0) as usize;
        let storage = |at: usize| {
            let bits = bits >> (8 * at);
            Storage::new(bits & 1 > 0, bits >> 1 & 3, bits >> 3 & 3)
        };
        let alpha = ALPHAS[(bits >> 24) % 3];
        let beta = BETAS[(bits >> 32) % BETAS.len()];
        Spec { size, storage: [storage(0), storage(1), storage(2)], alpha, beta }
    }

    /// For a message.
    pub fn name<T: Scalar>(&self) -> String {
        let (m, n, k) = self.size;
        let [a, b, c] = self.storage.map(Storage::name);
        format!("{} m={m} n={n} k={k} A {a} B {b} C {c} alpha={} beta={}", dtype_name::<T>(), self.alpha, self.beta)
    }

    /// With integers in -3..=3, whose product is exact in any order; A and B are NaN where α = 0, C where β = 0.
    pub fn integers<T: Real>(&self, lab: &Lab) -> Outcome<Case<T>> {
        self.make(lab, |i, l| integer(1, i, l, 3), |l, j| integer(2, l, j, 3), |i, j| integer(3, i, j, 3))
    }

    /// With elements from these functions; A and B are NaN where α = 0, C where β = 0.
    pub fn make<T: Real>(
        &self,
        lab: &Lab,
        a: impl Fn(usize, usize) -> f64,
        b: impl Fn(usize, usize) -> f64,
        c: impl Fn(usize, usize) -> f64,
    ) -> Outcome<Case<T>> {
        let ((m, n, k), [sa, sb, sc]) = (self.size, self.storage);
        let number = |factor: f64, value: f64| if factor == 0.0 { T::canary() } else { T::of(value) };
        Ok(Case {
            spec: *self,
            a: Operand::new(lab, m, k, sa, |i, l| number(self.alpha, a(i, l)))?,
            b: Operand::new(lab, k, n, sb, |l, j| number(self.alpha, b(l, j)))?,
            c: Operand::new(lab, m, n, sc, |i, j| number(self.beta, c(i, j)))?,
        })
    }
}

/// A product with its operands.
pub struct Case<T> {
    /// What it is.
    pub spec: Spec,
    /// A.
    pub a: Operand<T>,
    /// B.
    pub b: Operand<T>,
    /// C.
    pub c: Operand<T>,
}

impl<T: Real> Case<T> {
    /// Its plan, by this entry or the model's choice.
    pub fn plan(&self, lab: &Lab, entry: Option<&str>) -> Result<Plan> {
        entry.into_iter().fold(self.builder(lab)?, |builder, name| builder.variant(name)).build()
    }

    /// What plans of it are built with.
    pub fn builder(&self, lab: &Lab) -> Result<PlanBuilder> {
        let (a, b) = (self.a.view(lab)?, self.b.view(lab)?);
        let c = self.spec.storage[2].strides(self.c.rows, self.c.cols);
        let strides = model::Strides { row: c.0 as u64, col: c.1 as u64 };
        let c = host::Shape::with_strides(self.c.rows, self.c.cols, strides, T::DTYPE);
        Ok(Plan::gemm(&lab.device, a.shape(), b.shape(), c))
    }

    /// What it is made of, as it was before.
    pub fn terms(&self) -> Terms<'_, T> {
        Terms::new([&self.a, &self.b, &self.c], [self.spec.alpha, self.spec.beta])
    }

    fn factors(&self) -> (T, T) {
        (T::of(self.spec.alpha), T::of(self.spec.beta))
    }

    /// C as the plan computes it, down the columns. Fails if a byte changed that is no element of C.
    pub fn run(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<T>> {
        let found = self.run_unwatched(lab, plan);
        self.watch()?;
        found
    }

    /// The same, without a look at A and B.
    pub fn run_unwatched(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<T>> {
        let (alpha, beta) = self.factors();
        self.c.reset()?;
        plan.run(&lab.stream, alpha, self.a.view(lab)?, self.b.view(lab)?, beta, self.c.view_mut(lab)?)?;
        lab.stream.synchronize()?;
        self.c.result("C")
    }

    /// C as [`gemm`] computes it.
    pub fn run_planless(&mut self, lab: &Lab) -> Outcome<Vec<T>> {
        let (alpha, beta) = self.factors();
        self.c.reset()?;
        gemm(&lab.stream, alpha, self.a.view(lab)?, self.b.view(lab)?, beta, self.c.view_mut(lab)?)?;
        lab.stream.synchronize()?;
        self.watched()
    }

    /// C computed as Cᵀ ← α Bᵀ Aᵀ + β Cᵀ, by views alone.
    pub fn run_transposed(&mut self, lab: &Lab) -> Outcome<Vec<T>> {
        let (alpha, beta) = self.factors();
        self.c.reset()?;
        gemm(&lab.stream, alpha, self.b.view(lab)?.t(), self.a.view(lab)?.t(), beta, self.c.view_mut(lab)?.t())?;
        lab.stream.synchronize()?;
        self.watched()
    }

    fn watched(&mut self) -> Outcome<Vec<T>> {
        self.watch()?;
        self.c.result("C")
    }

    /// Fails if A or B was written; they are put back, so that the next run is not blamed for it.
    fn watch(&mut self) -> Outcome {
        let verdict = self.a.unchanged("A").and_then(|()| self.b.unchanged("B"));
        if verdict.is_err() {
            self.a.reset()?;
            self.b.reset()?;
        }
        verdict
    }
}
