//! `lanky mul`: C = alpha op(A) op(B) + beta C0, from files to a file.

use std::cell::RefCell;
use std::io::{self, Write};

use lanky::{Complex, Device, Layout, Matrix, Plan, Scalar, Shape, Stream};
use model::Dtype;

use crate::args::{Coefficient, MulArgs, check_variant};
use crate::device;
use crate::error::Fault;
use crate::npy::{self, Header, Input, Order};
use crate::operand::{Operand, mismatch, mixed, open_c, result_shape};
use crate::output::{Output, is_stdout};
use crate::progress::Progress;
use crate::real::Real;
use crate::say::{self, Product, float};

/// Runs the command.
pub fn run(args: &MulArgs) -> Result<(), Fault> {
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
    b: Operand,
    c: Option<Input>,
    /// The header of the result.
    result: Header,
    m: usize,
    n: usize,
    k: usize,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &MulArgs) -> Result<Self, Fault> {
        check_variant(args.how.variant.as_deref())?;
        if args.how.json && is_stdout(&args.output) {
            return Err(Fault::Input("C and --json cannot both go to standard output".into()));
        }
        // A factor of 0 asks for nothing.
        if let (Some(beta), None, false) = (&args.beta, &args.c, args.beta.as_ref().is_none_or(Coefficient::is_zero)) {
            return Err(Fault::Input(format!("--beta {beta} needs the matrix that it multiplies: --c C0.npy")));
        }
        let a =
            Operand::open("A", &args.a, (args.transpose_a || args.adjoint_a, args.adjoint_a), |length| (1, length))?;
        let b =
            Operand::open("B", &args.b, (args.transpose_b || args.adjoint_b, args.adjoint_b), |length| (length, 1))?;
        let ((m, k), (b_rows, n)) = (a.lengths(), b.lengths());
        if a.dtype() != b.dtype() {
            return Err(mixed(&b.input, "B", &a));
        }
        if k != b_rows {
            return Err(mismatch(&a, &b));
        }
        let mut result = Header { dtype: a.dtype(), order: Order::C, shape: result_shape(&a, &b) };
        let too_large = || Fault::at(&args.output, &format!("C would be {m} x {n}, larger than any memory"));
        result.elements().ok_or_else(too_large)?;
        let c = args.c.as_deref().map(|path| open_c(path, &a, &result)).transpose()?;
        // C is stored as C0 or else A is, so that a chain of products stays in one order; one axis has no order.
        if result.shape.len() == 2 {
            result.order = c.as_ref().map_or(a.input.header().order, |c| c.header().order);
        }
        Ok(Self { a, b, c, result, m, n, k })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &MulArgs) -> Result<(), Fault> {
        let alpha: T = args.alpha.get("--alpha")?;
        let beta: T = match (&args.beta, &self.c) {
            (Some(beta), Some(_)) => beta.get("--beta")?,
            (None, Some(_)) => T::one(),
            (_, None) => T::zero(),
        };
        let mut output = Output::create(&args.output)?;
        let device = device::open(args.how.device)?;
        device::check_variant(&device, args.how.device, args.how.variant.as_deref())?;
        let plan = self.plan(&device, args.how.variant.as_deref())?;
        let stream = device.stream()?;
        let progress = Progress::new("reading", self.bytes_to_move(beta != T::zero()));
        let mut c = self.c_matrix::<T>(&stream, beta, &progress)?;
        let a = load::<T>(&stream, &mut self.a, &progress)?;
        let b = load::<T>(&stream, &mut self.b, &progress)?;
        progress.compute("multiplying");
        plan.warm_up()?;
        let (a_view, b_view) = (self.a.of(a.view()), self.b.of(b.view()));
        let by_rows = self.result.order == Order::C;
        let c_view = if by_rows { c.view_mut().t() } else { c.view_mut() };
        let seconds = stream.timed(|| plan.run(&stream, alpha, a_view, b_view, beta, c_view))?;
        progress.transfer("writing");
        save(&stream, &c, &self.result, &mut output, &progress)?;
        drop(progress);
        output.commit()?;
        self.report(args, &device, &plan, seconds, beta != T::zero())
    }

    fn plan(&self, device: &Device, variant: Option<&str>) -> Result<Plan, Fault> {
        let c = Shape::packed(self.m, self.n, self.result.order.layout(), self.result.dtype);
        let builder = Plan::gemm(device, self.a.shape(), self.b.shape(), c);
        let builder = match variant {
            Some(name) => builder.variant(name),
            None => builder,
        };
        Ok(builder.build()?)
    }

    /// C0, or room for C. A row-major C is the column-major transposed one, which is what is made.
    fn c_matrix<T: Scalar>(&mut self, stream: &Stream, beta: T, progress: &Progress) -> Result<Matrix<T>, Fault> {
        let (rows, cols) = if self.result.order == Order::C { (self.n, self.m) } else { (self.m, self.n) };
        match &mut self.c {
            Some(c) if beta != T::zero() => upload(stream, c, rows, cols, Layout::ColumnMajor, progress),
            _ => Ok(stream.device().zeros(rows, cols)?),
        }
    }

    /// Of the files, to the device and from it.
    fn bytes_to_move(&self, reads_c: bool) -> u64 {
        let elements = self.a.elements() + self.b.elements() + self.m * self.n * if reads_c { 2 } else { 1 };
        u64::try_from(elements).unwrap_or(u64::MAX).saturating_mul(self.result.dtype.bytes())
    }

    /// The result's line, on standard output as JSON, else on standard error: C itself may go to standard output.
    fn report(&self, args: &MulArgs, device: &Device, plan: &Plan, seconds: f64, reads_c: bool) -> Result<(), Fault> {
        let c_moves = if reads_c { 2.0 } else { 1.0 };
        let elements = float(self.a.elements()) + float(self.b.elements()) + c_moves * float(self.m) * float(self.n);
        let product = Product {
            device: device::name(device),
            operation: plan.operation().to_string(),
            variant: plan.variant().to_string(),
            dtype: self.result.dtype.name(),
            m: self.m,
            n: self.n,
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

pub fn load<T: Scalar>(stream: &Stream, operand: &mut Operand, progress: &Progress) -> Result<Matrix<T>, Fault> {
    let layout = operand.input.header().order.layout();
    upload(stream, &mut operand.input, operand.rows, operand.cols, layout, progress)
}

/// Reads the file straight into the buffers that are sent.
pub fn upload<T: Scalar>(
    stream: &Stream,
    input: &mut Input,
    rows: usize,
    cols: usize,
    layout: Layout,
    progress: &Progress,
) -> Result<Matrix<T>, Fault> {
    let failed = RefCell::new(None);
    let mut fill = |elements: &mut [T]| {
        progress.advance(size_of_val(elements));
        input.fill(elements).map_err(|error| keep(&failed, Fault::file(input.path(), &error), error))
    };
    let matrix = stream.device().upload_with(stream, rows, cols, layout, &mut fill);
    matrix.map_err(|error| failed.take().unwrap_or_else(|| error.into()))
}

/// Writes the header and the elements as they come from the device.
pub fn save<T: Scalar>(
    stream: &Stream,
    c: &Matrix<T>,
    header: &Header,
    output: &mut Output,
    progress: &Progress,
) -> Result<(), Fault> {
    output.write_all(&npy::header_bytes(header)).map_err(|error| output.fault(&error))?;
    let failed = RefCell::new(None);
    let mut sink = |elements: &[T]| {
        progress.advance(size_of_val(elements));
        output.write_all(&npy::as_bytes(elements)).map_err(|error| keep(&failed, output.fault(&error), error))
    };
    let sent = c.download_with(stream, Layout::ColumnMajor, &mut sink);
    sent.map_err(|error| failed.take().unwrap_or_else(|| error.into()))
}

/// Remembers the fault of the file, which the library's error does not know.
fn keep(failed: &RefCell<Option<Fault>>, fault: Fault, error: io::Error) -> io::Error {
    *failed.borrow_mut() = Some(fault);
    error
}
