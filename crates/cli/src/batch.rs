//! `lanky batch`: C_i = alpha op(A_i) op(B_i) + beta C0_i, from files of three axes to a file.

use std::io::Write;

use lanky::{BatchMut, BatchRef, Device, MatRef, Scalar, Stream, gemm_batched};
use model::Dtype;
use serde::Serialize;

use crate::args::BatchArgs;
use crate::device;
use crate::error::Fault;
use crate::memory::room;
use crate::npy::{self, Header, Input, Order};
use crate::output::Output;
use crate::product::for_element;
use crate::progress::Progress;
use crate::real::Real;
use crate::say::{self, float};

/// Elements that are read or written at a time.
const PIECE: usize = 1 << 20;

/// Runs the command.
pub fn run(args: &BatchArgs) -> Result<(), Fault> {
    let job = Job::check(args)?;
    for_element!(job.a.dtype(), job.run(args))
}

/// An input: matrices along the first axis, or one for all products.
struct Operand {
    letter: &'static str,
    input: Input,
    /// `None`: one matrix serves all products.
    count: Option<usize>,
    /// As stored.
    rows: usize,
    cols: usize,
    transposed: bool,
    conj: bool,
}

impl Operand {
    fn open(letter: &'static str, input: Input, (transposed, conj): (bool, bool)) -> Result<Self, Fault> {
        let narrow =
            |length| usize::try_from(length).map_err(|_| Fault::at(input.path(), "it is larger than any memory"));
        let (count, rows, cols) = match *input.header().shape.as_slice() {
            [count, rows, cols] => (Some(narrow(count)?), narrow(rows)?, narrow(cols)?),
            [rows, cols] => (None, narrow(rows)?, narrow(cols)?),
            ref shape => {
                let axes = match shape.len() {
                    0 => "no axis".to_owned(),
                    1 => "one axis".to_owned(),
                    axes => format!("{axes} axes"),
                };
                let text = format!("it has {axes}: {letter} needs three, the batch first, or two for a shared matrix");
                return Err(Fault::at(input.path(), &text));
            }
        };
        Ok(Self { letter, count, rows, cols, transposed, conj, input })
    }

    fn dtype(&self) -> Dtype {
        self.input.header().dtype
    }

    /// Rows and columns as the product sees them.
    fn lengths(&self) -> (usize, usize) {
        if self.transposed { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    /// `B is 10 of 3 x 4`, `A transposed is 3 x 4, for all products`.
    fn words(&self) -> String {
        let (rows, cols) = self.lengths();
        let (before, behind) = match (self.transposed, self.conj) {
            (true, true) => ("the adjoint of ", ""),
            (true, false) => ("", " transposed"),
            _ => ("", ""),
        };
        let (of, shared) = match self.count {
            Some(count) => (format!("{count} of "), ""),
            None => (String::new(), ", for all products"),
        };
        format!("{before}{}{behind} is {of}{rows} x {cols}{shared}", self.letter)
    }

    fn elements(&self) -> usize {
        self.rows.saturating_mul(self.cols).saturating_mul(self.count.unwrap_or(1))
    }

    /// From a matrix to the next, and the strides of each.
    fn steps(&self) -> (usize, (usize, usize)) {
        let (rows, cols) = (self.rows, self.cols);
        let stored = self.count.unwrap_or(1);
        let (batch, strides) = match self.input.header().order {
            Order::C => (rows * cols, (cols, 1)),
            // The first axis, that of the batch, runs fastest.
            Order::Fortran => (1, (stored, stored * rows)),
        };
        (if self.count.is_some() { batch } else { 0 }, strides)
    }

    /// What the products take of the elements.
    fn view<'d, T: Scalar>(&self, data: &'d [T], count: usize) -> Result<BatchRef<'d, T>, Fault> {
        let (step, strides) = self.steps();
        Ok(self.taken(BatchRef::with_strides(data, count, step, (self.rows, self.cols), strides)?))
    }

