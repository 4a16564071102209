//! What was let go of while it could not be freed: the work that uses it could not be waited for.
//!
//! While a stream records a graph nothing may wait for the GPU, or the recording is spoiled; and a driver may refuse to
//! wait. What is let go of then is kept here, and freed with the next thing that can be.

use crate::driver;
use crate::error::Error;
use crate::gpu::{Gpu, lock};
use cust::context::CurrentContext;
use cust::error::CudaResult;
use std::mem::{ManuallyDrop, forget, take};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Things that free themselves when they are dropped, of one GPU.
#[derive(Default)]
pub(crate) struct Left {
    things: Mutex<Vec<Box<dyn Send>>>,
    /// Recordings under way.
    recordings: AtomicUsize,
}

/// A recording under way: nothing of the GPU is waited for.
pub(crate) struct Recording<'g>(&'g Gpu);

impl Gpu {
    /// Until the result is dropped nothing is freed.
    pub(crate) fn begin_recording(&self) -> Recording<'_> {
        self.left.recordings.fetch_add(1, Ordering::SeqCst);
        Recording(self)
    }

    /// Drops `thing` once `wait` is over; later where that fails or may not be, and never in a context that is lost or a
    /// process that was forked: to free what is in use is worse than to leave it to the driver.
    pub(crate) fn free_after<T: Send + 'static>(&self, wait: impl FnOnce(&T) -> CudaResult<()>, thing: T) {
        let current = match self.enter() {
            Ok(current) => current,
            Err(Error::ContextLost { .. } | Error::Forked) => return forget(thing),
            Err(_) => return lock(&self.left.things).push(Box::new(thing)),
        };
        let is_recording = self.left.recordings.load(Ordering::SeqCst) > 0;
        match if is_recording { None } else { Some(wait(&thing).map_err(driver::failed)) } {
            Some(Ok(())) => {
                drop(thing);
                self.free_left();
            }
            Some(Err(Error::ContextLost { .. })) => forget(thing),
            None | Some(Err(_)) => lock(&self.left.things).push(Box::new(thing)),
        }
        drop(current);
    }

    /// Frees what was left, if anything, behind all work of the GPU. What cannot be freed now either stays where it is.
    pub(crate) fn free_left(&self) {
        let things = take(&mut *lock(&self.left.things));
        if !things.is_empty() {
            self.free_after(|_| CurrentContext::synchronize(), things);
        }
    }
}

/// What is of a GPU, and is let go of on any thread: freed once the wait that belongs to it is over.
pub(crate) struct Held<T: Send + 'static> {
    gpu: Arc<Gpu>,
    thing: ManuallyDrop<T>,
    wait: fn(&T) -> CudaResult<()>,
}

impl<T: Send + 'static> Held<T> {
    pub(crate) fn new(gpu: &Arc<Gpu>, thing: T, wait: fn(&T) -> CudaResult<()>) -> Self {
        Held { gpu: Arc::clone(gpu), thing: ManuallyDrop::new(thing), wait }
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }
}

impl<T: Send + 'static> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T: Send + 'static> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.thing
    }
}

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here, and not used afterwards.
        let thing = unsafe { ManuallyDrop::take(&mut self.thing) };
        self.gpu.free_after(self.wait, thing);
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.left.recordings.fetch_sub(1, Ordering::SeqCst);
        self.0.free_left();
    }
}
