//! Events: points in a stream's work that can be waited for and timed.

use crate::error::{CudaResult, DropResult};
use crate::owner::Owner;
use crate::stream::Stream;
use crate::sys::{self, CUevent, Status};
use std::ffi::c_uint;
use std::mem::ManuallyDrop;
use std::ptr;
use std::time::Duration;

bitflags::bitflags! {
    /// What kind of event to make.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct EventFlags: c_uint {
        /// One that takes the time.
        const DEFAULT = 0x0;
        /// Threads wait for it asleep.
        const BLOCKING_SYNC = 0x1;
        /// It takes no time, which makes it cheaper.
        const DISABLE_TIMING = 0x2;
        /// Other processes may use it; needs `DISABLE_TIMING`.
        const INTERPROCESS = 0x4;
    }
}

/// How far an event is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventStatus {
    /// All work before it is done (also if it was never recorded).
    Ready,
    /// Some of it is not.
    NotReady,
}

/// A point in a stream's work: record it there, then wait for it, ask for it, or take the time to it. Destroyed on drop, on
/// whatever thread that is.
#[derive(Debug)]
pub struct Event {
    inner: CUevent,
    owner: Owner,
}

// SAFETY: the driver lets any thread use an event, and `Owner` has the context current for what needs it.
unsafe impl Send for Event {}
// SAFETY: a shared event is recorded, asked and waited for, for which the driver locks it.
unsafe impl Sync for Event {}

impl Event {
    /// An event in the current context. `cuEventCreate`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn new(flags: EventFlags) -> CudaResult<Self> {
        let mut inner = ptr::null_mut();
        // SAFETY: `inner` is a place for the answer.
        unsafe { sys::cuEventCreate(&raw mut inner, flags.bits()) }.to_result()?;
        Ok(Event { inner, owner: Owner::current() })
    }

    /// Puts the event behind the work that the stream has now. `cuEventRecord`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors); among them a stream of another context.
    pub fn record(&self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: event and stream are alive.
        unsafe { sys::cuEventRecord(self.inner, stream.as_inner()) }.to_result()
    }

    /// Whether what it was put behind is done. `cuEventQuery`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), and those of that work.
    pub fn query(&self) -> CudaResult<EventStatus> {
        // SAFETY: the event is alive.
        let status = unsafe { sys::cuEventQuery(self.inner) };
        // Not an error here, so it is not remembered as one.
        if status.code == 600 {
            return Ok(EventStatus::NotReady);
        }
        status.to_result().map(|()| EventStatus::Ready)
    }

    /// Waits until what it was put behind is done. `cuEventSynchronize`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), and those of that work.
    pub fn synchronize(&self) -> CudaResult<()> {
        // SAFETY: the event is alive.
        unsafe { sys::cuEventSynchronize(self.inner) }.to_result()
    }

    /// Milliseconds from `start` to this event, to about half a microsecond. `cuEventElapsedTime`.
    ///
    /// # Errors
    /// [`NotReady`](crate::error::CudaError::NotReady) if either has not passed;
    /// [`InvalidHandle`](crate::error::CudaError::InvalidHandle) if either was never recorded, or takes no time.
    pub fn elapsed_time_f32(&self, start: &Self) -> CudaResult<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive; `milliseconds` is a place for the answer.
        unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, start.inner, self.inner) }.to_result()?;
        Ok(milliseconds)
    }

    /// The time from `start` to this event; zero if `start` is the later one.
    ///
    /// # Errors
    /// As [`Event::elapsed_time_f32`].
    pub fn elapsed(&self, start: &Self) -> CudaResult<Duration> {
        let seconds = f64::from(self.elapsed_time_f32(start)?) / 1e3;
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }

    pub(crate) fn as_inner(&self) -> CUevent {
        self.inner
    }

    fn destroy(&self) -> Status {
        // SAFETY: the event is this one's own, and both callers end with it; who waits for it still does.
        self.owner.free(|| unsafe { sys::cuEventDestroy_v2(self.inner) })
    }

    /// Destroys the event. `cuEventDestroy`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), with the event.
    pub fn drop(event: Event) -> DropResult<Event> {
        match event.destroy().to_result() {
            Ok(()) => {
                let mut event = ManuallyDrop::new(event);
                // SAFETY: `event` is not used, and not dropped, after this.
                unsafe { ptr::drop_in_place(&raw mut event.owner) };
                Ok(())
            }
            Err(error) => Err((error, event)),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}
