//! Streams: work in order.

use crate::device::{Device, Kind};
use crate::driver;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::left::Held;
use crate::memory::DeviceMemory;
use crate::transfer::Ring;
use cust::event::{Event, EventFlags};
use cust::stream::{Stream as Raw, StreamFlags};
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Work of one device, done in the order in which it was given.
///
/// On a GPU calls return before their work is done, and nothing orders two streams but what callers do about it
/// ([`Stream::synchronize`], or events of their own on [`Stream::as_raw`]). On the CPU work is done when a call returns.
///
/// With LANKY_SYNC=1 in the environment every kernel that is not being recorded is waited for, so that a fault is reported with its name.
///
/// It keeps pinned memory of the host for its transfers (three chunks of up to 16 MiB, once it has any) and a workspace for
/// the products of [`gemm`](crate::gemm) that ask for one. Dropped, it waits for the work that it was given.
///
/// # Example
/// ```
/// use lanky_host::{Device, MatMut, MatRef, gemm};
/// let stream = Device::cpu().stream()?;
/// let a = MatRef::column_major(&[1.0, 2.0, 3.0], 3, 1)?;
/// let mut c = [0.0; 1];
/// let seconds = stream.timed(|| gemm(&stream, 1.0, a.t(), a, 0.0, MatMut::column_major(&mut c, 1, 1)?))?;
/// assert!(seconds >= 0.0 && c == [14.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct Stream {
    device: Device,
    queue: Queue,
}

pub(crate) enum Queue {
    Cpu,
    Cuda(CudaStream),
}

/// A GPU's stream, the pinned memory of its transfers and the workspace of its plan-less products.
pub(crate) struct CudaStream {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) raw: ManuallyDrop<Raw>,
    owned: bool,
    /// Taken out while a transfer runs, so that one started inside a caller's function finds none and makes its own.
    pub(crate) ring: Mutex<Option<Ring>>,
    pub(crate) scratch: Mutex<Option<DeviceMemory>>,
    /// Lists of matrices of the batches that this stream was given.
    pub(crate) lists: Mutex<Option<Box<DeviceMemory>>>,
}

/// The handle `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

