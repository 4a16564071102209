//! `lanky gemv`: y = alpha op(A) x + beta y0, from files to a file.

use lanky::{Complex, Device, Layout, Matrix, Plan, Scalar, Shape, Stream};
use model::Dtype;

use crate::args::{Coefficient, GemvArgs, check_variant};
use crate::device;
use crate::error::Fault;
use crate::mul::{load, save, upload};
use crate::npy::{Header, Input, Order};
use crate::operand::{Operand, mixed};
use crate::output::{Output, is_stdout};
use crate::progress::Progress;
use crate::real::Real;
use crate::say::{self, Product, float};

/// Runs the command.
pub fn run(args: &GemvArgs) -> Result<(), Fault> {
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
    x: Operand,
    y: Option<Input>,
    /// The header of the result: one axis.
    result: Header,
    m: usize,
    k: usize,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &GemvArgs) -> Result<Self, Fault> {
        check_variant(args.how.variant.as_deref())?;
        if args.how.json && is_stdout(&args.output) {
            return Err(Fault::Input("y and --json cannot both go to standard output".into()));
        }
        // A factor of 0 asks for nothing.
        if let (Some(beta), None, false) = (&args.beta, &args.y, args.beta.as_ref().is_none_or(Coefficient::is_zero)) {
            return Err(Fault::Input(format!("--beta {beta} needs the vector that it multiplies: --y y0.npy")));
        }
        let ops = (args.transpose_a || args.adjoint_a, args.adjoint_a);
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
            let text = format!("x has {length} elements, but {} x {k}: x needs {k}", of_a(&a, m));
            return Err(Fault::at(&args.x, &text));
        }
        let wide = u64::try_from(m).unwrap_or(u64::MAX);
        let result = Header { dtype: a.dtype(), order: Order::C, shape: vec![wide] };
        let y = args.y.as_deref().map(Input::open).transpose()?;
        if let Some(y) = &y {
            if y.header().dtype != a.dtype() {
                return Err(mixed(y, "y0", &a));
            }
            if y.header().shape != result.shape {
                let axes: Vec<String> = y.header().shape.iter().map(u64::to_string).collect();
                let found = if axes.is_empty() { "a single number".to_string() } else { axes.join(" x ") };
                return Err(Fault::at(y.path(), &format!("y0 is {found}, but y is a vector of {m}")));
            }
        }
        Ok(Self { a, x, y, result, m, k })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &GemvArgs) -> Result<(), Fault> {
        let alpha: T = args.alpha.get("--alpha")?;
        let beta: T = match (&args.beta, &self.y) {
            (Some(beta), Some(_)) => beta.get("--beta")?,
            (None, Some(_)) => T::one(),
            (_, None) => T::zero(),
        };
        let reads_y = beta != T::zero();
        let mut output = Output::create(&args.output)?;
        let device = device::open(args.how.device)?;
        device::check_variant(&device, args.how.device, args.how.variant.as_deref())?;
        let plan = self.plan(&device, args.how.variant.as_deref(), reads_y)?;
        let stream = device.stream()?;
        let progress = Progress::new("reading", self.bytes_to_move(reads_y));
        let mut y = self.y_matrix::<T>(&stream, reads_y, &progress)?;
        let a = load::<T>(&stream, &mut self.a, &progress)?;
        let x = load::<T>(&stream, &mut self.x, &progress)?;
        progress.compute("multiplying");
        plan.warm_up()?;
        let (a_view, x_view) = (self.a.of(a.view()), self.x.of(x.view()));
        let seconds = stream.timed(|| plan.run_gemv(&stream, alpha, a_view, x_view, beta, y.view_mut()))?;
        progress.transfer("writing");
        save(&stream, &y, &self.result, &mut output, &progress)?;
        drop(progress);
        output.commit()?;
        self.report(args, &device, &plan, seconds, reads_y)
    }

    fn plan(&self, device: &Device, variant: Option<&str>, reads_y: bool) -> Result<Plan, Fault> {
        let y = Shape::packed(self.m, 1, Layout::ColumnMajor, self.result.dtype);
        let builder = Plan::gemv(device, self.a.shape(), self.x.shape(), y);
        let builder = if reads_y { builder.reads_c() } else { builder };
        Ok(variant.into_iter().fold(builder, |builder, name| builder.variant(name)).build()?)
    }

    /// y0, or room for y.
    fn y_matrix<T: Scalar>(&mut self, stream: &Stream, reads_y: bool, progress: &Progress) -> Result<Matrix<T>, Fault> {
        match &mut self.y {
            Some(y) if reads_y => upload(stream, y, self.m, 1, Layout::ColumnMajor, progress),
            _ => Ok(stream.device().zeros(self.m, 1)?),
        }
    }

    /// Of the files, to the device and from it.
    fn bytes_to_move(&self, reads_y: bool) -> u64 {
        let y = self.m.saturating_mul(if reads_y { 2 } else { 1 });
        let elements = self.a.elements().saturating_add(self.x.elements()).saturating_add(y);
        u64::try_from(elements).unwrap_or(u64::MAX).saturating_mul(self.result.dtype.bytes())
    }

    /// The result's line, on standard output as JSON, else on standard error: y itself may go to standard output.
    fn report(&self, args: &GemvArgs, device: &Device, plan: &Plan, seconds: f64, reads_y: bool) -> Result<(), Fault> {
        let y_moves = if reads_y { 2.0 } else { 1.0 };
        let elements = float(self.a.elements()) + float(self.k) + y_moves * float(self.m);
        let product = Product {
            device: device::name(device),
            operation: plan.operation().to_string(),
            variant: plan.variant().to_string(),
            dtype: self.result.dtype.name(),
            m: self.m,
            n: 1,
            k: self.k,
            seconds,
            gbs: say::gbs(elements * self.result.dtype.bytes() as f64, seconds),
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

/// `A is 3`, `A transposed is 3`: the rest is k.
fn of_a(a: &Operand, m: usize) -> String {
    match (a.transposed, a.conj) {
        (_, true) => format!("the adjoint of A is {m}"),
        (true, _) => format!("A transposed is {m}"),
        _ => format!("A is {m}"),
    }
}
