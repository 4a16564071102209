//! What was let go of while it could not be freed: the work that uses it could not be waited for.
//!
//! While a stream records a graph nothing may wait for a GPU, or the recording is spoiled; and a driver may refuse to
//! wait. What is let go of then is kept here, and freed with the next thing that can be.

use crate::driver;
use crate::error::Error;
use crate::gpu::{Gpu, lock};
use cust::context::CurrentContext;
use cust::error::CudaResult;
use std::mem::{ManuallyDrop, forget, take};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// Recordings under way, by [`crate::Stream::record`]. Of all GPUs: what a recording thread may not do, it may do to none.
static RECORDINGS: RwLock<usize> = RwLock::new(0);

/// Things that free themselves when they are dropped, of one GPU.
#[derive(Default)]
pub(crate) struct Left {
    things: Mutex<Vec<Box<dyn Send>>>,
}

/// A recording under way: no GPU is waited for.
pub(crate) struct Recording<'g>(&'g Gpu);

/// Why something is not freed now.
enum Kept {
    /// It is freed later.
    Left,
    /// In a context that is lost, or by a forked process: to free what is in use is worse than to leave it to the driver.
    Forever,
}

/// As long as the result lives no recording begins; `None` if one is under way.
pub(crate) fn no_recording() -> Option<RwLockReadGuard<'static, usize>> {
    let recordings = RECORDINGS.read().unwrap_or_else(PoisonError::into_inner);
    (*recordings == 0).then_some(recordings)
}

impl Gpu {
    /// Until the result is dropped nothing is freed. Waits for those who wait for a GPU.
    pub(crate) fn begin_recording(&self) -> Recording<'_> {
        *RECORDINGS.write().unwrap_or_else(PoisonError::into_inner) += 1;
        Recording(self)
    }

    /// Waits, with the context current as long as the result lives.
    fn wait(&self, wait: impl FnOnce() -> CudaResult<()>) -> Result<driver::Entered, Kept> {
        let _during = driver::during("a drop");
        let kept = |error| match error {
            Error::ContextLost { .. } | Error::Forked => Kept::Forever,
            _ => Kept::Left,
        };
        let current = self.enter().map_err(kept)?;
        let _none = no_recording().ok_or(Kept::Left)?;
        wait().map_err(|error| kept(driver::failed(error)))?;
        Ok(current)
    }

    /// Drops `thing` once `wait` is over; later where that fails or may not be.
    pub(crate) fn free_after<T: Send + 'static>(&self, wait: impl FnOnce(&T) -> CudaResult<()>, thing: T) {
        match self.wait(|| wait(&thing)) {
            Ok(_current) => {
                drop(thing);
                self.free_left();
            }
            Err(Kept::Left) => lock(&self.left.things).push(Box::new(thing)),
            Err(Kept::Forever) => forget(thing),
        }
    }

    /// Frees what was left, if anything, behind all work of the GPU. What cannot be freed now either stays where it is.
    pub(crate) fn free_left(&self) {
        // A lock that a thread of the parent had when this process was forked stays locked.
        if driver::same_process().is_err() {
            return;
        }
        let things = take(&mut *lock(&self.left.things));
        if things.is_empty() {
            return;
        }
        match self.wait(CurrentContext::synchronize) {
            Ok(_current) => drop(things),
            Err(Kept::Left) => lock(&self.left.things).extend(things),
            Err(Kept::Forever) => forget(things),
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
        *RECORDINGS.write().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.free_left();
    }
}
