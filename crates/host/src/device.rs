//! Devices: a GPU, or the CPU.

use crate::ceiling::{CeilingTimes, Ceilings};
use crate::driver;
use crate::env;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, hold, lock};
use crate::left::no_recording;
use crate::matrix::Matrix;
use crate::ops;
use crate::plan::Plan;
use crate::scalar::Scalar;
use crate::stream::Stream;
use crate::tuned::Database;
use crate::view::{MatRef, Place};
use cust::context::CurrentContext;
use model::Machine;
use std::path::Path;
use std::sync::Arc;
use text::reason_of;

mod text;

/// A GPU or the CPU. Cheap to clone; usable from any thread. Every call makes the GPU's context current for its own
/// length, and leaves the caller's as it was.
///
/// The first device of a GPU retains its primary context, the one that CUDA's own runtime uses; it and the kernels that are
/// loaded into it stay until the process ends, and every later device of that GPU shares them.
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
    /// no usable GPU, what is made, copied or computed on the result fails with that reason ([`Device::try_auto`] fails at
    /// once).
    ///
    /// Cost: loads the driver library, and creates the GPU's context where this process has none yet.
    pub fn auto() -> Device {
        match Self::try_auto() {
            Ok(device) => device,
            Err(error) => Self::refused(error),
        }
    }

    /// The first usable GPU, else the CPU; at the cost of [`Device::auto`].
    ///
    /// # Errors
    /// If LANKY_REQUIRE_GPU=1 is in the environment, why there is no usable GPU: an error of [`Device::count`] or, of the
    /// first GPU, of [`Device::cuda`].
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

    /// No device: every use of it fails with that error.
    pub(crate) fn refused(error: Error) -> Device {
        let reason = reason_of(&error).into();
        Device { kind: Kind::Refused(Arc::new(error)), reason }
    }

    fn first_gpu() -> Result<Arc<Gpu>> {
        let _during = driver::during("Device::auto");
        let mut first = None;
        for ordinal in 0..Self::count()?.max(1) {
            match Gpu::open(ordinal) {
                Ok(gpu) => return Ok(gpu),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(Error::NoDevice { reason: "the driver sees no device".to_owned() }))
    }

    /// GPU number `ordinal`, from 0 on, as CUDA_VISIBLE_DEVICES leaves them. The first call for it creates its context.
    ///
    /// # Errors
    /// [`Error::NoDriver`]; [`Error::NoDevice`] if there is none of that number, or it is older than compute capability
    /// 8.0; [`Error::DriverTooOld`] for its kernels; [`Error::DeviceBusy`], or [`Error::OutOfMemory`] with `wanted` =
    /// 0, if there is no context to be had; [`Error::Io`] if the system starts no thread; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub fn cuda(ordinal: u32) -> Result<Device> {
        let _during = driver::during("Device::cuda");
        Ok(Device { kind: Kind::Cuda(Gpu::open(ordinal)?), reason: "asked for".into() })
    }

    /// The CPU, by rayon's threads (RAYON_NUM_THREADS). Always there; nothing is loaded or looked for. In a process that was
    /// forked after its parent had used them here, which they are not in, by one thread, with the same bits.
    pub fn cpu() -> Device {
        Device { kind: Kind::Cpu, reason: "asked for".into() }
    }

    /// The GPU whose primary context is current on this thread. That context is shared, not replaced.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if no context is current, [`Error::Unsupported`] if it is not the primary one, else as
    /// [`Device::cuda`].
    pub fn from_current_context() -> Result<Device> {
        let _during = driver::during("Device::from_current_context");
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

    /// Number of GPUs that the driver sees, usable or not. Creates no context.
    ///
    /// # Errors
    /// [`Error::NoDriver`]; [`Error::NoDevice`] from a driver that does not start without a device, as with an empty
    /// CUDA_VISIBLE_DEVICES; [`Error::DeviceBusy`]; [`Error::DriverSetup`]; [`Error::Driver`].
    pub fn count() -> Result<u32> {
        let _during = driver::during("Device::count");
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

    /// `NVIDIA H200`, or `cpu`; `no device` where [`Device::auto`] was refused one.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Cuda(gpu) => &gpu.name,
            Kind::Cpu => "cpu",
            Kind::Refused(_) => "no device",
        }
    }

    /// Why this device: `first usable GPU`, `asked for`, `current context`, or, on the CPU of [`Device::auto`], why no GPU:
    /// `libcuda.so.1: cannot open shared object file: No such file or directory`.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The GPU as the model sees it; `None` for the CPU.
    pub fn machine(&self) -> Option<&Machine> {
        match &self.kind {
            Kind::Cuda(gpu) => Some(gpu.choices.machine()),
            Kind::Cpu | Kind::Refused(_) => None,
        }
    }

    /// Has the model choose with these ceilings ([`Device::ceilings`]) instead of the shares of the nominal rates that its
    /// table has; for all that this process plans on the GPU from now on, once. Plans that are made stay as they are.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a rate that cannot be, for other ceilings than an earlier call's, and on the CPU, for which
    /// nothing is chosen.
    ///
    /// # Example
    /// ```no_run
    /// let device = lanky_host::Device::cuda(0)?;
    /// device.calibrate(&device.ceilings(&device.stream()?)?)?;
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn calibrate(&self, ceilings: &Ceilings) -> Result<()> {
        match &self.kind {
            Kind::Cuda(gpu) => {
                driver::same_process()?;
                gpu.choices.calibrate(ceilings)
            }
            Kind::Cpu => {
                Err(Error::Unsupported { what: "calibration of the CPU: the model chooses for GPUs".to_owned() })
            }
            Kind::Refused(error) => Err(Error::clone(error)),
        }
    }

    /// Has plans follow the measurements in a file of `lanky tune`, for all that this process plans on the GPU from now on: see
    /// [`tuned`](crate::tuned) for what that means. Plans that are made stay as they are. Nothing of it is found on its own: a
    /// GPU that is told nothing follows what the library carries for it ([`tuned::shipped`](crate::tuned::shipped)).
    ///
    /// # Errors
    /// [`Error::Tuned`] for a file that cannot be read, is damaged, of another version or of another GPU: what was found, and
    /// what was required; then plans follow what they followed before. [`Error::Unsupported`] on the CPU.
    ///
    /// # Example
    /// ```no_run
    /// let device = lanky_host::Device::cuda(0)?;
    /// if let Err(error) = device.load_tuned("nvidia-h200.tuned") {
    ///     eprintln!("{error}: the model decides");
    /// }
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn load_tuned(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.follow(&path.display().to_string(), Some(Database::read(path)?))
    }

    /// The same with a database that was read before, or none: then the model alone decides.
    ///
    /// # Errors
    /// [`Error::Tuned`] for one of another GPU; [`Error::Unsupported`] on the CPU.
    pub fn set_tuned(&self, database: Option<Database>) -> Result<()> {
        self.follow("the database", database)
    }

    fn follow(&self, name: &str, database: Option<Database>) -> Result<()> {
        match &self.kind {
            Kind::Cuda(gpu) => {
                driver::same_process()?;
                let refused = |reason| Error::Tuned { database: name.to_owned(), reason };
                gpu.choices.follow(database).map_err(refused)
            }
            Kind::Cpu => {
                Err(Error::Unsupported { what: "measurements on the CPU: they choose GPU kernels".to_owned() })
            }
            Kind::Refused(error) => Err(Error::clone(error)),
        }
    }

    /// The measurements that plans follow; `None` where the model alone decides, on the CPU, and in a forked process.
    pub fn tuned(&self) -> Option<Arc<Database>> {
        match &self.kind {
            Kind::Cuda(gpu) if driver::same_process().is_ok() => gpu.choices.tuned(),
            _ => None,
        }
    }

    /// Free and total bytes of its memory.
    ///
    /// Of the CPU they are MemAvailable and MemTotal of /proc/meminfo.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU of a system that does not say; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub fn memory(&self) -> Result<(u64, u64)> {
        let _during = driver::during("Device::memory");
        match &self.kind {
            Kind::Cuda(gpu) => gpu.memory(),
            Kind::Cpu => env::host_memory(),
            Kind::Refused(error) => Err(Error::clone(error)),
        }
    }

    /// A stream of its own: on a GPU a new CUstream, one that never waits for the default stream.
    ///
    /// # Errors
    /// [Those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn stream(&self) -> Result<Stream> {
        let _during = driver::during("Device::stream");
        Stream::new(self)
    }

    /// Loads the kernels of all these plans and allocates a workspace for each ([`Plan::warm_up`]), before the first
    /// product has to wait for it. On the CPU there is nothing to do.
    ///
    /// # Errors
    /// [`Error::WrongPlan`] for a plan of another device, before anything is loaded; else as [`Plan::warm_up`].
    pub fn warm_up(&self, plans: &[&Plan]) -> Result<()> {
        self.usable()?;
        if let Some(other) = plans.iter().find(|plan| plan.device().place() != self.place()) {
            return Err(Error::WrongPlan { expected: self.short(), actual: other.device().short() });
        }
        plans.iter().try_for_each(|plan| plan.warm_up())
    }

    /// C = A B, with A m x k, B k x n and C m x n, column-major. Host matrices in, host matrix out; where A or B lie on
    /// this GPU, C does too. Waits for all work that the GPU was given before, and until C is there.
    ///
    /// Cost: on a GPU an operand of the host's is copied there, C is allocated there, and fetched if both were the host's;
    /// then what is not the result is freed. On the CPU one new matrix.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for an operand on another GPU, and for one on any GPU where this is the CPU;
    /// [`Error::Shape`] if B has not as many rows as A has columns; then as [`Device::upload`], [`gemm`](crate::gemm) and [`Device::download`].
    ///
    /// # Example
    /// ```
    /// use lanky_host::{Device, MatRef};
    /// let a = MatRef::row_major(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
    /// let c = Device::cpu().matmul(a, a.t())?; // A A'
    /// assert_eq!(c.as_slice(), Some(&[5.0, 11.0, 11.0, 25.0][..]));
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn matmul<T: Scalar>(&self, a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Matrix<T>> {
        let _during = driver::during("Device::matmul");
        ops::gemm::matmul(self, a, b)
    }

    /// Bytes/s at which the device can read its memory, measured now, the best of several times: on a GPU with the kernel
    /// `read_ceiling`, in several launch shapes; on the CPU by folding an array into a word, by all threads.
    ///
    /// Cost: 25 launches over an array of 4 GiB, or of half the GPU's free memory if that is less; on the CPU 10 passes
    /// over 1 GiB (8 MiB without optimisation), or a quarter of what is free. The array is allocated and freed.
    ///
    /// # Errors
    /// [`Error::WrongStream`]; [`Error::OutOfMemory`]; [`Error::Jit`], [`Error::DriverTooOld`] and
    /// [`Error::Unsupported`] of loading the kernel; [`Error::Unsupported`] if the clock does not tell the launches'
    /// length, or of the CPU in a process that was forked after its parent had used the CPU's threads; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub fn read_ceiling(&self, stream: &Stream) -> Result<f64> {
        let _during = driver::during("Device::read_ceiling");
        self.same(stream)?;
        crate::ceiling::read(stream)
    }

    /// What the device does at most, measured now: its memory's rates and its multipliers', each the best of several
    /// launch shapes and its result checked.
    ///
    /// Cost: that of [`Device::read_ceiling`] for each of four ways to move memory, over two arrays of which each has
    /// at most a quarter of the free memory (on the CPU an eighth); then 15 launches for each kind of multiply-add (on
    /// the CPU 10).
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
        let _during = driver::during("Device::ceilings");
        self.same(stream)?;
        crate::ceiling::all(stream)
    }

    /// Does `work` with the GPU's context current on this thread, for libraries that use the current one; the caller's is
    /// current again afterwards. On the CPU it only does `work`.
    ///
    /// # Errors
    /// [Those of every GPU call](crate#errors-of-every-gpu-call), before `work` is begun; those of `work` are its own.
    pub fn entered<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let _current = match &self.kind {
            Kind::Cuda(gpu) => {
                let _during = driver::during("Device::entered");
                Some(gpu.enter()?)
            }
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
        let idle = hold(&gpu.idle)?.pop();
        let stream = match idle {
            Some(stream) => stream,
            None => self.stream()?,
        };
        let result = work(&stream);
        lock(&gpu.idle).push(stream);
        result
    }

    /// Waits for all work of the GPU; refuses to where that would spoil a recording.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let Kind::Cuda(gpu) = &self.kind else { return Ok(()) };
        let _current = gpu.enter()?;
        let Some(_none) = no_recording() else {
            let what = "to wait for all work of a GPU while a graph is recorded, which would spoil it";
            return Err(Error::Unsupported { what: what.to_owned() });
        };
        CurrentContext::synchronize().map_err(driver::failed)
    }

    /// Refuses a stream of another device than the call's.
    pub(crate) fn same(&self, stream: &Stream) -> Result<()> {
        self.same_as("call", stream)
    }

    /// Why this is no device, if it is none.
    pub(crate) fn usable(&self) -> Result<()> {
        match &self.kind {
            Kind::Refused(error) => Err(Error::clone(error)),
            Kind::Cpu | Kind::Cuda(_) => Ok(()),
        }
    }

    /// Refuses a stream of another device than that of what the text calls `whose`.
    pub(crate) fn same_as(&self, whose: &'static str, stream: &Stream) -> Result<()> {
        self.usable()?;
        stream.device().usable()?;
        if self.place() == stream.device().place() {
            return Ok(());
        }
        Err(Error::WrongStream { whose, expected: self.short(), actual: stream.device().short() })
    }

    /// `cuda:0` or `cpu`.
    pub(crate) fn short(&self) -> String {
        match self.place() {
            Place::Cuda(ordinal) => format!("cuda:{ordinal}"),
            Place::Host => "cpu".to_owned(),
        }
    }
}
