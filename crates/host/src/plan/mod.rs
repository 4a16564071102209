//! Plans: a product decided once, explained, warmed up, and run many times.

mod builder;
mod text;

pub use builder::{Determinism, PlanBuilder};

use crate::cpu;
use crate::device::{Device, Kind};
use crate::driver;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::gpu::{Gpu, hold};
use crate::memory::DeviceMemory;
use crate::ops::enqueue::{enqueue, reduces_in_a_launch, slots_bytes};
use crate::ops::gemm::{PRODUCT, check_memory, check_places, is_done};
use crate::ops::gram;
use crate::scalar::Scalar;
use crate::shape::{Shape, wide};
use crate::stream::{Queue, Stream};
use crate::view::{MatMut, MatRef};
use model::launch::reduced::{Triangle, reduce_bytes};
use model::{Choice, Operation};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How products of one shape are computed on one device.
///
/// Its Display says it in words and numbers. It may run on several streams at once: each has a workspace of its own in
/// it, kept until the plan is dropped, which waits for the GPU's work. The model chooses as for operands in the device's
/// memory, also where an earlier run has left them in its cache.
///
/// The same plan on the same GPU gives the same bits every time: no sum depends on what runs when, unless `tsmttsm_atomic` was
/// asked for. Measurements that the device follows ([`tuned`](crate::tuned)) change which plan is made. The same bits on other GPUs
/// too are [`Determinism::AcrossGpus`].
///
/// # Example
/// ```
/// use lanky_host::{Device, Dtype, Layout, Plan, Shape};
/// let device = Device::cpu();
/// let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
/// let plan = Plan::gemm(&device, shape(20_000, 300), shape(300, 4), shape(20_000, 4)).build()?;
/// assert_eq!((plan.operation(), plan.variant(), plan.entry()), ("tsm2r", "cpu", None));
/// assert!(plan.to_string().contains("on the CPU"));
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct Plan {
    device: Device,
    a: Shape,
    b: Shape,
    c: Shape,
    operation: Operation,
    /// Of a Gram matrix, what of it is written.
    gram: Option<Triangle>,
    /// The GPU's kernel; `None` on the CPU and where nothing is multiplied.
    choice: Option<Choice>,
    workspaces: Mutex<Workspaces>,
}

#[derive(Default)]
struct Workspaces {
    /// By the streams that they serve.
    of_stream: HashMap<usize, Option<DeviceMemory>>,
    /// Made by [`Plan::warm_up`]: the first stream that asks gets it.
    spare: Option<DeviceMemory>,
}

impl Workspaces {
    fn of(&mut self, stream: usize) -> &mut Option<DeviceMemory> {
        let workspace = self.of_stream.entry(stream).or_default();
        if workspace.is_none() {
            *workspace = self.spare.take();
        }
        workspace
    }
}

impl Plan {
    /// Begins a plan for C ← α A B + β C on the device, A m x k, B k x n and C m x n, for operands of these shapes and
    /// strides (`view.shape()`).
    pub fn gemm(device: &Device, a: Shape, b: Shape, c: Shape) -> PlanBuilder {
        PlanBuilder {
            device: device.clone(),
            a,
            b,
            c,
            variant: None,
            parts: None,
            reads_c: false,
            gram: None,
            determinism: Determinism::OneGpu,
            splits_f32: false,
            names: PRODUCT,
        }
    }

    /// Begins a plan for C ← α Aᴴ A + β C on the device, A k x n and C n x n: [`Plan::run_gram`] runs it. Of C all is
    /// written, unless [`PlanBuilder::triangle`] says otherwise.
    pub fn gram(device: &Device, a: Shape, c: Shape) -> PlanBuilder {
        PlanBuilder { gram: Some(Triangle::Full), ..Plan::gemm(device, a.h(), a, c) }
    }

