//! `lanky gram`: C = alpha A^H A + beta C0, from a file to a file.

use lanky::{Device, Plan, PlanBuilder, Scalar};

use crate::args::GramArgs;
use crate::error::Fault;
use crate::operand::Operand;
use crate::output::Output;
use crate::product::{Destination, Done, bytes, for_element, load};
use crate::progress::Progress;
use crate::real::Real;

/// Runs the command.
pub fn run(args: &GramArgs) -> Result<(), Fault> {
    let job = Job::check(args)?;
    for_element!(job.a.dtype(), job.run(args))
}

/// Inputs that fit together.
struct Job {
    a: Operand,
    c: Destination,
    k: usize,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &GramArgs) -> Result<Self, Fault> {
        args.how.check()?;
        args.result.check(args.how.json)?;
        let a =
            Operand::open("A", &args.a, (args.transpose_a, args.transpose_a && !args.no_conj), |length| (length, 1))?;
        let (k, n) = a.lengths();
        let wide = u64::try_from(n).unwrap_or(u64::MAX);
        let c = Destination::open(&args.result, &a, (n, n), vec![wide, wide])?;
        Ok(Self { a, c, k })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &GramArgs) -> Result<(), Fault> {
        let (alpha, beta) = args.result.factors::<T>()?;
        let mut output = Output::create(&args.result.output)?;
        let device = args.how.open()?;
        let plan = args.how.plan(self.builder(&device, args, beta != T::zero()))?;
        let stream = device.stream()?;
        let elements = self.a.elements().saturating_add(self.c.elements(beta));
        let progress = Progress::new("reading", bytes::<T>(elements));
        let mut c = self.c.room(&stream, beta, &progress)?;
        let a = load::<T>(&stream, &mut self.a, &progress)?;
        progress.compute("multiplying");
        plan.warm_up()?;
        let a_view = self.a.of(a.view());
        let seconds = stream.timed(|| plan.run_gram(&stream, alpha, a_view, beta, self.c.view(&mut c)))?;
        progress.transfer("writing");
        self.c.save(&stream, &c, &mut output, &progress)?;
        drop(progress);
        output.commit()?;
        self.c.report(&args.how, &device, &plan, Done { k: self.k, elements, seconds })
    }

    fn builder(&self, device: &Device, args: &GramArgs, reads_c: bool) -> PlanBuilder {
        let builder = Plan::gram(device, self.a.shape(), self.c.shape());
        let builder = if reads_c { builder.reads_c() } else { builder };
        if args.no_conj { builder.no_conj() } else { builder }
    }
}
