//! Devices: a GPU, or the CPU.

use crate::ceiling::{CeilingTimes, Ceilings};
use crate::driver;
use crate::env;
use crate::error::{Error, Operand, Result};
use crate::gpu::{Gpu, lock};
use crate::matrix::Matrix;
use crate::ops;
use crate::plan::Plan;
use crate::scalar::Scalar;
use crate::stream::Stream;
use crate::view::{MatRef, Place};
use cust::context::CurrentContext;
use model::Machine;
use std::sync::Arc;
use text::reason_of;

mod text;

/// A GPU or the CPU. Cheap to clone; usable from any thread. Every call makes the GPU's context current for its own
/// length, and leaves the caller's as it was.
///
/// Displayed as `cuda:0  NVIDIA H200, 132 SMs, driver 580.159 (CUDA 13.0)` or `cpu  2 cores, AVX2`.
#[derive(Clone)]
pub struct Device {
    kind: Kind,
    reason: Arc<str>,
}

#[derive(Clone)]
pub(crate) enum Kind {
    Cpu,
    Cuda(Arc<Gpu>),
    /// No device: what every use of it fails with.
    Refused(Arc<Error>),
}

/// Set to 1: [`Device::auto`] does not fall back to the CPU.
const REQUIRE_GPU: &str = "LANKY_REQUIRE_GPU";

impl Device {
    /// The first usable GPU, else the CPU; [`Device::reason`] says why. With LANKY_REQUIRE_GPU=1 in the environment and
    /// no usable GPU every use of the result fails with that reason ([`Device::try_auto`] fails at once).
    pub fn auto() -> Device {
        match Self::try_auto() {
            Ok(device) => device,
            Err(error) => {
                let reason = reason_of(&error).into();
                Device { kind: Kind::Refused(Arc::new(error)), reason }
            }
        }
    }

    /// The first usable GPU, else the CPU.
    ///
    /// # Errors
    /// Why there is no usable GPU, if LANKY_REQUIRE_GPU=1 is in the environment.
    pub fn try_auto() -> Result<Device> {
        let error = match Self::first_gpu() {
            Ok(gpu) => return Ok(Device { kind: Kind::Cuda(gpu), reason: "first usable GPU".into() }),
            Err(error) => error,
        };
        if std::env::var_os(REQUIRE_GPU).is_some_and(|value| value == "1") {
            return Err(error);
        }
        Ok(Device { kind: Kind::Cpu, reason: reason_of(&error).into() })
    }

    fn first_gpu() -> Result<Arc<Gpu>> {
        let mut first = None;
        for ordinal in 0..Self::count()?.max(1) {
            match Gpu::open(ordinal) {
                Ok(gpu) => return Ok(gpu),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(Error::NoDevice { reason: "the driver sees no device".to_owned() }))
    }

    /// GPU number `ordinal`, as CUDA_VISIBLE_DEVICES leaves them.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::Driver`], [`Error::ContextLost`], [`Error::Forked`].
    pub fn cuda(ordinal: u32) -> Result<Device> {
        Ok(Device { kind: Kind::Cuda(Gpu::open(ordinal)?), reason: "asked for".into() })
    }

    /// The CPU.
    pub fn cpu() -> Device {
        Device { kind: Kind::Cpu, reason: "asked for".into() }
    }

    /// The GPU whose primary context is current on this thread.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if none is, [`Error::Unsupported`] if it is not the primary context, else as
    /// [`Device::cuda`].
    pub fn from_current_context() -> Result<Device> {
        driver::open()?;
        let Some((ordinal, context)) = driver::current()? else {
            return Err(Error::NoDevice { reason: "no context is current on this thread".to_owned() });
        };
        let gpu = Gpu::open(ordinal)?;
        if !gpu.owns(context) {
            let what = format!("a context of cuda:{ordinal} other than its primary one");
            return Err(Error::Unsupported { what });
        }
        Ok(Device { kind: Kind::Cuda(gpu), reason: "current context".into() })
    }

    /// Number of GPUs that the driver sees, usable or not.
    ///
    /// # Errors
    /// [`Error::NoDriver`], or [`Error::Driver`].
    pub fn count() -> Result<u32> {
        driver::open()?;
        cust::device::Device::num_devices().map_err(driver::failed)
    }

    /// Whether it is a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.kind, Kind::Cuda(_))
    }

    /// The GPU's number; `None` for the CPU.
    pub fn ordinal(&self) -> Option<u32> {
        match &self.kind {
            Kind::Cuda(gpu) => Some(gpu.ordinal),
            Kind::Cpu | Kind::Refused(_) => None,
        }
    }