impl Stream {
    /// Somebody else's stream of this device: used in place, and not destroyed with the result. Nothing is waited for
    /// but what a call's own page says, and, when the result is dropped, the work that uses its pinned memory and its
    /// workspace, where it has any. On the CPU, where streams are nothing, `raw` is not looked at.
    ///
    /// `CU_STREAM_PER_THREAD`, which is another stream on each thread and so cannot have one workspace, is not used: every
    /// call that is given it fails with [`Error::Unsupported`]. Of the legacy default stream there are two handles, null and
    /// `CU_STREAM_LEGACY`, which have a workspace each.
    ///
    /// # Safety
    /// `raw` is a CUstream of the device's primary context that outlives the result and all work given to it.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Stream {
        let queue = match device.kind() {
            // Of no device: whatever it is given to looks at the device first, and fails with its reason.
            Kind::Cpu | Kind::Refused(_) => Queue::Cpu,
            Kind::Cuda(_) if raw.addr() == PER_THREAD => return Self::refused(),
            Kind::Cuda(gpu) => {
                // SAFETY: the caller promises that the stream outlives this.
                let raw = unsafe { driver::borrow_stream(raw) };
                Queue::Cuda(CudaStream::new(gpu, raw, false))
            }
        };
        Stream { device: device.clone(), queue }
    }

    /// What is made of a handle that is no stream of one order.
    fn refused() -> Stream {
        let what = "CU_STREAM_PER_THREAD (cudaStreamPerThread), which is another stream on each thread: make a stream, by \
                    Device::stream or the driver, and give that";
        Stream { device: Device::refused(Error::Unsupported { what: what.to_owned() }), queue: Queue::Cpu }
    }

    pub(crate) fn new(device: &Device) -> Result<Stream> {
        let queue = match device.kind() {
            Kind::Cpu => Queue::Cpu,
            Kind::Refused(error) => return Err(Error::clone(error)),
            Kind::Cuda(gpu) => {
                gpu.free_left();
                let _current = gpu.enter()?;
                let raw = Raw::new(StreamFlags::NON_BLOCKING, None).map_err(driver::failed)?;
                Queue::Cuda(CudaStream::new(gpu, ManuallyDrop::new(raw), true))
            }
        };
        Ok(Stream { device: device.clone(), queue })
    }

    /// The device that does the work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The CUstream; `None` on the CPU.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        match &self.queue {
            Queue::Cpu => None,
            Queue::Cuda(stream) => Some(stream.raw.as_inner().cast()),
        }
    }

    /// Waits until all work given to the stream is done. On the CPU it is already.
    ///
    /// # Errors
    /// [Those of every GPU call](crate#errors-of-every-gpu-call); they stem from that work as a rule.
    pub fn synchronize(&self) -> Result<()> {
        let _during = driver::during("Stream::synchronize");
        self.device.usable()?;
        match &self.queue {
            Queue::Cpu => Ok(()),
            Queue::Cuda(stream) => stream.synchronize(),
        }
    }

    /// Seconds that the work given to this stream by `work` took: between two events on a GPU, by the clock on the CPU.
    /// Waits for its end. The context is current while `work` runs.
    ///
    /// # Errors
    /// Those of `work`, and [those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn timed(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        self.device.usable()?;
        let stream = match &self.queue {
            Queue::Cpu => {
                let start = Instant::now();
                work()?;
                return Ok(start.elapsed().as_secs_f64());
            }
            Queue::Cuda(stream) => stream,
        };
        let _current = {
            let _during = driver::during("Stream::timed");
            stream.gpu.enter()?
        };
        let start = self.mark()?;
        work()?;
        self.mark()?.seconds_since(&start)
    }

    /// Marks the end of the work that the stream has now: an event on a GPU, the time of the clock on the CPU. Waits for
    /// nothing.
    ///
    /// # Errors
    /// [Those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn mark(&self) -> Result<Mark> {
        let _during = driver::during("Stream::mark");
        self.device.usable()?;
        let stream = match &self.queue {
            Queue::Cpu => return Ok(Mark { at: At::Cpu(Instant::now()) }),
            Queue::Cuda(stream) => stream,
        };
        let _current = stream.gpu.enter()?;
        let event = Event::new(EventFlags::DEFAULT).map_err(driver::failed)?;
        event.record(&stream.raw).map_err(driver::failed)?;
        Ok(Mark { at: At::Cuda(Held::new(&stream.gpu, event, |_| Ok(()))) })
    }

    /// Records the work that `work` gives to this stream into a CUDA graph, and does none of it. Plans must be warm on
    /// this stream ([`Plan::warm_up_on`](crate::Plan::warm_up_on)). Afterwards the stream does work again, also where
    /// `work` failed or panicked.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU, and nothing is done; those of `work`, such as [`Error::ColdPlanInCapture`], also
    /// where it spoiled the recording; [`Error::Driver`] if the driver has no graphs, or `work` did what cannot be recorded
    /// (waited, allocated) and said nothing of it;
    /// [those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        self.device.usable()?;
        let Queue::Cuda(stream) = &self.queue else {
            return Err(Error::Unsupported { what: "a graph on the CPU".to_owned() });
        };
        const FUNCTION: &str = "Stream::record";
        let _current = {
            let _during = driver::during(FUNCTION);
            stream.gpu.enter()?
        };
        let recording = stream.gpu.begin_recording();
        let recorded = driver::Graph::record(&stream.raw, work);
        // The failures of `work` are named by what it called; these are the recording's own.
        let _during = driver::during(FUNCTION);
        let recorded = recorded.map_err(driver::failed).and_then(|(worked, graph)| {
            worked?;
            graph.map_err(driver::failed)
        });
        drop(recording);
        Ok(Graph { device: self.device.clone(), graph: Held::new(&stream.gpu, recorded?, |_| Ok(())) })
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }
}