    /// The same of elements that a device has from an address on.
    ///
    /// # Safety
    /// The device has all elements of the file there, till the work that is given the view has ended.
    unsafe fn placed<T: Scalar>(
        &self,
        device: &Device,
        address: u64,
        count: usize,
    ) -> lanky::Result<BatchRef<'static, T>> {
        let (step, strides) = self.steps();
        // SAFETY: the device has `count` matrices of the file from `address` on until the work has ended, as the caller
        // promised.
        let view = unsafe { BatchRef::from_raw(device, address, count, step, (self.rows, self.cols), strides)? };
        Ok(self.taken(view))
    }

    fn taken<'d, T: Scalar>(&self, view: BatchRef<'d, T>) -> BatchRef<'d, T> {
        let view = if self.transposed { view.t() } else { view };
        if self.conj { view.conj() } else { view }
    }
}

/// Inputs that fit together.
struct Job {
    a: Operand,
    b: Operand,
    c: Option<Operand>,
    result: Header,
    count: usize,
    m: usize,
    n: usize,
    k: usize,
}

/// The object of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    device: String,
    operation: &'static str,
    dtype: &'static str,
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    /// Of the products alone, without the files.
    seconds: f64,
    gbs: f64,
}

impl Job {
    /// Opens all inputs, and finds every fault that needs no device.
    fn check(args: &BatchArgs) -> Result<Self, Fault> {
        args.result.check(args.json)?;
        let a = Operand::open("A", Input::open(&args.a)?, args.op_a.both())?;
        let b = Operand::open("B", Input::open(&args.b)?, args.op_b.both())?;
        if a.dtype() != b.dtype() {
            let text = format!("B is {}, but A is {}: both must be of one type", b.dtype(), a.dtype());
            return Err(Fault::at(&args.b, &text));
        }
        let ((m, k), (b_rows, n)) = (a.lengths(), b.lengths());
        if k != b_rows {
            let text = format!("{}, but {}: B needs {k} rows", b.words(), a.words());
            return Err(Fault::at(&args.b, &text));
        }
        let count = match (a.count, b.count) {
            (Some(a_count), Some(b_count)) if a_count != b_count => {
                let text = format!("{}, but {}: B needs {a_count} matrices, or one for all", b.words(), a.words());
                return Err(Fault::at(&args.b, &text));
            }
            (Some(count), _) | (None, Some(count)) => count,
            (None, None) => {
                let text = "neither A nor B has three axes: lanky mul multiplies two matrices";
                return Err(Fault::at(&args.b, text));
            }
        };
        let shape = [count, m, n].map(|length| u64::try_from(length).unwrap_or(u64::MAX)).to_vec();
        let result = Header { dtype: a.dtype(), order: Order::C, shape };
        let too_large =
            || Fault::at(&args.result.output, &format!("C would be {count} x {m} x {n}, larger than any memory"));
        result.elements().ok_or_else(too_large)?;
        let c = args.result.c.as_deref().map(|path| crate::operand::open_typed_c(path, &result)).transpose()?;
        let c = c.map(|input| Operand::open("C0", input, (false, false))).transpose()?;
        Ok(Self { a, b, c, result, count, m, n, k })
    }

    fn run<T: Scalar<Real: Real>>(mut self, args: &BatchArgs) -> Result<(), Fault> {
        let (alpha, beta) = args.result.factors::<T>()?;
        let reads_c = beta != T::zero();
        let mut output = Output::create(&args.result.output)?;
        let device = device::open(args.device)?;
        let stream = device.stream()?;
        let elements = self.a.elements() + self.b.elements() + self.c_elements() * if reads_c { 2 } else { 1 };
        let bytes = float(elements) * self.result.dtype.bytes() as f64;
        let progress = Progress::new("reading", u64::try_from(elements * size_of::<T>()).unwrap_or(u64::MAX));
        let a = read::<T>(&mut self.a, &progress)?;
        let b = read::<T>(&mut self.b, &progress)?;
        let mut c = self.c_data::<T>(reads_c, &progress)?;
        progress.compute("multiplying");
        let seconds = if device.is_cuda() {
            self.on_gpu(&stream, (alpha, beta), (&a, &b), &mut c)?
        } else {
            let (a_view, b_view) = (self.a.view(&a, self.count)?, self.b.view(&b, self.count)?);
            let c_view = BatchMut::row_major(&mut c, self.count, self.m, self.n)?;
            stream.timed(|| gemm_batched(&stream, alpha, a_view, b_view, beta, c_view))?
        };
        progress.transfer("writing");
        output.write_all(&npy::header_bytes(&self.result)).map_err(|error| output.fault(&error))?;
        for piece in c.chunks(PIECE) {
            output.write_all(&npy::as_bytes(piece)).map_err(|error| output.fault(&error))?;
            progress.advance(size_of_val(piece));
        }
        drop(progress);
        output.commit()?;
        self.report(args, &device, seconds, bytes)
    }