    /// The device that it is for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What the shape asks for, as [`model::classify`] names it: `tsm2r`.
    pub fn operation(&self) -> &'static str {
        self.operation.name()
    }

    /// The kernel's idea: `tsm2r_prefetch`; `cpu` on the CPU, and on a GPU `none` where nothing is multiplied.
    pub fn variant(&self) -> &'static str {
        match &self.choice {
            Some(choice) => choice.variant.name,
            None if self.device.is_cuda() => "none",
            None => "cpu",
        }
    }

    /// The kernel's entry; `None` on the CPU and where nothing is multiplied.
    pub fn entry(&self) -> Option<&'static str> {
        self.choice.as_ref().map(|choice| choice.variant.entry)
    }

    /// All that was decided; `None` on the CPU and where nothing is multiplied.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }

    /// Loads the kernels and allocates one workspace, which the first stream that runs the plan gets. After it
    /// [`Plan::run`] on that stream neither loads nor allocates; for further streams see [`Plan::warm_up_on`].
    /// On the CPU there is nothing to do.
    ///
    /// # Errors
    /// [`Error::Jit`], with the log, if the driver does not compile a kernel; [`Error::DriverTooOld`] for one;
    /// [`Error::Unsupported`] if this library carries none for the GPU; [`Error::OutOfMemory`] for the workspace;
    /// [those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn warm_up(&self) -> Result<()> {
        let _during = driver::during("Plan::warm_up");
        let Kind::Cuda(gpu) = self.device.kind() else { return Ok(()) };
        self.load(gpu)?;
        let bytes = self.workspace_bytes();
        let mut workspaces = hold(&self.workspaces)?;
        if bytes > 0 && workspaces.spare.is_none() && workspaces.of_stream.values().all(Option::is_none) {
            workspaces.spare = Some(DeviceMemory::workspace(gpu, bytes)?);
        }
        Ok(())
    }

    /// Loads the kernels and allocates the workspace of this stream: [`Plan::run`] on it then does neither, and may be
    /// captured into a CUDA graph.
    ///
    /// # Errors
    /// As [`Plan::warm_up`], and [`Error::WrongStream`].
    pub fn warm_up_on(&self, stream: &Stream) -> Result<()> {
        let _during = driver::during("Plan::warm_up_on");
        self.device.same_as("plan", stream)?;
        let (Kind::Cuda(gpu), Queue::Cuda(queue)) = (self.device.kind(), stream.queue()) else { return Ok(()) };
        self.load(gpu)?;
        let bytes = self.workspace_bytes();
        let mut workspaces = hold(&self.workspaces)?;
        let workspace = workspaces.of(queue.key());
        if bytes > 0 && workspace.is_none() {
            *workspace = Some(DeviceMemory::workspace(gpu, bytes)?);
        }
        Ok(())
    }

    /// All that a run launches, so that it has nothing left to ask.
    fn load(&self, gpu: &Arc<Gpu>) -> Result<()> {
        let _current = gpu.enter()?;
        let ready = |entry, shared_bytes| gpu.kernel(entry)?.function(shared_bytes).map(drop);
        let dtype = self.c.dtype;
        // Also where k is not split: α = 0 is C ← β C, which is its work.
        ready(model::variants::sum_slots(dtype), 0)?;
        let reduces = || ready(model::variants::reduce_slots(dtype), reduce_bytes(dtype.bytes()));
        if self.gram.is_some() {
            reduces()?;
        }
        let Some(choice) = &self.choice else { return Ok(()) };
        if reduces_in_a_launch(choice) {
            reduces()?;
        }
        ready(choice.variant.entry, choice.shared_bytes)
    }

    fn workspace_bytes(&self) -> u64 {
        match &self.choice {
            Some(choice) if choice.slots_len > 0 => slots_bytes(choice, self.c.dtype),
            _ => 0,
        }
    }

    /// C ← α A B + β C, as planned; asynchronous on `stream` on a GPU. See [`gemm`](crate::gemm) for what α, β and empty
    /// operands mean.
    ///
    /// Cost on a GPU: one launch, or two where another one adds the parts of k; once warm, nothing is allocated, loaded or waited for.
    ///
    /// # Errors
    /// [`Error::WrongStream`] for a stream of another device than the plan's; [`Error::WrongDevice`] and
    /// [`Error::Shape`] if an operand is not of the device, shape and strides that the plan was made for, or C overlaps A
    /// or B; else as [`gemm`](crate::gemm).
    pub fn run<T: Scalar>(
        &self,
        stream: &Stream,
        alpha: T,
        a: MatRef<'_, T>,
        b: MatRef<'_, T>,
        beta: T,
        c: MatMut<'_, T>,
    ) -> Result<()> {
        let _during = driver::during("Plan::run");
        self.run_as(PRODUCT, stream, alpha, a, b, beta, c)
    }

    /// The same of operands that the caller calls so.
    #[expect(clippy::too_many_arguments, reason = "a product has six")]
    pub(crate) fn run_as<T: Scalar>(
        &self,
        names: [Operand; 3],
        stream: &Stream,
        alpha: T,
        a: MatRef<'_, T>,
        b: MatRef<'_, T>,
        beta: T,
        mut c: MatMut<'_, T>,
    ) -> Result<()> {
        self.device.same_as("plan", stream)?;
        let [of_a, of_b, of_c] = names;
        check_places(&self.device, [(of_a, a.place()), (of_b, b.place()), (of_c, c.place())])?;
        for (operand, shape, planned) in
            [(of_a, a.shape(), &self.a), (of_b, b.shape(), &self.b), (of_c, c.shape(), &self.c)]
        {
            check_planned(operand, &shape, planned)?;
        }
        check_memory(&self.device, names, &a, &b, &c)?;
        if self.gram.is_some() && b.extent() != a.extent() {
            let what =
                "other factors than a matrix and its transpose by a plan of a Gram matrix: make one by Plan::gemm";
            return Err(Error::Unsupported { what: what.into() });
        }
        if is_done(alpha, &a, beta, &c) {
            return Ok(());
        }
        match stream.queue() {
            Queue::Cpu if self.gram.is_some() => gram::on_cpu(self.gram.unwrap_or_default(), alpha, (a, b), beta, c),
            Queue::Cpu => cpu::product(alpha, a, b, beta, c),
            Queue::Cuda(queue) => {
                let choice = self.choice.as_ref().filter(|_| alpha != T::zero());
                // Locked until all launches of a product are in the stream: another thread's on the same stream
                // would come between them.
                let mut workspaces = hold(&self.workspaces)?;
                enqueue(queue, choice, workspaces.of(queue.key()), alpha, &a, &b, beta, &mut c, self.gram)
            }
        }
    }
}

