//! This project's own plans as contestants.

use lanky::{Device, Error, MatMut, MatRef, Plan, PlanBuilder, Scalar, Shape, Stream};
use model::{BatchedChoice, Choice, Chooser, Problem, Strides};
use num_traits::{Float, Zero, cast};
use serde::Serialize;

use super::contest::Run;
use super::data::Addresses;
use super::fault;
use crate::real::Real;

/// How a plan launches its kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Launch {
    /// Parts of k, each with its sum; added in order.
    pub splits: u32,
    /// Blocks along x, y (parts of k) and z.
    pub grid: [u32; 3],
    /// Threads a block.
    pub threads: u32,
    /// Dynamic shared memory a block.
    pub shared_bytes: u32,
    /// Whether Cᵀ = Bᵀ Aᵀ is computed.
    pub swapped: bool,
}

impl Launch {
    fn of(choice: &Choice) -> Self {
        let Choice { splits, grid, threads, shared_bytes, swapped, .. } = *choice;
        Self { splits, grid, threads, shared_bytes, swapped }
    }

    pub fn of_batch(choice: &BatchedChoice) -> Self {
        let (grid, threads) = ([choice.blocks, 1, 1], choice.threads);
        Self { splits: 1, grid, threads, shared_bytes: choice.shared_bytes, swapped: false }
    }
}

/// A plan, warm on the stream.
pub struct Ours<'s, T> {
    stream: &'s Stream,
    plan: Plan,
    shapes: [Shape; 3],
    alpha: T,
    beta: T,
    /// It may still be run so often, where a test has it fail.
    runs_left: Option<u32>,
}

impl<'s, T: Scalar> Ours<'s, T> {
    /// The plan's own choice, or of one variant; of that so many parts of k, if they are given.
    ///
    /// # Errors
    /// Those of making the plan, among them that the variant cannot serve the problem, and of warming it up.
    pub fn new(
        stream: &'s Stream,
        p: &Problem,
        beta: f64,
        variant: Option<&str>,
        parts: Option<u32>,
    ) -> lanky::Result<Self>
    where
        T::Real: Real,
    {
        let shapes = shapes(p)?;
        let builder = builder(stream.device(), p, shapes, variant);
        let plan = parts.into_iter().fold(builder, PlanBuilder::parts).build()?;
        plan.warm_up_on(stream)?;
        let alpha = if fault::planted(fault::WRONG) { T::one() + T::one() } else { T::one() };
        let beta = T::of_parts(cast(beta).unwrap_or_else(T::Real::nan), T::Real::zero());
        // The check is its first run.
        let runs_left = fault::fails_first().then_some(1);
        Ok(Self { stream, plan, shapes, alpha, beta, runs_left })
    }

    /// The entry that computes it; `cpu` on the CPU.
    pub fn variant(&self) -> &'static str {
        self.plan.entry().unwrap_or_else(|| self.plan.variant())
    }

    /// Who chose it.
    pub fn chooser(&self) -> &'static str {
        match self.plan.choice().map(|choice| choice.chooser) {
            Some(Chooser::Caller) => "caller",
            Some(Chooser::Common) => "common",
            Some(Chooser::Tuned { .. }) => "tuned",
            Some(Chooser::Model) | None => "model",
        }
    }

    /// How it is launched; `None` on the CPU.
    pub fn launch(&self) -> Option<Launch> {
        self.plan.choice().map(Launch::of)
    }

    fn device(&self) -> &Device {
        self.plan.device()
    }
}

/// Of op(A), op(B) and C.
fn shapes(p: &Problem) -> lanky::Result<[Shape; 3]> {
    let too_large = || Error::Unsupported { what: "a product larger than any memory".into() };
    let length = |length: u64| usize::try_from(length).map_err(|_| too_large());
    let [m, n, k] = [length(p.m)?, length(p.n)?, length(p.k)?];
    let shape = |rows, cols, strides: Strides| Shape::with_strides(rows, cols, strides, p.dtype);
    Ok([shape(m, k, p.a), shape(k, n, p.b), shape(m, n, p.c)])
}

/// The plan is told all that a caller knows: the variant, if one is asked for, and whether C is read.
fn builder(device: &Device, p: &Problem, [a, b, c]: [Shape; 3], variant: Option<&str>) -> PlanBuilder {
    let builder = if p.gram { Plan::gram(device, b, c).no_conj() } else { Plan::gemm(device, a, b, c) };
    let builder = if p.reads_c { builder.reads_c() } else { builder };
    let builder = if p.splits_f32 { builder.split_f32() } else { builder };
    variant.into_iter().fold(builder, |builder, name| builder.variant(name))
}

impl<T: Scalar> Run for Ours<'_, T> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        if let Some(left) = &mut self.runs_left {
            *left = left
                .checked_sub(1)
                .ok_or_else(|| Error::Unsupported { what: "the run that a test has fail".into() })?;
        }
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

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::*;
    use model::{Dtype, Machine, choose};

    /// A plan on the CPU decides nothing, so it is what is asked for that is looked at: of cases, as they come.
    #[test]
    fn the_plan_knows_whether_c_is_read() -> lanky::Result<()> {
        for (beta, reads_c) in [(0.0, false), (1.0, true), (-0.5, true)] {
            let case = Case { beta, ..Case::plain("tsm2r", "f64", (90, 3, 70)) };
            let p = case.job().expect("it fits").problem;
            for variant in [None, Some("tsm2r_mma")] {
                let asked = format!("{:?}", builder(&Device::cpu(), &p, shapes(&p)?, variant));
                assert!(asked.contains(&format!("reads_c: {reads_c}")), "beta {beta}: {asked}");
                assert_eq!(asked.contains("tsm2r_mma"), variant.is_some(), "{asked}");
                for splits in [false, true] {
                    let p = case.job().expect("it fits").split(splits).problem;
                    let asked = format!("{:?}", builder(&Device::cpu(), &p, shapes(&p)?, variant));
                    assert!(asked.contains(&format!("splits_f32: {splits}")), "{asked}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_launch_is_what_the_plan_chose() {
        // Few rows and a long k: it has to be cut.
        let problem = Problem::column_major(Dtype::F64, 128, 4, 1_000_000);
        let choice = choose(&problem, &Machine::H200, None).expect("it is served");
        let launch = Launch::of(&choice);
        assert!(launch.splits > 1, "{launch:?}");
        let json = serde_json::to_value(&launch).expect("it can");
        assert_eq!((&json["splits"], &json["grid"][1]), (&choice.splits.into(), &choice.grid[1].into()));
        assert_eq!((&json["threads"], &json["shared_bytes"]), (&choice.threads.into(), &choice.shared_bytes.into()));
    }
}