    /// `NVIDIA H200`, or `cpu`.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Cuda(gpu) => &gpu.name,
            Kind::Cpu => "cpu",
            Kind::Refused(_) => "no device",
        }
    }

    /// Why this device: `first usable GPU`, `no libcuda.so.1 found`, `asked for`.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The GPU as the model sees it; `None` for the CPU.
    pub fn machine(&self) -> Option<&Machine> {
        match &self.kind {
            Kind::Cuda(gpu) => Some(&gpu.machine),
            Kind::Cpu | Kind::Refused(_) => None,
        }
    }

    /// Free and total bytes of its memory.
    ///
    /// # Errors
    /// [`Error::Driver`], [`Error::ContextLost`]; [`Error::Unsupported`] on a CPU whose system does not say.
    pub fn memory(&self) -> Result<(u64, u64)> {
        match &self.kind {
            Kind::Cuda(gpu) => gpu.memory(),
            Kind::Cpu => env::host_memory(),
            Kind::Refused(error) => Err(Error::clone(error)),
        }
    }

    /// A stream of its own: on a GPU one that never waits for the default stream.
    ///
    /// # Errors
    /// [`Error::Driver`], [`Error::ContextLost`].
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// Loads the kernels of all these plans and allocates a workspace for each ([`Plan::warm_up`]), before the first
    /// product has to wait for it. On the CPU there is nothing to do.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for a plan of another device, before anything is loaded; else as [`Plan::warm_up`].
    pub fn warm_up(&self, plans: &[&Plan]) -> Result<()> {
        if let Kind::Refused(error) = &self.kind {
            return Err(Error::clone(error));
        }
        if let Some(other) = plans.iter().find(|plan| plan.device().place() != self.place()) {
            let (expected, actual) = (self.short(), format!("{} by its plan", other.device().short()));
            return Err(Error::WrongDevice { operand: Operand::View, expected, actual });
        }
        plans.iter().try_for_each(|plan| plan.warm_up())
    }

    /// C = A B, m x n. Host matrices in, host matrix out; where A or B lie on this GPU, C does too. Waits for all work
    /// that the GPU was given before, and until C is there.
    ///
    /// # Errors
    /// As [`gemm`](crate::gemm).
    pub fn matmul<T: Scalar>(&self, a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Matrix<T>> {
        ops::gemm::matmul(self, a, b)
    }

    /// Bytes/s at which the device can read its memory, measured now: on a GPU with the kernel `read_ceiling`, the best
    /// of several launch shapes; on the CPU the sum of an array larger than its caches, by all threads.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`], and those of loading a kernel.
    pub fn read_ceiling(&self, stream: &Stream) -> Result<f64> {
        self.same(stream)?;
        crate::ceiling::read(stream)
    }

    /// What the device does at most, measured now: its memory's rates and its multipliers', each the best of several
    /// launch shapes and its result checked. Half a second on a GPU, one on a CPU.
    ///
    /// # Errors
    /// As [`Device::read_ceiling`], and [`Error::Unsupported`] if a result is wrong.
    pub fn ceilings(&self, stream: &Stream) -> Result<Ceilings> {
        Ok(self.measured_ceilings(stream)?.0)
    }

    /// The same, with the times that each of them is from.
    ///
    /// # Errors
    /// As [`Device::ceilings`].
    pub fn measured_ceilings(&self, stream: &Stream) -> Result<(Ceilings, Vec<CeilingTimes>)> {
        self.same(stream)?;
        crate::ceiling::all(stream)
    }

    /// Does `work` with the GPU's context current on this thread, for libraries that use the current one.
    ///
    /// # Errors
    /// [`Error::ContextLost`], [`Error::Forked`], [`Error::Driver`]; those of `work` are its own.
    pub fn entered<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let _current = match &self.kind {
            Kind::Cuda(gpu) => Some(gpu.enter()?),
            Kind::Cpu => None,
            Kind::Refused(error) => return Err(Error::clone(error)),
        };
        Ok(work())
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn place(&self) -> Place {
        match &self.kind {
            Kind::Cuda(gpu) => Place::Cuda(gpu.ordinal),
            Kind::Cpu | Kind::Refused(_) => Place::Host,
        }
    }

    /// Runs `work` on a stream that nobody else uses meanwhile, kept for the next call.
    pub(crate) fn with_stream<R>(&self, work: impl FnOnce(&Stream) -> Result<R>) -> Result<R> {
        let Kind::Cuda(gpu) = &self.kind else { return work(&self.stream()?) };
        let idle = lock(&gpu.idle).pop();
        let stream = match idle {
            Some(stream) => stream,
            None => self.stream()?,
        };
        let result = work(&stream);
        lock(&gpu.idle).push(stream);
        result
    }

    /// Waits for all work of the GPU.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let Kind::Cuda(gpu) = &self.kind else { return Ok(()) };
        let _current = gpu.enter()?;
        CurrentContext::synchronize().map_err(driver::failed)
    }

    /// Refuses a stream of another device.
    pub(crate) fn same(&self, stream: &Stream) -> Result<()> {
        if let Kind::Refused(error) = &self.kind {
            return Err(Error::clone(error));
        }
        if self.place() == stream.device().place() {
            return Ok(());
        }
        Err(Error::WrongStream { expected: self.short(), actual: stream.device().short() })
    }

    /// `cuda:0` or `cpu`.
    pub(crate) fn short(&self) -> String {
        match self.place() {
            Place::Cuda(ordinal) => format!("cuda:{ordinal}"),
            Place::Host => "cpu".to_owned(),
        }
    }
}