impl Plan {
    /// C ← α Aᴴ A + β C, or α Aᵀ A + β C, by a plan of [`Plan::gram`]; else as [`Plan::run`]. See [`gram`](crate::gram()) for what is promised.
    ///
    /// # Errors
    /// As [`Plan::run`]; [`Error::Unsupported`] for a plan of another product.
    pub fn run_gram<T: Scalar>(
        &self,
        stream: &Stream,
        alpha: T,
        a: MatRef<'_, T>,
        beta: T,
        c: MatMut<'_, T>,
    ) -> Result<()> {
        let _during = driver::during("Plan::run_gram");
        // In the caller's terms: A is not transposed, and there is no B.
        self.device.same_as("plan", stream)?;
        check_places(&self.device, [(Operand::A, a.place()), (Operand::C, c.place())])?;
        if self.gram.is_none() {
            let what = "a Gram matrix by the plan of a product: make one by Plan::gram";
            return Err(Error::Unsupported { what: what.into() });
        }
        check_planned(Operand::A, &a.shape(), &self.b)?;
        let first = if self.a.conj == self.b.conj { a.t() } else { a.h() };
        self.run(stream, alpha, first, a, beta, c)
    }
}

fn check_dtype(operand: Operand, shape: &Shape, planned: model::Dtype) -> Result<()> {
    if shape.dtype == planned {
        return Ok(());
    }
    let text = format!("{operand} is of {}, but the product is of {planned}", shape.dtype);
    Err(ShapeError::new(operand, Rule::Dtype, planned.bytes(), shape.dtype.bytes(), text).into())
}

fn check_planned(operand: Operand, shape: &Shape, planned: &Shape) -> Result<()> {
    check_dtype(operand, shape, planned.dtype)?;
    let differs = [
        (Rule::Rows, wide(planned.rows), wide(shape.rows)),
        (Rule::Cols, wide(planned.cols), wide(shape.cols)),
        (Rule::Strides, planned.strides.row, shape.strides.row),
        (Rule::Strides, planned.strides.col, shape.strides.col),
        (Rule::Conjugate, u64::from(planned.conj), u64::from(shape.conj)),
    ];
    let Some((rule, required, actual)) = differs.into_iter().find(|(_, required, actual)| required != actual) else {
        return Ok(());
    };
    let words = |s: &Shape| {
        let conj = if s.conj { ", conjugated" } else { "" };
        format!("{} x {} with strides {} and {}{conj}", s.rows, s.cols, s.strides.row, s.strides.col)
    };
    let text = format!("{operand} is {}, but the plan is for {}", words(shape), words(planned));
    Err(ShapeError::new(operand, rule, required, actual, text).into())
}
