//! What the commands that multiply have in common: C and its factors, the way of matrices from files to a device and back,
//! and the line at the end.

use std::cell::RefCell;
use std::io::{self, Write};

use lanky::{Determinism, Device, Layout, MatMut, Matrix, Plan, PlanBuilder, Scalar, Shape, Stream};

use crate::args::{Coefficient, HowArgs, ResultArgs, check_variant};
use crate::device;
use crate::error::Fault;
use crate::npy::{self, Header, Input, Order};
use crate::operand::{Operand, open_c};
use crate::output::{Output, is_stdout};
use crate::progress::Progress;
use crate::real::Real;
use crate::say::{self, Product, float};

/// Calls a function for the element type of its first argument.
macro_rules! for_element {
    ($dtype:expr, $job:ident.$run:ident($($arg:expr),*)) => {
        match $dtype {
            model::Dtype::F32 => $job.$run::<f32>($($arg),*),
            model::Dtype::F64 => $job.$run::<f64>($($arg),*),
            model::Dtype::C64 => $job.$run::<lanky::Complex<f32>>($($arg),*),
            model::Dtype::C128 => $job.$run::<lanky::Complex<f64>>($($arg),*),
        }
    };
}
pub(crate) use for_element;

impl ResultArgs {
    /// Finds what is wrong with them, without a file.
    pub fn check(&self, json: bool) -> Result<(), Fault> {
        if json && is_stdout(&self.output) {
            return Err(Fault::Input("C and --json cannot both go to standard output".into()));
        }
        match (&self.beta, &self.c) {
            // A factor of 0 asks for nothing.
            (Some(beta), None) if !Coefficient::is_zero(beta) => {
                Err(Fault::Input(format!("--beta {beta} needs the matrix that it multiplies: --c C0.npy")))
            }
            _ => Ok(()),
        }
    }

    /// α and β.
    pub fn factors<T: Scalar<Real: Real>>(&self) -> Result<(T, T), Fault> {
        let beta = match (&self.beta, &self.c) {
            (Some(beta), Some(_)) => beta.get("--beta")?,
            (None, Some(_)) => T::one(),
            (_, None) => T::zero(),
        };
        Ok((self.alpha.get("--alpha")?, beta))
    }
}

impl HowArgs {
    /// Finds what is wrong with the variant's name.
    pub fn check(&self) -> Result<(), Fault> {
        check_variant(self.variant.as_deref())
    }

    /// The device, which has the variant if one is named.
    pub fn open(&self) -> Result<Device, Fault> {
        let device = device::open(self.device)?;
        device::check_variant(&device, self.device, self.variant.as_deref())?;
        Ok(device)
    }

    /// The plan that is asked for.
    pub fn plan(&self, builder: PlanBuilder) -> Result<Plan, Fault> {
        Ok(self.told(builder).build()?)
    }

    fn told(&self, builder: PlanBuilder) -> PlanBuilder {
        let determinism = if self.across_gpus { Determinism::AcrossGpus } else { Determinism::OneGpu };
        let builder = builder.determinism(determinism);
        let builder = if self.split_f32 { builder.split_f32() } else { builder };
        self.variant.iter().fold(builder, |builder, name| builder.variant(name))
    }
}

/// C: what it is computed from, and what will be in its file.
pub struct Destination {
    c0: Option<Input>,
    header: Header,
    rows: usize,
    cols: usize,
}

impl Destination {
    /// Opens C0, if it is named. C is stored as C0 or else A is, so that a chain of products stays in one order.
    pub fn open(args: &ResultArgs, a: &Operand, (rows, cols): (usize, usize), shape: Vec<u64>) -> Result<Self, Fault> {
        let mut header = Header { dtype: a.dtype(), order: Order::C, shape };
        let too_large = || Fault::at(&args.output, &format!("C would be {rows} x {cols}, larger than any memory"));
        header.elements().ok_or_else(too_large)?;
        let c0 = args.c.as_deref().map(|path| open_c(path, a, &header)).transpose()?;
        // One axis has no order.
        if header.shape.len() == 2 {
            header.order = c0.as_ref().map_or(a.input.header().order, |c0| c0.header().order);
        }
        Ok(Self { c0, header, rows, cols })
    }

    /// The shape that the plan is made for.
    pub fn shape(&self) -> Shape {
        Shape::packed(self.rows, self.cols, self.header.order.layout(), self.header.dtype)
    }

    fn is_by_rows(&self) -> bool {
        self.header.order == Order::C
    }

