//! Streams: work in order.

use crate::error::{CudaError, CudaResult, DropResult, refuse};
use crate::event::Event;
use crate::function::{BlockSize, Function, GridSize};
use crate::owner::Owner;
use crate::sys::{self, CUstream, Status};
use std::ffi::{c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

bitflags::bitflags! {
    /// What kind of stream to make.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StreamFlags: c_uint {
        /// The stream waits for work on the null stream, and that for it.
        const DEFAULT = 0x00;
        /// The stream has nothing to do with the null stream.
        const NON_BLOCKING = 0x01;
    }
}

bitflags::bitflags! {
    /// How a stream waits for an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StreamWaitEventFlags: c_uint {
        /// In the usual way; there is no other.
        const DEFAULT = 0x0;
    }
}

/// A queue of work, done in order. Nothing orders two streams but events and waiting. Destroyed on drop, on whatever thread
/// that is; the driver still does its work.
#[derive(Debug)]
pub struct Stream {
    inner: CUstream,
    owner: Owner,
}

// SAFETY: the driver lets any thread use a stream, and `Owner` has the context current for what needs it.
unsafe impl Send for Stream {}
// SAFETY: a shared stream is given work, asked and waited for, for which the driver locks it.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream in the current context, of the flags given (the published crate never makes a non-blocking one). Lower
    /// numbers have priority; `None` is 0. `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn new(flags: StreamFlags, priority: Option<i32>) -> CudaResult<Self> {
        let mut inner = ptr::null_mut();
        let priority = priority.unwrap_or(0);
        // SAFETY: `inner` is a place for the answer.
        unsafe { sys::cuStreamCreateWithPriority(&raw mut inner, flags.bits(), priority) }.to_result()?;
        Ok(Stream { inner, owner: Owner::current() })
    }

    /// Somebody else's, which is not destroyed; see [`crate::extra::borrow_stream`].
    pub(crate) fn borrowed(inner: CUstream) -> ManuallyDrop<Stream> {
        ManuallyDrop::new(Stream { inner, owner: Owner::none() })
    }

    /// The flags it was made with. `cuStreamGetFlags`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn get_flags(&self) -> CudaResult<StreamFlags> {
        let mut flags = 0;
        // SAFETY: the stream is alive; `flags` is a place for the answer.
        unsafe { sys::cuStreamGetFlags(self.inner, &raw mut flags) }.to_result()?;
        Ok(StreamFlags::from_bits_truncate(flags))
    }

    /// Its priority. `cuStreamGetPriority`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn get_priority(&self) -> CudaResult<i32> {
        let mut priority = 0;
        // SAFETY: the stream is alive; `priority` is a place for the answer.
        unsafe { sys::cuStreamGetPriority(self.inner, &raw mut priority) }.to_result()?;
        Ok(priority)
    }

    /// Waits until all work given to the stream is done. `cuStreamSynchronize`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), and those of any of that work.
    pub fn synchronize(&self) -> CudaResult<()> {
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamSynchronize(self.inner) }.to_result()
    }

    /// Work given to the stream from now on waits for what the event recorded. The event is dropped, which the driver
    /// allows at once; [`crate::extra::wait_for`] takes it by reference. `cuStreamWaitEvent`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn wait_event(&self, event: Event, flags: StreamWaitEventFlags) -> CudaResult<()> {
        self.wait_for(&event, flags)
    }

    pub(crate) fn wait_for(&self, event: &Event, flags: StreamWaitEventFlags) -> CudaResult<()> {
        // SAFETY: stream and event are alive.
        unsafe { sys::cuStreamWaitEvent(self.inner, event.as_inner(), flags.bits()) }.to_result()
    }

    /// Gives a kernel to the stream; [`crate::launch!`] is the usual way to call this. Each of `args` is the address of
    /// one parameter's value, which is read before this returns. `cuLaunchKernel`.
    ///
    /// # Safety
    /// The context of stream and function is current. `args` are as many as the kernel has parameters, each of that
    /// parameter's type, and what the kernel then reads and writes through them is memory of that context which stays,
    /// and which nothing else uses, until the kernel is done. So long the function's module stays loaded, too, which is
    /// longer than `func` borrows it.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors); also those of earlier work in the context.
    #[doc(hidden)]
    pub unsafe fn launch<G, B>(
        &self,
        func: &Function<'_>,
        grid_size: G,
        block_size: B,
        shared_mem_bytes: u32,
        args: &[*mut c_void],
    ) -> CudaResult<()>
    where
        G: Into<GridSize>,
        B: Into<BlockSize>,
    {
        let (grid, block) = (grid_size.into(), block_size.into());
        let arguments = args.as_ptr().cast_mut();
        // SAFETY: `args` are the kernel's parameters and the context is current, as the caller promised; the driver
        // only reads the array.
        unsafe {
            sys::cuLaunchKernel(
                func.to_raw(),
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared_mem_bytes,
                self.inner,
                arguments,
                ptr::null_mut(),
            )
        }
        .to_result()
    }

    /// The driver's handle, alive as long as this is.
    pub fn as_inner(&self) -> CUstream {
        self.inner
    }

    fn destroy(&self) -> Status {
        // SAFETY: the stream is this one's own, and both callers end with it; the driver finishes its work first.
        self.owner.free(|| unsafe { sys::cuStreamDestroy_v2(self.inner) })
    }

    /// Destroys the stream; its work is still done. `cuStreamDestroy`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), with the stream.
    pub fn drop(stream: Stream) -> DropResult<Stream> {
        match stream.destroy().to_result() {
            Ok(()) => {
                let mut stream = ManuallyDrop::new(stream);
                // SAFETY: `stream` is not used, and not dropped, after this.
                unsafe { ptr::drop_in_place(&raw mut stream.owner) };
                Ok(())
            }
            Err(error) => Err((error, stream)),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}

/// Runs asynchronous work of the current context and waits for it, ordered behind all earlier work of that context.
///
/// The published crate does such work on the null stream, where a copy from pageable memory may return while it still
/// runs and a non-blocking stream does not wait for it. Here a stream of its own is waited for.
pub(crate) fn blocking(work: impl FnOnce(&Stream) -> CudaResult<()>) -> CudaResult<()> {
    // SAFETY: no arguments.
    unsafe { sys::cuCtxSynchronize() }.to_result()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    if let Err(error) = work(&stream) {
        // Part of it may be under way and use the caller's memory; the first failure is the one that is told.
        // SAFETY: the stream is alive.
        let _ = unsafe { sys::cuStreamSynchronize(stream.inner) };
        return Err(error);
    }
    stream.synchronize()
}

/// The product of a length and an element's size; `None` if it does not fit.
pub(crate) fn bytes_of<T>(function: &'static str, len: usize) -> CudaResult<usize> {
    len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| {
        let text = format!("{len} elements of {} bytes are more than can exist", size_of::<T>());
        refuse(function, CudaError::InvalidMemoryAllocation, text)
    })
}
