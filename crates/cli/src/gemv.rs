//! `lanky gemv`: C = alpha op(A) x + beta C0, of which C has one column, from files to a file.

use lanky::{Device, Plan, PlanBuilder, Scalar};

use crate::args::GemvArgs;
use crate::error::Fault;
use crate::operand::{Operand, mixed};
use crate::output::Output;
use crate::product::{Destination, Done, bytes, for_element, load};
use crate::progress::Progress;
use crate::real::Real;

/// Runs the command.
pub fn run(args: &GemvArgs) -> Result<(), Fault> {
    let job = Job::check(args)?;
    for_element!(job.a.dtype(), job.run(args))
}

/// Inputs that fit together.
struct Job {
    a: Operand,
    x: Operand,
    c: Destination,
    k: usize,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &GemvArgs) -> Result<Self, Fault> {
        args.how.check()?;
        args.result.check(args.how.json)?;
        let ops = args.op_a.both();
        let a = Operand::open("A", &args.a, ops, |length| (1, length))?;
        let mut x = Operand::open("x", &args.x, (false, false), |length| (length, 1))?;
        if a.dtype() != x.dtype() {
            return Err(mixed(&x.input, "x", &a));
        }
        // A matrix of one row is a vector too.
        x.transposed = x.rows == 1 && x.cols != 1;
        let ((m, k), (length, cols)) = (a.lengths(), x.lengths());
        if cols != 1 {
            let text = format!("x is {length} x {cols}, not a vector: lanky mul multiplies by matrices");
            return Err(Fault::at(&args.x, &text));
        }
        if length != k {
            let text = format!("x has {length} elements, but {}: x needs {k}", a.words());
            return Err(Fault::at(&args.x, &text));
        }
        let c = Destination::open(&args.result, &a, (m, 1), vec![u64::try_from(m).unwrap_or(u64::MAX)])?;
        Ok(Self { a, x, c, k })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &GemvArgs) -> Result<(), Fault> {
        let (alpha, beta) = args.result.factors::<T>()?;
        let mut output = Output::create(&args.result.output)?;
        let device = args.how.open()?;
        let plan = args.how.plan(self.builder(&device, beta != T::zero()))?;
        let stream = device.stream()?;
        let elements = self.a.elements().saturating_add(self.x.elements()).saturating_add(self.c.elements(beta));
        let progress = Progress::new("reading", bytes::<T>(elements));
        let mut c = self.c.room(&stream, beta, &progress)?;
        let a = load::<T>(&stream, &mut self.a, &progress)?;
        let x = load::<T>(&stream, &mut self.x, &progress)?;
        progress.compute("multiplying");
        plan.warm_up()?;
        let (a_view, x_view) = (self.a.of(a.view()), self.x.of(x.view()));
        let seconds = stream.timed(|| plan.run_gemv(&stream, alpha, a_view, x_view, beta, self.c.view(&mut c)))?;
        progress.transfer("writing");
        self.c.save(&stream, &c, &mut output, &progress)?;
        drop(progress);
        output.commit()?;
        self.c.report(&args.how, &device, &plan, Done { k: self.k, elements, seconds })
    }

    fn builder(&self, device: &Device, reads_c: bool) -> PlanBuilder {
        let builder = Plan::gemv(device, self.a.shape(), self.x.shape(), self.c.shape());
        if reads_c { builder.reads_c() } else { builder }
    }
}