    /// The same on a GPU: C's elements come back in order; seconds of the second of two runs, the first of which loads the
    /// kernel.
    fn on_gpu<T: Scalar<Real: Real>>(
        &self,
        stream: &Stream,
        (alpha, beta): (T, T),
        (a, b): (&[T], &[T]),
        c: &mut [T],
    ) -> Result<f64, Fault> {
        let device = stream.device();
        let sent = |data: &[T]| device.upload(stream, MatRef::column_major(data, data.len(), 1)?);
        let (a, b) = (sent(a)?, sent(b)?);
        let mut seconds = 0.0;
        for run in 0..2 {
            let mut out = sent(c)?;
            let (at_a, at_b) = (a.view().as_raw(), b.view().as_raw());
            // SAFETY: they have all elements of the files, and live till the work is done.
            let (a, b) = unsafe { (self.a.placed(device, at_a, self.count), self.b.placed(device, at_b, self.count)) };
            let strides = (self.n, 1);
            let result = out.view_mut();
            // SAFETY: the matrix has all elements of C, and lives till it was downloaded.
            let batch = unsafe {
                BatchMut::from_raw(device, result.as_raw(), self.count, self.m * self.n, (self.m, self.n), strides)?
            };
            seconds = stream.timed(|| gemm_batched(stream, alpha, a?, b?, beta, batch))?;
            if run == 1 {
                let found = device.download(stream, result.as_ref())?;
                c.copy_from_slice(found.as_slice().unwrap_or_default());
            }
        }
        Ok(seconds)
    }

    fn c_elements(&self) -> usize {
        self.count.saturating_mul(self.m).saturating_mul(self.n)
    }

    /// C0 in the order of C, or room for C.
    fn c_data<T: Scalar>(&mut self, reads_c: bool, progress: &Progress) -> Result<Vec<T>, Fault> {
        let len = self.c_elements();
        let (count, m, n) = (self.count, self.m, self.n);
        match &mut self.c {
            Some(c) if reads_c => {
                let stored = read::<T>(c, progress)?;
                if c.input.header().order == Order::C {
                    return Ok(stored);
                }
                let mut data = room(len)?;
                data.extend((0..len).map(|at| {
                    let (matrix, i, j) = (at / (m * n), at / n % m, at % n);
                    stored[matrix + count * (i + m * j)]
                }));
                Ok(data)
            }
            _ => {
                let mut data = room(len)?;
                data.resize(len, T::zero());
                Ok(data)
            }
        }
    }

    /// The result's line, on standard output as JSON, else on standard error: C itself may go to standard output.
    fn report(&self, args: &BatchArgs, device: &lanky::Device, seconds: f64, bytes: f64) -> Result<(), Fault> {
        let Self { count, m, n, k, .. } = *self;
        let (dtype, gbs) = (self.result.dtype.name(), say::gbs(bytes, seconds));
        if args.json {
            let (device, operation) = (device::name(device), "gemm_batched");
            say::print_json(&Report { device, operation, dtype, batch: count, m, n, k, seconds, gbs })?;
        }
        say::note(&device::line(device));
        if !args.json {
            let headline = format!("{count} products   {dtype}   A {m} x {k}   B {k} x {n}   C {m} x {n}");
            say::note(&format!("{headline}\n{}   {}", say::time(seconds), say::rate(gbs)));
        }
        Ok(())
    }
}

/// All elements of a file, in its order.
fn read<T: Scalar>(operand: &mut Operand, progress: &Progress) -> Result<Vec<T>, Fault> {
    let len = operand.elements();
    let mut data = room::<T>(len)?;
    data.resize(len, T::zero());
    for piece in data.chunks_mut(PIECE) {
        let failed = operand.input.fill(piece);
        failed.map_err(|error| Fault::file(operand.input.path(), &error))?;
        progress.advance(size_of_val(piece));
    }
    Ok(data)
}
