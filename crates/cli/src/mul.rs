//! `lanky mul`: C = alpha op(A) op(B) + beta C0, from files to a file.

use lanky::{Plan, Scalar};

use crate::args::MulArgs;
use crate::error::Fault;
use crate::operand::{Operand, mismatch, mixed, result_shape};
use crate::output::Output;
use crate::product::{Destination, Done, bytes, for_element, load};
use crate::progress::Progress;
use crate::real::Real;

/// Runs the command.
pub fn run(args: &MulArgs) -> Result<(), Fault> {
    let job = Job::check(args)?;
    for_element!(job.a.dtype(), job.run(args))
}

/// Inputs that fit together.
struct Job {
    a: Operand,
    b: Operand,
    c: Destination,
    k: usize,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &MulArgs) -> Result<Self, Fault> {
        args.how.check()?;
        args.result.check(args.how.json)?;
        let a = Operand::open("A", &args.a, args.op_a.both(), |length| (1, length))?;
        let b = Operand::open("B", &args.b, args.op_b.both(), |length| (length, 1))?;
        let ((m, k), (b_rows, n)) = (a.lengths(), b.lengths());
        if a.dtype() != b.dtype() {
            return Err(mixed(&b.input, "B", &a));
        }
        if k != b_rows {
            return Err(mismatch(&a, &b));
        }
        let c = Destination::open(&args.result, &a, (m, n), result_shape(&a, &b))?;
        Ok(Self { a, b, c, k })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &MulArgs) -> Result<(), Fault> {
        let (alpha, beta) = args.result.factors::<T>()?;
        let mut output = Output::create(&args.result.output)?;
        let device = args.how.open()?;
        let plan = args.how.plan(Plan::gemm(&device, self.a.shape(), self.b.shape(), self.c.shape()))?;
        let stream = device.stream()?;
        let elements = self.a.elements().saturating_add(self.b.elements()).saturating_add(self.c.elements(beta));
        let progress = Progress::new("reading", bytes::<T>(elements));
        let mut c = self.c.room(&stream, beta, &progress)?;
        let a = load::<T>(&stream, &mut self.a, &progress)?;
        let b = load::<T>(&stream, &mut self.b, &progress)?;
        progress.compute("multiplying");
        plan.warm_up()?;
        let (a_view, b_view) = (self.a.of(a.view()), self.b.of(b.view()));
        let seconds = stream.timed(|| plan.run(&stream, alpha, a_view, b_view, beta, self.c.view(&mut c)))?;
        progress.transfer("writing");
        self.c.save(&stream, &c, &mut output, &progress)?;
        drop(progress);
        output.commit()?;
        self.c.report(&args.how, &device, &plan, Done { k: self.k, elements, seconds })
    }
}