    /// C0, or room for C. A row-major C is the column-major transposed one, which is what is made.
    pub fn room<T: Scalar>(&mut self, stream: &Stream, beta: T, progress: &Progress) -> Result<Matrix<T>, Fault> {
        let (rows, cols) = if self.is_by_rows() { (self.cols, self.rows) } else { (self.rows, self.cols) };
        match &mut self.c0 {
            Some(c0) if beta != T::zero() => upload(stream, c0, rows, cols, Layout::ColumnMajor, progress),
            _ => Ok(stream.device().zeros(rows, cols)?),
        }
    }

    /// What was made room for, as the product sees it.
    pub fn view<'m, T: Scalar>(&self, room: &'m mut Matrix<T>) -> MatMut<'m, T> {
        if self.is_by_rows() { room.view_mut().t() } else { room.view_mut() }
    }

    /// Elements of C as often as it is moved.
    pub fn elements<T: Scalar>(&self, beta: T) -> usize {
        let moves = if beta == T::zero() { 1 } else { 2 };
        self.rows.saturating_mul(self.cols).saturating_mul(moves)
    }

    /// Writes the header and the elements as they come from the device.
    pub fn save<T: Scalar>(
        &self,
        stream: &Stream,
        room: &Matrix<T>,
        output: &mut Output,
        progress: &Progress,
    ) -> Result<(), Fault> {
        output.write_all(&npy::header_bytes(&self.header)).map_err(|error| output.fault(&error))?;
        let failed = RefCell::new(None);
        let mut sink = |elements: &[T]| {
            progress.advance(size_of_val(elements));
            output.write_all(&npy::as_bytes(elements)).map_err(|error| keep(&failed, output.fault(&error), error))
        };
        let sent = room.download_with(stream, Layout::ColumnMajor, &mut sink);
        sent.map_err(|error| failed.take().unwrap_or_else(|| error.into()))
    }

    /// The result's line, on standard output as JSON, else on standard error: C itself may go to standard output.
    pub fn report(&self, how: &HowArgs, device: &Device, plan: &Plan, done: Done) -> Result<(), Fault> {
        let dtype = self.header.dtype;
        let product = Product {
            device: device::name(device),
            operation: plan.operation().to_string(),
            variant: plan.variant().to_string(),
            dtype: dtype.name(),
            m: self.rows,
            n: self.cols,
            k: done.k,
            seconds: done.seconds,
            gbs: say::gbs(float(done.elements) * dtype.bytes() as f64, done.seconds),
        };
        // All can still fail until here, and a failure is to leave one line alone on standard error.
        if how.json {
            say::print_json(&product)?;
        }
        say::note(&device::line(device));
        if !how.json {
            say::note(&format!("{}\n{}   {}", product.headline(), product.variant, product.speed()));
        }
        Ok(())
    }
}

/// A product that was computed.
pub struct Done {
    pub k: usize,
    /// Elements that were moved.
    pub elements: usize,
    pub seconds: f64,
}

/// Bytes of so many elements.
pub fn bytes<T: Scalar>(elements: usize) -> u64 {
    u64::try_from(elements).unwrap_or(u64::MAX).saturating_mul(size_of::<T>() as u64)
}

/// An operand on the device.
pub fn load<T: Scalar>(stream: &Stream, operand: &mut Operand, progress: &Progress) -> Result<Matrix<T>, Fault> {
    let layout = operand.input.header().order.layout();
    upload(stream, &mut operand.input, operand.rows, operand.cols, layout, progress)
}

/// Reads the file straight into the buffers that are sent.
fn upload<T: Scalar>(
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

/// Remembers the fault of the file, which the library's error does not know.
fn keep(failed: &RefCell<Option<Fault>>, fault: Fault, error: io::Error) -> io::Error {
    *failed.borrow_mut() = Some(fault);
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use lanky::Dtype;

    #[derive(Parser)]
    struct Told {
        #[command(flatten)]
        how: HowArgs,
    }

    #[test]
    fn plans_are_told_what_the_command_line_says() {
        let told = |words: &[&str]| {
            let told = Told::try_parse_from(["lanky"].iter().chain(words)).unwrap_or_else(|error| panic!("{error}"));
            let shape = Shape::packed(2, 2, Layout::RowMajor, Dtype::F64);
            format!("{:?}", told.how.told(Plan::gemm(&Device::cpu(), shape, shape, shape)))
        };
        assert!(told(&[]).contains("OneGpu") && told(&[]).contains("variant: None"));
        let both = told(&["--across-gpus", "--variant", "tsm2r_outer"]);
        assert!(both.contains("AcrossGpus") && both.contains("tsm2r_outer"), "{both}");
        assert!(told(&[]).contains("splits_f32: false") && told(&["--split-f32"]).contains("splits_f32: true"));
        assert!(Told::try_parse_from(["lanky", "--across-gpus", "--split-f32"]).is_err(), "one excludes the other");
    }
}