/// A point in a stream's work: the time when all before it was done. From [`Stream::mark`].
pub struct Mark {
    at: At,
}

enum At {
    Cpu(Instant),
    /// Freed without waiting: the driver lets what is under way end first. So with a graph.
    Cuda(Held<Event>),
}

impl Mark {
    /// Seconds from an earlier mark of the same stream to this one, for which it waits: by events on a GPU (to about half a
    /// microsecond), by the clock on the CPU (there 0 if `earlier` is the later one).
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a mark of a GPU and one of the CPU; [`Error::Driver`] for marks of two GPUs, or an
    /// `earlier` of another stream that has not passed; [those of every GPU call](crate#errors-of-every-gpu-call).
    pub fn seconds_since(&self, earlier: &Mark) -> Result<f64> {
        let _during = driver::during("Mark::seconds_since");
        match (&self.at, &earlier.at) {
            (At::Cpu(end), At::Cpu(start)) => Ok(end.saturating_duration_since(*start).as_secs_f64()),
            (At::Cuda(end), At::Cuda(start)) => {
                let _current = end.gpu().enter()?;
                end.synchronize().map_err(driver::failed)?;
                let milliseconds = end.elapsed_time_f32(start).map_err(driver::failed)?;
                Ok(f64::from(milliseconds) / 1e3)
            }
            _ => Err(Error::Unsupported { what: "the time between marks of two devices".to_owned() }),
        }
    }
}

/// Work recorded by [`Stream::record`], given to a stream as one: the launches in it cost the host one call.
/// One thread at a time may launch it; this does not compile:
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<lanky_host::Graph>();
/// ```
pub struct Graph {
    device: Device,
    graph: Held<driver::Graph>,
}

impl Graph {
    /// Gives the recorded work to the stream; asynchronous. Any number of times, each after the one before.
    ///
    /// # Safety
    /// The memory that the work was recorded with, and the plans with their workspaces, are there, and nothing else uses
    /// them, until the work is done. A product without a plan was recorded with the workspace of its stream, which a larger
    /// one of that stream replaces: record plans.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on a stream of the CPU; [`Error::WrongStream`] on one of another GPU; [those of every GPU
    /// call](crate#errors-of-every-gpu-call).
    pub unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        let _during = driver::during("Graph::launch");
        stream.device.usable()?;
        let Queue::Cuda(queue) = &stream.queue else {
            return Err(Error::Unsupported { what: "a graph on the CPU".to_owned() });
        };
        self.device.same_as("graph", stream)?;
        let _current = queue.gpu.enter()?;
        // SAFETY: the recorded work's memory, plans and workspaces are there and nothing else uses them, as the caller
        // promised; the modules of its kernels a GPU keeps till the process ends; the stream is of the graph's device
        // (`same_as`), whose context is current.
        unsafe { self.graph.launch(&queue.raw) }.map_err(driver::failed)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {:?})", self.device, self.as_raw())
    }
}

impl CudaStream {
    fn new(gpu: &Arc<Gpu>, raw: ManuallyDrop<Raw>, owned: bool) -> Self {
        CudaStream {
            gpu: Arc::clone(gpu),
            raw,
            owned,
            ring: Mutex::default(),
            scratch: Mutex::default(),
            lists: Mutex::default(),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.gpu.enter()?;
        self.raw.synchronize().map_err(driver::failed)
    }

    /// What tells this stream from the others of its context.
    pub(crate) fn key(&self) -> usize {
        self.raw.as_inner().addr()
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        // Each waits for the work that uses it.
        drop(self.ring.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.scratch.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.lists.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        if !self.owned {
            return;
        }
        // SAFETY: taken once, here, and not used afterwards; a borrowed stream is left to its owner.
        let raw = unsafe { ManuallyDrop::take(&mut self.raw) };
        // A plan's workspace of this stream may serve a later stream at the same address: not before this one is idle.
        self.gpu.free_after(Raw::synchronize, raw);
    }
}
