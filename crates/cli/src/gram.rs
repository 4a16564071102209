//! `lanky gram`: G = alpha A^H A + beta G0, from a file to a file.

use lanky::{Complex, Device, Layout, Matrix, Plan, Scalar, Shape, Stream};
use model::Dtype;

use crate::args::{Coefficient, GramArgs, check_variant};
use crate::device;
use crate::error::Fault;
use crate::mul::{load, save, upload};
use crate::npy::{Header, Input, Order};
use crate::operand::{Operand, open_c};
use crate::output::{Output, is_stdout};
use crate::progress::Progress;
use crate::real::Real;
use crate::say::{self, Product, float};

/// Runs the command.
pub fn run(args: &GramArgs) -> Result<(), Fault> {
    let job = Job::check(args)?;
    match job.a.dtype() {
        Dtype::F32 => job.run::<f32>(args),
        Dtype::F64 => job.run::<f64>(args),
        Dtype::C64 => job.run::<Complex<f32>>(args),
        Dtype::C128 => job.run::<Complex<f64>>(args),
    }
}

/// Inputs that fit together.
struct Job {
    a: Operand,
    c: Option<Input>,
    /// The header of the result.
    result: Header,
    k: usize,
    n: usize,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &GramArgs) -> Result<Self, Fault> {
        check_variant(args.how.variant.as_deref())?;
        if args.how.json && is_stdout(&args.output) {
            return Err(Fault::Input("G and --json cannot both go to standard output".into()));
        }
        // A factor of 0 asks for nothing.
        if let (Some(beta), None, false) = (&args.beta, &args.c, args.beta.as_ref().is_none_or(Coefficient::is_zero)) {
            return Err(Fault::Input(format!("--beta {beta} needs the matrix that it multiplies: --c G0.npy")));
        }
        let a =
            Operand::open("A", &args.a, (args.transpose_a, args.transpose_a && !args.no_conj), |length| (length, 1))?;
        let (k, n) = a.lengths();
        let wide = u64::try_from(n).unwrap_or(u64::MAX);
        let mut result = Header { dtype: a.dtype(), order: a.input.header().order, shape: vec![wide, wide] };
        let too_large = || Fault::at(&args.output, &format!("G would be {n} x {n}, larger than any memory"));
        result.elements().ok_or_else(too_large)?;
        let c = args.c.as_deref().map(|path| open_c(path, &a, &result)).transpose()?;
        // G is stored as G0 or else A is.
        if let Some(c) = &c {
            result.order = c.header().order;
        }
        Ok(Self { a, c, result, k, n })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &GramArgs) -> Result<(), Fault> {
        let alpha: T = args.alpha.get("--alpha")?;
        let beta: T = match (&args.beta, &self.c) {
            (Some(beta), Some(_)) => beta.get("--beta")?,
            (None, Some(_)) => T::one(),
            (_, None) => T::zero(),
        };
        let mut output = Output::create(&args.output)?;
        let device = device::open(args.how.device)?;
        device::check_variant(&device, args.how.device, args.how.variant.as_deref())?;
        let plan = self.plan(&device, args, beta != T::zero())?;
        let stream = device.stream()?;
        let progress = Progress::new("reading", self.bytes_to_move(beta != T::zero()));
        let mut c = self.c_matrix::<T>(&stream, beta, &progress)?;
        let a = load::<T>(&stream, &mut self.a, &progress)?;
        progress.compute("multiplying");
        plan.warm_up()?;
        let a_view = self.a.of(a.view());
        let by_rows = self.result.order == Order::C;
        let c_view = if by_rows { c.view_mut().t() } else { c.view_mut() };
        let seconds = stream.timed(|| plan.run_gram(&stream, alpha, a_view, beta, c_view))?;
        progress.transfer("writing");
        save(&stream, &c, &self.result, &mut output, &progress)?;
        drop(progress);
        output.commit()?;
        self.report(args, &device, &plan, seconds, beta != T::zero())
    }

    fn plan(&self, device: &Device, args: &GramArgs, reads_c: bool) -> Result<Plan, Fault> {
        let c = Shape::packed(self.n, self.n, self.result.order.layout(), self.result.dtype);
        let builder = Plan::gram(device, self.a.shape(), c);
        let builder = if reads_c { builder.reads_c() } else { builder };
        let builder = if args.no_conj { builder.no_conj() } else { builder };
        Ok(args.how.variant.as_deref().into_iter().fold(builder, |builder, name| builder.variant(name)).build()?)
    }

    /// G0, or room for G. A row-major G is the column-major transposed one, which is what is made.
    fn c_matrix<T: Scalar>(&mut self, stream: &Stream, beta: T, progress: &Progress) -> Result<Matrix<T>, Fault> {
        match &mut self.c {
            Some(c) if beta != T::zero() => upload(stream, c, self.n, self.n, Layout::ColumnMajor, progress),
            _ => Ok(stream.device().zeros(self.n, self.n)?),
        }
    }

    /// Elements of A, and of G as often as it is moved.
    fn elements(&self, reads_c: bool) -> f64 {
        float(self.a.elements()) + if reads_c { 2.0 } else { 1.0 } * float(self.n) * float(self.n)
    }

    /// Of the files, to the device and from it.
    fn bytes_to_move(&self, reads_c: bool) -> u64 {
        let g = self.n.saturating_mul(self.n).saturating_mul(if reads_c { 2 } else { 1 });
        u64::try_from(self.a.elements().saturating_add(g)).unwrap_or(u64::MAX).saturating_mul(self.result.dtype.bytes())
    }

    /// The result's line, on standard output as JSON, else on standard error: G itself may go to standard output.
    fn report(&self, args: &GramArgs, device: &Device, plan: &Plan, seconds: f64, reads_c: bool) -> Result<(), Fault> {
        let product = Product {
            device: device::name(device),
            operation: plan.operation().to_string(),
            variant: plan.variant().to_string(),
            dtype: self.result.dtype.name(),
            m: self.n,
            n: self.n,
            k: self.k,
            seconds,
            gbs: say::gbs(self.elements(reads_c) * self.result.dtype.bytes() as f64, seconds),
        };
        // All can still fail until here, and a failure is to leave one line alone on standard error.
        if args.how.json {
            say::print_json(&product)?;
        }
        say::note(&device::line(device));
        if !args.how.json {
            say::note(&format!("{}\n{}   {}", product.headline(), product.variant, product.speed()));
        }
        Ok(())
    }
}
